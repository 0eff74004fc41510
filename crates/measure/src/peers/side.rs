//! Who is compared.

use clap::ValueEnum;
use processes::servers::Server;
use serde::{Deserialize, Serialize};

use crate::peers::cells::Workload;

/// A server as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Gestalt, five nodes, any two of which may be lost.
    Rs32,
    /// Gestalt, ten nodes, any two of which may be lost.
    Rs82,
    /// Gestalt, five nodes, three copies of everything: primary and backups.
    Rep3,
    /// Gestalt, five nodes, nothing protected.
    None,
    /// memcached, one copy.
    Memcached,
    /// valkey, one copy.
    Valkey,
    /// valkey with two replicas that follow when they can.
    Replicas,
    /// valkey with two replicas; a write counts when both have it.
    Wait,
}

/// Processes that have to be started; some sides share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setup {
    Gestalt { profile: &'static str, nodes: u16 },
    Memcached,
    Valkey { replicas: usize },
}

impl Side {
    /// What it runs on.
    pub fn setup(self) -> Setup {
        match self {
            Self::Rs32 => Setup::Gestalt { profile: "rs(3+2)", nodes: 5 },
            Self::Rs82 => Setup::Gestalt { profile: "rs(8+2)", nodes: 10 },
            Self::Rep3 => Setup::Gestalt { profile: "rep(3)", nodes: 5 },
            Self::None => Setup::Gestalt { profile: "none", nodes: 5 },
            Self::Memcached => Setup::Memcached,
            Self::Valkey => Setup::Valkey { replicas: 0 },
            Self::Replicas | Self::Wait => Setup::Valkey { replicas: 2 },
        }
    }

    /// Cores without which it is left out.
    pub fn cores(self) -> usize {
        if self == Self::Rs82 { 5 } else { 1 }
    }

    /// Whether `workload` says anything that another side does not.
    pub fn runs(self, workload: Workload) -> bool {
        self != Self::Wait || workload != Workload::C
    }

    /// Flags of `gestalt bench` beside those of the servers.
    pub fn flags(self) -> &'static [&'static str] {
        if self == Self::Wait { &["--wait", "2"] } else { &[] }
    }

    /// Behind the server's name in tables.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Replicas => " async",
            Self::Wait => " WAIT 2",
            _ => "",
        }
    }
}

impl Setup {
    /// Starts it; Gestalt's nodes share `memory` bytes.
    pub fn start(self, memory: u64) -> Result<Server, String> {
        match self {
            Self::Gestalt { profile, nodes } => {
                let each = (memory / u64::from(nodes)).max(256 << 20);
                Server::gestalt(profile, nodes, &format!("{}MiB", each >> 20))
            }
            Self::Memcached => Server::memcached(),
            Self::Valkey { replicas } => Server::valkey(replicas),
        }
    }
}
