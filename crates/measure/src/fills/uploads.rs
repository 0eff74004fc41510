//! `cargo xtask bench fills --uploads`: long values that are written over shaped links, whose parities their writer sends or others make.

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use codec::Code;

use super::machines::{Cluster, Plan};
use super::{Arguments, KIB, MIB, middle};
use crate::code;

/// As `--encode-by` says.
const WAYS: [&str; 3] = ["node", "tri", "auto"];
/// Values that one run writes at 100 Mbit/s; twice as many at ten times that.
const VALUES: u32 = 24;

/// One way, measured.
struct Written {
    way: &'static str,
    /// From the first byte to the last answer: median, least and most.
    seconds: [f64; 3],
    /// Bytes that the writer has sent other nodes, and that all have sent each other, for each byte of the values.
    by_writer: f64,
    sent: f64,
    /// Processor time of all nodes, in milliseconds for each MiB.
    cpu: f64,
}

/// What one run has taken.
struct Run {
    seconds: f64,
    by_writer: f64,
    sent: f64,
    cpu: f64,
}

/// All codes and bandwidths, as a page.
pub(super) fn run(arguments: &Arguments) -> Result<(), String> {
    let mut page = PREFACE.to_owned();
    for name in &arguments.codes {
        let code = code(name)?;
        for (mbit, chunk) in
            arguments.mbit.iter().flat_map(|mbit| arguments.chunk.iter().map(|chunk| (*mbit, *chunk)))
        {
            for written in measure(arguments, name, &code, mbit, chunk)? {
                let line = line(name, mbit, chunk, code.k(), arguments.runs, &written);
                println!("{line}");
                let _ = writeln!(page, "{line}");
            }
        }
    }
    let path = arguments.out.join("uploads.md");
    fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))
}

const PREFACE: &str = "# Long values that are written over shaped links\n\n\
    Real processes, one worker each, in network namespaces of one machine of two cores; the link of each node is shaped in both directions\n\
    (`tc tbf`), that of the client is not. Values of one stripe each are written one after the other over memcached's text protocol to a node that keeps none of\n\
    their chunks, 24 at 100 Mbit/s and 48 at ten times that; `--encode-by` says who makes their parities ([graphs.md](../graphs.md#uploads-that-send-k-chunks)), `auto` begins\n\
    with a node that has never written anything. `cargo xtask bench fills --uploads` runs it; medians, ways take turns.\n\n\
    *By the writer*, *sent*: bytes that the node with the client, and all nodes, have sent other nodes for each byte of the values. *CPU*: processor time of\n\
    all nodes, milliseconds for each MiB of the values.\n\n\
    | code | chunk, KiB | Mbit/s | way | seconds (least to most) | MiB/s | by the writer | sent | CPU | runs |\n\
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

fn line(code: &str, mbit: u32, chunk: u32, k: usize, runs: usize, written: &Written) -> String {
    let Written { way, seconds: [median, least, most], by_writer, sent, cpu } = written;
    let mib = f64::from(values(mbit)) * k as f64 * f64::from(chunk) / 1024.0;
    format!(
        "| {code} | {chunk} | {mbit} | {way} | {median:.2} ({least:.2} to {most:.2}) | {:.1} | {by_writer:.2} | {sent:.2} | {cpu:.1} | {runs} |",
        mib / median
    )
}

fn values(mbit: u32) -> u32 {
    VALUES * if mbit >= 1000 { 2 } else { 1 }
}

fn measure(
    arguments: &Arguments,
    name: &str,
    code: &Code,
    mbit: u32,
    chunk: u32,
) -> Result<Vec<Written>, String> {
    let mut runs: Vec<Vec<Run>> = WAYS.map(|_| Vec::new()).into();
    for _ in 0..arguments.runs.max(1) {
        for (way, runs) in WAYS.iter().zip(&mut runs) {
            let flags = vec![format!("--encode-by={way}")];
            let plan = Plan { flags, ..Plan::new(name, code.n() as u16 + 1, mbit, chunk) };
            runs.push(write(&plan, code.k() * chunk as usize * KIB)?);
        }
    }
    let written = |(way, runs): (&'static str, Vec<Run>)| Written {
        way,
        seconds: middle(&runs, |run| run.seconds),
        by_writer: middle(&runs, |run| run.by_writer)[0],
        sent: middle(&runs, |run| run.sent)[0],
        cpu: middle(&runs, |run| run.cpu)[0],
    };
    Ok(WAYS.into_iter().zip(runs).map(written).collect())
}

/// Writes values of this length to a cluster that has just started.
fn write(plan: &Plan, len: usize) -> Result<Run, String> {
    const SENT: &str = "gestalt_peer_sent_bytes_total";
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let cluster = Cluster::start(plan, dir.path())?;
    // By another node, so that the writer has never written anything.
    cluster.store(1, len)?;
    let has_none = |node: &u16| *node != 0 && cluster.metric_of(*node, "gestalt_object_chunks") == Some(0);
    let writer = (0..plan.nodes).find(has_none).unwrap_or(1);
    cluster.shape_nodes()?;
    let by_writer = || cluster.metric_of(writer, SENT).unwrap_or(0);
    let (writer_before, sent_before, cpu_before) = (by_writer(), cluster.metric(SENT), cluster.cpu_seconds());
    let start = Instant::now();
    let count = values(plan.mbit);
    cluster.store_at(writer, count, len)?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes = f64::from(count) * len as f64;
    Ok(Run {
        seconds,
        by_writer: (by_writer() - writer_before) as f64 / bytes,
        sent: (cluster.metric(SENT) - sent_before) as f64 / bytes,
        cpu: (cluster.cpu_seconds() - cpu_before) * 1e3 / (bytes / MIB as f64),
    })
}
