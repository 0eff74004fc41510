//! Inputs into hosts, and what they want done.

use proto::{Action, Host, Now, Place, Submitted, Verdict};
use types::HostId;
use types::op::Op;
use wire::message::{FromCoordinator, PeerMessage};

use super::{World, onward};
use crate::cluster::nodes::Ticked;
use crate::cluster::process::{Input, Submission};
use crate::nemesis::Target;
use crate::network::wires::Parcel;
use crate::stage::brief::{Brief, number_of};

/// What a probe fetches of each node.
const PROBE_BYTES: u64 = 128 << 10;

impl World {
    // --- inputs ---

    /// The first parcel of a wire arrives, unless the wire was cut since.
    pub(super) fn deliver(&mut self, wire: usize, epoch: u32) {
        if let Some(parcel) = self.wires.arrive(wire, epoch) {
            self.hand_over(wire, parcel);
        }
    }

    /// The receiver's end of a wire notices that the wire was cut, unless it stands again.
    pub(super) fn notice_cut(&mut self, wire: usize, epoch: u32) {
        if self.wires.is_current(wire, epoch) {
            let (_, host) = self.wires.ends(wire);
            self.give(self.cluster.nodes.node_of(host), Input::LinkDown { host, wire });
        }
    }

    /// The oldest message of the coordinator to a node arrives, unless the line was cut since.
    pub(super) fn downlink(&mut self, node: usize, epoch: u32) {
        let Some(message) = self.lines.take_down(node, epoch) else { return };
        self.stage.book.stats.messages += 1;
        self.stage.book.mix(self.stage.now() ^ (node as u64) << 52);
        self.give(node, Input::Coordinator(message));
    }

    /// A message of a former coordinator arrives, unless its node has ended.
    pub(super) fn stray(&mut self, message: usize) {
        let Some(stray) = self.lines.take_stray(message) else { return };
        if self.cluster.nodes[stray.node].life == stray.life {
            note!(self.stage.book, "late, of a former coordinator:");
            self.give(stray.node, Input::Late(stray.message));
        }
    }

    /// The receiver's end of `wire` reads `parcel`.
    pub(crate) fn hand_over(&mut self, wire: usize, parcel: Parcel) {
        let (from, host) = self.wires.ends(wire);
        let node = self.cluster.nodes.node_of(host);
        self.stage.book.mix(self.stage.now() ^ (wire as u64) << 40);
        match parcel {
            Parcel::Up(peer) => self.give(node, Input::LinkUp { host, wire, peer }),
            Parcel::Message(message) => {
                self.stage.book.stats.messages += 1;
                let from = self.cluster.nodes.id_of(from);
                self.give(node, Input::Peer { host, from, message });
            }
        }
    }

    /// Gives `input` to `node`: at once, or when it goes on after a pause.
    pub(crate) fn give(&mut self, node: usize, input: Input) {
        if let Some(input) = self.cluster.nodes.accept(node, input) {
            self.feed(node, input);
        }
    }

    pub(super) fn feed(&mut self, node: usize, input: Input) {
        match input {
            Input::Peer { host, from, message } => {
                note!(self.stage.book, "{} <- {from}: {}", self.cluster.nodes[node].id, Brief(&message));
                self.drive(host, |machine, now| machine.handle_peer(now, from, message));
            }
            Input::Coordinator(message) => self.hear_coordinator(node, message),
            Input::Late(message) => self.hear_coordinator(node, message),
            Input::LinkUp { host, wire, peer } => self.link_up(host, wire, peer),
            Input::LinkDown { host, wire } => self.link_down(host, wire),
            Input::Submit { host, submission } => self.submit_or_stream(host, submission),
            Input::Native { link, bytes } => self.natively().read(link, &bytes),
        }
    }

    pub(super) fn submit(&mut self, host: usize, Submission { token, member, request }: Submission) {
        let host = onward::worker_for(self, host, member, &request);
        let mut submitted = None;
        let runs = self.cluster.nodes.drive(&self.stage, host, |machine, now| {
            let place = match (&request.op, member) {
                (Op::Scan(scan), _) => proto::locate_scan(machine, scan),
                (_, Some(member)) => Place::of(member),
                (_, None) => machine.locate(request.key_bytes()),
            };
            submitted = Some(machine.submit(now, token, place, request));
        });
        if let Some(Submitted::Done(outcome)) = submitted {
            self.answer(host, token, outcome);
        }
        if runs {
            self.after(host);
        }
    }

    /// A host measures its links, unless its node is down or stands still.
    pub(crate) fn probe(&mut self, host: usize) {
        if self.cluster.nodes.up().contains(&self.cluster.nodes.node_of(host)) {
            self.drive(host, |machine, now| _ = machine.streams(now).probe_links(PROBE_BYTES));
        }
    }

    /// Lets a host do something, if it has not ended, and then does what it wants.
    fn drive(&mut self, host: usize, act: impl FnOnce(&mut Host, Now)) {
        if self.cluster.nodes.drive(&self.stage, host, act) {
            self.after(host);
        }
    }

    fn hear_coordinator(&mut self, node: usize, message: FromCoordinator) {
        let state = &mut self.cluster.nodes[node];
        let id = state.id;
        note!(self.stage.book, "{id} <- coordinator: {}", Brief(&message));
        let now = self.stage.read(&state.clock).time;
        let verdict = state.entrance.receive(now, message);
        let serves = state.entrance.serves();
        match verdict {
            Verdict::Deliver(message) => self.tell_hosts(node, &message),
            Verdict::Answer(message) => self.lines.send_up(&mut self.stage, node, message),
            Verdict::Alive(_)
            | Verdict::Forms(..)
            | Verdict::Waits
            | Verdict::WaitForPlace(_)
            | Verdict::Nothing => {}
            // One that serves may have been fenced or replaced meanwhile. One that serves nothing yet fits this
            // cluster, for here is no other: nothing may turn it away for good.
            Verdict::End(end) if serves => {
                note!(self.stage.book, "{id} ends: {end:?}");
                self.crash(node);
            }
            Verdict::End(end) => {
                self.stage.book.fail("entrance", None, format!("{id} is not let in: {end:?}"));
            }
            Verdict::Foreign(why) => {
                let what = format!("{id} takes its own coordinator for another: {why}");
                self.stage.book.fail("entrance", None, what);
            }
        }
    }

    /// The worker whose group it is about hears it, or all of the node do.
    fn tell_hosts(&mut self, node: usize, message: &FromCoordinator) {
        let hosts = self.cluster.nodes.hosts_on(node);
        let only = message.group().map(|group| hosts.start + usize::from(group.shard(hosts.len() as u16)));
        for host in hosts.filter(|host| only.is_none_or(|only| only == *host)) {
            self.drive(host, |machine, now| machine.handle_coordinator(now, message.clone()));
        }
    }

    fn link_up(&mut self, host: usize, wire: usize, peer: HostId) {
        // The end of the former connection may not have been noticed: its notice is void now,
        // and a host must hear of it first.
        self.link_down(host, wire);
        note!(self.stage.book, "{} link up to {peer}", self.cluster.nodes.id_of(host));
        self.wires.stands(&self.cluster.nodes, wire, peer);
        self.drive(host, |machine, now| machine.link_up(now, peer));
    }

    fn link_down(&mut self, host: usize, wire: usize) {
        let Some(peer) = self.wires.fell(wire) else { return };
        note!(self.stage.book, "{} link down to {peer}", self.cluster.nodes.id_of(host));
        self.drive(host, |machine, now| machine.link_down(now, peer));
    }

    // --- what comes of them ---

    /// After an input: batch or flush, do what the host wants, set its timer.
    pub(super) fn after(&mut self, host: usize) {
        self.cluster.nodes.batch(&mut self.stage, host);
        self.drain(host);
        self.cluster.nodes.arm(&mut self.stage, host);
    }

    pub(super) fn flush(&mut self, host: usize) {
        if self.cluster.nodes.flush(&self.stage, host) {
            self.drain(host);
            self.cluster.nodes.arm(&mut self.stage, host);
        }
    }

    fn drain(&mut self, host: usize) {
        while let Some(action) = self.cluster.nodes.poll(host) {
            match action {
                Action::Send { to, message } => self.send(host, usize::from(to.0), message),
                Action::Coordinator(message) => {
                    let node = self.cluster.nodes.node_of(host);
                    self.lines.send_up(&mut self.stage, node, *message);
                }
                Action::Close { peer, why } => {
                    let id = self.cluster.nodes.id_of(host);
                    let what = format!("{peer} has sent {id} what cannot be: {why}");
                    self.stage.book.fail("impossible", None, what);
                }
                Action::Ask { number, place, request } => {
                    onward::ask(self, host, number, place, request);
                }
                Action::Write { number, shard, step } => onward::write(self, host, number, shard, step),
                Action::Room { token } if onward::is_written(token) => onward::has_room(self, host, token),
                Action::Room { token } => self.stir(token),
                Action::Part { token, bytes } => self.part(token, &bytes),
                Action::Whole { token } => self.whole(host, token),
                Action::Reply { token, outcome } if onward::is_written(token) => {
                    onward::written(self, token, outcome);
                }
                Action::Reply { token, outcome } if onward::is_of_host(token) => {
                    onward::hear(self, token, &outcome);
                }
                Action::Reply { token, outcome } => self.answer(host, token, outcome),
            }
        }
    }

    fn send(&mut self, host: usize, to: usize, message: PeerMessage) {
        let from = self.cluster.nodes.id_of(host);
        let book = &mut self.stage.book;
        book.mix(self.stage.queue.now() ^ (host as u64) << 48 ^ (to as u64) << 56);
        book.mix(number_of(&message));
        if usize::from(from.node.0) == to {
            return book.fail("driver", None, format!("{from} sends to itself: {}", Brief(&message)));
        }
        let wire = self.wires.between(host, to);
        let open = self.wires.is_open(wire);
        note!(book, "{from} -> node-{to}: {}{}", Brief(&message), if open { "" } else { " (no link)" });
        self.nemesis.aim(&mut self.stage, Target::of_peers(&message));
        // Also where no link stands: what a member says has to be true, whether anybody hears it or not.
        self.shadow.sent(&mut self.stage.book, self.cluster.map(), from, &message);
        if open {
            self.wires.post(&mut self.stage, wire, Parcel::Message(message));
        }
    }

    // --- timers ---

    pub(super) fn timer(&mut self, host: usize) {
        if self.cluster.nodes.tick_is_due(&self.stage, host) {
            self.tick(host);
        }
    }

    fn tick(&mut self, host: usize) {
        let ticked = self.cluster.nodes.tick(&self.stage, host);
        if ticked != Ticked::Early {
            self.checks.scrub(&mut self.stage.book, &self.cluster.nodes, host);
            self.drain(host);
        }
        self.cluster.nodes.rest(&mut self.stage, host, ticked);
    }

    /// The hosts of a node that goes on look at their clocks.
    pub(super) fn tick_all(&mut self, node: usize) {
        for host in self.cluster.nodes.hosts_on(node) {
            self.tick(host);
            // The end of a batch that came while the node stood still was dropped: what had
            // gathered would stay where it is.
            if !self.cluster.nodes.is_batching(host) {
                self.after(host);
            }
        }
    }
}
