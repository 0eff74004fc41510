//! Operations and outcomes in a word.

use bytes::Bytes;
use types::op::{Arith, Direction, Expiry, Failure, Op, Outcome, Store, StoreMode};

/// A plain set.
#[must_use]
pub fn set(value: &[u8]) -> Op {
    store(StoreMode::Set, value)
}

/// A plain store of any mode.
#[must_use]
pub fn store(mode: StoreMode, value: &[u8]) -> Op {
    Op::Store(Store {
        mode,
        value: Bytes::copy_from_slice(value),
        flags: 0,
        expiry: Expiry::Never,
        compare: None,
        version: None,
        invalidate: false,
        vivify: None,
    })
}

/// A plain increment.
#[must_use]
pub fn increment(delta: u64) -> Op {
    Op::Arith(Arith { direction: Direction::Increment, delta, ..Arith::default() })
}

/// Whether an outcome says that nobody knows.
#[must_use]
pub fn is_unknown(outcome: &Outcome) -> bool {
    *outcome == Outcome::Failed(Failure::Unknown)
}
