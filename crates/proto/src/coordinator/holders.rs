//! Who keeps the chunks of each role of a group: holders follow members (docs/objects.md, "Holders in a view").

use std::collections::BTreeSet;

use codec::Code;
use types::{GroupId, GroupView, Holder, Holders, HostId, Pool, PoolId, RoleIndex, ViewVersion};
use wire::object::ChunkReport;

use super::state::ClusterState;

/// A node has something to say about holders.
pub(super) fn handle(state: &mut ClusterState, from: HostId, report: ChunkReport) {
    match report {
        ChunkReport::Open { group } => open(state, group),
        ChunkReport::Filled { group, role, since } => {
            handle_filled(state, group, role, Holder { host: from, since });
        }
    }
}

/// Somebody wants to put chunks into a group that never had any: all groups of its pool take them from now on, for others will be asked for
/// soon, when there may be nobody to open them.
fn open(state: &mut ClusterState, group: GroupId) {
    let pool = state.map().and_then(|map| map.catalog.pool_of_group(group)).cloned();
    pool.iter().flat_map(Pool::group_ids).for_each(|group| open_group(state, group));
}

/// Pools are opened whose namespaces take chunks, before anybody asks.
pub(super) fn open_early(state: &mut ClusterState) {
    let Some(map) = state.map() else { return };
    let takers = map.catalog.namespaces.iter().filter(|known| known.policy.objects.striped_above.is_some());
    let pools: BTreeSet<PoolId> = takers
        .flat_map(|known| [Some(known.pool), known.conversion.map(|conversion| conversion.to)])
        .flatten()
        .collect();
    let firsts = pools.iter().filter_map(|pool| map.catalog.pool(*pool)?.group_ids().next());
    let closed = |group: &GroupId| state.view(*group).is_some_and(|view| !view.takes_chunks());
    let closed: Vec<GroupId> = firsts.filter(closed).collect();
    closed.into_iter().for_each(|group| open(state, group));
}

/// Nobody lacks a chunk of it, whoever is named.
fn open_group(state: &mut ClusterState, group: GroupId) {
    if state.view(group).is_some_and(|view| !view.takes_chunks()) {
        tracing::info!(%group, "takes chunks from now on");
        state.change_view(group, |view| {
            let since = view.version.next();
            let whole =
                |role: usize| view.member_host(RoleIndex(role as u8)).map(|host| Holder { host, since });
            let roles = 0..view.k() + view.m();
            view.holders = roles.map(|role| Holders { whole: whole(role), filling: None }).collect();
        });
    }
}

/// Whoever was filling has everything: of this appointment, and no other.
fn handle_filled(state: &mut ClusterState, group: GroupId, role: RoleIndex, holder: Holder) {
    let rules = state.rules().objects();
    let is_filling = |view: &GroupView| rules.is_filled(holder, view.holders_of(role).filling);
    if state.view(group).is_some_and(is_filling) {
        state.change_view(group, |view| {
            if let Some(holders) = view.holders.get_mut(usize::from(role.0)) {
                *holders = Holders { whole: holders.filling, filling: None };
            }
        });
    }
}

/// What is known of whether a holder goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Here,
    /// Its lease has run out, and it may come back.
    Silent,
    Gone,
}

/// Holders of the view that will have version `next`: who is gone holds nothing, who is silent holds nothing as long as the code makes
/// up for it, and where a role's member is elsewhere than its chunks it gets them.
pub(super) fn follow(
    view: &mut GroupView,
    next: ViewVersion,
    code: &Code,
    standing: impl Fn(HostId) -> Standing,
) {
    for role in 0..view.holders.len() {
        let is_spared = |holder: &Holder| match standing(holder.host) {
            Standing::Here => true,
            Standing::Silent => !is_solvable_without(view, code, role),
            Standing::Gone => false,
        };
        let Holders { whole, filling } = view.holders[role];
        let whole = whole.filter(is_spared);
        let filling = filling.filter(|holder| standing(holder.host) == Standing::Here);
        view.holders[role] = Holders { whole, filling };
    }
    for role in 0..view.holders.len() {
        let wanted = view.member_host(RoleIndex(role as u8));
        let holders = &mut view.holders[role];
        let Some(host) = wanted else { continue };
        let is_there = |holder: Option<Holder>| holder.is_some_and(|holder| holder.host == host);
        if is_there(holders.whole) {
            holders.filling = None;
        } else if !is_there(holders.filling) {
            holders.filling = Some(Holder { host, since: next });
        }
    }
}

/// Whether the chunks of all data roles can be made of those of the whole holders but that of `role`.
fn is_solvable_without(view: &GroupView, code: &Code, role: usize) -> bool {
    let is_held = |other: &usize| *other != role && view.holders[*other].whole.is_some();
    let (held, lost): (Vec<usize>, Vec<usize>) = (0..view.holders.len()).partition(is_held);
    code.plan(&held, &lost).is_ok()
}

#[cfg(test)]
mod tests {
    use types::{DataRole, Incarnation, NodeId, RoleStatus, Term};

    use super::*;

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn at(node: u16, since: u64) -> Option<Holder> {
        Some(Holder { host: host(node), since: ViewVersion(since) })
    }

    /// One data role on node 1, its parity on node 2, both whole since view 1.
    fn view() -> GroupView {
        let data =
            DataRole { primary: Some(host(1)), term: Term(1), origin: Term(1), status: RoleStatus::Full };
        GroupView {
            group: GroupId(0),
            version: ViewVersion(4),
            data: vec![data],
            parity: vec![Some(host(2))],
            learners: Vec::new(),
            former: Vec::new(),
            holders: vec![
                Holders { whole: at(1, 1), filling: None },
                Holders { whole: at(2, 1), filling: None },
            ],
        }
    }

    fn followed(mut view: GroupView, gone: &[u16]) -> Vec<Holders> {
        let next = view.version.next();
        let standing =
            |host: HostId| if gone.contains(&host.node.0) { Standing::Gone } else { Standing::Here };
        follow(&mut view, next, &Code::rep(2).unwrap(), standing);
        view.holders
    }

    #[test]
    fn nothing_changes_where_members_hold_what_is_theirs() {
        assert_eq!(followed(view(), &[]), view().holders);
    }

    #[test]
    fn whoever_is_gone_holds_nothing_and_the_stand_in_is_to_fill() {
        let mut view = view();
        view.data[0].primary = Some(host(2));
        assert_eq!(followed(view, &[1])[0], Holders { whole: None, filling: at(2, 5) });
    }

    #[test]
    fn a_role_without_a_member_has_no_new_holder() {
        let mut view = view();
        view.parity[0] = None;
        assert_eq!(followed(view.clone(), &[2])[1], Holders::default());
        // Who was evicted and lives goes on.
        assert_eq!(followed(view, &[])[1], Holders { whole: at(2, 1), filling: None });
    }

    #[test]
    fn who_is_silent_is_waited_for_where_nobody_makes_up_for_it() {
        let silent = |mut view: GroupView, nodes: &[u16]| {
            let standing =
                |host: HostId| if nodes.contains(&host.node.0) { Standing::Silent } else { Standing::Here };
            view.data[0].primary = None;
            view.parity[0] = None;
            follow(&mut view, ViewVersion(5), &Code::rep(2).unwrap(), standing);
            view.holders
        };
        let one = silent(view(), &[1]);
        assert_eq!((one[0].whole, one[1].whole), (None, at(2, 1)));
        let both = silent(view(), &[1, 2]);
        assert_eq!((both[0].whole, both[1].whole), (None, at(2, 1)));
    }

    #[test]
    fn a_role_that_moves_is_filled_beside_its_holder_and_a_move_that_ends_is_forgotten() {
        let mut view = view();
        view.data[0].primary = Some(host(3));
        view.holders = followed(view.clone(), &[]);
        assert_eq!(view.holders[0], Holders { whole: at(1, 1), filling: at(3, 5) });
        // It is not appointed again by the next view.
        view.version = ViewVersion(5);
        assert_eq!(followed(view.clone(), &[])[0], view.holders[0]);
        view.data[0].primary = Some(host(1));
        assert_eq!(followed(view, &[])[0], Holders { whole: at(1, 1), filling: None });
    }
}
