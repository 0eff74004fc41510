//! The rules of writes that are done once (docs/protocol.md).

use types::Once;

use super::{Bug, Rules};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct SessionRules(Rules);

impl Rules {
    /// Those of writes that are done once.
    pub(crate) fn sessions(self) -> SessionRules {
        SessionRules(self)
    }
}

impl SessionRules {
    /// What came of a write that was done is said again, for as long as the client waits for it, whoever has done it. The newest write
    /// of its session that was done is `newest`; whether that has begun with this primary `is_own` says.
    pub(crate) fn results_are_said_again(self, once: &Once, newest: Option<u32>, is_own: bool) -> bool {
        let is_newest = newest.is_none_or(|newest| once.sequence >= newest);
        self.0.prevent(Bug::RetryDoneAnew)
            && (is_newest || self.0.prevent(Bug::ResultDroppedEarly))
            && (is_own || self.0.prevent(Bug::ResultsForgottenAtTakeover))
    }

    /// What is on its way counts as done.
    pub(crate) fn writes_under_way_count(self) -> bool {
        self.0.prevent(Bug::RetryBesideItself)
    }

    /// What is said of a write that may have come before is kept, also where it has changed nothing.
    pub(crate) fn refusals_are_kept(self) -> bool {
        self.0.prevent(Bug::RefusalNotKept)
    }

    /// The record that commits an object says what came of the write, as that of any other write does.
    pub(crate) fn commits_are_named(self) -> bool {
        self.0.prevent(Bug::CommitUnnamed)
    }

    /// Nobody learns from his session's number which another one has.
    pub(crate) fn numbers_are_secret(self) -> bool {
        self.0.prevent(Bug::SessionsCounted)
    }

    /// A lesson begins with sessions and results, too.
    pub(crate) fn lessons_tell_of_sessions(self) -> bool {
        self.0.prevent(Bug::SessionsNotLearned)
    }
}
