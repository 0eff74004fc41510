//! Which parts of a map have changed since when.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ClusterMap, GroupId, MapChanges, NodeId};

/// A part of a map that changes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapPart {
    /// Its pools and namespaces.
    Catalog,
    /// What operators want.
    Layout,
    /// A node, which may be no more.
    Node(NodeId),
    /// The view of a group, which may have gone with its pool.
    View(GroupId),
}

/// See the module. Of each part it knows the newest change, back to a version before which it knows nothing.
#[derive(Clone, Debug, Default)]
pub struct ChangeLog {
    horizon: u64,
    log: BTreeSet<(u64, MapPart)>,
    newest: BTreeMap<MapPart, u64>,
}

impl ChangeLog {
    /// Most parts that it remembers; whoever lacks more is given the whole map.
    pub const MAX_PARTS: usize = 1 << 16;

    /// Of a map of which nothing is known but that it has `version`.
    #[must_use]
    pub fn from_version(version: u64) -> Self {
        Self { horizon: version, ..Self::default() }
    }

    /// `part` is another one from `version` on.
    pub fn note(&mut self, part: MapPart, version: u64) {
        if version <= self.horizon {
            return;
        }
        let before = self.newest.insert(part, version);
        before.map(|before| self.log.remove(&(before, part)));
        self.log.insert((version, part));
        while self.log.len() > Self::MAX_PARTS {
            let Some((version, part)) = self.log.pop_first() else { return };
            self.newest.remove(&part);
            self.horizon = version;
        }
    }

    /// What has changed of `map`, whose log this is, since it had version `since`; none if only the whole map says so.
    #[must_use]
    pub fn changes(&self, map: &ClusterMap, since: u64) -> Option<MapChanges> {
        if since < self.horizon || since > map.version {
            return None;
        }
        let mut changes = MapChanges::none(map.cluster, since, map.version);
        for (_, part) in self.log.range((since + 1, MapPart::Catalog)..) {
            match *part {
                MapPart::Catalog => changes.catalog = Some(map.catalog.clone()),
                MapPart::Layout => changes.layout = Some(map.layout.clone()),
                MapPart::Node(id) => match map.node(id) {
                    Some(node) => changes.nodes.push(node.clone()),
                    None => changes.gone.push(id),
                },
                MapPart::View(group) => changes.views.extend(map.group(group).cloned()),
            }
        }
        changes.nodes.sort_unstable_by_key(|node| node.host.node);
        changes.gone.sort_unstable();
        changes.views.sort_unstable_by_key(|view| view.group);
        Some(changes)
    }
}
