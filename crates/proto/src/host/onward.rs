//! Requests for data roles of the pool that a namespace moves to (docs/pools.md, "To another pool"). Their groups may be another
//! worker's, so the driver takes them there and brings the answer back.

use std::collections::BTreeMap;

use types::op::{Failure, Outcome};

use super::driver::Action;
use crate::Limits;
use crate::outbox::{Ask, ReplyTo};
use crate::queue::Queue;

/// See the module.
#[derive(Default)]
pub(super) struct Onward {
    /// Who waits, by number.
    waiting: BTreeMap<u64, ReplyTo>,
    numbers: u64,
    /// For the driver.
    actions: Queue<Action>,
}

impl Onward {
    /// The driver is to take it on; the answer if it takes no more.
    pub(super) fn ask(&mut self, limits: &Limits, ask: Ask) -> Result<(), (ReplyTo, Outcome)> {
        let Ask { reply, place, request } = ask;
        // Items that move leave room for clients.
        let most = match reply {
            ReplyTo::Giver(..) => (limits.forwarded_requests / 2).max(1),
            _ => limits.forwarded_requests,
        };
        if self.waiting.len() >= most {
            return Err((reply, request.in_all(Outcome::Failed(Failure::Busy))));
        }
        self.numbers += 1;
        let number = self.numbers;
        self.waiting.insert(number, reply);
        self.actions.push_back(Action::Ask { number, place, request });
        Ok(())
    }

    /// Who waits for the answer to this one, if anybody does.
    pub(super) fn answered(&mut self, number: u64) -> Option<ReplyTo> {
        self.waiting.remove(&number)
    }

    /// The next one that the driver has to take on.
    pub(super) fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// How many wait for it.
    pub(super) fn len(&self) -> usize {
        self.actions.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.waiting.len() * size_of::<(u64, ReplyTo)>() + self.actions.capacity() * size_of::<Action>()
    }
}
