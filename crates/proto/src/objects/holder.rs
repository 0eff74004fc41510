//! A holder: the chunks of one role of a group, by the view.
//!
//! A chunk is kept under the view that its writer had, in the one step in which it becomes listable: whoever is named later asks for
//! the list after that, and finds it there (docs/objects.md, W3).

use store::{Chunk, ChunkEntry, ChunkHeader, ChunkPages, ChunkStore, Inserted, QuotaShortage};
use types::{
    ChunkId, Exception, Geometry, GroupView, HostId, KeyHash, MemberId, NamespaceId, ObjectId, Term, Time,
    ViewVersion,
};
use wire::object::{
    Cell, Checked, Fetch, Free, Keep, KeptObject, List, Listed, ListedChunk, Missing, ObjectMessage, Placed,
    Put, PutAs, Refusal, Refused, is_of_repair,
};

use super::arriving::{Arriving, ArrivingChunk};
use super::fill::{Came, Fill, Window};
use super::inquiry::Inquiry;
use super::names::ObjectStats;
use super::order::{Made, Order, Purpose};
use super::pressure::ColdChunk;
use super::scope::Scope;
use crate::{Impossible, Rules, Timing};

/// Chunks of one Listed.
const LIST_CHUNKS: usize = 512;
/// Rows that one Fetch may ask for.
const MAX_ROWS: u32 = 1024;
/// A chunk that stands still for so many deadlines of objects is not waited for.
const STILL_DEADLINES: u64 = 2;

/// What a chunk that was put lacks.
pub(super) enum Short {
    /// Memory.
    Room,
    /// So many bytes of its namespace's quota.
    Share { namespace: NamespaceId, bytes: u64, why: QuotaShortage },
}

/// A chunk all of which is there, before it is judged.
struct WholeChunk {
    chunk: ChunkId,
    attempt: u64,
    /// The writer's view.
    view: ViewVersion,
    /// The view that was known here when it began to come.
    known: ViewVersion,
    header: ChunkHeader,
    built: Chunk,
    /// Whether it is kept here under another name, too, or in the pool that its namespace leaves, and so is charged to its quota already.
    is_charged: bool,
}

/// See the module.
pub(crate) struct Holder {
    member: MemberId,
    chunks: ChunkStore,
    arriving: Arriving,
    /// Whole chunks whose writers know a newer view than there is here.
    early: Vec<(HostId, WholeChunk)>,
    inquiry: Inquiry,
    fill: Fill,
}

impl Holder {
    /// One that has nothing yet.
    pub(super) fn new(member: MemberId, pages: &ChunkPages) -> Self {
        Self {
            member,
            chunks: ChunkStore::new(member.role, pages),
            arriving: Arriving::default(),
            early: Vec::new(),
            inquiry: Inquiry::default(),
            fill: Fill::new(member),
        }
    }

    /// Whose chunks it has.
    pub(super) fn member(&self) -> MemberId {
        self.member
    }

    /// What is kept.
    pub(crate) fn chunks(&self) -> &ChunkStore {
        &self.chunks
    }

    #[cfg(any(test, feature = "planted-bugs"))]
    pub(super) fn chunks_mut(&mut self) -> &mut ChunkStore {
        &mut self.chunks
    }

    /// Memory of chunks that are not whole.
    fn arriving_bytes(&self) -> usize {
        let early: usize = self.early.iter().map(|(_, chunk)| chunk.built.allocated_bytes()).sum();
        self.arriving.allocated_bytes() + early
    }

    /// One more cell of a chunk.
    ///
    /// # Errors
    /// What there is too little of to keep it. The writer has still to be told.
    pub(super) fn put(&mut self, scope: &mut Scope<'_>, from: HostId, put: Put) -> Result<(), Short> {
        let Some(view) = scope.view(self.member.group) else { return Ok(()) };
        if usize::from(put.geometry.k) != view.k() || !put.cell.is_right() {
            scope.accuse(from, Impossible::Chunk);
            return Ok(());
        }
        if !self.chunks.pages().has_room_to_grow(put.cell.bytes.len()) {
            return Err(Short::Room);
        }
        let (chunk, attempt) = (put.chunk, put.attempt);
        let at = (scope.now.time, view.version);
        match self.arriving.take(at, self.chunks.pages(), from, put) {
            Ok(Some(arrived)) => {
                let whole = WholeChunk::arrived(scope, arrived);
                return whole.map_or(Ok(()), |whole| self.judge(scope, from, whole));
            }
            Ok(None) => {}
            Err(Refusal::NoRoom) => return Err(Short::Room),
            Err(why) => self.refuse(scope, from, (chunk, attempt), why),
        }
        Ok(())
    }

    /// A chunk that is kept here is to have another name, too: it is judged as if it came whole at this moment. It needs no more room.
    pub(super) fn put_as(&mut self, scope: &mut Scope<'_>, from: HostId, put: PutAs) {
        let Some(view) = scope.view(self.member.group) else { return };
        if usize::from(put.geometry.k) != view.k() {
            return scope.accuse(from, Impossible::Chunk);
        }
        let (name, known) = ((put.chunk, put.attempt), view.version);
        let old = ChunkId { object: put.old, ..put.chunk };
        // The old name may be gone by now.
        let Some(entry) = self.chunks.get(old).or_else(|| self.chunks.get(put.chunk)) else {
            return self.miss_old(scope, from, put, old);
        };
        let is_it = entry.key_hash() == put.key_hash && entry.geometry() == put.geometry;
        if !is_it || entry.trailer() != &*put.trailer {
            return self.refuse(scope, from, name, Refusal::Different);
        }
        let header = header_of(scope, put.key_hash, put.geometry, &put.trailer);
        let (built, PutAs { chunk, attempt, view, .. }) = (entry.chunk().clone(), put);
        let whole = WholeChunk { chunk, attempt, view, known, header, built, is_charged: true };
        if self.judge(scope, from, whole).is_err() {
            self.refuse(scope, from, name, Refusal::Crowded);
        }
    }

    /// A chunk that is to have another name is not here yet: it is got before others, and the writer asks again.
    fn miss_old(&mut self, scope: &mut Scope<'_>, from: HostId, put: PutAs, old: ChunkId) {
        let PutAs { member, chunk, attempt, key_hash, geometry, trailer, .. } = put;
        let since = scope.view(member.group).and_then(|view| view.holds_since(member.role, scope.here()));
        if let Some(since) = since.filter(|_| !scope.rules().objects().unseen_chunks_are_refused()) {
            return scope.send(from, ObjectMessage::Placed(Placed { member, chunk, attempt, since }));
        }
        self.fill.want_soon(ListedChunk { chunk: old, key_hash, geometry, trailer, kept: false });
        self.fill.go_on(scope);
        self.refuse(scope, from, (chunk, attempt), Refusal::Absent);
    }

    /// All of it is there.
    fn judge(&mut self, scope: &mut Scope<'_>, from: HostId, whole: WholeChunk) -> Result<(), Short> {
        let Some(view) = scope.view(self.member.group) else { return Ok(()) };
        let name = (whole.chunk, whole.attempt);
        let (known, since) = (view.version, view.holds_since(self.member.role, scope.here()));
        if whole.view > known {
            scope.want_view(self.member.group);
            self.early.push((from, whole));
            return Ok(());
        }
        let judges = scope.rules().objects().view_that_judges(whole.known.min(whole.view), known);
        match since {
            // Its quota is not known yet.
            Some(_) if scope.is_to_come(name.0.object.namespace) => {
                self.refuse(scope, from, name, Refusal::Crowded);
            }
            Some(since) if whole.view == judges => return self.keep_new(scope, from, whole, since),
            _ => self.refuse(scope, from, name, Refusal::View(known)),
        }
        Ok(())
    }

    fn keep_new(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        whole: WholeChunk,
        since: ViewVersion,
    ) -> Result<(), Short> {
        let WholeChunk { chunk, attempt, header, built, is_charged, .. } = whole;
        let (namespace, bytes) = (chunk.object.namespace, built.allocated_bytes() as u64);
        let inserted = if scope.rules().objects().puts_keep_to_quotas() && !is_charged {
            self.chunks.try_insert(chunk, header, built)
        } else {
            Ok(self.chunks.insert(chunk, header, built))
        };
        match inserted.map_err(|why| Short::Share { namespace, bytes, why })? {
            Inserted::New | Inserted::Same => {
                let member = self.member;
                scope.send(from, ObjectMessage::Placed(Placed { member, chunk, attempt, since }));
            }
            Inserted::Different | Inserted::Wrong => {
                self.refuse(scope, from, (chunk, attempt), Refusal::Different)
            }
        }
        Ok(())
    }

    /// Says why a chunk is not kept.
    pub(super) fn refuse(
        &self,
        scope: &mut Scope<'_>,
        to: HostId,
        (chunk, attempt): (ChunkId, u64),
        why: Refusal,
    ) {
        scope.send(to, ObjectMessage::Refused(Refused { member: self.member, chunk, attempt, why }));
    }

    /// The view is another one: what waited for it is judged.
    pub(super) fn adopt(&mut self, scope: &mut Scope<'_>, view: &GroupView) {
        let was_filling = self.fill.is_under_way();
        self.fill.adopt(scope, view);
        if was_filling && !self.fill.is_under_way() && scope.rules().objects().filled_holders_ask() {
            // Others may have been told of something that came here afterwards.
            self.inquiry.ask_anew();
        }
        for (from, whole) in std::mem::take(&mut self.early) {
            let name = (whole.chunk, whole.attempt);
            if self.judge(scope, from, whole).is_err() {
                // When it is put again, it is known whether anything can go for it.
                self.refuse(scope, from, name, Refusal::Crowded);
            }
        }
    }

    /// Namespaces may have other quotas, and chunks of other holders may count.
    pub(super) fn heed_quotas(&mut self, scope: &Scope<'_>) {
        let Some(view) = scope.view(self.member.group) else { return };
        let own = (self.member.role, scope.here());
        let counts = view.counted_holders().any(|(role, holder)| (role, holder.host) == own);
        let counted = view.counted_holders().count();
        let counted = scope.rules().objects().roles_that_count(counted, view.holders.len());
        if let Some((profile, limited)) = scope.limited_in(self.member.group) {
            self.chunks.heed_quotas(profile, counted, limited.filter(|_| counts));
        }
    }

    /// These objects are committed.
    pub(super) fn keep(&mut self, rules: Rules, keep: &Keep) {
        for KeptObject { descriptor, .. } in &keep.objects {
            // A committed id is committed, whoever says so.
            self.keep_all_of(rules, descriptor.id, &descriptor.exceptions);
        }
    }

    /// The object is committed; what is stranded here goes.
    fn keep_all_of(&mut self, rules: Rules, object: ObjectId, exceptions: &[Exception]) {
        let group = self.member.group;
        let is_stranded = |chunk: ChunkId| Exception::strand(exceptions, chunk.stripe, group);
        let all = self.chunks.of_object(object).map(|(id, _)| id);
        let (stranded, kept): (Vec<ChunkId>, Vec<ChunkId>) = all.partition(|id| is_stranded(*id));
        kept.into_iter().for_each(|id| _ = self.chunks.keep(id));
        if rules.objects().stranded_chunks_go() {
            stranded.into_iter().for_each(|id| drop(self.chunks.remove(id)));
        }
        if !exceptions.is_empty() && rules.objects().stranded_chunks_are_not_lost() {
            self.fill.leave_out(|chunk| chunk.object == object && is_stranded(chunk));
        }
    }

    /// These are dead.
    pub(super) fn free(&mut self, rules: Rules, free: &Free) {
        free.objects.iter().for_each(|object| self.forget(rules, *object, free.term));
    }

    /// An owner wants to be asked about everything of its own.
    pub(super) fn ask_anew_about(&mut self, owner: MemberId) {
        self.inquiry.ask_anew_about(owner);
    }

    /// The owner of `term` says that the object is dead. One of an earlier term knows nothing of it.
    pub(super) fn forget(&mut self, rules: Rules, object: ObjectId, term: Term) {
        if !rules.objects().owner_knows(object.term, term) {
            return;
        }
        self.chunks.remove_object(object);
        self.fill.forget(object);
        self.arriving.forget(|_, of, _| of == object);
        self.early.retain(|(_, chunk)| chunk.chunk.object != object);
    }

    /// Sends rows of a chunk, or says that it is not here.
    pub(super) fn fetch(&mut self, scope: &mut Scope<'_>, from: HostId, fetch: &Fetch) {
        let Fetch { number, member, chunk, first, count } = *fetch;
        let Some(entry) = self.chunks.get(chunk) else { return miss(scope, from, fetch) };
        let built = entry.chunk().clone();
        if !is_of_repair(number) {
            self.chunks.touch(chunk, scope.now.unix);
        }
        let end = first.saturating_add(count.min(MAX_ROWS)).min(built.rows());
        for row in first..end {
            let known = built.cell_checksums().get(row as usize).copied();
            let cell = built.cell(row).filter(|_| built.verify(row));
            let (Some(bytes), Some(checksum)) = (cell, known) else {
                self.give_up(scope, chunk);
                return miss(scope, from, fetch);
            };
            let cell = Checked::said(bytes, checksum);
            scope.send(from, ObjectMessage::Cell(Cell { number, member, chunk, row, cell }));
        }
    }

    /// Rows of a chunk of this key's value, for a client that reads them itself: as many as these bytes hold, at least one; none if the
    /// chunk is not here.
    pub(crate) fn read(
        &mut self,
        scope: &mut Scope<'_>,
        key_hash: KeyHash,
        chunk: ChunkId,
        (first, count): (u32, u32),
        most_bytes: u32,
    ) -> Option<Vec<Checked>> {
        let entry = self.chunks.get(chunk).filter(|entry| entry.key_hash() == key_hash)?;
        let built = entry.chunk().clone();
        self.chunks.touch(chunk, scope.now.unix);
        let most = (most_bytes / built.cell_len().max(1)).max(1).min(count);
        let rows = first..first.saturating_add(most).min(built.rows());
        let cell = |row: u32| {
            let known = built.cell_checksums().get(row as usize).copied();
            Some(Checked::said(built.cell(row).filter(|_| built.verify(row))?, known?))
        };
        let cells = rows.clone().map(cell).collect::<Option<Vec<Checked>>>();
        if cells.is_none() {
            self.give_up(scope, chunk);
        }
        cells.filter(|cells| !cells.is_empty())
    }

    /// Nobody goes on with this try to put a chunk.
    pub(crate) fn drop_arriving(&mut self, from: HostId, attempt: u64) {
        self.arriving.drop_one(from, attempt);
    }

    /// A chunk is rotten: nobody is to read it, and it is got anew.
    pub(super) fn give_up(&mut self, scope: &mut Scope<'_>, chunk: ChunkId) {
        let Some(listed) = self.chunks.get(chunk).map(|entry| listed_of(chunk, entry)) else { return };
        tracing::error!(member = %self.member, %chunk, "a chunk is not what it was");
        self.chunks.remove(chunk);
        self.fill.want(scope, listed);
        self.fill.go_on(scope);
    }

    /// Says which chunks are here. Under an older view than the asker's it would say too little: the asker comes again.
    pub(super) fn list(&self, scope: &mut Scope<'_>, from: HostId, list: &List) {
        let List { number, member, view, after } = *list;
        let Some(known) = scope.view(member.group).map(|view| view.version) else { return };
        if known < view {
            return scope.want_view(member.group);
        }
        let here = self.chunks.list_after(after, LIST_CHUNKS + 1);
        let mut chunks: Vec<ListedChunk> = here.map(|(chunk, entry)| listed_of(chunk, entry)).collect();
        let more = chunks.len() > LIST_CHUNKS;
        chunks.truncate(LIST_CHUNKS);
        let listed = Listed { number, member, view: known, chunks, more };
        scope.send(from, ObjectMessage::Listed(listed));
    }

    /// Whether `view` leaves nothing to this host: another one is whole, and nobody gets the role's chunks any more.
    pub(super) fn is_relieved(&self, rules: Rules, view: &GroupView, here: HostId) -> bool {
        let holders = view.holders_of(self.member.role);
        let is_named = view.holds_since(self.member.role, here).is_some();
        let is_relieved = !is_named && holders.whole.is_some() && holders.filling.is_none();
        is_relieved && rules.objects().relieved_holders_drop_chunks()
    }

    /// A link to `peer` is another one: what it was putting it puts again.
    pub(super) fn link_broken(&mut self, rules: Rules, peer: HostId) {
        self.arriving.forget(|from, _, _| *from == peer);
        self.fill.lose_link(rules, peer);
    }

    /// Asks what is due to be asked, and gives up what stands still.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>) {
        let (now, still) = (scope.now.time, still_us(&scope.timing()));
        self.arriving.forget(|_, _, moved| now.since(moved) >= still);
        self.inquiry.go_on(scope, self.member, &mut self.chunks);
        if self.fill.due(&scope.timing()) <= now {
            self.fill.tick(scope);
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let still = self.arriving.oldest().map_or(Time::NEVER, |oldest| oldest + still_us(timing));
        still.min(self.inquiry.due(timing, &self.chunks)).min(self.fill.due(timing))
    }

    /// An owner has answered.
    pub(super) fn hear(&mut self, scope: &mut Scope<'_>, verdicts: &wire::object::Verdicts) {
        let rules = scope.rules();
        let (dead, committed) = self.inquiry.hear(rules, verdicts);
        dead.into_iter().for_each(|object| self.forget(rules, object, verdicts.term));
        for object in committed {
            let moved = verdicts.moved.iter().find(|moved| moved.object == object);
            self.keep_all_of(rules, object, moved.map_or(&[], |moved| &moved.exceptions));
        }
        self.fill.hear_verdicts(scope, &self.chunks, verdicts);
        self.inquiry.go_on(scope, self.member, &mut self.chunks);
    }

    /// At most `limit` kept chunks of namespaces that `may_go` and that were not read for long.
    pub(super) fn coldest(&mut self, limit: usize, may_go: impl Fn(NamespaceId) -> bool) -> Vec<ColdChunk> {
        let ids = self.chunks.coldest(limit, |id| may_go(id.object.namespace));
        let cold = |chunk: ChunkId| {
            let entry = self.chunks.get(chunk)?;
            let (last_access, key_hash) = (entry.last_access(), entry.key_hash());
            Some(ColdChunk { last_access, chunk, key_hash, bytes: entry.chunk().allocated_bytes() as u64 })
        };
        ids.into_iter().filter_map(cold).collect()
    }

    /// Something for its fill. What has come with it of all that was asked for at once, if it is the last of that.
    pub(super) fn hear_fill(
        &mut self,
        scope: &mut Scope<'_>,
        from: HostId,
        message: ObjectMessage,
    ) -> Option<Came> {
        match message {
            ObjectMessage::Cell(cell) => return self.fill.hear_cell(scope, &mut self.chunks, cell),
            ObjectMessage::Listed(listed) => self.fill.hear_list(scope, &self.chunks, listed),
            ObjectMessage::Missing(missing) => self.fill.hear_missing(scope, from, &missing),
            _ => {}
        }
        None
    }

    /// Lets its fill ask for some cells; bytes of chunks that are made of them, if it has.
    pub(super) fn ask_for_cells(&mut self, scope: &mut Scope<'_>, window: &Window) -> Option<u64> {
        self.fill.ask(scope, &self.chunks, window)
    }

    /// Chunks that it wants to be made by a graph.
    pub(super) fn take_order(&mut self, now: Time, most_bytes: u64, window: &Window) -> Option<Order> {
        self.fill.take_order(now, &self.chunks, most_bytes, window)
    }

    /// Whether it waits for what is made for this.
    pub(super) fn awaits(&self, purpose: Purpose) -> bool {
        self.fill.awaits(purpose)
    }

    /// What has become of such an order; what has come of it.
    pub(super) fn hear_made(&mut self, scope: &mut Scope<'_>, made: Made) -> Option<Came> {
        self.fill.hear_made(scope, &mut self.chunks, made)
    }

    /// What is to be got, and what nobody has.
    pub(super) fn fill(&self) -> &Fill {
        &self.fill
    }

    /// Adds what is here.
    pub(super) fn count(&self, stats: &mut ObjectStats) {
        stats.chunks += self.chunks.count() as u64;
        stats.chunk_bytes += self.chunks.len_bytes();
        stats.page_bytes += self.chunks.bytes();
        stats.tentative_bytes += self.chunks.tentative_bytes();
        stats.arriving_bytes += self.arriving_bytes() as u64;
        stats.lacking_chunks += self.fill.left() as u64;
        stats.starved_fills += u64::from(self.fill.lacks_room());
        stats.lost_chunks += self.fill.lost().count() as u64;
    }
}

impl WholeChunk {
    /// One whose last cell has come.
    fn arrived(scope: &Scope<'_>, arrived: ArrivingChunk) -> Option<Self> {
        let ArrivingChunk { put, builder, known, .. } = arrived;
        let built = builder.finish().ok()?;
        let header = header_of(scope, put.key_hash, put.geometry, &put.trailer);
        let Put { chunk, attempt, view, charged: is_charged, .. } = put;
        Some(Self { chunk, attempt, view, known, header, built, is_charged })
    }
}

fn header_of(scope: &Scope<'_>, key_hash: KeyHash, geometry: Geometry, trailer: &[u32]) -> ChunkHeader {
    let (received_at, last_access) = (scope.now.time, scope.now.unix);
    ChunkHeader { key_hash, geometry, trailer: trailer.iter().copied().collect(), received_at, last_access }
}

/// What was asked for is not here.
pub(super) fn miss(scope: &mut Scope<'_>, to: HostId, fetch: &Fetch) {
    let Fetch { number, member, chunk, .. } = *fetch;
    let Some(view) = scope.view(member.group) else { return };
    let whole = view.holders_of(member.role).whole;
    let whole = whole.is_some_and(|holder| holder.host == scope.here());
    let view = view.version;
    scope.send(to, ObjectMessage::Missing(Missing { number, member, chunk, view, whole }));
}

fn listed_of(chunk: ChunkId, entry: &ChunkEntry) -> ListedChunk {
    ListedChunk {
        chunk,
        key_hash: entry.key_hash(),
        geometry: entry.geometry(),
        trailer: entry.trailer().iter().copied().collect(),
        kept: !entry.is_tentative(),
    }
}

/// After so long a chunk that does not go on is given up, in microseconds.
fn still_us(timing: &Timing) -> u64 {
    timing.object_deadline_us * STILL_DEADLINES
}
