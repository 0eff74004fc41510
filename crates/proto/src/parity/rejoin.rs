//! A parity that was evicted and comes back (group protocol, section 6): it goes on from what it has applied.
//!
//! Its area is the weighted sum of the data areas, each as of what it has applied of that role, at any time: after the
//! eviction, and after every record that it takes since. So it may offer that again after whatever comes between, until one
//! primary says that the records from there on are gone. Then all of it is worth nothing: a sum of which one part is not
//! known is not the parity of anything.

use cluster::{GroupView, Seq, Term, ViewVersion};
use store::{INDEX_SEGMENTS, PAGE_BYTES};

use super::learner::{Learner, Progress};
use super::{Parity, Stream};
use crate::roles::RoleSet;

/// Bytes of an index entry that travels.
const ENTRY_BYTES: u64 = 9;

/// What it took to bring a parity back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rejoined {
    /// Records that it lacked, or that came meanwhile.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What a lesson from nothing would have moved.
    pub instead_of_bytes: u64,
}

impl Parity {
    /// Whether its area is the weighted sum of what it has applied of each role, so that it can go on from there.
    pub(crate) fn may_rejoin(&self) -> bool {
        let consistent =
            |learner: &Learner| !learner.gave_up && (learner.resuming.is_some() || self.has_learned_all());
        self.row().is_some() && self.learner.as_ref().is_none_or(consistent)
    }

    /// It has left its view, and is to keep what is worth keeping.
    pub(crate) fn rest(&mut self) {
        self.drop_sessions();
        self.learner = None;
        self.streams.iter_mut().for_each(Stream::rest);
    }

    /// The view `since` wants it again.
    pub(crate) fn rejoin(&mut self, view: &GroupView, since: ViewVersion) {
        self.rest();
        self.view = view.clone();
        self.begin_new_lives();
        self.learner = Some(Learner::resuming(since));
    }

    /// What it offers to go on from.
    pub(super) fn offer(&self) -> Option<Vec<Seq>> {
        let learner = self.learner.as_ref()?;
        learner.resuming?;
        Some(self.streams.iter().map(Stream::received).collect())
    }

    /// Lessons broke off: what has been applied by now is offered in the next ones.
    pub(super) fn offer_again(&mut self) {
        self.streams.iter_mut().for_each(Stream::rest);
        let Some(learner) = &mut self.learner else { return };
        learner.lesson.attempt = learner.lesson.attempt.saturating_add(1);
        learner.ended = RoleSet::default();
        learner.asked_at = None;
    }

    pub(super) fn count_resumed(&mut self, bytes: usize) {
        if let Some(rejoined) = self.learner.as_mut().and_then(|learner| learner.resuming.as_mut()) {
            rejoined.records += 1;
            rejoined.bytes += bytes as u64;
        }
    }

    /// What it took, for a learner that went on from what it had and is in sync now.
    pub(super) fn rejoined(&self) -> Option<Rejoined> {
        let rejoined = self.learner.as_ref()?.resuming?;
        let known = |stream: &Stream| {
            let pages = u64::from(stream.replica().touched().count()) * PAGE_BYTES as u64;
            pages + stream.replica().index().len() as u64 * ENTRY_BYTES
        };
        let instead_of_bytes = self.streams.iter().map(known).sum();
        Some(Rejoined { instead_of_bytes, ..rejoined })
    }
}

impl Stream {
    /// The primary of `term` goes on after what is here.
    pub(super) fn resume(&mut self, term: Term) {
        self.fence = term;
        self.begun = true;
        self.progress = Some(Progress { runs: u32::MAX, segments: INDEX_SEGMENTS, number: 1 });
    }
}
