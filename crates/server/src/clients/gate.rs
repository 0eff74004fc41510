//! The bound on what one worker's connections may hold in memory: input, pending requests, unsent replies.
//!
//! Weights are charged to the node's memory in coarse steps. When the next step is refused the gate closes:
//! connections are not read until others have been answered. One connection that is in the middle of a command may
//! go on nevertheless, or a crowd of half-received values could wait for each other for ever.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use store::{Budget, Category, Charge};

use crate::limits::{BUFFER_FLOOR_BYTES, BUFFER_STEP_BYTES};

/// See the module.
pub(crate) struct Gate {
    /// Bytes that are held, and bytes that answers are expected to bring.
    used: Cell<usize>,
    /// The latter.
    expected: Cell<usize>,
    max: usize,
    charge: RefCell<Charge>,
    /// The connection that may finish its command though the gate is closed.
    privileged: Cell<Option<u64>>,
    waiting: RefCell<Vec<Rc<dyn AtGate>>>,
}

/// Who can wait at a gate.
pub(crate) trait AtGate {
    /// The gate has opened: it waits no more.
    fn admit(&self);
}

/// What a connection weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Bytes that it holds.
    pub held: usize,
    /// Bytes that answers will bring, by a guess.
    pub expected: usize,
}

impl Gate {
    /// A gate that never lets more than `max` bytes gather, but at least the floor.
    pub(crate) fn new(budget: Budget, max: usize) -> Self {
        let mut charge = Charge::empty(budget, Category::Buffers);
        // Without asking: `NodeConfig::check` has made sure that there is room for the floors of all workers.
        charge.set(BUFFER_FLOOR_BYTES);
        Self {
            used: Cell::new(0),
            expected: Cell::new(0),
            max: max.max(BUFFER_FLOOR_BYTES),
            charge: RefCell::new(charge),
            privileged: Cell::new(None),
            waiting: RefCell::new(Vec::new()),
        }
    }

    /// A connection that held and expected `before` now does `after`.
    pub(crate) fn shift_load(&self, before: Load, after: Load) {
        self.expected.set(self.expected.get() + after.expected - before.expected);
        self.shift(before.held + before.expected, after.held + after.expected);
    }

    /// Something that weighed `before` now weighs `after` bytes.
    pub(crate) fn shift(&self, before: usize, after: usize) {
        self.used.set(self.used.get() + after - before);
        // In this order: to ask whether the gate is open may take memory, and is done only for somebody who waits.
        if after < before && !self.waiting.borrow().is_empty() && self.is_open() {
            self.wake_all();
        }
    }

    /// Whether more may gather.
    pub(crate) fn is_open(&self) -> bool {
        let used = self.used.get();
        used < self.charge.borrow().bytes() || self.raise(used)
    }

    /// Whether connection `id` may go on; `mid_command` if it has sent part of one.
    pub(crate) fn admits(&self, id: u64, mid_command: bool) -> bool {
        if self.is_open() {
            return true;
        }
        if mid_command && self.privileged.get().is_none() {
            self.privileged.set(Some(id));
        }
        mid_command && self.privileged.get() == Some(id)
    }

    /// Connection `id` has sent its command in full, or is gone.
    pub(crate) fn finished(&self, id: u64) {
        if self.privileged.get() == Some(id) {
            self.privileged.set(None);
            // All of them: whoever is in the middle of a command and asks first is next.
            self.wake_all();
        }
    }

    /// Wakes `connection`, which does not wait here yet, when the gate opens.
    pub(crate) fn wait(&self, connection: Rc<dyn AtGate>) {
        self.waiting.borrow_mut().push(connection);
    }

    /// Whether so much has gathered that even answers have to be dropped.
    pub(crate) fn is_flooded(&self) -> bool {
        self.held() >= self.max * 2
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> usize {
        self.used.get() - self.expected.get()
    }

    /// Gives back what has not been needed lately, and lets those in for whom there is room again.
    pub(crate) fn trim(&self) {
        if !self.waiting.borrow().is_empty() && self.is_open() {
            self.wake_all();
        }
        // A step more than is used, or the next few bytes would have to ask the budget again.
        let wanted =
            (self.used.get() + BUFFER_STEP_BYTES).next_multiple_of(BUFFER_STEP_BYTES).max(BUFFER_FLOOR_BYTES);
        let mut charge = self.charge.borrow_mut();
        if wanted < charge.bytes() {
            charge.set(wanted);
        }
    }

    /// Forgets who waits.
    pub(crate) fn clear(&self) {
        self.waiting.take();
    }

    fn wake_all(&self) {
        for connection in self.waiting.take() {
            connection.admit();
        }
    }

    fn raise(&self, used: usize) -> bool {
        let mut charge = self.charge.borrow_mut();
        // One more than is used, for a charge that is used up counts as closed.
        let next = (used + 1).next_multiple_of(BUFFER_STEP_BYTES);
        next <= self.max && charge.try_set(next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_closes_when_memory_ends_and_opens_again() {
        let budget = Budget::new(64 << 20);
        let gate = Gate::new(budget.clone(), 32 << 20);
        gate.shift(0, 8 << 20);
        assert!(gate.is_open());
        budget.try_reserve(Category::Area, 54 << 20).unwrap();
        gate.shift(0, 4 << 20);
        assert!(!gate.is_open());
        gate.shift(8 << 20, 0);
        assert!(gate.is_open());
        gate.trim();
        assert_eq!(budget.used(Category::Buffers), 5 << 20);
    }

    #[test]
    fn one_half_received_command_may_be_finished_through_a_closed_gate() {
        let gate = Gate::new(Budget::new(4 << 20), 0);
        gate.shift(0, 4 << 20);
        assert!(!gate.admits(1, false));
        assert!(gate.admits(1, true));
        assert!(!gate.admits(2, true));
        gate.finished(1);
        assert!(gate.admits(2, true));
    }
}
