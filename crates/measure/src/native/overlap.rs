//! How much of a transfer's time its caller can compute in, by OHB's formula: *pure* is the time of a transfer that is waited for, *computed* that of
//! as much computing, *both* that of a transfer with as much computing beside it; overlap = 1 - (both - computed) / pure.
//!
//! The three take turns, and medians count. From Rust by the crate `gestalt`, whose tasks have a thread of their own; from Python by the C
//! client, beside NumPy (`overlap.py`, the same in another language).

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use gestalt::{Bytes, Client};
use processes::local_cluster::{LocalCluster, Options};
use processes::others::outputs;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::arguments::Arguments;
use super::document::Document;
use super::python;
use crate::spread::Spread;

const LENS: [usize; 2] = [64 << 10, 1 << 20];
const KEY: &str = "overlap";
/// Steps of computing whose time is taken at once, and how often: the best of them counts, when nobody takes the processor away.
const STEPS: u64 = 20_000;
const TRIES: u32 = 200;

/// One kind of transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    pub language: String,
    pub write: bool,
    pub len: usize,
    pub transfers: u32,
    pub percent: f64,
    pub pure_us: f64,
    pub computed_us: f64,
    pub both_us: f64,
}

/// What a turn of each took, in microseconds.
#[derive(Default)]
struct Turns {
    pure: Vec<f64>,
    computed: Vec<f64>,
    both: Vec<f64>,
}

pub fn measure(arguments: &Arguments, document: &mut Document) -> Result<(), String> {
    let cluster = LocalCluster::start(&Options::default())?;
    let uri = format!("gestalt://{}/default", cluster.native(0)?);
    let mut overlaps = from_rust(&uri, arguments.transfers())?;
    match &arguments.python_library {
        Some(library) => overlaps.extend(from_python(&uri, library, arguments.transfers())?),
        None => println!("left out: Python, for want of --python-library"),
    }
    overlaps.iter().for_each(|overlap| println!("{overlap:?}"));
    document.overlaps = overlaps;
    Ok(())
}

fn from_rust(uri: &str, transfers: u32) -> Result<Vec<Overlap>, String> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let client = runtime.block_on(Client::connect(uri)).map_err(|error| error.to_string())?;
    let step = step_us();
    let kinds = LENS.iter().flat_map(|len| [(true, *len), (false, *len)]);
    kinds
        .map(|(write, len)| {
            let caller = Caller { runtime: &runtime, client: &client, write, value: vec![b'o'; len].into() };
            let turns = caller.turns(transfers, step)?;
            Ok(turns.overlap("Rust", write, len, transfers))
        })
        .collect()
}

/// Who asks for one kind of transfer.
struct Caller<'a> {
    runtime: &'a Runtime,
    client: &'a Client,
    write: bool,
    value: Bytes,
}

impl Caller<'_> {
    fn turns(&self, transfers: u32, step_us: f64) -> Result<Turns, String> {
        let warm = (0..transfers).map(|_| self.transfer(0)).collect::<Result<Vec<_>, _>>()?;
        let steps = (Spread::of(warm).median / step_us) as u64;
        let mut turns = Turns::default();
        for _ in 0..transfers {
            turns.pure.push(self.transfer(0)?);
            turns.computed.push(timed(|| compute(steps)));
            turns.both.push(self.transfer(steps)?);
        }
        Ok(turns)
    }

    /// One transfer with so much computing beside it.
    fn transfer(&self, steps: u64) -> Result<f64, String> {
        let mut result = Ok(());
        let took = timed(|| {
            let request = self.post();
            compute(steps);
            result = self.runtime.block_on(request).map_err(|error| error.to_string()).flatten();
        });
        result.map(|()| took)
    }

    fn post(&self) -> JoinHandle<Result<(), String>> {
        let (client, value, write) = (self.client.clone(), self.value.clone(), self.write);
        self.runtime.spawn(async move {
            if write {
                return client.set(KEY, value).await.map(drop).map_err(|error| error.to_string());
            }
            let found = client.get(KEY).await.map_err(|error| error.to_string())?;
            let is_whole = found.is_some_and(|found| found.bytes.len() == value.len());
            if is_whole { Ok(()) } else { Err("a value of another length was read".to_owned()) }
        })
    }
}

impl Turns {
    fn overlap(self, language: &str, write: bool, len: usize, transfers: u32) -> Overlap {
        let [pure_us, computed_us, both_us] =
            [self.pure, self.computed, self.both].map(|turns| Spread::of(turns).median);
        let percent = percent(pure_us, computed_us, both_us);
        Overlap {
            language: language.to_owned(),
            write,
            len,
            transfers,
            percent,
            pure_us,
            computed_us,
            both_us,
        }
    }
}

/// OHB's formula.
fn percent(pure: f64, computed: f64, both: f64) -> f64 {
    (100.0 * (1.0 - (both - computed) / pure)).clamp(0.0, 100.0)
}

fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e6
}

fn compute(steps: u64) {
    let step =
        |sum: u64, step: u64| black_box(sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
    black_box((0..steps).fold(1, step));
}

/// How long a step takes.
fn step_us() -> f64 {
    (0..TRIES).map(|_| timed(|| compute(STEPS))).fold(f64::MAX, f64::min) / STEPS as f64
}

fn from_python(uri: &str, library: &Path, transfers: u32) -> Result<Vec<Overlap>, String> {
    let mut script = python::script("overlap.py", library)?;
    script.args([uri, &transfers.to_string()]).args(LENS.map(|len| len.to_string()));
    let (printed, _) = outputs(&mut script)?;
    let lines = printed.lines().map(|line| {
        let [write, len, pure_us, computed_us, both_us]: [f64; 5] =
            serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        let percent = percent(pure_us, computed_us, both_us);
        let (write, len) = (write != 0.0, len as usize);
        let language = "Python, beside NumPy".to_owned();
        Ok(Overlap { language, write, len, transfers, percent, pure_us, computed_us, both_us })
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_transfer_or_nothing_of_it_is_hidden() {
        assert_eq!(percent(100.0, 100.0, 100.0), 100.0);
        assert_eq!(percent(100.0, 100.0, 200.0), 0.0);
        assert_eq!(percent(100.0, 90.0, 115.0), 75.0);
        assert_eq!(percent(100.0, 100.0, 95.0), 100.0, "no more than all");
    }
}
