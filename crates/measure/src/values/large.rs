//! One value of a gigabyte, with the client and all nodes on these cores, beside memcached's largest.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::plain::noise;
use super::sides::{Running, Side};
use crate::spread::Spread;

/// memcached's values: it takes none of a gigabyte.
const PEERS_BYTES: usize = 64 << 20;

/// How fast.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Large {
    pub side: Side,
    pub len: usize,
    /// Megabytes (10^6) a second.
    pub set_rate: Spread,
    pub get_rate: Spread,
    /// Milliseconds until the first byte.
    pub first_ms: Spread,
}

pub fn measure(largest: usize, rounds: usize) -> Result<Vec<Large>, String> {
    let sides = [(Side::Striped, largest), (Side::Memcached, PEERS_BYTES)];
    let running =
        sides.iter().map(|(side, len)| Ok((side.start()?, *len))).collect::<Result<Vec<_>, String>>()?;
    let pattern = noise(1 << 20);
    let mut turns = vec![Vec::new(); running.len()];
    for round in 0..=rounds {
        for (at, (side, len)) in running.iter().enumerate() {
            let turn = turn(side, *len, &pattern)?;
            if round > 0 {
                turns[at].push(turn);
            }
        }
    }
    let large = |((running, len), turns): (&(Running, usize), Vec<[f64; 3]>)| {
        let of = |part: usize| Spread::of(turns.iter().map(|turn| turn[part]));
        Large { side: running.side, len: *len, set_rate: of(0), get_rate: of(1), first_ms: of(2) }
    };
    let all: Vec<Large> = running.iter().zip(turns).map(large).collect();
    all.iter().for_each(|large| println!("{large:?}"));
    Ok(all)
}

fn turn(running: &Running, len: usize, pattern: &[u8]) -> Result<[f64; 3], String> {
    let mut client = running.connect()?;
    let begun = Instant::now();
    client.set("large", len, pattern)?;
    let set = begun.elapsed().as_secs_f64();
    let got = client.get_whole("large", len)?;
    let megabytes = len as f64 / 1e6;
    Ok([megabytes / set, megabytes / got.all.as_secs_f64(), 1e3 * got.first.as_secs_f64()])
}
