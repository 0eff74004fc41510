//! How far a scrub has come, and what it has found.

use proto::ScrubFinding;
use types::ScrubProgress;

use super::told::Story;
use crate::cluster::scrub::is_scrubbed;

/// The newest scrub of a story.
#[derive(Debug)]
pub struct Scrub<'a> {
    story: &'a Story,
}

impl Story {
    /// The newest scrub.
    #[must_use]
    pub fn scrub(&self) -> Scrub<'_> {
        Scrub { story: self }
    }

    /// Waits until everything has been compared with its parities.
    pub fn until_scrubbed(&mut self) {
        self.run_until("everything is compared", |story| story.scrub().is_done());
    }
}

impl Scrub<'_> {
    /// Whether everything has been compared.
    #[must_use]
    pub fn is_done(&self) -> bool {
        is_scrubbed(&self.story.world.cluster)
    }

    /// How far all nodes together have come.
    #[must_use]
    pub fn progress(&self) -> ScrubProgress {
        let hosts = self.story.world.cluster.nodes.hosts();
        hosts.map(proto::Host::scrub_progress).reduce(ScrubProgress::plus).unwrap_or_default()
    }

    /// What was found.
    #[must_use]
    pub fn findings(&self) -> Vec<ScrubFinding> {
        let hosts = self.story.world.cluster.nodes.hosts();
        hosts.flat_map(proto::Host::scrub_findings).cloned().collect()
    }
}
