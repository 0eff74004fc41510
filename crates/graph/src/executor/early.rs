//! Credits that overtook their graph. They are a few, and the oldest give way: who lacks a credit asks for it.

use std::collections::VecDeque;

use super::command::Key;
use crate::limits::MAX_EARLY_CREDITS;

/// The run, the edge, the first slice that may not be sent.
#[derive(Debug, Default)]
pub(super) struct EarlyCredits(VecDeque<(Key, u32, u32)>);

impl EarlyCredits {
    pub(super) fn keep(&mut self, key: Key, edge: u32, below: u32) {
        if self.0.len() == MAX_EARLY_CREDITS {
            self.0.pop_front();
        }
        self.0.push_back((key, edge, below));
    }

    /// Those of a run that begins.
    pub(super) fn take(&mut self, key: Key) -> Vec<(u32, u32)> {
        let of_run = |early: &&(Key, u32, u32)| early.0 == key;
        let taken: Vec<(u32, u32)> =
            self.0.iter().filter(of_run).map(|(_, edge, below)| (*edge, *below)).collect();
        if !taken.is_empty() {
            self.0.retain(|early| early.0 != key);
        }
        taken
    }
}
