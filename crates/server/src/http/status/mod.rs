//! What `/status` says, of a node and of a coordinator: plain data, made from snapshots.

mod coding;
mod coordinator;
mod wrong;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cluster::health::{Assessment, Fullness};
use cluster::{Codes, PoolProtection, Protection, worst_off};
use proto::{LostKey, NamespaceUse, RoleBytes, ScrubFinding};
use serde::{Deserialize, Serialize};
use store::Category;
use types::{
    Catalog, ClusterMap, DataRole, Forming, GroupId, GroupView, HostId, Layout, Learner, MemberId,
    NamespaceId, NodeId, PoolSlots, RoleIndex, RoleStatus, ScrubProgress, Term, ViewVersion,
};

use crate::BoundListener;
use crate::EtcdStatus;
use crate::coordination::elected::Election;
use crate::node::knowledge;
use crate::node::memory::MemoryUse;
use crate::node::repair_meter::Reading;
use crate::node::shared::Shared;
use crate::node::snapshot::{LinkSnapshot, WorkerSnapshot};

pub use coding::CodingStatus;
pub use coordinator::{CoordinatorReport, GatheredReport, HeardNode};
pub use wrong::{WrongKeyStatus, WrongStripeStatus};

/// A node, as it sees itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Which process.
    pub node: HostId,
    /// Version of the software.
    pub software: String,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Whether it serves.
    pub ready: bool,
    /// Why not.
    pub not_ready: Vec<String>,
    /// What does not keep it from serving, and should be known.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Whether the coordinator answers.
    pub coordinator_connected: bool,
    /// Seconds since it was last heard; none = never. Everything that comes from it may be so old.
    #[serde(default)]
    pub coordinator_age_seconds: Option<f64>,
    /// After how long a silent node counts as lost.
    #[serde(default)]
    pub lease_seconds: f64,
    /// Whether its primaries have room for what clients write.
    #[serde(default)]
    pub fullness: Fullness,
    /// Who is here and who is missing, while the cluster has not formed.
    #[serde(default)]
    pub forming: Option<Forming>,
    /// How well the cluster is, as far as this node can tell; none before it has heard of it.
    #[serde(default)]
    pub assessment: Option<Assessment>,
    /// If the coordinator is elected over etcd: how that goes.
    #[serde(default)]
    pub etcd: Option<EtcdStatus>,
    /// Where clients of single namespaces connect.
    #[serde(default)]
    pub bound: Vec<BoundListener>,
    /// Who computes the codes of values in chunks, if not the processor alone.
    #[serde(default)]
    pub coding: Option<CodingStatus>,
    /// Workers.
    pub workers: u16,
    /// Client connections.
    pub connections: u64,
    /// Items of which this node is the primary.
    pub items: u64,
    /// Bytes of these items.
    pub item_bytes: u64,
    /// Pages that this node's stand-ins have not repaired yet.
    pub absent_pages: u64,
    /// What it rebuilds.
    #[serde(default)]
    pub repair: RepairStatus,
    /// What it compares.
    #[serde(default)]
    pub scrub: ScrubStatus,
    /// The data roles that it serves.
    #[serde(default)]
    pub data_roles: Vec<DataRoleStatus>,
    /// What the items of each namespace take that it serves.
    #[serde(default)]
    pub namespaces: Vec<NamespaceStatus>,
    /// Keys that it serves whose values in chunks are lost, as far as holders and readers have found; some hundreds at most.
    #[serde(default)]
    pub lost_keys: Vec<LostKeyStatus>,
    /// Records that not every parity has acknowledged.
    pub uncommitted_records: u64,
    /// Requests without an answer.
    pub open_requests: u64,
    /// What memory is used for.
    pub memory: MemoryStatus,
    /// Links to other nodes, by worker.
    pub links: Vec<LinkStatus>,
    /// The cluster, as this node knows it; none before it has heard of it.
    pub cluster: Option<ClusterStatus>,
}

/// What a namespace takes at a node: its items at primaries, those that were flushed or removed and are not swept yet included, and its
/// chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceStatus {
    /// Which.
    pub namespace: NamespaceId,
    /// Items.
    pub items: u64,
    /// Bytes of their slots; parities come on top.
    pub slot_bytes: u64,
    /// Items among them that are still to go to the pool that it moves to.
    #[serde(default)]
    pub leaving_items: u64,
    /// Bytes of their slots.
    #[serde(default)]
    pub leaving_slot_bytes: u64,
    /// Bytes of the pages of its chunks, of data and parities; a moving role's count at both ends.
    #[serde(default)]
    pub chunk_bytes: u64,
}

/// A key whose value lies in chunks of which too few are left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LostKeyStatus {
    /// Whose.
    pub namespace: NamespaceId,
    /// What its clients call it; bytes that are no printable ASCII as `\xNN`.
    pub key: String,
    /// Bytes of the value.
    pub value_bytes: u64,
}

fn lost_keys(workers: &[WorkerSnapshot]) -> Vec<LostKeyStatus> {
    let status = |lost: &LostKey| LostKeyStatus {
        namespace: lost.key.namespace(),
        key: lost.key.client().escape_ascii().to_string(),
        value_bytes: lost.len,
    };
    let mut all: Vec<LostKeyStatus> =
        workers.iter().flat_map(|worker| &worker.lost_keys).map(status).collect();
    all.sort();
    all
}

/// Of all workers of a node.
pub(crate) fn namespaces(workers: &[WorkerSnapshot]) -> Vec<NamespaceStatus> {
    let mut sums: BTreeMap<NamespaceId, NamespaceUse> = BTreeMap::new();
    for (namespace, known) in workers.iter().flat_map(|worker| &worker.namespaces) {
        sums.entry(*namespace).or_default().add(*known);
    }
    let status = |(namespace, NamespaceUse { items, leaving, chunk_bytes })| NamespaceStatus {
        namespace,
        items: items.items,
        slot_bytes: items.bytes,
        leaving_items: leaving.items,
        leaving_slot_bytes: leaving.bytes,
        chunk_bytes,
    };
    sums.into_iter().map(status).collect()
}

/// What a node rebuilds: pages of its stand-ins, and the state that it teaches to new parities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairStatus {
    /// Bytes that are done since there was last nothing to do.
    pub done_bytes: u64,
    /// Bytes that are left.
    pub left_bytes: u64,
    /// Bytes a second of late.
    pub bytes_per_second: u64,
}

/// What a node compares, and what it has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStatus {
    /// How far it has come.
    #[serde(flatten)]
    pub progress: ScrubProgress,
    /// Bytes of parity that it compares in a second, of late.
    pub bytes_per_second: u64,
    /// What it has found; each parity remembers the first 16.
    pub findings: Vec<FindingStatus>,
    /// Stripes of long values that it has found to be no code words; each worker remembers the first 64.
    #[serde(default)]
    pub wrong_stripes: Vec<WrongStripeStatus>,
    /// Keys that it serves with such stripes, whoever has found them.
    #[serde(default)]
    pub wrong_keys: Vec<WrongKeyStatus>,
}

/// A place at which a parity and its data do not agree, or items are wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingStatus {
    /// Which group.
    pub group: GroupId,
    /// The parity that was compared.
    pub parity: RoleIndex,
    /// The first page.
    pub first_page: u32,
    /// How many pages.
    pub pages: u32,
    /// Whether the parity is not the sum of the data.
    pub differs: bool,
    /// Whether the parity has been corrected.
    pub corrected: bool,
    /// Items there that are wrong by their checksums.
    pub wrong_items: Vec<WrongItem>,
}

/// An item whose checksum is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WrongItem {
    /// The data role that has it.
    pub role: RoleIndex,
    /// First byte of its slot in the role's area.
    pub byte: u64,
}

impl ScrubStatus {
    fn of(shared: &Shared, snapshots: &[WorkerSnapshot]) -> Self {
        let (progress, bytes_per_second) = shared.scrub();
        let findings = snapshots.iter().flat_map(|worker| &worker.scrub_findings).map(FindingStatus::of);
        let stripes = snapshots.iter().flat_map(|worker| &worker.wrong_stripes);
        let keys = snapshots.iter().flat_map(|worker| &worker.wrong_keys);
        Self {
            progress,
            bytes_per_second,
            findings: findings.collect(),
            wrong_stripes: stripes.map(WrongStripeStatus::of).collect(),
            wrong_keys: keys.map(WrongKeyStatus::of).collect(),
        }
    }
}

impl FindingStatus {
    fn of(found: &ScrubFinding) -> Self {
        let MemberId { group, role: parity } = found.parity;
        let item =
            |(role, addr): &(RoleIndex, types::Addr)| WrongItem { role: *role, byte: addr.byte() as u64 };
        Self {
            group,
            parity,
            first_page: found.pages.first,
            pages: found.pages.count,
            differs: found.differs,
            corrected: found.corrected,
            wrong_items: found.items.iter().map(item).collect(),
        }
    }
}

/// What a data role holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRoleStatus {
    /// Which group.
    pub group: GroupId,
    /// Which role of it.
    pub role: RoleIndex,
    /// Bytes of its items.
    pub item_bytes: u64,
    /// Pages that are still to be repaired.
    pub absent_pages: u64,
    /// Whether it answers clients: its read lease runs.
    #[serde(default)]
    pub serves: bool,
}

/// What memory is used for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryStatus {
    /// The cap.
    pub limit_bytes: u64,
    /// All of it.
    pub used_bytes: u64,
    /// By category.
    pub by_category: BTreeMap<String, u64>,
    /// Where the resident memory goes.
    #[serde(default)]
    pub resident: MemoryUse,
}

/// A link that is up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Who is on the other side.
    pub peer: HostId,
    /// Which worker's.
    pub shard: u16,
    /// Bytes that it has not taken yet.
    pub unsent_bytes: u64,
}

/// A cluster, from its map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// Its identity.
    pub cluster: u64,
    /// Version of the map.
    pub map_version: u64,
    /// The protection of the default pool.
    pub profile: String,
    /// Losses that every group of the worst-off pool is to survive.
    pub protection_asked: usize,
    /// Further member losses that every group of that pool would survive now.
    pub protection_achieved: usize,
    /// The same of every pool.
    pub pools: Vec<PoolProtection>,
    /// The pools and namespaces.
    pub catalog: Catalog,
    /// Hash slots whose items are lost.
    pub lost_slots: Vec<PoolSlots>,
    /// Nodes whose lease has run out.
    pub dead_nodes: Vec<NodeId>,
    /// What operators have asked for.
    pub layout: Layout,
    /// All groups.
    pub groups: Vec<GroupStatus>,
}

/// A group, from its view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Which.
    pub group: GroupId,
    /// Version of its view.
    pub view: ViewVersion,
    /// Further member losses that it would survive.
    pub margin: usize,
    /// Further node losses that it would survive: a node may host two of its members.
    pub losses_survived: usize,
    /// Its members.
    pub roles: Vec<RoleLine>,
}

/// A role, from its group's view.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoleLine {
    /// Which.
    pub role: RoleIndex,
    /// `data` or `parity`.
    pub kind: String,
    /// Who hosts it.
    pub host: Option<HostId>,
    /// Where it stands.
    pub status: String,
    /// The term of a data role.
    pub term: Option<Term>,
}

impl NodeStatus {
    pub(crate) fn of(shared: &Shared, snapshots: &[WorkerSnapshot]) -> Self {
        let map = shared.map();
        let not_ready = reasons(shared, map.as_deref(), snapshots);
        let age = knowledge::age(shared);
        let sum = |of: fn(&WorkerSnapshot) -> u64| snapshots.iter().map(of).sum();
        Self {
            node: shared.host,
            software: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: shared.clock.uptime_seconds(),
            ready: not_ready.is_empty(),
            not_ready,
            warnings: map
                .as_deref()
                .map(|map| knowledge::warnings(shared, map, snapshots))
                .unwrap_or_default(),
            coordinator_age_seconds: age.coordinator_us.map(knowledge::seconds),
            lease_seconds: knowledge::seconds(age.lease_us),
            fullness: knowledge::fullness(shared),
            forming: shared.forming(),
            assessment: map.as_deref().map(|map| knowledge::assess(shared, map, snapshots)),
            coordinator_connected: shared.coordinator_connected.load(Ordering::Relaxed),
            etcd: shared.election.as_ref().map(Election::status),
            bound: shared.config.bound.clone(),
            coding: CodingStatus::of(shared),
            workers: shared.config.workers,
            connections: shared.places.taken() as u64,
            items: sum(|worker| worker.host.items),
            item_bytes: sum(|worker| worker.host.item_bytes),
            absent_pages: sum(|worker| worker.host.absent_pages),
            repair: RepairStatus::of(shared),
            scrub: ScrubStatus::of(shared, snapshots),
            namespaces: namespaces(snapshots),
            lost_keys: lost_keys(snapshots),
            data_roles: snapshots.iter().flat_map(|worker| &worker.roles).map(data_role).collect(),
            uncommitted_records: sum(|worker| worker.host.uncommitted_records),
            open_requests: sum(|worker| worker.open_requests as u64),
            memory: MemoryStatus::of(shared, snapshots),
            links: snapshots.iter().flat_map(links_of).collect(),
            cluster: map.as_deref().map(ClusterStatus::of),
        }
    }
}

fn data_role(known: &RoleBytes) -> DataRoleStatus {
    let RoleBytes { member: MemberId { group, role }, item_bytes, absent_pages, serves } = *known;
    DataRoleStatus { group, role, item_bytes, absent_pages, serves }
}

impl RepairStatus {
    fn of(shared: &Shared) -> Self {
        let Reading { done_bytes, left_bytes, bytes_per_second } = shared.repair();
        Self { done_bytes, left_bytes, bytes_per_second }
    }
}

fn links_of(snapshot: &WorkerSnapshot) -> impl Iterator<Item = LinkStatus> {
    let shard = snapshot.shard;
    let line = move |link: &LinkSnapshot| LinkStatus {
        peer: link.peer,
        shard,
        unsent_bytes: link.unsent_bytes as u64,
    };
    snapshot.links.iter().map(line)
}

impl MemoryStatus {
    fn of(shared: &Shared, snapshots: &[WorkerSnapshot]) -> Self {
        let line = |category: Category| (category.name().to_owned(), shared.budget.used(category));
        Self {
            limit_bytes: shared.budget.limit(),
            used_bytes: shared.budget.total_used(),
            by_category: Category::ALL.into_iter().map(line).collect(),
            resident: MemoryUse::of(snapshots),
        }
    }
}

/// Why a node does not serve as it should; empty if it does.
fn reasons(shared: &Shared, map: Option<&ClusterMap>, snapshots: &[WorkerSnapshot]) -> Vec<String> {
    let Some(map) = map else {
        if shared.waits_for_place.load(Ordering::Relaxed) {
            return vec![format!("{} is here as another process, and its lease runs", shared.host.node)];
        }
        if let Some(forming) = shared.forming() {
            return vec![format!("the cluster has not formed yet: {forming}")];
        }
        return vec!["no map yet: the cluster has not formed, or the coordinator is away".to_owned()];
    };
    let mut reasons = Vec::new();
    if snapshots.len() < shared.workers.len() {
        reasons.push(format!(
            "{} of {} workers do not answer",
            shared.workers.len() - snapshots.len(),
            shared.workers.len()
        ));
    }
    if shared.workers.iter().any(|worker| worker.map_version.load(Ordering::Relaxed) == 0) {
        reasons.push("a worker has no map yet".to_owned());
    }
    if map.node(shared.host.node).is_none_or(|info| info.host != shared.host) {
        reasons.push("the map does not have this process".to_owned());
    }
    reasons.extend(knowledge::cut_off(shared, map, snapshots));
    if !knowledge::age(shared).is_fresh() {
        // Who should be linked to is not known any more.
        return reasons;
    }
    for snapshot in snapshots {
        let is_linked = |host: HostId| snapshot.links.iter().any(|link| link.peer == host);
        let others = map.nodes.iter().filter(|info| info.alive && info.host.node != shared.host.node);
        for info in others.filter(|info| !is_linked(info.host)) {
            reasons.push(format!("worker {} has no link to {}", snapshot.shard, info.host.node));
        }
    }
    reasons
}

impl ClusterStatus {
    /// From a map.
    #[must_use]
    pub fn of(map: &ClusterMap) -> Self {
        let codes = Codes::of(&map.catalog);
        let pools = codes.protections(map, &[]);
        let (asked, achieved) = worst_off(&pools).map_or((0, 0), |worst| (worst.asked, worst.achieved));
        let code = |view: &GroupView| codes.of_group(view.group).map(|code| group_status(code, view));
        let dead = map.nodes.iter().filter(|info| !info.alive).map(|info| info.host.node);
        Self {
            cluster: map.cluster.0,
            map_version: map.version,
            profile: map.default_pool().profile.to_string(),
            protection_asked: asked,
            protection_achieved: achieved,
            pools,
            catalog: map.catalog.clone(),
            lost_slots: map.lost_slots(),
            dead_nodes: dead.collect(),
            layout: map.layout.clone(),
            groups: map.groups.iter().filter_map(code).collect(),
        }
    }
}

fn group_status(protection: &Protection, view: &GroupView) -> GroupStatus {
    let data = view.data_roles().map(|(role, known)| data_line(role, known));
    let parity = (view.k()..view.k() + view.m()).map(|role| parity_line(view, RoleIndex(role as u8)));
    GroupStatus {
        group: view.group,
        view: view.version,
        margin: view.spare_parities(),
        losses_survived: protection.losses_survived(view),
        roles: data
            .chain(parity)
            .chain(view.learners.iter().map(|learner| learner_line(view, learner)))
            .collect(),
    }
}

fn data_line(role: RoleIndex, known: &DataRole) -> RoleLine {
    let status = match known.status {
        RoleStatus::Full => "full",
        RoleStatus::Fenced => "fenced",
        RoleStatus::Orphan(_) => "orphan",
        RoleStatus::Rebuilding { .. } => "rebuilding",
        RoleStatus::Lost => "lost",
        RoleStatus::Accepted => "accepted",
    };
    RoleLine {
        role,
        kind: "data".to_owned(),
        host: known.primary,
        status: status.to_owned(),
        term: Some(known.term),
    }
}

fn parity_line(view: &GroupView, role: RoleIndex) -> RoleLine {
    let host = view.parity_host(role);
    let status = if host.is_some() { "in_sync" } else { "absent" };
    RoleLine { role, kind: "parity".to_owned(), host, status: status.to_owned(), term: None }
}

/// A member that is being built: for a parity, or as the mirror of a data role that moves.
fn learner_line(view: &GroupView, learner: &Learner) -> RoleLine {
    let kind = if usize::from(learner.role.0) < view.k() { "mirror" } else { "parity" };
    let status = if learner.whole { "whole" } else { "learner" };
    RoleLine {
        role: learner.role,
        kind: kind.to_owned(),
        host: Some(learner.host),
        status: status.to_owned(),
        term: None,
    }
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, Incarnation, Profile};

    use super::*;

    #[test]
    fn a_cluster_names_what_is_lost_and_how_safe_the_rest_is() {
        let hosts: Vec<_> =
            (0..5).map(|node| HostId { node: NodeId(node), incarnation: Incarnation(1) }).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 5).unwrap();
        let (layout, nodes) = (Default::default(), vec![]);
        let mut map = ClusterMap {
            cluster: ClusterId(1),
            version: 3,
            catalog: Catalog::first(profile, 5),
            shards: 1,
            layout,
            nodes,
            groups,
        };
        let status = ClusterStatus::of(&map);
        assert_eq!((status.protection_asked, status.protection_achieved), (2, 2));
        assert!(status.lost_slots.is_empty());
        map.groups[1].data[2].status = RoleStatus::Lost;
        map.groups[1].parity = vec![None, None];
        let status = ClusterStatus::of(&map);
        assert_eq!(status.protection_achieved, 0);
        let lost = MemberId { group: GroupId(1), role: RoleIndex(2) };
        assert_eq!(status.lost_slots, map.slots_of_all([lost].into_iter()));
        assert_eq!(
            (status.groups[1].roles[2].status.as_str(), status.groups[1].roles[3].status.as_str()),
            ("lost", "absent")
        );
    }
}
