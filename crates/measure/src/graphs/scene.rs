//! Clusters of the simulated network.

use std::sync::Arc;
use std::time::Instant;

use codec::Code;
use graph::limits::MAX_ATTEMPTS;
use graph::net::{Finished, Who, World, WorldConfig};
use graph::{
    Aim, AskerId, Class, EncodeQuestion, Envelope, Execution, Graph, LinkEnd, Links, Outcome, Part, Place,
    Question, Rules, RunId, Scheme, Source, TaskConfig, Wanted, plan, plan_encode,
};
use types::{ChunkId, GroupId, MemberId, NamespaceId, NodeId, ObjectId, RoleIndex, Term, ViewVersion};

/// One way between two nodes, in microseconds.
const LATENCY_US: f64 = 50.0;
/// Longest virtual time of anything, in microseconds.
const LONGEST_US: u64 = 60_000_000;
const ASKER: AskerId = AskerId(1);
/// Chunks that a fill makes, and how many of them at once.
const FILL_CHUNKS: u32 = 48;
const FILL_AT_ONCE: u32 = 8;
const FILL_LEN: u32 = 1 << 20;

/// All links alike.
pub(super) fn links(gbit: f64) -> Links {
    Links::uniform(LinkEnd::symmetric(gbit, LATENCY_US / 2.0))
}

/// One stripe: role `i` at node `i`.
pub(super) struct Scene {
    world: World,
    code: Arc<Code>,
    links: Links,
    part: Part,
    words: Vec<Vec<u8>>,
}

/// What one graph took.
pub(super) struct Took {
    pub us: f64,
    pub predicted_us: f64,
    pub slice_len: u32,
    pub window: u8,
    pub moved_bytes: u64,
    pub writer_bytes: u64,
    /// What it took this processor.
    pub wall_ns: f64,
}

/// Bytes that are not all alike.
fn noise(salt: usize, len: u32) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8 ^ (salt as u8).wrapping_mul(31)).collect()
}

pub(super) fn code_word(code: &Code, len: u32, salt: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut chunks: Vec<Vec<u8>> = (0..code.k()).map(|index| noise(index + salt, len)).collect();
    let mut parity = vec![vec![0; len as usize]; code.m()];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    let data: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
    code.encode(&data, &mut outputs).map_err(|error| error.to_string())?;
    chunks.extend(parity);
    Ok(chunks)
}

fn part(stripe: u32, len: u32) -> Part {
    let owner = MemberId { group: GroupId(1), role: RoleIndex(0) };
    let object = ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId(0) };
    Part { chunk: ChunkId { object, stripe }, offset: 0, len }
}

fn role(index: usize) -> RoleIndex {
    RoleIndex(index as u8)
}

impl Scene {
    pub(super) fn new(code: &Code, len: u32, links: Links) -> Result<Self, String> {
        let words = code_word(code, len, 0)?;
        let mut world = World::new(WorldConfig { piece_bytes: 64 << 10, ..WorldConfig::new(links.clone()) });
        let part = part(0, len);
        for (index, word) in words.iter().enumerate() {
            world.put(NodeId(index as u16), role(index), part.chunk, word.clone());
        }
        Ok(Self { world, code: Arc::new(code.clone()), links, part, words })
    }

    fn sources(&self, lost: &[usize]) -> Vec<Source> {
        let present = (0..self.code.n()).filter(|index| !lost.contains(index));
        present.map(|index| Source { role: role(index), node: NodeId(index as u16) }).collect()
    }

    fn envelope(&self) -> Envelope {
        Envelope {
            run: RunId { asker: ASKER, number: 1 },
            group: GroupId(1),
            view: ViewVersion(1),
            deadline_us: LONGEST_US,
            class: Class::Reader,
            strand: vec![self.part],
        }
    }

    /// Data role 1 by `scheme` while `lost` are lost, to the asker.
    pub(super) fn read(self, scheme: Scheme, lost: &[usize], execution: Execution) -> Result<Took, String> {
        let wanted = [Wanted { role: role(1), to: Place::Asker }];
        self.gather(scheme, &wanted, lost, execution, None)
    }

    /// What is wanted, in slices of a length if one is given.
    pub(super) fn gather(
        mut self,
        scheme: Scheme,
        wanted: &[Wanted],
        lost: &[usize],
        execution: Execution,
        slice_len: Option<u32>,
    ) -> Result<Took, String> {
        let sources = self.sources(lost);
        let (code, links, len) = (Arc::clone(&self.code), self.links.clone(), self.part.len);
        let question = Question {
            code: &code,
            sources: &sources,
            wanted,
            len,
            links: &links,
            avoided: &[],
            aim: Aim::READER,
            execution,
        };
        let shape = plan(&question, scheme).map_err(|error| error.to_string())?;
        let shape = slice_len.map_or(shape.clone(), |slice_len| shape.with_slices(slice_len, &links));
        let predicted_us = shape.prediction.us;
        let graph = shape.into_graph(self.envelope()).map_err(|error| error.to_string())?;
        self.finish(graph, predicted_us)
    }

    /// A new stripe, from the asker to other nodes.
    pub(super) fn encode(mut self, scheme: Scheme, execution: Execution) -> Result<Took, String> {
        let holders: Vec<NodeId> = (0..self.code.n()).map(|index| NodeId(500 + index as u16)).collect();
        let (code, links) = (Arc::clone(&self.code), self.links.clone());
        let (aim, len) = (Aim::READER, self.part.len);
        let question = EncodeQuestion { code: &code, holders: &holders, len, links: &links, aim, execution };
        let shape = plan_encode(&question, scheme).map_err(|error| error.to_string())?;
        let predicted_us = shape.prediction.us;
        let graph = shape.into_graph(self.envelope()).map_err(|error| error.to_string())?;
        let own = self.world.process(Who::Asker(ASKER));
        for (index, word) in self.words.iter().take(code.k()).enumerate() {
            own.chunks.insert((role(index), self.part.chunk), word.clone());
        }
        self.finish(graph, predicted_us)
    }

    /// Runs a graph, and sees that what it made is right.
    fn finish(&mut self, graph: Graph, predicted_us: f64) -> Result<Took, String> {
        let ends = graph.ends_at();
        let (run, slice_len, window) = (graph.run, graph.slice_len, graph.window);
        let began = Instant::now();
        self.world.start(ASKER, &Arc::new(graph));
        self.world.run_reports(ASKER, ends.len(), LONGEST_US);
        let wall_ns = began.elapsed().as_secs_f64() * 1e9;
        let us = self.world.now_us();
        for place in ends {
            let who = match place {
                Place::Node(node) => Who::Node(node),
                Place::Asker => Who::Asker(ASKER),
            };
            let kept =
                self.world.look(who).and_then(|process| process.kept.get(&run)).ok_or("it has not ended")?;
            if kept.iter().any(|(role, bytes)| *bytes != self.words[usize::from(role.0)]) {
                return Err("wrong bytes".to_owned());
            }
        }
        let traffic = self.world.traffic();
        Ok(Took {
            us,
            predicted_us,
            slice_len,
            window,
            moved_bytes: traffic.all.values().sum(),
            writer_bytes: traffic.sent(Who::Asker(ASKER)),
            wall_ns,
        })
    }
}

/// MiB a second that a new holder gets, of chunks of groups that lie on random nodes.
pub(super) fn fill(code: &Code, nodes: u16, gbit: f64, scheme: Scheme) -> Result<f64, String> {
    let newcomer = nodes;
    let links = Links { asker_node: Some(newcomer), ..links(gbit) };
    let mut world = World::new(WorldConfig { piece_bytes: 64 << 10, ..WorldConfig::new(links.clone()) });
    let words = code_word(code, FILL_LEN, 1)?;
    let mut left: Vec<(TaskConfig, Vec<Source>)> = Vec::new();
    for stripe in 0..FILL_CHUNKS {
        let chunk = part(stripe, FILL_LEN);
        let mut sources = Vec::new();
        for (index, word) in words.iter().enumerate().skip(1) {
            // Nodes next to each other from a place that differs from stripe to stripe: all of one group are different.
            let node = (u64::from(stripe) * 7919 + index as u64) % u64::from(nodes);
            world.put(NodeId(node as u16), role(index), chunk.chunk, word.clone());
            sources.push(Source { role: role(index), node: NodeId(node as u16) });
        }
        left.push((fill_task(code, stripe, chunk, scheme), sources));
    }
    left.reverse();
    let mut running: Vec<AskerId> = Vec::new();
    loop {
        while running.len() < FILL_AT_ONCE as usize
            && let Some((config, sources)) = left.pop()
        {
            running.push(config.asker);
            world.begin(config, sources, links.clone());
        }
        let Some(first) = running.first().copied() else { break };
        let finished = world.run_task(first, LONGEST_US);
        if !matches!(finished, Some(Finished { outcome: Outcome::Complete { .. }, .. })) {
            return Err(format!("a chunk is not filled: {finished:?}"));
        }
        running.remove(0);
    }
    Ok(f64::from(FILL_CHUNKS) * f64::from(FILL_LEN >> 20) / (world.now_us() / 1e6))
}

fn fill_task(code: &Code, stripe: u32, chunk: Part, scheme: Scheme) -> TaskConfig {
    TaskConfig {
        asker: AskerId(100 + u64::from(stripe)),
        number: 1,
        code: Arc::new(code.clone()),
        group: GroupId(1),
        view: ViewVersion(1),
        strand: vec![chunk],
        wanted: vec![Wanted { role: role(0), to: Place::Asker }],
        class: Class::Repair,
        scheme,
        aim: Aim::REPAIR,
        execution: Execution::Coherent,
        deadline_us: LONGEST_US,
        least_patience_us: LONGEST_US / 2,
        attempts: MAX_ATTEMPTS,
        flow_bytes: u64::MAX,
        avoided: Vec::new(),
        looks: false,
        rules: Rules::all(),
    }
}
