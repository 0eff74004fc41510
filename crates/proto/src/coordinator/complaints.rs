//! Primaries that wait in vain for their parities: who is it that is cut off?
//!
//! A full primary that is left enough parities is obeyed, and the silent ones are removed. A primary that can be deposed at
//! less cost than a parity can be missed (it is full and all its parities are silent, or it is a stand-in with pages to come)
//! is deposed if the parities that it complains of prove to live.
//!
//! Neither happens where the group could not bear it if all those had ended who are quiet at the moment: parities that are slow because two
//! nodes have just died are what these two are made good by.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use types::{GroupView, HostId, Learner, MemberId, RoleIndex, RoleStatus, Term, Time, ViewVersion};
use wire::message::FromCoordinator;

use super::decide;
use super::repairs::Repairs;
use super::state::ClusterState;
use crate::Now;
use crate::rules::SilenceRules;

/// A primary waits in vain for some of its parities.
pub(super) struct Stalled {
    pub member: MemberId,
    pub term: Term,
    /// The view that it has.
    pub view: ViewVersion,
    pub silent: SmallVec<[(RoleIndex, HostId); 4]>,
}

/// Primaries that complained, and may be cut off themselves.
#[derive(Default)]
pub(super) struct Complaints {
    of: BTreeMap<MemberId, Complaint>,
}

/// A primary that may be the one that is cut off.
struct Complaint {
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

impl Complaints {
    pub(super) fn forget_all(&mut self) {
        self.of.clear();
    }

    /// Groups that are no more have nobody who complains.
    pub(super) fn forget_gone(&mut self, state: &ClusterState) {
        self.of.retain(|member, _| state.view(member.group).is_some());
    }

    /// A primary complains.
    pub(super) fn handle_stalled(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        repairs: &mut Repairs,
        from: HostId,
        stalled: &Stalled,
    ) {
        let Stalled { member, term, view: version, ref silent } = *stalled;
        let Some(view) = state.view(member.group) else { return };
        let named = view.data_role(member.role).is_some_and(|r| r.primary == Some(from) && r.term == term);
        // It may complain of what a newer view has seen to.
        if !named || view.version != version {
            return state.send_view(from, member.group);
        }
        // First: nobody counts on learners, so nothing has to be proved to take them out.
        if view.learners.iter().any(|learner| silent.contains(&(learner.role, learner.host))) {
            return remove_learners(state, member, silent);
        }
        let protection = state.protection(member.group);
        let in_sync: Vec<(RoleIndex, HostId)> = protection.in_sync_of(view, member.role).collect();
        let silent: Vec<(RoleIndex, HostId)> =
            in_sync.iter().filter(|parity| silent.contains(parity)).copied().collect();
        if silent.is_empty() {
            return;
        }
        let mut without = view.clone();
        remove_parities(&mut without, &silent);
        // One that answers shows that the primary is not cut off; and without the silent the group must still be
        // repairable.
        let is_repairable = !state.is_beyond_repair(&without_the_quiet(now, state, without));
        let enough_left = in_sync.len() > silent.len() && is_repairable;
        let is_full = view.data_role(member.role).is_some_and(|role| role.status == RoleStatus::Full);
        // To depose a full primary all its parities have to prove that they live. A stand-in costs nothing: those that
        // it misses are enough.
        let suspect =
            Suspect { member, host: from, parities: if is_full { in_sync } else { silent.clone() } };
        if enough_left && (is_full || self.is_to_be_believed(now, state, &suspect)) {
            tracing::info!(%member, ?silent, "silent parities removed");
            state.change_view(member.group, |view| remove_parities(view, &silent));
            return repairs.after_loss(now, state, member.group);
        }
        self.ask_parities(now, state, suspect);
    }

    /// Whether the complaint of a stand-in with pages to come is obeyed: its parities did not prove to live for a whole
    /// lease, the one before it complained too, or it can't be deposed. Deposing it costs nothing, a parity is redundancy.
    fn is_to_be_believed(&self, now: Now, state: &ClusterState, suspect: &Suspect) -> bool {
        if !self.may_depose(now, state, suspect) {
            return true;
        }
        let lease = state.lease_us();
        let Some(complaint) = self.of.get(&suspect.member) else { return false };
        let age = now.time.since(complaint.since);
        if complaint.host == suspect.host {
            (lease..2 * lease).contains(&age)
        } else {
            age < SECOND_COMPLAINT_LEASES * lease
        }
    }

    /// If the parities that a primary waits for prove to be alive it is the primary that is cut off: another takes over. If
    /// they do not, their leases will tell. The proof is an answer to a question that is asked once the complaint has
    /// lasted; a heartbeat may be the last one of a parity that has died since.
    fn ask_parities(&mut self, now: Now, state: &mut ClusterState, suspect: Suspect) {
        let (lease, member, host) = (state.lease_us(), suspect.member, suspect.host);
        let complaint = self.of.get_mut(&member);
        let Some(complaint) = complaint.filter(|c| c.host == host && now.time.since(c.since) < 2 * lease)
        else {
            let suspected = suspect.parities;
            let complaint =
                Complaint { host, since: now.time, suspected, proven: Vec::new(), deposed: false };
            self.of.insert(member, complaint);
            return;
        };
        if now.time.since(complaint.since) < lease / 2 {
            return;
        }
        // Only what answers this question is proof: a parity may have died since it gave the last one.
        complaint.proven.clear();
        complaint.suspected.clone_from(&suspect.parities);
        if !self.may_depose(now, state, &suspect) {
            return;
        }
        let MemberId { group, role } = member;
        let Some(term) = state.view(group).and_then(|view| view.data_role(role)).map(|role| role.term) else {
            return;
        };
        let epoch = state.epoch();
        for (parity, host) in suspect.parities {
            // Of the term that is: this changes nothing, and is answered.
            state.send(host, FromCoordinator::Fence { group, role, term, parity, epoch });
        }
    }

    /// The parity `from` has answered although its primary may find it silent. If all that the primary finds silent have, it is
    /// the primary that is cut off: the host to depose.
    pub(super) fn handle_proof_of_life(
        &mut self,
        now: Now,
        state: &ClusterState,
        member: MemberId,
        from: (RoleIndex, HostId),
    ) -> Option<HostId> {
        let view = state.view(member.group)?;
        let in_sync: Vec<(RoleIndex, HostId)> =
            state.protection(member.group).in_sync_of(view, member.role).collect();
        let primary = view.data_role(member.role).and_then(|role| role.primary);
        let complaint = self.of.get_mut(&member)?;
        if !in_sync.contains(&from) || primary != Some(complaint.host) {
            return None;
        }
        if !complaint.proven.contains(&from.0) {
            complaint.proven.push(from.0);
        }
        let suspect = Suspect { member, host: complaint.host, parities: complaint.suspected.clone() };
        let proven =
            |parity: &(RoleIndex, HostId)| complaint.proven.contains(&parity.0) && in_sync.contains(parity);
        if !suspect.parities.iter().all(proven) || !self.may_depose(now, state, &suspect) {
            return None;
        }
        self.of.get_mut(&member)?.deposed = true;
        Some(suspect.host)
    }

    /// Whether a primary may be deposed if the parities that it finds silent live.
    fn may_depose(&self, now: Now, state: &ClusterState, suspect: &Suspect) -> bool {
        let (lease, member) = (state.lease_us(), suspect.member);
        let Some(view) = state.view(member.group) else { return false };
        // A parity on the node of the primary itself proves nothing of the network between nodes.
        let elsewhere = suspect.parities.iter().all(|(_, parity)| parity.node != suspect.host.node);
        // A primary that has company in its complaint is not the one that is cut off.
        let alone = !self.of.iter().any(|(other, complaint)| {
            other.group == member.group
                && other.role != member.role
                && !complaint.deposed
                && now.time.since(complaint.since) < 2 * lease
        });
        let protection = state.protection(member.group);
        let mut without = view.clone();
        decide::fence(&mut without, &protection, member.role);
        elsewhere && alone && !state.is_beyond_repair(&without_the_quiet(now, state, without))
    }
}

/// A primary that may be cut off, and the parities whose answers would show that it is.
struct Suspect {
    member: MemberId,
    host: HostId,
    parities: Vec<(RoleIndex, HostId)>,
}

/// Silent learners leave. Nobody counts on them yet; if one came back, it is no better than others.
fn remove_learners(state: &mut ClusterState, member: MemberId, silent: &[(RoleIndex, HostId)]) {
    for (role, _) in silent {
        state.hosting_mut().forget_former(MemberId { group: member.group, role: *role });
    }
    let is_silent = |learner: &Learner| silent.contains(&(learner.role, learner.host));
    state.change_view(member.group, |view| view.learners.retain(|learner| !is_silent(learner)));
}

/// `view` without what is on hosts that may have ended, as their leases will tell: where they have, what is taken out now would be missed.
fn without_the_quiet(now: Now, state: &ClusterState, mut view: GroupView) -> GroupView {
    let (rules, protection) = (state.rules(), state.protection(view.group));
    let quiet = state.nodes().quiet(now.time, state.lease_us() / 2);
    for host in quiet.into_iter().filter(|_| SilenceRules::of(rules).may_be_an_end()) {
        if view.keepers().any(|keeper| keeper == host) {
            decide::remove_host(rules, &mut view, &protection, host);
        }
    }
    view
}

fn remove_parities(view: &mut GroupView, parities: &[(RoleIndex, HostId)]) {
    let k = view.k();
    for (role, _) in parities {
        view.parity[usize::from(role.0) - k] = None;
    }
}
