//! The links of one worker to the same worker of every other node: who is up, and who is being dialled.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use types::op::{Failure, Outcome};
use types::{ClusterMap, HostId, NodeId};
use wire::message::{Answer, PeerMessage};

use crate::clients::gate::Gate;
use crate::limits::LINK_VALUES_BYTES;
use crate::node::snapshot::LinkSnapshot;
use crate::peers::link::{Link, LinkEnd, Pushed};
use crate::workers::counters::Counters;

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
    pub(crate) fn push(&self, gate: &Gate, counters: &Counters, to: NodeId, mut message: PeerMessage) {
        let up = self.up.borrow();
        let pushed = up.get(&to).map_or(Pushed::Dropped, |link| {
            if let PeerMessage::Answer(answer) = &message {
                // Before a value may be taken out: it is answers that are guessed, not what leaves.
                link.answer_guess.learn(&answer.outcome);
            }
            if link.urgent() > LINK_VALUES_BYTES {
                take_value_out(&mut message);
            }
            let pushed = link.push(gate, message);
            if pushed == Pushed::First {
                self.unwritten.borrow_mut().push(Rc::clone(link));
            }
            pushed
        });
        match pushed {
            Pushed::Dropped => counters.peer_messages_dropped.inc(),
            Pushed::First | Pushed::More => counters.peer_messages_written.inc(),
        }
    }

    /// Writes what has been pushed.
    pub(crate) fn write(&self, gate: &Gate, counters: &Counters) {
        for link in self.unwritten.borrow_mut().drain(..) {
            link.write(gate, counters);
        }
    }

    /// Closes the link to `peer`, which has sent what cannot be.
    pub(crate) fn close(&self, peer: HostId) {
        // What a former life has said is not held against the present one.
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

    /// `link` is up; the one in whose place it is.
    pub(super) fn insert(&self, link: &Rc<Link>) -> Option<Rc<Link>> {
        self.up.borrow_mut().insert(link.peer.node, Rc::clone(link))
    }

    /// `link` has ended; whether it was the one to its node.
    pub(super) fn remove(&self, link: &Rc<Link>) -> bool {
        let mut up = self.up.borrow_mut();
        // By identity: a newer link to the same process has the same name.
        let is_known = up.get(&link.peer.node).is_some_and(|known| Rc::ptr_eq(known, link));
        if is_known {
            up.remove(&link.peer.node);
        }
        is_known
    }

    /// Notes that a task dials `node` from now on; whether none did.
    pub(super) fn begin_to_dial(&self, node: NodeId) -> bool {
        self.dialled.borrow_mut().insert(node)
    }

    /// Nobody dials `node` any more.
    pub(super) fn end_dialling(&self, node: NodeId) {
        self.dialled.borrow_mut().remove(&node);
    }

    /// Closes links to former lives of nodes.
    pub(super) fn close_stale(&self, map: &ClusterMap) {
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
