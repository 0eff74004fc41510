//! The chunks that one role of a group has at this host.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use types::{
    CHUNK_PAGE_BYTES, ChunkId, Geometry, NamespaceId, ObjectId, Profile, RoleIndex, UnixSeconds,
    checksum_combine,
};

use super::builder::ChunkBuilder;
use super::charges::Charges;
use super::chunk::Chunk;
use super::entry::{ChunkEntry, ChunkHeader};
use super::pool::ChunkPages;
use crate::{Category, Charge, QuotaShortage, Share};

/// How many chunks the hand looks at for each cold one that it is asked for.
const LOOKED_AT_FOR_ONE: usize = 8;

/// Chunks by their names. Headers are charged to [`Category::Index`] (255 bytes a chunk and 4 for each cell with five roles),
/// extents of bytes to [`Category::Chunks`]. Dropping it gives all back that nobody else holds.
#[derive(Debug)]
pub struct ChunkStore {
    role: RoleIndex,
    pages: ChunkPages,
    /// Boxed: nodes of the map are half empty on average.
    entries: BTreeMap<ChunkId, Box<ChunkEntry>>,
    all: Sum,
    tentative: Sum,
    quotas: Charges,
    /// The headers.
    charge: Charge,
    /// The last one that the hand has looked at.
    hand: Option<ChunkId>,
}

/// What became of a chunk that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is there now.
    New,
    /// An equal one was there, and stays.
    Same,
    /// Another one was there, and stays.
    Different,
    /// It is not the chunk that its trailer names for this role; nothing has changed.
    Wrong,
}

/// Chunks, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: usize,
    /// Of pages.
    bytes: u64,
    /// Of cells.
    len_bytes: u64,
}

impl Sum {
    fn add(&mut self, chunk: &Chunk) {
        self.count += 1;
        self.bytes += chunk.allocated_bytes() as u64;
        self.len_bytes += chunk.len_bytes() as u64;
    }

    fn subtract(&mut self, chunk: &Chunk) {
        self.count -= 1;
        self.bytes -= chunk.allocated_bytes() as u64;
        self.len_bytes -= chunk.len_bytes() as u64;
    }
}

impl ChunkStore {
    /// The empty store of a role, for chunks whose bytes are in `pages`.
    #[must_use]
    pub fn new(role: RoleIndex, pages: &ChunkPages) -> Self {
        Self {
            role,
            pages: pages.clone(),
            entries: BTreeMap::new(),
            all: Sum::default(),
            tentative: Sum::default(),
            quotas: Charges::default(),
            charge: Charge::empty(pages.budget().clone(), Category::Index),
            hand: None,
        }
    }

    /// Whose chunks these are.
    #[must_use]
    pub fn role(&self) -> RoleIndex {
        self.role
    }

    /// The pool that their bytes are in.
    #[must_use]
    pub fn pages(&self) -> &ChunkPages {
        &self.pages
    }

    /// Which namespaces have a quota of which this holder's chunks count from now on, as those of so many roles of its group do. What is
    /// there of them is charged.
    pub fn heed_quotas(
        &mut self,
        profile: Profile,
        counted: usize,
        limited: impl Iterator<Item = (NamespaceId, Share)>,
    ) {
        self.quotas.heed(profile, counted, limited);
    }

    /// Takes a chunk in, tentatively, unless there is one of this name. The same chunk may have several names; it is counted
    /// under each. It counted elsewhere before: no quota keeps it out, and it brings its part of the share with it.
    pub fn insert(&mut self, id: ChunkId, header: ChunkHeader, chunk: Chunk) -> Inserted {
        if let Some(known) = self.known_as(id, &header, &chunk) {
            return known;
        }
        self.quotas.bring(id.object.namespace, chunk.allocated_bytes() as u64);
        self.put_in(id, header, chunk);
        Inserted::New
    }

    /// The same for a chunk that did not count before.
    ///
    /// # Errors
    /// If its namespace has a quota of which there is too little left here. Nothing has changed then.
    pub fn try_insert(
        &mut self,
        id: ChunkId,
        header: ChunkHeader,
        chunk: Chunk,
    ) -> Result<Inserted, QuotaShortage> {
        if let Some(known) = self.known_as(id, &header, &chunk) {
            return Ok(known);
        }
        self.quotas.try_add(id.object.namespace, chunk.allocated_bytes() as u64)?;
        self.put_in(id, header, chunk);
        Ok(Inserted::New)
    }

    /// What becomes of a chunk that is not new; none if it is.
    fn known_as(&self, id: ChunkId, header: &ChunkHeader, chunk: &Chunk) -> Option<Inserted> {
        debug_assert!(chunk.pool().is_same(&self.pages), "the chunk lies in another pool");
        if !is_as_named(self.role, id, (header.geometry, &header.trailer[..]), chunk) {
            return Some(Inserted::Wrong);
        }
        let is_equal = self.entries.get(&id)?.chunk().is_equal(chunk);
        Some(if is_equal { Inserted::Same } else { Inserted::Different })
    }

    fn put_in(&mut self, id: ChunkId, header: ChunkHeader, chunk: Chunk) {
        self.all.add(&chunk);
        self.tentative.add(&chunk);
        let entry = Box::new(ChunkEntry::new(header, chunk));
        self.charge.set(self.charge.bytes() + entry.memory_bytes());
        self.entries.insert(id, entry);
    }

    /// The chunk of this name.
    #[must_use]
    pub fn get(&self, id: ChunkId) -> Option<&ChunkEntry> {
        self.entries.get(&id).map(|entry| &**entry)
    }

    /// The object of the chunk is committed. Whether there is such a chunk.
    pub fn keep(&mut self, id: ChunkId) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        if entry.is_tentative() {
            self.tentative.subtract(entry.chunk());
            entry.keep();
        }
        true
    }

    /// Forgets a chunk, and gives it to the caller. Its pages are free when nobody holds it any more.
    pub fn remove(&mut self, id: ChunkId) -> Option<Chunk> {
        let entry = self.entries.remove(&id)?;
        self.all.subtract(entry.chunk());
        self.quotas.subtract(id.object.namespace, entry.chunk().allocated_bytes() as u64);
        if entry.is_tentative() {
            self.tentative.subtract(entry.chunk());
        }
        self.charge.set(self.charge.bytes() - entry.memory_bytes());
        Some(entry.chunk().clone())
    }

    /// Forgets all chunks of an object; how many there were.
    pub fn remove_object(&mut self, object: ObjectId) -> usize {
        let next = |store: &Self| store.of_object(object).next().map(|(id, _)| id);
        let removed = std::iter::from_fn(|| self.remove(next(self)?));
        removed.count()
    }

    /// A chunk was read. Nothing happens if there is none.
    pub fn touch(&mut self, id: ChunkId, now: UnixSeconds) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.touch(now);
        }
    }

    /// The chunks behind `cursor` in the order of their names, or from the first one on, at most `limit` of them.
    pub fn list_after(
        &self,
        cursor: Option<ChunkId>,
        limit: usize,
    ) -> impl Iterator<Item = (ChunkId, &ChunkEntry)> {
        let behind = cursor.map_or(Unbounded, Excluded);
        self.entries.range((behind, Unbounded)).take(limit).map(|(id, entry)| (*id, &**entry))
    }

    /// The chunks of an object, by stripes.
    pub fn of_object(&self, object: ObjectId) -> impl Iterator<Item = (ChunkId, &ChunkEntry)> {
        let ids = ChunkId::first_of(object)..=ChunkId { object, stripe: u32::MAX };
        self.entries.range(ids).map(|(id, entry)| (*id, &**entry))
    }

    /// At most `limit` kept chunks `that_may` go and were not read for long, the coldest first: of the next few that a hand looks at, which
    /// goes round all names, eight for each one that is asked for. So a call takes bounded time, and the answer is an estimate.
    /// Tentative chunks are passed over: their owner does not know them yet.
    pub fn coldest(&mut self, limit: usize, that_may: impl Fn(ChunkId) -> bool) -> Vec<ChunkId> {
        let behind = self.hand.map_or(Unbounded, Excluded);
        let round = self.hand.into_iter().flat_map(|hand| self.entries.range(..=hand));
        let ahead = self.entries.range((behind, Unbounded)).chain(round);
        let mut last = None;
        let looked_at =
            ahead.take(limit.saturating_mul(LOOKED_AT_FOR_ONE)).inspect(|(id, _)| last = Some(**id));
        let kept = looked_at.filter(|(id, entry)| !entry.is_tentative() && that_may(**id));
        let mut found: Vec<_> = kept.map(|(id, entry)| (entry.last_access(), *id)).collect();
        self.hand = last.or(self.hand);
        found.sort_unstable();
        found.into_iter().take(limit).map(|(_, id)| id).collect()
    }

    /// How many chunks there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.count
    }

    /// Bytes of their pages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.all.bytes
    }

    /// Bytes of their cells.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.all.len_bytes
    }

    /// How many of them are tentative.
    #[must_use]
    pub fn tentative_count(&self) -> usize {
        self.tentative.count
    }

    /// Bytes of the pages of those.
    #[must_use]
    pub fn tentative_bytes(&self) -> u64 {
        self.tentative.bytes
    }

    /// Bytes of the pages of a namespace's chunks.
    #[must_use]
    pub fn taken_by(&self, namespace: NamespaceId) -> u64 {
        self.quotas.taken_by(namespace)
    }

    /// The same of all that have chunks here.
    pub fn taken_by_namespaces(&self) -> impl Iterator<Item = (NamespaceId, u64)> {
        self.quotas.taken()
    }

    /// What is charged of that to namespaces with a quota: of `n` bytes `k`, as if they lay in slots of data roles. Nothing where another holder
    /// of the role counts.
    pub fn charged(&self) -> impl Iterator<Item = (NamespaceId, u64)> {
        self.quotas.charged()
    }

    /// How many bytes of pages are to go, because namespaces take more at this node than their shares: these chunks' part.
    pub fn excess(&self) -> impl Iterator<Item = (NamespaceId, u64)> {
        self.quotas.excess()
    }

    /// Bytes of their headers, all charged to [`Category::Index`].
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        self.charge.bytes()
    }

    /// Changes a byte of a chunk behind everybody's back, for tests of what notices: the checksums stay. Who holds the chunk from
    /// before keeps what it has. False, and nothing has changed, if there is no such byte, or no memory for the copy.
    #[doc(hidden)]
    pub fn damage(&mut self, id: ChunkId, byte: usize, mask: u8) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let Some(chunk) = damaged(entry.chunk(), byte, mask) else { return false };
        let before = entry.memory_bytes();
        entry.replace_chunk(chunk);
        // It may lie in more pieces, or in fewer.
        self.charge.set(self.charge.bytes() - before + entry.memory_bytes());
        true
    }

    /// Everything that has to hold. Takes a pass over all chunks and their pages, not over their bytes.
    ///
    /// # Panics
    /// If something does not hold.
    pub fn check_invariants(&self) {
        let (mut all, mut tentative, mut headers) = (Sum::default(), Sum::default(), 0);
        let mut taken = BTreeMap::new();
        for (id, entry) in &self.entries {
            all.add(entry.chunk());
            *taken.entry(id.object.namespace).or_default() += entry.chunk().allocated_bytes() as u64;
            if entry.is_tentative() {
                tentative.add(entry.chunk());
            }
            headers += entry.memory_bytes();
            self.check_entry(entry);
        }
        assert_eq!((self.all, self.tentative), (all, tentative), "chunks are counted");
        self.quotas.check_invariants(&taken);
        assert_eq!(self.charge.bytes(), headers, "headers of chunks are paid for");
        let in_budget = self.pages.budget().used(Category::Index);
        assert!(headers as u64 <= in_budget, "headers of chunks are in no budget");
        self.check_pages();
        self.pages.check_invariants();
    }

    /// That a chunk is the one that the others name.
    fn check_entry(&self, entry: &ChunkEntry) {
        let own = entry.trailer().get(usize::from(self.role.0));
        assert_eq!(own, Some(&entry.chunk().checksum()), "a wrong chunk is here");
    }

    /// That each page is that of one chunk, which may have several names, and is not free.
    fn check_pages(&self) {
        let mut owners: BTreeMap<u32, &Chunk> = BTreeMap::new();
        let pool = self.pages.lock();
        for chunk in self.entries.values().map(|entry| entry.chunk()) {
            let bytes: usize = chunk.runs().map(|run| run.len_bytes()).sum();
            assert_eq!(bytes, chunk.pages() * CHUNK_PAGE_BYTES, "a chunk has the pages that it needs");
            for run in chunk.runs() {
                assert!(pool.are_taken(run), "pages of a chunk are free");
                let is_own = |page| owners.insert(page, chunk).is_none_or(|owner| owner.is_same(chunk));
                assert!(run.iter().all(is_own), "two chunks have one page");
            }
        }
    }
}

/// Whether it is what a stripe's trailer says that this role keeps. Of a whole copy all parts but the first are chunks of other roles.
fn is_as_named(role: RoleIndex, id: ChunkId, (geometry, trailer): (Geometry, &[u32]), chunk: &Chunk) -> bool {
    if trailer.get(usize::from(role.0)) != Some(&chunk.checksum()) {
        return false;
    }
    let copied = geometry.stripe(id.stripe).filter(|stripe| stripe.has_copy(role.0));
    copied.is_none_or(|stripe| {
        let cell_len = stripe.cell_len as usize;
        let sum = |cells: &[u32]| cells.iter().fold(0, |sum, cell| checksum_combine(sum, *cell, cell_len));
        let parts = chunk.cell_checksums().chunks(stripe.rows as usize);
        let named = trailer.iter().take(usize::from(stripe.k));
        parts.len() == usize::from(stripe.k)
            && parts.zip(named).skip(1).all(|(part, named)| sum(part) == *named)
    })
}

/// A copy with one byte changed, under the checksums of the original.
fn damaged(chunk: &Chunk, byte: usize, mask: u8) -> Option<Chunk> {
    if byte >= chunk.len_bytes() {
        return None;
    }
    let (row, within) = (byte / chunk.cell_len() as usize, byte % chunk.cell_len() as usize);
    let mut copy = ChunkBuilder::new(chunk.pool(), chunk.cell_len(), chunk.rows());
    for (at, checksum) in (0..).zip(chunk.cell_checksums()) {
        let mut cell = chunk.cell(at)?.to_vec();
        if at as usize == row {
            cell[within] ^= mask;
        }
        copy.push_as(&cell, *checksum).ok()?;
    }
    copy.finish().ok()
}
