//! The rules of executor and asker that a test can leave out, to see that it notices.

/// What somebody does who leaves one rule out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bug {
    /// Slices of an older run of the same asker are taken for this one's.
    RunsMix,
    /// A slice that arrives twice is added twice.
    SliceTwice,
    /// A slice is used whatever its checksum.
    SumUnchecked,
    /// What was added up is kept without looking at its checksum.
    ResultUnchecked,
    /// A chunk is kept when the first of its steps has ended.
    KeepsHalf,
    /// Credits are given without looking at what is reserved.
    CreditWithoutMemory,
    /// A process without room takes the graph all the same.
    TakesWithoutRoom,
    /// Readers have no reserve.
    NoReserve,
    /// A deadline that has passed ends nothing.
    DeadlineIgnored,
    /// What the asker withdraws goes on.
    CancelIgnored,
    /// A graph that has ended is run again.
    RunsAgain,
    /// Who says nothing is asked again in the next graph.
    SilenceForgiven,
    /// Who is slow is asked again in the next graph.
    SlownessForgiven,
    /// Who lacks a chunk, or has a rotten one, is asked for it again.
    MissingForgiven,
    /// The word of somebody with an older view is taken for the last one.
    OldViewBelieved,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::RunsMix,
        Self::SliceTwice,
        Self::SumUnchecked,
        Self::ResultUnchecked,
        Self::KeepsHalf,
        Self::CreditWithoutMemory,
        Self::TakesWithoutRoom,
        Self::NoReserve,
        Self::DeadlineIgnored,
        Self::CancelIgnored,
        Self::RunsAgain,
        Self::SilenceForgiven,
        Self::SlownessForgiven,
        Self::MissingForgiven,
        Self::OldViewBelieved,
    ];
}

/// Which rules hold: all, or all but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    left_out: Option<Bug>,
}

impl Rules {
    /// As it should be.
    #[must_use]
    pub fn all() -> Self {
        Self { left_out: None }
    }

    /// Without the rule that prevents `bug`.
    #[must_use]
    pub fn without(bug: Bug) -> Self {
        Self { left_out: Some(bug) }
    }

    /// Whether the rule that prevents `bug` holds.
    #[inline]
    #[must_use]
    pub fn prevent(self, bug: Bug) -> bool {
        self.left_out != Some(bug)
    }
}
