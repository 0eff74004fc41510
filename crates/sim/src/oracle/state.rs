//! The states in which a key may be, and the values that it may have.

use bytes::Bytes;
use types::op::{Store, StoreMode};
use types::{ClusterId, FastMap, KeyHash};

/// A value with its flags, by number.
pub(super) type Content = u32;

/// A version that nobody has seen.
pub(super) const UNSEEN: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Item {
    pub content: Content,
    pub version: u64,
    pub expiry: u32,
    /// Somebody was told that it has expired before this call began: it does not come back.
    pub over_for: u32,
}

/// No call has been told that the item has expired.
pub(super) const NOBODY: u32 = u32::MAX;

/// The key's state; none = absent.
pub(super) type State = Option<Item>;

/// The values with flags that the key ever had, or could have had.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    entries: Vec<(Bytes, u32)>,
    ids: FastMap<(u64, u32), Content>,
    /// What a call stores, and what it makes of what was there: values are long, and tried out in many states.
    stored: FastMap<(u32, Option<Content>), Content>,
}

impl Item {
    /// With another expiry, of which nobody has heard.
    pub(super) fn until(self, expiry: u32) -> Self {
        Self { expiry, over_for: NOBODY, ..self }
    }
}

impl Contents {
    pub(super) fn of(&self, item: Item) -> &(Bytes, u32) {
        &self.entries[item.content as usize]
    }

    /// What `call` leaves, which puts the value of `store` in the place of all that was there, or next to `before`.
    pub(super) fn after(&mut self, call: u32, store: &Store, before: Option<Content>) -> Content {
        if let Some(known) = self.stored.get(&(call, before)) {
            return *known;
        }
        let content = match before {
            None => self.add(store.value.clone(), store.flags),
            Some(before) => {
                let (old, flags) = self.entries[before as usize].clone();
                let parts =
                    if store.mode == StoreMode::Append { [&old, &store.value] } else { [&store.value, &old] };
                self.add(Bytes::from(parts.map(|part| &part[..]).concat()), flags)
            }
        };
        self.stored.insert((call, before), content);
        content
    }

    pub(super) fn add(&mut self, value: Bytes, flags: u32) -> Content {
        // 64 bits stand for the whole value: a key has far too few values for two of them to meet by chance.
        let hash = KeyHash::of(ClusterId(u64::from(flags)), &value).0;
        let next = self.entries.len() as Content;
        let id = *self.ids.entry((hash, flags)).or_insert(next);
        if id == next {
            self.entries.push((value, flags));
        }
        id
    }
}
