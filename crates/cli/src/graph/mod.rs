//! `gestalt graph`: the graphs by which chunks are encoded, read and repaired, and what each would cost; what a cluster knows of its links.

mod args;
mod explain;
mod picture;
mod probe;
mod show;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Coding graphs: what would be done where, what each scheme would cost, and how fast a cluster's links are
#[derive(Args, Clone, Debug)]
pub struct GraphArgs {
    #[command(subcommand)]
    command: GraphCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum GraphCommand {
    Plan(show::PlanArgs),
    Explain(explain::ExplainArgs),
    Probe(probe::ProbeArgs),
}

/// Runs the command.
///
/// # Errors
/// `Usage` with one line; `Unreachable` where a cluster is asked and nobody is there.
pub async fn run(args: &GraphArgs) -> Result<(), Exit> {
    match &args.command {
        GraphCommand::Plan(args) => show::run(args),
        GraphCommand::Explain(args) => explain::run(args),
        GraphCommand::Probe(args) => probe::run(args).await,
    }
}
