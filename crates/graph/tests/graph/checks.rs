//! What is no graph is refused where it arrives, and what an executor may not do it does not.

use codec::Code;
use graph::net::WorldConfig;
use graph::{
    BadGraph, Class, Draft, Edge, Envelope, Input, Links, Output, Place, RunId, Scheme, Step, limits, plan,
};
use rng::Rng;
use types::{GroupId, ViewVersion};

use crate::support::{ASKER, Cluster, at, question, role, sources, strand, to_asker};

fn draft(scheme: Scheme) -> Draft {
    let code = Code::rs(3, 2).unwrap();
    let (sources, wanted, links) = (sources(&code, &[1]), to_asker(&[1]), Links::default());
    let shape = plan(&question(&code, &sources, &wanted, 50_000, &links), scheme).unwrap();
    let envelope = Envelope {
        run: RunId { asker: ASKER, number: 1 },
        group: GroupId(1),
        view: ViewVersion(1),
        deadline_us: 1_000_000,
        class: Class::Reader,
        strand: strand(&[20_000, 30_000]),
    };
    shape.into_graph(envelope).unwrap().into_draft()
}

/// A chain of three, spoiled.
#[track_caller]
fn refuses(spoil: impl Fn(&mut Draft), expected: BadGraph) {
    let mut draft = draft(Scheme::Chain);
    spoil(&mut draft);
    assert_eq!(draft.check().unwrap_err(), expected);
}

fn bounds(what: &'static str, found: u64, least: u64, most: u64) -> BadGraph {
    BadGraph::Bounds { what, found, least, most }
}

#[test]
fn numbers_beyond_their_bounds_are_refused() {
    refuses(|draft| draft.slice_len = 1023, bounds("slice", 1023, 1024, 1 << 20));
    refuses(|draft| draft.window = 0, bounds("window", 0, 1, limits::MAX_WINDOW.into()));
    refuses(|draft| draft.deadline_us = 0, bounds("deadline", 0, 1, limits::MAX_DEADLINE_US));
    refuses(|draft| draft.strand.clear(), bounds("chunks", 0, 1, limits::MAX_PARTS as u64));
    refuses(
        |draft| draft.strand[1].len = u32::MAX,
        bounds("chunk", u32::MAX.into(), 1, limits::MAX_STRAND_BYTES.into()),
    );
    refuses(|draft| draft.strand[1].len = 64 << 20, bounds("strand", (64 << 20) + 20_000, 1, 64 << 20));
    refuses(|draft| draft.steps.clear(), bounds("steps", 0, 1, limits::MAX_STEPS as u64));
    refuses(|draft| draft.steps[0].inputs.clear(), bounds("inputs", 0, 1, 256));
    refuses(|draft| draft.steps[3].outputs.clear(), bounds("outputs", 0, 1, 256));
}

#[test]
fn matrices_are_of_their_size_and_without_rows_and_columns_of_zeros() {
    refuses(|draft| draft.steps[1].matrix.truncate(1), BadGraph::Matrix { step: 1, expected: 2, found: 1 });
    refuses(|draft| draft.steps[1].matrix.fill(0), BadGraph::Zeros { step: 1 });
    refuses(|draft| draft.steps[1].matrix[0] = 0, BadGraph::Zeros { step: 1 });
}

#[test]
fn edges_lead_forward_from_one_output_to_one_input() {
    refuses(|draft| draft.edges[1] = Edge { from: 1, to: 1 }, BadGraph::Backward { edge: 1 });
    refuses(|draft| draft.edges[1] = Edge { from: 2, to: 1 }, BadGraph::Backward { edge: 1 });
    refuses(|draft| draft.edges[1].to = 99, BadGraph::Backward { edge: 1 });
    refuses(|draft| draft.edges[1].to = 3, BadGraph::Ends { edge: 1 });
    refuses(|draft| draft.edges.push(Edge { from: 0, to: 3 }), BadGraph::Ends { edge: 3 });
    refuses(|draft| draft.steps[2].inputs[1] = Input::Stream(0), BadGraph::Ends { edge: 0 });
    refuses(|draft| draft.steps[0].outputs[0] = Output::Stream(7), BadGraph::Ends { edge: 7 });
    refuses(|draft| draft.steps[1].span.len -= 1, BadGraph::Spans { edge: 0 });
    refuses(|draft| draft.steps[0].span.len += 1, BadGraph::Range { step: 0 });
}

#[test]
fn a_chunk_is_named_once_and_written_by_one_step() {
    let twice = |draft: &mut Draft| {
        let step = &mut draft.steps[1];
        step.inputs.push(step.inputs[0]);
        step.matrix.push(1);
    };
    refuses(twice, BadGraph::Twice { step: 1 });
    refuses(|draft| draft.steps.push(draft.steps[3].clone()), BadGraph::Ends { edge: 2 });
    let written_by_two = |draft: &mut Draft| {
        let step = Step {
            inputs: [Input::Chunk(role(0))][..].into(),
            matrix: [1][..].into(),
            ..draft.steps[3].clone()
        };
        draft.steps.push(step);
    };
    refuses(written_by_two, BadGraph::Overlap { step: 4 });
    let read_and_written = |draft: &mut Draft| {
        let at = draft.steps[0].at;
        draft.steps[3].at = at;
        draft.steps[3].outputs[0] = Output::Chunk(role(0));
    };
    refuses(read_and_written, BadGraph::Overlap { step: 0 });
}

#[test]
fn no_spoiled_graph_makes_an_executor_panic() {
    let mut rng = Rng::new(3, 9);
    let mut accepted = 0;
    for seed in 0..4_000 {
        let mut draft = draft(Scheme::ALL[rng.index(6)]);
        for _ in 0..1 + rng.index(3) {
            spoil(&mut draft, &mut rng);
        }
        let Ok(graph) = draft.check() else { continue };
        accepted += 1;
        if seed % 8 == 0 {
            let config = WorldConfig::new(Links::default());
            let mut cluster = Cluster::new(Code::rs(3, 2).unwrap(), &[20_000, 30_000], config, 1);
            cluster.world.start(ASKER, &std::sync::Arc::new(graph));
            cluster.world.run_until(3_000_000);
            assert_eq!(cluster.world.violations(), [""; 0]);
        }
    }
    assert!(accepted > 200, "{accepted}");
}

/// One number, anywhere, is another one.
fn spoil(draft: &mut Draft, rng: &mut Rng) {
    let step = rng.index(draft.steps.len());
    let (count, edges) = (draft.steps.len(), draft.edges.len());
    let small = |rng: &mut Rng| rng.below(8) as u32;
    match rng.index(10) {
        0 => draft.slice_len = 1 << rng.below(24),
        1 => draft.window = rng.below(20) as u8,
        2 => draft.steps[step].at = if rng.percent(30) { Place::Asker } else { at(rng.index(6)) },
        3 => draft.steps[step].span.start = small(rng) * 5_000,
        4 => draft.steps[step].span.len = rng.below(60_000) as u32,
        5 => draft.steps[step].inputs[0] = Input::Chunk(role(rng.index(6))),
        6 => draft.steps[step].outputs[0] = Output::Chunk(role(rng.index(6))),
        7 => draft.steps[step].matrix[0] = rng.next() as u8,
        8 if edges > 0 => {
            draft.edges[rng.index(edges)] =
                Edge { from: rng.index(count) as u32, to: rng.index(count) as u32 }
        }
        _ => draft.deadline_us = rng.below(1 << 24),
    }
}
