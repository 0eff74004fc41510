//! Sessions of clients: the names under which they write, and the calls that they make again under the same ones.
//!
//! Several clients are one process, which has one session at each data role: so several writes of a session are on their way.

use std::collections::{BTreeMap, BTreeSet};

use types::op::{Failure, Op, Outcome};
use types::{ClientSession, MAX_BEHIND, MemberId, Once};

use super::calls::Subject;

/// So often a call is made again before its client gives up.
const MAX_TRIES: u32 = 12;

/// A call that is made under a name.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub once: Once,
    /// How often it has been made.
    pub tries: u32,
    /// What it is about, once it has been made.
    pub subject: Option<Subject>,
    pub key: usize,
    pub op: Op,
}

impl Named {
    /// The same once more, if it may have been done or not, and its client has not had enough.
    pub(crate) fn again(mut self) -> Option<Self> {
        self.once.again = true;
        self.tries += 1;
        (self.tries < MAX_TRIES).then_some(self)
    }
}

/// The sessions of all processes of clients.
#[derive(Default)]
pub(crate) struct Sessions {
    all: BTreeMap<(usize, MemberId), Session>,
}

struct Session {
    id: ClientSession,
    newest: u32,
    /// Of which writes the process has not heard.
    waiting: BTreeSet<u32>,
}

impl Sessions {
    /// A session has begun.
    pub(crate) fn begin(&mut self, process: usize, member: MemberId, id: ClientSession) {
        let session = Session { id, newest: 0, waiting: BTreeSet::new() };
        // Another client of the process may have begun one at the same time: that one stays, for there are calls under it.
        self.all.entry((process, member)).or_insert(session);
    }

    /// A name for a write at `member`; none where there is no session.
    pub(crate) fn name(&mut self, process: usize, member: MemberId) -> Option<Once> {
        let session = self.all.get_mut(&(process, member))?;
        session.newest += 1;
        session.waiting.insert(session.newest);
        let sequence = session.newest;
        let floor = session.waiting.first().copied().unwrap_or(sequence);
        let behind = u16::try_from(sequence - floor).ok().filter(|behind| *behind <= MAX_BEHIND)?;
        Some(Once { session: session.id, sequence, behind, again: false })
    }

    /// Nobody waits for this write any more.
    pub(crate) fn forget(&mut self, process: usize, member: MemberId, once: &Once) {
        if let Some(session) = self.all.get_mut(&(process, member)).filter(|one| one.id == once.session) {
            session.waiting.remove(&once.sequence);
        }
    }

    /// The session is not there any more.
    pub(crate) fn end(&mut self, process: usize, member: MemberId, id: ClientSession) {
        if self.all.get(&(process, member)).is_some_and(|session| session.id == id) {
            self.all.remove(&(process, member));
        }
    }
}

/// Whether a call that has come to this may have been done, and may be made again under its name.
pub(crate) fn is_open(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(Failure::Unknown))
}
