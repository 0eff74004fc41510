//! How far the scrub of this host's parities has come.

#[cfg(feature = "planted-bugs")]
use cluster::MemberId;
use cluster::ScrubProgress;

use super::Host;
use crate::parity::ScrubFinding;

impl Host {
    /// How far the newest scrub has come here.
    #[must_use]
    pub fn scrub_progress(&self) -> ScrubProgress {
        let settings = self.pace.scrub();
        let nothing = ScrubProgress { generation: settings.generation, ..ScrubProgress::default() };
        let parities = self.members.parities.values();
        parities
            .filter_map(|parity| parity.scrub_progress(settings))
            .fold(nothing, |sum, progress| sum.plus(progress))
    }

    /// What the newest scrub has found here.
    pub fn scrub_findings(&self) -> impl Iterator<Item = &ScrubFinding> {
        self.members.parities.values().flat_map(|parity| parity.scrub_findings())
    }

    /// Whether a scrub is to go on.
    pub(super) fn has_to_scrub(&self) -> bool {
        let settings = self.pace.scrub();
        settings.running && self.scrubbed != settings.generation && self.scrub_progress().left_pages > 0
    }

    /// Says once that everything here has been compared.
    pub(super) fn note_end_of_scrub(&mut self) {
        let settings = self.pace.scrub();
        if !settings.running || self.scrubbed == settings.generation {
            return;
        }
        let progress = self.scrub_progress();
        if progress.left_pages == 0 {
            self.scrubbed = settings.generation;
            let ScrubProgress { generation, checked_pages, mismatches, corrected, .. } = progress;
            tracing::info!(host = %self.config.host, generation, checked_pages, mismatches, corrected, "scrub has ended here");
        }
    }
}

/// Memory goes bad, for tests of what notices.
#[cfg(feature = "planted-bugs")]
impl Host {
    /// Flips the bits of `mask` in a byte of the area of the parity, or else of the primary, that is `member` here.
    ///
    /// # Panics
    /// If it has no memory there.
    pub fn damage(&mut self, member: MemberId, byte: usize, mask: u8) {
        if let Some(parity) = self.members.parities.get_mut(&member) {
            parity.damage(byte, mask);
        } else if let Some(primary) = self.members.primaries.get_mut(&member) {
            primary.damage(byte, mask);
        }
    }
}
