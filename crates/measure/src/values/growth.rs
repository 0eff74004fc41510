//! What a value costs where there are more nodes than a code needs.

use std::thread::sleep;
use std::time::{Duration, Instant};

use processes::servers::Server;
use serde::{Deserialize, Serialize};

use super::plain::{Plain, Protocol, noise};
use super::sides::striped;
use crate::spread::Spread;

const NODES: [u16; 4] = [5, 10, 20, 40];
/// So much that forty of them are not more than a machine has.
const NODE_MEMORY: &str = "256MiB";
const LEN: usize = 1_000_000;
const VALUES: usize = 200;
/// For how long nothing is asked, to see what that costs.
const IDLE: Duration = Duration::from_secs(3);

/// What 1 MB costs all servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Growth {
    pub nodes: u16,
    /// Milliseconds for each megabyte, without what the same servers take when nobody asks anything.
    pub set_ms: Spread,
    pub get_ms: Spread,
    /// Milliseconds that all of them take in each second in which nobody does.
    pub idle_ms: f64,
}

pub fn measure(rounds: usize) -> Result<Vec<Growth>, String> {
    NODES.into_iter().map(|nodes| grown(nodes, rounds)).collect()
}

fn grown(nodes: u16, rounds: usize) -> Result<Growth, String> {
    let server = striped(Server::gestalt("rs(3+2)", nodes, NODE_MEMORY)?, "always")?;
    let pattern = noise(1 << 20);
    let mut client = Plain::connect(Protocol::Memcached, server.addresses[0])?;
    let mut set = || (0..VALUES).try_for_each(|i| client.set(&format!("value-{i}"), LEN, &pattern));
    set()?;
    let before = server.cpu_time();
    sleep(IDLE);
    let idle_ms = 1e3 * (server.cpu_time() - before).as_secs_f64() / IDLE.as_secs_f64();
    let timed = |work: &mut dyn FnMut() -> Result<(), String>| {
        let (before, begun) = (server.cpu_time(), Instant::now());
        work()?;
        let cpu_ms = 1e3 * (server.cpu_time() - before).as_secs_f64();
        Ok::<f64, String>((cpu_ms - idle_ms * begun.elapsed().as_secs_f64()) / (VALUES * LEN) as f64 * 1e6)
    };
    let sets = (0..rounds).map(|_| timed(&mut set)).collect::<Result<Vec<f64>, _>>()?;
    let mut get = || (0..VALUES).try_for_each(|i| client.get_whole(&format!("value-{i}"), LEN).map(drop));
    let gets = (0..rounds).map(|_| timed(&mut get)).collect::<Result<Vec<f64>, _>>()?;
    let growth = Growth { nodes, set_ms: Spread::of(sets), get_ms: Spread::of(gets), idle_ms };
    println!("{growth:?}");
    Ok(growth)
}
