//! The bytes of a value that lies in chunks, on their way to a client that reads it.
//!
//! A connection fetches one such value at a time: the one whose turn it is to be printed. What has come is moved into the output while that has
//! room, and only then asked for anew: so a slow reader holds one window of parts and one full output. Before anything of a value is
//! printed a failure is that of any read; later there is no way to tell but to close the connection.

use std::collections::VecDeque;

use bytes::Bytes;
use types::op::{Failure, Outcome};

use crate::workers::streams::News;

/// See the module.
pub(crate) struct Download {
    /// Of the reply that it is a part of.
    pub(super) slot: u64,
    /// The worker that has the object's groups.
    pub(super) shard: u16,
    pub(super) parts: VecDeque<Bytes>,
    /// Bytes of them.
    pub(super) held: usize,
    /// Whether something of the value has been printed.
    pub(super) begun: bool,
    pub(super) end: Option<Result<(), Failure>>,
}

impl Download {
    pub(super) fn new(slot: u64, shard: u16) -> Self {
        Self { slot, shard, parts: VecDeque::new(), held: 0, begun: false, end: None }
    }

    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// Bytes that it holds.
    pub(crate) fn weight(&self) -> usize {
        self.held
    }

    /// Whether there is something to be printed.
    pub(crate) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The host says something.
    pub(crate) fn hear(&mut self, news: News) {
        match news {
            News::Part(bytes) => {
                self.held += bytes.len();
                self.parts.push_back(bytes);
            }
            News::Whole => self.end = Some(Ok(())),
            News::Ended(Outcome::Failed(failure)) => self.end = Some(Err(failure)),
            News::Ended(_) | News::Room(_) | News::Cells(_) => {
                debug_assert!(false, "a read ends whole or with a failure")
            }
        }
    }

    pub(super) fn take_part(&mut self) -> Option<Bytes> {
        let part = self.parts.pop_front()?;
        self.held -= part.len();
        Some(part)
    }
}
