//! What is about to be started, checked before anything is.

use std::net::SocketAddr;
use std::time::Duration;

use server::{BoundListener, least_memory_bytes};
use store::forecast::{Forecast, Portion};
use types::{NodeId, Profile};

use super::args::{Bind, LocalArgs};
use crate::clients::ClientArgs;
use crate::exit::Exit;
use crate::machine;
use crate::settings::{CodingPlace, Eviction, OnLoss, Scheduling, check_lease};
use crate::units::Size;

/// Memory of a role below which it is worth having fewer of them: a role keeps half a MiB for each class of long slots that it has
/// seen, and there are some thirty.
const COMFORTABLE_ROLE_BYTES: u64 = 16 << 20;
/// How many small items a role is to have room for before it takes them from others: a run full of them.
const LEAST_ITEMS: Portion = Portion { item_bytes: 128, items: 512 };

/// A cluster to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Protection.
    pub profile: Profile,
    /// Address of the coordinator's HTTP.
    pub http: SocketAddr,
    /// Workers of each node.
    pub workers: u16,
    /// Groups in all.
    pub groups: u32,
    /// Memory of each node.
    pub memory: Size,
    /// What a full node does.
    pub evict: Eviction,
    /// How the system schedules the workers.
    pub scheduling: Scheduling,
    /// Whether native clients may ask which keys there are.
    pub native_scans: bool,
    /// Where they compute codes.
    pub coding_place: CodingPlace,
    /// What the nodes allow their clients.
    pub clients: ClientArgs,
    /// Silence after which a node counts as lost.
    pub lease: Duration,
    /// What becomes of lost data.
    pub on_loss: OnLoss,
    /// The nodes that the cluster forms with, then the spares.
    pub nodes: Vec<NodePlan>,
    /// How many of them are spares.
    pub spares: u16,
}

/// A node to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// Its id.
    pub node: NodeId,
    /// Where memcached clients connect.
    pub memcached: SocketAddr,
    /// Where those of single namespaces do.
    pub bound: Vec<BoundListener>,
    /// Where clients of the native protocol connect; port 0 = any free one.
    pub native: SocketAddr,
    /// Where its status is.
    pub http: SocketAddr,
}

impl Plan {
    /// From the flags.
    ///
    /// # Errors
    /// `Usage` if the profile needs more nodes, the memory is too little or more than the machine has, or a port is
    /// in use.
    pub fn new(args: &LocalArgs) -> Result<Self, Exit> {
        check_lease(args.lease).map_err(Exit::Usage)?;
        let processes = args.nodes + args.spares;
        // All nodes share the machine's cores.
        let workers = args.workers.unwrap_or_else(|| (machine::cores() / processes).max(1));
        let groups = args.groups.unwrap_or_else(|| groups_for(args, workers));
        let plan = Self {
            profile: args.profile,
            http: args.http,
            workers,
            groups,
            memory: args.memory,
            evict: args.evict,
            scheduling: args.scheduling,
            native_scans: args.native_scans,
            coding_place: args.coding_place,
            clients: args.clients,
            lease: args.lease,
            on_loss: args.on_loss,
            nodes: (0..processes).map(|node| node_plan(args, node)).collect::<Result<_, _>>()?,
            spares: args.spares,
        };
        plan.check_nodes()?;
        plan.check_memory(machine::memory())?;
        let flags = if args.bind.is_empty() { "--port and --http" } else { "--port, --bind and --http" };
        machine::check_free(&plan.addresses(), flags)?;
        Ok(plan)
    }

    /// How many nodes the cluster forms with.
    pub fn founders(&self) -> usize {
        self.nodes.len() - usize::from(self.spares)
    }

    fn check_nodes(&self) -> Result<(), Exit> {
        let (needed, nodes) = (self.profile.n(), self.founders());
        if nodes >= needed {
            return Ok(());
        }
        Err(Exit::Usage(format!(
            "profile {} needs {needed} nodes, there are {nodes}: give --nodes {needed} or a smaller --profile",
            self.profile
        )))
    }

    /// That the roles fit into a node and the nodes into the machine.
    fn check_memory(&self, machine: Option<Size>) -> Result<(), Exit> {
        let nodes = self.nodes.len() as u64;
        // Among those that it forms with: spares have nothing at first.
        let roles = (u64::from(self.groups) * self.profile.n() as u64).div_ceil(self.founders() as u64);
        let needed = least_memory_bytes(self.workers) as u64 + roles * least_role_bytes(self.profile);
        let needed = Size(needed.next_multiple_of(1 << 20));
        if self.memory < needed {
            return Err(Exit::Usage(format!(
                "--memory {} is too little for the {roles} roles of a node: give at least {needed}",
                self.memory
            )));
        }
        let all = Size(self.memory.0.saturating_mul(nodes));
        match machine {
            Some(has) if all > has => Err(Exit::Usage(format!(
                "{nodes} nodes of {} need {all}, this machine has {has}: give --memory {}MiB or less",
                self.memory,
                (has.0 / nodes) >> 20
            ))),
            _ => Ok(()),
        }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let nodes = self.nodes.iter().flat_map(|node| [node.memcached, node.http]);
        let bound = self.nodes.iter().flat_map(|node| node.bound.iter().map(|bound| bound.addr));
        let native = self.nodes.iter().map(|node| node.native).filter(|native| native.port() != 0);
        nodes.chain(bound).chain(native).chain([self.http]).collect()
    }
}

/// As many groups as any cluster forms with, or as have comfortable roles if that is less; one for each worker at least.
fn groups_for(args: &LocalArgs, workers: u16) -> u32 {
    let nodes = u32::from(args.nodes);
    let roles = args.memory.0.saturating_sub(least_memory_bytes(workers) as u64) / COMFORTABLE_ROLE_BYTES;
    // Of each node; in whole rounds over the nodes, so that all have as many.
    let rounds = u32::try_from(roles / args.profile.n() as u64).unwrap_or(u32::MAX);
    let most = cluster::groups_for(args.profile, usize::from(args.nodes), workers);
    most.min(nodes.saturating_mul(rounds.max(u32::from(workers))))
}

/// What the larger role of a group takes that has [`LEAST_ITEMS`] in each data role.
fn least_role_bytes(profile: Profile) -> u64 {
    let least = Forecast::default().role(&[LEAST_ITEMS]);
    let replica = least.index_bytes + least.table_bytes;
    let parity_bytes = profile.k() as u64 * replica;
    least.area_bytes() + parity_bytes.max(replica + least.slot_state_bytes)
}

fn node_plan(args: &LocalArgs, node: u16) -> Result<NodePlan, Exit> {
    let port = |base: u16, offset: u16| {
        base.checked_add(offset).filter(|&port| port > 0).ok_or_else(|| {
            Exit::Usage(format!(
                "port {base} + {offset} is beyond 65535: choose another with --port, --native and --http"
            ))
        })
    };
    let memcached = SocketAddr::from(([127, 0, 0, 1], port(args.port, node)?));
    let native = args.native.map_or(Ok(0), |base| port(base, node))?;
    let native = SocketAddr::from(([127, 0, 0, 1], native));
    let http = SocketAddr::new(args.http.ip(), port(args.http.port(), node + 1)?);
    let bound = |bind: &Bind| {
        let addr = SocketAddr::from(([127, 0, 0, 1], port(bind.port, node)?));
        Ok(BoundListener { addr, namespace: bind.namespace.clone() })
    };
    let bound = args.bind.iter().map(bound).collect::<Result<_, Exit>>()?;
    Ok(NodePlan { node: NodeId(node), memcached, bound, native, http })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: LocalArgs,
    }

    fn error_of(flags: &[&str]) -> String {
        let flags = Flags::parse_from(["local"].iter().chain(flags));
        Plan::new(&flags.args).unwrap_err().to_string()
    }

    fn plan(nodes: u16, memory: u64) -> Plan {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let node = |id| NodePlan {
            node: NodeId(id),
            memcached: address(id),
            bound: vec![],
            native: address(0),
            http: address(id),
        };
        Plan {
            profile: Profile::rs(3, 2).unwrap(),
            http: address(1),
            workers: 1,
            groups: u32::from(nodes),
            memory: Size(memory),
            evict: Eviction::Clock,
            scheduling: Scheduling::Batch,
            native_scans: false,
            coding_place: CodingPlace::Processor,
            clients: ClientArgs::default(),
            lease: Duration::from_secs(1),
            on_loss: OnLoss::Error,
            nodes: (0..nodes).map(node).collect(),
            spares: 0,
        }
    }

    #[test]
    fn too_few_nodes_name_both_remedies() {
        let text = plan(4, 1 << 30).check_nodes().unwrap_err().to_string();
        assert_eq!(text, "profile rs(3+2) needs 5 nodes, there are 4: give --nodes 5 or a smaller --profile");
    }

    #[test]
    fn memory_must_hold_the_roles_and_fit_the_machine() {
        let machine = Some(Size(24 << 30));
        assert!(plan(5, 1 << 30).check_memory(machine).is_ok());
        let text = plan(5, 16 << 20).check_memory(machine).unwrap_err().to_string();
        assert_eq!(text, "--memory 16MiB is too little for the 5 roles of a node: give at least 17MiB");
        let text = plan(5, 8 << 30).check_memory(machine).unwrap_err().to_string();
        assert_eq!(text, "5 nodes of 8GiB need 40GiB, this machine has 24GiB: give --memory 4915MiB or less");
    }

    #[test]
    fn there_are_fewer_groups_where_memory_is_short() {
        let groups = |memory: &str| {
            let flags = Flags::parse_from(["local", "--workers", "1", "--memory", memory]);
            groups_for(&flags.args, 1)
        };
        assert_eq!(["1GiB", "500MiB", "64MiB"].map(groups), [40, 30, 5]);
    }

    #[test]
    fn who_has_bound_ports_is_told_that_they_may_be_in_the_way() {
        let text = error_of(&["--port", "20000", "--bind", "counters=20001", "--memory", "32MiB"]);
        assert_eq!(text, "port 20001 is asked for twice: choose others with --port, --bind and --http");
    }

    #[test]
    fn ports_beyond_the_last_one_are_refused() {
        assert!(error_of(&["--port", "0", "--http", "65533"]).contains("beyond 65535"));
    }
}
