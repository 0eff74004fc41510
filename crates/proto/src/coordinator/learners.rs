//! New members for lost ones and for roles that move (group protocol, section 6): who learns, and when a learner counts.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{
    Exchange, GroupId, GroupView, HostId, Learner, MemberId, NodeId, PlanLimits, RoleIndex, Term, Time,
    ViewVersion,
};
use wire::message::{FromCoordinator, Lesson};

use super::recovery::Former;
use super::{Coordinator, decide};
use crate::Now;

/// For how many leases a host that had no memory for a learner gets none.
const PAUSE_LEASES: u64 = 10;

/// What the coordinator keeps about learners.
#[derive(Default)]
pub(super) struct Learners {
    /// Data roles whose lessons for a learner have ended, by the learner; of its newest lesson.
    ended: BTreeMap<MemberId, (Lesson, BTreeSet<RoleIndex>)>,
    /// Primaries that were asked to make way for their mirrors, and when.
    asked: BTreeMap<MemberId, Time>,
    /// Version of the map that was planned for last, and when.
    planned: Option<(u64, Time)>,
    /// Hosts without memory, and since when.
    refused: BTreeMap<NodeId, Time>,
    /// Who served a parity that is missing now, and since when that is known; no longer than it may have its bytes.
    former: BTreeMap<MemberId, (HostId, Option<Time>)>,
}

impl Learners {
    /// Whether `node` had no memory for a learner lately.
    pub(super) fn has_refused(&self, node: NodeId) -> bool {
        self.refused.contains_key(&node)
    }

    /// Parities that `host` had until they were removed, and may still have the bytes of.
    pub(super) fn former_roles(&self, host: HostId) -> Vec<(GroupId, RoleIndex)> {
        let of_host = self.former.iter().filter(|(_, (former, _))| *former == host);
        of_host.map(|(member, _)| (member.group, member.role)).collect()
    }

    /// The view of `group` has changed: whoever leaves a parity is its former host until somebody else has it.
    pub(super) fn note_parities(&mut self, group: GroupId, before: &[Option<HostId>], view: &GroupView) {
        for (row, (before, now)) in before.iter().zip(&view.parity).enumerate() {
            let member = MemberId { group, role: RoleIndex((view.k() + row) as u8) };
            match (before, now) {
                (Some(host), None) => _ = self.former.insert(member, (*host, None)),
                (_, Some(_)) => _ = self.former.remove(&member),
                (None, None) => {}
            }
        }
    }

    /// A former host that came back, and is no good.
    pub(super) fn forget_former(&mut self, member: MemberId) {
        self.former.remove(&member);
    }

    /// Data of `group` is lost, and in the sums of all who were its parities.
    pub(super) fn forget_former_hosts(&mut self, group: GroupId) {
        if !crate::planted(crate::Bug::DormantOutlivesLoss) {
            self.former.retain(|member, _| member.group != group);
        }
    }

    fn expire_former(&mut self, now: Time, timing: &crate::Timing) {
        self.former.retain(|_, (_, since)| now.since(*since.get_or_insert(now)) < timing.rejoin_us());
    }
}

impl Coordinator {
    /// Begins what the planner finds most worth doing: parities that are missing, roles that should be elsewhere.
    pub(super) fn appoint_learners(&mut self, now: Now) {
        let pause = PAUSE_LEASES * self.config.timing.node_lease_us;
        self.learners.refused.retain(|_, at| now.time.since(*at) < pause);
        self.learners.expire_former(now.time, &self.config.timing);
        self.call_off_exchanges();
        let Some(map) = &self.map else { return };
        if map.layout.repair.paused {
            return;
        }
        let lease = self.config.timing.node_lease_us;
        let known = |(version, at): (u64, Time)| version == map.version && now.time.since(at) < lease;
        if self.learners.planned.is_some_and(known) {
            return;
        }
        let moves = cluster::next_moves(map, &self.plan_nodes(), &[], &PlanLimits::default());
        self.learners.planned = Some((map.version, now.time));
        for step in moves {
            tracing::info!(%step, "planned");
            self.appoint_learner(MemberId { group: step.group, role: step.role }, step.to);
        }
    }

    /// Mirrors of exchanges that are not to go on leave their views: a node is to be emptied, or the primary's has no memory for the
    /// parity, or another parity is missing, which is more important. Losses of the two nodes see to themselves.
    fn call_off_exchanges(&mut self) {
        let Some(map) = &self.map else { return };
        let is_off = |view: &GroupView, exchange: &Exchange| {
            let drains = [exchange.from, exchange.to].iter().any(|host| map.layout.is_draining(host.node));
            drains || self.learners.has_refused(exchange.from.node) || view.in_sync().count() < view.m()
        };
        let off = map.groups.iter().flat_map(|view| {
            let off = view.exchanges().filter(|exchange| is_off(view, exchange));
            off.map(|exchange| MemberId { group: view.group, role: exchange.data })
        });
        for member in off.collect::<Vec<_>>() {
            tracing::info!(%member, "its exchange with a parity is called off");
            self.change_view(member.group, |view| view.learners.retain(|l| l.role != member.role));
        }
    }

    /// Begins to build `member` on `host`: a parity that is missing or that moves, or the mirror of a data role that moves.
    /// False, and nothing has changed, where that cannot begin now.
    pub fn appoint_learner(&mut self, member: MemberId, host: HostId) -> bool {
        let Some(view) = self.view(member.group) else { return false };
        let exists = usize::from(member.role.0) < view.k() + view.m();
        if !exists
            || !view.may_learn(member.role, host)
            || !view.is_steady()
            || !self.nodes.present().contains(&host)
        {
            return false;
        }
        let since = view.version.next();
        tracing::info!(%member, %host, "learner appointed");
        self.change_view(member.group, |view| {
            view.learners.push(Learner { role: member.role, host, since, whole: false });
        });
        true
    }

    /// A primary has taught a learner everything, and waits for it from now on.
    pub(super) fn handle_caught_up(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        term: Term,
        (learner, lesson): (RoleIndex, Lesson),
    ) {
        let Some(view) = self.view(member.group) else { return };
        let Some(&named) = view.learner(learner).filter(|named| named.since == lesson.since) else { return };
        let primary =
            view.data_role(member.role).is_some_and(|role| role.primary == Some(from) && role.term == term);
        if !primary || named.whole {
            return;
        }
        let k = view.k();
        // What is lost nobody can teach, and nobody has to: it is nothing.
        let teachers = view.data.iter().filter(|data| !data.status.is_lost()).count();
        let row = usize::from(learner.0).checked_sub(k);
        let id = MemberId { group: member.group, role: learner };
        let (newest, ended) = self.learners.ended.entry(id).or_insert((lesson, BTreeSet::new()));
        if lesson > *newest {
            (*newest, *ended) = (lesson, BTreeSet::new());
        }
        if lesson == *newest {
            ended.insert(member.role);
        }
        let all = row.is_some() && !crate::planted(crate::Bug::OneTeacherEnough);
        let needed = if all { teachers } else { 1 };
        if ended.len() < needed {
            return;
        }
        self.learners.ended.remove(&id);
        tracing::info!(member = %id, "learner is in sync");
        self.change_view(member.group, |view| match row {
            Some(row) => {
                view.parity[row] = Some(named.host);
                view.learners.retain(|other| other.role != learner);
            }
            None => view.learners.iter_mut().filter(|l| l.role == learner).for_each(|l| l.whole = true),
        });
        if row.is_none() {
            self.ask_for_hand_over(now, id);
        }
    }

    /// Whole mirrors whose primaries have not made way yet.
    pub(super) fn ask_for_hand_overs(&mut self, now: Now) {
        let retry_us = self.config.timing.retry_us;
        let views = self.map.iter().flat_map(|map| &map.groups);
        let whole = views.flat_map(|view| {
            let whole = view.learners.iter().filter(|learner| learner.whole);
            whole.map(|learner| MemberId { group: view.group, role: learner.role })
        });
        let whole: BTreeSet<MemberId> = whole.collect();
        self.learners.asked.retain(|member, _| whole.contains(member));
        for member in whole {
            let asked = self.learners.asked.get(&member);
            if asked.is_none_or(|at| now.time.since(*at) >= retry_us) {
                self.ask_for_hand_over(now, member);
            }
        }
    }

    /// Asks the primary of `member` to make way for its mirror.
    fn ask_for_hand_over(&mut self, now: Now, member: MemberId) {
        let MemberId { group, role } = member;
        // A lesson under way would come to nothing with this primary.
        let ready = |view: &&GroupView| {
            let others_wait = crate::planted(crate::Bug::LessonOutlivesTeacher);
            let is_alone = view.may_hand_over(role) || crate::planted(crate::Bug::HandedOverToCrowded);
            let are_whole = view.learners.iter().all(|learner| learner.whole);
            view.is_steady() && is_alone && (others_wait || are_whole)
        };
        let Some(view) = self.view(group).filter(ready) else { return };
        let (Some(learner), Some(data)) = (view.learner(role), view.data_role(role)) else { return };
        let (Some(primary), term, since) = (data.primary, data.term, learner.since) else { return };
        self.learners.asked.insert(member, now.time);
        let (asked_at, epoch) = (now.time, self.epoch);
        self.send(primary, FromCoordinator::HandOver { group, role, term, since, asked_at, epoch });
    }

    /// A primary keeps still: its role is fenced, and its mirror takes over.
    pub(super) fn handle_handed_over(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        term: Term,
        (since, asked_at): (ViewVersion, Time),
    ) {
        let Some(view) = self.view(member.group) else { return };
        let named = view.data_role(member.role).is_some_and(|r| r.primary == Some(from) && r.term == term);
        let whole = view.learner(member.role).is_some_and(|l| l.whole && l.since == since);
        let still_until = asked_at + self.config.timing.held_lease_us();
        if !named || !whole || !view.is_steady() || now.time >= still_until {
            return;
        }
        tracing::info!(%member, "primary makes way for its mirror");
        self.learners.asked.remove(&member);
        self.change_view(member.group, |view| {
            decide::fence(view, member.role);
            // What another learner was taught by this primary the next one knows nothing of.
            if !crate::planted(crate::Bug::LessonOutlivesTeacher) {
                view.learners.retain(|learner| learner.whole);
            }
        });
        self.begin_recovery(member, Former::Still(still_until), None);
        self.restart_recoveries(now, member.group);
    }

    /// A learner has no memory.
    pub(super) fn handle_gave_up(&mut self, now: Now, from: HostId, member: MemberId, since: ViewVersion) {
        let Some(view) = self.view(member.group) else { return };
        let given_up = |learner: &Learner| {
            (learner.role, learner.host, learner.since) == (member.role, from, since) && !learner.whole
        };
        if view.learners.iter().any(given_up) {
            self.learners.refused.insert(from.node, now.time);
            self.learners.forget_former(member);
            self.change_view(member.group, |view| view.learners.retain(|learner| !given_up(learner)));
        }
    }
}
