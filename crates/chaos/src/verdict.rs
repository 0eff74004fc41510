//! Looks for what is wrong with a run.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use history::linearizability::{Failure, History, check};
use history::recorder::{Scanned, Seen};

use crate::cluster::Cluster;
use crate::leaks::{complaint, lives};
use crate::options::{Coordinator, Options};
use crate::report::Report;
use crate::spaces::CACHE;
use crate::tenancy::Told;
use crate::watch::Sample;

/// The operations of each key, as other checkers read them.
pub const HISTORY: &str = "history-by-key.jsonl";
/// So many leases after the last client nothing is left of values that never came to be: an open id ends after 30, and holders ask about
/// what they know nothing of twice, every 60.
const ASKED_LEASES: u32 = 150;
/// How often it is looked whether that is so.
const LOOK: Duration = Duration::from_millis(500);
/// Bits flipped in frames, of which at least one must have been noticed.
const FLIPS_TO_NOTICE: u64 = 20;

/// What clients saw.
pub fn on_history(report: &mut Report, seen: &Seen, options: &Options, dir: &Path) {
    report.answered = seen.answered;
    report.unknown = seen.unknown;
    report.refused = seen.refusals.unavailable;
    report.refused_for_memory = seen.refusals.no_memory;
    report.refused_as_lost = seen.refusals.lost;
    report.longest_wait_seconds = seen.longest_wait.as_secs_f64();
    report.keys_read = seen.keys;
    if report.refused_as_lost > 0 && !options.beyond {
        let text = format!("data is lost: {} requests were told so", report.refused_as_lost);
        report.failures.push(text);
    }
    on_order(report, "", &seen.history);
    keep(report, &seen.history, options, &dir.join(HISTORY));
}

/// Which of the keys that were there throughout came, whenever somebody asked which keys there are.
pub fn on_scans(report: &mut Report, scanned: Scanned, options: &Options) {
    (report.scans, report.scans_broken_off) = (scanned.whole, scanned.broken_off);
    // What is lost is not told by the others.
    report.failures.extend(scanned.wrong.filter(|_| !options.beyond));
}

/// What clients of another namespace saw.
pub fn on_namespace(report: &mut Report, (name, seen): &Told, options: &Options, dir: &Path) {
    report.answered_elsewhere += seen.answered;
    report.refused_as_lost += seen.refusals.lost;
    if seen.refusals.lost > 0 && !options.beyond {
        let text = format!("{name}: data is lost: {} requests were told so", seen.refusals.lost);
        report.failures.push(text);
    }
    // Where memory is short, the cache gives way, and a miss says nothing.
    if name != CACHE.name || !options.is_short_of_memory() {
        on_order(report, &format!("{name}: "), &seen.history);
    }
    keep(report, &seen.history, options, &dir.join(format!("{name}-{HISTORY}")));
}

/// Whether one server could have answered so.
fn on_order(report: &mut Report, whose: &str, history: &History) {
    let text = match check(history) {
        Ok(()) => return,
        Err(Failure::Violation(violation)) => violation.to_string(),
        Err(undecided) => undecided.to_string(),
    };
    report.failures.push(format!("{whose}{text}"));
}

/// Writes a history down, if anybody may want it.
fn keep(report: &mut Report, history: &History, options: &Options, path: &Path) {
    let write = || history.write_by_key(BufWriter::new(File::create(path)?));
    if (options.dir.is_some() || !report.passed())
        && let Err(why) = write()
    {
        report.failures.push(format!("the history cannot be written: {why}"));
    }
}

/// What became of the cold values.
pub fn on_cold(report: &mut Report, read: usize, lost: usize, options: &Options) {
    (report.cold_read, report.cold_lost) = (read - lost, lost);
    if lost > 0 && !options.beyond {
        report.failures.push(format!("data is lost: {lost} of {read} cold values"));
    }
}

/// Whether nothing is left of long values that never came to be.
pub fn on_chunks(report: &mut Report, cluster: &Cluster, options: &Options) {
    if options.long.is_none() || options.beyond {
        return;
    }
    let names = ["tentative_bytes", "arriving_bytes", "open_ids", "pins", "uploads", "gathers"];
    let left_at = |name: &str| -> Vec<String> {
        let name = format!("gestalt_object_{name}");
        let left = cluster.metrics(&name).filter(|(_, value)| *value != Some(0));
        let said = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        left.map(|(node, value)| format!("{} at node {node}", said(value))).collect()
    };
    let begun = Instant::now();
    while let Some((name, left)) =
        names.iter().map(|name| (name, left_at(name))).find(|(_, left)| !left.is_empty())
    {
        if begun.elapsed() > ASKED_LEASES * options.lease {
            report.failures.push(format!(
                "after {ASKED_LEASES} leases without clients there are still {name}: {}",
                left.join(", ")
            ));
            return;
        }
        sleep(LOOK);
    }
}

/// What the processes are like.
pub fn on_processes(report: &mut Report, cluster: &mut Cluster, samples: &[Sample], options: &Options) {
    report.failures.extend(cluster.unexpected_ends().into_iter().map(|end| end.text));
    report
        .failures
        .extend(cluster.panics().into_iter().map(|line| format!("a process has panicked: {line}")));
    // A connection from each node, and where it listens for them.
    let presiding = if options.coordinator == Coordinator::Etcd { u64::from(options.nodes) + 1 } else { 0 };
    let living: Vec<u32> = cluster.pids().into_iter().map(|(_, pid)| pid).collect();
    report.lives = lives(samples);
    let leaks =
        report.lives.iter().filter_map(|life| complaint(life, !living.contains(&life.pid), presiding));
    report.failures.extend(leaks);
    (report.restarts, report.starved) = (cluster.restarts, cluster.starved);
    if let Some(caps) = cluster.caps() {
        report.caps = format!("{caps}{}", caps.account());
    }
    report.bits_flipped = cluster.flipped();
    report.links_closed_for_it = report.lives.iter().map(|life| life.malformed).sum();
    if report.bits_flipped >= FLIPS_TO_NOTICE && report.links_closed_for_it == 0 {
        let text = format!("{} bits were flipped, and no link was closed for it", report.bits_flipped);
        report.failures.push(text);
    }
}
