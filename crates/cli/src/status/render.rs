//! The status as text.

use cluster::HostId;

use super::health::{Health, RoleReport};
use super::nodes::NodeReport;
use super::{GroupReport, Status};
use crate::output::{Table, Tone, tinted};
use crate::units::Size;

const PAGE_BYTES: u64 = store::PAGE_BYTES as u64;

/// Groups that are shown in full; beyond it only those that are not as they should be.
const GROUPS_SHOWN: usize = 16;

pub(super) fn text(status: &Status) -> String {
    let mut text = headline(status);
    for range in &status.assessment.lost_slots {
        text.push_str(&format!("lost: slots {}-{}\n", range.first.0, range.last.0));
    }
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
        Health::Degraded => ("degraded", Tone::Warning),
        Health::AtRisk => ("at risk", Tone::Bad),
        Health::Lost => ("data lost", Tone::Bad),
    };
    format!(
        "{}  profile {}  node losses survived: {} of {} asked for\n",
        tinted(word, tone),
        status.profile,
        found.protection_achieved,
        found.protection_asked
    )
}

fn nodes(nodes: &[NodeReport]) -> String {
    let mut table =
        Table::new(&["node", "state", "memcached", "http", "data", "parity", "memory", "items", "to repair"]);
    for node in nodes {
        table.row(vec![
            node.node.0.to_string(),
            if node.alive { "up" } else { "lost" }.to_owned(),
            node.memcached.to_string(),
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

fn memory(node: &NodeReport) -> String {
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
        return format!("all {} groups are whole\n", status.groups.len());
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
