//! One segment of an index: a sorted table with gaps.
//!
//! An entry is `hash32 << 32 | addr`, its home position `hash32 * capacity >> 32`. Because homes grow with the hash, the
//! table is sorted as a whole: it is linear probing in Robin Hood order, a miss ends at the first larger entry, and
//! a rebuild is one pass that needs neither keys nor hashes. Entries that run over the end lie in a short tail
//! instead of wrapping around. Segments of up to [`DENSE_LEN`] entries are plain sorted arrays (capacity 1).

const EMPTY: u64 = u64::MAX;
/// Up to this many entries a segment has no gaps.
const DENSE_LEN: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    slots: Box<[u64]>,
    capacity: u32,
    len: u32,
}

/// `hash32 << 32 | addr`; never all ones, since no slot lies at the last address.
pub(super) fn entry(hash32: u32, addr: u32) -> u64 {
    u64::from(hash32) << 32 | u64::from(addr)
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// Entries that it holds without growing, with a margin below the point where it grows.
    pub(super) fn comfortable_len(&self) -> usize {
        if self.is_dense() { self.slots.len() } else { self.capacity as usize * 225 / 256 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().copied().filter(|entry| *entry != EMPTY)
    }

    /// Addresses of the entries with this hash.
    pub(super) fn candidates(&self, hash32: u32) -> impl Iterator<Item = u32> + '_ {
        let start = self.lower_bound(entry(hash32, 0));
        self.slots[start..]
            .iter()
            .take_while(move |found| **found >> 32 == u64::from(hash32) && **found != EMPTY)
            .map(|found| *found as u32)
    }

    /// The first entry that is not below `entry`.
    pub(super) fn first_from(&self, entry: u64) -> Option<u64> {
        let rest = self.slots.get(self.lower_bound(entry)..)?;
        rest.iter().copied().find(|found| *found != EMPTY)
    }

    pub(super) fn contains(&self, entry: u64) -> bool {
        self.slots.get(self.lower_bound(entry)) == Some(&entry)
    }

    /// The place where a search for this hash begins.
    pub(super) fn home_slot(&self, hash32: u32) -> Option<&u64> {
        self.slots.get(self.home(entry(hash32, 0)))
    }

    /// Adds an entry; whether the table was rebuilt, so that its memory has changed.
    pub(super) fn insert(&mut self, entry: u64) -> bool {
        debug_assert_ne!(entry, EMPTY);
        let rebuilt = self.is_full();
        if rebuilt {
            self.rebuild(self.len() + 1, 0);
        }
        // The tail may be full although the table is not: by many entries of the highest hashes, or of one.
        let rebuilt_again = !self.place(entry);
        if rebuilt_again {
            self.rebuild(self.len() + 1, DENSE_LEN);
            let placed = self.place(entry);
            debug_assert!(placed, "a rebuilt table has a tail");
        }
        self.len += 1;
        rebuilt || rebuilt_again
    }

    /// Takes an entry out: none if it was not there, else whether the table was rebuilt.
    pub(super) fn remove(&mut self, entry: u64) -> Option<bool> {
        let at = self.lower_bound(entry);
        if self.slots.get(at) != Some(&entry) {
            return None;
        }
        // What follows moves one place back, up to the first entry that is at home or a gap. So no gap comes between an entry and its
        // home, and nothing has to mark where something was.
        let mut end = at + 1;
        while end < self.slots.len() && self.slots[end] != EMPTY && self.home(self.slots[end]) < end {
            end += 1;
        }
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = EMPTY;
        self.len -= 1;
        let sparse = self.is_sparse();
        if sparse {
            self.rebuild(self.len(), 0);
        }
        Some(sparse)
    }

    /// Writes `new` over `old`, if the order allows it; whether it did. Both have the same hash.
    pub(super) fn overwrite(&mut self, old: u64, new: u64) -> bool {
        debug_assert_eq!(old >> 32, new >> 32);
        let at = self.lower_bound(old);
        if self.slots.get(at) != Some(&old) {
            return false;
        }
        // Only entries of the same hash are in order of their addresses, and they stand side by side.
        let differs = |neighbour: &u64| *neighbour == EMPTY || neighbour >> 32 != old >> 32;
        let alone = self.slots[..at].last().is_none_or(differs) && self.slots.get(at + 1).is_none_or(differs);
        if alone {
            self.slots[at] = new;
        }
        alone
    }

    /// That the table is sorted, each entry at or after its home, without a gap in between: else a search ends too early.
    pub(super) fn check_invariants(&self) {
        let mut last = None;
        for (at, found) in self.slots.iter().enumerate().filter(|(_, found)| **found != EMPTY) {
            assert!(last < Some(*found), "a segment is sorted");
            last = Some(*found);
            let home = self.home(*found);
            let is_found = home <= at && self.slots[home..at].iter().all(|between| *between != EMPTY);
            assert!(is_found, "a gap hides an entry from its home");
        }
        assert_eq!(self.iter().count(), self.len(), "the entries of a segment are counted");
    }

    fn is_dense(&self) -> bool {
        self.capacity <= 1
    }

    fn is_full(&self) -> bool {
        self.len() >= full_len(self.capacity, self.slots.len())
    }

    fn is_sparse(&self) -> bool {
        let len = self.len();
        if self.is_dense() { len + 4 <= self.slots.len() } else { len * 4 < self.capacity as usize * 3 }
    }

    fn home(&self, entry: u64) -> usize {
        (((entry >> 32) * u64::from(self.capacity)) >> 32) as usize
    }

    /// Position of the first entry from its home on that is not below `entry`, or of the gap before it.
    fn lower_bound(&self, entry: u64) -> usize {
        let start = self.home(entry);
        let below = self.slots[start.min(self.slots.len())..].iter().take_while(|found| **found < entry);
        start + below.count()
    }

    /// Puts `entry` where it belongs, moving what follows up to the next gap; false if there is no gap.
    fn place(&mut self, entry: u64) -> bool {
        let at = self.lower_bound(entry);
        let Some(gap) = self.slots.get(at..).and_then(|rest| rest.iter().position(|found| *found == EMPTY))
        else {
            return false;
        };
        self.slots.copy_within(at..at + gap, at + 1);
        self.slots[at] = entry;
        true
    }

    /// Lays the table out anew for `len` entries, with at least `spare` gaps at the end.
    fn rebuild(&mut self, len: usize, spare: usize) {
        let (capacity, tail) = shape(len);
        let old = std::mem::take(&mut self.slots);
        self.capacity = capacity;
        let mut slots = Vec::with_capacity(capacity as usize + tail.max(spare));
        for entry in old.iter().filter(|entry| **entry != EMPTY) {
            // Gaps up to its home, unless those before it reach beyond that.
            slots.resize(self.home(*entry).max(slots.len()), EMPTY);
            slots.push(*entry);
        }
        let end = (capacity as usize + tail).max(slots.len() + spare);
        slots.resize(end, EMPTY);
        self.slots = slots.into_boxed_slice();
    }
}

/// With how many entries a table of so many places is laid out anew before the next one.
fn full_len(capacity: u32, places: usize) -> usize {
    if capacity <= 1 { places } else { (capacity as usize * 9).div_ceil(10) }
}

/// What a segment takes that has grown to `len` entries one by one.
pub(super) fn grown_bytes(len: usize) -> usize {
    let (mut capacity, mut places) = (0, 0);
    loop {
        let full = full_len(capacity, places);
        if len <= full {
            return places * size_of::<u64>();
        }
        let (next, tail) = shape(full + 1);
        (capacity, places) = (next, next as usize + tail);
    }
}

/// Capacity and tail for `len` entries: a load of 0.8, growing by an eighth at 0.9.
fn shape(len: usize) -> (u32, usize) {
    if len <= DENSE_LEN {
        return (1, len.next_multiple_of(2).max(2) - 1);
    }
    let capacity = len + len.div_ceil(4);
    (u32::try_from(capacity).expect("an area has fewer than 2^32 slots"), (capacity / 16).clamp(2, 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_one_hash_fill_the_tail_and_beyond() {
        let mut segment = Segment::default();
        for addr in 0..100 {
            segment.insert(entry(u32::MAX, addr));
            segment.check_invariants();
        }
        assert!(segment.candidates(u32::MAX).eq(0..100));
        for addr in 0..100 {
            assert!(segment.remove(entry(u32::MAX, addr)).is_some());
            segment.check_invariants();
        }
        assert_eq!(segment.len(), 0);
    }

    #[test]
    #[should_panic(expected = "a gap hides an entry")]
    fn an_entry_that_no_search_finds_is_noticed() {
        let mut segment = Segment::default();
        (0..100).for_each(|addr| _ = segment.insert(entry(u32::MAX, addr)));
        let first = segment.home(entry(u32::MAX, 0));
        segment.slots[first + 1] = EMPTY;
        segment.len -= 1;
        segment.check_invariants();
    }

    #[test]
    fn the_table_stays_in_order_while_it_grows_and_shrinks() {
        let mut segment = Segment::default();
        let hash = |i: u32| i.wrapping_mul(0x9e37_79b9);
        for i in 0..3000 {
            segment.insert(entry(hash(i), i));
        }
        segment.check_invariants();
        for i in (0..3000).filter(|i| i % 7 != 0) {
            assert!(segment.remove(entry(hash(i), i)).is_some());
            assert_eq!(segment.remove(entry(hash(i), i)), None);
        }
        segment.check_invariants();
        assert!((0..3000).all(|i| segment.contains(entry(hash(i), i)) == (i % 7 == 0)));
    }
}
