//! `gestalt repair`: how lost members are rebuilt.

use clap::{Args, Subcommand};
use serde::Serialize;
use types::{AdminCommand, ClusterMap, HostId, Layout, NodeId, RepairSettings};

use super::{Expect, Target};
use crate::exit::Exit;
use crate::output::{self, Format, Table};
use crate::status::nodes::{self, RepairTotal};
use crate::status::render;
use crate::units::Size;
use crate::words::{self, count, one_or};

const EXAMPLE: &str = "\
Examples:
  gestalt repair status
  gestalt repair pause                                what requests wait for is repaired all the same
  gestalt repair resume
  gestalt repair limit                                what the limits are
  gestalt repair limit --rate 200MiB --memory 64MiB   of each node: 200 MiB a second, and 64 MiB of memory
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
    /// Show or change the limits of what repair takes of each node; what is not given stays as it is
    #[command(after_help = "Example: gestalt repair limit --rate 200MiB --memory 64MiB")]
    Limit {
        /// Bytes a second of each node, for example 200MiB, or none
        #[arg(long, value_parser = limit)]
        rate: Option<Size>,
        /// Memory of each node that open repairs take, for example 64MiB, at least 1MiB, or none
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
        Action::Limit { rate: None, memory: None, .. } => {
            let layout = target.survey().await?.map.layout;
            tell(target.output, &layout);
            return Ok(());
        }
        Action::Limit { rate, memory, expect } => {
            let (bytes_per_second, memory_bytes) = (rate.map(|size| size.0), memory.map(|size| size.0));
            (expect, AdminCommand::LimitRepair { bytes_per_second, memory_bytes })
        }
    };
    tell(target.output, &target.change(*expect, command).await?);
    Ok(())
}

fn tell(format: Format, layout: &Layout) {
    match format {
        Format::Table => output::print(&format!("repair is {}\n", in_words(&layout.repair))),
        Format::Json => {
            output::print_json(&Settings { layout_version: layout.version.0, settings: layout.repair })
        }
    }
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
    /// Nodes that are lost and not drained.
    missing_nodes: Vec<NodeId>,
    /// Roles of which no node has a copy that is kept up to date, or builds one: they wait for a node that may take them.
    waiting_roles: WaitingRoles,
    /// The same in words.
    #[serde(skip)]
    missing: Vec<String>,
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
        missing_nodes: missing_nodes(map),
        waiting_roles: WaitingRoles::of(map),
        missing: missing(map),
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

/// Roles that nobody rebuilds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct WaitingRoles {
    data: usize,
    parity: usize,
}

impl WaitingRoles {
    fn of(map: &ClusterMap) -> Self {
        // A view may still name the process that was there before this one.
        let is_up = |host: &HostId| map.node(host.node).is_some_and(|info| info.host == *host && info.alive);
        let mut waiting = Self::default();
        for view in &map.groups {
            let data = view.data.iter().filter(|role| !role.status.is_lost());
            waiting.data += data.filter(|role| !role.primary.is_some_and(|host| is_up(&host))).count();
            let learns =
                view.learners.iter().filter(|learner| usize::from(learner.role.0) >= view.k()).count();
            waiting.parity +=
                view.m().saturating_sub(view.in_sync().filter(|(_, host)| is_up(host)).count() + learns);
        }
        waiting
    }
}

/// Nodes that are gone, and that nobody has emptied before.
fn missing_nodes(map: &ClusterMap) -> Vec<NodeId> {
    let gone = map.nodes.iter().filter(|info| !info.alive).map(|info| info.host.node);
    gone.filter(|node| {
        // One that was drained and has gone with nothing on it is not missing.
        !map.layout.is_draining(*node) || map.roles_left_on(*node) > 0
    })
    .collect()
}

/// Who is missing, and what waits for that.
fn missing(map: &ClusterMap) -> Vec<String> {
    let nodes = missing_nodes(map);
    let WaitingRoles { data, parity } = WaitingRoles::of(map);
    let mut lines = Vec::new();
    if !nodes.is_empty() {
        lines.push(format!("{} {} missing", words::nodes(&nodes), one_or(nodes.len(), "is", "are")));
    }
    if data > 0 {
        lines.push(format!(
            "{} {} for a node to take over: that is decided within a few leases, unless more is missing than the code makes up \
             for (`gestalt status`)",
            count(data, "data role", "data roles"),
            one_or(data, "waits", "wait")
        ));
    }
    if parity > 0 {
        lines.push(format!(
            "{} {} for a node that has no other role of the group: start a missing one again, or another one with \
             `gestalt serve --join`",
            count(parity, "parity role", "parity roles"),
            one_or(parity, "waits", "wait")
        ));
    }
    lines
}

fn text(status: &Status) -> String {
    let mut table = Table::new(&["node", "done", "left", "a second"]);
    for NodeRepair { node, progress } in status.nodes.iter().filter(|node| node.progress.left_bytes > 0) {
        let sizes = [progress.done_bytes, progress.left_bytes, progress.bytes_per_second];
        table.row([node.0.to_string()].into_iter().chain(sizes.map(|size| Size(size).to_string())).collect());
    }
    let mut text = format!("repair is {}\n", in_words(&status.settings.settings));
    status.missing.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    if status.progress.left_bytes == 0 {
        text.push_str("nothing is being rebuilt\n");
    } else {
        text.push_str(&format!("{}\n{}", render::progress(&status.progress), table.render()));
    }
    text
}

/// Settings of repair.
pub(super) fn in_words(settings: &RepairSettings) -> String {
    let limit = |size, of: &str| match size {
        0 => format!("any {of}"),
        size => format!("{} of {of}", Size(size)),
    };
    format!(
        "{}, each node may take {} a second and {}",
        if settings.paused { "paused" } else { "on" },
        limit(settings.bytes_per_second, "bandwidth"),
        limit(settings.memory_bytes, "memory")
    )
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, Incarnation, NodeInfo, Profile};

    use super::*;

    fn map(lost: &[u16]) -> ClusterMap {
        let hosts: Vec<_> =
            (0..5).map(|node| HostId { node: NodeId(node), incarnation: Incarnation(1) }).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 1).unwrap();
        let address = ([127, 0, 0, 1], 1).into();
        let info = |host: &HostId| NodeInfo {
            host: *host,
            peer: address,
            memcached: address,
            http: address,
            native: None,
            zone: String::new(),
            alive: !lost.contains(&host.node.0),
        };
        let nodes = hosts.iter().map(info).collect();
        ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, groups.len() as u32),
            shards: 1,
            layout: Layout::default(),
            nodes,
            groups,
        }
    }

    #[test]
    fn who_is_missing_is_named_with_what_waits() {
        assert_eq!(missing(&map(&[])), Vec::<String>::new());
        let mut one = map(&[]);
        let host = one.groups[0].parity[1].take().unwrap();
        one.nodes[usize::from(host.node.0)].alive = false;
        let lines = missing(&one);
        assert_eq!(lines[0], format!("node {} is missing", host.node.0));
        assert!(
            lines[1].starts_with("1 parity role waits for a node that") && lines[1].contains("--join"),
            "{lines:?}"
        );
        let all = WaitingRoles::of(&map(&[0, 1, 2, 3, 4]));
        assert_eq!(all, WaitingRoles { data: 3, parity: 2 });
    }

    #[test]
    fn no_limit_is_written_none() {
        assert_eq!(limit("none"), Ok(Size(0)));
        assert_eq!(limit("2MiB"), Ok(Size(2 << 20)));
        assert!(limit("0").unwrap_err().contains("repair pause"));
        let text = in_words(&RepairSettings { paused: true, bytes_per_second: 1 << 20, memory_bytes: 0 });
        assert_eq!(text, "paused, each node may take 1MiB of bandwidth a second and any memory");
    }
}
