//! Whether a process keeps memory or descriptors that it does not need.
//!
//! A process is compared with itself: with what it was like after its warm-up. Memory that it accounts for (items, parity,
//! index, buffers) may grow up to its cap and is not a leak; what it holds beyond its own account is.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::watch::Sample;

/// A process is taken as it is so long after its start.
pub const WARM_UP: Duration = Duration::from_secs(8);
/// Descriptors beyond those after the warm-up, when clients have gone.
pub const MORE_DESCRIPTORS: u64 = 8;
/// Descriptors beyond those after the warm-up, at any time: clients that come back, links that are opened anew.
pub const MORE_DESCRIPTORS_MEANWHILE: u64 = 128;
/// Memory beyond a process' own account, compared with the same after the warm-up: the allocator's slack.
pub const MORE_BYTES: u64 = 48 << 20;

/// One life of a node, from its warm-up to its end or that of the run.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Life {
    /// Which node.
    pub node: u16,
    /// Which process.
    pub pid: u32,
    /// How long it was looked at.
    pub seconds: u64,
    /// Descriptors after the warm-up, most of them, and at the end.
    pub descriptors: [u64; 3],
    /// Memory in MiB that the system has given it: after the warm-up, most of it, at the end.
    pub rss_mib: [u64; 3],
    /// Memory in MiB by its own account: after the warm-up and at the end.
    pub accounted_mib: [u64; 2],
    /// Links that it has closed for a malformed frame.
    pub malformed: u64,
}

/// The lives in `samples`, those that were long enough to say anything about.
pub fn lives(samples: &[Sample]) -> Vec<Life> {
    let mut by_life: BTreeMap<(u16, u32), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        by_life.entry((sample.node, sample.pid)).or_default().push(sample);
    }
    by_life.into_values().filter_map(|samples| life(&samples)).collect()
}

fn life(samples: &[&Sample]) -> Option<Life> {
    let born = samples.first()?.at;
    // What a process holds says nothing without its own account of it.
    let answered = samples.iter().filter(|sample| sample.accounted_bytes.is_some());
    let warm: Vec<&&Sample> = answered.filter(|sample| sample.at >= born + WARM_UP).collect();
    let (first, last) = (*warm.first()?, *warm.last()?);
    let most = |of: fn(&Sample) -> u64| warm.iter().map(|sample| of(sample)).max().unwrap_or(0);
    let accounted = |sample: &Sample| sample.accounted_bytes.unwrap_or(0) >> 20;
    Some(Life {
        node: first.node,
        pid: first.pid,
        seconds: (last.at - first.at).as_secs(),
        descriptors: [first.descriptors, most(|sample| sample.descriptors), last.descriptors],
        rss_mib: [first.rss_bytes >> 20, most(|sample| sample.rss_bytes) >> 20, last.rss_bytes >> 20],
        accounted_mib: [accounted(first), accounted(last)],
        malformed: samples.iter().filter_map(|sample| sample.malformed).max().unwrap_or(0),
    })
}

/// What is wrong with a life. `is_over` says that the process ended during the run, so its last moments had clients; a process
/// that presides has up to `presiding` more descriptors than before.
pub fn complaint(life: &Life, is_over: bool, presiding: u64) -> Option<String> {
    let [before, most, after] = life.descriptors;
    let bound = before + if is_over { MORE_DESCRIPTORS_MEANWHILE } else { MORE_DESCRIPTORS + presiding };
    if after > bound || most > before + MORE_DESCRIPTORS_MEANWHILE {
        return Some(format!(
            "node {} (pid {}) keeps descriptors: {before} after its warm-up, {most} at most, {after} at the end",
            life.node, life.pid
        ));
    }
    let beyond = |rss: u64, accounted: u64| rss.saturating_sub(accounted);
    let grown = beyond(life.rss_mib[2], life.accounted_mib[1])
        .saturating_sub(beyond(life.rss_mib[0], life.accounted_mib[0]));
    (grown > MORE_BYTES >> 20).then(|| {
        format!(
            "node {} (pid {}) holds {grown} MiB more beyond its account than after its warm-up: {:?} MiB resident, {:?} MiB accounted",
            life.node, life.pid, life.rss_mib, life.accounted_mib
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, rss_mib: u64, accounted_mib: u64, descriptors: u64) -> Sample {
        Sample {
            at: Duration::from_secs(second),
            node: 1,
            pid: 7,
            rss_bytes: rss_mib << 20,
            descriptors,
            accounted_bytes: Some(accounted_mib << 20),
            malformed: Some(second),
        }
    }

    fn verdict(last: Sample) -> Option<String> {
        let samples = [sample(0, 10, 5, 10), sample(10, 40, 30, 60), last];
        complaint(&lives(&samples)[0], false, 0)
    }

    #[test]
    fn growth_that_is_accounted_for_is_no_leak() {
        assert_eq!(verdict(sample(60, 140, 130, 40)), None);
        let life = &lives(&[sample(0, 1, 1, 1), sample(9, 2, 2, 2), sample(10, 4, 3, 1)])[0];
        assert_eq!((life.seconds, life.descriptors, life.rss_mib), (1, [2, 2, 1], [2, 4, 4]));
        assert_eq!(life.malformed, 10);
    }

    #[test]
    fn memory_and_descriptors_that_stay_are() {
        assert!(verdict(sample(60, 140, 30, 40)).unwrap().contains("holds 100 MiB more"));
        assert!(verdict(sample(60, 40, 30, 69)).unwrap().contains("keeps descriptors"));
        assert_eq!(verdict(sample(60, 40, 30, 68)), None);
        let led = &lives(&[sample(0, 10, 5, 10), sample(10, 40, 30, 60), sample(60, 40, 30, 75)])[0];
        assert!(complaint(led, false, 6).is_some() && complaint(led, false, 7).is_none());
    }

    #[test]
    fn a_life_without_warm_up_says_nothing() {
        assert_eq!(lives(&[sample(0, 1, 1, 1), sample(5, 900, 1, 900)]), []);
    }
}
