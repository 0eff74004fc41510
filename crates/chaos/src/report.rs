//! What came of a run.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::leaks::Life;

/// Figures and failures of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What drew the schedule.
    pub seed: u64,
    /// The line that runs the same schedule again.
    pub replay: String,
    /// How long the faults took.
    pub seconds: f64,
    /// Actions done, by kind.
    pub done: BTreeMap<&'static str, usize>,
    /// What an operator did to pools and namespaces, by kind.
    pub orders: BTreeMap<&'static str, usize>,
    /// Operations with an answer in namespaces beside the default one.
    pub answered_elsewhere: usize,
    /// Actions left out, by reason.
    pub skipped: BTreeMap<String, usize>,
    /// Operations with an answer.
    pub answered: usize,
    /// Operations that may or may not have been done.
    pub unknown: usize,
    /// Requests that were refused because no primary was there.
    pub refused: u64,
    /// Requests that were refused for want of memory.
    pub refused_for_memory: u64,
    /// Requests that were refused because the key's data was lost.
    pub refused_as_lost: u64,
    /// The longest that a client waited between two answers, in seconds.
    pub longest_wait_seconds: f64,
    /// Keys that were read at the end.
    pub keys_read: usize,
    /// Values that were written before the first fault and read at the end.
    pub cold_read: usize,
    /// Of how many of them the cluster said that they are lost.
    pub cold_lost: usize,
    /// Bits that were flipped on the way between processes.
    pub bits_flipped: u64,
    /// Links between nodes that were closed for a malformed frame.
    pub links_closed_for_it: u64,
    /// Processes that were started again.
    pub restarts: usize,
    /// Those of them that had ended because they got no more memory from the system.
    pub starved: usize,
    /// What limited the processes' memory, and the most that one of them had; empty if nothing did.
    pub caps: String,
    /// How long redundancy took to come back after the last fault was over, in seconds.
    pub settled_after_seconds: Option<f64>,
    /// Lives of processes that were long enough to be judged.
    pub lives: Vec<Life>,
    /// Where logs and the history are.
    pub dir: String,
    /// Scans of the cold keys that came to their end.
    pub scans: u64,
    /// Those that did not, for want of an answer.
    pub scans_broken_off: u64,
    /// What is wrong. Empty: nothing.
    pub failures: Vec<String>,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions: usize = self.done.values().sum();
        writeln!(f, "seed {}: {actions} actions in {:.0} s", self.seed, self.seconds)?;
        for (kind, count) in &self.done {
            writeln!(f, "  {count:>5} {kind}")?;
        }
        let orders: Vec<String> = self.orders.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let answered = self.answered_elsewhere;
        writeln!(f, "  operator: {}; {answered} answered in other namespaces", orders.join(", "))?;
        for (reason, count) in &self.skipped {
            writeln!(f, "  {count:>5} left out: {reason}")?;
        }
        writeln!(
            f,
            "clients: {} answered, {} unknown, {} refused, {} refused for memory, {} refused as lost, longest wait {:.1} s",
            self.answered,
            self.unknown,
            self.refused,
            self.refused_for_memory,
            self.refused_as_lost,
            self.longest_wait_seconds
        )?;
        writeln!(
            f,
            "links: {} bits flipped, {} links closed for it",
            self.bits_flipped, self.links_closed_for_it
        )?;
        let settled = self.settled_after_seconds.map_or_else(|| "never".to_owned(), |s| format!("{s:.1} s"));
        writeln!(
            f,
            "end: redundancy back after {settled}, {} keys and {} cold values read, {} lost",
            self.keys_read, self.cold_read, self.cold_lost
        )?;
        writeln!(f, "scans: {} whole, {} broken off", self.scans, self.scans_broken_off)?;
        self.write_lives(f)?;
        if !self.caps.is_empty() {
            writeln!(f, "caps: {}; {} restarts for want of memory", self.caps, self.starved)?;
        }
        for failure in &self.failures {
            writeln!(f, "FAILED: {failure}")?;
        }
        if !self.passed() {
            writeln!(f, "logs and history: {}", self.dir)?;
        }
        write!(f, "replay: {}", self.replay)
    }
}

impl Report {
    fn write_lives(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = |of: fn(&Life) -> u64| self.lives.iter().map(of).max().unwrap_or(0);
        writeln!(
            f,
            "processes: {} restarts, {} lives judged, at most {} MiB resident and {} descriptors",
            self.restarts,
            self.lives.len(),
            most(|life| life.rss_mib[1]),
            most(|life| life.descriptors[1])
        )
    }
}
