//! Memory that nobody uses and that was not given back to the system: what comes next needs no new pages, and who has freed
//! much does not stand still until the system has taken it.
//!
//! It is no use of a budget: whoever reserves may count on it. What is kept and what is used stay within the limit together: a
//! reservation that would pass it makes those who keep memory give some back first.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, Weak};

/// Who keeps memory of a budget that nobody uses.
pub(crate) trait Keeper: Send + Sync {
    /// Gives at least so many bytes back to the system, or all that it keeps. It may decline while it is at work: its next
    /// [`crate::ChunkPages::trim`] makes up for that.
    fn give_back(&self, bytes: u64);
}

/// What is kept within one budget.
#[derive(Default)]
pub(crate) struct Idle {
    bytes: AtomicU64,
    keepers: Mutex<Vec<Weak<dyn Keeper>>>,
}

impl Idle {
    /// Asks `keeper` from now on where memory is short.
    pub(crate) fn register(&self, keeper: Weak<dyn Keeper>) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain(|keeper| keeper.strong_count() > 0);
        keepers.push(keeper);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes taken of {before} that are idle");
    }

    /// Lets keepers give back what is over, one after the other, as long as anything is.
    #[cold]
    pub(crate) fn shrink(&self, bytes_over: impl Fn() -> u64) {
        let keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for keeper in keepers.iter().filter_map(Weak::upgrade) {
            match bytes_over() {
                0 => return,
                bytes => keeper.give_back(bytes),
            }
        }
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idle").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
