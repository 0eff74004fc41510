//! A node is lost, and what it held is made anew at the others: how fast, what is sent for it, and what readers notice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use processes::local_cluster::{LocalCluster, Options};
use processes::servers::Server;
use serde::{Deserialize, Serialize};

use super::plain::{Plain, Protocol, noise};
use super::sides::striped;

/// One of them is to spare.
const NODES: u16 = 6;
const NODE_MEMORY: &str = "3GiB";
/// Lengths of values, and whether somebody reads meanwhile.
const CASES: [(usize, bool); 3] = [(1_000_000, false), (1_000_000, true), (65_536, false)];
/// Values of no more than this are stored in all.
const MOST_VALUES: usize = 70_000;
/// For how long reads are timed before.
const HEALTHY: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(20);

/// What it took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lost {
    pub len: usize,
    /// Bytes of values that were stored.
    pub stored: u64,
    /// Whether one client read all the time.
    pub read: bool,
    /// Bytes of the chunks that were made anew.
    pub made: u64,
    /// From the first of them to the last, in seconds.
    pub seconds: f64,
    /// Bytes that the nodes have sent each other meanwhile, what was read included.
    pub sent: u64,
    /// The reader's 99th percentile before and meanwhile, in milliseconds.
    pub p99_ms: Option<[f64; 2]>,
}

pub fn measure(bytes: usize) -> Result<Vec<Lost>, String> {
    CASES.into_iter().map(|(len, read)| lose(len, read, (bytes / len).min(MOST_VALUES))).collect()
}

fn lose(len: usize, read: bool, count: usize) -> Result<Lost, String> {
    let (nodes, memory) = (NODES, NODE_MEMORY.to_owned());
    let server = striped(Server::gestalt_with(&Options { nodes, memory, ..Options::default() })?, "always")?;
    let cluster = server.cluster().ok_or("no cluster")?;
    let pattern = noise(1 << 20);
    let mut client = Plain::connect(Protocol::Memcached, server.addresses[0])?;
    (0..count).try_for_each(|i| client.set(&format!("value-{i}"), len, &pattern))?;
    // What writes leave behind is done by then.
    thread::sleep(Duration::from_secs(1));
    let over = AtomicBool::new(false);
    let lost = thread::scope(|scope| {
        let reader = read.then(|| scope.spawn(|| reads(&server, (len, count), &over)));
        if read {
            thread::sleep(HEALTHY);
        }
        let filled = fill(cluster);
        over.store(true, Ordering::Relaxed);
        let times = reader.map(|reader| reader.join().map_err(|_| "the reader panicked".to_owned())?);
        let (begun, lost) = filled?;
        let p99_ms =
            times.transpose()?.map(|times| [p99(&times, |at| at < begun), p99(&times, |at| at >= begun)]);
        Ok::<Lost, String>(Lost { len, stored: (len * count) as u64, read, p99_ms, ..lost })
    })?;
    println!("{lost:?}");
    Ok(lost)
}

/// Kills a node and waits until as many bytes of chunks are there as before; when the first ones came.
fn fill(cluster: &LocalCluster) -> Result<(Instant, Lost), String> {
    const THERE: &str = "gestalt_object_chunk_bytes";
    const SENT: &str = "gestalt_peer_sent_bytes_total";
    let all = cluster.metric(THERE)?;
    cluster.kill_nodes(&[NODES - 1]);
    let left = cluster.metric(THERE)?;
    let until = |is_so: &dyn Fn(u64) -> bool| {
        let begun = Instant::now();
        loop {
            let there = cluster.metric(THERE)?;
            if is_so(there) {
                return Ok(there);
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("{there} of {all} bytes of chunks are there after {LIMIT:?}"));
            }
            thread::sleep(LOOK);
        }
    };
    // What is there by then does not count: when it was asked for nobody has seen.
    let first = until(&|there| there > left)?;
    let (begun, sent) = (Instant::now(), cluster.metric(SENT)?);
    until(&|there| there >= all)?;
    let (made, seconds) = (all - first, begun.elapsed().as_secs_f64());
    let sent = cluster.metric(SENT)? - sent;
    Ok((begun, Lost { len: 0, stored: 0, read: false, made, seconds, sent, p99_ms: None }))
}

/// Reads one value after the other until it is over: when each was asked for, and how long it took.
fn reads(
    server: &Server,
    (len, count): (usize, usize),
    over: &AtomicBool,
) -> Result<Vec<(Instant, Duration)>, String> {
    let mut client = Plain::connect(Protocol::Memcached, server.addresses[0])?;
    let mut times = Vec::new();
    let mut at = 0;
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        client.get_whole(&format!("value-{at}"), len)?;
        times.push((begun, begun.elapsed()));
        at = (at + 7919) % count;
    }
    Ok(times)
}

/// In milliseconds, of those that began at such a time.
fn p99(times: &[(Instant, Duration)], counts: impl Fn(Instant) -> bool) -> f64 {
    let mut all: Vec<f64> =
        times.iter().filter(|(at, _)| counts(*at)).map(|(_, time)| 1e3 * time.as_secs_f64()).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(0.0)
}
