//! What an owner answers holders that ask what has become of an object.

use store::{DataStore, Found, Item};
use types::{KeyHash, ObjectId, Term, Time};
use wire::object::{Asked, Moved, Verdict};

use super::{OwnedObjects, descriptor_in};
use crate::Rules;
use crate::primary::Core;

/// What an owner knows of objects.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub verdicts: Vec<(ObjectId, Verdict)>,
    /// Stripes of those that are committed which lie elsewhere than the lists say.
    pub moved: Vec<Moved>,
}

impl OwnedObjects {
    /// What has become of these objects, as far as this owner knows.
    pub(in crate::primary) fn verdicts(
        &self,
        core: &Core,
        store: &DataStore,
        now: Time,
        asked: &[Asked],
    ) -> Known {
        let own = asked.iter().filter(|asked| asked.object.owner == core.member());
        let verdict = |asked: &Asked| self.verdict(core.rules(), core.term(), store, (now, *asked));
        let verdicts: Vec<(&Asked, Verdict)> =
            own.filter_map(|asked| Some((asked, verdict(asked)?))).collect();
        let committed = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Committed);
        let moved = committed.filter_map(|(asked, _)| moved_in(store, **asked)).collect();
        Known { verdicts: verdicts.into_iter().map(|(asked, it)| (asked.object, it)).collect(), moved }
    }

    /// What has become of the object, as far as it can be known: not of one of a later term, whose owner this is no more, and not
    /// while the page with its descriptor is absent.
    fn verdict(
        &self,
        rules: Rules,
        term: Term,
        store: &DataStore,
        (now, asked): (Time, Asked),
    ) -> Option<Verdict> {
        let Asked { object, key_hash } = asked;
        if !rules.objects().owner_knows(object.term, term) {
            return None;
        }
        if self.open.contains_key(&object) || self.committing.contains(&object) || self.pins.has(object) {
            return Some(rules.objects().verdict_of_open());
        }
        match has_descriptor(store, key_hash, object) {
            Some(true) => Some(Verdict::Committed),
            // It cannot be committed under this id any more, but what was put may be named anew.
            Some(false) if object.term < term && now < self.settled_at => Some(Verdict::Open),
            Some(false) => Some(Verdict::Dead),
            None => None,
        }
    }
}

/// The item that describes the object.
pub(super) fn find(store: &DataStore, hash: KeyHash, object: ObjectId) -> Found<'_> {
    let is_it = |item: Item<'_>| descriptor_in(item).is_some_and(|descriptor| descriptor.id == object);
    store.find_by_hash(hash, is_it)
}

/// The stripes of a committed object that lie elsewhere, if any do.
fn moved_in(store: &DataStore, Asked { object, key_hash }: Asked) -> Option<Moved> {
    let Found::Hit(_, item) = find(store, key_hash, object) else { return None };
    let exceptions = descriptor_in(item)?.exceptions;
    (!exceptions.is_empty()).then_some(Moved { object, exceptions })
}

/// Whether the object is what a key has; none where that cannot be known yet.
fn has_descriptor(store: &DataStore, hash: KeyHash, object: ObjectId) -> Option<bool> {
    match find(store, hash, object) {
        Found::Hit(..) => Some(true),
        Found::Miss => Some(false),
        Found::Absent(_) | Found::Corrupt(_) => None,
    }
}
