//! `gestalt node`: who is there, and what becomes of it.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use tokio::time::sleep;
use types::{AdminCommand, Layout, NodeId, OnLoss, StopReport};

use super::{Expect, LIMIT, Target, ask, processes};
use crate::exit::Exit;
use crate::listeners;
use crate::output::{self, Format, Table};
use crate::progress::Progress;
use crate::status::nodes::{self, NodeReport};
use crate::status::render;
use crate::units::duration;
use crate::words::{count, one_or};

/// How often a drain is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How long a drain waits for other nodes that are starting.
const FOR_OTHERS: Duration = Duration::from_secs(30);

const EXAMPLE: &str = "\
Examples:
  gestalt node list
  gestalt node can-stop 3 && kill 4711     stop a process only if that loses nothing
  gestalt node drain 3 --wait              move everything off node 3
  gestalt node undrain 3
  gestalt node fence 3                     do not wait for node 3 any more
  gestalt node remove 3                    forget node 3, which is drained and stopped
  gestalt node stop 3                      end the process of node 3 of `gestalt local`, if that loses nothing
  gestalt node start 3                     start it again, with empty memory

Restarting every node in turn: docs/operations.md.

Exit codes: 0 ok, 1 wrong usage or a conflict, 2 unreachable, 3 degraded or no place to go, 4 data at risk.";

/// List nodes, empty them, fence them, ask whether one may be stopped.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct NodeArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// All nodes: state, zone, addresses, roles, memory
    #[command(after_help = "Example: gestalt node list -o json")]
    List,
    /// Move everything off a node; it takes nothing new, through restarts too, until `undrain`
    #[command(after_help = "Example: gestalt node drain 3 --wait --timeout 10min")]
    Drain {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
        /// Return when the node is empty; shows progress on a terminal
        #[arg(long)]
        wait: bool,
        /// With --wait: give up after this long, with exit code 3; the drain goes on
        #[arg(long, value_parser = duration, requires = "wait")]
        timeout: Option<Duration>,
        #[command(flatten)]
        expect: Expect,
    },
    /// Let a node host members again
    #[command(after_help = "Example: gestalt node undrain 3")]
    Undrain {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
        #[command(flatten)]
        expect: Expect,
    },
    /// Treat a node's process as dead from now on, without waiting for it
    #[command(after_help = "\
Example: gestalt node fence 3

What the process served goes to others at once, as if it had died. If it lives after all it is cut off: the others reject its
term, and the coordinator tells it to end. Memory that only it had is lost with it; that is refused unless --accept-loss is
given. Where the next loss would cost data then, it asks, or takes --yes. Use it when a machine hangs, or when the coordinator
waits for one that will not come back.")]
    Fence {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
        /// Do not ask where the next loss would cost data then
        #[arg(long)]
        yes: bool,
        /// Do it even if data is lost by it
        #[arg(long)]
        accept_loss: bool,
        #[command(flatten)]
        expect: Expect,
    },
    /// Forget a node that is gone and has no roles, so that nothing shows it any more
    #[command(after_help = "\
Example: gestalt node drain 3 --wait && systemctl stop gestalt && gestalt node remove 3

Refused while the node is alive or has roles. A process of that id is a new node from then on: it needs --join.")]
    Remove {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
        #[command(flatten)]
        expect: Expect,
    },
    /// Start the process of a node of `gestalt local` again, with empty memory
    #[command(
        after_help = "Example: gestalt node start 3\n\nOf any other cluster nodes are started with `gestalt serve`."
    )]
    Start {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
    },
    /// End the process of a node of `gestalt local`, if that loses nothing
    #[command(
        after_help = "Example: gestalt node stop 3 && gestalt node start 3\n\nRefused where it would lose data; where the next \
                            loss would then, it asks, or takes --yes."
    )]
    Stop {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
        /// Do not ask where the next loss would cost data then
        #[arg(long)]
        yes: bool,
    },
    /// Would it lose anything to stop this node now? Exit code 0 no, 3 no but the next loss would, 4 yes
    #[command(after_help = "Example: gestalt node can-stop 3 && systemctl stop gestalt")]
    CanStop {
        /// Id of the node
        #[arg(value_parser = node_id)]
        node: u16,
    },
}

/// A node's id as it is written, by people (`3`) and in what is printed (`node-3`).
fn node_id(text: &str) -> Result<u16, String> {
    let number = text.strip_prefix("node-").unwrap_or(text);
    number.parse().map_err(|_| format!("write a node's id, as in 3 or node-3 (0 to {})", u16::MAX))
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &NodeArgs) -> Result<(), Exit> {
    let target = &args.target;
    match &args.action {
        Action::List => list(target).await,
        Action::Drain { node, wait, timeout, expect } => {
            let node = NodeId(*node);
            if *wait {
                let layout = drain_when_possible(target, node, *expect, *timeout).await?;
                wait_until_empty(target, node, &layout, *timeout).await
            } else {
                let layout = target.change(*expect, AdminCommand::Drain { node }).await?;
                told(target, node, &layout).await
            }
        }
        Action::Undrain { node, expect } => {
            let node = NodeId(*node);
            let layout = target.change(*expect, AdminCommand::Undrain { node }).await?;
            told(target, node, &layout).await
        }
        Action::Fence { node, yes, accept_loss, expect } => {
            let loss = if *accept_loss { OnLoss::Accept } else { OnLoss::Refuse };
            if !yes && !accept_loss {
                make_sure(target, NodeId(*node), "fencing").await?;
            }
            let command = AdminCommand::Fence { node: NodeId(*node), loss };
            done(target, NodeId(*node), "fenced", &target.change(*expect, command).await?)
        }
        Action::Remove { node, expect } => {
            let command = AdminCommand::Remove { node: NodeId(*node) };
            done(target, NodeId(*node), "removed", &target.change(*expect, command).await?)
        }
        Action::CanStop { node } => can_stop(target, NodeId(*node)).await,
        Action::Start { node } => processes::start(target, NodeId(*node)).await,
        Action::Stop { node, yes } => {
            let (node, report) = (NodeId(*node), target.can_stop(NodeId(*node)).await?);
            match Safety::of(&report) {
                Safety::Harmless => {}
                Safety::Degrading if *yes => {}
                Safety::Degrading => make_sure(target, node, "stopping").await?,
                Safety::Fatal => return told_of_stop(target, report),
            }
            processes::stop(target, node).await
        }
    }
}

/// `node` has no roles any more.
fn done(target: &Target, node: NodeId, state: &'static str, layout: &Layout) -> Result<(), Exit> {
    say(target.output, &Changed { node, state, roles_left: 0, layout_version: layout.version.0 });
    Ok(())
}

async fn list(target: &Target) -> Result<(), Exit> {
    let reports = target.survey().await?.nodes;
    match target.output {
        Format::Table => output::print(&table(&reports)),
        Format::Json => output::print_json(&reports),
    }
    Ok(())
}

fn table(reports: &[NodeReport]) -> String {
    let mut table =
        Table::new(&["node", "state", "zone", "memcached", "native", "http", "data", "parity", "memory"]);
    for node in reports {
        table.row(vec![
            node.node.0.to_string(),
            node.state.to_owned(),
            if node.zone.is_empty() { "-".to_owned() } else { node.zone.clone() },
            listeners::words(node.memcached, &node.bound),
            node.native.map_or_else(|| "-".to_owned(), |native| native.to_string()),
            node.http.to_string(),
            node.data_roles.to_string(),
            node.parity_roles.to_string(),
            render::memory(node),
        ]);
    }
    table.render()
}

/// What a change has done.
#[derive(Serialize)]
struct Changed {
    node: NodeId,
    state: &'static str,
    roles_left: usize,
    layout_version: u64,
}

fn say(format: Format, changed: &Changed) {
    match format {
        Format::Json => output::print_json(changed),
        Format::Table => {
            let left = match (changed.state, changed.roles_left) {
                ("draining", roles) => {
                    format!(": {} {} still on it", count(roles, "role", "roles"), one_or(roles, "is", "are"))
                }
                _ => String::new(),
            };
            output::print(&format!("node {} is {}{left}\n", changed.node.0, changed.state));
        }
    }
}

async fn told(target: &Target, node: NodeId, layout: &Layout) -> Result<(), Exit> {
    let map = target.map().await?;
    let roles = map.roles_left_on(node);
    let state = match (layout.is_draining(node), roles) {
        (false, _) => "active",
        (true, 0) => "drained",
        (true, _) => "draining",
    };
    say(target.output, &Changed { node, state, roles_left: roles, layout_version: layout.version.0 });
    Ok(())
}

/// Drains, once enough others are there: one that was restarted a moment ago is not one of them yet.
async fn drain_when_possible(
    target: &Target,
    node: NodeId,
    expect: Expect,
    timeout: Option<Duration>,
) -> Result<Layout, Exit> {
    let (started, patience) = (Instant::now(), timeout.unwrap_or(FOR_OTHERS).min(FOR_OTHERS));
    let mut is_told = false;
    loop {
        match target.change(expect, AdminCommand::Drain { node }).await {
            Err(Exit::Degraded(why)) if started.elapsed() < patience => {
                if !std::mem::replace(&mut is_told, true) {
                    eprintln!("{why}; waits for up to {} s for one that is starting", patience.as_secs());
                }
                sleep(LOOK_EVERY).await;
            }
            result => return result,
        }
    }
}

/// Until `node` hosts nothing any more.
async fn wait_until_empty(
    target: &Target,
    node: NodeId,
    layout: &Layout,
    timeout: Option<Duration>,
) -> Result<(), Exit> {
    let started = Instant::now();
    let mut progress = Progress::start();
    let mut at_first = None;
    loop {
        let map = target.map().await?;
        // A node's map may be a little older than the coordinator's.
        let current = map.layout.version >= layout.version;
        if current && !map.layout.is_draining(node) {
            return Err(Exit::Degraded(format!("somebody has called off the drain of {node}")));
        }
        let left = map.roles_left_on(node);
        if current && left == 0 {
            // Its line goes before another one is printed.
            drop(progress);
            return told(target, node, &map.layout).await;
        }
        if timeout.is_some_and(|limit| started.elapsed() >= limit) {
            return Err(Exit::Degraded(format!(
                "node {} still has {}: the drain goes on; look again with `gestalt node list`, or call it off \
                 with `gestalt node undrain {}`",
                node.0,
                count(left, "role", "roles"),
                node.0
            )));
        }
        if progress.is_due() {
            let all = *at_first.get_or_insert(left);
            let total = nodes::repair_of_all(&nodes::ask_all(&map, None, LIMIT).await);
            progress.show(|| format!("{node}: {left} of {all} roles left, {}", render::progress(&total)));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The coordinator's report, with a verdict.
#[derive(Serialize)]
struct Verdict {
    #[serde(flatten)]
    report: StopReport,
    /// `yes`, `degraded` (the next loss would lose data) or `no`.
    verdict: &'static str,
}

/// What the end of a node means for what it hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safety {
    /// One more loss would still cost nothing.
    Harmless,
    /// The next loss would cost data.
    Degrading,
    /// It costs data itself.
    Fatal,
}

impl Safety {
    fn of(report: &StopReport) -> Self {
        match report.losses_survived_after {
            // Without roles it protects nothing: if nothing is survived, that is not for its sake.
            Some(0) if report.data_roles + report.parity_roles > 0 => Self::Degrading,
            Some(_) => Self::Harmless,
            None => Self::Fatal,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Harmless => "yes",
            Self::Degrading => "degraded",
            Self::Fatal => "no",
        }
    }
}

/// Asks where the next loss would cost data once `node` is gone. What costs data at once, the coordinator refuses.
async fn make_sure(target: &Target, node: NodeId, doing: &str) -> Result<(), Exit> {
    let report = target.can_stop(node).await?;
    if Safety::of(&report) != Safety::Degrading {
        return Ok(());
    }
    ask(&format!("{}: {doing} it loses nothing, but the next loss would cost data.", roles_of(&report)))
}

/// What the node has, and who counts as lost.
fn roles_of(report: &StopReport) -> String {
    let unheard: Vec<String> = report.unheard.iter().map(|node| node.0.to_string()).collect();
    let unheard = match &unheard[..] {
        [] => String::new(),
        [one] => format!("; node {one} has not been heard since this was asked, and counts as lost"),
        _ => {
            format!(
                "; nodes {} have not been heard since this was asked, and count as lost",
                unheard.join(", ")
            )
        }
    };
    let roles = |number: u32, one, several| count(number as usize, one, several);
    let data = roles(report.data_roles, "data role", "data roles");
    let parity = roles(report.parity_roles, "parity role", "parity roles");
    format!("node {} serves {data} and hosts {parity}{unheard}", report.node.0)
}

async fn can_stop(target: &Target, node: NodeId) -> Result<(), Exit> {
    let report = target.can_stop(node).await?;
    told_of_stop(target, report)
}

fn told_of_stop(target: &Target, report: StopReport) -> Result<(), Exit> {
    let (safety, roles) = (Safety::of(&report), roles_of(&report));
    let verdict = safety.name();
    let result = match safety {
        Safety::Harmless => Ok(()),
        Safety::Degrading => Err(Exit::Degraded(format!(
            "{roles}: stopping it loses nothing, but then the next loss would; drain it first, or wait for the repair"
        ))),
        Safety::Fatal => Err(Exit::AtRisk(format!(
            "{roles}: stopping it loses data in {}; drain it first, or wait for the repair",
            count(report.groups_lost.len(), "group", "groups")
        ))),
    };
    match target.output {
        Format::Json => output::print_json(&Verdict { report, verdict }),
        Format::Table if result.is_ok() => output::print(&format!("{roles}: stopping it loses nothing\n")),
        Format::Table => {}
    }
    result
}

#[cfg(test)]
mod tests {
    use super::node_id;

    #[test]
    fn a_node_is_named_as_it_is_printed_or_by_its_number() {
        assert_eq!((node_id("3"), node_id("node-65535")), (Ok(3), Ok(65_535)));
        for wrong in ["", "node-", "node3", "-1", "65536", "node-node-3", "three"] {
            let error = node_id(wrong).unwrap_err();
            assert!(error.contains("as in 3 or node-3"), "{error}");
        }
    }
}
