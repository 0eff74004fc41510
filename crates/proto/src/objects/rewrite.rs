//! Values in chunks that primaries of this host give to another pool (docs/pools.md, "To another pool"): each is read here, and written
//! anew there, under another id.
//!
//! The groups of that pool may be another worker's. So the bytes go to the driver step by step, and whoever of this node has the group
//! takes them as from any client ([`Action::Write`]). What comes of it the primary that gives hears like the answer to a request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use types::op::{Failure, Object, Outcome, Via};
use types::{ObjectPolicy, Time};

use super::gather::NewGather;
use super::names::{Client, GatherId, NewRewrite, RewriteId, Told};
use super::scope::Scope;
use super::transfers::Transfers;
use super::wanted::Wanted;
use crate::Timing;
use crate::host::driver::{Action, NewUpload, WriteNews, WriteStep};
use crate::outbox::ReplyTo;
use crate::queue::Queue;

/// So many of one host are read and written at once.
const AT_ONCE: usize = 4;

/// Those of one host.
#[derive(Default)]
pub(super) struct Rewrites {
    all: BTreeMap<RewriteId, Rewrite>,
    /// Those of them whose turn it is not yet: what somebody waits for, then the oldest first.
    waiting: VecDeque<RewriteId>,
    under_way: BTreeSet<RewriteId>,
    started: u64,
    heard: VecDeque<(RewriteId, Heard)>,
    /// For the driver.
    steps: Queue<Action>,
    /// How many were written.
    written: u64,
}

/// What one hears.
enum Heard {
    Read(Told),
    Written(WriteNews),
}

struct Rewrite {
    new: NewRewrite,
    /// The worker that writes it.
    shard: u16,
    /// Reads it, until all of it has come.
    gather: Option<GatherId>,
    /// What was read and not written yet.
    bytes: VecDeque<Bytes>,
    /// How many bytes are taken in one piece now.
    room: usize,
    moved: Time,
}

impl Rewrites {
    pub(super) fn hear_read(&mut self, id: RewriteId, told: Told) {
        self.heard.push_back((id, Heard::Read(told)));
    }

    /// The next step that the driver has to take.
    pub(super) fn poll(&mut self) -> Option<Action> {
        self.steps.pop_front()
    }

    /// How many of its steps wait for the driver.
    #[inline]
    pub(super) fn waiting_steps(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that they hold.
    pub(super) fn memory_bytes(&self) -> usize {
        let of = |one: &Rewrite| size_of::<Rewrite>() + one.bytes.iter().map(Bytes::len).sum::<usize>();
        self.all.values().map(of).sum::<usize>() + self.steps.capacity() * size_of::<Action>()
    }

    /// When something may stand still.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let oldest = self.under_way.iter().filter_map(|id| Some(self.all.get(id)?.moved)).min();
        oldest.map_or(Time::NEVER, |moved| moved + timing.request_deadline_us)
    }

    /// Whose turn it is.
    fn next(&mut self) -> Option<RewriteId> {
        if self.under_way.len() < AT_ONCE { self.waiting.pop_front() } else { None }
    }

    fn order(&mut self, id: RewriteId, shard: u16, step: WriteStep) {
        self.steps.push_back(Action::Write { number: id.0, shard, step });
    }
}

/// For primaries of this host.
impl Transfers {
    /// A value is to be written anew, when its turn comes.
    pub(crate) fn rewrite(&mut self, scope: &mut Scope<'_>, new: NewRewrite) {
        self.rewrites.started += 1;
        let id = RewriteId(self.rewrites.started);
        let shard = new.place.member.zip(scope.views.map());
        let shard = shard.map_or(0, |(member, map)| member.group.shard(map.shards));
        let is_wanted = new.is_wanted;
        let (gather, bytes, room, moved) = (None, VecDeque::new(), 0, scope.now.time);
        self.rewrites.all.insert(id, Rewrite { new, shard, gather, bytes, room, moved });
        match is_wanted {
            true => self.rewrites.waiting.push_front(id),
            false => self.rewrites.waiting.push_back(id),
        }
    }

    /// The driver says what has come of a step.
    pub(crate) fn hear_written(&mut self, number: u64, news: WriteNews) {
        self.rewrites.heard.push_back((RewriteId(number), Heard::Written(news)));
    }

    /// Goes on with everything that was heard, and with those whose turn it is; whether there was anything.
    pub(super) fn go_on_rewriting(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) -> bool {
        let mut any = false;
        loop {
            if let Some((id, heard)) = self.rewrites.heard.pop_front() {
                match heard {
                    Heard::Read(told) => self.hear_read(scope, id, told, wanted),
                    Heard::Written(news) => self.hear_news(scope, id, news, wanted),
                }
            } else if let Some(id) = self.rewrites.next() {
                self.begin_rewrite(scope, id, wanted);
            } else {
                return any;
            }
            any = true;
        }
    }

    /// Gives up what stands still: it may be written, and only the answer be missing.
    pub(super) fn tick_rewrites(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        let (now, patience) = (scope.now.time, scope.timing().request_deadline_us);
        let is_late =
            |id: &RewriteId| self.rewrites.all.get(id).is_some_and(|one| now.since(one.moved) >= patience);
        let late: Vec<RewriteId> = self.rewrites.under_way.iter().copied().filter(is_late).collect();
        for id in late {
            self.end_rewrite(scope, id, Outcome::Failed(Failure::Unknown), wanted);
        }
    }

    fn begin_rewrite(&mut self, scope: &mut Scope<'_>, id: RewriteId, wanted: &mut Wanted) {
        let Some(one) = self.rewrites.all.get_mut(&id) else { return };
        if is_moot(scope, &one.new) {
            return self.end_rewrite(scope, id, Outcome::Failed(Failure::WrongPrimary), wanted);
        }
        one.moved = scope.now.time;
        self.rewrites.under_way.insert(id);
        let (shard, NewRewrite { key, place, descriptor, store, via, .. }) = (one.shard, &one.new);
        let ObjectPolicy { chunk_bytes: chunk_len, layout, .. } = scope.object_policy(key.namespace());
        let (len, place, via) = (descriptor.geometry.len, *place, Some(via.clone()));
        let new =
            NewUpload { key: key.clone(), store: store.clone(), len, chunk_len, layout, once: None, via };
        // Nobody changes it meanwhile, so nothing has to be pinned.
        let object = Object { descriptor: descriptor.clone(), pin: None };
        let read =
            NewGather { key: key.clone(), object, start: 0, end: u64::MAX, changed: false, by_graph: false };
        match self.gathers.begin(scope, Client::Rewrite(id), place.hash, read) {
            Ok(gather) => {
                one.gather = Some(gather);
                self.rewrites.order(id, shard, WriteStep::Begin(place, Box::new(new)));
                let progress = self.gathers.go_on(scope, gather);
                self.take_progress(progress, wanted);
            }
            Err(failure) => self.end_rewrite(scope, id, Outcome::Failed(failure), wanted),
        }
    }

    fn hear_read(&mut self, scope: &mut Scope<'_>, id: RewriteId, told: Told, wanted: &mut Wanted) {
        let Some(one) = self.rewrites.all.get_mut(&id).filter(|one| one.gather.is_some()) else { return };
        match told {
            Told::Part(bytes) => one.bytes.push_back(bytes),
            Told::Whole => one.gather = None,
            Told::Room => {}
            Told::Ended(outcome) => {
                one.gather = None;
                return self.end_rewrite(scope, id, outcome, wanted);
            }
        }
        self.write_more(scope, id, wanted);
    }

    fn hear_news(&mut self, scope: &mut Scope<'_>, id: RewriteId, news: WriteNews, wanted: &mut Wanted) {
        let Some(one) = self.rewrites.all.get_mut(&id) else { return };
        match news {
            WriteNews::Room(bytes) => {
                (one.room, one.moved) = (bytes, scope.now.time);
                self.write_more(scope, id, wanted);
            }
            WriteNews::Ended(outcome) => {
                self.drop_gather(id, wanted);
                self.answer_giver(scope, id, outcome);
            }
        }
    }

    /// Hands over what there is, if it is taken.
    fn write_more(&mut self, scope: &mut Scope<'_>, id: RewriteId, wanted: &mut Wanted) {
        let Some(one) = self.rewrites.all.get_mut(&id).filter(|one| one.room > 0) else { return };
        if is_moot(scope, &one.new) {
            return self.end_rewrite(scope, id, Outcome::Failed(Failure::WrongPrimary), wanted);
        }
        let Some(mut bytes) = one.bytes.pop_front() else { return };
        let piece = bytes.split_to(one.room.min(bytes.len()));
        if !bytes.is_empty() {
            one.bytes.push_front(bytes);
        }
        // Of what is taken then there is news.
        (one.room, one.moved) = (0, scope.now.time);
        let (shard, gather, len) = (one.shard, one.gather, piece.len());
        self.rewrites.order(id, shard, WriteStep::Feed(piece));
        if let Some(gather) = gather {
            self.gathers.taken(gather, len);
            let progress = self.gathers.go_on(scope, gather);
            self.take_progress(progress, wanted);
        }
    }

    /// It ends before it is written.
    fn end_rewrite(&mut self, scope: &mut Scope<'_>, id: RewriteId, outcome: Outcome, wanted: &mut Wanted) {
        self.drop_gather(id, wanted);
        if let Some(shard) = self.rewrites.all.get(&id).map(|one| one.shard) {
            self.rewrites.order(id, shard, WriteStep::Abandon);
        }
        self.answer_giver(scope, id, outcome);
    }

    fn drop_gather(&mut self, id: RewriteId, wanted: &mut Wanted) {
        let gather = self.rewrites.all.get_mut(&id).and_then(|one| one.gather.take());
        wanted.requests.extend(gather.and_then(|gather| self.gathers.abandon(gather)));
    }

    fn answer_giver(&mut self, scope: &mut Scope<'_>, id: RewriteId, outcome: Outcome) {
        self.rewrites.written += u64::from(matches!(outcome, Outcome::Stored(_)));
        self.rewrites.under_way.remove(&id);
        if let Some(Rewrite { new, .. }) = self.rewrites.all.remove(&id) {
            scope.around.out().reply(ReplyTo::Giver(new.giver, new.number), outcome);
        }
    }
}

/// Whether nobody wants it any more: the namespace has turned back or is no more, or another process speaks for the giver.
fn is_moot(scope: &Scope<'_>, new: &NewRewrite) -> bool {
    let known = scope.views.map().and_then(|map| map.catalog.namespace(new.key.namespace()));
    let goes_on = known.is_some_and(|known| {
        let is_it = |via: &Via| matches!(via, Via::Transfer(it) if it.departure.number == known.conversions);
        known.conversion.is_some() && is_it(&new.via)
    });
    !goes_on || scope.primary_of(new.giver) != Some(scope.here())
}
