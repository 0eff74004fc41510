//! Kinds of messages at which a fault can be aimed.

use wire::message::{FromCoordinator, GroupBody, PeerMessage};

/// A kind of message at which a fault can be aimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Records on their way to a parity.
    Records,
    /// A greeting, or the index of a stand-in.
    Greeting,
    /// A repair session.
    Repair,
    /// The coordinator recovers a role.
    Recovery,
    /// The coordinator has decided something.
    Decision,
}

impl Target {
    /// What a message between peers is.
    pub(crate) fn of_peers(message: &PeerMessage) -> Option<Self> {
        let PeerMessage::Group(message) = message else { return None };
        match &message.body {
            GroupBody::Frame(frame) if !frame.records.is_empty() => Some(Self::Records),
            GroupBody::Hello(_)
            | GroupBody::Welcome(_)
            | GroupBody::FetchIndex(_)
            | GroupBody::IndexPart(_) => Some(Self::Greeting),
            GroupBody::Open(_) | GroupBody::Read(_) | GroupBody::Page(_) | GroupBody::Residual(_) => {
                Some(Self::Repair)
            }
            _ => None,
        }
    }

    /// What a message of the coordinator is.
    pub(crate) fn of_coordinator(message: &FromCoordinator) -> Option<Self> {
        match message {
            FromCoordinator::Fence { .. } | FromCoordinator::Settle { .. } => Some(Self::Recovery),
            FromCoordinator::Keep { .. } => Some(Self::Decision),
            _ => None,
        }
    }
}
