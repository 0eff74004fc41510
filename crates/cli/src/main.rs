//! `gestalt`, the one binary.
#![allow(clippy::disallowed_methods)]

mod admin;
mod advertise;
mod bench;
mod clients;
mod codec;
mod coding;
#[cfg(test)]
mod command_line;
mod config;
mod coordinator;
mod endpoint;
mod etcd;
mod exit;
mod graph;
mod heap;
mod kernel;
mod kv;
mod listeners;
mod local;
mod log;
mod machine;
mod output;
mod plan;
mod process;
mod progress;
mod serve;
mod settings;
mod status;
mod units;
mod value_sizes;
mod words;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::exit::Exit;

const EXAMPLE: &str = "\
Example:
  gestalt local &                        five nodes here, memcached on ports 11211-11215
  gestalt kv set greeting hello && gestalt kv get greeting
  gestalt status

Exit codes: 0 ok, 1 wrong usage, 2 unreachable, 3 degraded, 4 data at risk or lost.";

/// An erasure-coded, distributed in-memory key-value store that memcached clients can talk to.
#[derive(Parser)]
#[command(name = "gestalt", version, after_help = EXAMPLE, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Local(local::LocalArgs),
    Serve(Box<serve::ServeArgs>),
    Coordinator(coordinator::CoordinatorArgs),
    Status(status::StatusArgs),
    Node(admin::node::NodeArgs),
    Layout(admin::layout::LayoutArgs),
    Repair(admin::repair::RepairArgs),
    Scrub(admin::scrub::ScrubArgs),
    Lost(admin::lost::LostArgs),
    Pool(admin::pool::PoolArgs),
    Namespace(admin::namespace::NamespaceArgs),
    Cluster(admin::whole::ClusterArgs),
    Plan(plan::PlanArgs),
    Kv(kv::KvArgs),
    Bench(bench::BenchArgs),
    Codec(codec::CodecArgs),
    Graph(Box<graph::GraphArgs>),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            output::complain(&format!("gestalt: {exit}"));
            exit.code()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Exit> {
    kernel::choose()?;
    match command {
        Command::Local(args) => on_runtime(local::run(&args)),
        Command::Serve(args) => on_runtime(serve::run(&args)),
        Command::Coordinator(args) => on_runtime(coordinator::run(&args)),
        Command::Status(args) => on_runtime(status::run(&args)),
        Command::Node(args) => on_runtime(admin::node::run(&args)),
        Command::Scrub(args) => on_runtime(admin::scrub::run(&args)),
        Command::Lost(args) => on_runtime(admin::lost::run(&args)),
        Command::Pool(args) => on_runtime(admin::pool::run(&args)),
        Command::Namespace(args) => on_runtime(admin::namespace::run(&args)),
        Command::Cluster(args) => on_runtime(admin::whole::run(&args)),
        Command::Layout(args) => on_runtime(admin::layout::run(&args)),
        Command::Repair(args) => on_runtime(admin::repair::run(&args)),
        Command::Plan(args) => plan::run(&args),
        Command::Kv(args) => on_runtime(kv::run(&args)),
        Command::Bench(args) => bench::run(&args),
        Command::Codec(args) => codec::run(&args),
        Command::Graph(args) => on_runtime(graph::run(&args)),
    }
}

/// Runs `work` on this thread.
fn on_runtime(work: impl Future<Output = Result<(), Exit>>) -> Result<(), Exit> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Exit::usage)?.block_on(work)
}

/// Help and version are no errors. A bad value is one line; any other wrong usage is shown with the usage.
fn report_usage(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::ValueValidation {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        output::complain(&format!("gestalt: {}", line.strip_prefix("error: ").unwrap_or(line)));
    } else {
        let _ = error.print();
    }
    if error.use_stderr() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}
