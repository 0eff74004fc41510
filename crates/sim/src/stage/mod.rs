//! What all parts of the simulator share: what the seed is made of, virtual time, random numbers, and the book.

#[macro_use]
pub(crate) mod book;
pub(crate) mod brief;
pub(crate) mod clock;
pub(crate) mod queue;
pub(crate) mod report;
pub(crate) mod trace;

use proto::Now;
use rng::Rng;
use types::UnixSeconds;

use crate::options::{Options, purpose};
use book::Book;
use clock::{Clock, now_at, unix_at, unix_bounds};
use queue::{Event, Queue};
use trace::Trace;

/// Random streams, one for each part, so that one more draw here changes nothing there.
pub(crate) struct Rngs {
    pub network: Rng,
    pub clients: Rng,
    pub faults: Rng,
    pub checks: Rng,
    pub processes: Rng,
    pub succession: Rng,
    pub natives: Rng,
    pub landings: Rng,
}

/// Where everything takes place.
pub(crate) struct Stage {
    pub options: Options,
    pub queue: Queue,
    pub rng: Rngs,
    pub book: Book,
}

impl Stage {
    pub(crate) fn new(options: Options, trace: Trace) -> Self {
        let rng = |purpose| Rng::new(options.seed, purpose);
        let rng = Rngs {
            network: rng(purpose::NETWORK),
            clients: rng(purpose::CLIENTS),
            faults: rng(purpose::FAULTS),
            checks: rng(purpose::CHECKS),
            processes: rng(purpose::PROCESSES),
            succession: rng(purpose::SUCCESSION),
            natives: rng(purpose::NATIVES),
            landings: rng(purpose::LANDINGS),
        };
        Self { options, queue: Queue::default(), rng, book: Book::new(trace) }
    }

    /// Virtual time, in microseconds.
    pub(crate) fn now(&self) -> u64 {
        self.queue.now()
    }

    /// `event` is to happen in `us` microseconds.
    pub(crate) fn after(&mut self, us: u64, event: Event) {
        self.queue.push(self.queue.now() + us, event);
    }

    /// Goes on to the next event; none if there is none.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let event = self.queue.pop()?;
        self.book.turn_to(self.queue.now());
        self.book.stats.events += 1;
        Some(event)
    }

    /// Nothing happens until `until`.
    pub(crate) fn wait(&mut self, until: u64) {
        self.queue.wait(until);
        self.book.turn_to(self.queue.now());
    }

    /// What a process with these clocks reads on them now.
    pub(crate) fn read(&self, clock: &Clock) -> Now {
        now_at(&self.options, clock, self.now())
    }

    /// The true wall time.
    pub(crate) fn unix(&self) -> UnixSeconds {
        unix_at(&self.options, self.now())
    }

    /// The least that any clock of the wall shows from now on.
    pub(crate) fn least_unix(&self) -> UnixSeconds {
        unix_bounds(&self.options, self.now()).0
    }

    /// The most that any clock of the wall has ever shown, or shows.
    pub(crate) fn most_unix(&self) -> UnixSeconds {
        unix_bounds(&self.options, self.now()).1
    }
}
