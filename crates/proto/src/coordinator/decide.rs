//! Choices that are pure functions of what is known.

use std::collections::BTreeMap;

use cluster::{DataRole, GroupView, HostId, Learner, NodeId, RoleIndex, RoleStatus, Term};

/// Whether the stand-in `from` of `term` may be called full.
pub(super) fn may_become_full(role: &DataRole, from: HostId, term: Term) -> bool {
    matches!(role.status, RoleStatus::Rebuilding { .. }) && role.primary == Some(from) && role.term == term
}

/// Takes `lost` out of `view`: its parities leave, its data roles are fenced at a new term. The roles to recover.
pub(super) fn remove_host(view: &mut GroupView, lost: HostId) -> Vec<RoleIndex> {
    for parity in view.parity.iter_mut().filter(|parity| **parity == Some(lost)) {
        *parity = None;
    }
    view.learners.retain(|learner| learner.host != lost);
    let mut fenced = Vec::new();
    for (i, role) in view.data.iter_mut().enumerate() {
        if role.primary == Some(lost) {
            fence(role);
            fenced.push(RoleIndex(i as u8));
        }
    }
    if !fenced.is_empty() {
        cancel_learners(view);
    }
    fenced
}

/// Whether no earlier primary of this role can still hold a lease.
pub(super) fn had_no_predecessor(role: &DataRole) -> bool {
    matches!(role.status, RoleStatus::Full | RoleStatus::Rebuilding { wait_us: 0, .. })
}

/// F0: no primary, and a new term for the next one.
pub(super) fn fence(role: &mut DataRole) {
    role.primary = None;
    role.term = role.term.next();
    role.status = RoleStatus::Fenced;
}

/// Whether more is lost than the parities that are left can make up for.
pub(super) fn is_beyond_repair(view: &GroupView) -> bool {
    view.roles_in_play() > view.in_sync().count()
}

/// Whether a view beyond repair would not be so if all stand-ins that live had all their pages: a stand-in says when it
/// has, and that may be on its way.
pub(super) fn may_be_whole(view: &GroupView, living: &[HostId]) -> bool {
    let rebuilt = |role: &&DataRole| {
        matches!(role.status, RoleStatus::Rebuilding { .. })
            && role.primary.is_some_and(|host| living.contains(&host))
    };
    let rebuilt = view.data.iter().filter(rebuilt).count();
    view.roles_in_play() - rebuilt <= view.in_sync().count()
}

/// The data roles that are lost for good if the view is beyond repair.
pub(super) fn declare_lost(view: &mut GroupView) {
    for role in view.data.iter_mut().filter(|role| role.status != RoleStatus::Full) {
        role.primary = None;
        role.status = RoleStatus::Lost;
    }
}

/// Where a stand-in goes: the role's whole mirror, else a living node without a role in the group if there is one, else the node of an in-sync
/// parity; among these the one with the fewest members (`load`), then the lowest id.
pub(super) fn choose_stand_in(
    view: &GroupView,
    role: RoleIndex,
    living: &[HostId],
    load: &BTreeMap<NodeId, usize>,
) -> Option<HostId> {
    let mirror = view.mirror(role).filter(|host| living.contains(host));
    let lightest = |hosts: &mut dyn Iterator<Item = HostId>| {
        hosts.min_by_key(|host| (load.get(&host.node).copied().unwrap_or(0), host.node))
    };
    let spare = lightest(&mut living.iter().copied().filter(|host| view.roles_on(host.node) == 0));
    mirror
        .or(spare)
        .or_else(|| lightest(&mut view.in_sync().map(|(_, host)| host).filter(|host| living.contains(host))))
}

/// Which role is built next, and where: a parity that is missing, or else a data role that shares its node with another role
/// of the group; on a living host without a role in the group, the one with the fewest members. None while any data role is
/// not full: repair comes first, and a learner needs its primaries.
pub(super) fn choose_learner(
    view: &GroupView,
    hosts: &[HostId],
    load: &BTreeMap<NodeId, usize>,
) -> Option<(RoleIndex, HostId)> {
    if !view.is_full() {
        return None;
    }
    let roles = 0..(view.k() + view.m()) as u8;
    let missing = |role: &RoleIndex| {
        usize::from(role.0) >= view.k() && view.parity_host(*role).is_none() && view.learner(*role).is_none()
    };
    let crowded = |role: &RoleIndex| {
        let primary = view.data_role(*role).and_then(|data| data.primary);
        view.learner(*role).is_none() && primary.is_some_and(|host| view.roles_on(host.node) > 1)
    };
    let role =
        roles.clone().map(RoleIndex).find(missing).or_else(|| roles.clone().map(RoleIndex).find(crowded))?;
    let free = hosts.iter().copied().filter(|host| view.roles_on(host.node) == 0);
    let host = free.min_by_key(|host| (load.get(&host.node).copied().unwrap_or(0), host.node))?;
    Some((role, host))
}

/// A failure in the group: learners start again from nothing when it is over. A whole mirror whose role has no primary stays:
/// it may take it over.
pub(super) fn cancel_learners(view: &mut GroupView) {
    let data = &view.data;
    let is_needed = |learner: &Learner| {
        let role = data.get(usize::from(learner.role.0));
        learner.whole && role.is_some_and(|role| role.primary.is_none())
    };
    view.learners.retain(is_needed);
}

/// How many members each node hosts, over all groups.
pub(super) fn member_counts(views: &[GroupView]) -> BTreeMap<NodeId, usize> {
    let mut counts = BTreeMap::new();
    for view in views {
        let primaries = view.data.iter().filter_map(|role| role.primary);
        let parities = view.parity.iter().copied().flatten();
        let learners = view.learners.iter().map(|learner| learner.host);
        for host in primaries.chain(parities).chain(learners) {
            *counts.entry(host.node).or_insert(0) += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use cluster::{Incarnation, Profile, Seq, place};

    use super::*;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn view(nodes: u16) -> (GroupView, Vec<HostId>) {
        let hosts: Vec<HostId> = (0..nodes).map(host).collect();
        (place(Profile::rs(3, 2).unwrap(), &hosts, 1).unwrap().remove(0), hosts)
    }

    #[test]
    fn losing_a_node_fences_its_roles_and_drops_its_parities() {
        let (mut view, _) = view(5);
        assert_eq!(remove_host(&mut view, host(1)), [RoleIndex(1)]);
        assert_eq!(view.data[1].status, RoleStatus::Fenced);
        assert_eq!((view.data[1].primary, view.data[1].term), (None, Term(2)));
        assert_eq!(remove_host(&mut view, host(3)), []);
        assert_eq!(view.in_sync().map(|(role, _)| role).collect::<Vec<_>>(), [RoleIndex(4)]);
        assert!(!is_beyond_repair(&view), "one role lost, one parity left");
    }

    #[test]
    fn one_loss_more_than_the_parities_left_is_beyond_repair() {
        let (mut view, _) = view(5);
        for node in [0, 1, 4] {
            remove_host(&mut view, host(node));
        }
        assert!(is_beyond_repair(&view));
        declare_lost(&mut view);
        let statuses: Vec<_> = view.data.iter().map(|role| role.status).collect();
        assert_eq!(statuses, [RoleStatus::Lost, RoleStatus::Lost, RoleStatus::Full]);
    }

    #[test]
    fn a_living_stand_in_may_be_whole_a_fenced_role_is_not() {
        let (mut view, mut living) = view(5);
        remove_host(&mut view, host(0));
        view.data[0].primary = Some(host(3));
        view.data[0].status = RoleStatus::Rebuilding { start: Seq(7), wait_us: 0 };
        remove_host(&mut view, host(4));
        remove_host(&mut view, host(1));
        assert!(is_beyond_repair(&view));
        assert!(may_be_whole(&view, &living), "the remaining parity makes up for role 1");
        living.retain(|living| *living != host(3));
        assert!(!may_be_whole(&view, &living));
    }

    #[test]
    fn a_spare_is_preferred_and_load_decides_among_parities() {
        let (mut view6, mut living) = view(6);
        remove_host(&mut view6, host(0));
        living.remove(0);
        assert_eq!(choose_stand_in(&view6, RoleIndex(0), &living, &BTreeMap::new()), Some(host(5)));
        let load = BTreeMap::from([(NodeId(3), 9), (NodeId(4), 2)]);
        living.pop();
        assert_eq!(choose_stand_in(&view6, RoleIndex(0), &living, &load), Some(host(4)));
    }

    #[test]
    fn only_the_stand_in_of_the_term_becomes_full() {
        let status = RoleStatus::Rebuilding { start: Seq(7), wait_us: 5 };
        let role = DataRole { primary: Some(host(2)), term: Term(3), status };
        assert!(may_become_full(&role, host(2), Term(3)));
        assert!(!may_become_full(&role, host(2), Term(2)));
        assert!(!may_become_full(&role, host(1), Term(3)));
    }
}
