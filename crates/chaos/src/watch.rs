//! Looks at the processes once a second: memory, descriptors, and what they say of themselves.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use processes::pages::metric;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::network::node_address;
use crate::pages::fetch;

/// What a process was like at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Since the start of the run.
    pub at: Duration,
    /// Which node.
    pub node: u16,
    /// Which life of it.
    pub pid: u32,
    /// Memory that the system has given it.
    pub rss_bytes: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Memory by its own account; none if it did not answer.
    pub accounted_bytes: Option<u64>,
    /// Links that it has closed for a malformed frame; none if it did not answer.
    pub malformed: Option<u64>,
}

/// A thread that samples.
pub struct Watch {
    shared: Arc<Shared>,
    thread: JoinHandle<Vec<Sample>>,
}

#[derive(Default)]
struct Shared {
    pids: Mutex<Vec<(u16, u32)>>,
    stop: AtomicBool,
}

const EVERY: Duration = Duration::from_secs(1);

impl Watch {
    /// Starts one; times count from `epoch`.
    pub fn start(cluster: &Cluster, epoch: Instant) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = cluster.in_hub(move || thread::spawn(move || watch(&theirs, epoch)));
        let watch = Self { shared, thread };
        watch.follow(cluster);
        watch
    }

    /// Looks at the processes that run now.
    pub fn follow(&self, cluster: &Cluster) {
        if let Ok(mut pids) = self.shared.pids.lock() {
            *pids = cluster.pids();
        }
    }

    /// Ends; everything that was seen.
    pub fn finish(self) -> Vec<Sample> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("watching does not panic")
    }
}

fn watch(shared: &Shared, epoch: Instant) -> Vec<Sample> {
    let mut samples = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let pids = shared.pids.lock().map(|pids| pids.clone()).unwrap_or_default();
        samples.extend(pids.into_iter().filter_map(|(node, pid)| sample(node, pid, epoch)));
        thread::sleep(EVERY);
    }
    samples
}

fn sample(node: u16, pid: u32, epoch: Instant) -> Option<Sample> {
    let rss_bytes = resident(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)?;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64;
    let status = fetch(node_address(node), "/status");
    let metrics = fetch(node_address(node), "/metrics");
    Some(Sample {
        at: epoch.elapsed(),
        node,
        pid,
        rss_bytes,
        descriptors,
        accounted_bytes: status.and_then(|text| accounted(&text)),
        malformed: metrics.and_then(|text| metric(&text, "gestalt_link_malformed_total")),
    })
}

/// `VmRSS` in bytes.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn accounted(status: &str) -> Option<u64> {
    serde_json::from_str::<Value>(status).ok()?["memory"]["used_bytes"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_their_pages() {
        assert_eq!(resident("VmPeak:\t 9 kB\nVmRSS:\t   12 kB\n"), Some(12 << 10));
        assert_eq!(accounted(r#"{"memory":{"used_bytes":7}}"#), Some(7));
    }

    #[test]
    fn this_very_process_can_be_looked_at() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        assert!(resident(&status).unwrap() > 1 << 20);
    }
}
