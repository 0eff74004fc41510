//! The smallest protocol that uses a store correctly: one primary, one parity replica, a log in between.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use store::{
    Budget, Category, DataStore, Eviction, Found, ItemSpec, ItemState, Reclaim, Replica, Shortage,
    StoreConfig, Victim, Wipe,
};
use types::{
    Addr, ClusterId, Cohort, EXTENT_BYTES, IndexHash, IndexOp, KeyHash, NamespaceId, PAGE_BYTES, PageRange,
    UnixSeconds,
};

pub const CLUSTER: ClusterId = ClusterId(7);

const PAGES_PER_EXTENT: u32 = (EXTENT_BYTES / PAGE_BYTES) as u32;

/// The store said that there is no room.
#[derive(Debug, PartialEq, Eq)]
pub struct NoRoom;

struct Record {
    writes: Vec<(Addr, Bytes)>,
    ops: Vec<IndexOp>,
    pinned: Vec<Addr>,
    keys: Vec<Vec<u8>>,
}

pub struct Role {
    pub store: DataStore,
    pub budget: Budget,
    pub config: StoreConfig,
    /// What a parity with coefficient 1 has.
    pub parity: Replica,
    pub shadow: Vec<u8>,
    /// What clients were told, and what was not evicted: key -> (value, expiry).
    pub model: BTreeMap<Vec<u8>, (Vec<u8>, u32)>,
    pub now: UnixSeconds,
    pub evicted: usize,
    pub moved: usize,
    /// Extents that were taken back for lack of memory.
    pub surrendered: usize,
    /// Extents that went back because they were vacant.
    pub vacated: usize,
    /// Records that may be uncommitted.
    pub window: usize,
    log: VecDeque<Record>,
    /// Newest uncommitted place of a key, and the number of uncommitted records about it.
    pending: BTreeMap<Vec<u8>, (Option<Addr>, usize)>,
}

pub fn config(extents: usize, eviction: Eviction) -> StoreConfig {
    StoreConfig { cluster: CLUSTER, area_limit_bytes: extents * EXTENT_BYTES, eviction }
}

pub fn hash(key: &[u8]) -> KeyHash {
    KeyHash::of(CLUSTER, key)
}

pub fn encode(key: &[u8], value: &[u8], expiry: u32) -> Vec<u8> {
    let mut image = Vec::new();
    let state = ItemState::default();
    ItemSpec { key, value: [value, b""], client_flags: 0, expiry, version: 1, state }.encode(&mut image);
    image
}

impl Role {
    pub fn new(extents: usize, eviction: Eviction, budget_bytes: u64) -> Self {
        let (config, budget) = (config(extents, eviction), Budget::new(budget_bytes));
        let store = DataStore::new(config.clone(), budget.clone()).unwrap();
        Self::around(store, config, budget, Replica::new(Budget::new(u64::MAX)), BTreeMap::new())
    }

    pub fn around(
        store: DataStore,
        config: StoreConfig,
        budget: Budget,
        parity: Replica,
        model: BTreeMap<Vec<u8>, (Vec<u8>, u32)>,
    ) -> Self {
        let shadow = vec![0; config.area_limit_bytes];
        let (log, pending) = (VecDeque::new(), BTreeMap::new());
        let (now, window) = (UnixSeconds(1000), 8);
        let (evicted, moved, surrendered, vacated) = (0, 0, 0, 0);
        Self {
            store,
            budget,
            config,
            parity,
            shadow,
            model,
            now,
            evicted,
            moved,
            surrendered,
            vacated,
            window,
            log,
            pending,
        }
    }

    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        self.set_with_expiry(key, value, 0)
    }

    pub fn set_with_expiry(&mut self, key: &[u8], value: &[u8], expiry: u32) -> Result<(), NoRoom> {
        let image = encode(key, value, expiry);
        let (old, allocation) = self.place(key, image.len())?;
        self.model.insert(key.to_vec(), (value.to_vec(), expiry));
        self.log_put(key, &image, old, allocation);
        Ok(())
    }

    /// Whether the key was there.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let there = self.model.remove(key).is_some();
        if let Some(addr) = self.newest(key) {
            let ops = vec![IndexOp::Remove { hash: hash(key).into(), addr, cohort: Cohort::default() }];
            self.append(
                Record { writes: vec![], ops, pinned: vec![addr], keys: vec![key.to_vec()] },
                &[None],
            );
        }
        there
    }

    /// All keys go, those in the log included.
    pub fn flush(&mut self) {
        self.commit_all();
        self.model.clear();
        self.append(
            Record {
                writes: vec![],
                ops: vec![IndexOp::Flush { namespace: NamespaceId::DEFAULT }],
                pinned: vec![],
                keys: vec![],
            },
            &[],
        );
        self.commit_all();
    }

    /// The committed value. Repairs what is absent from the shadow.
    pub fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        for _ in 0..1000 {
            match self.store.find(hash(key), key) {
                Found::Hit(addr, _) => {
                    self.store.bump(addr, self.now);
                    let item = self.store.item(addr);
                    assert!(item.verify() && item.key == key);
                    return Some(item.value.to_vec());
                }
                Found::Miss => return None,
                Found::Absent(pages) => self.repair(pages),
                Found::Corrupt(addr) => panic!("{addr} is corrupt"),
            }
        }
        panic!("no progress in reading: {:?}", self.store.stats());
    }

    pub fn repair(&mut self, pages: PageRange) {
        assert!(pages.count > 0 && pages.count <= 16);
        let start = pages.start_byte();
        while self.store.fill(pages, &self.shadow[start..start + pages.len_bytes()]).is_err() {
            self.take_back(pages.first / PAGES_PER_EXTENT);
        }
    }

    /// There is no memory: another extent gives way, at the latest when nothing is under way.
    fn take_back(&mut self, keep: u32) {
        match self.store.surrender(keep) {
            Some(extent) => {
                assert!(extent != keep && !self.store.area().is_committed(extent));
                self.surrendered += 1;
            }
            None => assert!(self.commit_one(), "no memory for extent {keep}: {:?}", self.store.stats()),
        }
    }

    pub fn commit_all(&mut self) {
        while self.commit_one() {}
    }

    /// Everything that must hold whenever nothing is under way.
    pub fn check(&mut self) {
        self.commit_all();
        let keys: Vec<Vec<u8>> = self.model.keys().cloned().collect();
        for key in keys {
            let value = self.get(&key).unwrap_or_else(|| panic!("{key:?} is gone"));
            assert_eq!(value, self.model[&key].0);
        }
        self.store.check_invariants();
        self.parity.check_invariants();
        let stats = self.store.stats();
        assert_eq!(stats.items, self.model.len());
        assert_eq!((stats.pending, stats.claimed), (0, 0));
        assert_eq!(*self.store.replica(), self.parity);
        assert_eq!(self.store.replica().digest(), self.parity.digest());
        self.check_memory();
        if stats.absent_pages == 0 {
            let lens: usize = self.store.iter_items().map(|(_, item)| item.len_bytes()).sum();
            assert_eq!(stats.item_bytes, lens);
            self.check_bytes();
        }
    }

    fn check_memory(&self) {
        let memory = self.store.memory();
        let area = self.budget.used(Category::Area);
        // In a long area the other half of a large page is charged as well.
        let ahead = area - memory.area as u64;
        let is_long = self.config.area_limit_bytes > 16 * EXTENT_BYTES;
        let halves = self
            .store
            .area()
            .extents()
            .filter(|extent| is_long && !self.store.area().is_committed(extent ^ 1));
        let most = (halves.count() * EXTENT_BYTES) as u64;
        assert!(ahead <= most, "{area} charged, {memory:?}");
        assert_eq!(self.budget.total_used(), memory.total() as u64 + ahead);
    }

    /// The parity equation: garbage included.
    fn check_bytes(&self) {
        for page in self.parity.touched().iter() {
            let pages = PageRange { first: page, count: 1 };
            let start = pages.start_byte();
            assert!(
                self.store.page_bytes(pages) == &self.shadow[start..start + pages.len_bytes()],
                "page {page}"
            );
        }
    }

    /// Whatever is present is what the parities encode; what was never written is zero.
    pub fn check_present(&mut self) {
        self.commit_all();
        for page in 0..(self.config.area_limit_bytes / PAGE_BYTES) as u32 {
            let pages = PageRange { first: page, count: 1 };
            if self.store.pages_present(pages) {
                let start = pages.start_byte();
                assert!(
                    self.store.page_bytes(pages) == &self.shadow[start..start + PAGE_BYTES],
                    "page {page}"
                );
            }
        }
        self.store.check_invariants();
        self.check_memory();
        assert!(self.budget.total_used() <= self.budget.limit());
    }

    /// Shares of the memory limit: live items, all.
    pub fn live_share(&self) -> f64 {
        self.store.stats().item_bytes as f64 / self.budget.limit() as f64
    }

    /// Where the key is, and a slot for it. Both at once, since either may have to wait for memory that the other has.
    fn place(&mut self, key: &[u8], len: usize) -> Result<(Option<Addr>, store::Allocation), NoRoom> {
        for tries in 1..4000 {
            let old = self.newest(key);
            match self.store.allocate(len) {
                Ok(allocation) => return Ok((old, allocation)),
                Err(Shortage::Extent(extent)) => {
                    let _ = self.store.commit_extent(extent);
                }
                Err(Shortage::Absent(pages)) => self.repair(pages),
                Err(Shortage::Reclaim | Shortage::Full)
                    if self.store.lacks_index_memory() && self.vacate_one() => {}
                Err(Shortage::Reclaim) => self.reclaim(len)?,
                Err(Shortage::Full | Shortage::TooLarge) if !self.commit_one() => return Err(NoRoom),
                Err(Shortage::Full | Shortage::TooLarge) => {}
            }
            self.pass_time(tries);
        }
        panic!("no progress in making room for {len} bytes: {:?}", self.store.stats());
    }

    /// While somebody waits, what is in the log is committed.
    fn pass_time(&mut self, tries: u32) {
        if tries.is_multiple_of(50) {
            self.commit_one();
        }
    }

    /// Gives an extent back, if one is vacant: all wipes are committed, then it goes.
    pub fn vacate_one(&mut self) -> bool {
        let Some(extent) = self.store.vacant_extents().next() else { return false };
        self.store.vacating().begin(extent);
        for run in Wipe::runs(extent) {
            let Wipe { write, op } = self.store.vacating().wipe(run);
            let (writes, ops) = (write.into_iter().collect(), vec![op]);
            self.append(Record { writes, ops, pinned: vec![], keys: vec![] }, &[]);
        }
        self.commit_all();
        self.vacated += 1;
        self.store.vacating().give_up(extent)
    }

    fn reclaim(&mut self, len: usize) -> Result<(), NoRoom> {
        let proposal = self.store.reclaiming().propose(len, self.now);
        self.carry_out(proposal)
    }

    /// Empties the extent that is to go back; which one, if one can be emptied.
    pub fn empty_extent(&mut self) -> Option<u32> {
        loop {
            if let Some(extent) = self.store.take_emptied() {
                return Some(extent);
            }
            let proposal = self.store.reclaiming().propose_extent(self.now);
            self.carry_out(proposal).ok()?;
        }
    }

    fn carry_out(&mut self, proposal: Reclaim) -> Result<(), NoRoom> {
        match proposal {
            Reclaim::Remove(victims) => self.log_victims(&victims),
            Reclaim::Move(victims) => {
                let moved = victims.into_iter().filter(|victim| self.log_move(*victim)).count();
                if moved == 0 && !self.commit_one() {
                    return Err(NoRoom);
                }
            }
            Reclaim::Nothing if self.commit_one() => {}
            Reclaim::Nothing => return Err(NoRoom),
        }
        Ok(())
    }

    pub fn log_victims(&mut self, victims: &[Victim]) {
        assert!(victims.len() <= 64);
        let keys: Vec<Vec<u8>> =
            victims.iter().map(|victim| self.store.item(victim.addr).key.to_vec()).collect();
        let (mut ops, mut pinned) = (vec![], vec![]);
        for (key, victim) in keys.iter().zip(victims) {
            assert!(!self.pending.contains_key(key), "an item with uncommitted records was proposed");
            assert_eq!(victim.hash, IndexHash::from(hash(key)));
            self.model.remove(key).unwrap();
            self.evicted += 1;
            ops.push(IndexOp::Remove { hash: victim.hash, addr: victim.addr, cohort: Cohort::default() });
            pinned.push(victim.addr);
        }
        let places = vec![None; keys.len()];
        self.append(Record { writes: vec![], ops, pinned, keys }, &places);
    }

    /// Whether there was a slot to move to.
    fn log_move(&mut self, victim: Victim) -> bool {
        let image = self.store.item(victim.addr).bytes().to_vec();
        let key = self.store.item(victim.addr).key.to_vec();
        assert!(!self.pending.contains_key(&key), "an item with uncommitted records was proposed");
        match self.store.allocate(image.len()) {
            Ok(allocation) => {
                self.moved += 1;
                self.log_put(&key, &image, Some(victim.addr), allocation);
                true
            }
            Err(_) => {
                self.store.reclaiming().give_back(victim.addr);
                false
            }
        }
    }

    fn log_put(&mut self, key: &[u8], image: &[u8], old: Option<Addr>, allocation: store::Allocation) {
        let addr = allocation.addr;
        let writes = vec![(addr, self.store.delta(addr, image.to_vec()))];
        let mut ops = allocation.assign.to_vec();
        let hash = hash(key).into();
        ops.push(match old {
            Some(old) => IndexOp::Replace { hash, old, new: addr, cohort: Cohort::default() },
            None => IndexOp::Insert { hash, addr, cohort: Cohort::default() },
        });
        let pinned = old.into_iter().collect();
        self.append(Record { writes, ops, pinned, keys: vec![key.to_vec()] }, &[Some(addr)]);
    }

    /// Where the key will be when all is committed.
    fn newest(&mut self, key: &[u8]) -> Option<Addr> {
        for tries in 1..4000 {
            if let Some((addr, _)) = self.pending.get(key) {
                return *addr;
            }
            match self.store.find(hash(key), key) {
                Found::Hit(addr, _) => return Some(addr),
                Found::Miss => return None,
                Found::Absent(pages) => self.repair(pages),
                Found::Corrupt(addr) => panic!("{addr} is corrupt"),
            }
            self.pass_time(tries);
        }
        panic!("no progress in reading: {:?}", self.store.stats());
    }

    fn append(&mut self, record: Record, places: &[Option<Addr>]) {
        record.pinned.iter().for_each(|addr| self.store.pin(*addr));
        for (key, place) in record.keys.iter().zip(places) {
            let entry = self.pending.entry(key.clone()).or_insert((None, 0));
            *entry = (*place, entry.1 + 1);
        }
        self.log.push_back(record);
        while self.log.len() > self.window {
            self.commit_one();
        }
    }

    fn commit_one(&mut self) -> bool {
        let Some(record) = self.log.pop_front() else { return false };
        for (addr, delta) in &record.writes {
            self.store.apply_write(*addr, delta);
            self.parity.touch(*addr, delta.len());
            let target = &mut self.shadow[addr.byte()..];
            target.iter_mut().zip(delta.iter()).for_each(|(byte, change)| *byte ^= change);
        }
        record.pinned.iter().for_each(|addr| self.store.unpin(*addr));
        for op in &record.ops {
            self.store.apply_op(op);
            self.parity.apply(op);
        }
        for key in &record.keys {
            let entry = self.pending.get_mut(key).unwrap();
            entry.1 -= 1;
            if entry.1 == 0 {
                self.pending.remove(key);
            }
        }
        true
    }
}
