//! The index: 40 bits of a key's hash -> the address of its slot, in about 9.5 bytes an item.
//!
//! 8 bits choose one of 256 segments, 32 bits are kept. Different keys may share all 40 bits (about one lookup in
//! `2^40 / items` meets a stranger), so the caller compares keys. Segments grow one by one by an eighth, so memory grows
//! smoothly and no operation copies more than 1/256 of the index.
//!
//! Inserting never fails: a committed record must apply on the primary and on every replica. The memory is charged
//! even past the limit; [`Index::has_room`] tells the primary beforehand, which then stops adding items.

mod grown;
mod segment;

pub(crate) use grown::GrownIndex;
use segment::{Segment, entry};

use crate::{Budget, Category, Charge, arena};
use types::{Addr, IndexHash};

/// Segments of an index.
pub const SEGMENTS: usize = 256;

/// Hash bits to addresses; several addresses may have the same bits.
#[derive(Debug)]
pub struct Index {
    segments: Box<[Segment]>,
    len: usize,
    /// Entries that all segments together hold without growing.
    comfortable_len: usize,
    /// As `comfortable_len`, without what was granted past the limit: an overdraft earns no further entries.
    paid_len: usize,
    heap_bytes: usize,
    charge: Charge,
}

impl Index {
    /// An empty index that pays from `budget`.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        let segments = vec![Segment::default(); SEGMENTS].into_boxed_slice();
        let charge = Charge::empty(budget, Category::Index);
        let mut index = Self { segments, len: 0, comfortable_len: 0, paid_len: 0, heap_bytes: 0, charge };
        index.charge.set(index.memory_bytes());
        index
    }

    /// Adds an entry. Never fails; see [`Self::has_room`].
    pub fn insert(&mut self, hash: IndexHash, addr: Addr) {
        let (at, hash32) = split(hash);
        let before = Size::of(&self.segments[at]);
        if self.segments[at].insert(entry(hash32, addr.0)) {
            self.resized(at, before);
        }
        self.len += 1;
    }

    /// Takes an entry out; whether it was there.
    pub fn remove(&mut self, hash: IndexHash, addr: Addr) -> bool {
        let (at, hash32) = split(hash);
        let before = Size::of(&self.segments[at]);
        let Some(rebuilt) = self.segments[at].remove(entry(hash32, addr.0)) else { return false };
        if rebuilt {
            self.resized(at, before);
        }
        self.len -= 1;
        true
    }

    /// Makes the entry at `old` point to `new`; whether it was there. Adds nothing if it was not.
    pub fn replace(&mut self, hash: IndexHash, old: Addr, new: Addr) -> bool {
        let (at, hash32) = split(hash);
        if self.segments[at].overwrite(entry(hash32, old.0), entry(hash32, new.0)) {
            return true;
        }
        let there = self.remove(hash, old);
        if there {
            self.insert(hash, new);
        }
        there
    }

    /// Whether this very entry is there.
    #[must_use]
    pub fn contains(&self, hash: IndexHash, addr: Addr) -> bool {
        let (at, hash32) = split(hash);
        self.segments[at].contains(entry(hash32, addr.0))
    }

    /// Addresses of the items whose keys have these hash bits: usually none or one.
    pub fn candidates(&self, hash: IndexHash) -> impl Iterator<Item = Addr> + '_ {
        let (at, hash32) = split(hash);
        self.segments[at].candidates(hash32).map(Addr)
    }

    /// The first entry whose bits are not below `from`, in the order of [`Self::iter`]. It is found by bits alone, wherever it lies now.
    pub(crate) fn first_from(&self, from: IndexHash) -> Option<(IndexHash, Addr)> {
        let (at, hash32) = split(from);
        let here = self.segments[at].first_from(entry(hash32, 0)).map(|entry| (at, entry));
        let further = || {
            let behind = self.segments.iter().enumerate().skip(at + 1);
            behind.map(|(at, segment)| Some((at, segment.iter().next()?))).find_map(|found| found)
        };
        here.or_else(further).map(|(at, entry)| (join(at, entry), Addr(entry as u32)))
    }

    /// Hints that `hash` will be looked up soon.
    pub fn prefetch(&self, hash: IndexHash) {
        let (at, hash32) = split(hash);
        if let Some(slot) = self.segments[at].home_slot(hash32) {
            arena::prefetch(slot);
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `further` more entries fit into the memory that is held or still to be had from the budget.
    #[must_use]
    pub fn has_room(&self, further: usize) -> bool {
        self.len + further <= self.paid_len || self.charge.budget().has_room(self.growth_bytes())
    }

    /// Takes all entries out and returns their memory.
    pub fn clear(&mut self) {
        self.segments.fill_with(Segment::default);
        (self.len, self.comfortable_len, self.paid_len, self.heap_bytes) = (0, 0, 0, 0);
        self.charge.set(self.memory_bytes());
    }

    /// Bytes in use, all charged to [`Category::Index`].
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.heap_bytes + SEGMENTS * size_of::<Segment>()
    }

    /// All entries, ascending by hash bits, then by address: the same order for the same set.
    pub fn iter(&self) -> impl Iterator<Item = (IndexHash, Addr)> + '_ {
        (0..SEGMENTS).flat_map(|at| self.segment_entries(at))
    }

    /// The segment in which entries of `hash` lie.
    #[must_use]
    pub fn segment_of(hash: IndexHash) -> usize {
        split(hash).0
    }

    /// Number of entries in each segment.
    pub(crate) fn segment_lens(&self) -> impl Iterator<Item = usize> + '_ {
        self.segments.iter().map(Segment::len)
    }

    /// Entries of one segment, ascending.
    pub(crate) fn segment_entries(&self, at: usize) -> impl Iterator<Item = (IndexHash, Addr)> + '_ {
        self.segments[at].iter().map(move |entry| (join(at, entry), Addr(entry as u32)))
    }

    /// That every entry is found and counted, and its memory paid for.
    pub(crate) fn check_invariants(&self) {
        self.segments.iter().for_each(Segment::check_invariants);
        let sum = |part: fn(&Segment) -> usize| self.segments.iter().map(part).sum::<usize>();
        assert_eq!(self.len, sum(Segment::len), "the entries are counted");
        assert_eq!(self.comfortable_len, sum(Segment::comfortable_len), "the places are counted");
        assert_eq!(self.heap_bytes, sum(Segment::memory_bytes), "the memory of the index is counted");
        assert_eq!(self.charge.bytes(), self.memory_bytes(), "the memory of the index is paid for");
        assert!(self.paid_len <= self.comfortable_len, "no more is paid for than there is");
    }

    fn growth_bytes(&self) -> usize {
        (self.heap_bytes / SEGMENTS / 4).max(4096)
    }

    fn resized(&mut self, at: usize, before: Size) {
        let now = Size::of(&self.segments[at]);
        self.heap_bytes = self.heap_bytes - before.bytes + now.bytes;
        self.comfortable_len = self.comfortable_len - before.comfortable_len + now.comfortable_len;
        self.charge.set(self.memory_bytes());
        let paid = self.charge.budget().has_room(0);
        self.paid_len = if paid { self.comfortable_len } else { self.paid_len.min(self.comfortable_len) };
    }
}

/// What a segment contributes to the sums of the index.
struct Size {
    bytes: usize,
    comfortable_len: usize,
}

impl Size {
    fn of(segment: &Segment) -> Self {
        Self { bytes: segment.memory_bytes(), comfortable_len: segment.comfortable_len() }
    }
}

/// Segment, and the 32 bits that its entries keep.
fn split(hash: IndexHash) -> (usize, u32) {
    ((hash.0 >> 32) as usize % SEGMENTS, hash.0 as u32)
}

fn join(segment: usize, entry: u64) -> IndexHash {
    IndexHash((segment as u64) << 32 | entry >> 32)
}

#[cfg(test)]
mod tests;
