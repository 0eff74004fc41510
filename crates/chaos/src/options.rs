//! What a run is made of.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::caps::CapBy;
use crate::network::coordinator_address;

/// How long to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Until so much time has gone by.
    Time(Duration),
    /// For so many actions.
    Actions(usize),
}

/// Who coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Coordinator {
    /// A process of its own, with the map in its memory: it is paused, cut off, and killed and started again with nothing.
    #[default]
    Embedded,
    /// One of the nodes, which is elected over an etcd; they are hurt both.
    Etcd,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Draws the schedule and what the clients do.
    pub seed: u64,
    /// When to end.
    pub length: Length,
    /// Who coordinates.
    pub coordinator: Coordinator,
    /// Members of etcd, if there is one. Of several, one at a time is hurt, too.
    pub etcd_members: u16,
    /// Nodes. With more than the profile needs there are spares.
    pub nodes: u16,
    /// Protection.
    pub profile: String,
    /// Memory of each node, as on the command line.
    pub memory: String,
    /// Silence after which a node counts as lost.
    pub lease: Duration,
    /// Clients.
    pub clients: u64,
    /// Keys in use at a time; every so often clients turn to new ones, and the old ones are read now and then.
    pub keys: u64,
    /// Pause between a client's operations, which bounds the history.
    pub pause: Duration,
    /// Values that are written before the first fault and read after the last one.
    pub cold: usize,
    /// Longest value in bytes of namespaces whose values lie in chunks; there are none if it is not given.
    pub long: Option<u64>,
    /// Also what the promise does not cover: more members at once than the code can make up for, and a coordinator that is
    /// cut off for long. Then only that nobody hears a wrong answer is checked.
    pub beyond: bool,
    /// Count only what is promised to the letter: that a node which is hurt and not dead may cost its groups more than its own
    /// members is not allowed for.
    pub bold: bool,
    /// Fill the nodes' memory up from time to time.
    pub fill: bool,
    /// Most bytes that the system gives each node's process; it gives one of them less from time to time, too.
    pub cap: Option<u64>,
    /// By what means.
    pub cap_by: CapBy,
    /// Only actions of these kinds ([`Fault::KINDS`](super::Fault::KINDS)); of all kinds if empty.
    pub only: Vec<String>,
    /// Where logs and the history go; a temporary directory if none is given, which is kept if the run fails.
    pub dir: Option<PathBuf>,
    /// Whether each action is told as it happens.
    pub verbose: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            length: Length::Actions(20),
            coordinator: Coordinator::Embedded,
            etcd_members: 1,
            nodes: 7,
            profile: "rs(3+2)".to_owned(),
            memory: "128MiB".to_owned(),
            lease: Duration::from_secs(1),
            clients: 16,
            keys: 60,
            pause: Duration::from_millis(4),
            cold: 10_000,
            long: None,
            beyond: false,
            bold: false,
            fill: false,
            cap: None,
            cap_by: CapBy::default(),
            only: Vec::new(),
            dir: None,
            verbose: true,
        }
    }
}

impl Options {
    /// The line that runs the first `actions` of the same schedule again.
    pub(super) fn replay(&self, actions: usize) -> String {
        let mut line = format!(
            "cargo run --release -p chaos -- --seed {} --actions {actions} --nodes {} --profile '{}' --memory {} --lease {}ms --clients {} --keys {} --pause {}ms --cold {}",
            self.seed,
            self.nodes,
            self.profile,
            self.memory,
            self.lease.as_millis(),
            self.clients,
            self.keys,
            self.pause.as_millis(),
            self.cold
        );
        for (flag, is_set) in [(" --beyond", self.beyond), (" --bold", self.bold), (" --fill", self.fill)] {
            if is_set {
                line.push_str(flag);
            }
        }
        if self.coordinator == Coordinator::Etcd {
            line.push_str(" --coordinator etcd");
        }
        if self.etcd_members > 1 {
            line.push_str(&format!(" --etcd-members {}", self.etcd_members));
        }
        if let Some(long) = self.long {
            line.push_str(&format!(" --long {}MiB", long >> 20));
        }
        if let Some(cap) = self.cap {
            line.push_str(&format!(" --cap {}MiB", cap >> 20));
            if self.cap_by == CapBy::Rlimit {
                line.push_str(" --cap-by rlimit");
            }
        }
        for kind in &self.only {
            line.push_str(&format!(" --only '{kind}'"));
        }
        line
    }

    /// Where the coordinator is, or the members of the etcd over which it is elected.
    pub(super) fn coordinators(&self) -> Vec<Ipv4Addr> {
        (0..self.etcd_members).map(coordinator_address).collect()
    }

    /// Whether items may have to give way.
    pub(super) fn is_short_of_memory(&self) -> bool {
        self.fill || self.cap.is_some() || self.only.iter().any(|kind| kind == "fill memory")
    }

    /// How long to wait for an action that would take away too much.
    pub(super) fn patience(&self) -> Duration {
        10 * self.lease
    }
}
