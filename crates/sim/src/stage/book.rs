//! The book of a run: what was counted, the digest, the trace, and the first rule that was broken.
//!
//! Everybody may write into it, and nobody's behaviour depends on what it says.

use types::GroupId;

use super::brief::Digest;
use super::report::{Failure, Stats};
use super::trace::Trace;

/// Writes a line to the trace of the book `$book`, if it has one.
macro_rules! note {
    ($book:expr, $($arg:tt)*) => {
        if $book.is_traced() {
            let line = format!($($arg)*);
            $book.line(&line);
        }
    };
}

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    Key(usize),
    Group(GroupId),
}

/// A broken rule: its name, and what was seen.
pub(crate) type Broken = (&'static str, String);

/// What is written down while a run goes on.
pub(crate) struct Book {
    /// When that happens which is written down.
    at: u64,
    trace: Trace,
    digest: Digest,
    failure: Option<Failure>,
    /// What the failure is about.
    suspect: Option<Suspect>,
    pub stats: Stats,
}

impl Book {
    pub(crate) fn new(trace: Trace) -> Self {
        let (digest, stats) = (Digest::default(), Stats::default());
        Self { at: 0, trace, digest, failure: None, suspect: None, stats }
    }

    /// It is virtual time `at` now.
    pub(crate) fn turn_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Whether lines go anywhere, so that it is worth while to write them.
    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_on()
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.trace.line(self.at, text);
    }

    /// The lines that were kept, oldest first.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.trace.lines()
    }

    /// Something happened that two equal runs have in common.
    pub(crate) fn mix(&mut self, number: u64) {
        self.digest.mix(number);
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// A rule is broken. The first one counts.
    pub(crate) fn fail(&mut self, rule: &'static str, suspect: Option<Suspect>, what: String) {
        note!(self, "BROKEN {rule}: {what}");
        // Whatever breaks later may only be a consequence.
        if self.failure.is_none() {
            self.failure = Some(Failure { at: self.at, event: self.stats.events, rule, what });
            self.suspect = suspect;
        }
    }

    /// Whether a rule was broken.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The first rule that was broken.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// What that is about.
    pub(crate) fn suspect(&self) -> Option<Suspect> {
        self.suspect
    }
}
