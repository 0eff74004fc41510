//! What a seed can look at most closely.

use std::fmt;

/// What a seed looks at most closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// Nothing in particular.
    Anything,
    /// Second faults into the recovery from the first.
    DoubleFaults,
    /// A coordinator whose questions and answers cross.
    SlowLines,
    /// Roles that move, and what goes wrong meanwhile.
    Moves,
    /// Parities that are evicted and come back, with takeovers in between.
    Returns,
    /// Coordinators that follow each other in the middle of everything.
    Succession,
    /// A coordinator without a store that is started again with nothing.
    Forgetting,
    /// Extents that go back while nodes are short of memory.
    Releases,
    /// More losses than the code can bear, which are accepted.
    Losses,
    /// Codes whose parities cover some of the data roles, or are made by other matrices.
    Codes,
    /// Values in chunks.
    Objects,
    /// Chunks of values that coding graphs make again.
    Graphs,
    /// Writes that are made again under the same names.
    Sessions,
    /// Clients of the native protocol: the real core, over connections that break.
    Native,
    /// Scans by native clients.
    Scans,
    /// Namespaces that move to another pool.
    Conversions,
}

impl fmt::Display for Focus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anything => "anything",
            Self::DoubleFaults => "double-faults",
            Self::SlowLines => "slow-lines",
            Self::Moves => "moves",
            Self::Returns => "returns",
            Self::Succession => "succession",
            Self::Forgetting => "forgetting",
            Self::Releases => "releases",
            Self::Losses => "losses",
            Self::Codes => "codes",
            Self::Objects => "objects",
            Self::Graphs => "graphs",
            Self::Sessions => "sessions",
            Self::Native => "native",
            Self::Scans => "scans",
            Self::Conversions => "conversions",
        })
    }
}
