//! What all parts of a coordinator stand on: what it is for, who there is, the map, and what is to be done.
//!
//! A view changes here and nowhere else: by compare-and-swap, recorded before anybody is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{Codes, PlanNode, Protection};
use types::{
    Catalog, ChangeLog, ClusterId, ClusterMap, Epoch, GroupId, GroupView, HostId, Layout, MapChanges,
    MapNews, MapPart, NodeId, NodeInfo, Time, ViewVersion,
};
use wire::message::{FromCoordinator, Refused};
use wire::record::{KnownNode, MapHead, Record};

use super::holders::{self, Standing};
use super::hosting::Hosting;
use super::keeping::{Keeping, Processes};
use super::nodes::{NodeState, Nodes};
use super::outbox::Outbox;
use super::records::{all_records, head_of, node_record, view_record};
use super::view_index::ViewIndex;
use super::{CoordinatorAction, CoordinatorConfig, RecordKeeping, decide};
use crate::rules::Step;
use crate::{Impossible, Rules, Timing};

/// What a process is told that an operator has fenced.
pub(super) const FENCED: &str =
    "an operator has fenced this process: start the node again, with empty memory";

/// See the module.
pub(super) struct ClusterState {
    config: CoordinatorConfig,
    /// What the codes of the pools make up for.
    codes: Codes,
    /// Which coordinator this is; nodes obey no older one.
    epoch: Epoch,
    /// Processes that have registered, in their newest incarnation.
    nodes: Nodes,
    /// None until the cluster has formed.
    map: Option<Arc<ClusterMap>>,
    /// Of its views.
    index: ViewIndex,
    /// What of it has changed since when.
    log: ChangeLog,
    /// Whether somebody may not have been told of its newest version.
    untold: bool,
    /// Its nodes as they are recorded.
    recorded: BTreeMap<NodeId, KnownNode>,
    hosting: Hosting,
    outbox: Outbox,
    /// How often the map or one of its views has changed.
    map_changes: u64,
}

/// What is asked of the next host of a data role.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    /// A living host that it must not be.
    pub avoid: Option<HostId>,
    /// Room for members, in bytes.
    pub room: u64,
}

/// Memory of a node that is free for members, in bytes, as it has said last.
fn room_for_members(node: &NodeState) -> u64 {
    let load = node.load();
    load.room_bytes().saturating_sub(load.limit_bytes / store::HEADROOM_SHARE)
}

impl ClusterState {
    pub(super) fn new(config: CoordinatorConfig) -> Self {
        Self {
            outbox: Outbox::new(config.records, config.rules),
            codes: Codes::of(&Catalog::first(config.profile, config.groups)),
            config,
            epoch: Epoch::default().next(),
            nodes: Nodes::default(),
            map: None,
            index: ViewIndex::default(),
            log: ChangeLog::default(),
            untold: false,
            recorded: BTreeMap::new(),
            hosting: Hosting::default(),
            map_changes: 0,
        }
    }

    pub(super) fn config(&self) -> &CoordinatorConfig {
        &self.config
    }

    /// What the code of `group` makes up for.
    pub(super) fn protection(&self, group: GroupId) -> Arc<Protection> {
        let known = self.codes.of_group(group).map(Arc::clone);
        // Nobody asks of a group that no pool has; whoever did so would be told of the first pool's code.
        known.unwrap_or_else(|| Arc::new(Protection::of(self.config.profile)))
    }

    /// Whether what is missing of `view` cannot all be made up for.
    pub(super) fn is_beyond_repair(&self, view: &GroupView) -> bool {
        let by_counting = view.roles_in_play() > view.in_sync().count();
        self.rules().beyond_repair(self.protection(view.group).is_beyond_repair(view), by_counting)
    }

    pub(super) fn timing(&self) -> &Timing {
        &self.config.timing
    }

    pub(super) fn rules(&self) -> Rules {
        self.config.rules
    }

    /// How long a node's lease is, in microseconds.
    pub(super) fn lease_us(&self) -> u64 {
        self.config.timing.node_lease_us
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Somebody has promised a coordinator of `promised` to keep its records, and to obey none before it.
    pub(super) fn begin_after(&mut self, promised: Epoch) {
        self.epoch = self.epoch.max(promised.next());
    }

    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub(super) fn nodes_mut(&mut self) -> &mut Nodes {
        &mut self.nodes
    }

    /// Grows whenever what waits for a place, or for a view, may have to be looked at again: a view has changed, or somebody has
    /// come.
    pub(super) fn changes(&self) -> u64 {
        self.map_changes + self.nodes.arrivals()
    }

    pub(super) fn hosting(&self) -> &Hosting {
        &self.hosting
    }

    pub(super) fn hosting_mut(&mut self) -> &mut Hosting {
        &mut self.hosting
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(super) fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    pub(super) fn map(&self) -> Option<&ClusterMap> {
        self.map.as_deref()
    }

    pub(super) fn index(&self) -> &ViewIndex {
        &self.index
    }

    pub(super) fn view(&self, group: GroupId) -> Option<&GroupView> {
        self.map()?.group(group)
    }

    pub(super) fn views(&self) -> impl Iterator<Item = &GroupView> {
        self.map.iter().flat_map(|map| &map.groups)
    }

    /// The map as it is now, the first of this coordinator, whose changes since are known.
    pub(super) fn set_map(&mut self, map: ClusterMap, log: ChangeLog) {
        self.codes = self.codes.changed_to(&map.catalog);
        self.index = ViewIndex::of(&map.groups);
        (self.map, self.log) = (Some(Arc::new(map)), log);
        self.map_changes += 1;
    }

    /// What the records say of the cluster counts, and not what this coordinator was started with.
    /// Of its nodes nobody is silent before `found_by`.
    pub(super) fn adopt_head(&mut self, head: &MapHead, nodes: BTreeMap<NodeId, KnownNode>, found_by: Time) {
        self.begin_after(head.epoch);
        let config = &mut self.config;
        (config.cluster, config.shards) = (head.cluster, head.shards);
        if let Some(first) = head.catalog.pools.first() {
            (config.profile, config.groups) = (first.profile, first.groups);
        }
        // The new list counts its arrivals from the beginning; the sum of all changes must not go back.
        self.map_changes += self.nodes.arrivals();
        self.nodes = Nodes::of_records(nodes.values().cloned(), found_by);
        self.recorded = nodes;
    }

    /// Goes on with what nodes keep.
    pub(super) fn adopt_keeping(&mut self, keeping: Keeping) {
        *self.outbox.keeping_mut() = keeping;
    }

    /// Whoever is sent something knows the map that it was decided with.
    pub(super) fn send(&mut self, to: HostId, message: FromCoordinator) {
        if self.untold {
            self.tell(Some(to));
        }
        self.outbox.push(CoordinatorAction::Send { to, message });
    }

    pub(super) fn send_view(&mut self, to: HostId, group: GroupId) {
        if let Some(view) = self.view(group).cloned() {
            self.send(to, FromCoordinator::View(view));
        }
    }

    /// Whoever has registered is told what has changed of the map since what it was told of last. `only`: that one alone.
    pub(super) fn tell(&mut self, only: Option<HostId>) {
        let Some(map) = self.map.clone() else { return };
        self.untold &= only.is_some();
        // Nearly all lack the same.
        let mut news = BTreeMap::new();
        for (to, since) in self.nodes.tell(map.version, only) {
            let message = news.entry(since).or_insert_with(|| self.news_since(&map, since)).clone();
            self.outbox.push(CoordinatorAction::Send { to, message });
        }
    }

    /// What has become of version `since` of the map of `cluster`, for a client that has it.
    pub(super) fn map_since(&self, cluster: ClusterId, since: u64) -> Option<MapNews> {
        let map = self.map.as_ref()?;
        // What is not in force may never be, and another coordinator may give the same version to something else.
        if cluster == map.cluster && !self.outbox.keeping().is_in_force() {
            return Some(MapNews::Changes(Box::new(MapChanges::none(cluster, since, since))));
        }
        Some(MapNews::since(map, &self.log, cluster, since))
    }

    /// `host` has registered with a map of version `has`. Also whoever lacks nothing is told so, and knows by that of which cluster
    /// this coordinator is.
    pub(super) fn greet(&mut self, host: HostId, has: u64) {
        let Some(map) = self.map.clone() else { return };
        self.nodes.tell(map.version, Some(host));
        self.send(host, self.news_since(&map, has));
    }

    fn news_since(&self, map: &Arc<ClusterMap>, since: u64) -> FromCoordinator {
        match self.log.changes(map, since) {
            Some(changes) => FromCoordinator::Changes(Arc::new(changes)),
            None => FromCoordinator::Map(Arc::clone(map)),
        }
    }

    pub(super) fn refuse(&mut self, host: HostId, fenced: bool, reason: String) {
        let cluster = self.map.as_ref().map(|map| map.cluster);
        let refused = Refused { cluster, epoch: self.epoch, fenced, reason };
        self.send(host, FromCoordinator::Refused(refused));
    }

    /// Tells a fenced process that it is one.
    pub(super) fn turn_away_fenced(&mut self, host: HostId) {
        self.refuse(host, true, FENCED.to_owned());
    }

    /// `peer` has sent what cannot be.
    pub(super) fn close(&mut self, peer: HostId, why: Impossible) {
        tracing::error!(%peer, %why, "a node has sent what cannot be");
        self.outbox.push(CoordinatorAction::Close { peer, why });
    }

    /// Compare-and-swap of a group's view: `change` is made if the version is still `expected`; it is recorded, and everyone
    /// is told.
    fn swap_view(
        &mut self,
        group: GroupId,
        expected: ViewVersion,
        change: impl FnOnce(&mut GroupView),
    ) -> bool {
        if self.view(group).is_none_or(|view| view.version != expected) {
            return false;
        }
        let Some(map) = self.map.as_mut().map(Arc::make_mut) else { return false };
        let Some(view) = map.group_mut(group) else { return false };
        let before = view.clone();
        change(view);
        // Whatever was changed, it may have cost an exchange its mirror.
        decide::call_off_unmirrored(view);
        let nodes = &self.nodes;
        let standing = |host| match nodes.get(host) {
            Some(node) if node.is_leased() => Standing::Here,
            Some(node) if node.is_suspected() => Standing::Silent,
            Some(_) | None => Standing::Gone,
        };
        if let Some(protection) = self.codes.of_group(group) {
            holders::follow(view, expected.next(), protection.code(), standing);
        }
        self.hosting.note_parities(group, &before.parity, view);
        self.index.remove(&before);
        self.index.add(view);
        view.version = expected.next();
        let view = view.clone();
        // Before the record is made, which looks for them.
        self.outbox.spare_removed(&before, &view);
        self.publish([MapPart::View(group)], |_, map| vec![Record::View(view_record(map.version, &view))]);
        true
    }

    /// Swaps against whatever version is there: for changes that hold in any view.
    pub(super) fn change_view(&mut self, group: GroupId, change: impl FnOnce(&mut GroupView)) {
        if let Some(version) = self.view(group).map(|view| view.version) {
            self.swap_view(group, version, change);
        }
    }

    /// Operators want another layout.
    pub(super) fn change_layout(&mut self, layout: Layout) {
        if let Some(map) = self.map.as_mut().map(Arc::make_mut) {
            map.layout = layout;
        }
        self.publish_head(vec![MapPart::Layout]);
    }

    /// There are other pools or namespaces. Groups of pools that are no more go.
    pub(super) fn change_catalog(&mut self, catalog: Catalog) {
        self.replace_catalog(catalog, Vec::new());
    }

    /// There are other pools or namespaces, and these views with them.
    fn replace_catalog(&mut self, catalog: Catalog, new: Vec<GroupView>) {
        let parts = new.iter().map(|view| MapPart::View(view.group)).chain([MapPart::Catalog]).collect();
        if let Some(map) = self.map.as_mut().map(Arc::make_mut) {
            new.iter().for_each(|view| self.index.add(view));
            map.groups.extend(new);
            let stays = |view: &GroupView| catalog.pool_of_group(view.group).is_some();
            map.groups.iter().filter(|view| !stays(view)).for_each(|view| self.index.remove(view));
            map.groups.retain(stays);
            self.codes = self.codes.changed_to(&catalog);
            map.catalog = catalog;
        }
        self.publish_head(parts);
    }

    /// A pool of `catalog` is new, whose groups are `views`. Their numbers are given before their views are recorded, and the
    /// pool comes last: where a coordinator ends between, nobody has heard of the pool, and its numbers are never used.
    pub(super) fn add_pool(&mut self, catalog: Catalog, views: Vec<GroupView>) {
        let Some(map) = self.map.as_mut().map(Arc::make_mut) else { return };
        (map.catalog.next_group, map.catalog.next_pool) = (catalog.next_group, catalog.next_pool);
        let version = map.version;
        self.record_head();
        for view in &views {
            self.outbox.record(Record::View(view_record(version, view)));
        }
        self.replace_catalog(catalog, views);
    }

    /// Nodes have changed.
    pub(super) fn publish_nodes(&mut self) {
        self.publish_head(Vec::new());
    }

    /// These parts have changed, and perhaps nodes.
    fn publish_head(&mut self, mut parts: Vec<MapPart>) {
        let Some(map) = self.map.as_mut().map(Arc::make_mut) else { return };
        let before = std::mem::replace(&mut map.nodes, self.nodes.infos(Some(&map.layout)));
        let is_gone = |info: &&NodeInfo| map.node(info.host.node).is_none();
        let gone = before.iter().filter(is_gone).map(|info| info.host.node);
        let known = |info: &NodeInfo| before.binary_search_by_key(&info.host.node, |known| known.host.node);
        let is_new = |info: &&NodeInfo| known(info).map_or(true, |at| before[at] != **info);
        let changed = map.nodes.iter().filter(is_new).map(|info| info.host.node);
        let of_head = !parts.is_empty();
        parts.extend(changed.chain(gone).map(MapPart::Node));
        self.publish(parts, |state, map| state.records_of_nodes(map, of_head));
    }

    /// What is to be recorded of nodes that are new or others, and the head where it is another one: it names the nodes, after
    /// each of them is recorded.
    fn records_of_nodes(&mut self, map: &ClusterMap, of_head: bool) -> Vec<Record> {
        let known: BTreeMap<NodeId, KnownNode> =
            self.nodes.iter().map(|node| (node.host().node, node.record())).collect();
        let before = std::mem::replace(&mut self.recorded, known);
        let is_new = |(id, node): &(&NodeId, &KnownNode)| before.get(id) != Some(node);
        let new = self.recorded.iter().filter(is_new).map(|(_, node)| node_record(map.version, node.clone()));
        let mut records: Vec<Record> = new.collect();
        // Each version is recorded, whatever there is to say of it: no two maps may have the same.
        if of_head || records.is_empty() || !before.keys().eq(self.recorded.keys()) {
            records.push(head_of(self.epoch, map));
        }
        records
    }

    /// The map has a new version, for these parts have changed: first it is recorded, then everyone is told.
    fn publish(
        &mut self,
        parts: impl IntoIterator<Item = MapPart>,
        records: impl FnOnce(&mut Self, &ClusterMap) -> Vec<Record>,
    ) {
        let Some(map) = self.map.as_mut().map(Arc::make_mut) else { return };
        map.version += 1;
        parts.into_iter().for_each(|part| self.log.note(part, map.version));
        self.map_changes += 1;
        let Some(map) = self.map.clone() else { return };
        let mut records = records(self, &map);
        for step in self.rules().steps_of_change() {
            match step {
                Step::Record => records.drain(..).for_each(|record| self.outbox.record(record)),
                // Once it is on its way to be recorded, with what else comes of this event.
                Step::Tell if records.is_empty() => self.untold = true,
                Step::Tell => self.tell(None),
            }
        }
    }

    /// A map that is all new to whoever keeps records.
    pub(super) fn record_new_map(&mut self, map: &ClusterMap) {
        self.recorded = self.nodes.iter().map(|node| (node.host().node, node.record())).collect();
        for record in all_records(self.epoch, map, self.nodes.iter()) {
            self.outbox.record(record);
        }
    }

    /// That this coordinator has taken the map over, under its own epoch.
    pub(super) fn record_head(&mut self) {
        if let Some(map) = &self.map {
            self.outbox.record(head_of(self.epoch, map));
        }
    }

    /// The next thing to do, in order.
    pub(super) fn poll_action(&mut self) -> Option<CoordinatorAction> {
        if self.untold {
            self.tell(None);
        }
        let (epoch, map, nodes) = (self.epoch, self.map.as_deref(), &self.nodes);
        let all = || map.map(|map| all_records(epoch, map, nodes.iter())).unwrap_or_default();
        let tolerance = self.config.profile.tolerance();
        self.outbox.poll(epoch, all, |keeping| Processes::of(nodes, keeping, tolerance))
    }

    /// Whether anything that is decided now can be in force, as far as is known of who hears it.
    pub(super) fn may_decide(&self, hears: impl Fn(&HostId) -> bool) -> bool {
        let keeping = self.outbox.keeping();
        self.config.records == RecordKeeping::Stored
            || keeping
                .are_enough(hears, &Processes::of(&self.nodes, keeping, self.config.profile.tolerance()))
    }

    /// Whether the map shows this very process as alive.
    pub(super) fn map_names(&self, host: HostId) -> bool {
        let named = self.map.as_ref().and_then(|map| map.node(host.node));
        named.is_some_and(|info| info.host == host && info.alive)
    }

    /// Whether `host` is gone, by what is known: it has ended, an operator says so or has removed its node, or another process
    /// has its name. Silence says nothing.
    pub(super) fn has_ended(&self, host: HostId) -> bool {
        let is_gone = |node: &NodeState| node.host() != host || node.is_gone();
        let is_named = |map: &ClusterMap| map.node(host.node).is_some_and(|info| info.host == host);
        let unknown = || !self.map().is_some_and(is_named);
        self.nodes.named(host.node).map_or_else(unknown, is_gone)
    }

    /// Whether a process that could host something has had no memory for it lately.
    pub(super) fn has_refused(&self, node: NodeId) -> bool {
        self.hosting.has_refused(node)
    }

    /// All nodes, as the planner looks at them.
    pub(super) fn plan_nodes(&self) -> Vec<PlanNode> {
        let mut former = self.hosting.former_roles();
        let plan_node = |node: &NodeState| PlanNode {
            former: former.remove(&node.host()).unwrap_or_default(),
            ..self.plan_node(node)
        };
        self.nodes.iter().map(plan_node).collect()
    }

    /// Without the roles that it had.
    fn plan_node(&self, node: &NodeState) -> PlanNode {
        let layout = self.map.as_ref().map(|map| &map.layout);
        let (host, own) = (node.host(), &node.info().zone);
        let given = layout.and_then(|layout| layout.zone_of(host.node));
        PlanNode {
            host,
            zone: given.unwrap_or(own).to_owned(),
            draining: layout.is_some_and(|layout| layout.is_draining(host.node)),
            // A node that only a former coordinator has heard may be gone: nothing new goes there.
            can_host: node.is_present() && !self.has_refused(host.node),
            bytes: node.load().member_bytes,
            room: room_for_members(node),
            former: Vec::new(),
        }
    }

    /// Where a data role may go on now: those that are here. Who has not got the room that is wanted cannot host.
    pub(super) fn candidates(&self, wanted: Wanted) -> Vec<PlanNode> {
        let is_here = |node: &&NodeState| node.is_present() && Some(node.host()) != wanted.avoid;
        let candidate = |node| {
            let known = self.plan_node(node);
            PlanNode { can_host: known.can_host && known.room >= wanted.room, ..known }
        };
        self.nodes.iter().filter(is_here).map(candidate).collect()
    }

    /// That views keep their promises, and name nobody who is gone.
    pub(super) fn check_invariants(&self) {
        let index = self.map.as_ref().map(|map| ViewIndex::of(&map.groups)).unwrap_or_default();
        assert_eq!(self.index, index, "what is kept of all views is not what they say");
        let may_live = |host| self.nodes.get(host).is_some_and(|node| !node.is_gone());
        for view in self.views() {
            if let Err(why) = view.check() {
                panic!("{}: {why}", view.group);
            }
            assert!(decide::are_exchanges_mirrored(view), "{}: a parity beside a primary alone", view.group);
            assert!(view.keepers().all(may_live), "{}: somebody is named who is gone", view.group);
        }
    }
}
