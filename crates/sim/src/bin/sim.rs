//! Runs the simulator over seeds: `sim --seeds 1..1000`, `sim --seed 42 --trace`, `sim --minutes 10`.
#![allow(clippy::disallowed_methods)] // A tool for people: it measures with a real clock.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use clap::Parser;
use proto::Rules;
use sim::{Focus, Options, Report, Stats, Trace, run, run_traced};

/// The deterministic simulator. Without options it runs seeds 1..201.
#[derive(Debug, Parser)]
#[command(after_help = "Example: sim --seeds 1..1000\n         sim --seed 42 --trace | tail -100")]
struct Arguments {
    /// Run this seed alone, and say what it stands for.
    #[arg(long)]
    seed: Option<u64>,
    /// Run these seeds, A..B without B.
    #[arg(long, value_parser = parse_range, default_value = "1..201")]
    seeds: Range<u64>,
    /// Go on for so many minutes, from the first of the seeds.
    #[arg(long)]
    minutes: Option<f64>,
    /// Print everything that happens (with --seed).
    #[arg(long)]
    trace: bool,
    /// Look at this more closely, whatever the seed says: anything, double-faults, slow-lines,
    /// moves, returns, succession, forgetting, releases, losses, codes, objects, graphs, sessions,
    /// native, scans or conversions
    #[arg(long, value_parser = parse_focus)]
    focus: Option<Focus>,
    /// Run so many seeds at a time; as many as there are processors if not given.
    #[arg(long, default_value_t = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))]
    jobs: NonZeroUsize,
    /// Leave the faults out.
    #[arg(long)]
    calm: bool,
    /// Go on after a failure, and list the seeds that fail.
    #[arg(long)]
    keep_going: bool,
    /// Print the digest of every seed, to compare machines and builds.
    #[arg(long)]
    digests: bool,
    /// Measure: many clients, tiny values, no faults.
    #[arg(long)]
    speed: bool,
    /// Break a rule of the protocol on purpose (needs the feature planted-bugs).
    #[arg(long, value_name = "BUG", value_parser = rules_without)]
    planted: Option<Rules>,
    /// Break a rule of native clients on purpose (with --focus native or scans, and the same feature).
    #[arg(long, value_name = "BUG", value_parser = native_rules_without)]
    planted_native: Option<client_core::Rules>,
}

fn parse_focus(text: &str) -> Result<Focus, String> {
    let all = [
        Focus::Anything,
        Focus::DoubleFaults,
        Focus::SlowLines,
        Focus::Moves,
        Focus::Returns,
        Focus::Succession,
        Focus::Forgetting,
        Focus::Releases,
        Focus::Losses,
        Focus::Codes,
        Focus::Objects,
        Focus::Graphs,
        Focus::Sessions,
        Focus::Native,
        Focus::Scans,
        Focus::Conversions,
    ];
    let named = all.into_iter().find(|f| f.to_string() == text);
    let names = || all.map(|focus| focus.to_string()).join(", ");
    named.ok_or_else(|| format!("there are {}", names()))
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("write A..B")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}\nin seed {}", SEED.with(std::cell::Cell::get));
        eprintln!("replay: cargo run -p sim --release -- --seed {}", SEED.with(std::cell::Cell::get));
    }));
    if arguments.speed {
        return measure();
    }
    match arguments.seed {
        Some(seed) => one(seed, &arguments),
        None => many(&arguments),
    }
}

thread_local! {
    static SEED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn options(seed: u64, arguments: &Arguments) -> Options {
    // For the panic hook: several threads run seeds at a time, and each has its own.
    SEED.with(|cell| cell.set(seed));
    let options = match arguments.focus {
        Some(focus) => Options::draw_focused(seed, focus),
        None => Options::draw(seed),
    };
    let options = if arguments.calm { options.without_faults() } else { options };
    let options = options.by_native(arguments.planted_native.unwrap_or_default());
    options.by(arguments.planted.unwrap_or(Rules::all()))
}

fn one(seed: u64, arguments: &Arguments) -> ExitCode {
    let options = options(seed, arguments);
    println!("seed {seed}: {options}");
    let begun = Instant::now();
    let report = if arguments.trace { run_traced(&options, Trace::print()) } else { run(&options) };
    println!("{report}");
    println!("{:.2} s, {:.0} events/s", begun.elapsed().as_secs_f64(), rate(report.stats.events, begun));
    if report.failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn many(arguments: &Arguments) -> ExitCode {
    let campaign = Campaign::new(arguments);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.get() {
            scope.spawn(|| campaign.work());
        }
    });
    campaign.conclude()
}

/// Many seeds, by several threads.
struct Campaign<'a> {
    arguments: &'a Arguments,
    begun: Instant,
    next: AtomicU64,
    tally: Mutex<Tally>,
}

/// What has come of them so far.
#[derive(Default)]
struct Tally {
    total: Stats,
    count: u64,
    failed: BTreeMap<u64, String>,
    digests: BTreeMap<u64, String>,
}

impl<'a> Campaign<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        let next = AtomicU64::new(arguments.seeds.start);
        Self { arguments, begun: Instant::now(), next, tally: Mutex::default() }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes seed after seed, as long as there are any.
    fn work(&self) {
        while let Some(seed) = self.next_seed() {
            let options = options(seed, self.arguments);
            // A panic is a find like any other. State that it may have left half-changed is
            // that of its own run, and gone.
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&options)));
            self.note(seed, outcome.ok());
        }
    }

    fn next_seed(&self) -> Option<u64> {
        let is_over = !self.arguments.keep_going && !self.tally().failed.is_empty();
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        let is_left = match self.arguments.minutes {
            Some(minutes) => self.begun.elapsed().as_secs_f64() < minutes * 60.0,
            None => seed < self.arguments.seeds.end,
        };
        (is_left && !is_over).then_some(seed)
    }

    /// A seed has ended; without a report it has panicked.
    fn note(&self, seed: u64, report: Option<Report>) {
        let mut tally = self.tally();
        tally.count += 1;
        let Some(report) = report else {
            tally.failed.insert(seed, "panic".to_owned());
            return;
        };
        tally.total.add(&report.stats);
        if self.arguments.digests {
            tally.digests.insert(seed, report.digest.to_string());
        }
        if let Some(failure) = &report.failure {
            if self.arguments.keep_going {
                println!("seed {seed}: {failure}")
            } else {
                println!("{report}")
            }
            tally.failed.insert(seed, failure.rule.to_owned());
        }
    }

    fn conclude(self) -> ExitCode {
        let Tally { total, count, failed, digests } =
            self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        digests.iter().for_each(|(seed, digest)| println!("{seed} {digest}"));
        println!("{total}");
        let (seconds, rate) = (self.begun.elapsed().as_secs_f64(), rate(total.events, self.begun));
        println!("{count} seeds, {} failed, {seconds:.1} s, {rate:.0} events/s", failed.len());
        if failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        let list: Vec<String> = failed.iter().map(|(seed, rule)| format!("{seed} ({rule})")).collect();
        println!("failed: {}", list.join(", "));
        ExitCode::FAILURE
    }
}

fn measure() -> ExitCode {
    let begun = Instant::now();
    let report = run(&Options::speed(1));
    println!("{report}");
    let (events, calls) = (report.stats.events, report.stats.answered);
    println!(
        "{:.0} events/s, {:.0} calls/s, {:.2} s",
        rate(events, begun),
        rate(calls, begun),
        begun.elapsed().as_secs_f64()
    );
    if report.failure.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn rate(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64().max(1e-9)
}

#[cfg(feature = "planted-bugs")]
fn rules_without(name: &str) -> Result<Rules, String> {
    let named = proto::Bug::ALL.into_iter().find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name));
    let bug = named.ok_or_else(|| format!("no such bug; there are {:?}", proto::Bug::ALL))?;
    Ok(Rules::without(bug))
}

#[cfg(feature = "planted-bugs")]
fn native_rules_without(name: &str) -> Result<client_core::Rules, String> {
    let all = client_core::Bug::ALL;
    let named = all.iter().find(|bug| format!("{bug:?}").eq_ignore_ascii_case(name));
    let bug = named.ok_or_else(|| format!("no such bug; there are {all:?}"))?;
    Ok(client_core::Rules::without(*bug))
}

#[cfg(not(feature = "planted-bugs"))]
fn native_rules_without(_: &str) -> Result<client_core::Rules, String> {
    Err("build with --features planted-bugs".to_owned())
}

#[cfg(not(feature = "planted-bugs"))]
fn rules_without(_: &str) -> Result<Rules, String> {
    Err("build with --features planted-bugs".to_owned())
}
