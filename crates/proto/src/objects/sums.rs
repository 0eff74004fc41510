//! Cells of parities that are added up here, of products that the holders of data roles send (docs/graphs.md, "Uploads that send `k` chunks").
//!
//! A writer names the cells of such a chunk one after the other, each with its checksum, by PutSum. Products of one cell may come before it
//! is named, from all data roles that the parity covers, and in any order. A cell of which all have come, and that is what the writer has
//! named, goes on as if it had come with a Put: whatever decides whether a chunk is kept does not know the difference. All belongs to one
//! try of one writer; of another one's products nothing is taken. Where that does not go on the writer is told that cells are missing,
//! and puts the chunk by itself, under a new number.

use std::collections::{BTreeMap, VecDeque};

use cluster::Protection;
use types::{ChunkId, HostId, MemberId, RoleIndex, Time};
use wire::object::{Checked, Product, Put, PutSum, Refusal, Refused};

use super::names::ObjectStats;
use super::scope::Scope;
use crate::{Impossible, Rules, Timing};

/// What a try takes up beside its cells, in bytes.
const TRY_BYTES: usize = 256;
/// What a cell does beside its own bytes.
const ROW_BYTES: usize = 64;

/// See the module.
#[derive(Default)]
pub(super) struct Sums {
    all: BTreeMap<Try, Sum>,
    /// Bytes that they take up together.
    held: usize,
    /// Sums that were not what their writers had named: counted.
    wrong: u64,
}

/// A writer's try to put a chunk of a parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Try {
    writer: HostId,
    member: MemberId,
    attempt: u64,
}

/// What has come of one.
struct Sum {
    /// The data roles that the parity covers.
    covered: Roles,
    /// What it is a try of, once its writer has named a cell, and its number.
    chunk: Option<(ChunkId, u64)>,
    /// Cells that the writer has named and that have not gone on, from the first one on.
    named: VecDeque<PutSum>,
    /// Which cell that is: those before it have gone on.
    next: u32,
    /// Products that have come of cells from there on, by row.
    rows: BTreeMap<u32, Row>,
    held: usize,
    moved: Time,
}

/// A cell, as far as products of it have come.
struct Row {
    sum: Vec<u8>,
    of: Roles,
}

/// A set of data roles.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Roles(u32);

const _: () = assert!(types::Profile::MAX_K as u32 <= u32::BITS, "each data role has a bit");

/// What comes of an event.
#[derive(Default)]
pub(super) struct Summed {
    /// Cells that go on, each with its writer.
    pub whole: Vec<(HostId, Put)>,
    /// Tries of which nothing more comes here, and what their writers are told.
    pub ended: Vec<(HostId, Refused)>,
}

/// Why a try ends.
enum Broken {
    /// Cells or products are not as they have to be, or there is no memory for them.
    Gap,
    /// A sum is not what its writer has named.
    Wrong,
}

impl Sums {
    /// A writer names the next cell of a chunk.
    pub(super) fn name(&mut self, scope: &mut Scope<'_>, writer: HostId, put: PutSum) -> Summed {
        let (id, chunk) = (id_of(scope.rules(), writer, put.member, put.attempt), put.chunk);
        let attempt = put.attempt;
        match self.try_name(scope, id, put) {
            Ok(()) => self.go_on(scope, id),
            Err(_) => {
                self.remove(id);
                let refused = Refused { member: id.member, chunk, attempt, why: Refusal::Gap };
                Summed { whole: Vec::new(), ended: vec![(writer, refused)] }
            }
        }
    }

    fn try_name(&mut self, scope: &Scope<'_>, id: Try, put: PutSum) -> Result<(), Broken> {
        let bytes = size_of::<PutSum>() + put.trailer.len() * size_of::<u32>();
        let sum = self.get(scope, id, bytes)?;
        if put.row != sum.next + sum.named.len() as u32 {
            return Err(Broken::Gap);
        }
        (sum.chunk, sum.moved) = (Some((put.chunk, put.attempt)), scope.now.time);
        sum.named.push_back(put);
        self.hold(id, bytes);
        Ok(())
    }

    /// A product has come.
    pub(super) fn add(&mut self, scope: &mut Scope<'_>, from: HostId, product: &Product) -> Summed {
        if !product.cell.is_right() {
            scope.accuse(from, Impossible::Chunk);
            return Summed::default();
        }
        let id = id_of(scope.rules(), product.writer, product.member, product.attempt);
        match self.try_add(scope, id, product) {
            Ok(()) => self.go_on(scope, id),
            Err(broken) => self.end(id, &broken),
        }
    }

    fn try_add(&mut self, scope: &Scope<'_>, id: Try, product: &Product) -> Result<(), Broken> {
        let Product { row, of, cell, .. } = product;
        let has_row = self.all.get(&id).is_some_and(|sum| sum.rows.contains_key(row));
        let bytes = if has_row { 0 } else { cell.bytes.len() + ROW_BYTES };
        let sum = self.get(scope, id, bytes)?;
        // A cell that has gone on needs no more.
        if *row < sum.next || !sum.covered.has(*of) {
            return Ok(());
        }
        sum.moved = scope.now.time;
        match sum.rows.get_mut(row) {
            Some(there) => there.add(scope.rules(), *of, cell)?,
            None => {
                let first = Row { sum: cell.bytes.to_vec(), of: Roles::default().with(*of) };
                sum.rows.insert(*row, first);
                self.hold(id, bytes);
            }
        }
        Ok(())
    }

    /// A try that so many bytes more are to be kept of. Where there is no memory for them those give way of which nobody has named
    /// anything for long.
    fn get(&mut self, scope: &Scope<'_>, id: Try, bytes: usize) -> Result<&mut Sum, Broken> {
        let is_new = !self.all.contains_key(&id);
        let more = bytes + if is_new { TRY_BYTES } else { 0 };
        let (now, long) = (scope.now.time, scope.timing().retry_us);
        while self.held + more > scope.limits().sum_bytes {
            let is_stale = |(_, sum): &(&Try, &Sum)| sum.chunk.is_none() && now.since(sum.moved) >= long;
            let stale = self.all.iter().filter(is_stale).min_by_key(|(_, sum)| sum.moved);
            let stale = stale.map(|(stale, _)| *stale).filter(|stale| *stale != id).ok_or(Broken::Gap)?;
            self.remove(stale);
        }
        if is_new {
            let protection = scope.protection(id.member.group).ok_or(Broken::Gap)?;
            self.held += TRY_BYTES;
            self.all.insert(id, Sum::new(covered_by(&protection, id.member.role), now));
        }
        self.all.get_mut(&id).ok_or(Broken::Gap)
    }

    fn hold(&mut self, id: Try, bytes: usize) {
        if let Some(sum) = self.all.get_mut(&id) {
            sum.held += bytes;
            self.held += bytes;
        }
    }

    fn remove(&mut self, id: Try) -> Option<Sum> {
        let sum = self.all.remove(&id)?;
        self.held -= sum.held;
        Some(sum)
    }

    fn end(&mut self, id: Try, why: &Broken) -> Summed {
        self.wrong += u64::from(matches!(why, Broken::Wrong));
        let refused = self.remove(id).and_then(|sum| sum.refused(id.member));
        Summed { whole: Vec::new(), ended: refused.map(|refused| (id.writer, refused)).into_iter().collect() }
    }

    /// Gives out what is complete, in order.
    fn go_on(&mut self, scope: &Scope<'_>, id: Try) -> Summed {
        let mut whole = Vec::new();
        let broken = loop {
            let Some(sum) = self.all.get_mut(&id) else { break None };
            let before = sum.held;
            let next = sum.take_next(scope.rules());
            self.held -= before - sum.held;
            match next {
                Ok(Some((put, is_last))) => {
                    whole.push((id.writer, put));
                    if is_last {
                        self.remove(id);
                    }
                }
                Ok(None) => break None,
                Err(broken) => break Some(broken),
            }
        };
        let ended = broken.map(|broken| self.end(id, &broken).ended).unwrap_or_default();
        Summed { whole, ended }
    }

    /// A writer puts a chunk by itself: the number of its try to have it added up, if there was one.
    pub(super) fn take_superseded(&mut self, writer: HostId, put: &Put) -> Option<u64> {
        if self.all.is_empty() || put.row != 0 {
            return None;
        }
        let tries = self.all.iter().filter(|(id, _)| id.writer == writer && id.member == put.member);
        let mut named = tries.filter_map(|(id, sum)| Some((*id, sum.chunk?)));
        let is_it =
            |(_, (chunk, attempt)): &(Try, (ChunkId, u64))| *chunk == put.chunk && *attempt != put.attempt;
        let (id, (_, attempt)) = named.find(is_it)?;
        self.remove(id);
        Some(attempt)
    }

    /// What was on its way from `peer` is lost: it puts anew what it was putting.
    pub(super) fn forget(&mut self, peer: HostId) {
        let of_peer: Vec<Try> = self.all.keys().copied().filter(|id| id.writer == peer).collect();
        of_peer.into_iter().for_each(|id| _ = self.remove(id));
    }

    /// Those end that have stood still for as long as any request may.
    pub(super) fn tick(&mut self, now: Time, timing: &Timing) -> Summed {
        let is_late = |(_, sum): &(&Try, &Sum)| now.since(sum.moved) >= timing.request_deadline_us;
        let late: Vec<Try> = self.all.iter().filter(is_late).map(|(id, _)| *id).collect();
        let ended = late.into_iter().flat_map(|id| self.end(id, &Broken::Gap).ended).collect();
        Summed { whole: Vec::new(), ended }
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let oldest = self.all.values().map(|sum| sum.moved).min();
        oldest.map_or(Time::NEVER, |oldest| oldest + timing.request_deadline_us)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.held
    }

    /// Adds what is here.
    pub(super) fn count(&self, stats: &mut ObjectStats) {
        (stats.sum_bytes, stats.wrong_sums) = (self.held as u64, self.wrong);
    }

    /// What has to hold.
    pub(super) fn check_invariants(&self) {
        let held: usize = self.all.values().map(|sum| sum.held).sum();
        assert_eq!(self.held, held, "what is added up is counted");
    }
}

impl Sum {
    fn new(covered: Roles, now: Time) -> Self {
        let (named, rows) = (VecDeque::new(), BTreeMap::new());
        Self { covered, chunk: None, named, next: 0, rows, held: TRY_BYTES, moved: now }
    }

    /// The next cell, if it is complete, and whether it is the last one of its chunk.
    fn take_next(&mut self, rules: Rules) -> Result<Option<(Put, bool)>, Broken> {
        let is_complete = |row: &Row| rules.graphs().is_sum_complete(row.of.0, self.covered.0);
        if self.named.is_empty() || !self.rows.get(&self.next).is_some_and(is_complete) {
            return Ok(None);
        }
        let (Some(put), Some(row)) = (self.named.pop_front(), self.rows.remove(&self.next)) else {
            return Ok(None);
        };
        self.held -= size_of::<PutSum>() + put.trailer.len() * size_of::<u32>() + row.sum.len() + ROW_BYTES;
        self.next += 1;
        let stripe = put.geometry.stripe(put.chunk.stripe).ok_or(Broken::Gap)?;
        let cell = Checked::new(row.sum.into());
        let is_right = cell.bytes.len() == stripe.cell_len as usize && cell.checksum == put.cell;
        if !rules.graphs().is_sum_kept(is_right) {
            tracing::warn!(member = %put.member, chunk = %put.chunk, row = put.row, "products do not make what was to be put");
            return Err(Broken::Wrong);
        }
        let is_last = put.row + 1 == stripe.rows;
        Ok(Some((put.with(cell), is_last)))
    }

    /// What its writer is told when nothing more comes of it; nothing if it has not named anything.
    fn refused(self, member: MemberId) -> Option<Refused> {
        let (chunk, attempt) = self.chunk?;
        Some(Refused { member, chunk, attempt, why: Refusal::Gap })
    }
}

impl Row {
    /// Adds the product of one more role.
    fn add(&mut self, rules: Rules, of: RoleIndex, product: &Checked) -> Result<(), Broken> {
        if rules.graphs().is_product_known(self.of.has(of)) {
            return Ok(());
        }
        self.of = self.of.with(of);
        codec::xor(&mut self.sum, &product.bytes).map_err(|_| Broken::Gap)
    }
}

impl Roles {
    fn has(self, role: RoleIndex) -> bool {
        1_u32.checked_shl(u32::from(role.0)).is_some_and(|bit| self.0 & bit != 0)
    }

    #[must_use]
    fn with(self, role: RoleIndex) -> Self {
        Self(self.0 | 1_u32.checked_shl(u32::from(role.0)).unwrap_or(0))
    }
}

fn id_of(rules: Rules, writer: HostId, member: MemberId, attempt: u64) -> Try {
    Try { writer, member, attempt: rules.graphs().try_of_products(attempt) }
}

/// The data roles that a parity covers; none if it is no parity.
fn covered_by(protection: &Protection, role: RoleIndex) -> Roles {
    let code = protection.code();
    let Some(parity) = usize::from(role.0).checked_sub(code.k()).filter(|parity| *parity < code.m()) else {
        return Roles::default();
    };
    let covered = (0..code.k()).filter(|data| code.coefficient(parity, *data) != 0);
    covered.fold(Roles::default(), |roles, data| roles.with(RoleIndex(data as u8)))
}
