//! The status as text.

use std::time::Duration;

use cluster::PoolProtection;
use cluster::health::{Health, Loss};
use types::HostId;

use super::nodes::{NodeReport, RepairTotal};
use super::roles::RoleReport;
use super::{GroupReport, Status};
use crate::listeners;
use crate::output::{Table, Tone, tinted};
use crate::units::Size;
use crate::words::{self, count, one_or};

const PAGE_BYTES: u64 = types::PAGE_BYTES as u64;

/// Groups that are shown in full; beyond it only those that are not as they should be.
const GROUPS_SHOWN: usize = 16;
/// Slot ranges, and groups, that are named on one line; JSON has them all.
const RANGES_SHOWN: usize = 8;

pub(super) fn text(status: &Status) -> String {
    let mut text = headline(status);
    text.push_str(&slots(status));
    if let Some(unheard) = &status.unheard {
        text.push_str(&format!("{unheard}: what the map says may be as old\n"));
    }
    if let Some(coordinator) = &status.coordinator {
        text.push_str(&coordinator.text());
    }
    text.push_str(&nodes_in_trouble(status));
    text.push_str(&operations(status));
    text.push('\n');
    text.push_str(&nodes(&status.nodes));
    text.push('\n');
    text.push_str(&groups(status));
    text
}

fn headline(status: &Status) -> String {
    let found = &status.assessment;
    let (word, tone) = match found.health {
        Health::Ok => ("ok", Tone::Good),
        Health::Full => ("full", Tone::Warning),
        Health::Degraded => ("degraded", Tone::Warning),
        Health::Forming => ("forming", Tone::Warning),
        Health::Unknown => ("unknown", Tone::Warning),
        Health::AtRisk => ("at risk", Tone::Bad),
        Health::Unavailable => ("unavailable", Tone::Bad),
        Health::Lost => ("data lost", Tone::Bad),
    };
    let word = tinted(word, tone);
    if let [only] = found.pools.as_slice() {
        let PoolProtection { profile, asked, achieved, .. } = only;
        return format!("{word}  profile {profile}  node losses survived: {achieved} of {asked} asked for\n");
    }
    let line = |known: &PoolProtection| {
        let PoolProtection { pool, profile, asked, achieved } = known;
        format!("pool {pool}  profile {profile}  node losses survived: {achieved} of {asked} asked for\n")
    };
    format!("{word}\n{}", found.pools.iter().map(line).collect::<String>())
}

/// What is lost, and what is out of reach.
fn slots(status: &Status) -> String {
    let found = &status.assessment;
    let mut text = String::new();
    for (what, ranges) in [("lost", &found.lost_slots), ("unavailable", &found.unavailable_slots)] {
        for range in ranges {
            text.push_str(&format!("{what}: slots {}\n", words::slot_range(range)));
        }
    }
    if !status.lost_keys.is_empty() {
        let keys = words::count(status.lost_keys.len(), "long value", "long values");
        text.push_str(&format!("lost: {keys} (`gestalt lost list` names them)\n"));
    }
    text
}

/// Who does not answer, who is full, and whose loss would cost what.
fn nodes_in_trouble(status: &Status) -> String {
    let found = &status.assessment;
    let mut text = String::new();
    for (nodes, what) in [
        (&found.silent_nodes, "silent: no answer"),
        (&found.refusing_nodes, "full: writes are refused"),
        (&found.evicting_nodes, "full: items are evicted"),
    ] {
        if !nodes.is_empty() {
            let are = one_or(nodes.len(), "is", "are");
            text.push_str(&format!("{} {are} {what}\n", words::nodes(nodes)));
        }
    }
    if found.protection_asked > 0 {
        found.at_risk_by.iter().for_each(|loss| text.push_str(&cost(loss)));
    }
    text
}

/// What it would cost to lose these nodes.
fn cost(loss: &Loss) -> String {
    let groups: Vec<String> =
        loss.groups.iter().take(RANGES_SHOWN).map(|group| group.0.to_string()).collect();
    let slots: Vec<String> = loss.slots.iter().take(RANGES_SHOWN).map(words::slot_range).collect();
    let more = |all: usize| if all > RANGES_SHOWN { ", ..." } else { "" };
    format!(
        "the loss of {} would lose slots {}{} ({} {}{})\n",
        words::nodes(&loss.nodes),
        slots.join(", "),
        more(loss.slots.len()),
        one_or(loss.groups.len(), "group", "groups"),
        groups.join(", "),
        more(loss.groups.len())
    )
}

/// What is at risk, what is being done about it, and what operators want; nothing if all is well.
fn operations(status: &Status) -> String {
    let mut text = String::new();
    let asked = status.assessment.protection_asked;
    if status.groups_by_margin.keys().any(|margin| *margin < asked) {
        let line = |(margin, groups): (&usize, &usize)| {
            format!("{groups} {} {margin}", one_or(*groups, "survives", "survive"))
        };
        let lines: Vec<String> = status.groups_by_margin.iter().map(line).collect();
        text.push_str(&format!("groups by losses survived: {}\n", lines.join(", ")));
    }
    if status.bytes_at_risk > 0 || status.roles_at_risk_unknown > 0 {
        let unknown = match status.roles_at_risk_unknown {
            0 => String::new(),
            roles => format!(", and {} of which nobody tells", count(roles, "data role", "data roles")),
        };
        text.push_str(&format!("at risk by the next loss: {}{unknown}\n", Size(status.bytes_at_risk)));
    }
    if status.repair.progress.left_bytes > 0 {
        text.push_str(&format!("repair: {}\n", progress(&status.repair.progress)));
    }
    if status.repair.settings.paused {
        text.push_str("repair is paused: `gestalt repair resume` lets it go on\n");
    }
    if !status.draining_nodes.is_empty() {
        text.push_str(&format!("draining: {}\n", words::nodes(&status.draining_nodes)));
    }
    for moving in &status.moving_namespaces {
        text.push_str(&format!("namespace {}: {}\n", moving.namespace, moving.words()));
    }
    text
}

/// Done of all, rate, time left.
pub fn progress(total: &RepairTotal) -> String {
    let all = Size(total.done_bytes + total.left_bytes);
    let left = match total.seconds_left {
        Some(seconds) => format!("{} left", humantime::format_duration(Duration::from_secs(seconds))),
        None => "nothing moves now".to_owned(),
    };
    format!("{} of {all}, {} a second, {left}", Size(total.done_bytes), Size(total.bytes_per_second))
}

fn nodes(nodes: &[NodeReport]) -> String {
    let mut table =
        Table::new(&["node", "state", "memcached", "http", "data", "parity", "memory", "items", "to repair"]);
    for node in nodes {
        table.row(vec![
            node.node.0.to_string(),
            node.state.to_owned(),
            listeners::words(node.memcached, &node.bound),
            node.http.to_string(),
            node.data_roles.to_string(),
            node.parity_roles.to_string(),
            memory(node),
            node.items.map_or_else(|| "-".to_owned(), |items| items.to_string()),
            node.absent_pages.map_or_else(|| "-".to_owned(), |pages| Size(pages * PAGE_BYTES).to_string()),
        ]);
    }
    table.render()
}

/// Used of the cap.
pub fn memory(node: &NodeReport) -> String {
    match (node.memory_used_bytes, node.memory_limit_bytes) {
        (Some(used), Some(limit)) => format!("{} of {}", Size(used), Size(limit)),
        _ => "-".to_owned(),
    }
}

fn groups(status: &Status) -> String {
    let asked = status.assessment.protection_asked;
    let few = status.groups.len() <= GROUPS_SHOWN;
    let shown: Vec<_> = status
        .groups
        .iter()
        .filter(|group| few || group.losses_survived < asked || !is_whole(group))
        .collect();
    if shown.is_empty() {
        return match status.groups.len() {
            1 => "the group is whole\n".to_owned(),
            groups => format!("all {groups} groups are whole\n"),
        };
    }
    let mut table = Table::new(&["group", "view", "survives", "data roles", "parity roles"]);
    for group in shown {
        table.row(vec![
            group.group.0.to_string(),
            group.view.to_string(),
            group.losses_survived.to_string(),
            roles(group, "data", "full"),
            roles(group, "parity", "in_sync"),
        ]);
    }
    table.render()
}

fn is_whole(group: &GroupReport) -> bool {
    group.roles.iter().all(|role| role.state == "full" || role.state == "in_sync")
}

/// Hosts of the roles of one kind, with the state where it is not the usual one.
fn roles(group: &GroupReport, kind: &str, usual: &str) -> String {
    let one = |role: &RoleReport| {
        let host = role.host.map_or_else(|| "-".to_owned(), |HostId { node, .. }| node.0.to_string());
        if role.state == usual { host } else { format!("{host}({})", role.state) }
    };
    group.roles.iter().filter(|role| role.kind == kind).map(one).collect::<Vec<_>>().join(" ")
}
