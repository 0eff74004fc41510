//! `gestalt codec`: which kernels and codes there are, that they agree, and how fast they are.

mod args;
mod bench;
mod list;
mod rows;
mod trace;
mod verify;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// The erasure codec: kernels, matrices and codes; whether they agree; how fast they are beside other libraries
#[derive(Args)]
pub struct CodecArgs {
    #[command(subcommand)]
    command: CodecCommand,
}

#[derive(Subcommand)]
enum CodecCommand {
    List(list::ListArgs),
    Verify(verify::VerifyArgs),
    Bench(Box<bench::BenchArgs>),
    Rows(rows::RowsArgs),
}

/// Runs the command.
///
/// # Errors
/// `Usage` with one line.
pub fn run(args: &CodecArgs) -> Result<(), Exit> {
    match &args.command {
        CodecCommand::List(args) => list::run(args),
        CodecCommand::Verify(args) => verify::run(args),
        CodecCommand::Bench(args) => bench::run(args),
        CodecCommand::Rows(args) => rows::run(args),
    }
}
