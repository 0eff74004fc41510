//! Where a node's resident memory goes, byte by byte: what its workers can name, and what is left.

use std::ops::Add;

use serde::{Deserialize, Serialize};
use store::ITEM_HEADER_BYTES;

use crate::node::process;
use crate::node::snapshot::{WorkerMemory, WorkerSnapshot};

/// Resident memory by use, in bytes. The sum of all kinds is what is resident.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// All of it, as the system counts; 0 where it does not.
    pub resident: u64,
    /// Headers of items.
    pub item_headers: u64,
    /// Keys and values.
    pub item_payloads: u64,
    /// What items leave of their slots.
    pub slot_rounding: u64,
    /// The rest of what is resident of data areas: slots and runs that are free.
    pub free_slots: u64,
    /// Parity areas.
    pub parity_areas: u64,
    /// Chunks of large values.
    #[serde(default)]
    pub chunks: u64,
    /// The rest of what is kept for chunks: free pages.
    #[serde(default)]
    pub free_pages: u64,
    /// Indexes of primaries.
    pub index: u64,
    /// Replicas of indexes at parities.
    pub index_replicas: u64,
    /// Classes of runs and sets of pages, at primaries and parities.
    pub tables: u64,
    /// State and last access of each slot.
    pub slot_states: u64,
    /// Records on their way, or kept for parities that may come back.
    pub logs: u64,
    /// Sessions of repair and scrub.
    pub repair: u64,
    /// Buffers of clients' connections.
    pub client_buffers: u64,
    /// Buffers of links to other nodes.
    pub link_buffers: u64,
    /// Requests and messages that wait.
    pub queues: u64,
    /// Everything else: the program, its stacks, what the allocator holds without use.
    pub other: u64,
    /// Items, of which there is one header each.
    #[serde(default)]
    pub items: u64,
    /// Entries of the indexes.
    #[serde(default)]
    pub index_entries: u64,
    /// Entries of the replicas.
    #[serde(default)]
    pub replica_entries: u64,
}

impl MemoryUse {
    /// Of this process.
    pub(crate) fn of(snapshots: &[WorkerSnapshot]) -> Self {
        let workers = snapshots.iter().map(|worker| Self::of_worker(&worker.memory));
        let named = workers.fold(Self::default(), Self::add);
        let resident = process::resident_bytes().unwrap_or(0);
        // The two are not read at one moment, and where the system tells nothing the first is 0.
        Self { resident, other: resident.saturating_sub(named.named()), ..named }
    }

    fn of_worker(worker: &WorkerMemory) -> Self {
        let host = &worker.host;
        // What is absent at a stand-in has slots, but is not resident.
        let items = host.item_bytes.min(host.area_bytes);
        let headers = (host.items * ITEM_HEADER_BYTES as u64).min(items);
        let slack = host.area_bytes - items;
        let rounding = host.slot_bytes.saturating_sub(host.item_bytes).min(slack);
        Self {
            item_headers: headers,
            item_payloads: items - headers,
            slot_rounding: rounding,
            free_slots: slack - rounding,
            parity_areas: host.parity_bytes,
            chunks: host.chunk_bytes,
            free_pages: host.free_page_bytes,
            index: host.index.bytes,
            index_replicas: host.replicas.bytes,
            tables: host.table_bytes,
            slot_states: host.slot_state_bytes,
            logs: host.log_bytes,
            repair: host.repair_bytes,
            client_buffers: worker.client_bytes as u64,
            link_buffers: worker.link_bytes as u64,
            queues: host.queue_bytes,
            items: host.items,
            index_entries: host.index.entries,
            replica_entries: host.replicas.entries,
            ..Self::default()
        }
    }

    /// Every kind with its name, in the order of this structure; the last one is what nothing else names.
    #[must_use]
    pub fn kinds(&self) -> [(&'static str, u64); 17] {
        [
            ("item_headers", self.item_headers),
            ("item_payloads", self.item_payloads),
            ("slot_rounding", self.slot_rounding),
            ("free_slots", self.free_slots),
            ("parity_areas", self.parity_areas),
            ("chunks", self.chunks),
            ("free_pages", self.free_pages),
            ("index", self.index),
            ("index_replicas", self.index_replicas),
            ("tables", self.tables),
            ("slot_states", self.slot_states),
            ("logs", self.logs),
            ("repair", self.repair),
            ("client_buffers", self.client_buffers),
            ("link_buffers", self.link_buffers),
            ("queues", self.queues),
            ("other", self.other),
        ]
    }

    /// What has a name: all but `other`.
    #[must_use]
    pub fn named(&self) -> u64 {
        self.kinds().iter().map(|(_, bytes)| bytes).sum::<u64>() - self.other
    }
}

impl Add for MemoryUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            resident: self.resident + other.resident,
            item_headers: self.item_headers + other.item_headers,
            item_payloads: self.item_payloads + other.item_payloads,
            slot_rounding: self.slot_rounding + other.slot_rounding,
            free_slots: self.free_slots + other.free_slots,
            parity_areas: self.parity_areas + other.parity_areas,
            chunks: self.chunks + other.chunks,
            free_pages: self.free_pages + other.free_pages,
            index: self.index + other.index,
            index_replicas: self.index_replicas + other.index_replicas,
            tables: self.tables + other.tables,
            slot_states: self.slot_states + other.slot_states,
            logs: self.logs + other.logs,
            repair: self.repair + other.repair,
            client_buffers: self.client_buffers + other.client_buffers,
            link_buffers: self.link_buffers + other.link_buffers,
            queues: self.queues + other.queues,
            other: self.other + other.other,
            items: self.items + other.items,
            index_entries: self.index_entries + other.index_entries,
            replica_entries: self.replica_entries + other.replica_entries,
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::HostMemory;

    use super::*;

    fn of(host: HostMemory) -> MemoryUse {
        MemoryUse::of_worker(&WorkerMemory { host, ..WorkerMemory::default() })
    }

    #[test]
    fn the_kinds_of_a_data_area_add_up_to_what_is_resident_of_it() {
        let (items, item_bytes, slot_bytes, area_bytes) = (10, 1_000, 1_100, 4_096);
        let found = of(HostMemory { items, item_bytes, slot_bytes, area_bytes, ..HostMemory::default() });
        assert_eq!((found.item_headers, found.item_payloads), (260, 740));
        assert_eq!((found.slot_rounding, found.free_slots, found.named()), (100, 2_996, 4_096));
    }

    #[test]
    fn what_a_stand_in_lacks_is_not_counted() {
        let (items, item_bytes, slot_bytes, area_bytes) = (10, 9_000, 9_000, 4_096);
        let found = of(HostMemory { items, item_bytes, slot_bytes, area_bytes, ..HostMemory::default() });
        assert_eq!((found.item_headers + found.item_payloads, found.named()), (4_096, 4_096));
    }
}
