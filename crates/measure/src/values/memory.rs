//! Memory for each byte that is stored.

use serde::{Deserialize, Serialize};

use super::plain::{Plain, Protocol, noise};
use super::sides::gestalt;

/// Profiles, with the bytes that each stored byte is at least.
const PROFILES: [(&str, u16, f64); 3] =
    [("rs(3+2)", 5, 5.0 / 3.0), ("rs(6+3)", 9, 1.5), ("rs(10+4)", 14, 1.4)];
const LENS: [usize; 3] = [262_144, 1_000_000, 16_000_000];
/// Bytes of values: as many as fill most of a node, so that what each process takes for itself is small beside them.
const BYTES: usize = 2_000_000_000;

/// What values of one length take.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
    pub profile: String,
    pub len: usize,
    /// Resident bytes of all processes more than before, for each byte of a value.
    pub resident: f64,
    /// The least there could be.
    pub least: f64,
}

pub fn measure() -> Result<Vec<Stored>, String> {
    let cases = PROFILES.iter().flat_map(|profile| LENS.map(|len| (profile, len)));
    cases.map(|((profile, nodes, least), len)| stored((profile, *nodes, *least), len)).collect()
}

fn stored((profile, nodes, least): (&'static str, u16, f64), len: usize) -> Result<Stored, String> {
    let server = gestalt(profile, nodes, "always")?;
    let pattern = noise(1 << 20);
    let mut client = Plain::connect(Protocol::Memcached, server.addresses[0])?;
    // Buffers that a node keeps are there before.
    (0..4).try_for_each(|i| client.set(&format!("warm-{i}"), len, &pattern))?;
    let before = server.resident();
    let count = BYTES / len;
    (0..count).try_for_each(|i| client.set(&format!("value-{i}"), len, &pattern))?;
    let more = server.resident().saturating_sub(before) as f64;
    let stored = Stored { profile: profile.to_owned(), len, resident: more / (count * len) as f64, least };
    println!("{stored:?}");
    Ok(stored)
}
