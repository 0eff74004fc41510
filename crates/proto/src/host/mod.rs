//! One worker's share of a node: its members, its routes, and the requests that pass through.
//!
//! This file routes: what the coordinator, a peer or a client sends goes to the part that it concerns. What members want done waits
//! in the outbox until the driver asks for it.
//!
//! | part | what it keeps |
//! | --- | --- |
//! | `surroundings` | what members act in: configuration, code, pace, outbox |
//! | `views` | the map, and where keys lie by it (`homes`) |
//! | `links` | who is linked, and what of theirs waits (`early`) |
//! | `members` | `primaries` and parities, each kind in a `roster`, also those that may come back (`dormant`) |
//! | `routes` | requests that are elsewhere, or wait for a primary; `route` finds it |
//! | `onward` | requests for data roles of the pool that a namespace moves to; `follow` sends them there |
//!
//! `actions` is what the driver is asked to do, `timers` says what is done when time has passed, `quotas` what becomes of shares of quotas, `dispatch` what a peer's message can be, `inspect` shows the inside to tests and to `status`, `memory` counts its bytes.

pub(crate) mod actions;
mod dispatch;
mod dormant;
pub(crate) mod driver;
mod early;
pub(crate) mod follow;
mod history;
mod homes;
pub mod inspect;
mod links;
mod members;
mod memory;
mod objects;
mod onward;
mod primaries;
mod quotas;
mod roster;
mod route;
mod routes;
mod stats;
mod surroundings;
mod timers;
mod views;
mod zones;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use types::op::{Failure, Outcome};
use types::{
    ClusterMap, Epoch, GroupId, GroupView, HostId, MapChanges, MemberId, Round, Scan, ScrubProgress,
    ViewVersion,
};
use wire::message::{FromCoordinator, GroupMessage, PeerMessage, ToCoordinator};

use crate::impossible::Accusation;
use crate::latency::HostLatencies;
use crate::objects::{GraphStats, Objects};
use crate::outbox::Context;
use crate::parity::ScrubFinding;
use crate::primary::{Primary, Question, QuickRead, Seen};
use crate::timers::TimerTable;
use crate::{Impossible, Now};
pub use driver::{Action, HostConfig, Place, Read, Submitted, Token, WriteNews, WriteStep};

use dispatch::{check_term, is_of_session};
use links::Links;
use members::Members;
pub use memory::{HostMemory, IndexMemory};
pub use objects::Streams;
use onward::Onward;
use routes::Routes;
pub use stats::HostStats;
pub(crate) use surroundings::Surroundings;
use timers::TIMERS;
pub(crate) use views::Views;
pub(crate) use zones::Zones;

/// One worker's share of a node.
pub struct Host {
    around: Surroundings,
    views: Views,
    links: Links,
    members: Members,
    routes: Routes,
    onward: Onward,
    objects: Objects,
    /// A round of shares that was heard, and not noted yet.
    round: Option<Round>,
    /// Peers whose links the driver is to close.
    to_close: VecDeque<Accusation>,
    timers: TimerTable<TIMERS>,
    stats: HostStats,
}

impl Host {
    /// A host without a map; it serves nothing yet.
    #[must_use]
    pub fn new(config: HostConfig) -> Self {
        Self {
            around: Surroundings::new(config),
            views: Views::default(),
            links: Links::default(),
            members: Members::default(),
            routes: Routes::default(),
            onward: Onward::default(),
            objects: Objects::default(),
            round: None,
            to_close: VecDeque::new(),
            timers: TimerTable::default(),
            stats: HostStats::default(),
        }
    }

    /// The map, once the coordinator has sent one.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> {
        self.views.map()
    }

    /// A message of a coordinator that commands here, as [`crate::Entrance`] finds. One of a group is for the shard that has it,
    /// all others are for every shard.
    pub fn handle_coordinator(&mut self, now: Now, message: FromCoordinator) {
        // First, for what comes may need the memory that they have.
        self.members.trim_dormant(&self.around, now);
        match message {
            FromCoordinator::Map(map) => self.adopt_map(now, &map),
            FromCoordinator::Changes(changes) => self.adopt_changes(now, &changes),
            FromCoordinator::View(view) => {
                self.adopt_view(now, &view);
                self.streams(now).hear_view(view.group);
            }
            FromCoordinator::Fence { group, role, term, parity, epoch } => {
                let parity = self.members.parity(MemberId { group, role: parity });
                let fenced = parity.and_then(|parity| parity.fence(now.time, role, term, epoch));
                self.around.out().coordinator.extend(fenced);
            }
            FromCoordinator::Settle { group, role, term, parity, upto, epoch } => {
                let member = self.members.parity(MemberId { group, role: parity });
                if let (Some(member), Some(mut context)) = (member, self.around.context(now))
                    && member.settle(&mut context, role, term, upto)
                {
                    context.coordinator(ToCoordinator::Settled { group, role, term, parity, epoch });
                }
            }
            FromCoordinator::HandOver { group, role, term, since, asked_at, epoch } => {
                let question = Question { since, asked_at, epoch };
                let hand_over = |primary: &mut Primary, context: &mut Context<'_>| {
                    primary.hand_over(context, term, question);
                };
                self.members.primaries_mut().with(&mut self.around, now, MemberId { group, role }, hand_over);
            }
            FromCoordinator::Confirm { group, view, epoch } => self.handle_confirm(now, group, view, epoch),
            FromCoordinator::Shares { round, grants } => self.handle_shares(now, round, &grants),
            // These concern the process (`Entrance`) or whoever asked, and no member.
            FromCoordinator::Alive
            | FromCoordinator::Waiting
            | FromCoordinator::Forming(_)
            | FromCoordinator::Refused(_)
            | FromCoordinator::Occupied { .. }
            | FromCoordinator::Keep { .. }
            | FromCoordinator::Recall { .. }
            | FromCoordinator::Admin { .. } => {}
        }
        self.carry_out(now);
    }

    /// A whole map: the first one, or a later one of the same cluster.
    fn adopt_map(&mut self, now: Now, map: &ClusterMap) {
        if let Err(error) = map.check() {
            return tracing::error!(%error, "a map that cannot be");
        }
        match self.views.map() {
            None => self.begin(now, map),
            // Maps come from every coordinator and on every connection, so older ones may come later.
            Some(known) if map.cluster != known.cluster || map.version <= known.version => {}
            Some(known) => {
                let changes = known.changes_to(map);
                self.adopt_changes(now, &changes);
            }
        }
    }

    fn begin(&mut self, now: Now, map: &ClusterMap) {
        self.around.begin(map);
        self.views.begin(map.clone());
        for view in &map.groups {
            self.appoint(now, view);
            self.streams(now).adopt(view);
        }
        keep_room(self);
        self.reroute(now);
    }

    /// What has changed of the map.
    fn adopt_changes(&mut self, now: Now, changes: &MapChanges) {
        let (rules, host) = (self.around.config().rules, self.around.host());
        let adopted = match self.views.adopt_changes(changes, rules, host) {
            Ok(adopted) => adopted,
            Err(error) => return tracing::error!(%error, "changes of the map that cannot be"),
        };
        if adopted.is_whole {
            self.heed(now, changes);
        }
        let taken: Vec<&GroupView> =
            changes.views.iter().filter(|view| adopted.views.contains(&view.group)).collect();
        taken.iter().for_each(|view| self.appoint(now, view));
        taken.iter().for_each(|view| self.note_view(now, view));
        keep_room(self);
        if adopted.is_whole && !(changes.nodes.is_empty() && changes.gone.is_empty()) {
            self.abandon_forwards_to_the_lost(now);
        }
        self.reroute(now);
    }

    /// What a change says beside its views.
    fn heed(&mut self, now: Now, changes: &MapChanges) {
        let Some(map) = self.views.map() else { return };
        if !changes.gone.is_empty() {
            let is_there = |node| map.nodes.iter().any(|info| info.host.node == node);
            self.around.meter_mut().retain(is_there);
            self.objects.retain_nodes(is_there);
        }
        if changes.catalog.is_some() || changes.layout.is_some() {
            self.around.adopt(map);
            // The pace of background work may be another one.
            self.members.primaries_mut().touch_all();
            self.objects.touch();
        }
        if changes.catalog.is_some() {
            self.streams(now).dismiss_gone();
            let Some(map) = self.views.map() else { return };
            for reply in self.members.dismiss_gone(&mut self.around, now, map) {
                self.around.out().reply(reply, Outcome::Failed(Failure::NoNamespace));
            }
            self.streams(now).heed_quotas();
        }
    }

    /// A group's view, if it is newer than the one known. One that makes this host a primary comes with all that has changed of the map
    /// before it: what namespaces have moved to other pools decides what a primary may answer.
    fn adopt_view(&mut self, now: Now, view: &GroupView) {
        let (rules, host) = (self.around.config().rules, self.around.host());
        if rules.conversions().primaries_know_the_map(self.views.appoints(view, host)) {
            return;
        }
        if self.views.adopt(view) {
            self.appoint(now, view);
            self.note_view(now, view);
            keep_room(self);
            self.reroute(now);
        }
    }

    /// A group's view is another one, and its members are those that it names.
    fn note_view(&mut self, now: Now, view: &GroupView) {
        // Only now: the members have to be of the view that these messages belong to.
        for (from, message) in self.links.take_early(view.group) {
            self.dispatch_group(now, from, message);
        }
        self.abandon_forwards_of(now, view);
        self.streams(now).adopt(view);
    }

    fn appoint(&mut self, now: Now, view: &GroupView) {
        if !self.is_of_this_shard(view.group) {
            return;
        }
        for deposed in self.members.appoint(&mut self.around, now, view) {
            for pending in deposed.requests {
                self.route_anew(now, Some(deposed.member), pending);
            }
        }
    }

    fn is_of_this_shard(&self, group: GroupId) -> bool {
        self.views.is_of_shard(group, self.around.config().shard)
    }

    /// Whether this host has `view` of `group`, and so is nothing of what only older ones name.
    fn handle_confirm(&mut self, now: Now, group: GroupId, view: ViewVersion, epoch: Epoch) {
        let Some(known) = self.views.group(group).map(|known| known.version) else { return };
        if known < view {
            self.fetch_view(now, group);
        } else if self.is_of_this_shard(group) {
            self.around.out().coordinator.push_back(ToCoordinator::Confirmed { group, view, epoch });
        }
    }

    /// Asks for a group's view, now and then.
    fn fetch_view(&mut self, now: Now, group: GroupId) {
        if self.views.may_ask(group, now.time, &self.around.config().timing) {
            self.around.out().coordinator.push_back(ToCoordinator::FetchView { group });
        }
    }

    /// A link to `peer` is up, in both directions; what was in flight on the one before is lost.
    pub fn link_up(&mut self, now: Now, peer: HostId) {
        self.links.up(peer);
        // A link may be replaced without having been seen to go down.
        self.members.link_broken(peer);
        let link_up = |primary: &mut Primary, context: &mut Context<'_>| primary.link_up(context, peer);
        self.members.primaries_mut().for_each(&mut self.around, now, link_up);
        self.streams(now).link_up(peer);
        self.reroute(now);
        self.carry_out(now);
    }

    /// The link to `peer` is down.
    pub fn link_down(&mut self, now: Now, peer: HostId) {
        self.links.down(peer);
        self.members.link_broken(peer);
        let link_down = |primary: &mut Primary, context: &mut Context<'_>| primary.link_down(context, peer);
        self.members.primaries_mut().for_each(&mut self.around, now, link_down);
        self.streams(now).link_down(peer);
        self.abandon_forwards(now, |forwarded| forwarded.to == peer);
        self.carry_out(now);
    }

    /// A message of `from`, in the order of sending on that link.
    pub fn handle_peer(&mut self, now: Now, from: HostId, message: PeerMessage) {
        if self.links.believes(from) {
            self.members.trim_dormant(&self.around, now);
            self.dispatch(now, from, message);
            self.carry_out(now);
        }
    }

    fn dispatch(&mut self, now: Now, from: HostId, message: PeerMessage) {
        match message {
            PeerMessage::Group(message) => self.dispatch_group(now, from, message),
            PeerMessage::Forward(forward) => self.handle_forward(now, from, forward),
            PeerMessage::Answer(answer) => self.handle_answer(now, from, answer),
            PeerMessage::Object(message) => self.streams(now).dispatch(from, *message),
            PeerMessage::Graph(message) => self.streams(now).dispatch_graph(from, *message),
        }
    }

    fn dispatch_group(&mut self, now: Now, from: HostId, message: GroupMessage) {
        // Without a map there is no member either. Whoever sends this says it again.
        let Some(view) = self.views.group(message.group) else { return };
        let known = view.version;
        if let Err(why) = check_term(view, from, &message) {
            return self.around.out().accusations.push((from, why));
        }
        if message.view > known {
            self.fetch_view(now, message.group);
        }
        if is_of_session(&message.body) && message.view != known {
            // It waits for the view that it belongs to; one of an older view is moot.
            if message.view > known {
                self.links.keep_early(&self.around.config().limits, from, message);
            }
            return;
        }
        // All else is handled in any view, for its term says whether it counts: commits do not wait for news.
        let to = MemberId { group: message.group, role: message.to };
        // A mirror has the number of the role that it mirrors.
        if self.views.is_primary_role(to) && !self.members.parities().contains(to) {
            self.members.dispatch_to_primary(&mut self.around, now, from, message);
        } else {
            self.members.dispatch_to_parity(&mut self.around, now, from, message);
        }
    }

    /// Where `key` is. To be asked once for each request: it is what hashing the key takes.
    #[must_use]
    pub fn locate(&self, key: &[u8]) -> Place {
        self.views.locate(key)
    }

    /// Reads what is at `place`, if this host is its primary, holds a lease and has the item at hand: no allocation, no
    /// message.
    pub fn read(
        &mut self,
        now: Now,
        place: Place,
        read: QuickRead<'_>,
        found: impl FnOnce(Seen<'_>),
    ) -> Read {
        let member = place.member.filter(|_| place.refusal.is_none());
        let Some(primary) = member.and_then(|member| self.members.primaries_mut().get_mut(member)) else {
            return Read::Submit;
        };
        let (timing, edition) = (&self.around.config().timing, self.around.edition());
        let read = primary.read(now, (timing, edition), place.hash, read, found);
        self.stats.count_read(read);
        read
    }

    /// Builds the Frames that the inputs since the last call made due, and sets the timers. To be called once per batch of inputs.
    pub fn flush(&mut self, now: Now) {
        self.flush_primaries(now);
        self.note_round(now);
        self.arm(now);
    }

    fn flush_primaries(&mut self, now: Now) {
        // A parity on this very node answers within the call, and its answer may make the next Frame due.
        for _ in 0..MAX_FLUSH_ROUNDS {
            self.members.primaries_mut().flush(&mut self.around, now);
            if !self.carry_out(now) {
                return;
            }
        }
    }

    /// Counters since the start, and what is held now.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let stats = self.stats.with_members(&self.members, self.routes.forwards(), self.scrub_progress());
        stats.with_objects(self.objects.stats(), self.objects.scrub_totals())
    }

    /// What coding graphs have done here.
    #[must_use]
    pub fn graph_stats(&self) -> GraphStats {
        self.objects.graphs().stats()
    }

    /// Where its memory goes. Takes a pass over all run tables, and asks the system for each extent.
    #[must_use]
    pub fn memory(&self) -> HostMemory {
        let passing = self.routes.memory_bytes() + self.onward.memory_bytes() + self.links.memory_bytes();
        let queued = passing + self.around.outbox().memory_bytes() + self.objects.memory_bytes();
        HostMemory::of(&self.members, &self.objects, queued)
    }

    /// How far the newest scrub has come here.
    #[must_use]
    pub fn scrub_progress(&self) -> ScrubProgress {
        let of_chunks = self.objects.scrub_progress(self.around.pace().scrub());
        self.members.scrub_progress(&self.around).plus(of_chunks)
    }

    /// What the newest scrub has found here.
    pub fn scrub_findings(&self) -> impl Iterator<Item = &ScrubFinding> {
        self.members.parities().values().flat_map(|parity| parity.scrub_findings())
    }

    /// What requests have waited for.
    #[must_use]
    pub fn latencies(&self) -> &HostLatencies {
        &self.around.outbox().latencies
    }

    /// Does what members want until nothing is left that concerns this host; whether there was anything.
    #[inline]
    fn carry_out(&mut self, now: Now) -> bool {
        let any = self.around.outbox().concerns_host() && carry_out_all(self, now);
        self.check_invariants();
        any
    }

    /// What holds after every event.
    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.members.check_invariants(self.around.host(), &self.views);
            self.routes.check_invariants();
            self.objects.check_invariants(&self.around.config().timing);
        }
    }

    /// `peer` has sent what cannot be.
    #[cold]
    fn close(&mut self, peer: HostId, why: Impossible) {
        tracing::error!(host = %self.around.host(), %peer, %why, "a peer has sent what cannot be");
        self.stats.impossible_messages += 1;
        if peer.node != self.around.host().node {
            self.links.distrust(peer);
        }
        self.to_close.push_back((peer, why));
    }
}

/// What clients write leaves room for the roles that this node is to get. Where things are evicted, what is to come takes their place.
fn keep_room(host: &Host) {
    let HostConfig { budget, store, .. } = host.around.config();
    if let Some(map) = host.views.map().filter(|_| store.eviction == store::Eviction::None) {
        let node = host.around.host().node;
        budget.keep_for_members(cluster::room_for_missing(map, node, budget.limit()));
    }
}

/// Bounds the loop in `flush`; what is left is sent with the next batch.
const MAX_FLUSH_ROUNDS: usize = 64;

/// Where the chunks of a value go that is written under `key` now.
#[must_use]
pub fn locate_chunks(host: &Host, key: &[u8]) -> Place {
    host.views.locate_chunks(key)
}

/// Where the keys are that `scan` is about.
#[must_use]
pub fn locate_scan(host: &Host, scan: &Scan) -> Place {
    host.views.locate_scan(scan)
}

/// See [`Host::carry_out`]: where there is anything.
#[inline(never)]
fn carry_out_all(host: &mut Host, now: Now) -> bool {
    let mut any = false;
    loop {
        while let Some((peer, why)) = host.around.out().accusations.pop() {
            host.close(peer, why);
        }
        any |= host.streams(now).exchange();
        any |= host.following(now).exchange();
        // One at a time, so that what it brings about goes out before the next one is handled.
        let Some(message) = host.around.out().loopback.pop_front() else { break };
        any = true;
        host.dispatch(now, host.around.host(), message);
    }
    any
}

/// Memory goes bad, for tests of what notices.
#[cfg(feature = "planted-bugs")]
impl Host {
    /// Flips the bits of `mask` in a byte of the area of the parity, or else of the primary, that is `member` here.
    ///
    /// # Panics
    /// If it has no memory there.
    pub fn damage(&mut self, member: MemberId, byte: usize, mask: u8) {
        if let Some(parity) = self.members.parity(member) {
            parity.damage(byte, mask);
        } else if let Some(primary) = self.members.primaries_mut().get_mut(member) {
            primary.damage(byte, mask);
        }
    }
}
