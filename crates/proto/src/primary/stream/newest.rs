//! What a key is by everything that is decided so far, committed or not.

use bytes::Bytes;
use smallvec::SmallVec;
use store::{Access, DataStore, Found, Item};
use types::{Addr, Descriptor, KeyHash, PageRange, Seq};

use super::SendStream;
use crate::primary::execute::Current;
use crate::primary::objects::descriptor_in;

/// The newest, uncommitted state of a key.
pub(super) struct PendingKey {
    /// The newest record that is about this key.
    pub newest: Seq,
    /// Where the item will be; none if the key goes.
    pub slot: Option<PendingSlot>,
}

/// A slot with uncommitted bytes.
#[derive(Clone)]
pub(in crate::primary) struct PendingSlot {
    pub(super) addr: Addr,
    pub(super) len_bytes: usize,
    /// Uncommitted records that write into it, ascending.
    pub(super) writers: SmallVec<[Seq; 2]>,
}

/// The newest state of a key and what it rests on.
pub(in crate::primary) struct Newest {
    /// The slot that the index will have when everything pending is committed, expired or not.
    pub occupied: Option<Addr>,
    /// The uncommitted record that this state rests on.
    pub rests_on: Option<Seq>,
    /// Whether the item is known to describe no object.
    pub is_plain: bool,
    /// The item's bytes if they are not simply those of the area at `occupied`.
    image: Option<Vec<u8>>,
}

/// Why the newest state of a key cannot be known.
pub(in crate::primary) enum Unknown {
    /// These pages are needed for it, and some are not here.
    Absent(PageRange),
    /// What is there is damaged.
    Corrupt,
}

impl SendStream {
    /// The newest state of `key`, or why it cannot be known.
    pub(in crate::primary) fn newest(
        &self,
        store: &DataStore,
        hash: KeyHash,
        key: &[u8],
    ) -> Result<Newest, Unknown> {
        if let Some(pending) = self.keys.get(key) {
            let image = pending.slot.as_ref().map(|slot| self.pending_image(store, slot));
            let occupied = pending.slot.as_ref().map(|slot| slot.addr);
            return Ok(Newest { occupied, rests_on: Some(pending.newest), is_plain: false, image });
        }
        let (occupied, is_plain) = match store.find(hash, key) {
            Found::Hit(addr, item) => (Some(addr), !item.object),
            Found::Miss => (None, true),
            Found::Absent(pages) => return Err(Unknown::Absent(pages)),
            Found::Corrupt(_) => return Err(Unknown::Corrupt),
        };
        Ok(Newest { occupied, rests_on: None, is_plain, image: None })
    }

    /// Whether records on their way say what `key` will be.
    pub(in crate::primary) fn is_about(&self, key: &[u8]) -> bool {
        self.flush.is_some() || self.keys.contains_key(key)
    }

    /// The uncommitted records that write into the slot of `key`.
    pub(super) fn writers_of(&self, key: &Bytes) -> SmallVec<[Seq; 2]> {
        let slot = self.keys.get(key).and_then(|pending| pending.slot.as_ref());
        slot.map(|slot| slot.writers.clone()).unwrap_or_default()
    }

    /// The bytes that a pending slot will have: what lies there, changed by every uncommitted record that writes into it.
    fn pending_image(&self, store: &DataStore, slot: &PendingSlot) -> Vec<u8> {
        let pages = PageRange::covering(slot.addr.byte(), slot.len_bytes);
        let offset = slot.addr.byte() - pages.start_byte();
        let mut image = store.page_bytes(pages)[offset..offset + slot.len_bytes].to_vec();
        let records = slot.writers.iter().filter_map(|&seq| self.log.record(seq));
        for write in records.flat_map(|record| &record.writes).filter(|write| write.addr == slot.addr) {
            codec::xor(&mut image[..write.delta.len()], &write.delta).expect("slices of one length");
        }
        image
    }
}

impl Newest {
    /// What the key's item describes, if it is an object, expired or not.
    pub(in crate::primary) fn descriptor(&self, store: &DataStore) -> Option<Descriptor> {
        let current = if self.is_plain { None } else { self.current(store) };
        current.and_then(|current| descriptor_in(current.item))
    }

    /// The item, unless the key is not there.
    pub(in crate::primary) fn current<'a>(&'a self, store: &'a DataStore) -> Option<Current<'a>> {
        let addr = self.occupied?;
        match &self.image {
            Some(image) => {
                let item = Item::parse(image).expect("this primary encoded it");
                Some(Current { item, access: Access::default() })
            }
            None => Some(Current { item: store.item(addr), access: store.access(addr) }),
        }
    }

    /// The item's bytes.
    pub(super) fn image(&self, store: &DataStore, addr: Addr) -> Vec<u8> {
        self.image.clone().unwrap_or_else(|| store.item(addr).bytes().to_vec())
    }
}
