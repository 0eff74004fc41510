//! Requests for data roles of the pool that a namespace moves to (docs/pools.md, "To another pool"). Their groups may be another
//! worker's, so the driver takes them there and brings the answer back.

use std::collections::BTreeMap;

use types::op::{Departure, Failure, Outcome, Via};

use super::Host;
use super::driver::Action;
use super::homes::After;
use crate::Now;
use crate::outbox::{Ask, ReplyTo};
use crate::primary::{Pending, Primary};
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
    /// The next one that the driver has to take on.
    pub(super) fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.waiting.len() * size_of::<(u64, ReplyTo)>() + self.actions.capacity() * size_of::<Action>()
    }
}

impl Host {
    /// What came of a request that the driver took on ([`Action::Ask`]).
    pub fn hear_onward(&mut self, now: Now, number: u64, outcome: Outcome) {
        if let Some(reply) = self.onward.waiting.remove(&number) {
            self.around.out().reply(reply, outcome);
            self.carry_out(now);
        }
    }

    /// The primary where the key is by the map has not got it: whoever it may have been given to is asked.
    pub(super) fn follow(&mut self, now: Now, mut pending: Pending, departure: Departure) {
        let reply = pending.reply;
        if let ReplyTo::Remote { .. } = reply {
            // One hop only: the sender has the map, too.
            return self.around.out().reply(reply, Outcome::Failed(Failure::Departed(departure)));
        }
        pending.request.via = Some(Box::new(Via::Departed(departure)));
        match self.views.locate_after(pending.request.key_bytes(), departure.number) {
            After::Next(place) => self.ask_onward(Ask { reply, place, request: pending.request }),
            After::Home(_) => {
                pending.request.via = None;
                self.route_anew(now, None, pending);
            }
            After::NewerMap => {
                if let Some(busy) = self.routes.wait(&self.around.config().limits, None, pending) {
                    self.around.out().reply(reply, busy);
                }
            }
        }
    }

    fn ask_onward(&mut self, ask: Ask) {
        let Ask { reply, place, request } = ask;
        if self.onward.len() >= self.around.config().limits.forwarded_requests {
            return self.around.out().reply(reply, request.in_all(Outcome::Failed(Failure::Busy)));
        }
        self.onward.numbers += 1;
        let number = self.onward.numbers;
        self.onward.waiting.insert(number, reply);
        self.onward.actions.push_back(Action::Ask { number, place, request });
    }

    /// What primaries of this host want of other pools, and what they hear; whether there was anything.
    pub(super) fn exchange_onward(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some((pending, departure)) = self.around.out().departed.pop_front() {
            any = true;
            self.follow(now, pending, departure);
        }
        while let Some(ask) = self.around.out().asks.pop_front() {
            any = true;
            self.ask_onward(ask);
        }
        while let Some((member, number, outcome)) = self.around.out().to_givers.pop_front() {
            any = true;
            let hear = |primary: &mut Primary, context: &mut crate::outbox::Context<'_>| {
                primary.hear_receiver(context, number, &outcome);
            };
            self.members.primaries_mut().with(&mut self.around, now, member, hear);
        }
        any
    }
}
