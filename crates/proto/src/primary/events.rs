//! What reaches a primary: views, connections, messages. Each goes to the parts that it concerns.

use types::{GroupView, HostId, Term};
use wire::message::{
    Ack, GroupBody, IndexPart, LearnHello, Learned, Reject, Reserved, Residual, ToCoordinator, Welcome,
};

use super::lessons::{Begun, Lessons};
use super::parities::{Parities, ParityPeer, Unwelcome};
use super::repair::{Repaired, answer_read};
use super::{Phase, Primary, Question, Touched};
use crate::outbox::{Context, Peer};

impl Primary {
    /// A newer view that still names this member: parities that left are no longer waited for, sessions start anew.
    pub(crate) fn adopt(&mut self, context: &mut Context<'_>, view: &GroupView) {
        self.touch(Touched::ByEvents);
        let now = context.now.time;
        self.core.adopt(view);
        // Before the parities: their parting asks which lessons have ended.
        self.lessons.adopt(&self.core, now);
        self.hand_over.reconsider(now, &self.core, &mut self.parities, &mut self.stream);
        self.part_with_parities(context);
        self.repair.forget_sessions();
        // Those who left were perhaps all that a record lacked. Nobody recovers from them any more: that is recorded.
        self.advance(context);
        // All parities that are left may have reserved what is asked for.
        if let Some(store) = self.phase.store_mut()
            && self.space.conclude(now, &self.parities, store)
        {
            self.retry_waiting(context);
        }
        self.phase.retry_takeover(context, &self.core, &self.parities);
        self.retry_waiting(context);
        self.go_on_repairing(context);
    }

    /// Parities that have left, unless they are learners whose lesson has ended.
    fn part_with_parities(&mut self, context: &Context<'_>) {
        let (core, lessons) = (&self.core, &self.lessons);
        let left = self.parities.part_with(|peer| {
            core.in_sync().any(|in_sync| in_sync == peer.id()) || lessons.has_ended(peer.id())
        });
        for peer in left {
            self.absentees.expect(&self.core, peer.id().role, peer.applied(), context.now.time);
        }
        self.absentees.adopt(&self.core);
    }

    /// A new connection to `host`: what was in flight on the old one is lost.
    pub(crate) fn link_up(&mut self, context: &mut Context<'_>, host: HostId) {
        self.touch(Touched::ByEvents);
        self.lessons.lose_link(host);
        self.parities.link_up(context, &self.core, host, self.stream.committed());
        // The question may have been lost with the connection before, and no timer repeats it.
        self.space.ask(context, &self.core, &self.parities);
        self.phase.retry_takeover(context, &self.core, &self.parities);
    }

    /// The connection to `host` is gone: nothing can be sent until the next one.
    pub(crate) fn link_down(&mut self, context: &Context<'_>, host: HostId) {
        self.touch(Touched::ByEvents);
        self.lessons.lose_link(host);
        self.parities.link_down(context.now.time, host);
    }

    /// The coordinator asks the primary of `term` to make way for its mirror.
    pub(crate) fn hand_over(&mut self, context: &mut Context<'_>, term: Term, question: Question) {
        self.touch(Touched::ByEvents);
        // The view may be on its way; the coordinator asks again.
        if term != self.core.term() || !self.core.has_whole_mirror(question.since) {
            return;
        }
        self.hand_over.ask(question, context.now.time + context.timing.read_lease_us);
        self.hand_over.answer_if(self.stream.is_empty(), context, &self.core);
    }

    /// A message of another member.
    pub(crate) fn handle(&mut self, context: &mut Context<'_>, from: Peer, body: GroupBody) {
        let is_traffic = matches!(body, GroupBody::Ack(_));
        self.touch(if is_traffic { Touched::ByTraffic } else { Touched::ByEvents });
        match body {
            GroupBody::Welcome(welcome) => self.handle_welcome(context, from, &welcome),
            GroupBody::Ack(ack) => self.handle_ack(context, from, &ack),
            GroupBody::Reject(reject) => self.handle_reject(context, from, &reject),
            GroupBody::Reserved(reserved) => self.handle_reserved(context, from, &reserved),
            GroupBody::IndexPart(part) => self.handle_index_part(context, from, &part),
            GroupBody::Opened(opened) => self.repair.opened(context, &self.core, from.role, opened.session),
            GroupBody::Read(read) => {
                answer_read(context, &self.core, &self.stream, self.phase.store(), &read);
            }
            GroupBody::Residual(residual) => self.handle_residual(context, from, *residual),
            GroupBody::Abort(abort) => self.repair.abort(context, &self.core, abort.session),
            GroupBody::LearnHello(hello) => self.handle_learn_hello(context, from, &hello),
            GroupBody::Learned(learned) => self.handle_learned(context, from, &learned),
            // By name, so that whoever adds a message has to say here who takes it.
            GroupBody::Hello(_)
            | GroupBody::Frame(_)
            | GroupBody::Reserve(_)
            | GroupBody::FetchIndex(_)
            | GroupBody::Open(_)
            | GroupBody::Page(_)
            | GroupBody::Learn(_) => {
                tracing::warn!(from = %from.host, member = %self.core.member(), "not for a primary");
            }
        }
    }

    /// The parity has everything up to `received`: go on from there.
    fn handle_welcome(&mut self, context: &mut Context<'_>, from: Peer, welcome: &Welcome) {
        if welcome.term != self.core.term() {
            return;
        }
        let (committed, now) = (self.stream.committed(), context.now);
        let is_in_sync = self.core.view().parity_host(from.role) == Some(from.host);
        let Some(peer) = stream_to(&mut self.parities, &mut self.lessons, from) else { return };
        match peer.welcome(welcome, committed, is_in_sync, now.time) {
            Ok(()) => {}
            Err(Unwelcome::Impossible(why)) => return context.impossible(from.host, why),
            Err(Unwelcome::Lacking) => {
                let (from, received) = (from.host, welcome.received);
                return tracing::warn!(%from, %received, %committed, "a learner lacks what is gone");
            }
        }
        // Before anything is served: what a former primary told expired must not come back.
        self.wall.learn(from.host, welcome.wall, now.unix);
        self.stream.stir();
        self.advance(context);
    }

    /// Cumulative acknowledgement.
    fn handle_ack(&mut self, context: &mut Context<'_>, from: Peer, ack: &Ack) {
        if ack.term != self.core.term() {
            return;
        }
        let (now, lease_from) = (context.now.time, self.parities.lease_from());
        let Some(peer) = stream_to(&mut self.parities, &mut self.lessons, from) else { return };
        if let Err(why) = peer.acknowledge(ack, lease_from, now) {
            return context.impossible(from.host, why);
        }
        self.stream.stir();
        self.lessons.note_moved(now, from);
        self.advance(context);
        // It may have been all that a learner lacked.
        self.report_ended_lessons(context);
        // Also when nothing was committed: the Ack renews the lease, and tells what second is known.
        self.retry_waiting(context);
    }

    /// A parity refuses this term. The view will say why; until then nothing is acknowledged or read.
    fn handle_reject(&mut self, context: &mut Context<'_>, from: Peer, reject: &Reject) {
        // It was meant for a primary before this one.
        if reject.fence <= self.core.term() {
            return;
        }
        if let Some(peer) = stream_to(&mut self.parities, &mut self.lessons, from) {
            peer.reject();
        }
        context.coordinator(ToCoordinator::FetchView { group: self.core.member().group });
    }

    fn handle_reserved(&mut self, context: &mut Context<'_>, from: Peer, reserved: &Reserved) {
        let Some(store) = self.phase.store_mut().filter(|_| reserved.term == self.core.term()) else {
            return;
        };
        if self.space.hear(context.now.time, from, reserved, &self.parities, store) {
            self.retry_waiting(context);
        }
    }

    fn handle_index_part(&mut self, context: &mut Context<'_>, from: Peer, part: &IndexPart) {
        let Phase::Taking(taking) = &mut self.phase else { return };
        if let Some(store) = taking.take(context, &self.core, from, part) {
            self.phase = Phase::Serving(Box::new(store));
            self.go_on_repairing(context);
            self.retry_waiting(context);
        }
    }

    fn handle_residual(&mut self, context: &mut Context<'_>, from: Peer, residual: Residual) {
        match self.repair.take_residual(context, &self.core, from, residual) {
            Some(Ok(repaired)) => self.fill(context, &repaired),
            Some(Err(unsolved)) => {
                if let Some((repair, site)) = self.repair_at_site() {
                    repair.retry_smaller(context, site, &unsolved);
                }
            }
            None => {}
        }
    }

    /// Pages are back: on with those who wait for them, and with the next ones.
    fn fill(&mut self, context: &mut Context<'_>, repaired: &Repaired) {
        let Some(store) = self.phase.store_mut() else { return };
        let waiters = self.waiting.for_pages();
        // Asked before the pages are there, for then nobody waits for them any more.
        let is_waited_for = waiters.wants(repaired.pages);
        if !self.repair.fill(context, &self.core, store, repaired, is_waited_for) {
            return;
        }
        waiters.came(repaired.pages, |pages| store.pages_present(pages));
        self.retry_waiting(context);
        self.go_on_repairing(context);
    }

    /// A learner wants its lesson.
    fn handle_learn_hello(&mut self, context: &mut Context<'_>, from: Peer, hello: &LearnHello) {
        let Some(store) = self.phase.store() else { return };
        let begun = self.lessons.begin(context, &self.core, &self.stream, store, from, hello);
        let Some(begun) = begun else { return };
        // A lesson from here may have ended before, and was waited for. But one that asks anew lacks the lesson of
        // another primary, so no view has it in sync, and nobody needs its Acks.
        self.parities.remove(from);
        if let Begun::After(applied) = begun {
            // What it lacks has to stay until it is sent.
            self.absentees.expect(&self.core, from.role, applied, context.now.time);
        }
        self.stream.stir();
        self.advance(context);
    }

    /// A learner has understood a part.
    fn handle_learned(&mut self, context: &mut Context<'_>, from: Peer, learned: &Learned) {
        if learned.term != self.core.term() {
            return;
        }
        self.stream.stir();
        let ended = self.lessons.understood(context, self.phase.store(), from, learned);
        if let Some(peer) = ended {
            // From here on its Acks count; CaughtUp comes after that, and the view after CaughtUp (I6).
            self.parities.add(peer);
            // It has a say about an extent that is being asked for, too.
            self.space.ask(context, &self.core, &self.parities);
            self.go_on_repairing(context);
        }
        if self.lessons.has_ended(from) {
            self.report_ended_lessons(context);
        }
    }
}

/// The stream to a parity that is waited for, or to a learner.
fn stream_to<'a>(
    parities: &'a mut Parities,
    lessons: &'a mut Lessons,
    peer: Peer,
) -> Option<&'a mut ParityPeer> {
    match parities.find_mut(peer) {
        Some(parity) => Some(parity),
        None => lessons.stream_to(peer),
    }
}
