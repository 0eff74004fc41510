//! In which way clients do what they do.

/// How a client gives or takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    AsFastAsPossible,
    /// It reads with pauses, so that others write meanwhile.
    Slowly,
    /// It goes after so many thousandths of what it was to send.
    BrokenOff(u64),
}
