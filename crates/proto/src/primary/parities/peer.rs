//! What a primary knows of one parity that gets its stream.

use types::{Seq, Time, UnixSeconds};
use wire::message::{Ack, Frame, GroupBody, Hello, Welcome};

use crate::outbox::{Context, Peer};
use crate::primary::core::Core;
use crate::primary::stream::SendStream;
use crate::size::record_bytes;
use crate::{Impossible, Timing};

/// See the module.
pub(in crate::primary) struct ParityPeer {
    id: Peer,
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
    /// Since when something is due and nothing is heard. Progress that leaves something due begins it anew.
    silent_since: Option<Time>,
    /// Time of sending of the newest acknowledged Frame: the lease counts from here.
    lease_base: Option<Time>,
    /// When the coordinator was last asked to remove it.
    complained: Option<Time>,
    /// Second of the newest Frame, and the newest one that it surely knows.
    wall_sent: UnixSeconds,
    wall: UnixSeconds,
}

/// Why a Welcome does not go on.
pub(in crate::primary) enum Unwelcome {
    /// It claims what cannot be.
    Impossible(Impossible),
    /// A learner that was waited for had not got all yet when the link broke; it starts again.
    Lacking,
}

impl ParityPeer {
    pub(super) fn new(id: Peer, start: Seq, now: Time) -> Self {
        Self {
            id,
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
    pub(in crate::primary) fn for_learner(id: Peer, base: Seq, now: Time) -> Self {
        // The first part of its lesson says where it begins: no Hello is needed.
        Self { welcomed: true, silent_since: None, ..Self::new(id, base, now) }
    }

    pub(in crate::primary) fn id(&self) -> Peer {
        self.id
    }

    pub(in crate::primary) fn acked(&self) -> Seq {
        self.acked
    }

    pub(in crate::primary) fn applied(&self) -> Seq {
        self.applied
    }

    /// Newest second that it surely knows.
    pub(in crate::primary) fn wall(&self) -> UnixSeconds {
        self.wall
    }

    pub(in crate::primary) fn sent(&self) -> Seq {
        self.sent
    }

    /// Whether a Frame is not yet acknowledged.
    pub(in crate::primary) fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Until when its acknowledgements allow reads.
    pub(super) fn leased_until(&self, timing: &Timing) -> Time {
        self.lease_base.map_or(Time(0), |base| base + timing.held_lease_us())
    }

    /// What it has acknowledged so far allows no read any more.
    pub(super) fn end_lease(&mut self) {
        self.lease_base = None;
    }

    /// A Frame is due at once, even an empty one.
    pub(super) fn hurry(&mut self) {
        self.last_sent = Time(0);
    }

    /// Somebody waits until it has applied what is committed up to `upto`: a Frame that says so is due at once.
    pub(super) fn hurry_to_apply(&mut self, upto: Seq) {
        if self.welcomed && self.committed_sent < upto {
            self.hurry();
        }
    }

    /// Somebody waits until it knows `second`: a Frame that says so is due at once.
    pub(super) fn hurry_wall(&mut self, second: UnixSeconds) {
        if self.welcomed && self.wall_sent < second {
            self.hurry();
        }
    }

    /// For how long it has left something unanswered.
    pub(super) fn silence_us(&self, now: Time) -> Option<u64> {
        self.silent_since.map(|since| now.since(since))
    }

    /// Whether it has left something unanswered for a stall time-out.
    pub(super) fn is_silent(&self, now: Time, timing: &Timing) -> bool {
        self.silence_us(now).is_some_and(|silence_us| silence_us >= timing.stall_us)
    }

    /// Whether nobody has been told so for a retry time-out.
    pub(super) fn is_complaint_due(&self, now: Time, timing: &Timing) -> bool {
        self.is_silent(now, timing) && self.complained.is_none_or(|at| now.since(at) >= timing.retry_us)
    }

    /// Whether it is silent, and nobody has been told so far.
    pub(super) fn is_newly_silent(&self, now: Time, timing: &Timing) -> bool {
        self.is_silent(now, timing) && self.complained.is_none()
    }

    pub(super) fn note_complaint(&mut self, now: Time) {
        self.complained = Some(now);
    }

    /// When something is due to be sent to it, or said of it, if nothing is heard before.
    pub(super) fn deadline(&self, committed: Seq, timing: &Timing) -> Time {
        // Silence that was broken and began anew counts from its begin, whatever was complained of before.
        let complaint = self.silent_since.map_or(Time::NEVER, |since| {
            let again = self.complained.map_or(Time(0), |at| at + timing.retry_us);
            again.max(since + timing.stall_us)
        });
        let message = match (self.welcomed, self.outstanding) {
            (false, _) => self.last_sent + timing.heartbeat_us,
            (true, Some(_)) => Time::NEVER,
            (true, None) => self.idle_frame_due(committed, timing),
        };
        complaint.min(message)
    }

    /// Says Hello on a new connection.
    pub(super) fn greet(&mut self, context: &mut Context<'_>, core: &Core, committed: Seq) {
        self.lose_link(context.now.time);
        self.last_sent = context.now.time;
        let hello = Hello { term: core.term(), committed };
        core.sender().send(context, self.id, GroupBody::Hello(hello));
    }

    /// Whether the last Hello has been unanswered for a heartbeat.
    pub(super) fn wants_greeting(&self, now: Time, timing: &Timing) -> bool {
        !self.welcomed && now.since(self.last_sent) >= timing.heartbeat_us
    }

    /// The connection is gone, and what was in flight with it.
    pub(super) fn lose_link(&mut self, now: Time) {
        self.welcomed = false;
        self.outstanding = None;
        self.silent_since.get_or_insert(now);
    }

    /// The parity has everything up to `welcome.received`: go on from there.
    pub(in crate::primary) fn welcome(
        &mut self,
        welcome: &Welcome,
        committed: Seq,
        is_in_sync: bool,
        now: Time,
    ) -> Result<(), Unwelcome> {
        let received = welcome.received;
        if received > self.most {
            return Err(Unwelcome::Impossible(Impossible::Received { received, sent: self.most }));
        }
        if received < committed && is_in_sync {
            // A parity that lost its memory under the same name, or worse.
            return Err(Unwelcome::Impossible(Impossible::Forgotten { received, committed }));
        }
        if received < committed {
            return Err(Unwelcome::Lacking);
        }
        self.welcomed = true;
        self.outstanding = None;
        self.wall = self.wall.max(welcome.wall);
        // What was in flight on the connection before is sent again.
        self.sent = received;
        self.hear(received, now);
        // Its Ack is the lease.
        self.hurry();
        Ok(())
    }

    /// Cumulative acknowledgement. It renews the lease if it is of a Frame that was sent at `lease_from` or later.
    pub(in crate::primary) fn acknowledge(
        &mut self,
        ack: &Ack,
        lease_from: Time,
        now: Time,
    ) -> Result<(), Impossible> {
        if ack.received > self.most {
            return Err(Impossible::Received { received: ack.received, sent: self.most });
        }
        if ack.echo > now {
            return Err(Impossible::Echo { echo: ack.echo, now });
        }
        // Of an older Frame it says nothing of the newest commit index and second.
        if self.outstanding == Some(ack.echo) {
            self.outstanding = None;
            self.wall = self.wall.max(self.wall_sent);
            // It applies no more than it has: a learner may lack some of what is committed.
            self.applied = self.applied.max(self.committed_sent.min(ack.received));
        }
        self.hear(ack.received, now);
        if ack.echo >= lease_from {
            // From the time of sending: a recovery counts from when the parity acknowledged, which is later.
            self.lease_base = self.lease_base.max(Some(ack.echo));
        }
        Ok(())
    }

    /// It knows a later term: nothing is acknowledged or read until a view says why.
    pub(in crate::primary) fn reject(&mut self) {
        self.lease_base = None;
        self.outstanding = None;
        self.welcomed = false;
    }

    /// An answer: silence ends if nothing is owed, and starts anew if at least something came.
    fn hear(&mut self, received: Seq, now: Time) {
        let progress = received > self.acked;
        self.acked = self.acked.max(received);
        if self.acked >= self.sent && self.outstanding.is_none() {
            self.silent_since = None;
            self.complained = None;
        } else if progress {
            self.silent_since = Some(now);
        }
    }

    /// Whether a Frame is due, and the one before is acknowledged.
    pub(super) fn wants_frame(&self, stream: &SendStream, timing: &Timing, now: Time) -> bool {
        self.welcomed
            && self.outstanding.is_none()
            && (self.sent < stream.last() || self.idle_frame_due(stream.committed(), timing) <= now)
    }

    /// The next records of the stream, or none, with the commit index and the role's second; how many bytes that is.
    pub(in crate::primary) fn send_frame(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        wall: UnixSeconds,
    ) -> usize {
        let now = context.now.time;
        debug_assert!(self.sent >= stream.history_start(), "a Frame follows on the one before");
        let mut records = Vec::new();
        let mut bytes = 0;
        for record in stream.records_after(self.sent) {
            let more = bytes + record_bytes(record);
            // One record goes in any case: a large one would never be sent.
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
        self.committed_sent = stream.committed();
        // An Ack names a Frame by its time of sending: of two with the same one it may mean the first.
        let same = self.outstanding == Some(now);
        self.wall_sent = if same { self.wall_sent.min(wall) } else { wall };
        self.outstanding = Some(now);
        self.last_sent = now;
        self.silent_since.get_or_insert(now);
        let frame = Frame { term: core.term(), sent_at: now, wall, committed: stream.committed(), records };
        core.sender().send(context, self.id, GroupBody::Frame(frame));
        bytes
    }

    /// When a Frame without records is due.
    fn idle_frame_due(&self, committed: Seq, timing: &Timing) -> Time {
        let delay =
            if committed > self.committed_sent { timing.commit_delay_us } else { timing.heartbeat_us };
        self.last_sent + delay
    }
}
