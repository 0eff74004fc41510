//! A set of page numbers (or of any other small integers) as a growable bitmap.

use crate::growing::grown_capacity;
use types::PageRange;

const WORD_BITS: u32 = 64;

/// A set of page numbers. Costs one bit per number up to the highest that was ever inserted.
#[derive(Clone, Debug, Default)]
pub struct PageSet {
    words: Vec<u64>,
    count: u32,
}

/// The bytes are no encoding of a page set, or of one beyond the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed page set")]
pub struct PageSetError;

impl PageSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a page; whether it was new.
    pub fn insert(&mut self, page: u32) -> bool {
        let (word, bit) = split(page);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u32::from(fresh);
        fresh
    }

    /// Adds all of `pages`.
    pub fn insert_range(&mut self, pages: PageRange) {
        for page in pages.iter() {
            self.insert(page);
        }
    }

    /// Takes a page out; whether it was there.
    pub fn remove(&mut self, page: u32) -> bool {
        let (word, bit) = split(page);
        let there = self.contains(page);
        if there {
            self.words[word] &= !bit;
            self.count -= 1;
        }
        there
    }

    /// Takes all of `pages` out.
    pub fn remove_range(&mut self, pages: PageRange) {
        for page in pages.iter() {
            self.remove(page);
        }
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Whether `page` is in.
    #[must_use]
    #[inline]
    pub fn contains(&self, page: u32) -> bool {
        let (word, bit) = split(page);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Whether all of `pages` are in; true for none.
    #[must_use]
    pub fn contains_all(&self, pages: PageRange) -> bool {
        pages.iter().all(|page| self.contains(page))
    }

    /// Whether one of `pages` is in.
    #[must_use]
    pub fn contains_any(&self, pages: PageRange) -> bool {
        pages.iter().any(|page| self.contains(page))
    }

    /// Lowest page from `from` on that is in.
    #[must_use]
    pub fn first_present(&self, from: u32) -> Option<u32> {
        let (first, _) = split(from);
        let mut mask = u64::MAX << (from % WORD_BITS);
        for (word, bits) in self.words.iter().enumerate().skip(first) {
            if bits & mask != 0 {
                return Some(word as u32 * WORD_BITS + (bits & mask).trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }

    /// Lowest page of `pages` that is not in.
    #[must_use]
    pub fn first_absent(&self, pages: PageRange) -> Option<u32> {
        pages.iter().find(|page| !self.contains(*page))
    }

    /// Lowest start of `count` consecutive pages that are all in.
    #[must_use]
    pub fn first_stretch(&self, count: u32) -> Option<u32> {
        let mut start = self.first_present(0)?;
        loop {
            match self.first_absent(PageRange { first: start, count }) {
                None => return Some(start),
                Some(hole) => start = self.first_present(hole)?,
            }
        }
    }

    /// The lowest multiple of `count`, which divides 64, from which on `count` pages are in.
    #[must_use]
    pub fn first_aligned(&self, count: u32) -> Option<u32> {
        debug_assert!(WORD_BITS.is_multiple_of(count));
        let mask = u64::MAX >> (WORD_BITS - count);
        let starts = |bits: u64| (0..WORD_BITS).step_by(count as usize).find(|at| bits >> at & mask == mask);
        let mut words = (0..).zip(&self.words);
        words.find_map(|(word, bits)| Some(word * WORD_BITS + starts(*bits)?))
    }

    /// The pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.first_present(0);
        std::iter::from_fn(move || {
            let page = next?;
            next = page.checked_add(1).and_then(|from| self.first_present(from));
            Some(page)
        })
    }

    /// How many are in.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether none is in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Bytes on the heap once numbers up to `len` have come one by one.
    pub(crate) fn grown_bytes(len: usize) -> usize {
        grown_capacity(len.div_ceil(WORD_BITS as usize)) * size_of::<u64>()
    }

    /// The bitmap without trailing zero words: the same for equal sets.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        // Where pages were taken out, zero words are left behind.
        let used = self.words.iter().rposition(|bits| *bits != 0).map_or(0, |last| last + 1);
        &self.words[..used]
    }

    /// Sets one word of the bitmap (pages `64 * at ..`).
    pub(crate) fn set_word(&mut self, at: usize, bits: u64) {
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        let before = std::mem::replace(&mut self.words[at], bits);
        self.count = self.count - before.count_ones() + bits.count_ones();
    }

    /// That the pages are counted.
    pub(crate) fn check_invariants(&self) {
        let count: u32 = self.words.iter().map(|bits| bits.count_ones()).sum();
        assert_eq!(self.count, count, "the pages of a set are counted");
    }

    /// Appends the encoding: u32 count of words, then the words, little endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let words = self.words();
        out.extend_from_slice(&(words.len() as u32).to_le_bytes());
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads an encoding from the front of `bytes`, and advances past it. Pages from `limit` on are refused.
    ///
    /// # Errors
    /// If the bytes are too few, or name pages beyond `limit`.
    pub fn decode(bytes: &mut &[u8], limit: u32) -> Result<Self, PageSetError> {
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or(PageSetError)?;
        // Nothing is reserved by what a peer declares: the words must be there.
        let len = u32::from_le_bytes(*head) as usize * size_of::<u64>();
        let (body, rest) = rest.split_at_checked(len).ok_or(PageSetError)?;
        let (words, _) = body.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let count = words.iter().map(|bits| bits.count_ones()).sum();
        let set = Self { words, count };
        if set.first_present(limit).is_some() {
            return Err(PageSetError);
        }
        *bytes = rest;
        Ok(set)
    }
}

impl PartialEq for PageSet {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for PageSet {}

fn split(page: u32) -> (usize, u64) {
    ((page / WORD_BITS) as usize, 1 << (page % WORD_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, count: u32) -> PageRange {
        PageRange { first, count }
    }

    #[test]
    fn ranges_across_words_are_found_whole() {
        let mut set = PageSet::new();
        set.insert_range(range(60, 10));
        assert!(set.contains_all(range(60, 10)) && !set.contains_all(range(60, 11)));
        assert_eq!((set.count(), set.first_present(0), set.first_present(70)), (10, Some(60), None));
        assert_eq!(set.first_absent(range(60, 16)), Some(70));
        set.remove(64);
        assert_eq!(
            (set.first_stretch(4), set.first_stretch(5), set.first_stretch(6)),
            (Some(60), Some(65), None)
        );
    }

    #[test]
    fn an_aligned_stretch_is_found() {
        let mut set = PageSet::new();
        set.insert_range(range(61, 14));
        assert_eq!(
            (set.first_aligned(1), set.first_aligned(8), set.first_aligned(16)),
            (Some(61), Some(64), None)
        );
        set.remove(71);
        assert_eq!((set.first_aligned(4), set.first_aligned(8)), (Some(64), None));
        set.insert_range(range(128, 64));
        assert_eq!((set.first_aligned(8), set.first_aligned(64)), (Some(128), Some(128)));
    }

    #[test]
    #[should_panic(expected = "are counted")]
    fn a_wrong_count_is_noticed() {
        let mut set = PageSet::new();
        set.insert_range(range(60, 10));
        set.check_invariants();
        set.count -= 1;
        set.check_invariants();
    }

    #[test]
    fn equality_does_not_see_what_was_removed() {
        let mut set = PageSet::new();
        set.insert(1000);
        set.remove(1000);
        assert_eq!(set, PageSet::new());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn behaves_as_a_set_and_survives_its_encoding(
            changes in proptest::collection::vec((any::<bool>(), 0u32..300), 0..200)
        ) {
            let (mut set, mut model) = (PageSet::new(), BTreeSet::new());
            for (add, page) in changes {
                let changed = if add { set.insert(page) } else { set.remove(page) };
                let expected = if add { model.insert(page) } else { model.remove(&page) };
                prop_assert_eq!(changed, expected);
                set.check_invariants();
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert_eq!(set.count() as usize, model.len());
            let mut bytes = Vec::new();
            set.encode(&mut bytes);
            bytes.push(9);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(PageSet::decode(&mut rest, 300).unwrap(), set);
            prop_assert_eq!(rest, [9]);
        }

        #[test]
        fn garbage_is_refused_or_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(set) = PageSet::decode(&mut bytes.as_slice(), 100) {
                prop_assert!(set.iter().all(|page| page < 100));
            }
        }
    }
}
