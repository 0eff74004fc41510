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
use crate::objects::scope::Scope;
use crate::{HostConfig, Timing};

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
    pub(super) fn slow(&self, now: Time, config: &HostConfig) -> impl Iterator<Item = SlowWay> {
        self.believed(now, config).flat_map(|(to, slow)| {
            slow.iter().map(move |link| SlowWay { from: link.from, to, times: link.times() })
        })
    }

    /// What has been heard of whom, and is not too old.
    pub(super) fn believed(
        &self,
        now: Time,
        config: &HostConfig,
    ) -> impl Iterator<Item = (NodeId, &[SlowLink])> {
        let forget_us = FORGET_LEASES * config.timing.node_lease_us;
        let rules = config.rules.graphs();
        let known = self.heard.iter();
        let known = known.filter(move |(_, (at, _))| rules.is_hearsay_believed(now.since(*at) < forget_us));
        known.map(|(to, (_, slow))| (*to, &slow[..]))
    }

    /// What this worker has said last; none if it has never said anything.
    pub(super) fn said(&self) -> Option<&[SlowLink]> {
        (self.said_at > Time(0)).then_some(&self.said[..])
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
            if !self.said.is_empty() || scope.rules().graphs().well_links_are_told() {
                self.say(scope);
            }
        }
        self.look_at = if self.said.is_empty() { Time::NEVER } else { self.said_at + renew_us };
    }

    fn say(&self, scope: &mut Scope<'_>) {
        let (here, views) = (scope.here(), scope.views);
        let nodes = views.map().into_iter().flat_map(|map| &map.nodes);
        // Those, too, that are taken for dead: they may be back before the map says so.
        for info in nodes.filter(|info| info.host != here) {
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
