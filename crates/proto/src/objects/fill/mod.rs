//! How a holder gets the chunks that it lacks: all that there are of its role when a view appoints it, and single ones that went bad.
//!
//! An appointment begins with a List of a whole holder of the group, which adopts the view first: whoever accepted a chunk under an
//! older view has it in its list by then. Each chunk is copied from another holder of the role, or made of `k` others: one by
//! one (`mend`), or many at once by a coding graph (`batch`). One is
//! left out only if everybody who could have it has said, under this view, that they have not, what there is cannot be solved, and the
//! owner says that it is not committed (docs/objects.md, "Filling").

mod batch;
mod bring;
mod mend;
mod window;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cluster::Protection;
use store::ChunkStore;
use types::{ChunkId, GroupView, HostId, MemberId, ObjectId, ObjectLayout, RoleIndex, Time, ViewVersion};
use wire::object::{
    Ask, Asked, Cell, ChunkReport, FILL_BIT, Harm, List, Listed, ListedChunk, Missing, ObjectMessage,
    Verdict, Verdicts,
};

use super::order::{Made, Order, Purpose};
use super::scope::Scope;
use crate::{Rules, Timing};
use batch::{Batches, keep_made};
use mend::{Attempt, Mend};
pub(super) use window::{Came, Window};

/// Bytes of chunks that are made at once.
const MEND_BYTES: u64 = 4 << 20;
/// Objects of one Ask.
const TOLD_AT_ONCE: usize = 256;
/// While cells come, one that waits behind them is not asked for again before so many times the time after which a silent holder is.
const PATIENCE: u64 = 8;
/// Numbers of messages of fills have the role of who is filled above the count.
const ROLE_SHIFT: u32 = 55;

/// The role whose fill has sent a message with this number; none if no fill has.
pub(super) fn role_of(number: u64) -> Option<RoleIndex> {
    (number & FILL_BIT != 0).then_some(RoleIndex((number >> ROLE_SHIFT) as u8))
}

/// See the module.
pub(super) struct Fill {
    member: MemberId,
    /// How chunks are made of others; none before that is known.
    protection: Option<Arc<Protection>>,
    /// Since when all chunks are to be got, and how far that is.
    appointment: Option<Appointment>,
    /// Chunks to get.
    todo: VecDeque<ListedChunk>,
    /// Those that are being got, by the numbers of their questions.
    mends: BTreeMap<u64, Mend>,
    /// Those that graphs are to make.
    batches: Batches,
    numbers: u64,
    /// When a cell of any of them came last.
    moved: Time,
    /// Chunks of committed objects that nobody has any more.
    lost: BTreeMap<ChunkId, ListedChunk>,
    /// When owners were last told of these.
    told: Time,
}

struct Appointment {
    since: ViewVersion,
    /// Who is still to be asked for a list, and who is being asked.
    sources: VecDeque<(RoleIndex, HostId)>,
    listing: Option<Listing>,
    listed: bool,
    /// When the end was reported.
    reported: Option<Time>,
}

struct Listing {
    source: (RoleIndex, HostId),
    number: u64,
    after: Option<ChunkId>,
    at: Time,
}

impl Fill {
    pub(super) fn new(member: MemberId) -> Self {
        let (todo, mends, lost) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        let batches = Batches::default();
        Self {
            member,
            protection: None,
            appointment: None,
            todo,
            mends,
            batches,
            numbers: 0,
            moved: Time(0),
            lost,
            told: Time(0),
        }
    }

    /// What the view wants of this holder.
    pub(super) fn adopt(&mut self, scope: &mut Scope<'_>, view: &GroupView) {
        let filling = view.holders_of(self.member.role).filling.filter(|holder| holder.host == scope.here());
        match (filling, &self.appointment) {
            (None, None) => {}
            (None, Some(_)) => self.appointment = None,
            (Some(holder), Some(known)) if known.since == holder.since => {}
            (Some(holder), _) => {
                tracing::info!(member = %self.member, since = %holder.since, "gets its chunks");
                self.appointment = Some(Appointment {
                    since: holder.since,
                    sources: VecDeque::new(),
                    listing: None,
                    listed: false,
                    reported: None,
                });
                self.todo.clear();
                self.mends.clear();
                self.batches.forget();
            }
        }
        self.mends.values_mut().for_each(|mend| mend.adopt(scope.rules(), view));
        self.go_on(scope);
    }

    /// This chunk was here and is no good, or should be here: it is got again.
    pub(super) fn want(&mut self, scope: &Scope<'_>, listed: ListedChunk) {
        // Of what is not committed others may well have nothing: one such chunk would hold up all that a graph makes with it.
        // Nor is there much to gain where there is a copy: a data chunk is a part of it, and the copy is longer than a chunk of the code.
        let is_copied =
            self.member.role.0 < listed.geometry.k && listed.geometry.layout == ObjectLayout::Copy;
        if listed.kept && !is_copied && scope.graph_bytes().is_some() {
            self.batches.want(listed);
        } else {
            self.todo.push_back(listed);
        }
    }

    /// This chunk is to be here before others are.
    pub(super) fn want_soon(&mut self, listed: ListedChunk) {
        let is_known = self.mends.values().any(|mend| mend.chunk() == listed.chunk)
            || self.todo.iter().any(|known| known.chunk == listed.chunk);
        if !is_known {
            self.todo.push_front(listed);
        }
    }

    /// Chunks of committed objects that nobody has.
    pub(super) fn lost(&self) -> impl Iterator<Item = &ListedChunk> {
        self.lost.values()
    }

    /// How many chunks are known to be lacking.
    pub(super) fn left(&self) -> usize {
        self.todo.len() + self.mends.len() + self.batches.left()
    }

    /// Whether everything is to be got and is not here.
    pub(super) fn is_under_way(&self) -> bool {
        self.appointment.is_some()
    }

    /// Whether there was no room for what came.
    pub(super) fn lacks_room(&self) -> bool {
        self.mends.values().any(Mend::lacks_room)
    }

    /// Bytes of what is being got.
    pub(super) fn memory_bytes(&self) -> usize {
        self.mends.values().map(Mend::memory_bytes).sum::<usize>()
            + (self.todo.capacity() + self.batches.left()) * size_of::<ListedChunk>()
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        FILL_BIT | u64::from(self.member.role.0) << ROLE_SHIFT | self.numbers
    }

    /// Goes on as far as it can without asking for cells ([`Self::ask`]).
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>) {
        if self.protection.is_none() {
            self.protection = scope.protection(self.member.group);
        }
        self.go_on_listing(scope);
        self.tell_of_lost(scope);
        self.report_if_done(scope);
    }

    /// Whether it would ask for cells.
    pub(super) fn wants_cells(&self) -> bool {
        self.mends.values().any(Mend::wants_more) || self.may_begin_mend()
    }

    /// Asks for some cells; bytes of chunks that are made of them, if it has.
    pub(super) fn ask(&mut self, scope: &mut Scope<'_>, chunks: &ChunkStore, window: &Window) -> Option<u64> {
        let begun = self.mends.iter().find(|(_, mend)| mend.wants_more()).map(|(number, _)| *number);
        let number = begun.or_else(|| self.begin_mend(chunks, window))?;
        match self.mends.get_mut(&number)?.ask(scope, number) {
            Attempt::Asked(bytes) => Some(bytes),
            Attempt::Held => None,
            Attempt::Unsolvable(asked) => {
                ask_owner(scope, self.member, asked);
                None
            }
        }
    }

    /// What it has asked for and not got.
    pub(super) fn claimed_bytes(&self) -> u64 {
        self.mends.values().map(Mend::claimed_bytes).sum::<u64>() + self.batches.claimed_bytes()
    }

    /// Owners are told of what is lost, so that its keys can be named; they answer what has become of it.
    fn tell_of_lost(&mut self, scope: &mut Scope<'_>) {
        let now = scope.now.time;
        if self.lost.is_empty() || now < self.tell_at(&scope.timing()) {
            return;
        }
        self.told = now;
        let mut by_owner: BTreeMap<MemberId, BTreeMap<ObjectId, Asked>> = BTreeMap::new();
        for ListedChunk { chunk: ChunkId { object, .. }, key_hash, .. } in self.lost.values() {
            let asked = Asked { object: *object, key_hash: *key_hash };
            by_owner.entry(object.owner).or_default().insert(*object, asked);
        }
        for (owner, objects) in by_owner {
            let objects: Vec<Asked> = objects.into_values().collect();
            for objects in objects.chunks(TOLD_AT_ONCE) {
                tell_owner(
                    scope,
                    Ask { owner, member: self.member, objects: objects.to_vec(), found: Harm::Lost },
                );
            }
        }
    }

    fn tell_at(&self, timing: &Timing) -> Time {
        if self.told == Time(0) { Time(0) } else { self.told + timing.ask_us }
    }

    /// The object is dead, so nothing of it is lost.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.lost.retain(|chunk, _| chunk.object != object);
    }

    fn go_on_listing(&mut self, scope: &mut Scope<'_>) {
        let (now, retry_us) = (scope.now.time, scope.timing().retry_us);
        let number = self.number();
        // What is listed is got before more is asked for.
        let is_busy = self.left() > 0;
        let (member, here) = (self.member, scope.here());
        let Some(appointment) = self.appointment.as_mut().filter(|it| !it.listed) else { return };
        match &appointment.listing {
            Some(listing) if now.since(listing.at) < retry_us => return,
            // Who does not answer may be gone: somebody else, from the beginning.
            Some(_) => (appointment.listing, appointment.sources) = (None, VecDeque::new()),
            None => {}
        }
        if is_busy {
            return;
        }
        if appointment.sources.is_empty() {
            let Some(view) = scope.view(member.group) else { return };
            appointment.sources = list_sources(view, member.role, here);
        }
        let Some(source) = appointment.sources.pop_front() else {
            // Nobody has anything of this group any more.
            return appointment.listed = true;
        };
        appointment.listing = Some(Listing { source, number, after: None, at: now });
        self.ask_for_list(scope);
    }

    fn ask_for_list(&mut self, scope: &mut Scope<'_>) {
        let Some(view) = scope.view(self.member.group).map(|view| view.version) else { return };
        let Some(listing) = self.appointment.as_ref().and_then(|it| it.listing.as_ref()) else { return };
        let member = MemberId { group: self.member.group, role: listing.source.0 };
        let list = List { number: listing.number, member, view, after: listing.after };
        scope.send(listing.source.1, ObjectMessage::List(list));
    }

    /// Part of a list.
    pub(super) fn hear_list(&mut self, scope: &mut Scope<'_>, chunks: &ChunkStore, listed: Listed) {
        let Some(appointment) = &mut self.appointment else { return };
        let Some(listing) = appointment.listing.as_mut().filter(|it| it.number == listed.number) else {
            return;
        };
        // Of an older view it says too little.
        if listed.view < appointment.since {
            return;
        }
        if let Some(last) = listed.chunks.last() {
            listing.after = Some(last.chunk);
        }
        listing.at = scope.now.time;
        let more = listed.more;
        let lacking = listed.chunks.into_iter().filter(|listed| chunks.get(listed.chunk).is_none());
        lacking.for_each(|listed| self.want(scope, listed));
        if more {
            // Not before what is listed is here: the list is as long as the memory of others.
            if self.left() == 0 {
                self.ask_for_list(scope);
            }
        } else if let Some(appointment) = &mut self.appointment {
            appointment.listing = None;
            // One whole holder has all; where there is none, all are asked.
            let view = scope.view(self.member.group);
            let is_whole =
                view.is_some_and(|view| view.holders.iter().any(|holders| holders.whole.is_some()));
            appointment.listed = is_whole || appointment.sources.is_empty();
        }
        self.go_on(scope);
    }

    fn may_begin_mend(&self) -> bool {
        !self.todo.is_empty()
            && self.protection.is_some()
            && self.mends.values().map(Mend::len_bytes).sum::<u64>() < MEND_BYTES
    }

    fn begin_mend(&mut self, chunks: &ChunkStore, window: &Window) -> Option<u64> {
        if !self.may_begin_mend() {
            return None;
        }
        loop {
            let listed = self.todo.pop_front()?;
            let is_known = self.mends.values().any(|it| it.chunk() == listed.chunk);
            if is_known || chunks.get(listed.chunk).is_some() {
                continue;
            }
            let protection = Arc::clone(self.protection.as_ref()?);
            if let Some(mend) = Mend::new(self.member, listed, protection, chunks.pages(), window) {
                let number = self.number();
                self.mends.insert(number, mend);
                return Some(number);
            }
        }
    }

    /// Chunks that it wants to be made by a graph, so many bytes of them at most.
    pub(super) fn take_order(
        &mut self,
        now: Time,
        chunks: &ChunkStore,
        most_bytes: u64,
        window: &Window,
    ) -> Option<Order> {
        // What there is no room for waits as any other does, and so is known to.
        self.todo.extend(self.batches.take_too_long(chunks, most_bytes));
        self.batches.take_order(now, self.member, chunks, most_bytes, window)
    }

    /// Whether it would have chunks made by a graph.
    pub(super) fn wants_graphs(&self) -> bool {
        self.batches.wants_more()
    }

    /// Whether it waits for what is made for this.
    pub(super) fn awaits(&self, purpose: Purpose) -> bool {
        self.batches.awaits(purpose)
    }

    /// What has become of such an order. What no graph has made is got one by one: so it is found out who has it, and whether it is lost.
    pub(super) fn hear_made(
        &mut self,
        scope: &mut Scope<'_>,
        chunks: &mut ChunkStore,
        made: Made,
    ) -> Option<Came> {
        let taken = self.batches.take(scope.now.time, made);
        for (listed, bytes) in taken.chunks {
            if bytes.is_none_or(|bytes| !keep_made(scope, self.member, chunks, &listed, &bytes)) {
                self.todo.push_back(listed);
            }
        }
        self.go_on_listing_or_next(scope);
        taken.came
    }

    /// A row of a chunk that is being got. What has come with it of all that was asked for at once, if it is the last of that.
    pub(super) fn hear_cell(
        &mut self,
        scope: &mut Scope<'_>,
        chunks: &mut ChunkStore,
        cell: Cell,
    ) -> Option<Came> {
        let number = cell.number;
        let mend = self.mends.get_mut(&number)?;
        self.moved = scope.now.time;
        let came = mend.take(scope, cell);
        if mend.is_whole()
            && let Some(mend) = self.mends.remove(&number)
        {
            mend.keep_in(scope, chunks);
            self.go_on_listing_or_next(scope);
        }
        came
    }

    fn go_on_listing_or_next(&mut self, scope: &mut Scope<'_>) {
        if self.left() == 0 && self.appointment.as_ref().is_some_and(|it| it.listing.is_some()) {
            self.ask_for_list(scope);
        }
        self.go_on(scope);
    }

    /// Somebody has not got it.
    pub(super) fn hear_missing(&mut self, scope: &Scope<'_>, from: HostId, missing: &Missing) {
        let since = self.appointment.as_ref().map_or(ViewVersion(0), |it| it.since);
        if let Some(mend) = self.mends.get_mut(&missing.number) {
            mend.miss(scope.rules(), from, missing, since);
        }
    }

    /// An owner has answered: what nobody has need not be here if it is not committed, and is lost if it is.
    pub(super) fn hear_verdicts(&mut self, scope: &mut Scope<'_>, chunks: &ChunkStore, verdicts: &Verdicts) {
        for (object, verdict) in &verdicts.verdicts {
            if scope.rules().objects().owner_knows(object.term, verdicts.term) {
                self.conclude(chunks, *object, *verdict);
            }
        }
        self.go_on_listing_or_next(scope);
    }

    /// These chunks need not be here.
    pub(super) fn leave_out(&mut self, is_meant: impl Fn(ChunkId) -> bool) {
        self.todo.retain(|listed| !is_meant(listed.chunk));
        self.mends.retain(|_, mend| !is_meant(mend.chunk()));
        self.lost.retain(|chunk, _| !is_meant(*chunk));
        self.batches.leave_out(is_meant);
    }

    fn conclude(&mut self, chunks: &ChunkStore, object: ObjectId, verdict: Verdict) {
        if verdict == Verdict::Dead {
            return self.leave_out(|chunk| chunk.object == object);
        }
        let ended = |mend: &Mend| mend.chunk().object == object && mend.is_unsolvable();
        let numbers: Vec<u64> =
            self.mends.iter().filter(|(_, mend)| ended(mend)).map(|(number, _)| *number).collect();
        for mend in numbers.into_iter().filter_map(|number| self.mends.remove(&number)) {
            // What was committed after all had said that they lack it has come from its writer, here too.
            if verdict == Verdict::Committed && chunks.get(mend.chunk()).is_none() {
                tracing::error!(member = %self.member, chunk = %mend.chunk(), "nobody has this chunk: it is lost");
                self.lost.insert(mend.chunk(), mend.into_listed());
                self.told = Time(0);
            }
        }
    }

    fn report_if_done(&mut self, scope: &mut Scope<'_>) {
        let (now, retry_us) = (scope.now.time, scope.timing().retry_us);
        let is_done = self.left() == 0;
        let Some(appointment) = self.appointment.as_mut().filter(|it| is_done && it.listed) else { return };
        if appointment.reported.is_none_or(|at| now.since(at) >= retry_us) {
            appointment.reported = Some(now);
            let MemberId { group, role } = self.member;
            scope.report(ChunkReport::Filled { group, role, since: appointment.since });
        }
    }

    /// When [`Self::go_on`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let waiting = self.mends.values().filter_map(Mend::waits_since);
        let mends = waiting.map(|since| late_at(since, self.moved, timing.retry_us));
        let listing = self.appointment.as_ref().map(|appointment| match &appointment.listing {
            Some(listing) => listing.at + timing.retry_us,
            None => appointment.reported.map_or(Time(0), |at| at + timing.retry_us),
        });
        let listing = listing.filter(|_| self.left() == 0);
        let tells = (!self.lost.is_empty()).then(|| self.tell_at(timing));
        mends.chain(listing).chain(tells).min().unwrap_or(Time::NEVER)
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>) {
        let (now, retry_us) = (scope.now.time, scope.timing().retry_us);
        let (moved, rules) = (self.moved, scope.rules());
        let is_late = |since| late_at(since, moved, retry_us) <= now;
        let late = |mend: &&mut Mend| mend.waits_since().is_some_and(is_late);
        self.mends.values_mut().filter(late).for_each(|mend| mend.ask_again(rules));
        self.go_on(scope);
    }

    /// What was asked of `peer` will not come.
    pub(super) fn lose_link(&mut self, rules: Rules, peer: HostId) {
        self.mends.values_mut().for_each(|mend| mend.lose(rules, peer));
        if let Some(appointment) = &mut self.appointment {
            appointment.listing.take_if(|listing| listing.source.1 == peer);
        }
    }
}

/// When a chunk that was asked for, or of which a cell came, at `asked` is asked for again: its cells may wait behind others on a slow
/// link, of which one came when it `moved`.
fn late_at(asked: Time, moved: Time, retry_us: u64) -> Time {
    (asked.max(moved) + retry_us).min(asked + PATIENCE * retry_us)
}

/// Who can say what there is: the other holder of the role first, of which it can be copied too, then any whole one; all others where
/// there is none.
fn list_sources(view: &GroupView, role: RoleIndex, here: HostId) -> VecDeque<(RoleIndex, HostId)> {
    let own = view.holders_of(role).whole.map(|holder| (role, holder.host));
    let whole = view.holders.iter().enumerate().filter_map(|(other, holders)| {
        let other = RoleIndex(other as u8);
        holders.whole.filter(|_| other != role).map(|holder| (other, holder.host))
    });
    let first = own.into_iter().chain(whole).next();
    if let Some(first) = first {
        return VecDeque::from([first]);
    }
    let others = view.all_holders().map(|(other, holder)| (other, holder.host));
    others.filter(|other| *other != (role, here)).collect()
}

fn ask_owner(scope: &mut Scope<'_>, member: MemberId, asked: Asked) {
    tell_owner(scope, Ask { owner: asked.object.owner, member, objects: vec![asked], found: Harm::None });
}

/// Says something to an owner, if anybody speaks for it.
pub(super) fn tell_owner(scope: &mut Scope<'_>, ask: Ask) {
    if let Some(primary) = scope.primary_of(ask.owner) {
        scope.send(primary, ObjectMessage::Ask(ask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_behind_others_is_not_asked_for_again_at_once_and_what_is_lost_is_in_the_end() {
        assert_eq!(late_at(Time(100), Time(0), 10), Time(110), "nothing comes");
        assert_eq!(late_at(Time(100), Time(150), 10), Time(160), "others come");
        assert_eq!(late_at(Time(100), Time(900), 10), Time(180), "others come all the time");
    }
}
