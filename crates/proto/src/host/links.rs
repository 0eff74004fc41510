//! Which peers a host is linked with, and what of theirs waits or is not believed.

use std::collections::{BTreeMap, BTreeSet};

use types::{GroupId, HostId, NodeId};
use wire::message::GroupMessage;

use super::early::Early;
use crate::Limits;

/// See the module.
#[derive(Default)]
pub(super) struct Links {
    up: BTreeMap<NodeId, HostId>,
    /// Peers that have sent what cannot be; their links are being closed.
    closing: BTreeSet<HostId>,
    early: Early,
}

impl Links {
    /// Whether there is a link to this very process.
    pub(super) fn has(&self, peer: HostId) -> bool {
        self.up.get(&peer.node) == Some(&peer)
    }

    /// The processes that are linked.
    pub(super) fn peers(&self) -> impl Iterator<Item = HostId> {
        self.up.values().copied()
    }

    /// A link to `peer` is up.
    pub(super) fn up(&mut self, peer: HostId) {
        self.forget(peer);
        self.up.insert(peer.node, peer);
    }

    /// The link to `peer` is down.
    pub(super) fn down(&mut self, peer: HostId) {
        self.forget(peer);
        // The link may be to a newer process of that node by now.
        if self.has(peer) {
            self.up.remove(&peer.node);
        }
    }

    /// What came on a former link is of no use any more, and what was wrong with it is forgiven.
    fn forget(&mut self, peer: HostId) {
        self.closing.remove(&peer);
        self.early.forget(peer);
    }

    /// `peer` has sent what cannot be: nothing more of it is believed until there is another link.
    pub(super) fn distrust(&mut self, peer: HostId) {
        self.closing.insert(peer);
    }

    pub(super) fn believes(&self, peer: HostId) -> bool {
        self.closing.is_empty() || !self.closing.contains(&peer)
    }

    /// A session's message came before its view: it waits, if there is room.
    pub(super) fn keep_early(&mut self, limits: &Limits, from: HostId, message: GroupMessage) {
        self.early.keep(limits, from, message);
    }

    /// What has waited for a view of `group`, in order.
    pub(super) fn take_early(&mut self, group: GroupId) -> Vec<(HostId, GroupMessage)> {
        self.early.take(group)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.early.memory_bytes()
    }
}
