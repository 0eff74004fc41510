//! The embedded coordinator: inside `gestalt local`, or as a process of its own, `gestalt coordinator`.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use proto::{CoordinatorConfig, RecordKeeping, Rules};
use server::{CoordinatorHandle, CoordinatorServer, CoordinatorServerConfig, CoordinatorStart, ProcessOrder};
use tokio::sync::mpsc;
use types::{ClusterId, Forming, NodeId, Profile};

use crate::advertise::pages_beside;
use crate::clients::timing;
use crate::endpoint::COORDINATOR_HTTP_PORT;
use crate::exit::Exit;
use crate::local::Plan;
use crate::log;
use crate::output;
use crate::process::{die_with, told_to_stop};
use crate::settings::{DEFAULT_LEASE, OnLoss, check_lease};
use crate::units::{address, duration};

const EXAMPLE: &str = "\
Example, a cluster of three machines:
  gestalt coordinator --listen 10.0.0.1:9179 --nodes 3 --profile 'rs(2+1)' --workers 4
  gestalt serve --node 0 --coordinator embedded://10.0.0.1:9179 --workers 4 \\
      --memcached 10.0.0.1:11211 --peer 10.0.0.1:9178
  and so on for nodes 1 and 2, on their machines

What it decides is kept by the nodes. When it ends, reads and writes go on; start it again with the same flags, and it goes on
from what its nodes keep: as soon as all that were alive have answered, or after two leases when most of them have.";

/// The coordinator of a cluster whose nodes are started with `gestalt serve`.
///
/// Prints `ready` once nodes may connect. The cluster forms when as many nodes as --nodes says have done so.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct CoordinatorArgs {
    /// Where nodes connect: their --coordinator embedded://HOST:PORT
    #[arg(long, env = "GESTALT_LISTEN", default_value = "127.0.0.1:9179", value_parser = address)]
    listen: SocketAddr,
    /// Where status and metrics are [default: port 9180 of all addresses, and of the loopback alone if --listen is]
    #[arg(long, env = "GESTALT_HTTP", value_parser = address)]
    http: Option<SocketAddr>,
    /// How many nodes form the cluster
    #[arg(long, env = "GESTALT_NODES", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    nodes: u16,
    /// Protection: rs(k+m) survives the loss of any m nodes and costs (k+m)/k of the data's memory; rep(n) keeps n copies; lrc(k,l,r) repairs one loss from a part of the group and survives any r+1; none survives none
    #[arg(long, env = "GESTALT_PROFILE", default_value = "rs(3+2)")]
    profile: Profile,
    /// Worker threads of each node, the same number as their --workers
    #[arg(long, env = "GESTALT_WORKERS", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Coding groups in all; so many that a node has 40 roles, or 8 for each worker, if not given
    #[arg(long, env = "GESTALT_GROUPS", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    groups: Option<u32>,
    /// Silence after which a node counts as lost, the same as the nodes' [default: 1s]
    #[arg(long, env = "GESTALT_LEASE", value_parser = duration)]
    lease: Option<Duration>,
    /// Form a new cluster, and do not ask whether nodes serve one already
    #[arg(long, env = "GESTALT_NEW_CLUSTER")]
    new_cluster: bool,
    /// Go on with the nodes that answer within five seconds and two leases, even if most of the cluster's do not. What
    /// only the others know is lost, acknowledged writes included: only if they are gone for good
    #[arg(long, env = "GESTALT_WITHOUT_QUORUM", conflicts_with = "new_cluster")]
    without_quorum: bool,
    /// What becomes of data when more is lost than the profile makes up for
    #[arg(long, env = "GESTALT_ON_LOSS", value_enum, default_value_t)]
    on_loss: OnLoss,
    /// Ends with the process that has this id
    #[arg(long, hide = true)]
    parent_pid: Option<i32>,
}

impl CoordinatorArgs {
    fn start(&self) -> CoordinatorStart {
        match (self.new_cluster, self.without_quorum) {
            (true, _) => CoordinatorStart::NewCluster,
            (false, true) => CoordinatorStart::WithoutQuorum,
            (false, false) => CoordinatorStart::Gather,
        }
    }
}

/// Runs until it is told to stop.
///
/// # Errors
/// `Usage` if it cannot start.
pub async fn run(args: &CoordinatorArgs) -> Result<(), Exit> {
    if let Some(parent) = args.parent_pid {
        die_with(parent)?;
    }
    let config = resolve(args)?;
    log::to_stderr();
    let told = told_to_stop()?;
    let coordinator = CoordinatorServer::start(config).map_err(Exit::usage)?;
    output::print("ready\n");
    told.await;
    coordinator.stop();
    Ok(())
}

fn resolve(args: &CoordinatorArgs) -> Result<CoordinatorServerConfig, Exit> {
    let lease = args.lease.unwrap_or(DEFAULT_LEASE);
    check_lease(lease).map_err(Exit::Usage)?;
    let needed = args.profile.n();
    if usize::from(args.nodes) < needed {
        return Err(Exit::Usage(format!(
            "profile {} needs {needed} nodes, there are {}: give --nodes {needed} or a smaller --profile",
            args.profile, args.nodes
        )));
    }
    let cluster = CoordinatorConfig {
        cluster: fresh_id(),
        profile: args.profile,
        nodes: args.nodes,
        shards: args.workers,
        groups: args
            .groups
            .unwrap_or_else(|| cluster::groups_for(args.profile, usize::from(args.nodes), args.workers)),
        timing: timing(lease),
        rules: Rules::all(),
        records: RecordKeeping::Kept,
        on_loss: args.on_loss.into(),
    };
    let http = args.http.unwrap_or(pages_beside(args.listen, COORDINATOR_HTTP_PORT));
    let (listen, start) = (args.listen, args.start());
    Ok(CoordinatorServerConfig { listen, http: Some(http), cluster, start, processes: None })
}

/// A running coordinator.
pub struct Coordinator {
    server: CoordinatorHandle,
}

impl Coordinator {
    /// Starts one for the nodes of `plan`, whose processes are started and stopped by who receives `processes`.
    ///
    /// # Errors
    /// `Usage` if it cannot listen.
    pub fn start(plan: &Plan, processes: mpsc::Sender<ProcessOrder>) -> Result<Self, Exit> {
        let config = CoordinatorServerConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            http: Some(plan.http),
            cluster: CoordinatorConfig {
                cluster: fresh_id(),
                profile: plan.profile,
                nodes: u16::try_from(plan.founders()).map_err(Exit::usage)?,
                shards: plan.workers,
                groups: plan.groups,
                timing: timing(plan.lease),
                rules: Rules::all(),
                records: RecordKeeping::Kept,
                on_loss: plan.on_loss.into(),
            },
            // Its nodes are started by the same process, with nothing: there is nobody to ask.
            start: CoordinatorStart::NewCluster,
            processes: Some(processes),
        };
        let server = CoordinatorServer::start(config).map_err(Exit::usage)?;
        Ok(Self { server })
    }

    /// Where nodes connect.
    pub fn address(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Who is here and who is missing; none once the cluster has formed.
    pub fn forming(&self) -> Option<Forming> {
        self.server.status().forming
    }

    /// A node's process is known to have ended.
    pub fn exited(&self, node: NodeId) {
        self.server.exited(node);
    }
}

/// An id that no other cluster has, so that their nodes cannot meet by mistake; also the seed of the key hash.
pub fn fresh_id() -> ClusterId {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    ClusterId(nanos ^ (u64::from(std::process::id()) << 48) | 1)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: CoordinatorArgs,
    }

    fn resolved(flags: &[&str]) -> Result<CoordinatorServerConfig, Exit> {
        resolve(&Flags::parse_from(["coordinator", "--workers", "2"].iter().chain(flags)).args)
    }

    #[test]
    fn groups_follow_nodes_and_workers_unless_given() {
        let groups = |flags: &[&str]| resolved(flags).unwrap().cluster.groups;
        assert_eq!(groups(&["--nodes", "7"]), 56);
        assert_eq!(groups(&["--nodes", "7", "--groups", "21"]), 21);
    }

    #[test]
    fn too_few_nodes_and_a_bad_lease_are_refused() {
        let error = |flags: &[&str]| resolved(flags).unwrap_err().to_string();
        assert!(error(&["--nodes", "4"]).starts_with("profile rs(3+2) needs 5 nodes, there are 4"));
        assert!(error(&["--lease", "1ms"]).contains("out of bounds"));
    }
}
