//! `cargo xtask bench map`: what a change of the map costs, from five nodes to ten thousand. No process, no socket: a coordinator with
//! what it writes and sends, nodes of which three have maps and the others only versions, and a network that is reckoned.

mod document;
mod page;
mod plot;
mod scene;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use document::Measured;
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

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("map", run(&Arguments::parse()))
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
