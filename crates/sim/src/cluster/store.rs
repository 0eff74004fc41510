//! The store of the coordinators' records: what is written there survives every coordinator. It holds bytes, as the real one
//! does, and lets only the elected coordinator write.

use std::collections::BTreeMap;

use types::{ClusterMap, NodeInfo};
use wire::record::{MapHead, Record};

/// What is recorded.
#[derive(Debug, Default)]
pub(crate) struct RecordStore {
    values: BTreeMap<String, Vec<u8>>,
    map: Option<ClusterMap>,
    /// Newest version of the map that any record names.
    version: u64,
}

impl RecordStore {
    /// The map as it is recorded; none until the head is.
    pub(crate) fn map(&self) -> Option<&ClusterMap> {
        self.map.as_ref()
    }

    /// Every record, read from its bytes.
    pub(crate) fn records(&self) -> Result<Vec<Record>, String> {
        let decoded = self.values.iter().map(|(key, bytes)| Record::decode(key, bytes));
        decoded.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    /// Writes one record. A view replaces an older one, and versions of the map never go back.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), String> {
        let key = record.key();
        let bytes = record.encode().map_err(|error| error.to_string())?;
        if record.map_version() < self.version {
            return Err(format!("{key} goes back to version {} of the map", record.map_version()));
        }
        if let Some(before) = self.values.get(&key) {
            let before = Record::decode(&key, before).map_err(|error| error.to_string())?;
            follows(&before, record)?;
        }
        self.version = record.map_version();
        self.values.insert(key, bytes);
        match record {
            Record::Head(head) => self.head(head)?,
            Record::View(view) => {
                if let Some(map) = &mut self.map {
                    map.version = view.map_version;
                    map.adopt(view.view.clone());
                }
            }
        }
        Ok(())
    }

    fn head(&mut self, head: &MapHead) -> Result<(), String> {
        let info = |known: &wire::record::KnownNode| NodeInfo {
            zone: head.layout.zone_of(known.info.host.node).unwrap_or(&known.info.zone).to_owned(),
            ..known.info.clone()
        };
        let nodes = head.nodes.iter().map(info).collect();
        match &mut self.map {
            Some(map) if map.catalog == head.catalog => {
                (map.version, map.nodes, map.layout) = (head.version, nodes, head.layout.clone());
            }
            _ => {
                let records = self.records()?;
                let views = records.into_iter().filter_map(|record| match record {
                    Record::View(record) => Some(record.view),
                    Record::Head(_) => None,
                });
                // Of pools that are no more, and of one that is being made.
                let views = views.filter(|view| head.catalog.pool_of_group(view.group).is_some());
                self.map = Some(ClusterMap {
                    cluster: head.cluster,
                    version: head.version,
                    catalog: head.catalog.clone(),
                    shards: head.shards,
                    layout: head.layout.clone(),
                    nodes,
                    groups: views.collect(),
                });
            }
        }
        Ok(())
    }
}

fn follows(before: &Record, after: &Record) -> Result<(), String> {
    match (before, after) {
        (Record::Head(before), Record::Head(after)) if before.epoch > after.epoch => {
            Err(format!("the head goes back from {} to {}", before.epoch, after.epoch))
        }
        // A coordinator that starts with nothing records once more what it goes on from.
        (Record::View(before), Record::View(after)) if before.view == after.view => Ok(()),
        (Record::View(before), Record::View(after)) if before.view.version >= after.view.version => {
            let group = after.view.group;
            Err(format!("the view of {group} goes from {} to {}", before.view.version, after.view.version))
        }
        _ => Ok(()),
    }
}
