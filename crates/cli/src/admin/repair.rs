//! `gestalt repair`: how lost members are rebuilt.

use clap::{Args, Subcommand};
use cluster::{AdminCommand, NodeId, RepairSettings};
use serde::Serialize;

use super::{Expect, Target};
use crate::exit::Exit;
use crate::output::{self, Format, Table};
use crate::status::nodes::{self, RepairTotal};
use crate::status::render;
use crate::units::Size;

const EXAMPLE: &str = "\
Examples:
  gestalt repair status
  gestalt repair pause                               what requests wait for is repaired all the same
  gestalt repair resume
  gestalt repair limit --rate 200MiB --memory 64MiB  of each node, a second
  gestalt repair limit --rate none";

/// See, pause and limit the rebuilding of what was lost.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct RepairArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// What is being rebuilt, how fast, and for how long still
    #[command(after_help = "Example: gestalt repair status -o json")]
    Status,
    /// Rebuild nothing in the background; a lost member stays lost, and the protection stays lower
    #[command(after_help = "Example: gestalt repair pause")]
    Pause {
        #[command(flatten)]
        expect: Expect,
    },
    /// Go on
    #[command(after_help = "Example: gestalt repair resume")]
    Resume {
        #[command(flatten)]
        expect: Expect,
    },
    /// Limit what repair takes of each node; what is not given stays as it is
    #[command(after_help = "Example: gestalt repair limit --rate 200MiB --memory 64MiB")]
    Limit {
        /// Bytes a second of each node, or none
        #[arg(long, value_parser = limit, required_unless_present = "memory")]
        rate: Option<Size>,
        /// Memory of each node that open repairs take, at least 1MiB, or none
        #[arg(long, value_parser = limit)]
        memory: Option<Size>,
        #[command(flatten)]
        expect: Expect,
    },
}

/// A size, or `none`, which is 0.
fn limit(text: &str) -> Result<Size, String> {
    match text {
        "none" => Ok(Size(0)),
        text => text.parse().and_then(|size| match size {
            Size(0) => {
                Err("0 would be no repair at all: write none for no limit, or use `gestalt repair pause`"
                    .to_owned())
            }
            size => Ok(size),
        }),
    }
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &RepairArgs) -> Result<(), Exit> {
    let target = &args.target;
    let (expect, command) = match &args.action {
        Action::Status => return status(target).await,
        Action::Pause { expect } => (expect, AdminCommand::PauseRepair),
        Action::Resume { expect } => (expect, AdminCommand::ResumeRepair),
        Action::Limit { rate, memory, expect } => {
            let (bytes_per_second, memory_bytes) = (rate.map(|size| size.0), memory.map(|size| size.0));
            (expect, AdminCommand::LimitRepair { bytes_per_second, memory_bytes })
        }
    };
    let layout = target.change(*expect, command).await?;
    match target.output {
        Format::Table => output::print(&settings(&layout.repair)),
        Format::Json => {
            output::print_json(&Settings { layout_version: layout.version.0, settings: layout.repair })
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Settings {
    layout_version: u64,
    #[serde(flatten)]
    settings: RepairSettings,
}

#[derive(Serialize)]
struct Status {
    #[serde(flatten)]
    settings: Settings,
    /// Seconds since anybody who answers has heard a coordinator; none = never. The settings may be so old.
    coordinator_age_seconds: Option<f64>,
    /// Nodes that do not answer: what they rebuild is not counted.
    silent_nodes: Vec<NodeId>,
    progress: RepairTotal,
    nodes: Vec<NodeRepair>,
}

/// One node's share.
#[derive(Serialize)]
struct NodeRepair {
    node: NodeId,
    #[serde(flatten)]
    progress: RepairTotal,
}

async fn status(target: &Target) -> Result<(), Exit> {
    let survey = target.survey().await?;
    let (map, reports) = (&survey.map, &survey.nodes);
    let node = |report: &nodes::NodeReport| {
        report.repair.map(|repair| NodeRepair { node: report.node, progress: repair.into() })
    };
    let status = Status {
        coordinator_age_seconds: survey.coordinator_age_seconds(),
        silent_nodes: survey.assessment.silent_nodes.clone(),
        settings: Settings { layout_version: map.layout.version.0, settings: map.layout.repair },
        progress: nodes::repair_of_all(reports),
        nodes: reports.iter().filter_map(node).collect(),
    };
    match target.output {
        Format::Json => output::print_json(&status),
        Format::Table => output::print(&text(&status)),
    }
    Ok(())
}

fn text(status: &Status) -> String {
    let mut table = Table::new(&["node", "done", "left", "a second"]);
    for NodeRepair { node, progress } in status.nodes.iter().filter(|node| node.progress.left_bytes > 0) {
        let sizes = [progress.done_bytes, progress.left_bytes, progress.bytes_per_second];
        table.row([node.0.to_string()].into_iter().chain(sizes.map(|size| Size(size).to_string())).collect());
    }
    let mut text = settings(&status.settings.settings);
    if status.progress.left_bytes == 0 {
        text.push_str("nothing is being rebuilt\n");
    } else {
        text.push_str(&format!("{}\n{}", render::progress(&status.progress), table.render()));
    }
    text
}

fn settings(settings: &RepairSettings) -> String {
    let limit = |size| if size == 0 { "none".to_owned() } else { Size(size).to_string() };
    format!(
        "repair is {}, limits of each node: {} a second, {} of memory\n",
        if settings.paused { "paused" } else { "on" },
        limit(settings.bytes_per_second),
        limit(settings.memory_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_written_none() {
        assert_eq!(limit("none"), Ok(Size(0)));
        assert_eq!(limit("2MiB"), Ok(Size(2 << 20)));
        assert!(limit("0").unwrap_err().contains("repair pause"));
        let text = settings(&RepairSettings { paused: true, bytes_per_second: 1 << 20, memory_bytes: 0 });
        assert_eq!(text, "repair is paused, limits of each node: 1MiB a second, none of memory\n");
    }
}
