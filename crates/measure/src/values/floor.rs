//! What plain sockets take that move the same bytes: nobody who sends them over the loopback takes less.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::plain::noise;
use crate::spread::Spread;

const BYTES: usize = 512 << 20;
const PIECE_BYTES: usize = 64 << 10;
const ROUNDS: usize = 5;

/// Milliseconds of CPU for each megabyte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Floor {
    pub send_ms: Spread,
    pub receive_ms: Spread,
}

impl Floor {
    /// A read by way of a node that has a fifth of the bytes: four fifths are sent and received once more.
    pub fn get(&self) -> f64 {
        1.8 * self.send_ms.median + 0.8 * self.receive_ms.median
    }

    /// A write by way of a node that keeps a fifth of the chunks, five thirds of the bytes.
    pub fn set(&self) -> f64 {
        let chunks = 5.0 / 3.0 * 0.8;
        (1.0 + chunks) * self.receive_ms.median + chunks * self.send_ms.median
    }
}

pub fn measure() -> Result<Floor, String> {
    let turns = (0..ROUNDS).map(|_| turn()).collect::<Result<Vec<_>, _>>()?;
    let of = |pick: fn(&[f64; 2]) -> f64| Spread::of(turns.iter().map(pick));
    Ok(Floor { send_ms: of(|turn| turn[0]), receive_ms: of(|turn| turn[1]) })
}

/// A thread sends, another one receives.
fn turn() -> Result<[f64; 2], String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let receiver = thread::spawn(move || -> std::io::Result<f64> {
        let (mut stream, _) = listener.accept()?;
        let mut piece = vec![0; PIECE_BYTES];
        let before = thread_seconds();
        while stream.read(&mut piece)? > 0 {}
        Ok(thread_seconds() - before)
    });
    let sender = thread::spawn(move || -> std::io::Result<f64> {
        let mut stream = TcpStream::connect(address)?;
        let piece = noise(PIECE_BYTES);
        let before = thread_seconds();
        for _ in 0..BYTES / PIECE_BYTES {
            stream.write_all(&piece)?;
        }
        Ok(thread_seconds() - before)
    });
    let each = [sender, receiver].map(|thread| match thread.join() {
        Ok(seconds) => seconds.map_err(|error| error.to_string()),
        Err(_) => Err("a thread has panicked".to_owned()),
    });
    let [sent, received] = each;
    Ok([sent?, received?].map(|seconds| 1e3 * seconds / (BYTES as f64 / 1e6)))
}

/// CPU time of this thread so far.
fn thread_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}
