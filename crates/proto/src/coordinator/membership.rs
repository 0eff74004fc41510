//! Who is there: registration, leases, losses, complaints.

use cluster::{
    ClusterMap, Entry, GroupId, HostId, Layout, MemberId, NodeId, NodeInfo, NodeLoad, PlanNode, Time,
    place_in_zones,
};
use wire::message::{FromCoordinator, Refused, Registration};
use wire::record::KnownNode;

use super::records::most_kept_groups;
use super::recovery::Former;
use super::store_view::Seen;
use super::{Coordinator, RecordKeeping, decide};
use crate::Now;

/// After how many leases of silence a host is given up whose loss means the loss of data.
const GRACE_LEASES: u64 = 5;

/// For how many leases after the forming of a cluster a node that it does not know counts as one of those that were started
/// together, and joins without having said that it is to: machines do not all start equally fast. Later it is a mistake.
const FOUNDING_LEASES: u64 = 60;

/// A process as the coordinator knows it.
pub(super) struct NodeState {
    info: NodeInfo,
    entry: Entry,
    last_heard: Time,
    /// Whether this very coordinator has heard it; else a former one has.
    heard: bool,
    liveness: Liveness,
    load: NodeLoad,
}

/// What is known of a process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Liveness {
    /// Its lease runs.
    Leased,
    /// Its lease has run out; it may live. Where losing it would lose data, its roles wait for it.
    Suspected,
    /// It may live, but nobody waits for it any more.
    GivenUp,
    /// It may live; an operator wants it to count as lost, and it may not come back.
    Fenced,
    /// It has ended.
    Dead,
}

impl NodeState {
    /// A node as a former coordinator has recorded it. Nobody has been heard yet; nobody is silent before `found_by`, by when
    /// all have found this coordinator.
    pub(super) fn of_record(known: KnownNode, found_by: Time) -> Self {
        let liveness = match &known {
            KnownNode { fenced: true, .. } => Liveness::Fenced,
            KnownNode { info, .. } if info.alive => Liveness::Leased,
            KnownNode { .. } => Liveness::Suspected,
        };
        let (entry, load) = (Entry::Founder, NodeLoad::default());
        Self { info: known.info, entry, last_heard: found_by, heard: false, liveness, load }
    }

    /// As it is to be recorded.
    pub(super) fn record(&self) -> KnownNode {
        let info = NodeInfo { alive: self.is_leased(), ..self.info.clone() };
        KnownNode { info, fenced: self.is_fenced() }
    }

    /// Whether its lease runs, and not only by the word of a former coordinator.
    fn is_present(&self) -> bool {
        self.is_leased() && self.heard
    }

    pub(super) fn seen(&self) -> Seen {
        Seen { last: self.last_heard, heard: self.heard }
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.liveness == Liveness::Fenced
    }

    pub(super) fn info(&self) -> &NodeInfo {
        &self.info
    }

    pub(super) fn load(&self) -> NodeLoad {
        self.load
    }

    fn is_leased(&self) -> bool {
        self.liveness == Liveness::Leased
    }

    /// Whether it has ended, or may not come back.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.liveness, Liveness::Dead | Liveness::Fenced)
    }
}

impl Coordinator {
    /// A process introduces itself.
    pub(super) fn register(&mut self, now: Now, registration: Registration) {
        let host = registration.info.host;
        if let Some(reason) = self.refusal(now, &registration) {
            let fenced = self.node_of(host).is_some_and(NodeState::is_fenced);
            return self.refuse(host, fenced, reason);
        }
        if self.is_followed(&registration) {
            return self.resign("another coordinator has followed this one");
        }
        let is_new = self.config.records == RecordKeeping::Kept && self.map.is_none();
        if is_new && registration.promised >= self.epoch {
            // Nothing has been decided in this epoch, and this process keeps nothing for it: it has promised another coordinator.
            self.epoch = registration.promised.next();
        }
        let occupied = self.occupied(now, host);
        if occupied.is_none() || self.keeping.counts(host) {
            self.keeping.greet(host);
        }
        if let Some(occupied) = occupied {
            self.store.hear(now, host);
            return self.send(host, occupied);
        }
        if let Some((before, address)) =
            self.nodes.get(&host.node).map(|node| (node.info.host, node.info.peer))
            && before != host
        {
            if address == registration.info.peer {
                self.keeping.note_ended(before);
            }
            // The name is used again: whoever had it before cannot come back under it, and owns nothing any more.
            self.nodes.get_mut(&host.node).expect("just looked up").liveness = Liveness::GivenUp;
            self.lose(now, before);
        }
        let returning = self.nodes.get(&host.node).is_some_and(|node| node.info.host == host);
        let Registration { info, expect, .. } = registration;
        let (last_heard, load) = (now.time, NodeLoad::default());
        let liveness = Liveness::Leased;
        let state = NodeState { info, entry: expect.entry, last_heard, heard: true, liveness, load };
        self.nodes.insert(host.node, state);
        self.keeping.forget_namesakes(host);
        match &self.map {
            None if self.founders().count() >= usize::from(self.config.nodes) => self.form(now),
            None => {}
            Some(map) if returning && self.map_names(host) => {
                let map = map.clone();
                self.send(host, FromCoordinator::Map(map));
            }
            Some(_) => self.publish_nodes(),
        }
    }

    pub(super) fn refuse(&mut self, host: HostId, fenced: bool, reason: String) {
        let cluster = self.map.as_ref().map(|map| map.cluster);
        let refused = Refused { cluster, epoch: self.epoch, fenced, reason };
        self.send(host, FromCoordinator::Refused(refused));
    }

    /// Whether a process has promised a later coordinator to keep its records, and not this one's.
    fn is_followed(&self, registration: &Registration) -> bool {
        let kept = self.config.records == RecordKeeping::Kept && self.map.is_some();
        kept && registration.promised > self.epoch
    }

    fn map_names(&self, host: HostId) -> bool {
        self.map
            .as_ref()
            .and_then(|map| map.node(host.node))
            .is_some_and(|info| info.host == host && info.alive)
    }

    /// The nodes that the cluster forms with.
    pub(super) fn founders(&self) -> impl Iterator<Item = HostId> + '_ {
        self.nodes.values().filter(|node| node.entry == Entry::Founder).map(|node| node.info.host)
    }

    /// Whether `host` has to wait, because another process has its name and its lease runs.
    fn occupied(&self, now: Now, host: HostId) -> Option<FromCoordinator> {
        let lease_us = self.config.timing.node_lease_us;
        let node = self.nodes.get(&host.node).filter(|node| node.info.host != host && node.is_leased())?;
        let (by, peer, epoch) = (node.info.host, node.info.peer, self.epoch);
        let cluster = self.map.as_ref().map(|map| map.cluster);
        let lasts = now.time.since(node.last_heard) < lease_us;
        lasts.then_some(FromCoordinator::Occupied { by, peer, lease_us, cluster, epoch })
    }

    /// Why the process is not one for this cluster, and will not be later either.
    fn refusal(&self, now: Now, registration: &Registration) -> Option<String> {
        let info = &registration.info;
        let id = info.host.node;
        if let Some(reason) = self.unmet(registration) {
            return Some(reason);
        }
        match self.nodes.get(&id) {
            Some(node) if node.info.host == info.host && node.liveness == Liveness::Fenced => {
                Some(Self::fenced_refusal())
            }
            None if registration.expect.entry == Entry::Joiner => None,
            None if self.has_just_formed(now) => {
                tracing::info!(node = %info.host, "came with those that the cluster has formed with: it joins");
                None
            }
            None if self.map.as_ref().is_some_and(|map| map.node(id).is_none()) => Some(format!(
                "{id} is not one of the nodes that this cluster has formed with: give it --join to add it, or the id of the \
                 node that it replaces"
            )),
            _ => None,
        }
    }

    /// Whether whoever comes now was started together with the nodes that the cluster has formed with.
    fn has_just_formed(&self, now: Now) -> bool {
        let within_us = self.config.timing.node_lease_us.saturating_mul(FOUNDING_LEASES);
        self.formed.is_some_and(|formed| now.time.since(formed) < within_us)
    }

    /// What a process expects of its cluster and does not find here.
    fn unmet(&self, registration: &Registration) -> Option<String> {
        let (expect, config) = (&registration.expect, &self.config);
        let cluster = self.map.as_ref().map_or(config.cluster, |map| map.cluster);
        if let Some(wanted) = registration.holds.or(expect.cluster).filter(|wanted| *wanted != cluster) {
            return Some(format!("this node is meant for {wanted}, the coordinator has {cluster}"));
        }
        if let Some(wanted) = expect.profile.filter(|wanted| *wanted != config.profile) {
            return Some(format!(
                "this node is meant for profile {wanted}, the cluster has {}",
                config.profile
            ));
        }
        let (mine, theirs) = (expect.shards, config.shards);
        (mine != 0 && mine != theirs).then(|| {
            format!("this node has {mine} workers, the cluster's nodes have {theirs}: set workers = {theirs}")
        })
    }

    /// All nodes are here: place the groups.
    fn form(&mut self, now: Now) {
        let founders: Vec<HostId> = self.founders().collect();
        let mut nodes = self.plan_nodes();
        nodes.retain(|node| founders.contains(&node.host));
        if let Err(text) = self.check_group_count() {
            tracing::error!("{text}");
            return founders.into_iter().for_each(|host| self.refuse(host, false, text.clone()));
        }
        match place_in_zones(self.config.profile, &nodes, self.config.groups) {
            Ok(mut groups) => {
                for view in &mut groups {
                    view.version = view.version.max(self.first_version);
                }
                let map = ClusterMap {
                    cluster: self.config.cluster,
                    version: 1,
                    profile: self.config.profile,
                    shards: self.config.shards,
                    layout: Layout { on_loss: self.config.on_loss, ..Layout::default() },
                    nodes: self.node_infos(),
                    groups,
                };
                tracing::info!(nodes = nodes.len(), groups = map.groups.len(), profile = %map.profile, "cluster formed");
                self.map = Some(map.clone());
                self.formed = Some(now.time);
                self.record_new_map(&map);
                self.broadcast(&FromCoordinator::Map(map));
            }
            Err(error) => {
                tracing::error!(%error, "no placement");
                let hosts: Vec<HostId> = self.nodes.values().map(|node| node.info.host).collect();
                hosts.into_iter().for_each(|host| self.refuse(host, false, error.to_string()));
            }
        }
    }

    /// Whether nodes can keep the records of so many groups.
    fn check_group_count(&self) -> Result<(), String> {
        let (groups, profile) = (self.config.groups, self.config.profile);
        let most = most_kept_groups(profile);
        if self.config.records == RecordKeeping::Stored || groups as usize <= most {
            return Ok(());
        }
        Err(format!(
            "{groups} groups of {profile} are more than nodes can keep the records of, which is {most}: set --groups, or give the \
             coordinator a store (--coordinator etcd://...)"
        ))
    }

    pub(super) fn node_infos(&self) -> Vec<NodeInfo> {
        let zone = |info: &NodeInfo| {
            let given = self.map.as_ref().and_then(|map| map.layout.zone_of(info.host.node));
            given.map_or_else(|| info.zone.clone(), str::to_owned)
        };
        let info = |node: &NodeState| NodeInfo {
            alive: node.is_leased(),
            zone: zone(&node.info),
            ..node.info.clone()
        };
        self.nodes.values().map(info).collect()
    }

    /// Nodes have changed: a new map for all.
    pub(super) fn publish_nodes(&mut self) {
        let nodes = self.node_infos();
        let Some(map) = &mut self.map else { return };
        map.nodes = nodes;
        map.version += 1;
        let map = map.clone();
        self.record_then(self.head_record(&map), FromCoordinator::Map(map));
    }

    /// Whether `from` is a process that counts; if so, its lease starts anew.
    pub(super) fn hear(&mut self, now: Now, from: HostId) -> bool {
        let Some(node) = self.nodes.get_mut(&from.node).filter(|node| node.info.host == from) else {
            return false;
        };
        if node.liveness == Liveness::Fenced {
            self.turn_away_fenced(from);
            return false;
        }
        (node.last_heard, node.heard) = (now.time, true);
        if matches!(node.liveness, Liveness::Suspected | Liveness::GivenUp) {
            // It lives after all. What it served has been given away; it may forward, and later host something new.
            node.liveness = Liveness::Leased;
            self.publish_nodes();
        }
        true
    }

    pub(super) fn handle_heartbeat(&mut self, from: HostId, map_version: u64, load: NodeLoad) {
        if let Some(node) = self.nodes.get_mut(&from.node) {
            node.load = load;
        }
        // A node that hears the other answer knows that nobody presides.
        let presides = self.presided >= self.undecided;
        self.send(
            from,
            match self.forming().filter(|_| presides) {
                Some(forming) => FromCoordinator::Forming(forming),
                None if presides => FromCoordinator::Alive,
                None => FromCoordinator::Waiting,
            },
        );
        if !self.keeping.is_settled() {
            return;
        }
        if let Some(map) = self.map.as_ref().filter(|map| map.version > map_version) {
            let map = map.clone();
            self.send(from, FromCoordinator::Map(map));
        }
    }

    /// The connection to `host` broke. Says nothing about the process.
    pub fn connection_lost(&mut self, now: Now, host: HostId) {
        let _ = (now, host);
    }

    /// The process is known to have ended (its parent saw it).
    pub fn exited(&mut self, now: Now, node: NodeId) {
        if self.resigned {
            return;
        }
        if self.witness_ended(node) {
            return;
        }
        let Some(state) = self.nodes.get_mut(&node) else { return };
        state.liveness = Liveness::Dead;
        let host = state.info.host;
        self.lose(now, host);
        if self.map.is_some() {
            self.publish_nodes();
        }
    }

    /// The coordinator itself was away for a while: then nobody's silence counts for that time.
    pub(super) fn forgive_own_absence(&mut self, now: Time) {
        let late = self.last_active.map_or(0, |at| now.since(at).saturating_sub(self.tick_us()));
        self.last_active = Some(now);
        if late > self.config.timing.node_lease_us / 4 {
            self.away_until = now;
            self.complaints.clear();
            self.store.forgive(late);
            self.gathering.iter_mut().for_each(|gathering| gathering.forgive(late));
            for node in self.nodes.values_mut() {
                node.last_heard = node.last_heard + late;
            }
        }
    }

    pub(super) fn expire_leases(&mut self, now: Now) {
        let lease = self.config.timing.node_lease_us;
        // Those that are cut off together fall silent within a heartbeat of each other, and their leases run out one by one.
        let is_heard = |host: &HostId| {
            self.node_of(*host).is_some_and(|node| now.time.since(node.last_heard) < lease / 2)
        };
        if !self.has_heard_half(now.time) || !self.may_decide(is_heard) {
            // Whoever follows this coordinator would go on from what it decides now.
            self.undecided = now.time;
            return;
        }
        self.presided = now.time;
        // The first of many that come back together is heard before the others are.
        let enough = self.undecided;
        let expired: Vec<HostId> = self
            .nodes
            .values()
            .filter(|node| node.is_leased() && now.time.since(node.last_heard.max(enough)) >= lease)
            .map(|node| node.info.host)
            .collect();
        for host in expired {
            if self.map.is_none() {
                self.nodes.remove(&host.node);
                continue;
            }
            tracing::info!(%host, "lease has run out");
            self.nodes.get_mut(&host.node).expect("just listed").liveness = Liveness::Suspected;
            self.lose(now, host);
            self.publish_nodes();
        }
        self.lose_the_long_gone(now);
    }

    /// Hosts that were suspected, and kept where losing them would have lost data, are given up in the end; not while most
    /// are silent.
    fn lose_the_long_gone(&mut self, now: Now) {
        if self.hears_too_few() {
            self.heard_too_few = now.time;
            return;
        }
        let grace = self.config.timing.node_lease_us * GRACE_LEASES;
        let enough = self.heard_too_few.max(self.undecided);
        let gone: Vec<HostId> = self
            .nodes
            .values()
            .filter(|node| {
                node.liveness == Liveness::Suspected && now.time.since(node.last_heard.max(enough)) >= grace
            })
            .map(|node| node.info.host)
            .collect();
        for host in gone {
            self.nodes.get_mut(&host.node).expect("just listed").liveness = Liveness::GivenUp;
            self.lose(now, host);
        }
    }

    /// Whether most processes that may live are silent, and more than the code can make up for: then it is the coordinator
    /// that is cut off, more likely than not. It gives nobody up; operators may (`node fence`).
    fn hears_too_few(&self) -> bool {
        let may_live = self.nodes.values().filter(|node| !node.is_gone());
        let (all, heard) =
            may_live.fold((0, 0), |(all, heard), node| (all + 1, heard + usize::from(node.is_leased())));
        let silent = all - heard;
        silent > self.config.profile.m() && silent > heard
    }

    /// Whether `host` is known to have ended, so that nothing of it can answer a client any more.
    pub(super) fn is_dead(&self, host: HostId) -> bool {
        self.nodes
            .get(&host.node)
            .is_some_and(|node| node.info.host == host && node.liveness == Liveness::Dead)
    }

    /// Whether `host` is gone, by what is known: it has ended, an operator says so or has removed its node, or another process
    /// has its name. Silence says nothing.
    pub(super) fn has_ended(&self, host: HostId) -> bool {
        let is_gone = |node: &NodeState| node.info.host != host || node.is_gone();
        let is_named = |map: &ClusterMap| map.node(host.node).is_some_and(|info| info.host == host);
        let unknown = || !self.map.as_ref().is_some_and(is_named);
        self.nodes.get(&host.node).map_or_else(unknown, is_gone)
    }

    /// Nodes that have not been heard for a lease, whether or not anything has followed from that.
    pub(super) fn silent_nodes(&self, now: Now) -> Vec<NodeId> {
        let lease = self.config.timing.node_lease_us;
        let is_silent = |node: &&NodeState| !node.is_leased() || now.time.since(node.last_heard) >= lease;
        self.nodes.values().filter(is_silent).map(|node| node.info.host.node).collect()
    }

    pub(super) fn living(&self) -> Vec<HostId> {
        self.nodes.values().filter(|node| node.is_leased()).map(|node| node.info.host).collect()
    }

    /// Those that may be given something to host.
    pub(super) fn present(&self) -> Vec<HostId> {
        self.nodes.values().filter(|node| node.is_present()).map(|node| node.info.host).collect()
    }

    /// All nodes, as the planner looks at them.
    pub(super) fn plan_nodes(&self) -> Vec<PlanNode> {
        let layout = self.map.as_ref().map(|map| &map.layout);
        let plan_node = |node: &NodeState| {
            let (host, own) = (node.info.host, &node.info.zone);
            let given = layout.and_then(|layout| layout.zone_of(host.node));
            PlanNode {
                host,
                zone: given.unwrap_or(own).to_owned(),
                draining: layout.is_some_and(|layout| layout.is_draining(host.node)),
                can_host: node.is_present() && !self.learners.has_refused(host.node),
                bytes: node.load.member_bytes,
                room: node.load.room_bytes(),
                former: self.learners.former_roles(host),
            }
        };
        self.nodes.values().map(plan_node).collect()
    }

    /// Nothing is known of `node` any more.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// The process of `node` is not to come back; which one it is, unless it is known to be dead anyway.
    pub(super) fn mark_fenced(&mut self, node: NodeId) -> Option<HostId> {
        let state = self.nodes.get_mut(&node).filter(|state| state.liveness != Liveness::Dead)?;
        state.liveness = Liveness::Fenced;
        Some(state.info.host)
    }

    /// F0 for everything that `host` was.
    pub(super) fn lose(&mut self, now: Now, host: HostId) {
        let dead = self.is_dead(host);
        let affected: Vec<GroupId> = self
            .map
            .iter()
            .flat_map(|map| &map.groups)
            .filter(|view| {
                view.data.iter().any(|r| r.primary == Some(host))
                    || view.parity.contains(&Some(host))
                    || view.learners.iter().any(|learner| learner.host == host)
            })
            .map(|view| view.group)
            .collect();
        for group in affected {
            if self.is_worth_waiting_for(host, group) {
                tracing::error!(%group, %host, "losing this host would lose data; waiting for it to come back");
                continue;
            }
            // A stand-in's death says nothing of the one before it, whose lease it may have been waiting for.
            let Some(before) = self.view(group).map(|view| view.data.clone()) else { continue };
            let mut fenced = Vec::new();
            self.change_view(group, |view| fenced = decide::remove_host(view, host));
            for role in fenced {
                let alone = decide::had_no_predecessor(&before[usize::from(role.0)]);
                let former = if dead && alone { Former::Dead } else { Former::MayLive };
                self.begin_recovery(MemberId { group, role }, former, None);
            }
            self.after_loss(now, group);
        }
    }

    /// Whether `group` is better off waiting for a suspected host than going on without it.
    fn is_worth_waiting_for(&self, host: HostId, group: GroupId) -> bool {
        let suspected = self
            .nodes
            .get(&host.node)
            .is_some_and(|n| n.info.host == host && n.liveness == Liveness::Suspected);
        let Some(mut without) = self.view(group).cloned() else { return false };
        decide::remove_host(&mut without, host);
        suspected && decide::is_beyond_repair(&without)
    }

    /// The in-sync parities of `group`, or its roles, have become fewer: is it beyond repair; else recover.
    pub(super) fn after_loss(&mut self, now: Now, group: GroupId) {
        let Some(view) = self.view(group) else { return };
        if decide::is_beyond_repair(view) {
            let since = self.doubtful.get(&group).copied().unwrap_or(now.time);
            let patient = now.time.since(since) < self.config.timing.node_lease_us;
            if patient && decide::may_be_whole(view, &self.living()) {
                tracing::error!(%group, "beyond repair, unless its stand-ins are whole already");
                self.doubtful.insert(group, since);
                return;
            }
            let lost = view.roles_in_play();
            tracing::error!(%group, lost, in_sync = view.in_sync().count(), "beyond repair: more members lost than the code can make up for");
            self.doubtful.remove(&group);
            return self.declare_loss(now, group);
        }
        self.restart_recoveries(now, group);
    }

    /// Stand-ins that are whole have said so by now: their groups go on, the others are lost.
    pub(super) fn judge_the_doubtful(&mut self, now: Now) {
        let lease = self.config.timing.node_lease_us;
        let saved = |group: &GroupId| self.view(*group).is_some_and(|view| !decide::is_beyond_repair(view));
        let due: Vec<GroupId> = self
            .doubtful
            .iter()
            .filter(|(group, since)| now.time.since(**since) >= lease || saved(group))
            .map(|(group, _)| *group)
            .collect();
        for group in due {
            self.after_loss(now, group);
            self.doubtful.remove(&group);
        }
    }
}
