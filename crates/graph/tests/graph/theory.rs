//! Bytes per link and depth are what theory says (the table of `docs/graphs.md`), in the graph and on the wires.

use codec::Code;
use graph::net::WorldConfig;
use graph::{
    Aim, Class, Draft, EncodeQuestion, Envelope, Execution, Graph, LinkEnd, Links, Outcome, Place, RunId,
    Scheme, plan, plan_encode,
};
use types::{GroupId, NodeId, ViewVersion};

use crate::support::{ASKER, Cluster, at, node, question, sources, strand, to_asker};

const CHUNK: u32 = 1 << 20;

fn envelope(len: u32) -> Envelope {
    Envelope {
        run: RunId { asker: ASKER, number: 1 },
        group: GroupId(1),
        view: ViewVersion(1),
        deadline_us: 1_000_000,
        class: Class::Reader,
        strand: strand(&[len]),
    }
}

fn repair(code: &Code, lost: &[usize], scheme: Scheme) -> Graph {
    let (sources, wanted, links) = (sources(code, lost), to_asker(&lost[..1]), Links::default());
    let shape = plan(&question(code, &sources, &wanted, CHUNK, &links), scheme).unwrap();
    shape.into_graph(envelope(CHUNK)).unwrap()
}

/// Chunks that a place sends and receives.
fn chunks(graph: &Graph, place: Place) -> (f64, f64) {
    let links = graph.bytes_per_link();
    let sum = |picks: &dyn Fn(&(Place, Place)) -> bool| {
        let bytes: u64 = links.iter().filter(|(pair, _)| picks(pair)).map(|(_, bytes)| bytes).sum();
        bytes as f64 / f64::from(CHUNK)
    };
    (sum(&|pair| pair.0 == place), sum(&|pair| pair.1 == place))
}

/// The most that any helper sends and receives.
fn busiest_helper(graph: &Graph) -> (f64, f64) {
    let helpers = graph.places().into_iter().filter(|place| *place != Place::Asker);
    helpers
        .map(|place| chunks(graph, place))
        .fold((0.0, 0.0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
}

fn rounds(k: usize) -> usize {
    (k + 1).next_power_of_two().trailing_zeros() as usize
}

#[test]
fn repair_of_one_chunk_moves_what_theory_says() {
    for (k, m) in [(3, 2), (6, 3), (10, 4), (12, 4)] {
        let code = Code::rs(k, m).unwrap();
        let star = repair(&code, &[1], Scheme::Star);
        assert_eq!(
            (star.depth(), chunks(&star, Place::Asker), busiest_helper(&star)),
            (1, (0.0, k as f64), (1.0, 0.0))
        );
        let chain = repair(&code, &[1], Scheme::Chain);
        assert_eq!(
            (chain.depth(), chunks(&chain, Place::Asker), busiest_helper(&chain)),
            (k, (0.0, 1.0), (1.0, 1.0))
        );
        let ppr = repair(&code, &[1], Scheme::Ppr);
        let fan_in = rounds(k) as f64;
        assert_eq!(chunks(&ppr, Place::Asker), (0.0, fan_in));
        assert!(ppr.depth() <= rounds(k) && busiest_helper(&ppr).1 < fan_in);
        let tri = repair(&code, &[1], Scheme::Tri);
        assert_eq!((tri.depth(), chunks(&tri, Place::Asker)), (2, (0.0, 1.0)));
        let (up, down) = busiest_helper(&tri);
        assert!(up < 1.001 && down < 1.001, "{up} {down}");
        for graph in [star, chain, ppr, tri] {
            let total: u64 = graph.bytes_per_link().values().sum();
            assert!(total >= u64::from(CHUNK) * k as u64);
        }
    }
}

#[test]
fn several_chunks_take_one_pass_of_a_chain_with_a_row_for_each() {
    let code = Code::rs(10, 4).unwrap();
    let (sources, wanted, links) = (sources(&code, &[0, 5]), to_asker(&[0, 5]), Links::default());
    let shape = plan(&question(&code, &sources, &wanted, CHUNK, &links), Scheme::Chain).unwrap();
    let graph = shape.into_graph(envelope(CHUNK)).unwrap();
    assert_eq!(
        (graph.depth(), chunks(&graph, Place::Asker), busiest_helper(&graph)),
        (10, (0.0, 2.0), (2.0, 2.0))
    );
}

#[test]
fn a_local_code_reads_its_group() {
    let code = Code::lrc(12, 2, 2).unwrap();
    for scheme in [Scheme::Lrc, Scheme::Ppr, Scheme::Chain, Scheme::Tri] {
        let graph = repair(&code, &[3], scheme);
        assert_eq!(graph.places().len(), 7, "{scheme}");
    }
    assert_eq!(chunks(&repair(&code, &[3], Scheme::Lrc), Place::Asker).1, 6.0);
    assert_eq!(chunks(&repair(&code, &[3], Scheme::Star), Place::Asker).1, 12.0);
}

#[test]
fn encoding_moves_what_theory_says() {
    let (code, links) = (Code::rs(10, 4).unwrap(), Links::default());
    let holders: Vec<NodeId> = (0..14).map(node).collect();
    let graph = |scheme| {
        let (aim, execution) = (Aim::READER, Execution::Coherent);
        let question =
            EncodeQuestion { code: &code, holders: &holders, len: CHUNK, links: &links, aim, execution };
        plan_encode(&question, scheme).unwrap().into_graph(envelope(CHUNK)).unwrap()
    };
    let star = graph(Scheme::Star);
    assert_eq!((star.depth(), chunks(&star, Place::Asker).0, chunks(&star, at(13))), (1, 14.0, (0.0, 1.0)));
    let tri = graph(Scheme::Tri);
    assert_eq!((tri.depth(), chunks(&tri, Place::Asker).0), (2, 10.0));
    assert_eq!((chunks(&tri, at(0)), chunks(&tri, at(13))), ((4.0, 1.0), (0.0, 10.0)));
    let chain = graph(Scheme::Chain);
    assert_eq!((chain.depth(), chunks(&chain, Place::Asker).0), (11, 10.0));
    assert_eq!((chunks(&chain, at(5)), chunks(&chain, at(13))), ((4.0, 5.0), (0.0, 1.0)));
}

/// Microseconds to repair one chunk, and to read one.
fn times(k: usize, m: usize, scheme: Scheme, gbit: f64, execution: Execution) -> (f64, f64) {
    let links = Links::uniform(LinkEnd::symmetric(gbit, 25.0));
    let code = Code::rs(k, m).unwrap();
    let mut took = [0.0; 2];
    for (time, lost) in took.iter_mut().zip([&[1usize][..], &[]]) {
        let mut cluster = Cluster::new(code.clone(), &[CHUNK], WorldConfig::new(links.clone()), 1);
        let mut config = cluster.config(to_asker(&[1]), scheme);
        config.execution = execution;
        let finished = cluster.run(config, sources(&code, lost));
        assert!(matches!(finished.outcome, Outcome::Complete { attempts: 1, .. }), "{finished:?}");
        *time = finished.at_us;
    }
    (took[0], took[1])
}

#[test]
fn a_chain_repairs_a_chunk_in_the_time_of_a_fifth_more_than_a_read() {
    for (k, m) in [(6, 3), (10, 4)] {
        let ratio = |scheme| {
            let (repair, read) = times(k, m, scheme, 1.0, Execution::Coherent);
            repair / read
        };
        let (chain, star, ppr) = (ratio(Scheme::Chain), ratio(Scheme::Star), ratio(Scheme::Ppr));
        assert!(chain <= 1.2, "chain of {k}: {chain}");
        assert!((star / k as f64 - 1.0).abs() < 0.1, "star of {k}: {star}");
        assert!((ppr / rounds(k) as f64 - 1.0).abs() < 0.15, "ppr of {k}: {ppr}");
        let tri = ratio(Scheme::Tri);
        assert!(tri <= 1.35, "tri of {k}: {tri}");
    }
}

#[test]
fn the_wires_carry_what_the_graph_says() {
    let code = Code::rs(6, 3).unwrap();
    for scheme in Scheme::DECODING {
        let graph = repair(&code, &[1], *scheme);
        let mut cluster = Cluster::new(code.clone(), &[CHUNK], WorldConfig::new(Links::default()), 1);
        let config = cluster.config(to_asker(&[1]), *scheme);
        cluster.run(config, sources(&code, &[1]));
        let who = |place: &Place| crate::support::who(*place, ASKER);
        let expected =
            graph.bytes_per_link().iter().map(|((from, to), bytes)| ((who(from), who(to)), *bytes)).collect();
        assert_eq!(cluster.world.traffic().slices, expected, "{scheme}");
        let (all, slices): (u64, u64) =
            (cluster.world.traffic().all.values().sum(), cluster.world.traffic().slices.values().sum());
        assert!(all as f64 / (slices as f64) < 1.03, "{scheme}: {all} for {slices}");
    }
}

#[test]
fn no_graph_is_slower_coherently_beyond_64_kib() {
    let code = Code::rs(6, 3).unwrap();
    for len in [65 << 10, 256 << 10, 1 << 20, 4 << 20] {
        for scheme in Scheme::DECODING {
            for gbit in [1.0, 10.0, 100.0] {
                let time = |execution| {
                    let links = Links::uniform(LinkEnd::symmetric(gbit, 25.0));
                    let mut cluster = Cluster::new(code.clone(), &[len], WorldConfig::new(links), 1);
                    let mut config = cluster.config(to_asker(&[1]), *scheme);
                    config.execution = execution;
                    cluster.run(config, sources(&code, &[1])).at_us
                };
                let (coherent, incoherent) = (time(Execution::Coherent), time(Execution::Incoherent));
                assert!(coherent <= incoherent, "{scheme} {len} {gbit}: {coherent} {incoherent}");
            }
        }
    }
}

#[test]
fn a_draft_of_a_graph_is_the_graph() {
    let graph = repair(&Code::rs(3, 2).unwrap(), &[0], Scheme::Chain);
    let draft: Draft = graph.clone().into_draft();
    assert_eq!(draft.check().unwrap(), graph);
}
