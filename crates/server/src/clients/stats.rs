//! The `stats` command, under the names that memcached users know; ours begin with `gestalt_`.
//!
//! The numbers are this node's own: what its clients have asked, and what the data roles hold that it serves now. Names that
//! would say nothing true here (slab rebalancing, LRU lists, ...) are left out. `stats cluster` sums over all nodes.

mod classes;
mod whole;

use std::fmt::Display;
use std::sync::atomic::Ordering;

use faces::memcache::VERSION;
use faces::{Face, Stats, ValueLimits};
use proto::{HostStats, ObjectStats};
use store::{Category, Eviction};

use crate::clients::Protocol;
use crate::clock::unix_seconds;
use crate::limits::ACCEPT_PAUSE;
use crate::node::process;
use crate::node::shared::Shared;
use crate::node::snapshot::WorkerSnapshot;
use crate::workers::counters::CounterValues;

/// What `-I` is for memcached: its default, by whose rule a value is too large (`types::op::is_too_large`).
const ITEM_SIZE_MAX: u64 = 1024 * 1024;

/// The answer to `stats which`, with its `END`, for a client that may send such values.
pub(crate) async fn lines(shared: &Shared, which: Stats, limits: ValueLimits) -> Vec<u8> {
    let mut page = Page::default();
    match which {
        Stats::General => general(&mut page, shared, &shared.snapshots().await),
        Stats::Settings => settings(&mut page, shared, limits),
        Stats::Items => classes::items(&mut page, &shared.classes().await),
        Stats::Slabs => classes::slabs(&mut page, shared, &shared.classes().await),
        Stats::Conns => conns(&mut page, shared),
        Stats::Cluster => whole::tell(&mut page, shared).await,
        // Neither sizes nor detail are tracked; memcached says the same of sizes when they are off.
        Stats::Sizes => page.add("sizes_status", "disabled"),
        Stats::Reset => {
            shared.reset_counters(members(&shared.snapshots().await));
            return printed(None);
        }
    }
    printed(Some(&page.0))
}

fn printed(stats: Option<&[(String, String)]>) -> Vec<u8> {
    let mut lines = Vec::new();
    Protocol::print_stats(stats, &mut lines);
    lines
}

/// Names and values.
#[derive(Default)]
struct Page(Vec<(String, String)>);

impl Page {
    fn add(&mut self, name: &str, value: impl Display) {
        self.0.push((name.to_owned(), value.to_string()));
    }
}

fn general(page: &mut Page, shared: &Shared, snapshots: &[WorkerSnapshot]) {
    let values = shared.counters();
    page.add("pid", std::process::id());
    page.add("uptime", shared.clock.uptime_seconds());
    page.add("time", unix_seconds().0);
    page.add("version", VERSION);
    page.add("gestalt_version", env!("CARGO_PKG_VERSION"));
    page.add("pointer_size", usize::BITS);
    if let Some(figures) = process::figures() {
        page.add("rusage_user", format_args!("{:.6}", figures.user_seconds));
        page.add("rusage_system", format_args!("{:.6}", figures.system_seconds));
    }
    connections(page, shared, &values);
    commands(page, &values);
    page.add("bytes_read", values.bytes_read);
    page.add("bytes_written", values.bytes_written);
    page.add("limit_maxbytes", shared.budget.limit());
    page.add("threads", shared.config.workers);
    stored(page, shared, snapshots);
    ours(page, shared, snapshots, &values);
}

fn connections(page: &mut Page, shared: &Shared, values: &CounterValues) {
    page.add("max_connections", shared.config.limits.max_connections);
    page.add("curr_connections", values.curr_connections);
    page.add("total_connections", values.total_connections);
    page.add("rejected_connections", shared.rejected_connections.load(Ordering::Relaxed));
    page.add("idle_kicks", values.idle_kicks);
    let pauses = shared.accept_pauses.load(Ordering::Relaxed);
    page.add("accepting_conns", 1);
    page.add("listen_disabled_num", pauses);
    page.add("time_in_listen_disabled_us", u128::from(pauses) * ACCEPT_PAUSE.as_micros());
    page.add("conn_yields", values.conn_yields);
}

fn commands(page: &mut Page, values: &CounterValues) {
    for (name, value) in [
        ("cmd_get", values.cmd_get),
        ("cmd_set", values.cmd_set),
        ("cmd_flush", values.cmd_flush),
        ("cmd_touch", values.cmd_touch),
        ("cmd_meta", values.cmd_meta),
        ("get_hits", values.get_hits),
        ("get_misses", values.get_misses),
        ("delete_misses", values.delete_misses),
        ("delete_hits", values.delete_hits),
        ("incr_misses", values.incr_misses),
        ("incr_hits", values.incr_hits),
        ("decr_misses", values.decr_misses),
        ("decr_hits", values.decr_hits),
        ("cas_misses", values.cas_misses),
        ("cas_hits", values.cas_hits),
        ("cas_badval", values.cas_badval),
        ("touch_hits", values.touch_hits),
        ("touch_misses", values.touch_misses),
        ("store_too_large", values.store_too_large),
        ("store_no_memory", values.store_no_memory),
    ] {
        page.add(name, value);
    }
}

/// What the members of all workers have counted.
fn members(snapshots: &[WorkerSnapshot]) -> HostStats {
    let sum = |of: fn(&HostStats) -> u64| -> u64 { snapshots.iter().map(|worker| of(&worker.host)).sum() };
    HostStats {
        stores: sum(|host| host.stores),
        evictions: sum(|host| host.evictions),
        evicted_unread: sum(|host| host.evicted_unread),
        reclaimed: sum(|host| host.reclaimed),
        expired_unread: sum(|host| host.expired_unread),
        expired_reads: sum(|host| host.expired_reads),
        ..HostStats::default()
    }
}

fn stored(page: &mut Page, shared: &Shared, snapshots: &[WorkerSnapshot]) {
    let sum = |of: fn(&WorkerSnapshot) -> u64| -> u64 { snapshots.iter().map(of).sum() };
    let (now, base) = (members(snapshots), shared.host_base());
    // A role that moves away takes its counts along, so the sum may be below the base.
    let since = |of: fn(&HostStats) -> u64| of(&now).saturating_sub(of(&base));
    page.add("bytes", sum(|worker| worker.host.item_bytes));
    page.add("curr_items", sum(|worker| worker.host.items));
    page.add("total_items", since(|host| host.stores));
    page.add("get_expired", since(|host| host.expired_reads));
    page.add("evictions", since(|host| host.evictions));
    page.add("evicted_unfetched", since(|host| host.evicted_unread));
    page.add("reclaimed", since(|host| host.reclaimed));
    page.add("expired_unfetched", since(|host| host.expired_unread));
    page.add("hash_bytes", shared.budget.used(Category::Index));
    for category in Category::ALL {
        page.add(&format!("gestalt_memory_{}_bytes", category.name()), shared.budget.used(category));
    }
    page.add("gestalt_memory_used_bytes", shared.budget.total_used());
}

fn ours(page: &mut Page, shared: &Shared, snapshots: &[WorkerSnapshot], values: &CounterValues) {
    let sum = |of: fn(&WorkerSnapshot) -> u64| -> u64 { snapshots.iter().map(of).sum() };
    page.add("gestalt_node", shared.host.node.0);
    page.add("gestalt_incarnation", shared.host.incarnation.0);
    page.add("gestalt_map_version", shared.map_version());
    if let Some(map) = shared.map() {
        let pools = cluster::Codes::of(&map.catalog).protections(&map, &[]);
        let worst = cluster::worst_off(&pools);
        page.add("gestalt_profile", map.default_pool().profile);
        page.add("gestalt_pools", map.catalog.pools.len());
        page.add("gestalt_namespaces", map.catalog.namespaces.len());
        page.add("gestalt_groups", map.groups.len());
        page.add("gestalt_protection_asked", worst.map_or(0, |pool| pool.asked));
        page.add("gestalt_protection_achieved", worst.map_or(0, |pool| pool.achieved));
    }
    page.add("gestalt_links", values.links_up);
    page.add("gestalt_forwarded", sum(|worker| worker.host.forwarded));
    page.add("gestalt_received_forwards", sum(|worker| worker.host.received_forwards));
    page.add("gestalt_uncommitted_records", sum(|worker| worker.host.uncommitted_records));
    page.add("gestalt_absent_pages", sum(|worker| worker.host.absent_pages));
    let objects = |of| sum_objects(snapshots, of);
    page.add("gestalt_object_chunks", objects(|objects| objects.chunks));
    page.add("gestalt_object_chunk_bytes", objects(|objects| objects.chunk_bytes));
    page.add("gestalt_object_lost_chunks", objects(|objects| objects.lost_chunks));
    page.add("gestalt_object_uploads", objects(|objects| objects.uploads));
    page.add("gestalt_object_gathers", objects(|objects| objects.gathers));
    for (name, value) in [
        ("gestalt_failed_busy", values.failed_busy),
        ("gestalt_failed_unavailable", values.failed_unavailable),
        ("gestalt_failed_unknown", values.failed_unknown),
        ("gestalt_failed_lost", values.failed_lost),
        ("gestalt_failed_no_namespace", values.failed_no_namespace),
        ("gestalt_failed_corrupt", values.failed_corrupt),
        ("gestalt_client_reads", values.client_reads),
        ("gestalt_client_writes", values.client_writes),
        ("gestalt_peer_reads", values.peer_reads),
        ("gestalt_peer_writes", values.peer_writes),
        ("gestalt_pumps", values.pumps),
    ] {
        page.add(name, value);
    }
}

fn sum_objects(snapshots: &[WorkerSnapshot], of: fn(&ObjectStats) -> u64) -> u64 {
    snapshots.iter().map(|worker| of(&worker.host.objects)).sum()
}

fn settings(page: &mut Page, shared: &Shared, limits: ValueLimits) {
    let config = &shared.config;
    page.add("maxbytes", config.memory_bytes);
    page.add("maxconns", config.limits.max_connections);
    page.add("tcpport", shared.addresses.memcached.port());
    page.add("udpport", 0);
    page.add("inter", shared.addresses.memcached.ip());
    page.add("evictions", if config.eviction == Eviction::None { "off" } else { "on" });
    page.add("cas_enabled", "yes");
    page.add("auth_enabled_sasl", "no");
    let longest = if limits.streamed_above.is_some() { limits.longest } else { ITEM_SIZE_MAX };
    page.add("item_size_max", longest);
    page.add("num_threads", config.workers);
    page.add("idle_timeout", config.limits.idle.map_or(0, |idle| idle.as_secs()));
    page.add("binding_protocol", "ascii");
    page.add("flush_enabled", if config.limits.flush_all { "yes" } else { "no" });
    page.add("dump_enabled", "no");
    page.add("detail_enabled", "no");
    page.add("watch_enabled", "no");
    page.add("shutdown_command", "no");
    page.add("client_flags_size", size_of::<u32>());
    page.add("gestalt_zone", if config.zone.is_empty() { "-" } else { &config.zone });
    page.add("gestalt_coordinator", &config.coordinator);
    page.add("gestalt_node_lease_us", config.timing.node_lease_us);
    page.add("gestalt_outstanding_requests", config.limits.outstanding_requests);
    page.add("gestalt_outstanding_bytes", config.limits.outstanding_bytes);
}

fn conns(page: &mut Page, shared: &Shared) {
    let values = shared.counters();
    page.add("gestalt_listen_addr", shared.addresses.memcached);
    page.add("curr_connections", values.curr_connections);
}
