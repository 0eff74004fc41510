//! Completion queues.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::{done, guard, until};
use crate::codes::{Failure, Status, conclude};
use crate::memory::{MAX_LIST, put};
use crate::queue::Queue;
use crate::structs::Event;
use crate::table::table;

/// Makes a queue.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_queue_open(queue: *mut u64) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(queue, 0, "where the queue goes") }?;
        let handle = table().add_queue(Arc::new(Queue::new()?))?;
        unsafe { put(queue, handle, "where the queue goes") }
    })
}

/// Its eventfd.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_queue_fd(queue: u64) -> c_int {
    let found = table().queue(queue);
    match found.and_then(|queue| queue.descriptor()) {
        Ok(descriptor) => descriptor,
        Err(failure) => conclude(Err(failure)),
    }
}

/// Takes requests that are over.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_queue_poll(
    queue: u64,
    events: *mut Event,
    capacity: usize,
    timeout_ms: i64,
    count: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(count, 0, "where the count goes") }?;
        if capacity == 0 || capacity > MAX_LIST {
            return Err(Failure::of(Status::Argument, format!("room for {capacity} events")));
        }
        if events.is_null() {
            return Err(Failure::of(Status::Null, "where the events go"));
        }
        let queue = table().queue(queue)?;
        let over = queue.poll(capacity, until(timeout_ms))?;
        for (index, event) in over.iter().enumerate() {
            unsafe { put(events.wrapping_add(index), *event, "where the events go") }?;
        }
        unsafe { put(count, over.len(), "where the count goes") }?;
        Ok(if over.is_empty() { Status::Pending } else { Status::Ok })
    })
}

/// Ends a queue.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_queue_close(queue: u64) -> c_int {
    done(|| {
        let queue = table().take_queue(queue)?;
        queue.close();
        Ok(())
    })
}
