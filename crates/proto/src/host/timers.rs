//! What a host does when time has passed, beside its primaries, and when it wants to be asked.

use types::Time;

use super::Host;
use crate::Now;
use crate::timers::{Kind, TimerTable};

/// What a host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A learner whose questions have no answer, a session whose stand-in went silent.
    Parities,
    /// A scrub that waits for its pace, or was held up.
    Scrub,
    /// A request whose time is up, here or at another host.
    Requests,
    /// A request for which there was no primary.
    Routes,
    /// A parity that may come back, and does not.
    Dormants,
    /// Chunks that somebody is to be asked or told about, a value that is written or read.
    Objects,
}

/// How many there are.
pub(super) const TIMERS: usize = Timer::ALL.len();

impl Kind for Timer {
    const ALL: &'static [Self] =
        &[Self::Parities, Self::Scrub, Self::Requests, Self::Routes, Self::Dormants, Self::Objects];

    fn index(self) -> usize {
        self as usize
    }
}

impl Host {
    /// Timers. To be called at `next_deadline`, or more often; `flush` must follow.
    pub fn tick(&mut self, now: Now) {
        self.members.primaries_mut().tick(&mut self.around, now);
        for timer in self.timers.due(now.time) {
            self.run(now, timer);
        }
        self.carry_out(now);
    }

    fn run(&mut self, now: Now, timer: Timer) {
        match timer {
            Timer::Parities => self.members.tick_parities(&mut self.around, now),
            Timer::Scrub => {
                self.members.go_on_scrubbing(&mut self.around, now);
                self.streams(now).scrub();
            }
            Timer::Requests => {
                for (reply, outcome) in self.routes.take_late(now.time) {
                    self.around.out().reply(reply, outcome);
                }
            }
            Timer::Routes => self.reroute(now),
            Timer::Dormants => self.members.trim_dormant(&self.around, now),
            Timer::Objects => self.streams(now).tick(),
        }
    }

    /// Sets every timer by what its part waits for.
    pub(super) fn arm(&mut self, now: Now) {
        self.members.primaries_mut().arm(&mut self.around, now);
        let timing = &self.around.config().timing;
        let mut timers = TimerTable::default();
        timers.set(Timer::Parities, self.members.parities_due(timing));
        let scrub_of_chunks =
            self.objects.scrub_due(self.around.pace(), &self.around.config().timing, now.time);
        timers.set(Timer::Scrub, self.members.scrub_due(&self.around, now).min(scrub_of_chunks));
        timers.set(Timer::Requests, self.routes.requests_due());
        // Before there is a map no request can be routed: the first one tries them all.
        if self.views.map().is_some() {
            timers.set(Timer::Routes, self.routes.due(timing));
        }
        timers.set(Timer::Dormants, self.members.dormant_due());
        timers.set(Timer::Objects, self.objects.due(timing, self.around.pace()));
        self.timers = timers;
    }

    /// When `tick` has something to do, as of the last `flush`.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        self.members.primaries().due().min(self.timers.next())
    }
}
