//! Requests between their client and their primary: sent on to another host, or waiting for one.

use std::collections::{BTreeMap, VecDeque};

use types::op::{Failure, Outcome};
use types::{HostId, MemberId, Time};
use wire::message::{Answer, Forward, PeerMessage};

use crate::outbox::ReplyTo;
use crate::primary::{Pending, is_repeatable};
use crate::{Impossible, Limits, Timing};

/// See the module.
pub(super) struct Routes {
    /// Forwarded, by number; numbers grow with time.
    forwarded: BTreeMap<u64, Forwarded>,
    next_id: u64,
    /// Waiting for a map, a primary or a link.
    unrouted: VecDeque<(Option<MemberId>, Pending)>,
    /// Nobody's time is up before.
    next_deadline: Time,
    /// When those that wait were last tried.
    tried: Time,
}

/// A request at another host.
pub(super) struct Forwarded {
    pub to: HostId,
    pub member: MemberId,
    pub pending: Pending,
    pub sent: Time,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            forwarded: BTreeMap::new(),
            next_id: 0,
            unrouted: VecDeque::new(),
            next_deadline: Time::NEVER,
            tried: Time(0),
        }
    }
}

impl Routes {
    /// When somebody's time is up, at the earliest.
    pub(super) fn requests_due(&self) -> Time {
        self.next_deadline
    }

    /// When those that wait are to be tried again, if nothing comes before.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        if self.unrouted.is_empty() { Time::NEVER } else { self.tried + timing.heartbeat_us / 4 }
    }

    pub(super) fn len(&self) -> usize {
        self.forwarded.len() + self.unrouted.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.forwarded.len() * size_of::<(u64, Forwarded)>()
            + self.unrouted.capacity() * size_of::<(Option<MemberId>, Pending)>()
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self) {
        let in_time = |pending: &Pending| pending.deadline >= self.next_deadline;
        assert!(
            self.forwarded.values().all(|forwarded| in_time(&forwarded.pending)),
            "nobody waits for longer than asked"
        );
        assert!(
            self.unrouted.iter().all(|(_, pending)| in_time(pending)),
            "nobody waits for longer than asked"
        );
        assert!(self.forwarded.keys().all(|id| *id < self.next_id), "numbers are given once");
    }

    /// Forwards so far.
    pub(super) fn forwards(&self) -> u64 {
        self.next_id
    }

    /// The message that takes a request to another host, which is waited for from now on; the answer if too many are.
    pub(super) fn forward(&mut self, limits: &Limits, forwarded: Forwarded) -> Result<PeerMessage, Outcome> {
        if self.forwarded.len() >= limits.forwarded_requests {
            return Err(forwarded.pending.request.in_all(Outcome::Failed(Failure::Busy)));
        }
        let id = self.next_id;
        self.next_id += 1;
        let MemberId { group, role } = forwarded.member;
        let request = forwarded.pending.request.clone();
        self.next_deadline = self.next_deadline.min(forwarded.pending.deadline);
        self.forwarded.insert(id, forwarded);
        Ok(PeerMessage::Forward(Forward { id, group, role, request }))
    }

    /// A request waits for a map, a primary or a link; the answer if too many do.
    pub(super) fn wait(
        &mut self,
        limits: &Limits,
        member: Option<MemberId>,
        pending: Pending,
    ) -> Option<Outcome> {
        if self.unrouted.len() >= limits.parked_requests {
            return Some(pending.request.in_all(Outcome::Failed(Failure::Busy)));
        }
        self.next_deadline = self.next_deadline.min(pending.deadline);
        self.unrouted.push_back((member, pending));
        None
    }

    /// Takes the request that is answered; none if the answer has come too late.
    pub(super) fn answered(
        &mut self,
        from: HostId,
        answer: &Answer,
    ) -> Result<Option<Forwarded>, Impossible> {
        let known = self.forwarded.get(&answer.id);
        if answer.id >= self.next_id || known.is_some_and(|forwarded| forwarded.to != from) {
            return Err(Impossible::Answer { id: answer.id });
        }
        Ok(self.forwarded.remove(&answer.id))
    }

    /// Those at other hosts.
    pub(super) fn forwarded(&self) -> impl Iterator<Item = &Forwarded> {
        self.forwarded.values()
    }

    /// Takes the forwards that are `lost`, oldest first.
    pub(super) fn take_forwarded(&mut self, lost: impl Fn(&Forwarded) -> bool) -> Vec<Forwarded> {
        self.forwarded
            .extract_if(.., |_, forwarded| lost(forwarded))
            .map(|(_, forwarded)| forwarded)
            .collect()
    }

    /// Takes all that wait, to try them.
    pub(super) fn take_unrouted(&mut self, now: Time) -> VecDeque<(Option<MemberId>, Pending)> {
        self.tried = now;
        std::mem::take(&mut self.unrouted)
    }

    /// Takes those whose deadline has passed, with what is said of them.
    pub(super) fn take_late(&mut self, now: Time) -> Vec<(ReplyTo, Outcome)> {
        let failure = |pending: &Pending| {
            // The other host may have done it, and only its answer be missing.
            let is_harmless = is_repeatable(&pending.request.op);
            Outcome::Failed(if is_harmless { Failure::Unavailable } else { Failure::Unknown })
        };
        let forwarded = self.take_forwarded(|forwarded| forwarded.pending.deadline <= now).into_iter();
        let mut late: Vec<_> =
            forwarded.map(|forwarded| (forwarded.pending.reply, failure(&forwarded.pending))).collect();
        self.unrouted.retain(|(_, pending)| {
            let in_time = pending.deadline > now;
            if !in_time {
                // Nobody was sent it, so nothing was done.
                late.push((pending.reply, pending.request.in_all(Outcome::Failed(Failure::Unavailable))));
            }
            in_time
        });
        let forwarded = self.forwarded.values().map(|forwarded| forwarded.pending.deadline);
        let unrouted = self.unrouted.iter().map(|(_, pending)| pending.deadline);
        self.next_deadline = forwarded.chain(unrouted).min().unwrap_or(Time::NEVER);
        late
    }
}
