//! Records: how a decision enters the log.

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use store::{Allocation, DataStore, ITEM_HEADER_BYTES, Item, ItemSpec, ItemState};
use types::op::{Flush, FlushAt, OpKind, Outcome};
use types::{Addr, Cohort, IndexHash, IndexOp, Once, Seq, WriteResult};
use wire::message::{Record, Write};

use super::SendStream;
use super::log::{Entry, Purpose, apply_record};
use super::newest::{Newest, PendingKey, PendingSlot};
use crate::Rules;
use crate::outbox::{Context, ReplyTo};
use crate::primary::charges::Charged;
use crate::primary::objects::{ObjectEffects, descriptor_in};
use crate::primary::waiting::{Pending, Wait};
use crate::rules::Stage;

/// A record before it has a number.
pub(in crate::primary) struct Draft {
    pub writes: SmallVec<[Write; 1]>,
    pub ops: SmallVec<[IndexOp; 2]>,
    /// Slots that may not be reclaimed before it commits.
    pub pinned: SmallVec<[Addr; 1]>,
    /// What becomes of these keys.
    keys: SmallVec<[(Bytes, Option<PendingSlot>); 1]>,
    purpose: Purpose,
    answer: Option<(ReplyTo, Outcome)>,
    charged: Option<Charged>,
    objects: Option<Box<ObjectEffects>>,
}

impl Draft {
    /// The protocol's own work: nobody is told of it.
    #[inline(always)]
    pub(in crate::primary) fn of(purpose: Purpose) -> Self {
        Self {
            writes: SmallVec::new(),
            ops: SmallVec::new(),
            pinned: SmallVec::new(),
            keys: SmallVec::new(),
            purpose,
            answer: None,
            charged: None,
            objects: None,
        }
    }

    /// Whoever asked for this is told `outcome` when it commits. A part of its callers, or else it is copied to them.
    #[inline(always)]
    pub(in crate::primary) fn answering(pending: &Pending, outcome: Outcome) -> Self {
        let ops = pending.request.once.as_deref().map_or_else(SmallVec::new, |once| ops_of(once, &outcome));
        let answer = Some((pending.reply, outcome));
        Self { ops, answer, ..Self::of(Purpose::Request(pending.request.op.kind())) }
    }

    /// So much was charged for it.
    pub(in crate::primary) fn charged(mut self, charged: Option<Charged>) -> Self {
        self.charged = charged;
        self
    }

    /// So objects begin and end with it.
    pub(in crate::primary) fn with_objects(mut self, effects: Option<Box<ObjectEffects>>) -> Self {
        self.objects = effects;
        self
    }

    /// The object that `item` describes, if it is one, ends with it.
    pub(in crate::primary) fn end_object(&mut self, item: Item<'_>) {
        if let Some(descriptor) = descriptor_in(item) {
            self.objects.get_or_insert_default().freed.push(descriptor);
        }
    }

    /// `key` goes, which lies at `addr` and is of `cohort`; its slot keeps its bytes.
    pub(in crate::primary) fn remove(&mut self, key: Bytes, hash: IndexHash, addr: Addr, cohort: Cohort) {
        self.ops.push(IndexOp::Remove { hash, addr, cohort });
        self.pinned.push(addr);
        self.keys.push((key, None));
    }

    /// What was flushed at `addr` goes, whatever has been written under its key since.
    pub(in crate::primary) fn remove_flushed(&mut self, hash: IndexHash, addr: Addr, cohort: Cohort) {
        self.ops.push(IndexOp::Remove { hash, addr, cohort });
        self.pinned.push(addr);
    }

    pub(in crate::primary) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.ops.is_empty()
    }
}

/// A whole item on its way into its slot.
pub(in crate::primary) struct PlacedItem {
    pub key: Bytes,
    pub hash: IndexHash,
    /// Where the key lies now.
    pub occupied: Option<Addr>,
    /// Whose it is.
    pub cohort: Cohort,
    pub allocation: Allocation,
    pub image: Vec<u8>,
}

/// What a change of an item's header sets.
pub(in crate::primary) struct Header {
    pub version: u64,
    pub expiry: u32,
    pub state: ItemState,
}

impl SendStream {
    /// Numbers `draft` and appends it.
    pub(in crate::primary) fn append(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        draft: Draft,
    ) -> Seq {
        let seq = self.log.last().next();
        let mut keys = SmallVec::new();
        for (key, slot) in draft.keys {
            self.keys.insert(key.clone(), PendingKey { newest: seq, slot });
            keys.push(key);
        }
        for &addr in &draft.pinned {
            store.pin(addr);
        }
        let record = Record { seq, writes: draft.writes, ops: draft.ops };
        if context.rules.shows_at() == Stage::Logged {
            apply_record(store, &record);
        }
        let mut answers: SmallVec<[_; 1]> = draft.answer.into_iter().collect();
        if context.rules.answers_at() == Stage::Logged {
            answers.drain(..).for_each(|(reply, outcome)| context.reply(reply, outcome));
        }
        let (pinned, purpose, logged_at) = (draft.pinned, draft.purpose, context.now.time);
        let (charged, objects) = (draft.charged, draft.objects);
        self.log.push(Entry { record, answers, keys, pinned, charged, objects, purpose, logged_at });
        self.stirred = true;
        seq
    }

    /// A whole item goes into a new slot: readers never see half a value.
    pub(in crate::primary) fn append_item(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        placed: PlacedItem,
        mut draft: Draft,
    ) {
        let PlacedItem { key, hash, occupied, cohort, allocation, image } = placed;
        let (addr, len_bytes) = (allocation.addr, image.len());
        draft.writes.push(Write::new(addr, store.delta(addr, image)));
        draft.ops.extend(allocation.assign);
        match occupied {
            Some(old) => {
                draft.ops.push(IndexOp::Replace { hash, old, new: addr, cohort });
                // It must not become a victim meanwhile: it would be removed twice.
                draft.pinned.push(old);
            }
            None => draft.ops.push(IndexOp::Insert { hash, addr, cohort }),
        }
        let writers = smallvec![self.log.last().next()];
        draft.keys.push((key, Some(PendingSlot { addr, len_bytes, writers })));
        self.append(context, store, draft);
    }

    /// The same slot with another header: only the header's bytes travel.
    pub(in crate::primary) fn append_header(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        pending: &Pending,
        newest: &Newest,
        header: &Header,
        outcome: Outcome,
    ) {
        let addr = newest.occupied.expect("a header change is decided for an item that is there");
        let old = newest.image(store, addr);
        // Against the bytes as they will be: the records before it are applied first.
        let delta = header.delta(&old);
        let key = pending.key();
        let mut writers = self.writers_of(&key);
        writers.push(self.log.last().next());
        let mut draft = Draft::answering(pending, outcome);
        draft.writes.push(Write::new(addr, delta));
        draft.pinned.push(addr);
        draft.keys.push((key, Some(PendingSlot { addr, len_bytes: old.len(), writers })));
        self.append(context, store, draft);
    }
}

/// Flushes. While one is in the log nothing else is decided: so whoever writes knows by the committed state alone which cohort an
/// item is of.
impl SendStream {
    /// Whether one is to be committed before anything else is decided.
    pub(in crate::primary) fn is_flushing(&self, rules: Rules) -> bool {
        self.flush.is_some() && rules.flushes_hold_writes_up()
    }

    /// All keys of a namespace go, now or later; or what that has to wait for.
    pub(in crate::primary) fn flush(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        flush: Flush,
        reply: ReplyTo,
    ) -> Result<(), Wait> {
        let Flush { namespace, at } = flush;
        if self.flush.is_some() {
            return Err(Wait::Log);
        }
        let op = match at {
            FlushAt::Now if !store.replica().cohorts().can_flush(namespace) => return Err(Wait::Sweep),
            FlushAt::Now => IndexOp::Flush { namespace },
            FlushAt::At(at) => IndexOp::FlushAt { namespace, at },
        };
        let mut draft = Draft::of(Purpose::Request(OpKind::FlushAll));
        draft.answer = Some((reply, Outcome::Flushed));
        self.append_flush(context, store, op, draft);
        Ok(())
    }

    /// A scheduled flush whose time has come.
    pub(in crate::primary) fn flush_due(&mut self, context: &mut Context<'_>, store: &mut DataStore) {
        // One after the other: the next one is found when this one is over.
        if self.flush.is_none()
            && let Some(namespace) = store.replica().cohorts().due(context.now.unix)
        {
            let op = IndexOp::Flush { namespace };
            self.append_flush(context, store, op, Draft::of(Purpose::Schedule));
        }
    }

    fn append_flush(
        &mut self,
        context: &mut Context<'_>,
        store: &mut DataStore,
        op: IndexOp,
        mut draft: Draft,
    ) {
        draft.ops.push(op);
        // Where a role's index is emptied nobody looks at what was in it.
        draft.objects = Some(ObjectEffects::of_flush());
        self.flush = Some(self.append(context, store, draft));
    }
}

impl Header {
    /// What changes of an item's bytes.
    fn delta(&self, old: &[u8]) -> Bytes {
        let item = Item::parse(old).expect("it was read to decide");
        let mut new = Vec::with_capacity(old.len());
        ItemSpec {
            key: item.key,
            value: [item.value, b""],
            client_flags: item.client_flags,
            expiry: self.expiry,
            version: self.version,
            state: self.state,
        }
        .encode(&mut new);
        old.iter().zip(&new).take(ITEM_HEADER_BYTES).map(|(a, b)| a ^ b).collect::<Vec<u8>>().into()
    }
}

/// What a record says that does a write which has this name, and what came of it; nothing if that is not kept.
#[cold]
fn ops_of(once: &Once, outcome: &Outcome) -> SmallVec<[IndexOp; 2]> {
    let mut ops: SmallVec<[IndexOp; 2]> = SmallVec::new();
    if let Some(WriteResult { code, version, number }) = WriteResult::of(outcome) {
        let Once { session, sequence, behind, .. } = *once;
        ops.push(IndexOp::WriteDone { session, sequence, behind, code, version });
        if number != 0 {
            ops.push(IndexOp::WriteCounted { session, sequence, number });
        }
    }
    ops
}
