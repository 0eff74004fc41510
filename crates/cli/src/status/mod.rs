//! `gestalt status`: what the map says, what the nodes say, and an exit code for scripts.

mod elected;
mod health;
mod memory;
pub mod nodes;
pub mod render;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use client::Router;
use cluster::{ClusterMap, GroupId, MemberId, NodeId, Profile, RepairSettings};
use serde::Serialize;

use self::elected::Elected;
use self::health::{Assessment, Health, RoleReport, roles_of};
use self::memory::Memory;
use self::nodes::{NodeReport, RepairTotal};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::units::address;

const LIMIT: Duration = Duration::from_secs(2);

const EXAMPLE: &str = "\
Examples:
  gestalt status
  gestalt status --http 127.0.0.1:9181 -o json
  gestalt status --memory

Exit codes: 0 as protected as asked for, 2 unreachable, 3 degraded, 4 data at risk or lost.";

/// Health, nodes, groups and roles, protection asked for and achieved, memory, lost slot ranges.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct StatusArgs {
    /// HTTP address of the coordinator or of any node
    #[arg(long, env = "GESTALT_HTTP", default_value = "127.0.0.1:9180", value_parser = address)]
    pub http: SocketAddr,
    /// Where the nodes' resident memory goes, instead
    #[arg(long)]
    pub memory: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    assessment: Assessment,
    profile: Profile,
    cluster: u64,
    map_version: u64,
    layout_version: u64,
    /// Groups by how many node losses they survive.
    groups_by_margin: BTreeMap<usize, usize>,
    /// Bytes of items in groups that survive no further loss, as far as their nodes answer.
    bytes_at_risk: u64,
    /// Data roles in such groups whose nodes do not answer.
    roles_at_risk_unknown: usize,
    draining_nodes: Vec<NodeId>,
    /// If the coordinator is elected over etcd: how that goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    coordinator: Option<Elected>,
    repair: RepairReport,
    nodes: Vec<NodeReport>,
    groups: Vec<GroupReport>,
}

/// Settings and progress of repair.
#[derive(Clone, Debug, Serialize)]
struct RepairReport {
    #[serde(flatten)]
    settings: RepairSettings,
    progress: RepairTotal,
}

#[derive(Clone, Debug, Serialize)]
struct GroupReport {
    group: GroupId,
    view: u64,
    losses_survived: usize,
    roles: Vec<RoleReport>,
}

/// Asks, prints, and ends with the exit code of the cluster's health.
///
/// # Errors
/// `Unreachable`, `Degraded` or `AtRisk`.
pub async fn run(args: &StatusArgs) -> Result<(), Exit> {
    let router = Router::fetch(&[args.http], LIMIT).await.map_err(|error| {
        Exit::Unreachable(format!(
            "{error}: start a cluster with `gestalt local`, or give another node's --http"
        ))
    })?;
    let status = gather(router.map()).await;
    match (args.output, args.memory) {
        (Format::Table, false) => output::print(&render::text(&status)),
        (Format::Json, false) => output::print_json(&status),
        (Format::Table, true) => output::print(&Memory::of(&status.nodes).text()),
        (Format::Json, true) => output::print_json(&Memory::of(&status.nodes)),
    }
    verdict(&status.assessment)
}

async fn gather(map: &ClusterMap) -> Status {
    let group = |view: &cluster::GroupView| GroupReport {
        group: view.group,
        view: view.version.0,
        losses_survived: view.losses_survived(),
        roles: roles_of(view),
    };
    let nodes = nodes::ask_all(map, LIMIT).await;
    let mut groups_by_margin = BTreeMap::new();
    for view in &map.groups {
        *groups_by_margin.entry(view.losses_survived()).or_insert(0) += 1;
    }
    let (bytes_at_risk, roles_at_risk_unknown) = at_risk(map, &nodes);
    Status {
        layout_version: map.layout.version.0,
        groups_by_margin,
        bytes_at_risk,
        roles_at_risk_unknown,
        draining_nodes: map.layout.draining().collect(),
        coordinator: Elected::of(&nodes),
        repair: RepairReport { settings: map.layout.repair, progress: nodes::repair_of_all(&nodes) },
        assessment: Assessment::of(map),
        profile: map.profile,
        cluster: map.cluster.0,
        map_version: map.version,
        nodes,
        groups: map.groups.iter().map(group).collect(),
    }
}

/// Bytes of items in groups that survive no further loss, and data roles there of which nobody tells.
fn at_risk(map: &ClusterMap, nodes: &[NodeReport]) -> (u64, usize) {
    let held: BTreeMap<MemberId, u64> = nodes
        .iter()
        .flat_map(|node| &node.roles)
        .map(|known| (MemberId { group: known.group, role: known.role }, known.item_bytes))
        .collect();
    let (mut bytes, mut unknown) = (0, 0);
    for view in map.groups.iter().filter(|view| view.losses_survived() == 0) {
        let living = view.data_roles().filter(|(_, known)| !known.status.is_lost());
        for (role, _) in living {
            match held.get(&MemberId { group: view.group, role }) {
                Some(held) => bytes += held,
                None => unknown += 1,
            }
        }
    }
    (bytes, unknown)
}

fn verdict(found: &Assessment) -> Result<(), Exit> {
    let (asked, achieved) = (found.protection_asked, found.protection_achieved);
    match found.health {
        Health::Ok => Ok(()),
        Health::Degraded => Err(Exit::Degraded(format!(
            "degraded: {achieved} more node losses are survived, {asked} were asked for: replace the lost nodes"
        ))),
        Health::AtRisk => Err(Exit::AtRisk(
            "at risk: the next node loss may cost data: wait for the repair to end, and replace the lost nodes".into(),
        )),
        Health::Lost => Err(Exit::AtRisk(format!(
            "data is lost in {} slot ranges: requests for them get SERVER_ERROR until `gestalt lost accept` gives them up",
            found.lost_slots.len()
        ))),
    }
}
