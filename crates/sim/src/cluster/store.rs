//! The store of the coordinators' records: what is written there survives every coordinator. It holds bytes, as the real one
//! does, and lets only the elected coordinator write.

use std::collections::BTreeMap;

use types::{ClusterMap, Layout, NodeInfo};
use wire::record::{KnownNode, MapHead, NodeRecord, Record};

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
            Record::Node(NodeRecord { map_version, node }) => {
                if let Some(map) = &mut self.map {
                    map.version = *map_version;
                    let id = node.info.host.node;
                    let named = map.nodes.iter_mut().find(|info| info.host.node == id);
                    named.into_iter().for_each(|info| *info = in_zone(&map.layout, node));
                }
            }
            Record::View(view) => {
                if let Some(map) = &mut self.map {
                    map.version = view.map_version;
                    map.adopt(view.view.clone());
                }
            }
        }
        Ok(())
    }

    fn nodes_of(&self, head: &MapHead) -> Result<Vec<NodeInfo>, String> {
        let node = |id: &types::NodeId| {
            let key = wire::record::node_key(*id);
            let bytes = self.values.get(&key).ok_or(format!("the head names {id}, which is not recorded"))?;
            match Record::decode(&key, bytes) {
                Ok(Record::Node(record)) => Ok(in_zone(&head.layout, &record.node)),
                other => Err(format!("{key} is {other:?}")),
            }
        };
        head.nodes.iter().map(node).collect()
    }

    fn head(&mut self, head: &MapHead) -> Result<(), String> {
        let nodes = self.nodes_of(head)?;
        match &mut self.map {
            Some(map) if map.catalog == head.catalog => {
                (map.version, map.nodes, map.layout) = (head.version, nodes, head.layout.clone());
            }
            _ => {
                let records = self.records()?;
                let views = records.into_iter().filter_map(|record| match record {
                    Record::View(record) => Some(record.view),
                    Record::Head(_) | Record::Node(_) => None,
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

/// A node as a map has it.
fn in_zone(layout: &Layout, node: &KnownNode) -> NodeInfo {
    let zone = layout.zone_of(node.info.host.node).unwrap_or(&node.info.zone).to_owned();
    NodeInfo { zone, ..node.info.clone() }
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
