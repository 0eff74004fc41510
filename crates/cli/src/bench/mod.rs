//! `gestalt bench`: what the crate `load` does, as a command.

mod args;
mod report;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use client::{FailureCode, MAX_PAYLOAD_BYTES};

pub use args::BenchArgs;
use args::{Dialect, Workload};
use load::driver::{Driver, Outcome, Plan};
use load::keys::{KeyFormat, Popularity};
use load::latest::Latest;
use load::protocol::{Naming, Protocol, Text};
use load::source::{Share, Source};
use load::tally::Tally;
use load::targets::{self, Targets, Unresolved};
use load::timeline;
use load::values::{Checking, Lengths, Values};
use report::{Cpu, Report};

use crate::exit::Exit;
use crate::output::{self, Format};
use crate::process;
use crate::progress::Progress;
use crate::units::Size;
use crate::value_sizes::{ValueSize, shares};
use crate::words;

/// Longest value that is written: it is kept whole, once a thread and twice a connection.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// YCSB's exponent of Zipf's law, by which keys are read that are popular because they are new.
const YCSB_THETA: f64 = 0.99;

/// Runs the workloads one after another and prints their figures.
///
/// # Errors
/// `Usage` for flags that make no sense and where all is refused for its size, `Unreachable` if nothing answers, `Degraded` if
/// operations failed, `AtRisk` if a value was wrong.
pub fn run(args: &BenchArgs) -> Result<(), Exit> {
    let popularity = check(args)?;
    let source = source_of_targets(args)?;
    let mut reports = Vec::new();
    for (round, &workload) in args.workloads.iter().enumerate() {
        reports.push(run_workload(args, workload, popularity, round as u64, &source)?);
    }
    match args.output {
        Format::Table => output::print(&report::render(&reports)),
        Format::Json => output::print_json(&reports),
    }
    verdict(&reports)
}

fn check(args: &BenchArgs) -> Result<Popularity, Exit> {
    lengths(args)?;
    if args.wait.is_some() && args.protocol != Dialect::Redis {
        return Err(Exit::usage("--wait is redis' WAIT: add --protocol redis"));
    }
    if args.protocol == Dialect::Redis && args.server.is_empty() {
        return Err(Exit::usage("--protocol redis needs --server ADDR: only Gestalt has a map"));
    }
    if args.protocol == Dialect::Native && !args.server.is_empty() {
        return Err(Exit::usage(
            "--protocol native goes by the cluster's map: name a node or the coordinator with --http instead of --server",
        ));
    }
    if args.nameless && args.protocol != Dialect::Native {
        return Err(Exit::usage("--nameless is about names of the native protocol: add --protocol native"));
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
    let loads = args.workloads.contains(&Workload::Load) && !args.any_node;
    if loads && usize::from(args.clients) < args.server.len() {
        return Err(Exit::usage(
            "--clients is less than there are servers: each needs a connection to be loaded",
        ));
    }
    latest(args, 0).map_err(Exit::Usage)?;
    Popularity::new(args.keys, args.zipf).map_err(Exit::Usage)
}

/// How long values are.
fn lengths(args: &BenchArgs) -> Result<Lengths, Exit> {
    let shares = shares(&args.value_size)?;
    let length = |(value, share): (&ValueSize, f64)| match usize::try_from(value.size.0) {
        Ok(len) if len <= MAX_VALUE_BYTES => Ok((len, share)),
        _ => Err(Exit::usage(format!("--value-size is at most {}", Size(MAX_VALUE_BYTES as u64)))),
    };
    let lengths: Result<Vec<_>, Exit> = args.value_size.iter().zip(shares).map(length).collect();
    Ok(Lengths::mixed(&lengths?))
}

fn verdict(reports: &[Report]) -> Result<(), Exit> {
    // First what is worst: a wrong value counts for more than any failure.
    let wrong: u64 = reports.iter().map(|report| report.wrong_values).sum();
    if wrong > 0 {
        return Err(Exit::AtRisk(format!("{wrong} values read were not the bytes that were written")));
    }
    if let Some(silent) = reports.iter().find(|report| report.operations == 0) {
        return Err(unanswered(silent));
    }
    let failed: u64 = reports.iter().flat_map(|report| report.errors.values()).sum();
    if failed == 0 {
        return Ok(());
    }
    let most = reports.iter().flat_map(|report| &report.errors).max_by_key(|(_, count)| **count);
    let most = most.map_or("", |(kind, _)| kind.as_str());
    let operations = words::count_u64(failed, "operation", "operations");
    Err(Exit::Degraded(format!("{operations} failed, most of them: {most}{}", limit_of(most))))
}

/// That not one operation of a workload was answered: the servers are not there, or refuse all of it.
fn unanswered(report: &Report) -> Exit {
    let most = report.errors.iter().max_by_key(|(_, count)| **count);
    let reason = most.map_or("no answers", |(kind, _)| kind.as_str());
    let text = format!("no operation of workload {} was done: {reason}{}", report.workload, limit_of(reason));
    match FailureCode::parse(reason.as_bytes()) {
        Some(FailureCode::TooLarge | FailureCode::OutOfMemory) => Exit::Usage(text),
        _ => Exit::Unreachable(text),
    }
}

/// Which limit was met, if it was one.
fn limit_of(reason: &str) -> String {
    match FailureCode::parse(reason.as_bytes()) {
        Some(FailureCode::TooLarge) => format!(
            ": values have as many bytes as the nodes' --max-value says, and key and value {MAX_PAYLOAD_BYTES} at most where the namespace takes none in chunks (--striped-above)"
        ),
        Some(FailureCode::OutOfMemory) => ": the nodes' --memory is used up (`gestalt status`)".to_owned(),
        _ => String::new(),
    }
}

/// Before anything is asked of servers: that one of them is there.
fn somebody_listens(servers: &[SocketAddr], timeout: Duration) -> Result<(), Exit> {
    let mut failed = None;
    for server in servers {
        match TcpStream::connect_timeout(server, timeout) {
            Ok(_) => return Ok(()),
            Err(error) => failed = failed.or(Some((server, error))),
        }
    }
    failed.map_or(Ok(()), |(server, error)| Err(Exit::Unreachable(format!("{server}: {error}"))))
}

fn source_of_targets(args: &BenchArgs) -> Result<targets::Source, Exit> {
    if !args.server.is_empty() {
        somebody_listens(&args.server, args.timeout)?;
        let sharding = if args.any_node { targets::Source::Any } else { targets::Source::Sharded };
        return Ok(sharding(args.server.clone()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Exit::usage)?;
    let http = runtime.block_on(args.endpoint.find_map())?;
    Ok(if args.any_node { targets::Source::AnyOfMap(http) } else { targets::Source::Map(http) })
}

fn run_workload(
    args: &BenchArgs,
    workload: Workload,
    popularity: Popularity,
    round: u64,
    source: &targets::Source,
) -> Result<Report, Exit> {
    let mut format = KeyFormat::new(args.key_size);
    // Anew for every workload: roles may have moved since the last one.
    let listener = protocol(args).listener();
    let targets = Targets::resolve(source, listener, &mut format, args.keys).map_err(unresolved)?;
    let pids = if args.pids.is_empty() {
        process::listening_on(&targets.process_addresses)
    } else {
        args.pids.clone()
    };
    let values = Values::new(lengths(args)?);
    let plan = plan(args, workload, targets, source.clone(), format, values);
    let (servers_before, client_before) = cpu_now(&pids);
    let began = SystemTime::now();
    let (tally, elapsed) = run_threads(args, workload, &plan, popularity, round).map_err(Exit::usage)?;
    let (servers_after, client_after) = cpu_now(&pids);
    let cpu = Cpu {
        servers: (!pids.is_empty()).then(|| servers_after.saturating_sub(servers_before)),
        client: client_after.saturating_sub(client_before),
    };
    Ok(Report::new(args, workload, &tally, began, elapsed, &cpu))
}

fn unresolved(reason: Unresolved) -> Exit {
    match reason {
        Unresolved::NoMap(text) => Exit::Unreachable(text),
        Unresolved::NoListener(text) => Exit::Usage(text),
    }
}

fn protocol(args: &BenchArgs) -> Protocol {
    match args.protocol {
        Dialect::Memcached => Protocol::Text(Text::Memcached),
        Dialect::Redis => Protocol::Text(Text::Redis { wait: args.wait }),
        Dialect::Native if args.nameless => Protocol::Native(Naming::Nameless),
        Dialect::Native => Protocol::Native(Naming::Named),
    }
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
    values: Values,
) -> Plan {
    let endless = workload == Workload::Load || args.ops.is_some();
    Plan {
        protocol: protocol(args),
        targets,
        source,
        format,
        keys: args.keys,
        values,
        checking: if args.verify { Checking::On } else { Checking::Off },
        lanes: Vec::new(),
        depth: usize::from(args.depth),
        timeout: args.timeout,
        interval: args.interval,
        // A load ends with its keys, a bound by operations with these. A century is as good as for ever.
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

/// The keys that thread `index` adds and reads.
fn latest(args: &BenchArgs, index: u16) -> Result<Latest, String> {
    let theta = args.zipf.unwrap_or(YCSB_THETA);
    Latest::new(args.keys, theta, (index.into(), args.threads.into()))
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
    // Apart for all workloads and threads, so that each write has a version of its own.
    let version = (round << 56) | (u64::from(index) << 40);
    let plan = Plan { lanes, version, ..plan.clone() };
    if workload == Workload::Load {
        let share = Share { index: index.into(), threads: step, connections: args.clients.into() };
        let source = Source::each(args.keys, share, &plan.targets);
        return (plan, source);
    }
    let threads = u64::from(args.threads);
    // What cannot be shared out evenly falls to the first threads.
    let limit = args.ops.map_or(u64::MAX, |ops| ops / threads + u64::from(u64::from(index) < ops % threads));
    let seed = args.seed.wrapping_mul(1_000_003).wrapping_add((round << 16) + u64::from(index));
    let latest = latest(args, index).ok().filter(|_| workload == Workload::D);
    let source = match latest {
        Some(latest) => Source::latest(workload.mix(), latest, limit, seed),
        None => Source::random(workload.mix(), popularity, limit, seed),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::SystemTime;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn ended(operations: u64, wrong_values: u64, errors: &[(&str, u64)]) -> Result<(), Exit> {
        let args = Flags::parse_from(["bench"]).args;
        let cpu = Cpu { servers: None, client: Duration::ZERO };
        let (began, elapsed) = (SystemTime::now(), Duration::from_secs(1));
        let report = Report::new(&args, Workload::A, &Tally::new(None), began, elapsed, &cpu);
        let errors: BTreeMap<String, u64> =
            errors.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        verdict(&[Report { operations, wrong_values, errors, ..report }])
    }

    #[test]
    fn a_failed_operation_and_a_wrong_value_are_not_0() {
        assert!(ended(5, 0, &[]).is_ok());
        let failed = ended(5, 0, &[("lost: more nodes failed", 1)]).unwrap_err();
        assert!(
            matches!(&failed, Exit::Degraded(text) if text.starts_with("1 operation failed, most of them: lost"))
        );
        assert!(matches!(ended(5, 1, &[("busy", 1)]), Err(Exit::AtRisk(_))));
    }

    #[test]
    fn nothing_done_is_nobody_there_or_a_limit_that_is_named() {
        assert!(matches!(ended(0, 0, &[("connect: refused", 3)]), Err(Exit::Unreachable(_))));
        let names = |reason, limit: &str| matches!(ended(0, 0, &[(reason, 3)]), Err(Exit::Usage(text)) if text.contains(limit));
        assert!(names("object too large for cache", &MAX_PAYLOAD_BYTES.to_string()));
        assert!(names("out of memory storing object", "--memory"));
    }
}
