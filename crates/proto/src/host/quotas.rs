//! Shares of quotas: what the coordinator deals out, and when that is said to have been heard.

use types::{Grant, Round};

use super::Host;
use crate::Now;
use crate::outbox::Context;
use crate::primary::Primary;

impl Host {
    /// The coordinator deals out `grants`.
    pub(super) fn handle_shares(&mut self, now: Now, round: Round, grants: &[Grant]) {
        self.around.config().quotas.deal(round, grants);
        self.round = Some(round);
        if !grants.is_empty() {
            // Whoever has waited for it may go on.
            let go_on = |primary: &mut Primary, context: &mut Context<'_>| primary.retry_waiting(context);
            self.members.primaries_mut().for_each(&mut self.around, now, go_on);
            self.streams(now).keep_to_shares();
        }
    }

    /// Says that the newest round was heard, once it is charged what all primaries and holders here take, those that the coordinator had
    /// appointed before included. Of holders it is charged as soon as a map or a view is adopted.
    pub(super) fn note_round(&mut self, now: Now) {
        let Some(round) = self.round else { return };
        if self.members.primaries_mut().all_heed_catalog(&mut self.around, now) {
            let config = self.around.config();
            config.quotas.note_heard(config.shard.into(), round);
            self.round = None;
        }
    }
}
