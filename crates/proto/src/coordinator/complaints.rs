//! Primaries that wait in vain for their parities: who is it that is cut off?
//!
//! A full primary that is left enough parities is obeyed, and the silent ones are removed. A primary that can be deposed at
//! less cost than a parity can be missed (it is full and all its parities are silent, or it is a stand-in with pages to come)
//! is deposed if the parities that it complains of prove to live.

use cluster::{GroupView, HostId, Learner, MemberId, RoleIndex, RoleStatus, Term, Time, ViewVersion};
use wire::message::FromCoordinator;

use super::recovery::Former;
use super::{Coordinator, decide};
use crate::Now;

/// A primary that may be the one that is cut off.
pub(super) struct Complaint {
    host: HostId,
    since: Time,
    /// Parities whose answer shows that it is the primary.
    suspected: Vec<(RoleIndex, HostId)>,
    /// Those of them that have answered since they were last asked.
    proven: Vec<RoleIndex>,
    /// They have, and it was deposed.
    deposed: bool,
}

/// For how many leases a stand-in's complaint is remembered: if the next one complains too it is the parity.
const SECOND_COMPLAINT_LEASES: u64 = 10;

impl Coordinator {
    /// A primary waits in vain for some of its parities.
    pub(super) fn handle_stalled(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        (term, version): (Term, ViewVersion),
        silent: &[(RoleIndex, HostId)],
    ) {
        // Complaints from while the coordinator was away may be long outdated; a primary repeats what still holds.
        if self.attention.awake_us(now.time) < self.config.timing.retry_us {
            return;
        }
        let Some(view) = self.view(member.group) else { return };
        let named = view.data_role(member.role).is_some_and(|r| r.primary == Some(from) && r.term == term);
        if !named || view.version != version {
            return self.send_view(from, member.group);
        }
        let is_silent = |learner: &Learner| silent.contains(&(learner.role, learner.host));
        if view.learners.iter().any(is_silent) {
            // Nobody counts on it yet. If it came back, it is no better than others.
            for (role, _) in silent {
                self.learners.forget_former(MemberId { group: member.group, role: *role });
            }
            return self
                .change_view(member.group, |view| view.learners.retain(|learner| !is_silent(learner)));
        }
        let silent: Vec<(RoleIndex, HostId)> =
            view.in_sync().filter(|parity| silent.contains(parity)).collect();
        let in_sync: Vec<(RoleIndex, HostId)> = view.in_sync().collect();
        let left = in_sync.len() - silent.len();
        if silent.is_empty() {
            return;
        }
        let enough_left = left > 0 && left >= view.roles_in_play();
        let is_full = view.data_role(member.role).is_some_and(|role| role.status == RoleStatus::Full);
        let suspected = if is_full { in_sync } else { silent.clone() };
        if enough_left && (is_full || self.is_to_be_believed(now, from, member, &suspected)) {
            tracing::info!(%member, ?silent, "silent parities removed");
            self.change_view(member.group, |view| remove_parities(view, &silent));
            return self.after_loss(now, member.group);
        }
        self.depose_if_parities_live(now, from, member, suspected);
    }

    /// Whether the complaint of a stand-in with pages to come is obeyed: its parities did not prove to live for a whole
    /// lease, the one before it complained too, or it can't be deposed. Deposing it costs nothing, a parity is redundancy.
    fn is_to_be_believed(
        &self,
        now: Now,
        from: HostId,
        member: MemberId,
        suspected: &[(RoleIndex, HostId)],
    ) -> bool {
        if !self.may_depose(now, from, member, suspected) {
            return true;
        }
        let lease = self.config.timing.node_lease_us;
        let Some(complaint) = self.complaints.get(&member) else { return false };
        let age = now.time.since(complaint.since);
        if complaint.host == from {
            (lease..2 * lease).contains(&age)
        } else {
            age < SECOND_COMPLAINT_LEASES * lease
        }
    }

    /// If the parities that a primary waits for prove to be alive it is the primary that is cut off: another takes over. If
    /// they do not, their leases will tell. The proof is an answer to a question that is asked once the complaint has
    /// lasted; a heartbeat may be the last one of a parity that has died since.
    fn depose_if_parities_live(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        suspected: Vec<(RoleIndex, HostId)>,
    ) {
        let lease = self.config.timing.node_lease_us;
        let complaint = self.complaints.get_mut(&member);
        let Some(complaint) = complaint.filter(|c| c.host == from && now.time.since(c.since) < 2 * lease)
        else {
            let complaint =
                Complaint { host: from, since: now.time, suspected, proven: Vec::new(), deposed: false };
            self.complaints.insert(member, complaint);
            return;
        };
        if now.time.since(complaint.since) < lease / 2 {
            return;
        }
        complaint.proven.clear();
        complaint.suspected.clone_from(&suspected);
        if !self.may_depose(now, from, member, &suspected) {
            return;
        }
        let MemberId { group, role } = member;
        let Some(term) = self.view(group).and_then(|view| view.data_role(role)).map(|role| role.term) else {
            return;
        };
        let epoch = self.epoch;
        for (parity, host) in suspected {
            // Of the term that is: this changes nothing, and is answered.
            self.send(host, FromCoordinator::Fence { group, role, term, parity, epoch });
        }
    }

    /// A parity has answered although its primary finds it silent.
    pub(super) fn handle_proof_of_life(
        &mut self,
        now: Now,
        from: HostId,
        member: MemberId,
        parity: RoleIndex,
    ) {
        let Some(view) = self.view(member.group) else { return };
        let in_sync: Vec<(RoleIndex, HostId)> = view.in_sync().collect();
        let primary = view.data_role(member.role).and_then(|role| role.primary);
        let Some(complaint) = self.complaints.get_mut(&member) else { return };
        if !in_sync.contains(&(parity, from)) || primary != Some(complaint.host) {
            return;
        }
        if !complaint.proven.contains(&parity) {
            complaint.proven.push(parity);
        }
        let (host, suspected) = (complaint.host, complaint.suspected.clone());
        let proven =
            |parity: &(RoleIndex, HostId)| complaint.proven.contains(&parity.0) && in_sync.contains(parity);
        if !suspected.iter().all(proven) || !self.may_depose(now, host, member, &suspected) {
            return;
        }
        self.depose(now, host, member);
    }

    fn depose(&mut self, now: Now, host: HostId, member: MemberId) {
        tracing::info!(%member, %host, "primary is cut off from its parities; deposing it");
        if let Some(complaint) = self.complaints.get_mut(&member) {
            complaint.deposed = true;
        }
        self.change_view(member.group, |view| {
            decide::fence(view, member.role);
            decide::cancel_learners(view);
        });
        self.begin_recovery(member, Former::MayLive, Some(host));
        self.restart_recoveries(now, member.group);
    }

    /// Whether `member`'s primary on `host` may be deposed if the parities that it finds silent live.
    fn may_depose(
        &self,
        now: Now,
        host: HostId,
        member: MemberId,
        suspected: &[(RoleIndex, HostId)],
    ) -> bool {
        let lease = self.config.timing.node_lease_us;
        let Some(view) = self.view(member.group) else { return false };
        let elsewhere = suspected.iter().all(|(_, parity)| parity.node != host.node);
        // A primary that has company in its complaint is not the one that is cut off.
        let alone = !self.complaints.iter().any(|(other, complaint)| {
            other.group == member.group
                && other.role != member.role
                && !complaint.deposed
                && now.time.since(complaint.since) < 2 * lease
        });
        let full = view.data_role(member.role).is_some_and(|role| role.status == RoleStatus::Full);
        let in_play = view.roles_in_play() + usize::from(full);
        elsewhere && alone && in_play <= view.in_sync().count()
    }
}

fn remove_parities(view: &mut GroupView, parities: &[(RoleIndex, HostId)]) {
    let k = view.k();
    for (role, _) in parities {
        view.parity[usize::from(role.0) - k] = None;
    }
}
