//! Where a combination is computed, and where its chunks lie.

/// Where an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The processor.
    Cpu,
    /// The card.
    Card,
}

impl Place {
    /// As users read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Card => "cuda",
        }
    }
}

/// Where the chunks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Residence {
    /// In memory of the host that is not page-locked.
    Host,
    /// In page-locked memory of the host, at multiples of 16: within the card's reach.
    Pinned,
    /// In the card's memory.
    Device,
}

impl Residence {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Host, Self::Pinned, Self::Device];

    /// As users read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Pinned => "pinned",
            Self::Device => "device",
        }
    }
}

/// Where an operation would run, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Where.
    pub place: Place,
    /// In words.
    pub why: String,
}

impl Choice {
    pub(crate) fn cpu(why: String) -> Self {
        Self { place: Place::Cpu, why }
    }
}
