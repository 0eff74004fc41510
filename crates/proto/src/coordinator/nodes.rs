//! The processes that a coordinator knows, in their newest incarnation, and what is known of the life of each.

use std::collections::BTreeMap;

use types::{Entry, HostId, Layout, NodeId, NodeInfo, NodeLoad, Time};
use wire::record::KnownNode;

/// A process as the coordinator knows it.
pub(super) struct NodeState {
    info: NodeInfo,
    entry: Entry,
    last_heard: Time,
    /// Whether this very coordinator has heard it; else a former one has.
    heard: bool,
    /// Whether its connection has ended at its side, and nothing has been heard of it since: so ends a process, and none that stands still
    /// or is cut off.
    parted: bool,
    liveness: Liveness,
    load: NodeLoad,
    map: Told,
}

/// What of the map a process has been told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// The version that it has, or that is on its way to it; none before it has registered here.
    version: Option<u64>,
    /// The version that it had when it was heard last.
    has: u64,
    /// How many heartbeats it has had that.
    beats: u32,
}

impl Told {
    /// After how many heartbeats without any progress what was sent counts as lost.
    const PATIENCE_BEATS: u32 = 10;

    /// Of a process that registers with a map of this version.
    pub(super) fn registered(has: u64) -> Self {
        Self { version: Some(has), has, beats: 0 }
    }

    /// It has a map of this version, by its heartbeat.
    fn note(&mut self, has: u64) {
        let Some(told) = self.version else { return };
        self.beats = if has == self.has && has < told { self.beats + 1 } else { 0 };
        self.has = has;
        // Nothing is lost on a connection that stands, but it may have been left out of one that was too full; or the changes do not
        // fit the map that is there. The whole map leads out of both.
        let is_lost = self.beats >= Self::PATIENCE_BEATS;
        self.beats = if is_lost { 0 } else { self.beats };
        self.version = Some(if is_lost { 0 } else { told });
    }
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

/// How long a process is waited for whose loss would lose data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For so long at least, in microseconds.
    pub grace_us: u64,
    /// One of which nothing is known but that it is silent is waited for as long as it takes.
    pub waits_for_the_silent: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nobody that counts.
    Stranger,
    /// One that an operator has fenced.
    Fenced,
    /// A process whose lease starts anew.
    Leased,
    /// The same, of one whose lease had run out.
    Returned,
}

impl NodeState {
    /// One that registers now.
    pub(super) fn registered(info: NodeInfo, entry: Entry, map: Told, now: Time) -> Self {
        let (heard, liveness, load) = (true, Liveness::Leased, NodeLoad::default());
        Self { info, entry, last_heard: now, heard, parted: false, liveness, load, map }
    }

    /// A node as a former coordinator has recorded it. Nobody has been heard yet; nobody is silent before `found_by`, by when
    /// all have found this coordinator.
    fn of_record(known: KnownNode, found_by: Time) -> Self {
        let liveness = match &known {
            KnownNode { fenced: true, .. } => Liveness::Fenced,
            KnownNode { info, .. } if info.alive => Liveness::Leased,
            KnownNode { .. } => Liveness::Suspected,
        };
        let (entry, load, map) = (Entry::Founder, NodeLoad::default(), Told::default());
        let (heard, parted) = (false, false);
        Self { info: known.info, entry, last_heard: found_by, heard, parted, liveness, load, map }
    }

    /// As it is to be recorded.
    pub(super) fn record(&self) -> KnownNode {
        let info = NodeInfo { alive: self.is_leased(), ..self.info.clone() };
        KnownNode { info, fenced: self.is_fenced() }
    }

    pub(super) fn info(&self) -> &NodeInfo {
        &self.info
    }

    pub(super) fn host(&self) -> HostId {
        self.info.host
    }

    pub(super) fn load(&self) -> NodeLoad {
        self.load
    }

    pub(super) fn seen(&self) -> Seen {
        Seen { last: self.last_heard, heard: self.heard }
    }

    pub(super) fn silence_us(&self, now: Time) -> u64 {
        now.since(self.last_heard)
    }

    pub(super) fn is_leased(&self) -> bool {
        self.liveness == Liveness::Leased
    }

    /// Whether its lease runs, and not only by the word of a former coordinator.
    pub(super) fn is_present(&self) -> bool {
        self.is_leased() && self.heard
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.liveness == Liveness::Fenced
    }

    /// Whether its lease has run out, and its roles may wait for it.
    pub(super) fn is_suspected(&self) -> bool {
        self.liveness == Liveness::Suspected
    }

    /// Whether it is silent, and waited for no longer than for a while: for as long as it takes only where silence is all that there is.
    fn is_on_its_way_out(&self, waits_for_the_silent: bool) -> bool {
        self.is_suspected() && (self.parted || !waits_for_the_silent)
    }

    /// Whether it is known to have ended, so that nothing of it can answer a client any more.
    pub(super) fn is_dead(&self) -> bool {
        self.liveness == Liveness::Dead
    }

    /// Whether it has ended, or may not come back.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.liveness, Liveness::Dead | Liveness::Fenced)
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Nodes {
    states: BTreeMap<NodeId, NodeState>,
    /// How often somebody has come who may be given something to host.
    arrivals: u64,
    /// How often somebody has said something new of what it has.
    load_changes: u64,
}

impl Nodes {
    /// As a former coordinator has recorded them.
    pub(super) fn of_records(known: impl IntoIterator<Item = KnownNode>, found_by: Time) -> Self {
        let state = |known: KnownNode| (known.info.host.node, NodeState::of_record(known, found_by));
        Self { states: known.into_iter().map(state).collect(), ..Self::default() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &NodeState> {
        self.states.values()
    }

    /// The newest process of a name.
    pub(super) fn named(&self, node: NodeId) -> Option<&NodeState> {
        self.states.get(&node)
    }

    /// What is known of `host`, if it is the newest process of its name.
    pub(super) fn get(&self, host: HostId) -> Option<&NodeState> {
        self.named(host.node).filter(|node| node.host() == host)
    }

    fn get_mut(&mut self, host: HostId) -> Option<&mut NodeState> {
        self.states.get_mut(&host.node).filter(|node| node.info.host == host)
    }

    /// All processes.
    pub(super) fn hosts(&self) -> Vec<HostId> {
        self.iter().map(NodeState::host).collect()
    }

    /// The nodes that the cluster forms with.
    pub(super) fn founders(&self) -> impl Iterator<Item = HostId> + '_ {
        self.iter().filter(|node| node.entry == Entry::Founder).map(NodeState::host)
    }

    pub(super) fn living(&self) -> Vec<HostId> {
        self.iter().filter(|node| node.is_leased()).map(NodeState::host).collect()
    }

    /// Those that may be given something to host.
    pub(super) fn present(&self) -> Vec<HostId> {
        self.iter().filter(|node| node.is_present()).map(NodeState::host).collect()
    }

    /// Those that have not been heard for a lease, whether or not anything has followed from that.
    pub(super) fn silent(&self, now: Time, lease_us: u64) -> Vec<NodeId> {
        let is_silent = |node: &&NodeState| !node.is_leased() || node.silence_us(now) >= lease_us;
        self.iter().filter(is_silent).map(|node| node.host().node).collect()
    }

    /// Those that may have ended: whose connections have ended at their sides, or that have not been heard for so many microseconds.
    pub(super) fn quiet(&self, now: Time, within_us: u64) -> Vec<HostId> {
        let is_quiet = |node: &&NodeState| node.parted || node.silence_us(now) >= within_us;
        self.iter().filter(is_quiet).map(NodeState::host).collect()
    }

    /// Those that this coordinator has not heard within so many microseconds.
    pub(super) fn unheard(&self, now: Time, within_us: u64) -> Vec<NodeId> {
        let is_unheard = |node: &&NodeState| !node.is_present() || node.silence_us(now) >= within_us;
        self.iter().filter(is_unheard).map(|node| node.host().node).collect()
    }

    /// All of them as a map has them, with the zones that `layout` gives them.
    pub(super) fn infos(&self, layout: Option<&Layout>) -> Vec<NodeInfo> {
        let zone = |info: &NodeInfo| {
            let given = layout.and_then(|layout| layout.zone_of(info.host.node));
            given.map_or_else(|| info.zone.clone(), str::to_owned)
        };
        let info = |node: &NodeState| NodeInfo {
            alive: node.is_leased(),
            zone: zone(&node.info),
            ..node.info.clone()
        };
        self.iter().map(info).collect()
    }

    /// A process registers; whoever had its name is forgotten.
    pub(super) fn insert(&mut self, state: NodeState) {
        self.arrivals += 1;
        self.states.insert(state.host().node, state);
    }

    /// Nothing is known of `node` any more.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.states.remove(&node);
    }

    /// Somebody speaks: the lease of a process that counts starts anew.
    pub(super) fn hear(&mut self, now: Time, from: HostId) -> Heard {
        let Some(node) = self.get_mut(from) else { return Heard::Stranger };
        // However loudly it lives: an operator has said that it does not count.
        if node.is_fenced() {
            return Heard::Fenced;
        }
        let was_present = node.is_present();
        // Also of a dead one, whose message was on its way; it stays dead.
        (node.last_heard, node.heard, node.parted) = (now, true, false);
        let returns = matches!(node.liveness, Liveness::Suspected | Liveness::GivenUp);
        if returns {
            node.liveness = Liveness::Leased;
        }
        let arrives = !was_present && node.is_present();
        self.arrivals += u64::from(arrives);
        if returns { Heard::Returned } else { Heard::Leased }
    }

    pub(super) fn note_load(&mut self, from: HostId, load: NodeLoad) {
        if let Some(node) = self.states.get_mut(&from.node) {
            self.load_changes += u64::from(node.load != load);
            node.load = load;
        }
    }

    /// `from` has a map of this version.
    pub(super) fn note_map(&mut self, from: HostId, version: u64) {
        if let Some(node) = self.get_mut(from) {
            node.map.note(version);
        }
    }

    /// All that have registered here and have not been told of version `version` of the map yet, with what they have been told
    /// of; from now on they have.
    pub(super) fn tell(&mut self, version: u64, only: Option<HostId>) -> Vec<(HostId, u64)> {
        let tell = |node: &mut NodeState| {
            let told = node.map.version.filter(|told| *told < version)?;
            node.map.version = Some(version);
            Some((node.info.host, told))
        };
        match only {
            Some(only) => self.get_mut(only).and_then(tell).into_iter().collect(),
            None => self.states.values_mut().filter_map(tell).collect(),
        }
    }

    /// Grows whenever somebody has come who may be given something to host.
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Grows whenever somebody has said something new of what it has.
    pub(super) fn load_changes(&self) -> u64 {
        self.load_changes
    }

    /// Nobody's silence of the last `late_us` counts.
    pub(super) fn forgive(&mut self, late_us: u64) {
        for node in self.states.values_mut() {
            node.last_heard = node.last_heard + late_us;
        }
    }

    /// Those whose lease runs out now; silence counts from `enough` on at the earliest.
    pub(super) fn expired(&self, now: Time, enough: Time, lease_us: u64) -> Vec<HostId> {
        // Of many that come back together one is heard first; the others have a lease from then on.
        let is_late = |node: &&NodeState| now.since(node.last_heard.max(enough)) >= lease_us;
        self.iter().filter(|node| node.is_leased()).filter(is_late).map(NodeState::host).collect()
    }

    /// Those whose lease has run out so long ago that nobody waits for them any more.
    pub(super) fn long_gone(&self, now: Time, enough: Time, patience: Patience) -> Vec<HostId> {
        let going = self.iter().filter(|node| node.is_on_its_way_out(patience.waits_for_the_silent));
        let is_late = |node: &&NodeState| now.since(node.last_heard.max(enough)) >= patience.grace_us;
        going.filter(is_late).map(NodeState::host).collect()
    }

    /// When a lease runs out next, see [`Self::expired`].
    pub(super) fn expiries(&self, enough: Time, lease_us: u64) -> impl Iterator<Item = Time> {
        let leased = self.iter().filter(|node| node.is_leased());
        leased.map(move |node| node.last_heard.max(enough) + lease_us)
    }

    /// When somebody is waited for no longer, see [`Self::long_gone`].
    pub(super) fn partings(&self, enough: Time, patience: Patience) -> impl Iterator<Item = Time> {
        let going = self.iter().filter(move |node| node.is_on_its_way_out(patience.waits_for_the_silent));
        going.map(move |node| node.last_heard.max(enough) + patience.grace_us)
    }

    /// Whether most processes that may live are silent, and more than the `m` that a code can make up for: then it is the
    /// coordinator that is cut off, more likely than not.
    pub(super) fn too_few_are_heard(&self, tolerance: usize) -> bool {
        let may_live = self.iter().filter(|node| !node.is_gone());
        let (all, heard) =
            may_live.fold((0, 0), |(all, heard), node| (all + 1, heard + usize::from(node.is_leased())));
        let silent = all - heard;
        silent > tolerance && silent > heard
    }

    /// The connection of `host` has ended at its side.
    pub(super) fn part(&mut self, host: HostId) {
        if let Some(node) = self.get_mut(host) {
            node.parted = true;
        }
    }

    /// The lease of `host` has run out.
    pub(super) fn suspect(&mut self, host: HostId) {
        self.set(host, Liveness::Suspected);
    }

    /// Nobody waits for `host` any more.
    pub(super) fn give_up(&mut self, host: HostId) {
        self.set(host, Liveness::GivenUp);
    }

    fn set(&mut self, host: HostId, liveness: Liveness) {
        if let Some(node) = self.get_mut(host) {
            node.liveness = liveness;
        }
    }

    /// The process of `node` is known to have ended; which one it is.
    pub(super) fn note_dead(&mut self, node: NodeId) -> Option<HostId> {
        let state = self.states.get_mut(&node)?;
        state.liveness = Liveness::Dead;
        Some(state.host())
    }

    /// The process of `node` is not to come back; which one it is, unless it is known to be dead anyway.
    pub(super) fn fence(&mut self, node: NodeId) -> Option<HostId> {
        // One that is dead has no lease to wait for; as a fenced one it would have.
        let state = self.states.get_mut(&node).filter(|state| !state.is_dead())?;
        state.liveness = Liveness::Fenced;
        Some(state.host())
    }
}

/// What this coordinator knows of a process's life by itself.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// When it was heard last; before that, by when it should have found this coordinator.
    pub last: Time,
    /// Whether this coordinator has heard it.
    pub heard: bool,
}

#[cfg(test)]
mod tests {
    use types::Incarnation;

    use super::*;

    const LEASE_US: u64 = 1_000;

    fn host(node: u16, incarnation: u64) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(incarnation) }
    }

    fn nodes(count: u16) -> Nodes {
        let mut nodes = Nodes::default();
        for node in 0..count {
            let address = ([127, 0, 0, 1], 1000 + node).into();
            let info = NodeInfo {
                host: host(node, 1),
                peer: address,
                memcached: address,
                http: address,
                native: None,
                zone: String::new(),
                alive: true,
            };
            nodes.insert(NodeState::registered(info, Entry::Founder, Told::registered(0), Time(0)));
        }
        nodes
    }

    #[test]
    fn a_silent_process_is_suspected_given_up_and_leased_again_when_it_speaks() {
        let mut nodes = nodes(2);
        nodes.hear(Time(500), host(1, 1));
        assert_eq!(nodes.expired(Time(LEASE_US), Time(0), LEASE_US), [host(0, 1)]);
        nodes.suspect(host(0, 1));
        assert_eq!(
            (nodes.living(), nodes.expired(Time(LEASE_US), Time(0), LEASE_US)),
            (vec![host(1, 1)], vec![])
        );
        let patience = |waits_for_the_silent| Patience { grace_us: 5 * LEASE_US, waits_for_the_silent };
        assert_eq!(nodes.long_gone(Time(5 * LEASE_US), Time(0), patience(false)), [host(0, 1)]);
        assert_eq!(nodes.long_gone(Time(5 * LEASE_US), Time(0), patience(true)), [], "it may stand still");
        nodes.part(host(0, 1));
        assert_eq!(nodes.long_gone(Time(5 * LEASE_US), Time(0), patience(true)), [host(0, 1)]);
        nodes.give_up(host(0, 1));
        assert_eq!(nodes.long_gone(Time(9 * LEASE_US), Time(0), patience(false)), []);
        assert_eq!(nodes.hear(Time(9 * LEASE_US), host(0, 1)), Heard::Returned);
        assert_eq!(nodes.hear(Time(9 * LEASE_US), host(0, 1)), Heard::Leased);
    }

    #[test]
    fn silence_counts_from_when_enough_were_heard() {
        let nodes = nodes(1);
        assert_eq!(nodes.expired(Time(LEASE_US), Time(10), LEASE_US), []);
        assert_eq!(nodes.expired(Time(LEASE_US + 10), Time(10), LEASE_US), [host(0, 1)]);
    }

    #[test]
    fn the_fenced_the_dead_and_former_processes_of_a_name_do_not_count() {
        let mut nodes = nodes(3);
        assert_eq!(nodes.fence(NodeId(0)), Some(host(0, 1)));
        assert_eq!(nodes.hear(Time(1), host(0, 1)), Heard::Fenced);
        assert_eq!(nodes.note_dead(NodeId(1)), Some(host(1, 1)));
        assert_eq!(nodes.fence(NodeId(1)), None, "it is dead anyway");
        assert_eq!(nodes.hear(Time(1), host(2, 7)), Heard::Stranger);
        assert_eq!(nodes.living(), [host(2, 1)]);
    }

    #[test]
    fn each_is_told_what_it_was_not_and_all_of_it_when_that_comes_to_nothing() {
        let mut nodes = nodes(2);
        let (one, other) = (host(0, 1), host(1, 1));
        assert_eq!(nodes.tell(3, None), [(one, 0), (other, 0)]);
        assert_eq!(nodes.tell(3, None), [], "it is on its way");
        nodes.note_map(one, 3);
        assert_eq!(nodes.tell(4, Some(one)), [(one, 3)]);
        assert_eq!(nodes.tell(4, None), [(other, 3)]);
        // The one gets on, slowly; the other does not.
        for beat in 0..Told::PATIENCE_BEATS {
            nodes.note_map(one, 3 + u64::from(beat >= Told::PATIENCE_BEATS / 2));
            nodes.note_map(other, 3);
            assert_eq!(nodes.tell(4, None), [], "after {beat} heartbeats");
        }
        nodes.note_map(one, 4);
        nodes.note_map(other, 3);
        assert_eq!(nodes.tell(4, None), [(other, 0)]);
        nodes.note_map(host(0, 7), 9);
        assert_eq!(nodes.tell(5, Some(host(0, 7))), [], "a former process of the name");
    }

    #[test]
    fn whoever_hears_fewer_than_are_silent_is_cut_off_itself() {
        let mut nodes = nodes(5);
        (0..3).for_each(|node| nodes.suspect(host(node, 1)));
        assert!(nodes.too_few_are_heard(2) && !nodes.too_few_are_heard(3));
        nodes.note_dead(NodeId(0));
        assert!(!nodes.too_few_are_heard(1), "the dead are not silent");
    }
}
