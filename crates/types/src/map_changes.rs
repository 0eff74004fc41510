//! What has changed of a map between two of its versions, and making the change.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::map::check_group;
use crate::{
    Catalog, ChangeLog, ClusterId, ClusterMap, GroupView, ImpossibleMap, Layout, MapPart, NodeId, NodeInfo,
};

/// What makes a map of version `version` of any of `since` or later.
///
/// Whoever has an older one than `since` lacks something, and has to ask for what has changed since its own. A newer one is not
/// changed. Views have versions of their own, and may be taken by anybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct MapChanges {
    /// The cluster.
    pub cluster: ClusterId,
    /// The oldest version of which this makes the new one.
    pub since: u64,
    /// The version that the map has then.
    pub version: u64,
    /// The pools and namespaces, if any of them has changed.
    pub catalog: Option<Catalog>,
    /// What operators want, if that has changed.
    pub layout: Option<Layout>,
    /// Nodes that are new or have changed, ascending by id.
    pub nodes: Vec<NodeInfo>,
    /// Nodes that are no more, ascending.
    pub gone: Vec<NodeId>,
    /// Views that are new or have changed, ascending by group. Those of pools that are gone have gone with them.
    pub views: Vec<GroupView>,
}

/// Changes as they are read.
#[derive(Deserialize)]
struct Unchecked {
    cluster: ClusterId,
    since: u64,
    version: u64,
    catalog: Option<Catalog>,
    layout: Option<Layout>,
    nodes: Vec<NodeInfo>,
    gone: Vec<NodeId>,
    views: Vec<GroupView>,
}

impl TryFrom<Unchecked> for MapChanges {
    type Error = ImpossibleMap;

    fn try_from(read: Unchecked) -> Result<Self, ImpossibleMap> {
        let Unchecked { cluster, since, version, catalog, layout, nodes, gone, views } = read;
        let changes = Self { cluster, since, version, catalog, layout, nodes, gone, views };
        changes.check().map(|()| changes)
    }
}

/// What a client is told that has a version of the map already. As JSON: the one or the other, of which only changes have a `since`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum MapNews {
    /// What has changed since; nothing, if whoever was asked knows of nothing newer.
    Changes(Box<MapChanges>),
    /// The map, where it is not known what has changed since.
    Whole(Arc<ClusterMap>),
}

impl MapNews {
    /// Of `map`, whose log is `log`, for who has version `since` of the map of `cluster`.
    #[must_use]
    pub fn since(map: &Arc<ClusterMap>, log: &ChangeLog, cluster: ClusterId, since: u64) -> Self {
        if cluster != map.cluster {
            return Self::Whole(Arc::clone(map));
        }
        // Others may know of a newer one.
        let known = since.min(map.version);
        let changes = log.changes(map, known);
        changes.map_or_else(|| Self::Whole(Arc::clone(map)), |changes| Self::Changes(Box::new(changes)))
    }
}

/// What a map has become by a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The map is of the new version.
    Whole,
    /// The map lacks what was before the change: it has its old version, and views that were newer.
    ViewsOnly,
    /// The map was as new already, or is of another cluster.
    Nothing,
}

impl MapChanges {
    /// The parts of the map that are others.
    pub fn parts(&self) -> impl Iterator<Item = MapPart> + '_ {
        let nodes = self.nodes.iter().map(|node| node.host.node);
        let nodes = nodes.chain(self.gone.iter().copied()).map(MapPart::Node);
        let catalog = self.catalog.iter().map(|_| MapPart::Catalog);
        let layout = self.layout.iter().map(|_| MapPart::Layout);
        let views = self.views.iter().map(|view| MapPart::View(view.group));
        catalog.chain(layout).chain(nodes).chain(views)
    }

    /// Changes of nothing.
    #[must_use]
    pub fn none(cluster: ClusterId, since: u64, version: u64) -> Self {
        let (nodes, gone, views) = (Vec::new(), Vec::new(), Vec::new());
        Self { cluster, since, version, catalog: None, layout: None, nodes, gone, views }
    }

    /// Whether any map can change like this, as far as that can be said without the map.
    ///
    /// # Errors
    /// Why none can.
    pub fn check(&self) -> Result<(), ImpossibleMap> {
        if self.version > ClusterMap::MAX_VERSION || self.since > self.version {
            return Err(ImpossibleMap::Version(self.version));
        }
        let ids = self.nodes.iter().map(|node| node.host.node);
        if !ids.is_sorted_by(|before, after| before < after)
            || !self.gone.is_sorted_by(|before, after| before < after)
        {
            return Err(ImpossibleMap::Nodes);
        }
        if let Some([before, after]) = self.views.array_windows().find(|[a, b]| a.group >= b.group) {
            return Err(ImpossibleMap::Order { expected: before.group, got: after.group });
        }
        let check = |view: &GroupView| view.check().map_err(|why| ImpossibleMap::View(view.group, why));
        self.views.iter().try_for_each(check)?;
        Ok(self.catalog.as_ref().map_or(Ok(()), Catalog::check)?)
    }
}

impl ClusterMap {
    /// What makes `newer`, a later map of the same cluster, of this one.
    #[must_use]
    pub fn changes_to(&self, newer: &Self) -> MapChanges {
        let is_new = |node: &&NodeInfo| self.node(node.host.node) != Some(*node);
        let is_gone = |node: &&NodeInfo| newer.node(node.host.node).is_none();
        let is_newer =
            |view: &&GroupView| self.group(view.group).is_none_or(|known| known.version < view.version);
        MapChanges {
            cluster: newer.cluster,
            since: self.version,
            version: newer.version,
            catalog: (self.catalog != newer.catalog).then(|| newer.catalog.clone()),
            layout: (self.layout != newer.layout).then(|| newer.layout.clone()),
            nodes: newer.nodes.iter().filter(is_new).cloned().collect(),
            gone: self.nodes.iter().filter(is_gone).map(|node| node.host.node).collect(),
            views: newer.groups.iter().filter(is_newer).cloned().collect(),
        }
    }

    /// Makes the changes, if this map is of a version that they are for; else takes the views that are newer than its own.
    ///
    /// # Errors
    /// Why the map that would come of them cannot be; then nothing has changed.
    pub fn apply(&mut self, changes: &MapChanges) -> Result<Applied, ImpossibleMap> {
        if changes.cluster != self.cluster || changes.version <= self.version {
            return Ok(Applied::Nothing);
        }
        if changes.since > self.version {
            self.adopt_all(&changes.views);
            return Ok(Applied::ViewsOnly);
        }
        match &changes.catalog {
            Some(catalog) if catalog.pools != self.catalog.pools => {
                self.groups = self.regrouped(catalog, &changes.views)?;
            }
            _ => {
                check_places(self, &changes.views)?;
                self.adopt_all(&changes.views);
            }
        }
        changes.catalog.iter().for_each(|catalog| self.catalog.clone_from(catalog));
        changes.layout.iter().for_each(|layout| self.layout.clone_from(layout));
        self.change_nodes(changes);
        self.version = changes.version;
        Ok(Applied::Whole)
    }

    /// Takes those that are newer than its own, of groups that it has.
    fn adopt_all(&mut self, views: &[GroupView]) {
        for view in views {
            self.adopt(view.clone());
        }
    }

    /// The views of the groups of `catalog`, of which `new` are new or have changed.
    fn regrouped(&self, catalog: &Catalog, new: &[GroupView]) -> Result<Vec<GroupView>, ImpossibleMap> {
        let mut groups = Vec::with_capacity(catalog.groups());
        for pool in &catalog.pools {
            for group in pool.group_ids() {
                let new = new.binary_search_by_key(&group, |view| view.group).ok().map(|at| &new[at]);
                let newest = new.into_iter().chain(self.group(group)).max_by_key(|view| view.version);
                let (views, due) = (groups.len(), catalog.groups());
                let view = newest.ok_or(ImpossibleMap::Views { views, groups: due })?;
                check_group(pool, group, view)?;
                groups.push(view.clone());
            }
        }
        Ok(groups)
    }

    fn change_nodes(&mut self, changes: &MapChanges) {
        self.nodes.retain(|node| changes.gone.binary_search(&node.host.node).is_err());
        for node in &changes.nodes {
            match self.nodes.binary_search_by_key(&node.host.node, |known| known.host.node) {
                Ok(at) => self.nodes[at].clone_from(node),
                Err(at) => self.nodes.insert(at, node.clone()),
            }
        }
    }
}

fn check_places(map: &ClusterMap, views: &[GroupView]) -> Result<(), ImpossibleMap> {
    let homeless = views.iter().find(|view| !map.has_place_for(view));
    homeless.map_or(Ok(()), |view| Err(ImpossibleMap::Profile(view.group)))
}
