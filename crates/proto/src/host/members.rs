//! The members of a host: they come and go as views say.

use std::collections::BTreeSet;
use std::sync::Arc;

use types::{
    ClusterMap, GroupView, HostId, MemberId, RoleIndex, RoleStatus, ScrubProgress, Seq, Time, ViewVersion,
};
use wire::message::GroupMessage;

use super::dormant::Dormants;
use super::history::History;
use super::primaries::Primaries;
use super::roster::Roster;
use super::surroundings::Surroundings;
use super::views::Views;
use crate::outbox::{Means, Peer, ReplyTo};
use crate::parity::{Parity, Rejoined};
use crate::primary::{Pending, Primary};
use crate::{Now, Timing};

/// The members of this host, dense by (group, role).
#[derive(Default)]
pub(super) struct Members {
    primaries: Primaries,
    parities: Roster<Parity>,
    dormant: Dormants,
    /// When a parity has something to do, if nothing has happened to one since.
    parities_due: Option<Time>,
    /// Parities that were here and have left their view: only as learners do they come back.
    left: BTreeSet<MemberId>,
    history: History,
    /// The newest scrub that has ended here.
    scrubbed: u64,
    /// When it was last looked whether a scrub can go on.
    scrub_tried: Time,
}

/// Requests of a primary that was deposed, to be routed anew.
pub(super) struct Deposed {
    pub member: MemberId,
    pub requests: Vec<Pending>,
}

impl Members {
    pub(super) fn primaries(&self) -> &Primaries {
        &self.primaries
    }

    pub(super) fn primaries_mut(&mut self) -> &mut Primaries {
        &mut self.primaries
    }

    pub(super) fn parities(&self) -> &Roster<Parity> {
        &self.parities
    }

    /// Parities that may come back.
    pub(super) fn dormant(&self) -> impl Iterator<Item = &Parity> {
        self.dormant.iter()
    }

    pub(super) fn history(&self) -> History {
        self.history
    }

    /// The parity of `id`, if it is here.
    pub(super) fn parity(&mut self, id: MemberId) -> Option<&mut Parity> {
        self.parities_due = None;
        self.parities.get_mut(id)
    }

    /// A message to `id`, of which a primary is or was here, or is to be.
    pub(super) fn dispatch_to_primary(
        &mut self,
        around: &mut Surroundings,
        now: Now,
        from: HostId,
        message: GroupMessage,
    ) {
        let id = MemberId { group: message.group, role: message.to };
        let from = Peer { role: message.from, host: from };
        self.primaries.with(around, now, id, |primary, context| primary.handle(context, from, message.body));
    }

    pub(super) fn dispatch_to_parity(
        &mut self,
        around: &mut Surroundings,
        now: Now,
        from: HostId,
        message: GroupMessage,
    ) {
        let id = MemberId { group: message.group, role: message.to };
        let (Some(parity), Some(mut context)) = (self.parities.get_mut(id), around.context(now)) else {
            return;
        };
        let waited = parity.waits();
        let from = Peer { role: message.from, host: from };
        parity.handle(&mut context, from, message.body);
        if waited || parity.waits() {
            self.parities_due = None;
        }
        if cfg!(debug_assertions) {
            parity.check_invariants();
        }
    }

    /// A link to `peer` is lost, or another one now.
    pub(super) fn link_broken(&mut self, peer: HostId) {
        self.parities_due = None;
        self.parities.values_mut().for_each(|parity| parity.link_broken(peer));
    }

    pub(super) fn tick_parities(&mut self, around: &mut Surroundings, now: Now) {
        self.parities_due = None;
        let Some(mut context) = around.context(now) else { return };
        self.parities.values_mut().for_each(|parity| parity.tick(&mut context));
    }

    /// When a parity has something to do.
    pub(super) fn parities_due(&mut self, timing: &Timing) -> Time {
        let due = || self.parities.values().map(|parity| parity.due(timing)).min().unwrap_or(Time::NEVER);
        let known = *self.parities_due.get_or_insert_with(due);
        debug_assert!(known <= due(), "no parity waits for longer than it says");
        known
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self, here: HostId, views: &Views) {
        let primaries = self.primaries.all();
        let named = primaries.iter().all(|(id, primary)| primary.core().member() == id);
        assert!(
            named && self.parities.iter().all(|(id, parity)| parity.member() == id),
            "members go by their names"
        );
        let dormant = |parity: &Parity| self.parities.contains(parity.member());
        assert!(!self.dormant.iter().any(dormant), "who is here does not wait to come back");
        let of = |id: MemberId| views.group(id.group);
        let serves =
            |(id, primary): (MemberId, &Primary)| of(id).is_some_and(|view| primary.core().is_named_by(view));
        assert!(primaries.iter().all(serves), "a primary is here while its view says so");
        let is_named = |(id, _): (MemberId, &Parity)| {
            of(id).is_some_and(|view| {
                let learns = view.learner(id.role).is_some_and(|learner| learner.host == here);
                learns || view.parity_host(id.role) == Some(here)
            })
        };
        assert!(self.parities.iter().all(is_named), "a parity is here while its view says so");
    }

    /// Goes on with the scrub that the operators have asked for, as far as it may.
    pub(super) fn go_on_scrubbing(&mut self, around: &mut Surroundings, now: Now) {
        self.scrub_tried = now.time;
        self.parities_due = None;
        let Some(mut context) = around.context(now) else { return };
        let mut scrubbing = self.parities.values().filter(|parity| parity.is_scrubbing()).count();
        for parity in self.parities.values_mut() {
            if scrubbing < context.limits.scrub_sessions {
                scrubbing += usize::from(parity.go_on_scrubbing(&mut context));
            }
        }
        self.note_end_of_scrub(around);
    }

    /// When the scrub is to be looked at, until it has ended here: when its pace allows more, and after a heartbeat where
    /// something else is in its way.
    pub(super) fn scrub_due(&self, around: &Surroundings, now: Now) -> Time {
        let settings = around.pace().scrub();
        let is_told = self.scrubbed == settings.generation;
        // A role may have come here since.
        if !settings.running || is_told && self.scrub_progress(around).left_pages == 0 {
            return Time::NEVER;
        }
        let resumes_at = around.pace().scrub_resumes_at(now.time);
        if resumes_at > now.time {
            resumes_at
        } else {
            self.scrub_tried + around.config().timing.heartbeat_us
        }
    }

    /// When a parity that may come back is not waited for any more.
    pub(super) fn dormant_due(&self) -> Time {
        self.dormant.due()
    }

    /// Dormant parities go that have waited for too long, and all of them if the node is short of memory.
    pub(super) fn trim_dormant(&mut self, around: &Surroundings, now: Now) {
        self.dormant.trim(now.time, &around.config().budget);
    }

    /// Makes this host's members of the group what the view says they are. Gives back the requests of deposed primaries.
    pub(super) fn appoint(&mut self, around: &mut Surroundings, now: Now, view: &GroupView) -> Vec<Deposed> {
        self.parities_due = None;
        // Parities first: a stand-in on the same node talks to them at once. Mirrors last: one may have become a
        // primary.
        let (k, n) = (view.k(), view.k() + view.m());
        for role in k..n {
            self.appoint_parity(around, now, view, RoleIndex(role as u8));
        }
        let primaries = (0..k).map(|role| self.appoint_primary(around, now, view, RoleIndex(role as u8)));
        let deposed = primaries.collect::<Vec<_>>().into_iter().flatten().collect();
        for role in 0..k {
            self.appoint_parity(around, now, view, RoleIndex(role as u8));
        }
        deposed
    }

    /// Members of groups that `map` does not have are no more, and nor is what they held. Who waited for them.
    pub(super) fn dismiss_gone(
        &mut self,
        around: &mut Surroundings,
        now: Now,
        map: &ClusterMap,
    ) -> Vec<ReplyTo> {
        let is_gone = |id: &MemberId| map.group(id.group).is_none();
        let parities: Vec<MemberId> = self.parities.iter().map(|(id, _)| id).filter(is_gone).collect();
        parities.into_iter().for_each(|id| drop(self.remove_parity(id)));
        self.left.retain(|id| !is_gone(id));
        self.dormant.forget(is_gone);
        let gone: Vec<MemberId> = self.primaries.all().iter().map(|(id, _)| id).filter(is_gone).collect();
        let mut waiting = Vec::new();
        for id in gone {
            tracing::info!(member = %id, "its pool is no more");
            if let (Some(primary), Some(mut context)) = (self.primaries.remove(id), around.context(now)) {
                self.history.leaves(&primary);
                waiting.extend(primary.step_down(&mut context).into_iter().map(|pending| pending.reply));
            }
        }
        waiting
    }

    /// A parity, or the mirror of a data role.
    fn appoint_parity(&mut self, around: &Surroundings, now: Now, view: &GroupView, role: RoleIndex) {
        let id = MemberId { group: view.group, role };
        let here = around.host();
        let in_sync = view.parity_host(role) == Some(here);
        let learner = view.learner(role).filter(|learner| learner.host == here);
        match (self.parities.get_mut(id), learner) {
            (Some(parity), None) if in_sync => {
                let rejoined = parity.adopt(view);
                self.note_rejoined(id, rejoined);
            }
            (Some(parity), Some(learner)) if parity.is_learner_since(learner.since) => {
                parity.adopt(view);
            }
            (_, Some(learner)) => self.begin_to_learn(around, id, view, learner.since),
            (Some(_), None) => self.dismiss_parity(around, now, id, view),
            // In sync and not here: of a new group, before any record. Who has left could only learn.
            (None, None) if in_sync && !self.left.contains(&id) => self.create_parity(around, id, view),
            (None, None) => self.dormant.reconsider(id, view),
        }
    }

    fn remove_parity(&mut self, id: MemberId) -> Option<Parity> {
        let mut parity = self.parities.remove(id)?;
        self.history.parity_leaves(&mut parity);
        Some(parity)
    }

    fn create_parity(&mut self, around: &Surroundings, id: MemberId, view: &GroupView) {
        let Some(means) = around.means(id.group) else { return };
        match Parity::new(id, around.host(), view.clone(), means) {
            Ok(parity) => {
                self.parities.insert(id, parity);
            }
            Err(error) => tracing::error!(member = %id, %error, "no address space for a parity area"),
        }
    }

    /// A parity is none any more in `view`.
    fn dismiss_parity(&mut self, around: &Surroundings, now: Now, id: MemberId, view: &GroupView) {
        let Some(parity) = self.remove_parity(id) else { return };
        // Should a view name it in sync that finds it gone, it must not be made anew with nothing.
        self.left.insert(id);
        let until = now.time + around.config().timing.rejoin_us();
        let may_return = self.dormant.keep(parity, view, until);
        tracing::info!(member = %id, view = %view.version, may_return, "parity left the view");
    }

    /// `view` wants this host to learn a role: with what it has of it, if it has been a parity of that role before.
    fn begin_to_learn(&mut self, around: &Surroundings, id: MemberId, view: &GroupView, since: ViewVersion) {
        // It may not have heard of the views between.
        let known = self.remove_parity(id).filter(Parity::may_rejoin);
        let dormant = self.dormant.take(id);
        let former = known.or(dormant).filter(|parity| parity.has_nothing_lost(view));
        tracing::info!(member = %id, view = %view.version, rejoins = former.is_some(), "learner appointed");
        self.left.remove(&id);
        match former {
            Some(mut parity) => {
                parity.rejoin(view, since);
                self.parities.insert(id, parity);
            }
            None => self.create_parity(around, id, view),
        }
    }

    /// A parity that has come back is in sync.
    fn note_rejoined(&mut self, id: MemberId, rejoined: Option<Rejoined>) {
        let Some(rejoined) = rejoined else { return };
        let Rejoined { records, bytes, instead_of_bytes } = rejoined;
        tracing::info!(member = %id, records, bytes, instead_of_bytes, "resumed");
        self.history.note_rejoined(rejoined);
    }

    fn appoint_primary(
        &mut self,
        around: &mut Surroundings,
        now: Now,
        view: &GroupView,
        role: RoleIndex,
    ) -> Option<Deposed> {
        let id = MemberId { group: view.group, role };
        let Some(mut primary) = self.primaries.remove(id) else {
            self.create_primary(around, now, id, view);
            return None;
        };
        let mut context = around.context(now)?;
        if primary.core().is_named_by(view) {
            primary.adopt(&mut context, view);
            self.primaries.insert(id, primary);
            return None;
        }
        tracing::info!(member = %id, term = %primary.core().term(), view = %view.version, "deposed");
        self.history.leaves(&primary);
        // It may be the stand-in as well; then it begins from the index, like any other.
        let requests = primary.step_down(&mut context);
        self.create_primary(around, now, id, view);
        Some(Deposed { member: id, requests })
    }

    /// A primary that the view names and that is not here yet: the first of a role's life, or a stand-in. Only the first one
    /// starts from nothing; if it is not here yet it has never served, and nothing can have been acknowledged without it.
    fn create_primary(&mut self, around: &mut Surroundings, now: Now, id: MemberId, view: &GroupView) {
        let host = around.host();
        let Some(role) = view.data_role(id.role).filter(|role| role.primary == Some(host)) else { return };
        let Some(known) = around.means(id.group) else { return };
        let Means { rules, .. } = known;
        let (config, budget) = (known.config.clone(), known.budget.clone());
        let (pool, protection) = (known.pool.clone(), Arc::clone(known.protection));
        let Some(mut context) = around.context(now) else { return };
        let means = Means { config: &config, budget: &budget, pool: &pool, protection: &protection, rules };
        let primary = match role.status {
            RoleStatus::Full if role.starts_from_nothing() => {
                Primary::first(&mut context, id, host, view, means)
                    .map_err(|error| tracing::error!(member = %id, %error, "no address space for an area"))
                    .ok()
            }
            RoleStatus::Rebuilding { .. } => {
                tracing::info!(member = %id, term = %role.term, view = %view.version, "stand-in appointed");
                // Its mirror may be here: then everything is.
                let mirror = self.remove_parity(id);
                Primary::stand_in(&mut context, id, host, view, mirror, means)
            }
            // Full, and not the first of its life: whoever had the data is not here, and nothing may pass for them. Of
            // the others none is served.
            RoleStatus::Full
            | RoleStatus::Fenced
            | RoleStatus::Orphan(_)
            | RoleStatus::Lost
            | RoleStatus::Accepted => None,
        };
        if let Some(primary) = primary {
            if role.starts_from_nothing() && role.first_seq() > Seq(0) {
                tracing::warn!(member = %id, term = %role.term, "begins anew, empty: what it was is lost");
                self.history.begun_anew += 1;
            }
            self.primaries.insert(id, primary);
        }
    }

    /// How far the newest scrub has come here.
    pub(super) fn scrub_progress(&self, around: &Surroundings) -> ScrubProgress {
        let settings = around.pace().scrub();
        let nothing = ScrubProgress { generation: settings.generation, ..ScrubProgress::default() };
        let parities = self.parities.values();
        parities
            .filter_map(|parity| parity.scrub_progress(settings))
            .fold(nothing, |sum, progress| sum.plus(progress))
    }

    /// Says once that everything here has been compared.
    fn note_end_of_scrub(&mut self, around: &Surroundings) {
        let settings = around.pace().scrub();
        if !settings.running || self.scrubbed == settings.generation {
            return;
        }
        let progress = self.scrub_progress(around);
        if progress.left_pages == 0 {
            self.scrubbed = settings.generation;
            let ScrubProgress { generation, checked_pages, mismatches, corrected, .. } = progress;
            tracing::info!(host = %around.host(), generation, checked_pages, mismatches, corrected, "scrub has ended here");
        }
    }
}
