//! What a peer may not have sent: numbers and bytes that no member can come to by the rules (docs/protocol.md, "Ranges").
//!
//! A member that meets one does nothing with it and says so ([`crate::Action::Close`]): the link is closed and the message
//! counted. A peer that is right never meets this; what it says may be late, and is then ignored or answered.

use thiserror::Error;
use types::{HostId, RoleIndex, Seq, Term, Time, ViewVersion};

/// Why a message cannot be.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Impossible {
    /// A record that was never sent is acknowledged.
    #[error("record {received} is acknowledged, and no more was sent than {sent}")]
    Received {
        /// What the parity says it has.
        received: Seq,
        /// The newest record that it can have.
        sent: Seq,
    },
    /// A parity in sync lacks what it has acknowledged.
    #[error("a parity in sync has nothing beyond {received}, and {committed} is committed")]
    Forgotten {
        /// What the parity says it has.
        received: Seq,
        /// What it has acknowledged before.
        committed: Seq,
    },
    /// A Frame that is to be sent in the future is acknowledged.
    #[error("the echo of time {echo}, and it is {now}")]
    Echo {
        /// The time of sending.
        echo: Time,
        /// This node's time.
        now: Time,
    },
    /// A record is committed that a parity in sync has not got.
    #[error("record {committed} is committed, and this parity has nothing beyond {received}")]
    Committed {
        /// What the primary says.
        committed: Seq,
        /// What this parity has acknowledged at most.
        received: Seq,
    },
    /// A term that the role cannot have in the sender's view, or a sender that is not its primary.
    #[error("{role} of term {term} in view {view}")]
    Term {
        /// The role that sends.
        role: RoleIndex,
        /// Its term.
        term: Term,
        /// The sender's view.
        view: ViewVersion,
    },
    /// A record names a place that was never reserved, or one that no area has.
    #[error("record {seq} names a place that was never reserved")]
    Place {
        /// The record.
        seq: Seq,
    },
    /// A learner has applied what was never committed.
    #[error("record {applied} is applied, and no more is committed than {committed}")]
    Applied {
        /// What the learner says it has.
        applied: Seq,
        /// The newest committed record.
        committed: Seq,
    },
    /// A part of a lesson is understood that was never sent.
    #[error("part {number} is understood, and {sent} were sent")]
    Part {
        /// The part.
        number: u32,
        /// How many were sent.
        sent: u32,
    },
    /// Records are kept that were never made.
    #[error("record {position} is kept, and {made} were made")]
    Kept {
        /// What the node says it keeps.
        position: u64,
        /// How many there are.
        made: u64,
    },
    /// Pages of another length than was asked for, or roles that cannot be lost.
    #[error("pages that were not asked for, or of roles that cannot be lost")]
    Pages,
    /// A part of an index that is none.
    #[error("a part of an index that is none")]
    Index,
    /// A parity has applied what it has not received.
    #[error("record {applied} is applied, and nothing beyond {received} received")]
    Fenced {
        /// What the parity says it has applied.
        applied: Seq,
        /// What it says it has.
        received: Seq,
    },
    /// The answer to a question that will be asked in the future.
    #[error("the answer to a question of time {asked_at}, and it is {now}")]
    AskedAt {
        /// The time of the question.
        asked_at: Time,
        /// The coordinator's time.
        now: Time,
    },
    /// Bytes that are not what their checksum says, or of a chunk that this group cannot have.
    #[error("a cell whose checksum is wrong, or of a chunk that its group cannot have")]
    Chunk,
    /// A graph that is none, that lets somebody else than its asker write, or that is not the sender's.
    #[error("a graph that cannot be, or is not of who has sent it")]
    Graph,
    /// The answer to a question that was never asked, or was asked of somebody else.
    #[error("the answer to request {id}, which was never sent there")]
    Answer {
        /// The number of the request.
        id: u64,
    },
}

/// Who has sent what cannot be, and why it cannot.
pub(crate) type Accusation = (HostId, Impossible);
