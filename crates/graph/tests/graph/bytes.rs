//! Executors over a network give the codec's bytes: random codes, losses, lengths, strands, places and slices.

use std::sync::Arc;

use codec::Code;
use graph::net::{Who, WorldConfig};
use graph::{
    Aim, EncodeQuestion, Execution, LinkEnd, Links, Place, Report, RunId, Scheme, Wanted, plan_encode,
};
use rng::Rng;
use types::NodeId;

use crate::support::{ASKER, Cluster, at, node, role, sources, to_asker};

fn codes() -> Vec<Code> {
    let codes = [
        Code::rs(1, 1),
        Code::rs(2, 2),
        Code::rs(3, 2),
        Code::rs(6, 3),
        Code::rs(10, 4),
        Code::lrc(4, 2, 2),
        Code::lrc(6, 2, 2),
        Code::rep(3),
        Code::xor(4),
    ];
    codes.map(Result::unwrap).into()
}

fn lost(rng: &mut Rng, code: &Code) -> Vec<usize> {
    loop {
        let count = 1 + rng.index(code.m());
        let mut lost: Vec<usize> = (0..count).map(|_| rng.index(code.n())).collect();
        lost.sort_unstable();
        lost.dedup();
        if code.decodable(&lost).unwrap() {
            return lost;
        }
    }
}

/// One chunk, or several that slices cross.
fn lens(rng: &mut Rng) -> Vec<u32> {
    let most = [1, 64, 5_000, 70_000][rng.index(4)];
    (0..1 + rng.index(3)).map(|_| 1 + rng.below(most) as u32).collect()
}

fn places(rng: &mut Rng, lost: &[usize], code: &Code) -> Vec<Wanted> {
    let choice = rng.index(4);
    let place = |index: usize| match choice {
        // A node that has a chunk of another role, so that it helps itself.
        0 => at((0..code.n()).find(|other| !lost.contains(other)).unwrap()),
        1 => at(index),
        2 => Place::Asker,
        _ => at(100 + index),
    };
    lost.iter().map(|index| Wanted { role: role(*index), to: place(*index) }).collect()
}

#[test]
fn executors_give_the_codecs_bytes() {
    let mut rng = Rng::new(1, 1);
    let codes = codes();
    for seed in 0..400 {
        let code = codes[rng.index(codes.len())].clone();
        let links = Links { asker_node: rng.once_in(4).then_some(2), ..Links::default() };
        let mut cluster = Cluster::new(code.clone(), &lens(&mut rng), WorldConfig::new(links), seed);
        let lost = lost(&mut rng, &code);
        let wanted = places(&mut rng, &lost, &code);
        let scheme = Scheme::ALL[rng.index(6)];
        let mut config = cluster.config(wanted.clone(), scheme);
        config.execution = if rng.percent(25) { Execution::Incoherent } else { Execution::Coherent };
        cluster.expect(&wanted, ASKER);
        let finished = cluster.run(config, sources(&code, &lost));
        cluster.assert_right(&wanted, &finished);
        cluster.assert_at_rest(code.n());
    }
}

#[test]
fn what_can_be_read_is_gathered_beside_what_is_decoded() {
    let mut rng = Rng::new(2, 2);
    for (seed, scheme) in (0..).zip(Scheme::ALL.repeat(4)) {
        let code = Code::rs(6, 3).unwrap();
        let mut cluster = Cluster::new(code.clone(), &[30_000], WorldConfig::new(Links::default()), seed);
        let lost = lost(&mut rng, &code);
        let wanted = to_asker(&(0..6).collect::<Vec<_>>());
        let config = cluster.config(wanted.clone(), scheme);
        let finished = cluster.run(config, sources(&code, &lost));
        cluster.assert_right(&wanted, &finished);
    }
}

/// The asker has the data, the holders have nothing.
fn encode(cluster: &mut Cluster, scheme: Scheme, execution: Execution) -> RunId {
    let holders: Vec<NodeId> = (0..cluster.code.n()).map(|index| node(200 + index)).collect();
    let len = cluster.strand.iter().map(|part| part.len).sum();
    let links = cluster.links.clone();
    let question = EncodeQuestion {
        code: &cluster.code,
        holders: &holders,
        len,
        links: &links,
        aim: Aim::READER,
        execution,
    };
    let envelope = cluster.encoding_envelope();
    let run = envelope.run;
    let graph = plan_encode(&question, scheme).unwrap().into_graph(envelope).unwrap();
    cluster.give_data_to_asker();
    cluster.world.start(ASKER, &Arc::new(graph));
    cluster.world.run_until(9_000_000);
    run
}

#[test]
fn holders_of_a_new_stripe_have_the_codecs_bytes() {
    let mut rng = Rng::new(3, 3);
    for (seed, code) in (0..).zip(codes().into_iter().cycle().take(60)) {
        let scheme = [Scheme::Star, Scheme::Tri, Scheme::Chain, Scheme::Auto][rng.index(4)];
        let execution = if rng.percent(25) { Execution::Incoherent } else { Execution::Coherent };
        let mut cluster =
            Cluster::new(code.clone(), &lens(&mut rng), WorldConfig::new(Links::default()), seed);
        let run = encode(&mut cluster, scheme, execution);
        for index in 0..code.n() {
            let wanted = Wanted { role: role(index), to: at(200 + index) };
            assert!(cluster.made(&wanted, run) == Some(&cluster.words[index]), "{scheme}: role {index}");
        }
        let reports = &cluster.world.look(Who::Asker(ASKER)).unwrap().reports;
        assert_eq!(reports.iter().filter(|(_, _, report)| *report == Report::Done).count(), code.n());
    }
}

#[test]
fn a_writers_link_carries_the_value_once_with_tri_and_with_chain() {
    for (code, most) in [(Code::rs(6, 3).unwrap(), 9.0), (Code::rs(10, 4).unwrap(), 14.0)] {
        for (scheme, chunks) in
            [(Scheme::Star, most), (Scheme::Tri, code.k() as f64), (Scheme::Chain, code.k() as f64)]
        {
            let config = WorldConfig::new(Links::uniform(LinkEnd::symmetric(1.0, 25.0)));
            let mut cluster = Cluster::new(code.clone(), &[1 << 20], config, 1);
            encode(&mut cluster, scheme, Execution::Coherent);
            let sent = cluster.world.traffic().sent(Who::Asker(ASKER)) as f64;
            let ratio = sent / f64::from(1 << 20) / chunks;
            assert!((1.0..1.05).contains(&ratio), "{scheme}: {ratio}");
        }
    }
}
