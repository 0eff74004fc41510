//! What is under way where, held against the limits.

use std::collections::BTreeMap;

use super::layout::{Layout, Step};
use super::question::PlanLimits;

/// Builds under way.
#[derive(Default)]
pub(super) struct Usage {
    repairs: Counts,
    all: Counts,
}

#[derive(Default)]
struct Counts {
    total: usize,
    targets: BTreeMap<usize, usize>,
    sources: BTreeMap<usize, usize>,
}

impl Usage {
    /// Counts a step; to be called before the layout takes it as done.
    pub fn begin(&mut self, layout: &Layout, step: &Step) {
        self.all.add(layout, step);
        if step.reason.is_repair() {
            self.repairs.add(layout, step);
        }
    }

    /// Whether the limits have room for a step. Repairs do not wait for anything else.
    pub fn allows(&self, layout: &Layout, step: &Step, limits: &PlanLimits) -> bool {
        let counts = if step.reason.is_repair() { &self.repairs } else { &self.all };
        let free = |of: &BTreeMap<usize, usize>, node: usize, limit| {
            of.get(&node).is_none_or(|&count| count < limit)
        };
        counts.total < limits.total
            // Asked for by itself: where nothing is under way there is no count to hold against a limit of 0.
            && limits.per_node > 0
            && free(&counts.targets, step.to, limits.per_node)
            && limits.per_source > 0
            && sources(layout, step).all(|node| free(&counts.sources, node, limits.per_source))
    }

    /// Builds under way on a node.
    pub fn builds_on(&self, node: usize) -> usize {
        self.all.targets.get(&node).copied().unwrap_or(0)
    }
}

impl Counts {
    fn add(&mut self, layout: &Layout, step: &Step) {
        self.total += 1;
        *self.targets.entry(step.to).or_insert(0) += 1;
        for node in sources(layout, step) {
            *self.sources.entry(node).or_insert(0) += 1;
        }
    }
}

/// Who is read: the primary of a data role that moves; for a parity the primaries of all data roles. That of a role which
/// changes places with a parity is where it was until the parity is there.
fn sources(layout: &Layout, step: &Step) -> impl Iterator<Item = usize> {
    let group = &layout.groups[step.group];
    let roles = if group.kind(step.role).0 { step.role..step.role + 1 } else { 0..group.k };
    roles.filter_map(move |role| match group.exchange {
        Some(exchange) if exchange.data == role => Some(exchange.from.node),
        _ => group.seats[role].map(|seat| seat.node),
    })
}
