//! What clients see of a loss, and how long it takes until the cluster is as protected as before; growth and a restart of
//! every node in turn, under load.

mod load;
mod observe;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use client::Router;
use cluster::{RoleCounts, RoleTally};
use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options, is_whole};

use crate::alone::arguments::Arguments;
use load::{Connection, Load};
use observe::{loopback_rate, member_bytes, per_node, sent_bytes, wait_until, wait_until_calm};

/// Nodes that the others take over from, idle and under load.
const LOST_IDLE: u16 = 1;
const LOST_LOADED: u16 = 3;
/// Longest wait for their answers.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// Longest wait for a repair.
const REPAIR_LIMIT: Duration = Duration::from_secs(600);
/// How long clients are watched before a fault, and after it has been mended.
const CALM: Duration = Duration::from_secs(5);
/// Keys of 4 KiB each that a cluster is filled with.
const FILL_KEYS_PER_GIB: u64 = (1 << 30) / (4 << 10);

/// Kills a node and reads and writes keys of it at once, in one cluster after another.
pub fn first_access(arguments: &Arguments) -> Result<(), String> {
    println!(
        "\nFrom the loss of a node to the first answer for its keys, lease 1 s, {0} reads and {0} writes a try:",
        arguments.probes
    );
    for groups in &arguments.groups {
        for (what, signal) in [("killed (its parent sees it)", Signal::SIGKILL), ("stopped", Signal::SIGSTOP)]
        {
            let (mut reads, mut writes) = lose_and_ask(arguments, *groups, signal)?;
            println!("{groups} groups, {what}: reads {}, writes {}", spread(&mut reads), spread(&mut writes));
        }
    }
    Ok(())
}

/// Reads and writes of all rounds.
fn lose_and_ask(
    arguments: &Arguments,
    groups: u32,
    signal: Signal,
) -> Result<(Vec<Duration>, Vec<Duration>), String> {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let mut options = Options { spares: 1, ..Options::default() };
        options.flags.extend(["--groups".to_owned(), groups.to_string()]);
        let cluster = LocalCluster::start(&options)?;
        wait_until(&cluster, "settled", REPAIR_LIMIT, is_whole)?;
        let answers = probe(&cluster, LOST_IDLE, signal, arguments.probes)?;
        reads.extend(answers.0);
        writes.extend(answers.1);
        cluster.signal(LOST_IDLE, Signal::SIGCONT);
    }
    Ok((reads, writes))
}

/// Least, median and most.
fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    let (first, last) =
        (times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default());
    format!("{first:.1?} / {middle:.1?} / {last:.1?}")
}

/// How long reads and writes of keys that `node` serves take through another node, from the signal on.
fn probe(
    cluster: &LocalCluster,
    node: u16,
    signal: Signal,
    probes: usize,
) -> Result<(Vec<Duration>, Vec<Duration>), String> {
    let map = cluster.map()?;
    let address = cluster.memcached(node);
    let is_its =
        |key: &u64| Router::locate_in(&map, format!("load-{key}").as_bytes()).address == Some(address);
    let keys: Vec<u64> = (0..100_000).filter(is_its).take(2 * probes).collect();
    let other = cluster.memcached(node + 1);
    // Connected and written before the loss: the client's own start is not to be measured.
    let mut connections = Vec::new();
    for key in keys {
        let mut connection = Connection::open(other)?;
        connection.set(key)?;
        connections.push((key, connection));
    }
    let gone = Instant::now();
    cluster.signal(node, signal);
    let ask = |(at, (key, mut connection)): (usize, (u64, Connection))| {
        thread::spawn(move || {
            // What was in flight at the lost node may be answered "outcome unknown": a client asks again.
            while gone.elapsed() < PROBE_LIMIT {
                let answer = if at < probes { connection.get(key) } else { connection.set(key) };
                if answer.is_ok() {
                    return Ok(gone.elapsed());
                }
            }
            Err(format!("no answer within {PROBE_LIMIT:?}"))
        })
    };
    let threads: Vec<_> = connections.into_iter().enumerate().map(ask).collect();
    let mut times = Vec::new();
    for thread in threads {
        times.push(thread.join().map_err(|_| "a probe has panicked".to_owned())??);
    }
    let writes = times.split_off(probes);
    Ok((times, writes))
}

/// For each size: the loss of a node with nobody asking, then of another one under load.
pub fn protection(arguments: &Arguments) -> Result<(), String> {
    for gib in &arguments.gib {
        let cluster = filled(*gib, 2, &[])?;
        // The best of three: this is what the machine can do, not what it does on average.
        let copies = (0..3).map(|_| loopback_rate()).collect::<Result<Vec<_>, _>>()?;
        let copy = copies.iter().copied().fold(0.0, f64::max);
        println!(
            "\n{gib} GiB of 4 KiB values on seven nodes, rs(3+2); the loopback copies {:.2} GB/s:",
            copy / 1e9
        );
        lose_idle(&cluster, copy)?;
        lose_loaded(&cluster, arguments, copy)?;
    }
    Ok(())
}

fn lose_idle(cluster: &LocalCluster, copy: f64) -> Result<(), String> {
    let lost = member_bytes(cluster, &[LOST_IDLE])?;
    cluster.kill_nodes(&[LOST_IDLE]);
    let noticed = wait_until(cluster, "noticed", REPAIR_LIMIT, |map| !is_whole(map))?;
    // What the lost process has counted is gone from the sum from here on.
    let before = sent_bytes(cluster)?;
    let took = noticed + wait_until(cluster, "protected", REPAIR_LIMIT, is_whole)?;
    let moved = (sent_bytes(cluster)? - before) / lost;
    println!("idle: {}; {moved:.2} bytes travelled for each one lost", rebuilt(lost, took, copy));
    Ok(())
}

/// How much was rebuilt, how fast, and beside the loopback.
fn rebuilt(bytes: f64, took: Duration, copy: f64) -> String {
    let rate = bytes / took.as_secs_f64();
    format!(
        "full protection after {:.2} s, {:.0} MB were lost, {:.0} MB/s, {:.3} of the loopback's copy",
        took.as_secs_f64(),
        bytes / 1e6,
        rate / 1e6,
        rate / copy
    )
}

fn lose_loaded(cluster: &LocalCluster, arguments: &Arguments, copy: f64) -> Result<(), String> {
    let gone = [LOST_IDLE, LOST_LOADED];
    let survivors: Vec<SocketAddr> = (0..cluster.node_count())
        .filter(|node| !gone.contains(node))
        .map(|node| cluster.memcached(node))
        .collect();
    let load = Load::start(&survivors, arguments.clients, arguments.rate)?;
    thread::sleep(CALM);
    let lost = member_bytes(cluster, &[LOST_LOADED])?;
    let killed = Instant::now();
    cluster.kill_nodes(&[LOST_LOADED]);
    let noticed = wait_until(cluster, "noticed", REPAIR_LIMIT, |map| !is_whole(map))?;
    let took = noticed + wait_until(cluster, "protected", REPAIR_LIMIT, is_whole)?;
    let protected = Instant::now();
    thread::sleep(CALM);
    let answers = load.finish()?;
    println!("under load: {}", rebuilt(lost, took, copy));
    println!("  before:  {}", answers.between(killed - CALM, killed));
    println!("  repair:  {}", answers.between(killed, protected));
    println!("  after:   {}", answers.between(protected, protected + CALM));
    Ok(())
}

/// A cluster of five nodes and `spares` with so much in it.
fn filled(gib: u32, spares: u16, flags: &[&str]) -> Result<LocalCluster, String> {
    let flags = ["--evict", "none"].iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
    let options = Options { spares, memory: memory(gib), flags, ..Options::default() };
    let cluster = LocalCluster::start(&options)?;
    // Before there is anything to move: spare nodes take their share first.
    wait_until_calm(&cluster, usize::from(cluster.node_count()), REPAIR_LIMIT)?;
    let keys = u64::from(gib) * FILL_KEYS_PER_GIB;
    let load = ["bench", "load", "--http", "{http}", "--value-size", "4KiB", "--depth", "4", "--keys"];
    let (status, _, error) = cluster.gestalt(&[&load[..], &[&keys.to_string()]].concat())?;
    if status.success() { Ok(cluster) } else { Err(error) }
}

/// A node's memory, so that five can hold so much.
fn memory(gib: u32) -> String {
    // With rs(3+2) a GiB of values makes 341 MiB on each of five nodes. The rest is
    // slack, and what an empty node needs.
    format!("{}MiB", gib * 400 + 200)
}

/// Nodes join five under load.
pub fn growth(arguments: &Arguments) -> Result<(), String> {
    arguments.groups.iter().try_for_each(|groups| grow(arguments, *groups))
}

fn grow(arguments: &Arguments, groups: u32) -> Result<(), String> {
    let gib = arguments.gib.first().copied().unwrap_or(1);
    let cluster = filled(gib, 0, &["--groups", &groups.to_string()])?;
    let load = Load::start(&cluster.all_memcached(), arguments.clients, arguments.rate)?;
    thread::sleep(CALM);
    let joined = Instant::now();
    let new: Vec<u16> = (5..arguments.nodes).collect();
    let join = |node: &u16| cluster.join(*node, &memory(gib));
    let _joiners = new.iter().map(join).collect::<Result<Vec<_>, _>>()?;
    let took = wait_until_calm(&cluster, usize::from(arguments.nodes), REPAIR_LIMIT)?;
    let spread = joined + took;
    thread::sleep(CALM);
    let moved = member_bytes(&cluster, &new)?;
    let answers = load.finish()?;
    println!(
        "\nGrowth from 5 to {} nodes, {groups} groups, {gib} GiB, under load: {:.2} s, {:.0} MB on the new nodes, {:.0} MB/s",
        arguments.nodes,
        took.as_secs_f64(),
        moved / 1e6,
        moved / 1e6 / took.as_secs_f64()
    );
    println!("  before:  {}", answers.between(joined - CALM, joined));
    println!("  growth:  {}", answers.between(joined, spread));
    println!("  after:   {}", answers.between(spread, spread + CALM));
    print_balance(&cluster, u64::from(gib) * FILL_KEYS_PER_GIB)
}

/// What each node has and serves, beside what it would if all had the same.
fn print_balance(cluster: &LocalCluster, keys: u64) -> Result<(), String> {
    let tally = RoleTally::of(&cluster.map()?.groups);
    let roles =
        |of: fn(RoleCounts) -> usize| tally.iter().map(|(_, counts)| of(counts) as f64).collect::<Vec<_>>();
    println!("  data roles of a node, of an even share: {}", shares(&roles(|counts| counts.data)));
    println!("  all roles of a node: {}", shares(&roles(RoleCounts::total)));
    let items = per_node(cluster, "gestalt_items")?;
    println!("  items of a node, of an even share: {}", shares(&items));
    let before = per_node(cluster, "gestalt_received_forwards_total")?;
    // Keys alike, each asked of any node: nearly all come to their primaries from another one.
    let keys = keys.to_string();
    let read = ["bench", "c", "--http", "{http}", "--any-node", "--duration", "10s", "--keys", &keys];
    let (status, _, error) = cluster.gestalt(&read)?;
    if !status.success() {
        return Err(error);
    }
    let after = per_node(cluster, "gestalt_received_forwards_total")?;
    let served: Vec<f64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    println!("  requests that a node answers for others, of an even share: {}", shares(&served));
    Ok(())
}

/// Least and most, in hundredths of the mean.
fn shares(counts: &[f64]) -> String {
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let of_mean = |count: f64| 100.0 * count / mean;
    let (least, most) = counts.iter().fold((f64::MAX, 0.0_f64), |(least, most), count| {
        (least.min(of_mean(*count)), most.max(of_mean(*count)))
    });
    format!("{least:.0} to {most:.0} % on {} nodes", counts.len())
}

/// Every node is drained, restarted and brought back, in turn, under load.
pub fn rolling_restart(arguments: &Arguments) -> Result<(), String> {
    let gib = arguments.gib.first().copied().unwrap_or(1);
    let cluster = filled(gib, 1, &["--restart", "always"])?;
    let load = Load::start(&cluster.all_memcached(), arguments.clients, arguments.rate)?;
    thread::sleep(CALM);
    let begun = Instant::now();
    for node in 0..cluster.node_count() {
        restart(&cluster, &load, node)?;
    }
    let ended = Instant::now();
    let answers = load.finish()?;
    println!(
        "\nEvery one of {} nodes drained, restarted and brought back in turn, {gib} GiB, under load: {:.1} s",
        cluster.node_count(),
        (ended - begun).as_secs_f64()
    );
    println!("  before:  {}", answers.between(begun - CALM, begun));
    println!("  restart: {}", answers.between(begun, ended));
    Ok(())
}

fn restart(cluster: &LocalCluster, load: &Load, node: u16) -> Result<(), String> {
    let id = node.to_string();
    order(cluster, &["node", "drain", &id, "--wait"])?;
    load.avoid(Some(node));
    // What is on its way through the node comes to its end.
    thread::sleep(Duration::from_millis(300));
    let incarnation = |map: &types::ClusterMap| {
        map.nodes.iter().find(|info| info.host.node.0 == node).map(|info| (info.host, info.alive))
    };
    let before = incarnation(&cluster.map()?);
    cluster.signal(node, Signal::SIGTERM);
    let is_back = |map: &types::ClusterMap| {
        incarnation(map).is_some_and(|now| now.1 && Some(now.0) != before.map(|before| before.0))
    };
    wait_until(cluster, "started again", REPAIR_LIMIT, is_back)?;
    order(cluster, &["node", "undrain", &id])?;
    load.avoid(None);
    Ok(())
}

fn order(cluster: &LocalCluster, words: &[&str]) -> Result<(), String> {
    let (status, _, error) = cluster.gestalt(&[words, &["--http", "{http}"]].concat())?;
    if status.success() { Ok(()) } else { Err(error) }
}
