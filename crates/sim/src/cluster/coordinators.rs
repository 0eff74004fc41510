//! The coordinators that live: the elected one, and former ones that have not noticed.
//!
//! What a coordinator sends waits until the records before it are written. What it wants done is taken from it with
//! [`Coordinators::next_action`], and done elsewhere.

use proto::CoordinatorAction;
use wire::record::Record;

use super::process::{CoordinatorInput, CoordinatorProcess};
use super::store::RecordStore;
use crate::options::Succession;
use crate::stage::Stage;
use crate::stage::clock::Clock;
use crate::stage::queue::Event;

/// Most records that are written at once.
const MAX_WRITE: u64 = 8;

/// All coordinators of a cluster, by number: each that is elected has the next one.
pub(crate) struct Coordinators {
    living: Vec<CoordinatorProcess>,
    /// The number of the elected one.
    leader: Option<u32>,
    elected: u32,
    /// Whether the elected one started with nothing and has not heard enough yet.
    gathering: bool,
}

impl Coordinators {
    /// The first one, about to start.
    pub(crate) fn new(stage: &mut Stage) -> Self {
        let clock = Clock::draw(&mut stage.rng.processes, stage.options.drift_ppm);
        let first = CoordinatorProcess::new(&stage.options, clock);
        Self { living: vec![first], leader: Some(0), elected: 0, gathering: false }
    }

    // --- who is who ---

    /// The coordinator with this number, if it lives.
    pub(crate) fn get(&self, number: u32) -> Option<&CoordinatorProcess> {
        self.living.iter().find(|process| process.number == number)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut CoordinatorProcess> {
        self.living.iter_mut().find(|process| process.number == number)
    }

    /// The number of the elected one.
    pub(crate) fn leader(&self) -> Option<u32> {
        self.leader
    }

    /// Whether this is the elected one.
    pub(crate) fn leads(&self, number: u32) -> bool {
        self.leader == Some(number)
    }

    /// The process of the elected one.
    pub(crate) fn leading(&self) -> Option<&CoordinatorProcess> {
        self.get(self.leader?)
    }

    pub(crate) fn leading_mut(&mut self) -> Option<&mut CoordinatorProcess> {
        self.get_mut(self.leader?)
    }

    /// The number of the elected one, if nodes reach it.
    pub(crate) fn reachable(&self) -> Option<u32> {
        self.leading().filter(|leader| !leader.isolated).map(|leader| leader.number)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.living.iter().map(|process| process.number).collect()
    }

    // --- inputs and timers ---

    /// An input comes to a coordinator; it is given back if it is to be fed now, and not when the coordinator goes on after a
    /// pause.
    pub(crate) fn accept(&mut self, number: u32, input: CoordinatorInput) -> Option<CoordinatorInput> {
        let process = self.get_mut(number)?;
        if !process.paused {
            return Some(input);
        }
        process.backlog.push_back(input);
        None
    }

    /// Sets the timer of a coordinator: by what it waits for, and by when the store has news for it.
    pub(crate) fn arm(&mut self, stage: &mut Stage, number: u32, news_at: Option<u64>) {
        let Some(process) = self.get_mut(number) else { return };
        let deadline = process.coordinator.next_deadline();
        // Not at this very moment: a deadline that has passed would wake it again and
        // again, and time would stand still.
        let due = process.clock.when(deadline, stage.now() + 1);
        let Some(at) = due.into_iter().chain(news_at).min() else { return };
        if at < process.tick_at {
            process.tick_at = at;
            stage.queue.push(at, Event::CoordinatorTick { number });
        }
    }

    /// Whether the timer was not set anew since, and the coordinator does not stand still.
    pub(crate) fn tick_is_due(&mut self, stage: &Stage, number: u32) -> bool {
        let Some(process) = self.get_mut(number) else { return false };
        // Nothing can be taken out of the queue. A tick that was set anew since is known by its time.
        let is_due = process.tick_at == stage.now();
        if is_due {
            process.tick_at = u64::MAX;
        }
        is_due && !process.paused
    }

    // --- actions ---

    /// The next action that need not wait for a record.
    pub(crate) fn next_action(&mut self, number: u32) -> Option<CoordinatorAction> {
        let process = self.get_mut(number)?;
        process.waiting.extend(std::iter::from_fn(|| process.coordinator.poll_action()));
        if process.awaits_store { None } else { process.waiting.pop_front() }
    }

    /// One action more is done; whether the coordinator was to end after it.
    pub(crate) fn was_the_last(&mut self, number: u32) -> bool {
        let Some(process) = self.get_mut(number) else { return false };
        process.ends_after = process.ends_after.map(|left| left.saturating_sub(1));
        process.ends_after == Some(0)
    }

    /// `record`, and what is to be recorded right after it, comes to the store some time later.
    pub(crate) fn write_later(&mut self, stage: &mut Stage, number: u32, record: Record, write_us: u64) {
        let most = stage.rng.succession.range(1, MAX_WRITE) as usize;
        let after = 1 + stage.rng.succession.below(write_us);
        let Some(process) = self.get_mut(number) else { return };
        process.awaits_store = true;
        process.writing.push(record);
        // How many go together is drawn, so that a coordinator can end between any two of its records.
        while process.writing.len() < most
            && let Some(CoordinatorAction::Record(_)) = process.waiting.front()
        {
            if let Some(CoordinatorAction::Record(next)) = process.waiting.pop_front() {
                process.writing.push(next);
            }
        }
        stage.after(after, Event::Write { number });
    }

    /// Takes what it is writing.
    pub(crate) fn take_writing(&mut self, number: u32) -> Option<Vec<Record>> {
        self.get_mut(number).map(|process| std::mem::take(&mut process.writing))
    }

    /// Whether a coordinator that started with nothing has heard enough; said once.
    pub(crate) fn goes_on(&mut self, number: u32) -> bool {
        let knows = self.get(number).is_some_and(|process| process.coordinator.gathered().is_none());
        self.leads(number) && knows && std::mem::take(&mut self.gathering)
    }

    // --- one after another ---

    /// The process of a coordinator ends.
    pub(crate) fn remove(&mut self, number: u32) -> Option<CoordinatorProcess> {
        let at = self.living.iter().position(|process| process.number == number)?;
        Some(self.living.remove(at))
    }

    /// Nobody is elected any more; sooner or later somebody will be, unless that is done by hand.
    pub(crate) fn step_down(&mut self, stage: &mut Stage) {
        self.leader = None;
        let gap_us = match stage.options.succession {
            Some(Succession { by_hand: true, .. }) => return,
            Some(Succession { gap_us, .. }) => gap_us,
            None if stage.options.faults.forgets => 2 * stage.options.timing.node_lease_us,
            None => return,
        };
        let after = stage.rng.succession.below(gap_us + 1);
        stage.after(after, Event::Election);
    }

    /// A coordinator that was deposed notices sooner or later, whatever it does.
    pub(crate) fn notices_later(&self, stage: &mut Stage, number: u32) {
        let late_us = stage.options.succession.map_or(0, |succession| succession.late_us);
        let after = stage.rng.succession.below(2 * late_us + 1);
        stage.after(after, Event::Deposed { number });
    }

    /// The next coordinator goes on from what is recorded, or starts with nothing. Its clock is another one.
    pub(crate) fn elect(&mut self, stage: &mut Stage, store: &RecordStore) -> Option<u32> {
        self.elected += 1;
        stage.book.stats.successions += 1;
        let number = self.elected;
        note!(stage.book, "coordinator {number} is elected");
        let clock = Clock::draw(&mut stage.rng.succession, stage.options.drift_ppm);
        match succeed(stage, store, number, clock) {
            Ok(process) => self.living.push(process),
            Err(what) => {
                stage.book.fail("records", None, what);
                return None;
            }
        }
        self.leader = Some(number);
        self.gathering = stage.options.succession.is_none();
        Some(number)
    }

    /// Whether the elected one has started with nothing and has not heard enough yet.
    pub(crate) fn is_gathering(&self) -> bool {
        self.gathering
    }

    // --- pauses ---

    /// A coordinator stands still.
    pub(crate) fn pause(&mut self, stage: &mut Stage, number: u32) {
        note!(stage.book, "coordinator {number} stands still");
        if let Some(process) = self.get_mut(number) {
            process.paused = true;
        }
    }

    /// A coordinator goes on; false if it did not stand still.
    pub(crate) fn wake(&mut self, stage: &mut Stage, number: u32) -> bool {
        let was_paused = self.get_mut(number).is_some_and(|it| std::mem::take(&mut it.paused));
        if was_paused {
            note!(stage.book, "coordinator {number} goes on");
        }
        was_paused
    }

    /// The oldest input that has waited.
    pub(crate) fn next_waiting(&mut self, number: u32) -> Option<CoordinatorInput> {
        self.get_mut(number)?.backlog.pop_front()
    }
}

fn succeed(
    stage: &Stage,
    store: &RecordStore,
    number: u32,
    clock: Clock,
) -> Result<CoordinatorProcess, String> {
    if stage.options.succession.is_none() {
        return Ok(CoordinatorProcess::gather(&stage.options, number, clock, stage.now()));
    }
    let records = store.records()?;
    let resumed = CoordinatorProcess::resume(&stage.options, number, clock, records, stage.now());
    resumed.map_err(|error| error.to_string())
}
