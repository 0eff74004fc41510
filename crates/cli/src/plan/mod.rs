//! `gestalt plan`: what a cluster that is not there yet will need.

mod model;
mod size;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// What a cluster that is not there yet will need; asks nobody.
#[derive(Args, Clone, Debug)]
pub struct PlanArgs {
    #[command(subcommand)]
    command: PlanCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum PlanCommand {
    Size(size::SizeArgs),
}

/// Runs the command.
///
/// # Errors
/// `Usage` with one line.
pub fn run(args: &PlanArgs) -> Result<(), Exit> {
    match &args.command {
        PlanCommand::Size(args) => size::run(args),
    }
}
