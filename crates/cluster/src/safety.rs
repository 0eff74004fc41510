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
    pub(crate) fn without(&self, gone: &[NodeId]) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Incarnation, Learner, Profile, Seq, place};

    fn view() -> GroupView {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let hosts: Vec<_> = (0..5).map(host).collect();
        place(Profile::rs(3, 2).unwrap(), &hosts, 1).unwrap().remove(0)
    }

    #[test]
    fn a_stand_in_beside_a_parity_makes_its_node_count_twice() {
        let mut view = view();
        assert_eq!(view.losses_survived(), 2);
        view.data[0].primary = view.parity[0];
        assert_eq!(view.losses_survived(), 1);
        view.data[0].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
        assert_eq!(view.losses_survived(), 1);
    }

    #[test]
    fn an_exchange_of_two_roles_lowers_the_protection_at_no_time() {
        let mut view = view();
        let (from, to) = (view.data[0].primary.unwrap(), view.parity[0].unwrap());
        let mirror = Learner { role: RoleIndex(0), host: to, since: view.version, whole: false };
        view.learners.push(mirror);
        assert_eq!(view.losses_survived(), 2);
        view.learners[0].whole = true;
        assert_eq!(view.losses_survived(), 2);
        view.parity[0] = Some(from);
        assert_eq!(view.losses_survived(), 2);
        for pair in [[from, to], [from, view.parity[1].unwrap()], [to, view.data[1].primary.unwrap()]] {
            assert_eq!(view.losses_survived_without(&pair.map(|host| host.node)), Some(0), "{pair:?}");
        }
        view.data[0].primary = Some(to);
        view.learners.clear();
        assert_eq!(view.losses_survived(), 2);
    }

    #[test]
    fn without_a_node_one_loss_less_is_survived_and_beyond_the_parities_none_is() {
        let mut view = view();
        assert_eq!(view.losses_survived_without(&[]), Some(2));
        assert_eq!(view.losses_survived_without(&[NodeId(0)]), Some(1));
        assert_eq!(view.losses_survived_without(&[NodeId(4)]), Some(1));
        assert_eq!(view.losses_survived_without(&[NodeId(4), NodeId(1)]), Some(0));
        view.parity[0] = None;
        assert_eq!(view.losses_survived_without(&[NodeId(4), NodeId(1)]), None);
        assert_eq!(view.losses_survived_without(&[NodeId(9)]), Some(1));
    }
}
