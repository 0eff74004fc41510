//! Items of several namespaces in one role: whose give way, and what becomes of those of nobody.

use bytes::Bytes;
use store::{
    Allocation, Budget, CrawlCursor, DataStore, Eviction, ItemSpec, ItemState, Reclaim, Shortage, Tenants,
};
use types::{
    Addr, Catalog, Cohort, EvictPolicy, IndexHash, IndexOp, Key, Name, NamespaceId, Policy, PoolId,
    UnixSeconds,
};

use crate::driver::{config, hash};

const NOW: UnixSeconds = UnixSeconds(1000);

/// A store that knows of a namespace that keeps its items and of one that evicts them.
struct Shared {
    store: DataStore,
    catalog: Catalog,
    kept: NamespaceId,
    evicted: NamespaceId,
}

/// An item that has its slot, and is not committed.
struct Coming {
    namespace: NamespaceId,
    hash: IndexHash,
    image: Vec<u8>,
    allocation: Allocation,
}

impl Shared {
    fn new(extents: usize) -> Self {
        let mut catalog = Catalog::first("none".parse().unwrap(), 1);
        let mut make = |name: &str, evict| {
            let policy = Policy { evict, ..Policy::default() };
            catalog.create_namespace(name.parse().unwrap(), &Name::default_name(), policy).unwrap()
        };
        let (kept, evicted) = (make("kept", EvictPolicy::Keep), make("evicted", EvictPolicy::Evict));
        let store = DataStore::new(config(extents, Eviction::Clock), Budget::new(64 << 20)).unwrap();
        let mut shared = Self { store, catalog, kept, evicted };
        shared.heed();
        shared
    }

    fn heed(&mut self) {
        self.store.set_tenants(Tenants::of(&self.catalog, PoolId::DEFAULT, Eviction::Clock, 1));
    }

    fn begin(&mut self, namespace: NamespaceId, number: usize, len_bytes: usize) -> Coming {
        let key = Key::of(namespace, Bytes::from(format!("{number}"))).unwrap().into_bytes();
        let (value, state) = (vec![7; len_bytes], ItemState::default());
        let mut image = Vec::new();
        let value = [&value[..], b""];
        ItemSpec { key: &key, value, client_flags: 0, expiry: 0, version: 1, state }.encode(&mut image);
        let allocation = loop {
            match self.store.allocate(image.len()) {
                Ok(allocation) => break allocation,
                Err(Shortage::Extent(reach)) => self.store.commit_extent(reach).unwrap(),
                Err(other) => panic!("{other:?}"),
            }
        };
        Coming { namespace, hash: hash(&key).into(), image, allocation }
    }

    fn commit(&mut self, coming: Coming) -> Addr {
        let Coming { namespace, hash, image, allocation } = coming;
        let addr = allocation.addr;
        let delta = self.store.delta(addr, image);
        self.store.apply_write(addr, &delta);
        allocation.assign.iter().for_each(|op| self.store.apply_op(op));
        self.store.apply_op(&IndexOp::Insert { hash, addr, cohort: Cohort::of(namespace, 0) });
        addr
    }

    fn put(&mut self, namespace: NamespaceId, numbers: std::ops::Range<usize>, len_bytes: usize) {
        for number in numbers {
            let coming = self.begin(namespace, number, len_bytes);
            self.commit(coming);
        }
    }

    fn namespace_at(&self, addr: Addr) -> NamespaceId {
        self.store.item(addr).cohort().namespace()
    }

    /// Items that nobody will ask for any more, found in one pass.
    fn garbage(&mut self) -> usize {
        let (victims, next) = self.store.reclaiming().crawl(CrawlCursor::default(), u32::MAX, NOW);
        assert_eq!(next, CrawlCursor::default(), "that was all");
        victims.len()
    }
}

#[test]
fn whoever_is_at_its_quota_gives_up_its_own() {
    let mut shared = Shared::new(2);
    let (kept, evicted) = (shared.kept, shared.evicted);
    shared.put(kept, 0..300, 100);
    shared.put(evicted, 0..100, 100);
    let victims = shared.store.reclaiming().propose_of(evicted, 1000, NOW);
    assert!(victims.iter().all(|victim| shared.namespace_at(victim.addr) == evicted));
    let freed: usize = victims.iter().map(|victim| shared.store.slot_bytes_at(victim.addr)).sum();
    assert!((1000..1300).contains(&freed), "{freed} bytes");
    let nobody = NamespaceId(77);
    assert_eq!(shared.store.reclaiming().propose_of(nobody, 1000, NOW), []);
}

#[test]
fn where_hardly_any_item_may_go_the_search_goes_on_where_it_ended() {
    let mut shared = Shared::new(8);
    let (kept, evicted) = (shared.kept, shared.evicted);
    shared.put(kept, 0..70_000, 1);
    shared.put(evicted, 0..1, 1);
    assert_eq!(shared.store.reclaiming().propose_of(evicted, 1, NOW), [], "too many have been passed by");
    let victims = shared.store.reclaiming().propose_of(evicted, 1, NOW);
    assert_eq!(victims.len(), 1);
    assert_eq!(shared.namespace_at(victims[0].addr), evicted);
}

#[test]
fn items_that_may_not_go_are_not_evicted_for_others() {
    let mut shared = Shared::new(1);
    let (kept, evicted) = (shared.kept, shared.evicted);
    shared.put(kept, 0..600, 1000);
    shared.put(evicted, 0..100, 1000);
    let Reclaim::Remove(victims) = shared.store.reclaiming().propose(1000, NOW) else {
        panic!("some may go")
    };
    assert!(victims.iter().all(|victim| shared.namespace_at(victim.addr) == evicted));
}

#[test]
fn what_comes_for_a_namespace_that_is_gone_is_found_after_the_sweep() {
    let mut shared = Shared::new(1);
    let evicted = shared.evicted;
    shared.put(shared.kept, 0..20, 100);
    let late = shared.begin(evicted, 0, 100);
    shared.catalog.remove_namespace(&"evicted".parse().unwrap()).unwrap();
    shared.heed();
    assert_eq!(shared.garbage(), 0);
    shared.commit(late);
    assert_eq!(shared.garbage(), 1);
}
