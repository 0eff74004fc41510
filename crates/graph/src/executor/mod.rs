//! The executor of one worker: it runs the steps of graphs that are at its process, without I/O.
//!
//! - A graph is taken or refused at once. What is taken has all its memory reserved: the windows of its edges, and the chunks that it
//!   writes. What is refused holds nothing.
//! - Credits belong to an edge, and are given for reserved memory only. Slices of an edge come in order, each once, with their sum.
//! - A run is a run: nothing of another one is looked at. Chunks that are written are kept when all steps of the run here have ended.
//! - A run ends: by its last slice, by the asker, by a fault that the asker hears of, or by its deadline.
//!
//! Who drives it brings messages ([`Executor::handle`]) and time, and does what [`Executor::poll_command`] says.

mod combine;
mod command;
mod counters;
mod early;
mod memory;
mod run;
mod step;
mod surroundings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use types::Time;

pub use command::{Command, ExecutorConfig};
pub use counters::{Counters, PrimitiveCounters};
pub use memory::Load;
pub use surroundings::{Surroundings, Unreadable};

use crate::graph::{AskerId, Class, EdgeEnds, Graph, Place, RunId};
use crate::limits::MAX_ENDED_RUNS;
use crate::message::{Message, Report, Slice, Why};
use crate::rules::{Bug, Rules};
use command::Key;
use early::EarlyCredits;
use memory::Memory;
use run::Run;

/// See the module.
#[derive(Debug)]
pub struct Executor {
    rules: Rules,
    runs: BTreeMap<Key, Run>,
    deadlines: BTreeSet<(Time, Key)>,
    memory: Memory,
    early: EarlyCredits,
    ended: VecDeque<Key>,
    /// Readers' first.
    commands: [VecDeque<Command>; 2],
    counters: Counters,
}

impl Executor {
    /// One that runs nothing.
    #[must_use]
    pub fn new(config: ExecutorConfig) -> Self {
        Self {
            rules: config.rules,
            runs: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            memory: Memory::new(config),
            early: EarlyCredits::default(),
            ended: VecDeque::new(),
            commands: [VecDeque::new(), VecDeque::new()],
            counters: Counters::default(),
        }
    }

    /// What `from` has sent to this process as `me`. For the asker's own start, `from` and `me` are the asker; it comes before that of all others.
    pub fn handle(
        &mut self,
        now: Time,
        me: Place,
        from: Place,
        message: Message,
        around: &impl Surroundings,
    ) {
        match message {
            Message::Start(graph) => self.start(now, me, graph, around),
            Message::Slice(slice) => self.slice(me, from, slice, around),
            Message::Credit { run, edge, below } => self.credit((run, me), from, edge, below, around),
            Message::AskCredit { run, edge } => self.ask((run, me), from, edge),
            Message::Cancel(run) => self.cancel((run, me)),
            Message::Probe(run) => self.probe((run, me)),
            // For the asker's task.
            Message::Report { .. } => {}
        }
        self.check_invariants();
    }

    /// Whether what a [`Command::Complete`] was about has been kept.
    pub fn handle_kept(&mut self, run: RunId, me: Place, is_kept: bool) {
        let key = (run, me);
        if !self.runs.contains_key(&key) {
            return;
        }
        if is_kept {
            self.report(key, Report::Done);
            self.end(key);
        } else {
            self.fail(key, Why::NotKept);
        }
    }

    /// The connection to `place` is gone; what was on its way is lost.
    pub fn handle_lost(&mut self, place: Place) {
        let touched = self.runs.iter().filter_map(|(key, run)| Some((*key, run.edge_with(place)?)));
        for (key, edge) in touched.collect::<Vec<_>>() {
            self.fail(key, Why::Cut { edge });
        }
    }

    /// An asker is gone: nobody waits for its graphs.
    pub fn handle_lost_asker(&mut self, asker: AskerId) {
        let orphans = self.runs.keys().filter(|key| key.0.asker == asker);
        for key in orphans.copied().collect::<Vec<_>>() {
            self.discard(key);
        }
    }

    /// Ends what is beyond its deadline.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.rules.prevent(Bug::DeadlineIgnored) {
            self.deadlines.retain(|(deadline, _)| *deadline > now);
        }
        while let Some((deadline, key)) = self.deadlines.first().copied()
            && deadline <= now
        {
            self.fail(key, Why::Deadline);
        }
    }

    /// When [`Executor::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// What runs here.
    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.runs.keys().map(|key| key.0)
    }

    /// When the first of the runs here has to have ended.
    #[must_use]
    pub fn first_deadline(&self) -> Option<Time> {
        self.runs.values().map(Run::deadline).min()
    }

    /// What has to be done next.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.iter_mut().find_map(VecDeque::pop_front)
    }

    /// What is reserved and held.
    #[must_use]
    pub fn load(&self) -> Load {
        self.memory.load(self.runs.len())
    }

    /// Whether there is memory for the part that `me` has in a graph.
    #[must_use]
    pub fn has_room(&self, graph: &Arc<Graph>, me: Place) -> bool {
        let run = Run::new(Arc::clone(graph), me, Time(0));
        self.memory.has_room(graph.class, run.reserved(), self.rules)
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn start(&mut self, now: Time, me: Place, graph: Arc<Graph>, around: &impl Surroundings) {
        let key = (graph.run, me);
        let has_part = graph.steps.iter().any(|step| step.at == me);
        if !has_part || self.runs.contains_key(&key) {
            return;
        }
        if self.ended.contains(&key) && self.rules.prevent(Bug::RunsAgain) {
            return self.refuse(key, graph.class, Why::Again);
        }
        let run = Run::new(Arc::clone(&graph), me, now);
        if let Some(why) = run.objection(around) {
            return self.refuse(key, graph.class, why);
        }
        if !self.memory.reserve(graph.class, run.reserved(), self.rules) {
            return self.refuse(key, graph.class, Why::NoRoom);
        }
        self.counters.started(&run);
        self.deadlines.insert((run.deadline(), key));
        self.runs.insert(key, run);
        self.open(key, around);
    }

    /// Gives first credits, takes those that came early, asks for the others, and begins.
    fn open(&mut self, key: Key, around: &impl Surroundings) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let queue = &mut self.commands[usize::from(run.graph().class == Class::Repair)];
        let send = |to, message| Command::Send { from: key.1, to, run: key.0, message };
        for (to, edge, below) in run.first_grants(self.rules) {
            queue.push_back(send(to, Message::Credit { run: key.0, edge, below }));
        }
        for (edge, below) in self.early.take(key) {
            run.credit(edge, below);
        }
        for (to, edge) in run.without_credit() {
            queue.push_back(send(to, Message::AskCredit { run: key.0, edge }));
        }
        let steps = run.step_count();
        (0..steps).for_each(|step| self.advance(key, step, around));
    }

    fn slice(&mut self, me: Place, from: Place, slice: Slice, around: &impl Surroundings) {
        let mut key = (slice.run, me);
        if !self.rules.prevent(Bug::RunsMix) && !self.runs.contains_key(&key) {
            let other = self.runs.keys().find(|other| other.1 == me && other.0.asker == key.0.asker);
            key = other.copied().unwrap_or(key);
        }
        let (edge, len, rules) = (slice.edge, slice.bytes.len() as u64, self.rules);
        let Some((run, ends)) = self.run_at(key, from, edge) else { return };
        match run.take(slice, rules) {
            Ok(Some(step)) => {
                self.memory.hold(len);
                self.counters.received(ends.input.0, self.runs.get(&key), len);
                self.advance(key, step, around);
            }
            Ok(None) => {}
            Err(()) => self.fail(key, Why::BadSlice { edge }),
        }
    }

    fn credit(&mut self, key: Key, from: Place, edge: u32, below: u32, around: &impl Surroundings) {
        if !self.runs.contains_key(&key) {
            return self.early.keep(key, edge, below);
        }
        let Some(run) = self.runs.get_mut(&key) else { return };
        let is_its_own = run.graph().ends(edge).is_some_and(|ends| ends.from == key.1 && ends.to == from);
        if let Some(step) = is_its_own.then(|| run.credit(edge, below)).flatten() {
            self.advance(key, step, around);
        }
    }

    fn ask(&mut self, key: Key, from: Place, edge: u32) {
        let Some((run, _)) = self.run_at(key, from, edge) else { return };
        if let Some(below) = run.granted(edge) {
            self.send(key, from, Message::Credit { run: key.0, edge, below });
        }
    }

    fn cancel(&mut self, key: Key) {
        if self.rules.prevent(Bug::CancelIgnored) {
            self.discard(key);
            self.remember(key);
        }
    }

    fn probe(&mut self, key: Key) {
        // Whoever has ended waits for nothing: that is an answer, too.
        let progress = self.runs.get(&key).map_or_else(Vec::new, Run::progress);
        self.report(key, Report::Progress(progress));
    }

    /// The run, and the edge on which `from` sends to it.
    fn run_at(&mut self, key: Key, from: Place, edge: u32) -> Option<(&mut Run, EdgeEnds)> {
        let run = self.runs.get_mut(&key)?;
        let ends = run.graph().ends(edge)?;
        (ends.from == from && ends.to == key.1).then_some((run, ends))
    }

    /// Does what step number `step` of the run here can do.
    fn advance(&mut self, key: Key, step: usize, around: &impl Surroundings) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let queue = &mut self.commands[usize::from(run.graph().class == Class::Repair)];
        while run.is_ready(step) {
            match run.turn(step, self.rules, around, queue) {
                Ok(turn) => {
                    self.memory.release_held(turn.consumed);
                    self.counters.turned(&turn);
                }
                Err(why) => return self.fail(key, why),
            }
        }
        let has_ended = run.has_ended(self.rules);
        match (has_ended, run.writes()) {
            (false, _) => {}
            (true, false) => self.end(key),
            (true, true) => {
                if let Some(graph) = run.complete() {
                    queue.push_back(Command::Complete { run: key, graph });
                }
            }
        }
    }

    fn refuse(&mut self, key: Key, class: Class, why: Why) {
        self.counters.refused += 1;
        let message = Message::Report { run: key.0, report: Report::Failed(why) };
        let command = Command::Send { from: key.1, to: Place::Asker, run: key.0, message };
        self.commands[usize::from(class == Class::Repair)].push_back(command);
    }

    fn fail(&mut self, key: Key, why: Why) {
        self.counters.failed += 1;
        self.report(key, Report::Failed(why));
        self.discard(key);
    }

    fn report(&mut self, key: Key, report: Report) {
        self.send(key, Place::Asker, Message::Report { run: key.0, report });
    }

    fn send(&mut self, key: Key, to: Place, message: Message) {
        let class = self.runs.get(&key).map_or(Class::Reader, |run| run.graph().class);
        let command = Command::Send { from: key.1, to, run: key.0, message };
        self.commands[usize::from(class == Class::Repair)].push_back(command);
    }

    /// Ends a run of which nothing is to stay.
    fn discard(&mut self, key: Key) {
        if self.runs.get(&key).is_some_and(Run::writes) {
            let class = self.runs.get(&key).map_or(Class::Reader, |run| run.graph().class);
            self.commands[usize::from(class == Class::Repair)].push_back(Command::Discard { run: key });
        }
        self.end(key);
    }

    fn end(&mut self, key: Key) {
        let Some(run) = self.runs.remove(&key) else { return };
        self.deadlines.remove(&(run.deadline(), key));
        self.memory.release(run.graph().class, run.reserved());
        self.memory.release_held(run.held());
        self.remember(key);
    }

    fn remember(&mut self, key: Key) {
        if self.ended.contains(&key) {
            return;
        }
        if self.ended.len() == MAX_ENDED_RUNS {
            self.ended.pop_front();
        }
        self.ended.push_back(key);
    }

    /// What is held was reserved, and every run has a deadline.
    fn check_invariants(&self) {
        debug_assert!(self.runs.len() == self.deadlines.len() || !self.rules.prevent(Bug::DeadlineIgnored));
        debug_assert!(self.ended.len() <= MAX_ENDED_RUNS);
    }
}
