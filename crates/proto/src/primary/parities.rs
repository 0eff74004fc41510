//! A primary and its parities: sending records, acknowledgements, leases and stalls (group protocol, section 3).
//!
//! Batching without a timer: while a Frame is unacknowledged on a link, records gather; its Ack sends them on. One
//! Frame carries at most `Limits::frame_records` records or `Limits::frame_bytes` bytes of deltas.

use cluster::{HostId, RoleIndex, Seq, Term, Time, UnixSeconds};
use smallvec::SmallVec;
use wire::message::{Ack, Frame, GroupBody, Hello, Reject, ToCoordinator, Welcome};

use super::Primary;
use super::log::Log;
use crate::outbox::{Context, Sender};
use crate::size::record_bytes;
use crate::{Impossible, Timing};

/// What a primary knows of one parity whose acks it needs.
pub(super) struct ParityPeer {
    pub role: RoleIndex,
    pub host: HostId,
    /// Whether it has answered the Hello on this connection.
    welcomed: bool,
    /// Newest record sent on this connection.
    sent: Seq,
    /// Newest record that it can have: that it started from, or was sent on any connection.
    most: Seq,
    acked: Seq,
    /// Newest record that it has surely applied.
    applied: Seq,
    /// Commit index of the newest Frame.
    committed_sent: Seq,
    /// The Frame that is not yet acknowledged, by its time of sending.
    outstanding: Option<Time>,
    last_sent: Time,
    /// Since when nothing has been heard though something was due; reset by every answer.
    silent_since: Option<Time>,
    /// Time of sending of the newest acknowledged Frame: the lease counts from here.
    lease_base: Option<Time>,
    /// When the coordinator was last asked to remove it.
    complained: Option<Time>,
    /// Second of the newest Frame, and the newest one that it surely knows.
    wall_sent: UnixSeconds,
    wall: UnixSeconds,
}

impl ParityPeer {
    pub(super) fn new(role: RoleIndex, host: HostId, start: Seq, now: Time) -> Self {
        Self {
            role,
            host,
            welcomed: false,
            sent: start,
            most: start,
            acked: start,
            applied: start,
            committed_sent: start,
            outstanding: None,
            last_sent: now,
            silent_since: Some(now),
            lease_base: None,
            complained: None,
            wall_sent: UnixSeconds(0),
            wall: UnixSeconds(0),
        }
    }

    /// A learner that has everything up to `base`.
    pub(super) fn for_learner(role: RoleIndex, host: HostId, base: Seq, now: Time) -> Self {
        Self { welcomed: true, silent_since: None, ..Self::new(role, host, base, now) }
    }

    pub(super) fn id(&self) -> (RoleIndex, HostId) {
        (self.role, self.host)
    }

    pub(super) fn acked(&self) -> Seq {
        self.acked
    }

    pub(super) fn applied(&self) -> Seq {
        self.applied
    }

    /// Newest second that it surely knows.
    pub(super) fn wall(&self) -> UnixSeconds {
        self.wall
    }

    pub(super) fn sent(&self) -> Seq {
        self.sent
    }

    /// Somebody waits until it has applied what is committed up to `upto`: a Frame that says so is due at once.
    pub(super) fn hurry(&mut self, upto: Seq) {
        if self.welcomed && self.committed_sent < upto {
            self.last_sent = Time(0);
        }
    }

    /// Somebody waits until it knows `second`: a Frame that says so is due at once.
    pub(super) fn hurry_wall(&mut self, second: UnixSeconds) {
        if self.welcomed && self.wall_sent < second {
            self.last_sent = Time(0);
        }
    }

    /// Whether a Frame is not yet acknowledged.
    pub(super) fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Whether it has left something unanswered for a stall time-out.
    pub(super) fn is_silent(&self, now: Time, timing: &Timing) -> bool {
        self.silent_since.is_some_and(|since| now.since(since) >= timing.stall_us)
    }

    /// An answer: silence ends if nothing is owed, and starts anew if at least something came.
    fn heard(&mut self, received: Seq, now: Time) {
        let progress = received > self.acked;
        self.acked = self.acked.max(received);
        if self.acked >= self.sent && self.outstanding.is_none() {
            self.silent_since = None;
            self.complained = None;
        } else if progress {
            self.silent_since = Some(now);
        }
    }

    /// The next records of the log, or none, with the commit index; how many bytes that is.
    pub(super) fn send_frame(
        &mut self,
        context: &mut Context<'_>,
        sender: Sender,
        (log, term, committed, wall): (&Log, Term, Seq, UnixSeconds),
    ) -> usize {
        let now = context.now.time;
        debug_assert!(self.sent >= log.history().start(), "a Frame follows on the one before");
        let mut records = Vec::new();
        let mut bytes = 0;
        for record in log.records_after(self.sent) {
            let more = bytes + record_bytes(record);
            if !records.is_empty()
                && (more > context.limits.frame_bytes || records.len() >= context.limits.frame_records)
            {
                break;
            }
            bytes = more;
            records.push(record.clone());
        }
        if let Some(last) = records.last() {
            self.sent = last.seq;
            self.most = self.most.max(last.seq);
        }
        self.committed_sent = committed;
        // An Ack names a Frame by its time of sending: of two with the same one it may mean the first.
        let same = self.outstanding == Some(now);
        self.wall_sent = if same { self.wall_sent.min(wall) } else { wall };
        self.outstanding = Some(now);
        self.last_sent = now;
        self.silent_since.get_or_insert(now);
        let frame = Frame { term, sent_at: now, wall, committed, records };
        sender.send(context, self.host, self.role, GroupBody::Frame(frame));
        bytes
    }

    /// When a Frame without records is due.
    fn idle_frame_due(&self, committed: Seq, timing: &Timing) -> Time {
        let delay =
            if committed > self.committed_sent { timing.commit_delay_us } else { timing.heartbeat_us };
        self.last_sent + delay
    }
}

impl Primary {
    /// Until when the parities' acks allow reads; for ever if there is no parity that could serve another primary.
    pub(super) fn leased_until(&self, timing: &Timing) -> Time {
        let lease = |peer: &ParityPeer| peer.lease_base.map_or(Time(0), |base| base + timing.held_lease_us());
        self.parities.iter().map(lease).min().unwrap_or(Time(u64::MAX))
    }

    /// Nothing that was acknowledged so far allows a read any more: only what is sent from now on does.
    pub(super) fn renounce_lease(&mut self, now: Time) {
        self.lease_from = now;
        for peer in &mut self.parities {
            peer.lease_base = None;
            // A Frame at once, even an empty one.
            peer.last_sent = Time(0);
        }
        self.dirty = true;
    }

    /// Says Hello to every parity: a new primary, or a new view.
    pub(super) fn greet_all(&mut self, context: &mut Context<'_>) {
        for at in 0..self.parities.len() {
            self.greet(context, at);
        }
    }

    fn greet(&mut self, context: &mut Context<'_>, at: usize) {
        let hello = Hello { term: self.term, committed: self.committed };
        let sender = self.sender();
        let peer = &mut self.parities[at];
        peer.welcomed = false;
        peer.outstanding = None;
        peer.last_sent = context.now.time;
        peer.silent_since.get_or_insert(context.now.time);
        sender.send(context, peer.host, peer.role, GroupBody::Hello(hello));
    }

    /// A new connection to `host`: what was in flight on the old one is lost.
    pub(crate) fn link_up(&mut self, context: &mut Context<'_>, host: HostId) {
        self.forget_lessons(host);
        for at in 0..self.parities.len() {
            if self.parities[at].host == host {
                self.greet(context, at);
            }
        }
        self.retry_growth(context);
        self.retry_takeover(context);
    }

    /// The connection to `host` is gone: nothing can be sent until the next one.
    pub(crate) fn link_down(&mut self, context: &Context<'_>, host: HostId) {
        self.forget_lessons(host);
        for peer in self.parities.iter_mut().filter(|peer| peer.host == host) {
            peer.welcomed = false;
            peer.outstanding = None;
            peer.silent_since.get_or_insert(context.now.time);
        }
    }

    fn peer_mut(&mut self, from: HostId, role: RoleIndex) -> Option<&mut ParityPeer> {
        let required = self.parities.iter().position(|peer| peer.host == from && peer.role == role);
        match required {
            Some(at) => self.parities.get_mut(at),
            None => self.learner_stream(from, role),
        }
    }

    /// The parity has everything up to `received`: go on from there.
    pub(crate) fn handle_welcome(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        welcome: &Welcome,
    ) {
        if welcome.term != self.term {
            return;
        }
        let now = context.now.time;
        let (committed, received) = (self.committed, welcome.received);
        let in_sync = self.view.parity_host(role) == Some(from);
        let Some(peer) = self.peer_mut(from, role) else { return };
        if received > peer.most {
            return context.impossible(from, Impossible::Received { received, sent: peer.most });
        }
        if received < committed && in_sync {
            // A parity that lost its memory under the same name, or worse.
            return context.impossible(from, Impossible::Forgotten { received, committed });
        }
        if received < committed {
            // A learner that was waited for had not got all yet when the link broke; it starts again.
            return tracing::warn!(%from, %received, %committed, "a learner lacks what is gone");
        }
        peer.welcomed = true;
        peer.outstanding = None;
        peer.wall = peer.wall.max(welcome.wall);
        peer.sent = welcome.received;
        peer.heard(welcome.received, now);
        // A Frame at once, even an empty one: its Ack is the lease.
        peer.last_sent = Time(0);
        self.wall.learn(from, welcome.wall, context.now.unix);
        self.dirty = true;
        self.advance(context);
    }

    /// Cumulative acknowledgement.
    pub(crate) fn handle_ack(&mut self, context: &mut Context<'_>, from: HostId, role: RoleIndex, ack: &Ack) {
        if ack.term != self.term {
            return;
        }
        let now = context.now.time;
        let lease_from = self.lease_from;
        let Some(peer) = self.peer_mut(from, role) else { return };
        if ack.received > peer.most {
            return context
                .impossible(from, Impossible::Received { received: ack.received, sent: peer.most });
        }
        if ack.echo > now {
            return context.impossible(from, Impossible::Echo { echo: ack.echo, now });
        }
        if peer.outstanding == Some(ack.echo) {
            peer.outstanding = None;
            peer.wall = peer.wall.max(peer.wall_sent);
            peer.applied = peer.applied.max(peer.committed_sent.min(ack.received));
        }
        peer.heard(ack.received, now);
        if ack.echo >= lease_from {
            peer.lease_base = peer.lease_base.max(Some(ack.echo));
        }
        self.dirty = true;
        self.note_learner_moved(now, from, role);
        self.advance(context);
        self.report_ended_lessons(context);
        self.retry_waiting(context);
    }

    /// A parity refuses this term. The view will say why; until then nothing is acknowledged or read.
    pub(crate) fn handle_reject(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        reject: &Reject,
    ) {
        if reject.fence <= self.term {
            return;
        }
        let group = self.member.group;
        if let Some(peer) = self.peer_mut(from, role) {
            peer.lease_base = None;
            peer.outstanding = None;
            peer.welcomed = false;
        }
        context.coordinator(ToCoordinator::FetchView { group });
    }

    /// Sends what is due. Called once per batch of events.
    pub(crate) fn flush(&mut self, context: &mut Context<'_>) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        self.go_on_releasing(context);
        self.teach(context);
        // Without parities there is nobody to wait for; what commits may let others begin.
        while self.parities.is_empty() && self.committed < self.log.last() {
            self.advance(context);
        }
        for at in 0..self.parities.len() {
            let peer = &self.parities[at];
            if peer.welcomed && peer.outstanding.is_none() {
                let idle_due = peer.idle_frame_due(self.committed, context.timing) <= context.now.time;
                if peer.sent < self.log.last() || idle_due {
                    self.send_frame(context, at);
                }
            }
        }
        self.trim_history(context);
    }

    fn send_frame(&mut self, context: &mut Context<'_>, at: usize) {
        let sender = self.sender();
        let wall = self.wall.send(context.now.unix);
        let stream = (&self.log, self.term, self.committed, wall);
        self.parities[at].send_frame(context, sender, stream);
    }

    /// Heartbeats, unanswered Hellos, stalls.
    pub(super) fn tick_parities(&mut self, context: &mut Context<'_>) {
        let now = context.now.time;
        for at in 0..self.parities.len() {
            let peer = &self.parities[at];
            if !peer.welcomed && now.since(peer.last_sent) >= context.timing.heartbeat_us {
                self.greet(context, at);
            }
        }
        self.dirty = true;
        self.complain(context);
    }

    /// Asks the coordinator to remove parities that have been silent for too long; never removes one itself.
    fn complain(&mut self, context: &mut Context<'_>) {
        let now = context.now.time;
        let timing = context.timing;
        let due = |peer: &ParityPeer| {
            peer.is_silent(now, timing) && peer.complained.is_none_or(|at| now.since(at) >= timing.retry_us)
        };
        if !self.parities.iter().any(due) || self.waits_for_company(context) {
            return;
        }
        let silent: SmallVec<[(RoleIndex, HostId); 4]> =
            self.parities.iter().filter(|peer| peer.is_silent(now, timing)).map(ParityPeer::id).collect();
        for peer in self.parities.iter_mut().filter(|peer| peer.is_silent(now, timing)) {
            peer.complained = Some(now);
        }
        context.coordinator(ToCoordinator::Stalled {
            group: self.member.group,
            role: self.member.role,
            term: self.term,
            view: self.view.version,
            silent,
        });
    }

    /// One parity is silent for long enough to complain, and another is about to be: then it may be this node that is
    /// cut off, and a complaint of one of them alone would cost the group a healthy parity. Puts the first complaint off.
    fn waits_for_company(&mut self, context: &Context<'_>) -> bool {
        let (now, timing) = (context.now.time, context.timing);
        let first = |peer: &ParityPeer| peer.is_silent(now, timing) && peer.complained.is_none();
        let suspicious = |peer: &ParityPeer| {
            let silence = peer.silent_since.map_or(0, |since| now.since(since));
            silence >= timing.stall_us / 2 && !peer.is_silent(now, timing)
        };
        if !self.parities.iter().any(first) || !self.parities.iter().any(suspicious) {
            return false;
        }
        for peer in self.parities.iter_mut().filter(|peer| first(peer)) {
            peer.complained = Some(now);
        }
        true
    }

    pub(super) fn parities_deadline(&self, timing: &Timing) -> Time {
        let of = |peer: &ParityPeer| {
            // Silence that was broken and began anew counts from its begin, whatever was complained of before.
            let complaint = peer.silent_since.map_or(Time(u64::MAX), |since| {
                let again = peer.complained.map_or(Time(0), |at| at + timing.retry_us);
                again.max(since + timing.stall_us)
            });
            let message = match (peer.welcomed, peer.outstanding) {
                (false, _) => peer.last_sent + timing.heartbeat_us,
                (true, Some(_)) => Time(u64::MAX),
                (true, None) => peer.idle_frame_due(self.committed, timing),
            };
            complaint.min(message)
        };
        self.parities.iter().map(of).min().unwrap_or(Time(u64::MAX))
    }
}
