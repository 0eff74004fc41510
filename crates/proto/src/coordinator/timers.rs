//! What a coordinator does when time has passed, and when it wants to be asked.

use types::Time;

use super::Coordinator;
use crate::Now;
use crate::timers::{Kind, TimerTable};

/// What a coordinator waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// That it has done nothing for a heartbeat. Whoever speaks puts it off; if it is late, this very process was away.
    Watch,
    /// As long as it knows nothing: those that have not answered.
    Gathering,
    /// A node that falls silent, or that nobody waits for any more; that it hears too few itself.
    Leases,
    /// A group in doubt; a parity that does not answer to a step of a recovery, a role without a place for it.
    Repairs,
    /// A primary that does not make way for its mirror.
    HandOvers,
    /// A role that was lost and is to begin anew: somebody who does not confirm that it is over, the end of a lease.
    Losses,
    /// What the planner looks at may have changed.
    Plan,
}

/// How many there are.
pub(super) const TIMERS: usize = Timer::ALL.len();

impl Kind for Timer {
    const ALL: &'static [Self] = &[
        Self::Watch,
        Self::Gathering,
        Self::Leases,
        Self::Repairs,
        Self::HandOvers,
        Self::Losses,
        Self::Plan,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

impl Coordinator {
    /// Timers. To be called at [`Self::next_deadline`], or more often: between due times it does nothing.
    pub fn tick(&mut self, now: Now) {
        self.forgive_own_absence(now.time);
        for timer in Timer::ALL {
            // What one of them brings about the others see to at once: a lease that runs out is a role to recover.
            self.arm();
            if self.timers.is_due(*timer, now.time) {
                self.run(now, *timer);
            }
        }
        self.arm();
        self.check_invariants();
    }

    fn run(&mut self, now: Now, timer: Timer) {
        let (state, repairs) = (&mut self.state, &mut self.repairs);
        match timer {
            // That it is awake has been noted already.
            Timer::Watch => {}
            Timer::Gathering => self.decide_where_to_go_on(now),
            Timer::Leases => {
                self.membership.resign_if_cut_off(now.time, state);
                if !state.outbox().has_resigned() {
                    self.membership.expire_leases(now, state, repairs);
                }
            }
            Timer::Repairs => repairs.tick(now, state),
            Timer::HandOvers => self.learners.ask_for_hand_overs(now, state),
            Timer::Losses => repairs.losses_mut().begin_accepted_roles(now, state),
            Timer::Plan => self.learners.plan(now, state),
        }
    }

    /// When [`Self::tick`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        self.timers.next()
    }

    /// Sets every timer by what its part waits for.
    pub(super) fn arm(&mut self) {
        self.timers = self.armed();
    }

    /// As [`Self::arm`], where a node that is here has said no more than that it lives, and what it has: then everything else
    /// is due no sooner than before. Only the silence of that node begins now.
    pub(super) fn arm_after_heartbeat(&mut self, now: Time) {
        self.timers.set_again(Timer::Watch, self.membership.attention().due(self.heartbeat_us()));
        if self.gathering.is_none() {
            self.timers
                .set_at_the_latest(Timer::Leases, now + self.membership.shortest_silence_us(&self.state));
            self.timers.set_again(Timer::Plan, self.learners.plan_due(&self.state));
        }
    }

    fn armed(&self) -> TimerTable<TIMERS> {
        let state = &self.state;
        let mut timers = TimerTable::default();
        if state.outbox().has_resigned() {
            return timers;
        }
        timers.set(Timer::Watch, self.membership.attention().due(self.heartbeat_us()));
        if let Some(gathering) = &self.gathering {
            timers.set(Timer::Gathering, gathering.due(state.lease_us()));
            return timers;
        }
        timers.set(Timer::Leases, self.membership.due(state));
        timers.set(Timer::Repairs, self.repairs.due(state));
        timers.set(Timer::HandOvers, self.learners.hand_overs_due(state));
        timers.set(Timer::Losses, self.repairs.losses().accepted_due(state));
        timers.set(Timer::Plan, self.learners.plan_due(state));
        timers
    }

    fn heartbeat_us(&self) -> u64 {
        self.state.timing().heartbeat_us
    }

    /// The coordinator itself was away for a while: then nobody's silence counts for that time. Whether it was.
    pub(super) fn forgive_own_absence(&mut self, now: Time) -> bool {
        let watch_us = self.heartbeat_us();
        let late_us = self.membership.forgive_own_absence(now, &mut self.state, watch_us);
        if let Some(late_us) = late_us {
            self.complaints.forget_all();
            self.gathering.iter_mut().for_each(|gathering| gathering.forgive(late_us));
        }
        late_us.is_some()
    }

    /// What holds after every event: no part waits for longer than it says.
    pub(super) fn check_timers(&self) {
        assert_eq!(self.timers.later_than(&self.armed()), None, "a timer, by its place, is late");
    }
}
