//! Whether the chunks of a stripe are a code word, row by row: that the parities are those of the data.
//!
//! Checksums cannot tell. A writer that has coded wrongly has summed up what it has coded, and every chunk is what its trailer says; what is
//! decoded from them depends on who is asked. One holder looks at each stripe: that of role `(number of the object + stripe) mod n`,
//! if the view names a whole holder for every role. It fetches the rows of all others, a window at a time, and compares.

use std::sync::Arc;

use bytes::Bytes;
use cluster::Protection;
use smallvec::SmallVec;
use store::ChunkEntry;
use types::{ChunkId, GroupView, HostId, KeyHash, MemberId, RoleIndex, Stripe, Time};
use wire::object::{Cell, Fetch, Missing, ObjectMessage, SCRUB_BIT};

use crate::Timing;
use crate::objects::fill::role_of;
use crate::objects::holder::Holder;
use crate::objects::scope::Scope;

/// Bytes of all cells of a window, at least a row of them.
const WINDOW_BYTES: usize = 1 << 20;
/// How often a window is asked for before its stripe is left out.
const TRIES: u32 = 3;
/// Times that a lost message is waited for before it is asked for again.
const PATIENCE: u64 = 4;

/// Whether a message with this number is for a scrub.
pub(in crate::objects) fn is_of_scrub(number: u64) -> bool {
    number & SCRUB_BIT != 0 && role_of(number).is_none()
}

/// A stripe whose chunks are as their writer has put them, and are no code word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrongStripe {
    /// The holder that has found it.
    pub member: MemberId,
    /// Which chunk it has of it.
    pub chunk: ChunkId,
    /// Of its object's key.
    pub key_hash: KeyHash,
    /// The first row that is wrong.
    pub row: u32,
    /// The first parity role that is not that of the data.
    pub parity: RoleIndex,
}

/// How far a stripe is.
pub(super) enum State {
    /// Cells are to come, or the pace does not allow more now.
    Waiting,
    /// It is a code word.
    Right,
    Wrong(WrongStripe),
    /// Somebody has not got it now: it is being got, or nobody wants it any more.
    LeftOut,
}

/// See the module: one stripe.
pub(super) struct WordCheck {
    member: MemberId,
    chunk: ChunkId,
    key_hash: KeyHash,
    stripe: Stripe,
    protection: Arc<Protection>,
    /// By role.
    holders: SmallVec<[HostId; 8]>,
    /// Of the question that is open.
    number: u64,
    tries: u32,
    /// The rows of the window.
    first: u32,
    count: u32,
    /// Its cells, row by row, each in the order of roles.
    cells: Vec<Option<Bytes>>,
    asked_at: Option<Time>,
    ended: Option<State>,
}

impl WordCheck {
    /// The stripe of this chunk, if it is this role's to look at and can be looked at now. What is not known to be committed may not
    /// be everywhere.
    pub(super) fn of(
        scope: &Scope<'_>,
        member: MemberId,
        chunk: ChunkId,
        entry: &ChunkEntry,
    ) -> Option<Self> {
        let view = scope.view(member.group)?;
        let protection = scope.protection(member.group)?;
        let n = protection.code().n();
        if entry.is_tentative()
            || protection.code().m() == 0
            || looker(chunk, n) != usize::from(member.role.0)
        {
            return None;
        }
        let holders = whole_holders(view, n)?;
        let stripe = entry.geometry().stripe(chunk.stripe)?;
        let rows = (WINDOW_BYTES / (n * stripe.cell_len as usize)).max(1) as u32;
        Some(Self {
            member,
            chunk,
            key_hash: entry.key_hash(),
            stripe,
            protection,
            holders,
            number: 0,
            tries: 0,
            first: 0,
            count: rows.min(stripe.rows),
            cells: Vec::new(),
            asked_at: None,
            ended: None,
        })
    }

    pub(super) fn member(&self) -> MemberId {
        self.member
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.cells.iter().flatten().map(Bytes::len).sum()
    }

    /// When something is to be done though nothing comes.
    pub(super) fn due(&self, timing: &Timing) -> Option<Time> {
        match (&self.ended, self.asked_at) {
            (None, Some(at)) => Some(at + patience_us(timing)),
            _ => None,
        }
    }

    /// Bytes of a window: what asking for one costs.
    fn window_bytes(&self) -> usize {
        self.holders.len() * self.count as usize * self.stripe.cell_len as usize
    }

    /// Asks for what is to be asked, and says how far it is. `numbers` counts questions.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, holder: &Holder, numbers: &mut u64) -> State {
        if let Some(state) = self.ended.take() {
            return state;
        }
        let patience_us = patience_us(&scope.timing());
        let is_late = self.asked_at.is_some_and(|at| scope.now.time.since(at) >= patience_us);
        if is_late && self.tries == TRIES {
            return State::LeftOut;
        }
        if self.asked_at.is_none() || is_late {
            return self.ask(scope, holder, numbers);
        }
        State::Waiting
    }

    fn ask(&mut self, scope: &mut Scope<'_>, holder: &Holder, numbers: &mut u64) -> State {
        let Some(entry) = holder.chunks().get(self.chunk) else { return State::LeftOut };
        let is_as_it_was =
            |view: &GroupView| whole_holders(view, self.holders.len()).as_ref() == Some(&self.holders);
        if !scope.view(self.member.group).is_some_and(is_as_it_was) {
            return State::LeftOut;
        }
        if !scope.around.pace_mut().allows_scrub(scope.now.time) {
            return State::Waiting;
        }
        scope.around.pace_mut().spend_scrub(self.window_bytes());
        *numbers += 1;
        self.number = SCRUB_BIT | *numbers;
        (self.tries, self.asked_at) = (self.tries + 1, Some(scope.now.time));
        let own = usize::from(self.member.role.0);
        self.cells = vec![None; self.holders.len() * self.count as usize];
        for row in 0..self.count {
            let at = self.place(row, own);
            self.cells[at] = entry.chunk().cell(self.first + row);
        }
        let (number, chunk, first, count) = (self.number, self.chunk, self.first, self.count);
        for (role, host) in self.holders.iter().enumerate().filter(|(role, _)| *role != own) {
            let member = MemberId { group: self.member.group, role: RoleIndex(role as u8) };
            scope.send(*host, ObjectMessage::Fetch(Fetch { number, member, chunk, first, count }));
        }
        State::Waiting
    }

    /// Where the cell of a row of the window and of a role is.
    fn place(&self, row: u32, role: usize) -> usize {
        row as usize * self.holders.len() + role
    }

    /// A cell that was asked for.
    pub(super) fn take(&mut self, from: HostId, cell: Cell) {
        let role = usize::from(cell.member.role.0);
        let row = cell.row.wrapping_sub(self.first);
        let is_it = cell.number == self.number
            && self.holders.get(role) == Some(&from)
            && row < self.count
            && cell.cell.bytes.len() == self.stripe.cell_len as usize
            && cell.cell.is_right();
        if !is_it || self.cells.is_empty() {
            return;
        }
        let at = self.place(row, role);
        self.cells[at] = Some(cell.cell.bytes);
        if self.cells.iter().all(Option::is_some) {
            self.end_window();
        }
    }

    /// Somebody has not got its chunk.
    pub(super) fn miss(&mut self, from: HostId, missing: &Missing) {
        if missing.number == self.number && self.holders.contains(&from) {
            self.ended = Some(State::LeftOut);
        }
    }

    /// All cells of the window are here.
    fn end_window(&mut self) {
        let cells: Vec<Bytes> = std::mem::take(&mut self.cells).into_iter().flatten().collect();
        let rows = cells.chunks(self.holders.len()).zip(self.first..);
        let wrong = rows.into_iter().find_map(|(cells, row)| Some((row, self.wrong_parity(cells)?)));
        (self.asked_at, self.tries) = (None, 0);
        self.first += self.count;
        self.count = self.count.min(self.stripe.rows.saturating_sub(self.first));
        self.ended = match wrong {
            Some((row, parity)) => {
                let (member, chunk, key_hash) = (self.member, self.chunk, self.key_hash);
                Some(State::Wrong(WrongStripe { member, chunk, key_hash, row, parity }))
            }
            None if self.count == 0 => Some(State::Right),
            None => None,
        };
    }

    /// The first parity of a row that is not that of its data.
    fn wrong_parity(&self, cells: &[Bytes]) -> Option<RoleIndex> {
        let code = self.protection.code();
        let (data, parity) = cells.split_at(code.k());
        let found = code.verify(&slices(data), &slices(parity)).ok()?;
        found.first().map(|mismatch| RoleIndex((code.k() + mismatch.parity) as u8))
    }
}

fn patience_us(timing: &Timing) -> u64 {
    timing.retry_us * PATIENCE
}

fn slices(cells: &[Bytes]) -> SmallVec<[&[u8]; 16]> {
    cells.iter().map(|cell| &cell[..]).collect()
}

/// The role whose holder looks at a stripe.
fn looker(chunk: ChunkId, n: usize) -> usize {
    (chunk.object.number.wrapping_add(u64::from(chunk.stripe)) % n as u64) as usize
}

/// The whole holder of every role, if there is one for each.
fn whole_holders(view: &GroupView, n: usize) -> Option<SmallVec<[HostId; 8]>> {
    (0..n).map(|role| view.holders_of(RoleIndex(role as u8)).whole.map(|holder| holder.host)).collect()
}
