//! Keys whose values have too few chunks left, as holders and readers have found: what `gestalt lost list` names.
//!
//! Nobody decides anything by it, and it is not replicated: who has found a loss says so again at each ask interval, or with the next
//! read.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::{DataStore, Found};
use types::{Key, ObjectId};
use wire::object::Asked;

use super::asked::find;

/// Most keys that one primary names.
const MAX_NAMED: usize = 256;

/// A key whose value is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKey {
    /// Which.
    pub key: Key,
    /// Bytes of the value.
    pub len: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct LostKeys(BTreeMap<ObjectId, LostKey>);

impl LostKeys {
    /// Somebody has found too few chunks of these objects.
    pub(super) fn note(&mut self, store: &DataStore, found: &[Asked]) {
        for asked in found {
            if self.0.len() >= MAX_NAMED {
                return;
            }
            let Found::Hit(_, item) = find(store, asked.key_hash, asked.object) else { continue };
            let Some(descriptor) = super::descriptor_in(item) else { continue };
            if let Ok(key) = Key::received(Bytes::copy_from_slice(item.key)) {
                self.0.insert(asked.object, LostKey { key, len: descriptor.geometry.len });
            }
        }
    }

    /// The object is no key's value any more.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.0.remove(&object);
    }

    /// Any of them may be gone.
    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Those that are known.
    pub(super) fn all(&self) -> impl Iterator<Item = &LostKey> {
        self.0.values()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.values().map(|lost| size_of::<(ObjectId, LostKey)>() + lost.key.client().len()).sum()
    }
}
