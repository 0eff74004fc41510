//! What has to hold between the parts of a data store.
//!
//! [`DataStore::check_sums`] compares what is counted at several places, and is asked after every operation in debug builds.
//! [`DataStore::check_invariants`] walks everything: for tests, and for the simulator now and then.

use super::DataStore;
use crate::Category;
use types::RUN_BYTES;

impl DataStore {
    /// Everything that has to hold. Takes a pass over the index and over all slots.
    ///
    /// # Panics
    /// If something does not hold.
    pub fn check_invariants(&self) {
        self.contents.check_invariants();
        self.slots.check_invariants(&self.contents);
        self.growth.check_invariants(self.contents.area());
        self.reclaimer.check_invariants(&self.slots);
        self.check_extents();
        self.check_budget();
        if self.contents.is_whole() {
            self.slots.check_items(&self.contents);
        }
        self.compare_sums();
    }

    /// The cheap part of [`Self::check_invariants`], in debug builds.
    #[inline]
    pub fn check_sums(&self) {
        if cfg!(debug_assertions) {
            self.compare_sums();
        }
    }

    fn compare_sums(&self) {
        let allocator = self.slots.allocator();
        allocator.check_sums();
        let (items, totals) = (self.replica().index().len(), allocator.totals());
        assert_eq!(items, totals.live, "the index has as many items as there are live slots");
        let (absent, touched) = (self.contents.absent().count(), self.replica().touched().count());
        assert!(absent <= touched, "{absent} pages are absent, and {touched} were ever written");
        assert_eq!(self.charge.bytes(), self.other_bytes(), "absent pages and pins are paid for");
    }

    /// That runs may be used only where there is memory, and that the run table does not reach beyond the area.
    fn check_extents(&self) {
        let (area, allocator) = (self.contents.area(), self.slots.allocator());
        let runs = allocator.runs().len();
        assert!(runs * RUN_BYTES <= area.limit_bytes(), "{runs} runs are more than the area has");
        let unbacked = allocator.active().find(|run| !area.is_usable(*run));
        assert_eq!(unbacked, None, "a run may be used that is not committed");
    }

    /// That the budget has at least what this store says that it pays; others pay from it, too.
    fn check_budget(&self) {
        let (memory, budget) = (self.memory(), self.charge.budget());
        let index = (memory.replica + memory.allocator + memory.other) as u64;
        assert!(memory.area as u64 <= budget.used(Category::Area), "extents are in no budget");
        assert!(index <= budget.used(Category::Index), "the index is in no budget");
    }
}

#[cfg(test)]
mod tests {
    use types::{Addr, ClusterId, Cohort, EXTENT_BYTES, IndexHash, IndexOp, KeyHash, Reach, UnixSeconds};

    use super::*;
    use crate::{Budget, Eviction, ItemSpec, ItemState, StoreConfig};

    const CLUSTER: ClusterId = ClusterId(7);

    /// A store with two items, of which nothing is under way.
    fn store() -> DataStore {
        let config =
            StoreConfig { cluster: CLUSTER, area_limit_bytes: 4 * EXTENT_BYTES, eviction: Eviction::Clock };
        let mut store = DataStore::new(config, Budget::new(64 << 20)).unwrap();
        store.commit_extent(Reach::whole(0)).unwrap();
        for key in [b"one", b"two"] {
            put(&mut store, key);
        }
        store.check_invariants();
        store
    }

    fn put(store: &mut DataStore, key: &[u8]) -> Addr {
        let mut image = Vec::new();
        let state = ItemState::default();
        let (value, expiry, version) = ([&b"value"[..], &b""[..]], 9, 1);
        ItemSpec { key, value, client_flags: 0, expiry, version, state }.encode(&mut image);
        let allocation = store.allocate(image.len()).unwrap();
        store.apply_write(allocation.addr, &image);
        allocation.assign.iter().for_each(|op| store.apply_op(op));
        let hash = KeyHash::of(CLUSTER, key).into();
        store.apply_op(&IndexOp::Insert { hash, addr: allocation.addr, cohort: Cohort::default() });
        allocation.addr
    }

    #[test]
    #[should_panic(expected = "as many items as there are live slots")]
    fn an_entry_without_a_slot_is_noticed_at_once() {
        let mut store = store();
        store.contents.replica_mut().apply(&IndexOp::Insert {
            hash: IndexHash(5),
            addr: Addr(4096),
            cohort: Cohort::default(),
        });
        store.check_sums();
    }

    #[test]
    #[should_panic(expected = "where no live slot is")]
    fn an_entry_that_points_to_a_free_slot_is_noticed() {
        let mut store = store();
        let (hash, old) = store.replica().index().iter().next().unwrap();
        let new = Addr(old.0 + 4096);
        store.contents.replica_mut().touch(new, 100);
        store.contents.replica_mut().apply(&IndexOp::Replace { hash, old, new, cohort: Cohort::default() });
        store.check_sums();
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "two items in one slot")]
    fn two_entries_for_one_slot_are_noticed() {
        let mut store = store();
        let addrs: Vec<(IndexHash, Addr)> = store.replica().index().iter().collect();
        let (hash, old, new) = (addrs[0].0, addrs[0].1, addrs[1].1);
        store.contents.replica_mut().apply(&IndexOp::Replace { hash, old, new, cohort: Cohort::default() });
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "the replicas know run 0")]
    fn a_run_of_another_class_than_the_replicas_know_is_noticed() {
        let mut store = store();
        let other = types::class_of(9000);
        store.contents.replica_mut().apply(&IndexOp::Assign { run: 0, class: other });
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "a page is absent that nobody has written")]
    fn an_absent_page_that_was_never_written_is_noticed() {
        let mut store = store();
        store.contents.replica_mut().touch(Addr(0), 3 * EXTENT_BYTES / 2);
        store.contents.lose(1);
        store.contents.replica_mut().apply(&IndexOp::Assign { run: 17, class: types::RunClass::FREE });
        store.contents.check_invariants();
    }

    #[test]
    #[should_panic(expected = "has no memory")]
    fn a_page_without_memory_is_noticed() {
        let mut store = store();
        store.contents.replica_mut().touch(Addr(0), 2 * EXTENT_BYTES);
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "run may be used that is not committed")]
    fn runs_without_memory_are_noticed() {
        let mut store = store();
        store.slots.allocator_mut().activate(Reach::whole(1));
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "and nothing is there")]
    fn a_pin_on_a_free_slot_is_noticed() {
        let mut store = store();
        store.pin(Addr(4096));
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "nobody knows why")]
    fn a_run_that_is_held_for_good_is_noticed() {
        let mut store = store();
        store.slots.allocator_mut().set_hold(3, crate::alloc::Hold::Window);
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "expires before its run says")]
    fn an_item_that_no_crawl_finds_is_noticed() {
        let mut store = store();
        store.slots.allocator_mut().run_mut(0).min_expiry = 10;
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "are counted")]
    fn bytes_of_an_item_that_are_not_counted_are_noticed() {
        let mut store = store();
        let bytes = store.slots.allocator().runs()[0].item_bytes;
        store.slots.allocator_mut().set_item_bytes(0, bytes - 1);
        store.check_invariants();
    }

    #[test]
    #[should_panic(expected = "are paid for")]
    fn memory_that_nobody_pays_is_noticed_at_once() {
        let mut store = store();
        let held = store.charge.bytes();
        store.charge.set(held + 1);
        store.check_sums();
    }

    #[test]
    fn what_is_under_way_breaks_nothing() {
        let mut store = store();
        let pending = store.allocate(100).unwrap();
        store.check_invariants();
        store.cancel(pending.addr, 100);
        let (hash, addr) = store.replica().index().iter().next().unwrap();
        store.pin(addr);
        let (victims, _) = store.reclaiming().crawl(crate::CrawlCursor::default(), 100, UnixSeconds(9));
        assert_eq!(victims.len(), 1, "the other one is pinned");
        store.check_invariants();
        store.unpin(addr);
        store.apply_op(&IndexOp::Remove { hash, addr, cohort: Cohort::default() });
        store.check_invariants();
    }
}
