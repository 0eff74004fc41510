//! Events, by time and number.

use std::collections::BTreeMap;

use types::NodeId;

use super::names::{Fault, Who};
use crate::graph::Place;
use crate::message::Message;

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) struct Mail {
    pub from: Who,
    /// As what it was sent.
    pub me: Place,
    pub to: Who,
    /// As what it is received.
    pub at: Place,
    pub message: Message,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// The last byte is at the receiver's link.
    Landed(Mail),
    /// The last byte is through it.
    Arrived(Mail),
    /// A process is not busy any more.
    Wake(Who),
    Timer(Who),
    /// `who` learns that its connection to `node` is gone.
    Lost {
        who: Who,
        node: NodeId,
    },
    Fault(Fault),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    events: BTreeMap<(u64, u64), Event>,
    number: u64,
}

impl Queue {
    pub(super) fn push(&mut self, ns: u64, event: Event) {
        self.number += 1;
        self.events.insert((ns, self.number), event);
    }

    pub(super) fn pop_until(&mut self, ns: u64) -> Option<(u64, Event)> {
        let first = self.events.first_entry()?;
        let at = first.key().0;
        (at <= ns).then(|| (at, first.remove()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
