//! What a node keeps for coordinators whose only memory is the nodes': the newest record of each key.

use std::collections::BTreeMap;

use types::{ClusterId, Epoch};
use wire::message::{Electors, KeptRecords};
use wire::record::{HEAD_KEY, MapHead, Record};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    /// Nothing is kept for a coordinator before this one.
    promised: Epoch,
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    epoch: Epoch,
    position: u64,
    electors: Vec<Electors>,
    records: BTreeMap<String, Record>,
}

impl Kept {
    /// The newest of its key. Of groups that went with their pool nothing is kept, nor of nodes that are no more.
    fn add(&mut self, record: Record) {
        if let Record::Head(head) = &record
            && !matches!(self.records.get(HEAD_KEY), Some(Record::Head(known)) if names_the_same(known, head))
        {
            let is_left = |record: &Record| match record {
                Record::View(known) => head.catalog.pool_of_group(known.view.group).is_some(),
                Record::Node(known) => head.nodes.binary_search(&known.node.info.host.node).is_ok(),
                Record::Head(_) => true,
            };
            self.records.retain(|_, record| is_left(record));
        }
        self.records.insert(record.key(), record);
    }
}

/// Whether all that has a record beside the one head has one beside the other.
fn names_the_same(one: &MapHead, other: &MapHead) -> bool {
    one.catalog == other.catalog && one.nodes == other.nodes
}

impl Keeper {
    pub(super) fn promised(&self) -> Epoch {
        self.promised
    }

    /// The cluster whose records are kept.
    pub(super) fn cluster(&self) -> Option<ClusterId> {
        cluster_of(self.kept.as_ref()?.records.get(HEAD_KEY)?)
    }

    /// Which coordinator's records are kept, how many of them, and of whom a coordinator that goes on from them has to hear.
    pub(super) fn electors(&self) -> Option<(Epoch, u64, &[Electors])> {
        self.kept.as_ref().map(|kept| (kept.epoch, kept.position, &kept.electors[..]))
    }

    /// Keeps records that follow what is kept, or are all; whether everything up to their position is kept now.
    pub(super) fn keep(&mut self, whole: bool, new: KeptRecords) -> bool {
        let KeptRecords { epoch, position, electors, records } = new;
        // A later coordinator may go on from what it was answered: nothing is added behind its back.
        if epoch < self.promised {
            return false;
        }
        let records_count = records.len() as u64;
        if whole {
            self.kept = Some(Kept { epoch, position, electors: Vec::new(), records: BTreeMap::new() });
        }
        let follows =
            |kept: &Kept| kept.epoch == epoch && kept.position.checked_add(records_count) == Some(position);
        let Some(kept) = self.kept.as_mut().filter(|kept| whole || follows(kept)) else { return false };
        (kept.position, kept.electors) = (position, electors);
        records.into_iter().for_each(|record| kept.add(record));
        self.promised = epoch;
        true
    }

    /// What holds after every message.
    pub(super) fn check_invariants(&self) {
        let promised = |kept: &Kept| kept.epoch <= self.promised;
        assert!(self.kept.as_ref().is_none_or(promised), "who keeps records has promised to");
    }

    /// What is kept, for a coordinator that knows nothing; none if another one has been promised as much or more.
    pub(super) fn recall(&mut self, epoch: Epoch) -> Option<Option<KeptRecords>> {
        // The same one may ask again, for its question or the answer may have been lost.
        if epoch < self.promised {
            return None;
        }
        self.promised = epoch;
        Some(self.kept.as_ref().map(|kept| KeptRecords {
            epoch: kept.epoch,
            position: kept.position,
            electors: kept.electors.clone(),
            records: kept.records.values().cloned().collect(),
        }))
    }
}

/// The cluster of a head.
pub(super) fn cluster_of(record: &Record) -> Option<ClusterId> {
    match record {
        Record::Head(head) => Some(head.cluster),
        Record::View(_) | Record::Node(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use types::{GroupId, GroupView, Layout, Profile, ViewVersion};
    use wire::record::ViewRecord;

    use super::*;

    fn head(version: u64) -> Record {
        head_with(version, 1)
    }

    /// One with so many groups.
    fn head_with(version: u64, groups: u32) -> Record {
        let (profile, layout) = (Profile::rs(3, 2).unwrap(), Layout::default());
        let (cluster, epoch) = (ClusterId(7), Epoch(1));
        Record::Head(MapHead {
            cluster,
            epoch,
            version,
            catalog: types::Catalog::first(profile, groups),
            shards: 1,
            layout,
            nodes: Vec::new(),
        })
    }

    fn records(epoch: u64, position: u64, records: Vec<Record>) -> KeptRecords {
        KeptRecords { epoch: Epoch(epoch), position, electors: vec![Vec::new()], records }
    }

    fn view(version: u64) -> Record {
        view_of(0, version)
    }

    fn view_of(group: u32, version: u64) -> Record {
        let view = GroupView {
            group: GroupId(group),
            version: ViewVersion(version),
            data: Vec::new(),
            parity: Vec::new(),
            learners: Vec::new(),
            former: Vec::new(),
            holders: Vec::new(),
        };
        Record::View(ViewRecord { map_version: version, view })
    }

    #[test]
    fn the_newest_record_of_each_key_is_kept() {
        let mut keeper = Keeper::default();
        assert!(keeper.keep(true, records(1, 4, vec![head(1), view(1)])));
        assert!(keeper.keep(false, records(1, 6, vec![view(2), view(3)])));
        let kept = keeper.recall(Epoch(2)).unwrap().unwrap();
        assert_eq!((kept.epoch, kept.position, kept.records), (Epoch(1), 6, vec![head(1), view(3)]));
        assert_eq!(keeper.cluster(), Some(ClusterId(7)));
    }

    #[test]
    fn what_became_of_groups_that_are_no_more_is_not_kept() {
        let mut keeper = Keeper::default();
        let all = vec![view_of(0, 1), view_of(1, 1), head_with(1, 2)];
        assert!(keeper.keep(true, records(1, 3, all)));
        assert!(keeper.keep(false, records(1, 4, vec![head_with(2, 2)])));
        assert_eq!(keeper.recall(Epoch(1)).unwrap().unwrap().records.len(), 3);
        // Views of a pool come before the head that has it.
        assert!(keeper.keep(false, records(1, 7, vec![head_with(3, 1), view_of(5, 1), head_with(4, 6)])));
        let kept = keeper.recall(Epoch(1)).unwrap().unwrap().records;
        assert_eq!(kept, [head_with(4, 6), view_of(0, 1), view_of(5, 1)]);
    }

    #[test]
    fn records_after_a_gap_are_not_kept() {
        let mut keeper = Keeper::default();
        assert!(!keeper.keep(false, records(1, 1, vec![view(2)])), "nothing is kept yet");
        assert!(keeper.keep(true, records(1, 4, vec![head(1), view(1)])));
        assert!(!keeper.keep(false, records(1, 6, vec![view(3)])));
        assert!(
            !keeper.keep(false, records(2, 5, vec![view(3)])),
            "of a coordinator that has not sent everything"
        );
    }

    #[test]
    fn nothing_is_kept_for_a_coordinator_that_another_one_follows() {
        let mut keeper = Keeper::default();
        assert!(keeper.keep(true, records(1, 1, vec![head(1)])));
        assert!(keeper.recall(Epoch(3)).is_some());
        assert!(!keeper.keep(false, records(1, 2, vec![view(2)])));
        assert!(!keeper.keep(true, records(2, 2, vec![head(2)])));
        assert!(keeper.recall(Epoch(2)).is_none());
        assert_eq!(keeper.promised(), Epoch(3));
    }
}
