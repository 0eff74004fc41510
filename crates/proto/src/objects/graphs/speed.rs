//! How fast links are, by what graphs have taken: the model's parameters follow what is measured.
//!
//! One number for all links of this host's graphs, and for each node from which things come slower than from most how many times that is
//! (`objects/meter.rs`): of the link from it to here. Of those between two others is known what they have told (`hearsay`). So graphs in
//! which such a node has to help have it send to somebody else. Which nodes hold graphs up these show themselves (`detours`).

use graph::{LinkEnd, Links, Pair, Planned};
use types::{NodeId, Time};

/// What the newest measurement counts for.
const NEWEST: f64 = 0.5;
/// From a megabit a second to ten terabits.
const FASTEST: f64 = 1e-4;
const SLOWEST: f64 = 1e3;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// How many times as long as over links of 1 Gbit/s it takes.
    slowness: f64,
}

/// A link that is slower than most, and how many times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SlowWay {
    pub from: NodeId,
    pub to: NodeId,
    pub times: f64,
}

impl Default for Speed {
    fn default() -> Self {
        Self { slowness: 1.0 }
    }
}

impl Speed {
    /// What links are worth to an asker at `node`, who knows which are slow, and which nodes are, how many times.
    pub(super) fn links(
        self,
        node: NodeId,
        slow: impl IntoIterator<Item = SlowWay>,
        nodes: impl IntoIterator<Item = (NodeId, f64)>,
    ) -> Links {
        let usual = LinkEnd::default();
        let others = LinkEnd {
            up_bytes_per_s: usual.up_bytes_per_s / self.slowness,
            down_bytes_per_s: usual.down_bytes_per_s / self.slowness,
            ..usual
        };
        let mut links = Links { asker_node: Some(node.0), ..Links::uniform(others) };
        for SlowWay { from, to, times } in slow.into_iter().filter(|way| way.from != way.to) {
            let bytes_per_s = others.up_bytes_per_s / times;
            links.set_pair(Pair { from: from.0, to: to.0, bytes_per_s, latency_us: 0.0 });
        }
        for (slow, times) in nodes {
            let up_bytes_per_s = others.up_bytes_per_s / times;
            let down_bytes_per_s = others.down_bytes_per_s / times;
            links.nodes.insert(slow.0, LinkEnd { up_bytes_per_s, down_bytes_per_s, ..others });
        }
        links
    }

    /// How many times as long as over links of 1 Gbit/s things take.
    pub(super) fn slowness(self) -> f64 {
        self.slowness
    }

    /// A graph that was planned by this has ended well.
    pub(super) fn note(&mut self, planned: &Planned, now: Time) {
        let ratio = now.since(planned.started).max(1) as f64 / planned.predicted_us.max(1.0);
        let slowness = self.slowness * (1.0 - NEWEST + NEWEST * ratio);
        self.slowness = slowness.clamp(FASTEST, SLOWEST);
    }
}

#[cfg(test)]
mod tests {
    use graph::Scheme;

    use super::*;

    #[test]
    fn what_takes_ten_times_as_long_is_soon_expected_to() {
        let mut speed = Speed::default();
        for _ in 0..8 {
            let predicted_us = 1_000.0 * speed.slowness;
            let planned = Planned { scheme: Scheme::Star, predicted_us, started: Time(0) };
            speed.note(&planned, Time(10_000));
        }
        assert!((9.0..11.0).contains(&speed.slowness), "{speed:?}");
        let rate = speed.links(NodeId(1), [], []).others.up_bytes_per_s;
        assert!((11e6..14e6).contains(&rate), "{rate}");
    }

    #[test]
    fn a_link_that_is_slower_than_others_is_so_many_times_slower_than_they_are_said_to_be() {
        let speed = Speed { slowness: 2.0 };
        let links = speed.links(
            NodeId(1),
            [SlowWay { from: NodeId(4), to: NodeId(1), times: 8.0 }],
            [(NodeId(5), 4.0)],
        );
        let [pair] = links.pairs[..] else { panic!("{links:?}") };
        assert_eq!((pair.from, pair.to, links.others.up_bytes_per_s / pair.bytes_per_s), (4, 1, 8.0));
        let node = links.nodes[&5];
        assert_eq!(links.others.up_bytes_per_s / node.up_bytes_per_s, 4.0);
        assert!(links.is_sound() && links.nodes.len() == 1);
    }

    #[test]
    fn nothing_is_infinitely_fast_or_slow() {
        let mut speed = Speed::default();
        let planned = |predicted_us| Planned { scheme: Scheme::Star, predicted_us, started: Time(0) };
        (0..100).for_each(|_| speed.note(&planned(1.0), Time(u64::MAX)));
        assert!(speed.slowness <= SLOWEST && speed.links(NodeId(1), [], []).is_sound());
        (0..100).for_each(|_| speed.note(&planned(f64::MAX), Time(0)));
        assert!(speed.slowness >= FASTEST && speed.links(NodeId(1), [], []).is_sound());
    }
}
