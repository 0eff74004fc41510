//! What runs may reserve: readers all of it, repair what is left of it without the readers' reserve.

use serde::Serialize;

use super::command::ExecutorConfig;
use crate::graph::Class;
use crate::limits::{MAX_RUNS, READER_RUNS};
use crate::rules::{Bug, Rules};

/// Bytes and runs, by class.
#[derive(Debug)]
pub(super) struct Memory {
    most_bytes: u64,
    reserve_bytes: u64,
    /// Readers' and repair's.
    reserved: [u64; 2],
    runs: [usize; 2],
    held: u64,
    most_held: u64,
}

/// What an executor has taken on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Runs that have not ended.
    pub runs: usize,
    /// Bytes that they have reserved.
    pub reserved_bytes: u64,
    /// What of these is for repair.
    pub repair_bytes: u64,
    /// Bytes of slices that have come and are not combined yet.
    pub held_bytes: u64,
    /// The most that was ever held.
    pub most_held_bytes: u64,
}

impl Load {
    /// These and those of another executor.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            reserved_bytes: self.reserved_bytes + other.reserved_bytes,
            repair_bytes: self.repair_bytes + other.repair_bytes,
            held_bytes: self.held_bytes + other.held_bytes,
            most_held_bytes: self.most_held_bytes + other.most_held_bytes,
        }
    }
}

fn index(class: Class) -> usize {
    usize::from(class == Class::Repair)
}

impl Memory {
    pub(super) fn new(config: ExecutorConfig) -> Self {
        Self {
            most_bytes: config.memory_bytes,
            reserve_bytes: config.reader_reserve_bytes,
            reserved: [0; 2],
            runs: [0; 2],
            held: 0,
            most_held: 0,
        }
    }

    /// Whether there is room for `bytes` of a run.
    pub(super) fn has_room(&self, class: Class, bytes: u64, rules: Rules) -> bool {
        let kept_free = class == Class::Repair && rules.prevent(Bug::NoReserve);
        let (most, runs) = match kept_free {
            true => (self.most_bytes.saturating_sub(self.reserve_bytes), MAX_RUNS - READER_RUNS),
            false => (self.most_bytes, MAX_RUNS),
        };
        let (used, running) = (self.reserved.iter().sum::<u64>(), self.runs.iter().sum::<usize>());
        let has_room = used.saturating_add(bytes) <= most && running < runs;
        has_room || !rules.prevent(Bug::TakesWithoutRoom)
    }

    /// Takes `bytes` for a run, if there is room.
    pub(super) fn reserve(&mut self, class: Class, bytes: u64, rules: Rules) -> bool {
        if !self.has_room(class, bytes, rules) {
            return false;
        }
        self.reserved[index(class)] += bytes;
        self.runs[index(class)] += 1;
        true
    }

    pub(super) fn release(&mut self, class: Class, bytes: u64) {
        debug_assert!(self.reserved[index(class)] >= bytes && self.runs[index(class)] > 0);
        self.reserved[index(class)] -= bytes;
        self.runs[index(class)] -= 1;
    }

    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
        self.most_held = self.most_held.max(self.held);
    }

    pub(super) fn release_held(&mut self, bytes: u64) {
        debug_assert!(self.held >= bytes);
        self.held -= bytes;
    }

    pub(super) fn load(&self, runs: usize) -> Load {
        Load {
            runs,
            reserved_bytes: self.reserved.iter().sum(),
            repair_bytes: self.reserved[index(Class::Repair)],
            held_bytes: self.held,
            most_held_bytes: self.most_held,
        }
    }
}
