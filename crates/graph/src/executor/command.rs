//! What an executor is given, and what it wants done.

use std::sync::Arc;

use bytes::Bytes;
use types::RoleIndex;

use crate::graph::{Graph, Place, RunId};
use crate::message::Message;
use crate::rules::Rules;

/// Bounds and rules of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// What all runs together may reserve.
    pub memory_bytes: u64,
    /// Of that, what only readers get.
    pub reader_reserve_bytes: u64,
    /// Which rules hold.
    pub rules: Rules,
}

/// What whoever drives an executor has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send a message. `Place::Asker` is the asker of `run`; a place may be this process.
    Send {
        /// By which of this process's places.
        from: Place,
        /// To whom.
        to: Place,
        /// Of which run.
        run: RunId,
        /// What.
        message: Message,
    },
    /// Put bytes of a chunk where they are not seen yet.
    Write {
        /// Of which run, at which place.
        run: (RunId, Place),
        /// Whose chunk.
        role: RoleIndex,
        /// From which byte of the strand.
        offset: u32,
        /// Which bytes.
        bytes: Bytes,
    },
    /// All that the run writes here has been written: keep it if its checksum is right, and call [`handle_kept`](super::Executor::handle_kept).
    Complete {
        /// Of which run, at which place.
        run: (RunId, Place),
        /// Its graph.
        graph: Arc<Graph>,
    },
    /// Forget what the run has written.
    Discard {
        /// Of which run, at which place.
        run: (RunId, Place),
    },
}

/// One process's part in one run. A node that asks may take part as asker and as node.
pub(super) type Key = (RunId, Place);
