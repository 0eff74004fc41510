//! What is known of the reads of an item.

use types::UnixSeconds;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether it was read since it was written.
    pub fetched: bool,
    /// When it was read or written last; good to within 4 years.
    pub last_access: UnixSeconds,
}
