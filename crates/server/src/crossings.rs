//! Requests between the workers of one node, where a connection's worker is not the one that has the key's group.
//!
//! Both ways go in batches, one a pump cycle. The queues are bounded by the gate of the worker that asks: every request
//! in them weighs on a connection there.

use std::cell::RefCell;

use cluster::MemberId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wire::op::{Outcome, Request};

/// One thing that a worker tells another.
#[derive(Debug)]
pub(crate) enum Crossing {
    /// A request.
    Ask {
        /// The asking worker's name for it.
        ticket: u64,
        /// The data role that is meant; none = the one of the key.
        member: Option<MemberId>,
        /// The operation.
        request: Request,
    },
    /// The answer.
    Answer {
        /// As in the request.
        ticket: u64,
        /// What came of it.
        outcome: Outcome,
    },
}

/// What arrives at once: from which worker, and what.
pub(crate) type Batch = (u16, Vec<Crossing>);

/// The sending side of one worker.
#[derive(Debug)]
pub(crate) struct Crossings {
    me: u16,
    senders: Vec<UnboundedSender<Batch>>,
    outbox: RefCell<Vec<Vec<Crossing>>>,
}

impl Crossings {
    /// Everybody's senders and receivers, by worker.
    pub(crate) fn mesh(workers: u16) -> Vec<(Self, UnboundedReceiver<Batch>)> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| unbounded_channel()).unzip();
        let one = |(me, receiver)| {
            let outbox = RefCell::new((0..workers).map(|_| Vec::new()).collect());
            (Self { me, senders: senders.clone(), outbox }, receiver)
        };
        (0..workers).zip(receivers).map(one).collect()
    }

    /// Puts `crossing` into the next batch to `worker`.
    pub(crate) fn push(&self, worker: u16, crossing: Crossing) {
        self.outbox.borrow_mut()[usize::from(worker)].push(crossing);
    }

    /// Sends the batches.
    pub(crate) fn flush(&self) {
        for (batch, sender) in self.outbox.borrow_mut().iter_mut().zip(&self.senders) {
            if !batch.is_empty() {
                // A worker that is gone takes the node with it.
                let _ = sender.send((self.me, std::mem::take(batch)));
            }
        }
    }
}
