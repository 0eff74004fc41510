//! The page.

use super::document::{Change, Measured};

const PREFACE: &str = "# What a change of the map costs

Map, placement and coordinator code alone (`cargo xtask bench map`): no process and no socket. The coordinator writes its records and
encodes a message for each node; all nodes have versions, and are held to them, three have maps and make the changes, and in the end all have the
coordinator's map. *Last node* is reckoned: the coordinator's processor time, all bytes through one line of 10 Gbit/s, and 50 µs for each way between
machines. `rs(3+2)`, eight groups a node, one processor, a machine that may be shared.

A view is told to each node, so a change costs bytes by the number of nodes, not by that of groups. A node that dies takes its roles with it: forty views change
(eight groups of five roles a node), those of data roles twice: every node is told once of the death, and once of each stand-in.
Who joins is told the whole map. The planner looks at all of it, some times a heartbeat while views change, and not at all else; here after the death and the
join. Another coordinator reads all records, and tells each node that it lacks nothing.

![bytes and time by the number of nodes](map.svg)
";

pub(super) fn render(all: &[Measured]) -> String {
    let mut text = PREFACE.to_owned();
    let changes = all.first().map_or(&[][..], |one| &one.changes);
    for change in changes {
        text.push_str(&format!("\n## {}\n\n", capital(&change.what)));
        text.push_str("| nodes | groups | whole map | versions | processor | sent | recorded | last node | a node's own |\n");
        text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
        for measured in all {
            let same = measured.changes.iter().find(|other| other.what == change.what);
            same.into_iter().for_each(|same| text.push_str(&row(measured, same)));
        }
    }
    text
}

fn row(measured: &Measured, change: &Change) -> String {
    let Measured { nodes, groups, map_bytes, .. } = measured;
    format!(
        "| {nodes} | {groups} | {} | {} | {} | {} | {} | {} | {} |\n",
        bytes(*map_bytes),
        change.versions,
        time(change.cpu_us),
        bytes(change.sent_bytes),
        bytes(change.recorded_bytes),
        time(change.last_us),
        time(change.node_us)
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

fn time(us: f64) -> String {
    if us < 1_000.0 {
        format!("{us:.1} µs")
    } else if us < 1e6 {
        format!("{:.1} ms", us / 1e3)
    } else {
        format!("{:.2} s", us / 1e6)
    }
}
