//! From a lost primary to a stand-in (group protocol, section 4, F1 to F5).
//!
//! Every step is idempotent and is repeated until all in-sync parities have answered. One that does not answer leaves
//! in_sync when its node's lease runs out; then the recovery starts again at F1 with those that remain.

use std::collections::BTreeMap;

use types::{DataRole, Epoch, GroupId, HostId, MemberId, RoleIndex, RoleStatus, Seq, Term, Time};
use wire::message::FromCoordinator;

use super::state::{ClusterState, Wanted};
use crate::Now;

/// A lost data role on its way.
struct Recovery {
    former: Former,
    /// Of the stand-in: a host that was deposed, because it cannot reach the parities or has no memory, must not become it.
    wanted: Wanted,
    step: Step,
    /// How long the former primary's lease may last, from the answers to F1.
    wait_us: u64,
    /// When the parities were asked last; none if they have to be at once.
    asked_at: Option<Time>,
}

/// What is known of the former primary's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Former {
    /// It has ended: nobody holds its lease.
    Dead,
    /// It may live, and read until its lease ends.
    MayLive,
    /// It has handed the role over, and keeps still until then.
    Still(Time),
}

/// A parity's answer to F1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub received: Seq,
    /// How long ago it acknowledged the former primary's last Frame, in microseconds by its clock.
    pub quiet_us: u64,
}

/// An answer to F3.
pub(super) struct SettledAnswer {
    pub member: MemberId,
    pub term: Term,
    pub parity: RoleIndex,
}

enum Step {
    /// F1: the answers of the in-sync parities.
    Fencing(BTreeMap<RoleIndex, Answer>),
    /// F3: the end of the old stream, and who has settled.
    Settling(Seq, Vec<RoleIndex>),
}

/// An answer to F1.
pub(super) struct FencedAnswer {
    pub member: MemberId,
    pub term: Term,
    pub parity: RoleIndex,
    pub answer: Answer,
}

/// Lost data roles on their way to a stand-in.
#[derive(Default)]
pub(super) struct Recoveries {
    of: BTreeMap<MemberId, Recovery>,
    /// Those of which all have settled, and there was no place for a stand-in as of so many changes ([`ClusterState::changes`]).
    without_place: BTreeMap<MemberId, u64>,
    /// No later than any of the others is to go on by itself.
    next: Option<Time>,
}

impl Recoveries {
    pub(super) fn begin(&mut self, member: MemberId, former: Former, wanted: Wanted) {
        tracing::info!(%member, ?former, "primary lost");
        let step = Step::Fencing(BTreeMap::new());
        let recovery = Recovery { former, wanted, step, wait_us: 0, asked_at: None };
        self.of.insert(member, recovery);
        self.without_place.remove(&member);
        self.next = Some(Time(0));
    }

    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    /// Groups that are no more have nothing to recover.
    pub(super) fn forget_gone(&mut self, state: &ClusterState) {
        self.of.retain(|member, _| state.view(member.group).is_some());
        self.without_place.retain(|member, _| state.view(member.group).is_some());
    }

    /// The set of in-sync parities has changed: all of a group's recoveries start again.
    pub(super) fn restart(&mut self, now: Now, state: &mut ClusterState, group: GroupId) {
        let role = |role| MemberId { group, role: RoleIndex(role) };
        let of_group = self.of.range(role(0)..=role(u8::MAX));
        let members: Vec<MemberId> = of_group.map(|(member, _)| *member).collect();
        for member in members {
            let recovery = self.of.get_mut(&member).expect("just listed");
            // A settled end stays the end: parities that settled would not agree to another one.
            if let Step::Settling(_, settled) = &mut recovery.step {
                settled.clear();
            }
            recovery.asked_at = None;
            self.proceed(now, state, member);
        }
    }

    /// Goes on with those that wait for nothing, or have waited long enough.
    pub(super) fn retry(&mut self, now: Now, state: &mut ClusterState) {
        let due = self.of.keys().filter(|member| self.due_of(state, member) <= now.time);
        for member in due.copied().collect::<Vec<MemberId>>() {
            self.proceed(now, state, member);
        }
        self.next = self.earliest(state);
    }

    /// When a recovery is to go on by itself.
    pub(super) fn due(&self, state: &ClusterState) -> Time {
        let may_have_place = self.without_place.values().any(|known| *known != state.changes());
        if may_have_place { Time(0) } else { self.next.unwrap_or(Time::NEVER) }
    }

    fn earliest(&self, state: &ClusterState) -> Option<Time> {
        let asked = self.of.keys().filter(|member| !self.without_place.contains_key(member));
        asked.map(|member| self.due_of(state, member)).min()
    }

    /// When that of `member` is to go on, if nobody answers.
    fn due_of(&self, state: &ClusterState, member: &MemberId) -> Time {
        let asked_at = self.of.get(member).and_then(|recovery| recovery.asked_at);
        match (self.without_place.get(member), asked_at) {
            (Some(known), _) if *known == state.changes() => Time::NEVER,
            (Some(_), _) | (None, None) => Time(0),
            (None, Some(at)) => at + state.timing().retry_us,
        }
    }

    /// Takes the next step if all have answered, else asks those that have not, once per retry time-out.
    fn proceed(&mut self, now: Now, state: &mut ClusterState, member: MemberId) {
        let Some(term) = fenced_term(state, member) else {
            // It is served, lost or begun anew by now.
            self.remove(&member);
            return;
        };
        self.without_place.remove(&member);
        let Some(recovery) = self.of.get_mut(&member) else { return };
        let witnesses = witnesses(state, member);
        recovery.find_end(now, state, member, &witnesses);
        // Before anybody is asked: parities that left meanwhile may have been the last that lacked an answer.
        if let Some(end) = recovery.settled_end(&witnesses) {
            return self.appoint(state, member, end);
        }
        if recovery.asked_at.is_some_and(|at| now.time.since(at) < state.timing().retry_us) {
            return;
        }
        recovery.asked_at = Some(now.time);
        let again = now.time + state.timing().retry_us;
        self.next = Some(self.next.map_or(again, |next| next.min(again)));
        for (host, message) in recovery.questions(member, term, state.epoch(), &witnesses) {
            state.send(host, message);
        }
    }

    /// An answer to F1. False if it is none to a recovery under way.
    pub(super) fn handle_fenced(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        from: HostId,
        fenced: &FencedAnswer,
    ) -> bool {
        let FencedAnswer { member, term, parity, answer } = *fenced;
        // None to a recovery: of another term, or of who is no witness any more. It may still prove that a parity
        // lives.
        if !is_current(state, from, member, term, parity) {
            return false;
        }
        if let Some(Recovery { step: Step::Fencing(answers), .. }) = self.of.get_mut(&member) {
            answers.insert(parity, answer);
            self.proceed(now, state, member);
        }
        true
    }

    /// An answer to F3.
    pub(super) fn handle_settled(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        from: HostId,
        answer: &SettledAnswer,
    ) {
        let SettledAnswer { member, term, parity } = *answer;
        if !is_current(state, from, member, term, parity) {
            return;
        }
        if let Some(Recovery { step: Step::Settling(_, settled), .. }) = self.of.get_mut(&member)
            && !settled.contains(&parity)
        {
            settled.push(parity);
            self.proceed(now, state, member);
        }
    }

    /// F4 and F5: the stream has its end, a stand-in goes on from there. Without a place for one the role is an orphan
    /// until somebody comes.
    fn appoint(&mut self, state: &mut ClusterState, member: MemberId, end: Seq) {
        let Some(view) = state.view(member.group) else { return };
        let Some(recovery) = self.of.get_mut(&member) else { return };
        let wait_us = recovery.wait_us;
        let candidates = state.candidates(recovery.wanted);
        let is_here = |host: &HostId| candidates.iter().any(|node| node.host == *host);
        // It has everything, so there is nothing to decode.
        let mirror = view.mirror(member.role).filter(is_here);
        let stand_in = mirror.or_else(|| cluster::choose_stand_in(view, &candidates, state.index().roles()));
        let at = usize::from(member.role.0);
        let Some(host) = stand_in else {
            if view.data[at].status == RoleStatus::Fenced {
                // On record, so that a successor goes on from this very end: parities have settled there.
                state.change_view(member.group, |view| view.data[at].status = RoleStatus::Orphan(end));
            }
            self.without_place.insert(member, state.changes());
            return;
        };
        self.remove(&member);
        tracing::info!(%member, %host, end = %end, "stand-in appointed");
        state.change_view(member.group, |view| {
            let role = &mut view.data[at];
            role.primary = Some(host);
            role.status = RoleStatus::Rebuilding { start: end, wait_us };
            // It was fenced by all whose acks it needed; whoever follows this one waits for a lease, and so for its
            // own.
            view.former.retain(|former| former.role != member.role);
            view.learners.retain(|learner| learner.role != member.role);
        });
    }

    fn remove(&mut self, member: &MemberId) {
        self.of.remove(member);
        self.without_place.remove(member);
    }

    /// That what is recovered is a data role of the map, and that no role waits in vain.
    pub(super) fn check_invariants(&self, state: &ClusterState) {
        let earliest = self.earliest(state).unwrap_or(Time::NEVER);
        assert!(self.next.unwrap_or(Time::NEVER) <= earliest, "a recovery is forgotten: {earliest:?}");
        for member in self.of.keys() {
            let role = state.view(member.group).and_then(|view| view.data_role(member.role));
            assert!(role.is_some(), "{member} is being recovered, and is no data role");
        }
        for member in roles_without_primary(state) {
            assert!(self.of.contains_key(&member), "{member} has no primary, and is not being recovered");
        }
    }
}

/// The data roles that are to have a stand-in.
pub(super) fn roles_without_primary(state: &ClusterState) -> impl Iterator<Item = MemberId> + '_ {
    let is_meant = |data: &DataRole| matches!(data.status, RoleStatus::Fenced | RoleStatus::Orphan(_));
    state.map().into_iter().flat_map(move |map| map.members_that(is_meant))
}

/// The parities that say how a role's stream ends.
type Witnesses = [(RoleIndex, HostId)];

impl Recovery {
    /// F2: where the stream ends, once all have answered.
    fn find_end(&mut self, now: Now, state: &ClusterState, member: MemberId, witnesses: &Witnesses) {
        let Step::Fencing(answers) = &self.step else { return };
        let all: Option<Vec<Answer>> = witnesses.iter().map(|(role, _)| answers.get(role).copied()).collect();
        let Some(all) = all else { return };
        // What all have is all that may have been committed; what one lacks was never acknowledged.
        let end = state.rules().common_end(all.iter().map(|answer| answer.received));
        let Some(end) = end else { return };
        // A lease needs the acks of all parities, so it ends when that of the quietest one does.
        let quiet_us = all.iter().map(|answer| answer.quiet_us).max().unwrap_or(0);
        self.wait_us = match self.former {
            Former::Dead => 0,
            // All of them were fenced while it kept still.
            Former::Still(until) if now.time <= until => 0,
            Former::Still(_) | Former::MayLive => lease_left_us(state.timing().read_lease_us, quiet_us),
        };
        // A parity that has not heard yet that the role began anew answers with numbers of an earlier life.
        let data = state.view(member.group).and_then(|view| view.data_role(member.role));
        let first = data.map_or(Seq(0), DataRole::first_seq);
        // An orphan's stream has its end, whoever found it.
        let end = orphan_end(state, member).unwrap_or(end).max(first);
        // From here on the end is fixed, whatever else is heard: parities apply up to it.
        self.step = Step::Settling(end, Vec::new());
        self.asked_at = None;
    }

    /// The end of the stream, if all have settled it.
    fn settled_end(&self, witnesses: &Witnesses) -> Option<Seq> {
        let Step::Settling(end, settled) = &self.step else { return None };
        witnesses.iter().all(|(role, _)| settled.contains(role)).then_some(*end)
    }

    /// What those are asked that have not answered.
    fn questions(
        &self,
        member: MemberId,
        term: Term,
        epoch: Epoch,
        witnesses: &Witnesses,
    ) -> Vec<(HostId, FromCoordinator)> {
        let MemberId { group, role } = member;
        let question = |&(parity, host): &(RoleIndex, HostId)| match &self.step {
            Step::Fencing(answers) => (!answers.contains_key(&parity))
                .then_some((host, FromCoordinator::Fence { group, role, term, parity, epoch })),
            Step::Settling(upto, settled) => (!settled.contains(&parity))
                .then_some((host, FromCoordinator::Settle { group, role, term, parity, upto: *upto, epoch })),
        };
        witnesses.iter().filter_map(question).collect()
    }
}

/// Who can say how the role's stream ends.
fn witnesses(state: &ClusterState, member: MemberId) -> Vec<(RoleIndex, HostId)> {
    let protection = state.protection(member.group);
    state.view(member.group).map(|view| protection.witnesses(view, member.role).collect()).unwrap_or_default()
}

/// The term of a role that is being recovered; none if it is not, any more.
fn fenced_term(state: &ClusterState, member: MemberId) -> Option<Term> {
    let role = state.view(member.group)?.data_role(member.role)?;
    matches!(role.status, RoleStatus::Fenced | RoleStatus::Orphan(_)).then_some(role.term)
}

/// Where the stream of a settled role without a primary ends.
fn orphan_end(state: &ClusterState, member: MemberId) -> Option<Seq> {
    match state.view(member.group)?.data_role(member.role)?.status {
        RoleStatus::Orphan(end) => Some(end),
        RoleStatus::Full
        | RoleStatus::Fenced
        | RoleStatus::Rebuilding { .. }
        | RoleStatus::Lost
        | RoleStatus::Accepted => None,
    }
}

/// Whether an answer is of the present term and from the host that the view names.
fn is_current(state: &ClusterState, from: HostId, member: MemberId, term: Term, parity: RoleIndex) -> bool {
    fenced_term(state, member) == Some(term) && witnesses(state, member).contains(&(parity, from))
}

/// What may be left of a lease when a parity has been quiet for so long; 2 % more for clocks that drift against each
/// other.
pub(super) fn lease_left_us(lease_us: u64, quiet_us: u64) -> u64 {
    let lease_us = lease_us + lease_us / 50;
    lease_us.saturating_sub(quiet_us - quiet_us / 50)
}
