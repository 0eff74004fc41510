//! In which order messages of one link go.

use crate::graph::GraphMessage;
use crate::message::PeerMessage;
use crate::object::{ObjectMessage, is_of_repair};

/// Messages of one lane of a link arrive in their order, and may overtake those of the lanes behind theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Records, requests and answers: who waits for them counts time.
    Urgent,
    /// Chunks of long values, and what has to stay in order with these.
    Bulk,
    /// Cells that no client waits for: of fills and of scrubs.
    Repair,
}

impl PeerMessage {
    /// How it goes.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::Group(_) | Self::Forward(_) | Self::Answer(_) => Lane::Urgent,
            Self::Graph(message) if overtakes(message) => Lane::Urgent,
            Self::Graph(_) => Lane::Bulk,
            Self::Object(message) => match &**message {
                // A gatherer has an answer to each Fetch before it counts on anything, so these need no order.
                ObjectMessage::Fetch(_) => Lane::Urgent,
                ObjectMessage::Cell(cell) if is_of_repair(cell.number) => Lane::Repair,
                _ => Lane::Bulk,
            },
        }
    }

    /// Whether it has part of a chunk, which is sent again if it is lost.
    #[must_use]
    pub fn is_cell(&self) -> bool {
        let Self::Object(message) = self else { return false };
        // A sum is little, and there are as many as cells.
        matches!(
            **message,
            ObjectMessage::Put(_)
                | ObjectMessage::PutShared(_)
                | ObjectMessage::PutSum(_)
                | ObjectMessage::Product(_)
                | ObjectMessage::Lend(_)
                | ObjectMessage::Cell(_)
        )
    }

    /// About how many bytes it takes up until it is written.
    #[must_use]
    pub fn weight(&self) -> usize {
        let message = match self {
            Self::Object(message) => message,
            Self::Graph(message) => return MESSAGE_BYTES + weight_of_graph(message),
            Self::Group(_) | Self::Forward(_) | Self::Answer(_) => return MESSAGE_BYTES,
        };
        MESSAGE_BYTES
            + match &**message {
                ObjectMessage::Put(put) => put.cell.bytes.len(),
                ObjectMessage::PutShared(shared) => shared.put.cell.bytes.len(),
                ObjectMessage::Product(product) => product.cell.bytes.len(),
                ObjectMessage::Lend(lend) => lend.cell.bytes.len(),
                ObjectMessage::Cell(cell) => cell.cell.bytes.len(),
                ObjectMessage::Keep(keep) => keep.objects.len() * NAMED_BYTES,
                ObjectMessage::Free(free) => free.objects.len() * NAMED_BYTES,
                ObjectMessage::Ask(ask) => ask.objects.len() * NAMED_BYTES,
                ObjectMessage::Verdicts(verdicts) => verdicts.verdicts.len() * NAMED_BYTES,
                ObjectMessage::Evict(evict) => evict.objects.len() * NAMED_BYTES,
                ObjectMessage::Listed(listed) => listed.chunks.len() * NAMED_BYTES,
                _ => 0,
            }
    }
}

/// A credit that comes before its graph is remembered, and what a report says stands whenever it comes.
fn overtakes(message: &GraphMessage) -> bool {
    matches!(message, GraphMessage::Credit(_) | GraphMessage::AskCredit(_) | GraphMessage::Report(_))
}

fn weight_of_graph(message: &GraphMessage) -> usize {
    match message {
        GraphMessage::Slice(slice) => slice.slice.bytes.len(),
        GraphMessage::Start(start) => {
            let steps = start.steps.iter().map(|step| NAMED_BYTES + step.matrix.len());
            start.strand.len() * NAMED_BYTES + steps.sum::<usize>()
        }
        _ => 0,
    }
}

/// Of a message, and of an object or a chunk that it names.
const MESSAGE_BYTES: usize = 256;
const NAMED_BYTES: usize = 128;
