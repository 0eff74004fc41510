//! `cargo xtask bench native`: the native protocol and its clients in the manner of OHB (the micro-benchmarks of RDMA-Memcached), beside
//! memcached's protocol to the same cluster and memcached itself, as a page with tables, as JSON and as plots.
//!
//! The machine may be shared: all sides take turns within each round, medians and ratios of rounds count, nothing is judged.

mod arguments;
mod cells;
mod clients;
mod document;
mod matrix;
mod modes;
mod overlap;
mod page;
mod plot;
mod python;
mod runs;
mod scans;
mod ycsb;

use std::fs;
use std::process::ExitCode;

use clap::Parser;

use arguments::Part;
use document::Document;

pub use arguments::Arguments;

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("native", run(&Arguments::parse()))
}

/// Measures what `arguments` name. Parts that they do not name keep what the document already has.
///
/// # Errors
/// One line if something cannot be started, asked or written.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    fs::create_dir_all(&arguments.out).map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    let mut document = Document::open(&arguments.out)?;
    for part in arguments.parts() {
        match part {
            Part::Matrix => matrix::measure(arguments, &mut document)?,
            Part::Overlap => overlap::measure(arguments, &mut document)?,
            Part::Python => document.python = python::measure(arguments)?,
            Part::Modes => modes::measure(arguments, &mut document)?,
            Part::Clients => document.clients = clients::measure(arguments)?,
            Part::Scans => document.scans = scans::measure(arguments)?,
            Part::Ycsb => document.ycsb = ycsb::measure(arguments)?,
        }
        document.save(&arguments.out)?;
    }
    let mut files = plot::all(&document)?;
    files.push(("native.md", page::render(&document)));
    for (name, text) in files {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    println!("{}", arguments.out.join("native.md").display());
    Ok(())
}
