//! `gestalt scrub`: all data compared with its parities, all items with their checksums.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use server::RepairStatus;
use tokio::time::sleep;
use types::{AdminCommand, NodeId, OnFinding, ScrubProgress, ScrubSettings};

use super::damage::{self, Damage};
use super::wrong::{self, WrongStripe};
use super::{Expect, Target};
use crate::exit::Exit;
use crate::output::{self, Format, Table};
use crate::progress::Progress;
use crate::status::nodes::RepairTotal;
use crate::status::render;
use crate::status::survey::Survey;
use crate::units::{Size, duration};
use crate::words::{self, count_u64, one_or};

/// How often a scrub is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);

const PAGE_BYTES: u64 = types::PAGE_BYTES as u64;

const EXAMPLE: &str = "\
Examples:
  gestalt scrub start --wait               compare everything once; exit code 4 if something is wrong
  gestalt scrub start --rate 50MiB         of parity, a second, on each node
  gestalt scrub status
  gestalt scrub start --repair --wait      correct parities that are wrong beside items that are all right
  gestalt scrub stop";

/// Compare all data with its parities while everything goes on, and say what is damaged.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ScrubArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// Compare everything, from the beginning, in the background
    #[command(after_help = "Example: gestalt scrub start --rate 50MiB --wait")]
    Start {
        /// Correct a parity that is wrong where all items that it covers are right by their checksums
        #[arg(long)]
        repair: bool,
        /// Most bytes of parity a second that each node compares; `gestalt repair limit` and `pause` hold for it, too
        #[arg(long)]
        rate: Option<Size>,
        /// Return when everything has been compared; shows progress on a terminal
        #[arg(long)]
        wait: bool,
        /// With --wait: give up after this long, with exit code 3; the scrub goes on
        #[arg(long, value_parser = duration, requires = "wait")]
        timeout: Option<Duration>,
        #[command(flatten)]
        expect: Expect,
    },
    /// Call it off
    #[command(after_help = "Example: gestalt scrub stop")]
    Stop {
        #[command(flatten)]
        expect: Expect,
    },
    /// How far it is, how fast, and what it has found; exit code 4 if something is wrong
    #[command(after_help = "Example: gestalt scrub status -o json")]
    Status,
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &ScrubArgs) -> Result<(), Exit> {
    let target = &args.target;
    match &args.action {
        Action::Start { repair, rate, wait, timeout, expect } => {
            let finding = if *repair { OnFinding::Correct } else { OnFinding::Report };
            let bytes_per_second = rate.map_or(0, |rate| rate.0);
            let command = AdminCommand::StartScrub { finding, bytes_per_second };
            let started = target.change(*expect, command).await?.scrub;
            if *wait { wait_for_end(target, started, *timeout).await } else { say(target, &started) }
        }
        Action::Stop { expect } => say(target, &target.change(*expect, AdminCommand::StopScrub).await?.scrub),
        Action::Status => {
            let status = Status::of(&target.survey().await?);
            status.print(target.output);
            status.verdict()
        }
    }
}

fn say(target: &Target, scrub: &ScrubSettings) -> Result<(), Exit> {
    match target.output {
        Format::Json => output::print_json(scrub),
        Format::Table => output::print(&format!(
            "scrub {} {}\n",
            scrub.generation,
            if scrub.running {
                "has started: `gestalt scrub status` shows how far it is"
            } else {
                "is stopped"
            }
        )),
    }
    Ok(())
}

/// Until all nodes have compared everything.
async fn wait_for_end(
    target: &Target,
    started: ScrubSettings,
    timeout: Option<Duration>,
) -> Result<(), Exit> {
    let begun = Instant::now();
    let mut progress = Progress::start();
    loop {
        let status = Status::of(&target.look().await?);
        let known = status.settings;
        // A node's map may be a little older than the coordinator's.
        if known.generation > started.generation || known.generation == started.generation && !known.running {
            return Err(Exit::Degraded("somebody has stopped this scrub, or started another one".to_owned()));
        }
        if known.generation == started.generation && status.ended {
            drop(progress);
            status.print(target.output);
            return status.verdict();
        }
        if timeout.is_some_and(|limit| begun.elapsed() >= limit) {
            return Err(Exit::Degraded(
                "the scrub goes on: look again with `gestalt scrub status`; it waits while a group is not whole, and while \
                 repair is paused"
                    .to_owned(),
            ));
        }
        progress.show(|| format!("scrub {}: {}", started.generation, status.progress.text()));
        sleep(LOOK_EVERY).await;
    }
}

#[derive(Serialize)]
struct Status {
    #[serde(flatten)]
    settings: ScrubSettings,
    /// Whether every living node has compared everything.
    ended: bool,
    progress: Total,
    nodes: Vec<NodeScrub>,
    /// Living nodes that did not answer.
    silent_nodes: Vec<NodeId>,
    damage: Vec<Damage>,
    wrong_stripes: Vec<WrongStripe>,
}

/// One node's share.
#[derive(Serialize)]
struct NodeScrub {
    node: NodeId,
    generation: u64,
    #[serde(flatten)]
    progress: Total,
}

/// How far a scrub has come, of one node or of all.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Total {
    mismatches: u64,
    corrected: u64,
    #[serde(flatten)]
    bytes: RepairTotal,
}

impl Total {
    fn of(progress: ScrubProgress, bytes_per_second: u64) -> Self {
        let ScrubProgress { checked_pages, left_pages, mismatches, corrected, .. } = progress;
        let (done_bytes, left_bytes) = (checked_pages * PAGE_BYTES, left_pages * PAGE_BYTES);
        let bytes = RepairStatus { done_bytes, left_bytes, bytes_per_second }.into();
        Self { mismatches, corrected, bytes }
    }

    fn text(&self) -> String {
        let mismatches = count_u64(self.mismatches, "mismatch", "mismatches");
        format!("{}, {mismatches}", render::progress(&self.bytes))
    }
}

impl Status {
    fn of(survey: &Survey) -> Self {
        let (map, reports) = (&survey.map, &survey.nodes);
        let settings = map.layout.scrub;
        let known = || reports.iter().filter_map(|report| Some((report.node, report.scrub.as_ref()?)));
        let current = || known().filter(|(_, scrub)| scrub.progress.generation == settings.generation);
        let silent = reports.iter().filter(|report| report.alive && report.scrub.is_none());
        let silent_nodes: Vec<NodeId> = silent.map(|report| report.node).collect();
        let sum = current().map(|(_, scrub)| scrub.progress).reduce(ScrubProgress::plus);
        let rate = current().filter(|(_, scrub)| scrub.progress.left_pages > 0);
        let rate = rate.map(|(_, scrub)| scrub.bytes_per_second).sum();
        let progress = Total::of(sum.unwrap_or_default(), rate);
        let node = |(node, scrub): (NodeId, &server::ScrubStatus)| NodeScrub {
            node,
            generation: scrub.progress.generation,
            progress: Total::of(scrub.progress, scrub.bytes_per_second),
        };
        let ended = settings.generation > 0
            && silent_nodes.is_empty()
            // Nobody is still at an older one.
            && current().count() == known().count()
            && progress.bytes.left_bytes == 0;
        let findings: Vec<_> = current().flat_map(|(_, scrub)| scrub.findings.iter().cloned()).collect();
        let keys: Vec<_> = known().flat_map(|(_, scrub)| scrub.wrong_keys.iter().cloned()).collect();
        let stripes = current().flat_map(|(_, scrub)| scrub.wrong_stripes.iter().cloned()).collect();
        let nodes = known().map(node).collect();
        let (damage, wrong_stripes) = (damage::explain(map, &findings), wrong::explain(stripes, &keys));
        Self { settings, ended, progress, nodes, silent_nodes, damage, wrong_stripes }
    }

    fn print(&self, format: Format) {
        match format {
            Format::Json => output::print_json(self),
            Format::Table => output::print(&self.text()),
        }
    }

    /// Damage that is still there is an error.
    fn verdict(&self) -> Result<(), Exit> {
        let Total { mismatches, corrected, .. } = self.progress;
        if mismatches > corrected {
            return Err(Exit::AtRisk(format!(
                "damage at {} that has not been corrected: `gestalt scrub status` names it, and the way out",
                count_u64(mismatches - corrected, "place", "places")
            )));
        }
        Ok(())
    }

    fn text(&self) -> String {
        let ScrubSettings { generation, running, .. } = self.settings;
        if generation == 0 {
            return "nothing was ever compared: `gestalt scrub start`\n".to_owned();
        }
        let bytes = Size(self.progress.bytes.done_bytes);
        let Total { mismatches, corrected, .. } = self.progress;
        let mut text = match (self.ended, running) {
            (true, _) => format!(
                "scrub {generation} has ended: {bytes} of parity compared, {}, {corrected} corrected\n",
                count_u64(mismatches, "mismatch", "mismatches")
            ),
            (false, true) => format!("scrub {generation}: {}\n{}", self.progress.text(), self.table()),
            (false, false) => format!("scrub {generation} is stopped: {}\n", self.progress.text()),
        };
        if !self.silent_nodes.is_empty() {
            let do_not = one_or(self.silent_nodes.len(), "does", "do");
            text.push_str(&format!("{} {do_not} not answer\n", words::nodes(&self.silent_nodes)));
        }
        self.damage.iter().for_each(|damage| text.push_str(&damage.text()));
        self.wrong_stripes.iter().for_each(|stripe| text.push_str(&stripe.text()));
        text
    }

    fn table(&self) -> String {
        let mut table = Table::new(&["node", "done", "left", "a second", "mismatches"]);
        for NodeScrub { node, progress, .. } in &self.nodes {
            let RepairTotal { done_bytes, left_bytes, bytes_per_second, .. } = progress.bytes;
            let sizes = [done_bytes, left_bytes, bytes_per_second].map(|size| Size(size).to_string());
            let id = node.0.to_string();
            table.row([id].into_iter().chain(sizes).chain([progress.mismatches.to_string()]).collect());
        }
        table.render()
    }
}
