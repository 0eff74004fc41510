//! Data that is lost for good: what is left is protected anew, and what is lost begins anew, empty, once that is accepted.
//!
//! The parities of a group that has lost data leave the view together with it: their sums have bytes in them that nobody can
//! take out any more. So a role that is lost is in no sum of a parity in sync, and stands for zeros wherever sums are made.
//!
//! An accepted role gets a primary with nothing only when nobody can serve what it was. A coordinator cannot know that by
//! waiting: a primary and all its parities may be cut off together, and serve each other. It knows it when the last primary
//! has ended, or has the view that deposes it; or else one of its parities, for it needs the acks of all of them. Then one read
//! lease has to pass.

use std::collections::{BTreeMap, BTreeSet};

use types::{
    AdminError, Former, GroupId, GroupView, HostId, LossPolicy, MemberId, Name, Namespace, Pool, PoolSlots,
    RoleIndex, RoleStatus, SlotRange, Time, ViewVersion,
};
use wire::message::FromCoordinator;

use super::look::Look;
use super::state::{ClusterState, Wanted};
use super::{decide, recovery};
use crate::Now;

/// Groups that are in doubt, and groups with roles that wait to begin anew.
#[derive(Default)]
pub(super) struct Losses {
    /// Groups beyond repair unless living stand-ins turn out to be whole, and since when.
    doubtful: BTreeMap<GroupId, Time>,
    endings: BTreeMap<GroupId, Ending>,
    /// When it was last looked whether accepted roles may begin.
    looked: Look,
}

/// What is known of the end of a group's lost roles.
struct Ending {
    /// In this view they are lost, and whoever has it is nothing of what they were.
    view: ViewVersion,
    confirmed: BTreeSet<HostId>,
    asked_at: Option<Time>,
    /// Since when nobody can serve what the role was, but for its read lease.
    over: BTreeMap<RoleIndex, Time>,
}

/// What is to become of a group that has lost members.
pub(super) enum Judgement {
    /// The parities that are left make up for it.
    Repairable,
    /// It is beyond repair unless living stand-ins turn out to be whole, which they may be about to say.
    Doubtful,
    /// More is lost than they make up for.
    Lost,
}

impl Losses {
    /// The in-sync parities of `group`, or its roles, have become fewer: is it beyond repair?
    pub(super) fn judge(&mut self, now: Now, state: &ClusterState, group: GroupId) -> Option<Judgement> {
        let view = state.view(group)?;
        let protection = state.protection(group);
        if !state.is_beyond_repair(view) {
            return Some(Judgement::Repairable);
        }
        // The first time counts, or a group that loses one member after the other would be in doubt for ever.
        let since = self.doubtful.get(&group).copied().unwrap_or(now.time);
        let patient = now.time.since(since) < state.lease_us();
        if patient && decide::may_be_whole(view, &protection, &state.nodes().living()) {
            tracing::error!(%group, "beyond repair, unless its stand-ins are whole already");
            self.doubtful.insert(group, since);
            return Some(Judgement::Doubtful);
        }
        let lost = protection.losses(view).roles.len();
        tracing::error!(%group, lost, in_sync = view.in_sync().count(), "beyond repair: more members lost than the code can make up for");
        self.doubtful.remove(&group);
        Some(Judgement::Lost)
    }

    /// Groups in doubt of which it is known now, or has to be decided.
    pub(super) fn resolved(&self, now: Time, state: &ClusterState) -> Vec<GroupId> {
        self.doubts(state).filter(|(_, at)| *at <= now).map(|(group, _)| group).collect()
    }

    /// When there is such a group.
    pub(super) fn doubts_due(&self, state: &ClusterState) -> Time {
        self.doubts(state).map(|(_, at)| at).min().unwrap_or(Time::NEVER)
    }

    /// The groups in doubt, and when that ends: at once where stand-ins have said that they are whole.
    fn doubts(&self, state: &ClusterState) -> impl Iterator<Item = (GroupId, Time)> {
        let saved =
            move |group: &GroupId| state.view(*group).is_some_and(|view| !state.is_beyond_repair(view));
        let ends = move |group: &GroupId, since: Time| {
            if saved(group) { Time(0) } else { since + state.lease_us() }
        };
        self.doubtful.iter().map(move |(group, since)| (*group, ends(group, *since)))
    }

    /// Groups that are no more have lost nothing.
    pub(super) fn forget_gone(&mut self, state: &ClusterState) {
        self.doubtful.retain(|group, _| state.view(*group).is_some());
        self.endings.retain(|group, _| state.view(*group).is_some());
    }

    /// There is no doubt about `group` any more.
    pub(super) fn end_doubt(&mut self, group: GroupId) {
        self.doubtful.remove(&group);
    }

    /// `group` has lost more than its parities make up for: they leave with what is lost.
    pub(super) fn declare(&mut self, state: &mut ClusterState, group: GroupId) {
        let (rules, protection) = (state.rules(), state.protection(group));
        let Some(map) = state.map() else { return };
        let policy = map.layout.on_loss;
        let lost = map.group(group).map(|view| protection.losses(view).roles).unwrap_or_default();
        let lost: Vec<MemberId> = lost.into_iter().map(|role| MemberId { group, role }).collect();
        // At once, for nobody is to be told of a loss that is accepted.
        let accepted = note_losses(state, &lost, |namespace| accepts_losses(namespace, policy));
        let accepted: Vec<RoleIndex> = accepted.into_iter().map(|member| member.role).collect();
        state.change_view(group, |view| decide::declare_lost(rules, view, &protection, &accepted));
        forget_former_hosts(state, group);
        // More of it is lost: what was confirmed of an older view says nothing of that.
        self.endings.remove(&group);
        log_loss(state, group);
    }

    /// An operator gives everything up.
    pub(super) fn give_all_up(&mut self, state: &mut ClusterState) {
        let groups: Vec<GroupId> = state.views().map(|view| view.group).collect();
        for group in groups {
            let protection = state.protection(group);
            state.change_view(group, |view| decide::give_all_up(view, &protection));
            forget_former_hosts(state, group);
        }
        forgive_everything(state);
        *self = Self::default();
    }

    /// A process has a view in which roles are lost.
    pub(super) fn handle_confirmed(&mut self, from: HostId, group: GroupId, view: ViewVersion) {
        if let Some(ending) = self.endings.get_mut(&group).filter(|ending| view >= ending.view) {
            ending.confirmed.insert(from);
            self.looked = Look::default();
        }
    }

    /// Accepted roles begin anew as soon as they may; who can tell is asked.
    pub(super) fn begin_accepted_roles(&mut self, now: Now, state: &mut ClusterState) {
        self.looked = Look::at(now.time, state);
        let Some(map) = state.map() else { return };
        let policy = map.layout.on_loss;
        let lost: Vec<MemberId> = state.index().lost().iter().copied().collect();
        accept(state, &lost, |namespace| accepts_losses(namespace, policy));
        let accepted = state.index().accepted().clone();
        let groups: BTreeSet<GroupId> = accepted.iter().map(|member| member.group).collect();
        self.endings.retain(|group, _| groups.contains(group));
        for group in groups {
            self.ask_for_confirmation(now, state, group);
        }
        for member in accepted {
            let is_over = self.is_surely_over(now, state, member);
            if state.rules().new_life_needs_end_of_former(is_over) {
                begin_anew(state, member);
            }
        }
    }

    /// When [`Self::begin_accepted_roles`] has something to do.
    pub(super) fn accepted_due(&self, state: &ClusterState) -> Time {
        let timing = state.timing();
        let lease_us = recovery::lease_left_us(timing.read_lease_us, 0);
        let asked = self.endings.values().filter_map(|ending| ending.asked_at);
        let over = self.endings.values().flat_map(|ending| ending.over.values());
        let times = asked.map(|at| at + timing.retry_us).chain(over.map(|since| *since + lease_us));
        self.looked.next(state, times)
    }

    /// Whether nobody can serve any more what `member` was.
    fn is_surely_over(&mut self, now: Now, state: &ClusterState, member: MemberId) -> bool {
        let Some(view) = state.view(member.group) else { return false };
        let ending = self.ending(view);
        // A witness that has ended or moved on acknowledges nothing more, and without it nothing commits and no lease
        // is renewed.
        let is_gone = |host: &HostId| ending.confirmed.contains(host) || state.has_ended(*host);
        let is_over = |former: &Former| is_gone(&former.primary) || former.witnesses.iter().any(is_gone);
        if !view.former(member.role).is_none_or(is_over) {
            return false;
        }
        // A whole lease, for nobody says when it was renewed last.
        let lease_us = recovery::lease_left_us(state.timing().read_lease_us, 0);
        let since = *ending.over.entry(member.role).or_insert(now.time);
        now.time.since(since) >= lease_us
    }

    /// Asks those who were something of the lost roles of `group` whether they know that they are not any more.
    fn ask_for_confirmation(&mut self, now: Now, state: &mut ClusterState, group: GroupId) {
        let Some(view) = state.view(group) else { return };
        let ending = self.ending(view);
        if ending.asked_at.is_some_and(|at| now.time.since(at) < state.timing().retry_us) {
            return;
        }
        ending.asked_at = Some(now.time);
        let (asked_for, epoch) = (ending.view, state.epoch());
        let accepted = view.former.iter().filter(|former| {
            view.data_role(former.role).is_some_and(|data| data.status == RoleStatus::Accepted)
        });
        let hosts: BTreeSet<HostId> =
            accepted.flat_map(|former| former.witnesses.iter().chain([&former.primary])).copied().collect();
        let living: BTreeSet<HostId> = state.nodes().living().into_iter().collect();
        // Who is silent is asked when it is heard again.
        for host in hosts.difference(&ending.confirmed).filter(|host| living.contains(host)) {
            state.send(*host, FromCoordinator::Confirm { group, view: asked_for, epoch });
        }
    }

    fn ending(&mut self, view: &GroupView) -> &mut Ending {
        self.endings.entry(view.group).or_insert_with(|| Ending {
            view: view.version,
            confirmed: BTreeSet::new(),
            asked_at: None,
            over: BTreeMap::new(),
        })
    }
}

/// Who was a parity of `group` is nothing better than others any more.
fn forget_former_hosts(state: &mut ClusterState, group: GroupId) {
    if state.rules().losses_end_returns() {
        state.hosting_mut().forget_former_hosts(group);
    }
}

/// An operator gives up what is lost of `slots` of `pool`, for one of its namespaces or for all: the slots of all lost roles that
/// have one of them. What had been accepted before and has not begun yet is named, too.
///
/// # Errors
/// If there is no such pool or namespace, or it is another pool's.
pub(super) fn accept_slots(
    state: &mut ClusterState,
    pool: Option<&Name>,
    slots: &[SlotRange],
    namespace: Option<&Name>,
) -> Result<Vec<PoolSlots>, AdminError> {
    let map = state.map().ok_or(AdminError::NotFormed)?;
    let pool = map.catalog.pool_meant(pool, namespace)?.clone();
    let only = namespace.map(|name| map.catalog.namespace_named(name)).transpose()?.map(|known| known.id);
    let is_meant = |member: &MemberId| {
        pool.has(member.group) && slots.iter().any(|range| range.intersects(pool.slots_of(*member)))
    };
    let lost = map.members_that(|data| data.status.is_lost());
    let meant: Vec<MemberId> = lost.filter(is_meant).collect();
    let accepts = |namespace: &Namespace| only.is_none_or(|only| namespace.id == only);
    let forgiven = forgive(state, &pool, slots, accepts);
    let policy = state.map().map(|map| map.layout.on_loss).unwrap_or_default();
    accept(state, &meant, |namespace| accepts(namespace) || accepts_losses(namespace, policy));
    let named =
        SlotRange::merged(meant.iter().map(|member| pool.slots_of(*member)).chain(forgiven).collect());
    Ok(named.into_iter().map(|slots| PoolSlots { pool: pool.name.clone(), slots }).collect())
}

/// What the namespaces that `accepts` is true of had lost in `slots` is given up, too; which slots that are.
fn forgive(
    state: &mut ClusterState,
    pool: &Pool,
    slots: &[SlotRange],
    accepts: impl Fn(&Namespace) -> bool,
) -> Vec<SlotRange> {
    let Some(mut catalog) = state.map().map(|map| map.catalog.clone()) else { return Vec::new() };
    // Slots are lost role by role.
    let meant = SlotRange::merged(slots.iter().filter_map(|range| pool.whole_roles(*range)).collect());
    let mut forgiven = Vec::new();
    for namespace in catalog.namespaces.iter_mut().filter(|known| known.pool == pool.id && accepts(known)) {
        for lost in std::mem::take(&mut namespace.lost) {
            let (stays, goes) = lost.split_by(&meant);
            namespace.lost.extend(stays);
            forgiven.extend(goes);
        }
    }
    if !forgiven.is_empty() {
        state.change_catalog(catalog);
    }
    forgiven
}

/// Nothing counts as lost any more, to no namespace.
fn forgive_everything(state: &mut ClusterState) {
    let Some(catalog) = state.map().map(|map| &map.catalog) else { return };
    if catalog.namespaces.iter().any(|namespace| !namespace.lost.is_empty()) {
        let mut catalog = catalog.clone();
        catalog.namespaces.iter_mut().for_each(|namespace| namespace.lost.clear());
        state.change_catalog(catalog);
    }
}

/// Whether a namespace goes on without what is lost, if the layout says `policy` of those that say nothing themselves.
pub(super) fn accepts_losses(namespace: &Namespace, policy: LossPolicy) -> bool {
    namespace.policy.on_loss.or(policy) == LossPolicy::Empty
}

/// The losses of `members` are accepted by the namespaces of which `accepts` is true, if there are any.
fn accept(state: &mut ClusterState, members: &[MemberId], accepts: impl Fn(&Namespace) -> bool) {
    let is_new = |member: &&MemberId| {
        let data = state.view(member.group).and_then(|view| view.data_role(member.role));
        data.is_some_and(|data| data.status == RoleStatus::Lost)
    };
    let members: Vec<MemberId> = members.iter().filter(is_new).copied().collect();
    // Before a view says that the role begins anew: its primary must know to whom it may not pass for what was.
    let accepted = note_losses(state, &members, accepts);
    for member in accepted {
        tracing::warn!(%member, "its loss is accepted");
        let at = usize::from(member.role.0);
        state.change_view(member.group, |view| view.data[at].status = RoleStatus::Accepted);
    }
}

/// Of `members`, whose data is lost: the namespaces that do not accept that remember which slots it was. Those members whose
/// loss some namespace accepts, or whose pool has none.
pub(super) fn note_losses(
    state: &mut ClusterState,
    members: &[MemberId],
    accepts: impl Fn(&Namespace) -> bool,
) -> Vec<MemberId> {
    if members.is_empty() {
        return Vec::new();
    }
    let Some(mut catalog) = state.map().map(|map| map.catalog.clone()) else { return Vec::new() };
    let (mut accepted, mut has_changed) = (Vec::new(), false);
    for member in members {
        let Some(pool) = catalog.pool_of_group(member.group).cloned() else { continue };
        let is_accepted = match catalog.namespaces_coming_to(pool.id).next() {
            // Who is on the way here has items here, too, and cannot remember lost slots of a pool that is not its own yet: so without
            // its consent the role stays lost to all.
            Some(_) => catalog.namespaces_coming_to(pool.id).all(&accepts),
            // Of a pool without namespaces nobody misses anything.
            None => {
                catalog.namespaces_in(pool.id).next().is_none()
                    || catalog.namespaces_in(pool.id).any(&accepts)
            }
        };
        if !is_accepted {
            continue;
        }
        accepted.push(*member);
        let others = catalog.namespaces.iter_mut().filter(|known| known.pool == pool.id && !accepts(known));
        for namespace in others {
            let known = std::mem::take(&mut namespace.lost);
            namespace.lost = SlotRange::merged(known.into_iter().chain([pool.slots_of(*member)]).collect());
            has_changed = true;
        }
    }
    if has_changed {
        state.change_catalog(catalog);
    }
    accepted
}

/// The first primary of a new life, on a living node; without one it waits until one comes.
fn begin_anew(state: &mut ClusterState, member: MemberId) {
    let Some(view) = state.view(member.group) else { return };
    let candidates = state.candidates(Wanted::default());
    let Some(host) = cluster::choose_successor(view, &candidates, state.index().roles()) else { return };
    tracing::warn!(%member, %host, "begins anew, empty");
    let rules = state.rules();
    state.change_view(member.group, |view| decide::begin_anew(rules, view, member.role, host));
}

fn log_loss(state: &ClusterState, group: GroupId) {
    let Some(map) = state.map() else { return };
    let lost = map.members_that(|data| data.status.is_lost()).filter(|member| member.group == group);
    for member in lost {
        let Some(SlotRange { first, last }) = map.slots_of(member) else { continue };
        tracing::error!(%member, first_slot = first.0, last_slot = last.0, "the data of this role is lost");
    }
}
