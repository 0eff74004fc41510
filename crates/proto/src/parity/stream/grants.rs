//! Which extents a data role may use.
//!
//! A role has an extent from the moment it is granted until its stream says that all of it is zero again. A primary that asks
//! again does so only after every parity has applied that (`primary/release.rs`), so no grant is older than the wipe that takes
//! it away.

use store::{PageSet, Replica};
use types::{EXTENT_BYTES, PAGE_BYTES, PageRange};
use wire::message::{Record, Write};

const PAGES_PER_EXTENT: u32 = (EXTENT_BYTES / PAGE_BYTES) as u32;

/// See the module.
#[derive(Default)]
pub(super) struct Grants {
    extents: PageSet,
}

impl Grants {
    pub(super) fn insert(&mut self, extent: u32) {
        self.extents.insert(extent);
    }

    pub(super) fn remove(&mut self, extent: u32) {
        self.extents.remove(extent);
    }

    pub(super) fn contain(&self, extent: u32) -> bool {
        self.extents.contains(extent)
    }

    pub(super) fn keep_only(&mut self, is_kept: impl Fn(u32) -> bool) {
        let others: Vec<u32> = self.extents.iter().filter(|extent| !is_kept(*extent)).collect();
        others.into_iter().for_each(|extent| self.remove(extent));
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.extents.memory_bytes()
    }
}

/// Whether anything was ever written to `extent`, and not wiped since.
pub(super) fn touches(replica: &Replica, extent: u32) -> bool {
    let pages = PageRange { first: extent * PAGES_PER_EXTENT, count: PAGES_PER_EXTENT };
    let touched = replica.touched().first_present(pages.first);
    touched.is_some_and(|page| page < pages.first + pages.count)
}

/// Whether `record` writes to `extent`.
pub(super) fn writes_to(record: &Record, extent: u32) -> bool {
    let (start, end) = (extent as usize * EXTENT_BYTES, (extent as usize + 1) * EXTENT_BYTES);
    let over = |write: &Write| write.addr.byte() < end && start < write.addr.byte() + write.delta.len();
    record.writes.iter().any(over)
}
