//! This node's picture of what is in etcd, kept by a watch; and what can be read from it.

use std::collections::{BTreeMap, BTreeSet};

use etcd::{Change, Entry, LeaseId, Range};
use proto::{Coordinator, Now};
use types::{ClusterId, HostId, NodeId, NodeInfo};
use wire::record::{HEAD_KEY, MapHead, Record};

use super::keys::{Keys, LEADER, Leader, NODES, RECORDS, SETTINGS};
use super::settings::Settings;

/// Everything under the cluster's prefix, by its name below.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    entries: BTreeMap<String, Entry>,
    /// Nothing that is older is missing.
    pub revision: i64,
}

/// Something that cannot be, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// The full key.
    pub key: String,
    /// What is wrong with it.
    pub why: String,
}

/// What can be presided over.
pub(crate) struct Found {
    pub settings: Settings,
    pub coordinator: Coordinator,
}

impl Mirror {
    pub(crate) fn of(keys: &Keys, range: Range) -> Self {
        let named = |entry: Entry| Some((keys.below(&entry.key)?, entry));
        Self { entries: range.entries.into_iter().filter_map(named).collect(), revision: range.revision }
    }

    pub(crate) fn apply(&mut self, keys: &Keys, change: Change) {
        match change {
            Change::Put(entry) => {
                self.revision = self.revision.max(entry.mod_revision);
                if let Some(name) = keys.below(&entry.key) {
                    self.entries.insert(name, entry);
                }
            }
            Change::Gone { key, revision } => {
                self.revision = self.revision.max(revision);
                if let Some(name) = keys.below(&key) {
                    self.entries.remove(&name);
                }
            }
        }
    }

    /// Whether anything has been read at all.
    pub(crate) fn is_known(&self) -> bool {
        self.revision > 0
    }

    /// The key of whoever leads.
    pub(crate) fn leader_key(&self) -> Option<&Entry> {
        self.entries.get(LEADER)
    }

    /// Who leads.
    pub(crate) fn leader(&self, keys: &Keys) -> Result<Option<Leader>, Bad> {
        let Some(entry) = self.leader_key() else { return Ok(None) };
        let leader = serde_json::from_slice(&entry.value).map_err(|error| bad(keys, LEADER, error))?;
        Ok(Some(leader))
    }

    /// What the cluster is formed with; none if nobody has said so yet.
    pub(crate) fn settings(&self, keys: &Keys) -> Result<Option<Settings>, Bad> {
        match self.entries.get(SETTINGS) {
            // Not as if nothing were there: a cluster formed anew would write over these records.
            None if self.records().next().is_some() => {
                Err(bad(keys, SETTINGS, "it is missing, though there are records"))
            }
            None => Ok(None),
            Some(entry) => Settings::decode(&entry.value).map(Some).map_err(|why| bad(keys, SETTINGS, why)),
        }
    }

    /// That what is here is the cluster that a node serves already, going by `own`. One that serves none may be of any.
    pub(crate) fn check_cluster(&self, keys: &Keys, own: Option<ClusterId>) -> Result<(), Bad> {
        let Some(own) = own else { return Ok(()) };
        match self.settings(keys)? {
            Some(settings) if settings.cluster == own.0 => Ok(()),
            Some(_) => {
                Err(bad(keys, SETTINGS, "it is of another cluster than the one that this node serves"))
            }
            None => Err(bad(keys, SETTINGS, "it is missing, though this node serves a cluster")),
        }
    }

    /// The processes that keep their leases at etcd, and a key that is none of theirs.
    pub(crate) fn alive(&self, keys: &Keys) -> (BTreeSet<HostId>, Option<Bad>) {
        let (mut alive, mut garbage) = (BTreeSet::new(), None);
        for (name, entry) in self.below(NODES) {
            match serde_json::from_slice::<NodeInfo>(&entry.value) {
                Ok(info) => drop(alive.insert(info.host)),
                Err(error) => garbage = Some(bad(keys, name, error)),
            }
        }
        (alive, garbage)
    }

    /// The revision of the key of `node` that a process with `lease` may replace with its own; 0 if there is no key. None if
    /// the key is its own, or of another process that it may not replace.
    pub(crate) fn claim(
        &self,
        node: NodeId,
        lease: LeaseId,
        may_replace: impl FnOnce(HostId) -> bool,
    ) -> Option<i64> {
        let Some(entry) = self.entries.get(&format!("{NODES}{}", node.0)) else { return Some(0) };
        if entry.lease == Some(lease) {
            return None;
        }
        let other = serde_json::from_slice::<NodeInfo>(&entry.value);
        other.map_or(true, |info| may_replace(info.host)).then_some(entry.mod_revision)
    }

    /// The entries of records, by their own keys.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.below(RECORDS).map(|(name, entry)| (&name[RECORDS.len()..], entry))
    }

    /// The head, if there is one that can be read.
    pub(crate) fn head(&self) -> Option<MapHead> {
        let entry = self.entries.get(&format!("{RECORDS}{HEAD_KEY}"))?;
        match Record::decode(HEAD_KEY, &entry.value) {
            Ok(Record::Head(head)) => Some(head),
            Ok(Record::View(_) | Record::Node(_)) | Err(_) => None,
        }
    }

    fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &Entry)> {
        let from = self.entries.range(prefix.to_owned()..);
        from.take_while(move |(name, _)| name.starts_with(prefix)).map(|(name, entry)| (name.as_str(), entry))
    }

    /// A coordinator that goes on from here, if all that is here can be. None if nobody has founded the cluster.
    pub(crate) fn resume(&self, keys: &Keys, now: Now) -> Result<Option<Found>, Bad> {
        let Some(settings) = self.settings(keys)? else { return Ok(None) };
        let records = self.records().map(|(key, entry)| {
            Record::decode(key, &entry.value).map_err(|error| bad_record(keys, key, error.why))
        });
        let records: Vec<Record> = records.collect::<Result<_, _>>()?;
        if let Some(Record::Head(head)) = records.iter().find(|record| matches!(record, Record::Head(_)))
            && (head.cluster.0, head.catalog.pools.first().map(|pool| pool.profile))
                != (settings.cluster, Some(settings.profile))
        {
            return Err(bad(keys, SETTINGS, "it is of another cluster than the records"));
        }
        let coordinator = Coordinator::resume(settings.coordinator(), records, now)
            .map_err(|error| bad(keys, RECORDS, error))?;
        Ok(Some(Found { settings, coordinator }))
    }
}

fn bad(keys: &Keys, name: &str, why: impl ToString) -> Bad {
    Bad { key: format!("{}{name}", keys.prefix()), why: why.to_string() }
}

fn bad_record(keys: &Keys, key: &str, why: impl ToString) -> Bad {
    bad(keys, &format!("{RECORDS}{key}"), why)
}

#[cfg(test)]
mod tests {
    use types::Time;

    use super::*;

    fn entry(name: &str, value: &[u8], mod_revision: i64) -> Entry {
        let key = Keys::new("c").full(name);
        Entry { key, value: value.to_vec(), create_revision: 1, mod_revision, lease: None }
    }

    fn mirror(entries: &[(&str, &[u8])]) -> Mirror {
        let entries = entries.iter().map(|(name, value)| entry(name, value, 7)).collect();
        Mirror::of(&Keys::new("c"), Range { entries, revision: 9 })
    }

    const CONFIG: &[u8] = br#"{"format":1,"cluster":5,"profile":"rs(1+0)","nodes":1,"workers":1,"groups":1,"lease_us":1000000}"#;

    fn resume(entries: &[(&str, &[u8])]) -> Result<bool, String> {
        let now = Now { time: Time(1), ..Now::default() };
        let found = mirror(entries).resume(&Keys::new("c"), now);
        found.map(|found| found.is_some()).map_err(|bad| format!("{}: {}", bad.key, bad.why))
    }

    #[test]
    fn nothing_is_presided_over_but_what_can_be() {
        assert_eq!(resume(&[]), Ok(false));
        assert_eq!(resume(&[("config", CONFIG)]), Ok(true), "a cluster that is yet to form");
        assert!(resume(&[("config", b"{}")]).unwrap_err().starts_with("/gestalt/c/config: missing field"));
        let garbage = resume(&[("config", CONFIG), ("records/view/00000000", b"garbage")]).unwrap_err();
        assert!(garbage.starts_with("/gestalt/c/records/view/00000000: this is no record"), "{garbage}");
        let lost = resume(&[("records/map", b"")]).unwrap_err();
        assert!(lost.starts_with("/gestalt/c/config: it is missing"), "{lost}");
    }

    #[test]
    fn who_serves_a_cluster_is_for_no_other_one() {
        let keys = Keys::new("c");
        let check = |entries: &[(&str, &[u8])], own: Option<u64>| {
            mirror(entries).check_cluster(&keys, own.map(ClusterId))
        };
        assert!(check(&[], None).is_ok() && check(&[("config", CONFIG)], Some(5)).is_ok());
        assert!(check(&[("config", CONFIG)], Some(6)).unwrap_err().why.contains("another cluster"));
        assert!(check(&[], Some(5)).unwrap_err().why.contains("missing"));
    }

    #[test]
    fn a_process_keeps_its_key_and_takes_that_of_an_older_one() {
        let host = HostId { node: NodeId(1), incarnation: types::Incarnation(4) };
        let nowhere = "127.0.0.1:1".parse().unwrap();
        let (peer, memcached, http) = (nowhere, nowhere, nowhere);
        let info = NodeInfo { host, peer, memcached, http, native: None, zone: String::new(), alive: true };
        let mut entry = entry("nodes/1", &serde_json::to_vec(&info).unwrap(), 7);
        entry.lease = Some(LeaseId(5));
        let mirror = Mirror::of(&Keys::new("c"), Range { entries: vec![entry], revision: 9 });
        let claim =
            |node, lease, may| mirror.claim(NodeId(node), LeaseId(lease), |other| other == host && may);
        assert_eq!(claim(1, 5, true), None, "its own");
        assert_eq!((claim(1, 6, true), claim(1, 6, false)), (Some(7), None));
        assert_eq!(claim(2, 6, false), Some(0), "nobody has it");
    }

    #[test]
    fn the_mirror_follows_changes_and_tells_keys_of_others_apart() {
        let keys = Keys::new("c");
        let mut mirror = mirror(&[("leader", b"x")]);
        mirror.apply(&keys, Change::Put(entry("nodes/1", b"garbage", 10)));
        let (alive, bad) = mirror.alive(&keys);
        assert!(alive.is_empty() && bad.unwrap().key == "/gestalt/c/nodes/1");
        assert_eq!(mirror.leader(&keys).unwrap_err().key, "/gestalt/c/leader");
        mirror.apply(&keys, Change::Gone { key: keys.full("leader"), revision: 11 });
        mirror.apply(&keys, Change::Gone { key: b"/gestalt/other/nodes/1".to_vec(), revision: 12 });
        assert_eq!((mirror.leader(&keys), mirror.revision), (Ok(None), 12));
        assert!(mirror.alive(&keys).1.is_some());
    }
}
