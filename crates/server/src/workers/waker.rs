//! How one task of a worker wakes another.

use std::cell::RefCell;
use std::task::{Context, Waker};

/// The waker of the one task that polls something.
#[derive(Debug, Default)]
pub(crate) struct WakerCell(RefCell<Option<Waker>>);

impl WakerCell {
    /// The task of `cx` is to be woken from now on.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        let mut waker = self.0.borrow_mut();
        if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Wakes it.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.0.borrow() {
            waker.wake_by_ref();
        }
    }
}
