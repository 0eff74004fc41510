//! Server CPU for each megabyte, and how fast it goes, by the length of a value.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::plain::noise;
use super::sides::{Running, Side};
use crate::spread::Spread;

/// After writes: what they leave behind is done by then.
const SETTLE: Duration = Duration::from_millis(200);
const PATTERN_BYTES: usize = 1 << 20;

/// One side at one length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    pub len: usize,
    pub side: Side,
    /// Milliseconds of all server processes for each megabyte (10^6 bytes).
    pub set_ms: Spread,
    pub get_ms: Spread,
    /// Megabytes a second with one request at a time.
    pub set_rate: Spread,
    pub get_rate: Spread,
}

/// What a turn took.
#[derive(Clone, Copy)]
struct Turn {
    set: [f64; 2],
    get: [f64; 2],
}

/// These sides at these lengths.
pub fn measure(sides: &[Side], sizes: &[usize], rounds: usize, bytes: usize) -> Result<Vec<Cost>, String> {
    let sides = sides.iter().map(|side| side.start()).collect::<Result<Vec<_>, _>>()?;
    let pattern = noise(PATTERN_BYTES);
    let mut costs = Vec::new();
    for &len in sizes {
        let takers: Vec<&Running> = sides.iter().filter(|running| running.side.takes(len)).collect();
        let mut turns = vec![Vec::new(); takers.len()];
        // The first round fills the memory, and is not counted.
        for round in 0..=rounds {
            for at in 0..takers.len() {
                let index = (round + at) % takers.len();
                let turn = turn(takers[index], len, bytes, &pattern)?;
                if round > 0 {
                    turns[index].push(turn);
                }
            }
        }
        for (running, turns) in takers.iter().zip(turns) {
            let of = |pick: fn(&Turn) -> f64| Spread::of(turns.iter().map(pick));
            let cost = Cost {
                len,
                side: running.side,
                set_ms: of(|turn| turn.set[0]),
                get_ms: of(|turn| turn.get[0]),
                set_rate: of(|turn| turn.set[1]),
                get_rate: of(|turn| turn.get[1]),
            };
            println!(
                "{len} {}: set {} ms/MB {} MB/s, get {} ms/MB {} MB/s",
                running.side.title(),
                cost.set_ms.median,
                cost.set_rate.median,
                cost.get_ms.median,
                cost.get_rate.median
            );
            costs.push(cost);
        }
    }
    Ok(costs)
}

/// Writes `bytes` in values of `len`, and reads them.
fn turn(running: &Running, len: usize, bytes: usize, pattern: &[u8]) -> Result<Turn, String> {
    let failed = |error: String| format!("{}, {len} bytes: {error}", running.side.title());
    let count = (bytes / len).max(1);
    let keys: Vec<String> = (0..count).map(|i| format!("value-{i}")).collect();
    let mut client = running.connect()?;
    let set = timed(running, count * len, || {
        keys.iter().try_for_each(|key| client.set(key, len, pattern)).map_err(failed)?;
        sleep(SETTLE);
        Ok(())
    })?;
    let get = timed(running, count * len, || {
        keys.iter().try_for_each(|key| client.get_whole(key, len).map(drop)).map_err(failed)
    })?;
    // The pause is no time of the client's.
    let seconds = (count * len) as f64 / 1e6 / set[1] - SETTLE.as_secs_f64();
    Ok(Turn { set: [set[0], (count * len) as f64 / 1e6 / seconds], get })
}

/// Milliseconds of the servers' CPU for a megabyte, and megabytes a second.
fn timed(
    running: &Running,
    bytes: usize,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<[f64; 2], String> {
    let (before, begun) = (running.server.cpu_time(), Instant::now());
    work()?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = (running.server.cpu_time() - before).as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    Ok([1e3 * cpu / megabytes, megabytes / seconds])
}
