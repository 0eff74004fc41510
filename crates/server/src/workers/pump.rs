//! Whether a worker's cycle is wanted. Inputs only mark it as such.

use std::cell::Cell;
use std::task::Context;

use crate::workers::waker::WakerCell;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pump {
    wanted: Cell<bool>,
    waker: WakerCell,
}

impl Pump {
    /// Something has changed: pump soon.
    pub(crate) fn request(&self) {
        // One wake-up is enough: the cycle looks at everything that has come by then.
        if !self.wanted.replace(true) {
            self.waker.wake();
        }
    }

    /// Whether something has changed since the last time.
    pub(crate) fn take(&self) -> bool {
        self.wanted.take()
    }

    /// The task that is woken when something changes.
    pub(super) fn register(&self, cx: &mut Context<'_>) {
        self.waker.register(cx);
    }
}
