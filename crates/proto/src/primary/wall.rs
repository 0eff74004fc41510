//! The wall time of a role, as far as it decides that an item has expired: it never goes back, whoever serves the role.
//!
//! Every Frame carries the primary's second, never below one that it has sent before or that a parity knew before it
//! (Welcome). An item counts as expired once *every* parity knows a second that is not before its expiry: so whoever
//! takes the role over begins there, whatever its own clock shows. In between nobody is told anything: the request waits
//! for one exchange with the parities.

use types::{HostId, UnixSeconds};

use crate::Rules;

/// Clocks that are kept together do not differ by so much.
const SUSPICIOUS_SECONDS: u32 = 5;

/// See the module.
pub(super) struct Wall {
    rules: Rules,
    /// Newest second that a parity may know.
    sent: UnixSeconds,
    /// Newest second from which on something was said to have expired.
    told: UnixSeconds,
}

impl Wall {
    /// Of a role of which nothing is known yet.
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, sent: UnixSeconds(0), told: UnixSeconds(0) }
    }

    /// The role's second, by a clock that shows `clock`.
    pub(super) fn at(&self, clock: UnixSeconds) -> UnixSeconds {
        self.rules.role_time(self.sent, clock)
    }

    /// The second for the next Frame.
    pub(super) fn send(&mut self, clock: UnixSeconds) -> UnixSeconds {
        self.sent = self.sent.max(clock);
        self.sent
    }

    /// A parity knows `second`: a former primary of this role may have used it.
    pub(super) fn learn(&mut self, from: HostId, second: UnixSeconds, clock: UnixSeconds) {
        if second > self.sent && second.0 > clock.0.saturating_add(SUSPICIOUS_SECONDS) {
            tracing::warn!(%from, %second, %clock, "a former primary's clock was ahead, or this one is behind: items expire by the later one");
        }
        self.never_below(second);
    }

    /// A former primary of this role may have used `second`, and have told somebody by it.
    pub(super) fn never_below(&mut self, second: UnixSeconds) {
        self.sent = self.sent.max(second);
        self.told = self.told.max(second);
    }

    /// Newest second from which on something was said to have expired.
    pub(super) fn told(&self) -> UnixSeconds {
        self.told
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self) {
        assert!(self.told <= self.sent, "what is told expired the parities know of");
    }

    /// Whether it may be said that an item has expired which has, by the role's second: whether every parity would say so,
    /// too. `known` is the newest second that all of them know; none if there are none.
    #[cold]
    pub(super) fn may_tell(&mut self, known: Option<UnixSeconds>, clock: UnixSeconds, expiry: u32) -> bool {
        // Without parities nobody can take the role over, so nobody else has to know.
        let is_known = expiry <= known.unwrap_or(self.at(clock)).0;
        if is_known {
            self.never_below(UnixSeconds(expiry));
        }
        self.rules.expiry_needs_all_parities(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_former_primary_may_have_told_has_been_told() {
        let mut wall = Wall::new(Rules::all());
        wall.send(UnixSeconds(50));
        assert_eq!(wall.told(), UnixSeconds(0), "a second that was only sent");
        let parity = HostId { node: types::NodeId(1), incarnation: types::Incarnation(1) };
        wall.learn(parity, UnixSeconds(100), UnixSeconds(55));
        assert_eq!((wall.told(), wall.at(UnixSeconds(55))), (UnixSeconds(100), UnixSeconds(100)));
    }
}
