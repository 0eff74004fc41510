//! From a key to the primary that serves it, here or elsewhere, through failures.
//!
//! A request that has not reached a primary waits for one, up to its deadline. One that may have reached a primary
//! which is then lost is sent again only if doing it twice is harmless, or if it has a name under which it is done once; else its
//! outcome is unknown, and that is said.

use types::op::{Failure, Outcome, Request};
use types::{GroupView, HostId, MemberId, RoleStatus};
use wire::message::{Answer, Forward};

use super::Host;
use super::driver::{Place, Submitted, Token};
use super::routes::Forwarded;
use crate::Now;
use crate::outbox::ReplyTo;
use crate::primary::{Pending, is_repeatable};

impl Host {
    /// A client's request for what is at `place`, by a key of this shard's groups or for a whole data role (`flush_all`); forwarded
    /// if the primary is elsewhere.
    pub fn submit(
        &mut self,
        now: Now,
        token: Token,
        place: Place,
        request: impl Into<Box<Request>>,
    ) -> Submitted {
        let request = request.into();
        self.stats.count_request(&request.op);
        let config = self.around.config();
        let deadline = now.time + config.timing.request_deadline_us;
        let pending = Pending { reply: ReplyTo::Local(token), hash: place.hash, request, deadline };
        let done = match (place.refusal, place.member) {
            (Some(why), _) => Some(Outcome::Failed(why)),
            (None, Some(member)) => self.route_once(now, member, pending),
            (None, None) => self.routes.wait(&config.limits, None, pending),
        };
        self.carry_out(now);
        done.map_or(Submitted::Pending, Submitted::Done)
    }

    /// Routes a request that has waited, for what `member` has if it is known: what was lost or removed meanwhile is refused. An
    /// answer known at once goes to the outbox.
    pub(super) fn route_anew(&mut self, now: Now, member: Option<MemberId>, mut pending: Pending) {
        let place = self.views.place_of(member, &pending.request);
        pending.hash = place.hash;
        let reply = pending.reply;
        let done = match (place.refusal, place.member) {
            (Some(why), _) => Some(Outcome::Failed(why)),
            (None, Some(member)) if !self.is_of_this_shard(member.group) => {
                self.following(now).cross(place, pending)
            }
            (None, Some(member)) => self.route_once(now, member, pending),
            (None, None) => self.routes.wait(&self.around.config().limits, None, pending),
        };
        if let Some(outcome) = done {
            self.around.out().reply(reply, outcome);
        }
    }

    fn route_once(&mut self, now: Now, member: MemberId, pending: Pending) -> Option<Outcome> {
        if self.members.primaries().serve(member) {
            let submit = |primary: &mut crate::primary::Primary, context: &mut crate::outbox::Context<'_>| {
                primary.submit(context, &pending)
            };
            return self.members.primaries_mut().with(&mut self.around, now, member, submit)?;
        }
        if let ReplyTo::Remote { .. } = pending.reply {
            // One hop only: the sender has the map, too, and looks again.
            return Some(Outcome::Failed(Failure::WrongPrimary));
        }
        let role = self.views.group(member.group).and_then(|view| view.data_role(member.role));
        let Some(role) = role.copied() else { return Some(Outcome::Failed(Failure::Unavailable)) };
        // What is accepted begins anew soon: requests wait for that as for any primary.
        if role.status == RoleStatus::Lost {
            return Some(Outcome::Failed(Failure::Lost));
        }
        let limits = &self.around.config().limits;
        let Some(to) = role.primary.filter(|host| self.links.has(*host)) else {
            // An item that is given away is sent again by whoever has it still.
            let goes_now = pending.request.is_transfer();
            return if goes_now {
                Some(Outcome::Failed(Failure::Unavailable))
            } else {
                self.routes.wait(limits, Some(member), pending)
            };
        };
        match self.routes.forward(limits, Forwarded { to, member, pending, sent: now.time }) {
            Ok(message) => {
                self.around.out().send(to.node, message);
                None
            }
            Err(busy) => Some(busy),
        }
    }

    /// A request of another host's client.
    pub(super) fn handle_forward(&mut self, now: Now, from: HostId, forward: Forward) {
        let member = MemberId { group: forward.group, role: forward.role };
        let place = self.views.place_of(Some(member), &forward.request);
        let reply = ReplyTo::Remote { host: from, id: forward.id };
        if let Some(why) = place.refusal {
            return self.around.out().reply(reply, Outcome::Failed(why));
        }
        // A key that lies elsewhere must not be written here: nobody would find it again.
        if self.views.map().is_none() || place.member != Some(member) {
            return self.around.out().reply(reply, Outcome::Failed(Failure::WrongPrimary));
        }
        self.stats.received_forwards += 1;
        let deadline = now.time + self.around.config().timing.request_deadline_us;
        let pending = Pending { reply, hash: place.hash, request: forward.request, deadline };
        if let Some(outcome) = self.route_once(now, member, pending) {
            self.around.out().reply(reply, outcome);
        }
    }

    pub(super) fn handle_answer(&mut self, now: Now, from: HostId, answer: Answer) {
        let forwarded = match self.routes.answered(from, &answer) {
            Ok(Some(forwarded)) => forwarded,
            Ok(None) => return,
            Err(why) => return self.around.out().accusations.push((from, why)),
        };
        let Forwarded { member, pending, sent, .. } = forwarded;
        let reply = pending.reply;
        if let Outcome::Failed(Failure::Departed(departure)) = answer.outcome {
            self.following(now).follow(pending, member, departure);
        } else if answer.outcome == Outcome::Failed(Failure::WrongPrimary) && !pending.request.is_transfer() {
            // Nothing was done there. Look again when the view changes, or soon.
            self.fetch_view(now, member.group);
            if let Some(busy) = self.routes.wait(&self.around.config().limits, Some(member), pending) {
                self.around.out().reply(reply, busy);
            }
        } else if answer.outcome == Outcome::Failed(Failure::Unknown) && may_ask_again(&pending.request) {
            // That primary does not know; the next one does.
            self.fetch_view(now, member.group);
            self.route_anew(now, Some(member), pending.once_more());
        } else {
            let (kind, out) = (pending.request.op.kind(), self.around.out());
            out.latencies.network.record(kind, sent, now.time);
            out.reply(reply, answer.outcome);
        }
    }

    /// Forwards whose host can no longer be expected to answer: again if harmless, else unknown.
    pub(super) fn abandon_forwards(&mut self, now: Now, lost: impl Fn(&Forwarded) -> bool) {
        for Forwarded { member, pending, .. } in self.routes.take_forwarded(lost) {
            if is_repeatable(&pending.request.op) || pending.request.once.is_some() {
                self.route_anew(now, Some(member), pending.once_more());
            } else {
                self.around.out().reply(pending.reply, Outcome::Failed(Failure::Unknown));
            }
        }
    }

    /// Forwards to primaries that `view` no longer names and that are gone. One that lives and has made way answers itself.
    pub(super) fn abandon_forwards_of(&mut self, now: Now, view: &GroupView) {
        let answering = self.answering();
        self.abandon_forwards(now, |forwarded| {
            forwarded.member.group == view.group
                && view.data_role(forwarded.member.role).and_then(|role| role.primary) != Some(forwarded.to)
                && !answering.contains(&forwarded.to)
        });
    }

    /// Nodes have changed: forwards to those that are gone, and that were left to answer themselves when they made way.
    pub(super) fn abandon_forwards_to_the_lost(&mut self, now: Now) {
        let answering = self.answering();
        let Some(map) = self.views.map() else { return };
        let is_deposed = |forwarded: &&Forwarded| map.primary_of(forwarded.member) != Some(forwarded.to);
        let deposed: Vec<MemberId> =
            self.routes.forwarded().filter(is_deposed).map(|forwarded| forwarded.member).collect();
        self.abandon_forwards(now, |forwarded| {
            deposed.contains(&forwarded.member) && !answering.contains(&forwarded.to)
        });
    }

    /// Processes that live, by the map, and are linked.
    fn answering(&self) -> Vec<HostId> {
        let lives = |host: &HostId| {
            let known = self.views.map().and_then(|map| map.node(host.node));
            known.is_some_and(|info| info.host == *host && info.alive)
        };
        self.links.peers().filter(lives).collect()
    }

    /// Tries all waiting requests again.
    pub(super) fn reroute(&mut self, now: Now) {
        if self.views.map().is_none() {
            return;
        }
        for (member, pending) in self.routes.take_unrouted(now.time) {
            self.route_anew(now, member, pending);
        }
    }
}

/// Whether this host asks again what became of a write: once, and then its client decides.
fn may_ask_again(request: &Request) -> bool {
    request.once.is_some() && !request.comes_again()
}
