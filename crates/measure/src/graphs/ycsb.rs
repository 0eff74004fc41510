//! YCSB's workloads over the simulated network, after section V.B of INEC: closed loops of clients, keys by Zipf, updates that are
//! encoded and reads that are degraded, coherently and incoherently.
//!
//! When a read is degraded follows a Weibull distribution: failures come in bursts, and one read of a hundred is degraded in the mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use codec::Code;
use graph::limits::MAX_ATTEMPTS;
use graph::net::{Finished, Who, World, WorldConfig};
use graph::{
    Aim, AskerId, Class, EncodeQuestion, Envelope, Execution, Outcome, Part, Place, Primitive, Rules, RunId,
    Scheme, Source, TaskConfig, Wanted, plan_encode,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Weibull, Zipf};
use types::{ChunkId, GroupId, MemberId, NamespaceId, NodeId, ObjectId, RoleIndex, Term, ViewVersion};

use super::document::{Percentiles, Worked, YcsbRun};
use super::scene::{code_word, links};

/// Closed loops, keys, and operations of all of them.
const CLIENTS: usize = 16;
const KEYS: u64 = 256;
const OPERATIONS: u64 = 3_000;
const GBIT: f64 = 10.0;
/// Of the Weibull distribution, as it fits failures of large machines.
const SHAPE: f64 = 0.75;
/// Reads for each that is degraded, in the mean.
const READS: f64 = 100.0;
const LONGEST_US: u64 = 600_000_000;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    /// The figure of the paper.
    pub figure: &'static str,
    pub code: &'static str,
    /// How what is lost is made; updates are encoded so, too, where the scheme encodes.
    pub scheme: Scheme,
    pub name: char,
    pub reads_percent: u32,
    pub value_len: u32,
    /// Chunks that are lost at a degraded read.
    pub lost: usize,
    /// Whether every read is degraded.
    pub always: bool,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Update,
    Read,
    Degraded,
}

/// An operation that is under way.
struct Running {
    asker: AskerId,
    kind: Kind,
    begun_us: f64,
    /// Reports that end it; none if it is a task that ends by itself.
    reports: Option<usize>,
}

struct Bench {
    workload: Workload,
    execution: Execution,
    code: Arc<Code>,
    chunk_len: u32,
    words: Vec<Vec<u8>>,
    world: World,
    random: StdRng,
    keys: Zipf<f64>,
    failures: Weibull<f64>,
    /// Reads until the next one is degraded.
    healthy_reads: f64,
    begun: u64,
    took: BTreeMap<Kind, Vec<f64>>,
}

/// Runs it.
pub(super) fn run(workload: Workload, execution: Execution) -> Result<YcsbRun, String> {
    let mut bench = Bench::new(workload, execution)?;
    let mut running: Vec<Running> = Vec::new();
    while bench.begun < OPERATIONS || !running.is_empty() {
        while running.len() < CLIENTS && bench.begun < OPERATIONS {
            running.push(bench.begin()?);
        }
        bench.world.run_while(LONGEST_US, |world| !running.iter().any(|one| one.is_over(world)));
        let ended = running.iter().position(|one| one.is_over(&bench.world)).ok_or("nothing ends")?;
        bench.end(&running.swap_remove(ended))?;
    }
    Ok(bench.ran())
}

impl Running {
    fn is_over(&self, world: &World) -> bool {
        world.look(Who::Asker(self.asker)).is_some_and(|process| match self.reports {
            Some(count) => process.done_reports() >= count,
            None => process.finished.is_some(),
        })
    }
}

impl Bench {
    fn new(workload: Workload, execution: Execution) -> Result<Self, String> {
        let code = super::code(workload.code)?;
        let chunk_len = workload.value_len.div_ceil(code.k() as u32).next_multiple_of(64);
        let words = code_word(&code, chunk_len, 7)?;
        let world = World::new(WorldConfig { piece_bytes: 64 << 10, ..WorldConfig::new(links(GBIT)) });
        let scale = READS / gamma_of_one_and(1.0 / SHAPE);
        let mut bench = Self {
            workload,
            execution,
            chunk_len,
            words,
            world,
            random: StdRng::seed_from_u64(7),
            keys: Zipf::new(KEYS as f64, 0.99).map_err(|error| error.to_string())?,
            failures: Weibull::new(scale, SHAPE).map_err(|error| error.to_string())?,
            healthy_reads: 0.0,
            begun: 0,
            took: BTreeMap::new(),
            code: Arc::new(code),
        };
        bench.healthy_reads = bench.failures.sample(&mut bench.random);
        for key in 0..KEYS {
            for (role, word) in bench.words.clone().into_iter().enumerate() {
                bench.world.put(bench.holder(key, role), RoleIndex(role as u8), chunk(key), word);
            }
        }
        Ok(bench)
    }

    /// As many nodes as a stripe has chunks; keys begin at different ones.
    fn holder(&self, key: u64, role: usize) -> NodeId {
        NodeId(((key + role as u64) % self.code.n() as u64) as u16)
    }

    fn begin(&mut self) -> Result<Running, String> {
        self.begun += 1;
        let asker = AskerId(1_000 + self.begun);
        let key = self.keys.sample(&mut self.random) as u64 - 1;
        let begun_us = self.world.now_us();
        if !self.random.random_ratio(self.workload.reads_percent, 100) {
            let reports = Some(self.update(asker, key)?);
            return Ok(Running { asker, kind: Kind::Update, begun_us, reports });
        }
        self.healthy_reads -= 1.0;
        let is_degraded = self.workload.always || self.healthy_reads < 0.0;
        if self.healthy_reads < 0.0 {
            self.healthy_reads += self.failures.sample(&mut self.random);
        }
        self.read(asker, key, if is_degraded { self.workload.lost } else { 0 });
        let kind = if is_degraded { Kind::Degraded } else { Kind::Read };
        Ok(Running { asker, kind, begun_us, reports: None })
    }

    /// A new stripe of a key; how many processes have to say that they are done.
    fn update(&mut self, asker: AskerId, key: u64) -> Result<usize, String> {
        let holders: Vec<NodeId> = (0..self.code.n()).map(|role| self.holder(key, role)).collect();
        let links = links(GBIT);
        let (aim, execution, len) = (Aim::READER, self.execution, self.chunk_len);
        let question =
            EncodeQuestion { code: &self.code, holders: &holders, len, links: &links, aim, execution };
        // Only these encode: who repairs otherwise codes his updates himself.
        let scheme = if self.workload.scheme == Scheme::Tri { Scheme::Tri } else { Scheme::Star };
        let shape = plan_encode(&question, scheme).map_err(|error| error.to_string())?;
        let chunk = chunk(KEYS + self.begun);
        let envelope = Envelope {
            run: RunId { asker, number: 1 },
            group: GroupId(1),
            view: ViewVersion(1),
            deadline_us: LONGEST_US,
            class: Class::Reader,
            strand: vec![Part { chunk, offset: 0, len }],
        };
        let graph = shape.into_graph(envelope).map_err(|error| error.to_string())?;
        let own = self.world.process(Who::Asker(asker));
        for (role, word) in self.words.iter().take(self.code.k()).enumerate() {
            own.chunks.insert((RoleIndex(role as u8), chunk), word.clone());
        }
        let reports = graph.ends_at().len();
        self.world.start(asker, &Arc::new(graph));
        Ok(reports)
    }

    /// The whole value of a key, some of whose chunks are lost.
    fn read(&mut self, asker: AskerId, key: u64, lost: usize) {
        let sources = (lost..self.code.n())
            .map(|role| Source { role: RoleIndex(role as u8), node: self.holder(key, role) })
            .collect();
        let wanted =
            (0..self.code.k()).map(|role| Wanted { role: RoleIndex(role as u8), to: Place::Asker }).collect();
        let config = TaskConfig {
            asker,
            number: 1,
            code: Arc::clone(&self.code),
            group: GroupId(1),
            view: ViewVersion(1),
            strand: vec![Part { chunk: chunk(key), offset: 0, len: self.chunk_len }],
            wanted,
            class: Class::Reader,
            scheme: if lost == 0 { Scheme::Star } else { self.workload.scheme },
            aim: Aim::READER,
            execution: self.execution,
            deadline_us: LONGEST_US,
            least_patience_us: LONGEST_US / 2,
            attempts: MAX_ATTEMPTS,
            flow_bytes: u64::MAX,
            avoided: Vec::new(),
            looks: false,
            rules: Rules::all(),
        };
        self.world.begin(config, sources, links(GBIT));
    }

    fn end(&mut self, one: &Running) -> Result<(), String> {
        let process = self.world.look(Who::Asker(one.asker)).ok_or("nobody asked")?;
        if one.reports.is_none() {
            if !matches!(process.finished, Some(Finished { outcome: Outcome::Complete { .. }, .. })) {
                return Err(format!("a read failed: {:?}", process.finished));
            }
            let is_right = |(role, bytes): (&RoleIndex, &Vec<u8>)| *bytes == self.words[usize::from(role.0)];
            let read = process.kept.values().flatten();
            if read.clone().count() != self.code.k() || !read.clone().all(is_right) {
                return Err("wrong bytes".to_owned());
            }
        }
        let took_us = self.world.now_us() - one.begun_us;
        self.took.entry(one.kind).or_default().push(took_us);
        Ok(())
    }

    fn ran(mut self) -> YcsbRun {
        let mut take = |kind| Percentiles::of(self.took.remove(&kind).unwrap_or_default());
        let (updates, degraded) = (take(Kind::Update), take(Kind::Degraded));
        let worked = Primitive::ALL.iter().map(|primitive| self.worked(*primitive)).collect();
        YcsbRun { operations_per_s: self.begun as f64 / self.world.now_us() * 1e6, updates, degraded, worked }
    }

    /// What nodes took for a primitive, from the graph to the last slice.
    fn worked(&self, primitive: Primitive) -> Worked {
        let nodes = (0..self.code.n()).filter_map(|node| self.world.look(Who::Node(NodeId(node as u16))));
        let runs = nodes.flat_map(|process| process.worked.values());
        let of_primitive = runs.filter(|worked| worked.primitive == primitive);
        let us = of_primitive.map(|worked| worked.ended_us - worked.begun_us).collect();
        Worked { primitive: primitive.name().to_owned(), us: Percentiles::of(us) }
    }
}

fn chunk(number: u64) -> ChunkId {
    let owner = MemberId { group: GroupId(1), role: RoleIndex(0) };
    let object = ObjectId { owner, term: Term(1), number, salt: 1, namespace: NamespaceId(0) };
    ChunkId { object, stripe: 0 }
}

/// The gamma function of `1 + x`, for `x` from 1 to 2: the mean of a Weibull distribution is its scale times that.
/// Windschitl's approximation, good to 5 digits here.
fn gamma_of_one_and(x: f64) -> f64 {
    let z = x + 1.0;
    let base = z / std::f64::consts::E * (z * (1.0 / z).sinh() + 1.0 / (810.0 * z.powi(6))).sqrt();
    (2.0 * std::f64::consts::PI / z).sqrt() * base.powf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_failures_is_what_is_asked_for() {
        assert!((gamma_of_one_and(1.0) - 1.0).abs() < 1e-4 && (gamma_of_one_and(2.0) - 2.0).abs() < 1e-4);
        let weibull = Weibull::new(READS / gamma_of_one_and(1.0 / SHAPE), SHAPE).unwrap();
        let mut random = StdRng::seed_from_u64(1);
        let sum: f64 = (0..200_000).map(|_| weibull.sample(&mut random)).sum();
        assert!((sum / 200_000.0 / READS - 1.0).abs() < 0.02, "{}", sum / 200_000.0);
    }
}
