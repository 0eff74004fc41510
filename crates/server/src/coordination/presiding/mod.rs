//! A coordinator at work: `proto::Coordinator` driven from nodes' connections and a timer. The embedded coordinator is one
//! for as long as its process lives, an elected one for as long as it leads.
//!
//! What the state machine wants done is done in order. Where others may follow, a record has to be written before
//! anything after it is done: then it waits here for [`Presiding::written`].

mod serving;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use proto::{Coordinator, CoordinatorAction, Timing};
use tokio::sync::{Notify, watch};
use types::{AdminReply, AdminRequest, ClusterMap, HostId, Incarnation, NodeId, Time};
use wire::message::FromCoordinator;
use wire::record::Record;

use crate::CoordinatorStatus;
use crate::clock::Clock;
use crate::coordination::frames::FrameBuffer;
use crate::limits::{
    COORDINATOR_HELD_ACTIONS, COORDINATOR_LINK_BYTES, COORDINATOR_TICK_PAUSE_US, HANDSHAKES_AT_ONCE,
};
use crate::places::Places;

/// See the module.
pub(crate) struct Presiding {
    pub clock: Clock,
    timing: Timing,
    coordinator: RefCell<Coordinator>,
    connections: RefCell<BTreeMap<HostId, Rc<NodeConnection>>>,
    /// What is to be done, in order; begins with a record unless it is empty.
    held: RefCell<VecDeque<Held>>,
    records: Records,
    /// When the state machine wants to be asked.
    deadline: Cell<Time>,
    /// That has come nearer, or there is nothing more to ask it.
    nearer: Notify,
    status: watch::Sender<CoordinatorStatus>,
    /// How many records the nodes keep.
    in_force: watch::Sender<u64>,
    /// Why it is over.
    over: watch::Sender<Option<String>>,
    /// Connections, registered or not.
    open: Cell<usize>,
    /// Of those that have not registered yet.
    handshakes: Arc<Places>,
}

/// What becomes of records.
pub(crate) enum Records {
    /// The nodes keep them: the state machine sees to that.
    Kept,
    /// They are written, by whoever waits here.
    Written {
        /// There is something to write.
        due: Notify,
        /// When others may have taken over, unless it is put off, by the clock of the leases.
        valid_until: Cell<Time>,
    },
}

/// What waits for a record to be written, and the record.
enum Held {
    Record(Record),
    Send { to: HostId, message: FromCoordinator },
}

/// The sending side of one node's connection.
struct NodeConnection {
    out: RefCell<FrameBuffer>,
    wake: Notify,
}

/// Who the coordinator is in the headers of its frames.
const COORDINATOR: HostId = HostId { node: NodeId(u16::MAX), incarnation: Incarnation(0) };

impl Presiding {
    pub(crate) fn new(
        coordinator: Coordinator,
        timing: Timing,
        clock: Clock,
        records: Records,
        status: watch::Sender<CoordinatorStatus>,
    ) -> Rc<Self> {
        Rc::new(Self {
            clock,
            timing,
            coordinator: RefCell::new(coordinator),
            connections: RefCell::default(),
            held: RefCell::default(),
            records,
            deadline: Cell::new(Time(0)),
            nearer: Notify::new(),
            status,
            in_force: watch::Sender::new(0),
            over: watch::Sender::new(None),
            open: Cell::new(0),
            handshakes: Places::new(HANDSHAKES_AT_ONCE),
        })
    }

    /// Lets the state machine act, then does what it wants.
    pub(crate) fn drive<A>(&self, act: impl FnOnce(&mut Coordinator, proto::Now) -> A) -> Option<A> {
        // Others may have taken over while this process stood still: to be known before anything is decided.
        self.check_validity();
        if self.is_over() {
            return None;
        }
        let mut coordinator = self.coordinator.borrow_mut();
        let result = act(&mut coordinator, self.clock.now());
        coordinator.open_pools();
        // Messages go through the queue even if it is empty, so none overtakes a record that it follows from.
        while let Some(action) = coordinator.poll_action() {
            match action {
                CoordinatorAction::Send { to, message } => self.hold(Held::Send { to, message }),
                CoordinatorAction::Close { peer, .. } => self.close(peer),
                CoordinatorAction::Record(record) => self.record(record),
                CoordinatorAction::Resign => self.end("it has resigned"),
            }
        }
        self.release();
        self.publish(&coordinator);
        self.in_force.send_replace(coordinator.kept().1);
        let deadline = coordinator.next_deadline();
        // A later one needs no notice: the timer comes too early then, and looks again.
        if deadline < self.deadline.replace(deadline) {
            self.nearer.notify_one();
        }
        Some(result)
    }

    /// Ends the connection of `peer`, which has sent what cannot be.
    fn close(&self, peer: HostId) {
        self.count(|status| status.impossible_messages += 1);
        let connection = self.connections.borrow_mut().remove(&peer);
        if let Some(connection) = connection {
            connection.wake.notify_one();
        }
    }

    fn count(&self, add: impl FnOnce(&mut CoordinatorStatus)) {
        self.status.send_if_modified(|status| {
            add(status);
            false
        });
    }

    /// What an operator asks of the embedded coordinator. Answered when what follows from it is in force.
    pub(crate) async fn administer(&self, request: &AdminRequest) -> Option<AdminReply> {
        let reply = self.drive(|coordinator, now| coordinator.administer(now, request))?;
        // All records made so far, its own among them; they come into force in order.
        let (position, _) = self.coordinator.borrow().kept();
        let mut in_force = self.in_force.subscribe();
        in_force.wait_for(|in_force| *in_force >= position).await.ok().map(|_| reply)
    }

    /// It decides and says nothing more.
    pub(crate) fn end(&self, reason: &str) {
        // The first reason is the true one: the others follow from it.
        self.over.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert_with(|| reason.to_owned());
            is_first
        });
        self.nearer.notify_one();
    }

    fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Returns when it is over: why.
    pub(crate) async fn ended(&self) -> String {
        let mut over = self.over.subscribe();
        let reason = over.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }

    /// Others may have taken over from `until` on.
    pub(crate) fn extend(&self, until: Time) {
        if let Records::Written { valid_until, .. } = &self.records {
            valid_until.set(until);
        }
    }

    fn check_validity(&self) {
        if let Records::Written { valid_until, .. } = &self.records
            && self.clock.time() >= valid_until.get()
        {
            self.end("its lease at etcd has run out");
        }
    }

    fn record(&self, record: Record) {
        if let Records::Written { due, .. } = &self.records {
            self.hold(Held::Record(record));
            due.notify_one();
        }
    }

    fn hold(&self, action: Held) {
        let mut held = self.held.borrow_mut();
        held.push_back(action);
        if held.len() > COORDINATOR_HELD_ACTIONS {
            self.end("too much waits for its records to be written");
        }
    }

    /// Returns when there are records to be written.
    pub(crate) async fn records_due(&self) {
        let Records::Written { due, .. } = &self.records else { return std::future::pending().await };
        // In a loop: the notice may be of records that have been written since.
        while !self.has_records() {
            due.notified().await;
        }
    }

    /// Whether there are records to be written.
    pub(crate) fn has_records(&self) -> bool {
        self.held.borrow().iter().any(|held| matches!(held, Held::Record(_)))
    }

    /// Shows the records that are to be written to `take`, in order, until it has enough.
    pub(crate) fn look_at_records(&self, mut take: impl FnMut(&Record) -> bool) {
        for held in &*self.held.borrow() {
            if let Held::Record(record) = held
                && !take(record)
            {
                return;
            }
        }
    }

    /// The first `count` records are written: what waited only for them is done.
    pub(crate) fn written(&self, count: usize) {
        let mut left = count;
        while left > 0 {
            let Some(action) = self.held.borrow_mut().pop_front() else { break };
            match action {
                Held::Record(_) => left -= 1,
                Held::Send { to, message } => self.send(to, &message),
            }
        }
        self.release();
    }

    /// Does what waits for no record.
    fn release(&self) {
        loop {
            let mut held = self.held.borrow_mut();
            let Some(Held::Send { to, message }) =
                held.pop_front_if(|held| matches!(held, Held::Send { .. }))
            else {
                return;
            };
            drop(held);
            self.send(to, &message);
        }
    }

    fn send(&self, to: HostId, message: &FromCoordinator) {
        let mut connections = self.connections.borrow_mut();
        // Who is not connected is told what it needs when it registers.
        let Some(connection) = connections.get(&to) else { return };
        let mut out = connection.out.borrow_mut();
        out.push(message);
        connection.wake.notify_one();
        if out.is_overdue(COORDINATOR_LINK_BYTES) {
            drop(out);
            tracing::warn!(%to, "node does not read: connection dropped");
            connections.remove(&to);
        }
    }

    fn publish(&self, coordinator: &Coordinator) {
        // Nobody looks at that of an elected coordinator: `/status` is its node's there.
        if self.status.receiver_count() == 0 {
            return;
        }
        self.status.send_if_modified(|status| {
            let version = |map: Option<&ClusterMap>| map.map(|map| map.version);
            let map_changed = version(status.map.as_deref()) != version(coordinator.map());
            if map_changed {
                status.map = coordinator.map().cloned().map(Arc::new);
            }
            status.gathered = coordinator.gathered();
            status.forming = coordinator.forming();
            let registered: Vec<NodeId> = coordinator.registered().map(|info| info.host.node).collect();
            let connected: Vec<HostId> = self.connections.borrow().keys().copied().collect();
            // Loads and times change with every heartbeat: they are kept and wake nobody.
            let changed = map_changed || registered != status.registered || connected != status.connected;
            status.loads = coordinator.loads().collect();
            status.heard = coordinator.last_heard().collect();
            status.presided = coordinator.presided();
            (status.registered, status.connected) = (registered, connected);
            changed
        });
    }

    /// Ticks at every deadline, for as long as it presides.
    pub(crate) async fn tick(self: Rc<Self>) {
        while self.drive(|coordinator, now| coordinator.tick(now)).is_some() {
            let soonest = self.clock.time() + COORDINATOR_TICK_PAUSE_US;
            self.wait_for_deadline(soonest).await;
        }
    }

    /// Returns when the state machine is to be asked, at `soonest`, or when it is over.
    async fn wait_for_deadline(&self, soonest: Time) {
        while !self.is_over() {
            let instant = self.clock.instant(self.next_look().max(soonest));
            let due = async {
                match instant {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => return,
                () = self.nearer.notified() => {}
            }
        }
    }

    /// The next deadline; at the latest, when others may have taken over: whether they have is seen whenever it is driven.
    fn next_look(&self) -> Time {
        let deadline = self.deadline.get();
        match &self.records {
            Records::Kept => deadline,
            Records::Written { valid_until, .. } => deadline.min(valid_until.get()),
        }
    }

    /// Ends all connections of nodes.
    pub(crate) fn hang_up(&self) {
        self.connections.take();
    }
}
