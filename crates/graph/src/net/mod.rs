//! A network in virtual time: processes with executors, askers with tasks, links with latency and bandwidth, and what goes wrong.
//!
//! One thread, one queue of events by time and number: the same calls give the same run. A link sends and receives one slice after
//! the other; short messages do not queue, as those on a connection of their own would not. Messages between two processes stay in order.

mod faults;
mod names;
mod process;
mod queue;
mod wires;

use std::collections::BTreeMap;
use std::sync::Arc;

use types::{NodeId, RoleIndex, Time};

pub use names::{Fault, Finished, Who};
pub use process::{Process, Worked};
pub use wires::Traffic;

use crate::asker::{Task, TaskCommand, TaskConfig};
use crate::executor::{Command, ExecutorConfig};
use crate::graph::{AskerId, Graph, Place};
use crate::message::Message;
use crate::model::Links;
use crate::planner::Source;
use names::State;
use queue::{Event, Mail, Queue};
use wires::Wires;

/// How a world is made.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// What links are really worth.
    pub links: Links,
    /// What each executor may use, and its rules.
    pub executor: ExecutorConfig,
    /// Bytes of a chunk that lie together.
    pub piece_bytes: usize,
    /// Every so manieth slice is damaged on its way; 0 for none.
    pub damage_every: u64,
    /// Every so manieth slice arrives twice; 0 for none.
    pub repeat_every: u64,
}

impl WorldConfig {
    /// Links as they are given, plenty of memory, nothing goes wrong.
    #[must_use]
    pub fn new(links: Links) -> Self {
        let rules = crate::rules::Rules::all();
        let executor = ExecutorConfig { memory_bytes: 1 << 30, reader_reserve_bytes: 1 << 28, rules };
        Self { links, executor, piece_bytes: 4096, damage_every: 0, repeat_every: 0 }
    }
}

/// See the module.
#[derive(Debug)]
pub struct World {
    config: WorldConfig,
    processes: BTreeMap<Who, Process>,
    wires: Wires,
    queue: Queue,
    now_ns: u64,
    slices: u64,
    violations: Vec<String>,
}

impl World {
    /// A world without processes.
    #[must_use]
    pub fn new(config: WorldConfig) -> Self {
        Self {
            wires: Wires::new(config.links.clone()),
            config,
            processes: BTreeMap::new(),
            queue: Queue::default(),
            now_ns: 0,
            slices: 0,
            violations: Vec::new(),
        }
    }

    /// Adds a process, or gives the one that is there.
    pub fn process(&mut self, who: Who) -> &mut Process {
        let config = &self.config;
        self.processes.entry(who).or_insert_with(|| Process::new(config.executor, config.piece_bytes))
    }

    /// A process that is there.
    #[must_use]
    pub fn look(&self, who: Who) -> Option<&Process> {
        self.processes.get(&who)
    }

    /// Virtual time, in microseconds.
    #[must_use]
    pub fn now_us(&self) -> f64 {
        self.now_ns as f64 / 1e3
    }

    /// What has broken a rule that holds for everybody at all times.
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// What was sent.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        self.wires.traffic()
    }

    /// Something goes wrong, or is well again, at a time.
    pub fn at(&mut self, us: u64, fault: Fault) {
        self.queue.push(us * 1000, Event::Fault(fault));
    }

    /// An asker begins a task now. `believed` is what it knows of the links.
    pub fn begin(&mut self, config: TaskConfig, sources: Vec<Source>, believed: Links) {
        let (who, now) = (Who::Asker(config.asker), self.time());
        let task = Task::new(config, sources, now, &believed);
        let process = self.process(who);
        process.task = Some(task);
        process.believed = believed;
        self.settle(who, 0);
    }

    /// Sends a graph to all that take part, as `asker`, which does not plan again. Outcomes are among the asker's reports.
    pub fn start(&mut self, asker: AskerId, graph: &Arc<Graph>) {
        let who = Who::Asker(asker);
        self.process(who);
        for to in graph.starting_order() {
            self.post(who, Place::Asker, to, graph.run.asker, Message::Start(Arc::clone(graph)), 0);
        }
        self.settle(who, 0);
    }

    /// Goes on until nothing happens any more, or until `us`; false if something would happen later.
    pub fn run_until(&mut self, us: u64) -> bool {
        self.run_while(us, |_| true);
        self.now_ns = self.now_ns.max(us.saturating_mul(1000).min(self.now_ns.max(1)));
        self.queue.is_empty()
    }

    /// Goes on until the task of `asker` is over, or until `us`.
    pub fn run_task(&mut self, asker: AskerId, us: u64) -> Option<Finished> {
        let finished = |world: &Self| world.look(Who::Asker(asker)).and_then(|process| process.finished);
        self.run_while(us, |world| world.look(Who::Asker(asker)).is_some() && finished(world).is_none());
        finished(self)
    }

    /// Goes on until `count` processes have told `asker` that they are done, or until `us`.
    pub fn run_reports(&mut self, asker: AskerId, count: usize, us: u64) {
        self.run_while(us, |world| world.look(Who::Asker(asker)).map_or(0, Process::done_reports) < count);
    }

    /// Goes on as long as `goes_on` says so, something happens, and it is not `us` yet.
    pub fn run_while(&mut self, us: u64, goes_on: impl Fn(&Self) -> bool) {
        while goes_on(self)
            && let Some((at, event)) = self.queue.pop_until(us * 1000)
        {
            self.now_ns = at;
            self.happen(event);
        }
    }

    fn time(&self) -> Time {
        Time(self.now_ns / 1000)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Landed(mail) => {
                let at = self.wires.receive(self.now_ns, &mail);
                self.queue.push(at, Event::Arrived(mail));
            }
            Event::Arrived(mail) => {
                let to = mail.to;
                if let Some(process) = self.processes.get_mut(&to)
                    && process.state != State::Dead
                {
                    process.inbox.push_back(mail);
                    self.wake(to);
                }
            }
            Event::Wake(who) => {
                if let Some(process) = self.processes.get_mut(&who) {
                    process.wakes = false;
                }
                self.wake(who);
            }
            Event::Timer(who) => self.timer(who),
            Event::Lost { who, node } => self.lost(who, node),
            Event::Fault(fault) => self.fault(fault),
        }
    }

    /// Handles the next message of a process that is not busy.
    fn wake(&mut self, who: Who) {
        let now_ns = self.now_ns;
        let Some(process) = self.processes.get_mut(&who) else { return };
        if process.state != State::Alive || process.inbox.is_empty() {
            return;
        }
        if process.free_ns > now_ns {
            if !std::mem::replace(&mut process.wakes, true) {
                self.queue.push(process.free_ns, Event::Wake(who));
            }
            return;
        }
        let Some(mail) = process.inbox.pop_front() else { return };
        let cost_ns = process.receive(now_ns, mail, &self.config.links);
        process.free_ns = now_ns + cost_ns;
        if !process.inbox.is_empty() && !std::mem::replace(&mut process.wakes, true) {
            self.queue.push(process.free_ns, Event::Wake(who));
        }
        self.settle(who, cost_ns);
    }

    fn timer(&mut self, who: Who) {
        let now = self.time();
        let Some(process) = self.processes.get_mut(&who) else { return };
        if process.timer_ns.is_some_and(|at| at <= self.now_ns) {
            process.timer_ns = None;
        }
        if process.state == State::Alive {
            process.time_passes(now);
            self.settle(who, 0);
        }
    }

    fn lost(&mut self, who: Who, node: NodeId) {
        let now = self.time();
        let Some(process) = self.processes.get_mut(&who) else { return };
        if process.state == State::Alive {
            process.lose(now, node);
            self.settle(who, 0);
        }
    }

    /// Does what executor and task of `who` want done, and sets its timer.
    fn settle(&mut self, who: Who, cost_ns: u64) {
        loop {
            let Some(process) = self.processes.get_mut(&who) else { return };
            if let Some(command) = process.task.as_mut().and_then(Task::poll_command) {
                self.task_command(who, command);
            } else if let Some(command) = process.executor.poll_command() {
                self.command(who, command, cost_ns);
            } else {
                break;
            }
        }
        self.check(who);
        let Some(process) = self.processes.get_mut(&who) else { return };
        let due = process.due().map(|due| due.0.saturating_mul(1000).max(self.now_ns));
        if let Some(due) = due
            && process.timer_ns.is_none_or(|at| due < at)
        {
            process.timer_ns = Some(due);
            self.queue.push(due, Event::Timer(who));
        }
    }

    fn task_command(&mut self, who: Who, command: TaskCommand) {
        match command {
            TaskCommand::Finished(outcome) => {
                let at_us = self.now_us();
                self.process(who).finished = Some(Finished { outcome, at_us });
            }
            // Its own executor hears it first, and at once.
            TaskCommand::Send { to: Place::Asker, message } => {
                let now = self.time();
                self.process(who).hear(now, Place::Asker, Place::Asker, message);
            }
            TaskCommand::Send { to, message } => {
                let Who::Asker(asker) = who else { return };
                self.post(who, Place::Asker, to, asker, message, 0);
            }
        }
    }

    fn command(&mut self, who: Who, command: Command, cost_ns: u64) {
        match command {
            Command::Send { from, to, run, message } => self.post(who, from, to, run.asker, message, cost_ns),
            Command::Write { run, role, offset, bytes } => self.process(who).write(run, role, offset, &bytes),
            Command::Discard { run } => drop(self.process(who).staged.remove(&run)),
            Command::Complete { run, graph } => self.process(who).keep(run, &graph),
        }
    }

    fn post(&mut self, who: Who, me: Place, to: Place, asker: AskerId, message: Message, cost_ns: u64) {
        let target = match to {
            Place::Node(node) => Who::Node(node),
            Place::Asker => Who::Asker(asker),
        };
        self.process(target);
        let mut mail = Mail { from: who, me, to: target, at: to, message };
        let copies = if matches!(mail.message, Message::Slice(_)) { self.mishaps(&mut mail) } else { 1 };
        for _ in 0..copies {
            let dead = self.processes.get(&target).is_some_and(|process| process.is_refusing);
            if let (true, Place::Node(node)) = (dead, to) {
                let way = self.wires.way_ns(who, target);
                self.queue.push(self.now_ns + 2 * way, Event::Lost { who, node });
                continue;
            }
            let landing = self.wires.send(self.now_ns + cost_ns, &mail);
            self.queue.push(landing, Event::Landed(mail.clone()));
        }
    }

    /// Damages or repeats a slice, where that is its turn.
    fn mishaps(&mut self, mail: &mut Mail) -> usize {
        self.slices += 1;
        let is_turn = |every: u64| every > 0 && self.slices.is_multiple_of(every);
        if is_turn(self.config.damage_every)
            && let Message::Slice(slice) = &mut mail.message
        {
            let mut bytes = slice.bytes.to_vec();
            bytes[0] ^= 0x40;
            slice.bytes = bytes.into();
        }
        if is_turn(self.config.repeat_every) { 2 } else { 1 }
    }

    fn check(&mut self, who: Who) {
        let Some(process) = self.processes.get(&who) else { return };
        let load = process.executor.load();
        if load.held_bytes > load.reserved_bytes {
            self.violations.push(format!("{who:?} holds more than it has reserved: {load:?}"));
        }
        if load.reserved_bytes > self.config.executor.memory_bytes {
            self.violations.push(format!("{who:?} has reserved more than it may: {load:?}"));
        }
    }

    /// Puts the chunk of a role at a node, for all parts of a strand.
    pub fn put(&mut self, node: NodeId, role: RoleIndex, chunk: types::ChunkId, bytes: Vec<u8>) {
        self.process(Who::Node(node)).chunks.insert((role, chunk), bytes);
    }
}
