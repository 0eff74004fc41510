//! The flags of `gestalt bench`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use load::source::Mix;

use crate::endpoint::Endpoint;
use crate::output::Format;
use crate::units::{address, duration};
use crate::value_sizes::ValueSize;

const EXAMPLE: &str = "\
Examples:
  gestalt bench load a b c                                  the cluster that `gestalt local` started
  gestalt bench load c --server 127.0.0.1:11211             a stock memcached
  gestalt bench set --protocol redis --wait 2 --server 127.0.0.1:6379
  gestalt bench load a b c d f --zipf 0.99                  YCSB's workloads but for scans
  gestalt bench load a --protocol native --depth 16         the same cluster over its own protocol
  gestalt bench load a --keys 300 --value-size 64KiB:0.9,1MiB:0.09,64MiB:0.01 --clients 4 --verify
  gestalt bench load --keys 200000 && gestalt bench a --zipf 0.99 --depth 8 --duration 30s -o json

Exit codes: 0 all operations were done, 1 wrong usage, or all were refused for their size or for want of memory, 2 nobody answered,
3 some operations failed (the report counts them by reason), 4 a value was wrong.";

/// Load in the style of YCSB: a closed loop of connections, operations a second and latency percentiles.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct BenchArgs {
    /// What to run, one after another: load (each key once), a (50 % reads), b (95 %), c (reads only),
    /// d (95 % reads of what was written last, 5 % new keys), f (half reads, half reads with a write in the place of what was read: by the item's
    /// version, where servers have that), set (writes only)
    #[arg(value_enum, default_values_t = [Workload::Load, Workload::A])]
    pub workloads: Vec<Workload>,
    #[command(flatten)]
    pub endpoint: Endpoint,
    /// Servers without a map (stock memcached, redis), instead of a cluster whose map says where keys are; several are sharded by
    /// key
    #[arg(long, value_delimiter = ',', value_parser = address)]
    pub server: Vec<SocketAddr>,
    /// Spread requests over all nodes, whichever holds the key
    #[arg(long)]
    pub any_node: bool,
    /// What the servers speak; native is Gestalt's own, on the nodes' ports of --native
    #[arg(long, value_enum, default_value_t = Dialect::Memcached)]
    pub protocol: Dialect,
    /// With --protocol native: writes have no names under which they are done once
    #[arg(long)]
    pub nameless: bool,
    /// With --protocol redis: follow each SET by WAIT N 0 and count it done once both are answered
    #[arg(long, value_name = "N")]
    pub wait: Option<u32>,
    /// Keys in all
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=200_000_000))]
    pub keys: u32,
    /// Bytes of a key
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(11..=250))]
    pub key_size: u16,
    /// Bytes of a value, up to 1GiB; or several with the share of the keys that each has, as 1KiB:0.9,64KiB:0.09,16MiB:0.01
    #[arg(long, default_value = "1KiB", value_name = "SIZE[:SHARE]", value_delimiter = ',')]
    pub value_size: Vec<ValueSize>,
    /// Connections in all, dealt to the servers in turn
    #[arg(long, default_value_t = 48, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub clients: u16,
    /// Requests in flight on each connection; with --protocol native no more than the server gives credits for
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub depth: u16,
    /// Threads that share the connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Popularity of keys follows Zipf's law with this exponent (YCSB: 0.99)
    #[arg(long, value_name = "THETA", conflicts_with = "uniform")]
    pub zipf: Option<f64>,
    /// All keys are equally popular (the default)
    #[arg(long)]
    pub uniform: bool,
    /// How long each workload runs; load ends by itself
    #[arg(long, default_value = "10s", value_parser = duration, conflicts_with = "ops")]
    pub duration: Duration,
    /// Run each workload for this many operations instead
    #[arg(long)]
    pub ops: Option<u64>,
    /// Give up on a request after this long
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub timeout: Duration,
    /// Also print what happened in each stretch of this length: operations a second, failures, latencies
    #[arg(long, value_parser = duration)]
    pub interval: Option<Duration>,
    /// Check every byte of every value read; wrong ones and missing ones are counted, and wrong ones end in exit code 4
    #[arg(long)]
    pub verify: bool,
    /// Seed of the choice of keys and operations
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Server processes whose CPU time is divided by the operations; found by their ports if not given
    #[arg(long, value_delimiter = ',')]
    pub pids: Vec<u32>,
    /// How to print the results
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Each key is set once.
    Load,
    /// Half reads, half writes.
    A,
    /// 95 % reads.
    B,
    /// Reads only.
    C,
    /// 95 % reads, the newest keys most; the others add keys.
    D,
    /// Half reads, half reads followed by a write in the place of what was read.
    F,
    /// Writes only.
    Set,
}

impl Workload {
    /// What of a thousand operations.
    pub fn mix(self) -> Mix {
        let (writes, modifies) = match self {
            Self::Load | Self::Set => (1000, 0),
            Self::A => (500, 0),
            Self::B | Self::D => (50, 0),
            Self::C => (0, 0),
            Self::F => (0, 500),
        };
        Mix { writes, modifies }
    }

    /// As written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::D => "d",
            Self::F => "f",
            Self::Set => "set",
        }
    }
}

/// What servers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// memcached's text protocol.
    Memcached,
    /// RESP.
    Redis,
    /// Gestalt's native protocol.
    Native,
}
