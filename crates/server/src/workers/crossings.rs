//! Requests between the workers of one node, where a connection's worker is not the one that has the key's group.
//!
//! Both ways go in batches, one a pump cycle. A worker has at most [`CROSSINGS_OPEN`] unanswered requests at each other one; what is
//! beyond is refused, before anything was done. An answer travels on the room of its request, so neither side ever waits for room at the
//! other. The bytes of requests and answers weigh on a connection of the worker that asks, and are bounded by its gate.
//!
//! Values that come bit by bit cross in the same batches. They are bounded for themselves (`streams`), and have no part in the count.

use std::cell::{Cell, RefCell};

use proto::Place;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use types::Time;
use types::op::{Outcome, Request};

use crate::limits::CROSSINGS_OPEN;
use crate::workers::asker::Asker;
use crate::workers::streams::{News, Order};

/// One thing that a worker tells another.
#[derive(Debug)]
pub(crate) enum Crossing {
    /// A request.
    Ask(Asking),
    /// The answer.
    Answer {
        /// As in the request.
        asker: Asker,
        /// What came of it.
        outcome: Outcome,
    },
    /// Something to be done for a stream.
    Order {
        /// Whose it is.
        asker: Asker,
        /// What.
        order: Order,
    },
    /// What came of that.
    News {
        /// As in the order.
        asker: Asker,
        /// What.
        news: News,
    },
}

/// A request of another worker.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Whose it is.
    pub asker: Asker,
    /// Where it goes.
    pub place: Place,
    /// When it was asked.
    pub asked: Time,
    /// The operation.
    pub request: Box<Request>,
}

/// What arrives at once: from which worker, and what.
pub(crate) type Batch = (u16, Vec<Crossing>);

/// The sending side of one worker.
#[derive(Debug)]
pub(crate) struct Crossings {
    me: u16,
    senders: Vec<Sender<Batch>>,
    outbox: RefCell<Vec<Vec<Crossing>>>,
    /// How many requests each worker has not answered yet.
    open: Vec<Cell<usize>>,
}

impl Crossings {
    /// Everybody's senders and receivers, by worker.
    pub(crate) fn mesh(workers: u16) -> Vec<(Self, Receiver<Batch>)> {
        // As many batches as there can be requests and answers, were each one alone in its batch: it is never full.
        let room = usize::from(workers).max(1) * 2 * CROSSINGS_OPEN;
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| channel(room)).unzip();
        let one = |(me, receiver)| {
            let outbox = RefCell::new((0..workers).map(|_| Vec::new()).collect());
            let open = (0..workers).map(|_| Cell::new(0)).collect();
            (Self { me, senders: senders.clone(), outbox, open }, receiver)
        };
        (0..workers).zip(receivers).map(one).collect()
    }

    /// Whether `worker` may be asked one thing more.
    pub(crate) fn may_ask(&self, worker: u16) -> bool {
        self.open[usize::from(worker)].get() < CROSSINGS_OPEN
    }

    /// Puts a request into the next batch to `worker`, which may be asked.
    pub(crate) fn ask(&self, worker: u16, asking: Asking) {
        // Counted here and not when it is sent: several requests of one cycle must not pass the bound together.
        let open = &self.open[usize::from(worker)];
        open.set(open.get() + 1);
        self.push(worker, Crossing::Ask(asking));
    }

    /// Puts the answer to `asker` into the next batch to its worker.
    pub(crate) fn answer(&self, asker: Asker, outcome: Outcome) {
        self.push(asker.shard, Crossing::Answer { asker, outcome });
    }

    /// Puts what is to be done for a stream into the next batch to `worker`.
    pub(crate) fn order(&self, worker: u16, asker: Asker, order: Order) {
        self.push(worker, Crossing::Order { asker, order });
    }

    /// Puts what came of it into the next batch to its worker.
    pub(crate) fn tell(&self, asker: Asker, news: News) {
        self.push(asker.shard, Crossing::News { asker, news });
    }

    /// An answer of `worker` has come.
    pub(crate) fn answered(&self, worker: u16) {
        let open = &self.open[usize::from(worker)];
        open.set(open.get() - 1);
    }

    fn push(&self, worker: u16, crossing: Crossing) {
        self.outbox.borrow_mut()[usize::from(worker)].push(crossing);
    }

    /// Sends the batches.
    pub(crate) fn flush(&self) {
        for (batch, sender) in self.outbox.borrow_mut().iter_mut().zip(&self.senders) {
            if batch.is_empty() {
                continue;
            }
            // A worker that is gone takes the node with it. Were a queue full against the count, nothing would be lost.
            if let Err(TrySendError::Full((_, kept))) = sender.try_send((self.me, std::mem::take(batch))) {
                *batch = kept;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use types::KeyHash;
    use types::op::{Get, Op};

    use super::*;
    use crate::workers::asker::Awaits;

    const PLACE: Place = Place { hash: KeyHash(0), member: None, refusal: None };

    fn asker(worker: &Crossings, slot: u64) -> Asker {
        Asker { shard: worker.me, connection: 0, slot, awaits: Awaits::Answer }
    }

    fn asks_until_refused(from: &Crossings, worker: u16) -> u64 {
        let mut asked = 0;
        while from.may_ask(worker) {
            let key = types::op::Key::new(Bytes::from_static(b"k")).ok();
            let request = Request { key, op: Op::Get(Get::default()), once: None, via: None };
            from.ask(
                worker,
                Asking { asker: asker(from, asked), place: PLACE, asked: Time(1), request: request.into() },
            );
            // The worst for the queue: a batch for each.
            from.flush();
            asked += 1;
        }
        asked
    }

    /// Takes what has come; which requests are answered.
    fn serves(me: &Crossings, inbox: &mut Receiver<Batch>) -> Vec<u64> {
        let mut answered = Vec::new();
        while let Ok((from, batch)) = inbox.try_recv() {
            for crossing in batch {
                match crossing {
                    Crossing::Ask(asking) => me.answer(asking.asker, Outcome::Miss),
                    Crossing::Answer { asker, .. } => {
                        me.answered(from);
                        answered.push(asker.slot);
                    }
                    Crossing::Order { .. } | Crossing::News { .. } => {}
                }
                me.flush();
            }
        }
        answered
    }

    #[test]
    fn two_workers_that_are_full_of_each_others_requests_both_get_every_answer() {
        let mut mesh = Crossings::mesh(2);
        let (right, mut to_right) = mesh.pop().expect("two");
        let (left, mut to_left) = mesh.pop().expect("two");
        let bound = CROSSINGS_OPEN as u64;
        assert_eq!((asks_until_refused(&left, 1), asks_until_refused(&right, 0)), (bound, bound));
        // Each serves without looking at what the other does.
        let early = serves(&left, &mut to_left);
        assert!(early.is_empty() && !left.may_ask(1));
        let answers = serves(&right, &mut to_right);
        assert!(answers.into_iter().eq(0..bound), "what right has asked");
        assert!(serves(&left, &mut to_left).into_iter().eq(0..bound), "what left has asked");
        assert!(left.may_ask(1) && right.may_ask(0));
    }

    #[test]
    fn a_worker_that_takes_nothing_is_asked_for_no_more_than_the_bound_and_others_go_on() {
        let mut mesh = Crossings::mesh(3);
        let (_third, mut to_third) = mesh.pop().expect("three");
        let (_stuck, _to_stuck) = mesh.pop().expect("three");
        let (first, _to_first) = mesh.pop().expect("three");
        assert_eq!(asks_until_refused(&first, 1), CROSSINGS_OPEN as u64);
        assert!(!first.may_ask(1) && first.may_ask(2));
        let request = Request { key: None, op: Op::Debug, once: None, via: None };
        first.ask(
            2,
            Asking { asker: asker(&first, 7), place: PLACE, asked: Time(1), request: request.into() },
        );
        first.flush();
        assert!(matches!(to_third.try_recv(), Ok((0, batch)) if batch.len() == 1));
    }
}
