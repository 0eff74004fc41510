//! How a transfer is to be carried out.

use types::Time;

use crate::rules::Rules;

/// How what lies in a lost chunk gets to a client that reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostBy {
    /// As many others come as make it, and it is made here: a star, whose middle is this client.
    #[default]
    Star,
    /// Holders make it by a coding graph, where that would take more than one other: what is wanted of it comes, and nothing else.
    Graph,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means {
    pub now: Time,
    /// Until when it may take.
    pub deadline: Time,
    /// Most bytes that are under way.
    pub window: u64,
    /// After how long a holder is slow at the latest, in microseconds.
    pub hedge_us: u64,
    pub lost_by: LostBy,
    pub rules: Rules,
}
