//! Who is there: registration, forming, heartbeats, leases.

use std::collections::BTreeSet;

use cluster::place_in_zones;
use types::{Catalog, ChangeLog, ClusterMap, Forming, HostId, Layout, NodeId, NodeLoad, Time, ViewVersion};
use wire::message::{FromCoordinator, Registration};

use super::attention::Attention;
use super::look::Look;
use super::loss::accepts_losses;
use super::nodes::{Heard, NodeState, Patience, Told};
use super::repairs::Repairs;
use super::state::ClusterState;
use super::store_view::StoreView;
use super::{RecordKeeping, admission};
use crate::Now;
use crate::rules::SilenceRules;

/// After how many leases of silence a host is given up whose loss means the loss of data.
const GRACE_LEASES: u64 = 5;

/// For how many leases after the forming of a cluster a node that it does not know counts as one of those that were started
/// together, and joins without having said that it is to: machines do not all start equally fast. Later it is a mistake.
const FOUNDING_LEASES: u64 = 60;

/// See the module.
#[derive(Default)]
pub(super) struct Membership {
    attention: Attention,
    /// Who lives by the leases of the store of the records.
    store: StoreView,
    /// When the cluster formed; none if another coordinator formed it.
    formed: Option<Time>,
    /// The lowest version with which views may be formed: above what a coordinator left that died before it had formed all.
    first_version: ViewVersion,
    /// When it was last looked who is silent.
    looked: Look,
}

impl Membership {
    pub(super) fn attention(&self) -> &Attention {
        &self.attention
    }

    pub(super) fn attention_mut(&mut self) -> &mut Attention {
        &mut self.attention
    }

    /// Views are to be formed above `version`.
    pub(super) fn form_above(&mut self, version: ViewVersion) {
        self.first_version = version.next();
    }

    /// Whoever comes from now on is none of those that were started together.
    pub(super) fn end_founding(&mut self) {
        self.formed = None;
    }

    /// The processes that the store shows as alive.
    pub(super) fn store_sees(&mut self, now: Now, state: &ClusterState, alive: &BTreeSet<HostId>) {
        self.store.show(now.time + state.lease_us(), alive);
        self.looked = Look::default();
    }

    /// A process introduces itself.
    pub(super) fn register(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        repairs: &mut Repairs,
        registration: Registration,
    ) {
        let host = registration.info.host;
        if let Some(refusal) = admission::refusal(state, self.has_just_formed(now, state), &registration) {
            return state.refuse(host, refusal.fenced, refusal.reason);
        }
        if admission::is_followed(state, &registration) {
            return state.outbox_mut().resign("another coordinator has followed this one");
        }
        let is_new = state.config().records == RecordKeeping::Kept && state.map().is_none();
        if is_new && registration.promised >= state.epoch() {
            // Nothing has been decided in this epoch, and this process keeps nothing for it: it has promised another
            // coordinator.
            state.begin_after(registration.promised);
        }
        let occupied = admission::occupied(now, state, &registration);
        let keeping = state.outbox_mut().keeping_mut();
        // An elector may be needed to put a record in force even while it waits for its place.
        if occupied.is_none() || keeping.counts(host) {
            keeping.greet(host);
        }
        if let Some(occupied) = occupied {
            // It is heard, though it has no place yet: the coordinator must not seem cut off from it.
            self.store.hear(now, host);
            return state.send(host, occupied);
        }
        take_name_over(now, state, repairs, &registration);
        self.admit(now, state, registration);
    }

    /// The process that registers has its name for itself: it is one of the nodes.
    fn admit(&mut self, now: Now, state: &mut ClusterState, registration: Registration) {
        let Registration { info, expect, map: has, .. } = registration;
        let host = info.host;
        let returning = state.nodes().get(host).is_some();
        state.nodes_mut().insert(NodeState::registered(info, expect.entry, Told::registered(has), now.time));
        state.outbox_mut().keeping_mut().forget_namesakes(host);
        if state.map().is_none() {
            if state.nodes().founders().count() >= usize::from(state.config().nodes) {
                self.form(now, state);
            }
        } else if returning && state.map_names(host) {
            // Only its connection is new: nobody else has to hear of that.
            state.greet(host, has);
        } else {
            state.publish_nodes();
        }
    }

    /// Whether whoever comes now was started together with the nodes that the cluster has formed with.
    fn has_just_formed(&self, now: Now, state: &ClusterState) -> bool {
        let within_us = state.lease_us().saturating_mul(FOUNDING_LEASES);
        self.formed.is_some_and(|formed| now.time.since(formed) < within_us)
    }

    /// All nodes are here: place the groups.
    fn form(&mut self, now: Now, state: &mut ClusterState) {
        let founders: Vec<HostId> = state.nodes().founders().collect();
        let mut nodes = state.plan_nodes();
        nodes.retain(|node| founders.contains(&node.host));
        let config = state.config();
        let catalog = Catalog::first(config.profile, config.groups);
        let workers = nodes.len() * usize::from(config.shards);
        if let Err(text) = admission::check_groups(&catalog, workers) {
            tracing::error!("{text}");
            return founders.into_iter().for_each(|host| state.refuse(host, false, text.clone()));
        }
        let mut groups = match place_in_zones(config.profile, &nodes, config.groups) {
            Ok(groups) => groups,
            Err(error) => {
                tracing::error!(%error, "no placement");
                let all = state.nodes().hosts();
                return all.into_iter().for_each(|host| state.refuse(host, false, error.to_string()));
            }
        };
        for view in &mut groups {
            view.version = view.version.max(self.first_version);
        }
        let map = ClusterMap {
            cluster: config.cluster,
            version: 1,
            catalog,
            shards: config.shards,
            layout: Layout { on_loss: config.on_loss, ..Layout::default() },
            nodes: state.nodes().infos(None),
            groups,
        };
        tracing::info!(nodes = nodes.len(), groups = map.groups.len(), profile = %config.profile, "cluster formed");
        self.formed = Some(now.time);
        let log = ChangeLog::from_version(map.version);
        state.set_map(map.clone(), log);
        state.record_new_map(&map);
        state.tell(None);
    }

    /// A node lives, and says what it has. `forming`: who is here, as long as there is no cluster.
    pub(super) fn handle_heartbeat(
        &mut self,
        state: &mut ClusterState,
        from: HostId,
        load: NodeLoad,
        has_map: u64,
        forming: Option<Forming>,
    ) {
        state.nodes_mut().note_load(from, load);
        let answer = match forming {
            // A node that hears this knows that nobody presides.
            _ if !self.attention.decides() => FromCoordinator::Waiting,
            Some(forming) => FromCoordinator::Forming(forming),
            None => FromCoordinator::Alive,
        };
        state.send(from, answer);
        state.nodes_mut().note_map(from, has_map);
        state.tell(Some(from));
    }

    /// The coordinator itself was away, if so for how long: then nobody's silence counts for that time.
    pub(super) fn forgive_own_absence(
        &mut self,
        now: Time,
        state: &mut ClusterState,
        watch_us: u64,
    ) -> Option<u64> {
        let late_us = self.attention.wake(now, watch_us, state.lease_us() / 4)?;
        self.store.forgive(late_us);
        state.nodes_mut().forgive(late_us);
        Some(late_us)
    }

    /// Decides nothing any more if most nodes that live by the store's leases are not heard here.
    pub(super) fn resign_if_cut_off(&self, now: Time, state: &mut ClusterState) {
        // Who has had no time yet to find this coordinator is not missed.
        if !state.outbox().has_resigned() && !self.store.hears_half(now, state, |_| true) {
            state.outbox_mut().resign("most nodes that live are not heard here");
        }
    }

    pub(super) fn expire_leases(&mut self, now: Now, state: &mut ClusterState, repairs: &mut Repairs) {
        self.looked = Look::at(now.time, state);
        if !self.can_decide(now.time, state) {
            // Whoever follows this coordinator would go on from what it decides now.
            return self.attention.note_undecided();
        }
        self.attention.note_decides(now.time);
        let lease = state.lease_us();
        for host in state.nodes().expired(now.time, self.attention.leases_count_from(), lease) {
            if state.map().is_none() {
                // Nothing depends on it yet, and it must not count among those that a cluster forms with.
                state.nodes_mut().forget(host.node);
                continue;
            }
            tracing::info!(%host, "lease has run out");
            state.nodes_mut().suspect(host);
            repairs.lose(now, state, host);
            state.publish_nodes();
        }
        self.lose_the_long_gone(now, state, repairs);
    }

    /// Somebody was heard, or is known to have ended: as soon as they are enough again it can decide, and silence counts.
    pub(super) fn note_heard(&mut self, now: Now, state: &ClusterState) {
        if !self.attention.decides() && self.can_decide(now.time, state) {
            self.attention.note_decides(now.time);
        }
        if self.attention.hears_few() && !state.nodes().too_few_are_heard(state.config().profile.m()) {
            self.attention.note_most(now.time);
        }
    }

    /// Whether it hears enough that what it decides can be in force, and that the silence of others is their own.
    fn can_decide(&self, now: Time, state: &ClusterState) -> bool {
        // Those that are cut off together fall silent within a heartbeat of each other, and their leases run out one by one.
        let soon_us = state.lease_us() / 2;
        let is_heard =
            |host: &HostId| state.nodes().get(*host).is_some_and(|node| node.silence_us(now) < soon_us);
        self.store.hears_half(now, state, |seen| seen.heard) && state.may_decide(is_heard)
    }

    /// For how long a node may be silent, at least, before that can change anything.
    pub(super) fn shortest_silence_us(&self, state: &ClusterState) -> u64 {
        match state.config().records {
            RecordKeeping::Kept => state.lease_us() / 2,
            RecordKeeping::Stored => state.lease_us() * 3 / 4,
        }
    }

    /// When it is to be looked who is silent: a lease runs out, somebody is waited for no longer, or so few may be heard that it
    /// cannot decide. As long as it cannot, nobody's silence counts, and whoever is heard ends that.
    pub(super) fn due(&self, state: &ClusterState) -> Time {
        let (lease_us, nodes, attention) = (state.lease_us(), state.nodes(), &self.attention);
        let mut times: Vec<Time> = self.store.hears_half_until(state, |_| true).into_iter().collect();
        if attention.decides() {
            times.extend(self.store.hears_half_until(state, |seen| seen.heard));
            if state.config().records == RecordKeeping::Kept {
                times.extend(nodes.expiries(Time(0), lease_us / 2));
            }
            times.extend(nodes.expiries(attention.leases_count_from(), lease_us));
            if !attention.hears_few() {
                times.extend(nodes.partings(attention.losses_count_from(), patience(state)));
            }
        }
        self.looked.next(state, times)
    }

    /// Hosts that were suspected, and kept where losing them would have lost data, are given up in the end; not while most
    /// are silent, nor as long as they may only stand still or be cut off.
    fn lose_the_long_gone(&mut self, now: Now, state: &mut ClusterState, repairs: &mut Repairs) {
        if state.nodes().too_few_are_heard(state.config().profile.tolerance()) {
            // It gives nobody up; operators may (`node fence`).
            return self.attention.note_few();
        }
        self.attention.note_most(now.time);
        let enough = self.attention.losses_count_from();
        for host in state.nodes().long_gone(now.time, enough, patience(state)) {
            state.nodes_mut().give_up(host);
            repairs.lose(now, state, host);
        }
    }
}

/// How long those are waited for whose loss would lose data. What they have cannot be had without them, and it is still there when they are
/// heard again: to give it up sooner is of use only to those who would go on without it.
fn patience(state: &ClusterState) -> Patience {
    let is_accepted = state.map().is_some_and(|map| {
        map.catalog.namespaces.iter().all(|known| accepts_losses(known, map.layout.on_loss))
    });
    Patience {
        grace_us: state.lease_us() * GRACE_LEASES,
        waits_for_the_silent: SilenceRules::of(state.rules()).is_waited_for() && !is_accepted,
    }
}

/// Whoever had the name before cannot come back under it, and owns nothing any more.
fn take_name_over(now: Now, state: &mut ClusterState, repairs: &mut Repairs, registration: &Registration) {
    let (host, peer) = (registration.info.host, registration.info.peer);
    let before = state.nodes().named(host.node).map(|node| (node.host(), node.info().peer));
    let Some((before, address)) = before.filter(|(before, _)| *before != host) else { return };
    if address == peer {
        // Two processes cannot listen at one address, so the former one has ended. At another one it may live.
        state.outbox_mut().keeping_mut().note_ended(before);
    }
    // Given up, so that no group waits for it; not dead, so that its read lease is waited for.
    state.nodes_mut().give_up(before);
    repairs.lose(now, state, before);
}

/// Whether `from` is a process that counts; if so, its lease starts anew.
pub(super) fn hear(now: Now, state: &mut ClusterState, from: HostId) -> bool {
    match state.nodes_mut().hear(now.time, from) {
        Heard::Stranger => false,
        Heard::Fenced => {
            state.turn_away_fenced(from);
            false
        }
        Heard::Leased => true,
        Heard::Returned => {
            // What it served has been given away; it may forward, and later host something new.
            state.publish_nodes();
            true
        }
    }
}

/// The process of `node` is known to have ended (its parent saw it).
pub(super) fn exited(now: Now, state: &mut ClusterState, repairs: &mut Repairs, node: NodeId) {
    let Some(host) = state.nodes_mut().note_dead(node) else { return };
    repairs.lose(now, state, host);
    state.publish_nodes();
}
