//! Pins: what is read stays until it is read, or nobody moves any more.

use std::collections::BTreeMap;

use types::op::Unpin;
use types::{Descriptor, ObjectId, Time};

use crate::outbox::Context;

/// One reads no longer than so many times what it may stand still.
const LONGEST: u64 = 20;

/// See the module.
#[derive(Default)]
pub(super) struct Pins {
    given: u64,
    pins: BTreeMap<u64, Pin>,
    /// How many pins each object has, and what it was, once it is replaced.
    objects: BTreeMap<ObjectId, Pinned>,
    /// None ends before.
    first: Time,
}

struct Pin {
    object: ObjectId,
    until: Time,
    /// It is not held for longer than this.
    end: Time,
}

#[derive(Default)]
struct Pinned {
    count: u32,
    replaced: Option<Descriptor>,
}

impl Pins {
    /// A pin on `object`; none if there are too many.
    pub(super) fn pin(&mut self, context: &Context<'_>, object: ObjectId) -> Option<u64> {
        let (now, still_us) = (context.now.time, context.timing.pin_us);
        if self.pins.len() >= context.limits.pins {
            return None;
        }
        self.given += 1;
        let pin = Pin { object, until: now + still_us, end: now + LONGEST * still_us };
        self.first = self.due().min(pin.until);
        self.pins.insert(self.given, pin);
        self.objects.entry(object).or_default().count += 1;
        Some(self.given)
    }

    /// A reader has come so far; what can be freed if it was the last one.
    pub(super) fn unpin(&mut self, context: &Context<'_>, unpin: Unpin) -> Option<Descriptor> {
        let pin = self.pins.get_mut(&unpin.pin).filter(|pin| pin.object == unpin.object)?;
        if !unpin.done {
            pin.until = pin.end.min(context.now.time + context.timing.pin_us);
            return None;
        }
        self.pins.remove(&unpin.pin);
        self.release(unpin.object)
    }

    /// `descriptor` is replaced: given back if nobody reads it.
    pub(super) fn free_unless_pinned(&mut self, descriptor: Descriptor) -> Option<Descriptor> {
        match self.objects.get_mut(&descriptor.id) {
            Some(pinned) => {
                pinned.replaced = Some(descriptor);
                None
            }
            None => Some(descriptor),
        }
    }

    /// Those that nobody has held up for too long; what can be freed.
    pub(super) fn expire(&mut self, now: Time) -> Vec<Descriptor> {
        if self.due() > now {
            return Vec::new();
        }
        let late: Vec<u64> =
            self.pins.iter().filter(|(_, pin)| pin.until <= now).map(|(id, _)| *id).collect();
        let ended = late.into_iter().filter_map(|id| self.pins.remove(&id)).collect::<Vec<Pin>>();
        self.first = self.pins.values().map(|pin| pin.until).min().unwrap_or(Time::NEVER);
        ended.into_iter().filter_map(|pin| self.release(pin.object)).collect()
    }

    fn release(&mut self, object: ObjectId) -> Option<Descriptor> {
        let pinned = self.objects.get_mut(&object)?;
        pinned.count -= 1;
        if pinned.count > 0 {
            return None;
        }
        self.objects.remove(&object)?.replaced
    }

    /// Whether somebody reads `object`.
    pub(super) fn has(&self, object: ObjectId) -> bool {
        self.objects.contains_key(&object)
    }

    /// When one may have stood still for too long.
    pub(super) fn due(&self) -> Time {
        if self.pins.is_empty() { Time::NEVER } else { self.first }
    }

    pub(super) fn len(&self) -> usize {
        self.pins.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.pins.len() * size_of::<(u64, Pin)>() + self.objects.len() * size_of::<(ObjectId, Pinned)>()
    }

    pub(super) fn check_invariants(&self) {
        let count: u32 = self.objects.values().map(|pinned| pinned.count).sum();
        assert_eq!(count as usize, self.pins.len(), "each pin is of one object");
    }
}
