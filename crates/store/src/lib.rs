//! What a member keeps in memory: areas, slots, items, indexes, and the budget that bounds them all.

mod addr;
mod op;

pub use addr::{ADDR_UNIT_BYTES, Addr, EXTENT_BYTES, MAX_ITEM_BYTES, PAGE_BYTES, PageRange, RUN_BYTES};
pub use op::{IndexHash, IndexOp, RunClass};
