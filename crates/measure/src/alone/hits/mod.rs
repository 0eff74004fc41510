//! How many reads hit when memory is full: one node of Gestalt, memcached, and algorithms by libCacheSim.
//!
//! Gestalt has one node without parities, so that all of its memory is for items; `--memory` is everything that it holds. memcached's `-m` is
//! its slabs, and its table of hashes comes on top. The algorithms have as many bytes for keys and values alone, and neither headers
//! nor classes of sizes.

mod replay;
mod trace;

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use processes::local_cluster::Options;
use processes::others::python_with;
use processes::servers::Server;

use crate::alone::arguments::Arguments;
use trace::{KEY_BYTES, Request, TRACES, Trace};

/// The simulator of caches by the authors of S3-FIFO.
const LIBCACHESIM: &str = "libcachesim==0.3.5";
/// The footprint of a trace, in times of the memory.
const FOOTPRINT: u64 = 10;

/// Prints one table.
pub fn measure(arguments: &Arguments) -> Result<(), String> {
    let mib = arguments.cache_mib;
    println!(
        "\nReads that hit, {} requests, {mib} MiB, keys and values of {FOOTPRINT} times as much:\n\
         | requests | Gestalt | memcached | S3-FIFO | LRU | CLOCK, 1 bit |\n\
         | --- | --- | --- | --- | --- | --- |",
        arguments.requests
    );
    TRACES.iter().try_for_each(|trace| compare(trace, mib, arguments.requests))
}

fn compare(trace: &Trace, mib: u64, count: usize) -> Result<(), String> {
    let requests = trace.requests(FOOTPRINT * (mib << 20), count);
    let gestalt = gestalt(mib, &requests)?;
    let memcached = Server::memcached_with(mib)?;
    let memcached = replay::hits(memcached.addresses[0], &requests)?;
    let ratio = |hits: usize| hits as f64 / count as f64;
    print!("| {} | {:.4} | {:.4} ", trace.name, ratio(gestalt), ratio(memcached));
    simulated(mib, &requests)?.iter().for_each(|ratio| print!("| {ratio:.4} "));
    println!("|");
    Ok(())
}

fn gestalt(mib: u64, requests: &[Request]) -> Result<usize, String> {
    // One role has all of the memory, as memcached's slabs do.
    let flags = ["--workers", "1", "--groups", "1"].map(str::to_owned).to_vec();
    let (memory, profile) = (format!("{mib}MiB"), "none".to_owned());
    let server = Server::gestalt_with(&Options { nodes: 1, profile, memory, flags, ..Options::default() })?;
    replay::hits(server.addresses[0], requests)
}

/// Ratios in the order of the script.
fn simulated(mib: u64, requests: &[Request]) -> Result<Vec<f64>, String> {
    let python = python_with("libcachesim", &[LIBCACHESIM])?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/alone/hits/simulated.py");
    let file = write(requests).map_err(|error| format!("the trace cannot be written: {error}"))?;
    let output = Command::new(python).arg(script).arg(file.path()).arg((mib << 20).to_string()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let ratios: Vec<f64> = text.lines().filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect();
    if ratios.is_empty() {
        return Err(format!("libcachesim says nothing: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(ratios)
}

fn write(requests: &[Request]) -> std::io::Result<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new()?;
    let mut out = std::io::BufWriter::new(file.as_file());
    for request in requests {
        writeln!(out, "{} {}", request.key, KEY_BYTES + request.value_bytes)?;
    }
    out.flush()?;
    drop(out);
    Ok(file)
}
