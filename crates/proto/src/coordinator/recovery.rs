//! From a lost primary to a stand-in (group protocol, section 4, F1 to F5).
//!
//! Every step is idempotent and is repeated until all in-sync parities have answered. One that does not answer leaves
//! in_sync when its node's lease runs out; then the recovery starts again at F1 with those that remain.

use std::collections::BTreeMap;

use cluster::{HostId, MemberId, RoleIndex, RoleStatus, Seq, Term, Time};
use wire::message::FromCoordinator;

use super::Coordinator;
use crate::Now;

/// A lost data role on its way.
pub(super) struct Recovery {
    former: Former,
    /// A living host that must not become the stand-in: it was deposed because it cannot reach the parities.
    avoid: Option<HostId>,
    step: Step,
    /// How long the former primary's lease may last, from the answers to F1.
    wait_us: u64,
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

enum Step {
    /// F1: the answers of the in-sync parities.
    Fencing(BTreeMap<RoleIndex, Answer>),
    /// F3: the end of the old stream, and who has settled.
    Settling(Seq, Vec<RoleIndex>),
}

impl Coordinator {
    pub(super) fn begin_recovery(&mut self, member: MemberId, former: Former, avoid: Option<HostId>) {
        tracing::info!(%member, ?former, "primary lost");
        let step = Step::Fencing(BTreeMap::new());
        self.recoveries.insert(member, Recovery { former, avoid, step, wait_us: 0, asked_at: None });
    }

    /// The set of in-sync parities has changed: all of a group's recoveries start again.
    pub(super) fn restart_recoveries(&mut self, now: Now, group: cluster::GroupId) {
        let members: Vec<MemberId> =
            self.recoveries.keys().filter(|member| member.group == group).copied().collect();
        for member in members {
            let recovery = self.recoveries.get_mut(&member).expect("just listed");
            // A settled end stays the end: parities that settled would not agree to another one.
            if let Step::Settling(_, settled) = &mut recovery.step {
                settled.clear();
            }
            recovery.asked_at = None;
            self.proceed(now, member);
        }
    }

    pub(super) fn retry_recoveries(&mut self, now: Now) {
        let members: Vec<MemberId> = self.recoveries.keys().copied().collect();
        for member in members {
            self.proceed(now, member);
        }
    }

    /// Who can say how the role's stream ends.
    fn witnesses(&self, member: MemberId) -> Vec<(RoleIndex, HostId)> {
        self.view(member.group).map(|view| view.witnesses(member.role).collect()).unwrap_or_default()
    }

    /// Takes the next step if all have answered, else asks those that have not, once per retry time-out.
    fn proceed(&mut self, now: Now, member: MemberId) {
        let witnesses = self.witnesses(member);
        let Some(term) = self.fenced_term(member) else {
            self.recoveries.remove(&member);
            return;
        };
        let (retry_us, epoch) = (self.config.timing.retry_us, self.epoch);
        // An orphan's stream has its end, whoever found it.
        let settled_end = self.orphan_end(member);
        // A parity that has not heard yet that the role began anew answers with numbers of an earlier life.
        let first = self.view(member.group).and_then(|view| view.data_role(member.role));
        let first = first.map_or(Seq(0), cluster::DataRole::first_seq);
        let Some(recovery) = self.recoveries.get_mut(&member) else { return };
        if let Step::Fencing(received) = &recovery.step
            && !witnesses.is_empty()
            && witnesses.iter().all(|(role, _)| received.contains_key(role))
        {
            let answers = witnesses.iter().map(|(role, _)| received[role].received);
            // F2: what all have is all that may have been committed; what one lacks was never acknowledged.
            let end =
                if crate::planted(crate::Bug::LostTailAfterTakeover) { answers.max() } else { answers.min() };
            let end = settled_end.or(end).max(Some(first));
            // A lease needs the acks of all parities, so it ends when that of the quietest one does.
            let quiet_us = witnesses.iter().map(|(role, _)| received[role].quiet_us).max().unwrap_or(0);
            recovery.wait_us = match recovery.former {
                Former::Dead => 0,
                // All of them were fenced while it kept still.
                Former::Still(until) if now.time <= until => 0,
                Former::Still(_) | Former::MayLive => {
                    lease_left_us(self.config.timing.read_lease_us, quiet_us)
                }
            };
            recovery.step = Step::Settling(end.expect("there are witnesses"), Vec::new());
            recovery.asked_at = None;
        }
        if let Step::Settling(end, settled) = &recovery.step
            && witnesses.iter().all(|(role, _)| settled.contains(role))
        {
            let end = *end;
            return self.appoint(member, end);
        }
        if recovery.asked_at.is_some_and(|at| now.time.since(at) < retry_us) {
            return;
        }
        recovery.asked_at = Some(now.time);
        let MemberId { group, role } = member;
        let messages: Vec<(HostId, FromCoordinator)> = match &recovery.step {
            Step::Fencing(received) => witnesses
                .iter()
                .filter(|(parity, _)| !received.contains_key(parity))
                .map(|&(parity, host)| (host, FromCoordinator::Fence { group, role, term, parity, epoch }))
                .collect(),
            Step::Settling(upto, settled) => witnesses
                .iter()
                .filter(|(parity, _)| !settled.contains(parity))
                .map(|&(parity, host)| {
                    (host, FromCoordinator::Settle { group, role, term, parity, upto: *upto, epoch })
                })
                .collect(),
        };
        for (host, message) in messages {
            self.send(host, message);
        }
    }

    /// The term of a role that is being recovered; none if it is not, any more.
    fn fenced_term(&self, member: MemberId) -> Option<Term> {
        let role = self.view(member.group)?.data_role(member.role)?;
        matches!(role.status, RoleStatus::Fenced | RoleStatus::Orphan(_)).then_some(role.term)
    }

    /// Where the stream of a settled role without a primary ends.
    fn orphan_end(&self, member: MemberId) -> Option<Seq> {
        match self.view(member.group)?.data_role(member.role)?.status {
            RoleStatus::Orphan(end) => Some(end),
            _ => None,
        }
    }

    /// Whether an answer is of the present term and from the host that the view names.
    fn is_current(&self, from: HostId, member: MemberId, term: Term, parity: RoleIndex) -> bool {
        self.fenced_term(member) == Some(term) && self.witnesses(member).contains(&(parity, from))
    }

    pub(super) fn handle_fenced(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        term: Term,
        (parity, answer): (RoleIndex, Answer),
    ) {
        if !self.is_current(from, member, term, parity) {
            let serving = self.view(member.group).and_then(|view| view.data_role(member.role));
            if serving.is_some_and(|role| role.primary.is_some() && role.term == term) {
                self.handle_proof_of_life(now, from, member, parity);
            }
            return;
        }
        if let Some(Recovery { step: Step::Fencing(answers), .. }) = self.recoveries.get_mut(&member) {
            answers.insert(parity, answer);
            self.proceed(now, member);
        }
    }

    pub(super) fn handle_settled(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        term: Term,
        parity: RoleIndex,
    ) {
        if !self.is_current(from, member, term, parity) {
            return;
        }
        if let Some(Recovery { step: Step::Settling(_, settled), .. }) = self.recoveries.get_mut(&member)
            && !settled.contains(&parity)
        {
            settled.push(parity);
            self.proceed(now, member);
        }
    }

    /// F4 and F5: the stream has its end, a stand-in goes on from there. Without a place for one the role is an orphan,
    /// and the next tick looks again.
    fn appoint(&mut self, member: MemberId, end: Seq) {
        let Some(map) = &self.map else { return };
        let Some(view) = map.group(member.group) else { return };
        let load = cluster::role_counts(&map.groups);
        let avoid = self.recoveries.get(&member).and_then(|recovery| recovery.avoid);
        let asked: Vec<HostId> =
            self.nodes.present().into_iter().filter(|host| Some(*host) != avoid).collect();
        let mut living = self.plan_nodes();
        living.retain(|node| asked.contains(&node.host));
        let mirror = view.mirror(member.role).filter(|host| asked.contains(host));
        let stand_in = mirror.or_else(|| cluster::choose_stand_in(view, &living, &load));
        let at = usize::from(member.role.0);
        let Some(host) = stand_in else {
            if view.data[at].status == RoleStatus::Fenced {
                self.change_view(member.group, |view| view.data[at].status = RoleStatus::Orphan(end));
            }
            return;
        };
        let Some(recovery) = self.recoveries.remove(&member) else { return };
        let wait_us = recovery.wait_us;
        tracing::info!(%member, %host, end = %end, "stand-in appointed");
        self.change_view(member.group, |view| {
            let role = &mut view.data[at];
            role.primary = Some(host);
            role.status = RoleStatus::Rebuilding { start: end, wait_us };
            // It was fenced by all whose acks it needed; whoever follows this one waits for a lease, and so for its own.
            view.former.retain(|former| former.role != member.role);
            view.learners.retain(|learner| learner.role != member.role);
        });
    }
}

/// What may be left of a lease when a parity has been quiet for so long; 2 % more for clocks that drift against each
/// other.
pub(super) fn lease_left_us(lease_us: u64, quiet_us: u64) -> u64 {
    let lease_us = lease_us + lease_us / 50;
    lease_us.saturating_sub(quiet_us - quiet_us / 50)
}
