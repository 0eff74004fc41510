//! Every cell: all sides take turns in each round, each round begins with another one.

use std::collections::BTreeMap;

use processes::local_cluster::Options;
use processes::servers::Server;

use super::arguments::Arguments;
use super::cells::{Cell, Side, Work, size};
use super::document::{Document, Figures, Measured};
use super::runs::{MEMCACHED_MIB, NODE_MEMORY, PROCESSES, Run, bench};
use crate::document::machine;
use crate::spread::Spread;

/// memcached's longest item, in MiB.
const LONGEST_MIB: u64 = 64;
/// Bytes of values that are loaded of each length, and the bounds on their number: each process is to have some of its own.
const LOADED_BYTES: usize = 64 << 20;
const LEAST_KEYS: usize = 40;
const MOST_KEYS: usize = 50_000;

/// What runs.
struct Servers {
    cluster: Server,
    memcached: Server,
}

pub fn measure(arguments: &Arguments, document: &mut Document) -> Result<(), String> {
    let options = Options { nodes: PROCESSES, memory: NODE_MEMORY.to_owned(), ..Options::default() };
    let servers = Servers {
        cluster: Server::gestalt_with(&options)?,
        memcached: Server::memcacheds(PROCESSES, MEMCACHED_MIB, LONGEST_MIB)?,
    };
    document.machine = machine();
    document.memcached.clone_from(&servers.memcached.name);
    document.command = arguments.told();
    let mut loaded = None;
    for cell in arguments.cells() {
        if loaded.replace(cell.value) != Some(cell.value) {
            servers.load(cell.value)?;
        }
        document.put(measure_cell(arguments, &servers, cell)?);
        // A run takes long, and what it has measured is not to be lost with the rest.
        document.save(&arguments.out)?;
    }
    Ok(())
}

fn keys(value: usize) -> String {
    (LOADED_BYTES / value.max(1)).clamp(LEAST_KEYS, MOST_KEYS).to_string()
}

impl Servers {
    fn of(&self, side: Side) -> &Server {
        if side == Side::Memcached { &self.memcached } else { &self.cluster }
    }

    fn load(&self, value: usize) -> Result<(), String> {
        for server in [&self.cluster, &self.memcached] {
            let flags = ["--keys", &keys(value), "--value-size", &value.to_string(), "--clients", "10"];
            let report = server.bench("load", flags)?;
            if let Some(errors) = report["errors"].as_object().filter(|errors| !errors.is_empty()) {
                return Err(format!("{}, values of {}: {errors:?}", server.name, size(value)));
            }
        }
        Ok(())
    }
}

fn measure_cell(arguments: &Arguments, servers: &Servers, cell: Cell) -> Result<Measured, String> {
    let sides: Vec<Side> = Side::ALL.into_iter().filter(|side| side.runs(&cell)).collect();
    let rounds = arguments.rounds();
    let mut runs: BTreeMap<Side, Vec<Run>> = BTreeMap::new();
    for round in 0..rounds as usize {
        for turn in 0..sides.len() {
            let side = sides[(round + turn) % sides.len()];
            runs.entry(side).or_default().push(run(arguments, servers.of(side), side, cell, round)?);
        }
    }
    let native = runs[&Side::Native].clone();
    let figures = runs.iter().map(|(side, runs)| (*side, summary(runs, &native))).collect();
    let measured = Measured { cell, rounds, sides: figures };
    show(&measured);
    Ok(measured)
}

fn run(arguments: &Arguments, server: &Server, side: Side, cell: Cell, round: usize) -> Result<Run, String> {
    let milliseconds = arguments.milliseconds();
    let pairs = [
        ("--keys", keys(cell.value)),
        ("--value-size", cell.value.to_string()),
        ("--clients", cell.clients.to_string()),
        ("--depth", cell.depth.to_string()),
        ("--duration", format!("{milliseconds}ms")),
        // The same for all sides of a round.
        ("--seed", (round + 1).to_string()),
    ];
    let flags = pairs.iter().flat_map(|(flag, value)| [*flag, value.as_str()]);
    let flags: Vec<&str> = flags.chain(side.flags().iter().copied()).collect();
    bench(server, cell.work.name(), &flags)
}

/// Over the rounds; ratios are taken round by round, so that what slows the machine for longer than a round does not move them.
fn summary(runs: &[Run], native: &[Run]) -> Figures {
    let of = |pick: fn(&Run) -> f64| Spread::of(runs.iter().map(pick));
    let ratio = |pick: fn(&Run) -> f64| {
        Spread::of(runs.iter().zip(native).map(|(own, native)| pick(native) / pick(own)))
    };
    Figures {
        kops: of(|run| run.kops),
        rate: of(|run| run.rate),
        p50_us: of(|run| run.p50_us),
        p99_us: of(|run| run.p99_us),
        server_us: of(|run| run.server_us),
        client_us: of(|run| run.client_us),
        p99_ratio: ratio(|run| run.p99_us),
        server_ratio: ratio(|run| run.server_us),
        failed: runs.iter().map(|run| run.failed).sum(),
    }
}

fn show(measured: &Measured) {
    let Cell { value, clients, depth, work } = measured.cell;
    let figures = measured.sides.iter().map(|(side, figures)| {
        format!(
            "{side:?} {:.1} k {:.0} µs {:.2} µs",
            figures.kops.median, figures.p50_us.median, figures.server_us.median
        )
    });
    let what = if work == Work::Mixed { "both" } else { work.title() };
    println!("{} c{clients} d{depth} {what:<4} {}", size(value), figures.collect::<Vec<_>>().join(" | "));
}
