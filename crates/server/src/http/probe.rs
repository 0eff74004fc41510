//! What a node knows of its links and of its processor, for coding graphs: the page `/graphs`.

use std::time::Instant;

use graph::Links;
use proto::Probed;
use serde::{Deserialize, Serialize};
use types::HostId;

use crate::node::snapshot::WorkerSnapshot;

/// Bytes of each of the chunks that are added up to see how fast that is, and how many there are: a millisecond or so.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS: usize = 6;

/// What a node knows for coding graphs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphsReport {
    /// Which process.
    pub node: HostId,
    /// How fast others are, by what was fetched of them; those of which enough is known.
    pub seen: Vec<SeenNode>,
    /// What its planners know of the network.
    pub links: Links,
    /// Products of a byte and a coefficient that it adds up in a second, on one processor, just now.
    pub products_per_s: f64,
    /// What has come of the last probe that was asked for.
    #[serde(default)]
    pub probe: LinkProbe,
}

/// Links that were measured on purpose.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkProbe {
    /// Whether there is more to come.
    pub is_under_way: bool,
    /// What is known so far.
    pub nodes: Vec<ProbedNode>,
}

/// The way from a node, as it was measured on purpose.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ProbedNode {
    /// From which one.
    pub node: u16,
    /// Which worker has measured it, over its own link to the same worker of that node.
    #[serde(default)]
    pub worker: u16,
    /// What it has done.
    pub answer: ProbeAnswer,
    /// Questions that were timed, and bytes of all answers.
    pub questions: u32,
    /// See `questions`.
    pub bytes: u64,
    /// Bytes a second, where answers of several lengths have come.
    pub bytes_per_s: Option<f64>,
    /// There and back, without what the bytes take.
    pub round_trip_us: Option<f64>,
}

/// What a node that is measured does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeAnswer {
    /// It has answered.
    Answered,
    /// It is down, or has said nothing for long.
    Silent,
    /// It has nothing that could be fetched.
    Empty,
}

/// `POST /graphs/probe`: one of the node's workers is to measure its links to all other nodes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeRequest {
    /// Bytes to fetch of each; there is a bound.
    pub bytes: u64,
    /// Which worker; the first one if that is not said.
    #[serde(default)]
    pub worker: u16,
}

impl LinkProbe {
    fn of(worker: u16, report: &proto::ProbeReport) -> Self {
        let node = |(node, probed): &(u16, Probed)| {
            let none = ProbedNode {
                node: *node,
                worker,
                answer: ProbeAnswer::Silent,
                questions: 0,
                bytes: 0,
                bytes_per_s: None,
                round_trip_us: None,
            };
            match *probed {
                Probed::Silent => none,
                Probed::Empty => ProbedNode { answer: ProbeAnswer::Empty, ..none },
                Probed::Answered { questions, bytes, bytes_per_s, round_trip_us } => {
                    let answer = ProbeAnswer::Answered;
                    ProbedNode { answer, questions, bytes, bytes_per_s, round_trip_us, ..none }
                }
            }
        };
        Self { is_under_way: report.is_under_way, nodes: report.nodes.iter().map(node).collect() }
    }

    /// What both have found out.
    fn plus(mut self, other: Self) -> Self {
        self.is_under_way |= other.is_under_way;
        self.nodes.extend(other.nodes);
        self
    }
}

/// The way from another node.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeenNode {
    /// From which one.
    pub node: u16,
    /// Answers that were timed.
    pub samples: u32,
    /// Bytes a second, where answers of several lengths have come.
    pub bytes_per_s: Option<f64>,
    /// There and back, without what the bytes take.
    pub round_trip_us: Option<f64>,
    /// What 64 KiB take.
    pub usual_us: f64,
    /// How many times as long as with most others that is.
    pub slowness: f64,
}

impl GraphsReport {
    pub(super) fn of(node: HostId, snapshots: &[WorkerSnapshot]) -> Self {
        let mut seen: Vec<SeenNode> = Vec::new();
        for link in snapshots.iter().flat_map(|worker| &worker.seen_links) {
            let proto::SeenLink { node, samples, bytes_per_s, round_trip_us, usual_us, slowness } = *link;
            let link = SeenNode { node: node.0, samples, bytes_per_s, round_trip_us, usual_us, slowness };
            match seen.iter_mut().find(|known| known.node == link.node) {
                Some(known) if known.samples < samples => *known = link,
                Some(_) => {}
                None => seen.push(link),
            }
        }
        seen.sort_by_key(|link| link.node);
        // Each worker has its own; the one that has seen most is as good as any.
        let most = |worker: &&WorkerSnapshot| worker.seen_links.iter().map(|link| link.samples).sum::<u32>();
        let links = snapshots.iter().max_by_key(most).map(|worker| (*worker.graph_links).clone());
        let probes = snapshots.iter().map(|worker| LinkProbe::of(worker.shard, &worker.probe));
        let probe = probes.fold(LinkProbe::default(), LinkProbe::plus);
        // Adding up takes a processor for a while, which shows in what is being measured.
        let products_per_s = if probe.is_under_way { 0.0 } else { products_per_s() };
        Self { node, seen, links: links.unwrap_or_default(), products_per_s, probe }
    }
}

/// Adds up once, after once that does not count.
fn products_per_s() -> f64 {
    let chunks = vec![vec![0x5a; CHUNK_BYTES]; CHUNKS];
    let inputs: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
    let factors: Vec<u8> = (2..).take(CHUNKS).collect();
    let mut sum = vec![0; CHUNK_BYTES];
    let mut took_s = 0.0;
    for _ in 0..2 {
        let began = Instant::now();
        let done = codec::combine_add(&mut sum, &factors, &inputs);
        debug_assert!(done.is_ok());
        took_s = began.elapsed().as_secs_f64();
    }
    (CHUNKS * CHUNK_BYTES) as f64 / f64::max(took_s, 1e-9)
}
