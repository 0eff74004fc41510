//! One worker's share of a node: its members, its routes, and the requests that pass through.

use cluster::{ClusterMap, HostId, MemberId, NodeId};
use store::{Budget, Item, StoreConfig};
use wire::message::{FromCoordinator, PeerMessage, ToCoordinator};
use wire::op::{Outcome, Request};

use crate::{Limits, Now, Timing};

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
}

impl Host {
    /// A host without a map; it serves nothing yet.
    #[must_use]
    pub fn new(config: HostConfig) -> Self {
        Self { config }
    }

    /// The map, once the coordinator has sent one.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> { None }

    /// A message from the coordinator (every shard gets every one of them).
    pub fn handle_coordinator(&mut self, now: Now, message: FromCoordinator) { let _ = (now, message); }

    /// A link to `peer` is up, in both directions; what was in flight on the one before is lost.
    pub fn link_up(&mut self, now: Now, peer: HostId) { let _ = (now, peer); }

    /// The link to `peer` is down.
    pub fn link_down(&mut self, now: Now, peer: HostId) { let _ = (now, peer); }

    /// A message of `from`, in the order of sending on that link.
    pub fn handle_peer(&mut self, now: Now, from: HostId, message: PeerMessage) { let _ = (now, from, message); }

    /// Reads `key` if this host is its primary, holds a lease and has the item at hand: no allocation, no message.
    pub fn read(&mut self, now: Now, key: &[u8], found: impl FnOnce(Item<'_>)) -> Read {
        let _ = (now, key, found);
        Read::Submit
    }

    /// A client's request on a key of this shard's groups; forwarded if the primary is elsewhere.
    pub fn submit(&mut self, now: Now, token: Token, request: Request) -> Submitted {
        let _ = (now, token, request);
        Submitted::Pending
    }

    /// A request for one data role rather than a key (`flush_all`).
    pub fn submit_to(&mut self, now: Now, token: Token, member: MemberId, request: Request) -> Submitted {
        let _ = (now, token, member, request);
        Submitted::Pending
    }

    /// Timers. To be called at `next_deadline`, or more often.
    pub fn tick(&mut self, now: Now) { let _ = now; }

    /// When `tick` has something to do, at the latest.
    #[must_use]
    pub fn next_deadline(&self) -> cluster::Time { cluster::Time(u64::MAX) }

    /// Builds the Frames that the inputs since the last call made due. To be called once per batch of inputs.
    pub fn flush(&mut self, now: Now) { let _ = now; }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<Action> { let _ = &self.config; None }
}
