//! What `/metrics` says, of a node and of a coordinator.

use std::sync::atomic::Ordering;

use cluster::health::{Assessment, Fullness, slot_count};
use proto::HostLatencies;
use store::Category;
use types::ClusterMap;

use crate::CoordinatorStatus;
use crate::EtcdStatus;
use crate::clients::latency::RequestLatencies;
use crate::clock::Clock;
use crate::coordination::elected::Election;
use crate::http::exposition::{Exposition, Kind};
use crate::node::knowledge;
use crate::node::memory::MemoryUse;
use crate::node::process::{self, Figures};
use crate::node::shared::Shared;
use crate::node::snapshot::WorkerSnapshot;
use crate::workers::counters::CounterValues;

/// The page of a node.
pub(crate) fn of_node(shared: &Shared, snapshots: &[WorkerSnapshot]) -> String {
    let mut page = Exposition::default();
    let values = shared.all_counters();
    about_process(&mut page, &shared.clock);
    about_clients(&mut page, shared, &values);
    about_requests(&mut page, &values);
    about_latencies(&mut page, snapshots);
    about_memory(&mut page, shared, snapshots);
    about_store(&mut page, snapshots);
    about_returns(&mut page, snapshots);
    about_peers(&mut page, shared, &values);
    about_room(&mut page, shared, snapshots);
    if let Some(map) = shared.map() {
        about_health(&mut page, &knowledge::assess(shared, &map, snapshots));
        // What a coordinator has said long ago is no measurement.
        if knowledge::age(shared).is_fresh() {
            about_cluster(&mut page, &map);
        }
    }
    page.finish()
}

/// The page of a coordinator.
pub(crate) fn of_coordinator(status: &CoordinatorStatus, clock: &Clock) -> String {
    let mut page = Exposition::default();
    about_process(&mut page, clock);
    page.single(
        "gestalt_coordinator_registered_nodes",
        Kind::Gauge,
        "Nodes that have registered.",
        status.registered.len(),
    );
    page.single(
        "gestalt_coordinator_connected_nodes",
        Kind::Gauge,
        "Nodes that are connected.",
        status.connected.len(),
    );
    page.single(
        "gestalt_coordinator_expected_nodes",
        Kind::Gauge,
        "Nodes that the cluster forms with.",
        status.expected,
    );
    let silences = knowledge::silences(status, clock.time());
    page.single(
        "gestalt_coordinator_silent_nodes",
        Kind::Gauge,
        "Nodes that have not been heard for a lease.",
        silences.filter(|(_, silence_us)| knowledge::is_silent(status, *silence_us)).count(),
    );
    page.single(
        "gestalt_coordinator_malformed_total",
        Kind::Counter,
        "Connections closed for bytes that are no message of a node.",
        status.malformed_frames,
    );
    page.single(
        "gestalt_coordinator_impossible_messages_total",
        Kind::Counter,
        "Connections closed for a message that cannot be.",
        status.impossible_messages,
    );
    if let Some(map) = &status.map {
        about_health(&mut page, &knowledge::assess_at_coordinator(status, map, clock.time()));
        about_cluster(&mut page, map);
    }
    page.finish()
}

fn about_process(page: &mut Exposition, clock: &Clock) {
    page.family("gestalt_build_info", Kind::Gauge, "Version of the software.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.single("gestalt_uptime_seconds", Kind::Gauge, "Seconds since the start.", clock.uptime_seconds());
    if let Some(figures) = process::figures() {
        about_figures(page, &figures);
    }
}

/// Under the names that all Prometheus clients use.
fn about_figures(page: &mut Exposition, figures: &Figures) {
    let cpu = figures.user_seconds + figures.system_seconds;
    page.single("process_cpu_seconds_total", Kind::Counter, "CPU time, user and system.", cpu);
    let mut gauge = |name, help, value: f64| page.single(name, Kind::Gauge, help, value);
    gauge("process_resident_memory_bytes", "Resident memory.", figures.resident_bytes as f64);
    gauge("process_virtual_memory_bytes", "Virtual memory.", figures.virtual_bytes as f64);
    gauge("process_start_time_seconds", "When the process was started, since 1970.", figures.started_seconds);
    gauge("process_threads", "Threads.", figures.threads as f64);
    if let Some(open) = figures.open_files {
        gauge("process_open_fds", "Open file descriptors.", open as f64);
    }
    if let Some(most) = figures.max_files {
        gauge("process_max_fds", "Most file descriptors that may be open.", most as f64);
    }
    page.family("gestalt_cpu_seconds_total", Kind::Counter, "CPU time by mode.")
        .sample(&[("mode", "user")], figures.user_seconds)
        .sample(&[("mode", "system")], figures.system_seconds);
}

fn about_clients(page: &mut Exposition, shared: &Shared, values: &CounterValues) {
    let rejected = shared.rejected_connections.load(Ordering::Relaxed);
    page.single("gestalt_connections", Kind::Gauge, "Open client connections.", values.curr_connections);
    page.single("gestalt_connections_total", Kind::Counter, "Client connections.", values.total_connections);
    page.single(
        "gestalt_connections_rejected_total",
        Kind::Counter,
        "Client connections turned away.",
        rejected,
    );
    page.single(
        "gestalt_connections_displaced_total",
        Kind::Counter,
        "Client connections that had sent no command when a newcomer took their place.",
        shared.places.displaced(),
    );
    page.family(
        "gestalt_connections_overdue_total",
        Kind::Counter,
        "Client connections closed at a deadline.",
    )
    .sample(&[("deadline", "idle")], values.idle_kicks)
    .sample(&[("deadline", "half_sent")], values.half_sent_kicks)
    .sample(&[("deadline", "unread")], values.unread_kicks);
    page.single(
        "gestalt_client_received_bytes_total",
        Kind::Counter,
        "Bytes from clients.",
        values.bytes_read,
    );
    page.single("gestalt_client_sent_bytes_total", Kind::Counter, "Bytes to clients.", values.bytes_written);
    page.single(
        "gestalt_client_reads_total",
        Kind::Counter,
        "Reads of clients' sockets.",
        values.client_reads,
    );
    page.single(
        "gestalt_client_writes_total",
        Kind::Counter,
        "Writes to clients' sockets.",
        values.client_writes,
    );
    page.single(
        "gestalt_client_stalls_total",
        Kind::Counter,
        "Times that a client was not read.",
        values.client_stalls,
    );
}

fn about_requests(page: &mut Exposition, values: &CounterValues) {
    page.family("gestalt_requests_total", Kind::Counter, "Requests of this node's clients.")
        .sample(&[("op", "get"), ("outcome", "hit")], values.get_hits)
        .sample(&[("op", "get"), ("outcome", "miss")], values.get_misses)
        .sample(&[("op", "set"), ("outcome", "any")], values.cmd_set)
        .sample(&[("op", "delete"), ("outcome", "hit")], values.delete_hits)
        .sample(&[("op", "delete"), ("outcome", "miss")], values.delete_misses)
        .sample(&[("op", "incr"), ("outcome", "hit")], values.incr_hits)
        .sample(&[("op", "incr"), ("outcome", "miss")], values.incr_misses)
        .sample(&[("op", "decr"), ("outcome", "hit")], values.decr_hits)
        .sample(&[("op", "decr"), ("outcome", "miss")], values.decr_misses)
        .sample(&[("op", "touch"), ("outcome", "hit")], values.touch_hits)
        .sample(&[("op", "touch"), ("outcome", "miss")], values.touch_misses)
        .sample(&[("op", "flush_all"), ("outcome", "any")], values.cmd_flush);
    page.family("gestalt_request_failures_total", Kind::Counter, "Requests answered with an error.")
        .sample(&[("reason", "busy")], values.failed_busy)
        .sample(&[("reason", "unavailable")], values.failed_unavailable)
        .sample(&[("reason", "unknown")], values.failed_unknown)
        .sample(&[("reason", "lost")], values.failed_lost)
        .sample(&[("reason", "corrupt")], values.failed_corrupt)
        .sample(&[("reason", "out_of_memory")], values.store_no_memory)
        .sample(&[("reason", "too_large")], values.store_too_large);
    page.single(
        "gestalt_crossings_total",
        Kind::Counter,
        "Requests handed to another worker.",
        values.crossings,
    );
}

/// How long requests take. What has not happened yet has no histogram.
fn about_latencies(page: &mut Exposition, snapshots: &[WorkerSnapshot]) {
    let (mut requests, mut waits) = (RequestLatencies::default(), HostLatencies::default());
    for worker in snapshots {
        requests.add(&worker.requests);
        waits.network.add(&worker.waits.network);
        waits.parities.add(&worker.waits.parities);
    }
    let help = "From when a command was understood until its answer was known, of this node's clients; each key of a get.";
    let mut family = page.family("gestalt_request_seconds", Kind::Histogram, help);
    for (operation, histogram) in requests.by_operation().filter(|(_, histogram)| histogram.count() > 0) {
        family.histogram(&[("operation", operation)], histogram);
    }
    let help =
        "What requests waited for: their turn (queue), another node (network), all parities (parities).";
    let mut family = page.family("gestalt_request_stage_seconds", Kind::Histogram, help);
    let stages = [("queue", &requests.queue), ("network", &waits.network), ("parities", &waits.parities)];
    for (stage, kinds) in stages {
        for (kind, histogram) in kinds.iter().filter(|(_, histogram)| histogram.count() > 0) {
            family.histogram(&[("operation", kind.name()), ("stage", stage)], histogram);
        }
    }
}

fn about_memory(page: &mut Exposition, shared: &Shared, snapshots: &[WorkerSnapshot]) {
    page.single(
        "gestalt_memory_limit_bytes",
        Kind::Gauge,
        "Cap on what the node holds.",
        shared.budget.limit(),
    );
    let mut used = page.family("gestalt_memory_used_bytes", Kind::Gauge, "What the node holds.");
    for category in Category::ALL {
        used.sample(&[("category", category.name())], shared.budget.used(category));
    }
    let found = MemoryUse::of(snapshots);
    let mut resident = page.family("gestalt_memory_bytes", Kind::Gauge, "Where resident memory goes.");
    for (kind, bytes) in found.kinds() {
        resident.sample(&[("kind", kind)], bytes);
    }
    page.family("gestalt_index_entries", Kind::Gauge, "Entries of indexes and of their replicas.")
        .sample(&[("kind", "index")], found.index_entries)
        .sample(&[("kind", "index_replicas")], found.replica_entries);
}

/// Parities that were evicted and came back.
fn about_returns(page: &mut Exposition, snapshots: &[WorkerSnapshot]) {
    let sum = |of: fn(&WorkerSnapshot) -> u64| -> u64 { snapshots.iter().map(of).sum() };
    page.single(
        "gestalt_resumed_parities_total",
        Kind::Counter,
        "Evicted parities that came back with what they had.",
        sum(|w| w.host.resumed_parities),
    );
    page.single(
        "gestalt_resumed_bytes_total",
        Kind::Counter,
        "Bytes of the records that they lacked.",
        sum(|w| w.host.resumed_bytes),
    );
    page.single(
        "gestalt_spared_bytes_total",
        Kind::Counter,
        "Bytes that it would have taken more to build them anew.",
        sum(|w| w.host.spared_bytes),
    );
    page.single(
        "gestalt_accepted_losses_total",
        Kind::Counter,
        "Data roles that began anew here, empty, after their loss was accepted.",
        sum(|w| w.host.accepted_losses),
    );
}

fn about_store(page: &mut Exposition, snapshots: &[WorkerSnapshot]) {
    let sum = |of: fn(&WorkerSnapshot) -> u64| -> u64 { snapshots.iter().map(of).sum() };
    page.single(
        "gestalt_items",
        Kind::Gauge,
        "Items of which this node is the primary.",
        sum(|w| w.host.items),
    );
    page.single("gestalt_item_bytes", Kind::Gauge, "Bytes of these items.", sum(|w| w.host.item_bytes));
    page.single(
        "gestalt_evicted_items_total",
        Kind::Counter,
        "Items removed to make room.",
        sum(|w| w.host.evictions),
    );
    page.single(
        "gestalt_expired_items_total",
        Kind::Counter,
        "Items removed after they had expired.",
        sum(|w| w.host.reclaimed),
    );
    page.single(
        "gestalt_released_extents_total",
        Kind::Counter,
        "Extents of 1 MiB that data roles have given back.",
        sum(|w| w.host.released_extents),
    );
    page.single(
        "gestalt_absent_pages",
        Kind::Gauge,
        "Pages that are still to be repaired.",
        sum(|w| w.host.absent_pages),
    );
    page.single(
        "gestalt_rebuilt_bytes_total",
        Kind::Counter,
        "Bytes that were repaired, or taught to new parities.",
        sum(|w| w.host.rebuilt_bytes),
    );
    page.single(
        "gestalt_to_rebuild_bytes",
        Kind::Gauge,
        "Bytes that are still to be repaired or taught.",
        sum(|w| w.host.to_rebuild_bytes),
    );
    page.single(
        "gestalt_scrub_pages_total",
        Kind::Counter,
        "Parity pages that were compared with the data.",
        sum(|w| w.host.scrubbed_pages),
    );
    page.single(
        "gestalt_scrub_mismatches_total",
        Kind::Counter,
        "Places, of up to 16 pages, at which a scrub has found something wrong.",
        sum(|w| w.host.scrub_mismatches),
    );
    page.single(
        "gestalt_scrub_left_pages",
        Kind::Gauge,
        "Parity pages that the newest scrub has still to compare.",
        sum(|w| w.host.scrub.left_pages),
    );
    let uncommitted = sum(|w| w.host.uncommitted_records);
    page.single(
        "gestalt_uncommitted_records",
        Kind::Gauge,
        "Records that wait for acknowledgement.",
        uncommitted,
    );
    let waiting = sum(|w| w.host.waiting_requests);
    page.single("gestalt_waiting_requests", Kind::Gauge, "Requests that wait in primaries.", waiting);
    let open = sum(|w| w.open_requests as u64);
    page.single("gestalt_open_requests", Kind::Gauge, "Requests without an answer.", open);
    let buffers = sum(|w| w.buffer_bytes as u64);
    page.single("gestalt_client_buffer_bytes", Kind::Gauge, "What client connections hold.", buffers);
    let forwarded = sum(|w| w.host.forwarded);
    page.single("gestalt_forwards_total", Kind::Counter, "Requests sent on to another node.", forwarded);
    let received = sum(|w| w.host.received_forwards);
    page.single(
        "gestalt_received_forwards_total",
        Kind::Counter,
        "Requests of other nodes' clients.",
        received,
    );
    let impossible = sum(|w| w.host.impossible_messages);
    page.single(
        "gestalt_impossible_messages_total",
        Kind::Counter,
        "Messages of other nodes that cannot be; each has cost its sender the link.",
        impossible,
    );
}

/// Whether clients find room.
fn about_room(page: &mut Exposition, shared: &Shared, snapshots: &[WorkerSnapshot]) {
    let is = |state| u8::from(knowledge::fullness(shared) == state);
    page.family("gestalt_full", Kind::Gauge, "Whether a node has had no room in the last minute.")
        .sample(&[("state", "evicting")], is(Fullness::Evicting))
        .sample(&[("state", "refusing")], is(Fullness::Refusing));
    page.single(
        "gestalt_refused_writes_total",
        Kind::Counter,
        "Writes refused by primaries for want of room.",
        snapshots.iter().map(|worker| worker.host.refused_writes).sum::<u64>(),
    );
}

/// What this very process can tell, however long a coordinator has been away.
fn about_health(page: &mut Exposition, found: &Assessment) {
    page.single(
        "gestalt_unavailable_slots",
        Kind::Gauge,
        "Hash slots that nobody serves, as far as this process can tell, and that are not lost.",
        slot_count(&found.unavailable_slots),
    );
    page.single(
        "gestalt_silent_nodes",
        Kind::Gauge,
        "Nodes that do not answer this process; those that have left are not counted.",
        found.silent_nodes.len(),
    );
}

fn about_peers(page: &mut Exposition, shared: &Shared, values: &CounterValues) {
    let connected = u8::from(shared.coordinator_connected.load(Ordering::Relaxed));
    page.single("gestalt_coordinator_connected", Kind::Gauge, "Whether the coordinator answers.", connected);
    let age = knowledge::age(shared).coordinator_us.map(knowledge::seconds);
    page.single(
        "gestalt_coordinator_age_seconds",
        Kind::Gauge,
        "Seconds since the coordinator was heard; since the start, if it never was.",
        age.unwrap_or_else(|| std::time::Duration::from_secs(shared.clock.uptime_seconds()).as_secs_f64()),
    );
    if let Some(etcd) = shared.election.as_ref().map(Election::status) {
        about_etcd(page, &etcd);
    }
    page.single("gestalt_links", Kind::Gauge, "Links to other nodes.", values.links_up);
    page.single("gestalt_link_ups_total", Kind::Counter, "Times that a link came up.", values.link_ups);
    page.single("gestalt_link_downs_total", Kind::Counter, "Times that a link went down.", values.link_downs);
    page.single(
        "gestalt_link_overflows_total",
        Kind::Counter,
        "Links dropped with too much unsent.",
        values.link_overflows,
    );
    page.single(
        "gestalt_link_malformed_total",
        Kind::Counter,
        "Links closed for a malformed frame.",
        values.peer_malformed,
    );
    page.family("gestalt_peer_messages_total", Kind::Counter, "Messages between nodes.")
        .sample(&[("direction", "received")], values.peer_messages_read)
        .sample(&[("direction", "sent")], values.peer_messages_written)
        .sample(&[("direction", "dropped")], values.peer_messages_dropped);
    page.single(
        "gestalt_peer_received_bytes_total",
        Kind::Counter,
        "Bytes from other nodes.",
        values.peer_bytes_read,
    );
    page.single(
        "gestalt_peer_sent_bytes_total",
        Kind::Counter,
        "Bytes to other nodes.",
        values.peer_bytes_written,
    );
    page.single("gestalt_peer_reads_total", Kind::Counter, "Reads of peers' sockets.", values.peer_reads);
    page.single("gestalt_peer_writes_total", Kind::Counter, "Writes to peers' sockets.", values.peer_writes);
    page.single("gestalt_pumps_total", Kind::Counter, "Pump cycles of all workers.", values.pumps);
}

fn about_etcd(page: &mut Exposition, etcd: &EtcdStatus) {
    let flag = |page: &mut Exposition, name, about, holds: bool| {
        page.single(name, Kind::Gauge, about, u8::from(holds));
    };
    flag(page, "gestalt_etcd_reachable", "Whether etcd answers.", etcd.reachable);
    let outage = etcd.unreachable_seconds.unwrap_or(0);
    page.single("gestalt_etcd_outage_seconds", Kind::Gauge, "For how long etcd has not answered.", outage);
    let bad = etcd.bad_key.is_some();
    flag(page, "gestalt_etcd_bad_record", "Whether etcd has a record that cannot be.", bad);
    flag(page, "gestalt_coordinator_presides", "Whether this node has the coordinator.", etcd.presides);
}

fn about_cluster(page: &mut Exposition, map: &ClusterMap) {
    let alive = map.nodes.iter().filter(|info| info.alive).count();
    page.family("gestalt_nodes", Kind::Gauge, "Nodes of the cluster.")
        .sample(&[("state", "alive")], alive)
        .sample(&[("state", "dead")], map.nodes.len() - alive);
    let draining = map.layout.draining().count();
    page.single("gestalt_draining_nodes", Kind::Gauge, "Nodes that are to become empty.", draining);
    page.single(
        "gestalt_repair_paused",
        Kind::Gauge,
        "Whether operators have paused repair.",
        u8::from(map.layout.repair.paused),
    );
    let asked = map.profile.m();
    let achieved = map.groups.iter().map(types::GroupView::margin).min().unwrap_or(0).min(asked);
    page.single("gestalt_map_version", Kind::Gauge, "Version of the cluster map.", map.version);
    page.single("gestalt_groups", Kind::Gauge, "Coding groups.", map.groups.len());
    page.single("gestalt_protection_asked", Kind::Gauge, "Losses that every group is to survive.", asked);
    page.single(
        "gestalt_protection_achieved",
        Kind::Gauge,
        "Losses that every group would survive now.",
        achieved,
    );
    let lost: u64 = map.lost_slots().iter().map(|range| u64::from(range.count())).sum();
    page.single("gestalt_lost_slots", Kind::Gauge, "Hash slots whose items are lost.", lost);
}
