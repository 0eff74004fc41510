//! Requests that are over, in the order in which they ended, and an eventfd that can be read while there are any.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::codes::{Failure, Status};
use crate::structs::Event;

/// See the module. It has no bound of its own: what it holds has not been released, and each client bounds that.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    over: BTreeMap<u64, Event>,
    last: u64,
    /// None once it is closed.
    signal: Option<EventFd>,
    /// Whether anybody has asked for the descriptor, and how many wait: to tell nobody costs a call of the system, too.
    is_watched: bool,
    waiting: usize,
}

impl State {
    /// The descriptor says whether there is something; it is told when that changes.
    fn say(&self) {
        // It counts to 1, and is written to only at 0.
        let _ = self.signal.as_ref().filter(|_| self.is_watched).map(|signal| signal.write(1));
    }

    fn unsay(&self) {
        if self.over.is_empty() {
            let _ = self.signal.as_ref().filter(|_| self.is_watched).map(EventFd::read);
        }
    }
}

impl Queue {
    pub(crate) fn new() -> Result<Self, Failure> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let signal = EventFd::from_value_and_flags(0, flags);
        let signal = signal.map_err(|error| Failure::of(Status::System, error.to_string()))?;
        let signal = Some(signal);
        let state = State { over: BTreeMap::new(), last: 0, signal, is_watched: false, waiting: 0 };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: &State) {
        if state.waiting > 0 {
            self.changed.notify_one();
        }
    }

    /// A request is over; its place, by which it can be taken out again.
    pub(crate) fn push(&self, event: Event) -> u64 {
        let mut state = self.lock();
        state.last += 1;
        let place = state.last;
        if state.signal.is_some() {
            state.over.insert(place, event);
            if state.over.len() == 1 {
                state.say();
            }
        }
        self.wake(&state);
        place
    }

    /// A request was released.
    pub(crate) fn forget(&self, place: u64) {
        let mut state = self.lock();
        if state.over.remove(&place).is_some() {
            state.unsay();
        }
    }

    /// At most so many requests that are over, as soon as there is one; none when the time is over.
    pub(crate) fn poll(&self, most: usize, until: Option<Instant>) -> Result<Vec<Event>, Failure> {
        let mut state = self.lock();
        loop {
            if state.signal.is_none() {
                return Err(Failure::of(Status::Handle, "the queue was closed"));
            }
            if !state.over.is_empty() {
                break;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Vec::new());
            }
            state.waiting += 1;
            state = match left {
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.waiting -= 1;
        }
        let mut events = Vec::with_capacity(most.min(state.over.len()));
        while events.len() < most
            && let Some((_, event)) = state.over.pop_first()
        {
            events.push(event);
        }
        state.unsay();
        if !state.over.is_empty() {
            self.wake(&state);
        }
        Ok(events)
    }

    /// The descriptor.
    pub(crate) fn descriptor(&self) -> Result<RawFd, Failure> {
        let mut state = self.lock();
        let signal = state.signal.as_ref().ok_or(Status::Handle)?.as_raw_fd();
        if !std::mem::replace(&mut state.is_watched, true) && !state.over.is_empty() {
            state.say();
        }
        Ok(signal)
    }

    /// Nothing is told any more, and whoever waits is woken.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.signal = None;
        state.over.clear();
        self.changed.notify_all();
    }
}
