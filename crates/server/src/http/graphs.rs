//! What `/metrics` says of coding graphs.

use graph::{Primitive, PrimitiveCounters, Scheme};
use proto::{GraphStats, OrderStats};

use crate::exposition::{Exposition, Sample, by, metrics};
use crate::node::snapshot::WorkerSnapshot;

metrics! {
    /// Coding graphs: what steps here have done, and what this node has had made by others.
    GRAPHS of it: GraphStats {
        counter gestalt_graph_steps_total "Steps of graphs that were begun here." = steps(it, |steps| steps.started);
        counter gestalt_graph_received_slices_total "Slices that came along edges of graphs." = steps(it, |steps| steps.in_slices);
        counter gestalt_graph_received_bytes_total "Bytes of them." = steps(it, |steps| steps.in_bytes);
        counter gestalt_graph_sent_slices_total "Slices that went along edges of graphs." = steps(it, |steps| steps.out_slices);
        counter gestalt_graph_sent_bytes_total "Bytes of them." = steps(it, |steps| steps.out_bytes);
        counter gestalt_graph_combined_bytes_total "Bytes that were multiplied and added up." = steps(it, |steps| steps.combined_bytes);
        counter gestalt_graph_refused_total "Graphs that this node refused to take part in." = it.steps.refused;
        counter gestalt_graph_failed_total "Graphs that failed here." = it.steps.failed;
        counter gestalt_graph_begun_anew_total "Graphs for repair that were begun anew, round a node that held them up." = it.begun_anew;
        counter gestalt_graph_zone_bytes_total "Bytes of slices that went from here to nodes in other zones." = it.zone_bytes;
        counter gestalt_graph_spoilt_total "Runs that made something else than was wanted of them." = it.spoilt;
        gauge gestalt_graph_runs "Graphs that this node takes part in." = it.load.runs;
        gauge gestalt_graph_reserved_bytes "Memory that is reserved for them." = it.load.reserved_bytes;
        gauge gestalt_graph_held_bytes "Bytes of slices that have come and are not combined yet." = it.load.held_bytes;
        counter gestalt_graph_reads_total "Parts of lost chunks that graphs have made for readers of this node." = it.reads.made;
        counter gestalt_graph_reads_left_total "Those that were begun by a graph and read cell by cell." = it.reads.left;
        counter gestalt_graph_orders_total "Lists of chunks that this node has had made by graphs." = orders(it, |orders| orders.made);
        counter gestalt_graph_order_failures_total "Lists that no graph could make." = orders(it, |orders| orders.failed);
        counter gestalt_graph_made_bytes_total "Bytes of the chunks that were made." = orders(it, |orders| orders.made_bytes);
        counter gestalt_graph_seconds_total "How long that took." = seconds(it, |orders| orders.made_us);
        counter gestalt_graph_predicted_seconds_total "How long it should have taken, by the model." = seconds(it, |orders| orders.predicted_us);
    }
}

/// Adds them to a page.
pub(super) fn add_to(page: &mut Exposition, snapshots: &[WorkerSnapshot]) {
    page.table(GRAPHS, &of_workers(snapshots));
}

fn of_workers(snapshots: &[WorkerSnapshot]) -> GraphStats {
    snapshots.iter().fold(GraphStats::default(), |sum, worker| sum.plus(&worker.graphs))
}

fn steps(stats: &GraphStats, of: fn(&PrimitiveCounters) -> u64) -> Vec<Sample> {
    by("primitive", Primitive::ALL.map(|primitive| (primitive.name(), of(stats.steps.of(primitive)))))
}

/// Schemes that graphs are laid out by: the choice between them is none of them.
fn orders(stats: &GraphStats, of: fn(&OrderStats) -> u64) -> Vec<Sample> {
    by("scheme", Scheme::DECODING.iter().map(|scheme| (scheme.name(), of(&stats.orders[*scheme as usize]))))
}

fn seconds(stats: &GraphStats, of: fn(&OrderStats) -> u64) -> Vec<Sample> {
    let seconds = |scheme: &Scheme| of(&stats.orders[*scheme as usize]) as f64 / 1e6;
    by("scheme", Scheme::DECODING.iter().map(|scheme| (scheme.name(), seconds(scheme))))
}
