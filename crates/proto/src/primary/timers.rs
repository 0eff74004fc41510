//! What a primary does when time has passed, and when it wants to be asked.

use store::Tenants;
use types::Time;
use types::op::{Failure, Outcome};

use super::lessons::Required;
use super::{Primary, yielding};
use crate::outbox::Context;
use crate::timers::{Kind, TimerTable};

/// What a primary waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A Frame without records, a Hello that has no answer, a parity that is silent for too long.
    Parities,
    /// An absent parity that does not come back.
    Absentees,
    /// A learner that does not move, a report that nobody heeded, the pace at which lessons go on.
    Lessons,
    /// A hand-over that no view follows.
    HandOver,
    /// Expired items, vacant extents, memory that was refused, a flush that was ordered for a time.
    Upkeep,
    /// A part of the index that does not come.
    Takeover,
    /// A session that does not end or is to be tried again, the pace of the sweep, a report that nobody heeded.
    Repair,
    /// The end of the former primary's lease.
    Serving,
    /// A request whose time is up.
    Requests,
    /// An object that nobody goes on writing, or reading.
    Objects,
    /// Items that go to another pool.
    Departures,
}

/// What has happened since the timers were set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Touched {
    #[default]
    Not,
    /// A request or an acknowledgement. Unless somebody learns or is repaired, it changes nothing but what is due to parities and
    /// clients.
    ByTraffic,
    ByEvents,
}

/// How many there are.
pub(super) const TIMERS: usize = Timer::ALL.len();

impl Kind for Timer {
    const ALL: &'static [Self] = &[
        Self::Parities,
        Self::Absentees,
        Self::Lessons,
        Self::HandOver,
        Self::Upkeep,
        Self::Takeover,
        Self::Repair,
        Self::Serving,
        Self::Requests,
        Self::Objects,
        Self::Departures,
    ];

    fn index(self) -> usize {
        self as usize
    }
}

impl Primary {
    /// Runs the timers that are due.
    pub(crate) fn tick(&mut self, context: &mut Context<'_>) {
        if self.timers.next() > context.now.time {
            return;
        }
        let mut any = false;
        for timer in self.timers.due(context.now.time) {
            self.run(context, timer);
            any = true;
        }
        if any {
            self.touch(Touched::ByEvents);
            self.retry_waiting(context);
        }
    }

    fn run(&mut self, context: &mut Context<'_>, timer: Timer) {
        let now = context.now.time;
        match timer {
            Timer::Parities => {
                // An idle Frame has no other cause, and `flush` looks at nothing that nobody has stirred.
                self.stream.stir();
                self.parities.tick(context, &self.core, self.stream.committed());
            }
            Timer::Absentees => self.absentees.tick(now, context.timing),
            Timer::Lessons => {
                self.stream.stir();
                self.report_ended_lessons(context);
                self.lessons.complain(context, &self.core);
            }
            Timer::HandOver => {
                self.hand_over.reconsider(now, &self.core, &mut self.parities, &mut self.stream);
            }
            Timer::Upkeep => self.keep_up(context),
            Timer::Takeover => self.phase.retry_takeover(context, &self.core, &self.parities),
            Timer::Repair => {
                self.repair.tick(context, &self.core);
                self.go_on_repairing(context);
            }
            // Those who wait for it are tried again after all timers.
            Timer::Serving => {}
            Timer::Requests => {
                for pending in self.waiting.take_expired(now) {
                    let outcome = pending.request.in_all(Outcome::Failed(Failure::Unavailable));
                    context.reply(pending.reply, outcome);
                }
                self.stream.expire_answers(context);
            }
            Timer::Objects => self.objects.tick(context, &self.core),
            Timer::Departures => {
                self.give_away(context);
                // Some may wait until a namespace leaves, or until a value is written that its writer began before.
                self.retry_waiting(context);
            }
        }
    }

    /// Sets the timers by what their parts wait for, as far as that may have changed; when the first one is due. Called once per
    /// batch of events, when all that they brought about is sent.
    pub(crate) fn arm(&mut self, context: &Context<'_>) -> Time {
        let touched = std::mem::take(&mut self.touched);
        let timing = context.timing;
        let is_steady = self.lessons.is_empty() && !self.core.is_rebuilding();
        match touched {
            Touched::Not => {}
            Touched::ByTraffic if is_steady => {
                let requests = self.waiting.due().min(self.stream.answers_due(timing));
                self.timers.set_again(Timer::Parities, self.parities.due(self.stream.committed(), timing));
                self.timers.set_again(Timer::Requests, requests);
                self.timers.set_again(Timer::Objects, self.objects.due());
                // Where nothing leaves it is not set: what has ended leaving was an event.
                if !self.departures.is_empty() {
                    self.timers.set_again(Timer::Departures, self.departures.due(timing));
                }
            }
            Touched::ByTraffic | Touched::ByEvents => self.timers = self.armed(context),
        }
        // What one batch did not get done is due with the next.
        let rest = if self.stream.is_stirred() { context.now.time } else { Time::NEVER };
        self.timers.next().min(rest)
    }

    /// What holds after every batch, for a primary that is looked at again at `due`: it was armed after all that has happened, and no
    /// part waits for longer than it says.
    pub(crate) fn check_timers(&self, context: &Context<'_>, due: Time) {
        assert_eq!(self.touched, Touched::Not, "something has happened, and nobody looks");
        assert!(due <= self.timers.next(), "a primary is due before anybody looks");
        assert_eq!(self.timers.later_than(&self.armed(context)), None, "a timer, by its place, is late");
    }

    fn armed(&self, context: &Context<'_>) -> TimerTable<TIMERS> {
        let (now, timing) = (context.now.time, context.timing);
        let mut timers = TimerTable::default();
        timers.set(Timer::Parities, self.parities.due(self.stream.committed(), timing));
        timers.set(Timer::Absentees, self.absentees.due(timing));
        let required = Required::of(&self.stream, &self.wall);
        timers.set(Timer::Lessons, self.lessons.due(context, &self.parities, required));
        timers.set(Timer::HandOver, self.hand_over.due());
        if self.phase.store().is_some() {
            timers.set(Timer::Upkeep, self.kept_up + timing.heartbeat_us);
        }
        timers.set(Timer::Takeover, self.phase.due(timing));
        timers.set(Timer::Repair, self.repair.due(context, self.core.is_rebuilding()));
        if self.serve_from > now {
            timers.set(Timer::Serving, self.serve_from);
        }
        timers.set(Timer::Requests, self.waiting.due().min(self.stream.answers_due(timing)));
        timers.set(Timer::Objects, self.objects.due());
        timers.set(Timer::Departures, self.departures.due(timing));
        timers
    }

    /// Something happens that may change what it waits for.
    pub(crate) fn touch(&mut self, by: Touched) {
        self.touched = self.touched.max(by);
    }

    /// Memory that was refused may be there by now; some items have expired, and some extents are empty.
    fn keep_up(&mut self, context: &mut Context<'_>) {
        self.kept_up = context.now.time;
        let Some(store) = self.phase.store_mut() else { return };
        self.space.tick(context.now.time, store);
        self.heed_catalog(context);
        self.give_away(context);
        if self.may_serve(context.now.time, context.timing) {
            let store = self.phase.serving_mut();
            if self.departures.let_flush(store, context.now.unix) {
                self.stream.flush_due(context, store);
            }
            let wall = self.wall.at(context.now.unix);
            self.sessions.expire(context, store, &mut self.stream);
            self.space.crawl(context, store, &mut self.stream, wall);
            self.space.evict_excess(context, store, &mut self.stream, &self.charges, wall);
        }
        self.release_if_due(context);
        // Roles that the node is to get have no room: what is left in sparse extents moves together.
        match self.core.budget().lacks_what_it_keeps() {
            true => _ = yielding::make_way(self, context),
            false => yielding::go_on(self, context),
        }
    }

    /// Other things may hold for the items of a namespace by now, or it may be no more. Whether this is known of all items: a stand-in
    /// has none yet that fetches its index.
    pub(crate) fn heed_catalog(&mut self, context: &Context<'_>) -> bool {
        let Some(store) = self.phase.store_mut() else { return false };
        if store.tenants().edition() == context.edition {
            return true;
        }
        let Some(pool) = context.catalog.pool_of_group(self.core.member().group) else { return false };
        let eviction = self.core.config().eviction;
        store.set_tenants(Tenants::of(context.catalog, pool.id, eviction, context.edition));
        self.charges.heed(context.quotas, context.catalog, pool.id, store.replica().cohorts());
        true
    }
}
