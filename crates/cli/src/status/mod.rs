//! `gestalt status`: what the map says, what the nodes say, and an exit code for scripts.

mod health;
mod nodes;
mod render;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use client::Router;
use cluster::{ClusterMap, GroupId, Profile};
use serde::Serialize;

use self::health::{Assessment, Health, RoleReport, losses_survived, roles_of};
use self::nodes::NodeReport;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::units::address;

const LIMIT: Duration = Duration::from_secs(2);

const EXAMPLE: &str = "\
Examples:
  gestalt status
  gestalt status --http 127.0.0.1:9181 -o json

Exit codes: 0 as protected as asked for, 2 unreachable, 3 degraded, 4 data at risk or lost.";

/// Health, nodes, groups and roles, protection asked for and achieved, memory, lost slot ranges.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct StatusArgs {
    /// HTTP address of the coordinator or of any node
    #[arg(long, env = "GESTALT_HTTP", default_value = "127.0.0.1:9180", value_parser = address)]
    pub http: SocketAddr,
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
    nodes: Vec<NodeReport>,
    groups: Vec<GroupReport>,
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
    match args.output {
        Format::Table => output::print(&render::text(&status)),
        Format::Json => output::print_json(&status),
    }
    verdict(&status.assessment)
}

async fn gather(map: &ClusterMap) -> Status {
    let group = |view: &cluster::GroupView| GroupReport {
        group: view.group,
        view: view.version.0,
        losses_survived: losses_survived(view),
        roles: roles_of(view),
    };
    Status {
        assessment: Assessment::of(map),
        profile: map.profile,
        cluster: map.cluster.0,
        map_version: map.version,
        nodes: nodes::ask_all(map, LIMIT).await,
        groups: map.groups.iter().map(group).collect(),
    }
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
            "data is lost in {} slot ranges: requests for them get SERVER_ERROR until the cluster is started anew",
            found.lost_slots.len()
        ))),
    }
}
