//! One request: over or not, what it has come to, and who waits for it.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use gestalt::raw::{About, Layout, Meta, Places, RequestId};

use crate::client::Client;
use crate::codes::{Failure, Status};
use crate::queue::Queue;
use crate::structs::{self, Event};

/// Stands for "for ever".
const FOREVER: u32 = u32::MAX;
/// Stands for a node that nobody is.
const NOBODY: u16 = u16::MAX;

/// See the module.
pub(crate) struct Request {
    pub handle: u64,
    tag: u64,
    client: Arc<Client>,
    queue: Option<Arc<Queue>>,
    /// As the shell calls it, once it has been asked.
    asked: OnceLock<RequestId>,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    waiters: Vec<Arc<Waiter>>,
    /// In the queue.
    place: Option<u64>,
}

enum Stage {
    Pending,
    Over(Box<Ending>),
    Released,
}

/// What a request has come to.
#[derive(Debug)]
pub(crate) struct Ending {
    pub status: Status,
    pub meta: Meta,
    pub number: u64,
    pub value: Where,
    /// How long the buffer has to be.
    pub needed: u64,
    pub about: Option<About>,
    pub places: Option<Found>,
}

/// Where the value is.
#[derive(Debug)]
pub(crate) enum Where {
    Nowhere,
    /// In the library's own buffer, until the release.
    Here(Bytes),
    /// In the caller's, as an address, and so many bytes of it.
    Caller(usize, usize),
}

/// Where a key's bytes lie.
#[derive(Debug)]
pub(crate) struct Found {
    pub place: structs::Place,
    /// First byte, length, length of a cell, nodes.
    pub spans: Vec<(u64, u64, u32, Vec<u16>)>,
}

impl Ending {
    pub(crate) fn of(status: Status) -> Self {
        Self {
            status,
            meta: Meta { version: 0, flags: 0, ttl: None, value_len: 0 },
            number: 0,
            value: Where::Nowhere,
            needed: 0,
            about: None,
            places: None,
        }
    }

    fn tell(&self, tag: u64) -> structs::Outcome {
        let (data, len): (*const c_void, usize) = match &self.value {
            Where::Nowhere => (std::ptr::null(), 0),
            Where::Here(bytes) => (bytes.as_ptr().cast(), bytes.len()),
            Where::Caller(start, len) => (std::ptr::without_provenance(*start), *len),
        };
        let (chunk_len, data_chunks, layout) = match self.about.map(|about| about.layout) {
            Some(Layout::Chunks { chunk_len, k, rule }) => (chunk_len, u32::from(k), rule as u32),
            Some(Layout::Packed) | None => (0, 0, 0),
        };
        structs::Outcome {
            code: self.status as i32,
            flags: self.meta.flags,
            tag,
            data,
            len: len as u64,
            needed: self.needed,
            value_len: self.meta.value_len,
            version: self.meta.version,
            number: self.number,
            ttl: self.meta.ttl.unwrap_or(FOREVER),
            idle: self.about.map_or(0, |about| about.idle),
            was_read: self.about.map_or(0, |about| about.fetched.into()),
            chunk_len,
            data_chunks,
            layout,
        }
    }
}

impl Found {
    pub(crate) fn of(places: &Places) -> Self {
        let node = |node: &Option<_>| node.map_or(NOBODY, |id: gestalt::raw::NodeId| id.0);
        let place = structs::Place {
            slot: places.slot.0,
            group: places.group.0,
            role: u32::from(places.role.0),
            primary: places.primary.map_or(-1, |id| i32::from(id.0)),
        };
        let spans = places.found.iter().flat_map(|(_, spans)| spans);
        let spans =
            spans.map(|span| (span.start, span.len, span.cell_len, span.nodes.iter().map(node).collect()));
        Self { place, spans: spans.collect() }
    }
}

impl Request {
    pub(crate) fn new(handle: u64, tag: u64, client: Arc<Client>, queue: Option<Arc<Queue>>) -> Self {
        let state = State { stage: Stage::Pending, waiters: Vec::new(), place: None };
        Self { handle, tag, client, queue, asked: OnceLock::new(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// It has been asked.
    pub(crate) fn asked(&self, id: RequestId) {
        let _ = self.asked.set(id);
    }

    /// It is over.
    pub(crate) fn end(&self, ending: Ending) {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Pending) {
            let event =
                Event { request: self.handle, tag: self.tag, code: ending.status as i32, reserved: 0 };
            state.place = self.queue.as_ref().map(|queue| queue.push(event));
            state.stage = Stage::Over(Box::new(ending));
            wake(&mut state);
        }
    }

    pub(crate) fn is_over(&self) -> Result<bool, Failure> {
        match self.lock().stage {
            Stage::Pending => Ok(false),
            Stage::Over(_) => Ok(true),
            Stage::Released => Err(Status::Released.into()),
        }
    }

    /// Looks at what it has come to.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Ending) -> T) -> Result<T, Failure> {
        match &self.lock().stage {
            Stage::Pending => Err(Status::Pending.into()),
            Stage::Over(ending) => Ok(look(ending)),
            Stage::Released => Err(Status::Released.into()),
        }
    }

    pub(crate) fn outcome(&self) -> Result<structs::Outcome, Failure> {
        self.look(|ending| ending.tell(self.tag))
    }

    pub(crate) fn is_in_the_librarys_buffer(&self) -> Result<bool, Failure> {
        self.look(|ending| matches!(ending.value, Where::Here(_)))
    }

    /// It is over when this returns, and no buffer of the caller's is touched any more.
    pub(crate) fn cancel(&self) {
        if let Some(id) = self.asked.get() {
            self.client.shell.cancel(*id);
        }
    }

    /// The same, and its number leads nowhere any more.
    pub(crate) fn release(&self) {
        self.cancel();
        let mut state = self.lock();
        if let (Some(queue), Some(place)) = (&self.queue, state.place) {
            queue.forget(place);
        }
        state.stage = Stage::Released;
        wake(&mut state);
        self.client.let_go();
    }

    /// Whoever waits for several hears of this one. Whether it is over already.
    fn attend(&self, waiter: &Arc<Waiter>) -> Result<bool, Failure> {
        let mut state = self.lock();
        match state.stage {
            Stage::Pending => {
                state.waiters.push(Arc::clone(waiter));
                Ok(false)
            }
            Stage::Over(_) => Ok(true),
            Stage::Released => Err(Status::Released.into()),
        }
    }

    fn leave(&self, waiter: &Arc<Waiter>) {
        self.lock().waiters.retain(|one| !Arc::ptr_eq(one, waiter));
    }
}

fn wake(state: &mut State) {
    for waiter in state.waiters.drain(..) {
        waiter.ring();
    }
}

/// Somebody who waits for requests.
#[derive(Default)]
struct Waiter {
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Waiter {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_one();
    }

    /// Returns when it was rung for, or when the time is over: whether it was.
    fn sleep(&self, until: Option<Instant>) -> bool {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            rung = match left {
                Some(left) if left.is_zero() => return false,
                Some(left) => self.bell.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.bell.wait(rung).unwrap_or_else(PoisonError::into_inner),
            };
        }
        *rung = false;
        true
    }
}

/// The first of these that is over, as soon as there is one.
pub(crate) fn wait_any(requests: &[Arc<Request>], until: Option<Instant>) -> Result<usize, Failure> {
    let waiter = Arc::new(Waiter::default());
    let attended = attend_all(requests, &waiter);
    let found = match attended {
        Ok(None) => sleep(requests, &waiter, until),
        Ok(Some(index)) => Ok(index),
        Err(failure) => Err(failure),
    };
    requests.iter().for_each(|request| request.leave(&waiter));
    found
}

fn attend_all(requests: &[Arc<Request>], waiter: &Arc<Waiter>) -> Result<Option<usize>, Failure> {
    for (index, request) in requests.iter().enumerate() {
        if request.attend(waiter)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn sleep(requests: &[Arc<Request>], waiter: &Waiter, until: Option<Instant>) -> Result<usize, Failure> {
    loop {
        if !waiter.sleep(until) {
            return Err(Status::Pending.into());
        }
        for (index, request) in requests.iter().enumerate() {
            if request.is_over()? {
                return Ok(index);
            }
        }
    }
}
