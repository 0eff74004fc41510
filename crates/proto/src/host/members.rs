//! Members come and go as views say.

use cluster::{ClusterMap, Epoch, GroupView, MemberId, RoleIndex, RoleStatus, Seq, Term, Time, ViewVersion};
use wire::message::ToCoordinator;

use super::Host;
use crate::Now;
use crate::outbox::Context;
use crate::parity::Parity;
use crate::primary::{Pending, Primary, Question};

impl Host {
    /// A map: the first one, or one in which nodes or views have changed.
    pub(super) fn adopt_map(&mut self, now: Now, map: ClusterMap) {
        if let Err(error) = map.check() {
            return tracing::error!(%error, "a map that cannot be");
        }
        let Some(known) = &mut self.map else {
            match map.profile.code() {
                Ok(code) => self.code = Some(code),
                Err(error) => {
                    return tracing::error!(%error, profile = %map.profile, "the map's profile has no code");
                }
            }
            self.config.store.cluster = map.cluster;
            self.pace.set(&map.layout, map.shards);
            let groups = map.groups.clone();
            self.map = Some(map);
            for view in groups {
                self.appoint(now, &view);
            }
            return self.reroute(now);
        };
        if map.version <= known.version || map.cluster != known.cluster {
            return;
        }
        known.version = map.version;
        known.nodes = map.nodes;
        known.layout = map.layout;
        self.pace.set(&known.layout, known.shards);
        for view in map.groups {
            self.adopt_view(now, view);
        }
        self.abandon_forwards_to_the_lost(now);
        self.reroute(now);
    }

    /// A group's view, if it is newer than the one known.
    pub(super) fn adopt_view(&mut self, now: Now, view: GroupView) {
        let Some(map) = &mut self.map else { return };
        if !map.has_place_for(&view) {
            return tracing::error!(group = %view.group, view = %view.version, "a view that this map has no place for");
        }
        if !map.adopt(view.clone()) {
            return;
        }
        self.view_asked.remove(&view.group);
        self.appoint(now, &view);
        self.replay_early(now, view.group);
        self.abandon_forwards_of(now, &view);
        self.reroute(now);
    }

    fn is_of_this_shard(&self, view: &GroupView) -> bool {
        let shards = self.map.as_ref().map_or(1, |map| map.shards.max(1));
        view.group.0 % u32::from(shards) == u32::from(self.config.shard)
    }

    /// Makes this host's members of the group what the view says they are.
    fn appoint(&mut self, now: Now, view: &GroupView) {
        if !self.is_of_this_shard(view) {
            return;
        }
        // Parities first: a stand-in on the same node talks to them at once. Mirrors last: one may have become a primary.
        let (k, n) = (view.k(), view.k() + view.m());
        for role in k..n {
            self.appoint_parity(now, view, RoleIndex(role as u8));
        }
        for role in 0..k {
            self.appoint_primary(now, view, RoleIndex(role as u8));
        }
        for role in 0..k {
            self.appoint_parity(now, view, RoleIndex(role as u8));
        }
    }

    /// A parity, or the mirror of a data role.
    fn appoint_parity(&mut self, now: Now, view: &GroupView, role: RoleIndex) {
        let id = MemberId { group: view.group, role };
        let here = self.config.host;
        let in_sync = view.parity_host(role) == Some(here);
        let learner = view.learner(role).filter(|learner| learner.host == here);
        match (self.members.parities.get_mut(&id), learner) {
            (Some(parity), None) if in_sync => {
                let rejoined = parity.adopt(view);
                self.note_rejoined(id, rejoined);
            }
            (Some(parity), Some(learner)) if parity.is_learner_since(learner.since) => {
                parity.adopt(view);
            }
            (_, Some(learner)) => self.begin_to_learn(id, view, learner.since),
            (Some(_), None) => self.dismiss_parity(now, id, view),
            (None, None) if in_sync && !self.left.contains(&id) => self.create_parity(id, view),
            (None, None) => self.reconsider_dormant(id, view),
        }
    }

    pub(super) fn create_parity(&mut self, id: MemberId, view: &GroupView) {
        match Parity::new(id, self.config.host, view.clone(), &self.config.store, &self.config.budget) {
            Ok(parity) => {
                self.members.parities.insert(id, parity);
            }
            Err(error) => tracing::error!(member = %id, %error, "no address space for a parity area"),
        }
    }

    fn appoint_primary(&mut self, now: Now, view: &GroupView, role: RoleIndex) {
        let id = MemberId { group: view.group, role };
        let Some(mut primary) = self.members.primaries.remove(&id) else {
            return self.create_primary(now, id, view);
        };
        if primary.is_named_by(view) {
            self.with_context(now, |context| primary.adopt(context, view));
            self.members.primaries.insert(id, primary);
            return;
        }
        tracing::info!(member = %id, term = %primary.term(), view = %view.version, "deposed");
        let requests = self.with_context(now, |context| primary.step_down(context)).unwrap_or_default();
        self.create_primary(now, id, view);
        self.route_again(now, id, requests);
    }

    /// A primary that the view names and that is not here yet: the first of a role's life, or a stand-in. Only the first one
    /// starts from nothing; if it is not here yet it has never served, and nothing can have been acknowledged without it.
    fn create_primary(&mut self, now: Now, id: MemberId, view: &GroupView) {
        let Some(role) = view.data_role(id.role).filter(|role| role.primary == Some(self.config.host)) else {
            return;
        };
        let (host, config, budget) =
            (self.config.host, self.config.store.clone(), self.config.budget.clone());
        let primary = match role.status {
            RoleStatus::Full if role.starts_from_nothing() => self.with_context(now, |context| {
                Primary::first(context, id, host, view, &config, &budget)
                    .map_err(|error| tracing::error!(member = %id, %error, "no address space for an area"))
                    .ok()
            }),
            RoleStatus::Rebuilding { .. } => {
                tracing::info!(member = %id, term = %role.term, view = %view.version, "stand-in appointed");
                // Its mirror may be here: then everything is.
                let mirror = self.members.parities.remove(&id);
                self.with_context(now, |context| {
                    Primary::stand_in(context, id, host, view, mirror, (&config, &budget))
                })
            }
            _ => None,
        };
        if let Some(primary) = primary.flatten() {
            if role.starts_from_nothing() && role.first_seq() > Seq(0) {
                tracing::warn!(member = %id, term = %role.term, "begins anew, empty: what it was is lost");
                self.stats.accepted_losses += 1;
            }
            self.members.primaries.insert(id, primary);
        }
    }

    fn route_again(&mut self, now: Now, member: MemberId, requests: Vec<Pending>) {
        for pending in requests {
            self.route(now, member, pending);
        }
    }

    /// Runs `act` with a context; none before there is a map.
    pub(super) fn with_context<T>(&mut self, now: Now, act: impl FnOnce(&mut Context<'_>) -> T) -> Option<T> {
        let code = self.code.as_ref()?;
        let (timing, limits) = (&self.config.timing, &self.config.limits);
        let groups = self.group_count();
        let (out, pace) = (&mut self.outbox, &mut self.pace);
        Some(act(&mut Context { now, timing, limits, code, groups, pace, out }))
    }

    /// Runs `act` on a primary of this host; none if it is not here.
    pub(super) fn with_primary<T>(
        &mut self,
        now: Now,
        id: MemberId,
        act: impl FnOnce(&mut Primary, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let groups = self.group_count();
        let primary = self.members.primaries.get_mut(&id)?;
        let code = self.code.as_ref()?;
        let (timing, limits) = (&self.config.timing, &self.config.limits);
        let (out, pace) = (&mut self.outbox, &mut self.pace);
        let result = act(primary, &mut Context { now, timing, limits, code, groups, pace, out });
        if cfg!(debug_assertions) {
            primary.check_invariants();
        }
        Some(result)
    }

    /// Whether the coordinator of `epoch` commands here: not if a later one has been heard.
    pub(super) fn obeys(&mut self, epoch: Epoch) -> bool {
        let newest = epoch >= self.epoch || crate::planted(crate::Bug::OldCoordinatorObeyed);
        self.epoch = self.epoch.max(epoch);
        newest
    }

    /// Recovery, F1.
    pub(super) fn handle_fence(
        &mut self,
        now: Now,
        parity: MemberId,
        role: RoleIndex,
        (term, epoch): (Term, Epoch),
    ) {
        let Some(member) = self.members.parities.get_mut(&parity) else { return };
        if let Some(fenced) = member.fence(now.time, role, (term, epoch)) {
            self.outbox.coordinator.push_back(fenced);
        }
    }

    /// Recovery, F3.
    pub(super) fn handle_settle(
        &mut self,
        now: Now,
        parity: MemberId,
        role: RoleIndex,
        (term, epoch): (Term, Epoch),
        upto: Seq,
    ) {
        let (parities, mut context) = self.parities_and_context(now);
        let Some(member) = parities.get_mut(&parity) else { return };
        if member.settle(&mut context, role, term, upto) {
            context.coordinator(ToCoordinator::Settled {
                group: parity.group,
                role,
                term,
                parity: parity.role,
                epoch,
            });
        }
    }

    /// The mirror of a primary here is whole.
    pub(super) fn handle_hand_over(
        &mut self,
        now: Now,
        member: MemberId,
        term: Term,
        (since, asked_at, epoch): (ViewVersion, Time, Epoch),
    ) {
        self.with_primary(now, member, |primary, context| {
            primary.hand_over(context, term, Question { since, asked_at, epoch });
        });
    }

    /// Whether this host has `view` of `group`, and so is nothing of what only older ones name.
    pub(super) fn handle_confirm(
        &mut self,
        now: Now,
        group: cluster::GroupId,
        (view, epoch): (ViewVersion, Epoch),
    ) {
        let Some(known) = self.map.as_ref().and_then(|map| map.group(group)).cloned() else { return };
        if known.version < view {
            self.fetch_view(now, group);
        } else if self.is_of_this_shard(&known) {
            self.outbox.coordinator.push_back(ToCoordinator::Confirmed { group, view, epoch });
        }
    }

    /// Asks for a group's view, once per retry time-out.
    pub(super) fn fetch_view(&mut self, now: Now, group: cluster::GroupId) {
        let asked: Option<Time> = self.view_asked.get(&group).copied();
        if asked.is_none_or(|at| now.time.since(at) >= self.config.timing.heartbeat_us) {
            self.view_asked.insert(group, now.time);
            self.outbox.coordinator.push_back(ToCoordinator::FetchView { group });
        }
    }
}
