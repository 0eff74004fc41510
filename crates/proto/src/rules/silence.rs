//! What a coordinator makes of processes that it does not hear.

use super::{Bug, Rules};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct SilenceRules(Rules);

impl SilenceRules {
    /// Those of all rules that are about silence.
    pub(crate) fn of(rules: Rules) -> Self {
        Self(rules)
    }

    /// Processes that may only stand still or be cut off are waited for where nobody else has what they have.
    pub(crate) fn is_waited_for(self) -> bool {
        self.0.prevent(Bug::SilentGivenUp)
    }

    /// Hosts that have not been heard for a while may have ended, whatever is decided meanwhile.
    pub(crate) fn may_be_an_end(self) -> bool {
        self.0.prevent(Bug::QuietCountedOn)
    }
}
