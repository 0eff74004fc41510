//! Keys whose values have too few chunks left, as holders and readers have found, which is what `gestalt lost list` names; and those whose
//! chunks are no code words, as scrubs have found.
//!
//! Nobody decides anything by it, and it is not replicated: who has found a loss says so again at each ask interval, or with the next
//! read; what a scrub has found the next one finds again.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::{DataStore, Found};
use types::{Key, ObjectId};
use wire::object::{Asked, Harm};

use super::asked::find;

/// Most keys that one primary names.
const MAX_NAMED: usize = 256;

/// A key whose value is lost, or whose chunks are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKey {
    /// Which.
    pub key: Key,
    /// Bytes of the value.
    pub len: u64,
    /// The object that the value is.
    pub object: ObjectId,
    /// What is the matter with it.
    pub harm: Harm,
}

/// See the module.
#[derive(Default)]
pub(super) struct LostKeys(BTreeMap<ObjectId, LostKey>);

impl LostKeys {
    /// Somebody has found that of these objects.
    pub(super) fn note(&mut self, store: &DataStore, found: &[Asked], harm: Harm) {
        for asked in found {
            if harm == Harm::None || self.0.len() >= MAX_NAMED {
                return;
            }
            if harm == Harm::Wrong && self.0.contains_key(&asked.object) {
                continue;
            }
            let Found::Hit(_, item) = find(store, asked.key_hash, asked.object) else { continue };
            let Some(descriptor) = super::descriptor_in(item) else { continue };
            if let Ok(key) = Key::received(Bytes::copy_from_slice(item.key)) {
                let (object, len) = (asked.object, descriptor.geometry.len);
                self.0.insert(object, LostKey { key, len, object, harm });
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
