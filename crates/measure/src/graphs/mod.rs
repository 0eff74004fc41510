//! `cargo xtask bench graphs`: coding graphs over a network in virtual time, scheme beside scheme, and what planning and combining cost
//! this processor. No process, no socket.

mod claims;
mod cost;
mod document;
mod encodes;
mod page;
mod plots;
mod scene;
mod ycsb;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use graph::{Execution, Scheme};

use crate::code;
use document::{Cell, Document, Encoded, Filled, Repaired, Ycsb};
use scene::{Scene, links};
use ycsb::Workload;

/// Codes of the figures of INEC, and local ones.
const CODES: [&str; 6] = ["rs(3+2)", "rs(6+3)", "rs(10+4)", "rs(12+4)", "lrc(6,2,2)", "lrc(12,2,2)"];
const MIB: u32 = 1 << 20;

/// Coding graphs over a simulated network, as a page.
#[derive(Parser, Debug)]
#[command(name = "graphs", after_help = "Example: graphs fills --nodes 10,50")]
struct Arguments {
    /// What to run; everything if nothing is named. What is not run is kept from the last time
    parts: Vec<Part>,
    /// Sizes of clusters in which a holder is filled, in nodes
    #[arg(long, value_delimiter = ',', default_values_t = [10, 20, 50, 100, 200])]
    nodes: Vec<u16>,
    /// Longest chunk, in MiB
    #[arg(long, default_value_t = 16)]
    longest_mib: u32,
    /// Where the page goes
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
    /// Only say what planning costs, and write nothing
    #[arg(long)]
    planning: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// One lost chunk of 1 MiB, beside a plain read
    Repairs,
    /// One lost chunk, by length and bandwidth
    Lengths,
    /// A new stripe, by length and bandwidth
    Stripes,
    /// A holder that is filled
    Fills,
    /// YCSB's workloads with degraded reads
    Ycsb,
    /// What planning and combining cost this processor
    Costs,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("graphs", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.planning {
        return cost::planning().map(|_| ());
    }
    let mut document = open(&arguments.out.join("graphs.json"))?;
    let runs = |part| arguments.parts.is_empty() || arguments.parts.contains(&part);
    if runs(Part::Repairs) {
        document.repaired = repaired()?;
    }
    if runs(Part::Lengths) {
        document.cells = cells(arguments.longest_mib * MIB)?;
    }
    if runs(Part::Stripes) {
        document.encoded = encoded(arguments.longest_mib * MIB)?;
    }
    if runs(Part::Fills) {
        document.filled = filled(&arguments.nodes)?;
    }
    if runs(Part::Ycsb) {
        document.ycsb = ycsb()?;
    }
    if runs(Part::Costs) {
        (document.planning, document.combining) = (cost::planning()?, cost::combining()?);
    }
    let write = |name: &str, text: String| {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("graphs.json", serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?)?;
    let plots = plots::all(&document);
    plots.iter().try_for_each(|named| write(&named.name, named.plot.svg()?))?;
    write("graphs.md", page::render(&document, &plots))
}

/// What was run the last time.
fn open(path: &Path) -> Result<Document, String> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Document::default()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

const ALL: [Scheme; 6] = [Scheme::Star, Scheme::Lrc, Scheme::Ppr, Scheme::Chain, Scheme::Tri, Scheme::Auto];

/// One chunk of 1 MiB over links of 1 Gbit/s, beside a plain read of one.
fn repaired() -> Result<Vec<Repaired>, String> {
    let mut all = Vec::new();
    for name in CODES {
        let code = code(name)?;
        let read_us = Scene::new(&code, MIB, links(1.0))?.read(Scheme::Star, &[], Execution::Coherent)?.us;
        for scheme in ALL {
            let time = |execution| Scene::new(&code, MIB, links(1.0))?.read(scheme, &[1], execution);
            let (coherent, incoherent) = (time(Execution::Coherent)?, time(Execution::Incoherent)?);
            println!("{name} {scheme}: {:.2} of a read", coherent.us / read_us);
            all.push(Repaired {
                code: name.to_owned(),
                scheme: scheme.to_string(),
                read_us,
                us: coherent.us,
                incoherent_us: incoherent.us,
                predicted_us: coherent.predicted_us,
                moved_bytes: coherent.moved_bytes,
            });
        }
    }
    Ok(all)
}

/// Lengths of chunks, from 1 KiB on, each four times the one before, and bandwidths.
fn lengths(longest: u32) -> impl Iterator<Item = (u32, f64)> {
    let lens = (0..15).map(|step| 1024u32 << step).filter(move |len| *len <= longest).step_by(2);
    lens.flat_map(|len| [1.0, 10.0, 100.0].map(|gbit| (len, gbit)))
}

/// One lost chunk, by length and bandwidth.
fn cells(longest: u32) -> Result<Vec<Cell>, String> {
    let mut all = Vec::new();
    for (len, gbit) in lengths(longest) {
        for name in CODES {
            let code = code(name)?;
            for scheme in ALL {
                let time = |execution| Scene::new(&code, len, links(gbit))?.read(scheme, &[1], execution);
                let (coherent, incoherent) = (time(Execution::Coherent)?, time(Execution::Incoherent)?);
                all.push(Cell {
                    code: name.to_owned(),
                    scheme: scheme.to_string(),
                    len,
                    gbit,
                    us: coherent.us,
                    incoherent_us: incoherent.us,
                    predicted_us: coherent.predicted_us,
                    slice_len: coherent.slice_len,
                    window: coherent.window,
                });
            }
        }
        println!("{len} bytes at {gbit} Gbit/s");
    }
    Ok(all)
}

/// A stripe, by length and bandwidth.
fn encoded(longest: u32) -> Result<Vec<Encoded>, String> {
    let mut all = Vec::new();
    for (len, gbit) in lengths(longest) {
        for name in CODES {
            let code = code(name)?;
            for scheme in [Scheme::Star, Scheme::Tri, Scheme::Chain, Scheme::Auto] {
                let time = |execution| Scene::new(&code, len, links(gbit))?.encode(scheme, execution);
                let (coherent, incoherent) = (time(Execution::Coherent)?, time(Execution::Incoherent)?);
                let value = f64::from(len) * code.k() as f64;
                all.push(Encoded {
                    code: name.to_owned(),
                    scheme: scheme.to_string(),
                    len,
                    gbit,
                    us: coherent.us,
                    incoherent_us: incoherent.us,
                    predicted_us: coherent.predicted_us,
                    uplink: coherent.writer_bytes as f64 / value,
                });
            }
        }
        println!("stripes of chunks of {len} bytes at {gbit} Gbit/s");
    }
    Ok(all)
}

/// A holder that is filled with chunks of many groups, eight at a time.
fn filled(nodes: &[u16]) -> Result<Vec<Filled>, String> {
    let code = code("rs(6+3)")?;
    let mut all = Vec::new();
    for (nodes, gbit) in nodes.iter().flat_map(|nodes| [1.0, 10.0].map(|gbit| (*nodes, gbit))) {
        for scheme in [Scheme::Star, Scheme::Ppr, Scheme::Chain, Scheme::Tri, Scheme::Auto] {
            let mib_per_s = scene::fill(&code, nodes, gbit, scheme)?;
            println!("{nodes} nodes, {gbit} Gbit/s, {scheme}: {mib_per_s:.1} MiB/s");
            all.push(Filled { nodes, gbit, scheme: scheme.to_string(), mib_per_s });
        }
    }
    Ok(all)
}

/// The figures of INEC in which YCSB runs.
fn workloads() -> Vec<Workload> {
    let one = |figure, code, scheme, name, kib: u32| Workload {
        figure,
        code,
        scheme,
        name,
        reads_percent: reads_percent(name),
        value_len: kib << 10,
        lost: 1,
        always: false,
    };
    let mut all = vec![
        one("9", "rs(3+2)", Scheme::Star, 'A', 4),
        one("10", "lrc(12,2,2)", Scheme::Lrc, 'A', 32),
        one("11", "rs(12+4)", Scheme::Ppr, 'C', 64),
        one("12", "rs(6+3)", Scheme::Chain, 'B', 16),
        Workload { lost: 2, ..one("13", "rs(3+2)", Scheme::Tri, 'A', 8) },
    ];
    let schemes = [
        ("rs(6+3)", Scheme::Star),
        ("lrc(6,2,2)", Scheme::Lrc),
        ("rs(6+3)", Scheme::Ppr),
        ("rs(6+3)", Scheme::Chain),
        ("rs(6+3)", Scheme::Tri),
        ("rs(6+3)", Scheme::Auto),
    ];
    for (name, (code, scheme)) in ['A', 'B', 'C'].iter().flat_map(|name| schemes.map(|one| (*name, one))) {
        all.push(Workload { always: true, ..one("14", code, scheme, name, 8) });
    }
    all
}

fn reads_percent(workload: char) -> u32 {
    match workload {
        'A' => 50,
        'B' => 95,
        _ => 100,
    }
}

fn ycsb() -> Result<Vec<Ycsb>, String> {
    let mut all = Vec::new();
    for workload in workloads() {
        let run = |execution| ycsb::run(workload, execution);
        let (coherent, incoherent) = (run(Execution::Coherent)?, run(Execution::Incoherent)?);
        let Workload { figure, code, scheme, name, value_len, lost, .. } = workload;
        println!(
            "figure {figure}, {code} {scheme}, workload {name}: {:.0} a second",
            coherent.operations_per_s
        );
        let (figure, code, scheme) = (figure.to_owned(), code.to_owned(), scheme.to_string());
        all.push(Ycsb { figure, code, scheme, workload: name, value_len, lost, coherent, incoherent });
    }
    Ok(all)
}
