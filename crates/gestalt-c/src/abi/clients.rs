//! The library, and clients.

use std::ffi::{CStr, c_char, c_int};

use crate::abi::{GESTALT_ABI, done};
use crate::client::Client;
use crate::codes::{Status, last_sentence};
use crate::memory::{put, sized, text};
use crate::structs::Options;
use crate::table::table;

/// The interface's version: `GESTALT_ABI` of the header that the library was built with.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_abi() -> u32 {
    GESTALT_ABI
}

/// The library's version, as text.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What was wrong with this thread's last call that failed.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_last_error() -> *const c_char {
    last_sentence()
}

/// The name of a code.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_code_name(code: c_int) -> *const c_char {
    Status::of(code).map_or(c"", Status::name).as_ptr()
}

/// What a code means.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_code_text(code: c_int) -> *const c_char {
    let unknown: &CStr = c"no such code";
    Status::of(code).map_or(unknown, Status::sentence).as_ptr()
}

/// Whether a write that came to this is known to have changed nothing.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_changed_nothing(code: c_int) -> c_int {
    Status::of(code).is_some_and(Status::is_harmless).into()
}

const NO_OPTIONS: Options =
    Options { size: size_of::<Options>() as u32, set: 0, timeout_ms: 0, window: 0, max_requests: 0 };

/// Makes a client.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_connect(
    uri: *const c_char,
    options: *const Options,
    client: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller's, here and below.
        unsafe { put(client, 0, "where the client goes") }?;
        let uri = unsafe { text(uri, "the URI") }?;
        let options = unsafe { sized(options, NO_OPTIONS, "gestalt_options") }?;
        let made = Client::connect(uri, &options)?;
        let added = table().add_client(made.clone());
        if added.is_err() {
            made.close();
        }
        unsafe { put(client, added?, "where the client goes") }
    })
}

/// Ends a client.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_close(client: u64) -> c_int {
    done(|| {
        // Not under the table's lock: it waits for a thread.
        let client = table().take_client(client)?;
        client.close();
        Ok(())
    })
}
