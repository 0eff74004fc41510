//! Evening out: data roles first, then parities, then roles of both kinds, then bytes.
//!
//! A step goes from a node that has more than the slack above its target; that is what makes differences smaller and
//! never larger. An empty joiner is the target of the first steps for that reason, as many at a time as the limits
//! allow any node, until it is within the slack of the others.
//!
//! Where every data role that could go has a mate on the target, it changes places with a parity of its group there: an exchange. The
//! zones of the group stay as they are, its nodes do. The target has more parities than the source, so that their differences do
//! not grow; or else another parity can follow. For a while each of the two nodes has a role more, so both have room for it, and
//! a node takes part in one exchange at a time. Neither is draining, and both can host.
//!
//! Bytes move only where no count of roles comes to exceed the slack by it. Nothing is known of the bytes of a single
//! role; each is taken for an equal part of its node's.

use std::cmp::Reverse;

use super::layout::{IsData, Layout, RoleCounts, Step};
use super::question::{PlanLimits, Reason};
use super::usage::Usage;
use super::wants;

/// Which groups may take part: all roles are served, nothing is under way, nothing else is wanted.
pub(super) fn open_groups(layout: &Layout) -> Vec<bool> {
    let is_open = |(at, group): (usize, &super::layout::Group)| {
        let is_idle = !group.is_in_play && !group.is_moving && group.rebuilds == 0;
        is_idle && group.is_complete() && wants::reason(layout, at).is_none()
    };
    layout.groups.iter().enumerate().map(is_open).collect()
}

/// The next step that makes the nodes more even, and may begin now.
pub(super) fn next_step(layout: &Layout, usage: &Usage, limits: &PlanLimits, open: &[bool]) -> Option<Step> {
    let search = Search { layout, usage, limits, open, slack: limits.balance_slack.max(1) };
    let data = |counts: RoleCounts| counts.data;
    let parity = |counts: RoleCounts| counts.parity;
    search
        .by_count(data, |_, _| Some(IsData(true)))
        .or_else(|| search.by_exchange())
        .or_else(|| search.by_count(parity, |_, _| Some(IsData(false))))
        .or_else(|| search.by_count(RoleCounts::total, kind_in_excess))
        .or_else(|| search.by_bytes())
}

/// The second step of an exchange that may begin now.
pub(super) fn next_due(layout: &Layout, usage: &Usage, limits: &PlanLimits) -> Option<Step> {
    let may_begin = |group: usize| {
        let this = &layout.groups[group];
        let step = layout.due(group).filter(|step| layout.nodes[step.to].is_target)?;
        (!this.is_in_play && this.is_complete() && usage.allows(layout, &step, limits)).then_some(step)
    };
    (0..layout.groups.len()).find_map(may_begin)
}

/// Of which kind the node with more roles has more.
fn kind_in_excess(more: RoleCounts, fewer: RoleCounts) -> Option<IsData> {
    if more.data > fewer.data {
        Some(IsData(true))
    } else {
        (more.parity > fewer.parity).then_some(IsData(false))
    }
}

struct Search<'a> {
    layout: &'a Layout,
    usage: &'a Usage,
    limits: &'a PlanLimits,
    open: &'a [bool],
    slack: usize,
}

impl Search<'_> {
    fn counts(&self, node: usize) -> RoleCounts {
        self.layout.nodes[node].counts
    }

    fn sources(&self) -> impl Iterator<Item = usize> + '_ {
        let is_source = |&node: &usize| {
            let node = &self.layout.nodes[node];
            node.is_known && !node.is_draining
        };
        (0..self.layout.nodes.len()).filter(is_source)
    }

    fn targets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.layout.nodes.len()).filter(|&node| self.layout.nodes[node].is_target)
    }

    /// From a node with the most of `count` to one with the fewest, if that differs by more than the slack; `kind` says what
    /// would have to move.
    fn by_count(
        &self,
        count: impl Fn(RoleCounts) -> usize,
        kind: impl Fn(RoleCounts, RoleCounts) -> Option<IsData>,
    ) -> Option<Step> {
        let nodes = &self.layout.nodes;
        let mut sources: Vec<usize> = self.sources().collect();
        sources.sort_by_key(|&node| (Reverse(count(self.counts(node))), Reverse(nodes[node].bytes), node));
        let mut targets: Vec<usize> = self.targets().collect();
        targets.sort_by_key(|&node| {
            let (counts, builds) = (self.counts(node), self.usage.builds_on(node));
            (count(counts), builds, counts.total(), nodes[node].bytes, nodes[node].host.node)
        });
        for &from in &sources {
            let exceeds = |to: &&usize| count(self.counts(from)) > count(self.counts(**to)) + self.slack;
            // They ascend: behind one that has too many already there is none that has fewer.
            for &to in targets.iter().take_while(exceeds) {
                let kind = kind(self.counts(from), self.counts(to));
                if let Some(step) = kind.and_then(|kind| self.step(from, to, kind)) {
                    return Some(step);
                }
            }
        }
        None
    }

    /// From a node with the most data roles to one with the fewest, against a parity.
    fn by_exchange(&self) -> Option<Step> {
        let nodes = &self.layout.nodes;
        let is_free = |&node: &usize| nodes[node].is_target && !nodes[node].is_exchanging;
        let mut sources: Vec<usize> = self.sources().filter(is_free).collect();
        sources.sort_by_key(|&node| (Reverse(self.counts(node).data), Reverse(nodes[node].bytes), node));
        let mut targets: Vec<usize> = self.targets().filter(is_free).collect();
        targets.sort_by_key(|&node| (self.counts(node).data, nodes[node].bytes, nodes[node].host.node));
        for &from in &sources {
            let exceeds = |to: &&usize| self.counts(from).data > self.counts(**to).data + self.slack;
            let mut targets =
                targets.iter().take_while(exceeds).filter(|&&to| self.may_take_parity(from, to));
            if let Some(step) = targets.find_map(|&to| self.exchange(from, to)) {
                return Some(step);
            }
        }
        None
    }

    /// Whether a parity may go from `to` to `from` against a data role: `from` has fewer, or another one can follow the data role.
    fn may_take_parity(&self, from: usize, to: usize) -> bool {
        self.counts(from).parity < self.counts(to).parity || self.step(from, to, IsData(false)).is_some()
    }

    /// A data role of the one node that may change places with a parity of the other one. The zones stay as they are.
    fn exchange(&self, from: usize, to: usize) -> Option<Step> {
        let steps = self.layout.nodes[from].roles.iter().filter_map(|&(group, role)| {
            let this = &self.layout.groups[group];
            let has_parity =
                self.layout.nodes[to].roles.range((group, this.k)..(group + 1, 0)).next().is_some();
            // For a while each of the two has one role of the group more. Nobody is to have three.
            let is_alone = this.roles_on(from) == 1 && this.roles_on(to) == 1;
            let fits = self.open[group] && this.kind(role).0 && has_parity && is_alone;
            fits.then_some(Step { group, role, to, reason: Reason::Balance })
        });
        let mut steps = steps.filter(|step| {
            let room = self.room_for(step.group);
            let has_room = |node: usize| self.layout.nodes[node].room >= room;
            self.usage.allows(self.layout, step, self.limits) && has_room(from) && has_room(to)
        });
        steps.next()
    }

    /// Room for any role of the group, as far as that is known: for one that weighs twice what it is taken for.
    fn room_for(&self, group: usize) -> u64 {
        let seats = self.layout.groups[group].seats.iter().flatten();
        seats.map(|seat| self.layout.bytes_per_role(seat.node)).max().unwrap_or(0).saturating_mul(2)
    }

    /// From a node with the most bytes to one with the fewest.
    fn by_bytes(&self) -> Option<Step> {
        let nodes = &self.layout.nodes;
        let mut sources: Vec<usize> = self.sources().collect();
        sources.sort_by_key(|&node| (Reverse(nodes[node].bytes), node));
        let mut targets: Vec<usize> = self.targets().collect();
        targets.sort_by_key(|&node| (nodes[node].bytes, nodes[node].host.node));
        let slack = self.bytes_slack();
        for &from in &sources {
            let role = self.layout.bytes_per_role(from);
            // A role that moves changes the difference by twice what it weighs: it would come to the other side, and
            // the next step would take it back.
            let least = slack.max(role.saturating_mul(2));
            let exceeds = |to: &&usize| nodes[from].bytes.saturating_sub(nodes[**to].bytes) > least;
            for &to in targets.iter().take_while(exceeds).filter(|_| role > 0) {
                let kinds = [IsData(true), IsData(false)].into_iter();
                let mut kinds = kinds.filter(|kind| self.stays_within_slack(from, to, *kind));
                if let Some(step) = kinds.find_map(|kind| self.step(from, to, kind)) {
                    return Some(step);
                }
            }
        }
        None
    }

    fn bytes_slack(&self) -> u64 {
        let bytes: u128 = self.targets().map(|node| u128::from(self.layout.nodes[node].bytes)).sum();
        let mean = bytes.checked_div(self.targets().count() as u128).unwrap_or(0);
        u64::try_from(mean * u128::from(self.limits.bytes_slack_percent) / 100).unwrap_or(u64::MAX)
    }

    /// Whether no difference to another node would exceed the slack, or exceed it by more, if a role of this kind moved.
    fn stays_within_slack(&self, from: usize, to: usize, kind: IsData) -> bool {
        let after = |node: usize| {
            let mut counts = self.counts(node);
            if node == from {
                *counts.of_mut(kind) = counts.of(kind).saturating_sub(1);
            } else if node == to {
                *counts.of_mut(kind) += 1;
            }
            counts
        };
        let fits = |more: RoleCounts, fewer: RoleCounts| {
            more.of(kind) <= fewer.of(kind) + self.slack && more.total() <= fewer.total() + self.slack
        };
        let is_target = self.layout.nodes[from].is_target;
        // A node that cannot get roles is not compared with: it has few of them for a reason.
        self.targets().filter(|&node| node != to).all(|node| fits(after(to), after(node)))
            && (!is_target
                || self.sources().filter(|&node| node != from).all(|node| fits(after(node), after(from))))
    }

    /// A role of this kind that may go from one node to the other, without making the zones of its group less even.
    fn step(&self, from: usize, to: usize, kind: IsData) -> Option<Step> {
        let steps = self.layout.nodes[from].roles.iter().filter_map(|&(group, role)| {
            let this = &self.layout.groups[group];
            let fits = self.open[group] && this.kind(role) == kind && this.roles_on(to) == 0;
            fits.then_some(Step { group, role, to, reason: Reason::Balance })
        });
        let mut steps = steps.filter(|step| {
            self.usage.allows(self.layout, step, self.limits)
                && self.layout.zone_change(step.group, step.role, step.to) <= 0
        });
        steps.next()
    }
}
