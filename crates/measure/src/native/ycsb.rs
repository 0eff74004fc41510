//! YCSB's core workloads, by `gestalt bench`: the native protocol beside memcached's to the same cluster, memcached and valkey.

use std::collections::BTreeMap;

use processes::local_cluster::Options;
use processes::servers::Server;
use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::cells::{CROWD, USUAL};
use super::runs::{self, Run};
use crate::spread::Spread;

/// In this order: the last one adds keys.
const WORKLOADS: [(&str, &str); 5] = [
    ("a", "A: half reads, half writes"),
    ("b", "B: 95 % reads"),
    ("c", "C: reads only"),
    ("f", "F: half reads, half reads followed by a write"),
    ("d", "D: 95 % reads of the newest, 5 % new keys"),
];
const KEYS: &str = "50000";
const QUICK_KEYS: &str = "2000";
/// YCSB's exponent of Zipf's law.
const THETA: &str = "0.99";

/// One workload, all sides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workload {
    pub title: String,
    pub rounds: u32,
    /// By the side's place in the table.
    pub sides: BTreeMap<Side, Figures>,
}

/// A server and how it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    Native,
    Text,
    Memcached,
    Replicas,
    Wait,
}

/// One side's figures, over the rounds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub kops: Spread,
    pub p50_us: Spread,
    pub p99_us: Spread,
    /// CPU time of all server processes per operation, in microseconds.
    pub server_us: Spread,
    pub failed: u64,
}

impl Side {
    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Text => "memcached's protocol",
            Self::Memcached => "memcached",
            Self::Replicas => "valkey 1+2 async",
            Self::Wait => "valkey 1+2 WAIT 2",
        }
    }

    /// Flags of `gestalt bench` beside those of the servers.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Native => &["--protocol", "native"],
            Self::Text | Self::Memcached | Self::Replicas => &[],
            Self::Wait => &["--wait", "2"],
        }
    }
}

/// What runs.
struct Servers {
    cluster: Server,
    memcached: Server,
    /// Not in a quick look: it is slow to install.
    valkey: Option<Server>,
}

impl Servers {
    fn start(quick: bool) -> Result<Self, String> {
        let options =
            Options { nodes: runs::PROCESSES, memory: runs::NODE_MEMORY.to_owned(), ..Options::default() };
        Ok(Self {
            cluster: Server::gestalt_with(&options)?,
            memcached: Server::memcacheds(runs::PROCESSES, runs::MEMCACHED_MIB, 1)?,
            valkey: if quick { None } else { Some(Server::valkey(2)?) },
        })
    }

    fn sides(&self) -> Vec<(Side, &Server)> {
        let valkey = self.valkey.iter().flat_map(|valkey| [(Side::Replicas, valkey), (Side::Wait, valkey)]);
        let own = [(Side::Native, &self.cluster), (Side::Text, &self.cluster)];
        own.into_iter().chain([(Side::Memcached, &self.memcached)]).chain(valkey).collect()
    }

    fn load(&self, keys: &str) -> Result<(), String> {
        for server in [&self.cluster, &self.memcached].into_iter().chain(&self.valkey) {
            let size = USUAL.to_string();
            let report = server.bench("load", ["--keys", keys, "--value-size", &size, "--clients", "10"])?;
            if let Some(errors) = report["errors"].as_object().filter(|errors| !errors.is_empty()) {
                return Err(format!("{}: {errors:?}", server.name));
            }
        }
        Ok(())
    }
}

/// Runs all of them.
pub fn measure(arguments: &Arguments) -> Result<Vec<Workload>, String> {
    let servers = Servers::start(arguments.quick)?;
    let keys = if arguments.quick { QUICK_KEYS } else { KEYS };
    servers.load(keys)?;
    let sides = servers.sides();
    let mut workloads = Vec::new();
    for (name, title) in WORKLOADS {
        let mut runs: BTreeMap<Side, Vec<Run>> = BTreeMap::new();
        for round in 0..arguments.rounds() as usize {
            for turn in 0..sides.len() {
                let (side, server) = sides[(round + turn) % sides.len()];
                let flags = flags(arguments, side, keys, round);
                runs.entry(side).or_default().push(runs::bench(server, name, &flags)?);
            }
        }
        let figures = runs.iter().map(|(side, runs)| (*side, Figures::of(runs))).collect();
        let workload = Workload { title: title.to_owned(), rounds: arguments.rounds(), sides: figures };
        workload.show();
        workloads.push(workload);
    }
    Ok(workloads)
}

fn flags(arguments: &Arguments, side: Side, keys: &str, round: usize) -> Vec<String> {
    let pairs = [
        ("--keys", keys.to_owned()),
        ("--value-size", USUAL.to_string()),
        ("--clients", CROWD.to_string()),
        ("--zipf", THETA.to_owned()),
        ("--duration", format!("{}ms", arguments.milliseconds())),
        // The same for all sides of a round.
        ("--seed", (round + 1).to_string()),
    ];
    let pairs = pairs.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
    pairs.chain(side.flags().iter().map(|flag| (*flag).to_owned())).collect()
}

impl Figures {
    fn of(runs: &[Run]) -> Self {
        let of = |pick: fn(&Run) -> f64| Spread::of(runs.iter().map(pick));
        Self {
            kops: of(|run| run.kops),
            p50_us: of(|run| run.p50_us),
            p99_us: of(|run| run.p99_us),
            server_us: of(|run| run.server_us),
            failed: runs.iter().map(|run| run.failed).sum(),
        }
    }
}

impl Workload {
    fn show(&self) {
        let figures = self.sides.iter().map(|(side, figures)| {
            format!("{} {:.1} k {:.2} µs", side.title(), figures.kops.median, figures.server_us.median)
        });
        println!("{}: {}", self.title, figures.collect::<Vec<_>>().join(" | "));
    }
}
