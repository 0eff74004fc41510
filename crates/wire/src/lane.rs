//! In which order messages of one link go.

use crate::message::PeerMessage;
use crate::object::ObjectMessage;

/// Messages of one lane of a link arrive in their order. Urgent ones may overtake bulky ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Records, requests and answers: who waits for them counts time.
    Urgent,
    /// Chunks of long values, and what has to stay in order with these.
    Bulk,
}

impl PeerMessage {
    /// How it goes.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            // A gatherer has an answer to each Fetch before it counts on anything, so these need no order.
            Self::Group(_) | Self::Forward(_) | Self::Answer(_) | Self::Object(ObjectMessage::Fetch(_)) => {
                Lane::Urgent
            }
            Self::Object(_) => Lane::Bulk,
        }
    }

    /// Bytes of chunks in it.
    #[must_use]
    pub fn cell_bytes(&self) -> usize {
        match self {
            Self::Object(ObjectMessage::Put(put)) => put.cell.bytes.len(),
            Self::Object(ObjectMessage::Cell(cell)) => cell.cell.bytes.len(),
            _ => 0,
        }
    }
}
