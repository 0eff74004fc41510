//! Whom a message between nodes and the coordinator concerns: which coordinator, and the workers of which group.

use types::{Epoch, GroupId, Round};

use super::{FromCoordinator, ToCoordinator};

impl ToCoordinator {
    /// The coordinator that this answers; none if it is no answer that counts for one coordinator only.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        match *self {
            Self::Fenced { epoch, .. }
            | Self::Settled { epoch, .. }
            | Self::HandedOver { epoch, .. }
            | Self::Kept { epoch, .. }
            | Self::Recalled { epoch, .. }
            | Self::Confirmed { epoch, .. } => Some(epoch),
            Self::Register(_)
            | Self::Heartbeat { .. }
            | Self::FetchView { .. }
            | Self::Stalled { .. }
            | Self::Repaired { .. }
            | Self::CaughtUp { .. }
            | Self::GaveUp { .. }
            | Self::Quotas(_)
            | Self::Chunks(_)
            | Self::Converted { .. }
            | Self::Starved { .. }
            | Self::Admin { .. } => None,
        }
    }
}

impl FromCoordinator {
    /// The coordinator whose command this is; none if it is no command. Maps, their changes and views have versions.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        match *self {
            Self::Fence { epoch, .. }
            | Self::Settle { epoch, .. }
            | Self::HandOver { epoch, .. }
            | Self::Confirm { epoch, .. }
            | Self::Shares { round: Round { epoch, .. }, .. } => Some(epoch),
            // Of another kind: whoever keeps records has rules of its own for whose.
            Self::Keep { .. } | Self::Recall { .. } => None,
            Self::Map(_)
            | Self::Changes(_)
            | Self::View(_)
            | Self::Alive
            | Self::Waiting
            | Self::Forming(_)
            | Self::Refused(_)
            | Self::Occupied { .. }
            | Self::Admin { .. } => None,
        }
    }

    /// The group whose workers alone are to hear it; none if all workers of a node are, or none.
    #[must_use]
    pub fn group(&self) -> Option<GroupId> {
        match *self {
            Self::Fence { group, .. }
            | Self::Settle { group, .. }
            | Self::HandOver { group, .. }
            | Self::Confirm { group, .. } => Some(group),
            // Every worker routes by all views, and draws on the shares.
            Self::Map(_) | Self::Changes(_) | Self::View(_) | Self::Shares { .. } => None,
            Self::Alive
            | Self::Waiting
            | Self::Forming(_)
            | Self::Refused(_)
            | Self::Occupied { .. }
            | Self::Keep { .. }
            | Self::Recall { .. }
            | Self::Admin { .. } => None,
        }
    }
}
