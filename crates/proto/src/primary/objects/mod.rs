//! What a primary knows of the objects that it owns, beside their descriptors: ids that may still be committed, and pins of those
//! who read (docs/objects.md).
//!
//! Nothing of it is replicated. A primary that takes over knows of no open id and of no pin; what it has committed is in the index,
//! and by that it answers whoever asks.

mod asked;
mod cold;
mod lost;
mod pins;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use store::{DataStore, Item};
use types::op::{Failure, ItemView, ObjectOp, Op, Outcome, Unpin, Want};
use types::{Descriptor, KeyHash, NamespaceId, ObjectId, Time};
use wire::descriptor::descriptor_of;
use wire::object::{Asked, Harm};

use super::Core;
use crate::objects::names::Errand;
use crate::outbox::Context;
pub(crate) use asked::Known;
pub use lost::LostKey;
use lost::LostKeys;
use pins::Pins;

/// See the module.
#[derive(Default)]
pub(super) struct OwnedObjects {
    /// How many ids were given.
    given: u64,
    /// Before this those of earlier terms may be named anew by their writers, who have to hear of this one first.
    settled_at: Time,
    /// Those that may be committed.
    open: BTreeMap<ObjectId, Open>,
    /// By the hashes of their keys.
    open_keys: BTreeSet<(KeyHash, ObjectId)>,
    /// No open one ends before.
    open_due: Time,
    /// Those whose records are on their way.
    committing: BTreeSet<ObjectId>,
    pins: Pins,
    lost: LostKeys,
}

/// An id that may still be committed.
#[derive(Clone, Copy)]
struct Open {
    /// Of this key.
    key: KeyHash,
    until: Time,
}

/// What a record does to objects once it is committed.
#[derive(Debug, Default)]
pub(in crate::primary) struct ObjectEffects {
    /// What is a key's value from then on.
    pub kept: Option<Kept>,
    /// What is none any more.
    pub freed: Vec<Descriptor>,
    /// Whether so much may be gone at once that it is not counted.
    pub flushed: bool,
}

/// An object that a record makes a key's value.
#[derive(Debug)]
pub(in crate::primary) struct Kept {
    pub descriptor: Descriptor,
    pub key_hash: KeyHash,
}

/// What `item` describes, if its value is a descriptor.
pub(in crate::primary) fn descriptor_in(item: Item<'_>) -> Option<Descriptor> {
    let bytes = item.object.then(|| Bytes::copy_from_slice(item.value))?;
    // What cannot be read here no client can read either; its chunks end when their holders ask.
    descriptor_of(bytes).ok()
}

impl ObjectEffects {
    /// Of a record that puts `kept` in the place of `replaced`; none if neither is an object.
    pub(in crate::primary) fn of(kept: Option<Kept>, replaced: Option<Descriptor>) -> Option<Box<Self>> {
        let any = kept.is_some() || replaced.is_some();
        any.then(|| Box::new(Self { kept, freed: replaced.into_iter().collect(), flushed: false }))
    }

    /// Of a flush.
    pub(in crate::primary) fn of_flush() -> Box<Self> {
        Box::new(Self { flushed: true, ..Self::default() })
    }
}

impl OwnedObjects {
    /// Of a primary that begins now.
    pub(super) fn of_new_term(context: &Context<'_>) -> Self {
        Self { settled_at: context.now.time + context.timing.object_deadline_us, ..Self::default() }
    }

    /// A new id for a value of a key of `namespace`.
    pub(super) fn begin(
        &mut self,
        context: &Context<'_>,
        core: &Core,
        (key, namespace): (KeyHash, NamespaceId),
    ) -> Outcome {
        if self.open.len() >= context.limits.open_objects {
            return Outcome::Failed(Failure::Busy);
        }
        self.given += 1;
        let (owner, term, number) = (core.member(), core.term(), self.given);
        let id = ObjectId { owner, term, number, salt: salt_of(core, number), namespace };
        self.hold_open(context, id, key);
        Outcome::Begun(id)
    }

    /// Bytes are still coming.
    fn renew(&mut self, context: &Context<'_>, id: ObjectId) -> Outcome {
        let Some(Open { key, .. }) = self.open.get(&id).copied() else {
            return Outcome::Failed(Failure::NotOpen);
        };
        if context.rules.objects().renewed_ids_stay_open() {
            self.hold_open(context, id, key);
        }
        Outcome::Noted
    }

    fn hold_open(&mut self, context: &Context<'_>, id: ObjectId, key: KeyHash) {
        let until = context.now.time + context.timing.object_deadline_us;
        self.open.insert(id, Open { key, until });
        self.open_keys.insert((key, id));
        self.open_due = self.open_due().min(until);
    }

    /// It is not open any more; whether it was.
    fn close(&mut self, id: ObjectId) -> bool {
        let closed = self.open.remove(&id);
        closed.is_some_and(|Open { key, .. }| self.open_keys.remove(&(key, id)))
    }

    /// No value of this key that has begun will be committed: who writes it hears so.
    pub(super) fn close_all_of(&mut self, key: KeyHash) {
        let from = self.open_keys.range((key, ObjectId::MIN)..);
        let ids: Vec<ObjectId> = from.take_while(|(known, _)| *known == key).map(|(_, id)| *id).collect();
        for id in ids {
            self.close(id);
        }
    }

    /// Whether a value of this key may still be committed.
    pub(super) fn is_open_for(&self, key: KeyHash) -> bool {
        let next = self.open_keys.range((key, ObjectId::MIN)..).next();
        next.is_some_and(|(known, _)| *known == key)
    }

    /// Whether a value of any key of `namespace` may still be committed, or is being.
    pub(super) fn has_open_in(&self, namespace: NamespaceId) -> bool {
        self.open.keys().chain(&self.committing).any(|id| id.namespace == namespace)
    }

    /// The record that commits `id` has a number.
    pub(super) fn note_logged(&mut self, id: ObjectId) {
        self.close(id);
        self.committing.insert(id);
    }

    /// Nothing will come of it: what was put already goes. Only of what is open that is known; everything else holders ask about.
    fn abandon(&mut self, context: &mut Context<'_>, core: &Core, descriptor: &Descriptor) -> Outcome {
        if self.close(descriptor.id) {
            context.out.errands.push_back(Errand::free(core.member(), core.term(), descriptor.clone()));
        }
        Outcome::Noted
    }

    /// It is not stored: whoever has put its chunks begins anew, if at all, with others.
    pub(super) fn refuse(&mut self, context: &mut Context<'_>, core: &Core, descriptor: &Descriptor) {
        if context.rules.objects().refused_values_go() {
            self.abandon(context, core, descriptor);
        }
    }

    /// A record is committed: holders are to hear of what it has done.
    pub(super) fn note_committed(&mut self, context: &mut Context<'_>, core: &Core, effects: ObjectEffects) {
        let (owner, term) = (core.member(), core.term());
        if let Some(Kept { descriptor, key_hash }) = effects.kept {
            self.committing.remove(&descriptor.id);
            context.out.errands.push_back(Errand::keep(owner, term, descriptor, key_hash));
        }
        if effects.flushed {
            self.lost.forget_all();
        }
        if effects.flushed && context.rules.objects().flushes_recall() {
            context.out.errands.push_back(Errand::recall(owner, term));
        }
        for descriptor in effects.freed {
            self.lost.forget(descriptor.id);
            // Whoever reads it does so to the end.
            let freed = self.pins.free_unless_pinned(descriptor);
            context.out.errands.extend(freed.map(|it| Errand::free(owner, term, it)));
        }
    }

    /// A reader has come so far, or to the end.
    fn unpin(&mut self, context: &mut Context<'_>, core: &Core, unpin: Unpin) -> Outcome {
        let (owner, term) = (core.member(), core.term());
        let freed = self.pins.unpin(context, unpin);
        context.out.errands.extend(freed.map(|it| Errand::free(owner, term, it)));
        Outcome::Noted
    }

    /// What a writer or a reader asks that is about no item, or cannot be done any more.
    pub(super) fn attend(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        op: &ObjectOp,
    ) -> Option<Outcome> {
        match op {
            ObjectOp::Begin(_) => None,
            ObjectOp::Renew(id) => Some(self.renew(context, *id)),
            ObjectOp::Abandon(descriptor) => Some(self.abandon(context, core, descriptor)),
            ObjectOp::Unpin(unpin) => Some(self.unpin(context, core, *unpin)),
            ObjectOp::Commit(commit) => {
                let is_open = self.open.contains_key(&commit.descriptor.id);
                let may = context.rules.objects().commit_needs_an_open_id(is_open);
                (!may).then_some(Outcome::Failed(Failure::NotOpen))
            }
        }
    }

    /// Who is told where the bytes of a value lie may go and read them. Whether there is a pin more.
    pub(super) fn pin_if_read(&mut self, context: &Context<'_>, op: &Op, outcome: &mut Outcome) -> bool {
        let wants = matches!(op, Op::Get(get) if get.value == Want::Value);
        match outcome {
            Outcome::Hit(ItemView { object: Some(object), .. }) if wants => {
                object.pin = self.pins.pin(context, object.descriptor.id);
                true
            }
            _ => false,
        }
    }

    /// Ids that nobody renews can no more be committed, and pins that nobody holds up keep nothing.
    pub(super) fn tick(&mut self, context: &mut Context<'_>, core: &Core) {
        let now = context.now.time;
        if self.open_due <= now {
            let stays = |open: &Open| open.until > now || !context.rules.objects().open_ids_end();
            self.open.retain(|_, open| stays(open));
            let open = &self.open;
            self.open_keys.retain(|(_, id)| open.contains_key(id));
            self.open_due = self.open.values().map(|open| open.until).min().unwrap_or(Time::NEVER);
        }
        let (owner, term) = (core.member(), core.term());
        let freed = self.pins.expire(now);
        context.out.errands.extend(freed.into_iter().map(|it| Errand::free(owner, term, it)));
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self) -> Time {
        self.open_due().min(self.pins.due())
    }

    fn open_due(&self) -> Time {
        if self.open.is_empty() { Time::NEVER } else { self.open_due }
    }

    /// Somebody has found that of these.
    pub(super) fn note_harm(&mut self, store: &DataStore, found: &[Asked], harm: Harm) {
        self.lost.note(store, found, harm);
    }

    /// Keys of such.
    pub(super) fn harmed_keys(&self) -> impl Iterator<Item = &LostKey> {
        self.lost.all()
    }

    /// How many ids may still be committed.
    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    /// How many readers are held up for.
    pub(super) fn pin_count(&self) -> usize {
        self.pins.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.open.len() * (size_of::<(ObjectId, Open)>() + size_of::<(KeyHash, ObjectId)>())
            + self.committing.len() * size_of::<ObjectId>()
            + self.pins.memory_bytes()
            + self.lost.memory_bytes()
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.open.len(), self.open_keys.len(), "each is found by its key");
        let one_of = |id: &ObjectId| !self.open.contains_key(id);
        assert!(self.committing.iter().all(one_of), "what is on its way to be committed is not open");
        self.pins.check_invariants();
    }
}

/// Bits that no other id has: of the process, the role, the term and the number.
fn salt_of(core: &Core, number: u64) -> u64 {
    let mut bytes = [0; 32];
    bytes[0..8].copy_from_slice(&core.host().incarnation.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&core.member().group.0.to_le_bytes());
    bytes[12] = core.member().role.0;
    bytes[16..20].copy_from_slice(&core.term().0.to_le_bytes());
    bytes[24..32].copy_from_slice(&number.to_le_bytes());
    KeyHash::of(core.config().cluster, &bytes).0
}
