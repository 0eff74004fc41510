//! Codes, patterns of losses, worlds.

use std::sync::Arc;

use codec::Code;
use graph::limits::MAX_ATTEMPTS;
use graph::net::{Finished, Who, World, WorldConfig};
use graph::{
    Aim, AskerId, Class, Envelope, Execution, Links, Outcome, Part, Place, Question, Rules, RunId, Scheme,
    Source, TaskConfig, Wanted,
};
use rng::Rng;
use types::{ChunkId, GroupId, NodeId, ObjectId, RoleIndex, ViewVersion, checksum};

pub const ASKER: AskerId = AskerId(7);

pub fn role(index: usize) -> RoleIndex {
    RoleIndex(u8::try_from(index).unwrap())
}

pub fn node(index: usize) -> NodeId {
    NodeId(u16::try_from(index).unwrap())
}

pub fn at(index: usize) -> Place {
    Place::Node(node(index))
}

/// Role `i` is at node `i`.
pub fn sources(code: &Code, lost: &[usize]) -> Vec<Source> {
    let present = (0..code.n()).filter(|index| !lost.contains(index));
    present.map(|index| Source { role: role(index), node: node(index) }).collect()
}

/// All to the asker.
pub fn to_asker(roles: &[usize]) -> Vec<Wanted> {
    roles.iter().map(|index| Wanted { role: role(*index), to: Place::Asker }).collect()
}

pub fn question<'a>(
    code: &'a Code,
    sources: &'a [Source],
    wanted: &'a [Wanted],
    len: u32,
    links: &'a Links,
) -> Question<'a> {
    Question {
        code,
        sources,
        wanted,
        len,
        links,
        avoided: &[],
        aim: Aim::READER,
        execution: Execution::Coherent,
    }
}

/// All sets of roles as bits.
pub fn roles_of(set: u32) -> Vec<usize> {
    (0..32).filter(|index| set >> index & 1 == 1).collect()
}

pub fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next() as u8).collect()
}

/// All `n` chunks of a code word.
pub fn code_word(code: &Code, len: usize, rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut chunks: Vec<Vec<u8>> = (0..code.k()).map(|_| noise(rng, len)).collect();
    let mut parity = vec![vec![0; len]; code.m()];
    let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&chunks.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut outputs).unwrap();
    chunks.extend(parity);
    chunks
}

/// Chunks of one object, as long as `lens` says.
pub fn strand(lens: &[u32]) -> Vec<Part> {
    let object = ObjectId {
        owner: types::MemberId { group: GroupId(1), role: role(0) },
        term: types::Term(1),
        number: 1,
        salt: 1,
        namespace: types::NamespaceId(0),
    };
    let parts = (0..).zip(lens);
    parts.map(|(stripe, len)| Part { chunk: ChunkId { object, stripe }, offset: 0, len: *len }).collect()
}

/// A cluster whose node `i` has the chunks of role `i`, and the bytes of each role's strand.
pub struct Cluster {
    pub world: World,
    pub code: Arc<Code>,
    pub strand: Vec<Part>,
    pub words: Vec<Vec<u8>>,
    pub links: Links,
}

impl Cluster {
    pub fn new(code: Code, lens: &[u32], config: WorldConfig, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 1);
        let len = lens.iter().sum::<u32>() as usize;
        let words = code_word(&code, len, &mut rng);
        let links = config.links.clone();
        let mut world = World::new(config);
        let strand = strand(lens);
        for (index, word) in words.iter().enumerate() {
            let mut start = 0;
            for part in &strand {
                let end = start + part.len as usize;
                world.put(node(index), role(index), part.chunk, word[start..end].to_vec());
                start = end;
            }
        }
        Self { world, code: Arc::new(code), strand, words, links }
    }

    pub fn config(&self, wanted: Vec<Wanted>, scheme: Scheme) -> TaskConfig {
        TaskConfig {
            asker: ASKER,
            number: 1,
            code: Arc::clone(&self.code),
            group: GroupId(1),
            view: ViewVersion(1),
            strand: self.strand.clone(),
            wanted,
            class: Class::Reader,
            scheme,
            aim: Aim::READER,
            execution: Execution::Coherent,
            deadline_us: 2_000_000,
            least_patience_us: 5_000,
            attempts: MAX_ATTEMPTS,
            flow_bytes: u64::MAX,
            avoided: Vec::new(),
            looks: false,
            rules: Rules::all(),
        }
    }

    /// For a graph by which the asker encodes.
    pub fn encoding_envelope(&self) -> Envelope {
        Envelope {
            run: RunId { asker: ASKER, number: 9 },
            group: GroupId(1),
            view: ViewVersion(1),
            deadline_us: 9_000_000,
            class: Class::Reader,
            strand: self.strand.clone(),
        }
    }

    /// The asker has the data, as who encodes has.
    pub fn give_data_to_asker(&mut self) {
        for index in 0..self.code.k() {
            let mut start = 0;
            for part in &self.strand {
                let end = start + part.len as usize;
                let bytes = self.words[index][start..end].to_vec();
                self.world.process(Who::Asker(ASKER)).chunks.insert((role(index), part.chunk), bytes);
                start = end;
            }
        }
    }

    /// Who wants a chunk knows its checksum.
    pub fn expect(&mut self, wanted: &[Wanted], asker: AskerId) {
        for wanted in wanted {
            let sum = checksum(&self.words[usize::from(wanted.role.0)]);
            let who = who(wanted.to, asker);
            self.world.process(who).expected.insert(wanted.role, sum);
        }
    }

    pub fn begin(&mut self, config: TaskConfig, sources: Vec<Source>) {
        let links = self.links.clone();
        self.world.begin(config, sources, links);
    }

    /// Runs the task to its end.
    pub fn run(&mut self, config: TaskConfig, sources: Vec<Source>) -> Finished {
        let deadline = self.world.now_us() as u64 + config.deadline_us;
        let asker = config.asker;
        self.begin(config, sources);
        self.world.run_task(asker, deadline + 1_000).expect("a task ends by its deadline")
    }

    /// What `run` made of `wanted`.
    pub fn made(&self, wanted: &Wanted, run: RunId) -> Option<&Vec<u8>> {
        self.world.look(who(wanted.to, run.asker))?.kept.get(&run)?.get(&wanted.role)
    }

    #[track_caller]
    pub fn assert_right(&self, wanted: &[Wanted], finished: &Finished) {
        let Outcome::Complete { run, .. } = finished.outcome else { panic!("{finished:?}") };
        for wanted in wanted {
            let right = &self.words[usize::from(wanted.role.0)];
            assert!(self.made(wanted, run) == Some(right), "{wanted:?} of {run}");
        }
    }

    /// Nobody holds anything, and nobody ever held too much.
    #[track_caller]
    pub fn assert_at_rest(&mut self, nodes: usize) {
        let far = self.world.now_us() as u64 + 10_000_000;
        self.world.run_until(far);
        assert_eq!(self.world.violations(), [""; 0]);
        for index in 0..nodes {
            let process = self.world.process(Who::Node(node(index)));
            let load = process.load();
            if process.is_dead() {
                continue;
            }
            assert_eq!((load.runs, load.reserved_bytes, load.held_bytes), (0, 0, 0), "node {index}");
        }
    }
}

pub fn who(place: Place, asker: AskerId) -> Who {
    match place {
        Place::Node(node) => Who::Node(node),
        Place::Asker => Who::Asker(asker),
    }
}
