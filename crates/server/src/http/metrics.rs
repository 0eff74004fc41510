//! What `/metrics` says, of a node and of a coordinator: tables, one for each thing that is looked at, and one line for each metric.
//!
//! What workers count, their table is beside the counters: [`COUNTERS`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use cluster::health::{Assessment, Fullness, slot_count};
use cluster::{Codes, PoolProtection, worst_off};
use codec::{Accelerator, Work};
use proto::{Histogram, HostLatencies, HostStats, ObjectStats};
use store::Category;
use types::op::OpKind;
use types::{ClusterMap, NamespaceId, QuotaUse};

use crate::CoordinatorStatus;
use crate::EtcdStatus;
use crate::clients::latency::RequestLatencies;
use crate::clock::Clock;
use crate::coordination::elected::Election;
use crate::exposition::{Exposition, Sample, by, metrics};
use crate::http::graphs;
use crate::http::status::{NamespaceStatus, namespaces};
use crate::node::knowledge;
use crate::node::memory::MemoryUse;
use crate::node::process::{self, Figures};
use crate::node::shared::Shared;
use crate::node::snapshot::WorkerSnapshot;
use crate::workers::counters::COUNTERS;

metrics! {
    /// Of every process of ours.
    PROCESS of clock: Clock {
        gauge gestalt_build_info "Version of the software." = by("version", [(env!("CARGO_PKG_VERSION"), true)]);
        gauge gestalt_uptime_seconds "Seconds since the start." = clock.uptime_seconds();
    }

    /// What the system counts for it, under the names that all Prometheus clients use.
    FIGURES of it: Figures {
        counter process_cpu_seconds_total "CPU time, user and system." = it.user_seconds + it.system_seconds;
        gauge process_resident_memory_bytes "Resident memory." = it.resident_bytes;
        gauge process_virtual_memory_bytes "Virtual memory." = it.virtual_bytes;
        gauge process_start_time_seconds "When the process was started, since 1970." = it.started_seconds;
        gauge process_threads "Threads." = it.threads as f64;
        gauge process_open_fds "Open file descriptors." = it.open_files;
        gauge process_max_fds "Most file descriptors that may be open." = it.max_files;
        counter gestalt_cpu_seconds_total "CPU time by mode."
            = by("mode", [("user", it.user_seconds), ("system", it.system_seconds)]);
    }

    /// Of a node as a whole.
    NODE of node: Shared {
        counter gestalt_connections_rejected_total "Client connections turned away."
            = node.rejected_connections.load(Ordering::Relaxed);
        counter gestalt_connections_displaced_total "Client connections that had sent no command when a newcomer took their place."
            = node.places.displaced();
        gauge gestalt_memory_limit_bytes "Cap on what the node holds." = node.budget.limit();
        gauge gestalt_memory_used_bytes "What the node holds."
            = by("category", Category::ALL.map(|category| (category.name(), node.budget.used(category))));
        counter gestalt_coding_total "Rows and slices of values in chunks that were combined, where an accelerator is to do it."
            = work(node).map(|work| by("place", [("accelerator", work.done), ("processor", work.left)])).unwrap_or_default();
        counter gestalt_coding_accelerated_bytes_total "Bytes of the sources of what the accelerator has combined."
            = work(node).map(|work| work.bytes);
        counter gestalt_coding_faults_total "Times that the accelerator has failed; the processor did it." = work(node).map(|work| work.faults);
        gauge gestalt_full "Whether a node has had no room in the last minute." = by("state", fullness(node));
        gauge gestalt_coordinator_connected "Whether the coordinator answers."
            = node.coordinator_connected.load(Ordering::Relaxed);
        gauge gestalt_coordinator_age_seconds "Seconds since the coordinator was heard; since the start, if it never was."
            = coordinator_age_seconds(node);
    }

    /// Where the memory of a process is.
    MEMORY of it: MemoryUse {
        gauge gestalt_memory_bytes "Where resident memory goes." = by("kind", it.kinds());
        gauge gestalt_index_entries "Entries of indexes and of their replicas."
            = by("kind", [("index", it.index_entries), ("index_replicas", it.replica_entries)]);
    }

    /// What a node's members hold and have done.
    MEMBERS of all: [WorkerSnapshot] {
        gauge gestalt_items "Items of which this node is the primary." = sum(all, |host| host.items);
        gauge gestalt_item_bytes "Bytes of these items." = sum(all, |host| host.item_bytes);
        counter gestalt_evicted_items_total "Items removed to make room." = sum(all, |host| host.evictions);
        counter gestalt_expired_items_total "Items removed after they had expired." = sum(all, |host| host.reclaimed);
        counter gestalt_refused_writes_total "Writes refused for want of room: by primaries, and values in chunks by the node that was to write them." = sum(all, |host| host.refused_writes);
        counter gestalt_released_extents_total "Extents of 1 MiB that data roles have given back."
            = sum(all, |host| host.released_extents);
        gauge gestalt_client_sessions "Sessions of native clients at primaries of this node." = sum(all, |host| host.client_sessions);
        gauge gestalt_write_results "Results of writes under sessions that are kept for clients that may ask again."
            = sum(all, |host| host.write_results);
        gauge gestalt_absent_pages "Pages that are still to be repaired." = sum(all, |host| host.absent_pages);
        counter gestalt_rebuilt_bytes_total "Bytes that were repaired, or taught to new parities." = sum(all, |host| host.rebuilt_bytes);
        gauge gestalt_to_rebuild_bytes "Bytes that are still to be repaired or taught." = sum(all, |host| host.to_rebuild_bytes);
        counter gestalt_scrub_pages_total "Parity pages that were compared with the data." = sum(all, |host| host.scrubbed_pages);
        counter gestalt_scrub_mismatches_total "Places, of up to 16 pages, at which a scrub has found something wrong."
            = sum(all, |host| host.scrub_mismatches);
        gauge gestalt_scrub_left_pages "Parity pages that the newest scrub has still to compare." = sum(all, |host| host.scrub.left_pages);
        gauge gestalt_uncommitted_records "Records that wait for acknowledgement." = sum(all, |host| host.uncommitted_records);
        gauge gestalt_waiting_requests "Requests that wait in primaries." = sum(all, |host| host.waiting_requests);
        counter gestalt_forwards_total "Requests sent on to another node." = sum(all, |host| host.forwarded);
        counter gestalt_received_forwards_total "Requests of other nodes' clients." = sum(all, |host| host.received_forwards);
        counter gestalt_impossible_messages_total "Messages of other nodes that cannot be; each has cost its sender the link."
            = sum(all, |host| host.impossible_messages);
        counter gestalt_resumed_parities_total "Evicted parities that came back with what they had." = sum(all, |host| host.resumed_parities);
        counter gestalt_resumed_bytes_total "Bytes of the records that they lacked." = sum(all, |host| host.resumed_bytes);
        counter gestalt_spared_bytes_total "Bytes that it would have taken more to build them anew." = sum(all, |host| host.spared_bytes);
        counter gestalt_accepted_losses_total "Data roles that began anew here, empty, after their loss was accepted."
            = sum(all, |host| host.accepted_losses);
        gauge gestalt_open_requests "Requests without an answer." = all.iter().map(|worker| worker.open_requests).sum::<usize>();
        gauge gestalt_client_buffer_bytes "What client connections hold." = all.iter().map(|worker| worker.buffer_bytes).sum::<usize>();
    }

    /// Values in chunks.
    OBJECTS of all: [WorkerSnapshot] {
        gauge gestalt_object_chunks "Chunks that this node holds." = objects(all, |objects| objects.chunks);
        gauge gestalt_object_chunk_bytes "Bytes of these chunks." = objects(all, |objects| objects.chunk_bytes);
        gauge gestalt_object_page_bytes "Bytes of the pages in which they lie." = objects(all, |objects| objects.page_bytes);
        gauge gestalt_object_tentative_bytes "Bytes of chunks whose objects are not known to be committed."
            = objects(all, |objects| objects.tentative_bytes);
        gauge gestalt_object_arriving_bytes "Bytes of pages of chunks that are not whole yet." = objects(all, |objects| objects.arriving_bytes);
        gauge gestalt_object_lacking_chunks "Chunks that this node is to hold and has still to get." = objects(all, |objects| objects.lacking_chunks);
        gauge gestalt_object_starved_fills "Roles whose chunks this node is to get, and has no memory for." = objects(all, |objects| objects.starved_fills);
        gauge gestalt_object_fill_window_bytes "Most bytes of cells that this node's fills ask for at once: what clients leave over."
            = objects(all, |objects| objects.fill_window_bytes);
        gauge gestalt_object_fill_asked_bytes "Bytes of cells that they have asked for and not got." = objects(all, |objects| objects.fill_asked_bytes);
        gauge gestalt_object_lost_keys "Keys whose values in chunks are lost, as far as holders and readers have found." = all.iter().map(|worker| worker.lost_keys.len()).sum::<usize>();
        gauge gestalt_object_lost_chunks "Chunks of committed objects that nobody has any more." = objects(all, |objects| objects.lost_chunks);
        gauge gestalt_object_open_ids "Objects that may still be committed by primaries of this node." = objects(all, |objects| objects.open_ids);
        gauge gestalt_object_pins "Readers that keep objects of this node's primaries." = objects(all, |objects| objects.pins);
        gauge gestalt_object_uploads "Objects that this node's clients write." = objects(all, |objects| objects.uploads);
        gauge gestalt_object_gathers "Objects that this node's clients read." = objects(all, |objects| objects.gathers);
        gauge gestalt_object_deposits "Chunks that clients put at this node." = objects(all, |objects| objects.deposits);
        gauge gestalt_object_buffer_bytes "Bytes that both have on their way." = objects(all, |objects| objects.buffer_bytes);
        counter gestalt_object_hedged_cells_total "Cells that reads asked other holders for, since one was slower than usual."
            = objects(all, |objects| objects.hedged_cells);
        counter gestalt_object_moved_stripes_total "Stripes that went to another group, since theirs had no room, lacked roles or stood still."
            = objects(all, |objects| objects.moved_stripes);
        counter gestalt_object_summed_chunks_total "Parity chunks of values written here that holders have made of products, so that this node did not send them."
            = objects(all, |objects| objects.summed_chunks);
        counter gestalt_object_unsummed_chunks_total "Parity chunks that holders were to make so, and that this node has sent after all."
            = objects(all, |objects| objects.unsummed_chunks);
        counter gestalt_object_summed_uploads_total "With --encode-by auto: values written here whose parities holders were chosen to make."
            = objects(all, |objects| objects.summed_uploads);
        counter gestalt_object_encode_trials_total "With --encode-by auto: trials of the way that was not chosen."
            = objects(all, |objects| objects.encode_trials);
        counter gestalt_object_encode_turns_total "With --encode-by auto: times that the choice was changed."
            = objects(all, |objects| objects.encode_turns);
        counter gestalt_object_wrong_sums_total "Sums of products at this node that were not what was to be put, and were not kept."
            = objects(all, |objects| objects.wrong_sums);
        gauge gestalt_object_sum_bytes "Bytes of products for parities at this node, added up as far as they have come." = objects(all, |objects| objects.sum_bytes);
        counter gestalt_object_rewritten_values_total "Values in chunks that this node's primaries have given to another pool, and that were written there."
            = objects(all, |objects| objects.rewritten_values);
        counter gestalt_object_renamed_uploads_total "Times that a value on its way into chunks got another id, for its owner was another one."
            = objects(all, |objects| objects.renamed_uploads);
    }

    /// Whose items and chunks these are.
    NAMESPACES of all: [(String, NamespaceStatus)] {
        gauge gestalt_namespace_items "Items of which this node is the primary, by namespace; '#' and a number for one that is gone."
            = by("namespace", all.iter().map(|(name, known)| (name.clone(), known.items)));
        gauge gestalt_namespace_leaving_items "Items among them that are still to go to the pool that their namespace moves to."
            = by("namespace", all.iter().map(|(name, known)| (name.clone(), known.leaving_items)));
        gauge gestalt_namespace_slot_bytes "Bytes of their slots, parities not included."
            = by("namespace", all.iter().map(|(name, known)| (name.clone(), known.slot_bytes)));
        gauge gestalt_namespace_chunk_bytes "Bytes of the pages of its chunks at this node, of data and parities."
            = by("namespace", all.iter().map(|(name, known)| (name.clone(), known.chunk_bytes)));
    }

    /// How long requests take.
    LATENCIES of it: Latencies {
        histogram gestalt_request_seconds
            "From when a command was understood until its answer was known, of this node's clients; each key of a get."
            = by("operation", it.requests.by_operation().filter(|(_, histogram)| histogram.count() > 0));
        histogram gestalt_request_stage_seconds
            "What requests waited for: their turn (queue), another node (network), all parities (parities)."
            = it.by_stage();
    }

    /// The way to a coordinator that is elected.
    ETCD of etcd: EtcdStatus {
        gauge gestalt_etcd_reachable "Whether etcd answers." = etcd.reachable;
        gauge gestalt_etcd_outage_seconds "For how long etcd has not answered." = etcd.unreachable_seconds.unwrap_or(0);
        gauge gestalt_etcd_bad_record "Whether etcd has a record that cannot be." = etcd.bad_key.is_some();
        gauge gestalt_coordinator_presides "Whether this node has the coordinator." = etcd.presides;
    }

    /// What this very process can tell, however long a coordinator has been away.
    HEALTH of found: Assessment {
        gauge gestalt_unavailable_slots "Hash slots that nobody serves, as far as this process can tell, and that are not lost."
            = slot_count(&found.unavailable_slots);
        gauge gestalt_silent_nodes "Nodes that do not answer this process; those that have left are not counted."
            = found.silent_nodes.len();
    }

    /// What a coordinator has decided.
    CLUSTER of map: ClusterMap {
        gauge gestalt_nodes "Nodes of the cluster." = by("state", [("alive", alive(map)), ("dead", map.nodes.len() - alive(map))]);
        gauge gestalt_draining_nodes "Nodes that are to become empty." = map.layout.draining().count();
        gauge gestalt_repair_paused "Whether operators have paused repair." = map.layout.repair.paused;
        gauge gestalt_map_version "Version of the cluster map." = map.version;
        gauge gestalt_groups "Coding groups." = map.groups.len();
        gauge gestalt_pools "Pools." = map.catalog.pools.len();
        gauge gestalt_namespaces "Namespaces." = map.catalog.namespaces.len();
        gauge gestalt_lost_slots "Hash slots whose items are lost." = slot_count(&map.lost_slots());
    }

    /// How well the pools are protected.
    PROTECTION of pools: [PoolProtection] {
        gauge gestalt_protection_asked "Losses that every group of the worst-off pool is to survive."
            = worst_off(pools).map_or(0, |pool| pool.asked);
        gauge gestalt_protection_achieved "Losses that every group of that pool would survive now."
            = worst_off(pools).map_or(0, |pool| pool.achieved);
        gauge gestalt_pool_protection_asked "Losses that every group of the pool is to survive."
            = by("pool", pools.iter().map(|pool| (pool.pool.to_string(), pool.asked)));
        gauge gestalt_pool_protection_achieved "Losses that every group of the pool would survive now."
            = by("pool", pools.iter().map(|pool| (pool.pool.to_string(), pool.achieved)));
    }

    /// Of a process that has the coordinator of others.
    COORDINATOR of it: CoordinatorStatus {
        gauge gestalt_coordinator_registered_nodes "Nodes that have registered." = it.registered.len();
        gauge gestalt_coordinator_connected_nodes "Nodes that are connected." = it.connected.len();
        gauge gestalt_coordinator_expected_nodes "Nodes that the cluster forms with." = it.expected;
        counter gestalt_coordinator_malformed_total "Connections closed for bytes that are no message of a node." = it.malformed_frames;
        counter gestalt_coordinator_impossible_messages_total "Connections closed for a message that cannot be." = it.impossible_messages;
    }

    /// Of those with a quota, whose.
    QUOTAS of all: [(String, QuotaUse)] {
        gauge gestalt_namespace_share_bytes "What of a namespace's quota this node has for its primaries and its chunks; moves between nodes."
            = by("namespace", all.iter().map(|(name, known)| (name.clone(), known.share_bytes)));
        gauge gestalt_namespace_charged_bytes "What of it they take, with what is on its way: bytes of slots, and of chunks what of them is data."
            = by("namespace", all.iter().map(|(name, known)| (name.clone(), known.used_bytes)));
    }

    /// Of the nodes that it does not hear, how many there are.
    SILENCE of count: usize {
        gauge gestalt_coordinator_silent_nodes "Nodes that have not been heard for a lease." = *count;
    }
}

/// What the items of each namespace take, by its name; by its number where it is gone, or not heard of yet.
fn named(shared: &Shared, snapshots: &[WorkerSnapshot]) -> Vec<(String, NamespaceStatus)> {
    let map = shared.map();
    let name = |known: NamespaceStatus| (name_of(map.as_deref(), known.namespace), known);
    namespaces(snapshots).into_iter().map(name).collect()
}

/// What an accelerator has done, if there is one.
fn work(shared: &Shared) -> Option<Work> {
    shared.config.coder.accelerator().map(Accelerator::work)
}

/// What it may take of the quotas of namespaces, likewise.
fn shares(shared: &Shared) -> Vec<(String, QuotaUse)> {
    let map = shared.map();
    let uses = shared.quotas.report().map(|report| report.uses).unwrap_or_default();
    uses.into_iter().map(|known| (name_of(map.as_deref(), known.namespace), known)).collect()
}

fn name_of(map: Option<&ClusterMap>, namespace: NamespaceId) -> String {
    let found = map.and_then(|map| map.catalog.namespace(namespace));
    found.map_or_else(|| format!("#{}", namespace.0), |namespace| namespace.name.to_string())
}

/// The page of a node.
pub(crate) fn of_node(shared: &Shared, snapshots: &[WorkerSnapshot]) -> String {
    let mut page = of_process(&shared.clock);
    page.table(COUNTERS, &shared.all_counters());
    page.table(NODE, shared);
    page.table(LATENCIES, &Latencies::of(snapshots));
    page.table(MEMORY, &MemoryUse::of(snapshots));
    page.table(MEMBERS, snapshots);
    page.table(OBJECTS, snapshots);
    graphs::add_to(&mut page, snapshots);
    page.table(NAMESPACES, &named(shared, snapshots));
    page.table(QUOTAS, &shares(shared));
    if let Some(etcd) = shared.election.as_ref().map(Election::status) {
        page.table(ETCD, &etcd);
    }
    if let Some(map) = shared.map() {
        page.table(HEALTH, &knowledge::assess(shared, &map, snapshots));
        // What a coordinator has said long ago is no measurement.
        if knowledge::age(shared).is_fresh() {
            page.table(CLUSTER, &*map);
            page.table(PROTECTION, &protections(&map)[..]);
        }
    }
    page.finish()
}

/// The page of a coordinator.
pub(crate) fn of_coordinator(status: &CoordinatorStatus, clock: &Clock) -> String {
    let mut page = of_process(clock);
    page.table(COORDINATOR, status);
    let silences = knowledge::silences(status, clock.time());
    page.table(SILENCE, &silences.filter(|(_, us)| knowledge::is_silent(status, *us)).count());
    if let Some(map) = &status.map {
        page.table(HEALTH, &knowledge::assess_at_coordinator(status, map, clock.time()));
        page.table(CLUSTER, &**map);
        page.table(PROTECTION, &protections(map)[..]);
    }
    page.finish()
}

fn of_process(clock: &Clock) -> Exposition {
    let mut page = Exposition::default();
    page.table(PROCESS, clock);
    if let Some(figures) = process::figures() {
        page.table(FIGURES, &figures);
    }
    page
}

fn sum(workers: &[WorkerSnapshot], of: fn(&HostStats) -> u64) -> u64 {
    workers.iter().map(|worker| of(&worker.host)).sum()
}

fn objects(workers: &[WorkerSnapshot], of: fn(&ObjectStats) -> u64) -> u64 {
    workers.iter().map(|worker| of(&worker.host.objects)).sum()
}

/// Whether clients find no room.
fn fullness(node: &Shared) -> [(&'static str, bool); 2] {
    let found = knowledge::fullness(node);
    [("evicting", found == Fullness::Evicting), ("refusing", found == Fullness::Refusing)]
}

fn coordinator_age_seconds(node: &Shared) -> f64 {
    let heard = knowledge::age(node).coordinator_us.map(knowledge::seconds);
    heard.unwrap_or_else(|| Duration::from_secs(node.clock.uptime_seconds()).as_secs_f64())
}

fn protections(map: &ClusterMap) -> Vec<PoolProtection> {
    Codes::of(&map.catalog).protections(map, &[])
}

fn alive(map: &ClusterMap) -> usize {
    map.nodes.iter().filter(|info| info.alive).count()
}

/// Of all workers. What has not happened yet has no histogram.
#[derive(Default)]
struct Latencies {
    requests: RequestLatencies,
    waits: HostLatencies,
}

impl Latencies {
    fn of(snapshots: &[WorkerSnapshot]) -> Self {
        let mut all = Self::default();
        for worker in snapshots {
            all.requests.add(&worker.requests);
            all.waits.network.add(&worker.waits.network);
            all.waits.parities.add(&worker.waits.parities);
        }
        all
    }

    fn by_stage(&self) -> Vec<Sample> {
        let stages = [
            ("queue", &self.requests.queue),
            ("network", &self.waits.network),
            ("parities", &self.waits.parities),
        ];
        let sample = |stage: &'static str, kind: OpKind, histogram: &Histogram| Sample {
            labels: vec![("operation", kind.name().into()), ("stage", stage.into())],
            value: histogram.into(),
        };
        let kinds = stages.into_iter().flat_map(|(stage, kinds)| kinds.iter().map(move |it| (stage, it)));
        let happened = kinds.filter(|(_, (_, histogram))| histogram.count() > 0);
        happened.map(|(stage, (kind, histogram))| sample(stage, kind, histogram)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::exposition::Metric;

    fn heads<S: ?Sized>(table: &[Metric<S>]) -> Vec<(&'static str, &'static str)> {
        table.iter().map(|metric| (metric.name, metric.help)).collect()
    }

    #[test]
    fn every_metric_has_a_name_of_its_own_and_a_sentence() {
        let node = [
            heads(COUNTERS),
            heads(NODE),
            heads(LATENCIES),
            heads(MEMORY),
            heads(MEMBERS),
            heads(OBJECTS),
            heads(ETCD),
        ];
        let both = [heads(PROCESS), heads(FIGURES), heads(HEALTH), heads(CLUSTER), heads(PROTECTION)];
        let coordinator = [heads(COORDINATOR), heads(SILENCE)];
        let all = [node.concat(), both.concat(), coordinator.concat()].concat();
        let names: BTreeSet<_> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|(_, help)| help.ends_with('.')));
    }
}
