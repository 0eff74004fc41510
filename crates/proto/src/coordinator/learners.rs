//! New parities for lost ones (group protocol, section 6): who learns, and when a learner counts.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{
    GroupId, GroupView, HostId, MemberId, NodeId, ParityState, RoleIndex, Term, Time, ViewVersion,
};
use wire::message::Lesson;

use super::{Coordinator, decide};
use crate::Now;

/// For how many leases a host that had no memory for a learner gets none.
const PAUSE_LEASES: u64 = 10;

/// What the coordinator keeps about learners.
#[derive(Default)]
pub(super) struct Learners {
    /// Data roles whose lessons for a learner have ended, by the learner; of its newest lesson.
    ended: BTreeMap<MemberId, (Lesson, BTreeSet<RoleIndex>)>,
    /// Hosts without memory, and since when.
    refused: BTreeMap<NodeId, Time>,
}

impl Coordinator {
    /// Appoints learners where parities are missing and nothing else is at stake, one host at a time.
    pub(super) fn appoint_learners(&mut self, now: Now) {
        let pause = PAUSE_LEASES * self.config.timing.node_lease_us;
        self.learners.refused.retain(|_, at| now.time.since(*at) < pause);
        let Some(map) = &self.map else { return };
        let refused = &self.learners.refused;
        let able: Vec<HostId> =
            self.living().into_iter().filter(|host| !refused.contains_key(&host.node)).collect();
        let groups: Vec<GroupId> = map.groups.iter().map(|view| view.group).collect();
        for group in groups {
            let Some(map) = &self.map else { return };
            let Some(view) = map.group(group) else { continue };
            let busy: BTreeSet<NodeId> =
                map.groups.iter().flat_map(GroupView::learners).map(|(_, host, _)| host.node).collect();
            let free: Vec<HostId> = able.iter().copied().filter(|host| !busy.contains(&host.node)).collect();
            let load = decide::member_counts(&map.groups);
            let Some((at, host)) = decide::choose_learner(view, &free, &load) else { continue };
            let since = view.version.next();
            tracing::info!(%group, %host, role = view.k() + at, "learner appointed");
            self.change_view(group, |view| {
                view.parity[at].host = Some(host);
                view.parity[at].state = ParityState::Learner { since };
            });
        }
    }

    /// A primary has taught a learner everything, and waits for it from now on.
    pub(super) fn handle_caught_up(
        &mut self,
        from: HostId,
        member: MemberId,
        term: Term,
        parity: RoleIndex,
        lesson: Lesson,
    ) {
        let Some(view) = self.view(member.group) else { return };
        let state = view.parity_role(parity).map(|role| role.state);
        let current = state == Some(ParityState::Learner { since: lesson.since });
        let primary =
            view.data_role(member.role).is_some_and(|role| role.primary == Some(from) && role.term == term);
        let (k, at) = (view.k(), usize::from(parity.0).wrapping_sub(view.k()));
        if !current || !primary {
            return;
        }
        let learner = MemberId { group: member.group, role: parity };
        let (newest, ended) = self.learners.ended.entry(learner).or_insert((lesson, BTreeSet::new()));
        if lesson > *newest {
            (*newest, *ended) = (lesson, BTreeSet::new());
        }
        if lesson == *newest {
            ended.insert(member.role);
        }
        if ended.len() < k {
            return;
        }
        self.learners.ended.remove(&learner);
        tracing::info!(member = %learner, "learner is in sync");
        self.change_view(member.group, |view| view.parity[at].state = ParityState::InSync);
    }

    /// A learner has no memory.
    pub(super) fn handle_gave_up(&mut self, now: Now, from: HostId, member: MemberId, since: ViewVersion) {
        let Some(view) = self.view(member.group) else { return };
        let Some(role) = view.parity_role(member.role) else { return };
        if role.host == Some(from) && role.state == (ParityState::Learner { since }) {
            self.learners.refused.insert(from.node, now.time);
            self.change_view(member.group, decide::cancel_learners);
        }
    }
}
