//! What tests of several modules do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use history::linearizability::check;
use history::recorder::Seen;
use processes::local_cluster::LocalCluster;
use processes::namespaces::unavailable;
use processes::others::ensure_program;
use serde_json::Value;
use types::ClusterMap;

/// For what has to come, also while others use the machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long a map stays as it is if nothing is planned any more.
const STAYS: Duration = Duration::from_secs(3);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until `holds`: how long that took.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) -> Duration {
    within(what, PATIENCE, holds)
}

/// The same with another patience.
#[track_caller]
pub fn within(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < patience, "not {what}");
        sleep(LOOK);
    }
    begun.elapsed()
}

/// Waits until every data role has its pages and nobody moves, also when plans are made anew, which happens every lease. Parities
/// may be missing where no node is spare.
pub fn at_rest(cluster: &LocalCluster) {
    let is_quiet =
        |map: &ClusterMap| map.groups.iter().all(|view| view.is_full() && view.learners.is_empty());
    let (mut version, mut since) = (0, Instant::now());
    eventually("at rest", || {
        let map = cluster.map().expect("the coordinator answers");
        if map.version != version || !is_quiet(&map) {
            (version, since) = (map.version, Instant::now());
        }
        since.elapsed() > STAYS
    });
}

/// Runs `gestalt` with `args` on `cluster`: exit code, standard output and standard error.
pub fn run(cluster: &LocalCluster, args: &[&str]) -> (i32, String, String) {
    let (status, out, error) =
        cluster.gestalt(&[args, &["--http", "{http}"]].concat()).expect("the binary runs");
    println!("$ gestalt {args:?}: {status}\n{out}{error}");
    (status.code().unwrap_or(-1), out, error)
}

/// The same for the document that it prints.
pub fn json(cluster: &LocalCluster, args: &[&str]) -> (i32, Value) {
    let (code, out, error) = run(cluster, &[args, &["-o", "json"]].concat());
    let document = serde_json::from_str(&out);
    (code, document.unwrap_or_else(|why| panic!("{args:?}: {why}; it ended with {code} and said {error}")))
}

/// A connection to node `node` whose reads and writes end in time.
pub fn connect(cluster: &LocalCluster, node: u16) -> TcpStream {
    let stream = TcpStream::connect(cluster.memcached(node)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

/// Has everything flushed, at node `node`.
pub fn flush(cluster: &LocalCluster, node: u16) {
    eventually("flushed", || {
        let mut answer = String::new();
        let mut stream = connect(cluster, node);
        stream.write_all(b"flush_all\r\nquit\r\n").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer == "OK\r\n"
    });
}

/// What nodes hold of values in chunks that are not there, or not there yet, and of what is read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOver {
    /// Bytes of chunks: all of them, whatever their objects are; of those, the ones of which nobody knows that they are committed; of
    /// those that are not whole.
    pub chunks: u64,
    pub tentative: u64,
    pub arriving: u64,
    /// At primaries.
    pub open_ids: u64,
    pub pins: u64,
    /// Where clients are.
    pub uploads: u64,
    pub gathers: u64,
    pub buffers: u64,
}

impl LeftOver {
    /// Of all nodes together.
    pub fn of(cluster: &LocalCluster) -> Self {
        let metric = |name: &str| {
            let name = format!("gestalt_object_{name}");
            cluster.metric(&name).unwrap_or_else(|why| panic!("{why}"))
        };
        Self {
            chunks: metric("page_bytes"),
            tentative: metric("tentative_bytes"),
            arriving: metric("arriving_bytes"),
            open_ids: metric("open_ids"),
            pins: metric("pins"),
            uploads: metric("uploads"),
            gathers: metric("gathers"),
            buffers: metric("buffer_bytes"),
        }
    }

    /// Waits until nothing of all this is there, of whole and committed chunks only if `but_values` is not said.
    #[track_caller]
    pub fn is_gone_within(cluster: &LocalCluster, limit: Duration, but_values: bool) {
        let mut last = Self::default();
        let took = within("gone what was left", limit, || {
            let all = Self::of(cluster);
            let left = if but_values { all.clone().beside_values() } else { all };
            if left != last {
                println!("left: {left:?}");
                last = left;
            }
            last == Self::default()
        });
        println!("nothing is left after {took:?}");
    }

    /// The same without whole and committed chunks.
    pub fn beside_values(self) -> Self {
        Self { chunks: 0, ..self }
    }
}

/// What clients saw is what one server could have answered.
#[track_caller]
pub fn is_linearizable(seen: &Seen) {
    println!(
        "{} answered, {} unknown, {} refused, longest wait {:?}",
        seen.answered, seen.unknown, seen.refusals.unavailable, seen.longest_wait
    );
    if let Err(failure) = check(&seen.history) {
        panic!("not linearizable: {failure}");
    }
}

/// Whether there can be namespaces here, and `programs` (with Debian's package of each); if not, why is printed. Installs what
/// can be installed.
pub fn is_possible(programs: &[(&str, &str)]) -> bool {
    for (program, package) in [("ip", "iproute2"), ("nft", "nftables")].iter().chain(programs) {
        if let Err(why) = ensure_program(program, package) {
            println!("skipped: {why}");
            return false;
        }
    }
    match unavailable() {
        Some(why) => println!("skipped: {why}"),
        None => return true,
    }
    false
}
