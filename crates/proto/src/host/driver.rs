//! What a driver gives to a host and gets from it: the words of the border.

use bytes::Bytes;
use codec::Coder;
use store::{Budget, Quotas, StoreConfig};
use types::op::{Failure, Outcome, Request, Store, Via};
use types::{HostId, Key, KeyHash, MemberId, NodeId, ObjectLayout, Once};
use wire::message::{PeerMessage, ToCoordinator};

use crate::{GraphSettings, Impossible, Limits, Rules, Secret, Timing};

/// The driver's name for whoever waits for an answer: it comes back with that, and means nothing to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub [u64; 2]);

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The key's.
    pub hash: KeyHash,
    /// The data role that has the key; none as long as there is no map, or the map has no such namespace yet.
    pub member: Option<MemberId>,
    /// Why no request for it can be done, whatever its data role says.
    pub refusal: Option<Failure>,
}

impl Place {
    /// Of a request for a whole data role.
    #[must_use]
    pub fn of(member: MemberId) -> Self {
        Self { hash: KeyHash(0), member: Some(member), refusal: None }
    }
}

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send to the same shard of another node, if the link is up; else drop it. What goes to one node keeps its order.
    Send {
        /// Never the host's own node.
        to: NodeId,
        /// The message.
        message: PeerMessage,
    },
    /// Send to the coordinator; drop it if there is no connection. In a box: it is rare, and others are moved often.
    Coordinator(Box<ToCoordinator>),
    /// Close the link to this peer: it has sent what cannot be. Nothing more of it is believed until there is another link.
    Close {
        /// The process.
        peer: HostId,
        /// What it has sent.
        why: Impossible,
    },
    /// An upload takes more bytes.
    Room {
        /// As given to `begin_upload`.
        token: Token,
    },
    /// The next bytes of a value that is read.
    Part {
        /// As given to `begin_gather`.
        token: Token,
        /// Not more than a cell of them.
        bytes: Bytes,
    },
    /// All bytes of a value have come.
    Whole {
        /// As given to `begin_gather`.
        token: Token,
    },
    /// Ask whoever of this node has the group, be it this worker or another one: as by `submit`. What comes of it is for
    /// `Host::hear_onward`.
    Ask {
        /// This host's number for it.
        number: u64,
        /// Where it goes.
        place: Place,
        /// What.
        request: Box<Request>,
    },
    /// Have a worker of this node write a value for this host, as for a client of its own. What comes of each step is for
    /// `Streams::hear_written`.
    Write {
        /// This host's number for it.
        number: u64,
        /// Which worker.
        shard: u16,
        /// What it is to do.
        step: WriteStep,
    },
    /// Answer a request that `submit` left pending, or end an upload or a read.
    Reply {
        /// As given to `submit`.
        token: Token,
        /// The answer.
        outcome: Outcome,
    },
}

/// What a client wants to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewUpload {
    /// Under which key.
    pub key: Key,
    /// As any value is stored, without its bytes.
    pub store: Store,
    /// Length of the value in bytes.
    pub len: u64,
    /// Longest chunk in bytes.
    pub chunk_len: u32,
    /// By which rule its bytes are dealt.
    pub layout: ObjectLayout,
    /// The name under which it is written once.
    pub once: Option<Once>,
    /// How it comes, if a data role of another pool gives it away.
    pub via: Option<Box<Via>>,
}

/// A step of a value that one worker writes for another.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteStep {
    /// It begins, as by `begin_upload`.
    Begin(Place, Box<NewUpload>),
    /// Its next bytes, no more than there was room for.
    Feed(Bytes),
    /// Nobody wants it any more; of this there is no news.
    Abandon,
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteNews {
    /// So many bytes are taken in one piece.
    Room(usize),
    /// It is over.
    Ended(Outcome),
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
    /// What this process knows alone; all of its workers may have the same.
    pub secret: Secret,
    /// Time-outs.
    pub timing: Timing,
    /// Bounds.
    pub limits: Limits,
    /// How chunks are made of others.
    pub graphs: GraphSettings,
    /// Who computes the codes of values in chunks. The bytes are the same whoever does.
    pub coder: Coder,
    /// The rules that it keeps: all of them, unless a test says otherwise.
    pub rules: Rules,
    /// Size and eviction of a data member's store.
    pub store: StoreConfig,
    /// The node's memory, shared by its workers.
    pub budget: Budget,
    /// What namespaces with a quota may take at the node, shared likewise.
    pub quotas: Quotas,
}
