//! The links of one worker to the same worker of every other node: who is up, and whom to dial.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use types::op::{Failure, Outcome};
use types::{ClusterMap, HostId, NodeId, NodeInfo};
use wire::message::{Answer, PeerMessage};

use crate::limits::{LINK_VALUES_BYTES, REDIAL_MAX, REDIAL_MIN};
use crate::net;
use crate::node::shared::LinkSnapshot;
use crate::peers::handshake::{self, Identity};
use crate::peers::link::{self, Link, LinkEnd, Pushed};
use crate::workers::worker::Worker;

/// See the module.
#[derive(Default)]
pub(crate) struct Links {
    up: RefCell<BTreeMap<NodeId, Rc<Link>>>,
    /// Links with something to write.
    unwritten: RefCell<Vec<Rc<Link>>>,
    /// Nodes that a task keeps dialling.
    dialled: RefCell<BTreeSet<NodeId>>,
}

impl Links {
    /// Puts `message` into the next write to `to`; drops it if there is no link.
    pub(crate) fn push(&self, worker: &Worker, to: NodeId, mut message: PeerMessage) {
        let up = self.up.borrow();
        let pushed = up.get(&to).map_or(Pushed::Dropped, |link| {
            if let PeerMessage::Answer(answer) = &message {
                link.answer_guess.learn(&answer.outcome);
            }
            if link.unsent() > LINK_VALUES_BYTES {
                take_value_out(&mut message);
            }
            let pushed = link.push(worker, &message);
            if pushed == Pushed::First {
                self.unwritten.borrow_mut().push(Rc::clone(link));
            }
            pushed
        });
        match pushed {
            Pushed::Dropped => worker.counters.peer_messages_dropped.inc(),
            Pushed::First | Pushed::More => worker.counters.peer_messages_written.inc(),
        }
    }

    /// Writes what has been pushed.
    pub(crate) fn write(&self, worker: &Worker) {
        for link in self.unwritten.borrow_mut().drain(..) {
            link.write(worker);
        }
    }

    /// Closes the link to `peer`, which has sent what cannot be.
    pub(crate) fn close(&self, peer: HostId) {
        if let Some(link) = self.up.borrow().get(&peer.node).filter(|link| link.peer == peer) {
            link.close(LinkEnd::Impossible);
        }
    }

    /// Every link.
    pub(crate) fn snapshot(&self) -> Vec<LinkSnapshot> {
        let one = |link: &Rc<Link>| LinkSnapshot { peer: link.peer, unsent_bytes: link.unsent() };
        self.up.borrow().values().map(one).collect()
    }

    /// Memory of all links.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.up.borrow().values().map(|link| link.memory_bytes()).sum()
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.up.take();
        self.unwritten.take();
    }

    /// Closes links to former lives of nodes.
    fn close_stale(&self, map: &ClusterMap) {
        for link in self.up.borrow().values() {
            if map.node(link.peer.node).is_none_or(|info| info.host != link.peer) {
                link.close(LinkEnd::Replaced);
            }
        }
    }
}

/// Turns an answer with a value into a refusal: who asks for more than the link can carry must not cost it the link.
fn take_value_out(message: &mut PeerMessage) {
    if let PeerMessage::Answer(Answer { outcome, .. }) = message
        && matches!(outcome, Outcome::Hit(item) if !item.value.is_empty())
    {
        *outcome = Outcome::Failed(Failure::OutOfMemory);
    }
}

impl Worker {
    /// A link is open in both directions.
    pub(crate) fn link_up(&self, link: &Rc<Link>) {
        let now = self.clock.now();
        let before = self.links.up.borrow_mut().insert(link.peer.node, Rc::clone(link));
        let mut host = self.host.borrow_mut();
        if let Some(before) = before {
            before.close(LinkEnd::Replaced);
            host.link_down(now, before.peer);
            self.counters.links_up.dec();
        }
        host.link_up(now, link.peer);
        self.counters.links_up.inc();
        self.counters.link_ups.inc();
        tracing::info!(node = %self.shared.host.node, shard = self.shard, peer = %link.peer, "link up");
        self.pump.request();
    }

    /// A link has ended.
    pub(crate) fn link_down(&self, link: &Rc<Link>, end: LinkEnd) {
        self.counters.link_downs.inc();
        if end == LinkEnd::Overflow {
            self.counters.link_overflows.inc();
        }
        tracing::info!(node = %self.shared.host.node, shard = self.shard, peer = %link.peer, ?end, "link down");
        let mut up = self.links.up.borrow_mut();
        if up.get(&link.peer.node).is_some_and(|known| Rc::ptr_eq(known, link)) {
            up.remove(&link.peer.node);
            self.counters.links_up.dec();
            self.host.borrow_mut().link_down(self.clock.now(), link.peer);
            self.pump.request();
        }
    }

    /// The nodes of the map have changed: closes what is stale, dials what is new.
    pub(crate) fn reconcile_links(self: &Rc<Self>) {
        let host = self.host.borrow();
        let Some(map) = host.map() else { return };
        self.links.close_stale(map);
        let mut dialled = self.links.dialled.borrow_mut();
        for info in map.nodes.iter().filter(|info| self.dials(info)) {
            if dialled.insert(info.host.node) {
                tokio::task::spawn_local(keep_linked(Rc::clone(self), info.host.node));
            }
        }
    }

    /// Whether this side opens the link, and should now.
    fn dials(&self, info: &NodeInfo) -> bool {
        info.alive && info.host.node > self.shared.host.node
    }

    fn dial_target(&self, node: NodeId) -> Option<(Identity, NodeInfo)> {
        let host = self.host.borrow();
        let map = host.map()?;
        let info = map.node(node).filter(|info| self.dials(info))?;
        Some((Identity { cluster: map.cluster, host: self.shared.host }, info.clone()))
    }
}

/// Keeps a link to `node` open for as long as the map has it alive.
async fn keep_linked(worker: Rc<Worker>, node: NodeId) {
    let silence = net::silence(&worker.shared.config.timing);
    let mut pause = REDIAL_MIN;
    while let Some((me, info)) = worker.dial_target(node) {
        match handshake::dial(me, &info, worker.shard, silence).await {
            Ok(opened) => {
                pause = REDIAL_MIN;
                link::run(&worker, opened).await;
            }
            Err(error) => tracing::debug!(peer = %info.host, %error, "link not opened"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(REDIAL_MAX);
    }
    worker.links.dialled.borrow_mut().remove(&node);
}
