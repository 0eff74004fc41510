//! Slow links that nodes tell each other of: a planner goes round those between two others, too.
//!
//! Each worker says from which nodes things come to it more slowly than from most (`objects/meter.rs`), to the same worker of every other
//! node: when that has changed, at most every [`SAY_LEASES`] leases, and again after [`RENEW_LEASES`] or when a link has come up. Who has no
//! slow link says so if it had one before, and is silent then.
//! What was heard is forgotten when nobody has renewed it for [`FORGET_LEASES`], and what a node has said before when it says something
//! else. Nobody passes on what it has heard.

use std::collections::BTreeMap;

use types::{HostId, NodeId, Time};
use wire::graph::{GraphMessage, MAX_SLOW_LINKS, SlowLink, SlowLinks};

use super::speed::SlowWay;
use crate::Timing;
use crate::objects::scope::Scope;

/// A worker says something else than before after so many leases at the soonest.
const SAY_LEASES: u64 = 2;
/// After so many it says the same again.
const RENEW_LEASES: u64 = 20;
/// What is not renewed for so many is not so any more, or nobody knows.
const FORGET_LEASES: u64 = 3 * RENEW_LEASES;

/// See the module.
pub(super) struct Hearsay {
    /// What others have said, and when.
    heard: BTreeMap<NodeId, (Time, Vec<SlowLink>)>,
    /// What this worker has said last, and when.
    said: Vec<SlowLink>,
    said_at: Time,
    /// A link has come up since: whoever is there may not have heard it.
    is_unheard: bool,
    /// When it is looked at next whether there is something to say.
    look_at: Time,
}

impl Default for Hearsay {
    fn default() -> Self {
        let (heard, said) = (BTreeMap::new(), Vec::new());
        Self { heard, said, said_at: Time(0), is_unheard: false, look_at: Time::NEVER }
    }
}

impl Hearsay {
    /// Something was measured.
    pub(super) fn measured(&mut self, now: Time, timing: &Timing) {
        let soonest = self.said_at + SAY_LEASES * timing.node_lease_us;
        self.look_at = self.look_at.min(soonest.max(now));
    }

    /// A link is up: whoever is there may have heard nothing yet, or not that it was taken back.
    pub(super) fn link_up(&mut self, now: Time, timing: &Timing) {
        let is_remembered = now.since(self.said_at) < FORGET_LEASES * timing.node_lease_us;
        if self.said_at > Time(0) && (is_remembered || !self.said.is_empty()) {
            self.is_unheard = true;
            self.measured(now, timing);
        }
    }

    /// What another node says of the links to it.
    pub(super) fn hear(&mut self, now: Time, from: HostId, links: SlowLinks) {
        if links.slow.is_empty() {
            self.heard.remove(&from.node);
        } else {
            self.heard.insert(from.node, (now, links.slow));
        }
    }

    /// Nodes that are not in the map any more.
    pub(super) fn retain(&mut self, is_there: impl Fn(NodeId) -> bool) {
        self.heard.retain(|node, _| is_there(*node));
    }

    /// The links between others that are slow, by what they say.
    pub(super) fn slow(&self, now: Time, timing: &Timing) -> impl Iterator<Item = SlowWay> {
        let forget_us = FORGET_LEASES * timing.node_lease_us;
        let known = self.heard.iter().filter(move |(_, (at, _))| now.since(*at) < forget_us);
        known.flat_map(|(to, (_, slow))| {
            slow.iter().map(|link| SlowWay { from: link.from, to: *to, times: link.times() })
        })
    }

    /// Says what there is to say.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>) {
        let now = scope.now.time;
        if now < self.look_at {
            return;
        }
        let slow = slowest(scope);
        let renew_us = RENEW_LEASES * scope.timing().node_lease_us;
        let is_old = now.since(self.said_at) >= renew_us && !slow.is_empty();
        if slow != self.said || is_old || self.is_unheard {
            (self.said, self.said_at, self.is_unheard) = (slow, now, false);
            self.say(scope);
        }
        self.look_at = if self.said.is_empty() { Time::NEVER } else { self.said_at + renew_us };
    }

    fn say(&self, scope: &mut Scope<'_>) {
        let (here, views) = (scope.here(), scope.views);
        let nodes = views.map().into_iter().flat_map(|map| &map.nodes);
        for info in nodes.filter(|info| info.alive && info.host != here) {
            let links = SlowLinks { slow: self.said.clone() };
            scope.send_of_graph(info.host.node, GraphMessage::SlowLinks(links));
        }
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self) -> Time {
        self.look_at
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let heard = self.heard.values().map(|(_, slow)| slow.len());
        (heard.sum::<usize>() + self.said.len()) * size_of::<SlowLink>()
    }
}

/// The slowest links to this worker that are slower than most, as they are said, by node.
fn slowest(scope: &Scope<'_>) -> Vec<SlowLink> {
    let meter = scope.around.meter();
    let mut slow: Vec<SlowLink> = meter.slow().map(|(from, times)| SlowLink::of(from, times)).collect();
    slow.sort_by_key(|link| std::cmp::Reverse(link.half_doublings));
    slow.truncate(MAX_SLOW_LINKS);
    slow.sort_by_key(|link| link.from);
    slow
}
