//! Runs the simulator over seeds: `sim --seeds 1..1000`, `sim --seed 42 --trace`, `sim --minutes 10`.
#![allow(clippy::disallowed_methods)] // A tool for people: it measures with a real clock.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use proto::Rules;
use sim::{Focus, Options, Stats, Trace, run, run_traced};

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
    /// moves, returns, succession, forgetting, releases or losses.
    #[arg(long, value_parser = parse_focus)]
    focus: Option<Focus>,
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
    ];
    let named = all.into_iter().find(|f| f.to_string() == text);
    named.ok_or_else(|| {
        "write anything, double-faults, slow-lines, moves, returns, succession or releases".to_owned()
    })
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
    SEED.with(|cell| cell.set(seed));
    let options = match arguments.focus {
        Some(focus) => Options::draw_focused(seed, focus),
        None => Options::draw(seed),
    };
    let options = if arguments.calm { options.without_faults() } else { options };
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
    let begun = Instant::now();
    let mut total = Stats::default();
    let mut count = 0u64;
    let mut failed: Vec<(u64, String)> = Vec::new();
    let mut seed = arguments.seeds.start;
    let more = |seed: u64| match arguments.minutes {
        Some(minutes) => begun.elapsed().as_secs_f64() < minutes * 60.0,
        None => seed < arguments.seeds.end,
    };
    while more(seed) {
        let options = options(seed, arguments);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&options)));
        count += 1;
        match outcome {
            Ok(report) => {
                total.add(&report.stats);
                if arguments.digests {
                    println!("{seed} {}", report.digest);
                }
                if let Some(failure) = &report.failure {
                    if arguments.keep_going {
                        println!("seed {seed}: {failure}");
                    } else {
                        println!("{report}");
                    }
                    failed.push((seed, failure.rule.to_owned()));
                }
            }
            Err(_) => failed.push((seed, "panic".to_owned())),
        }
        if !failed.is_empty() && !arguments.keep_going {
            break;
        }
        seed += 1;
    }
    println!("{total}");
    println!(
        "{count} seeds, {} failed, {:.1} s, {:.0} events/s",
        failed.len(),
        begun.elapsed().as_secs_f64(),
        rate(total.events, begun)
    );
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    let list: Vec<String> = failed.iter().map(|(seed, rule)| format!("{seed} ({rule})")).collect();
    println!("failed: {}", list.join(", "));
    ExitCode::FAILURE
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

#[cfg(not(feature = "planted-bugs"))]
fn rules_without(_: &str) -> Result<Rules, String> {
    Err("build with --features planted-bugs".to_owned())
}
