//! What a path is.

use std::hint::black_box;

/// A path: so many operations of it are carried out.
pub struct Path {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(times: usize),
}

/// Most requests of one turn; all paths do a multiple of it.
pub const BATCH: usize = 16;

/// Everything in `work` counts. A function of its own, which returns: callgrind knows it by its name.
#[inline(never)]
pub fn counted<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}
