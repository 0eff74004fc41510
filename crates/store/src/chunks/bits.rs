//! Which pages of one extent are free: 1,024 bits.

use std::ops::Range;

use types::{CHUNK_PAGE_BYTES, EXTENT_BYTES};

/// Pages of an extent.
pub(super) const EXTENT_PAGES: u32 = (EXTENT_BYTES / CHUNK_PAGE_BYTES) as u32;

const WORD_BITS: u32 = 64;
const WORDS: usize = (EXTENT_PAGES / WORD_BITS) as usize;
const _: () = assert!(WORDS as u32 * WORD_BITS == EXTENT_PAGES);

/// A set of pages of one extent, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    pub(super) const NONE: Self = Self([0; WORDS]);
    pub(super) const ALL: Self = Self([u64::MAX; WORDS]);

    /// The pages of `range`.
    pub(super) fn of(range: Range<u32>) -> Self {
        let word = |at: usize| {
            let within = |page: u32| page.saturating_sub(at as u32 * WORD_BITS).min(WORD_BITS);
            lowest(within(range.end)) & !lowest(within(range.start))
        };
        Self(std::array::from_fn(word))
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !other.0[at]))
    }

    pub(super) fn has_all(self, other: Self) -> bool {
        other.without(self) == Self::NONE
    }

    pub(super) fn has_any(self, other: Self) -> bool {
        other.without(self) != other
    }

    pub(super) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The run that begins with `page`; empty if the page is not in.
    pub(super) fn run_from(self, page: u32) -> Range<u32> {
        page..self.next(page, false).unwrap_or(EXTENT_PAGES)
    }

    /// The lowest run of at least `count` pages.
    pub(super) fn first_run(self, count: u32) -> Option<Range<u32>> {
        self.runs().find(|run| run.end - run.start >= count)
    }

    /// Pages in the longest run.
    pub(super) fn longest(self) -> u32 {
        self.runs().map(|run| run.end - run.start).max().unwrap_or(0)
    }

    /// Stretches of pages that are in, each as long as can be, ascending: a few instructions for each, and for each word.
    fn runs(self) -> impl Iterator<Item = Range<u32>> {
        let next = move |from: u32| self.next(from, true).map(|page| self.run_from(page));
        std::iter::successors(next(0), move |run| next(run.end))
    }

    /// The lowest page from `from` on that is in, or that is not.
    fn next(self, from: u32, is_in: bool) -> Option<u32> {
        let flipped = if is_in { 0 } else { u64::MAX };
        let mut unseen = u64::MAX.checked_shl(from % WORD_BITS)?;
        for at in (from / WORD_BITS) as usize..WORDS {
            let word = (self.0[at] ^ flipped) & unseen;
            if word != 0 {
                return Some(at as u32 * WORD_BITS + word.trailing_zeros());
            }
            unseen = u64::MAX;
        }
        None
    }
}

/// The lowest `count` bits of a word.
fn lowest(count: u32) -> u64 {
    u64::MAX.checked_shr(WORD_BITS - count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_across_words() {
        let bits = Bits::of(3..5).with(Bits::of(60..70)).with(Bits::of(1018..EXTENT_PAGES));
        assert!(bits.runs().eq([3..5, 60..70, 1018..1024]));
        assert_eq!((bits.count(), bits.longest()), (18, 10));
        assert_eq!(
            (bits.first_run(1), bits.first_run(3), bits.first_run(11)),
            (Some(3..5), Some(60..70), None)
        );
        assert_eq!((bits.run_from(64), bits.run_from(70)), (64..70, 70..70));
    }

    #[test]
    fn all_and_none_are_runs_of_1024_and_0() {
        assert_eq!((Bits::ALL.longest(), Bits::ALL.first_run(1024)), (1024, Some(0..1024)));
        assert_eq!((Bits::NONE.longest(), Bits::NONE.first_run(1)), (0, None));
        assert_eq!(
            (Bits::of(0..1024), Bits::of(7..7), Bits::of(64..64)),
            (Bits::ALL, Bits::NONE, Bits::NONE)
        );
    }

    #[test]
    fn sets_are_told_apart() {
        let (bits, over) = (Bits::of(10..20), Bits::of(19..30));
        assert!(bits.has_all(Bits::of(12..20)) && !bits.has_all(over));
        assert!(bits.has_any(over) && !bits.has_any(Bits::of(20..30)) && !bits.has_any(Bits::NONE));
        assert_eq!(bits.with(over).without(Bits::of(12..30)), Bits::of(10..12));
    }
}
