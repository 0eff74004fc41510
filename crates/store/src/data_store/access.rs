//! What is known of the reads of an item.

use types::UnixSeconds;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether it was read since it was written.
    pub fetched: bool,
    /// When it was read or written last; good to within 4 years. 0 where nobody knows: whoever takes a role over knows nothing of its reads.
    pub last_access: UnixSeconds,
}

impl Access {
    /// How many seconds ago that was; 0 where nobody knows.
    #[must_use]
    pub fn idle_seconds(&self, now: UnixSeconds) -> u32 {
        if self.last_access == UnixSeconds(0) { 0 } else { now.0.saturating_sub(self.last_access.0) }
    }
}
