//! One request of a transfer to one holder, or to the owner.

use std::collections::VecDeque;

use bytes::Bytes;
use native::{Ask, Cells, GetAsk, Request};
use types::op::Key;

use crate::event::RequestId;
use crate::request::{Place, Upload};

/// See the module.
#[derive(Debug)]
pub(super) struct Part {
    /// Whose.
    pub parent: RequestId,
    pub what: What,
    pub request: Request,
    /// Cells that go behind it.
    pub upload: Option<Upload>,
    pub place: Option<Place>,
}

/// What it is for.
#[derive(Debug)]
pub(super) enum What {
    /// Cells of one role are wanted: what has been announced of them, and how many have come.
    Fetch { batch: u64, role: u8, cells: Option<(Cells, u32)> },
    /// What is wanted of a lost cell is to be made: how it was asked for, and what has come since the node has said that it comes.
    Made { batch: u64, role: u8, ask: GetAsk, come: Option<Bytes> },
    /// A chunk is put.
    Put { stripe: u32 },
    /// The id of the value is to stay open.
    Renewal,
    /// The owner is told something, as that a transfer is over or goes on; what it says to that is of no interest.
    Farewell,
}

impl What {
    /// Whether it ends with its transfer.
    pub(super) fn is_of_transfer(&self) -> bool {
        !matches!(self, Self::Farewell | Self::Renewal)
    }
}

impl Part {
    pub(super) fn new(parent: RequestId, key: Key, what: What, ask: Ask, cells: VecDeque<Bytes>) -> Self {
        let request = Request { key, deadline_ms: 0, once: None, ask };
        let upload = (!cells.is_empty()).then(|| Upload::of_cells(cells));
        Self { parent, what, request, upload, place: None }
    }
}
