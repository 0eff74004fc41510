//! Hurts a real cluster at random and checks that nobody notices more than was promised: `chaos --seed 7 --minutes 5`.
#![allow(clippy::disallowed_methods)] // A tool for people: it measures with a real clock.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chaos::{CapBy, Coordinator, Fault, Length, Options, Schedule, run};
use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum};
use processes::namespaces::unavailable;
use processes::others::ensure_program;

const EXAMPLES: &str = "\
Examples (as root, with iproute2 and nftables; build the binary before: cargo build --release -p cli):
  chaos --minutes 5                      a fresh seed, which is printed
  chaos --seed 7 --actions 40            the first forty actions of seed 7
  chaos --seed 7 --actions 40 --dry-run  what they are
  chaos --coordinator etcd --minutes 5   the leader, and a real etcd, are hurt too
  chaos --coordinator etcd --etcd-members 3 --minutes 5   and one of its members at a time
  chaos --cap 256MiB --minutes 5         no process gets more memory; now and then one gets less
  chaos --long 64MiB --memory 512MiB --minutes 5   values of up to 64 MiB, in chunks, in namespaces of their own
  chaos --beyond --minutes 2             more losses than the code can make up for: errors are fine, wrong answers are not

Exit codes: 0 nothing is wrong, 1 something is, 2 chaos cannot run here.";

/// Hurts a real cluster, each process in a network namespace of its own, while clients write down what they see.
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Arguments {
    /// Draws the schedule and the load; a fresh one if not given
    #[arg(long)]
    seed: Option<u64>,
    /// Hurt for so many minutes
    #[arg(long, conflicts_with = "actions")]
    minutes: Option<f64>,
    /// Hurt so many times [default: 20]
    #[arg(long)]
    actions: Option<usize>,
    /// Who coordinates
    #[arg(long, value_enum, default_value_t)]
    coordinator: Coordinator,
    /// Members of etcd; of several, one at a time is hurt, too
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    etcd_members: u16,
    /// Clients, each with one connection
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=256))]
    clients: u64,
    /// Nodes; with more than the profile needs, there are spares
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=200))]
    nodes: u16,
    /// Protection
    #[arg(long, default_value = "rs(3+2)")]
    profile: String,
    /// Memory of each node
    #[arg(long, default_value = "128MiB")]
    memory: String,
    /// Silence after which a node counts as lost
    #[arg(long, default_value = "1000ms", value_parser = milliseconds)]
    lease: Duration,
    /// Keys in use at a time
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Pause between a client's operations
    #[arg(long, default_value = "4ms", value_parser = milliseconds)]
    pause: Duration,
    /// Values of 4 KiB that are written before the first fault and read after the last one
    #[arg(long, default_value_t = 10_000)]
    cold: usize,
    /// Values of one byte up to so many, too, in namespaces that cut them into chunks; give more --memory
    #[arg(long, value_parser = mebibytes)]
    long: Option<u64>,
    /// Take away more than the code can make up for, too
    #[arg(long)]
    beyond: bool,
    /// Do not allow for a hurt node's costing its groups more than its own members
    #[arg(long)]
    bold: bool,
    /// Fill the nodes' memory up from time to time, too
    #[arg(long)]
    fill: bool,
    /// Memory that the system gives each node's process at most, more than --memory; now and then one gets less
    #[arg(long, value_parser = mebibytes)]
    cap: Option<u64>,
    /// By what means
    #[arg(long, value_enum, default_value_t, requires = "cap")]
    cap_by: CapBy,
    /// Only this kind of action, as the report calls it; may be given several times
    #[arg(long, value_parser = PossibleValuesParser::new(Fault::KINDS))]
    only: Vec<String>,
    /// Where logs and the history go; they are kept
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print the actions, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Text,
    Json,
}

/// `250ms` or `1s`.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 1000),
        (None, None) => return Err("write a number and ms or s".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "write a whole number and ms or s".to_owned())?;
    Ok(Duration::from_millis(number * factor))
}

/// `256MiB` or `1GiB`.
fn mebibytes(text: &str) -> Result<u64, String> {
    let (number, shift) = match (text.strip_suffix("MiB"), text.strip_suffix("GiB")) {
        (Some(number), _) => (number, 20),
        (None, Some(number)) => (number, 30),
        (None, None) => return Err("write a number and MiB or GiB".to_owned()),
    };
    let number: u32 = number.parse().map_err(|_| "write a whole number and MiB or GiB".to_owned())?;
    Ok(u64::from(number) << shift)
}

impl Arguments {
    fn options(&self) -> Options {
        let length = match self.minutes {
            Some(minutes) => Length::Time(Duration::from_secs_f64(minutes.max(0.0) * 60.0)),
            None => Length::Actions(self.actions.unwrap_or(20)),
        };
        Options {
            seed: self.seed.unwrap_or_else(fresh_seed),
            length,
            coordinator: self.coordinator,
            etcd_members: self.etcd_members,
            nodes: self.nodes,
            profile: self.profile.clone(),
            memory: self.memory.clone(),
            lease: self.lease,
            clients: self.clients,
            keys: self.keys,
            pause: self.pause,
            cold: self.cold,
            long: self.long,
            beyond: self.beyond,
            bold: self.bold,
            fill: self.fill,
            cap: self.cap,
            cap_by: self.cap_by,
            only: self.only.clone(),
            dir: self.dir.clone(),
            verbose: true,
        }
    }
}

fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64 % 1_000_000)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = arguments.options();
    if arguments.dry_run {
        return print_schedule(&options);
    }
    if let Some(why) = unavailable() {
        eprintln!("chaos cannot run here: {why}");
        return ExitCode::from(2);
    }
    if options.coordinator == Coordinator::Etcd
        && let Err(why) = ensure_program("etcd", "etcd-server")
    {
        eprintln!("chaos cannot run here: {why}");
        return ExitCode::from(2);
    }
    eprintln!("seed {}", options.seed);
    match run(&options) {
        Ok(report) => {
            match arguments.output {
                Format::Text => println!("{report}"),
                Format::Json => println!("{}", serde_json::to_string_pretty(&report).unwrap_or_default()),
            }
            if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("chaos cannot run: {why}");
            ExitCode::from(2)
        }
    }
}

fn print_schedule(options: &Options) -> ExitCode {
    let losses = match options.profile.parse::<types::Profile>() {
        Ok(profile) => u16::try_from(profile.tolerance()).unwrap_or(u16::MAX),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let count = match options.length {
        Length::Actions(count) => count,
        Length::Time(_) => {
            eprintln!("how many actions fit into --minutes depends on the cluster: give --actions");
            return ExitCode::from(2);
        }
    };
    match Schedule::new(options, losses) {
        Ok(schedule) => {
            println!("seed {}", options.seed);
            schedule.take(count).for_each(|action| println!("{action}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
