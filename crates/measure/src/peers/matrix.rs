//! Every cell of the matrix: all sides take turns in each round, each round begins with another one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::thread::sleep;
use std::time::Duration;

use processes::servers::Server;
use serde_json::Value;

use crate::document::machine;
use crate::peers::arguments::Arguments;
use crate::peers::cells::{Cell, size};
use crate::peers::document::{Document, Figures, Measured, Memory};
use crate::peers::side::{Setup, Side};
use crate::spread::Spread;

/// How long idle processes are watched.
const IDLE: Duration = Duration::from_secs(3);
/// Fewest values of one size: each connection is to have some of its own.
const LEAST_VALUES: u64 = 2000;
/// Bytes that each stored value costs at most beside itself, for the limit of memory.
const OVERHEAD: u64 = 200;

/// The figures of one run.
#[derive(Clone, Copy, Debug)]
struct Run {
    kops: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    cpu_us: f64,
    failed: u64,
}

/// All sizes of values, one after another, each with servers of its own.
pub fn measure(arguments: &Arguments, document: &mut Document) -> Result<(), String> {
    document.machine = machine();
    document.matrix_command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    for value in arguments.values() {
        measure_size(arguments, value, document)?;
        // After each size: a run takes long, and what it has measured is not to be lost with the rest.
        document.save(&arguments.out)?;
    }
    Ok(())
}

fn measure_size(arguments: &Arguments, value: u32, document: &mut Document) -> Result<(), String> {
    let values = (arguments.bytes / u64::from(value)).clamp(LEAST_VALUES, 1_000_000);
    let values = u32::try_from(values).unwrap_or(u32::MAX);
    let sides = arguments.sides();
    let servers = Servers::start(&sides, value, values, document)?;
    for cell in arguments.cells(value) {
        document.put(measure_cell(arguments, &servers, &sides, cell, values)?);
    }
    Ok(())
}

/// What runs while one size of value is measured.
struct Servers(BTreeMap<Setup, Server>);

impl Servers {
    /// Starts everything, loads the values, and notes what that costs.
    fn start(sides: &[Side], value: u32, values: u32, document: &mut Document) -> Result<Self, String> {
        let mut servers = BTreeMap::new();
        let mut memory = Memory { value, values, bytes: BTreeMap::new() };
        for &side in sides {
            let setup = side.setup();
            // Sides that differ in their client alone share servers.
            if let Entry::Vacant(place) = servers.entry(setup) {
                let (server, bytes) = start_loaded(setup, value, values)?;
                place.insert(server);
                memory
                    .bytes
                    .extend(sides.iter().filter(|other| other.setup() == setup).map(|&other| (other, bytes)));
            }
            let server = &servers[&setup];
            document.names.insert(side, format!("{}{}", server.name, side.suffix()));
            document.processes.insert(side, server.pids().len());
        }
        document.memory.retain(|other| other.value != value);
        document.memory.push(memory);
        document.memory.sort_by_key(|memory| memory.value);
        let all = Self(servers);
        let idle = all.idle()?;
        document.idle_millicores.extend(sides.iter().map(|side| (*side, idle[&side.setup()])));
        Ok(all)
    }

    fn of(&self, side: Side) -> &Server {
        &self.0[&side.setup()]
    }

    /// Thousandths of a core that each spends while nobody asks.
    fn idle(&self) -> Result<BTreeMap<Setup, f64>, String> {
        let now = || -> BTreeMap<Setup, Duration> {
            self.0.iter().map(|(&setup, server)| (setup, server.cpu_time())).collect()
        };
        let before = now();
        sleep(IDLE);
        let after = now();
        let spent =
            |setup: &Setup| (after[setup] - before[setup]).as_secs_f64() / IDLE.as_secs_f64() * 1000.0;
        Ok(before.keys().map(|setup| (*setup, (spent(setup) * 100.0).round() / 100.0)).collect())
    }
}

/// Resident bytes per value beside the server.
fn start_loaded(setup: Setup, value: u32, values: u32) -> Result<(Server, f64), String> {
    // Room for three copies in slots that are half empty, and as much again.
    let memory = 12 * u64::from(values) * (u64::from(value) + OVERHEAD);
    let server = setup.start(memory)?;
    let empty = server.resident();
    let flags = ["--keys", &values.to_string(), "--value-size", &value.to_string()];
    let report = server.bench("load", flags)?;
    refuse_errors(&server, &report)?;
    let bytes = server.resident().saturating_sub(empty) as f64 / f64::from(values);
    println!("{}: {values} values of {}, {bytes:.0} resident bytes each", server.name, size(value));
    Ok((server, bytes.round()))
}

fn refuse_errors(server: &Server, report: &Value) -> Result<(), String> {
    match report["errors"].as_object() {
        Some(errors) if !errors.is_empty() => Err(format!("{}: {errors:?}", server.name)),
        _ => Ok(()),
    }
}

fn measure_cell(
    arguments: &Arguments,
    servers: &Servers,
    sides: &[Side],
    cell: Cell,
    values: u32,
) -> Result<Measured, String> {
    let sides: Vec<Side> = sides.iter().copied().filter(|side| side.runs(cell.workload)).collect();
    let rounds = arguments.rounds();
    let mut runs: BTreeMap<Side, Vec<Run>> = BTreeMap::new();
    for round in 0..rounds as usize {
        for turn in 0..sides.len() {
            let side = sides[(round + turn) % sides.len()];
            let run = run(arguments, servers.of(side), side, cell, values, round)?;
            runs.entry(side).or_default().push(run);
        }
    }
    // All ratios are to the first side.
    let first = runs[&sides[0]].clone();
    let figures = sides.iter().map(|side| (*side, summary(&runs[side], &first))).collect();
    let measured = Measured { cell, rounds, sides: figures };
    show(&measured);
    Ok(measured)
}

fn run(
    arguments: &Arguments,
    server: &Server,
    side: Side,
    cell: Cell,
    values: u32,
    round: usize,
) -> Result<Run, String> {
    let mut flags = cell.flags();
    flags.extend(["--keys".to_owned(), values.to_string()]);
    flags.extend(["--duration".to_owned(), format!("{}ms", arguments.milliseconds)]);
    // The same for all sides of a round.
    flags.extend(["--seed".to_owned(), (round + 1).to_string()]);
    flags.extend(side.flags().iter().map(|flag| (*flag).to_owned()));
    let report = server.bench(cell.workload.name(), flags)?;
    // What is missing must not look like a figure.
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let failed =
        report["errors"].as_object().map_or(0, |errors| errors.values().filter_map(Value::as_u64).sum());
    Ok(Run {
        kops: number("/operations_per_second") / 1000.0,
        p50_us: number("/latency_us/p50"),
        p99_us: number("/latency_us/p99"),
        p999_us: number("/latency_us/p999"),
        cpu_us: number("/server_cpu_us_per_operation"),
        failed,
    })
}

/// Over the rounds; ratios are taken round by round, so that what slows the machine for longer than a round does not move them.
fn summary(runs: &[Run], first: &[Run]) -> Figures {
    let of = |pick: fn(&Run) -> f64| Spread::of(runs.iter().map(pick));
    let ratio = |pick: fn(&Run) -> f64| {
        Spread::of(runs.iter().zip(first).map(|(own, first)| pick(own) / pick(first)))
    };
    Figures {
        kops: of(|run| run.kops),
        p50_us: of(|run| run.p50_us),
        p99_us: of(|run| run.p99_us),
        p999_us: of(|run| run.p999_us),
        cpu_us: of(|run| run.cpu_us),
        cpu_ratio: ratio(|run| run.cpu_us),
        kops_ratio: ratio(|run| run.kops),
        failed: runs.iter().map(|run| run.failed).sum(),
    }
}

fn show(measured: &Measured) {
    let Cell { value, connections, depth, distribution, workload } = measured.cell;
    let figures = measured.sides.iter().map(|(side, figures)| {
        format!("{side:?} {:.0} k {:.2} µs", figures.kops.median, figures.cpu_us.median)
    });
    println!(
        "{} {} c{connections} d{depth} {:<5} {}",
        size(value),
        distribution.title(),
        workload.title(),
        figures.collect::<Vec<_>>().join(" | ")
    );
}
