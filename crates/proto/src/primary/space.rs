//! Space in the area: extents that the parities must reserve first, eviction, compaction.

use cluster::{HostId, RoleIndex, Time};
use smallvec::{SmallVec, smallvec};
use store::{Allocation, CrawlCursor, IndexOp, Reclaim, Shortage};
use wire::message::{GroupBody, Reserve, Reserved};
use wire::op::Failure;

use super::Primary;
use super::log::Purpose;
use super::request::Wait;
use super::write::Draft;
use crate::outbox::Context;

/// How long a refused extent is not asked for again, in microseconds.
const REFUSAL_US: u64 = 1_000_000;

/// Runs that are searched for expired items at each tick.
const CRAWL_RUNS: u32 = 16;

/// Why there is no slot.
pub(super) enum NoSlot {
    /// Not now.
    Wait(Wait),
    /// Not at all.
    Refuse(Failure),
}

/// The area on its way to being larger, or to having room again.
#[derive(Default)]
pub(super) struct Growth {
    asking: Option<Asking>,
    refused_at: Option<Time>,
    /// Uncommitted records that make room.
    reclaiming: u32,
    /// Where the search for expired items goes on.
    crawled: CrawlCursor,
    /// Items removed to make room, and because they had expired.
    pub evicted: u64,
    pub expired: u64,
    /// How many of either nobody had read.
    pub evicted_unread: u64,
    pub expired_unread: u64,
    /// Times that there was no room for a write.
    pub refused: u64,
    /// Extents given back, and when the last one was.
    pub released: u64,
    pub released_at: Time,
}

/// An extent that parities are being asked for.
struct Asking {
    extent: u32,
    granted: SmallVec<[(RoleIndex, HostId); 4]>,
}

impl Growth {
    pub(super) fn reclaim_committed(&mut self) {
        self.reclaiming -= 1;
    }
}

impl Primary {
    /// A slot for `len_bytes`, or what to wait for.
    pub(super) fn allocate(
        &mut self,
        context: &mut Context<'_>,
        len_bytes: usize,
    ) -> Result<Allocation, NoSlot> {
        let store = self.store_mut().expect("only asked while serving");
        match store.allocate(len_bytes) {
            Ok(allocation) => Ok(allocation),
            Err(Shortage::TooLarge) => Err(NoSlot::Refuse(Failure::TooLarge)),
            Err(Shortage::Absent(pages)) => Err(NoSlot::Wait(Wait::Pages(pages))),
            Err(Shortage::Extent(extent)) => {
                self.ask_for(context, extent);
                let here = self.store().is_some_and(|store| store.extent_committed(extent));
                // Without parities it is here at once.
                if here { self.allocate(context, len_bytes) } else { Err(NoSlot::Wait(Wait::Space)) }
            }
            Err(Shortage::Reclaim | Shortage::Full) if self.releases_for_index(context) => {
                Err(NoSlot::Wait(Wait::Space))
            }
            Err(Shortage::Reclaim) => self.make_room(context, len_bytes),
            Err(Shortage::Full) => self.wait_or_refuse(),
        }
    }

    /// Whether it is the index that has no memory, and an extent is on its way back that nobody needs.
    fn releases_for_index(&mut self, context: &mut Context<'_>) -> bool {
        self.store().is_some_and(|store| store.lacks_index_memory()) && self.begin_release(context)
    }

    /// Full: but what is in flight may free something.
    fn wait_or_refuse<T>(&mut self) -> Result<T, NoSlot> {
        if self.log.is_empty() {
            self.growth.refused += 1;
            Err(NoSlot::Refuse(Failure::OutOfMemory))
        } else {
            Err(NoSlot::Wait(Wait::Space))
        }
    }

    fn make_room(&mut self, context: &mut Context<'_>, len_bytes: usize) -> Result<Allocation, NoSlot> {
        if self.growth.reclaiming > 0 {
            return Err(NoSlot::Wait(Wait::Space));
        }
        let now = self.wall.at(context.now.unix);
        let store = self.store_mut().expect("only asked while serving");
        match store.reclaim(len_bytes, now) {
            Reclaim::Remove(victims) => self.log_victims(context, &victims),
            Reclaim::Move(victims) => {
                for victim in victims {
                    self.log_move(context, victim);
                }
            }
            Reclaim::Nothing => {}
        }
        if self.growth.reclaiming > 0 { Err(NoSlot::Wait(Wait::Space)) } else { self.wait_or_refuse() }
    }

    /// One record removes a batch of items, evicted or expired.
    fn log_victims(&mut self, context: &mut Context<'_>, victims: &[store::Victim]) {
        let mut draft = Draft::default();
        let mut keys = SmallVec::new();
        let now = self.wall.at(context.now.unix);
        for victim in victims {
            let store = self.store_mut().expect("only asked while serving");
            let item = store.item(victim.addr);
            let key = bytes::Bytes::copy_from_slice(item.key);
            let expired = item.is_expired(now);
            let fetched = self.store().is_some_and(|store| store.access(victim.addr).fetched);
            if self.cleared.is_some() || self.keys.contains_key(&key) {
                self.store_mut().expect("only asked while serving").unreclaim(victim.addr);
                continue;
            }
            self.growth.evicted += u64::from(!expired);
            self.growth.expired += u64::from(expired);
            self.growth.evicted_unread += u64::from(!expired && !fetched);
            self.growth.expired_unread += u64::from(expired && !fetched);
            draft.ops.push(IndexOp::Remove { hash: victim.hash, addr: victim.addr });
            draft.pinned.push(victim.addr);
            keys.push((key, None));
        }
        if !draft.ops.is_empty() {
            self.growth.reclaiming += 1;
            self.append(context, draft, Purpose::Reclaim, keys, None);
        }
    }

    /// Rewrites an item elsewhere, so that its run can be emptied.
    fn log_move(&mut self, context: &mut Context<'_>, victim: store::Victim) {
        let store = self.store_mut().expect("only asked while serving");
        let item = store.item(victim.addr);
        let key = bytes::Bytes::copy_from_slice(item.key);
        let image = item.bytes().to_vec();
        let busy = self.cleared.is_some() || self.keys.contains_key(&key);
        let store = self.store_mut().expect("only asked while serving");
        let Some(allocation) = (if busy { None } else { store.allocate(image.len()).ok() }) else {
            return store.unreclaim(victim.addr);
        };
        self.growth.reclaiming += 1;
        self.log_item(
            context,
            (key, victim.hash),
            Some(victim.addr),
            (allocation, image),
            None,
            Purpose::Reclaim,
        );
    }

    /// Begins to reserve `extent` at every parity.
    fn ask_for(&mut self, context: &mut Context<'_>, extent: u32) {
        if self.growth.asking.is_none() {
            self.growth.asking = Some(Asking { extent, granted: smallvec![] });
            self.retry_growth(context);
            self.settle_growth(context);
        }
    }

    /// Asks the parities that have not answered.
    pub(super) fn retry_growth(&mut self, context: &mut Context<'_>) {
        let Some(asking) = &self.growth.asking else { return };
        let reserve = Reserve { term: self.term, extent: asking.extent };
        for peer in self.parities.iter().filter(|peer| !asking.granted.contains(&peer.id())) {
            self.sender().send(context, peer.host, peer.role, GroupBody::Reserve(reserve.clone()));
        }
    }

    pub(crate) fn handle_reserved(
        &mut self,
        context: &mut Context<'_>,
        parity: (RoleIndex, HostId),
        reserved: &Reserved,
    ) {
        let Some(asking) = &mut self.growth.asking else { return };
        if reserved.term != self.term || reserved.extent != asking.extent {
            return;
        }
        if reserved.granted {
            if !asking.granted.contains(&parity) {
                asking.granted.push(parity);
            }
            self.settle_growth(context);
        } else {
            self.refuse_growth(context);
        }
    }

    /// All parities have reserved it: the extent may be used, if there is memory here too.
    pub(super) fn settle_growth(&mut self, context: &mut Context<'_>) {
        let Some(asking) = &self.growth.asking else { return };
        if !self.parities.iter().all(|peer| asking.granted.contains(&peer.id())) {
            return;
        }
        let extent = asking.extent;
        let store = self.store_mut().expect("only a primary that serves asks");
        if store.commit_extent(extent).is_err() {
            return self.refuse_growth(context);
        }
        self.growth.asking = None;
        self.retry_waiting(context);
    }

    fn refuse_growth(&mut self, context: &mut Context<'_>) {
        let Some(asking) = self.growth.asking.take() else { return };
        self.growth.refused_at = Some(context.now.time);
        self.store_mut().expect("only a primary that serves asks").refuse_extent(asking.extent);
        self.retry_waiting(context);
    }

    /// Memory that was refused may be there by now.
    pub(super) fn tick_space(&mut self, context: &mut Context<'_>) {
        if self.growth.refused_at.is_some_and(|at| context.now.time.since(at) >= REFUSAL_US) {
            self.growth.refused_at = None;
            if let Some(store) = self.store_mut() {
                store.allow_growth();
            }
        }
        self.crawl(context);
    }

    /// Removes some of the items that have expired, a few runs at a time.
    fn crawl(&mut self, context: &mut Context<'_>) {
        if self.growth.reclaiming > 0 || !self.may_serve(context.now.time, context.timing) {
            return;
        }
        let (cursor, now) = (self.growth.crawled, self.wall.at(context.now.unix));
        let store = self.store_mut().expect("may_serve saw one");
        store.set_now(now);
        let (victims, next) = store.crawl(cursor, CRAWL_RUNS, now);
        self.growth.crawled = next;
        if !victims.is_empty() {
            self.log_victims(context, &victims);
        }
    }
}
