//! What was counted in a story.

use super::told::Story;
use crate::stage::report::Stats;

/// Of parities that came back with what they had applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// How many.
    pub parities: u64,
    /// Bytes that came to them.
    pub bytes: u64,
    /// Instead of how many.
    pub instead_of_bytes: u64,
}

impl Story {
    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.world.stage.book.stats
    }

    /// What the hosts that run have counted of parities that came back.
    #[must_use]
    pub fn resumed(&self) -> Resumed {
        let stats = self.world.cluster.nodes.hosts().map(proto::Host::stats);
        stats.fold(Resumed::default(), |sum, stats| Resumed {
            parities: sum.parities + stats.resumed_parities,
            bytes: sum.bytes + stats.resumed_bytes,
            instead_of_bytes: sum.instead_of_bytes + stats.resumed_bytes + stats.spared_bytes,
        })
    }

    /// Bytes that the running primaries have sent in lessons.
    #[must_use]
    pub fn taught_bytes(&self) -> u64 {
        self.world.cluster.nodes.hosts().map(|host| host.stats().rebuilt_bytes).sum()
    }
}
