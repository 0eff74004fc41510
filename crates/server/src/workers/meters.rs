//! What a worker tells the other threads of itself.

use std::rc::Rc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::HostStats;

use crate::workers::worker::Worker;

/// Says how repair goes on and whether there is room, for the next heartbeat.
pub(super) async fn report_repair(worker: Rc<Worker>) {
    // The runtime refuses an interval of 0, and its timers are no finer than this.
    let heartbeat = Duration::from_micros(worker.shared.config.timing.heartbeat_us.max(1000));
    let mut ticks = tokio::time::interval(heartbeat);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut before = HostStats::default();
    loop {
        ticks.tick().await;
        let stats = worker.host.borrow().stats();
        report_service(&worker, &before, &stats);
        before = stats;
        worker.face().rebuilt_bytes.store(stats.rebuilt_bytes, Ordering::Relaxed);
        worker.face().to_rebuild_bytes.store(stats.to_rebuild_bytes, Ordering::Relaxed);
        let scrub = (stats.scrub, stats.scrubbed_pages);
        *worker.face().scrub.lock().unwrap_or_else(PoisonError::into_inner) = scrub;
    }
}

/// Says what has happened since `before`.
fn report_service(worker: &Worker, before: &HostStats, stats: &HostStats) {
    let (now, face) = (worker.clock.now().time, worker.face());
    let happened = [
        (&face.evicted_at, stats.evictions > before.evictions),
        (&face.refused_at, stats.refused_writes > before.refused_writes),
    ];
    for (at, _) in happened.into_iter().filter(|(_, happened)| *happened) {
        at.store(now.0, Ordering::Relaxed);
    }
    face.note_service(worker.host.borrow().serves_some(now), now);
}
