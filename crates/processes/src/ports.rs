//! Ports that nobody has.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Below the range from which the kernel picks ports of outgoing connections.
const PORTS: Range<u16> = 20_000..32_000;

/// The first of `needed` free ports in a row, which nobody else in this process was given.
///
/// # Errors
/// One line if there are none.
pub fn free_run(needed: u16) -> Result<u16, String> {
    // Tests of one program run side by side: a port that one is about to use looks free to the next.
    static GIVEN: Mutex<Vec<Range<u16>>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().map_err(|error| error.to_string())?;
    let mut seed = std::process::id()
        ^ SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    for _ in 0..200 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let span = u32::from(PORTS.end - PORTS.start - needed);
        let base = PORTS.start + u16::try_from((seed >> 8) % span).unwrap_or(0);
        let run = base..base + needed;
        let is_given = given.iter().any(|other| other.start < run.end && run.start < other.end);
        if !is_given && run.clone().all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            given.push(run);
            return Ok(base);
        }
    }
    Err(format!("no {needed} free ports in a row"))
}
