//! What clients ask for.

/// What clients ask for; positions in [`Options::mix`](super::Options::mix).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Verb {
    /// A plain read.
    Get,
    /// A read that sets the expiry.
    GetAndTouch,
    /// Store always.
    Set,
    /// Store if missing.
    Add,
    /// Store if present.
    Replace,
    /// Extend.
    Append,
    /// Extend in front.
    Prepend,
    /// Store if unchanged since a read.
    Cas,
    /// Remove.
    Delete,
    /// Count up.
    Increment,
    /// Count down.
    Decrement,
    /// Set the expiry.
    Touch,
    /// Remove all keys of one data role.
    Flush,
}

impl Verb {
    /// All of them, in the order of [`Options::mix`](super::Options::mix).
    pub const ALL: [Self; 13] = [
        Self::Get,
        Self::GetAndTouch,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Append,
        Self::Prepend,
        Self::Cas,
        Self::Delete,
        Self::Increment,
        Self::Decrement,
        Self::Touch,
        Self::Flush,
    ];
}

/// Which value sizes clients draw.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Weights of: 0 or 1 byte, tiny (up to 32), small (up to 1 KiB), class edges (up to 16 KiB), around a page, around
    /// a run, large (100 to 300 KiB).
    pub mix: [u32; 7],
}
