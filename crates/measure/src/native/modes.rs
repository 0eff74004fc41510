//! Who codes long values: the four modes of the paper, beside memcached and valkey, in server CPU for each megabyte.
//!
//! One client thread, one request at a time. The client that codes is the crate `gestalt`; memcached and valkey are asked by the plain loop
//! of `bench values`, one connection to one process. The modes and the others take turns in each round.

use std::thread::sleep;
use std::time::{Duration, Instant};

use gestalt::{Bytes, Client, Coding, Options};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use super::arguments::Arguments;
use super::document::Document;
use crate::spread::Spread;
use crate::values::plain::{Plain, noise};
use crate::values::sides::{Running, Side};

/// After writes: what they leave behind is done by then.
const SETTLE: Duration = Duration::from_millis(200);
const QUICK_LENS: &[usize] = &[1_000_000];
const LENS: &[usize] = &[100_000, 1_000_000, 16_000_000];
/// Bytes that a turn writes, and reads.
const BYTES: usize = 128 << 20;
const QUICK_BYTES: usize = 8 << 20;
/// Writes until all nodes know who takes chunks.
const WARM: usize = 40;

/// One mode, or another server, at one length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mode {
    pub title: String,
    pub len: usize,
    /// Milliseconds of all server processes for each megabyte (10^6 bytes).
    pub set_ms: Spread,
    pub get_ms: Spread,
    /// Megabytes a second.
    pub set_rate: Spread,
    pub get_rate: Spread,
}

/// Who is asked, and how.
enum Asker<'a> {
    Native(Client),
    Plain(&'a Running),
}

/// CPU milliseconds for a megabyte, and megabytes a second.
type Figures = [f64; 2];

pub fn measure(arguments: &Arguments, document: &mut Document) -> Result<(), String> {
    let cluster = Side::Striped.start()?;
    let memcached = Side::Memcached.start()?;
    // What is slow to install is no part of a quick look.
    let valkey = if arguments.quick { None } else { Some(Side::Wait.start()?) };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let mut askers = Vec::new();
    for (title, encode, decode) in MODES {
        let client = native(&runtime, &cluster, *encode, *decode)?;
        askers.push((*title, Asker::Native(client), &cluster));
    }
    for running in [Some(&memcached), valkey.as_ref()].into_iter().flatten() {
        askers.push((running.side.title(), Asker::Plain(running), running));
    }
    let (lens, bytes) = if arguments.quick { (QUICK_LENS, QUICK_BYTES) } else { (LENS, BYTES) };
    let rounds = arguments.rounds() as usize;
    document.modes.clear();
    for &len in lens {
        warm(&runtime, &askers, len)?;
        let mut turns = vec![Vec::new(); askers.len()];
        for round in 0..rounds {
            for at in 0..askers.len() {
                let index = (round + at) % askers.len();
                turns[index].push(turn(&runtime, &askers[index], len, bytes)?);
            }
        }
        for ((title, ..), turns) in askers.iter().zip(turns) {
            let mode = summary(title, len, &turns);
            println!("{mode:?}");
            document.modes.push(mode);
        }
    }
    Ok(())
}

/// As the paper names them: who encodes, who decodes.
const MODES: &[(&str, Coding, Coding)] = &[
    ("SE-SD", Coding::Server, Coding::Server),
    ("SE-CD", Coding::Server, Coding::Client),
    ("CE-SD", Coding::Client, Coding::Server),
    ("CE-CD", Coding::Client, Coding::Client),
    ("auto", Coding::Auto, Coding::Auto),
];

fn native(runtime: &Runtime, cluster: &Running, encode: Coding, decode: Coding) -> Result<Client, String> {
    let address = cluster.server.cluster().ok_or("no cluster")?.native(0)?;
    let mut options: Options =
        format!("gestalt://{address}/default").parse().map_err(|bad| format!("{bad}"))?;
    (options.encode, options.decode) = (encode, decode);
    runtime.block_on(Client::with(&options)).map_err(|error| error.to_string())
}

fn warm(runtime: &Runtime, askers: &[(&str, Asker<'_>, &Running)], len: usize) -> Result<(), String> {
    let value = noise(len.min(1_000_000));
    for (title, asker, _) in askers {
        if let Asker::Native(client) = asker {
            for at in 0..WARM {
                let stored = runtime.block_on(client.set(format!("warm-{at}"), value.clone()));
                stored.map_err(|error| format!("{title}: {error}"))?;
            }
        }
    }
    Ok(())
}

fn turn(
    runtime: &Runtime,
    (title, asker, running): &(&str, Asker<'_>, &Running),
    len: usize,
    bytes: usize,
) -> Result<[Figures; 2], String> {
    let keys: Vec<String> = (0..(bytes / len).max(1)).map(|at| format!("value-{at}")).collect();
    let pattern = noise(len);
    let value = Bytes::from(pattern.clone());
    let failed = |error: String| format!("{title}, {len} bytes: {error}");
    let mut plain: Option<Plain> = match asker {
        Asker::Plain(running) => Some(running.connect()?),
        Asker::Native(_) => None,
    };
    let set = timed(running, keys.len() * len, || {
        keys.iter().try_for_each(|key| match (asker, &mut plain) {
            (Asker::Native(client), _) => {
                let stored = runtime.block_on(client.set(key.clone(), value.clone()));
                stored.map(drop).map_err(|error| error.to_string())
            }
            (Asker::Plain(_), Some(plain)) => plain.set(key, len, &pattern),
            (Asker::Plain(_), None) => Ok(()),
        })
    });
    let get = timed(running, keys.len() * len, || {
        keys.iter().try_for_each(|key| match (asker, &mut plain) {
            (Asker::Native(client), _) => {
                let found = runtime.block_on(client.get(key.clone())).map_err(|error| error.to_string())?;
                let is_whole = found.is_some_and(|found| found.bytes.len() == len);
                if is_whole { Ok(()) } else { Err(format!("{key} is not what was written")) }
            }
            (Asker::Plain(_), Some(plain)) => plain.get_whole(key, len).map(drop),
            (Asker::Plain(_), None) => Ok(()),
        })
    });
    Ok([set.map_err(failed)?, get.map_err(failed)?])
}

/// Of what is asked, and of what that leaves to be done.
fn timed(
    running: &Running,
    bytes: usize,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<Figures, String> {
    let (before, begun) = (running.server.cpu_time(), Instant::now());
    work()?;
    let seconds = begun.elapsed().as_secs_f64();
    sleep(SETTLE);
    let cpu = (running.server.cpu_time() - before).as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    Ok([1e3 * cpu / megabytes, megabytes / seconds])
}

fn summary(title: &str, len: usize, turns: &[[Figures; 2]]) -> Mode {
    let of = |what: usize, figure: usize| Spread::of(turns.iter().map(|turn| turn[what][figure]));
    let (set_ms, set_rate, get_ms, get_rate) = (of(0, 0), of(0, 1), of(1, 0), of(1, 1));
    Mode { title: title.to_owned(), len, set_ms, get_ms, set_rate, get_rate }
}
