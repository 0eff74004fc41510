//! Records: how a decision enters the log.

use bytes::Bytes;
use cluster::{Seq, UnixSeconds};
use smallvec::{SmallVec, smallvec};
use store::{Addr, ITEM_HEADER_BYTES, IndexHash, IndexOp, Item, ItemSpec, ItemState, PageRange};
use wire::message::{Record, Write};
use wire::op::{FlushAt, Outcome};

use super::Primary;
use super::log::{Entry, Purpose};
use super::request::{Attempt, Newest, Pending};
use crate::outbox::{Context, ReplyTo};

/// The newest, uncommitted state of a key.
pub(super) struct PendingKey {
    /// The newest record that is about this key.
    pub newest: Seq,
    /// Where the item will be; none if the key goes.
    pub slot: Option<PendingSlot>,
}

/// A slot with uncommitted bytes.
#[derive(Clone)]
pub(super) struct PendingSlot {
    pub addr: Addr,
    pub len_bytes: usize,
    /// Uncommitted records that write into it, ascending.
    writers: SmallVec<[Seq; 2]>,
}

/// A record before it has a number.
#[derive(Default)]
pub(super) struct Draft {
    pub writes: SmallVec<[Write; 1]>,
    pub ops: SmallVec<[IndexOp; 2]>,
    pub pinned: SmallVec<[Addr; 1]>,
}

impl Primary {
    /// Numbers `draft` and appends it; `key` now has the state `slot`.
    pub(super) fn append(
        &mut self,
        context: &mut Context<'_>,
        draft: Draft,
        purpose: Purpose,
        keys: SmallVec<[(Bytes, Option<PendingSlot>); 1]>,
        answer: Option<(ReplyTo, Outcome)>,
    ) -> Seq {
        let seq = self.log.last().next();
        let mut names = SmallVec::new();
        for (key, slot) in keys {
            self.keys.insert(key.clone(), PendingKey { newest: seq, slot });
            names.push(key);
        }
        let store = self.store_mut().expect("records are only written by a primary that serves");
        for &addr in &draft.pinned {
            store.pin(addr);
        }
        let record = Record { seq, writes: draft.writes, ops: draft.ops };
        if crate::planted(crate::Bug::IndexSwitchBeforeCommit) {
            super::commit::apply_record(store, &record);
        }
        let answers = answer.into_iter().collect();
        let logged_at = context.now.time;
        self.log.push(Entry { record, answers, keys: names, pinned: draft.pinned, purpose, logged_at });
        self.dirty = true;
        if crate::planted(crate::Bug::AckBeforeParity)
            && let Some(entry) = self.log.entry_mut(seq)
        {
            for (reply, outcome) in entry.answers.drain(..) {
                context.reply(reply, outcome);
            }
        }
        seq
    }

    /// A whole new item goes into a new slot: readers never see half a value.
    pub(super) fn log_put(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        image: Vec<u8>,
        outcome: Outcome,
    ) -> Attempt {
        let allocation = match self.allocate(context, image.len()) {
            Ok(allocation) => allocation,
            Err(super::space::NoSlot::Wait(wait)) => return Attempt::Wait(wait),
            Err(super::space::NoSlot::Refuse(failure)) => return Attempt::Answer(Outcome::Failed(failure)),
        };
        let key = pending.key();
        let answer = Some((pending.reply, outcome));
        self.log_item(
            context,
            (key, pending.hash.into()),
            newest.occupied,
            (allocation, image),
            answer,
            Purpose::Request,
        );
        Attempt::Logged
    }

    /// Logs `image` for `key` at the allocated slot, in place of `occupied`.
    pub(super) fn log_item(
        &mut self,
        context: &mut Context<'_>,
        (key, hash): (Bytes, IndexHash),
        occupied: Option<Addr>,
        (allocation, image): (store::Allocation, Vec<u8>),
        answer: Option<(ReplyTo, Outcome)>,
        purpose: Purpose,
    ) {
        let store = self.store().expect("it gave the slot");
        let addr = allocation.addr;
        let len_bytes = image.len();
        let delta = store.delta(addr, image);
        let mut draft = Draft { writes: smallvec![Write::new(addr, delta)], ..Draft::default() };
        draft.ops.extend(allocation.assign);
        match occupied {
            Some(old) => {
                draft.ops.push(IndexOp::Replace { hash, old, new: addr });
                draft.pinned.push(old);
            }
            None => draft.ops.push(IndexOp::Insert { hash, addr }),
        }
        let writers = smallvec![self.log.last().next()];
        let slot = PendingSlot { addr, len_bytes, writers };
        self.append(context, draft, purpose, smallvec![(key, Some(slot))], answer);
    }

    /// The same slot with another header: only the header's bytes travel.
    pub(super) fn log_header(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        (version, expiry, state): (u64, u32, ItemState),
        outcome: Outcome,
    ) -> Attempt {
        let addr = newest.occupied.expect("a header change is decided for an item that is there");
        let old = self.image_of(newest);
        let item = Item::parse(&old).expect("it was read to decide");
        let mut new = Vec::with_capacity(old.len());
        ItemSpec {
            key: item.key,
            value: [item.value, b""],
            client_flags: item.client_flags,
            expiry,
            version,
            state,
        }
        .encode(&mut new);
        let delta: Bytes =
            old.iter().zip(&new).take(ITEM_HEADER_BYTES).map(|(a, b)| a ^ b).collect::<Vec<u8>>().into();
        let key = pending.key();
        let mut writers =
            self.keys.get(&key).and_then(|k| k.slot.clone()).map(|s| s.writers).unwrap_or_default();
        writers.push(self.log.last().next());
        let slot = PendingSlot { addr, len_bytes: old.len(), writers };
        let draft =
            Draft { writes: smallvec![Write::new(addr, delta)], pinned: smallvec![addr], ..Draft::default() };
        self.append(
            context,
            draft,
            Purpose::Request,
            smallvec![(key, Some(slot))],
            Some((pending.reply, outcome)),
        );
        Attempt::Logged
    }

    /// The key goes; its slot keeps its bytes.
    pub(super) fn log_remove(
        &mut self,
        context: &mut Context<'_>,
        pending: &Pending,
        newest: &Newest,
        outcome: Outcome,
    ) -> Attempt {
        let addr = newest.occupied.expect("a removal is decided for an item that is there");
        let op = IndexOp::Remove { hash: pending.hash.into(), addr };
        let draft = Draft { ops: smallvec![op], pinned: smallvec![addr], ..Draft::default() };
        let key = pending.key();
        self.append(context, draft, Purpose::Request, smallvec![(key, None)], Some((pending.reply, outcome)));
        Attempt::Logged
    }

    /// All keys go, now or later.
    pub(super) fn log_flush(&mut self, context: &mut Context<'_>, at: FlushAt, reply: ReplyTo) {
        let seq = self.log.last().next();
        let op = match at {
            FlushAt::Now => {
                self.keys.clear();
                self.cleared = Some(seq);
                IndexOp::Clear
            }
            FlushAt::At(time) => {
                self.scheduled = Some(seq);
                IndexOp::FlushAt(time)
            }
        };
        let draft = Draft { ops: smallvec![op], ..Draft::default() };
        self.append(context, draft, Purpose::Request, SmallVec::new(), Some((reply, Outcome::Flushed)));
    }

    /// Whether a scheduled flush must come before anything else. An uncommitted schedule replaces the committed one.
    pub(super) fn flush_is_due(&self, now: UnixSeconds) -> bool {
        let due = self.store().and_then(store::DataStore::flush_at).is_some_and(|at| at <= now);
        due && self.scheduled.is_none()
    }

    /// A scheduled flush whose time has come.
    pub(super) fn tick_flush(&mut self, context: &mut Context<'_>) {
        if !self.flush_is_due(context.now.unix)
            || self.cleared.is_some()
            || !self.may_serve(context.now.time, context.timing)
        {
            return;
        }
        self.keys.clear();
        self.cleared = Some(self.log.last().next());
        let ops = smallvec![IndexOp::Clear, IndexOp::FlushAt(UnixSeconds(0))];
        self.append(context, Draft { ops, ..Draft::default() }, Purpose::Request, SmallVec::new(), None);
    }

    /// The bytes of the newest state of a key that is there.
    fn image_of(&self, newest: &Newest) -> Vec<u8> {
        if let Some(image) = &newest.image {
            return image.clone();
        }
        let addr = newest.occupied.expect("asked for an item that is there");
        self.store().expect("asked while serving").item(addr).bytes().to_vec()
    }

    /// The bytes that a pending slot will have: what lies there, changed by every uncommitted record that writes into it.
    pub(super) fn pending_image(&self, pending: &PendingKey) -> Vec<u8> {
        let slot = pending.slot.as_ref().expect("asked for a key that will be there");
        let store = self.store().expect("asked while serving");
        let pages = PageRange::covering(slot.addr.byte(), slot.len_bytes);
        let offset = slot.addr.byte() - pages.start_byte();
        let mut image = store.page_bytes(pages)[offset..offset + slot.len_bytes].to_vec();
        for write in
            slot.writers.iter().filter_map(|&seq| self.log.record(seq)).flat_map(|record| &record.writes)
        {
            if write.addr == slot.addr {
                codec::xor(&mut image[..write.delta.len()], &write.delta).expect("slices of one length");
            }
        }
        image
    }
}
