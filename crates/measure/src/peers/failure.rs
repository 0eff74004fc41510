//! The same load while nodes are killed or stopped: throughput, waits and failures over time.

use std::collections::BTreeMap;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options, is_whole};
use processes::servers::Server;
use serde_json::Value;
use types::{ClusterMap, GroupView, NodeId};

use crate::peers::arguments::Arguments;
use crate::peers::document::{Document, Failure, Stretch};
use crate::peers::side::{Setup, Side};
use crate::spread::Spread;

/// Those that go on when nodes are gone.
const SIDES: [Side; 2] = [Side::Rs32, Side::Rep3];
/// When nodes are hurt, after the load has begun; and how long it goes on.
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(10);
/// Length of the stretches that are counted, in milliseconds.
const INTERVAL_MS: u64 = 50;
/// What is kept of the time before, and what counts as the end, in seconds.
const KEPT_S: f64 = 2.0;
const END_S: f64 = 3.0;
/// How often the map is looked at, and for how long.
const LOOK: Duration = Duration::from_millis(20);
const PROTECTED_LIMIT: Duration = Duration::from_secs(60);
/// Of each node.
const MEMORY: &str = "1GiB";
/// Values of 1 KiB.
const VALUES: u32 = 100_000;
/// Of the throughput before: as much is normal.
const NORMAL: f64 = 0.8;
/// Stretches whose median has to be normal.
const STEADY: usize = 20;

/// What is done to how many nodes.
#[derive(Clone, Copy)]
struct Fault {
    how: &'static str,
    signal: Signal,
    nodes: usize,
}

const FAULTS: [Fault; 3] = [
    Fault { how: "killed", signal: Signal::SIGKILL, nodes: 1 },
    Fault { how: "killed", signal: Signal::SIGKILL, nodes: 2 },
    Fault { how: "stopped", signal: Signal::SIGSTOP, nodes: 1 },
];

/// Every fault on every side, each in a cluster of its own.
pub fn measure(_arguments: &Arguments, document: &mut Document) -> Result<(), String> {
    document.failures.clear();
    for fault in FAULTS {
        for side in SIDES {
            let failure = measure_one(fault, side)?;
            show(&failure);
            document.failures.push(failure);
        }
    }
    Ok(())
}

fn measure_one(fault: Fault, side: Side) -> Result<Failure, String> {
    let Setup::Gestalt { profile, nodes } = side.setup() else { return Err("only ours are hurt".to_owned()) };
    let options = Options {
        nodes,
        spares: fault.nodes as u16,
        profile: profile.to_owned(),
        memory: MEMORY.to_owned(),
        ..Options::default()
    };
    let server = Server::gestalt_with(&options)?;
    let cluster = server.cluster().ok_or("only ours are hurt")?;
    // Until the spare nodes have their share.
    cluster.wait_until_calm(PROTECTED_LIMIT, |_| true)?;
    let victims = victims(&cluster.map()?, fault.nodes);
    let values = VALUES.to_string();
    server.bench("load", ["--keys", &values])?;
    let report = scope(|scope| {
        let load = scope.spawn(|| run_load(&server, &values));
        sleep(BEFORE);
        let at = SystemTime::now();
        victims.iter().for_each(|&node| cluster.signal(node, fault.signal));
        let protected = time_until_settled(cluster);
        let report = load.join().map_err(|_| "the load has panicked".to_owned())?;
        Ok::<_, String>((report?, at, protected?))
    });
    victims.iter().for_each(|&node| cluster.signal(node, Signal::SIGCONT));
    let (report, at, protected_s) = report?;
    let at = at.duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?.as_secs_f64();
    let began = report["began_unix_s"].as_f64().ok_or("the load does not say when it began")?;
    Ok(Failure { protected_s, ..assess(fault, side, &report, at - began)? })
}

/// So many nodes, those with the most parities first: writes wait for these, while the rest of their keys wait for a stand-in.
fn victims(map: &ClusterMap, count: usize) -> Vec<u16> {
    let parities = |node: NodeId| {
        let of = |view: &GroupView| view.in_sync().filter(|(_, host)| host.node == node).count();
        map.groups.iter().map(of).sum::<usize>()
    };
    let mut nodes: Vec<NodeId> = map.nodes.iter().map(|node| node.host.node).collect();
    nodes.sort_by_key(|node| (std::cmp::Reverse(parities(*node)), *node));
    nodes.iter().take(count).map(|node| node.0).collect()
}

/// Until every group survives as many losses again as it is to, in seconds from now; none if that takes too long.
fn time_until_settled(cluster: &LocalCluster) -> Result<Option<f64>, String> {
    let begun = Instant::now();
    while begun.elapsed() < PROTECTED_LIMIT {
        let map = cluster.map()?;
        // The loss must be noticed before anything can be mended.
        if is_whole(&map) && map.nodes.iter().any(|node| !node.alive) {
            return Ok(Some(begun.elapsed().as_secs_f64()));
        }
        sleep(LOOK);
    }
    Ok(None)
}

fn run_load(server: &Server, values: &str) -> Result<Value, String> {
    let duration = format!("{}ms", (BEFORE + AFTER).as_millis());
    let interval = format!("{INTERVAL_MS}ms");
    let flags =
        ["--keys", values, "--duration", &duration, "--interval", &interval, "--timeout", "1s", "--verify"];
    server.bench("a", flags)
}

/// What the timeline says; `at_s` is when the fault came.
fn assess(fault: Fault, side: Side, report: &Value, at_s: f64) -> Result<Failure, String> {
    let mut timeline: Vec<Stretch> =
        serde_json::from_value(report["timeline"].clone()).map_err(|error| error.to_string())?;
    // The last stretch is cut off by the end of the load.
    timeline.pop();
    let count = |field: &str| report[field].as_u64().unwrap_or(0);
    let errors: BTreeMap<String, u64> =
        serde_json::from_value(report["errors"].clone()).map_err(|error| error.to_string())?;
    let split = timeline.partition_point(|stretch| stretch.until_s <= at_s);
    let (earlier, later) = timeline.split_at(split);
    // The first second is the client's own start.
    let calm: Vec<&Stretch> = earlier.iter().filter(|stretch| stretch.until_s > 1.0).collect();
    let end = timeline.last().map_or(0.0, |stretch| stretch.until_s);
    let last: Vec<&Stretch> = later.iter().filter(|stretch| stretch.until_s > end - END_S).collect();
    let rate = |of: &[&Stretch]| Spread::of(of.iter().map(|stretch| stretch.operations_per_second)).median;
    let p99 = |of: &[&Stretch]| Spread::of(of.iter().map(|stretch| stretch.p99_us)).median;
    let before = rate(&calm);
    Ok(Failure {
        side,
        how: fault.how.to_owned(),
        nodes: fault.nodes,
        at_s,
        before,
        before_p99_us: p99(&calm),
        silent_s: silence(later),
        normal_s: normal_at(later, NORMAL * before).map(|until| (until - at_s).max(0.0)),
        protected_s: None,
        after: rate(&last),
        after_p99_us: p99(&last),
        failed: errors.values().sum(),
        wrong: count("wrong_values"),
        misses: count("misses"),
        errors,
        timeline: timeline.iter().copied().filter(|stretch| stretch.until_s > at_s - KEPT_S).collect(),
    })
}

/// The longest run of stretches without any answer, in seconds.
fn silence(stretches: &[Stretch]) -> f64 {
    let (mut longest, mut current) = (0_u64, 0);
    for stretch in stretches {
        current = if stretch.operations_per_second == 0.0 { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    (longest * INTERVAL_MS) as f64 / 1000.0
}

/// The end of the first stretch that has at least `normal`, as has the median of the second that begins with it.
fn normal_at(stretches: &[Stretch], normal: f64) -> Option<f64> {
    let is_normal = |window: &&[Stretch]| {
        window[0].operations_per_second >= normal
            && Spread::of(window.iter().map(|stretch| stretch.operations_per_second)).median >= normal
    };
    stretches.windows(STEADY).find(is_normal).map(|window| window[0].until_s)
}

fn show(failure: &Failure) {
    println!(
        "{:?}, {} {}: {:.0}/s, p99 {:.0} µs before; silent {:.2} s, normal after {:?} s, protected after {:?} s; {:.0}/s, p99 {:.0} µs at the end; \
         {} failed {:?}, {} wrong, {} missing",
        failure.side,
        failure.nodes,
        failure.how,
        failure.before,
        failure.before_p99_us,
        failure.silent_s,
        failure.normal_s,
        failure.protected_s,
        failure.after,
        failure.after_p99_us,
        failure.failed,
        failure.errors,
        failure.wrong,
        failure.misses,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(rates: &[f64]) -> Vec<Stretch> {
        let of = |(index, &rate): (usize, &f64)| Stretch {
            until_s: index as f64,
            operations_per_second: rate,
            failed: 0,
            p99_us: 0.0,
            max_us: 0.0,
        };
        rates.iter().enumerate().map(of).collect()
    }

    #[test]
    fn silence_is_the_longest_run_of_nothing() {
        assert_eq!(silence(&stretches(&[0.0, 1.0, 0.0, 0.0, 1.0])), 0.1);
    }

    #[test]
    fn normal_is_what_lasts() {
        let mut rates = vec![0.0, 9.0, 0.0];
        rates.extend([0.0; STEADY]);
        rates.extend([9.0; STEADY]);
        assert_eq!(normal_at(&stretches(&rates), 8.0), Some((3 + STEADY) as f64));
        assert_eq!(normal_at(&stretches(&rates[..10]), 8.0), None);
    }
}
