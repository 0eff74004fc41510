//! What hosts were asked before: who had no memory for a learner, and who has had a parity that is missing now.

use std::collections::BTreeMap;

use types::{GroupId, GroupView, HostId, MemberId, NodeId, RoleIndex, Time};

use crate::Timing;

/// For how many leases a host that had no memory for a learner gets none.
const PAUSE_LEASES: u64 = 10;

/// See the module.
pub(super) struct Hosting {
    /// Hosts without memory, and since when.
    refused: BTreeMap<NodeId, Time>,
    /// Who served a parity that is missing now.
    former: BTreeMap<MemberId, FormerHost>,
    /// When something is too long ago, at the earliest.
    due: Time,
}

impl Default for Hosting {
    fn default() -> Self {
        Self { refused: BTreeMap::new(), former: BTreeMap::new(), due: Time::NEVER }
    }
}

struct FormerHost {
    host: HostId,
    /// Since when that is known; it is remembered no longer than it may have its bytes.
    since: Option<Time>,
}

impl Hosting {
    /// Whether `node` had no memory for a learner lately.
    pub(super) fn has_refused(&self, node: NodeId) -> bool {
        self.refused.contains_key(&node)
    }

    pub(super) fn note_refused(&mut self, now: Time, node: NodeId) {
        self.refused.insert(node, now);
        // When it will be is found out at the next look.
        self.due = Time(0);
    }

    /// Parities that hosts had until they were removed, and may still have the bytes of.
    pub(super) fn former_roles(&self) -> BTreeMap<HostId, Vec<(GroupId, RoleIndex)>> {
        let mut roles: BTreeMap<HostId, Vec<(GroupId, RoleIndex)>> = BTreeMap::new();
        for (member, former) in &self.former {
            roles.entry(former.host).or_default().push((member.group, member.role));
        }
        roles
    }

    /// The view of `group` has changed: whoever leaves a parity is its former host until somebody else has it.
    pub(super) fn note_parities(&mut self, group: GroupId, before: &[Option<HostId>], view: &GroupView) {
        for (row, (before, now)) in before.iter().zip(&view.parity).enumerate() {
            let member = MemberId { group, role: RoleIndex((view.k() + row) as u8) };
            match (before, now) {
                // Without a time, for none is at hand: it counts from the next look.
                (Some(host), None) => {
                    self.former.insert(member, FormerHost { host: *host, since: None });
                    self.due = Time(0);
                }
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
        self.former.retain(|member, _| member.group != group);
    }

    /// What was too long ago says nothing any more. Whether there was any of that.
    pub(super) fn expire(&mut self, now: Time, timing: &Timing) -> bool {
        let pause_us = PAUSE_LEASES * timing.node_lease_us;
        let before = (self.refused.len(), self.former.len());
        self.refused.retain(|_, at| now.since(*at) < pause_us);
        self.former.retain(|_, former| now.since(*former.since.get_or_insert(now)) < timing.rejoin_us());
        let refused = self.refused.values().map(|at| *at + pause_us);
        let former = self.former.values().filter_map(|former| Some(former.since? + timing.rejoin_us()));
        self.due = refused.chain(former).min().unwrap_or(Time::NEVER);
        before != (self.refused.len(), self.former.len())
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn due(&self) -> Time {
        self.due
    }
}
