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

use cluster::{
    Former, GroupId, GroupView, HostId, LossPolicy, MemberId, RoleIndex, RoleStatus, SlotRange, Time,
    ViewVersion,
};
use wire::message::FromCoordinator;

use super::{Coordinator, decide, recovery};
use crate::Now;

/// Groups with roles that wait to begin anew.
#[derive(Default)]
pub(super) struct Losses {
    endings: BTreeMap<GroupId, Ending>,
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

impl Losses {
    /// More of `group` is lost: what was confirmed of an older view says nothing of that.
    fn forget(&mut self, group: GroupId) {
        self.endings.remove(&group);
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

impl Coordinator {
    /// `group` has lost more than its parities make up for: they leave with what is lost.
    pub(super) fn declare_loss(&mut self, now: Now, group: GroupId) {
        let policy = self.loss_policy();
        self.change_view(group, |view| decide::declare_lost(view, policy));
        self.learners.forget_former_hosts(group);
        self.losses.forget(group);
        self.log_loss(group);
        // Those go on whose mirrors have everything.
        self.restart_recoveries(now, group);
    }

    fn log_loss(&self, group: GroupId) {
        let Some(map) = &self.map else { return };
        let lost = map.members_that(|data| data.status.is_lost()).filter(|member| member.group == group);
        for member in lost {
            let SlotRange { first, last } = map.slots_of(member);
            tracing::error!(%member, first_slot = first.0, last_slot = last.0, "the data of this role is lost");
        }
    }

    fn loss_policy(&self) -> LossPolicy {
        self.map.as_ref().map_or(self.config.on_loss, |map| map.layout.on_loss)
    }

    /// An operator gives up what is lost of `slots`: the slots of all lost roles that have one of them. What had been accepted
    /// before and has not begun yet is named, too.
    pub(super) fn accept_loss(&mut self, slots: &[SlotRange]) -> Vec<SlotRange> {
        let Some(map) = &self.map else { return Vec::new() };
        let is_meant = |member: &MemberId| slots.iter().any(|range| range.intersects(map.slots_of(*member)));
        let lost = map.members_that(|data| data.status.is_lost());
        let meant: Vec<MemberId> = lost.filter(is_meant).collect();
        let ranges = SlotRange::merged(meant.iter().map(|member| map.slots_of(*member)).collect());
        self.accept(&meant);
        ranges
    }

    fn accept(&mut self, members: &[MemberId]) {
        for MemberId { group, role } in members {
            let at = usize::from(role.0);
            let is_new =
                |view: &GroupView| view.data.get(at).is_some_and(|data| data.status == RoleStatus::Lost);
            if self.view(*group).is_some_and(is_new) {
                tracing::warn!(member = %MemberId { group: *group, role: *role }, "its loss is accepted");
                self.change_view(*group, |view| view.data[at].status = RoleStatus::Accepted);
            }
        }
    }

    /// An operator gives up everything. Processes that are silent count as fenced: they come back as new ones, or not at all.
    pub(super) fn reset(&mut self, now: Now) -> Vec<SlotRange> {
        tracing::warn!("an operator has given up all data");
        for node in self.nodes.silent(now.time, self.config.timing.node_lease_us) {
            self.nodes.fence(node);
        }
        self.publish_nodes();
        let groups: Vec<GroupId> =
            self.map.iter().flat_map(|map| &map.groups).map(|view| view.group).collect();
        for group in groups {
            self.change_view(group, decide::give_all_up);
            self.learners.forget_former_hosts(group);
            self.losses.forget(group);
        }
        self.recoveries.clear();
        self.doubtful.clear();
        self.complaints.clear();
        vec![SlotRange::ALL]
    }

    /// A process has a view in which roles are lost.
    pub(super) fn handle_confirmed(&mut self, from: HostId, group: GroupId, view: ViewVersion) {
        if let Some(ending) = self.losses.endings.get_mut(&group).filter(|ending| view >= ending.view) {
            ending.confirmed.insert(from);
        }
    }

    /// Accepted roles begin anew as soon as they may; who can tell is asked.
    pub(super) fn begin_accepted_roles(&mut self, now: Now) {
        let Some(map) = &self.map else { return };
        if map.layout.on_loss == LossPolicy::Empty {
            let lost: Vec<MemberId> = map.members_that(|data| data.status == RoleStatus::Lost).collect();
            self.accept(&lost);
        }
        let Some(map) = &self.map else { return };
        let accepted: Vec<MemberId> = map.members_that(|data| data.status == RoleStatus::Accepted).collect();
        let groups: BTreeSet<GroupId> = accepted.iter().map(|member| member.group).collect();
        self.losses.endings.retain(|group, _| groups.contains(group));
        for group in groups {
            self.ask_for_confirmation(now, group);
        }
        for member in accepted {
            if self.is_surely_over(now, member) {
                self.begin_anew(member);
            }
        }
    }

    /// Whether nobody can serve any more what `member` was.
    fn is_surely_over(&mut self, now: Now, member: MemberId) -> bool {
        if crate::planted(crate::Bug::AcceptedBeforeOver) {
            return true;
        }
        let Some(view) = self.view(member.group).cloned() else { return false };
        let confirmed = self.losses.ending(&view).confirmed.clone();
        let is_gone = |host: &HostId| confirmed.contains(host) || self.has_ended(*host);
        let is_over = |former: &Former| is_gone(&former.primary) || former.witnesses.iter().any(is_gone);
        if !view.former(member.role).is_none_or(is_over) {
            return false;
        }
        let lease_us = recovery::lease_left_us(self.config.timing.read_lease_us, 0);
        let since = *self.losses.ending(&view).over.entry(member.role).or_insert(now.time);
        now.time.since(since) >= lease_us
    }

    /// Asks those who were something of the lost roles of `group` whether they know that they are not any more.
    fn ask_for_confirmation(&mut self, now: Now, group: GroupId) {
        let retry_us = self.config.timing.retry_us;
        let Some(view) = self.view(group).cloned() else { return };
        let ending = self.losses.ending(&view);
        if ending.asked_at.is_some_and(|at| now.time.since(at) < retry_us) {
            return;
        }
        ending.asked_at = Some(now.time);
        let (asked_for, confirmed, epoch) = (ending.view, ending.confirmed.clone(), self.epoch);
        let accepted = view.former.iter().filter(|former| {
            view.data_role(former.role).is_some_and(|data| data.status == RoleStatus::Accepted)
        });
        let hosts: BTreeSet<HostId> =
            accepted.flat_map(|former| former.witnesses.iter().chain([&former.primary])).copied().collect();
        let living: BTreeSet<HostId> = self.nodes.living().into_iter().collect();
        for host in hosts.difference(&confirmed).filter(|host| living.contains(host)) {
            self.send(*host, FromCoordinator::Confirm { group, view: asked_for, epoch });
        }
    }

    /// The first primary of a new life, on a living node; without one the next tick looks again.
    fn begin_anew(&mut self, member: MemberId) {
        let Some(map) = &self.map else { return };
        let Some(view) = map.group(member.group) else { return };
        let present = self.nodes.present();
        let mut living = self.plan_nodes();
        living.retain(|node| present.contains(&node.host));
        let load = cluster::role_counts(&map.groups);
        let Some(host) = cluster::choose_successor(view, &living, &load) else { return };
        tracing::warn!(%member, %host, "begins anew, empty");
        self.change_view(member.group, |view| decide::begin_anew(view, member.role, host));
    }
}
