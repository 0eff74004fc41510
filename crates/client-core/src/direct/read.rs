//! One value whose chunks are read here.
//!
//! Rows are asked for in *batches*: some rows of a stripe that follow each other, one request to the holder of each data role of which cells are
//! wanted. Where one has not got them, is gone, or is slow, others are asked for the same rows, and what is missing is made of any that suffice; or
//! a node is asked to have it made (`batch`). Bytes are given out in order, from the front, and never more are under way than the window takes.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use codec::Code;
use native::{FetchAsk, FoundChunks, GetAsk, MAX_DEADLINE_MS, MAX_FETCH_BYTES, Meta, Range, UnpinAsk};
use types::{ChunkId, Hedging, MemberId, NodeId, ObjectId, RoleIndex, Stripe, Time};

use super::batch::{Batch, Given, Rows, place_of, roles_of};
use super::{Means, Stats};

/// The pin is spoken of so often while it lasts.
const PROGRESS: u64 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Read {
    found: FoundChunks,
    code: Option<Arc<Code>>,
    /// For how many bytes the caller has room, in which cells may be received.
    room: u64,
    /// Bytes that are still to be given out: from, up to.
    start: u64,
    end: u64,
    /// The next row to ask for.
    next: Option<(Stripe, u32)>,
    batches: VecDeque<Batch>,
    /// The number of the last batch.
    number: u64,
    /// Bytes that were given out and not taken yet.
    untaken: u64,
    /// Whether the caller knows that there is a value: before that it may still turn out to be another one.
    is_told: bool,
    /// When the owner last heard of the pin.
    pinned_at: Option<Time>,
    is_stuck: bool,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub found: Option<(Meta, (u64, u64))>,
    pub bytes: Vec<Bytes>,
    pub is_whole: bool,
    pub fails: bool,
    pub wanted: Vec<Wanted>,
    pub making: Vec<Making>,
    pub unpin: Option<UnpinAsk>,
    pub due: Time,
}

/// Cells of one role that are to be asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub batch: u64,
    pub role: u8,
    pub node: NodeId,
    pub ask: FetchAsk,
}

/// The wanted bytes of a lost cell, which a node is to have made.
#[derive(Debug)]
pub(super) struct Making {
    pub batch: u64,
    pub role: u8,
    pub ask: GetAsk,
    /// For how long it is waited for, in milliseconds.
    pub deadline_ms: u32,
}

impl Read {
    pub(super) fn new(found: FoundChunks, code: Option<Arc<Code>>, room: u64) -> Self {
        let (start, len) = found.part;
        let geometry = found.chunks.geometry;
        let next = u32::try_from(start / geometry.stripe_len()).ok().and_then(|index| geometry.stripe(index));
        let next = next.map(|stripe| (stripe, ((start - stripe.start) / stripe.row_len()) as u32));
        Self {
            found,
            code,
            room,
            start,
            end: start + len,
            next,
            batches: VecDeque::new(),
            number: 0,
            untaken: 0,
            is_told: false,
            pinned_at: None,
            is_stuck: false,
        }
    }

    /// What keeps the chunks, and is to be given back.
    pub(super) fn pin(&self) -> Option<(ObjectId, u64)> {
        self.found.pin.map(|pin| (self.found.chunks.object, pin))
    }

    pub(super) fn note_untaken(&mut self, untaken: u64) {
        self.untaken = untaken;
    }

    /// A cell has come.
    pub(super) fn take(&mut self, batch: u64, role: u8, row: u32, bytes: Bytes) {
        if let Some(batch) = self.batch(batch) {
            batch.take(role, row, bytes);
        }
    }

    /// Whether what a node has is the value that is read here.
    pub(super) fn is_of(&self, meta: &Meta) -> bool {
        (meta.version, meta.value_len) == (self.found.meta.version, self.found.meta.value_len)
    }

    /// What is wanted of a lost cell has been made.
    pub(super) fn take_made(&mut self, batch: u64, role: u8, bytes: Bytes) {
        if let Some(batch) = self.batch(batch) {
            batch.take_made(role.into(), bytes);
        }
    }

    /// It is not.
    pub(super) fn is_not_made(&mut self, batch: u64, role: u8) {
        self.with_batch(batch, |batch, code| batch.is_not_made(code, role.into()));
    }

    /// Whether cells may be received where the caller has room for the value.
    pub(super) fn lands(&self) -> bool {
        self.found.part.1 <= self.room
    }

    /// With which of the bytes that are read a cell begins, and how many these are, as long as all of the cell is wanted: its row has not been
    /// given out, and nothing of it lies beyond their ends.
    pub(super) fn place_of(&self, batch: u64, role: u8, row: u32) -> Option<(u64, u64)> {
        let (start, len) = self.found.part;
        let batch = self.batches.iter().find(|one| one.number == batch).filter(|_| self.lands())?;
        let stripe = batch.stripe;
        let row = batch.row_at(row).filter(|_| role < stripe.k)?;
        let (from, filled) = place_of(stripe, row, role.into());
        let is_wanted = filled == u64::from(stripe.cell_len) && from >= start && from + filled <= start + len;
        is_wanted.then(|| (from - start, len))
    }

    /// No more comes of a role.
    pub(super) fn has_come(&mut self, batch: u64, role: u8) {
        self.with_batch(batch, |batch, code| batch.has_come(code, role.into()));
    }

    /// A role's cells do not come: others are asked.
    pub(super) fn fail(&mut self, batch: u64, role: u8) {
        self.with_batch(batch, |batch, code| batch.fail(code, role.into()));
    }

    /// The number of the batch that is given out next.
    pub(super) fn front(&self) -> u64 {
        self.batches.front().map_or(0, |batch| batch.number)
    }

    fn batch(&mut self, number: u64) -> Option<&mut Batch> {
        self.batches.iter_mut().find(|batch| batch.number == number)
    }

    fn with_batch(&mut self, number: u64, act: impl FnOnce(&mut Batch, &Code)) {
        if let Some(code) = self.code.clone()
            && let Some(batch) = self.batch(number)
        {
            act(batch, &code);
        }
    }

    /// Some are late: first as many others are asked as there are cells missing, then all of them.
    pub(super) fn reconsider(&mut self, means: Means, hedging: &mut Hedging) {
        let Some(code) = self.code.clone() else { return };
        for batch in self.batches.iter_mut().filter(|batch| !batch.is_here()) {
            if batch.due(means, hedging) <= means.now {
                self.is_stuck |= !batch.is_late(&code, hedging);
            }
        }
    }

    /// See [`Step`].
    pub(super) fn go_on(&mut self, means: Means, stats: &mut Stats, hedging: &mut Hedging) -> Step {
        let mut step = Step { due: Time::NEVER, ..Step::default() };
        let Some(code) = self.code.clone() else { return Step { fails: true, ..step } };
        for batch in &mut self.batches {
            batch.note_enough(&code, means.now).into_iter().for_each(|us| hedging.note_whole(us));
        }
        let bytes = self.give_out(&code, stats);
        if !self.is_told && (!bytes.is_empty() || self.start >= self.end) {
            self.is_told = true;
            step.found = Some((self.found.meta, self.found.part));
        }
        self.untaken += bytes.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        step.bytes = bytes;
        step.is_whole = self.start >= self.end;
        if step.is_whole {
            return step;
        }
        step.fails = self.is_stuck || self.open_window(means, &code, hedging).is_none();
        step.wanted = self.take_wanted(means, &code);
        step.making = self.take_making(means, stats);
        step.fails |= self.batches.iter().any(|batch| batch.is_lost(&code));
        step.unpin = self.tell_progress(means.now);
        let of_pin = || means.now + self.pin_us() / PROGRESS;
        let due = self.batches.iter().filter(|batch| !batch.is_here());
        step.due = due.map(|batch| batch.due(means, hedging)).min().unwrap_or_else(of_pin);
        step
    }

    /// Asks for as many rows more as the window takes. None if nobody knows where they are.
    fn open_window(&mut self, means: Means, code: &Code, hedging: &mut Hedging) -> Option<()> {
        let geometry = self.found.chunks.geometry;
        while let Some((stripe, row)) = self.next {
            let row_len = stripe.row_len();
            let begins_at = stripe.start + u64::from(row) * row_len;
            let under_way: u64 = self.batches.iter().map(Batch::len_bytes).sum();
            let room = means.window.saturating_sub(under_way + self.untaken);
            // However long a row is, one goes.
            if begins_at >= self.end || room < row_len && under_way + self.untaken > 0 {
                break;
            }
            // All that is left if it fits, else halves of the window: one is on its way while the other is given out.
            let left = self.end - begins_at;
            let most = if left <= room { left } else { room.min(means.window / 2) };
            let most_rows = u64::from((MAX_FETCH_BYTES / stripe.cell_len).max(1));
            let rows = most.div_ceil(row_len).min(room / row_len).clamp(1, most_rows);
            let rows = self.rows_from(stripe, row, (rows as u32).min(stripe.rows - row));
            let (count, roles) = (rows.count, rows.roles.len());
            let group = self.found.chunks.holders_of(stripe.index)?.group;
            self.number += 1;
            hedging.note_asked(count as usize * roles * stripe.cell_len as usize);
            self.batches.push_back(Batch::new((self.number, group), rows, code, means));
            self.next = match row + count {
                next if next < stripe.rows => Some((stripe, next)),
                _ => geometry.stripe(stripe.index + 1).map(|stripe| (stripe, 0)),
            };
        }
        Some(())
    }

    /// The rows of a batch, of so many at most: those of which all cells are wanted together, each other one by itself.
    fn rows_from(&self, stripe: Stripe, first: u32, most: u32) -> Rows {
        let value_len = self.found.chunks.geometry.len;
        let roles_at = |row| roles_of(stripe, row, (self.start, self.end), value_len);
        let (roles, last) = (roles_at(first), roles_at(first + most - 1));
        let is_all = |roles: &std::ops::Range<usize>| roles.len() == usize::from(stripe.k);
        let count = match (is_all(&roles), is_all(&last)) {
            (true, true) => most,
            (true, false) => (most - 1).max(1),
            (false, _) => 1,
        };
        Rows { stripe, first, count, roles }
    }

    fn take_wanted(&mut self, means: Means, code: &Code) -> Vec<Wanted> {
        let Self { found, batches, .. } = self;
        let mut all = Vec::new();
        for batch in batches {
            while let Some(role) = batch.next_wanted(means.now) {
                let holders = found.chunks.holders_of(batch.stripe.index);
                let holder = holders.and_then(|group| group.roles.get(role)).copied().unwrap_or_default();
                let Some(node) = holder.whole.or(holder.filling) else {
                    batch.fail(code, role);
                    continue;
                };
                let member = MemberId { group: batch.group, role: RoleIndex(role as u8) };
                let chunk = ChunkId { object: found.chunks.object, stripe: batch.stripe.index };
                // All of its rows, so that the number of a cell says the same of whoever sends it.
                let (first, count) = batch.rows();
                let window = count.saturating_mul(batch.stripe.cell_len);
                let ask = FetchAsk { member, chunk, first, count, window };
                all.push(Wanted { batch: batch.number, role: role as u8, node, ask });
            }
        }
        all
    }

    /// What nodes are to have made: the bytes that are wanted of each lost cell.
    fn take_making(&mut self, means: Means, stats: &mut Stats) -> Vec<Making> {
        let mut all = Vec::new();
        for batch in &mut self.batches {
            while let Some(role) = batch.next_lost(means.now) {
                let (from, filled) = place_of(batch.stripe, batch.first, role);
                let (start, end) = (self.start.max(from), self.end.min(from + filled));
                let len = end.saturating_sub(start);
                let range = Some(Range { start, len });
                // A cell is no longer than a window may be.
                let (window, by_graph) = (len as u32, true);
                let ask = GetAsk { range, window, by_graph, ..GetAsk::default() };
                let deadline_ms = (Batch::silent_us(means) / 1000).clamp(1, MAX_DEADLINE_MS.into()) as u32;
                stats.graph_cells += 1;
                all.push(Making { batch: batch.number, role: role as u8, ask, deadline_ms });
            }
        }
        all
    }

    /// The bytes of rows that are whole, from the front.
    fn give_out(&mut self, code: &Code, stats: &mut Stats) -> Vec<Bytes> {
        let mut out = Vec::new();
        while let Some(batch) = self.batches.front_mut() {
            while !batch.is_over() {
                let Some(made) = batch.mend_row(code) else { return out };
                stats.decoded_rows += u64::from(made);
                for Given { from, filled, bytes, is_cut } in batch.give_row() {
                    let (start, end) = (self.start.max(from), self.end.min(from + filled));
                    if start < end && is_cut {
                        out.push(bytes);
                    } else if start < end {
                        out.push(bytes.slice((start - from) as usize..(end - from) as usize));
                    }
                    self.start = self.start.max(end);
                }
            }
            self.batches.pop_front();
        }
        out
    }

    fn pin_us(&self) -> u64 {
        u64::from(self.found.pin_ms) * 1000
    }

    fn tell_progress(&mut self, now: Time) -> Option<UnpinAsk> {
        let pin_us = self.pin_us();
        let at = *self.pinned_at.get_or_insert(now);
        let (object, pin) = self.pin()?;
        if now.since(at) < pin_us / PROGRESS {
            return None;
        }
        self.pinned_at = Some(now);
        Some(UnpinAsk { object, pin, done: false })
    }
}
