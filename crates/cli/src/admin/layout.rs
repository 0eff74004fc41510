//! `gestalt layout`: all wishes as one document, changed at once or not at all.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use types::{AdminCommand, ClusterMap, Layout, NodeId, NodeLayout, NodeState};

use super::preview::Preview;
use super::{Expect, Target, lost, repair};
use crate::exit::Exit;
use crate::output::{self, Format, Table};
use crate::status::survey::Survey;
use crate::words::count;

/// Longest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

const EXAMPLE: &str = "\
Example:
  gestalt layout show -o json > layout.json
  edit layout.json                          drain nodes, name zones, limit repair
  gestalt layout diff -f layout.json        what would change and move, and the balance after it
  gestalt layout apply -f layout.json       refused if somebody else has changed the layout since `show`";

/// See and change what is asked of all nodes, in one step.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct LayoutArgs {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// The layout; -o json is what `diff` and `apply` take
    #[command(after_help = "Example: gestalt layout show -o json > layout.json")]
    Show,
    /// What would be different with this layout, and what would move; changes nothing
    #[command(after_help = "Example: gestalt layout diff -f layout.json")]
    Diff {
        /// The layout; - is standard input
        #[arg(short, long)]
        file: PathBuf,
    },
    /// Put this layout in force, if it was made from the one that is
    #[command(after_help = "Example: gestalt layout apply -f layout.json")]
    Apply {
        /// The layout; - is standard input
        #[arg(short, long)]
        file: PathBuf,
    },
}

/// Does it.
///
/// # Errors
/// With the exit code of the kind.
pub async fn run(args: &LayoutArgs) -> Result<(), Exit> {
    let target = &args.target;
    match &args.action {
        Action::Show => {
            show(target.output, &target.survey().await?.map);
            Ok(())
        }
        Action::Diff { file } => {
            let wanted = read(file)?;
            let Survey { map, nodes: reports, .. } = target.survey().await?;
            let preview = Preview::of(&map, &wanted, &reports);
            let diff = Compared { diff: Diff::between(&map, &wanted), preview };
            match target.output {
                Format::Json => output::print_json(&diff),
                Format::Table => output::print(&(diff.diff.text() + &diff.preview.text())),
            }
            Ok(())
        }
        Action::Apply { file } => {
            let wanted = read(file)?;
            // For the text alone. Whether the file is of the layout that is in force, the coordinator says.
            let before = target.map().await?;
            let diff = Diff::between(&before, &wanted);
            let command = AdminCommand::Apply { layout: wanted };
            let layout = target.change(Expect::default(), command).await?;
            match target.output {
                Format::Json => output::print_json(&layout),
                Format::Table => {
                    output::print(&format!("{}layout {} is in force\n", diff.changes_text(), layout.version));
                }
            }
            Ok(())
        }
    }
}

fn read(path: &Path) -> Result<Layout, Exit> {
    let name = path.display();
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().take(MAX_FILE_BYTES).read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| Exit::Usage(format!("{name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Exit::Usage(format!("{name}: {error}: `gestalt layout show -o json` prints one that is right"))
    })
}

fn show(format: Format, map: &ClusterMap) {
    // With every node, also those of which nothing was asked: the output is there to be edited.
    let layout = map.layout.clone().spelled_out(map.nodes.iter().map(|info| info.host.node));
    if format == Format::Json {
        return output::print_json(&layout);
    }
    let mut table = Table::new(&["node", "state", "zone"]);
    for (node, known) in &layout.nodes {
        let told = map.node(*node).map_or("", |info| info.zone.as_str());
        let zone = if told.is_empty() { "-" } else { told };
        table.row(vec![node.0.to_string(), word(known.state).to_owned(), zone.to_owned()]);
    }
    let Layout { version, repair, scrub, on_loss, .. } = &layout;
    let scrub = match (scrub.generation, scrub.running) {
        (0, _) => "never".to_owned(),
        (generation, true) => format!("number {generation}, on: `gestalt scrub status`"),
        (generation, false) => format!("number {generation}, stopped"),
    };
    output::print(&format!(
        "layout   version {version}\nrepair   {}\non loss  {}\nscrub    {scrub}\n\n{}",
        repair::in_words(repair),
        lost::in_words(*on_loss),
        table.render()
    ));
}

fn word(state: NodeState) -> &'static str {
    match state {
        NodeState::Active => "active",
        NodeState::Draining => "draining",
    }
}

/// A difference, and what would follow from it.
#[derive(Serialize)]
struct Compared {
    #[serde(flatten)]
    diff: Diff,
    preview: Preview,
}

/// What is different between the layout in force and another one.
#[derive(Debug, Serialize)]
struct Diff {
    /// The version in force.
    version: u64,
    /// The version that the other one was made from.
    made_from: u64,
    changes: Vec<Change>,
    /// What the drains among the changes would move.
    leaving: Vec<Leaving>,
}

/// One setting.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Change {
    what: String,
    from: String,
    to: String,
}

/// Roles that have to leave a node.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Leaving {
    node: NodeId,
    roles: usize,
}

impl Diff {
    fn between(map: &ClusterMap, wanted: &Layout) -> Self {
        let have = &map.layout;
        let mut changes = Vec::new();
        let mut note = |what: String, from: String, to: String| {
            if from != to {
                changes.push(Change { what, from, to });
            }
        };
        let nodes: std::collections::BTreeSet<NodeId> =
            have.nodes.keys().chain(wanted.nodes.keys()).copied().collect();
        let (default, zone) =
            (NodeLayout::default(), |zone: &Option<String>| zone.clone().unwrap_or("its own".into()));
        for node in nodes {
            let (from, to) =
                (have.nodes.get(&node).unwrap_or(&default), wanted.nodes.get(&node).unwrap_or(&default));
            note(format!("node {} state", node.0), word(from.state).into(), word(to.state).into());
            note(format!("node {} zone", node.0), zone(&from.zone), zone(&to.zone));
        }
        let (from, to) = (have.repair, wanted.repair);
        note("repair paused".into(), from.paused.to_string(), to.paused.to_string());
        for (what, from, to) in [
            ("repair bytes_per_second", from.bytes_per_second, to.bytes_per_second),
            ("repair memory_bytes", from.memory_bytes, to.memory_bytes),
        ] {
            note(what.into(), from.to_string(), to.to_string());
        }
        let drains = wanted.draining().filter(|node| !have.is_draining(*node));
        let leaving = drains.map(|node| Leaving { node, roles: map.roles_left_on(node) }).collect();
        Self { version: have.version.0, made_from: wanted.version.0, changes, leaving }
    }

    fn changes_text(&self) -> String {
        let line = |change: &Change| format!("{}: {} -> {}\n", change.what, change.from, change.to);
        self.changes.iter().map(line).collect()
    }

    fn text(&self) -> String {
        let mut text = self.changes_text();
        if self.changes.is_empty() {
            text.push_str("nothing would change\n");
        }
        for Leaving { node, roles } in &self.leaving {
            text.push_str(&format!("{} would leave node {}\n", count(*roles, "role", "roles"), node.0));
        }
        if self.version != self.made_from {
            text.push_str(&format!(
                "conflict: made from version {}, version {} is in force: make it again from `gestalt layout show -o json`\n",
                self.made_from, self.version
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, HostId, Incarnation, LayoutVersion, Profile};

    use super::*;

    fn map() -> ClusterMap {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let hosts: Vec<_> = (0..5).map(host).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 5).unwrap();
        let layout = Layout { version: LayoutVersion(3), ..Layout::default() };
        ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, 5),
            shards: 1,
            layout,
            nodes: vec![],
            groups,
        }
    }

    #[test]
    fn a_diff_names_settings_roles_and_the_conflict() {
        let map = map();
        let mut wanted = map.layout.clone().spelled_out((0..5).map(NodeId));
        assert_eq!(Diff::between(&map, &wanted).text(), "nothing would change\n");
        wanted.nodes.insert(NodeId(2), NodeLayout { state: NodeState::Draining, zone: Some("b".into()) });
        wanted.repair.paused = true;
        wanted.version = LayoutVersion(2);
        assert_eq!(
            Diff::between(&map, &wanted).text(),
            "node 2 state: active -> draining\nnode 2 zone: its own -> b\nrepair paused: false -> true\n\
             5 roles would leave node 2\nconflict: made from version 2, version 3 is in force: make it again from \
             `gestalt layout show -o json`\n"
        );
    }
}
