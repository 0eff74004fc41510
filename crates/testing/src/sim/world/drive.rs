//! Inputs into state machines, and what they want done.

use proto::{Action, Now, Place, Submitted, Verdict};
use types::HostId;
use wire::message::{FromCoordinator, GroupBody, LearnPart, PeerMessage};

use super::super::book::Suspect;
use super::super::brief::{Brief, number_of};
use super::super::faults::Target;
use super::super::network::Parcel;
use super::super::options::Batching;
use super::super::process::{Input, Life, now_at};
use super::super::queue::Event;
use super::{MAX_IDLE_TICKS, World};

impl World {
    /// Gives `input` to `node`: at once, or when it goes on after a pause.
    pub(crate) fn give(&mut self, node: usize, input: Input) {
        match self.nodes[node].state {
            Life::Up => self.feed(node, input),
            Life::Paused => self.nodes[node].backlog.push_back(input),
            Life::Down => {}
        }
    }

    /// What `host` reads on its clocks.
    pub(crate) fn now_of(&self, host: usize) -> Now {
        now_at(&self.stage.options, &self.nodes[host / self.stage.options.shards].clock, self.stage.now())
    }

    pub(crate) fn feed(&mut self, node: usize, input: Input) {
        let first = node * self.stage.options.shards;
        match input {
            Input::Peer { shard, from, message } => {
                let host = first + usize::from(shard);
                note!(self.stage.book, "{} <- {from}: {}", self.nodes[node].id, Brief(&message));
                let now = self.now_of(host);
                if let Some(machine) = &mut self.shards[host].host {
                    machine.handle_peer(now, from, message);
                    self.after(host);
                }
            }
            Input::Coordinator(message) => self.hear_coordinator(node, message),
            Input::Late(message) => self.tell_hosts(node, &message),
            Input::LinkUp { shard, wire, peer } => {
                self.feed_link_up(first + usize::from(shard), wire as usize, peer)
            }
            Input::LinkDown { shard, wire } => self.feed_link_down(first + usize::from(shard), wire as usize),
            Input::Submit { shard, token, member, request } => {
                let host = first + usize::from(shard);
                let now = self.now_of(host);
                let Some(machine) = &mut self.shards[host].host else { return };
                let place = member.map_or_else(|| machine.locate(request.key_bytes()), Place::of);
                let submitted = machine.submit(now, token, place, request);
                if let Submitted::Done(outcome) = submitted {
                    self.reply(host, token, outcome);
                }
                self.after(host);
            }
        }
    }

    fn hear_coordinator(&mut self, node: usize, message: FromCoordinator) {
        let id = self.nodes[node].id;
        note!(self.stage.book, "{id} <- coordinator: {}", Brief(&message));
        let now = self.now_of(node * self.stage.options.shards).time;
        match self.nodes[node].entrance.receive(now, message) {
            Verdict::Deliver(message) => self.tell_hosts(node, &message),
            Verdict::Answer(message) => self.send_up(node, message),
            Verdict::Alive(_)
            | Verdict::Forms(..)
            | Verdict::Waits
            | Verdict::WaitForPlace(_)
            | Verdict::Nothing => {}
            Verdict::End(end) if self.nodes[node].entrance.serves() => {
                note!(self.stage.book, "{id} ends: {end:?}");
                self.crash(node);
            }
            Verdict::End(end) => {
                self.stage.book.fail("entrance", None, format!("{id} is not let in: {end:?}"))
            }
            Verdict::Foreign(why) => {
                self.stage.book.fail(
                    "entrance",
                    None,
                    format!("{id} takes its own coordinator for another: {why}"),
                );
            }
        }
    }

    fn tell_hosts(&mut self, node: usize, message: &FromCoordinator) {
        let first = node * self.stage.options.shards;
        for host in first..first + self.stage.options.shards {
            let now = self.now_of(host);
            if let Some(machine) = &mut self.shards[host].host {
                machine.handle_coordinator(now, message.clone());
                self.after(host);
            }
        }
    }

    /// After an input: batch or flush, do what the host wants, set its timer.
    pub(crate) fn after(&mut self, host: usize) {
        self.shards[host].idle_ticks = 0;
        match self.stage.options.batching {
            Batching::Never => {
                let now = self.now_of(host);
                if let Some(machine) = &mut self.shards[host].host {
                    machine.flush(now);
                }
            }
            Batching::Upto(most_us) => {
                if !self.shards[host].flush_pending {
                    self.shards[host].flush_pending = true;
                    let at = self.stage.now() + self.stage.rng.processes.below(most_us + 1);
                    self.stage.queue.push(at, Event::Flush { host: host as u16 });
                }
            }
        }
        self.drain(host);
        self.arm(host);
    }

    pub(super) fn flush(&mut self, host: usize) {
        self.shards[host].flush_pending = false;
        if self.nodes[host / self.stage.options.shards].state != Life::Up {
            return;
        }
        let now = self.now_of(host);
        if let Some(machine) = &mut self.shards[host].host {
            machine.flush(now);
        }
        self.drain(host);
        self.arm(host);
    }

    pub(crate) fn drain(&mut self, host: usize) {
        while let Some(action) = self.shards[host].host.as_mut().and_then(proto::Host::poll_action) {
            match action {
                Action::Send { to, message } => self.send(host, usize::from(to.0), message),
                Action::Coordinator(message) => self.send_up(host / self.stage.options.shards, message),
                Action::Close { peer, why } => {
                    let id = self.nodes[host / self.stage.options.shards].id;
                    self.stage.book.fail(
                        "impossible",
                        None,
                        format!("{peer} has sent {id} what cannot be: {why}"),
                    );
                }
                Action::Reply { token, outcome } => self.reply(host, token, outcome),
            }
        }
    }

    fn send(&mut self, host: usize, to: usize, message: PeerMessage) {
        let from = self.nodes[host / self.stage.options.shards].id;
        self.stage.book.mix(self.stage.now() ^ (host as u64) << 48 ^ (to as u64) << 56);
        self.stage.book.mix(number_of(&message));
        if usize::from(from.node.0) == to {
            self.stage.book.fail("driver", None, format!("{from} sends to itself: {}", Brief(&message)));
            return;
        }
        let wire = self.wires.between(host, to);
        let open = self.wires.get(wire).open;
        note!(
            self.stage.book,
            "{from} -> node-{to}: {}{}",
            Brief(&message),
            if open { "" } else { " (no link)" }
        );
        self.watch(from, &message);
        if open {
            self.post(wire, Parcel::Message(message));
        }
    }

    /// Holds what is sent against the shadow of its stream.
    fn watch(&mut self, from: HostId, message: &PeerMessage) {
        let PeerMessage::Group(message) = message else { return };
        match &message.body {
            GroupBody::Frame(frame) if !frame.records.is_empty() => self.aim(Target::Records),
            GroupBody::Hello(_)
            | GroupBody::Welcome(_)
            | GroupBody::FetchIndex(_)
            | GroupBody::IndexPart(_) => {
                self.aim(Target::Greeting);
            }
            GroupBody::Open(_) | GroupBody::Read(_) | GroupBody::Page(_) | GroupBody::Residual(_) => {
                self.aim(Target::Repair);
            }
            _ => {}
        }
        let member = types::MemberId { group: message.group, role: message.from };
        let (k, m) = (self.stage.options.k, self.stage.options.m);
        let broken = match &message.body {
            GroupBody::Frame(frame) => {
                let index = self.stream_index(member);
                let view = self.store.map().and_then(|map| map.group(message.group));
                // What a lost role's former primary still writes, with nobody or with former parities, ends with its life.
                let is_lost = |view: &&types::GroupView| {
                    view.data_role(message.from).is_some_and(|data| data.status.is_lost())
                };
                let required = view
                    .filter(|view| !is_lost(view))
                    .into_iter()
                    .flat_map(|view| view.witnesses(message.from))
                    .map(|(role, host)| (taker(role, k, m), host));
                self.shadow.streams[index].sent(from, frame.term, frame.committed, &frame.records, required)
            }
            GroupBody::Ack(ack) => self.confirm(from, message, ack.term, ack.received),
            GroupBody::Welcome(welcome) => self.confirm(from, message, welcome.term, welcome.received),
            GroupBody::Residual(_) => {
                self.stage.book.stats.residuals += 1;
                Ok(())
            }
            GroupBody::LearnHello(_) | GroupBody::Learn(_) | GroupBody::Learned(_) => {
                self.watch_lesson(from, message)
            }
            _ => Ok(()),
        };
        if let Err(what) = broken {
            let what = format!("{}/{}: {what}", message.group, message.from);
            self.stage.book.fail("stream", Some(Suspect::Group(message.group)), what);
        }
    }

    fn watch_lesson(&mut self, from: HostId, message: &wire::message::GroupMessage) -> Result<(), String> {
        let (k, m) = (self.stage.options.k, self.stage.options.m);
        let member = |role| types::MemberId { group: message.group, role };
        match &message.body {
            GroupBody::Learn(learn) if learn.part != LearnPart::Gone => {
                let index = self.stream_index(member(message.from));
                let parity = taker(message.to, k, m);
                self.shadow.streams[index].taught(parity, (learn.lesson, learn.number), learn.tag);
            }
            GroupBody::LearnHello(_) => {
                let index = self.stream_index(member(message.to));
                self.shadow.streams[index].forgotten(taker(message.from, k, m), from);
            }
            GroupBody::Learned(learned) => {
                let index = self.stream_index(member(message.to));
                let parity = taker(message.from, k, m);
                let tag = self.shadow.streams[index].understood(parity, (learned.lesson, learned.number));
                if let Some(tag) = tag {
                    return self.confirm(from, message, learned.term, tag);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn confirm(
        &mut self,
        from: HostId,
        message: &wire::message::GroupMessage,
        term: types::Term,
        received: types::Seq,
    ) -> Result<(), String> {
        let index = self.stream_index(types::MemberId { group: message.group, role: message.to });
        let parity = taker(message.from, self.stage.options.k, self.stage.options.m);
        self.shadow.streams[index].confirmed(parity, from, term, received)
    }

    /// Sets the timer of `host`.
    pub(crate) fn arm(&mut self, host: usize) {
        let shard = &mut self.shards[host];
        let Some(machine) = &shard.host else { return };
        let clock = &self.nodes[host / self.stage.options.shards].clock;
        let Some(at) = clock.when(machine.next_deadline(), self.stage.now()) else { return };
        if at < shard.tick_at {
            shard.tick_at = at;
            self.stage.queue.push(at, Event::Tick { host: host as u16 });
        }
    }

    pub(super) fn tick(&mut self, host: usize) {
        if self.shards[host].tick_at != self.stage.now() {
            return;
        }
        self.shards[host].tick_at = u64::MAX;
        if self.nodes[host / self.stage.options.shards].state != Life::Up {
            return;
        }
        self.tick_now(host);
    }

    pub(crate) fn tick_now(&mut self, host: usize) {
        let now = self.now_of(host);
        let Some(machine) = &mut self.shards[host].host else { return };
        if machine.next_deadline() <= now.time {
            machine.tick(now);
            machine.flush(now);
            self.check_scrub(host);
            let Some(machine) = &self.shards[host].host else { return };
            let stuck = machine.next_deadline() <= now.time;
            self.drain(host);
            self.shards[host].idle_ticks += 1;
            if stuck && self.shards[host].idle_ticks > MAX_IDLE_TICKS {
                let id = self.nodes[host / self.stage.options.shards].id;
                self.stage.book.fail(
                    "timer",
                    None,
                    format!("{id} wants to be woken again and again at one moment"),
                );
            }
            if stuck {
                // Time must pass, or nothing else would ever happen.
                self.shards[host].tick_at = self.stage.now() + 1;
                self.stage.after(1, Event::Tick { host: host as u16 });
                return;
            }
        }
        self.arm(host);
    }
}

/// The number of whoever takes a stream, as role `role`: its row, or, of the role's mirror, `m`.
fn taker(role: types::RoleIndex, k: usize, m: usize) -> usize {
    usize::from(role.0).checked_sub(k).unwrap_or(m)
}
