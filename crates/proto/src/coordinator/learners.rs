//! New members for lost ones and for roles that move (group protocol, section 6): who learns, and when a learner counts.

use std::collections::{BTreeMap, BTreeSet};

use cluster::PlanLimits;
use types::{DataRole, Exchange, GroupView, HostId, Learner, MemberId, RoleIndex, Term, Time, ViewVersion};
use wire::message::{FromCoordinator, Lesson};

use super::decide;
use super::look::Look;
use super::repairs::Repairs;
use super::state::ClusterState;
use crate::Now;

/// How often it is planned at most while views change.
const PLANS_PER_HEARTBEAT: u64 = 4;

/// What the coordinator keeps about learners.
#[derive(Default)]
pub(super) struct Learners {
    /// Lessons that have ended, by the learner.
    ended: BTreeMap<MemberId, EndedLessons>,
    /// Primaries that were asked to make way for their mirrors, and when.
    asked: BTreeMap<MemberId, Time>,
    /// When it was last looked who is to make way.
    looked: Look,
    planned: Option<Planned>,
}

/// When it was planned last, and for what.
#[derive(Clone, Copy)]
struct Planned {
    at: Time,
    /// See [`ClusterState::changes`].
    changes: u64,
    /// See [`super::nodes::Nodes::load_changes`].
    load_changes: u64,
}

/// The data roles whose lessons for a learner have ended; of its newest lesson.
struct EndedLessons {
    lesson: Lesson,
    teachers: BTreeSet<RoleIndex>,
}

/// A primary has taught a learner everything, and waits for it from now on.
pub(super) struct CaughtUp {
    pub member: MemberId,
    pub term: Term,
    pub learner: RoleIndex,
    pub lesson: Lesson,
}

/// A primary has made way for its mirror.
pub(super) struct HandedOver {
    pub member: MemberId,
    pub term: Term,
    /// Since when the mirror learns.
    pub since: ViewVersion,
    pub asked_at: Time,
}

impl Learners {
    /// Groups that are no more have no learners.
    pub(super) fn forget_gone(&mut self, state: &ClusterState) {
        self.ended.retain(|member, _| state.view(member.group).is_some());
        self.asked.retain(|member, _| state.view(member.group).is_some());
    }

    /// Begins what the planner finds most worth doing: parities that are missing, roles that should be elsewhere.
    pub(super) fn plan(&mut self, now: Now, state: &mut ClusterState) {
        let timing = *state.timing();
        if state.hosting_mut().expire(now.time, &timing) {
            self.planned = None;
        }
        if now.time < self.next_plan(state) {
            return;
        }
        call_off_exchanges(state);
        let (changes, load_changes) = (state.changes(), state.nodes().load_changes());
        self.planned = Some(Planned { at: now.time, changes, load_changes });
        let Some(map) = state.map().filter(|map| !map.layout.repair.paused) else { return };
        let moves = cluster::next_moves(map, &state.plan_nodes(), &[], &PlanLimits::default());
        for step in moves {
            tracing::info!(%step, "planned");
            appoint(state, MemberId { group: step.group, role: step.role }, step.to);
        }
    }

    /// When [`Self::plan`] has something to do.
    pub(super) fn plan_due(&self, state: &ClusterState) -> Time {
        self.next_plan(state).min(state.hosting().due())
    }

    /// When it is to be planned: soon after a change, for more of them may follow, and after a lease if nodes have filled or emptied.
    fn next_plan(&self, state: &ClusterState) -> Time {
        let Some(map) = state.map() else { return Time::NEVER };
        let Some(planned) = self.planned else { return Time(0) };
        if planned.changes != state.changes() {
            return planned.at + state.timing().heartbeat_us / PLANS_PER_HEARTBEAT;
        }
        let have_loads_changed = planned.load_changes != state.nodes().load_changes();
        let is_wanted = have_loads_changed && !map.layout.repair.paused;
        if is_wanted { planned.at + state.lease_us() } else { Time::NEVER }
    }

    /// A lesson has ended. Once all have that a learner needs, it counts.
    pub(super) fn handle_caught_up(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        from: HostId,
        caught_up: &CaughtUp,
    ) {
        let CaughtUp { member, term, learner, lesson } = *caught_up;
        let Some(view) = state.view(member.group) else { return };
        let Some(&named) = view.learner(learner).filter(|named| named.since == lesson.since) else { return };
        let primary =
            view.data_role(member.role).is_some_and(|role| role.primary == Some(from) && role.term == term);
        if !primary || named.whole {
            return;
        }
        // What is lost nobody can teach, and nobody has to: it is nothing. What it does not cover, neither.
        let protection = state.protection(member.group);
        let teaches = |(role, data): &(RoleIndex, &DataRole)| {
            !data.status.is_lost() && protection.covers(learner, *role)
        };
        let teachers = view.data_roles().filter(teaches).count();
        let row = usize::from(learner.0).checked_sub(view.k());
        let id = MemberId { group: member.group, role: learner };
        // A mirror learns from its own primary alone.
        let needed = if row.is_some() { state.rules().teachers_of_parity(teachers) } else { 1 };
        if self.note_ended(id, member.role, lesson) < needed {
            return;
        }
        self.ended.remove(&id);
        tracing::info!(member = %id, "learner is in sync");
        state.change_view(member.group, |view| match row {
            Some(row) => {
                view.parity[row] = Some(named.host);
                view.learners.retain(|other| other.role != learner);
            }
            None => view.learners.iter_mut().filter(|l| l.role == learner).for_each(|l| l.whole = true),
        });
        if row.is_none() {
            self.ask_for_hand_over(now, state, id);
        }
    }

    /// `teacher` has taught `learner` all of `lesson`. How many have, of the newest one.
    fn note_ended(&mut self, learner: MemberId, teacher: RoleIndex, lesson: Lesson) -> usize {
        let new = || EndedLessons { lesson, teachers: BTreeSet::new() };
        let ended = self.ended.entry(learner).or_insert_with(new);
        // The learner has begun again since: what it was taught in the attempt before counts for nothing.
        if lesson > ended.lesson {
            *ended = new();
        }
        if lesson == ended.lesson {
            ended.teachers.insert(teacher);
        }
        ended.teachers.len()
    }

    /// Whole mirrors whose primaries have not made way yet.
    pub(super) fn ask_for_hand_overs(&mut self, now: Now, state: &mut ClusterState) {
        self.looked = Look::at(now.time, state);
        let whole = state.index().whole().clone();
        self.asked.retain(|member, _| whole.contains(member));
        for member in whole {
            let asked = self.asked.get(&member);
            if asked.is_none_or(|at| now.time.since(*at) >= state.timing().retry_us) {
                self.ask_for_hand_over(now, state, member);
            }
        }
    }

    /// When [`Self::ask_for_hand_overs`] has something to do.
    pub(super) fn hand_overs_due(&self, state: &ClusterState) -> Time {
        self.looked.next(state, self.asked.values().map(|at| *at + state.timing().retry_us))
    }

    /// Asks the primary of `member` to make way for its mirror.
    fn ask_for_hand_over(&mut self, now: Now, state: &mut ClusterState, member: MemberId) {
        let (MemberId { group, role }, rules) = (member, state.rules());
        // A lesson under way would come to nothing with this primary.
        let ready = |view: &&GroupView| {
            let have_ended = view.learners.iter().all(|learner| learner.whole);
            view.is_steady()
                && rules.hand_overs().need_lone_mirror(view.may_hand_over(role))
                && rules.hand_overs().need_ended_lessons(have_ended)
        };
        let Some(view) = state.view(group).filter(ready) else { return };
        let (Some(learner), Some(data)) = (view.learner(role), view.data_role(role)) else { return };
        let (Some(primary), term, since) = (data.primary, data.term, learner.since) else { return };
        self.asked.insert(member, now.time);
        let (asked_at, epoch) = (now.time, state.epoch());
        state.send(primary, FromCoordinator::HandOver { group, role, term, since, asked_at, epoch });
    }

    /// A primary keeps still: its role is fenced, and its mirror takes over.
    pub(super) fn handle_handed_over(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        repairs: &mut Repairs,
        from: HostId,
        handed_over: &HandedOver,
    ) {
        let HandedOver { member, term, since, asked_at } = *handed_over;
        let Some(view) = state.view(member.group) else { return };
        let named = view.data_role(member.role).is_some_and(|r| r.primary == Some(from) && r.term == term);
        let whole = view.learner(member.role).is_some_and(|l| l.whole && l.since == since);
        // Counted from before the primary heard the question, and 2 % less than it keeps still, for clocks drift.
        let still_until = asked_at + state.timing().held_lease_us();
        // Later than that it may serve again, with a lease. Then it is asked anew.
        if !named || !whole || !view.is_steady() || now.time >= still_until {
            return;
        }
        self.asked.remove(&member);
        repairs.hand_over(now, state, member, still_until);
    }
}

/// Mirrors of exchanges that are not to go on leave their views: a node is to be emptied, or the primary's has no memory for the
/// parity, or another parity is missing, which is more important. Losses of the two nodes see to themselves.
fn call_off_exchanges(state: &mut ClusterState) {
    let Some(map) = state.map() else { return };
    let is_off = |view: &GroupView, exchange: &Exchange| {
        let drains = [exchange.from, exchange.to].iter().any(|host| map.layout.is_draining(host.node));
        drains || state.has_refused(exchange.from.node) || view.in_sync().count() < view.m()
    };
    let off = map.groups.iter().flat_map(|view| {
        let off = view.exchanges().filter(|exchange| is_off(view, exchange));
        off.map(|exchange| MemberId { group: view.group, role: exchange.data })
    });
    for member in off.collect::<Vec<_>>() {
        tracing::info!(%member, "its exchange with a parity is called off");
        state.change_view(member.group, |view| view.learners.retain(|l| l.role != member.role));
    }
}

/// Begins to build `member` on `host`: a parity that is missing or that moves, or the mirror of a data role that moves.
/// False, and nothing has changed, where that cannot begin now.
pub(super) fn appoint(state: &mut ClusterState, member: MemberId, host: HostId) -> bool {
    let Some(view) = state.view(member.group) else { return false };
    let is_data = usize::from(member.role.0) < view.k();
    // A parity is worth building if there is something to protect.
    let exists = is_data || state.protection(member.group).has_teachers(view, member.role);
    if !exists
        || !view.may_learn(member.role, host)
        || !view.is_steady()
        || !state.nodes().present().contains(&host)
    {
        return false;
    }
    let since = view.version.next();
    tracing::info!(%member, %host, "learner appointed");
    state.change_view(member.group, |view| {
        view.learners.push(Learner { role: member.role, host, since, whole: false });
    });
    true
}

/// A learner that learns since `since` has no memory.
pub(super) fn handle_gave_up(
    now: Now,
    state: &mut ClusterState,
    from: HostId,
    member: MemberId,
    since: ViewVersion,
) {
    let Some(view) = state.view(member.group) else { return };
    let given_up = |learner: &Learner| {
        (learner.role, learner.host, learner.since) == (member.role, from, since) && !learner.whole
    };
    if view.learners.iter().any(given_up) {
        state.hosting_mut().note_refused(now.time, from.node);
        state.hosting_mut().forget_former(member);
        state.change_view(member.group, |view| view.learners.retain(|learner| !given_up(learner)));
    }
}

/// A stand-in has all its pages.
pub(super) fn handle_repaired(state: &mut ClusterState, from: HostId, member: MemberId, term: Term) {
    let data = state.view(member.group).and_then(|view| view.data_role(member.role));
    if data.is_some_and(|role| decide::is_rebuilding(role, from, term)) {
        tracing::info!(%member, %term, "all pages present");
        state.change_view(member.group, |view| {
            view.data[usize::from(member.role.0)].status = types::RoleStatus::Full;
        });
    }
}
