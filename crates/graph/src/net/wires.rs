//! What carries messages: links that send and receive one after the other.

use std::collections::BTreeMap;

use types::NodeId;

use super::names::Who;
use super::queue::Mail;
use crate::graph::Place;
use crate::message::Message;
use crate::model::{Between, LinkEnd, Links};

/// Bytes of a message besides its slice or graph: frame, run, edge, sums.
const MESSAGE_BYTES: u64 = 64;
/// Messages up to this length do not wait for slices.
const SHORT_BYTES: u64 = 256;
/// One way within a process.
const LOCAL_NS: u64 = 200;

/// What was sent, by whom to whom; what stays within a process is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of slices.
    pub slices: BTreeMap<(Who, Who), u64>,
    /// Bytes of all messages.
    pub all: BTreeMap<(Who, Who), u64>,
}

impl Traffic {
    /// Bytes that `who` has sent in all.
    #[must_use]
    pub fn sent(&self, who: Who) -> u64 {
        self.all.iter().filter(|((from, _), _)| *from == who).map(|(_, bytes)| bytes).sum()
    }
}

#[derive(Debug)]
pub(super) struct Wires {
    links: Links,
    up_free: BTreeMap<Who, u64>,
    down_free: BTreeMap<Who, u64>,
    /// Of links that are worse than their ends.
    pair_free: BTreeMap<(Who, Who), u64>,
    /// When the last message of a pair landed and arrived: they stay in order.
    last: BTreeMap<(Who, Who), (u64, u64)>,
    traffic: Traffic,
}

impl Wires {
    pub(super) fn new(links: Links) -> Self {
        let traffic = Traffic::default();
        let (up_free, down_free, pair_free) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { links, up_free, down_free, pair_free, last: BTreeMap::new(), traffic }
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Makes a node's links slower, or with less than 1 faster.
    pub(super) fn slow(&mut self, node: NodeId, factor: f64) {
        let mut end = self.links.end(Place::Node(node));
        end.up_bytes_per_s /= factor;
        end.down_bytes_per_s /= factor;
        self.links.nodes.insert(node.0, end);
    }

    /// The process whose links these are: an asker that is a node has the node's.
    fn owner(&self, who: Who) -> Who {
        match (who, self.links.asker_node) {
            (Who::Asker(_), Some(node)) => Who::Node(NodeId(node)),
            _ => who,
        }
    }

    fn end(&self, who: Who) -> LinkEnd {
        self.links.end(place(who))
    }

    fn between(&self, from: Who, to: Who) -> Between {
        self.links.between((place(from), &self.end(from)), (place(to), &self.end(to)))
    }

    pub(super) fn way_ns(&self, from: Who, to: Who) -> u64 {
        if self.owner(from) == self.owner(to) {
            return LOCAL_NS;
        }
        (self.between(from, to).way_us * 1e3) as u64
    }

    /// When the last byte is at the receiver's link.
    pub(super) fn send(&mut self, now: u64, mail: &Mail) -> u64 {
        let (from, to) = (self.owner(mail.from), self.owner(mail.to));
        let bytes = bytes_of(&mail.message);
        let way = self.way_ns(mail.from, mail.to);
        let landing = if from == to {
            now + way
        } else {
            *self.traffic.all.entry((mail.from, mail.to)).or_default() += bytes;
            if let Message::Slice(slice) = &mail.message {
                *self.traffic.slices.entry((mail.from, mail.to)).or_default() += slice.bytes.len() as u64;
            }
            let takes = (bytes as f64 * self.end(from).up_us() * 1e3) as u64;
            if bytes <= SHORT_BYTES {
                now + takes + way
            } else {
                let free = self.up_free.entry(from).or_default();
                let begun = now.max(*free);
                *free = begun + takes;
                (begun + takes).max(self.through_pair(begun, mail, bytes)) + way
            }
        };
        let last = self.last.entry((mail.from, mail.to)).or_default();
        last.0 = last.0.max(landing);
        last.0
    }

    /// When the last byte has passed the link between the two, if that is one that is worse than its ends.
    fn through_pair(&mut self, begun: u64, mail: &Mail, bytes: u64) -> u64 {
        let byte_us = self.between(mail.from, mail.to).byte_us;
        if byte_us == 0.0 {
            return 0;
        }
        let free = self.pair_free.entry((self.owner(mail.from), self.owner(mail.to))).or_default();
        *free = begun.max(*free) + (bytes as f64 * byte_us * 1e3) as u64;
        *free
    }

    /// When the last byte is through the receiver's link.
    pub(super) fn receive(&mut self, now: u64, mail: &Mail) -> u64 {
        let (from, to) = (self.owner(mail.from), self.owner(mail.to));
        let bytes = bytes_of(&mail.message);
        let arrival = if from == to || bytes <= SHORT_BYTES {
            now
        } else {
            let takes = (bytes as f64 * self.end(to).down_us() * 1e3) as u64;
            let free = self.down_free.entry(to).or_default();
            // The first bytes came while the last ones were being sent.
            *free = now.max(*free + takes);
            *free
        };
        let last = self.last.entry((mail.from, mail.to)).or_default();
        last.1 = last.1.max(arrival);
        last.1
    }
}

fn place(who: Who) -> Place {
    match who {
        Who::Node(node) => Place::Node(node),
        Who::Asker(_) => Place::Asker,
    }
}

fn bytes_of(message: &Message) -> u64 {
    MESSAGE_BYTES
        + match message {
            Message::Slice(slice) => slice.bytes.len() as u64,
            Message::Start(graph) => graph.encoded_len() as u64,
            _ => 0,
        }
}
