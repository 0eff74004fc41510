//! How far the lesson of one role has come at a learner.

use store::INDEX_SEGMENTS;
use types::RUN_BYTES;
use wire::message::Write;

use crate::Rules;

/// See the module. A parity that never was a learner is taught nothing, and knows what its records say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Taught {
    /// The lesson has not begun.
    #[default]
    Nothing,
    /// A lesson under way.
    Some(Progress),
    /// The lesson has ended.
    All,
}

/// How far a lesson has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Runs below this one are known.
    runs: u32,
    /// Segments of the index below this one are known.
    segments: usize,
    /// Number of the next part.
    number: u32,
}

impl Taught {
    /// The first part of a lesson from nothing is in.
    pub(super) fn first_part_of_all() -> Self {
        Self::Some(Progress { runs: 0, segments: 0, number: 1 })
    }

    /// The first part of a lesson is in that brings only what is lacking: everything else is known.
    pub(super) fn first_part_of_rest() -> Self {
        Self::Some(Progress { runs: u32::MAX, segments: INDEX_SEGMENTS, number: 1 })
    }

    fn progress(&self) -> Option<&Progress> {
        if let Self::Some(progress) = self { Some(progress) } else { None }
    }

    pub(super) fn awaits(&self, number: u32) -> bool {
        self.progress().is_some_and(|progress| progress.number == number)
    }

    pub(super) fn awaits_run(&self, run: u32) -> bool {
        self.progress().is_some_and(|progress| run >= progress.runs && progress.segments == 0)
    }

    pub(super) fn count_part(&mut self) {
        if let Self::Some(progress) = self {
            progress.number += 1;
        }
    }

    pub(super) fn run_is_in(&mut self, run: u32) {
        if let Self::Some(progress) = self {
            progress.runs = run + 1;
        }
    }

    /// Takes the next segment; whether it is that. After it no run comes.
    pub(super) fn segment_is_in(&mut self, segment: usize) -> bool {
        let Self::Some(progress) = self else { return false };
        if segment != progress.segments || segment >= INDEX_SEGMENTS {
            return false;
        }
        // Runs come first, so those that did not come are untouched, and known to be.
        progress.runs = u32::MAX;
        progress.segments = segment + 1;
        true
    }

    /// Segments of the index that have come.
    pub(super) fn known_segments(&self) -> usize {
        self.progress().map_or(INDEX_SEGMENTS, |progress| progress.segments)
    }

    /// What of `write` changes what is known.
    pub(super) fn known_part<'a>(&self, rules: Rules, write: &'a Write) -> &'a [u8] {
        let progress = self.progress().filter(|_| rules.unknown_pages_stay());
        let Some(progress) = progress else { return &write.delta };
        // A large item may lie across the border of what is known: then a part of its delta counts.
        let end = (progress.runs as usize).saturating_mul(RUN_BYTES);
        let len = end.saturating_sub(write.addr.byte()).min(write.delta.len());
        &write.delta[..len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_runs_and_segments_come_in_order_and_no_run_after_a_segment() {
        let mut taught = Taught::first_part_of_all();
        assert!(taught.awaits(1) && !taught.awaits(0) && taught.awaits_run(7));
        taught.run_is_in(7);
        taught.count_part();
        assert!(taught.awaits(2) && !taught.awaits_run(7) && taught.awaits_run(8));
        assert!(!taught.segment_is_in(1) && taught.segment_is_in(0) && !taught.segment_is_in(0));
        assert!(!taught.awaits_run(9));
        assert_eq!(taught.known_segments(), 1);
    }

    #[test]
    fn a_write_counts_as_far_as_its_run_is_known() {
        let write = Write::new(types::Addr::from_byte(RUN_BYTES - 64), vec![1; 64].into());
        assert_eq!(Taught::first_part_of_all().known_part(Rules::all(), &write).len(), 0);
        for known in [Taught::Nothing, Taught::All, Taught::first_part_of_rest()] {
            assert_eq!(known.known_part(Rules::all(), &write).len(), 64, "{known:?}");
        }
    }
}
