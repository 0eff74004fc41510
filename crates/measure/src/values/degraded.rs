//! Reads with nodes less, before anything is repaired: there is no spare.

use serde::{Deserialize, Serialize};

use super::plain::{Plain, Protocol, noise};
use super::sides::gestalt;

const LEN: usize = 1_000_000;
const VALUES: usize = 100;
/// Times that each value is read.
const READS: usize = 10;

/// How long a read takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Degraded {
    /// Nodes of five that are gone.
    pub lost: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

pub fn measure() -> Result<Vec<Degraded>, String> {
    let server = gestalt("rs(3+2)", 5, "always")?;
    let cluster = server.cluster().ok_or("no cluster")?;
    let pattern = noise(1 << 20);
    let mut client = Plain::connect(Protocol::Memcached, server.addresses[0])?;
    (0..VALUES).try_for_each(|i| client.set(&format!("value-{i}"), LEN, &pattern))?;
    let mut all = Vec::new();
    for lost in 0..=2 {
        if lost > 0 {
            cluster.kill_nodes(&[5 - lost as u16]);
            // Until the cluster has noticed: reads before that are about the lease.
            std::thread::sleep(std::time::Duration::from_secs(5));
        }
        let mut times = Vec::new();
        for at in 0..VALUES * READS {
            let got = client.get_whole(&format!("value-{}", at % VALUES), LEN)?;
            times.push(1e3 * got.all.as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        let degraded = Degraded { lost, p50_ms: at(0.5), p99_ms: at(0.99) };
        println!("{degraded:?}");
        all.push(degraded);
    }
    Ok(all)
}
