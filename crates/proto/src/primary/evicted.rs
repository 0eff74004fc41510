//! Parities that were evicted and may come back (group protocol, section 6): their primary keeps the records that they
//! lack, for a while and up to a bound, so that little has to travel.

use cluster::{RoleIndex, Seq, Time};

use super::Primary;
use super::parities::ParityPeer;
use crate::outbox::Context;

/// A parity row that nobody serves at present.
pub(super) struct Evicted {
    role: RoleIndex,
    /// Its former host has applied this much at least.
    applied: Seq,
    since: Time,
}

impl Primary {
    /// The former host of `role`, which has applied the stream up to `applied`, may come back.
    pub(super) fn expect_back(&mut self, role: RoleIndex, applied: Seq, now: Time) {
        let is_missing = usize::from(role.0) >= self.view.k() && self.view.parity_host(role).is_none();
        self.evicted.retain(|evicted| evicted.role != role);
        if is_missing {
            self.evicted.push(Evicted { role, applied, since: now });
        }
    }

    /// Rows without a host, when this primary begins: their former hosts may have all that it starts from.
    pub(super) fn expect_the_missing_back(&mut self, now: Time) {
        let (k, n) = (self.view.k(), self.view.k() + self.view.m());
        for role in k..n {
            self.expect_back(RoleIndex(role as u8), self.committed, now);
        }
    }

    /// A newer view: some of those that were waited for have left, and some rows are served again.
    pub(super) fn part_with_parities(&mut self, now: Time) {
        let parities = std::mem::take(&mut self.parities);
        let (required, left): (Vec<ParityPeer>, Vec<ParityPeer>) =
            parities.into_iter().partition(|peer| self.is_required(peer));
        self.parities = required;
        for peer in left {
            self.expect_back(peer.role, peer.applied(), now);
        }
        let view = &self.view;
        self.evicted.retain(|evicted| view.parity_host(evicted.role).is_none());
    }

    pub(super) fn tick_evicted(&mut self, context: &Context<'_>) {
        let (now, patience) = (context.now.time, context.timing.rejoin_us());
        self.evicted.retain(|evicted| now.since(evicted.since) < patience);
    }

    /// Whether a parity that has applied the stream up to `applied` can go on from there.
    ///
    /// What a parity applies was committed, and what was committed is in the stream of every later term: so it has the
    /// same records as this stream, even if it was evicted under another primary.
    pub(super) fn reaches_back_to(&self, applied: Seq) -> bool {
        (self.log.history().start()..=self.committed).contains(&applied)
    }

    /// Drops the committed records that nobody wants any more, or for which there is no room.
    pub(super) fn trim_history(&mut self, context: &Context<'_>) {
        let wanted = self.parities.iter().map(ParityPeer::applied);
        let wanted = wanted.chain(self.evicted.iter().map(|evicted| evicted.applied)).min();
        let has_room = self.budget.has_room_to_spare();
        let most_bytes = if has_room { context.limits.history_bytes } else { 0 };
        self.log.trim_history(wanted.unwrap_or(self.committed).min(self.committed), most_bytes);
    }
}
