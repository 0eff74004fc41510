//! A process that forks: in the child nobody moves the bytes of the parent's clients, so their numbers lead nowhere there.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::{MutexGuard, Once};

use crate::table::{Table, table};

thread_local! {
    /// Held by a thread that forks, so that no other one is in the middle of something then.
    static HELD: Cell<Option<MutexGuard<'static, Table>>> = const { Cell::new(None) };
}

extern "C" fn before() {
    HELD.set(Some(table()));
}

extern "C" fn in_parent() {
    HELD.set(None);
}

extern "C" fn in_child() {
    if let Some(mut table) = HELD.take() {
        table.forsake();
    }
}

/// From here on it is known when the process forks.
pub(crate) fn heed() {
    static HEEDED: Once = Once::new();
    HEEDED.call_once(|| {
        // SAFETY: they take and leave a lock that no thread holds while it forks, and call nothing of the caller's.
        let failed = unsafe { nix::libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        debug_assert_eq!(failed, 0, "there is memory for three pointers");
    });
}
