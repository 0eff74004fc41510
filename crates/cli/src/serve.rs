//! `gestalt serve`: one node.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proto::GraphSettings;
use server::{Coordination, CoordinatorAddress, Node, NodeConfig, NodeExit};
use types::{ClusterId, Entry, NodeId};

use crate::advertise::{advertised, pages_beside, refuse_listen};
use crate::clients::{ClientArgs, allow_connections};
use crate::coding;
use crate::config::NodeSettings;
use crate::endpoint::NODE_HTTP_PORT;
use crate::etcd;
use crate::exit::Exit;
use crate::heap;
use crate::kernel;
use crate::listeners;
use crate::log;
use crate::machine;
use crate::process::{die_with, told_to_stop};
use crate::settings::{CodingPlace, DEFAULT_LEASE, DEFAULT_MEMORY, Eviction, Scheduling, check_lease};
use crate::units::Size;

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
    /// Become a new, empty node of a cluster that has formed already
    #[arg(long)]
    join: bool,
    #[command(flatten)]
    settings: NodeSettings,
    /// Ends with the process that has this id
    #[arg(long, hide = true)]
    parent_pid: Option<i32>,
}

/// Runs until it is told to stop.
///
/// # Errors
/// `Usage` if the node cannot start, `Unreachable` if the cluster will not have it.
pub async fn run(args: &ServeArgs) -> Result<(), Exit> {
    // First: a parent that ends from now on takes it along.
    if let Some(parent) = args.parent_pid {
        die_with(parent)?;
    }
    let (config, coding_place) = resolve(args)?;
    // Not before the settings are read: what is wrong with them is told as every command tells it, and not as a log.
    log::to_stderr();
    // Before there is a node: a signal that comes while it starts must not end it on the spot.
    let told = told_to_stop()?;
    kernel::announce();
    heap::keep_buffers();
    let config = NodeConfig { coder: coding::coder(coding_place), ..config };
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

/// Flag (or environment), then file, then default. Nothing is opened yet, no card either.
fn resolve(args: &ServeArgs) -> Result<(NodeConfig, CodingPlace), Exit> {
    let file = args.config.as_deref().map(NodeSettings::read).transpose()?.unwrap_or_default();
    let settings = args.settings.clone().or(file);
    let node = settings.node.ok_or_else(|| missing("node"))?;
    let peer = settings.peer.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (coordinator, cluster) = coordination(&settings, peer)?;
    let lease = settings.lease.unwrap_or(DEFAULT_LEASE);
    check_lease(lease).map_err(Exit::Usage)?;
    let default = SocketAddr::from(([127, 0, 0, 1], DEFAULT_MEMCACHED_PORT));
    let (memcached, bound) =
        listeners::split(settings.memcached.clone().unwrap_or_default(), default).map_err(Exit::Usage)?;
    let memory = settings.memory.unwrap_or(DEFAULT_MEMORY);
    check_memory(memory)?;
    let clients = allow_connections(ClientArgs::from(&settings))?;
    let coding_place = settings.coding_place.unwrap_or_default();
    let config = NodeConfig {
        cluster,
        profile: settings.profile,
        entry: if args.join { Entry::Joiner } else { Entry::Founder },
        workers: settings.workers.unwrap_or_else(machine::cores),
        memcached,
        bound,
        native: settings.native,
        native_scans: settings.native_scans,
        peer,
        http: settings.http.unwrap_or(pages_beside(peer, NODE_HTTP_PORT)),
        advertise: advertised(&settings),
        memory_bytes: usize::try_from(memory.0).map_err(Exit::usage)?,
        eviction: settings.evict.unwrap_or_default().into(),
        scheduling: settings.scheduling.unwrap_or_default().into(),
        graphs: GraphSettings {
            repair: settings.repair_by.unwrap_or_default().scheme(),
            reads: settings.read_lost_by.unwrap_or_default().scheme(),
            encode: settings.encode_by.unwrap_or_default().into(),
            execution: settings.graphs.unwrap_or_default().into(),
            zone_price_us: settings.zone_price.unwrap_or_default(),
        },
        zone: settings.zone.unwrap_or_default(),
        timing: clients.timing(lease),
        limits: clients.limits(),
        ..NodeConfig::with(NodeId(node), coordinator)
    };
    Ok((config, coding_place))
}

fn missing(name: &str) -> Exit {
    Exit::Usage(format!("no {name}: give --{name}, or {name} = … in the --config file"))
}

/// The way to the coordinator, and the id of the cluster that is meant, if it says nothing of that itself.
fn coordination(
    settings: &NodeSettings,
    peer: SocketAddr,
) -> Result<(Coordination, Option<ClusterId>), Exit> {
    let coordinator = settings.coordinator.as_deref().ok_or_else(|| missing("coordinator"))?;
    if coordinator.starts_with("etcd://") {
        let endpoints = coordinator.parse().map_err(Exit::usage)?;
        return Ok((etcd::coordination(settings, endpoints, peer)?, None));
    }
    let address: CoordinatorAddress = coordinator.parse().map_err(Exit::usage)?;
    etcd::refuse(settings)?;
    refuse_listen(settings)?;
    Ok((address.into(), settings.cluster.as_deref().map(cluster_id).transpose()?))
}

fn cluster_id(text: &str) -> Result<ClusterId, Exit> {
    let id = text.parse().map_err(|_| {
        Exit::Usage(format!("--cluster '{text}' is not a number: with embedded://... give the cluster's id"))
    })?;
    Ok(ClusterId(id))
}

fn check_memory(memory: Size) -> Result<(), Exit> {
    match machine::memory() {
        Some(has) if memory > has => {
            Err(Exit::Usage(format!("--memory {memory} is more than this machine has: give {has} or less")))
        }
        _ => Ok(()),
    }
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

    fn resolved(args: &ServeArgs) -> Result<NodeConfig, Exit> {
        resolve(args).map(|(config, _)| config)
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn with(settings: NodeSettings) -> ServeArgs {
        ServeArgs { settings, ..ServeArgs::default() }
    }

    #[test]
    fn flags_beat_the_file_which_beats_the_default() {
        let file =
            file("node = 3\ncoordinator = \"embedded://127.0.0.1:9\"\nworkers = 7\nmemory = \"64MiB\"");
        let args = ServeArgs {
            config: Some(file.path().into()),
            settings: NodeSettings { memory: Some(Size(96 << 20)), ..NodeSettings::default() },
            ..ServeArgs::default()
        };
        let config = resolved(&args).unwrap();
        assert_eq!((config.node, config.workers, config.memory_bytes), (NodeId(3), 7, 96 << 20));
        assert_eq!(
            config.http.to_string(),
            "127.0.0.1:9181",
            "as its peers' listener, for this machine alone"
        );
    }

    #[test]
    fn the_pages_of_a_node_are_where_its_peers_can_reach_them() {
        let config = resolved(&with(NodeSettings {
            node: Some(0),
            coordinator: Some("embedded://127.0.0.1:9".into()),
            peer: Some("10.0.0.4:9178".parse().unwrap()),
            ..NodeSettings::default()
        }));
        let config = config.unwrap();
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
        let limits = resolved(&args).unwrap().limits;
        assert_eq!((limits.max_connections, limits.flush_all), (70, false));
        let settings = NodeSettings { max_connections: Some(80), ..NodeSettings::default() };
        assert_eq!(resolved(&ServeArgs { settings, ..args }).unwrap().limits.max_connections, 80);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_in_one_line() {
        let error = |args: &ServeArgs| resolved(args).unwrap_err().to_string();
        assert!(error(&ServeArgs::default()).starts_with("no node: give --node"));
        let file = file("nod = 3");
        let args = ServeArgs { config: Some(file.path().into()), ..ServeArgs::default() };
        assert!(error(&args).ends_with("unknown key 'nod': did you mean 'node'?"));
        let at = |coordinator: &str, memory| {
            let coordinator = Some(coordinator.to_owned());
            with(NodeSettings { node: Some(1), coordinator, memory: Some(memory), ..NodeSettings::default() })
        };
        assert!(error(&at("127.0.0.1:1", Size(1 << 30))).contains("embedded://host:port"));
        assert!(error(&at("embedded://h:1", Size(1 << 60))).contains("more than this machine has"));
    }
}
