//! What becomes of groups that lose members: roles are recovered, or what is lost is declared so (protocol, section 4).

use types::{GroupId, GroupView, HostId, MemberId, PoolSlots, RoleStatus, Term, Time};

use super::decide;
use super::loss::{Judgement, Losses};
use super::nodes::NodeState;
use super::recovery::{Former, Recoveries, roles_without_primary};
use super::state::{ClusterState, Wanted};
use crate::Now;

/// See the module.
#[derive(Default)]
pub(super) struct Repairs {
    recoveries: Recoveries,
    losses: Losses,
}

/// A stand-in whose node has had no memory for its pages for a while.
pub(super) struct Starved {
    pub member: MemberId,
    pub term: Term,
    /// What all of its pages take.
    pub bytes: u64,
}

impl Repairs {
    pub(super) fn recoveries_mut(&mut self) -> &mut Recoveries {
        &mut self.recoveries
    }

    pub(super) fn losses(&self) -> &Losses {
        &self.losses
    }

    pub(super) fn losses_mut(&mut self) -> &mut Losses {
        &mut self.losses
    }

    /// What has to be done again and again until it is done.
    pub(super) fn tick(&mut self, now: Now, state: &mut ClusterState) {
        // Stand-ins that are whole have said so by now: their groups go on, the others are lost.
        for group in self.losses.resolved(now.time, state) {
            self.after_loss(now, state, group);
            self.losses.end_doubt(group);
        }
        self.recoveries.retry(now, state);
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, state: &ClusterState) -> Time {
        self.losses.doubts_due(state).min(self.recoveries.due(state))
    }

    /// F0 for everything that `host` was.
    pub(super) fn lose(&mut self, now: Now, state: &mut ClusterState, host: HostId) {
        let dead = state.nodes().get(host).is_some_and(NodeState::is_dead);
        let has_it = |view: &&GroupView| view.keepers().any(|other| other == host);
        let affected: Vec<GroupId> = state.views().filter(has_it).map(|view| view.group).collect();
        for group in affected {
            // Nobody could recover what it has, and it may only be slow.
            if is_worth_waiting_for(state, host, group) {
                tracing::error!(%group, %host, "losing this host would lose data; waiting for it to come back");
                continue;
            }
            // A stand-in's death says nothing of the one before it, whose lease it may have been waiting for.
            let Some(before) = state.view(group).map(|view| view.data.clone()) else { continue };
            let (rules, protection, mut fenced) = (state.rules(), state.protection(group), Vec::new());
            // One change for all that it was: between two of them a parity of the dead would have to answer F1.
            state.change_view(group, |view| fenced = decide::remove_host(rules, view, &protection, host));
            for role in fenced {
                let alone = decide::had_no_predecessor(&before[usize::from(role.0)]);
                let former = if dead && alone { Former::Dead } else { Former::MayLive };
                self.recoveries.begin(MemberId { group, role }, former, Wanted::default());
            }
            self.after_loss(now, state, group);
        }
    }

    /// Groups are no more.
    pub(super) fn forget_gone(&mut self, state: &ClusterState) {
        self.recoveries.forget_gone(state);
        self.losses.forget_gone(state);
    }

    /// The in-sync parities of `group`, or its roles, have become fewer.
    pub(super) fn after_loss(&mut self, now: Now, state: &mut ClusterState, group: GroupId) {
        match self.losses.judge(now, state, group) {
            Some(Judgement::Lost) => {
                self.losses.declare(state, group);
                // Those go on whose mirrors have everything.
                self.recoveries.restart(now, state, group);
            }
            Some(Judgement::Repairable) => self.recoveries.restart(now, state, group),
            Some(Judgement::Doubtful) | None => {}
        }
    }

    /// The primary of `member` is cut off from its parities: another host goes on, and not `host`.
    pub(super) fn depose(&mut self, now: Now, state: &mut ClusterState, host: HostId, member: MemberId) {
        tracing::info!(%member, %host, "primary is cut off from its parities; deposing it");
        // It lives, so its lease is waited for; and it cannot reach the parities, so it must not be the stand-in.
        self.replace(now, state, member, Wanted { avoid: Some(host), room: 0 });
    }

    /// A stand-in's node has no memory for it: it makes way if a node without a role in the group has. What it has is in the sums of
    /// the parities, and is decoded anew there.
    pub(super) fn handle_starved(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        from: HostId,
        starved: &Starved,
    ) {
        let Starved { member, term, bytes } = *starved;
        let data = state.view(member.group).and_then(|view| view.data_role(member.role));
        let is_paused = state.map().is_some_and(|map| map.layout.repair.paused);
        if is_paused || !data.is_some_and(|role| decide::is_rebuilding(role, from, term)) {
            return;
        }
        let wanted = Wanted { avoid: Some(from), room: bytes };
        if state.rules().starved_stand_ins_make_way() && has_better_place(state, member, wanted) {
            tracing::info!(%member, host = %from, bytes, "stand-in has no memory, and another node has: replacing it");
            self.replace(now, state, member, wanted);
        }
    }

    /// Whoever serves `member` now, and lives, is followed by a stand-in as `wanted`.
    fn replace(&mut self, now: Now, state: &mut ClusterState, member: MemberId, wanted: Wanted) {
        let (rules, protection) = (state.rules(), state.protection(member.group));
        state.change_view(member.group, |view| {
            decide::fence(view, &protection, member.role);
            decide::cancel_learners(rules, view);
        });
        self.recoveries.begin(member, Former::MayLive, wanted);
        self.recoveries.restart(now, state, member.group);
    }

    /// The primary of `member` keeps still until then: its role is fenced, and its mirror takes over.
    pub(super) fn hand_over(
        &mut self,
        now: Now,
        state: &mut ClusterState,
        member: MemberId,
        still_until: Time,
    ) {
        tracing::info!(%member, "primary makes way for its mirror");
        let (rules, protection) = (state.rules(), state.protection(member.group));
        state.change_view(member.group, |view| {
            decide::fence(view, &protection, member.role);
            // What another learner was taught by this primary the next one knows nothing of.
            if rules.hand_overs().lessons_end_with_their_teacher() {
                view.learners.retain(|learner| learner.whole);
            }
        });
        self.recoveries.begin(member, Former::Still(still_until), Wanted::default());
        self.recoveries.restart(now, state, member.group);
    }

    /// An operator gives up everything. Processes that are silent count as fenced: they come back as new ones, or not at all.
    pub(super) fn reset(&mut self, now: Now, state: &mut ClusterState) -> Vec<PoolSlots> {
        tracing::warn!("an operator has given up all data");
        for node in state.nodes().silent(now.time, state.lease_us()) {
            state.nodes_mut().fence(node);
        }
        // Before the roles are given up: a successor has to know who was fenced for it.
        state.publish_nodes();
        self.losses.give_all_up(state);
        self.recoveries.forget_all();
        let pools = state.map().into_iter().flat_map(|map| &map.catalog.pools);
        pools.map(|pool| PoolSlots { pool: pool.name.clone(), slots: pool.all_slots() }).collect()
    }

    /// What was under way when a former coordinator ended.
    pub(super) fn go_on(&mut self, now: Now, state: &mut ClusterState) {
        for member in roles_without_primary(state).collect::<Vec<_>>() {
            self.recoveries.begin(member, Former::MayLive, Wanted::default());
        }
        // Processes that views still name although they are fenced, or others have taken their names: the former
        // coordinator was about to take them out.
        let owns = |host: &HostId| state.nodes().get(*host).is_some_and(|node| !node.is_fenced());
        let gone: std::collections::BTreeSet<HostId> =
            state.views().flat_map(GroupView::keepers).filter(|host| !owns(host)).collect();
        for host in gone {
            self.lose(now, state, host);
        }
        let is_to_be_judged =
            |view: &&GroupView| decide::is_to_be_judged(view, &state.protection(view.group));
        let beyond = state.views().filter(is_to_be_judged).map(|view| view.group);
        for group in beyond.collect::<Vec<GroupId>>() {
            self.after_loss(now, state, group);
        }
    }

    pub(super) fn check_invariants(&self, state: &ClusterState) {
        self.recoveries.check_invariants(state);
    }
}

/// Whether a node without a role in the group of `member` has what is `wanted`, and is not rebuilding anything: what that will take is
/// not known yet.
fn has_better_place(state: &ClusterState, member: MemberId, wanted: Wanted) -> bool {
    let Some(view) = state.view(member.group) else { return false };
    let rebuilds = |host: HostId| {
        let roles = state.views().flat_map(|view| &view.data);
        let mut rebuilding = roles.filter(|role| matches!(role.status, RoleStatus::Rebuilding { .. }));
        rebuilding.any(|role| role.primary == Some(host))
    };
    let candidates = state.candidates(wanted);
    let is_better = |host: HostId| {
        let node = candidates.iter().find(|node| node.host == host);
        node.is_some_and(|node| node.can_host && !node.draining) && view.roles_on(host.node) == 0
    };
    let choice = cluster::choose_stand_in(view, &candidates, state.index().roles());
    choice.is_some_and(|host| is_better(host) && !rebuilds(host))
}

/// Whether `group` is better off waiting for a suspected host than going on without it.
fn is_worth_waiting_for(state: &ClusterState, host: HostId, group: GroupId) -> bool {
    let suspected = state.nodes().get(host).is_some_and(NodeState::is_suspected);
    let Some(mut without) = state.view(group).cloned() else { return false };
    let protection = state.protection(group);
    decide::remove_host(state.rules(), &mut without, &protection, host);
    suspected && state.is_beyond_repair(&without)
}
