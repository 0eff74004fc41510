//! Requests end.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::{done, guard, until};
use crate::codes::{Failure, Status};
use crate::memory::{list, put};
use crate::request::{Request, wait_any};
use crate::structs::{Outcome, Place, Span};
use crate::table::table;

/// Says whether a request is over.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_test(request: u64, is_over: *mut c_int) -> c_int {
    done(|| {
        let request = table().request(request)?;
        // SAFETY: the caller's.
        unsafe { put(is_over, request.is_over()?.into(), "where the answer goes") }
    })
}

/// Waits for a request.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_wait(request: u64, timeout_ms: i64) -> c_int {
    done(|| {
        let request = table().request(request)?;
        wait_any(&[request], until(timeout_ms)).map(|_| ())
    })
}

/// The requests of a list.
///
/// # Safety
/// As the header says.
unsafe fn named(requests: *const u64, count: usize) -> Result<Vec<Arc<Request>>, Failure> {
    // SAFETY: the caller's.
    let handles = unsafe { list(requests, count, "the list of requests") }?;
    let table = table();
    handles.iter().map(|handle| table.request(*handle)).collect()
}

/// Waits for the first of several requests.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_wait_any(
    requests: *const u64,
    count: usize,
    timeout_ms: i64,
    index: *mut usize,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        let requests = unsafe { named(requests, count) }?;
        if requests.is_empty() {
            return Err(Failure::of(Status::Argument, "an empty list of requests"));
        }
        let first = wait_any(&requests, until(timeout_ms))?;
        unsafe { put(index, first, "where the index goes") }
    })
}

/// Waits for all of several requests.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_wait_all(requests: *const u64, count: usize, timeout_ms: i64) -> c_int {
    done(|| {
        // SAFETY: the caller's.
        let requests = unsafe { named(requests, count) }?;
        let until = until(timeout_ms);
        requests.chunks(1).try_for_each(|request| wait_any(request, until).map(|_| ()))
    })
}

/// Ends a request now.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_cancel(request: u64) -> c_int {
    done(|| {
        let request = table().request(request)?;
        request.cancel();
        Ok(())
    })
}

/// Forgets a request.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_release(request: u64) -> c_int {
    done(|| {
        let request = table().take_request(request)?;
        request.release();
        Ok(())
    })
}

/// What a request has come to.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_result(request: u64, outcome: *mut Outcome) -> c_int {
    guard(|| {
        let found = table().request(request)?.outcome()?;
        // SAFETY: the caller's.
        unsafe { put(outcome, found, "where the outcome goes") }?;
        Ok(Status::of(found.code).unwrap_or(Status::Internal))
    })
}

/// Waits for the end, and releases.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_finish(request: u64, outcome: *mut Outcome) -> c_int {
    // SAFETY: the caller's.
    guard(|| unsafe { finish(request, outcome) })
}

/// # Safety
/// As the header says.
pub(super) unsafe fn finish(handle: u64, outcome: *mut Outcome) -> Result<Status, Failure> {
    let request = table().request(handle)?;
    wait_any(std::slice::from_ref(&request), None)?;
    let mut found = request.outcome()?;
    if request.is_in_the_librarys_buffer()? {
        found.data = std::ptr::null();
    }
    table().take_request(handle)?.release();
    if !outcome.is_null() {
        // SAFETY: the caller's.
        unsafe { put(outcome, found, "where the outcome goes") }?;
    }
    Ok(Status::of(found.code).unwrap_or(Status::Internal))
}

/// Where the bytes of a key lie.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_places(
    request: u64,
    place: *mut Place,
    spans: *mut Span,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    done(|| {
        let request = table().request(request)?;
        request.look(|ending| {
            let found = ending.places.as_ref().ok_or(Failure::of(Status::Argument, "no gestalt_ilocate"))?;
            // SAFETY: the caller's, here and below.
            unsafe { put(place, found.place, "where the place goes") }?;
            unsafe { put(count, found.spans.len(), "where the count goes") }?;
            if found.spans.len() > capacity {
                return Err(Failure::of(Status::ShortBuffer, format!("{} spans", found.spans.len())));
            }
            for (index, (start, len, cell_len, nodes)) in found.spans.iter().enumerate() {
                let (node_count, nodes) = (nodes.len() as u32, nodes.as_ptr());
                let span = Span { start: *start, len: *len, cell_len: *cell_len, node_count, nodes };
                unsafe { put(spans.wrapping_add(index), span, "where the spans go") }?;
            }
            Ok(())
        })?
    })
}
