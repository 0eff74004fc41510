//! Who is there: registration, leases, losses, complaints.

use cluster::{
    ClusterMap, Entry, GroupId, HostId, Layout, MemberId, NodeId, NodeLoad, PlanNode, Time, place_in_zones,
};
use wire::message::{FromCoordinator, Refused, Registration};

use super::nodes::{Heard, NodeState};
use super::records::most_kept_groups;
use super::recovery::Former;
use super::{Coordinator, RecordKeeping, decide};
use crate::Now;

/// After how many leases of silence a host is given up whose loss means the loss of data.
const GRACE_LEASES: u64 = 5;

/// For how many leases after the forming of a cluster a node that it does not know counts as one of those that were started
/// together, and joins without having said that it is to: machines do not all start equally fast. Later it is a mistake.
const FOUNDING_LEASES: u64 = 60;

impl Coordinator {
    /// A process introduces itself.
    pub(super) fn register(&mut self, now: Now, registration: Registration) {
        let host = registration.info.host;
        if let Some(reason) = self.refusal(now, &registration) {
            let fenced = self.nodes.get(host).is_some_and(NodeState::is_fenced);
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
        let before = self.nodes.named(host.node).map(|node| (node.host(), node.info().peer));
        if let Some((before, address)) = before.filter(|(before, _)| *before != host) {
            if address == registration.info.peer {
                self.keeping.note_ended(before);
            }
            // The name is used again: whoever had it before cannot come back under it, and owns nothing any more.
            self.nodes.give_up(before);
            self.lose(now, before);
        }
        let returning = self.nodes.get(host).is_some();
        let Registration { info, expect, .. } = registration;
        self.nodes.insert(NodeState::registered(info, expect.entry, now.time));
        self.keeping.forget_namesakes(host);
        match &self.map {
            None if self.nodes.founders().count() >= usize::from(self.config.nodes) => self.form(now),
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

    /// Whether `host` has to wait, because another process has its name and its lease runs.
    fn occupied(&self, now: Now, host: HostId) -> Option<FromCoordinator> {
        let lease_us = self.config.timing.node_lease_us;
        let node = self.nodes.named(host.node).filter(|node| node.host() != host && node.is_leased())?;
        let (by, peer, epoch) = (node.host(), node.info().peer, self.epoch);
        let cluster = self.map.as_ref().map(|map| map.cluster);
        let lasts = node.silence_us(now.time) < lease_us;
        lasts.then_some(FromCoordinator::Occupied { by, peer, lease_us, cluster, epoch })
    }

    /// Why the process is not one for this cluster, and will not be later either.
    fn refusal(&self, now: Now, registration: &Registration) -> Option<String> {
        let info = &registration.info;
        let id = info.host.node;
        if let Some(reason) = self.unmet(registration) {
            return Some(reason);
        }
        match self.nodes.named(id) {
            Some(node) if node.host() == info.host && node.is_fenced() => Some(Self::fenced_refusal()),
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
        let founders: Vec<HostId> = self.nodes.founders().collect();
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
                    nodes: self.nodes.infos(None),
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
                self.nodes.hosts().into_iter().for_each(|host| self.refuse(host, false, error.to_string()));
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

    /// Nodes have changed: a new map for all.
    pub(super) fn publish_nodes(&mut self) {
        let Some(map) = &mut self.map else { return };
        map.nodes = self.nodes.infos(Some(&map.layout));
        map.version += 1;
        let map = map.clone();
        self.record_then(self.head_record(&map), FromCoordinator::Map(map));
    }

    /// Whether `from` is a process that counts; if so, its lease starts anew.
    pub(super) fn hear(&mut self, now: Now, from: HostId) -> bool {
        match self.nodes.hear(now.time, from) {
            Heard::Stranger => false,
            Heard::Fenced => {
                self.turn_away_fenced(from);
                false
            }
            Heard::Leased => true,
            Heard::Returned => {
                // What it served has been given away; it may forward, and later host something new.
                self.publish_nodes();
                true
            }
        }
    }

    pub(super) fn handle_heartbeat(&mut self, from: HostId, map_version: u64, load: NodeLoad) {
        self.nodes.note_load(from, load);
        // A node that hears the other answer knows that nobody presides.
        let presides = self.attention.presides();
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
        let Some(host) = self.nodes.note_dead(node) else { return };
        self.lose(now, host);
        if self.map.is_some() {
            self.publish_nodes();
        }
    }

    /// The coordinator itself was away for a while: then nobody's silence counts for that time.
    pub(super) fn forgive_own_absence(&mut self, now: Time) {
        let most_us = self.config.timing.node_lease_us / 4;
        if let Some(late) = self.attention.wake(now, self.tick_us(), most_us) {
            self.complaints.clear();
            self.store.forgive(late);
            self.gathering.iter_mut().for_each(|gathering| gathering.forgive(late));
            self.nodes.forgive(late);
        }
    }

    pub(super) fn expire_leases(&mut self, now: Now) {
        let lease = self.config.timing.node_lease_us;
        // Those that are cut off together fall silent within a heartbeat of each other, and their leases run out one by one.
        let is_heard =
            |host: &HostId| self.nodes.get(*host).is_some_and(|node| node.silence_us(now.time) < lease / 2);
        if !self.has_heard_half(now.time) || !self.may_decide(is_heard) {
            // Whoever follows this coordinator would go on from what it decides now.
            self.attention.note_undecided(now.time);
            return;
        }
        self.attention.note_presided(now.time);
        for host in self.nodes.expired(now.time, self.attention.leases_count_from(), lease) {
            if self.map.is_none() {
                self.nodes.forget(host.node);
                continue;
            }
            tracing::info!(%host, "lease has run out");
            self.nodes.suspect(host);
            self.lose(now, host);
            self.publish_nodes();
        }
        self.lose_the_long_gone(now);
    }

    /// Hosts that were suspected, and kept where losing them would have lost data, are given up in the end; not while most
    /// are silent.
    fn lose_the_long_gone(&mut self, now: Now) {
        if self.nodes.too_few_are_heard(self.config.profile.m()) {
            // It gives nobody up; operators may (`node fence`).
            self.attention.note_too_few(now.time);
            return;
        }
        let grace = self.config.timing.node_lease_us * GRACE_LEASES;
        let enough = self.attention.losses_count_from();
        for host in self.nodes.long_gone(now.time, enough, grace) {
            self.nodes.give_up(host);
            self.lose(now, host);
        }
    }

    /// Whether `host` is gone, by what is known: it has ended, an operator says so or has removed its node, or another process
    /// has its name. Silence says nothing.
    pub(super) fn has_ended(&self, host: HostId) -> bool {
        let is_gone = |node: &NodeState| node.host() != host || node.is_gone();
        let is_named = |map: &ClusterMap| map.node(host.node).is_some_and(|info| info.host == host);
        let unknown = || !self.map.as_ref().is_some_and(is_named);
        self.nodes.named(host.node).map_or_else(unknown, is_gone)
    }

    /// All nodes, as the planner looks at them.
    pub(super) fn plan_nodes(&self) -> Vec<PlanNode> {
        let layout = self.map.as_ref().map(|map| &map.layout);
        let plan_node = |node: &NodeState| {
            let (host, own) = (node.host(), &node.info().zone);
            let given = layout.and_then(|layout| layout.zone_of(host.node));
            PlanNode {
                host,
                zone: given.unwrap_or(own).to_owned(),
                draining: layout.is_some_and(|layout| layout.is_draining(host.node)),
                can_host: node.is_present() && !self.learners.has_refused(host.node),
                bytes: node.load().member_bytes,
                room: node.load().room_bytes(),
                former: self.learners.former_roles(host),
            }
        };
        self.nodes.iter().map(plan_node).collect()
    }

    /// F0 for everything that `host` was.
    pub(super) fn lose(&mut self, now: Now, host: HostId) {
        let dead = self.nodes.get(host).is_some_and(NodeState::is_dead);
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
        let suspected = self.nodes.get(host).is_some_and(NodeState::is_suspected);
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
            if patient && decide::may_be_whole(view, &self.nodes.living()) {
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
