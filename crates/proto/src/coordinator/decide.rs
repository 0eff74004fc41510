//! Choices that are pure functions of what is known.

use cluster::Protection;
use types::{DataRole, Former, GroupView, HostId, Learner, RoleIndex, RoleStatus, Term};

use crate::Rules;

/// Whether `from` is the stand-in of `term`, and has not been called full yet.
pub(super) fn is_rebuilding(role: &DataRole, from: HostId, term: Term) -> bool {
    matches!(role.status, RoleStatus::Rebuilding { .. }) && role.primary == Some(from) && role.term == term
}

/// Takes `lost` out of `view`: its parities leave, its data roles are fenced at a new term. The roles to recover.
pub(super) fn remove_host(
    rules: Rules,
    view: &mut GroupView,
    protection: &Protection,
    lost: HostId,
) -> Vec<RoleIndex> {
    // Before the roles are fenced: who is lost does not witness how they ended.
    for parity in view.parity.iter_mut().filter(|parity| **parity == Some(lost)) {
        *parity = None;
    }
    view.learners.retain(|learner| learner.host != lost);
    let served = view.data_roles().filter(|(_, role)| role.primary == Some(lost));
    let fenced: Vec<RoleIndex> = served.map(|(role, _)| role).collect();
    for role in &fenced {
        fence(view, protection, *role);
    }
    // A lost parity alone costs no learner anything: it learns from primaries.
    if !fenced.is_empty() {
        cancel_learners(rules, view);
    }
    fenced
}

/// Whether no earlier primary of this role can still hold a lease.
pub(super) fn had_no_predecessor(role: &DataRole) -> bool {
    matches!(role.status, RoleStatus::Full | RoleStatus::Rebuilding { wait_us: 0, .. })
}

/// F0: no primary, and a new term for the next one. Who it was is kept, and whose acks it needed: if it has adopted a view in
/// which it is still named, that was the newest of them.
pub(super) fn fence(view: &mut GroupView, protection: &Protection, role: RoleIndex) {
    let witnesses: Vec<HostId> = protection.witnesses(view, role).map(|(_, host)| host).collect();
    let Some(data) = view.data.get_mut(usize::from(role.0)) else { return };
    if let Some(primary) = data.primary.take() {
        // The last one counts: those before it were fenced when it was appointed.
        view.former.retain(|former| former.role != role);
        view.former.push(Former { role, primary, witnesses });
    }
    data.term = data.term.next();
    data.status = RoleStatus::Fenced;
}

/// Whether a view is beyond repair, and nobody has said so yet.
pub(super) fn is_to_be_judged(view: &GroupView, protection: &Protection) -> bool {
    let declared = |role: &DataRole| role.status == RoleStatus::Full || role.status.is_lost();
    protection.is_beyond_repair(view) && !view.data.iter().all(declared)
}

/// Whether a view beyond repair would not be so if all stand-ins that live had all their pages: a stand-in says when it
/// has, and that may be on its way.
pub(super) fn may_be_whole(view: &GroupView, protection: &Protection, living: &[HostId]) -> bool {
    let is_rebuilt = |role: &DataRole| {
        matches!(role.status, RoleStatus::Rebuilding { .. })
            && role.primary.is_some_and(|host| living.contains(&host))
    };
    let mut view = view.clone();
    for role in view.data.iter_mut().filter(|role| is_rebuilt(role)) {
        role.status = RoleStatus::Full;
    }
    !protection.is_beyond_repair(&view)
}

/// The view is beyond repair: what nothing determines is lost, unless its mirror has all of it. The parities that cover it leave:
/// what is lost is in their sums, and nobody can take it out any more. The losses of `accepted` are accepted already.
pub(super) fn declare_lost(
    rules: Rules,
    view: &mut GroupView,
    protection: &Protection,
    accepted: &[RoleIndex],
) {
    let losses = protection.losses(view);
    for role in losses.roles {
        let status = if accepted.contains(&role) { RoleStatus::Accepted } else { RoleStatus::Lost };
        end_life(view, protection, role, status);
    }
    if rules.parities_leave_with_what_is_lost() {
        let k = view.k();
        losses.parities.iter().for_each(|role| view.parity[usize::from(role.0) - k] = None);
    }
    cancel_learners(rules, view);
}

/// An operator gives everything up.
pub(super) fn give_all_up(view: &mut GroupView, protection: &Protection) {
    let all: Vec<RoleIndex> = view.data_roles().map(|(role, _)| role).collect();
    for role in all {
        end_life(view, protection, role, RoleStatus::Accepted);
    }
    view.parity.fill(None);
    view.learners.clear();
}

/// `role` has no data any more. The learners that it may have are no use to anybody.
fn end_life(view: &mut GroupView, protection: &Protection, role: RoleIndex, status: RoleStatus) {
    if view.data_role(role).is_some_and(|data| data.primary.is_some()) {
        fence(view, protection, role);
    }
    if let Some(data) = view.data.get_mut(usize::from(role.0)) {
        data.status = status;
    }
    view.learners.retain(|learner| learner.role != role);
}

/// A role that was lost begins anew on `host`, empty. Learners have nothing of it, and would have to learn.
pub(super) fn begin_anew(rules: Rules, view: &mut GroupView, role: RoleIndex, host: HostId) {
    let Some(data) = view.data.get_mut(usize::from(role.0)) else { return };
    data.term = data.term.next();
    // A term of its own begins the life, so that nothing of the life before is taken for it.
    (data.origin, data.primary, data.status) = (data.term, Some(host), RoleStatus::Full);
    view.former.retain(|former| former.role != role);
    cancel_learners(rules, view);
}

/// A failure in the group: learners start again from nothing when it is over. A whole mirror stays that a loss may be made good
/// from: its role has no primary, or the primary's node has a parity, too, so that its loss would cost two members.
pub(super) fn cancel_learners(rules: Rules, view: &mut GroupView) {
    let is_needed = |learner: &&Learner| {
        let has_primary = view.data_role(learner.role).is_some_and(|data| data.primary.is_some());
        let spares_one = rules.hand_overs().crowded_mirrors_stay() && view.is_beside_parity(learner.role);
        learner.whole && (!has_primary || spares_one)
    };
    if rules.failures_cancel_learners() {
        view.learners = view.learners.iter().filter(is_needed).copied().collect();
    }
}

/// A parity is built beside a primary only while a whole mirror of that role waits elsewhere: an exchange without its mirror is
/// called off.
pub(super) fn call_off_unmirrored(view: &mut GroupView) {
    view.learners = view.learners.iter().filter(|learner| is_mirrored(view, learner)).copied().collect();
}

/// Whether all parities that are built beside primaries are built in exchanges with their mirrors.
pub(super) fn are_exchanges_mirrored(view: &GroupView) -> bool {
    view.learners.iter().all(|learner| is_mirrored(view, learner))
}

/// Whether `learner` is none of a parity, or whole mirrors wait of all roles that it is built beside.
fn is_mirrored(view: &GroupView, learner: &Learner) -> bool {
    let mut beside = view.data_roles().filter(|(_, data)| data.primary == Some(learner.host));
    usize::from(learner.role.0) < view.k() || beside.all(|(role, _)| view.mirror(role).is_some())
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{Incarnation, NodeId, Profile, Seq};

    use super::*;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn rs() -> Protection {
        Protection::of(Profile::rs(3, 2).unwrap())
    }

    fn view(nodes: u16) -> (GroupView, Vec<HostId>) {
        let hosts: Vec<HostId> = (0..nodes).map(host).collect();
        (place(Profile::rs(3, 2).unwrap(), &hosts, 1).unwrap().remove(0), hosts)
    }

    #[test]
    fn losing_a_node_fences_its_roles_and_drops_its_parities() {
        let (mut view, _) = view(5);
        assert_eq!(remove_host(Rules::all(), &mut view, &rs(), host(1)), [RoleIndex(1)]);
        assert_eq!(view.data[1].status, RoleStatus::Fenced);
        assert_eq!((view.data[1].primary, view.data[1].term), (None, Term(2)));
        assert_eq!(remove_host(Rules::all(), &mut view, &rs(), host(3)), []);
        assert_eq!(view.in_sync().map(|(role, _)| role).collect::<Vec<_>>(), [RoleIndex(4)]);
        assert!(!rs().is_beyond_repair(&view), "one role lost, one parity left");
    }

    #[test]
    fn one_loss_more_than_the_parities_left_is_beyond_repair() {
        let (mut view, _) = view(5);
        for node in [0, 1, 4] {
            remove_host(Rules::all(), &mut view, &rs(), host(node));
        }
        assert!(rs().is_beyond_repair(&view));
        declare_lost(Rules::all(), &mut view, &rs(), &[]);
        let statuses: Vec<_> = view.data.iter().map(|role| role.status).collect();
        assert_eq!(statuses, [RoleStatus::Lost, RoleStatus::Lost, RoleStatus::Full]);
        assert_eq!(view.in_sync().count(), 0, "its sum has what is lost");
        assert!(!rs().is_beyond_repair(&view) && view.is_steady());
    }

    #[test]
    fn a_living_stand_in_may_be_whole_a_fenced_role_is_not() {
        let (mut view, mut living) = view(5);
        remove_host(Rules::all(), &mut view, &rs(), host(0));
        view.data[0].primary = Some(host(3));
        view.data[0].status = RoleStatus::Rebuilding { start: Seq(7), wait_us: 0 };
        remove_host(Rules::all(), &mut view, &rs(), host(4));
        remove_host(Rules::all(), &mut view, &rs(), host(1));
        assert!(rs().is_beyond_repair(&view));
        assert!(may_be_whole(&view, &rs(), &living), "the remaining parity makes up for role 1");
        living.retain(|living| *living != host(3));
        assert!(!may_be_whole(&view, &rs(), &living));
    }

    #[test]
    fn only_the_stand_in_of_the_term_becomes_full() {
        let status = RoleStatus::Rebuilding { start: Seq(7), wait_us: 5 };
        let role = DataRole { primary: Some(host(2)), term: Term(3), origin: Term(1), status };
        assert!(is_rebuilding(&role, host(2), Term(3)));
        assert!(!is_rebuilding(&role, host(2), Term(2)));
        assert!(!is_rebuilding(&role, host(1), Term(3)));
    }
}
