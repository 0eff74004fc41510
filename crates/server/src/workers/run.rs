//! A worker's thread: its runtime, and the tasks on it.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::Receiver;
use wire::message::FromCoordinator;

use crate::NodeExit;
use crate::clients::client::Overdue;
use crate::clients::connection;
use crate::clients::native;
use crate::limits::SWEEP_INTERVAL;
use crate::node::shared::{AcceptedLink, ClientSocket, Door, Errand, Shared};
use crate::peers::handshake::Opened;
use crate::peers::incoming;
use crate::workers::crossings::{Asking, Batch, Crossing, Crossings};
use crate::workers::worker::Worker;
use crate::workers::{cycle, meters};

/// What a worker's thread gets from those who start it.
pub(crate) struct Inbox {
    pub errands: Receiver<Errand>,
    pub coordinator: Receiver<FromCoordinator>,
    pub crossings: (Crossings, Receiver<Batch>),
}

/// The runtime of a worker, on the thread that calls.
pub(crate) fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Runs a worker on this thread until the node ends.
pub(crate) fn run(runtime: &LocalRuntime, shard: u16, shared: Arc<Shared>, inbox: Inbox) {
    shared.config.scheduling.apply();
    let (crossings, batches) = inbox.crossings;
    let worker = Rc::new(Worker::new(shard, shared, crossings));
    runtime.block_on(async {
        tokio::task::spawn_local(cycle::run(Rc::clone(&worker)));
        tokio::task::spawn_local(sweep(Rc::clone(&worker)));
        tokio::task::spawn_local(meters::report_repair(Rc::clone(&worker)));
        tokio::task::spawn_local(take_batches(Rc::clone(&worker), batches));
        tokio::task::spawn_local(take_coordinator(Rc::clone(&worker), inbox.coordinator));
        tokio::task::spawn_local(take_errands(Rc::clone(&worker), inbox.errands));
        worker.shared.ended().await;
    });
    worker.clear();
}

/// Takes what the threads that accept connections, or ask questions, have for this worker.
async fn take_errands(worker: Rc<Worker>, mut errands: Receiver<Errand>) {
    while let Some(errand) = errands.recv().await {
        match errand {
            Errand::Client(socket) => {
                drop(tokio::task::spawn_local(serve_client(Rc::clone(&worker), socket)))
            }
            Errand::Link(link) => drop(tokio::task::spawn_local(serve_link(Rc::clone(&worker), link))),
            Errand::Snapshot(asker) => drop(asker.send(worker.snapshot())),
            Errand::Classes(asker) => drop(asker.send(worker.host.borrow().classes())),
            Errand::Probe(bytes, asker) => {
                let now = worker.clock.now();
                let is_begun = worker.host.borrow_mut().streams(now).probe_links(bytes);
                // Who asked may have gone.
                let _ = asker.send(is_begun);
                worker.pump.request();
            }
        }
    }
}

async fn serve_client(worker: Rc<Worker>, socket: ClientSocket) {
    let ClientSocket { stream, place, door } = socket;
    let stream = match stream.attach() {
        Ok(stream) => stream.split(),
        Err(error) => return tracing::debug!(%error, "client not served"),
    };
    match door {
        Door::Memcached(binding) => {
            if binding.is_some() {
                worker.first_map().await;
            }
            connection::serve(worker, stream, place, binding).await;
        }
        Door::Native => native::serve(worker, stream, place).await,
    }
}

async fn serve_link(worker: Rc<Worker>, link: Box<AcceptedLink>) {
    let AcceptedLink { peer, stream, encoder, decoder, input } = *link;
    match stream.attach() {
        Ok(stream) => {
            incoming::run(&worker, Opened { peer, stream, encoder, decoder, input }).await;
        }
        Err(error) => tracing::debug!(%error, %peer, "link not opened"),
    }
}

async fn take_coordinator(worker: Rc<Worker>, mut messages: Receiver<FromCoordinator>) {
    while let Some(message) = messages.recv().await {
        // Views say who serves what; which nodes there are to be linked to, only a map or its changes.
        let nodes_changed = match &message {
            FromCoordinator::Map(_) => true,
            FromCoordinator::Changes(changes) => !changes.nodes.is_empty() || !changes.gone.is_empty(),
            _ => false,
        };
        worker.host.borrow_mut().handle_coordinator(worker.clock.now(), message);
        if nodes_changed {
            worker.reconcile_links();
        }
        // What the host has, not what has come: it does not take a map that is older.
        let version = worker.host.borrow().map().map_or(0, |map| map.version);
        worker.face().map_version.store(version, Ordering::Relaxed);
        worker.map_came.notify_waiters();
        worker.pump.request();
    }
}

/// Takes what other workers ask and answer.
async fn take_batches(worker: Rc<Worker>, mut batches: Receiver<Batch>) {
    while let Some((shard, batch)) = batches.recv().await {
        let now = worker.clock.now();
        for crossing in batch {
            match crossing {
                Crossing::Answer { asker, outcome } => {
                    // Also if the connection has ended: the bound is on what the other worker has in hand.
                    worker.crossings.answered(shard);
                    worker.reply(now, asker, outcome);
                }
                Crossing::Ask(Asking { asker, place, asked, request }) => {
                    worker.stopwatch.queued(request.op.kind(), asked, now.time);
                    if let Some(outcome) = worker.submit_here(now, asker, place, request) {
                        worker.crossings.answer(asker, outcome);
                    }
                }
                Crossing::Order { asker, order } => {
                    if let Some(news) = worker.order_here(now, asker, order) {
                        worker.crossings.tell(asker, news);
                    }
                }
                Crossing::News { asker, news } => worker.tell(asker, news),
            }
        }
        worker.pump.request();
    }
}

/// Closes connections whose deadlines have passed, and gives back memory.
async fn sweep(worker: Rc<Worker>) {
    let mut ticks = tokio::time::interval(sweep_interval(&worker));
    loop {
        ticks.tick().await;
        let now = worker.clock.now();
        let pressed = !worker.gate.is_open();
        for connection in worker.connections.borrow().iter() {
            if let Some(overdue) = connection.overdue(&worker, now, pressed) {
                match overdue {
                    Overdue::Idle => worker.counters.idle_kicks.inc(),
                    Overdue::HalfSent => worker.counters.half_sent_kicks.inc(),
                    Overdue::Unread => worker.counters.unread_kicks.inc(),
                }
                // It is only told to end: its own task takes it off the list, which is being walked here.
                connection.close(&worker, overdue);
            }
        }
        worker.gate.trim();
    }
}

/// Often enough for the shortest of the deadlines.
fn sweep_interval(worker: &Worker) -> Duration {
    let limits = &worker.shared.config.limits;
    // So a deadline is noticed late by a quarter of the shortest one; and the runtime refuses an interval of 0.
    let shortest =
        worker.longest_silence_within(true).min(limits.unread).min(limits.idle.unwrap_or(Duration::MAX));
    SWEEP_INTERVAL.min(shortest / 4).max(Duration::from_millis(1))
}

/// Says that a thread has ended, however it did.
pub(crate) struct ThreadGuard {
    pub shared: Arc<Shared>,
    pub what: &'static str,
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        // Without effect in a node that was told to end before: the first reason counts.
        self.shared.end(NodeExit::Crashed(self.what));
    }
}
