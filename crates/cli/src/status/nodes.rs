//! What each node says of itself.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use client::fetch_json;
use cluster::health::{Fullness, Word};
use serde::Serialize;
use server::{
    BoundListener, ClusterStatus, DataRoleStatus, EtcdStatus, LostKeyStatus, MemoryUse, NamespaceStatus,
    NodeStatus, RepairStatus, ScrubStatus,
};
use store::Category;
use types::{ClusterMap, MemberId, NodeId, NodeInfo, RoleStatus};

/// One node's line.
#[derive(Clone, Debug, Serialize)]
pub struct NodeReport {
    /// Its id.
    pub node: NodeId,
    /// Which life of it, as sixteen hexadecimal digits.
    pub incarnation: String,
    /// Whether its lease at the coordinator runs.
    pub alive: bool,
    /// `up`, `draining`, `drained` (nothing is left on it), `silent` (its lease runs by the map, and it does not answer), `lost`,
    /// or `down` (gone, and nothing was left on it).
    pub state: &'static str,
    /// Failure domain.
    pub zone: String,
    /// Where memcached clients connect.
    pub memcached: SocketAddr,
    /// Where those of single namespaces do, if the node answered.
    pub bound: Vec<BoundListener>,
    /// Where its status is.
    pub http: SocketAddr,
    /// Where clients of the native protocol connect, if it has a listener for them.
    pub native: Option<SocketAddr>,
    /// Data roles that it serves.
    pub data_roles: usize,
    /// In-sync parity roles that it hosts.
    pub parity_roles: usize,
    /// Data roles that it may serve now, if the node answered.
    pub serving_roles: Option<usize>,
    /// Seconds since it has heard a coordinator, if the node answered and ever has.
    pub coordinator_age_seconds: Option<f64>,
    /// Whether it has room, if the node answered.
    pub fullness: Option<Fullness>,
    /// After how long a silent node counts as lost, by this one's settings.
    #[serde(skip)]
    pub lease_seconds: Option<f64>,
    /// How new its map is, if it has one.
    #[serde(skip)]
    pub map_rank: Option<MapRank>,
    /// Memory in use, if the node answered.
    pub memory_used_bytes: Option<u64>,
    /// Its cap, if the node answered.
    pub memory_limit_bytes: Option<u64>,
    /// Items that it serves, if the node answered.
    pub items: Option<u64>,
    /// Pages that its stand-ins have not repaired yet, if the node answered.
    pub absent_pages: Option<u64>,
    /// What it rebuilds, if the node answered.
    pub repair: Option<RepairStatus>,
    /// What it compares, if the node answered.
    #[serde(skip)]
    pub scrub: Option<ScrubStatus>,
    /// What its members take, if the node answered.
    #[serde(skip)]
    pub member_bytes: Option<u64>,
    /// Where its resident memory goes, if the node answered.
    #[serde(skip)]
    pub memory: Option<MemoryUse>,
    /// How it sees etcd and the election, if the node answered and there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdStatus>,
    /// What the items of each namespace take that it serves, if the node answered.
    #[serde(skip)]
    pub namespaces: Vec<NamespaceStatus>,
    /// Keys that it serves whose long values are lost, if the node answered.
    #[serde(skip)]
    pub lost_keys: Vec<LostKeyStatus>,
    /// What its data roles hold, if the node answered.
    #[serde(skip)]
    pub roles: Vec<DataRoleStatus>,
}

/// Of two maps of a cluster the greater one is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapRank {
    /// Which cluster.
    pub cluster: u64,
    /// Version of the map.
    pub map: u64,
    /// Sum of the versions of its views.
    pub views: u64,
}

impl NodeReport {
    /// What it has said.
    pub fn word(&self) -> Word {
        let Some(fullness) = self.fullness else { return Word::Silent };
        let serving = self.roles.iter().filter(|role| role.serves);
        let serves: BTreeSet<MemberId> =
            serving.map(|known| MemberId { group: known.group, role: known.role }).collect();
        Word::Answered { serves, fullness }
    }
}

/// What is rebuilt, of one node or of all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairTotal {
    /// Bytes that are done since there was last nothing to do.
    pub done_bytes: u64,
    /// Bytes that are left.
    pub left_bytes: u64,
    /// Bytes a second of late.
    pub bytes_per_second: u64,
    /// Seconds until it is done at this rate; none if nothing moves.
    pub seconds_left: Option<u64>,
}

impl From<RepairStatus> for RepairTotal {
    fn from(status: RepairStatus) -> Self {
        let RepairStatus { done_bytes, left_bytes, bytes_per_second } = status;
        let seconds_left = match left_bytes {
            0 => Some(0),
            // As long as something is left it is not over.
            left => left.checked_div(bytes_per_second).map(|seconds| seconds.max(1)),
        };
        Self { done_bytes, left_bytes, bytes_per_second, seconds_left }
    }
}

/// The repair of all nodes that answered and have something to do.
pub fn repair_of_all(reports: &[NodeReport]) -> RepairTotal {
    let active = reports.iter().filter_map(|report| report.repair).filter(|repair| repair.left_bytes > 0);
    let zero = RepairStatus::default();
    let all = active.fold(zero, |sum, one| RepairStatus {
        done_bytes: sum.done_bytes + one.done_bytes,
        left_bytes: sum.left_bytes + one.left_bytes,
        bytes_per_second: sum.bytes_per_second + one.bytes_per_second,
    });
    all.into()
}

/// Asks every node of the map, all at once. One that counts as lost may answer all the same. What `own` has said already counts
/// where it cannot be asked at the address that it tells others: from behind a network that translates addresses, often only
/// others can.
pub async fn ask_all(map: &ClusterMap, own: Option<&NodeStatus>, limit: Duration) -> Vec<NodeReport> {
    let ask = |info: &NodeInfo| {
        let (http, host) = (info.http, info.host);
        tokio::spawn(async move {
            let answer = fetch_json::<NodeStatus>(http, "/status", limit).await.ok();
            // Whoever else listens there now says nothing of this process.
            answer.filter(|status| status.node == host)
        })
    };
    let asked: Vec<_> = map.nodes.iter().map(ask).collect();
    let mut reports = Vec::new();
    for (info, answer) in map.nodes.iter().zip(asked) {
        let answer = answer.await.ok().flatten();
        let own = own.filter(|own| own.node == info.host);
        // Who was asked first has answered, also where the address that it tells others cannot be reached from here.
        reports.push(report(map, info, answer.as_ref().or(own)));
    }
    reports
}

fn report(map: &ClusterMap, info: &NodeInfo, answer: Option<&NodeStatus>) -> NodeReport {
    let data = map.groups.iter().flat_map(|group| &group.data);
    let serves = |role: &&types::DataRole| role.primary == Some(info.host) && role.status != RoleStatus::Lost;
    let parities = map.groups.iter().flat_map(|group| group.in_sync());
    NodeReport {
        node: info.host.node,
        incarnation: format!("{:016x}", info.host.incarnation.0),
        alive: info.alive,
        state: state(map, info, answer.is_some()),
        zone: info.zone.clone(),
        memcached: info.memcached,
        bound: answer.map(|status| status.bound.clone()).unwrap_or_default(),
        http: info.http,
        native: info.native,
        data_roles: data.filter(serves).count(),
        parity_roles: parities.filter(|(_, host)| *host == info.host).count(),
        serving_roles: answer.map(|status| status.data_roles.iter().filter(|role| role.serves).count()),
        coordinator_age_seconds: answer.and_then(|status| status.coordinator_age_seconds),
        fullness: answer.map(|status| status.fullness),
        lease_seconds: answer.map(|status| status.lease_seconds),
        map_rank: answer.and_then(|status| status.cluster.as_ref()).map(rank),
        memory_used_bytes: answer.map(|status| status.memory.used_bytes),
        memory_limit_bytes: answer.map(|status| status.memory.limit_bytes),
        items: answer.map(|status| status.items),
        absent_pages: answer.map(|status| status.absent_pages),
        repair: answer.map(|status| status.repair),
        member_bytes: answer.map(member_bytes),
        scrub: answer.map(|status| status.scrub.clone()),
        memory: answer.map(|status| status.memory.resident),
        etcd: answer.and_then(|status| status.etcd.clone()),
        namespaces: answer.map(|status| status.namespaces.clone()).unwrap_or_default(),
        lost_keys: answer.map(|status| status.lost_keys.clone()).unwrap_or_default(),
        roles: answer.map(|status| status.data_roles.clone()).unwrap_or_default(),
    }
}

fn rank(known: &ClusterStatus) -> MapRank {
    let views = known.groups.iter().map(|group| group.view.0).sum();
    MapRank { cluster: known.cluster, map: known.map_version, views }
}

/// Memory of areas, parities, indexes and chunks.
fn member_bytes(status: &NodeStatus) -> u64 {
    let members = [Category::Area, Category::Parity, Category::Index, Category::Chunks].map(Category::name);
    members.iter().filter_map(|name| status.memory.by_category.get(*name)).sum()
}

fn state(map: &ClusterMap, info: &NodeInfo, answers: bool) -> &'static str {
    let node = info.host.node;
    let is_empty = map.roles_left_on(node) == 0;
    match (info.alive, map.layout.is_draining(node)) {
        (true, _) if !answers => "silent",
        (true, false) => "up",
        (true, true) if is_empty => "drained",
        (true, true) => "draining",
        (false, true) if is_empty => "down",
        (false, _) => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_what_is_left_at_the_present_rate() {
        let total = |done_bytes, left_bytes, bytes_per_second| {
            RepairTotal::from(RepairStatus { done_bytes, left_bytes, bytes_per_second }).seconds_left
        };
        assert_eq!(total(0, 1000, 100), Some(10));
        assert_eq!((total(5, 10, 100), total(5, 10, 0), total(5, 0, 0)), (Some(1), None, Some(0)));
    }
}
