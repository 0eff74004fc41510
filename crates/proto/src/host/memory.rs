//! Where the memory of a host goes.
//!
//! Sums of what the structures hold: areas by what is resident, everything else by its capacity. What the budget is charged is
//! another question (`store::Budget`): it takes extents in full, and buffers in steps.

use store::{DataStore, Replica};

use super::members::Members;
use crate::objects::Objects;
use crate::parity::Parity;
use crate::primary::Primary;

/// Bytes by use, and what they are used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// Items that the primaries here have.
    pub items: u64,
    /// Header, key and value of each. An estimate while pages are absent.
    pub item_bytes: u64,
    /// The slots in which they lie, and those of items on their way.
    pub slot_bytes: u64,
    /// What is resident of the primaries' areas: items, and everything between them.
    pub area_bytes: u64,
    /// What is resident of the parities' areas.
    pub parity_bytes: u64,
    /// The primaries' indexes.
    pub index: IndexMemory,
    /// Their replicas at the parities here.
    pub replicas: IndexMemory,
    /// Classes of runs, pages that were written, and pages that are absent, at primaries and parities.
    pub table_bytes: u64,
    /// State and last access of each slot.
    pub slot_state_bytes: u64,
    /// Records: uncommitted ones, those kept for parities that may come back, those that a parity has not applied.
    pub log_bytes: u64,
    /// Sessions of repair and scrub.
    pub repair_bytes: u64,
    /// Requests and messages that wait, values on their way into chunks and out of them.
    pub queue_bytes: u64,
    /// Pages of chunks, whole or not.
    pub chunk_bytes: u64,
    /// Pages that have memory and that no chunk is in.
    pub free_page_bytes: u64,
}

/// Indexes, or replicas of indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexMemory {
    /// Entries of all.
    pub entries: u64,
    /// Memory of all.
    pub bytes: u64,
}

impl IndexMemory {
    fn count(&mut self, replica: &Replica) {
        self.entries += replica.index().len() as u64;
        self.bytes += replica.index().memory_bytes() as u64;
    }
}

impl HostMemory {
    fn count_primary(&mut self, primary: &Primary) {
        let memory = primary.memory();
        self.log_bytes += memory.log_bytes as u64;
        self.repair_bytes += memory.repair_bytes as u64;
        self.queue_bytes += memory.queue_bytes as u64;
        if let Some(store) = primary.store() {
            self.count_store(store);
        }
    }

    fn count_store(&mut self, store: &DataStore) {
        let (stats, charged) = (store.stats(), store.memory());
        self.items += stats.items as u64;
        self.item_bytes += stats.item_bytes as u64;
        self.slot_bytes += stats.slot_bytes as u64;
        self.area_bytes += store.area().resident_bytes() as u64;
        self.index.count(store.replica());
        self.table_bytes += (store.replica().table_bytes() + charged.other) as u64;
        self.slot_state_bytes += charged.allocator as u64;
    }

    fn count_parity(&mut self, parity: &Parity) {
        self.parity_bytes += parity.area().resident_bytes() as u64;
        self.repair_bytes += parity.session_bytes() as u64;
        for stream in parity.streams() {
            self.replicas.count(stream.replica());
            self.table_bytes += (stream.replica().table_bytes() + stream.grants_memory_bytes()) as u64;
            self.log_bytes += stream.kept_memory_bytes() as u64;
        }
    }
}

impl HostMemory {
    /// Of members and chunks; `queue_bytes` wait for them or on their way. Takes a pass over all run tables, and asks the system for
    /// each extent.
    pub(super) fn of(members: &Members, objects: &Objects, queue_bytes: usize) -> Self {
        let (queue_bytes, chunk_bytes) = (queue_bytes as u64, objects.page_bytes() as u64);
        let free_page_bytes = objects.free_page_bytes() as u64;
        let mut all = Self { queue_bytes, chunk_bytes, free_page_bytes, ..Self::default() };
        members.primaries().all().values().for_each(|primary| all.count_primary(primary));
        members.parities().values().for_each(|parity| all.count_parity(parity));
        members.dormant().for_each(|parity| all.count_parity(parity));
        all
    }
}
