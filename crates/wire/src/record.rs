//! What a coordinator writes down, so that another one can go on where it ended (docs/protocol.md, "Coordinators that
//! follow each other"; the bytes are in docs/format.md).
//!
//! A record is one value of a key-value store. Its bytes begin with a magic number and a version and end with a
//! checksum, so that garbage is told from a record; its key is part of it, so that a record under another key is, too.

use bytes::Bytes;
use thiserror::Error;
use types::{Catalog, ClusterId, ClusterMap, Epoch, GroupId, GroupView, HostId, Layout, NodeId, NodeInfo};

pub use crate::codec::BadBody;
use crate::codec::{Reader, Wire, Writer};

/// First bytes of every record.
pub const MAGIC: [u8; 4] = *b"GSTR";
/// Version of the encoding of records.
pub const RECORD_VERSION: u8 = 8;
/// The key of the head.
pub const HEAD_KEY: &str = "map";
/// What the keys of views begin with; eight decimal digits of the group follow.
pub const VIEW_PREFIX: &str = "view/";
/// What the keys of nodes begin with; five decimal digits of the node's id follow.
pub const NODE_PREFIX: &str = "node/";

const CHECKSUM_BYTES: usize = 4;

/// One value of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// What there is one of. Where it is missing, no cluster has formed.
    Head(MapHead),
    /// One group's view. May replace none, or one of a lower version, and nothing else.
    View(ViewRecord),
    /// One node. It counts while the head names it.
    Node(NodeRecord),
}

/// The map without its views and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapHead {
    /// The cluster.
    pub cluster: ClusterId,
    /// The coordinator that has written this; nobody obeys an older one.
    pub epoch: Epoch,
    /// Version of the map at the time.
    pub version: u64,
    /// Its pools and namespaces; each group of a pool has a record of its view.
    pub catalog: Catalog,
    /// Workers of every node.
    pub shards: u16,
    /// What operators have asked for.
    pub layout: Layout,
    /// All nodes, ascending: each has a record of its own.
    pub nodes: Vec<NodeId>,
}

impl MapHead {
    /// Whether there can be versions and epochs after this one.
    pub(crate) fn is_possible(&self) -> bool {
        self.version <= ClusterMap::MAX_VERSION && self.epoch < Epoch::MAX
    }
}

/// A node, and the version of the map since which it is like this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Version of the map with this change.
    pub map_version: u64,
    /// The node.
    pub node: KnownNode,
}

impl NodeRecord {
    /// Whether there can be versions after this one.
    pub(crate) fn is_possible(&self) -> bool {
        self.map_version <= ClusterMap::MAX_VERSION
    }
}

/// A node as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownNode {
    /// As it has named itself, and whether its lease ran.
    pub info: NodeInfo,
    /// An operator has fenced this process: it may not come back.
    pub fenced: bool,
}

impl KnownNode {
    /// The process, if its lease ran.
    #[must_use]
    pub fn alive(&self) -> Option<HostId> {
        (self.info.alive && !self.fenced).then_some(self.info.host)
    }
}

/// A view and the version of the map that it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewRecord {
    /// Version of the map with this change.
    pub map_version: u64,
    /// The view.
    pub view: GroupView,
}

impl ViewRecord {
    /// Whether there can be versions after this one.
    pub(crate) fn is_possible(&self) -> bool {
        self.map_version <= ClusterMap::MAX_VERSION
    }
}

/// A value of the store that is no record.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("record \"{key}\": {why}")]
pub struct BadRecord {
    /// Where it was found.
    pub key: String,
    /// What is wrong with it.
    pub why: NotARecord,
}

/// Why bytes are no record.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotARecord {
    /// They do not begin like one.
    #[error("this is no record of a Gestalt coordinator")]
    Magic,
    /// Of another version of Gestalt.
    #[error(
        "it has format {0}, and this version of Gestalt reads {RECORD_VERSION}: no data is in such records, so end all processes of the \
         cluster, delete them (or choose another prefix) and form it anew"
    )]
    Version(u8),
    /// They were changed.
    #[error("the checksum is wrong")]
    Checksum,
    /// The checksum is right, the content is not.
    #[error("{0}")]
    Body(#[from] BadBody),
    /// A record of another key.
    #[error("this is the record of \"{0}\"")]
    Key(String),
    /// More entries or longer texts than a reader accepts.
    #[error("a list or a text is too long")]
    TooLong,
}

impl Record {
    /// Where it is kept.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Head(_) => HEAD_KEY.to_owned(),
            Self::View(record) => view_key(record.view.group),
            Self::Node(record) => node_key(record.node.info.host.node),
        }
    }

    /// Version of the map with the change that is recorded.
    #[must_use]
    pub fn map_version(&self) -> u64 {
        match self {
            Self::Head(head) => head.version,
            Self::View(record) => record.map_version,
            Self::Node(record) => record.map_version,
        }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// If it holds more than could be read again.
    pub fn encode(&self) -> Result<Vec<u8>, NotARecord> {
        let mut out = MAGIC.to_vec();
        out.push(RECORD_VERSION);
        let mut writer = Writer::new(&mut out);
        self.put(&mut writer);
        if writer.overflow {
            return Err(NotARecord::TooLong);
        }
        out.extend_from_slice(&types::checksum(&out).to_le_bytes());
        Ok(out)
    }

    /// The record that was found under `key`.
    ///
    /// # Errors
    /// If it is none, or one of another key.
    pub fn decode(key: &str, bytes: &[u8]) -> Result<Self, BadRecord> {
        let bad = |why| BadRecord { key: key.to_owned(), why };
        let record = from_bytes(bytes).map_err(bad)?;
        // A value that was copied under another key is sound by itself.
        let own = record.key();
        if own == key { Ok(record) } else { Err(bad(NotARecord::Key(own))) }
    }
}

/// The key of a group's view.
#[must_use]
pub fn view_key(group: GroupId) -> String {
    format!("{VIEW_PREFIX}{:08}", group.0)
}

/// The key of a node.
#[must_use]
pub fn node_key(node: NodeId) -> String {
    format!("{NODE_PREFIX}{:05}", node.0)
}

/// The group whose view has this key; none if it is no view's.
#[must_use]
pub fn group_of(key: &str) -> Option<GroupId> {
    let group = GroupId(key.strip_prefix(VIEW_PREFIX)?.parse().ok()?);
    (view_key(group) == key).then_some(group)
}

/// The node whose record has this key; none if it is no node's.
#[must_use]
pub fn node_of(key: &str) -> Option<NodeId> {
    let node = NodeId(key.strip_prefix(NODE_PREFIX)?.parse().ok()?);
    (node_key(node) == key).then_some(node)
}

fn from_bytes(bytes: &[u8]) -> Result<Record, NotARecord> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(NotARecord::Magic)?;
    let (&version, rest) = rest.split_first().ok_or(NotARecord::Magic)?;
    // Before the checksum: another version may have another one, and is to be named.
    if version != RECORD_VERSION {
        return Err(NotARecord::Version(version));
    }
    let (body, checksum) = rest.split_last_chunk::<CHECKSUM_BYTES>().ok_or(NotARecord::Checksum)?;
    let checked = bytes.get(..bytes.len() - CHECKSUM_BYTES).ok_or(NotARecord::Checksum)?;
    if types::checksum(checked) != u32::from_le_bytes(*checksum) {
        return Err(NotARecord::Checksum);
    }
    let mut reader = Reader::new(Bytes::copy_from_slice(body));
    let record = Record::take(&mut reader)?;
    reader.end()?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_told_by_its_key() {
        let group = GroupId(1_048_575);
        assert_eq!(group_of(&view_key(group)), Some(group));
        for other in [HEAD_KEY, "view/", "view/7", "view/+0000007", "view/000000007", "views/00000007"] {
            assert_eq!(group_of(other), None, "{other}");
        }
    }
}
