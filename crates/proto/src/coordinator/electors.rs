//! Who has to be heard, so that nothing is missed that was in force: the processes that records show as alive.
//!
//! As long as a record is not in force it may never have been, and another coordinator may have gone on with those that the
//! records before it show. So every set counts from the last one in force on, and each of them for itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use types::{HostId, NodeId};
use wire::message::{Electors, KeptRecords};
use wire::record::Record;

/// Whom the records so far show as alive: those of the nodes that the head names.
#[derive(Debug, Default)]
pub(super) struct Roll {
    /// By their own records.
    alive: BTreeMap<NodeId, HostId>,
    /// By the head; none before there is one.
    named: Option<BTreeSet<NodeId>>,
}

impl Roll {
    /// One more record: the electors, if it is a head, or shows others than before.
    pub(super) fn note(&mut self, record: &Record) -> Option<Electors> {
        match record {
            Record::View(_) => None,
            Record::Head(head) => {
                self.named = Some(head.nodes.iter().copied().collect());
                self.electors()
            }
            Record::Node(record) => {
                let (id, alive) = (record.node.info.host.node, record.node.alive());
                let before = match alive {
                    Some(host) => self.alive.insert(id, host),
                    None => self.alive.remove(&id),
                };
                self.electors().filter(|_| before != alive && self.names(id))
            }
        }
    }

    fn names(&self, id: NodeId) -> bool {
        self.named.as_ref().is_some_and(|named| named.contains(&id))
    }

    fn electors(&self) -> Option<Electors> {
        let named = self.named.as_ref()?;
        Some(self.alive.iter().filter(|(id, _)| named.contains(id)).map(|(_, host)| *host).collect())
    }
}

/// The sets of electors of a coordinator.
#[derive(Debug, Default)]
pub(super) struct ElectorSets {
    /// Of the last ones in force; those that this coordinator went on from, as long as it has put none in force.
    in_force: Vec<Electors>,
    /// Of each record since then that shows others, oldest first.
    pending: VecDeque<Electors>,
}

impl ElectorSets {
    /// Goes on from these.
    pub(super) fn of(in_force: Vec<Electors>) -> Self {
        Self { in_force, pending: VecDeque::new() }
    }

    /// A new record shows these as alive. Where that is nobody, those before remain.
    pub(super) fn add(&mut self, alive: Electors) {
        let before = || self.pending.back().or(self.in_force.last()).cloned().unwrap_or_default();
        let electors = if alive.is_empty() { before() } else { alive };
        self.pending.push_back(electors);
    }

    /// The oldest record of these that was not in force is. Whether that changes who counts.
    pub(super) fn enforce(&mut self) -> bool {
        let before = self.all();
        if let Some(electors) = self.pending.pop_front() {
            self.in_force = vec![electors];
        }
        self.all() != before
    }

    /// The sets of which each has to know of a decision.
    pub(super) fn in_force(&self) -> &[Electors] {
        &self.in_force
    }

    /// The sets of which whoever follows has to hear.
    pub(super) fn all(&self) -> Vec<Electors> {
        let mut all: Vec<Electors> = self.in_force.iter().chain(&self.pending).cloned().collect();
        all.dedup();
        all
    }

    /// Whether there are more than a message can name.
    pub(super) fn are_too_many(&self) -> bool {
        // The cheap bound first: `all` copies every set, and this is asked at every step.
        self.in_force.len() + self.pending.len() > KeptRecords::MAX_ELECTORS
            && self.all().len() > KeptRecords::MAX_ELECTORS
    }
}

/// How many more of `electors` have to answer until most of them have.
pub(super) fn lacking(electors: &Electors, has_answered: impl Fn(&HostId) -> bool) -> usize {
    let answered = electors.iter().filter(|host| has_answered(host)).count();
    (electors.len() / 2 + 1).saturating_sub(answered)
}

#[cfg(test)]
mod tests {
    use types::{Incarnation, NodeId};

    use super::*;

    fn hosts(nodes: impl IntoIterator<Item = u16>) -> Electors {
        nodes.into_iter().map(|node| HostId { node: NodeId(node), incarnation: Incarnation(1) }).collect()
    }

    #[test]
    fn every_set_counts_from_the_last_head_in_force_on() {
        let mut sets = ElectorSets::of(vec![hosts(0..5), hosts(0..4)]);
        sets.add(hosts(0..4));
        sets.add(hosts(1..4));
        assert_eq!(
            sets.all(),
            [hosts(0..5), hosts(0..4), hosts(1..4)],
            "one that does not change counts once"
        );
        assert!(sets.enforce());
        assert_eq!((sets.in_force(), sets.all()), (&[hosts(0..4)][..], vec![hosts(0..4), hosts(1..4)]));
        assert!(sets.enforce());
        sets.add(Vec::new());
        assert!(!sets.enforce(), "a head without anybody changes nothing");
        assert_eq!(sets.all(), [hosts(1..4)]);
    }

    #[test]
    fn there_is_a_most() {
        let mut sets = ElectorSets::of(vec![hosts(0..5)]);
        (0..300).for_each(|_| sets.add(hosts(0..5)));
        assert!(!sets.are_too_many(), "they are all the same one");
        (0..300).for_each(|at| sets.add(hosts(at % 2..5)));
        assert!(sets.are_too_many());
    }

    #[test]
    fn most_are_more_than_half() {
        let of = |answered: u16| lacking(&hosts(0..4), |host| host.node.0 < answered);
        assert_eq!([of(0), of(2), of(3), of(4)], [3, 1, 0, 0]);
    }
}
