//! Counters of a host, by the names that memcached users know.

use types::ScrubProgress;
use types::op::Op;

use super::history::History;
use super::members::Members;
use crate::Read;
use crate::objects::names::ObjectStats;
use crate::primary::PrimaryCounts;

/// Counters since the start of the process, and gauges. All counts are of this host alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Reads, local and forwarded.
    pub reads: u64,
    /// Reads answered on the quick path with a value.
    pub quick_hits: u64,
    /// Reads answered on the quick path without one.
    pub quick_misses: u64,
    /// Writes of values.
    pub stores: u64,
    /// Other changes.
    pub changes: u64,
    /// Requests sent on to another node.
    pub forwarded: u64,
    /// Requests of other nodes' clients.
    pub received_forwards: u64,
    /// Items in the stores of this host's primaries.
    pub items: u64,
    /// Bytes of these items.
    pub item_bytes: u64,
    /// Pages that stand-ins have not repaired yet.
    pub absent_pages: u64,
    /// Bytes that the primaries here have rebuilt: decoded for themselves, or taught to learners.
    pub rebuilt_bytes: u64,
    /// Bytes that they have still to rebuild.
    pub to_rebuild_bytes: u64,
    /// Parities here that were evicted and came back with what they had.
    pub resumed_parities: u64,
    /// Records that they took to be in sync again.
    pub resumed_records: u64,
    /// Bytes of these records.
    pub resumed_bytes: u64,
    /// Bytes that it would have taken more to build them from nothing.
    pub spared_bytes: u64,
    /// Data roles that began anew here, empty, after their loss was accepted.
    pub accepted_losses: u64,
    /// Records that are not yet committed.
    pub uncommitted_records: u64,
    /// Requests that wait in primaries.
    pub waiting_requests: u64,
    /// Items that the primaries here have removed to make room.
    pub evictions: u64,
    /// Writes that were refused for want of room: by the primaries here, and values in chunks by this host, which was to write them.
    pub refused_writes: u64,
    /// Items that the primaries here have removed after they had expired.
    pub reclaimed: u64,
    /// How many of those were never read, of either kind.
    pub evicted_unread: u64,
    /// See there.
    pub expired_unread: u64,
    /// Reads that met an item here which had expired; where a `gat` or a meta command may write, it is not counted.
    pub expired_reads: u64,
    /// Extents that the primaries here have given back.
    pub released_extents: u64,
    /// Pages that scrubs of the parities and chunks here have compared.
    pub scrubbed_pages: u64,
    /// Places at which they have found something wrong.
    pub scrub_mismatches: u64,
    /// How far the newest scrub has come.
    pub scrub: ScrubProgress,
    /// Messages of peers that cannot be ([`crate::Impossible`]). Each has cost its sender the link.
    pub impossible_messages: u64,
    /// Sessions of clients at this host's primaries, and results of their writes that are kept.
    pub client_sessions: u64,
    /// See [`Self::client_sessions`].
    pub write_results: u64,
    /// Values in chunks.
    pub objects: ObjectStats,
}

impl HostStats {
    pub(super) fn count_read(&mut self, read: Read) {
        match read {
            Read::Hit => self.quick_hits += 1,
            Read::Miss => self.quick_misses += 1,
            Read::Submit => return,
        }
        self.reads += 1;
    }

    pub(super) fn count_request(&mut self, op: &Op) {
        match op {
            Op::Get(_) | Op::Debug | Op::Scan(_) => self.reads += 1,
            Op::Store(_) => self.stores += 1,
            Op::Delete(_)
            | Op::Arith(_)
            | Op::Touch(_)
            | Op::Flush(_)
            | Op::Object(_)
            | Op::Session
            | Op::Expect(_) => self.changes += 1,
        }
    }

    /// Requests of all clients, those of other nodes included.
    pub(super) fn requests(&self) -> u64 {
        self.reads + self.stores + self.changes + self.received_forwards
    }

    pub(super) fn with_objects(mut self, objects: ObjectStats, (pages, mismatches): (u64, u64)) -> Self {
        self.scrubbed_pages += pages;
        self.scrub_mismatches += mismatches;
        self.refused_writes += objects.refused_values;
        let (open_ids, pins) = (self.objects.open_ids, self.objects.pins);
        self.objects = ObjectStats { open_ids, pins, ..objects };
        self
    }

    pub(super) fn with_members(mut self, members: &Members, forwarded: u64, scrub: ScrubProgress) -> Self {
        let History { resumed, resumed_by, begun_anew, primaries, scrubbed } = members.history();
        self.resumed_parities = resumed;
        self.resumed_records = resumed_by.records;
        self.resumed_bytes = resumed_by.bytes;
        self.spared_bytes = resumed_by.instead_of_bytes;
        self.accepted_losses = begun_anew;
        self.forwarded = forwarded;
        self.scrub = scrub;
        self.scrubbed_pages += scrubbed.0;
        self.scrub_mismatches += scrubbed.1;
        self.count(primaries);
        for parity in members.parities().values() {
            let (pages, mismatches) = parity.scrub_totals();
            self.scrubbed_pages += pages;
            self.scrub_mismatches += mismatches;
        }
        for primary in members.primaries().all().values() {
            let counted = primary.stats();
            self.count(counted.counts);
            self.uncommitted_records += counted.uncommitted_records;
            self.waiting_requests += counted.waiting_requests;
            self.objects.open_ids += counted.open_ids;
            self.objects.pins += counted.pins;
            self.client_sessions += counted.client_sessions;
            self.write_results += counted.write_results;
            self.to_rebuild_bytes += counted.untaught_bytes;
            if let Some(store) = primary.store() {
                let stats = store.stats();
                self.items += stats.items as u64;
                self.item_bytes += stats.item_bytes as u64;
                self.absent_pages += store.absent_count() as u64;
                self.to_rebuild_bytes += u64::from(store.absent_count()) * types::PAGE_BYTES as u64;
            }
        }
        self
    }

    fn count(&mut self, counts: PrimaryCounts) {
        self.evictions += counts.removed.evicted;
        self.reclaimed += counts.removed.expired;
        self.evicted_unread += counts.removed.evicted_unread;
        self.expired_unread += counts.removed.expired_unread;
        self.expired_reads += counts.expired_reads;
        self.refused_writes += counts.refused_writes;
        self.released_extents += counts.released_extents;
        self.rebuilt_bytes += counts.rebuilt_bytes;
    }
}
