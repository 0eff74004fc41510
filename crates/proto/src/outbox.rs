//! What members want done, and what they need to know to want it.

use std::sync::Arc;

use cluster::Protection;
use store::{Budget, Quotas, StoreConfig};
use types::op::{Departure, Outcome, Request};
use types::{Catalog, GroupId, HostId, MemberId, NodeId, Pool, RoleIndex, ViewVersion};
use wire::message::{GroupBody, GroupMessage, PeerMessage, ToCoordinator};

use crate::host::driver::{Place, Token};
use crate::impossible::{Accusation, Impossible};
use crate::latency::HostLatencies;
use crate::objects::names::{Errand, NewRewrite, StreamId};
use crate::pace::Pace;
use crate::primary::Pending;
use crate::queue::Queue;
use crate::{Limits, Now, Rules, Secret, Timing};

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReplyTo {
    /// A client of this host's driver.
    Local(Token),
    /// A host that forwarded the request.
    Remote {
        /// The process, as it was when it asked.
        host: HostId,
        /// Its number for the request.
        id: u64,
    },
    /// Somebody of this host who writes or reads chunks.
    Stream(StreamId),
    /// A primary of this host that gives items away, under its number for it.
    Giver(MemberId, u64),
    /// Nobody: the protocol's own work.
    Nobody,
}

/// A request for a data role of another pool, whose groups may be another worker's.
#[derive(Debug)]
pub(crate) struct Ask {
    /// Who hears of it.
    pub reply: ReplyTo,
    /// Where it goes.
    pub place: Place,
    pub request: Box<Request>,
}

/// What goes to data roles of other pools, or comes from them.
#[derive(Debug)]
pub(crate) enum Passage {
    /// A request whose key has left, with its namespace, for another pool; who says so, and what.
    Departed(Pending, MemberId, Departure),
    /// What one of them is to be asked.
    Ask(Ask),
    /// For the primary that gives items away, under its number: the answer.
    Answer(MemberId, u64, Outcome),
}

/// What one host's members want done. Each kind waits here until the driver takes it, in order, and nowhere else.
#[derive(Debug)]
pub(crate) struct Outbox {
    here: NodeId,
    /// For other nodes.
    pub messages: Queue<(NodeId, PeerMessage)>,
    /// Of this host to itself.
    pub loopback: Queue<PeerMessage>,
    pub coordinator: Queue<ToCoordinator>,
    pub replies: Queue<(ReplyTo, Outcome)>,
    /// For those of this host who write or read chunks.
    pub to_streams: Queue<(StreamId, Outcome)>,
    /// What owners want holders to hear.
    pub errands: Queue<Errand>,
    /// Appends and prepends whose results lie in chunks, and the primaries that they are for.
    pub extensions: Queue<(Pending, MemberId)>,
    /// Values in chunks that primaries of this host give away.
    pub rewrites: Queue<NewRewrite>,
    /// What goes to data roles of other pools, or comes from them.
    pub passages: Queue<Passage>,
    /// Groups of which somebody has named a newer view.
    pub views_wanted: Vec<GroupId>,
    /// Peers that have sent what cannot be.
    pub accusations: Vec<Accusation>,
    pub latencies: HostLatencies,
}

impl Outbox {
    /// Of a host on node `here`.
    pub(crate) fn new(here: NodeId) -> Self {
        Self {
            here,
            messages: Queue::default(),
            loopback: Queue::default(),
            coordinator: Queue::default(),
            replies: Queue::default(),
            to_streams: Queue::default(),
            errands: Queue::default(),
            extensions: Queue::default(),
            rewrites: Queue::default(),
            passages: Queue::default(),
            views_wanted: Vec::new(),
            accusations: Vec::new(),
            latencies: HostLatencies::default(),
        }
    }

    /// A message for the host of the same shard on node `to`.
    pub(crate) fn send(&mut self, to: NodeId, message: PeerMessage) {
        if to == self.here {
            self.loopback.push_back(message);
        } else {
            self.messages.push_back((to, message));
        }
    }

    /// An answer for whoever asked, if anybody did.
    pub(crate) fn reply(&mut self, to: ReplyTo, outcome: Outcome) {
        match to {
            ReplyTo::Nobody => {}
            ReplyTo::Stream(stream) => self.to_streams.push_back((stream, outcome)),
            ReplyTo::Giver(member, number) => {
                self.passages.push_back(Passage::Answer(member, number, outcome))
            }
            ReplyTo::Local(_) | ReplyTo::Remote { .. } => self.replies.push_back((to, outcome)),
        }
    }

    /// Whether something waits for the host itself.
    #[inline]
    pub(crate) fn concerns_host(&self) -> bool {
        let of_chunks =
            self.to_streams.len() | self.errands.len() | self.extensions.len() | self.rewrites.len();
        let of_others = self.accusations.len() | self.views_wanted.len() | self.passages.len();
        (of_others | self.loopback.len() | of_chunks) != 0
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.messages.capacity() * size_of::<(NodeId, PeerMessage)>()
            + self.loopback.capacity() * size_of::<PeerMessage>()
            + self.coordinator.capacity() * size_of::<ToCoordinator>()
            + self.replies.capacity() * size_of::<(ReplyTo, Outcome)>()
            + self.to_streams.capacity() * size_of::<(StreamId, Outcome)>()
            + self.errands.capacity() * size_of::<Errand>()
            + self.extensions.capacity() * size_of::<(Pending, MemberId)>()
            + self.rewrites.capacity() * size_of::<NewRewrite>()
            + self.passages.capacity() * size_of::<Passage>()
    }
}

/// The surroundings of a member while it handles one event.
pub(crate) struct Context<'a> {
    pub now: Now,
    pub timing: &'a Timing,
    pub limits: &'a Limits,
    pub rules: Rules,
    pub secret: &'a Secret,
    /// The pools and namespaces.
    pub catalog: &'a Catalog,
    /// How often they have changed, with the first time.
    pub edition: u64,
    /// The node's shares.
    pub quotas: &'a Quotas,
    pub pace: &'a mut Pace,
    pub out: &'a mut Outbox,
}

impl Context<'_> {
    pub(crate) fn reply(&mut self, to: ReplyTo, outcome: Outcome) {
        self.out.reply(to, outcome);
    }

    /// `from` has sent what cannot be.
    pub(crate) fn impossible(&mut self, from: HostId, why: Impossible) {
        self.out.accusations.push((from, why));
    }

    pub(crate) fn coordinator(&mut self, message: ToCoordinator) {
        self.out.coordinator.push_back(message);
    }
}

/// What a member is made with.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub config: &'a StoreConfig,
    pub budget: &'a Budget,
    /// The pool of its group.
    pub pool: &'a Pool,
    /// The code of that pool, and what it makes up for.
    pub protection: &'a Arc<Protection>,
    pub rules: Rules,
}

/// Another member of a group: its role, and the process that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub role: RoleIndex,
    pub host: HostId,
}

/// The constant part of a member's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub group: GroupId,
    pub role: RoleIndex,
    pub view: ViewVersion,
}

impl Sender {
    /// Sends `body` to another member of the group.
    pub(crate) fn send(&self, context: &mut Context<'_>, to: Peer, body: GroupBody) {
        let message = GroupMessage { group: self.group, view: self.view, from: self.role, to: to.role, body };
        context.out.send(to.host.node, PeerMessage::Group(message));
    }
}
