//! `gestalt codec bench`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use codec::{Code, Family, Scheme};
use codec_bench::sweep::{self, Density, Panel, Sweep};
use codec_bench::{Case, Effort, Extent, Job, Machine, Op, Parts, Peer, Report, Sides, Spread, measure};
use codec_cuda::Residence;

use super::args::{CodeArgs, Runner, extent, has_matrix, parse, refused, residence, runner};
use super::trace;
use crate::exit::Exit;
use crate::output::{Format, Table, print, print_json};
use crate::progress::Progress;
use crate::units::duration;

const EXAMPLE: &str = "\
Examples:
  gestalt codec bench                                          (10,4), three sizes
  gestalt codec bench -k 6 -m 3 --size 512B,4KiB,1MiB-object --op decode --losses 2
  gestalt codec bench --code 'lrc(12,2,2)' --op delta --kernel avx2,avx2-gfni
  gestalt codec bench --against isal,klauspost --size 4KiB     isal needs a build with `--features peers`
  gestalt codec bench --size 256MiB-object --cold -o json
  gestalt codec bench --kernel cuda,avx512-gfni --resident pinned,device --size 64MiB-object
  gestalt codec bench --sweep all --out docs/benchmarks

Rates are GB/s (10^9) of data bytes; of a delta, the delta's. All sides, and the machine's own limits, take turns in each round.";

/// The most rounds and the longest turn: a run ends.
const MAX_ROUNDS: i64 = 10_000;
const MAX_TURN: Duration = Duration::from_secs(10);

/// How fast the codec is, beside other libraries and the machine's own limits, in one run
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct BenchArgs {
    #[command(flatten)]
    code: CodeArgs,
    /// Matrix families of ours to run; by default cauchy-xor and lch for Reed-Solomon codes
    #[arg(long, value_delimiter = ',', value_parser = parse::<Family>)]
    family: Vec<Family>,
    /// Bytes of a chunk, or with -object of a whole object
    #[arg(long, value_delimiter = ',', value_parser = extent, default_value = "4KiB,64KiB,1MiB-object")]
    size: Vec<Extent>,
    /// encode, decode, delta, copy-encode, checksum-encode
    #[arg(long, value_delimiter = ',', value_parser = parse::<Op>, default_value = "encode")]
    op: Vec<Op>,
    /// Data chunks that are lost, for decode
    #[arg(long, value_delimiter = ',', default_value = "1")]
    losses: Vec<usize>,
    /// Threads that share one encode or decode
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,
    /// Kernels of ours to run, and cuda for a card; by default the chosen one
    #[arg(long, value_delimiter = ',', value_parser = runner)]
    kernel: Vec<Runner>,
    /// With --kernel cuda, where chunks are: host, pinned (page-locked memory of the host), device
    #[arg(long, value_delimiter = ',', value_parser = residence, default_value = "host")]
    resident: Vec<Residence>,
    /// isal, jerasure, reed-solomon-erasure, reed-solomon-simd, rusty_erasure, klauspost (builds its program with Go)
    #[arg(long, value_delimiter = ',', value_parser = parse::<Peer>)]
    against: Vec<Peer>,
    /// Rounds; the median counts
    #[arg(long, default_value = "11", value_parser = clap::value_parser!(u32).range(1..=MAX_ROUNDS))]
    rounds: u32,
    /// How long each side runs in a round
    #[arg(long, default_value = "10ms", value_parser = duration)]
    turn: Duration,
    /// Take chunks from a pool of 640 MiB instead of the caches
    #[arg(long)]
    cold: bool,
    /// Run ours on prepared chunks too: checked once, as those that ISA-L gets
    #[arg(long)]
    prepared: bool,
    /// Do not measure the machine's limits
    #[arg(long)]
    no_limits: bool,
    /// Take and draw whole figures instead, as papers have them
    #[arg(long, value_enum, conflicts_with_all = ["code", "k", "m", "family", "size", "op", "losses", "cold", "threads"])]
    sweep: Option<SweepName>,
    /// Where figures go
    #[arg(long, requires = "sweep", default_value = ".")]
    out: PathBuf,
    /// Take fewer points of each figure
    #[arg(long, requires = "sweep")]
    quick: bool,
    /// With --kernel cuda, write what was done when in the last call of each side: a file for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// How to print the results
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Which figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SweepName {
    /// Coding rate by number of parities and by block size.
    Gest,
    /// 10+2, 10+3, 10+4 with 1 MiB objects, one to four erasures.
    Uab,
    /// Chunks of 128 B to 16 MiB.
    Inec,
    /// For --kernel cuda: six codes by chunk size, many stripes in a call, and by number of parities.
    Card,
    /// All of them but card's.
    All,
}

impl SweepName {
    fn sweeps(self) -> Vec<Sweep> {
        match self {
            Self::Gest => vec![Sweep::Gest],
            Self::Uab => vec![Sweep::Uab],
            Self::Inec => vec![Sweep::Inec],
            Self::Card => vec![Sweep::Card],
            Self::All => vec![Sweep::Gest, Sweep::Uab, Sweep::Inec],
        }
    }
}

/// Measures, and prints the figures.
///
/// # Errors
/// `Usage` for what cannot be measured.
pub fn run(args: &BenchArgs) -> Result<(), Exit> {
    for peer in &args.against {
        peer.check_built().map_err(refused)?;
    }
    if args.turn.is_zero() || args.turn > MAX_TURN {
        return Err(Exit::usage("--turn is out of bounds: choose up to 10s"));
    }
    if args.trace.is_some() && !args.kernel.contains(&Runner::Card) {
        return Err(Exit::usage("--trace is for --kernel cuda: nothing else has stages"));
    }
    let effort = Effort { rounds: args.rounds as usize, turn: args.turn };
    let cases = match args.sweep {
        Some(name) => run_sweeps(args, name, effort)?,
        None => run_jobs(args, effort)?,
    };
    if let Some(file) = &args.trace {
        trace::write(file, &cases).map_err(refused)?;
    }
    let report = Report { machine: Machine::here(), cases };
    match args.output {
        Format::Json => print_json(&report),
        Format::Table => print(&render(&report)),
    }
    Ok(())
}

fn run_sweeps(args: &BenchArgs, name: SweepName, effort: Effort) -> Result<Vec<Case>, Exit> {
    sweep::make_dir(&args.out).map_err(refused)?;
    let density = if args.quick { Density::Quick } else { Density::Full };
    let sides = sides(args, Vec::new());
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let command = format!("gestalt {command}");
    let mut cases = Vec::new();
    for sweep in name.sweeps() {
        let mut progress = Progress::start();
        let mut show = |done: usize, all: usize| {
            progress.show(|| format!("{}: {done} of {all} points", sweep.name()));
        };
        let mut keep = |panel: Panel| {
            sweep::write(sweep, &panel, &args.out, &command)?;
            cases.extend(panel.cases());
            Ok(())
        };
        sweep::run(sweep, density, &sides, effort, &mut show, &mut keep).map_err(refused)?;
    }
    Ok(cases)
}

fn run_jobs(args: &BenchArgs, effort: Effort) -> Result<Vec<Case>, Exit> {
    let scheme = args.code.scheme().unwrap_or(Scheme::rs(10, 4));
    let k = Code::of(scheme).map_err(Exit::usage)?.k();
    let sides = sides(args, families(args, scheme)?);
    let jobs = jobs(args, scheme, k);
    // All are checked before the first is run, which may take long.
    jobs.iter().try_for_each(|job| job.code().map(drop)).map_err(refused)?;
    jobs.iter().map(|job| measure(job, &sides, effort).map_err(refused)).collect()
}

/// Who takes part.
fn sides(args: &BenchArgs, families: Vec<Family>) -> Sides {
    let kernel = |runner: &Runner| match runner {
        Runner::Kernel(kernel) => Some(*kernel),
        Runner::Card => None,
    };
    let card = if args.kernel.contains(&Runner::Card) { args.resident.clone() } else { Vec::new() };
    Sides {
        families,
        kernels: args.kernel.iter().filter_map(kernel).collect(),
        prepared: args.prepared,
        card,
        peers: args.against.clone(),
        limits: !args.no_limits,
    }
}

/// Our families: those asked for, which must have this code; else the two that are for encoding, where they have it.
fn families(args: &BenchArgs, scheme: Scheme) -> Result<Vec<Family>, Exit> {
    let Scheme::Rs { family, k, m } = scheme else {
        return match args.family.first() {
            None => Ok(Vec::new()),
            Some(_) => Err(Exit::usage(format_args!("--family is for Reed-Solomon codes, not for {scheme}"))),
        };
    };
    for family in &args.family {
        Code::of(Scheme::Rs { family: *family, k, m }).map_err(Exit::usage)?;
    }
    if !args.family.is_empty() {
        return Ok(args.family.clone());
    }
    if family != Family::CauchyXor {
        return Ok(vec![family]);
    }
    // The default, and beside it the one that is run by a transform.
    Ok([Family::CauchyXor, Family::Lch].into_iter().filter(|family| has_matrix(scheme, *family)).collect())
}

/// Each operation at each size; a decode for each number of losses.
fn jobs(args: &BenchArgs, scheme: Scheme, k: usize) -> Vec<Job> {
    let mut jobs = Vec::new();
    for op in &args.op {
        for extent in &args.size {
            let job = Job::new(scheme, *op, *extent, k);
            let job = Job { threads: args.threads, cold: args.cold, ..job };
            // To the others losses mean nothing, and would be the same job again.
            let losses = if *op == Op::Decode { &args.losses[..] } else { &[1] };
            jobs.extend(losses.iter().map(|losses| Job { losses: *losses, ..job }));
        }
    }
    jobs
}

fn render(report: &Report) -> String {
    let machine = &report.machine;
    let card = machine.card.as_ref().map_or_else(String::new, |card| format!(", card {card}"));
    let mut text =
        format!("{}, {} cores, kernel {}{card}\n", machine.processor, machine.cores, machine.kernel);
    for case in &report.cases {
        text.push_str(&format!("\n{}\n{}", title(case), table(case).render()));
        for skipped in &case.skipped {
            text.push_str(&format!("without {}: {}\n", skipped.peer, skipped.reason));
        }
    }
    text
}

fn title(case: &Case) -> String {
    let losses = case.losses.map_or_else(String::new, |losses| format!(" of {losses}"));
    let cold = if case.cold { ", cold" } else { "" };
    let threads = if case.threads > 1 { format!(", {} threads", case.threads) } else { String::new() };
    format!(
        "{} {}{losses}, chunks of {} B, objects of {} B{cold}{threads}: median of {} rounds",
        case.code, case.op, case.chunk_bytes, case.object_bytes, case.rounds
    )
}

/// Where a card's time went.
fn parts(parts: Parts) -> String {
    let Parts { staging_percent, copy_in_percent, compute_percent, copy_out_percent } = parts;
    let staging =
        if staging_percent > 0.0 { format!("staging {staging_percent:.0} %, ") } else { String::new() };
    format!(
        "{staging}copy in {copy_in_percent:.0} %, compute {compute_percent:.0} %, copy out {copy_out_percent:.0} %"
    )
}

/// Ours and peers, then the machine. One column of ratios for each peer.
fn table(case: &Case) -> Table {
    let mut table = Table::new(&["", "GB/s", "min", "max", "times as fast as"]);
    let numbers = |spread: Spread| [spread.median, spread.min, spread.max].map(|rate| format!("{rate:.1}"));
    for side in &case.sides {
        let [median, min, max] = numbers(side.gb_per_second);
        let ratios: Vec<String> =
            side.ratios.iter().map(|ratio| format!("{} {:.2}", ratio.peer, ratio.ratio)).collect();
        let allowed = side.allowed_gb_per_second.map(|allowed| {
            format!("{:.0} % of what copies allow", 100.0 * side.gb_per_second.median / allowed)
        });
        let notes: Vec<String> = side.parts.map(parts).into_iter().chain(allowed).chain(ratios).collect();
        table.row(vec![side.name.clone(), median, min, max, notes.join(", ")]);
    }
    for limit in &case.limits {
        let [median, min, max] = numbers(limit.gb_per_second);
        table.row(vec![limit.name.clone(), median, min, max, String::new()]);
    }
    table
}
