//! One worker's share of a node: its members, its routes, and the requests that pass through.
//!
//! `members` creates and ends members as views say, `dormant` keeps parities that may come back, `dispatch` hands them their
//! messages, `route` finds the primary of a request, `inspect` shows the inside to tests and to `status`, `memory` counts its
//! bytes.

mod dispatch;
mod dormant;
mod early;
pub mod inspect;
mod members;
mod memory;
mod route;
mod scrub;
mod stats;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cluster::{ClusterMap, Epoch, FastMap, GroupId, HostId, KeyHash, MemberId, NodeId, RoleIndex, Time};
use codec::Code;
use store::{Budget, Item, StoreConfig};
use wire::message::{FromCoordinator, PeerMessage, ToCoordinator};
use wire::op::{Outcome, Request};

use crate::latency::HostLatencies;
use crate::outbox::{Context, Outbox, ReplyTo};
use crate::pace::Pace;
use crate::parity::Parity;
use crate::primary::Primary;
use crate::{Impossible, Limits, Now, Timing};
use dormant::Dormant;
use early::Early;
pub use memory::{HostMemory, IndexMemory};
use route::Routes;
pub use stats::HostStats;

/// The driver's name for a request; comes back with the answer. Unique per host while the request is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send to the same shard of another node, in order, if the link is up; else drop it.
    Send {
        /// Never the host's own node.
        to: NodeId,
        /// The message.
        message: PeerMessage,
    },
    /// Send to the coordinator; drop it if there is no connection.
    Coordinator(ToCoordinator),
    /// Close the link to this peer: it has sent what cannot be. Nothing more of it is believed until there is another link.
    Close {
        /// The process.
        peer: HostId,
        /// What it has sent.
        why: Impossible,
    },
    /// Answer a request that `submit` left pending.
    Reply {
        /// As given to `submit`.
        token: Token,
        /// The answer.
        outcome: Outcome,
    },
}

/// What became of a request at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    /// The answer is known.
    Done(Outcome),
    /// An `Action::Reply` with the token will follow.
    Pending,
}

/// The quick path of a plain read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The closure ran.
    Hit,
    /// The key is not there.
    Miss,
    /// Not answerable here and now: use `submit`.
    Submit,
}

/// What a host is made of.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The process.
    pub host: HostId,
    /// Which worker of it.
    pub shard: u16,
    /// Time-outs.
    pub timing: Timing,
    /// Bounds.
    pub limits: Limits,
    /// Size and eviction of a data member's store.
    pub store: StoreConfig,
    /// The node's memory, shared by its workers.
    pub budget: Budget,
}

/// One worker's share of a node.
pub struct Host {
    config: HostConfig,
    map: Option<ClusterMap>,
    code: Option<Code>,
    members: Members,
    links: BTreeMap<NodeId, HostId>,
    routes: Routes,
    outbox: Outbox,
    pace: Pace,
    /// Messages of this host to itself, in order.
    loopback: VecDeque<PeerMessage>,
    actions: VecDeque<Action>,
    last_tick: Time,
    /// The newest coordinator that has commanded anything here.
    epoch: Epoch,
    /// When a group's view was last asked for.
    view_asked: FastMap<GroupId, Time>,
    /// Parities that were here and have left their view: they do not come back.
    left: BTreeSet<MemberId>,
    early: Early,
    /// Peers that have sent what cannot be; their links are being closed.
    closing: BTreeSet<HostId>,
    stats: HostStats,
    /// The newest scrub that has ended here.
    scrubbed: u64,
}

/// The members of this host, dense by (group, role).
#[derive(Default)]
struct Members {
    primaries: BTreeMap<MemberId, Primary>,
    parities: BTreeMap<MemberId, Parity>,
    dormant: BTreeMap<MemberId, Dormant>,
}

impl Host {
    /// A host without a map; it serves nothing yet.
    #[must_use]
    pub fn new(config: HostConfig) -> Self {
        Self {
            config,
            map: None,
            code: None,
            members: Members::default(),
            links: BTreeMap::new(),
            routes: Routes::default(),
            outbox: Outbox::default(),
            pace: Pace::default(),
            loopback: VecDeque::new(),
            actions: VecDeque::new(),
            last_tick: Time(0),
            epoch: Epoch(0),
            view_asked: FastMap::default(),
            left: BTreeSet::new(),
            early: Early::default(),
            closing: BTreeSet::new(),
            stats: HostStats::default(),
            scrubbed: 0,
        }
    }

    /// The map, once the coordinator has sent one.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> {
        self.map.as_ref()
    }

    /// A message from the coordinator (every shard gets every one of them).
    pub fn handle_coordinator(&mut self, now: Now, message: FromCoordinator) {
        self.trim_dormant(now);
        if message.epoch().is_some_and(|epoch| !self.obeys(epoch)) {
            return;
        }
        match message {
            FromCoordinator::Map(map) => self.adopt_map(now, map),
            FromCoordinator::View(view) => self.adopt_view(now, view),
            FromCoordinator::Fence { group, role, term, parity, epoch } => {
                self.handle_fence(now, MemberId { group, role: parity }, role, (term, epoch));
            }
            FromCoordinator::Settle { group, role, term, parity, upto, epoch } => {
                self.handle_settle(now, MemberId { group, role: parity }, role, (term, epoch), upto);
            }
            FromCoordinator::HandOver { group, role, term, since, asked_at, epoch } => {
                self.handle_hand_over(now, MemberId { group, role }, term, (since, asked_at, epoch));
            }
            FromCoordinator::Confirm { group, view, epoch } => self.handle_confirm(now, group, (view, epoch)),
            FromCoordinator::Alive
            | FromCoordinator::Waiting
            | FromCoordinator::Forming(_)
            | FromCoordinator::Refused(_)
            | FromCoordinator::Occupied { .. }
            | FromCoordinator::Keep { .. }
            | FromCoordinator::Recall { .. }
            | FromCoordinator::Admin { .. } => {}
        }
        self.settle(now);
    }

    /// A link to `peer` is up, in both directions; what was in flight on the one before is lost.
    pub fn link_up(&mut self, now: Now, peer: HostId) {
        self.forget_link(peer);
        self.links.insert(peer.node, peer);
        self.members.parities.values_mut().for_each(|parity| parity.link_broken(peer));
        self.for_each_primary(now, |primary, context| primary.link_up(context, peer));
        self.reroute(now);
        self.settle(now);
    }

    /// The link to `peer` is down.
    pub fn link_down(&mut self, now: Now, peer: HostId) {
        self.forget_link(peer);
        if self.links.get(&peer.node) == Some(&peer) {
            self.links.remove(&peer.node);
        }
        self.members.parities.values_mut().for_each(|parity| parity.link_broken(peer));
        self.for_each_primary(now, |primary, context| primary.link_down(context, peer));
        self.abandon_forwards(now, |forwarded| forwarded.to == peer);
        self.settle(now);
    }

    /// What came on a former link is of no use any more, and what was wrong with it is forgiven.
    fn forget_link(&mut self, peer: HostId) {
        self.closing.remove(&peer);
        self.early.forget(peer);
    }

    /// A message of `from`, in the order of sending on that link.
    pub fn handle_peer(&mut self, now: Now, from: HostId, message: PeerMessage) {
        if !self.closing.is_empty() && self.closing.contains(&from) {
            return;
        }
        self.trim_dormant(now);
        self.dispatch(now, from, message);
        self.settle(now);
    }

    /// Reads `key` if this host is its primary, holds a lease and has the item at hand: no allocation, no message.
    pub fn read(&mut self, now: Now, key: &[u8], found: impl FnOnce(Item<'_>)) -> Read {
        let Some(map) = &self.map else { return Read::Submit };
        let hash = KeyHash::of(map.cluster, key);
        let Some(primary) = self.members.primaries.get_mut(&map.member_of(hash)) else { return Read::Submit };
        let read = primary.read(now, &self.config.timing, hash, key, found);
        self.stats.count_read(read);
        read
    }

    /// A client's request on a key of this shard's groups; forwarded if the primary is elsewhere.
    pub fn submit(&mut self, now: Now, token: Token, request: Request) -> Submitted {
        let (hash, member) = match &self.map {
            Some(map) => {
                let hash = KeyHash::of(map.cluster, request.key_bytes());
                (hash, Some(map.member_of(hash)))
            }
            None => (KeyHash(0), None),
        };
        self.submit_routed(now, token, hash, member, request)
    }

    /// A request for one data role rather than a key (`flush_all`).
    pub fn submit_to(&mut self, now: Now, token: Token, member: MemberId, request: Request) -> Submitted {
        self.submit_routed(now, token, KeyHash(0), Some(member), request)
    }

    /// Timers. To be called at `next_deadline`, or more often.
    pub fn tick(&mut self, now: Now) {
        self.last_tick = now.time;
        self.trim_dormant(now);
        self.for_each_primary(now, Primary::tick);
        let (parities, mut context) = self.parities_and_context(now);
        let mut scrubbing = 0;
        for parity in parities.values_mut() {
            parity.tick(&mut context);
            scrubbing += usize::from(parity.is_scrubbing());
        }
        for parity in parities.values_mut() {
            if scrubbing < context.limits.scrub_sessions {
                scrubbing += usize::from(parity.go_on_scrubbing(&mut context));
            }
        }
        self.note_end_of_scrub();
        self.expire_requests(now);
        self.reroute(now);
        self.settle(now);
    }

    /// When `tick` has something to do, at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        let timing = &self.config.timing;
        let members = self.members.primaries.values().map(|primary| primary.next_deadline(timing)).min();
        let idle = self.last_tick + timing.heartbeat_us;
        let routes = if self.routes.is_idle() { idle } else { self.last_tick + timing.heartbeat_us / 4 };
        let scrub = if self.has_to_scrub() { self.last_tick + timing.retry_us / 8 } else { idle };
        members.map_or(routes, |members| members.min(routes)).min(scrub)
    }

    /// Builds the Frames that the inputs since the last call made due. To be called once per batch of inputs.
    pub fn flush(&mut self, now: Now) {
        // A parity on this very node answers within the call, and its answer may make the next Frame due.
        for _ in 0..MAX_FLUSH_ROUNDS {
            self.for_each_primary(now, Primary::flush);
            if !self.settle(now) {
                return;
            }
        }
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Counters since the start, and what is held now.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        self.stats
            .with_gauges(&self.members.primaries)
            .with_scrub(&self.members.parities, self.scrub_progress())
    }

    /// What requests have waited for.
    #[must_use]
    pub fn latencies(&self) -> &HostLatencies {
        &self.outbox.latencies
    }

    fn group_count(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.groups.len())
    }

    fn role_is_local(&self, member: MemberId) -> bool {
        self.members.primaries.contains_key(&member)
    }

    fn for_each_primary(&mut self, now: Now, mut act: impl FnMut(&mut Primary, &mut Context<'_>)) {
        let Some(code) = &self.code else { return };
        let (timing, limits) = (&self.config.timing, &self.config.limits);
        let groups = self.group_count();
        let (out, pace) = (&mut self.outbox, &mut self.pace);
        let mut context = Context { now, timing, limits, code, groups, pace, out };
        for primary in self.members.primaries.values_mut() {
            act(primary, &mut context);
            if cfg!(debug_assertions) {
                primary.check_invariants();
            }
        }
    }

    /// Carries out what members want until nothing is left that concerns this host; whether there was anything.
    fn settle(&mut self, now: Now) -> bool {
        let mut any = false;
        loop {
            while let Some((to, message)) = self.outbox.messages.pop_front() {
                if to == self.config.host.node {
                    self.loopback.push_back(message);
                } else {
                    self.actions.push_back(Action::Send { to, message });
                }
            }
            while let Some(message) = self.outbox.coordinator.pop_front() {
                self.actions.push_back(Action::Coordinator(message));
            }
            while let Some((to, outcome)) = self.outbox.replies.pop_front() {
                self.answer(to, outcome);
            }
            while let Some((peer, why)) = self.outbox.accusations.pop() {
                self.close(peer, why);
            }
            let Some(message) = self.loopback.pop_front() else { return any };
            any = true;
            self.dispatch(now, self.config.host, message);
        }
    }

    /// `peer` has sent what cannot be.
    #[cold]
    fn close(&mut self, peer: HostId, why: Impossible) {
        tracing::error!(host = %self.config.host, %peer, %why, "a peer has sent what cannot be");
        self.stats.impossible_messages += 1;
        if peer.node != self.config.host.node {
            self.closing.insert(peer);
        }
        self.actions.push_back(Action::Close { peer, why });
    }

    /// Passes an answer on to whoever asked.
    fn answer(&mut self, to: ReplyTo, outcome: Outcome) {
        match to {
            ReplyTo::Local(token) => self.actions.push_back(Action::Reply { token, outcome }),
            ReplyTo::Remote { host, id } => self.answer_remote(host, id, outcome),
            ReplyTo::Nobody => {}
        }
    }

    fn is_primary_role(&self, role: RoleIndex) -> bool {
        self.map.as_ref().is_some_and(|map| usize::from(role.0) < map.profile.k())
    }
}

/// Bounds the loop in `flush`; what is left is sent with the next batch.
const MAX_FLUSH_ROUNDS: usize = 64;

/// Split borrow: the parities, and a context that does not borrow them.
impl Host {
    fn parities_and_context(&mut self, now: Now) -> (&mut BTreeMap<MemberId, Parity>, Context<'_>) {
        static NO_CODE: std::sync::OnceLock<Code> = std::sync::OnceLock::new();
        let code = match &self.code {
            Some(code) => code,
            None => NO_CODE.get_or_init(|| Code::rs(1, 0).expect("1+0 is a code")),
        };
        let (timing, limits) = (&self.config.timing, &self.config.limits);
        let groups = self.group_count();
        let (out, pace) = (&mut self.outbox, &mut self.pace);
        (&mut self.members.parities, Context { now, timing, limits, code, groups, pace, out })
    }
}
