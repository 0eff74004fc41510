//! Links come and go: who is dialled, and what the worker is told.

use std::rc::Rc;

use types::{NodeId, NodeInfo};

use crate::limits::{REDIAL_MAX, REDIAL_MIN};
use crate::peers::handshake::{self, Identity};
use crate::peers::incoming;
use crate::peers::link::{Link, LinkEnd};
use crate::transport::Tuning;
use crate::workers::worker::Worker;

impl Worker {
    /// A link is open in both directions.
    pub(crate) fn link_up(&self, link: &Rc<Link>) {
        let now = self.clock.now();
        let before = self.links.insert(link);
        let mut host = self.host.borrow_mut();
        if let Some(before) = before {
            before.close(LinkEnd::Replaced);
            // `link_up` does not see to requests that were forwarded over the old link: nobody would answer them.
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
        // One that was replaced is none of the host's any more: it has been told, and a newer link is up.
        if self.links.remove(link) {
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
        for info in map.nodes.iter().filter(|info| self.dials(info)) {
            // A task that dials already looks at the map itself, before every attempt.
            if self.links.begin_to_dial(info.host.node) {
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
    let tuning = Tuning::of_peers(&worker.shared.config.timing);
    let mut pause = REDIAL_MIN;
    while let Some((me, info)) = worker.dial_target(node) {
        match handshake::dial(me, &info, worker.shard, tuning).await {
            Ok(opened) => {
                pause = REDIAL_MIN;
                incoming::run(&worker, opened).await;
            }
            Err(error) => tracing::debug!(peer = %info.host, %error, "link not opened"),
        }
        // Also after a link that stood: a peer that ends each one at once must not be dialled in a loop.
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(REDIAL_MAX);
    }
    // In one step with the look at the map: a map that has the node again finds nobody dialling.
    worker.links.end_dialling(node);
}
