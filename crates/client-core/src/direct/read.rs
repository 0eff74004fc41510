//! One value whose chunks are read here.
//!
//! Rows are asked for in *batches*: some rows of a stripe that follow each other, one request to the holder of each data role. Where one
//! has not got them, is gone, or is slow, parities are asked for the same rows, and what is missing is made of any `k`. Bytes are given out
//! in order, from the front, and never more are under way than the window takes.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use codec::Code;
use native::{FetchAsk, FoundChunks, MAX_FETCH_BYTES, Meta, UnpinAsk};
use types::{CellAt, ChunkId, GroupId, Hedging, MemberId, NodeId, ObjectId, RoleIndex, Stripe, Time};

use super::stripe::mend;
use super::{Means, Stats};

/// Whoever is not heard for so many times what is slow is taken for silent.
const SILENT: u64 = 10;
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

#[derive(Debug)]
struct Batch {
    number: u64,
    stripe: Stripe,
    /// The first row that has not been given out, and how many have been.
    first: u32,
    given: u32,
    group: GroupId,
    /// By roles.
    sources: Vec<Source>,
    /// By rows that have not been given out, then roles.
    cells: Vec<Vec<Option<Bytes>>>,
    asked_at: Time,
    /// How often it was looked at because it was late.
    turns: u32,
    /// Whether it is known how long it took.
    is_noted: bool,
}

/// Where the cells of a role stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Idle,
    Wanted,
    Asked,
    Here,
    Failed,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub found: Option<(Meta, (u64, u64))>,
    pub bytes: Vec<Bytes>,
    pub is_whole: bool,
    pub fails: bool,
    pub wanted: Vec<Wanted>,
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
        let Some(batch) = self.batch(batch) else { return };
        // Of a row that has been given out nothing is wanted any more.
        let Some(row) = row.checked_sub(batch.given) else { return };
        let place = batch.cells.get_mut(row as usize).and_then(|row| row.get_mut(usize::from(role)));
        if let Some(place) = place.filter(|_| bytes.len() == batch.stripe.cell_len as usize) {
            *place = Some(bytes);
        }
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
        batch.cells.get(row.checked_sub(batch.given)? as usize).filter(|_| role < stripe.k)?;
        let row = batch.first - batch.given + row;
        let filled = |role| u64::from(stripe.filled(CellAt { row, role }));
        let from = stripe.start + u64::from(row) * stripe.row_len() + (0..role).map(filled).sum::<u64>();
        let is_wanted =
            filled(role) == u64::from(stripe.cell_len) && from >= start && from + filled(role) <= start + len;
        is_wanted.then(|| (from - start, len))
    }

    /// No more comes of a role.
    pub(super) fn has_come(&mut self, batch: u64, role: u8) {
        let Some(batch) = self.batch(batch) else { return };
        let role = usize::from(role);
        if batch.cells.iter().all(|row| row[role].is_some()) {
            batch.sources[role] = Source::Here;
        } else {
            batch.fail(role);
        }
    }

    /// A role's cells do not come: parities are asked.
    pub(super) fn fail(&mut self, batch: u64, role: u8) {
        if let Some(batch) = self.batch(batch) {
            batch.fail(usize::from(role));
        }
    }

    /// The number of the batch that is given out next.
    pub(super) fn front(&self) -> u64 {
        self.batches.front().map_or(0, |batch| batch.number)
    }

    fn batch(&mut self, number: u64) -> Option<&mut Batch> {
        self.batches.iter_mut().find(|batch| batch.number == number)
    }

    /// Some are late: first as many others are asked as there are cells missing, then all of them.
    pub(super) fn reconsider(&mut self, means: Means, hedging: &mut Hedging) {
        let k = usize::from(self.found.chunks.geometry.k);
        for batch in self.batches.iter_mut().filter(|batch| !batch.is_here(k)) {
            if batch.due(means, hedging) > means.now {
                continue;
            }
            batch.turns += 1;
            match batch.turns {
                1 => {
                    let cells = batch.missing(k) * batch.cells.len();
                    if batch.has_others(k) && hedging.take(cells, batch.stripe.cell_len) {
                        batch.want(batch.missing(k));
                    }
                }
                2 => batch.fail_silent(),
                _ => self.is_stuck = true,
            }
        }
    }

    /// See [`Step`].
    pub(super) fn go_on(&mut self, means: Means, stats: &mut Stats, hedging: &mut Hedging) -> Step {
        let mut step = Step { due: Time::NEVER, ..Step::default() };
        let Some(code) = self.code.clone() else { return Step { fails: true, ..step } };
        for batch in self.batches.iter_mut().filter(|batch| !batch.is_noted && batch.is_enough(code.k())) {
            batch.is_noted = true;
            hedging.note_whole(means.now.since(batch.asked_at));
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
        step.wanted = self.take_wanted(means);
        step.fails |= self.batches.iter().any(|batch| batch.is_lost(&code));
        step.unpin = self.tell_progress(means.now);
        let of_pin = || means.now + self.pin_us() / PROGRESS;
        let due = self.batches.iter().filter(|batch| !batch.is_here(code.k()));
        step.due = due.map(|batch| batch.due(means, hedging)).min().unwrap_or_else(of_pin);
        step
    }

    /// Asks for as many rows more as the window takes. None if nobody knows where they are.
    fn open_window(&mut self, means: Means, code: &Code, hedging: &mut Hedging) -> Option<()> {
        let geometry = self.found.chunks.geometry;
        while let Some((stripe, row)) = self.next {
            let row_len = stripe.row_len();
            let begins_at = stripe.start + u64::from(row) * row_len;
            let under_way: u64 = self.batches.iter().map(|batch| batch.len_bytes(row_len)).sum();
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
            let count = (rows as u32).min(stripe.rows - row);
            let group = self.found.chunks.holders_of(stripe.index)?.group;
            self.number += 1;
            hedging.note_asked(count as usize * row_len as usize);
            self.batches.push_back(Batch::new((self.number, group), stripe, (row, count), code, means.now));
            self.next = match row + count {
                next if next < stripe.rows => Some((stripe, next)),
                _ => geometry.stripe(stripe.index + 1).map(|stripe| (stripe, 0)),
            };
        }
        Some(())
    }

    fn take_wanted(&mut self, means: Means) -> Vec<Wanted> {
        let Self { found, batches, .. } = self;
        let mut all = Vec::new();
        for batch in batches {
            while let Some(role) = batch.sources.iter().position(|source| *source == Source::Wanted) {
                let holders = found.chunks.holders_of(batch.stripe.index);
                let holder = holders.and_then(|group| group.roles.get(role)).copied().unwrap_or_default();
                let Some(node) = holder.whole.or(holder.filling) else {
                    batch.fail(role);
                    continue;
                };
                batch.sources[role] = Source::Asked;
                batch.asked_at = means.now;
                let member = MemberId { group: batch.group, role: RoleIndex(role as u8) };
                let chunk = ChunkId { object: found.chunks.object, stripe: batch.stripe.index };
                // All of its rows, so that the number of a cell says the same of whoever sends it.
                let (first, count) = (batch.first - batch.given, batch.given + batch.cells.len() as u32);
                let window = count.saturating_mul(batch.stripe.cell_len);
                let ask = FetchAsk { member, chunk, first, count, window };
                all.push(Wanted { batch: batch.number, role: role as u8, node, ask });
            }
        }
        all
    }

    /// The bytes of rows that are whole, from the front.
    fn give_out(&mut self, code: &Code, stats: &mut Stats) -> Vec<Bytes> {
        let mut out = Vec::new();
        while let Some(batch) = self.batches.front_mut() {
            while let Some(row) = batch.cells.first_mut() {
                let present = row.iter().filter(|cell| cell.is_some()).count();
                if present < code.k() {
                    return out;
                }
                let Some(made) = mend(code, row) else { return out };
                stats.decoded_rows += u64::from(made);
                let (stripe, index) = (batch.stripe, batch.first);
                let mut at = stripe.start + u64::from(index) * stripe.row_len();
                for (role, cell) in row.iter().take(code.k()).enumerate() {
                    let filled = u64::from(stripe.filled(CellAt { row: index, role: role as u8 }));
                    let (from, to) = (self.start.max(at), self.end.min(at + filled));
                    if let Some(cell) = cell.as_ref().filter(|_| from < to) {
                        out.push(cell.slice((from - at) as usize..(to - at) as usize));
                    }
                    at += filled;
                }
                self.start = self.start.max(at.min(self.end));
                batch.cells.remove(0);
                batch.first += 1;
                batch.given += 1;
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

impl Batch {
    fn new(
        (number, group): (u64, GroupId),
        stripe: Stripe,
        (first, count): (u32, u32),
        code: &Code,
        now: Time,
    ) -> Self {
        let mut sources = vec![Source::Wanted; code.k()];
        sources.resize(code.n(), Source::Idle);
        let cells = vec![vec![None; code.n()]; count as usize];
        Self {
            number,
            stripe,
            first,
            given: 0,
            group,
            sources,
            cells,
            asked_at: now,
            turns: 0,
            is_noted: false,
        }
    }

    fn len_bytes(&self, row_len: u64) -> u64 {
        self.cells.len() as u64 * row_len
    }

    fn is_here(&self, k: usize) -> bool {
        self.missing(k) == 0
    }

    /// Whether all of its rows can be made of what has come.
    fn is_enough(&self, k: usize) -> bool {
        self.cells.iter().all(|row| row.iter().flatten().count() >= k)
    }

    fn missing(&self, k: usize) -> usize {
        self.sources[..k].iter().filter(|source| **source != Source::Here).count()
    }

    fn due(&self, means: Means, hedging: &Hedging) -> Time {
        let most_us = means.hedge_us;
        self.asked_at + if self.turns == 0 { hedging.patience_us(most_us) } else { most_us * SILENT }
    }

    fn fail(&mut self, role: usize) {
        self.sources[role] = Source::Failed;
        self.want(usize::MAX);
    }

    /// Asks so many more roles.
    fn want(&mut self, count: usize) {
        let idle = self.sources.iter_mut().filter(|source| **source == Source::Idle);
        idle.take(count).for_each(|source| *source = Source::Wanted);
    }

    /// Whether there are as many others as cells are missing.
    fn has_others(&self, k: usize) -> bool {
        self.sources.iter().filter(|source| **source == Source::Idle).count() >= self.missing(k)
    }

    fn fail_silent(&mut self) {
        let asked = self.sources.iter_mut().filter(|source| **source == Source::Asked);
        asked.for_each(|source| *source = Source::Failed);
        self.want(usize::MAX);
    }

    /// Whether so many do not have it that the rest cannot make it.
    fn is_lost(&self, code: &Code) -> bool {
        let (left, gone): (Vec<usize>, Vec<usize>) =
            (0..code.n()).partition(|role| self.sources[*role] != Source::Failed);
        let gone: Vec<usize> = gone.into_iter().filter(|role| *role < code.k()).collect();
        !gone.is_empty() && code.plan(&left, &gone).is_err()
    }
}
