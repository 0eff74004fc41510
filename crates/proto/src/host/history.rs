//! What has become of members, and what those have counted that are here no more: a host's counters never fall.

use crate::parity::{Parity, Rejoined};
use crate::primary::{Primary, PrimaryCounts};

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// Parities that were evicted and came back, and what it took.
    pub resumed: u64,
    pub resumed_by: Rejoined,
    /// Data roles that began anew, empty, after their loss was accepted.
    pub begun_anew: u64,
    /// Of primaries that have left.
    pub primaries: PrimaryCounts,
    /// Pages that scrubs of parities have compared which have left, and places that they have found wrong.
    pub scrubbed: (u64, u64),
}

impl History {
    /// A primary is none any more.
    pub fn leaves(&mut self, primary: &Primary) {
        self.primaries += primary.stats().counts;
    }

    /// A parity is none any more, or begins anew. It may come back, and counts from nothing then.
    pub fn parity_leaves(&mut self, parity: &mut Parity) {
        let (pages, mismatches) = parity.take_scrub_totals();
        self.scrubbed.0 += pages;
        self.scrubbed.1 += mismatches;
    }

    /// A parity that has come back is in sync.
    pub fn note_rejoined(&mut self, rejoined: Rejoined) {
        let Rejoined { records, bytes, instead_of_bytes } = rejoined;
        self.resumed += 1;
        self.resumed_by.records += records;
        self.resumed_by.bytes += bytes;
        self.resumed_by.instead_of_bytes += instead_of_bytes.saturating_sub(bytes);
    }
}
