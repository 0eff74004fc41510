//! One value that is coded here, and put at the holders of its chunks.
//!
//! It is coded row by row, as its bytes are there: all of them from the beginning, or as the caller feeds them. Of a value that is fed no
//! more is kept than the stripes that are under way, so what does not come of it cannot be done in another way.
//!
//! A stripe is done when every holder that its group's view names has acknowledged it, those that are filling included, all under this one
//! view (docs/objects.md, W4). A holder that knows another view refuses, and then a node writes the value.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use codec::Code;
use native::{BegunChunks, GroupHolders, PutAsk, Written};
use types::{ChunkId, MemberId, NodeId, ObjectLayout, RoleIndex, Time, checksum_combine};

use super::Means;
use super::stripe::Coded;

/// Stripes that are under way at once, the one that is being coded among them.
const MAX_STRIPES: usize = 2;
/// An id is renewed so often while it is open.
const RENEWALS: u64 = 3;
/// A holder may take so much of what is left of the time.
const PATIENCE: u64 = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct Write {
    begun: BegunChunks,
    source: Source,
    code: Option<Arc<Code>>,
    /// The stripe that is being coded.
    coding: Option<Coded>,
    /// The next one.
    next: u32,
    /// Those that are coded and not done: how many acknowledgements each lacks.
    lacking: BTreeMap<u32, usize>,
    /// CRC32C of what has been coded, and how many bytes that are.
    checksum: u32,
    coded_bytes: u64,
    /// Who has not acknowledged a chunk by then is not waited for.
    stalls_at: Option<Time>,
    /// When the id is renewed, once it is known since when it is open.
    renews_at: Option<Time>,
}

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    /// What is left of a value that is here.
    Here(Bytes),
    /// What the caller has fed, and is not coded.
    Fed(VecDeque<Bytes>, usize),
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub puts: Vec<Placing>,
    /// Bytes of the value that were coded.
    pub coded_bytes: u64,
    pub is_whole: bool,
    pub fails: bool,
    /// The owner is to hear that bytes are still coming.
    pub renews: bool,
    /// When there is something to do again, whatever happens.
    pub due: Option<Time>,
}

/// A chunk that is to be put.
#[derive(Debug)]
pub(super) struct Placing {
    pub node: NodeId,
    pub ask: PutAsk,
    pub cells: VecDeque<Bytes>,
}

impl Source {
    /// The next row, by its cells, which are so long, if all of it is there.
    fn take_row(&mut self, cells: &[usize]) -> Option<Vec<Bytes>> {
        let here = match self {
            Self::Here(rest) => rest.len(),
            Self::Fed(_, queued) => *queued,
        };
        (here >= cells.iter().sum()).then(|| cells.iter().map(|len| self.take(*len)).collect())
    }

    /// The next `len` bytes, which are there: without a copy where they lie in one piece.
    fn take(&mut self, len: usize) -> Bytes {
        let (queue, queued) = match self {
            Self::Here(rest) => return rest.split_to(len),
            Self::Fed(queue, queued) => (queue, queued),
        };
        *queued -= len;
        if let Some(front) = queue.front_mut().filter(|front| front.len() >= len) {
            let bytes = front.split_to(len);
            queue.pop_front_if(|front| front.is_empty());
            return bytes;
        }
        let mut bytes = BytesMut::with_capacity(len);
        while bytes.len() < len
            && let Some(front) = queue.front_mut()
        {
            bytes.extend_from_slice(&front.split_to(front.len().min(len - bytes.len())));
            queue.pop_front_if(|front| front.is_empty());
        }
        bytes.freeze()
    }
}

impl Write {
    pub(super) fn new(begun: BegunChunks, source: Source, code: Option<Arc<Code>>) -> Self {
        let is_it =
            !matches!(&source, Source::Here(value) if value.len() as u64 != begun.chunks.geometry.len);
        let code = code.filter(|_| is_it);
        Self {
            begun,
            source,
            code,
            coding: None,
            next: 0,
            lacking: BTreeMap::new(),
            checksum: 0,
            coded_bytes: 0,
            stalls_at: None,
            renews_at: None,
        }
    }

    pub(super) fn written(&self) -> Written {
        let chunks = &self.begun.chunks;
        Written { object: chunks.object, geometry: chunks.geometry, groups: chunks.groups.clone() }
    }

    pub(super) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// A holder has a chunk of this stripe.
    pub(super) fn placed(&mut self, stripe: u32) {
        if let Some(lacking) = self.lacking.get_mut(&stripe) {
            *lacking = lacking.saturating_sub(1);
        }
        self.stalls_at = None;
    }

    /// Whether the caller has to feed more before anything can go on.
    pub(super) fn wants(&self) -> bool {
        matches!(self.source, Source::Fed(..)) && self.coding.is_some()
    }

    /// The caller has fed more.
    pub(super) fn feed(&mut self, bytes: Bytes) {
        if let Source::Fed(queue, queued) = &mut self.source {
            *queued += bytes.len();
            queue.push_back(bytes);
        }
    }

    /// The owner has not said whether it has heard that bytes are still coming.
    pub(super) fn renews_soon(&mut self, now: Time) {
        let soon = now + (self.open_us() / RENEWALS / RENEWALS).max(1);
        self.renews_at = Some(self.renews_at.map_or(soon, |at| at.min(soon)));
    }

    fn open_us(&self) -> u64 {
        u64::from(self.begun.open_ms) * 1000
    }

    /// Whether a holder has been silent for too long.
    pub(super) fn has_stalled(&self, now: Time) -> bool {
        self.stalls_at.is_some_and(|at| at <= now)
    }

    /// See [`Step`].
    pub(super) fn go_on(&mut self, means: Means) -> Step {
        self.lacking.retain(|_, lacking| *lacking > means.rules.missing_acknowledgements());
        let coded_before = self.coded_bytes;
        let Some(puts) = self.code_what_is_there() else { return Step { fails: true, ..Step::default() } };
        if !puts.is_empty() {
            self.stalls_at = None;
        }
        let patience = means.now + means.deadline.since(means.now) / PATIENCE;
        self.stalls_at = (!self.lacking.is_empty()).then(|| self.stalls_at.unwrap_or(patience));
        let next_renewal = means.now + (self.open_us() / RENEWALS).max(1);
        let renews = *self.renews_at.get_or_insert(next_renewal) <= means.now;
        if renews {
            self.renews_at = Some(next_renewal);
        }
        let due = self.stalls_at.into_iter().chain(self.renews_at).min();
        let is_coded = self.coding.is_none() && self.next == self.begun.chunks.geometry.stripe_count();
        let is_whole = is_coded && self.lacking.is_empty();
        let coded_bytes = self.coded_bytes - coded_before;
        Step { puts, coded_bytes, is_whole, fails: false, renews, due }
    }

    /// Codes row by row, as far as bytes are there and stripes may be under way; the chunks of those that are whole by that. None if
    /// this cannot be a value that is coded here, or somebody is missing who should take a chunk.
    fn code_what_is_there(&mut self) -> Option<Vec<Placing>> {
        let geometry = self.begun.chunks.geometry;
        let code = self.code.clone().filter(|_| geometry.layout == ObjectLayout::Spread)?;
        let mut puts = Vec::new();
        loop {
            if self.coding.is_none()
                && self.lacking.len() < MAX_STRIPES
                && let Some(stripe) = geometry.stripe(self.next)
            {
                self.coding = Some(Coded::begin(&code, stripe));
                self.next += 1;
            }
            let Some(coding) = &mut self.coding else { return Some(puts) };
            while !coding.is_whole()
                && let Some(row) = self.source.take_row(&coding.row())
            {
                self.coded_bytes += row.iter().map(|cell| cell.len() as u64).sum::<u64>();
                coding.add_row(&code, row);
            }
            let Some(coded) = self.coding.take_if(|coding| coding.is_whole()) else {
                // A value that is here has all its bytes, or another length than was said.
                return matches!(self.source, Source::Fed(..)).then_some(puts);
            };
            let of_stripe = self.place(&code, coded)?;
            puts.extend(of_stripe);
        }
    }

    /// The chunks of a stripe, for their holders; none if somebody is missing who should take one.
    fn place(&mut self, code: &Code, coded: Coded) -> Option<Vec<Placing>> {
        let chunks = &self.begun.chunks;
        let stripe = coded.stripe;
        let group = chunks.holders_of(stripe.index).filter(|group| group.roles.len() == code.n())?;
        self.checksum = checksum_combine(self.checksum, coded.checksum, stripe.len as usize);
        let trailer: Vec<u32> = coded.roles.iter().map(|chunk| chunk.sum).collect();
        let mut puts = Vec::new();
        for (role, chunk) in coded.roles.into_iter().enumerate() {
            let nodes = nodes_of(group, role);
            if nodes.is_empty() {
                return None;
            }
            for node in nodes {
                let ask = PutAsk {
                    member: MemberId { group: group.group, role: RoleIndex(role as u8) },
                    view: group.view,
                    chunk: ChunkId { object: chunks.object, stripe: stripe.index },
                    geometry: chunks.geometry,
                    checksums: chunk.checksums.clone(),
                    trailer: trailer.clone(),
                };
                puts.push(Placing { node, ask, cells: chunk.cells.clone() });
            }
        }
        self.lacking.insert(stripe.index, puts.len());
        Some(puts)
    }
}

/// Who has to take the chunks of a role.
fn nodes_of(group: &GroupHolders, role: usize) -> Vec<NodeId> {
    let holders = group.roles.get(role).copied().unwrap_or_default();
    holders.whole.into_iter().chain(holders.filling).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_whatever_pieces_they_came_in() {
        let mut all: Vec<u8> = (0..100).collect();
        let fed = all.clone();
        let mut source = Source::Fed(VecDeque::new(), 0);
        let feed = |source: &mut Source, range: std::ops::Range<usize>| {
            let Source::Fed(queue, queued) = source else { return };
            *queued += range.len();
            queue.push_back(Bytes::copy_from_slice(&fed[range]));
        };
        feed(&mut source, 0..10);
        assert_eq!(source.take_row(&[10, 1]), None, "it waits");
        feed(&mut source, 10..15);
        feed(&mut source, 15..60);
        feed(&mut source, 60..100);
        let rows: [&[usize]; 4] = [&[11, 4], &[20, 30], &[25, 0, 10], &[]];
        for row in rows {
            let taken = source.take_row(row).unwrap();
            assert!(taken.iter().map(Bytes::len).eq(row.iter().copied()));
            let taken: Vec<u8> = taken.iter().flatten().copied().collect();
            assert_eq!(taken, all[..taken.len()]);
            all.drain(..taken.len());
        }
        assert_eq!((all.len(), source.take_row(&[1])), (0, None));
    }

    /// Of rows of three cells that are fed in pieces of four only those were copied that lie in two of these, which is none.
    #[test]
    fn cells_are_the_bytes_that_were_fed_where_pieces_are_as_long_as_some_cells() {
        let pieces: Vec<Bytes> = (0..6).map(|piece| Bytes::from(vec![piece; 256])).collect();
        let mut source = Source::Fed(pieces.iter().cloned().collect(), 6 * 256);
        for row in 0..8 {
            let cells = source.take_row(&[64; 3]).unwrap();
            for (role, cell) in cells.iter().enumerate() {
                let at = (row * 3 + role) * 64;
                assert_eq!(cell.as_ptr(), pieces[at / 256][at % 256..].as_ptr());
            }
        }
    }
}
