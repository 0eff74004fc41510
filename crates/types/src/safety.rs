//! How much more a group can lose.

use crate::{GroupView, HostId, NodeId, RoleIndex, RoleStatus};

impl GroupView {
    /// How many nodes may still be lost, whichever they are. A stand-in shares its node with a parity, so a node's loss
    /// may cost a group more than one member; the costliest nodes are counted first. A data role with a whole mirror is lost
    /// with the later one of two nodes: with that which has no other role of the group, if there is one.
    #[must_use]
    pub fn losses_survived(&self) -> usize {
        let mut costs: Vec<(NodeId, usize)> = Vec::new();
        let full = self.data_roles().filter(|(_, data)| data.status == RoleStatus::Full);
        let full = full.filter_map(|(role, data)| self.mirror_apart(role).or(data.primary));
        for host in full.chain(self.in_sync().map(|(_, host)| host)) {
            match costs.iter_mut().find(|(known, _)| *known == host.node) {
                Some((_, cost)) => *cost += 1,
                None => costs.push((host.node, 1)),
            }
        }
        costs.sort_by_key(|&(_, cost)| std::cmp::Reverse(cost));
        let mut margin = self.margin();
        costs.iter().take_while(|&&(_, cost)| take(&mut margin, cost)).count()
    }

    /// The whole mirror of `role` that may take it over at once, while its primary's node has a parity, too.
    fn mirror_apart(&self, role: RoleIndex) -> Option<HostId> {
        self.mirror(role).filter(|_| self.is_beside_parity(role) && self.may_hand_over(role))
    }

    /// As [`Self::losses_survived`], once the nodes `gone` are lost; none if that loses data.
    #[must_use]
    pub fn losses_survived_without(&self, gone: &[NodeId]) -> Option<usize> {
        let view = self.without(gone);
        let bearable = view.roles_in_play() <= view.in_sync().count();
        bearable.then(|| view.losses_survived())
    }

    /// As it will be once the nodes `gone` are lost and nothing has been done about it.
    #[must_use]
    pub fn without(&self, gone: &[NodeId]) -> Self {
        let mut view = self.clone();
        for role in &mut view.data {
            if role.primary.is_some_and(|host| gone.contains(&host.node)) {
                role.primary = None;
                role.status = RoleStatus::Fenced;
            }
        }
        for parity in &mut view.parity {
            *parity = parity.filter(|host| !gone.contains(&host.node));
        }
        view.learners.retain(|learner| !gone.contains(&learner.host.node));
        view
    }
}

/// Takes `cost` from `margin` if it is there.
fn take(margin: &mut usize, cost: usize) -> bool {
    margin.checked_sub(cost).inspect(|&left| *margin = left).is_some()
}
