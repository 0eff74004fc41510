//! Messages between nodes and with the coordinator, as plain data. Their bytes are in `frame`; their meaning is the
//! group protocol (docs/protocol.md has the table: name, from, to, when).

mod concerns;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use types::{
    Addr, AdminReply, AdminRequest, ClusterId, ClusterMap, Epoch, Expectations, Forming, Grant, GroupId,
    GroupView, HostId, IndexOp, MapChanges, MemberId, NamespaceId, NodeInfo, NodeLoad, PageRange,
    QuotaReport, RoleIndex, Round, Seq, Term, Time, UnixSeconds, ViewVersion,
};

use crate::graph::GraphMessage;
use crate::object::{ChunkReport, ObjectMessage};
use crate::record::Record as Decision;
use types::op::{Outcome, Request};

pub use crate::write::Write;

/// Most items that a [`Page`] calls wrong; what is beyond is not named.
pub const MAX_WRONG_ITEMS: usize = 16;

/// Whatever one node sends to another.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerMessage {
    /// Between members of one group.
    Group(GroupMessage),
    /// A client's request, for the primary that the sender believes in.
    Forward(Forward),
    /// The answer to a `Forward`.
    Answer(Answer),
    /// About chunks of objects. In a box, as all that is long and rare: what is sent for each write is moved often.
    Object(Box<ObjectMessage>),
    /// Of a coding graph.
    Graph(Box<GraphMessage>),
}

impl From<GraphMessage> for PeerMessage {
    fn from(message: GraphMessage) -> Self {
        Self::Graph(Box::new(message))
    }
}

impl From<ObjectMessage> for PeerMessage {
    fn from(message: ObjectMessage) -> Self {
        Self::Object(Box::new(message))
    }
}

/// A request on its way to the primary.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// The sender's number for it.
    pub id: u64,
    /// The group of the key.
    pub group: GroupId,
    /// The data role of the key.
    pub role: RoleIndex,
    /// The operation; in a box, for it is longer than all else that is sent often.
    pub request: Box<Request>,
}

/// The answer to a [`Forward`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The number in the request.
    pub id: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// A message of the group protocol. Every one carries the group and the sender's view version; whoever sees a newer
/// version fetches the view before going on.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupMessage {
    /// The group.
    pub group: GroupId,
    /// The sender's version of its view.
    pub view: ViewVersion,
    /// The role that sends.
    pub from: RoleIndex,
    /// The role that is meant.
    pub to: RoleIndex,
    /// The rest.
    pub body: GroupBody,
}

/// The kinds of group message.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupBody {
    /// Primary to parity, on every new connection and by every new primary.
    Hello(Hello),
    /// Parity to primary: go on after this record.
    Welcome(Welcome),
    /// Primary to parity: records and the commit index.
    Frame(Frame),
    /// Parity to primary.
    Ack(Ack),
    /// Parity to a primary whose term is fenced.
    Reject(Reject),
    /// Primary to parity: may I use an extent so far?
    Reserve(Reserve),
    /// Parity to primary.
    Reserved(Reserved),
    /// Stand-in to an in-sync parity: send me the index replica of my role.
    FetchIndex(FetchIndex),
    /// Parity to stand-in: part of the replica.
    IndexPart(IndexPart),
    /// Stand-in to parity: begin a repair session.
    Open(Open),
    /// Parity to stand-in: the snapshot is taken.
    Opened(Opened),
    /// Stand-in, or a parity that scrubs, to primary: put these pages into your FIFO to the parities.
    Read(Read),
    /// Primary to parity, in the FIFO of its records.
    Page(Box<Page>),
    /// Parity to stand-in: what is left of the parity pages.
    Residual(Box<Residual>),
    /// Parity to stand-in: no such session (no memory, a gap): try again. Stand-in to parity: the session is given up.
    Abort(Abort),
    /// Learner to primary: begin this lesson.
    LearnHello(LearnHello),
    /// Primary to learner, in the FIFO of its records.
    Learn(Box<Learn>),
    /// Learner to primary: understood up to here.
    Learned(Learned),
}

/// See [`GroupBody::Hello`].
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// The primary's term.
    pub term: Term,
    /// Its newest committed record.
    pub committed: Seq,
}

/// See [`GroupBody::Welcome`].
#[derive(Clone, Debug, PartialEq)]
pub struct Welcome {
    /// The term of the Hello.
    pub term: Term,
    /// Newest record of the contiguous prefix that the parity holds.
    pub received: Seq,
    /// Newest second of a Frame of this role, of any term; any value.
    pub wall: UnixSeconds,
}

/// See [`GroupBody::Frame`].
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The primary's term.
    pub term: Term,
    /// The primary's clock at sending; comes back in the Ack and dates the lease.
    pub sent_at: Time,
    /// The role's wall time: never below that of a Frame before, of any term. What expires up to then may be told expired
    /// once all parities have this.
    pub wall: UnixSeconds,
    /// Newest committed record.
    pub committed: Seq,
    /// Consecutive records; may be empty (heartbeat).
    pub records: Vec<Record>,
}

/// One numbered entry of a data role's stream.
#[derive(Debug, PartialEq)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// Bytes that change: deltas against what lies there.
    pub writes: SmallVec<[Write; 1]>,
    /// What happens to the index.
    pub ops: SmallVec<[IndexOp; 2]>,
}

/// One for each parity: nearly every record has one write, and operations are plain data.
impl Clone for Record {
    fn clone(&self) -> Self {
        let writes = match &self.writes[..] {
            [one] => smallvec![one.clone()],
            any => any.iter().cloned().collect(),
        };
        Self { seq: self.seq, writes, ops: SmallVec::from_slice(&self.ops) }
    }
}

/// See [`GroupBody::Ack`].
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// The term of the Frame.
    pub term: Term,
    /// Newest record of the contiguous prefix that the parity holds.
    pub received: Seq,
    /// `sent_at` of the Frame that is acknowledged.
    pub echo: Time,
}

/// See [`GroupBody::Reject`].
#[derive(Clone, Debug, PartialEq)]
pub struct Reject {
    /// Lowest term that the parity accepts.
    pub fence: Term,
}

/// See [`GroupBody::Reserve`].
#[derive(Clone, Debug, PartialEq)]
pub struct Reserve {
    /// The primary's term.
    pub term: Term,
    /// Number of a run in the area: its extent up to there (`types::Reach`).
    pub run: u32,
}

/// See [`GroupBody::Reserved`].
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    /// The term of the Reserve.
    pub term: Term,
    /// The run of the Reserve.
    pub run: u32,
    /// Whether the parity has the memory.
    pub granted: bool,
}

/// See [`GroupBody::FetchIndex`].
#[derive(Clone, Debug, PartialEq)]
pub struct FetchIndex {
    /// The stand-in's term.
    pub term: Term,
    /// First part wanted (parts are numbered from 0).
    pub part: u32,
}

/// See [`GroupBody::IndexPart`].
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPart {
    /// The stand-in's term.
    pub term: Term,
    /// Number of this part.
    pub part: u32,
    /// Whether it is the last one.
    pub last: bool,
    /// The replica's encoding of this part (`store::Replica`).
    pub bytes: Bytes,
}

/// A repair session: unique by the stand-in's role, term and its own count. A scrub session of a parity: its role, term 0, and
/// its own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The stand-in's role, or the scrubbing parity's.
    pub role: RoleIndex,
    /// Its term.
    pub term: Term,
    /// Its count.
    pub number: u64,
}

/// See [`GroupBody::Open`].
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The session.
    pub session: SessionId,
    /// The pages, at most 16 and within one run.
    pub pages: PageRange,
    /// The stand-in's newest committed record: applied before the snapshot is taken.
    pub committed: Seq,
}

/// See [`GroupBody::Opened`].
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The session.
    pub session: SessionId,
}

/// See [`GroupBody::Read`].
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The session.
    pub session: SessionId,
    /// The pages.
    pub pages: PageRange,
    /// The parities that take part.
    pub parities: SmallVec<[RoleIndex; 4]>,
}

/// See [`GroupBody::Page`].
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The session.
    pub session: SessionId,
    /// The sending primary's term.
    pub term: Term,
    /// Its newest committed record: the bytes are those after it.
    pub committed: Seq,
    /// The pages' bytes; none if one of them is absent there too.
    pub bytes: Option<Bytes>,
    /// For a scrub: slots over these pages whose items are wrong by their checksums, ascending; not more than [`MAX_WRONG_ITEMS`].
    pub wrong: SmallVec<[Addr; 2]>,
}

/// See [`GroupBody::Residual`].
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The session.
    pub session: SessionId,
    /// The data roles that are left in the sum, ascending.
    pub lost: SmallVec<[RoleIndex; 4]>,
    /// Their weighted sum, page by page.
    pub bytes: Bytes,
}

/// See [`GroupBody::Abort`].
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// The session.
    pub session: SessionId,
}

/// One try of one learner to become a parity. Whatever belongs to another lesson is moot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lesson {
    /// The view that appointed the learner.
    pub since: ViewVersion,
    /// Grows when the learner starts again: from nothing, or from what it has applied.
    pub attempt: u32,
}

/// See [`GroupBody::LearnHello`].
#[derive(Clone, Debug, PartialEq)]
pub struct LearnHello {
    /// The lesson to begin.
    pub lesson: Lesson,
    /// Of a parity that was evicted: the newest record of this role that is in its area, after which it would go on; none
    /// to start from nothing.
    pub applied: Option<Seq>,
}

/// See [`GroupBody::Learn`].
#[derive(Clone, Debug, PartialEq)]
pub struct Learn {
    /// The lesson.
    pub lesson: Lesson,
    /// The primary's term.
    pub term: Term,
    /// Number of this part in the lesson, from 0.
    pub number: u32,
    /// The primary's newest committed record: the part is the state after it. Of a Resume: the record after which the
    /// learner goes on.
    pub tag: Seq,
    /// The part.
    pub part: LearnPart,
}

/// A part of what a primary teaches.
#[derive(Clone, Debug, PartialEq)]
pub enum LearnPart {
    /// The first one. Records after its tag follow in Frames.
    Begin {
        /// Whose items there are, what was flushed, and clients' sessions (docs/format.md, "Cohorts").
        rows: Bytes,
        /// The class of every run, one byte each.
        classes: Bytes,
    },
    /// Touched pages of a run. Runs before it that did not come were never touched up to the tag.
    Run {
        /// The run.
        run: u32,
        /// Which of its 16 pages follow, bit by bit; the others were never touched.
        pages: u16,
        /// Their bytes.
        bytes: Bytes,
    },
    /// Entries of the index, segment by segment.
    Segment {
        /// The segment.
        segment: u16,
        /// Its entries as in the replica's encoding.
        entries: Bytes,
    },
    /// The last one.
    End {
        /// The runs that the data role may use (`store::PageSet`, encoded).
        runs: Bytes,
    },
    /// The first one for a learner that goes on: the records after its tag follow in Frames, then the End.
    Resume,
    /// The records that the learner wants to go on from are gone: it has to start from nothing.
    Gone,
}

/// See [`GroupBody::Learned`].
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The lesson.
    pub lesson: Lesson,
    /// The primary's term.
    pub term: Term,
    /// The newest part that was understood.
    pub number: u32,
}

/// How a process introduces itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// Who and where it is.
    pub info: NodeInfo,
    /// What it expects of the cluster.
    pub expect: Expectations,
    /// The cluster that it serves, or whose records it keeps.
    pub holds: Option<ClusterId>,
    /// The newest coordinator that it has kept records for, or promised to; 0 = none so far.
    pub promised: Epoch,
    /// Version of the map of its cluster that it has; 0 = none.
    pub map: u64,
}

/// The processes that a head shows as alive. Half of them keep whatever was in force when that was the last head in force.
pub type Electors = Vec<HostId>;

/// What a node keeps for coordinators whose only memory is the nodes'.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptRecords {
    /// The coordinator that they are of.
    pub epoch: Epoch,
    /// How many records that coordinator had made by then.
    pub position: u64,
    /// As in [`FromCoordinator::Keep`].
    pub electors: Vec<Electors>,
    /// The newest of each key.
    pub records: Vec<Decision>,
}

impl KeptRecords {
    /// Most sets of electors. A coordinator resigns that has so many heads of which none is in force.
    pub const MAX_ELECTORS: usize = 256;
}

impl From<NodeInfo> for Registration {
    /// One that expects nothing.
    fn from(info: NodeInfo) -> Self {
        Self { info, expect: Expectations::default(), holds: None, promised: Epoch(0), map: 0 }
    }
}

/// What a node tells the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum ToCoordinator {
    /// The first message on a connection.
    Register(Registration),
    /// Keeps the node's lease; names the map version that the node has, so that the coordinator sends what is newer.
    Heartbeat {
        /// The process.
        host: HostId,
        /// Version of its map.
        map: u64,
        /// What it holds.
        load: NodeLoad,
    },
    /// Send me the newest view of this group.
    FetchView {
        /// The group.
        group: GroupId,
    },
    /// These parities have not acknowledged for a stall time-out: may I go on without them?
    Stalled {
        /// The group.
        group: GroupId,
        /// The complaining primary's role.
        role: RoleIndex,
        /// Its term.
        term: Term,
        /// The version of its view.
        view: ViewVersion,
        /// The silent members.
        silent: SmallVec<[(RoleIndex, HostId); 4]>,
    },
    /// All pages of a stand-in are present.
    Repaired {
        /// The group.
        group: GroupId,
        /// The stand-in's role.
        role: RoleIndex,
        /// Its term.
        term: Term,
    },
    /// Answer to [`FromCoordinator::Fence`].
    Fenced {
        /// The group.
        group: GroupId,
        /// The fenced data role.
        role: RoleIndex,
        /// The new term.
        term: Term,
        /// The parity that answers.
        parity: RoleIndex,
        /// Newest record of the contiguous prefix that it holds.
        received: Seq,
        /// Newest record that it has applied.
        applied: Seq,
        /// For how long it has not acknowledged a Frame of an older term, in microseconds by its own clock.
        quiet_us: u64,
        /// The coordinator that asked.
        epoch: Epoch,
    },
    /// Answer to [`FromCoordinator::Settle`].
    Settled {
        /// The group.
        group: GroupId,
        /// The fenced data role.
        role: RoleIndex,
        /// The new term.
        term: Term,
        /// The parity that answers.
        parity: RoleIndex,
        /// The coordinator that asked.
        epoch: Epoch,
    },
    /// A primary has taught a learner everything, and waits for its acks from now on.
    CaughtUp {
        /// The group.
        group: GroupId,
        /// The primary's role.
        role: RoleIndex,
        /// Its term.
        term: Term,
        /// The learner's role.
        learner: RoleIndex,
        /// The lesson that has ended.
        lesson: Lesson,
    },
    /// A learner cannot go on (no memory).
    GaveUp {
        /// The group.
        group: GroupId,
        /// The learner's role.
        learner: RoleIndex,
        /// The view that appointed it.
        since: ViewVersion,
    },
    /// Answer to [`FromCoordinator::HandOver`]: everything that was acknowledged is at the mirror and at all parities, and
    /// this primary neither reads nor writes for one read lease from the question on.
    HandedOver {
        /// The group.
        group: GroupId,
        /// The primary's role.
        role: RoleIndex,
        /// Its term.
        term: Term,
        /// The view that appointed the mirror.
        since: ViewVersion,
        /// As in the question.
        asked_at: Time,
        /// The coordinator that asked.
        epoch: Epoch,
    },
    /// An operator's request, which this node passes on.
    Admin {
        /// The node's number for it.
        id: u64,
        /// What is asked.
        request: AdminRequest,
    },
    /// Answer to [`FromCoordinator::Keep`]: this and everything before it is kept.
    Kept {
        /// The coordinator that asked.
        epoch: Epoch,
        /// As in the question.
        position: u64,
    },
    /// Answer to [`FromCoordinator::Recall`].
    Recalled {
        /// The coordinator that asked: from now on nothing is kept for an older one.
        epoch: Epoch,
        /// What this node has kept; none if it has kept nothing.
        kept: Option<KeptRecords>,
    },
    /// Answer to [`FromCoordinator::Confirm`]: this process has that view, or a newer one, and is what it says.
    Confirmed {
        /// The group.
        group: GroupId,
        /// The view that was asked for.
        view: ViewVersion,
        /// The coordinator that asked.
        epoch: Epoch,
    },
    /// With a heartbeat, where any namespace has a quota: what the node takes of it.
    Quotas(QuotaReport),
    /// About who keeps the chunks of a role.
    Chunks(ChunkReport),
    /// This data role has nothing left of a namespace that moves to another pool, and will have nothing more.
    Converted {
        /// Which role.
        member: MemberId,
        /// Which namespace.
        namespace: NamespaceId,
        /// Which of its conversions.
        number: u32,
    },
    /// This stand-in's node has had no memory for its pages for a while.
    Starved {
        /// The group.
        group: GroupId,
        /// The stand-in's role.
        role: RoleIndex,
        /// Its term.
        term: Term,
        /// What all of its pages take, in bytes.
        bytes: u64,
    },
}

/// What the coordinator tells a node.
#[derive(Clone, Debug, PartialEq)]
pub enum FromCoordinator {
    /// The whole map: for who has none, or one that is so old that nobody knows what has changed since.
    Map(Arc<ClusterMap>),
    /// A group's newest view: the answer to `FetchView`.
    View(GroupView),
    /// This coordinator will not have the process. One that serves nothing yet ends with the reason; one that serves ends only
    /// if its own cluster has fenced it.
    Refused(Refused),
    /// Recovery: accept nothing below `term` from `role` any more, and say what you have.
    Fence {
        /// The group.
        group: GroupId,
        /// The data role whose primary is lost.
        role: RoleIndex,
        /// The new term.
        term: Term,
        /// The parity role that is asked.
        parity: RoleIndex,
        /// The coordinator that asks; an older one than another that was heard is not obeyed.
        epoch: Epoch,
    },
    /// Recovery: apply records up to `upto`, drop the rest.
    Settle {
        /// The group.
        group: GroupId,
        /// The data role whose primary is lost.
        role: RoleIndex,
        /// The new term.
        term: Term,
        /// The parity role that is asked.
        parity: RoleIndex,
        /// Where the old stream ends.
        upto: Seq,
        /// The coordinator that asks; an older one than another that was heard is not obeyed.
        epoch: Epoch,
    },
    /// A heartbeat was heard.
    Alive,
    /// The mirror of this data role is whole: begin nothing new, finish what is under way, and say so.
    HandOver {
        /// The group.
        group: GroupId,
        /// The data role that moves.
        role: RoleIndex,
        /// The term of the primary that is asked.
        term: Term,
        /// The view that appointed the mirror.
        since: ViewVersion,
        /// The coordinator's time.
        asked_at: Time,
        /// The coordinator that asks; an older one than another that was heard is not obeyed.
        epoch: Epoch,
    },
    /// The answer to an operator's request.
    Admin {
        /// The node's number for the request.
        id: u64,
        /// What came of it.
        reply: AdminReply,
    },
    /// Not yet: another process has the node's id, and its lease runs. It may be the node's former one, which nobody has seen
    /// end; then the place is free when that lease has run out. The node registers again.
    Occupied {
        /// The process that has it.
        by: HostId,
        /// Where peers reach that one.
        peer: SocketAddr,
        /// The cluster's lease.
        lease_us: u64,
        /// The cluster; none if it has not formed.
        cluster: Option<ClusterId>,
        /// The coordinator that says so.
        epoch: Epoch,
    },
    /// Say so once you have this view of a group, or a newer one: from then on nobody here is what an older one named.
    Confirm {
        /// The group.
        group: GroupId,
        /// The view.
        view: ViewVersion,
        /// The coordinator that asks; an older one than another that was heard is not obeyed.
        epoch: Epoch,
    },
    /// Keep these records for the coordinator that may follow, and say so.
    Keep {
        /// The coordinator that asks; nothing is kept for an older one than another that was heard.
        epoch: Epoch,
        /// How many records it has made, with these.
        position: u64,
        /// Who may know of decisions: those whom the last head in force shows as alive, or all sets that the coordinator itself
        /// went on from as long as it has put no head in force; then those of each head since, in order.
        electors: Vec<Electors>,
        /// Whether these are all: what was kept before is void. Else they follow what was kept at `position` less their number.
        whole: bool,
        /// The records, in order.
        records: Vec<Decision>,
    },
    /// A heartbeat was heard by a coordinator that does not know yet where to go on, or that hears too few nodes to decide anything.
    Waiting,
    /// A heartbeat was heard by a coordinator that counts the process as one of its nodes, and waits for others before it forms a
    /// cluster.
    Forming(Forming),
    /// What is added to the node's shares of quotas, or taken from them.
    Shares {
        /// The coordinator that deals, and its own count of that.
        round: Round,
        /// One of each namespace at most.
        grants: Vec<Grant>,
    },
    /// A coordinator that knows nothing asks what was kept for those before it.
    Recall {
        /// The coordinator that asks. Who answers keeps nothing for an older one from then on.
        epoch: Epoch,
    },
    /// What has changed of the map: the answer to `Register` of who has one, and after every change.
    Changes(Arc<MapChanges>),
}

/// See [`FromCoordinator::Refused`].
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The coordinator's cluster; none if it has none yet.
    pub cluster: Option<ClusterId>,
    /// The coordinator.
    pub epoch: Epoch,
    /// Whether an operator has fenced this very process.
    pub fenced: bool,
    /// Why, and what to do.
    pub reason: String,
}
