//! `cargo xtask bench map`: what a change of the map costs, from five nodes to ten thousand. No process, no socket: a coordinator with
//! what it writes and sends, nodes of which three have maps and the others only versions, and a network that is reckoned.

mod page;
mod plot;
mod scene;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::{Deserialize, Serialize};

use scene::Scene;

/// What changes of the map cost, as a page with a plot.
#[derive(Parser, Debug)]
#[command(name = "map", after_help = "Example: map --nodes 5,100,1000")]
struct Arguments {
    /// Sizes of clusters, in nodes
    #[arg(long, value_delimiter = ',', default_values_t = [5, 10, 30, 100, 300, 1_000, 3_000, 10_000])]
    nodes: Vec<u16>,
    /// Groups for each node
    #[arg(long, default_value_t = 8)]
    groups_per_node: u32,
    /// Groups of the cluster with the largest map, on a hundred nodes; 0 = none
    #[arg(long, default_value_t = 1_000_000)]
    most_groups: u32,
    /// Where the page and its plot go
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
}

/// What was measured of one cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measured {
    nodes: u16,
    groups: u32,
    /// Bytes of the whole map, as a node is sent it.
    map_bytes: u64,
    changes: Vec<Change>,
}

/// What one change cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Change {
    /// What happened.
    what: String,
    /// Versions of the map that it took.
    versions: u64,
    /// Processor time of the coordinator, with encoding each message.
    cpu_us: f64,
    /// Bytes that it sent.
    sent_bytes: u64,
    /// Bytes that it wrote down, keys left out.
    recorded_bytes: u64,
    /// From the event to the last node that heard all of it: processor time, bytes through one line, and round trips.
    last_us: f64,
    /// Processor time of a node that makes the changes to its map, in the mean of three.
    node_us: f64,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("map: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let sizes = arguments.nodes.iter().map(|nodes| (*nodes, u32::from(*nodes) * arguments.groups_per_node));
    let largest = (arguments.most_groups > 0).then_some((100, arguments.most_groups));
    let mut all = Vec::new();
    for (nodes, groups) in sizes.chain(largest) {
        let measured = Scene::form(nodes, groups)?.measure()?;
        measured.changes.iter().for_each(|change| println!("{nodes} nodes, {groups} groups: {change:?}"));
        all.push(measured);
    }
    let write = |name: &str, text: String| {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    let curve: Vec<Measured> =
        all.iter().filter(|one| one.groups != arguments.most_groups).cloned().collect();
    write("map.svg", plot::draw(&curve)?)?;
    write("map.json", serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?)?;
    write("map.md", page::render(&all))
}
