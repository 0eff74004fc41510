//! Messages about the chunks of objects (docs/objects.md has the table: name, from, to, content). They go from process to process:
//! an object's chunks may lie in other groups than its key.

use bytes::Bytes;
use smallvec::SmallVec;
use types::{
    ChunkId, Descriptor, Exception, Geometry, GroupId, HostId, KeyHash, MemberId, ObjectId, RoleIndex, Term,
    UnixSeconds, ViewVersion,
};

/// Most chunks or objects that one message names.
pub const MAX_NAMED: usize = 1024;

/// Of the numbers of fills' questions.
pub const FILL_BIT: u64 = 1 << 63;
/// Of the numbers of scrubs' questions, which do not have the other one.
pub const SCRUB_BIT: u64 = 1 << 62;

/// Whether a question with this number is of a fill or a scrub: no client waits for the answer.
#[must_use]
pub fn is_of_repair(number: u64) -> bool {
    number & (FILL_BIT | SCRUB_BIT) != 0
}

/// What one process sends another about chunks.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectMessage {
    /// Writer to holder: one cell of a chunk.
    Put(Put),
    /// Holder to writer: the chunk is whole, and is kept.
    Placed(Placed),
    /// Holder to writer: it is not.
    Refused(Refused),
    /// Owner to holder: these objects are committed.
    Keep(Keep),
    /// Owner to holder: these objects are dead.
    Free(Free),
    /// Owner to a process: ask me about everything of mine.
    Recall(Recall),
    /// Holder to owner: a Free or a Recall is done.
    Heard(Heard),
    /// Holder to owner: what has become of these objects?
    Ask(Ask),
    /// Owner to holder: this has.
    Verdicts(Verdicts),
    /// Gatherer to holder: send me these rows.
    Fetch(Fetch),
    /// Holder to gatherer: one of them.
    Cell(Cell),
    /// Holder to gatherer: the chunk is not here.
    Missing(Missing),
    /// Who gets a role's chunks to one that has those of another role: which are there?
    List(List),
    /// These are.
    Listed(Listed),
    /// Holder to owner: there is no room here, and these were not read for long.
    Evict(Evict),
    /// Writer to holder: a chunk that is kept there is to be one of another object, too.
    PutAs(PutAs),
    /// Writer to the holder of a data role: one cell of a chunk, of which others are to have products.
    PutShared(Box<PutShared>),
    /// Writer to the holder of a parity: one cell of a chunk is the sum of products that come from others.
    PutSum(PutSum),
    /// Holder of a data role to the holder of a parity: one of them.
    Product(Product),
    /// Writer to the holder of another data role: a cell that the writer keeps itself, of which others are to have products.
    Lend(Lend),
}

/// What a node tells the coordinator about holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkReport {
    /// Somebody wants to put chunks into this group, whose view names no holders yet.
    Open {
        /// The group.
        group: GroupId,
    },
    /// Whoever was filling has all chunks that there are.
    Filled {
        /// The group.
        group: GroupId,
        /// Of this role.
        role: RoleIndex,
        /// The view that has named it.
        since: ViewVersion,
    },
}

/// Bytes that are sent with their own checksum, and are not copied on their way where they are long.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The bytes.
    pub bytes: Bytes,
    /// Their CRC32C, as the sender says.
    pub checksum: u32,
    /// The same as computed here, if it was.
    computed: Option<u32>,
}

impl PartialEq for Checked {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, self.checksum) == (&other.bytes, other.checksum)
    }
}

impl Checked {
    /// Of bytes that are made here.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        let checksum = types::checksum(&bytes);
        Self { bytes, checksum, computed: Some(checksum) }
    }

    /// Of bytes whose checksum is said to be this one.
    #[must_use]
    pub fn said(bytes: Bytes, checksum: u32) -> Self {
        Self { bytes, checksum, computed: None }
    }

    /// Of bytes that were looked at on their way in, and are said to have this checksum.
    pub(crate) fn received(bytes: Bytes, checksum: u32, computed: u32) -> Self {
        Self { bytes, checksum, computed: Some(computed) }
    }

    /// Whether the bytes are what the sender had.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.computed.unwrap_or_else(|| types::checksum(&self.bytes)) == self.checksum
    }
}

/// See [`ObjectMessage::Put`].
#[derive(Clone, Debug, PartialEq)]
pub struct Put<C = Checked> {
    /// Whose chunk it is.
    pub member: MemberId,
    /// The writer's version of the view.
    pub view: ViewVersion,
    /// Which.
    pub chunk: ChunkId,
    /// The writer's number for this try; the cells of one try come in order.
    pub attempt: u64,
    /// Of the object's key.
    pub key_hash: KeyHash,
    /// Of the object.
    pub geometry: Geometry,
    /// Which cell of the chunk.
    pub row: u32,
    /// Its bytes, or what is said of them.
    pub cell: C,
    /// With the last row: the CRC32C of each of the stripe's `n` chunks.
    pub trailer: Trailer,
    /// Whether its namespace is charged for it already: for the same value in another pool, which it leaves.
    pub charged: bool,
}

/// See [`ObjectMessage::PutAs`]. What it names is as in [`Put`].
#[derive(Clone, Debug, PartialEq)]
pub struct PutAs {
    /// Whose chunk it is.
    pub member: MemberId,
    /// The writer's version of the view.
    pub view: ViewVersion,
    /// The new name.
    pub chunk: ChunkId,
    /// The writer's number for this try.
    pub attempt: u64,
    /// The object whose chunk of this stripe it was put as.
    pub old: ObjectId,
    /// Of the key of both.
    pub key_hash: KeyHash,
    /// Of both objects.
    pub geometry: Geometry,
    /// The CRC32C of each of the stripe's `n` chunks.
    pub trailer: Trailer,
}

/// See [`ObjectMessage::PutShared`].
#[derive(Clone, Debug, PartialEq)]
pub struct PutShared {
    /// The cell.
    pub put: Put,
    /// Who is to have a product of it, each another parity.
    pub shares: Shares,
}

/// Parities that are made of products.
pub type Shares = SmallVec<[Share; 4]>;

/// A try to put a parity chunk, whose cells are sums of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of the same group.
    pub role: RoleIndex,
    /// Its holder.
    pub holder: HostId,
    /// The writer's number for that try.
    pub attempt: u64,
}

/// See [`ObjectMessage::PutSum`]: of the cell its CRC32C alone, with which whoever adds up compares.
pub type PutSum = Put<u32>;

impl PutSum {
    /// The same with its bytes.
    #[must_use]
    pub fn with(self, cell: Checked) -> Put {
        let Self { member, view, chunk, attempt, key_hash, geometry, row, cell: _, trailer, charged } = self;
        Put { member, view, chunk, attempt, key_hash, geometry, row, cell, trailer, charged }
    }

    /// The same without them.
    #[must_use]
    pub fn of(put: Put) -> Self {
        let Put { member, view, chunk, attempt, key_hash, geometry, row, cell, trailer, charged } = put;
        Self { member, view, chunk, attempt, key_hash, geometry, row, cell: cell.checksum, trailer, charged }
    }
}

/// See [`ObjectMessage::Lend`].
#[derive(Clone, Debug, PartialEq)]
pub struct Lend {
    /// Whose cell it is.
    pub member: MemberId,
    /// The writer's version of the view.
    pub view: ViewVersion,
    /// Which cell of its chunk.
    pub row: u32,
    /// Its bytes.
    pub cell: Checked,
    /// Who is to have a product of it, each another parity.
    pub shares: Shares,
}

/// See [`ObjectMessage::Product`].
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// Who puts the chunk that it is a part of.
    pub writer: HostId,
    /// The writer's number for the try.
    pub attempt: u64,
    /// Whose chunk that is: a parity's.
    pub member: MemberId,
    /// Which cell of it.
    pub row: u32,
    /// The data role whose cell was multiplied.
    pub of: RoleIndex,
    /// By that parity's coefficient: what came of it.
    pub cell: Checked,
}

/// The checksums of the chunks of one stripe, in the order of their roles; none where they are not known.
pub type Trailer = SmallVec<[u32; 8]>;

/// See [`ObjectMessage::Placed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Whose chunk it is.
    pub member: MemberId,
    /// Which.
    pub chunk: ChunkId,
    /// The number of the try.
    pub attempt: u64,
    /// The view that has named this holder.
    pub since: ViewVersion,
}

/// See [`ObjectMessage::Refused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whose chunk it is.
    pub member: MemberId,
    /// Which.
    pub chunk: ChunkId,
    /// The number of the try.
    pub attempt: u64,
    /// Why.
    pub why: Refusal,
}

/// Why a chunk is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The view is this one by now, or names somebody else.
    View(ViewVersion),
    /// There is no memory, or no share of the namespace's quota.
    NoRoom,
    /// There is none now: owners are asked to evict something, or shares are still to be dealt out.
    Crowded,
    /// Something else is kept under this name.
    Different,
    /// Cells are missing: it is to be put again.
    Gap,
    /// The chunk that it is to be is not here, or not yet.
    Absent,
}

/// See [`ObjectMessage::Keep`].
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    /// Who says so.
    pub owner: MemberId,
    /// Its term.
    pub term: Term,
    /// Whose chunks.
    pub member: MemberId,
    /// The owner's number for this message.
    pub number: u64,
    /// What is committed.
    pub objects: Vec<KeptObject>,
}

/// An object that is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptObject {
    /// What it is and where it lies.
    pub descriptor: Descriptor,
    /// Of its key.
    pub key_hash: KeyHash,
}

/// See [`ObjectMessage::Free`].
#[derive(Clone, Debug, PartialEq)]
pub struct Free {
    /// Who says so.
    pub owner: MemberId,
    /// Its term.
    pub term: Term,
    /// Whose chunks.
    pub member: MemberId,
    /// The owner's number for this message.
    pub number: u64,
    /// What is dead.
    pub objects: Vec<ObjectId>,
}

/// See [`ObjectMessage::Recall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// Who says so.
    pub owner: MemberId,
    /// Its term.
    pub term: Term,
    /// The owner's number for this message.
    pub number: u64,
}

/// See [`ObjectMessage::Heard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Who is answered.
    pub owner: MemberId,
    /// The term of the message.
    pub term: Term,
    /// Whose chunks; of a Recall the owner itself.
    pub member: MemberId,
    /// The number of the message.
    pub number: u64,
}

/// See [`ObjectMessage::Ask`].
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Who is asked.
    pub owner: MemberId,
    /// Whose chunks.
    pub member: MemberId,
    /// About which objects.
    pub objects: Vec<Asked>,
    /// What who asks has found of them.
    pub found: Harm,
}

/// What somebody has found of the chunks of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Nothing is said of them.
    None,
    /// Too few are left.
    Lost,
    /// They are whole, and those of a stripe are no code word.
    Wrong,
}

/// An object that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which.
    pub object: ObjectId,
    /// Of its key.
    pub key_hash: KeyHash,
}

/// See [`ObjectMessage::Verdicts`].
#[derive(Clone, Debug, PartialEq)]
pub struct Verdicts {
    /// Who answers.
    pub owner: MemberId,
    /// Its term: what it says of ids of later ones counts for nothing.
    pub term: Term,
    /// Whose chunks.
    pub member: MemberId,
    /// What has become of each object that it knows about.
    pub verdicts: Vec<(ObjectId, Verdict)>,
    /// Of those that are committed, the stripes that lie in other groups than their objects' lists say.
    pub moved: Vec<Moved>,
}

/// Stripes of an object that lie elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Of this one.
    pub object: ObjectId,
    /// Which, and where.
    pub exceptions: Vec<Exception>,
}

/// What has become of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It may still be committed, or is read.
    Open,
    /// It is what a key has.
    Committed,
    /// It is not, and never will be.
    Dead,
}

/// See [`ObjectMessage::Evict`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evict {
    /// Whose objects they are.
    pub owner: MemberId,
    /// Which.
    pub objects: Vec<Cold>,
}

/// An object that was not read for long where a chunk of it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cold {
    /// Which.
    pub object: ObjectId,
    /// Of its key.
    pub key_hash: KeyHash,
    /// When the chunk was last read, or came.
    pub last_access: UnixSeconds,
}

/// See [`ObjectMessage::Fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The gatherer's number.
    pub number: u64,
    /// Whose chunk it is.
    pub member: MemberId,
    /// Which.
    pub chunk: ChunkId,
    /// The first row.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// See [`ObjectMessage::Cell`].
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The gatherer's number.
    pub number: u64,
    /// Whose chunk it is.
    pub member: MemberId,
    /// Which.
    pub chunk: ChunkId,
    /// Which row.
    pub row: u32,
    /// Its bytes.
    pub cell: Checked,
}

/// See [`ObjectMessage::Missing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The gatherer's number.
    pub number: u64,
    /// Whose chunk it would be.
    pub member: MemberId,
    /// Which.
    pub chunk: ChunkId,
    /// The version of the view here.
    pub view: ViewVersion,
    /// Whether this is whole there for that role: who is filling may still get it, and who is neither knows nothing.
    pub whole: bool,
}

/// See [`ObjectMessage::List`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// The asker's number.
    pub number: u64,
    /// Whose chunks are listed.
    pub member: MemberId,
    /// The asker's view: the answer is under it or a later one.
    pub view: ViewVersion,
    /// Those after this one.
    pub after: Option<ChunkId>,
}

/// See [`ObjectMessage::Listed`].
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The asker's number.
    pub number: u64,
    /// Whose chunks these are.
    pub member: MemberId,
    /// The view of whoever answers.
    pub view: ViewVersion,
    /// What is there, ascending.
    pub chunks: Vec<ListedChunk>,
    /// Whether there are more.
    pub more: bool,
}

/// A chunk that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedChunk {
    /// Which.
    pub chunk: ChunkId,
    /// Of the object's key.
    pub key_hash: KeyHash,
    /// Of the object.
    pub geometry: Geometry,
    /// Of its stripe.
    pub trailer: Trailer,
    /// Whether its object is known to be committed.
    pub kept: bool,
}
