//! What comes of a look-up.

use crate::Item;
use types::{Addr, PageRange};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// The item lies here; all its pages are present.
    Hit(Addr, Item<'a>),
    /// The key is not in this role.
    Miss,
    /// These pages must be repaired before the question can be answered: at most 16, within one run, all absent.
    Absent(PageRange),
    /// A slot with the hash of this key holds bytes that are no valid item: nobody knows whether it is this key.
    Corrupt(Addr),
}

/// Why no item can be read from a slot.
pub(super) enum Unread {
    Absent(PageRange),
    NoItem,
}
