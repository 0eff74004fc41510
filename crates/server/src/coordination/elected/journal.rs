//! Writes what the coordinator wants recorded, by transactions that fail unless it leads and nobody else has written.
//!
//! Records of nodes that are removed, and views of groups whose pool is, are removed, too, some at a time: after the head that has them no
//! more is written. A leader that ends in between leaves some to the next one, which finds them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use etcd::{Client, Compare, MAX_TXN_OPS, Op, Txn, TxnOutcome};

use types::NodeId;
use wire::record::{MapHead, Record, group_of, node_key, node_of};

use super::keys::{Keys, LEADER};
use super::mirror::Mirror;
use crate::coordination::presiding::Presiding;
use crate::limits::{ETCD_RETRY, ETCD_TXN_BYTES};

/// The writing side of one reign.
pub(crate) struct Journal {
    client: Client,
    keys: Keys,
    /// The revision at which the leader's key came into being: as long as it is there, so is this leader.
    created: i64,
    /// The revision of every record, by its key.
    revisions: RefCell<BTreeMap<String, i64>>,
    /// What is being written.
    in_flight: RefCell<BTreeMap<String, Vec<u8>>>,
    /// What is being removed.
    leaving: RefCell<BTreeSet<String>>,
    /// What was removed, at which revision, for as long as a picture may still show it.
    gone: RefCell<BTreeMap<String, i64>>,
    /// The newest head that is written.
    head: RefCell<Option<MapHead>>,
    /// What former leaders have written and this one has not, and nodes that were removed. What among them the head does not have was of a
    /// head that never came, or nobody has seen its removal to the end.
    leftovers: RefCell<BTreeSet<String>>,
}

/// Records of one transaction.
#[derive(Default)]
struct Batch {
    /// The newest of each key.
    values: BTreeMap<String, Vec<u8>>,
    /// Records, older ones of the same key included.
    count: usize,
    bytes: usize,
    /// The newest head among them.
    head: Option<MapHead>,
}

impl Journal {
    /// Goes on from the records in `mirror`.
    pub(crate) fn new(client: Client, keys: Keys, created: i64, mirror: &Mirror) -> Self {
        let revisions = mirror.records().map(|(key, entry)| (key.to_owned(), entry.mod_revision)).collect();
        let leftovers = mirror.records().map(|(key, _)| key.to_owned()).collect();
        Self {
            client,
            keys,
            created,
            revisions: RefCell::new(revisions),
            in_flight: RefCell::default(),
            leaving: RefCell::default(),
            gone: RefCell::default(),
            head: RefCell::new(mirror.head()),
            leftovers: RefCell::new(leftovers),
        }
    }

    /// Writes until it cannot be done any more; why.
    pub(crate) async fn write(&self, presiding: &Presiding) -> String {
        loop {
            // Some between two batches of records: those are waited for.
            match self.remove_some().await {
                Ok(0) => presiding.records_due().await,
                Ok(_) if !presiding.has_records() => continue,
                Ok(_) => (),
                Err(reason) => return reason,
            }
            let batch = match Batch::of(presiding) {
                Ok(batch) => batch,
                Err(reason) => return reason,
            };
            // The watch may show them before the answer comes, and `stranger` has to know them.
            self.in_flight.replace(batch.values.clone());
            match self.done(|| self.txn(&batch)).await {
                Ok(revision) => {
                    self.written(batch.head, revision);
                    presiding.written(batch.count);
                }
                Err(reason) => return reason,
            }
        }
    }

    /// What was in flight is there since `revision`.
    fn written(&self, head: Option<MapHead>, revision: i64) {
        let keys = self.in_flight.take().into_keys();
        let (mut revisions, mut leftovers) = (self.revisions.borrow_mut(), self.leftovers.borrow_mut());
        if let (Some(new), Some(before)) = (&head, &*self.head.borrow()) {
            let is_removed = |id: &&NodeId| new.nodes.binary_search(id).is_err();
            leftovers.extend(before.nodes.iter().filter(is_removed).map(|id| node_key(*id)));
        }
        for key in keys {
            leftovers.remove(&key);
            revisions.insert(key, revision);
        }
        if head.is_some() {
            self.head.replace(head);
        }
    }

    /// Removes some of what belongs to no pool any more; how many.
    async fn remove_some(&self) -> Result<usize, String> {
        let stale = self.stale();
        let count = stale.len();
        if count > 0 {
            self.leaving.replace(stale.clone());
            let revision = self.done(|| self.removal(&stale)).await?;
            self.removed(revision);
        }
        Ok(count)
    }

    /// What was leaving is gone since `revision`.
    fn removed(&self, revision: i64) {
        let (mut revisions, mut gone) = (self.revisions.borrow_mut(), self.gone.borrow_mut());
        for key in self.leaving.take() {
            revisions.remove(&key);
            gone.insert(key, revision);
        }
    }

    /// Nodes and views that the head does not have, as many as one transaction takes. Where this leader has written them, groups with numbers that
    /// are still to be given are those of a pool that is being made: its views are written before the head that has it.
    fn stale(&self) -> BTreeSet<String> {
        let head = self.head.borrow();
        let Some(head) = head.as_ref() else { return BTreeSet::new() };
        let leftovers = self.leftovers.borrow();
        let is_stale = |key: &&String| {
            let group = group_of(key).filter(|group| head.catalog.pool_of_group(*group).is_none());
            let node = node_of(key).filter(|id| head.nodes.binary_search(id).is_err());
            // Of a node that comes, too, its record is written before the head that has it.
            let is_left = || leftovers.contains(*key);
            group.is_some_and(|group| group < head.catalog.next_group || is_left())
                || node.is_some() && is_left()
        };
        self.revisions.borrow().keys().filter(is_stale).take(MAX_TXN_OPS - 1).cloned().collect()
    }

    /// Has a transaction done, and tries for as long as it certainly has not been: the revision, or why this leader gives way.
    async fn done(&self, txn: impl Fn() -> Txn) -> Result<i64, String> {
        loop {
            match self.client.txn(txn()).await {
                Ok(TxnOutcome::Done(revision)) => return Ok(revision),
                Ok(TxnOutcome::Failed) => {
                    return Err("it does not lead any more, or others have written".to_owned());
                }
                Err(error) if error.is_not_done() => tokio::time::sleep(ETCD_RETRY).await,
                // Perhaps it is. Only a leader that reads anew can tell, so this one gives way.
                Err(error) => return Err(format!("its records cannot be written: {error}")),
            }
        }
    }

    /// That this leader leads, and nobody else has changed what it knows of `keys`.
    fn compares<'a>(&self, keys: impl Iterator<Item = &'a String>) -> Vec<Compare> {
        let revisions = self.revisions.borrow();
        // 0 stands for a key that must not be there yet.
        let known = |key: &String| revisions.get(key).copied().unwrap_or(0);
        let unchanged = keys.map(|key| Compare::Changed(self.keys.record(key), known(key)));
        let leads = Compare::Created(self.keys.full(LEADER), self.created);
        [leads].into_iter().chain(unchanged).collect()
    }

    fn removal(&self, keys: &BTreeSet<String>) -> Txn {
        let ops = keys.iter().map(|key| Op::Delete(self.keys.record(key))).collect();
        Txn { compares: self.compares(keys.iter()), ops }
    }

    fn txn(&self, batch: &Batch) -> Txn {
        let put = |(key, value): (&String, &Vec<u8>)| Op::Put {
            key: self.keys.record(key),
            value: value.clone(),
            lease: None,
        };
        Txn { compares: self.compares(batch.values.keys()), ops: batch.values.iter().map(put).collect() }
    }

    /// A record that somebody else has written or removed, going by what `mirror` shows.
    pub(crate) fn stranger(&self, mirror: &Mirror) -> Option<String> {
        let (revisions, in_flight) = (self.revisions.borrow(), self.in_flight.borrow());
        let (leaving, mut gone) = (self.leaving.borrow(), self.gone.borrow_mut());
        gone.retain(|_, revision| *revision > mirror.revision);
        let known = |key: &str| revisions.get(key).or_else(|| gone.get(key)).copied().unwrap_or(0);
        let mut shown = 0;
        for (key, entry) in mirror.records() {
            shown += usize::from(revisions.contains_key(key));
            // The watch may be behind what was written here: older is no stranger's.
            if entry.mod_revision > known(key) && in_flight.get(key) != Some(&entry.value) {
                return Some(key.to_owned());
            }
        }
        if shown >= revisions.len() {
            return None;
        }
        let is_shown = |key: &str| mirror.records().any(|(shown, _)| shown == key);
        // Only if the picture is as new as the record: before that it could not show it.
        let is_removed = |(key, revision): &(&String, &i64)| {
            **revision <= mirror.revision && !leaving.contains(*key) && !is_shown(key)
        };
        revisions.iter().find(is_removed).map(|(key, _)| key.clone())
    }
}

impl Batch {
    /// As many of the next records as fit into one transaction.
    fn of(presiding: &Presiding) -> Result<Self, String> {
        let mut batch = Self::default();
        let mut broken = None;
        presiding.look_at_records(|record| match record.encode() {
            Ok(value) => batch.add(record.key(), value) && batch.note(record),
            Err(error) => {
                broken = Some(format!("record \"{}\" cannot be written: {error}", record.key()));
                false
            }
        });
        match broken {
            // Those before it are written first; then it is met again.
            Some(reason) if batch.count == 0 => Err(reason),
            Some(_) | None => Ok(batch),
        }
    }

    /// What follows from a record that is among them. Always true.
    fn note(&mut self, record: &Record) -> bool {
        if let Record::Head(head) = record {
            self.head = Some(head.clone());
        }
        true
    }

    /// Whether there was room.
    fn add(&mut self, key: String, value: Vec<u8>) -> bool {
        // One of the compares is the leader's key.
        let full = self.values.len() + 1 >= MAX_TXN_OPS && !self.values.contains_key(&key);
        // The first one is tried whatever its size, or it would wait for ever.
        if self.count > 0 && (full || self.bytes + value.len() > ETCD_TXN_BYTES) {
            return false;
        }
        self.count += 1;
        self.bytes += value.len();
        self.values.insert(key, value);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_holds_as_many_keys_as_a_transaction_and_the_newest_of_each() {
        let mut batch = Batch::default();
        assert!((0..MAX_TXN_OPS - 1).all(|n| batch.add(format!("{n:08}"), vec![1])));
        assert!(!batch.add("one more".into(), vec![1]));
        assert!(batch.add(format!("{:08}", 7), vec![2]));
        assert_eq!((batch.count, batch.values.len()), (MAX_TXN_OPS, MAX_TXN_OPS - 1));
        assert_eq!(batch.values["00000007"], [2]);
    }

    #[test]
    fn a_batch_is_bounded_in_bytes_but_takes_one_record_of_any_size() {
        let mut batch = Batch::default();
        assert!(batch.add("map".into(), vec![0; ETCD_TXN_BYTES + 1]));
        assert!(!batch.add("view".into(), vec![0]));
    }

    fn mirror(keys: &Keys, entries: &[(&str, &[u8], i64)]) -> Mirror {
        let entry = |(key, value, mod_revision): &(&str, &[u8], i64)| etcd::Entry {
            key: keys.record(key),
            value: value.to_vec(),
            create_revision: 1,
            mod_revision: *mod_revision,
            lease: None,
        };
        Mirror::of(keys, etcd::Range { entries: entries.iter().map(entry).collect(), revision: 9 })
    }

    /// That of a leader who has found these records.
    fn journal(known: &[(&str, &[u8], i64)]) -> Journal {
        let keys = Keys::new("c");
        let endpoints = "etcd://127.0.0.1:1".parse().expect("an address");
        let client = Client::new(etcd::Config::plain(endpoints)).expect("no certificates");
        Journal::new(client, keys.clone(), 5, &mirror(&keys, known))
    }

    /// Records that are known at revision 7, and what etcd shows of them.
    fn stranger(shown: &[(&str, &[u8], i64)]) -> Option<String> {
        let journal = journal(&[("map", b"old", 7), ("view/00000000", b"old", 7)]);
        journal.in_flight.replace([("map".to_owned(), b"new".to_vec())].into());
        journal.stranger(&mirror(&journal.keys, shown))
    }

    /// Three groups, of which the second pool, if it is still there, has the last.
    fn head(with_second: bool) -> Record {
        let profile = types::Profile::rs(2, 1).expect("a profile");
        let (name, mut catalog) = ("more".parse().expect("a name"), types::Catalog::first(profile, 2));
        catalog.create_pool(name, profile, 1).expect("there is room");
        if !with_second {
            catalog.pools.pop();
        }
        Record::Head(wire::record::MapHead {
            cluster: types::ClusterId(5),
            epoch: types::Epoch(1),
            version: 3,
            catalog,
            shards: 1,
            layout: types::Layout::default(),
            nodes: Vec::new(),
        })
    }

    fn groups(journal: &Journal) -> Vec<String> {
        journal.stale().into_iter().collect()
    }

    const VIEWS: [&str; 4] = ["view/00000000", "view/00000001", "view/00000002", "view/00000003"];

    #[tokio::test]
    async fn views_of_groups_that_no_pool_has_are_removed_and_those_of_one_that_is_made_stay() {
        let all = VIEWS.map(|key| (key, b"old".as_slice(), 7));
        let found = |with_second: bool| {
            let head = head(with_second).encode().expect("a head");
            self::journal(&[&all[..], &[("map", head.as_slice(), 7)]].concat())
        };
        let journal = found(true);
        assert_eq!(groups(&journal), [VIEWS[3]], "of a pool that another leader has not come to make");
        let write = |record: Option<Record>, keys: &[&str]| {
            let mut batch = Batch::default();
            assert!(record.is_none_or(|record| batch.note(&record)));
            journal.in_flight.replace(keys.iter().map(|key| ((*key).to_owned(), b"new".to_vec())).collect());
            journal.written(batch.head, 8);
        };
        write(None, &VIEWS[3..]);
        assert_eq!(groups(&journal), [""; 0], "of a pool whose head comes next");
        write(Some(head(false)), &["map"]);
        assert_eq!(groups(&journal), [VIEWS[2]]);
        // A leader that follows finds what this one has left.
        let next = found(false);
        assert_eq!(groups(&next), VIEWS[2..]);
        let txn = next.removal(&next.stale());
        let unchanged = [VIEWS[2], VIEWS[3]].map(|key| Compare::Changed(next.keys.record(key), 7));
        assert_eq!(txn.compares, [&[Compare::Created(next.keys.full(LEADER), 5)], &unchanged[..]].concat());
        assert_eq!(txn.ops, [VIEWS[2], VIEWS[3]].map(|key| Op::Delete(next.keys.record(key))));
    }

    #[tokio::test]
    async fn what_this_leader_removes_is_no_strangers_work() {
        let head = head(false).encode().expect("a head");
        let (map, kept, stale) =
            (("map", head.as_slice(), 7), (VIEWS[0], b"old".as_slice(), 7), (VIEWS[2], b"old".as_slice(), 7));
        let journal = journal(&[map, kept, stale]);
        let stranger = |shown: &[(&str, &[u8], i64)], revision: i64| {
            let mut mirror = mirror(&journal.keys, shown);
            mirror.revision = revision;
            journal.stranger(&mirror)
        };
        assert_eq!(stranger(&[map, kept], 9), Some(VIEWS[2].into()), "nobody has asked for that yet");
        journal.leaving.replace(journal.stale());
        assert_eq!(stranger(&[map, kept], 9), None, "the watch is faster than the answer");
        assert_eq!(stranger(&[map, stale], 9), Some(VIEWS[0].into()), "another one is missing");
        journal.removed(9);
        assert_eq!(groups(&journal), [""; 0]);
        assert_eq!(stranger(&[map, kept, stale], 8), None, "the watch is behind");
        assert_eq!(stranger(&[map, stale], 8), Some(VIEWS[0].into()));
        assert_eq!(stranger(&[map, kept], 9), None);
        assert_eq!(stranger(&[map, kept, (VIEWS[2], b"new", 10)], 10), Some(VIEWS[2].into()), "written anew");
    }

    #[tokio::test]
    async fn records_of_nodes_that_are_removed_go_and_that_of_one_that_comes_stays() {
        let keys = ["node/00001", "node/00002", "node/00003"];
        let head = |nodes: &[u16]| {
            let Record::Head(head) = head(true) else { panic!("a head") };
            MapHead { nodes: nodes.iter().map(|id| NodeId(*id)).collect(), ..head }
        };
        let found = Record::Head(head(&[1, 2])).encode().expect("a head");
        let known = [("map", found.as_slice(), 7), (keys[0], b"old", 7), (keys[1], b"old", 7)];
        let journal = journal(&known);
        assert_eq!(groups(&journal), [""; 0]);
        // The third one comes, and the first one is removed.
        journal.in_flight.replace([(keys[2].to_owned(), b"new".to_vec())].into());
        journal.written(None, 8);
        assert_eq!(groups(&journal), [""; 0], "the head that has it is still to come");
        journal.in_flight.replace([("map".to_owned(), b"new".to_vec())].into());
        journal.written(Some(head(&[2, 3])), 9);
        assert_eq!(groups(&journal), [keys[0]]);
    }

    #[tokio::test]
    async fn what_others_write_or_remove_is_told_from_what_this_leader_writes() {
        let view = ("view/00000000", b"old".as_slice(), 7);
        assert_eq!(stranger(&[("map", b"old", 7), view]), None);
        assert_eq!(stranger(&[("map", b"new", 8), view]), None, "its own, not yet known to be written");
        assert_eq!(stranger(&[("map", b"else", 8), view]), Some("map".into()));
        assert_eq!(
            stranger(&[("map", b"old", 7), ("view/00000000", b"old", 8)]),
            Some("view/00000000".into())
        );
        assert_eq!(stranger(&[("map", b"old", 7)]), Some("view/00000000".into()), "removed");
        assert_eq!(stranger(&[("map", b"old", 7), view, ("x", b"", 8)]), Some("x".into()), "added");
    }
}
