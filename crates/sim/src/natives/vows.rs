//! What nodes have said to native clients and have to stand by: for how long the id of a value is open, and that nobody guesses a session.

use std::collections::{BTreeMap, BTreeSet};

use native::Ask;
use types::op::{Failure, Outcome};
use types::{MemberId, ObjectId, Term};

use crate::stage::book::Broken;

/// Numbers of sessions that are nearer to each other than that are no secret: by chance one pair in 2^31 is.
const NEAR: u64 = 1 << 32;

/// A request: its connection, and its number there.
type Asked = (u32, u64);

/// See the module.
#[derive(Default)]
pub(crate) struct Vows {
    /// Ids that are to stay open, and when that was asked.
    renewals: BTreeMap<Asked, (ObjectId, u64)>,
    /// Since when the owner has kept an id open at least, as it has said last.
    open: BTreeMap<ObjectId, u64>,
    /// Ids that somebody has asked to commit, or to abandon: those may be gone at any time.
    closing: BTreeSet<ObjectId>,
    sessions: BTreeSet<u64>,
}

impl Vows {
    /// A node hears a request.
    pub(crate) fn hear(&mut self, now: u64, asked: Asked, ask: &Ask) {
        match ask {
            Ask::Renew(object) => drop(self.renewals.insert(asked, (*object, now))),
            Ask::Commit(commit) => drop(self.closing.insert(commit.written.object)),
            Ask::Abandon(written) => drop(self.closing.insert(written.object)),
            _ => {}
        }
    }

    /// What has come of it. An id stays open for `open_us` from when it is renewed on, as long as its owner is the same.
    pub(crate) fn settle(
        &mut self,
        now: u64,
        asked: Asked,
        outcome: &Outcome,
        open_us: u64,
        term_of: impl Fn(MemberId) -> Option<Term>,
    ) -> Result<(), Broken> {
        if let Outcome::Session(session) = outcome {
            return self.begin_session(session.0);
        }
        let Some((object, at)) = self.renewals.remove(&asked) else { return Ok(()) };
        match outcome {
            Outcome::Noted => drop(self.open.insert(object, at)),
            Outcome::Failed(Failure::NotOpen) if term_of(object.owner) == Some(object.term) => {
                let since = self.open.get(&object).copied().filter(|_| !self.closing.contains(&object));
                // Clocks differ a little.
                let is_early = since.is_some_and(|since| now < since + open_us - open_us / 10);
                if is_early {
                    return Err(("renewal", format!("{object} was renewed at {since:?} and is gone")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_session(&mut self, number: u64) -> Result<(), Broken> {
        let near = self.sessions.range(number.saturating_sub(NEAR)..=number.saturating_add(NEAR)).next();
        if let Some(near) = near {
            return Err(("session", format!("whoever has session {near} guesses session {number}")));
        }
        self.sessions.insert(number);
        Ok(())
    }
}
