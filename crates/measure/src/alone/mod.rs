//! What Gestalt does over time on this machine: the pause that clients see when a node is lost; how long the cluster takes to be
//! as protected as before; growth and restarts under load; what share of the memory is of use.
//!
//! The machine may be shared, so nothing is judged: figures are printed. `peers` compares with other servers.

mod arguments;
mod faults;
mod hits;
mod recovery;
mod utilisation;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use arguments::{Arguments, Part};

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let parts =
        if arguments.parts.is_empty() { Part::value_variants().to_vec() } else { arguments.parts.clone() };
    for part in parts {
        let result = match part {
            Part::Utilisation => utilisation::measure(&arguments),
            Part::Hits => hits::measure(&arguments),
            Part::Pause => faults::pause(),
            Part::Access => recovery::first_access(&arguments),
            Part::Protection => recovery::protection(&arguments),
            Part::Growth => recovery::growth(&arguments),
            Part::Restart => recovery::rolling_restart(&arguments),
        };
        if let Err(reason) = result {
            eprintln!("{part:?}: {reason}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
