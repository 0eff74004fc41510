//! A process of the network: an executor, chunks, and if it asks a task.

use std::collections::{BTreeMap, VecDeque};

use types::{ChunkId, GroupId, NodeId, RoleIndex, Time, ViewVersion, checksum};

use super::names::{Finished, State};
use super::queue::Mail;
use crate::asker::{Look, Task};
use crate::executor::{Counters, Executor, ExecutorConfig, Load, Surroundings, Unreadable};
use crate::graph::{Graph, Place, Primitive, RunId, Step};
use crate::message::{Message, Report};
use crate::model::Links;
use crate::rules::{Bug, Rules};

/// What a run has written here, by roles.
type Staged = BTreeMap<RoleIndex, Vec<u8>>;

/// How long a process was at work for a run, in microseconds: from when it heard of it to when it had handled the last message of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worked {
    /// What it does for it: of several steps the last one.
    pub primitive: Primitive,
    /// When it had the graph.
    pub begun_us: f64,
    /// When it was last done with something.
    pub ended_us: f64,
}

/// See the module.
#[derive(Debug)]
pub struct Process {
    /// Chunks that can be read.
    pub chunks: BTreeMap<(RoleIndex, ChunkId), Vec<u8>>,
    /// Those that are not what they were, and are known not to be.
    pub rotten: Vec<RoleIndex>,
    /// The view that it has of every group.
    pub view: ViewVersion,
    /// The checksum that the chunks of a role should have, where somebody has said so.
    pub expected: BTreeMap<RoleIndex, u32>,
    /// What was made here and kept, by run.
    pub kept: BTreeMap<RunId, BTreeMap<RoleIndex, Vec<u8>>>,
    /// What was done here for runs that began with a message of another process.
    pub worked: BTreeMap<RunId, Worked>,
    /// What an asker was told.
    pub reports: Vec<(Place, RunId, Report)>,
    /// How its task ended.
    pub finished: Option<Finished>,
    pub(super) executor: Executor,
    pub(super) task: Option<Task>,
    pub(super) believed: Links,
    pub(super) inbox: VecDeque<Mail>,
    pub(super) state: State,
    pub(super) is_refusing: bool,
    pub(super) free_ns: u64,
    pub(super) wakes: bool,
    pub(super) timer_ns: Option<u64>,
    pub(super) staged: BTreeMap<(RunId, Place), Staged>,
    piece_bytes: usize,
    rules: Rules,
    draws: u64,
}

impl Process {
    pub(super) fn new(config: ExecutorConfig, piece_bytes: usize) -> Self {
        Self {
            chunks: BTreeMap::new(),
            rotten: Vec::new(),
            view: ViewVersion(1),
            expected: BTreeMap::new(),
            kept: BTreeMap::new(),
            worked: BTreeMap::new(),
            reports: Vec::new(),
            finished: None,
            executor: Executor::new(config),
            task: None,
            believed: Links::default(),
            inbox: VecDeque::new(),
            state: State::Alive,
            is_refusing: false,
            free_ns: 0,
            wakes: false,
            timer_ns: None,
            staged: BTreeMap::new(),
            piece_bytes,
            rules: config.rules,
            draws: 0,
        }
    }

    /// What its executor has taken on.
    #[must_use]
    pub fn load(&self) -> Load {
        self.executor.load()
    }

    /// What its executor has done.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.executor.counters()
    }

    /// What its task has seen last of what holds its graph up.
    #[must_use]
    pub fn look(&self) -> Option<Look> {
        self.task.as_ref()?.newest()?.1
    }

    /// Whether it is gone.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    /// Its task is driven no more.
    pub fn forget_task(&mut self) {
        self.task = None;
    }

    /// How many have told that they are done.
    #[must_use]
    pub fn done_reports(&self) -> usize {
        self.reports.iter().filter(|(_, _, report)| *report == Report::Done).count()
    }

    /// Handles a message; how long that takes, in nanoseconds.
    pub(super) fn receive(&mut self, now_ns: u64, mail: Mail, links: &Links) -> u64 {
        let before = Spent::of(self.executor.counters());
        let Mail { me, at, message, .. } = mail;
        let run = message.run();
        let primitive = match &message {
            Message::Start(graph) => primitive_at(graph, at),
            _ => None,
        };
        self.hear(Time(now_ns / 1000), at, me, message);
        let spent = Spent::of(self.executor.counters());
        let us = (spent.products - before.products) as f64 * 1e6 / links.products_per_s
            + (spent.touched - before.touched) as f64 * 1e6 / links.touch_bytes_per_s
            + (spent.slices - before.slices) as f64 * links.slice_us;
        let begun_us = now_ns as f64 / 1e3;
        if let Some(primitive) = primitive {
            self.worked.insert(run, Worked { primitive, begun_us, ended_us: begun_us });
        }
        if let Some(worked) = self.worked.get_mut(&run) {
            worked.ended_us = begun_us + us;
        }
        (us * 1e3) as u64
    }

    pub(super) fn hear(&mut self, now: Time, me: Place, from: Place, message: Message) {
        if let Message::Report { run, report } = message {
            self.draws = self.draws.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            self.reports.push((from, run, report.clone()));
            if let Some(task) = &mut self.task {
                task.handle_report(now, from, run, report, self.draws >> 33, &self.believed);
            }
            return;
        }
        let sight = Sight {
            chunks: &self.chunks,
            rotten: &self.rotten,
            view: self.view,
            piece_bytes: self.piece_bytes,
        };
        self.executor.handle(now, me, from, message, &sight);
    }

    pub(super) fn time_passes(&mut self, now: Time) {
        self.executor.handle_timeout(now);
        if let Some(task) = &mut self.task {
            task.handle_timeout(now, &self.believed);
        }
    }

    pub(super) fn lose(&mut self, now: Time, node: NodeId) {
        self.executor.handle_lost(Place::Node(node));
        if let Some(task) = &mut self.task {
            task.handle_lost(now, node, &self.believed);
        }
    }

    pub(super) fn due(&self) -> Option<Time> {
        let task = self.task.as_ref().and_then(Task::poll_timeout);
        [self.executor.poll_timeout(), task].into_iter().flatten().min()
    }

    pub(super) fn write(&mut self, run: (RunId, Place), role: RoleIndex, offset: u32, bytes: &[u8]) {
        let staged = self.staged.entry(run).or_default().entry(role).or_default();
        let end = offset as usize + bytes.len();
        if staged.len() < end {
            staged.resize(end, 0);
        }
        staged[offset as usize..end].copy_from_slice(bytes);
    }

    /// Keeps what a run has written, if it is what it should be.
    pub(super) fn keep(&mut self, run: (RunId, Place), graph: &Graph) {
        let staged = self.staged.remove(&run).unwrap_or_default();
        let is_right = |(role, bytes): (&RoleIndex, &Vec<u8>)| {
            self.expected.get(role).is_none_or(|expected| *expected == checksum(bytes))
        };
        let is_kept = staged.iter().all(is_right) || !self.rules.prevent(Bug::ResultUnchecked);
        debug_assert!(staged.values().all(|bytes| bytes.len() <= graph.strand_len() as usize));
        if is_kept {
            self.kept.insert(run.0, staged);
        }
        self.executor.handle_kept(run.0, run.1, is_kept);
    }
}

/// What the last step of a graph at a place does.
fn primitive_at(graph: &Graph, place: Place) -> Option<Primitive> {
    graph.steps.iter().rev().find(|step| step.at == place).map(Step::primitive)
}

/// What costs time.
struct Spent {
    products: u64,
    touched: u64,
    slices: u64,
}

impl Spent {
    fn of(counters: &Counters) -> Self {
        let sum =
            |of: fn(&crate::executor::PrimitiveCounters) -> u64| counters.primitives.iter().map(of).sum();
        Self {
            products: counters.combined_bytes(),
            touched: sum(|counters| counters.in_bytes + counters.out_bytes),
            slices: sum(|counters| counters.in_slices + counters.out_slices),
        }
    }
}

/// What the executor sees.
struct Sight<'a> {
    chunks: &'a BTreeMap<(RoleIndex, ChunkId), Vec<u8>>,
    rotten: &'a [RoleIndex],
    view: ViewVersion,
    piece_bytes: usize,
}

impl Surroundings for Sight<'_> {
    fn knows(&self, _: NodeId) -> bool {
        true
    }

    fn view(&self, _: GroupId) -> ViewVersion {
        self.view
    }

    fn piece(&self, _: GroupId, role: RoleIndex, chunk: ChunkId, offset: u32) -> Result<&[u8], Unreadable> {
        if self.rotten.contains(&role) {
            return Err(Unreadable::Rotten);
        }
        let bytes = self.chunks.get(&(role, chunk)).ok_or(Unreadable::Missing)?;
        let offset = offset as usize;
        let end = (offset + 1).next_multiple_of(self.piece_bytes).min(bytes.len());
        bytes.get(offset..end).filter(|piece| !piece.is_empty()).ok_or(Unreadable::Missing)
    }
}
