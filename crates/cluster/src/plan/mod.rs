//! The planner: which role should move to which node, what to begin now, and what cannot be had.
//!
//! Pure functions of the map, of what is known of the nodes, and of the moves under way. No clock, no state between
//! calls: the coordinator asks [`next_moves`] again whenever something has changed, a preview asks [`plan`].
//!
//! A move builds a role on another node with everything going on (a learner); so it is possible only while all data
//! roles of the group are full or lost, and some are full. What is wanted, most important first:
//!
//! 1. [`Reason::Rebuild`]: nobody serves a parity.
//! 2. [`Reason::Crowded`]: a node has two roles of a group, so that its loss counts twice.
//! 3. [`Reason::Drain`]: a node is to be emptied.
//! 4. [`Reason::Zone`]: a zone has more roles of a group than it needs to.
//! 5. [`Reason::Balance`]: a node has more roles, or more bytes, than another one.
//!
//! Repairs (1 and 2) begin in the order of what is at risk: first where the next loss of a node would lose data. They
//! do not wait for moves that are no repairs. A group has one move under way at a time; only missing parities are built
//! side by side. Balance waits until nothing else is left to begin.
//!
//! A target can host, is not draining and has no role in the group, except in an exchange (see `balance`). Of these the best is in the zone with the fewest
//! other roles of the group; then come builds under way, roles of the same kind (a data role costs more than a parity),
//! bytes, and the id. If the nodes of the best zone are busy the move waits, unless the group is one loss from the
//! end. A node without a zone is its own zone. But if the former host of a missing parity is a target, it is the only one:
//! it may still have most of it.
//!
//! # Exchanges
//!
//! Where every node has a role of every group no data role can go anywhere. There it changes places with a parity of its group, in
//! two moves: its mirror is built beside the parity, and once that is whole the parity is built where the data role is; then
//! the mirror takes over. Both are planned as one from the first on; which one is due follows from the map alone: a whole mirror beside
//! a parity means that the parity is to move. The second move does not wait for other groups, as the mirror takes memory
//! and every write's time until then; but it begins after whatever else may begin.
//!
//! # Why it ends
//!
//! Every move makes this list of numbers smaller, compared from the left: missing parities; pairs of roles of a group on
//! one node; roles on draining nodes; pairs of roles of a group in one zone; by how much differences of the nodes in
//! data roles exceed the slack; the same for parities; the same for roles of both kinds; the spread of the bytes; exchanges under way,
//! which count as done in all the other numbers. So no plan runs in a circle, whatever it starts from: the first move of an exchange makes
//! differences in data roles smaller, the second one the number of exchanges. One that is called off leaves everything
//! as it was before; it is not begun again while the reason lasts. With as many able nodes as roles, at the end no parity is missing, no
//! node is crowded and draining nodes are empty: a group that lacks any of it has an able node without a role. The same
//! holds for zones.

mod balance;
mod layout;
mod question;
mod stand_in;
mod tally;
#[cfg(test)]
mod tests;
mod usage;
mod wants;
mod warnings;

use crate::Codes;
use layout::{Layout, Stage, Step};
use types::{ClusterMap, Exchange, GroupView, HostId};
use usage::Usage;

pub use layout::RoleCounts;
pub use question::{Move, PlanLimits, PlanNode, Reason};
pub use stand_in::{choose_stand_in, choose_successor};
pub use tally::RoleTally;
pub use warnings::{PlacementWarning, warnings};

/// Most moves that a preview lists.
pub const MAX_PREVIEW_MOVES: usize = 100_000;

/// What to begin now, most important first, while `under_way` goes on. A learner in the map counts as under way
/// whether or not `under_way` names it; a move that has not come into the map yet counts if `under_way` names it.
#[must_use]
pub fn next_moves(
    map: &ClusterMap,
    nodes: &[PlanNode],
    under_way: &[Move],
    limits: &PlanLimits,
) -> Vec<Move> {
    let groups = &map.groups;
    let mut layout = Layout::read(groups, &Codes::of(&map.catalog), nodes);
    let mut usage = Usage::default();
    begin_known(groups, &mut layout, &mut usage, under_way);
    begin(&mut layout, &mut usage, limits)
}

/// Everything that would be moved from now until nothing is left to do, in order, if nothing else happened: for previews.
/// At most [`MAX_PREVIEW_MOVES`].
#[must_use]
pub fn plan(map: &ClusterMap, nodes: &[PlanNode], limits: &PlanLimits) -> Vec<Move> {
    plan_groups(&map.groups, &Codes::of(&map.catalog), nodes, limits)
}

/// [`plan`] where there is no map yet.
pub(crate) fn plan_groups(
    groups: &[GroupView],
    codes: &Codes,
    nodes: &[PlanNode],
    limits: &PlanLimits,
) -> Vec<Move> {
    let mut layout = Layout::read(groups, codes, nodes);
    begin_known(groups, &mut layout, &mut Usage::default(), &[]);
    let mut moves = Vec::new();
    while moves.len() < MAX_PREVIEW_MOVES {
        layout.finish_all();
        let batch = begin(&mut layout, &mut Usage::default(), limits);
        if batch.is_empty() {
            break;
        }
        moves.extend(batch);
    }
    moves.truncate(MAX_PREVIEW_MOVES);
    moves
}

/// Takes as begun what is `given`, and the learners of the map that it does not name.
fn begin_known(groups: &[GroupView], layout: &mut Layout, usage: &mut Usage, given: &[Move]) {
    begin_mirrored(groups, layout);
    let is_given = |group, role, to: HostId| {
        given.iter().any(|known| (known.group, known.role, known.to) == (group, role, to))
    };
    let mut all = given.to_vec();
    for view in groups {
        let learners =
            view.learners.iter().filter(|learner| !is_given(view.group, learner.role, learner.host));
        all.extend(learners.map(|learner| layout.learner_move(view.group, learner.role, learner.host)));
    }
    for known in all {
        if let Some(step) = layout.step(&known) {
            usage.begin(layout, &step);
            layout.begin(&step);
        }
    }
}

/// Takes as begun the exchanges whose mirrors are whole. Nothing of them is being built, as long as the parity is not.
fn begin_mirrored(groups: &[GroupView], layout: &mut Layout) {
    for view in groups {
        let goes_elsewhere =
            |known: &Exchange| view.learner(known.parity).is_some_and(|learner| learner.host != known.from);
        let mut mirrored = view.exchanges().filter(|known| known.is_mirrored && !goes_elsewhere(known));
        let mirror = mirrored.next().map(|known| layout.learner_move(view.group, known.data, known.to));
        if let Some(step) = mirror.and_then(|mirror| layout.step(&mirror)) {
            layout.begin(&step);
            layout.reach(step.group, Stage::Due);
        }
    }
}

/// Begins whatever the limits allow.
fn begin(layout: &mut Layout, usage: &mut Usage, limits: &PlanLimits) -> Vec<Move> {
    let mut begun = begin_wanted(layout, usage, limits);
    while let Some(step) = balance::next_due(layout, usage, limits) {
        begun.push(start(layout, usage, &step));
    }
    // A group that recovers wants nothing yet. What it will want is more than balance.
    let waits = |group| wants::reason(layout, group).is_some() || layout.groups[group].is_recovering;
    if !(0..layout.groups.len()).any(waits) {
        let mut open = balance::open_groups(layout);
        while let Some(step) = balance::next_step(layout, usage, limits, &open) {
            open[step.group] = false;
            begun.push(start(layout, usage, &step));
        }
    }
    begun
}

/// Begins what is more than balance.
fn begin_wanted(layout: &mut Layout, usage: &mut Usage, limits: &PlanLimits) -> Vec<Move> {
    let mut begun = Vec::new();
    for group in wants::in_order(layout) {
        while let Some(step) = wants::best_step(layout, usage, limits, group) {
            begun.push(start(layout, usage, &step));
        }
    }
    begun
}

fn start(layout: &mut Layout, usage: &mut Usage, step: &Step) -> Move {
    let described = layout.describe(step);
    usage.begin(layout, step);
    layout.begin(step);
    described
}

/// The layout when all that is more than balance has been done.
fn when_all_is_done(map: &ClusterMap, nodes: &[PlanNode]) -> Layout {
    let groups = &map.groups;
    let unlimited = PlanLimits {
        per_node: usize::MAX,
        per_source: usize::MAX,
        total: usize::MAX,
        ..PlanLimits::default()
    };
    let mut layout = Layout::read(groups, &Codes::of(&map.catalog), nodes);
    begin_known(groups, &mut layout, &mut Usage::default(), &[]);
    loop {
        layout.finish_all();
        if begin_wanted(&mut layout, &mut Usage::default(), &unlimited).is_empty() {
            return layout;
        }
    }
}
