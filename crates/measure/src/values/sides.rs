//! Who is compared.

use processes::servers::Server;
use serde::{Deserialize, Serialize};

use super::plain::{Plain, Protocol};

/// Memory of a node of ours.
const NODE_MEMORY: &str = "1GiB";
/// memcached's memory and longest item, in MiB.
const MEMCACHED_MIB: (u64, u64) = (3072, 512);

/// A server as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Gestalt, five nodes, any two of which may be lost: every value in chunks.
    Striped,
    /// The same: no value in chunks.
    Packed,
    /// Values in chunks, each of which has as long a part of the value as it can (`--layout wide`).
    Wide,
    /// The same with a copy beside them (`--layout copy`).
    Copy,
    Memcached,
    /// valkey with two replicas that follow when they can.
    Replicas,
    /// The same; a write counts when both have it.
    Wait,
}

/// A side that runs.
pub struct Running {
    pub side: Side,
    pub server: Server,
}

impl Side {
    /// Beside others.
    pub const PEERS: [Self; 5] = [Self::Striped, Self::Packed, Self::Memcached, Self::Replicas, Self::Wait];
    /// How values in chunks may lie.
    pub const LAYOUTS: [Self; 3] = [Self::Striped, Self::Wide, Self::Copy];

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Striped => "Gestalt rs(3+2), in chunks",
            Self::Packed => "Gestalt rs(3+2), whole",
            Self::Wide => "Gestalt rs(3+2), in chunks, wide",
            Self::Copy => "Gestalt copy+rs(3+2)",
            Self::Memcached => "memcached",
            Self::Replicas => "valkey 1+2 async",
            Self::Wait => "valkey 1+2 WAIT 2",
        }
    }

    /// Whether it takes values of `len` bytes.
    pub fn takes(self, len: usize) -> bool {
        self != Self::Packed || len <= 1_048_000
    }

    pub fn start(self) -> Result<Running, String> {
        let server = match self {
            Self::Striped => gestalt("rs(3+2)", 5, "always")?,
            Self::Packed => gestalt("rs(3+2)", 5, "never")?,
            Self::Wide => laid_out("wide")?,
            Self::Copy => laid_out("copy")?,
            Self::Memcached => Server::memcached_for_values(MEMCACHED_MIB.0, MEMCACHED_MIB.1)?,
            Self::Replicas | Self::Wait => Server::valkey(2)?,
        };
        Ok(Running { side: self, server })
    }

    fn protocol(self) -> Protocol {
        match self {
            Self::Replicas => Protocol::Redis { wait: 0 },
            Self::Wait => Protocol::Redis { wait: 2 },
            _ => Protocol::Memcached,
        }
    }
}

impl Running {
    /// A connection to the first process: where a value lies is none of the client's business.
    pub fn connect(&self) -> Result<Plain, String> {
        Plain::connect(self.side.protocol(), self.server.addresses[0])
    }
}

/// A cluster whose values are in chunks above `striped_above`.
pub fn gestalt(profile: &str, nodes: u16, striped_above: &str) -> Result<Server, String> {
    striped(Server::gestalt(profile, nodes, NODE_MEMORY)?, striped_above)
}

/// A cluster with every value in chunks that lie so.
fn laid_out(layout: &str) -> Result<Server, String> {
    let server = Server::gestalt("rs(3+2)", 5, NODE_MEMORY)?;
    with(server, &["--striped-above", "always", "--layout", layout])
}

/// A cluster that runs, with values in chunks above that length from now on.
pub fn striped(server: Server, striped_above: &str) -> Result<Server, String> {
    with(server, &["--striped-above", striped_above])
}

/// A cluster that runs, whose namespace has these options from now on.
fn with(server: Server, options: &[&str]) -> Result<Server, String> {
    if let Some(cluster) = server.cluster() {
        let set = [&["namespace", "set", "default", "--http", "{http}"], options].concat();
        let (status, _, error) = cluster.gestalt(&set)?;
        if !status.success() {
            return Err(format!("{options:?}: {error}"));
        }
    }
    // Until all nodes have heard of it.
    std::thread::sleep(std::time::Duration::from_secs(2));
    Ok(server)
}
