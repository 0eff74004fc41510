//! Partly used spans, by class and fullness, as doubly linked lists through their first runs.
//!
//! New items go into the fullest runs, so that the sparse ones run empty by themselves; compaction empties the
//! sparsest first.

use super::run::{Hold, Run};
use types::RunClass;
use types::class::{CLASS_COUNT, slots_in_span};

/// Fullness steps of a class; the last one is the fullest.
const STEPS: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
struct ClassLists {
    heads: [Option<u32>; STEPS],
    /// Free slots of all runs in these lists.
    free_slots: usize,
}

#[derive(Debug)]
pub(crate) struct Lists(Box<[ClassLists]>);

impl Lists {
    pub(crate) fn new() -> Self {
        Self(vec![ClassLists::default(); CLASS_COUNT + 1].into_boxed_slice())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Free slots of the runs in the lists of `class`.
    pub(crate) fn free_slots(&self, class: RunClass) -> usize {
        self.0[usize::from(class.0)].free_slots
    }

    /// Runs of `class` with free slots, the fullest lists first.
    pub(crate) fn fullest_first<'a>(
        &'a self,
        runs: &'a [Run],
        class: RunClass,
    ) -> impl Iterator<Item = u32> + 'a {
        self.0[usize::from(class.0)].heads.into_iter().rev().flat_map(|head| walk(runs, head))
    }

    /// Runs of `class` with free slots, the sparsest lists first.
    pub(crate) fn sparsest_first<'a>(
        &'a self,
        runs: &'a [Run],
        class: RunClass,
    ) -> impl Iterator<Item = u32> + 'a {
        self.0[usize::from(class.0)].heads.into_iter().flat_map(|head| walk(runs, head))
    }

    /// Takes run `at` out of its list, if it is in one; to be called before its slots change.
    pub(crate) fn unlink(&mut self, runs: &mut [Run], at: u32) {
        let run = &mut runs[at as usize];
        let Some(list) = run.list.take() else { return };
        let (class, free) = (usize::from(run.class.0), run.free_slots());
        let (previous, next) = (run.previous.take(), run.next.take());
        match previous {
            Some(previous) => runs[previous as usize].next = next,
            None => self.0[class].heads[usize::from(list)] = next,
        }
        if let Some(next) = next {
            runs[next as usize].previous = previous;
        }
        self.0[class].free_slots -= free;
    }

    /// Puts run `at` into the list that it belongs to: none if it is free, full, held or large.
    pub(crate) fn link(&mut self, runs: &mut [Run], at: u32) {
        let run = &runs[at as usize];
        debug_assert!(run.list.is_none());
        let (used, count) = (usize::from(run.used), slots_in_span(run.class));
        if used == 0 || used == count || run.hold != Hold::None || count == 0 {
            return;
        }
        // Below `STEPS`, because a full run is in no list.
        let (class, list, free) = (usize::from(run.class.0), used * STEPS / count, run.free_slots());
        let next = self.0[class].heads[list].replace(at);
        if let Some(next) = next {
            runs[next as usize].previous = Some(at);
        }
        runs[at as usize].next = next;
        runs[at as usize].list = Some(list as u8);
        self.0[class].free_slots += free;
    }
}

fn walk(runs: &[Run], head: Option<u32>) -> impl Iterator<Item = u32> + '_ {
    std::iter::successors(head, |at| runs[*at as usize].next)
}
