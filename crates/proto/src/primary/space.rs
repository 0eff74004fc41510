//! Space in the area: extents that the parities must reserve first, eviction, compaction.

use std::ops::AddAssign;

use smallvec::{SmallVec, smallvec};
use store::{CrawlCursor, DataStore, Reclaim, Victim};
use types::{NamespaceId, Reach, Time, UnixSeconds};
use wire::message::{GroupBody, Reserve, Reserved};

use super::charges::Charges;
use super::core::Core;
use super::parities::Parities;
use super::stream::{Draft, PlacedItem, Purpose, SendStream};
use crate::outbox::{Context, Peer};

/// How long a refused extent is not asked for again, in microseconds.
const REFUSAL_US: u64 = 1_000_000;

/// Runs that are searched for expired items at each tick.
const CRAWL_RUNS: u32 = 16;
/// The same where items are that nobody will ask for any more.
const SWEEP_RUNS: u32 = 1024;

/// The area on its way to being larger, or to having room again.
#[derive(Default)]
pub(super) struct Space {
    asking: Option<Asking>,
    refused_at: Option<Time>,
    /// Uncommitted records that make room.
    reclaiming: u32,
    /// Where the search for expired items goes on.
    crawled: CrawlCursor,
    removed: Removed,
}

/// Items removed so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removed {
    /// To make room.
    pub evicted: u64,
    /// Because they had expired.
    pub expired: u64,
    /// How many of either nobody had read.
    pub evicted_unread: u64,
    pub expired_unread: u64,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        self.evicted += other.evicted;
        self.expired += other.expired;
        self.evicted_unread += other.evicted_unread;
        self.expired_unread += other.expired_unread;
    }
}

/// What parities are being asked for.
struct Asking {
    reach: Reach,
    granted: SmallVec<[Peer; 4]>,
}

impl Space {
    pub(super) fn removed(&self) -> Removed {
        self.removed
    }

    /// So many records that make room have been committed.
    pub(super) fn reclaims_committed(&mut self, count: u32) {
        self.reclaiming -= count;
    }

    /// Asks the parities for an extent so far, unless they are being asked for one. Whether it can be used now: without parities it
    /// can at once.
    pub(super) fn grow(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        parities: &Parities,
        store: &mut DataStore,
        reach: Reach,
    ) -> bool {
        // One at a time: those who need another one come back when this one is decided.
        if self.asking.is_none() {
            self.asking = Some(Asking { reach, granted: smallvec![] });
            self.ask(context, core, parities);
            self.conclude(context.now.time, parities, store);
        }
        store.area().is_usable(reach.0)
    }

    /// Asks the parities that have not answered.
    pub(super) fn ask(&self, context: &mut Context<'_>, core: &Core, parities: &Parities) {
        let Some(asking) = &self.asking else { return };
        let reserve = GroupBody::Reserve(Reserve { term: core.term(), run: asking.reach.0 });
        parities.send_to(context, core, &reserve, |parity| !asking.granted.contains(&parity));
    }

    /// A parity has answered. Whether nothing is asked for any more.
    pub(super) fn hear(
        &mut self,
        now: Time,
        from: Peer,
        reserved: &Reserved,
        parities: &Parities,
        store: &mut DataStore,
    ) -> bool {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.reach.0 == reserved.run) else {
            return false;
        };
        if !reserved.granted {
            return self.refuse(now, store);
        }
        if !asking.granted.contains(&from) {
            asking.granted.push(from);
        }
        self.conclude(now, parities, store)
    }

    /// Once all parities have reserved the extent it may be used, if there is memory here too. Whether nothing is asked for any
    /// more.
    pub(super) fn conclude(&mut self, now: Time, parities: &Parities, store: &mut DataStore) -> bool {
        let granted_by_all = |asking: &&Asking| parities.ids().all(|id| asking.granted.contains(&id));
        let Some(asking) = self.asking.as_ref().filter(granted_by_all) else { return false };
        if store.commit_extent(asking.reach).is_err() {
            return self.refuse(now, store);
        }
        self.asking = None;
        true
    }

    fn refuse(&mut self, now: Time, store: &mut DataStore) -> bool {
        if self.asking.take().is_none() {
            return false;
        }
        self.refused_at = Some(now);
        store.growth().refuse();
        true
    }

    /// Memory that was refused may be there by now.
    pub(super) fn tick(&mut self, now: Time, store: &mut DataStore) {
        if self.refused_at.take_if(|at| now.since(*at) >= REFUSAL_US).is_some() {
            store.growth().allow();
        }
    }

    /// Logs what makes room for `len_bytes`, unless such records are on their way; whether some are.
    pub(super) fn make_room(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        len_bytes: usize,
        wall: UnixSeconds,
    ) -> bool {
        // What is on its way may be enough, and an item more would be gone for nothing.
        if self.reclaiming > 0 {
            return true;
        }
        let proposal = store.reclaiming().propose(len_bytes, wall);
        self.carry_out(context, store, stream, proposal, wall);
        self.reclaiming > 0
    }

    /// Logs what empties an extent that is to go back, unless enough such records are on their way; whether some are.
    pub(super) fn empty_extent(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        wall: UnixSeconds,
    ) -> bool {
        // One beside what makes room for writes, which so wait no longer than for each other.
        if self.reclaiming < 2 {
            let proposal = store.reclaiming().propose_extent(wall);
            self.carry_out(context, store, stream, proposal, wall);
        }
        self.reclaiming > 0
    }

    fn carry_out(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        proposal: Reclaim,
        wall: UnixSeconds,
    ) {
        match proposal {
            Reclaim::Remove(victims) => self.remove(context, store, stream, &victims, wall),
            Reclaim::Move(victims) => {
                let is_flushed = |victim: &Victim| !store.is_present(victim.addr);
                let (flushed, moved): (Vec<_>, Vec<_>) = victims.into_iter().partition(is_flushed);
                self.remove(context, store, stream, &flushed, wall);
                moved.into_iter().for_each(|victim| self.relocate(context, store, stream, victim));
            }
            Reclaim::Nothing => {}
        }
    }

    /// The same, so that `namespace` takes `bytes` less.
    pub(super) fn make_room_of(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        (namespace, bytes): (NamespaceId, u64),
        wall: UnixSeconds,
    ) -> bool {
        if self.reclaiming == 0 && store.tenants().may_evict(namespace) {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            let victims = store.reclaiming().propose_of(namespace, bytes, wall);
            self.remove(context, store, stream, &victims, wall);
        }
        self.reclaiming > 0
    }

    /// Where a quota has become smaller items go that may, batch by batch.
    pub(super) fn evict_excess(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        charges: &Charges,
        wall: UnixSeconds,
    ) {
        let excess = charges.excess(|namespace| store.tenants().may_evict(namespace));
        if let Some(excess) = excess {
            self.make_room_of(context, store, stream, excess, wall);
        }
    }

    /// What nobody will ask for any more goes batch by batch, as fast as the parities take it: its memory is waited for.
    pub(super) fn sweep(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        wall: UnixSeconds,
    ) {
        if store.has_garbage() {
            self.crawl(context, store, stream, wall);
        }
    }

    /// Removes some of the items that have expired, a few runs at a time.
    pub(super) fn crawl(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        wall: UnixSeconds,
    ) {
        if self.reclaiming > 0 {
            return;
        }
        let runs = if store.has_garbage() { SWEEP_RUNS } else { CRAWL_RUNS };
        let (victims, next) = store.reclaiming().crawl(self.crawled, runs, wall);
        self.crawled = next;
        self.remove(context, store, stream, &victims, wall);
    }

    /// One record removes a batch of items, evicted or expired.
    pub(super) fn remove(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        victims: &[Victim],
        wall: UnixSeconds,
    ) {
        let mut draft = Draft::of(Purpose::Reclaim);
        for victim in victims {
            let item = store.item(victim.addr);
            let cohort = item.cohort();
            if !store.is_present(victim.addr) && context.rules.flushed_items_have_no_key() {
                draft.end_object(item);
                draft.remove_flushed(victim.hash, victim.addr, cohort);
                continue;
            }
            // A record on its way moves or removes this item, or rests on where it is.
            if stream.is_about(item.key) {
                store.reclaiming().give_back(victim.addr);
                continue;
            }
            let key = bytes::Bytes::copy_from_slice(item.key);
            if !store.tenants().is_gone(cohort.namespace()) {
                self.removed.count(item.is_expired(wall), store.access(victim.addr).fetched);
            }
            draft.end_object(item);
            draft.remove(key, victim.hash, victim.addr, cohort);
        }
        if !draft.is_empty() {
            self.reclaiming += 1;
            stream.append(context, store, draft);
        }
    }

    /// Rewrites an item elsewhere, so that its run can be emptied.
    fn relocate(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        stream: &mut SendStream,
        victim: Victim,
    ) {
        let item = store.item(victim.addr);
        let (key, image) = (bytes::Bytes::copy_from_slice(item.key), item.bytes().to_vec());
        let cohort = item.cohort();
        // What is on its way decides where the key will lie.
        let allocation = if stream.is_about(&key) { None } else { store.allocate(image.len()).ok() };
        let Some(allocation) = allocation else { return store.reclaiming().give_back(victim.addr) };
        self.reclaiming += 1;
        let occupied = Some(victim.addr);
        let placed = PlacedItem { key, hash: victim.hash, occupied, cohort, allocation, image };
        stream.append_item(context, store, placed, Draft::of(Purpose::Reclaim));
    }
}

impl Removed {
    fn count(&mut self, expired: bool, fetched: bool) {
        self.evicted += u64::from(!expired);
        self.expired += u64::from(expired);
        self.evicted_unread += u64::from(!expired && !fetched);
        self.expired_unread += u64::from(expired && !fetched);
    }
}
