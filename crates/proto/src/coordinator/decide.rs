//! Choices that are pure functions of what is known.

use cluster::{DataRole, GroupView, HostId, Learner, RoleIndex, RoleStatus, Term};

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

/// Whether a view is beyond repair, and nobody has said so yet.
pub(super) fn is_to_be_judged(view: &GroupView) -> bool {
    let declared = |role: &DataRole| matches!(role.status, RoleStatus::Full | RoleStatus::Lost);
    is_beyond_repair(view) && !view.data.iter().all(declared)
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

/// A failure in the group: learners start again from nothing when it is over. A whole mirror whose role has no primary stays:
/// it may take it over.
pub(super) fn cancel_learners(view: &mut GroupView) {
    if crate::planted(crate::Bug::LearnerSurvivesFailure) {
        return;
    }
    let data = &view.data;
    let is_needed = |learner: &Learner| {
        let role = data.get(usize::from(learner.role.0));
        learner.whole && role.is_some_and(|role| role.primary.is_none())
    };
    view.learners.retain(is_needed);
}

#[cfg(test)]
mod tests {
    use cluster::{Incarnation, NodeId, Profile, Seq, place};

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
    fn only_the_stand_in_of_the_term_becomes_full() {
        let status = RoleStatus::Rebuilding { start: Seq(7), wait_us: 5 };
        let role = DataRole { primary: Some(host(2)), term: Term(3), status };
        assert!(may_become_full(&role, host(2), Term(3)));
        assert!(!may_become_full(&role, host(2), Term(2)));
        assert!(!may_become_full(&role, host(1), Term(3)));
    }
}
