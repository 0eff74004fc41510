//! `gestalt graph`: the graphs by which chunks are encoded, read and repaired, and what each would cost. Asks nobody.

mod args;
mod explain;
mod picture;
mod show;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Coding graphs: what would be done where, and what each scheme would cost; asks nobody
#[derive(Args, Clone, Debug)]
pub struct GraphArgs {
    #[command(subcommand)]
    command: GraphCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum GraphCommand {
    Plan(show::PlanArgs),
    Explain(explain::ExplainArgs),
}

/// Runs the command.
///
/// # Errors
/// `Usage` with one line.
pub fn run(args: &GraphArgs) -> Result<(), Exit> {
    match &args.command {
        GraphCommand::Plan(args) => show::run(args),
        GraphCommand::Explain(args) => explain::run(args),
    }
}
