//! Links between two nodes that are worse than their ends: graphs go round them.

use codec::Code;
use graph::net::WorldConfig;
use graph::{LinkEnd, Links, Outcome, Pair, Place, Scheme, Shape, plan};
use rng::Rng;

use crate::solve::assert_solves;
use crate::support::{Cluster, at, question, sources, to_asker};

/// The asker's node.
const HUB: u16 = 100;
const LEN: u32 = 1 << 20;

fn slow(from: u16, to: u16) -> Pair {
    Pair { from, to, bytes_per_s: 1e6, latency_us: 0.0 }
}

fn links(pairs: &[Pair]) -> Links {
    let mut links = Links { asker_node: Some(HUB), ..Links::uniform(LinkEnd::symmetric(1.0, 25.0)) };
    pairs.iter().for_each(|pair| links.set_pair(*pair));
    assert!(links.is_sound());
    links
}

/// Links of a shape that are worse than their ends.
fn worse(shape: &Shape, links: &Links) -> usize {
    let at = |step: u32| shape.steps[step as usize].at;
    shape.edges.iter().filter(|edge| links.pair(at(edge.from), at(edge.to)).is_some()).count()
}

fn planned(code: &Code, lost: &[usize], links: &Links, scheme: Scheme) -> Shape {
    let (sources, wanted) = (sources(code, lost), to_asker(&lost[..1]));
    let shape = plan(&question(code, &sources, &wanted, LEN, links), scheme).unwrap();
    assert_solves(code, &wanted, &shape, LEN, &format!("{scheme} {:?}", links.pairs));
    shape
}

/// All three parities are lost, so each of the other six has to help.
const ALL_HELP: [usize; 3] = [1, 7, 8];

#[test]
fn a_chain_and_a_tree_go_round_slow_links_where_all_have_to_help() {
    let code = Code::rs(6, 3).unwrap();
    let mut rng = Rng::new(3, 0);
    for _ in 0..200 {
        let ends = [0, 2, 3, 4, 5, 6, HUB];
        let pair = |rng: &mut Rng| (rng.pick(&ends[..6]), rng.pick(&ends));
        let pairs: Vec<Pair> = (0..3).map(|_| pair(&mut rng)).map(|(from, to)| slow(from, to)).collect();
        let links = links(&pairs);
        for scheme in [Scheme::Chain, Scheme::Ppr] {
            assert_eq!(worse(&planned(&code, &ALL_HELP, &links, scheme), &links), 0, "{scheme} {pairs:?}");
        }
    }
}

#[test]
fn who_has_a_slow_link_to_the_target_or_to_others_is_not_taken_while_others_are_there() {
    let code = Code::rs(6, 3).unwrap();
    for pairs in [&[slow(3, HUB)][..], &[slow(3, 4)], &[slow(4, 3)]] {
        let links = links(pairs);
        for scheme in [Scheme::Star, Scheme::Chain, Scheme::Ppr, Scheme::Tri, Scheme::Auto] {
            let shape = planned(&code, &[1], &links, scheme);
            assert!(shape.steps.iter().all(|step| step.at != at(3)), "{scheme} {pairs:?}");
            assert_eq!(worse(&shape, &links), 0, "{scheme} {pairs:?}");
        }
    }
}

/// What a chain takes in the network, where planners know of a slow link or do not.
fn took_us(real: &Links, known: &Links, scheme: Scheme) -> (f64, f64) {
    let code = Code::rs(6, 3).unwrap();
    let (sources, wanted) = (sources(&code, &ALL_HELP), to_asker(&[1]));
    let mut cluster = Cluster::new(code.clone(), &[LEN], WorldConfig::new(real.clone()), 1);
    cluster.links = known.clone();
    let predicted = plan(&question(&code, &sources, &wanted, LEN, known), scheme).unwrap().prediction.us;
    let mut config = cluster.config(wanted, scheme);
    config.least_patience_us = 5_000_000;
    config.deadline_us = 20_000_000;
    let finished = cluster.run(config, sources);
    assert!(matches!(finished.outcome, Outcome::Complete { attempts: 1, .. }), "{finished:?}");
    (predicted, finished.at_us)
}

#[test]
fn who_knows_of_a_slow_link_is_as_fast_as_without_it() {
    // Node 2 sends to node 3 in a chain that knows no better.
    let (real, unknown) = (links(&[slow(2, 3)]), links(&[]));
    let (_, without) = took_us(&unknown, &unknown, Scheme::Chain);
    let (_, blind) = took_us(&real, &unknown, Scheme::Chain);
    let (_, round) = took_us(&real, &real, Scheme::Chain);
    assert!(blind > 20.0 * without && round < 1.1 * without, "{blind} {round} {without}");
}

#[test]
fn what_slow_links_cost_is_predicted_and_auto_is_still_near_the_best() {
    // Every link to node 3 and from it is slow.
    let others = [0, 2, 4, 5, 6, HUB];
    let pairs: Vec<Pair> = others.iter().flat_map(|other| [slow(3, *other), slow(*other, 3)]).collect();
    let links = links(&pairs);
    let mut best = f64::MAX;
    for scheme in Scheme::DECODING {
        let (predicted, took) = took_us(&links, &links, *scheme);
        assert!((predicted / took - 1.0).abs() < 0.25, "{scheme}: {predicted} {took}");
        best = best.min(took);
    }
    let (_, auto) = took_us(&links, &links, Scheme::Auto);
    assert!(auto <= 1.1 * best, "{auto} {best}");
}

#[test]
fn of_equally_fast_ones_the_near_are_taken() {
    let code = Code::rs(4, 4).unwrap();
    let mut links = links(&[]);
    for far in [0, 2] {
        links.nodes.insert(far, LinkEnd { latency_us: 5_000.0, ..links.others });
    }
    for scheme in Scheme::DECODING {
        let shape = planned(&code, &[1], &links, *scheme);
        assert!(shape.steps.iter().all(|step| step.at != at(0) && step.at != at(2)), "{scheme}");
    }
}

#[test]
fn of_many_slow_links_the_slowest_are_kept() {
    let mut links = links(&[]);
    for number in 0..2 * graph::limits::MAX_PAIRS as u16 {
        links.set_pair(Pair { bytes_per_s: f64::from(number) + 1.0, ..slow(number, HUB) });
    }
    assert!(links.is_sound() && links.pairs.len() == graph::limits::MAX_PAIRS);
    assert!(links.pair(at(0), Place::Asker).is_some() && links.pair(at(300), Place::Asker).is_none());
}
