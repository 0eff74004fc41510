//! Holders that have no room now are making some: they are asked again soon, and then after as long as it has taken so far.

use types::Time;

use crate::Timing;

/// The first pause is so small a part of the one after which all else is tried again: about as long as it takes to empty an extent.
const FIRST_SHARE: u64 = 32;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    since: Time,
    /// The last refusal.
    last: Time,
}

impl Crowd {
    /// One more refusal, after those of `before`.
    pub(super) fn after(before: Option<Self>, now: Time) -> Self {
        Self { since: before.map_or(now, |before| before.since), last: now }
    }

    /// For how long there has been no room, in microseconds.
    pub(super) fn lasts_us(&self, now: Time) -> u64 {
        now.since(self.since)
    }

    /// When it is worth asking again.
    pub(super) fn again_at(&self, timing: &Timing) -> Time {
        let so_far = self.last.since(self.since);
        self.last + so_far.clamp(timing.retry_us / FIRST_SHARE, timing.retry_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_one_of_all_else() {
        let timing = Timing::from_lease(1_000_000);
        let (mut crowd, mut now) = (None, Time(7));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let refused = Crowd::after(crowd, now);
            crowd = Some(refused);
            pauses.push(refused.again_at(&timing).since(now) / 1000);
            now = refused.again_at(&timing);
        }
        assert_eq!(pauses, [15, 15, 31, 62, 125, 250, 500, 500]);
        assert_eq!(crowd.map(|crowd| crowd.lasts_us(now)), Some(now.since(Time(7))));
    }
}
