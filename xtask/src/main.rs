//! `cargo xtask`: what CI runs, and what a newcomer runs to see that all is well.
//!
//! No dependencies, so that it builds in a second even while the workspace does not.
#![allow(clippy::disallowed_methods)]

mod bench;
mod built;
mod ceph;
mod ceph_page;
mod clients;
mod clock;
mod counts;
mod cuda;
mod debian;
mod excerpt;
mod lanes;
mod liberasurecode;
mod measure;
mod publish;
mod run;
mod steps;

use std::process::ExitCode;

use clock::Took;
use lanes::Beside;
use steps::{ASIDE, Lane, QUICK, STEPS, Step};

const USAGE: &str = "\
usage:
  cargo xtask test [STEP…]     run all steps, or these (--list names them)
  cargo xtask test quick       what is worth running before every commit
  cargo xtask test --list
  cargo xtask measure [ARG…]   pauses, repair, growth, memory; ARGs go to the measuring program (--help)
  cargo xtask bench codec [--quick]   the codec's figures beside other libraries, into docs/benchmarks
  cargo xtask bench peers [--quick]   Gestalt beside memcached and valkey, into docs/benchmarks (--help)
  cargo xtask bench values            long values beside memcached and valkey, into docs/benchmarks (--help)
  cargo xtask bench native [--quick]  the native protocol and its clients beside memcached's, into docs/benchmarks (--help)
  cargo xtask bench map               what changes of the map cost, from 5 nodes to 10,000, into docs/benchmarks
  cargo xtask bench graphs            coding graphs over a network in virtual time, into docs/benchmarks
  cargo xtask bench fills             a holder that is filled over shaped links, into docs/benchmarks; needs root
  cargo xtask bench ceph [--quick]    Ceph's plugin beside isa and jerasure, into docs/benchmarks
  cargo xtask client c [PREFIX]       builds the client for C into PREFIX, or target/clients
  cargo xtask client python [PYTHON [GLIBC]]  builds the wheel for Python into target/clients, for an older glibc if one is named
  cargo xtask client rust             packages the crate gestalt and those that it needs for crates.io; sends nothing
  cargo xtask plugin ceph             builds Ceph's plugin, target/plugins/ceph/libec_gestalt.so
  cargo xtask plugin liberasurecode   builds the library that liberasurecode loads as ISA-L
  cargo xtask bench counts [PATH…]    instructions of the hot paths beside the committed ones; judges nothing
  cargo xtask bench counts --save     the same, which are then the ones to commit";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test", "--list"] => list(),
        ["test", names @ ..] => test(names),
        ["measure", rest @ ..] => measure::run(rest),
        ["bench", "peers", rest @ ..] => bench::peers(rest),
        ["bench", "codec", rest @ ..] => bench::codec(rest),
        ["bench", "map", rest @ ..] => bench::map(rest),
        ["bench", "fills", rest @ ..] => bench::fills(rest),
        ["bench", "graphs", rest @ ..] => bench::graphs(rest),
        ["bench", "values", rest @ ..] => bench::values(rest),
        ["bench", "native", rest @ ..] => bench::native(rest),
        ["bench", "ceph", rest @ ..] => ceph::bench(rest),
        ["client", "rust"] => publish::rust(),
        ["client", "c", rest @ ..] => clients::c(rest),
        ["client", "python", rest @ ..] => clients::python(rest),
        ["plugin", "ceph"] => ceph::plugin(),
        ["plugin", "liberasurecode"] => liberasurecode::plugin(),
        ["bench", "counts", rest @ ..] => counts::run(rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<(), String> {
    for step in STEPS.iter().chain(ASIDE) {
        println!("{:<12} {}", step.name, step.about);
    }
    Ok(())
}

fn test(names: &[&str]) -> Result<(), String> {
    let chosen = choose(names)?;
    let mut report = Report::default();
    let ((), all) = Took::by(|| {
        // Who names steps wants them one after the other.
        if names.is_empty() { in_lanes(&chosen, &mut report) } else { report.run(&chosen) }
    });
    report.end(all)
}

/// What has to be there first, then the steps that wait, with those that compute beside them.
fn in_lanes(steps: &[&Step], report: &mut Report) {
    let of = |lane| -> Vec<&Step> { steps.iter().copied().filter(|step| step.lane == lane).collect() };
    report.run(&of(Lane::First));
    report.check("end-to-end tests", steps::build_end_to_end());
    match Beside::begin(&of(Lane::Beside)) {
        Ok(beside) => {
            report.run(&of(Lane::Timed));
            report.check("beside", beside.end());
        }
        Err(reason) => report.check("beside", Err(reason)),
    }
}

/// How steps went.
#[derive(Default)]
struct Report {
    table: Vec<(&'static str, Took)>,
    failed: Vec<String>,
}

impl Report {
    fn run(&mut self, steps: &[&Step]) {
        for step in steps {
            let (result, took) = run_step(step);
            self.table.push((step.name, took));
            self.check(step.name, result);
        }
    }

    fn check(&mut self, name: &str, result: Result<(), String>) {
        self.failed.extend(result.err().map(|reason| format!("{name}: {reason}")));
    }

    fn end(self, all: Took) -> Result<(), String> {
        println!("\n{:<12} {:>8} {:>10} {:>10}", "seconds", "wall", "compiling", "processor");
        self.table.iter().chain([&("all", all)]).for_each(|(name, took)| println!("{name:<12} {took}"));
        if self.failed.is_empty() {
            println!("\nall steps passed");
            return Ok(());
        }
        println!("\n{} failed", self.failed.len());
        Err(self.failed.join("\n"))
    }
}

/// All steps but those aside, or the named ones in the order of the list, or the quick ones.
fn choose(names: &[&str]) -> Result<Vec<&'static Step>, String> {
    if names == ["quick"] {
        return Ok(QUICK.iter().collect());
    }
    let all = || STEPS.iter().chain(ASIDE);
    if let Some(unknown) = names.iter().find(|name| all().all(|step| step.name != **name)) {
        let known: Vec<&str> = all().map(|step| step.name).collect();
        return Err(format!("no step is called '{unknown}': there are {}", known.join(", ")));
    }
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    Ok(all().filter(|step| names.contains(&step.name)).collect())
}

fn run_step(step: &Step) -> (Result<(), String>, Took) {
    println!("\n=== {}: {}", step.name, step.about);
    let (result, took) = Took::by(step.run);
    let word = if result.is_ok() { "ok" } else { "FAILED" };
    println!("=== {}: {word} in {:.1} s", step.name, took.wall.as_secs_f64());
    (result, took)
}
