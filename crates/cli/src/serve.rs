//! `gestalt serve`: one node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proto::Timing;
use server::{CoordinatorAddress, Node, NodeConfig, NodeExit};
use types::{ClusterId, Entry, NodeId, Profile};

use crate::advertise::{AdvertiseArgs, pages_beside};
use crate::clients::{ClientArgs, allow_connections};
use crate::config::NodeFile;
use crate::endpoint::NODE_HTTP_PORT;
use crate::etcd::EtcdArgs;
use crate::exit::Exit;
use crate::kernel;
use crate::log;
use crate::machine;
use crate::process::{die_with, told_to_stop};
use crate::settings::{DEFAULT_LEASE, DEFAULT_MEMORY, Eviction, Scheduling, check_lease};
use crate::units::{Size, address, duration};

const EXAMPLE: &str = "\
Examples:
  gestalt serve --node 3 --coordinator embedded://10.0.0.1:9179 \\
      --memcached 10.0.0.4:11211 --peer 10.0.0.4:9178
  gestalt serve --config node.toml
  gestalt serve --config node.toml --node 7 --join      a further node of a cluster that runs
  gestalt serve --config node.toml --memcached 0.0.0.0:11211 --peer 0.0.0.0:9178 \\
      --advertise 203.0.113.5
      a node that others reach at another address than it listens on
  gestalt serve --node 0 --coordinator etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 \\
      --nodes 5 --profile 'rs(3+2)' ...
      a node whose coordinator is elected among the nodes; the same on every node, but for --node and the addresses

node.toml knows the same names as the flags:
  node = 3
  coordinator = \"embedded://10.0.0.1:9179\"
  memcached = \"10.0.0.4:11211\"
  peer = \"10.0.0.4:9178\"
  memory = \"64GiB\"
  lease = \"1s\"

A flag beats the environment (GESTALT_NODE, GESTALT_MEMORY, ...), which beats the file, which beats the default.
GESTALT_CODEC=NAME codes with one kernel (scalar, ssse3, avx2, avx2-gfni, avx512, avx512-gfni, neon).";

/// memcached's own.
const DEFAULT_MEMCACHED_PORT: u16 = 11211;

/// One node of a cluster.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = EXAMPLE)]
pub struct ServeArgs {
    /// TOML file with any of the settings below
    #[arg(long, env = "GESTALT_CONFIG")]
    config: Option<PathBuf>,
    /// Id of the node, 0 to the number of nodes less one
    #[arg(long, env = "GESTALT_NODE")]
    node: Option<u16>,
    /// Become a new, empty node of a cluster that has formed already
    #[arg(long)]
    join: bool,
    /// The cluster that the node is meant for; another one is refused. With embedded://... its id (`gestalt status -o json`
    /// names it), with etcd://... the name under which it lives in etcd [default: gestalt]
    #[arg(long, env = "GESTALT_CLUSTER")]
    cluster: Option<String>,
    /// The protection that the node is meant for, for example rs(3+2); a cluster with another one is refused
    #[arg(long, env = "GESTALT_PROFILE")]
    profile: Option<Profile>,
    /// Where the coordinator is: embedded://HOST:PORT, or the etcd over which it is elected: etcd://HOST:PORT[,HOST:PORT...]
    #[arg(long, env = "GESTALT_COORDINATOR")]
    coordinator: Option<String>,
    /// Where memcached clients connect [default: 127.0.0.1:11211]
    #[arg(long, env = "GESTALT_MEMCACHED", value_parser = address)]
    memcached: Option<SocketAddr>,
    /// Where other nodes connect; port 0 is any free one [default: 127.0.0.1:0]
    #[arg(long, env = "GESTALT_PEER", value_parser = address)]
    peer: Option<SocketAddr>,
    /// Where status and metrics are [default: port 9181 of all addresses, and of the loopback alone if --peer is]
    #[arg(long, env = "GESTALT_HTTP", value_parser = address)]
    http: Option<SocketAddr>,
    #[command(flatten)]
    advertise: AdvertiseArgs,
    /// Hard cap on everything the node holds [default: 1GiB]
    #[arg(long, env = "GESTALT_MEMORY")]
    memory: Option<Size>,
    /// Worker threads, the same number on every node [default: the cores of this machine]
    #[arg(long, env = "GESTALT_WORKERS", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// What to do when memory is full [default: clock]
    #[arg(long, env = "GESTALT_EVICT", value_enum)]
    evict: Option<Eviction>,
    /// How the system schedules the workers [default: batch]
    #[arg(long, env = "GESTALT_SCHEDULING", value_enum)]
    scheduling: Option<Scheduling>,
    /// Failure domain, for example a rack
    #[arg(long, env = "GESTALT_ZONE")]
    zone: Option<String>,
    /// Silence after which a node counts as lost, the same on every node [default: 1s]. Leases at etcd last as long, but 2s
    /// at least
    #[arg(long, env = "GESTALT_LEASE", value_parser = duration)]
    lease: Option<Duration>,
    #[command(flatten)]
    clients: ClientArgs,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// Ends with the process that has this id
    #[arg(long, hide = true)]
    parent_pid: Option<i32>,
}

/// Runs until it is told to stop.
///
/// # Errors
/// `Usage` if the node cannot start, `Unreachable` if the cluster will not have it.
pub async fn run(args: &ServeArgs) -> Result<(), Exit> {
    if let Some(parent) = args.parent_pid {
        die_with(parent)?;
    }
    let config = settle(args)?;
    log::to_stderr();
    let told = told_to_stop()?;
    kernel::announce();
    let node = Node::start(config).map_err(Exit::usage)?;
    let exit = tokio::select! {
        exit = node.ended() => exit,
        () = told => NodeExit::Stopped,
    };
    node.stop();
    match exit {
        NodeExit::Stopped => Ok(()),
        other => Err(Exit::unreachable(other.reason())),
    }
}

/// Flag (or environment), then file, then default.
fn settle(args: &ServeArgs) -> Result<NodeConfig, Exit> {
    let file = args.config.as_deref().map(NodeFile::read).transpose()?.unwrap_or_default();
    let missing =
        |name: &str| Exit::Usage(format!("no {name}: give --{name}, or {name} = … in the --config file"));
    let node = args.node.or(file.node).ok_or_else(|| missing("node"))?;
    let peer = args.peer.or(file.peer).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let coordinator =
        args.coordinator.clone().or(file.coordinator.clone()).ok_or_else(|| missing("coordinator"))?;
    let cluster = args.cluster.clone().or(file.cluster.clone());
    let (coordinator, cluster) = if coordinator.starts_with("etcd://") {
        let endpoints = coordinator.parse().map_err(Exit::usage)?;
        (args.etcd.settle(&file, endpoints, cluster.as_deref(), peer)?, None)
    } else {
        let address: CoordinatorAddress = coordinator.parse().map_err(Exit::usage)?;
        args.etcd.refuse(&file)?;
        args.advertise.refuse_listen(&file)?;
        (address.into(), cluster.as_deref().map(cluster_id).transpose()?)
    };
    let lease = args.lease.or(file.lease).unwrap_or(DEFAULT_LEASE);
    check_lease(lease).map_err(Exit::Usage)?;
    let memory = args.memory.or(file.memory).unwrap_or(DEFAULT_MEMORY);
    check_memory(memory)?;
    let memcached = args
        .memcached
        .or(file.memcached)
        .unwrap_or(SocketAddr::from(([127, 0, 0, 1], DEFAULT_MEMCACHED_PORT)));
    let clients = args.clients.or(&file);
    allow_connections(clients)?;
    Ok(NodeConfig {
        cluster,
        profile: args.profile.or(file.profile),
        entry: if args.join { Entry::Joiner } else { Entry::Founder },
        workers: args.workers.or(file.workers).unwrap_or_else(machine::cores),
        memcached,
        peer,
        http: args.http.or(file.http).unwrap_or(pages_beside(peer, NODE_HTTP_PORT)),
        advertise: args.advertise.settle(&file),
        memory_bytes: usize::try_from(memory.0).map_err(Exit::usage)?,
        eviction: choice(args.evict, "evict", file.evict.as_deref())?.into(),
        scheduling: choice(args.scheduling, "scheduling", file.scheduling.as_deref())?.into(),
        zone: args.zone.clone().or(file.zone).unwrap_or_default(),
        timing: timing(lease),
        limits: clients.limits(),
        ..NodeConfig::with(NodeId(node), coordinator)
    })
}

fn cluster_id(text: &str) -> Result<ClusterId, Exit> {
    let id = text.parse().map_err(|_| {
        Exit::Usage(format!("--cluster '{text}' is not a number: with embedded://... give the cluster's id"))
    })?;
    Ok(ClusterId(id))
}

/// The protocol's time-outs for a lease.
pub fn timing(lease: Duration) -> Timing {
    Timing::from_lease(u64::try_from(lease.as_micros()).unwrap_or(u64::MAX))
}

fn check_memory(memory: Size) -> Result<(), Exit> {
    match machine::memory() {
        Some(has) if memory > has => {
            Err(Exit::Usage(format!("--memory {memory} is more than this machine has: give {has} or less")))
        }
        _ => Ok(()),
    }
}

/// The flag, or what the file has under `key`, or the default.
fn choice<T: ValueEnum + Default>(flag: Option<T>, key: &str, file: Option<&str>) -> Result<T, Exit> {
    let Some(text) = file.filter(|_| flag.is_none()) else { return Ok(flag.unwrap_or_default()) };
    T::from_str(text, false).map_err(|_| {
        let known = T::value_variants().iter().filter_map(T::to_possible_value);
        let known = known.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ");
        Exit::Usage(format!("key '{key}': '{text}' is not one of {known}"))
    })
}

impl From<Scheduling> for server::Scheduling {
    fn from(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Batch => Self::Batch,
            Scheduling::Normal => Self::Normal,
        }
    }
}

impl From<Eviction> for store::Eviction {
    fn from(eviction: Eviction) -> Self {
        match eviction {
            Eviction::Clock => Self::Clock,
            Eviction::None => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn flags_beat_the_file_which_beats_the_default() {
        let file =
            file("node = 3\ncoordinator = \"embedded://127.0.0.1:9\"\nworkers = 7\nmemory = \"64MiB\"");
        let args = ServeArgs {
            config: Some(file.path().into()),
            memory: Some(Size(96 << 20)),
            ..ServeArgs::default()
        };
        let config = settle(&args).unwrap();
        assert_eq!((config.node, config.workers, config.memory_bytes), (NodeId(3), 7, 96 << 20));
        assert_eq!(
            config.http.to_string(),
            "127.0.0.1:9181",
            "as its peers' listener, for this machine alone"
        );
    }

    #[test]
    fn the_pages_of_a_node_are_where_its_peers_can_reach_them() {
        let args = ServeArgs {
            node: Some(0),
            coordinator: Some("embedded://127.0.0.1:9".into()),
            peer: Some("10.0.0.4:9178".parse().unwrap()),
            ..ServeArgs::default()
        };
        let config = settle(&args).unwrap();
        assert_eq!(
            (config.http.to_string().as_str(), config.advertise),
            ("0.0.0.0:9181", Default::default())
        );
        assert!(config.limits == server::ConnectionLimits::default());
    }

    #[test]
    fn what_clients_may_do_is_in_the_file_too() {
        let file = file(
            "node = 3\ncoordinator = \"embedded://127.0.0.1:9\"\nmax-connections = 70\ndisable-flush-all = true\nmemory = \"64MiB\"",
        );
        let args = ServeArgs { config: Some(file.path().into()), ..ServeArgs::default() };
        let limits = settle(&args).unwrap().limits;
        assert_eq!((limits.max_connections, limits.flush_all), (70, false));
        let clients = ClientArgs { max_connections: Some(80), ..ClientArgs::default() };
        assert_eq!(settle(&ServeArgs { clients, ..args }).unwrap().limits.max_connections, 80);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_in_one_line() {
        let error = |args: &ServeArgs| settle(args).unwrap_err().to_string();
        assert!(error(&ServeArgs::default()).starts_with("no node: give --node"));
        let file = file("nod = 3");
        let args = ServeArgs { config: Some(file.path().into()), ..ServeArgs::default() };
        assert!(error(&args).ends_with("unknown key 'nod': did you mean 'node'?"));
        let with = |coordinator: &str, memory| ServeArgs {
            node: Some(1),
            coordinator: Some(coordinator.into()),
            memory: Some(memory),
            ..ServeArgs::default()
        };
        assert!(error(&with("127.0.0.1:1", Size(1 << 30))).contains("embedded://host:port"));
        assert!(error(&with("embedded://h:1", Size(1 << 60))).contains("more than this machine has"));
    }
}
