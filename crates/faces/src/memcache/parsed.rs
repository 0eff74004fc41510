//! What a command line amounts to, before its data block has come.

use types::op::Request;

use super::lines::Line;
use super::style::{ReplyStyle, WithCas};
use crate::face::Streamed;

/// A storage command that waits for its data block.
#[derive(Debug)]
pub(super) struct Pending {
    pub what: PendingKind,
    /// Length of the block without its end of line.
    pub len: usize,
}

#[derive(Debug)]
pub(super) enum PendingKind {
    /// A storage command, its value still empty.
    Store(Box<Request>, ReplyStyle),
    /// Credentials.
    Credentials,
}

/// What one line amounts to.
#[derive(Debug)]
pub(super) enum Parsed {
    Done(Ask),
    /// The answer is this.
    Answer(Line),
    Quit,
    Say(Line),
    /// An error that the client asked not to hear of.
    Hush,
    Await(Pending),
    /// A value whose bytes follow, and are taken by whoever has the connection.
    Stream(Box<Streamed<ReplyStyle>>),
    /// Refused, and so many bytes of a data block follow; none if the client asked not to hear of it.
    Swallow {
        then: Option<Box<Step>>,
        bytes: usize,
    },
    Close,
}

/// What a client asks for.
pub type Ask = crate::Ask<ReplyStyle, WithCas>;

/// What comes next on a connection.
pub type Step = crate::Step<ReplyStyle, WithCas>;
