//! `gestalt status --memory`: where the resident memory of the nodes goes.

use std::ops::Add;

use serde::Serialize;
use server::MemoryUse;
use types::NodeId;

use super::nodes::NodeReport;
use crate::output::Table;
use crate::units::Size;

/// What each kind is, in the order in which they are printed.
const ABOUT: [(&str, &str); 17] = [
    ("item_headers", "headers of items"),
    ("item_payloads", "keys and values"),
    ("slot_rounding", "what items leave of their slots"),
    ("free_slots", "the rest of data areas: free slots and runs"),
    ("parity_areas", "parities of data areas"),
    ("chunks", "of large values, data and parity"),
    (
        "free_pages",
        "the rest of what is kept for them; it shrinks by and by, and at once where memory is needed",
    ),
    ("index", "indexes of primaries"),
    ("index_replicas", "their replicas at parities"),
    ("tables", "classes of runs, sets of pages"),
    ("slot_states", "state and last access of each slot"),
    ("logs", "records on their way, or kept for parities that may come back"),
    ("repair", "sessions of repair and scrub"),
    ("client_buffers", "connections of clients"),
    ("link_buffers", "links to other nodes"),
    ("queues", "requests and messages that wait"),
    ("other", "program, stacks, what the allocator holds without use"),
];

/// All nodes that answered.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    all: MemoryUse,
    /// Bytes of an index for each of its items.
    index_bytes_per_item: f64,
    /// Bytes of the replicas for each of their items.
    replica_bytes_per_item: f64,
    nodes: Vec<NodeMemory>,
}

#[derive(Clone, Debug, Serialize)]
struct NodeMemory {
    node: NodeId,
    #[serde(flatten)]
    memory: MemoryUse,
}

impl Memory {
    /// From what the nodes say.
    pub fn of(nodes: &[NodeReport]) -> Self {
        let answered = nodes.iter().filter_map(|report| Some((report.node, report.memory?)));
        let nodes: Vec<_> = answered.map(|(node, memory)| NodeMemory { node, memory }).collect();
        let all = nodes.iter().map(|node| node.memory).fold(MemoryUse::default(), MemoryUse::add);
        Self {
            all,
            index_bytes_per_item: per_item(all.index, all.index_entries),
            replica_bytes_per_item: per_item(all.index_replicas, all.replica_entries),
            nodes,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let index = match self.all.index_entries {
            0 => String::new(),
            _ => format!(
                "\nindex: {:.1} bytes an item at primaries, {:.1} at each parity\n",
                self.index_bytes_per_item, self.replica_bytes_per_item
            ),
        };
        format!("{}{index}\n{}", self.kinds(), self.by_node())
    }

    fn kinds(&self) -> String {
        let mut table = Table::new(&["kind", "bytes", "share", "what"]);
        let resident = self.all.resident;
        let share = |bytes: u64| format!("{:.1}%", bytes as f64 * 100.0 / resident.max(1) as f64);
        for ((kind, bytes), (_, about)) in self.all.kinds().into_iter().zip(ABOUT) {
            table.row(vec![kind.to_owned(), Size(bytes).to_string(), share(bytes), about.to_owned()]);
        }
        table.row(vec!["resident".to_owned(), Size(resident).to_string(), share(resident), String::new()]);
        table.render()
    }

    fn by_node(&self) -> String {
        let header = ["node", "resident", "items", "slack", "parity", "index", "logs", "buffers", "other"];
        let mut table = Table::new(&header);
        for NodeMemory { node, memory } in &self.nodes {
            let sums = [
                memory.resident,
                memory.item_headers + memory.item_payloads,
                memory.slot_rounding + memory.free_slots,
                memory.parity_areas,
                memory.index + memory.index_replicas + memory.tables + memory.slot_states,
                memory.logs,
                memory.client_buffers + memory.link_buffers + memory.queues + memory.repair,
                memory.other,
            ];
            let cells = sums.map(|bytes| Size(bytes).to_string());
            table.row([node.0.to_string()].into_iter().chain(cells).collect());
        }
        table.render()
    }
}

fn per_item(bytes: u64, items: u64) -> f64 {
    bytes as f64 / items.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_explained() {
        let kinds = MemoryUse::default().kinds().map(|(kind, _)| kind);
        assert_eq!(kinds, ABOUT.map(|(kind, _)| kind));
    }
}
