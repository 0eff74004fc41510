//! Words that values in chunks share with the rest: who writes or reads, what owners are asked, and what they want to be said.

use bytes::Bytes;
use types::op::{Key, Outcome, Request, Store, Via};
use types::{Descriptor, KeyHash, MemberId, Term};
use wire::object::KeptObject;

use crate::host::driver::{Place, Token};

/// An upload of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UploadId(pub u64);

/// A read of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GatherId(pub u64);

/// A chunk that a client of one host puts; also the number of the try to put it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DepositId(pub u64);

/// A value of one host's role that is made longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExtensionId(pub u64);

/// A value that one host's primary gives to another pool; also the driver's number for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RewriteId(pub u64);

/// Somebody of one host who writes or reads chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamId {
    Upload(UploadId),
    /// An upload whose id of this term is kept open: what comes of that must not be taken for what comes of its commit.
    Renewal(UploadId, Term),
    Gather(GatherId),
    Extension(ExtensionId),
}

/// For whom a value is written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Somebody outside.
    Driver(Token),
    Extension(ExtensionId),
    Rewrite(RewriteId),
}

/// What whoever writes or reads a value hears of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// An upload takes more bytes.
    Room,
    /// The next bytes of a value that is read.
    Part(Bytes),
    /// There are no more.
    Whole,
    /// It is over.
    Ended(Outcome),
}

/// A request to the owner of an object.
pub(crate) struct OwnerRequest {
    /// Who is to hear what comes of it, if anybody is.
    pub stream: Option<StreamId>,
    pub owner: MemberId,
    pub hash: KeyHash,
    pub request: Request,
}

/// A value that is to be written anew.
#[derive(Debug)]
pub(crate) struct NewRewrite {
    /// The primary that gives it away, and its number for that.
    pub giver: MemberId,
    pub number: u64,
    /// Whether somebody waits for it.
    pub is_wanted: bool,
    pub key: Key,
    /// Where it goes.
    pub place: Place,
    /// What it is now.
    pub descriptor: Descriptor,
    /// As it is to be stored, without its bytes.
    pub store: Store,
    /// That it is given away.
    pub via: Box<Via>,
}

/// Something that an owner wants holders to hear.
#[derive(Debug)]
pub(crate) struct Errand {
    pub owner: MemberId,
    pub term: Term,
    pub news: News,
}

/// What that is.
#[derive(Debug)]
pub(crate) enum News {
    /// This is committed.
    Kept(KeptObject),
    /// This is dead.
    Dead(Descriptor),
    /// Many may be dead at once: whoever has chunks of this owner is to ask.
    Flushed,
}

impl Errand {
    /// This is committed.
    pub(crate) fn keep(owner: MemberId, term: Term, descriptor: Descriptor, key_hash: KeyHash) -> Self {
        Self { owner, term, news: News::Kept(KeptObject { descriptor, key_hash }) }
    }

    /// Whoever has chunks of this owner is to ask about them.
    pub(crate) fn recall(owner: MemberId, term: Term) -> Self {
        Self { owner, term, news: News::Flushed }
    }

    /// This is dead.
    pub(crate) fn free(owner: MemberId, term: Term, descriptor: Descriptor) -> Self {
        Self { owner, term, news: News::Dead(descriptor) }
    }
}

/// Gauges of values in chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStats {
    /// Chunks that are kept here.
    pub chunks: u64,
    /// Their bytes.
    pub chunk_bytes: u64,
    /// The pages in which they lie.
    pub page_bytes: u64,
    /// What of these is of objects that are not known to be committed.
    pub tentative_bytes: u64,
    /// Pages of chunks that are not whole yet.
    pub arriving_bytes: u64,
    /// Chunks that are known to be lacking, and are being got.
    pub lacking_chunks: u64,
    /// What fills may have asked for of cells and not got, in bytes.
    pub fill_window_bytes: u64,
    /// What they have.
    pub fill_asked_bytes: u64,
    /// Roles whose chunks are to be got, and find no memory here.
    pub starved_fills: u64,
    /// Chunks of committed objects that nobody has any more.
    pub lost_chunks: u64,
    /// Ids of objects that may still be committed by the primaries here.
    pub open_ids: u64,
    /// Readers that the primaries here are held up by.
    pub pins: u64,
    /// Values that clients of this host write.
    pub uploads: u64,
    /// Values that clients of this host read.
    pub gathers: u64,
    /// Chunks that clients of this host put.
    pub deposits: u64,
    /// Bytes of both that are on their way.
    pub buffer_bytes: u64,
    /// Cells that readers here asked for because others were slow: counted.
    pub hedged_cells: u64,
    /// Stripes that clients of this host wrote, and that went to another group than the one that they were to go to: counted.
    pub moved_stripes: u64,
    /// Values that this host has not written for want of room: counted.
    pub refused_values: u64,
    /// Chunks of parities that such a value's data holders made, so that this host did not send them: counted.
    pub summed_chunks: u64,
    /// Those of them that this host sent after all, for nothing came of that: counted.
    pub unsummed_chunks: u64,
    /// Values of which it was chosen that holders make the parities (`EncodeBy::Auto`).
    pub summed_uploads: u64,
    /// How often the way that was not chosen was tried.
    pub encode_trials: u64,
    /// How often the choice was changed then.
    pub encode_turns: u64,
    /// Bytes of products for parities here, added up as far as they have come.
    pub sum_bytes: u64,
    /// Sums of products that were not what their writers had named, and were not kept: counted.
    pub wrong_sums: u64,
    /// Values that this host's primaries have given to another pool, and that were written there: counted.
    pub rewritten_values: u64,
    /// Times that such a value got another id, for its owner was another one or had closed the one before: counted.
    pub renamed_uploads: u64,
}
