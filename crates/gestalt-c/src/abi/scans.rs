//! Scans.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::{done, guard, until};
use crate::codes::{Failure, Status};
use crate::memory::{MAX_KEY_BYTES, prefix as prefix_at, put};
use crate::room::Room;
use crate::scan::Scan;
use crate::table::table;

/// Begins a scan.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_scan_open(
    client: u64,
    prefix: *const c_void,
    prefix_len: usize,
    scan: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(scan, 0, "where the scan goes") }?;
        let prefix = unsafe { prefix_at(prefix, prefix_len) }?;
        let mut table = table();
        let client = table.client(client)?;
        let begun = Scan::begin(&client, prefix);
        let handle = table.add_scan(Arc::new(begun))?;
        unsafe { put(scan, handle, "where the scan goes") }
    })
}

/// Gives the next key.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_scan_next(
    scan: u64,
    key: *mut c_void,
    capacity: usize,
    key_len: *mut usize,
    timeout_ms: i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(key_len, 0, "where the key's length goes") }?;
        if capacity < MAX_KEY_BYTES {
            return Err(Failure::of(Status::ShortBuffer, format!("{capacity} bytes for a key")));
        }
        let mut room = unsafe { Room::at(key, capacity) }?;
        let scan = table().scan(scan)?;
        let Some(found) = scan.next(until(timeout_ms))? else { return Ok(Status::Miss) };
        room.fill(&found);
        unsafe { put(key_len, found.len(), "where the key's length goes") }?;
        Ok(Status::Ok)
    })
}

/// Ends a scan.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_scan_close(scan: u64) -> c_int {
    done(|| table().take_scan(scan).map(drop))
}
