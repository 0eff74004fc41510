//! Requests follow their keys to other pools and other workers (docs/pools.md, "To another pool").

use types::MemberId;
use types::op::{Departure, Failure, Outcome, Via};

use super::Host;
use super::driver::Place;
use super::homes::After;
use crate::Now;
use crate::outbox::{Ask, Context, Passage, ReplyTo};
use crate::primary::{Pending, Primary};

/// What a host does about such requests, at one moment.
pub struct Following<'a> {
    host: &'a mut Host,
    now: Now,
}

impl Host {
    /// For requests that go to other workers.
    pub fn following(&mut self, now: Now) -> Following<'_> {
        Following { host: self, now }
    }
}

impl Following<'_> {
    /// What came of a request that the driver took on ([`crate::Action::Ask`]).
    pub fn hear(&mut self, number: u64, outcome: Outcome) {
        if let Some(reply) = self.host.onward.answered(number) {
            self.host.around.out().reply(reply, outcome);
            self.host.carry_out(self.now);
        }
    }

    /// The primary where the key is by the map has not got it: whoever it may have been given to is asked.
    pub(super) fn follow(&mut self, mut pending: Pending, from: MemberId, departure: Departure) {
        let reply = pending.reply;
        let rules = self.host.around.config().rules.conversions();
        if rules.items_are_not_sent_on(pending.request.is_transfer()) {
            // It is for the one that was asked, now, or for nobody.
            let refused = Outcome::Failed(Failure::WrongPrimary);
            return self.host.around.out().reply(reply, refused);
        }
        if let ReplyTo::Remote { .. } = reply {
            // One hop only: the sender has the map, too. If it is an older one than there is here, it has to wait for this: by what it knows
            // it could take the key for gone by a conversion that was turned back.
            let conversions = self.host.views.conversions_of(pending.request.namespace());
            let is_former = conversions.is_some_and(|conversions| departure.number < conversions);
            let failure = if is_former { Failure::WrongPrimary } else { Failure::Departed(departure) };
            return self.host.around.out().reply(reply, Outcome::Failed(failure));
        }
        pending.request.via = Some(Box::new(Via::Departed(departure)));
        match self.host.views.locate_after(pending.request.key_bytes(), departure.number) {
            After::Next(place) => self.ask(Ask { reply, place, request: pending.request }),
            After::Home(place) if place.member != Some(from) => {
                pending.request.via = None;
                self.host.route_anew(self.now, None, pending);
            }
            // Another map is on its way, to here or to who has said so.
            After::Home(_) | After::NewerMap => {
                pending.request.via = None;
                if let Some(busy) = self.host.routes.wait(&self.host.around.config().limits, None, pending) {
                    self.host.around.out().reply(reply, busy);
                }
            }
        }
    }

    /// The group of what a request is about, which has waited here, is another worker's by now.
    pub(super) fn cross(&mut self, place: Place, pending: Pending) -> Option<Outcome> {
        if let ReplyTo::Remote { .. } = pending.reply {
            return Some(Outcome::Failed(Failure::WrongPrimary));
        }
        self.ask(Ask { reply: pending.reply, place, request: pending.request });
        None
    }

    fn ask(&mut self, ask: Ask) {
        if let Err((reply, busy)) = self.host.onward.ask(&self.host.around.config().limits, ask) {
            self.host.around.out().reply(reply, busy);
        }
    }

    /// What primaries of this host want of other pools, and what they hear; whether there was anything.
    pub(super) fn exchange(&mut self) -> bool {
        let mut any = false;
        while let Some(passage) = self.host.around.out().passages.pop_front() {
            any = true;
            match passage {
                Passage::Departed(pending, from, departure) => self.follow(pending, from, departure),
                Passage::Ask(ask) => self.ask(ask),
                Passage::Answer(giver, number, outcome) => self.tell_giver(giver, number, &outcome),
            }
        }
        any
    }

    fn tell_giver(&mut self, giver: MemberId, number: u64, outcome: &Outcome) {
        let hear = |giver: &mut Primary, context: &mut Context<'_>| {
            giver.hear_receiver(context, number, outcome);
        };
        self.host.members.primaries_mut().with(&mut self.host.around, self.now, giver, hear);
    }
}
