//! What a group wants, and the best step towards it.

use std::cmp::Reverse;

use super::layout::{Group, Layout, Step};
use super::question::{PlanLimits, Reason};
use super::usage::Usage;

/// The groups that want something, most important first.
pub(super) fn in_order(layout: &Layout) -> Vec<usize> {
    let rank = |group: usize| {
        let reason = reason(layout, group)?;
        let spare = if reason.is_repair() { layout.groups[group].spare() } else { 0 };
        let worst_zone = if reason == Reason::Zone { layout.worst_zone(group) } else { 0 };
        Some((!reason.is_repair(), spare, reason, Reverse(worst_zone), group))
    };
    let mut ranks: Vec<_> = (0..layout.groups.len()).filter_map(rank).collect();
    ranks.sort_unstable();
    ranks.into_iter().map(|(.., group)| group).collect()
}

/// The most important thing that `group` wants and can have now or when something under way elsewhere has ended.
pub(super) fn reason(layout: &Layout, group: usize) -> Option<Reason> {
    let this = &layout.groups[group];
    if this.is_in_play || this.is_moving || layout.targets(group).next().is_none() {
        return None;
    }
    if !this.is_complete() {
        return Some(Reason::Rebuild);
    }
    if this.rebuilds > 0 {
        return None;
    }
    // Most groups want nothing, which is to be found out soon: a crowded zone is looked for before any pair of nodes.
    let is_wanted = |reason: &Reason| match reason {
        Reason::Zone => layout.has_better_zone(group),
        _ => candidates(layout, group, *reason).next().is_some(),
    };
    [Reason::Crowded, Reason::Drain, Reason::Zone].into_iter().find(is_wanted)
}

/// The best step for what `group` wants that may begin now.
pub(super) fn best_step(layout: &Layout, usage: &Usage, limits: &PlanLimits, group: usize) -> Option<Step> {
    let reason = reason(layout, group)?;
    let zone_change = |step: &Step| layout.zone_change(step.group, step.role, step.to);
    let best = candidates(layout, group, reason).map(|step| zone_change(&step)).min()?;
    let is_urgent = reason.is_repair() && layout.groups[group].spare() < 0;
    candidates(layout, group, reason)
        .filter(|step| is_urgent || zone_change(step) == best)
        .filter(|step| usage.allows(layout, step, limits))
        // Of two that are as good, the parity: nobody has to take over for one.
        .min_by_key(|step| (zone_change(step), load(layout, usage, step), Reverse(step.role)))
}

/// How little a step's target is the right one, among those of one zone.
fn load(layout: &Layout, usage: &Usage, step: &Step) -> impl Ord + use<> {
    let is_data = layout.groups[step.group].kind(step.role);
    let target = &layout.nodes[step.to];
    let here =
        layout.seat(step.group, step.role).map_or(0, |seat| layout.nodes[seat.node].counts.of(is_data));
    let more = target.counts.of(is_data) as isize - here as isize;
    (usage.builds_on(step.to), more, target.counts.total(), target.bytes, target.host.node)
}

/// All steps that would do something for `reason`.
fn candidates(layout: &Layout, group: usize, reason: Reason) -> impl Iterator<Item = Step> + '_ {
    let this = &layout.groups[group];
    let roles = (0..this.seats.len()).filter(move |&role| concerns(layout, this, role, reason));
    let may_return = reason == Reason::Rebuild && has_former_target(layout, group);
    // Missing parities are alike, unless one of them can return: the first one comes first.
    let most = if reason == Reason::Rebuild && !may_return { 1 } else { usize::MAX };
    roles
        .take(most)
        .flat_map(move |role| layout.targets(group).map(move |to| Step { group, role, to, reason }))
        .filter(move |step| reason != Reason::Zone || layout.zone_change(group, step.role, step.to) < 0)
        .filter(move |step| !may_return || this.former.contains(&(step.role, step.to)))
}

/// Whether a missing parity can be built where it was.
fn has_former_target(layout: &Layout, group: usize) -> bool {
    let this = &layout.groups[group];
    let is_missing =
        |role: usize| this.seats.get(role).is_some_and(Option::is_none) && !this.untaught.contains(&role);
    layout.targets(group).any(|to| this.former.iter().any(|&(role, at)| at == to && is_missing(role)))
}

fn concerns(layout: &Layout, group: &Group, role: usize, reason: Reason) -> bool {
    let Some(seat) = group.seats[role] else {
        return reason == Reason::Rebuild && !group.kind(role).0 && !group.untaught.contains(&role);
    };
    match reason {
        Reason::Rebuild => false,
        Reason::Crowded => group.roles_on(seat.node) > 1,
        Reason::Drain => layout.nodes[seat.node].is_draining,
        Reason::Zone | Reason::Balance => true,
    }
}
