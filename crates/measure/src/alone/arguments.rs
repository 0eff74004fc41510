//! What can be measured of a cluster alone, and how.

use clap::{Parser, ValueEnum};

/// Measures pauses, repair, growth, restarts and the use of memory.
#[derive(Parser, Clone, Debug)]
#[command(after_help = "Example: cargo xtask measure protection --gib 1,4")]
pub struct Arguments {
    /// What to measure; everything if nothing is named
    #[arg(value_enum)]
    pub parts: Vec<Part>,
    /// Tries of the access part
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Keys of the lost node that the access part reads, and as many that it writes
    #[arg(long, default_value_t = 16)]
    pub probes: usize,
    /// Numbers of groups, a cluster each in the access and growth parts
    #[arg(long, value_delimiter = ',', default_value = "40")]
    pub groups: Vec<u32>,
    /// Nodes that the growth part ends with; it begins with five
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(6..))]
    pub nodes: u16,
    /// Memory of each node in the utilisation part
    #[arg(long, default_value = "64MiB")]
    pub node_memory: String,
    /// Sizes of the protection part, in GiB of values; growth and restart take the first
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub gib: Vec<u32>,
    /// Connections of the load in the protection, growth and restart parts
    #[arg(long, default_value_t = 48)]
    pub clients: u32,
    /// Requests a second of the load in the protection, growth and restart parts
    #[arg(long, default_value_t = 4000)]
    pub rate: u32,
    /// Memory of the caches in the hits part, in MiB
    #[arg(long, default_value_t = 128)]
    pub cache_mib: u64,
    /// Requests of each trace in the hits part
    #[arg(long, default_value_t = 2_000_000)]
    pub requests: usize,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// What share of resident memory holds keys and values: full, overwritten at random, after shifts of value size.
    Utilisation,
    /// What share of reads hits in a full cache, beside memcached and known algorithms.
    Hits,
    /// The pause that clients see when a node is killed, and when it is stopped.
    Pause,
    /// From the loss of a node to the first answers for its keys.
    Access,
    /// From the loss of a node to full protection, idle and under load, for each size.
    Protection,
    /// Nodes join five under load; what each serves then.
    Growth,
    /// Every node is restarted in turn under load.
    Restart,
}
