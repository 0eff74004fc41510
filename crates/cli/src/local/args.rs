//! The flags of `gestalt local`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use types::{Name, Profile};

use crate::clients::ClientArgs;
use crate::output::Format;
use crate::settings::{CodingPlace, DEFAULT_MEMORY, Eviction, OnLoss, Scheduling};
use crate::units::{Size, address, duration};

const EXAMPLE: &str = "\
Examples:
  gestalt local                                   five nodes, any two of which may be lost
  gestalt local --spares 1                        and a sixth one that takes the place of a lost one
  gestalt local --nodes 3 --profile 'rs(2+1)' --memory 256MiB --port 22000 --http 22100

Then:
  printf 'set k 0 0 5\\r\\nhello\\r\\n' | nc -N 127.0.0.1 11211
  gestalt status

The nodes end with this process, however it ends. For a cluster that outlives its coordinator use `gestalt coordinator` and
`gestalt serve`.";

/// A whole cluster on this machine: one process per node, and the coordinator in this one.
///
/// Prints a table of node, pid and address, then `ready`, then where the coordinator answers `gestalt status` and where the logs are.
/// `gestalt node stop ID` and `gestalt node start ID` stop a node and start it again. An interrupt (Ctrl-C) or SIGTERM stops the nodes.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct LocalArgs {
    /// How many nodes
    #[arg(long, env = "GESTALT_NODES", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub nodes: u16,
    /// Further nodes that join empty: what is lost or drained goes there
    #[arg(long, env = "GESTALT_SPARES", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub spares: u16,
    /// Protection: rs(k+m) survives the loss of any m nodes and costs (k+m)/k of the data's memory; rep(n) keeps n copies; lrc(k,l,r) repairs one loss from a part of the group and survives any r+1; none survives none
    #[arg(long, env = "GESTALT_PROFILE", default_value = "rs(3+2)")]
    pub profile: Profile,
    /// Memory of each node: a hard cap on all that it holds
    #[arg(long, env = "GESTALT_MEMORY", default_value_t = DEFAULT_MEMORY)]
    pub memory: Size,
    /// Node i listens for memcached clients on this port + i
    #[arg(long, env = "GESTALT_PORT", default_value_t = 11211)]
    pub port: u16,
    /// Node i listens for clients of this namespace on this port + i; may be given several times. The namespace is made with
    /// `gestalt namespace create`
    #[arg(long, env = "GESTALT_BIND", value_name = "NAMESPACE=PORT", value_delimiter = ',')]
    pub bind: Vec<Bind>,
    /// Node i listens for clients of the native protocol on this port + i; on any free port if not given
    #[arg(long, env = "GESTALT_NATIVE", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub native: Option<u16>,
    /// Clients of the native protocol may ask which keys there are
    #[arg(long, env = "GESTALT_NATIVE_SCANS")]
    pub native_scans: bool,
    /// HTTP address (or port) of the coordinator; node i has the port after next: this port + 1 + i
    #[arg(long, env = "GESTALT_HTTP", default_value = "127.0.0.1:9180", value_parser = address)]
    pub http: SocketAddr,
    /// Where the nodes' logs go; a fresh temporary directory if not given
    #[arg(long, env = "GESTALT_DIR")]
    pub dir: Option<PathBuf>,
    /// Worker threads of each node; the machine's cores shared out if not given
    #[arg(long, env = "GESTALT_WORKERS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Coding groups in all; so many that a node has 40 roles, or 8 for each worker, if not given, and fewer below 16 MiB a role
    #[arg(long, env = "GESTALT_GROUPS", value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub groups: Option<u32>,
    /// What a node does when its memory is full
    #[arg(long, env = "GESTALT_EVICT", value_enum, default_value_t)]
    pub evict: Eviction,
    /// How the system schedules the nodes' workers
    #[arg(long, env = "GESTALT_SCHEDULING", value_enum, default_value_t)]
    pub scheduling: Scheduling,
    /// Where the nodes compute the codes of long values
    #[arg(long, env = "GESTALT_CODING_PLACE", value_enum, default_value_t)]
    pub coding_place: CodingPlace,
    #[command(flatten)]
    pub clients: ClientArgs,
    /// Silence after which a node counts as lost; a node whose process ends is known at once
    #[arg(long, env = "GESTALT_LEASE", default_value = "1s", value_parser = duration)]
    pub lease: Duration,
    /// What becomes of data when more is lost than the profile makes up for
    #[arg(long, env = "GESTALT_ON_LOSS", value_enum, default_value_t)]
    pub on_loss: OnLoss,
    /// What to do when a node's process ends
    #[arg(long, env = "GESTALT_RESTART", value_enum, default_value_t)]
    pub restart: Restart,
    /// How to print the table
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// A namespace, and the first of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub namespace: Name,
    pub port: u16,
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, port) = text.split_once('=').ok_or("write NAMESPACE=PORT")?;
        let port = port.parse().map_err(|_| format!("'{port}' is no port"))?;
        Ok(Self { namespace: name.parse().map_err(|bad: types::BadName| bad.to_string())?, port })
    }
}

/// What to do when a node's process ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Restart {
    /// Leave it.
    #[default]
    Never,
    /// Start it again, with empty memory.
    Always,
}
