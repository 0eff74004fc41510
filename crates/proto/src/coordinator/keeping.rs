//! Where a coordinator without a store keeps its records: with the nodes.
//!
//! A record is sent to every process; it is *in force* once all that are present have said that they keep it, and among them
//! half of those that the last records in force show as alive ([`super::electors`]). Whatever follows from a record waits until
//! then. So a coordinator that starts with nothing ([`super::gathering`]) and hears more than half of each set of electors that
//! it learns of has heard somebody who keeps each record that was in force.
//!
//! Three exceptions. A process that a view removes does not have to keep that view: it may be the one that is slow. Where
//! most processes are lost but not more than the code can make up for (only clusters of at most 2m processes can
//! come to that) those that are left are enough, for data that can be served is served. Should they and the coordinator be
//! lost after that, and the others turn out to live, these know nothing of it. And where so many processes have been replaced
//! by others of their names that the rest are fewer than half, all but that many of the rest are enough.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use types::{Epoch, HostId};
use wire::message::{Electors, FromCoordinator};
use wire::record::Record;

use super::CoordinatorAction;
use super::electors::{ElectorSets, Roll};
use super::nodes::{NodeState, Nodes};
use crate::{Impossible, Rules};

/// Most messages that wait for a record. Those beyond are dropped, as by a connection that breaks: all of them are asked for or
/// sent again.
const MAX_HELD: usize = 1 << 16;

/// Most new records of one message, so that it fits into a frame. All that there are fit into one
/// ([`super::records::VIEWS_BYTES`]); what is new may have several of each key.
const MAX_FRESH: usize = 256;

/// Records that nodes keep, and what waits for them.
#[derive(Default)]
pub(super) struct Keeping {
    /// How many records there are.
    position: u64,
    /// How many are in force.
    in_force: u64,
    /// Records that nobody has been sent yet.
    fresh: Vec<Record>,
    keepers: BTreeMap<HostId, Keeper>,
    /// Processes whose addresses others have.
    ended: BTreeSet<HostId>,
    /// Begins with a record, unless it is empty.
    held: VecDeque<Held>,
    roll: Roll,
    electors: ElectorSets,
    /// Whether the electors are others than those that were sent last.
    electors_changed: bool,
}

/// A process that has registered here.
#[derive(Clone, Copy, Debug, Default)]
struct Keeper {
    /// Whether it has been sent all that there was when it registered.
    is_complete: bool,
    /// How many records it keeps.
    kept: u64,
}

enum Held {
    /// A record, who does not have to keep it, and whether it says who the electors are.
    Record {
        record: Record,
        spared: Vec<HostId>,
        names_electors: bool,
    },
    Send(HostId, FromCoordinator),
}

/// The processes at a moment.
pub(super) struct Processes {
    /// Those that this coordinator hears.
    pub present: Vec<HostId>,
    /// Electors that have ended, by what is known or an operator says: nobody will ever hear them.
    pub ended: Vec<HostId>,
    /// Electors whose name another process has, at another address. They may live.
    pub replaced: Vec<HostId>,
    /// How many losses the code makes up for, whichever they are.
    pub tolerance: usize,
}

impl Processes {
    /// Of those that are known, for what is kept.
    pub(super) fn of(nodes: &Nodes, keeping: &Keeping, tolerance: usize) -> Self {
        let is_gone =
            |host: &HostId| nodes.get(*host).is_some_and(NodeState::is_gone) || keeping.has_ended(host);
        let (ended, others): (Vec<HostId>, Vec<HostId>) = keeping.electors().partition(is_gone);
        let replaced = others.into_iter().filter(|host| nodes.get(*host).is_none()).collect();
        Self { present: nodes.present(), ended, replaced, tolerance }
    }
}

impl Keeping {
    /// Goes on from records of these electors.
    pub(super) fn of_electors(electors: Vec<Electors>) -> Self {
        Self { electors: ElectorSets::of(electors), ..Self::default() }
    }

    /// `host` has registered: it is to be sent everything.
    pub(super) fn greet(&mut self, host: HostId) {
        self.keepers.entry(host).or_default().is_complete = false;
    }

    /// Whether what `host` keeps may be needed, for some head names it.
    pub(super) fn counts(&self, host: HostId) -> bool {
        self.electors.all().iter().any(|electors| electors.contains(&host))
    }

    /// `host` has its name for itself: nothing is kept any more by who had it before.
    pub(super) fn forget_namesakes(&mut self, host: HostId) {
        self.keepers.retain(|other, _| other.node != host.node || *other == host);
    }

    /// Another process listens where `host` did: nobody will hear it any more.
    pub(super) fn note_ended(&mut self, host: HostId) {
        self.ended.insert(host);
    }

    pub(super) fn has_ended(&self, host: &HostId) -> bool {
        self.ended.contains(host)
    }

    /// `host` keeps the records up to `position`.
    pub(super) fn note_kept(&mut self, host: HostId, position: u64) -> Result<(), Impossible> {
        if position > self.position {
            return Err(Impossible::Kept { position, made: self.position });
        }
        if let Some(keeper) = self.keepers.get_mut(&host) {
            // An answer that comes late says less than is known.
            keeper.kept = keeper.kept.max(position);
        }
        Ok(())
    }

    /// One more record, which `spared` do not have to keep.
    pub(super) fn add(&mut self, record: Record, spared: Vec<HostId>) {
        self.position += 1;
        let electors = self.roll.note(&record);
        let names_electors = electors.is_some();
        electors.into_iter().for_each(|electors| self.electors.add(electors));
        self.fresh.push(record.clone());
        self.held.push_back(Held::Record { record, spared, names_electors });
    }

    /// A message that waits for the records before it.
    pub(super) fn hold(&mut self, to: HostId, message: FromCoordinator) {
        if self.held.len() < MAX_HELD {
            self.held.push_back(Held::Send(to, message));
        }
    }

    /// Whether every record is in force.
    pub(super) fn is_in_force(&self) -> bool {
        self.held.is_empty()
    }

    /// Whoever counts for what is to be in force next.
    pub(super) fn electors(&self) -> impl Iterator<Item = HostId> + '_ {
        self.electors.in_force().iter().flatten().copied()
    }

    /// Whether nothing has been in force for so long that nobody could go on from what is kept.
    pub(super) fn is_hopeless(&self) -> bool {
        self.electors.are_too_many()
    }

    #[cfg(test)]
    pub(super) fn keeper_count(&self) -> usize {
        self.keepers.len()
    }

    /// How many records there are, and how many are in force.
    pub(super) fn positions(&self) -> (u64, u64) {
        (self.position, self.in_force)
    }

    /// What is to be sent now, so that it is kept. `all` makes the records that there are.
    pub(super) fn distribute(
        &mut self,
        epoch: Epoch,
        all: impl FnOnce() -> Vec<Record>,
    ) -> Vec<CoordinatorAction> {
        let fresh = std::mem::take(&mut self.fresh);
        // A shorter list of electors is news, too: who follows has fewer to hear then.
        let is_news = !fresh.is_empty() || std::mem::take(&mut self.electors_changed);
        if self.position == 0 || !is_news && self.keepers.values().all(|keeper| keeper.is_complete) {
            return Vec::new();
        }
        let (position, electors) = (self.position, self.electors.all());
        let keep = |position, whole, records| {
            let electors = electors.clone();
            FromCoordinator::Keep { epoch, position, electors, whole, records }
        };
        let parts = in_parts(position, &fresh);
        let mut sends = Vec::new();
        let mut send = |to, message| sends.push(CoordinatorAction::Send { to, message });
        let mut whole = None;
        let mut all = Some(all);
        for (host, keeper) in &mut self.keepers {
            if !std::mem::replace(&mut keeper.is_complete, true) {
                let records = whole.get_or_insert_with(|| all.take().map(|all| all()).unwrap_or_default());
                send(*host, keep(position, true, records.clone()));
            } else if is_news {
                parts.iter().for_each(|(upto, part)| send(*host, keep(*upto, false, part.to_vec())));
            }
        }
        sends
    }

    /// What need not wait any more, in order.
    pub(super) fn release(&mut self, rules: Rules, processes: &Processes) -> Vec<CoordinatorAction> {
        let mut released = Vec::new();
        loop {
            let in_force = match self.held.front() {
                None => return released,
                Some(Held::Send(..)) => true,
                Some(Held::Record { spared, .. }) => self.is_kept(self.in_force + 1, spared, processes),
            };
            if !rules.news_need_record_in_force(in_force) {
                return released;
            }
            match self.held.pop_front() {
                Some(Held::Record { record, names_electors, .. }) => {
                    released.push(self.enforce(record, names_electors));
                }
                Some(Held::Send(to, message)) => released.push(CoordinatorAction::Send { to, message }),
                None => return released,
            }
        }
    }

    fn enforce(&mut self, record: Record, names_electors: bool) -> CoordinatorAction {
        self.in_force += 1;
        if names_electors {
            self.electors_changed |= self.electors.enforce();
            let electors = self.electors.all();
            self.ended.retain(|host| electors.iter().any(|electors| electors.contains(host)));
        }
        CoordinatorAction::Record(record)
    }

    fn is_kept(&self, position: u64, spared: &[HostId], processes: &Processes) -> bool {
        let keeps = |host: &HostId| self.keepers.get(host).is_some_and(|keeper| keeper.kept >= position);
        // A process that is slow holds up all others only until its lease has run out.
        let by_all = processes.present.iter().all(|host| spared.contains(host) || keeps(host));
        by_all && self.are_enough(keeps, processes)
    }

    /// Whether a record can be in force that is kept by those for which `keeps` holds.
    pub(super) fn are_enough(&self, keeps: impl Fn(&HostId) -> bool, processes: &Processes) -> bool {
        self.electors.in_force().iter().all(|electors| is_quorum(electors, &keeps, processes))
    }
}

/// New records as they are sent, each part with the position that it reaches. Without any there is news of electors only.
fn in_parts(position: u64, fresh: &[Record]) -> Vec<(u64, &[Record])> {
    if fresh.is_empty() {
        return vec![(position, fresh)];
    }
    let before = position - fresh.len() as u64;
    let reached = |at: usize, part: &[Record]| before + (at * MAX_FRESH + part.len()) as u64;
    fresh.chunks(MAX_FRESH).enumerate().map(|(at, part)| (reached(at, part), part)).collect()
}

/// Whether `keeps` holds for half of the electors that may be heard again, or for all but as many of them as the code makes up for; where most have been
/// replaced, of those that have not.
fn is_quorum(electors: &Electors, keeps: impl Fn(&HostId) -> bool, processes: &Processes) -> bool {
    let (mut all, mut kept, mut left): (usize, usize, usize) = (0, 0, 0);
    for host in electors.iter().filter(|host| !processes.ended.contains(host)) {
        all += 1;
        kept += usize::from(keeps(host));
        left += usize::from(!processes.replaced.contains(host));
    }
    // Half is enough here, because who goes on later needs more than half: the two always meet.
    2 * kept >= all
        || all - kept <= processes.tolerance
        || 2 * left < all && left.saturating_sub(kept) <= processes.tolerance
}

#[cfg(test)]
mod tests {
    use types::{Incarnation, NodeId};
    use wire::record::MapHead;

    use super::*;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn head(version: u64) -> Record {
        let (profile, layout) = (types::Profile::rs(3, 2).unwrap(), types::Layout::default());
        let (cluster, epoch) = (types::ClusterId(1), Epoch(1));
        Record::Head(MapHead {
            cluster,
            epoch,
            version,
            catalog: types::Catalog::first(profile, 1),
            shards: 1,
            layout,
            nodes: Vec::new(),
        })
    }

    fn processes(present: impl IntoIterator<Item = u16>) -> Processes {
        let present = present.into_iter().map(host).collect();
        Processes { present, ended: Vec::new(), replaced: Vec::new(), tolerance: 2 }
    }

    /// With so many electors, all of which are greeted, and one record that node 4 does not have to keep.
    fn keeping(electors: u16) -> Keeping {
        let mut keeping = Keeping::of_electors(vec![(0..electors).map(host).collect()]);
        (0..electors).for_each(|node| keeping.greet(host(node)));
        keeping.add(head(1), vec![host(4)]);
        keeping.hold(host(0), FromCoordinator::Alive);
        assert_eq!(keeping.distribute(Epoch(1), || vec![head(1)]).len(), usize::from(electors));
        keeping
    }

    fn keep(keeping: &mut Keeping, nodes: impl IntoIterator<Item = u16>) {
        nodes.into_iter().for_each(|node| keeping.note_kept(host(node), 1).unwrap());
    }

    #[test]
    fn what_follows_a_record_waits_for_all_that_are_present_but_the_spared() {
        let mut keeping = keeping(5);
        keep(&mut keeping, 0..3);
        assert_eq!(keeping.release(Rules::all(), &processes(0..5)), []);
        keep(&mut keeping, [3]);
        assert_eq!(
            keeping.release(Rules::all(), &processes(0..5)).len(),
            2,
            "the record, and what waited for it"
        );
        assert!(keeping.is_in_force());
    }

    #[test]
    fn half_of_the_electors_have_to_keep_a_record_however_few_are_present() {
        let mut keeping = keeping(7);
        keep(&mut keeping, 0..3);
        assert_eq!(
            keeping.release(Rules::all(), &processes(0..3)),
            [],
            "three of seven, and four are more than m"
        );
        keep(&mut keeping, [3]);
        assert_eq!(keeping.release(Rules::all(), &processes(0..4)).len(), 2);
    }

    #[test]
    fn a_small_cluster_goes_on_with_what_the_code_can_do_with() {
        let mut keeping = keeping(3);
        keep(&mut keeping, [0]);
        assert_eq!(keeping.release(Rules::all(), &processes([0])).len(), 2, "one of three, and two are m");
    }

    #[test]
    fn who_has_ended_need_not_keep_anything() {
        let mut keeping = keeping(7);
        keep(&mut keeping, 0..3);
        let ended = vec![host(5), host(6)];
        assert_eq!(
            keeping.release(Rules::all(), &Processes { ended, ..processes(0..3) }).len(),
            2,
            "three of five"
        );
    }

    #[test]
    fn who_has_been_replaced_may_be_heard_again_unless_most_have_been() {
        let mut keeping = keeping(7);
        keep(&mut keeping, 0..1);
        let replaced = |nodes: std::ops::Range<u16>| Processes {
            replaced: nodes.map(host).collect(),
            ..processes(0..1)
        };
        assert_eq!(keeping.release(Rules::all(), &replaced(4..7)), [], "one of seven");
        assert_eq!(
            keeping.release(Rules::all(), &replaced(3..7)).len(),
            2,
            "one of the three that are left, and two are m"
        );
    }

    #[test]
    fn who_registers_again_is_sent_everything_and_others_what_is_new() {
        let mut keeping = keeping(3);
        keeping.greet(host(1));
        keeping.add(head(2), Vec::new());
        let sent = keeping.distribute(Epoch(1), || vec![head(2)]);
        let whole = |to: u16| {
            sent.iter().any(|action| {
                matches!(action, CoordinatorAction::Send { to: at, message: FromCoordinator::Keep { whole: true, position: 2, .. } } if *at == host(to))
            })
        };
        assert_eq!([whole(0), whole(1), whole(2)], [false, true, false]);
        assert!(keeping.distribute(Epoch(1), Vec::new).is_empty(), "once");
    }

    #[test]
    fn many_new_records_are_sent_in_parts_that_follow_each_other() {
        let mut keeping = keeping(1);
        (0..600).for_each(|version| keeping.add(head(version), Vec::new()));
        let sent = keeping.distribute(Epoch(1), Vec::new);
        let part = |action: &CoordinatorAction| match action {
            CoordinatorAction::Send { message: FromCoordinator::Keep { position, records, .. }, .. } => {
                (*position, records.len())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(sent.iter().map(part).collect::<Vec<_>>(), [(257, 256), (513, 256), (601, 88)]);
    }

    #[test]
    fn nobody_keeps_what_was_not_sent() {
        assert_eq!(keeping(3).note_kept(host(0), 2), Err(Impossible::Kept { position: 2, made: 1 }));
    }
}
