//! `cargo xtask bench peers`: Gestalt beside stock memcached and valkey on this machine, as a page with tables, as JSON and as plots.
//!
//! The machine may be shared: all sides take turns within each round, medians and ratios of rounds count, nothing is judged.

mod arguments;
mod bars;
mod cells;
mod crosscheck;
mod document;
mod failure;
mod lines;
mod matrix;
mod page;
mod side;

use std::fs;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Part};
use document::Document;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("peers", run(&Arguments::parse()))
}

/// Parts that are not asked for keep what the document already has, so a page can be made piece by piece.
fn run(arguments: &Arguments) -> Result<(), String> {
    fs::create_dir_all(&arguments.out).map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    let mut document = Document::open(&arguments.out)?;
    for part in arguments.parts() {
        match part {
            Part::Matrix => matrix::measure(arguments, &mut document)?,
            Part::Ycsb => crosscheck::measure(arguments, &mut document)?,
            Part::Failure => failure::measure(arguments, &mut document)?,
        }
        // After each part: the next one may fail.
        document.save(&arguments.out)?;
    }
    for (name, svg) in [bars::all(&document)?, lines::all(&document)?].concat() {
        let path = arguments.out.join(name);
        fs::write(&path, svg).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let path = arguments.out.join("peers.md");
    fs::write(&path, page::render(&document)).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}
