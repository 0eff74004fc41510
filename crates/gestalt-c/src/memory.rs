//! The caller's memory. This is where C's word is taken for what cannot be checked: that so many bytes are there, and that they stay there for as
//! long as the header says.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::codes::{Failure, Status};

/// Longest key.
pub(crate) const MAX_KEY_BYTES: usize = 250;
/// Longest list of one call.
pub(crate) const MAX_LIST: usize = 1 << 20;
/// Values up to this length are copied at once: that costs less than to look after them.
const COPIED_BYTES: usize = 4096;

/// The text at `text`.
///
/// # Safety
/// `text` is null or ends with a zero byte, and nobody changes it for as long as the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::of(Status::Null, what));
    }
    // SAFETY: not null; the rest is the caller's.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| Failure::of(Status::Argument, format!("{what} is not text")))
}

/// A copy of the key at `key`.
///
/// # Safety
/// `key` is null or has `len` bytes.
pub(crate) unsafe fn key(key: *const c_void, len: usize) -> Result<Bytes, Failure> {
    if !(1..=MAX_KEY_BYTES).contains(&len) {
        return Err(Status::BadKey.into());
    }
    // SAFETY: the caller's.
    let bytes = unsafe { bytes_at(key, len, "the key") }?;
    Ok(Bytes::copy_from_slice(bytes))
}

/// A copy of what keys begin with at `prefix`.
///
/// # Safety
/// `prefix` is null or has `len` bytes.
pub(crate) unsafe fn prefix(prefix: *const c_void, len: usize) -> Result<Bytes, Failure> {
    if len > MAX_KEY_BYTES {
        return Err(Status::BadKey.into());
    }
    // SAFETY: the caller's.
    let bytes = unsafe { bytes_at(prefix, len, "the prefix") }?;
    Ok(Bytes::copy_from_slice(bytes))
}

unsafe fn bytes_at<'a>(start: *const c_void, len: usize, what: &str) -> Result<&'a [u8], Failure> {
    check(start, len, what)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null, and not longer than memory is; the rest is the caller's.
    Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
}

pub(crate) fn check(start: *const c_void, len: usize, what: &str) -> Result<(), Failure> {
    if len > isize::MAX as usize {
        return Err(Failure::of(Status::Argument, format!("{what} of {len} bytes")));
    }
    if start.is_null() && len > 0 {
        return Err(Failure::of(Status::Null, what));
    }
    Ok(())
}

/// `count` entries at `entries`.
///
/// # Safety
/// `entries` is null or there are so many, and nobody changes them for as long as the result is used.
pub(crate) unsafe fn list<'a, T>(entries: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if count > MAX_LIST {
        return Err(Failure::of(Status::Argument, format!("{what} has {count} entries")));
    }
    check(entries.cast(), count, what)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: not null; the rest is the caller's.
    Ok(unsafe { slice::from_raw_parts(entries, count) })
}

/// Writes a result.
///
/// # Safety
/// `place` is null or may be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::of(Status::Null, what));
    }
    // SAFETY: not null; the rest is the caller's.
    unsafe { place.write(value) };
    Ok(())
}

/// A struct that begins with its own size, or what stands for null.
///
/// # Safety
/// `place` is null or such a struct.
pub(crate) unsafe fn sized<T: Copy>(place: *const T, default: T, what: &str) -> Result<T, Failure> {
    if place.is_null() {
        return Ok(default);
    }
    // SAFETY: each has its size in its first four bytes; the rest is the caller's.
    let size = unsafe { place.cast::<u32>().read() };
    if size as usize != size_of::<T>() {
        return Err(Failure::of(Status::Argument, format!("{what} says that it has {size} bytes")));
    }
    // SAFETY: it says that it is of this size; the rest is the caller's.
    Ok(unsafe { place.read() })
}

/// A value that is sent from where the caller has it.
struct Loan {
    start: *const u8,
    len: usize,
    returned: Arc<AtomicBool>,
}

// SAFETY: it is read only, and the caller changes nothing until the request is over.
unsafe impl Send for Loan {}

impl AsRef<[u8]> for Loan {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: checked by `lend`; it stays there until the request is over, and then nobody looks at it any more (see `gestalt::shell`).
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.returned.store(true, Ordering::Release);
    }
}

/// What the sink of a write knows of its value's memory.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    memory: Option<(Range<usize>, Arc<AtomicBool>)>,
    /// Where it is and what it was, if that is to be compared.
    seal: Option<Seal>,
}

/// That a value has not changed.
#[derive(Debug)]
struct Seal {
    start: *const u8,
    len: usize,
    sum: u64,
}

// SAFETY: it is read only, once, before the request is over.
unsafe impl Send for Seal {}

impl Lent {
    /// The memory that somebody still holds on to.
    pub(crate) fn held(&self) -> Option<Range<usize>> {
        let (memory, returned) = self.memory.as_ref()?;
        (!returned.load(Ordering::Acquire)).then(|| memory.clone())
    }

    /// Whether the caller has kept its hands off.
    pub(crate) fn is_intact(&self) -> bool {
        self.seal.as_ref().is_none_or(|seal| {
            // SAFETY: as for `Loan`.
            xxh3_64(unsafe { slice::from_raw_parts(seal.start, seal.len) }) == seal.sum
        })
    }
}

/// A value as it lies: not copied if it is long, and compared at the end if `checked`.
///
/// # Safety
/// `value` is null or has `len` bytes, which nobody changes until the request is over.
pub(crate) unsafe fn lend(value: *const c_void, len: usize, checked: bool) -> Result<(Bytes, Lent), Failure> {
    // SAFETY: the caller's.
    let bytes = unsafe { bytes_at(value, len, "the value") }?;
    let (start, len) = (bytes.as_ptr(), bytes.len());
    let seal = checked.then(|| Seal { start, len, sum: xxh3_64(bytes) });
    if len <= COPIED_BYTES {
        return Ok((Bytes::copy_from_slice(bytes), Lent { memory: None, seal }));
    }
    let returned = Arc::new(AtomicBool::new(false));
    let memory = Some((start as usize..start as usize + len, Arc::clone(&returned)));
    Ok((Bytes::from_owner(Loan { start, len, returned }), Lent { memory, seal }))
}

/// A copy of a value.
///
/// # Safety
/// `value` is null or has `len` bytes.
pub(crate) unsafe fn copy(value: *const c_void, len: usize) -> Result<Bytes, Failure> {
    // SAFETY: the caller's.
    Ok(Bytes::copy_from_slice(unsafe { bytes_at(value, len, "the value") }?))
}
