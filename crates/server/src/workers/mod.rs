//! Workers: one thread, one runtime and one `proto::Host` each, and what they share and hand to each other.

pub(crate) mod asker;
#[cfg(feature = "bare")]
pub(crate) mod bare;
pub(crate) mod bindings;
pub(crate) mod buffers;
pub(crate) mod counters;
pub(crate) mod crossings;
pub(crate) mod cycle;
mod meters;
mod ordering;
pub(crate) mod pump;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod slab;
pub(crate) mod streams;
pub(crate) mod waker;
pub(crate) mod worker;
