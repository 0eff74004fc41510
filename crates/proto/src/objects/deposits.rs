//! Chunks that clients put themselves, cell by cell, at the node of their holder.
//!
//! Each cell goes on to the holder as if this host wrote the object: there is one way in which a chunk is kept, whoever has coded it.
//! What a client may have made up is looked at here first, so that what reaches the holder is what a member could have sent.

use std::collections::BTreeMap;

use bytes::Bytes;
use types::op::{Failure, Outcome};
use types::{ChunkId, Geometry, KeyHash, MemberId, Stripe, Time, ViewVersion};
use wire::object::{Checked, ObjectMessage, Placed, Put, Refusal, Refused, Trailer};

use super::names::{Client, DepositId, Told};
use super::scope::Scope;
use crate::Timing;
use crate::host::driver::Token;

/// Numbers of tries from here on are of deposits, those below of uploads.
const FIRST_ATTEMPT: u64 = 1 << 63;

/// A chunk that a client wants to put here.
#[derive(Clone, Debug)]
pub struct NewDeposit {
    /// Whose it is to be.
    pub member: MemberId,
    /// By this version of the view.
    pub view: ViewVersion,
    /// Which.
    pub chunk: ChunkId,
    /// Of the object; one that can be.
    pub geometry: Geometry,
    /// Of its key.
    pub key_hash: KeyHash,
    /// The CRC32C of each cell.
    pub checksums: Vec<u32>,
    /// The CRC32C of each chunk of the stripe.
    pub trailer: Vec<u32>,
}

/// Those of one host.
#[derive(Default)]
pub(crate) struct Deposits {
    all: BTreeMap<DepositId, Deposit>,
    started: u64,
}

struct Deposit {
    client: Client,
    new: NewDeposit,
    stripe: Stripe,
    /// Cells that have come.
    come: u32,
    moved: Time,
}

/// Whether this number of a try is a deposit's.
pub(super) fn is_one(attempt: u64) -> bool {
    attempt >= FIRST_ATTEMPT
}

/// What a client hears of its deposit.
pub(super) type Heard = Option<(Client, Told)>;

impl Deposits {
    /// A client begins to put a chunk.
    pub(super) fn begin(
        &mut self,
        scope: &Scope<'_>,
        token: Token,
        new: NewDeposit,
    ) -> Result<DepositId, Failure> {
        if self.all.len() >= scope.limits().uploads {
            return Err(Failure::Busy);
        }
        let view = scope.view(new.member.group).ok_or(Failure::WrongPrimary)?;
        let stripe = new.geometry.stripe(new.chunk.stripe).ok_or(Failure::WrongPrimary)?;
        let is_of_group = usize::from(new.geometry.k) == view.k()
            && new.trailer.len() == view.holders.len()
            && usize::from(new.member.role.0) < view.holders.len()
            && new.checksums.len() == stripe.rows as usize;
        // Of a view that is not known here nothing is believed, for a client may name any.
        if !is_of_group || new.view != view.version {
            return Err(Failure::WrongPrimary);
        }
        self.started += 1;
        let id = DepositId(FIRST_ATTEMPT | self.started);
        let (client, moved) = (Client::Driver(token), scope.now.time);
        self.all.insert(id, Deposit { client, new, stripe, come: 0, moved });
        Ok(id)
    }

    /// The next cell. The outcome, if it is one that the client cannot have.
    pub(super) fn feed(&mut self, scope: &mut Scope<'_>, id: DepositId, bytes: Bytes) -> Heard {
        let one = self.all.get_mut(&id)?;
        let cell = Checked::new(bytes);
        let is_next = one.new.checksums.get(one.come as usize) == Some(&cell.checksum)
            && cell.bytes.len() == one.stripe.cell_len as usize;
        if !is_next {
            return self.end(id, Outcome::Failed(Failure::Corrupt));
        }
        one.moved = scope.now.time;
        let put = one.put(id, cell);
        one.come += 1;
        scope.send(scope.here(), ObjectMessage::Put(put));
        None
    }

    /// A holder here has one; whether that is a deposit's.
    pub(super) fn placed(&mut self, placed: &Placed) -> Heard {
        self.end(DepositId(placed.attempt), Outcome::Noted)
    }

    /// A holder here has not taken one.
    pub(super) fn refused(&mut self, refused: &Refused) -> Heard {
        let failure = match refused.why {
            Refusal::View(_) => Failure::WrongPrimary,
            Refusal::NoRoom => Failure::OutOfMemory,
            Refusal::Crowded => Failure::Busy,
            Refusal::Different => Failure::Corrupt,
            Refusal::Gap | Refusal::Absent => Failure::Unavailable,
        };
        self.end(DepositId(refused.attempt), Outcome::Failed(failure))
    }

    fn end(&mut self, id: DepositId, outcome: Outcome) -> Heard {
        self.all.remove(&id).map(|one| (one.client, Told::Ended(outcome)))
    }

    /// Nothing more comes of it: whose chunk it was to be.
    pub(super) fn abandon(&mut self, id: DepositId) -> Option<MemberId> {
        self.all.remove(&id).map(|one| one.new.member)
    }

    /// Those end of which nothing has come, or been heard, for too long.
    pub(super) fn tick(&mut self, now: Time, timing: &Timing) -> Vec<Heard> {
        let is_late = |one: &Deposit| now.since(one.moved) >= timing.object_deadline_us;
        let late: Vec<DepositId> =
            self.all.iter().filter(|(_, one)| is_late(one)).map(|(id, _)| *id).collect();
        late.into_iter().map(|id| self.end(id, Outcome::Failed(Failure::Unavailable))).collect()
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let oldest = self.all.values().map(|one| one.moved).min();
        oldest.map_or(Time::NEVER, |oldest| oldest + timing.object_deadline_us)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let of = |one: &Deposit| size_of::<Deposit>() + (one.new.checksums.len() + one.new.trailer.len()) * 4;
        self.all.values().map(of).sum()
    }
}

impl Deposit {
    fn put(&self, id: DepositId, cell: Checked) -> Put {
        let NewDeposit { member, view, chunk, geometry, key_hash, .. } = self.new;
        let is_last = self.come + 1 == self.stripe.rows;
        let trailer = if is_last { self.new.trailer.iter().copied().collect() } else { Trailer::new() };
        let (attempt, row, charged) = (id.0, self.come, false);
        Put { member, view, chunk, attempt, key_hash, geometry, row, cell, trailer, charged }
    }
}
