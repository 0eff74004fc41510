//! Scrubs, by hand.

use proto::ScrubFinding;
use types::{OnFinding, ScrubProgress};

use super::Story;
use crate::sim::scrub::{is_scrubbed, start_scrub};

impl Story {
    /// Everything is to be compared with its parities.
    pub fn start_scrub(&mut self, finding: OnFinding) {
        self.world.reign().command(start_scrub(finding));
        self.look();
    }

    /// Whether that has been done.
    #[must_use]
    pub fn is_scrubbed(&self) -> bool {
        is_scrubbed(&self.world.cluster)
    }

    /// Waits until that has been done.
    pub fn until_scrubbed(&mut self) {
        self.run_until("everything is compared", Self::is_scrubbed);
    }

    /// How far all nodes together have come.
    #[must_use]
    pub fn scrub_progress(&self) -> ScrubProgress {
        let hosts = self.world.cluster.nodes.hosts();
        hosts.map(proto::Host::scrub_progress).reduce(ScrubProgress::plus).unwrap_or_default()
    }

    /// What was found.
    #[must_use]
    pub fn scrub_findings(&self) -> Vec<ScrubFinding> {
        let hosts = self.world.cluster.nodes.hosts();
        hosts.flat_map(proto::Host::scrub_findings).cloned().collect()
    }
}
