//! What the cluster says of itself while it heals, and what the loopback can carry.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use processes::local_cluster::LocalCluster;
use processes::pages::page;
use serde_json::Value;
use types::ClusterMap;

/// How often the cluster is looked at.
pub const LOOK: Duration = Duration::from_millis(20);
/// Bytes of one write and one read of the loopback's test, and how long it takes.
const CHUNK: usize = 256 << 10;
const COPY_TIME: Duration = Duration::from_secs(2);

/// Waits until `holds` of the map; the time that took.
pub fn wait_until(
    cluster: &LocalCluster,
    what: &str,
    limit: Duration,
    holds: impl Fn(&ClusterMap) -> bool,
) -> Result<Duration, String> {
    let begun = Instant::now();
    while !holds(&cluster.map()?) {
        if begun.elapsed() > limit {
            return Err(format!("not {what} after {limit:?}"));
        }
        thread::sleep(LOOK);
    }
    Ok(begun.elapsed())
}

/// Waits until the cluster is settled with members on so many nodes and has stayed so for a while; the time until then,
/// without the while.
pub fn wait_until_calm(cluster: &LocalCluster, nodes: usize, limit: Duration) -> Result<Duration, String> {
    cluster.wait_until_calm(limit, |map| cluster::RoleTally::of(&map.groups).iter().count() >= nodes)
}

/// What all living nodes have sent to each other.
pub fn sent_bytes(cluster: &LocalCluster) -> Result<f64, String> {
    Ok(per_node(cluster, "gestalt_peer_sent_bytes_total")?.iter().sum())
}

/// A family's samples of each living node, added up.
pub fn per_node(cluster: &LocalCluster, family: &str) -> Result<Vec<f64>, String> {
    let map = cluster.map()?;
    let living = map.nodes.iter().filter(|node| node.alive);
    living.map(|node| Ok(metric(&page(node.http, "/metrics")?, family))).collect()
}

/// Memory of the members on each of `nodes`, added up: areas, parities, indexes.
pub fn member_bytes(cluster: &LocalCluster, nodes: &[u16]) -> Result<f64, String> {
    let text = page(cluster.http(), "/status")?;
    let status: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let bytes = |node: &u16| status["loads"][node.to_string()]["member_bytes"].as_f64();
    Ok(nodes.iter().filter_map(bytes).sum())
}

/// A family's samples, added up.
fn metric(text: &str, family: &str) -> f64 {
    let of = |line: &str| {
        let rest = line.strip_prefix(family)?;
        rest.starts_with([' ', '{']).then(|| rest.rsplit(' ').next()?.parse::<f64>().ok()).flatten()
    };
    text.lines().filter_map(of).sum()
}

/// Bytes a second that one TCP connection over the loopback carries, one thread at either end.
pub fn loopback_rate() -> Result<f64, String> {
    let copy = || -> std::io::Result<f64> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut sender = TcpStream::connect(listener.local_addr()?)?;
        let (mut receiver, _) = listener.accept()?;
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            let mut count = 0_u64;
            while let Ok(read @ 1..) = receiver.read(&mut buffer) {
                count += read as u64;
            }
            count
        });
        let (begun, bytes) = (Instant::now(), vec![1; CHUNK]);
        while begun.elapsed() < COPY_TIME {
            sender.write_all(&bytes)?;
        }
        drop(sender);
        let count = reader.join().unwrap_or(0);
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    };
    copy().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::metric;

    #[test]
    fn a_family_is_added_up_and_others_are_left_out() {
        let text = "# TYPE a counter\na{x=\"1\"} 2\na{x=\"2\"} 3\nab 100\na 1\n";
        assert_eq!(metric(text, "a"), 6.0);
    }
}
