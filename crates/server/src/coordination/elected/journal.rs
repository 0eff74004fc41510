//! Writes what the coordinator wants recorded, by transactions that fail unless it leads and nobody else has written.

use std::cell::RefCell;
use std::collections::BTreeMap;

use etcd::{Client, Compare, MAX_TXN_OPS, Op, Txn, TxnOutcome};

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
}

/// Records of one transaction.
#[derive(Default)]
struct Batch {
    /// The newest of each key.
    values: BTreeMap<String, Vec<u8>>,
    /// Records, older ones of the same key included.
    count: usize,
    bytes: usize,
}

impl Journal {
    /// Goes on from the records in `mirror`.
    pub(crate) fn new(client: Client, keys: Keys, created: i64, mirror: &Mirror) -> Self {
        let revisions = mirror.records().map(|(key, entry)| (key.to_owned(), entry.mod_revision)).collect();
        Self { client, keys, created, revisions: RefCell::new(revisions), in_flight: RefCell::default() }
    }

    /// Writes until it cannot be done any more; why.
    pub(crate) async fn write(&self, presiding: &Presiding) -> String {
        loop {
            presiding.records_due().await;
            let batch = match Batch::of(presiding) {
                Ok(batch) => batch,
                Err(reason) => return reason,
            };
            // The watch may show them before the answer comes, and `stranger` has to know them.
            self.in_flight.replace(batch.values.clone());
            match self.attempt(&batch).await {
                Ok(TxnOutcome::Done(revision)) => {
                    let keys = self.in_flight.take().into_keys();
                    self.revisions.borrow_mut().extend(keys.map(|key| (key, revision)));
                    presiding.written(batch.count);
                }
                Ok(TxnOutcome::Failed) => {
                    return "it does not lead any more, or others have written".to_owned();
                }
                // Perhaps they are. Only a leader that reads anew can tell, so this one gives way.
                Err(error) => return format!("its records cannot be written: {error}"),
            }
        }
    }

    /// Tries for as long as it certainly has not been done.
    async fn attempt(&self, batch: &Batch) -> Result<TxnOutcome, etcd::Error> {
        loop {
            match self.client.txn(self.txn(batch)).await {
                Err(error) if error.is_not_done() => tokio::time::sleep(ETCD_RETRY).await,
                other => return other,
            }
        }
    }

    fn txn(&self, batch: &Batch) -> Txn {
        let revisions = self.revisions.borrow();
        // 0 stands for a key that must not be there yet.
        let known = |key: &String| revisions.get(key).copied().unwrap_or(0);
        let unchanged = batch.values.keys().map(|key| Compare::Changed(self.keys.record(key), known(key)));
        let leads = Compare::Created(self.keys.full(LEADER), self.created);
        let put = |(key, value): (&String, &Vec<u8>)| Op::Put {
            key: self.keys.record(key),
            value: value.clone(),
            lease: None,
        };
        Txn {
            compares: [leads].into_iter().chain(unchanged).collect(),
            ops: batch.values.iter().map(put).collect(),
        }
    }

    /// A record that somebody else has written or removed, going by what `mirror` shows.
    pub(crate) fn stranger(&self, mirror: &Mirror) -> Option<String> {
        let (revisions, in_flight) = (self.revisions.borrow(), self.in_flight.borrow());
        let known = |key: &str| revisions.get(key).copied().unwrap_or(0);
        let mut shown = 0;
        for (key, entry) in mirror.records() {
            shown += 1;
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
        let removed =
            revisions.iter().find(|(key, revision)| **revision <= mirror.revision && !is_shown(key));
        removed.map(|(key, _)| key.clone())
    }
}

impl Batch {
    /// As many of the next records as fit into one transaction.
    fn of(presiding: &Presiding) -> Result<Self, String> {
        let mut batch = Self::default();
        let mut broken = None;
        presiding.look_at_records(|record| match record.encode() {
            Ok(value) => batch.add(record.key(), value),
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

    /// Records that are known at revision 7, and what etcd shows of them.
    fn stranger(shown: &[(&str, &[u8], i64)]) -> Option<String> {
        let keys = Keys::new("c");
        let mirror = |entries: &[(&str, &[u8], i64)]| {
            let entry = |(key, value, mod_revision): &(&str, &[u8], i64)| etcd::Entry {
                key: keys.record(key),
                value: value.to_vec(),
                create_revision: 1,
                mod_revision: *mod_revision,
                lease: None,
            };
            Mirror::of(&keys, etcd::Range { entries: entries.iter().map(entry).collect(), revision: 9 })
        };
        let endpoints = "etcd://127.0.0.1:1".parse().expect("an address");
        let client = Client::new(etcd::Config::plain(endpoints)).expect("no certificates");
        let known = mirror(&[("map", b"old", 7), ("view/00000000", b"old", 7)]);
        let journal = Journal::new(client, keys.clone(), 5, &known);
        journal.in_flight.replace([("map".to_owned(), b"new".to_vec())].into());
        journal.stranger(&mirror(shown))
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
