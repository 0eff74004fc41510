//! What each node says of itself.

use std::net::SocketAddr;
use std::time::Duration;

use client::fetch_json;
use cluster::{ClusterMap, NodeId, NodeInfo, RoleStatus};
use serde::Serialize;
use server::NodeStatus;

/// One node's line.
#[derive(Clone, Debug, Serialize)]
pub struct NodeReport {
    /// Its id.
    pub node: NodeId,
    /// Which life of it, as sixteen hexadecimal digits.
    pub incarnation: String,
    /// Whether its lease at the coordinator runs.
    pub alive: bool,
    /// Failure domain.
    pub zone: String,
    /// Where memcached clients connect.
    pub memcached: SocketAddr,
    /// Where its status is.
    pub http: SocketAddr,
    /// Data roles that it serves.
    pub data_roles: usize,
    /// In-sync parity roles that it hosts.
    pub parity_roles: usize,
    /// Memory in use, if the node answered.
    pub memory_used_bytes: Option<u64>,
    /// Its cap, if the node answered.
    pub memory_limit_bytes: Option<u64>,
    /// Items that it serves, if the node answered.
    pub items: Option<u64>,
    /// Pages that its stand-ins have not repaired yet, if the node answered.
    pub absent_pages: Option<u64>,
}

/// Asks every live node of the map, all at once.
pub async fn ask_all(map: &ClusterMap, limit: Duration) -> Vec<NodeReport> {
    let ask = |info: &NodeInfo| {
        let (http, alive) = (info.http, info.alive);
        tokio::spawn(async move {
            if alive { fetch_json::<NodeStatus>(http, "/status", limit).await.ok() } else { None }
        })
    };
    let asked: Vec<_> = map.nodes.iter().map(ask).collect();
    let mut reports = Vec::new();
    for (info, answer) in map.nodes.iter().zip(asked) {
        let answer = answer.await.ok().flatten();
        reports.push(report(map, info, answer.as_ref()));
    }
    reports
}

fn report(map: &ClusterMap, info: &NodeInfo, answer: Option<&NodeStatus>) -> NodeReport {
    let data = map.groups.iter().flat_map(|group| &group.data);
    let serves =
        |role: &&cluster::DataRole| role.primary == Some(info.host) && role.status != RoleStatus::Lost;
    let parities = map.groups.iter().flat_map(|group| group.in_sync());
    NodeReport {
        node: info.host.node,
        incarnation: format!("{:016x}", info.host.incarnation.0),
        alive: info.alive,
        zone: info.zone.clone(),
        memcached: info.memcached,
        http: info.http,
        data_roles: data.filter(serves).count(),
        parity_roles: parities.filter(|(_, host)| *host == info.host).count(),
        memory_used_bytes: answer.map(|status| status.memory.used_bytes),
        memory_limit_bytes: answer.map(|status| status.memory.limit_bytes),
        items: answer.map(|status| status.items),
        absent_pages: answer.map(|status| status.absent_pages),
    }
}
