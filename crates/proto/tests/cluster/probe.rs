//! Links that are measured on purpose.

use proto::{ProbeReport, Probed};
use types::{AdminCommand, NodeId};

use super::objects::noise;
use super::{Cluster, host_id};

const BYTES: u64 = 4 << 20;

impl Cluster {
    fn begin_probe(&mut self, node: u16) -> bool {
        let now = self.clocks(NodeId(node));
        self.hosts.get_mut(&NodeId(node)).unwrap().streams(now).probe_links(BYTES)
    }

    fn probed(&self, node: u16) -> ProbeReport {
        proto::probe_report(&self.hosts[&NodeId(node)])
    }
}

/// A cluster in which every node has chunks.
fn filled() -> Cluster {
    let mut cluster = Cluster::new(6, "rs(3+2)");
    for key in 0..8u64 {
        cluster.put(0, &format!("key-{key}"), &noise(key, 1_500_000)).unwrap();
    }
    cluster.advance(100);
    cluster
}

fn nodes(report: &ProbeReport, is_it: impl Fn(&Probed) -> bool) -> Vec<u16> {
    report.nodes.iter().filter(|(_, probed)| is_it(probed)).map(|(node, _)| *node).collect()
}

fn has_answered(probed: &Probed) -> bool {
    matches!(probed, Probed::Answered { questions, bytes, .. } if *questions > 4 && *bytes >= BYTES)
}

#[test]
fn each_of_the_others_is_measured_with_no_more_than_was_said() {
    let mut cluster = filled();
    assert!(cluster.begin_probe(2));
    assert!(cluster.probed(2).is_under_way && !cluster.begin_probe(2), "one at a time");
    cluster.settle();
    let report = cluster.probed(2);
    assert_eq!(nodes(&report, has_answered), [0, 1, 3, 4, 5], "{report:?}");
    let at_most =
        |probed: &Probed| matches!(probed, Probed::Answered { bytes, .. } if *bytes < BYTES + (1 << 20));
    assert!(!report.is_under_way && nodes(&report, at_most).len() == 5, "{report:?}");
    // What is measured on purpose is known from then on.
    assert_eq!(proto::seen_links(&cluster.hosts[&NodeId(2)]).len(), 5);
    assert!(cluster.begin_probe(2), "and again");
}

#[test]
fn who_is_down_or_says_nothing_is_named_and_the_others_are_measured() {
    let mut cluster = filled();
    // The link to one is down when it is asked; another one says nothing, and its link is there.
    cluster.hosts.remove(&NodeId(4));
    cluster.begin_probe(2);
    cluster.settle();
    assert!(cluster.probed(2).is_under_way, "node 4 has time to answer");
    cluster.advance(3_000);
    let report = cluster.probed(2);
    assert_eq!(nodes(&report, |probed| *probed == Probed::Silent), [4], "{report:?}");
    assert_eq!(nodes(&report, has_answered), [0, 1, 3, 5], "{report:?}");
    let mut cluster = filled();
    cluster.hosts.remove(&NodeId(4));
    cluster.begin_probe(3);
    cluster.settle();
    let now = cluster.now;
    cluster.hosts.get_mut(&NodeId(3)).unwrap().link_down(now, host_id(4));
    cluster.settle();
    let report = cluster.probed(3);
    assert!(!report.is_under_way && nodes(&report, |probed| *probed == Probed::Silent) == [4], "{report:?}");
}

#[test]
fn who_has_given_a_role_away_is_not_silent() {
    let mut cluster = filled();
    let drained = NodeId(4);
    cluster.told_first = Some(drained);
    cluster.order(AdminCommand::Drain { node: drained });
    let version = |cluster: &Cluster, node| cluster.hosts[&node].map().map(|map| map.version);
    let mut probes = 0;
    for _ in 0..3_000 {
        cluster.advance(10);
        // It has given something away that others think it has.
        if version(&cluster, drained) > version(&cluster, NodeId(2)) && cluster.begin_probe(2) {
            probes += 1;
            cluster.settle();
            while cluster.probed(2).is_under_way {
                cluster.advance(10);
            }
            let report = cluster.probed(2);
            assert_eq!(nodes(&report, |probed| *probed == Probed::Silent), [0u16; 0], "{report:?}");
        }
    }
    assert!(probes > 0);
}

#[test]
fn where_nothing_is_kept_there_is_nothing_to_fetch() {
    let mut cluster = Cluster::new(5, "rs(3+2)");
    cluster.begin_probe(0);
    cluster.settle();
    let report = cluster.probed(0);
    assert_eq!(nodes(&report, |probed| *probed == Probed::Empty), [1, 2, 3, 4], "{report:?}");
}
