//! Requests begin.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gestalt::raw::{Body, Direction, Op, Operation, Range, Sink, StoreMode};

use crate::abi::waiting::finish;
use crate::abi::{done, guard};
use crate::codes::{Failure, Status};
use crate::memory::{Lent, copy, key as key_at, lend, list, put, sized};
use crate::request::Request;
use crate::room::Room;
use crate::sinks::{Answering, Filling, Into};
use crate::structs::{Call, Outcome, Part};
use crate::table::table;

/// Which fields of a call count.
const WITH_VERSION: u32 = 1;
const WITH_RANGE: u32 = 2;
const WITH_TTL: u32 = 4;
const WITH_INITIAL: u32 = 8;
const WITH_OFFSET: u32 = 16;

const NO_CALL: Call = Call {
    size: size_of::<Call>() as u32,
    set: 0,
    queue: 0,
    tag: 0,
    timeout_ms: 0,
    version: 0,
    offset: 0,
    length: 0,
    initial: 0,
    flags: 0,
    ttl: 0,
};
/// The longest time-out, in milliseconds: a year.
const MAX_TIMEOUT_MS: u64 = 365 * 24 * 3600 * 1000;

impl Call {
    fn with<T>(&self, bit: u32, value: T) -> Option<T> {
        (self.set & bit != 0).then_some(value)
    }

    fn range(&self) -> Option<Range> {
        self.with(WITH_RANGE, Range { start: self.offset, len: self.length })
    }
}

/// What a call says, of which only these bits may be set.
///
/// # Safety
/// `call` is null or a `gestalt_call`.
unsafe fn read(call: *const Call, may_set: u32) -> Result<Call, Failure> {
    // SAFETY: the caller's.
    let call = unsafe { sized(call, NO_CALL, "gestalt_call") }?;
    if call.set & !may_set != 0 {
        return Err(Failure::of(Status::Argument, "gestalt_call: a bit is set that means nothing here"));
    }
    Ok(call)
}

/// A request that has its number and has not been asked. Dropped it is gone again.
struct Begun {
    request: Option<Arc<Request>>,
    timeout_us: Option<u64>,
}

impl Begun {
    fn at(client: u64, call: &Call) -> Result<Self, Failure> {
        let mut table = table();
        let client = table.client(client)?;
        let queue = if call.queue == 0 { None } else { Some(table.queue(call.queue)?) };
        client.hold()?;
        let request = table.add_request(|handle| Request::new(handle, call.tag, client, queue));
        let timeout_us = (call.timeout_ms > 0).then(|| call.timeout_ms.min(MAX_TIMEOUT_MS) * 1000);
        Ok(Self { request: Some(request), timeout_us })
    }

    fn request(&self) -> Result<Arc<Request>, Failure> {
        self.request.clone().ok_or_else(|| Status::Internal.into())
    }

    fn ask(mut self, key: Bytes, op: Op, sink: Box<dyn Sink>) -> Result<u64, Failure> {
        let request = self.request()?;
        let operation = Operation { key, op, timeout_us: self.timeout_us };
        request.asked(request.client().shell.submit(operation, sink)?);
        self.request = None;
        Ok(request.handle)
    }

    /// What reads no value.
    fn ask_for_answer(self, key: Bytes, op: Op, lent: Lent) -> Result<u64, Failure> {
        let sink = Box::new(Answering { request: self.request()?, lent });
        self.ask(key, op, sink)
    }

    fn ask_for_value(self, key: Bytes, op: Op, into: Into) -> Result<u64, Failure> {
        let sink = Box::new(Filling { request: self.request()?, into, meta: None, needed: 0 });
        self.ask(key, op, sink)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            let _ = table().take_request(request.handle);
            request.release();
        }
    }
}

/// Asks for something that reads no value and lends none.
///
/// # Safety
/// As the header says.
unsafe fn simple(
    client: u64,
    (key, key_len): (*const c_void, usize),
    (call, may_set): (*const Call, u32),
    request: *mut u64,
    op: impl FnOnce(&Call) -> Op,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(request, 0, "where the request goes") }?;
        let key = unsafe { key_at(key, key_len) }?;
        let call = unsafe { read(call, may_set) }?;
        let op = op(&call);
        let handle = Begun::at(client, &call)?.ask_for_answer(key, op, Lent::default())?;
        unsafe { put(request, handle, "where the request goes") }
    })
}

/// How a value is stored.
fn mode_of(number: c_int) -> Result<StoreMode, Failure> {
    Ok(match number {
        0 => StoreMode::Set,
        1 => StoreMode::Add,
        2 => StoreMode::Replace,
        3 => StoreMode::Append,
        4 => StoreMode::Prepend,
        other => return Err(Failure::of(Status::Argument, format!("mode {other}"))),
    })
}

fn store(mode: StoreMode, value: Bytes, call: &Call) -> Op {
    let (flags, ttl, compare) = (call.flags, call.ttl, call.with(WITH_VERSION, call.version));
    Op::Store { mode, body: Body::Here(value), flags, ttl, compare }
}

/// Stores a value.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_istore(
    client: u64,
    mode: c_int,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(request, 0, "where the request goes") }?;
        let (mode, key) = (mode_of(mode)?, unsafe { key_at(key, key_len) }?);
        let call = unsafe { read(call, WITH_VERSION) }?;
        let begun = Begun::at(client, &call)?;
        let (bytes, lent) = unsafe { lend(value, value_len, begun.request()?.client().checks) }?;
        let handle = begun.ask_for_answer(key, store(mode, bytes, &call), lent)?;
        unsafe { put(request, handle, "where the request goes") }
    })
}

/// Stores a value, whatever was there.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_iset(
    client: u64,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { gestalt_istore(client, 0, key, key_len, value, value_len, call, request) }
}

/// The same from a copy.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_bset(
    client: u64,
    mode: c_int,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(request, 0, "where the request goes") }?;
        let (mode, key) = (mode_of(mode)?, unsafe { key_at(key, key_len) }?);
        let call = unsafe { read(call, WITH_VERSION) }?;
        let begun = Begun::at(client, &call)?;
        let bytes = unsafe { copy(value, value_len) }?;
        let handle = begun.ask_for_answer(key, store(mode, bytes, &call), Lent::default())?;
        unsafe { put(request, handle, "where the request goes") }
    })
}

/// A key, and where its value goes.
///
/// # Safety
/// As the header says.
unsafe fn wanted(part: &Part) -> Result<(Bytes, Into), Failure> {
    // SAFETY: the caller's, here and below.
    let key = unsafe { key_at(part.key, part.key_len) }?;
    let into = if part.buffer.is_null() && part.buffer_len == 0 {
        Into::Library(Bytes::new(), BytesMut::new())
    } else {
        Into::Room(unsafe { Room::at(part.buffer, part.buffer_len) }?)
    };
    Ok((key, into))
}

/// Asks for one value.
///
/// # Safety
/// As the header says.
unsafe fn get(client: u64, part: &Part, call: &Call) -> Result<u64, Failure> {
    // SAFETY: the caller's.
    let (key, into) = unsafe { wanted(part) }?;
    let op = Op::Get { range: call.range(), touch: call.with(WITH_TTL, call.ttl) };
    Begun::at(client, call)?.ask_for_value(key, op, into)
}

/// Reads a value.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_iget(
    client: u64,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    buffer_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    let part = Part { key, key_len, buffer, buffer_len };
    // SAFETY: the caller's.
    unsafe { gestalt_imget(client, &raw const part, 1, call, request) }
}

/// Reads the values of many keys.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_imget(
    client: u64,
    parts: *const Part,
    count: usize,
    call: *const Call,
    requests: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        let parts = unsafe { list(parts, count, "the list of keys") }?;
        let call = unsafe { read(call, WITH_RANGE | WITH_TTL) }?;
        for index in 0..count {
            unsafe { put(requests.wrapping_add(index), 0, "where the requests go") }?;
        }
        let mut asked = Vec::with_capacity(count);
        for part in parts {
            match unsafe { get(client, part, &call) } {
                Ok(handle) => asked.push(handle),
                Err(failure) => {
                    // All or none.
                    asked.into_iter().for_each(forget);
                    return Err(failure);
                }
            }
        }
        for (index, handle) in asked.into_iter().enumerate() {
            unsafe { put(requests.wrapping_add(index), handle, "where the requests go") }?;
        }
        Ok(())
    })
}

fn forget(handle: u64) {
    let taken = table().take_request(handle);
    if let Ok(request) = taken {
        request.release();
    }
}

/// Reads a value and waits for it.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_bget(
    client: u64,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    buffer_len: usize,
    call: *const Call,
    outcome: *mut Outcome,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        let call = unsafe { read(call, WITH_RANGE | WITH_TTL) }?;
        if buffer.is_null() {
            return Err(Failure::of(Status::Null, "the buffer"));
        }
        let handle = unsafe { get(client, &Part { key, key_len, buffer, buffer_len }, &call) }?;
        unsafe { finish(handle, outcome) }
    })
}

/// Removes a key.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_idelete(
    client: u64,
    key: *const c_void,
    key_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    let op = |call: &Call| Op::Delete { compare: call.with(WITH_VERSION, call.version) };
    // SAFETY: the caller's.
    unsafe { simple(client, (key, key_len), (call, WITH_VERSION), request, op) }
}

fn arith(direction: Direction, delta: u64) -> impl FnOnce(&Call) -> Op {
    move |call| Op::Arith { direction, delta, initial: call.with(WITH_INITIAL, (call.initial, call.ttl)) }
}

/// Adds to a number.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_iincr(
    client: u64,
    key: *const c_void,
    key_len: usize,
    delta: u64,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    let op = arith(Direction::Increment, delta);
    // SAFETY: the caller's.
    unsafe { simple(client, (key, key_len), (call, WITH_INITIAL), request, op) }
}

/// Takes from a number.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_idecr(
    client: u64,
    key: *const c_void,
    key_len: usize,
    delta: u64,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    let op = arith(Direction::Decrement, delta);
    // SAFETY: the caller's.
    unsafe { simple(client, (key, key_len), (call, WITH_INITIAL), request, op) }
}

/// Lets a key live longer.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_itouch(
    client: u64,
    key: *const c_void,
    key_len: usize,
    ttl: u32,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { simple(client, (key, key_len), (call, 0), request, |_| Op::Touch { ttl }) }
}

/// Asks what is known of a key.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_istat(
    client: u64,
    key: *const c_void,
    key_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { simple(client, (key, key_len), (call, 0), request, |_| Op::Stat) }
}

/// Asks where the bytes of a key lie.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_ilocate(
    client: u64,
    key: *const c_void,
    key_len: usize,
    call: *const Call,
    request: *mut u64,
) -> c_int {
    let op = |call: &Call| Op::Locate { from: call.with(WITH_OFFSET, call.offset).unwrap_or(0) };
    // SAFETY: the caller's.
    unsafe { simple(client, (key, key_len), (call, WITH_OFFSET), request, op) }
}
