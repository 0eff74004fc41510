//! `gestalt bench`: the same lean client for Gestalt, memcached and redis.

mod args;
mod driver;
mod keys;
mod protocol;
mod report;
mod socket;
mod source;
mod tally;
mod targets;
mod timeline;
mod values;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

pub use args::BenchArgs;
use args::{Dialect, Workload};
use driver::{Checking, Driver, Outcome, Plan};
use keys::{KeyFormat, Popularity};
use protocol::Protocol;
use report::{Cpu, Report};
use source::Source;
use tally::Tally;
use targets::Targets;
use values::Values;

use crate::exit::Exit;
use crate::output::{self, Format};
use crate::process;
use crate::progress::Progress;

/// Runs the workloads one after another and prints their figures.
///
/// # Errors
/// `Usage` for flags that make no sense, `Unreachable` if nothing answers, `AtRisk` if a value was wrong.
pub fn run(args: &BenchArgs) -> Result<(), Exit> {
    let popularity = check(args)?;
    let mut reports = Vec::new();
    for (round, &workload) in args.workloads.iter().enumerate() {
        reports.push(run_workload(args, workload, popularity, round as u64)?);
    }
    match args.output {
        Format::Table => output::print(&report::render(&reports)),
        Format::Json => output::print_json(&reports),
    }
    verdict(&reports)
}

fn check(args: &BenchArgs) -> Result<Popularity, Exit> {
    if args.value_size.0 > 512 << 20 {
        return Err(Exit::usage("--value-size is at most 512MiB"));
    }
    if args.wait.is_some() && args.protocol != Dialect::Redis {
        return Err(Exit::usage("--wait is redis' WAIT: add --protocol redis"));
    }
    if args.protocol == Dialect::Redis && args.server.is_empty() {
        return Err(Exit::usage("--protocol redis needs --server ADDR: only Gestalt has a map"));
    }
    if let Some(interval) = args.interval {
        let most = timeline::MAX_SLICES as u128;
        if interval.is_zero() || args.duration.as_nanos() / interval.as_nanos() > most {
            return Err(Exit::usage(format!("--interval is too short: at most {most} in --duration")));
        }
    }
    if args.threads > args.clients {
        return Err(Exit::usage("--threads is more than --clients: each thread needs a connection"));
    }
    Popularity::new(args.keys, args.zipf).map_err(Exit::Usage)
}

fn verdict(reports: &[Report]) -> Result<(), Exit> {
    let wrong: u64 = reports.iter().map(|report| report.wrong_values).sum();
    if wrong > 0 {
        return Err(Exit::AtRisk(format!("{wrong} values read were not the bytes that were written")));
    }
    if let Some(silent) = reports.iter().find(|report| report.operations == 0) {
        let reason = silent.errors.keys().next().map_or("no answers", String::as_str);
        let text = format!("no operation of workload {} was answered: {reason}", silent.workload);
        return Err(Exit::Unreachable(text));
    }
    failures(reports)
}

/// Whoever scripts this wants to know of a single operation that failed; the report says of which kind they were.
fn failures(reports: &[Report]) -> Result<(), Exit> {
    let failed: u64 = reports.iter().flat_map(|report| report.errors.values()).sum();
    let answered: u64 = reports.iter().map(|report| report.operations).sum();
    let kind = reports.iter().flat_map(|report| &report.errors).max_by_key(|(_, count)| **count);
    match kind {
        Some((kind, _)) if failed > 0 => Err(Exit::Degraded(format!(
            "{failed} of {} operations failed, most with: {kind}",
            answered + failed
        ))),
        _ => Ok(()),
    }
}

fn source_of_targets(args: &BenchArgs) -> Result<targets::Source, Exit> {
    Ok(match (args.server.is_empty(), args.any_node) {
        (false, false) => targets::Source::Sharded(args.server.clone()),
        (false, true) => targets::Source::Any(args.server.clone()),
        (true, false) => targets::Source::Map(args.endpoint.find()?),
        (true, true) => targets::Source::AnyOfMap(args.endpoint.find()?),
    })
}

fn run_workload(
    args: &BenchArgs,
    workload: Workload,
    popularity: Popularity,
    round: u64,
) -> Result<Report, Exit> {
    let source = source_of_targets(args)?;
    let mut format = KeyFormat::new(args.key_size);
    let targets = Targets::resolve(&source, &mut format, args.keys).map_err(Exit::Unreachable)?;
    let pids = if args.pids.is_empty() {
        process::listening_on(&targets.process_addresses)
    } else {
        args.pids.clone()
    };
    let plan = plan(args, workload, targets, source, format);
    let (servers_before, client_before) = cpu_now(&pids);
    let began = SystemTime::now();
    let (tally, elapsed) = run_threads(args, workload, &plan, popularity, round).map_err(Exit::usage)?;
    let (servers_after, client_after) = cpu_now(&pids);
    let cpu = Cpu {
        servers: (!pids.is_empty()).then(|| servers_after.saturating_sub(servers_before)),
        client: client_after.saturating_sub(client_before),
    };
    Ok(Report::new(args, workload, &tally, (began, elapsed), &cpu))
}

fn cpu_now(pids: &[u32]) -> (Duration, Duration) {
    (process::cpu_time_of_all(pids), process::cpu_time(std::process::id()).unwrap_or_default())
}

fn plan(
    args: &BenchArgs,
    workload: Workload,
    targets: Targets,
    source: targets::Source,
    format: KeyFormat,
) -> Plan {
    let endless = workload == Workload::Load || args.ops.is_some();
    Plan {
        protocol: match args.protocol {
            Dialect::Memcached => Protocol::Memcached,
            Dialect::Redis => Protocol::Redis { wait: args.wait },
        },
        targets,
        source,
        format,
        keys: args.keys,
        values: Values::new(usize::try_from(args.value_size.0).unwrap_or(usize::MAX)),
        checking: if args.verify { Checking::On } else { Checking::Off },
        lanes: Vec::new(),
        depth: usize::from(args.depth),
        timeout: args.timeout,
        interval: args.interval,
        duration: if endless { Duration::from_secs(u64::from(u32::MAX)) } else { args.duration },
        version: 0,
    }
}

/// One driver a thread; the counts of all of them and the time of the slowest.
fn run_threads(
    args: &BenchArgs,
    workload: Workload,
    plan: &Plan,
    popularity: Popularity,
    round: u64,
) -> io::Result<(Tally, Duration)> {
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        let start = |index: u16| {
            let (plan, source) = share(args, workload, plan, popularity, index, round);
            let done = &done;
            scope.spawn(move || Driver::new(plan, source, done)?.run())
        };
        let threads: Vec<_> = (0..args.threads).map(start).collect();
        watch(args, workload, &threads, &done);
        let mut total = Tally::new(args.interval);
        let mut elapsed = Duration::ZERO;
        for thread in threads {
            let outcome =
                thread.join().map_err(|_| io::Error::other("a thread of the load generator panicked"))??;
            total.add(&outcome.tally);
            elapsed = elapsed.max(outcome.elapsed);
        }
        Ok((total, elapsed))
    })
}

/// Thread `index`'s part of the plan.
fn share(
    args: &BenchArgs,
    workload: Workload,
    plan: &Plan,
    popularity: Popularity,
    index: u16,
    round: u64,
) -> (Plan, Source) {
    let step = usize::from(args.threads);
    let lanes = (usize::from(index)..usize::from(args.clients)).step_by(step).collect();
    let version = (round << 56) | (u64::from(index) << 40);
    let plan = Plan { lanes, version, ..plan.clone() };
    let source = match workload {
        Workload::Load => Source::each((u32::from(index)..args.keys).step_by(step), &plan.targets),
        _ => {
            let threads = u64::from(args.threads);
            let limit =
                args.ops.map_or(u64::MAX, |ops| ops / threads + u64::from(u64::from(index) < ops % threads));
            let seed = args.seed.wrapping_mul(1_000_003).wrapping_add((round << 16) + u64::from(index));
            Source::random(workload, popularity, limit, seed)
        }
    };
    (plan, source)
}

fn watch(
    args: &BenchArgs,
    workload: Workload,
    threads: &[thread::ScopedJoinHandle<'_, io::Result<Outcome>>],
    done: &AtomicU64,
) {
    let mut progress = Progress::start();
    let started = Instant::now();
    while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
        thread::sleep(Duration::from_millis(5));
        progress.show(|| {
            let operations = done.load(Ordering::Relaxed);
            let rate = operations as f64 / started.elapsed().as_secs_f64();
            let of = if workload == Workload::Load { format!(" of {}", args.keys) } else { String::new() };
            format!("{}: {operations}{of} operations, {rate:.0}/s", workload.name())
        });
    }
}
