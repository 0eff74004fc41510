//! What an asker keeps of one task: it starts a graph, hears of it, and plans again around whoever failed or was slow.
//!
//! - A graph is withdrawn everywhere before the next one is started; the next one is another run.
//! - A chunk that is missing or rotten is not asked for again. Who says nothing is asked again only if there is no other way; so is who is slow.
//! - `lost` is said only if so many chunks are missing under a view that is not older than the asker's; else it is `try again`.
//! - A task ends by its deadline, whatever happens.
//! - Who wants to learn from it looks from time to time how far the others are, and sees which link holds them up ([`Look`]).

mod attempt;
mod blame;
mod suspects;

use std::collections::VecDeque;
use std::sync::Arc;

use codec::Code;
use types::{GroupId, NodeId, Time, ViewVersion};

use crate::graph::{AskerId, Class, Execution, Graph, Part, Place, RunId};
use crate::limits::{MAX_ATTEMPTS, MIN_SLICE_BYTES, RUNS_PER_TASK};
use crate::message::{Message, Report, Why};
use crate::model::Links;
use crate::planner::{Aim, Envelope, Question, Scheme, Shape, Source, Unplannable, Wanted, plan};
use crate::rules::Rules;
use attempt::Attempt;
pub use attempt::Look;
use suspects::Suspects;

/// By what the prediction is multiplied before an asker asks how far the others are.
const PATIENCE: f64 = 4.0;
/// The first pause after a refusal; it doubles, and half of it is random.
const FIRST_PAUSE_US: u64 = 500;
/// Doublings of the pause at most.
const MAX_PAUSE_DOUBLINGS: u32 = 8;

/// What is to be done, and how.
#[derive(Clone, Debug)]
pub struct TaskConfig {
    /// Who asks.
    pub asker: AskerId,
    /// Counted by the asker.
    pub number: u64,
    /// The code of the group.
    pub code: Arc<Code>,
    /// Whose chunks.
    pub group: GroupId,
    /// The asker's view of it.
    pub view: ViewVersion,
    /// Which chunks.
    pub strand: Vec<Part>,
    /// What is wanted.
    pub wanted: Vec<Wanted>,
    /// Who gives way.
    pub class: Class,
    /// By which scheme.
    pub scheme: Scheme,
    /// What is good.
    pub aim: Aim,
    /// How steps work.
    pub execution: Execution,
    /// How long the task may take.
    pub deadline_us: u64,
    /// How long the asker waits at least before it asks how far the others are, and then for their answers.
    pub least_patience_us: u64,
    /// Graphs that are started at most, and no more than [`MAX_ATTEMPTS`]: one where there is another way to what is wanted.
    pub attempts: u32,
    /// Bytes of slices that may be on their way to the asker: its windows are no longer, where slices can be shorter.
    pub flow_bytes: u64,
    /// Nodes that are asked only if there is no other way.
    pub avoided: Vec<NodeId>,
    /// Whether the asker looks what holds a graph up.
    pub looks: bool,
    /// Which rules hold.
    pub rules: Rules,
}

/// What whoever drives a task has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskCommand {
    /// Send a message; `Place::Asker` is the asker's own executor, and has it before the others.
    Send {
        /// To whom.
        to: Place,
        /// What.
        message: Message,
    },
    /// The task is over.
    Finished(Outcome),
}

/// What became of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All chunks that were wanted are where they were wanted.
    Complete {
        /// The run that made them.
        run: RunId,
        /// Graphs that were started.
        attempts: u32,
    },
    /// So many chunks are missing, by the newest view, that the others do not determine what is wanted.
    Lost,
    /// It cannot be done now: chunks cannot be reached, or the deadline has passed.
    TryAgain,
}

/// See the module.
#[derive(Debug)]
pub struct Task {
    config: TaskConfig,
    sources: Vec<Source>,
    suspects: Suspects,
    attempt: Option<Attempt>,
    /// When the next graph is started.
    paused_until: Option<Time>,
    deadline: Time,
    attempts: u32,
    refusals: u32,
    planned: Option<Planned>,
    /// The newest graph, and what was seen of it last.
    newest: Option<(Arc<Graph>, Option<Look>)>,
    is_over: bool,
    commands: VecDeque<TaskCommand>,
}

/// The newest graph of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// How it is laid out.
    pub scheme: Scheme,
    /// How long it should take, by the model.
    pub predicted_us: f64,
    /// When it was started.
    pub started: Time,
}

impl Task {
    /// Begins: the first graph is among its commands.
    #[must_use]
    pub fn new(config: TaskConfig, sources: Vec<Source>, now: Time, links: &Links) -> Self {
        let deadline = now + config.deadline_us;
        let suspects = Suspects::new(config.view, config.rules, &config.avoided);
        let mut task = Self {
            config,
            sources,
            suspects,
            attempt: None,
            paused_until: None,
            deadline,
            attempts: 0,
            refusals: 0,
            planned: None,
            newest: None,
            is_over: false,
            commands: VecDeque::new(),
        };
        task.begin(now, links);
        task
    }

    /// The newest graph, if one was started.
    #[must_use]
    pub fn planned(&self) -> Option<Planned> {
        self.planned
    }

    /// The newest graph, also when it has ended, and what the asker has seen of it last.
    #[must_use]
    pub fn newest(&self) -> Option<(&Graph, Option<Look>)> {
        self.newest.as_ref().map(|(graph, look)| (&**graph, *look))
    }

    /// Starts another graph, without `node`, instead of the one that runs: it is held up there. False if there is no other way.
    pub fn go_round(&mut self, now: Time, node: NodeId, links: &Links) -> bool {
        if self.attempt.is_none() || !self.suspects.is_slow(node) {
            return false;
        }
        let is_without = |shape: &Shape| shape.steps.iter().all(|step| step.at != Place::Node(node));
        let has_way = !self.is_tired() && self.shape(links).is_ok_and(|shape| is_without(&shape));
        if has_way {
            self.plan_again(now, links);
        }
        has_way
    }

    /// What has to be done next.
    pub fn poll_command(&mut self) -> Option<TaskCommand> {
        self.commands.pop_front()
    }

    /// When [`Task::handle_timeout`] has something to do; never again once it is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let attempt = self.attempt.as_ref().map(Attempt::due);
        let next = [attempt, self.paused_until, Some(self.deadline)].into_iter().flatten().min();
        next.filter(|_| !self.is_over)
    }

    /// What `from` says of a run of this task. `draw` is any random number.
    pub fn handle_report(
        &mut self,
        now: Time,
        from: Place,
        run: RunId,
        report: Report,
        draw: u64,
        links: &Links,
    ) {
        // Who takes no part in it has nothing to say of it.
        if self.attempt.as_ref().is_none_or(|attempt| attempt.run() != run || !attempt.has(from)) {
            return;
        }
        match report {
            Report::Done => self.done(from, run),
            Report::Failed(why) => self.failed(now, from, why, draw, links),
            Report::Progress(progress) => {
                let Some(attempt) = &mut self.attempt else { return };
                let is_last = attempt.answered(now, from, progress);
                if let Some((_, look)) = &mut self.newest {
                    *look = attempt.seen();
                }
                if is_last {
                    self.judge(now, links);
                }
            }
        }
    }

    /// Nobody wants it any more: what runs is withdrawn.
    pub fn give_up(&mut self) {
        if !self.is_over {
            self.withdraw();
            self.finish(Outcome::TryAgain);
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The connection to `node` is gone.
    pub fn handle_lost(&mut self, now: Time, node: NodeId, links: &Links) {
        self.suspects.is_silent(node);
        let takes_part = |attempt: &Attempt| attempt.has(Place::Node(node));
        if self.attempt.as_ref().is_some_and(takes_part) {
            self.plan_again(now, links);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time, links: &Links) {
        if self.is_over {
            return;
        }
        if self.deadline <= now {
            self.withdraw();
            return self.finish(Outcome::TryAgain);
        }
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            return self.begin(now, links);
        }
        let Some(attempt) = &mut self.attempt else { return };
        let is_due = attempt.is_due(now);
        if is_due && attempt.is_asking() {
            return self.judge(now, links);
        }
        let asked = if is_due { Some(attempt.ask(now)) } else { attempt.look(now) };
        let run = attempt.run();
        for to in asked.into_iter().flatten() {
            self.commands.push_back(TaskCommand::Send { to, message: Message::Probe(run) });
        }
    }

    fn done(&mut self, from: Place, run: RunId) {
        if self.attempt.as_mut().is_some_and(|attempt| attempt.done(from)) {
            self.attempt = None;
            self.finish(Outcome::Complete { run, attempts: self.attempts });
        }
    }

    fn failed(&mut self, now: Time, from: Place, why: Why, draw: u64, links: &Links) {
        let Some(attempt) = &self.attempt else { return };
        self.suspects.blame(from, why, attempt.graph());
        match why {
            Why::NoRoom | Why::UnknownNode | Why::Again => self.pause(now, draw),
            _ => self.plan_again(now, links),
        }
    }

    /// Everybody has answered, or had time to.
    fn judge(&mut self, now: Time, links: &Links) {
        let Some(attempt) = &mut self.attempt else { return };
        let silent = attempt.silent();
        if !silent.is_empty() {
            silent.into_iter().for_each(|node| self.suspects.is_silent(node));
            return self.plan_again(now, links);
        }
        let slow = if attempt.is_on_its_way() { None } else { attempt.slowest() };
        match slow {
            Some(node) if self.suspects.is_slow(node) => self.plan_again(now, links),
            _ => attempt.wait_longer(now),
        }
    }

    fn pause(&mut self, now: Time, draw: u64) {
        self.withdraw();
        if self.is_tired() {
            return self.finish(Outcome::TryAgain);
        }
        let pause = FIRST_PAUSE_US << self.refusals.min(MAX_PAUSE_DOUBLINGS);
        self.refusals += 1;
        self.paused_until = Some(now + pause / 2 + draw % pause);
    }

    fn plan_again(&mut self, now: Time, links: &Links) {
        self.withdraw();
        self.begin(now, links);
    }

    fn withdraw(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        // Who has not been sent the graph need not have it.
        let mut unsent = Vec::new();
        self.commands.retain(|command| match command {
            TaskCommand::Send { to, message: Message::Start(_) } => {
                unsent.push(*to);
                false
            }
            _ => true,
        });
        for to in attempt.graph().places().into_iter().filter(|place| !unsent.contains(place)) {
            self.commands.push_back(TaskCommand::Send { to, message: Message::Cancel(attempt.run()) });
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        self.is_over = true;
        self.paused_until = None;
        self.commands.push_back(TaskCommand::Finished(outcome));
    }

    /// Plans, and starts the graph: at the asker first, then downstream before upstream.
    fn begin(&mut self, now: Time, links: &Links) {
        if self.is_tired() {
            return self.finish(Outcome::TryAgain);
        }
        let shape = match self.shape(links) {
            Ok(shape) => shape,
            Err(Unplannable::Unsolvable { .. }) if self.is_lost(links) => return self.finish(Outcome::Lost),
            Err(_) => return self.finish(Outcome::TryAgain),
        };
        let number = self.config.number.wrapping_mul(RUNS_PER_TASK) + u64::from(self.attempts);
        let (scheme, predicted) = (shape.scheme, shape.prediction.us);
        let envelope = Envelope {
            run: RunId { asker: self.config.asker, number },
            group: self.config.group,
            view: self.config.view,
            deadline_us: (self.deadline - now.0).0.max(1),
            class: self.config.class,
            strand: self.config.strand.clone(),
        };
        let Ok(graph) = shape.into_graph(envelope) else { return self.finish(Outcome::TryAgain) };
        let graph = Arc::new(graph);
        self.attempts += 1;
        self.planned = Some(Planned { scheme, predicted_us: predicted, started: now });
        let patience = ((predicted * PATIENCE) as u64).max(self.config.least_patience_us);
        let mut attempt = Attempt::new(Arc::clone(&graph), now, patience, self.config.least_patience_us);
        if self.config.looks {
            attempt = attempt.looks(predicted);
        }
        self.newest = Some((Arc::clone(&graph), None));
        for to in graph.starting_order() {
            self.commands.push_back(TaskCommand::Send { to, message: Message::Start(Arc::clone(&graph)) });
        }
        self.attempt = Some(attempt);
    }

    fn is_tired(&self) -> bool {
        self.attempts >= self.config.attempts.min(MAX_ATTEMPTS)
    }

    /// With those that are not suspected; else with those that say nothing; else with all that have what is needed.
    fn shape(&self, links: &Links) -> Result<Shape, Unplannable> {
        let first = self.ask_planner(&self.suspects.without_silent(&self.sources), links);
        match first {
            Err(Unplannable::Unsolvable { .. }) => {
                self.ask_planner(&self.suspects.without_bad(&self.sources), links)
            }
            answer => answer,
        }
    }

    fn ask_planner(&self, sources: &[Source], links: &Links) -> Result<Shape, Unplannable> {
        let config = &self.config;
        let avoided = self.suspects.avoided();
        let question = Question {
            code: &config.code,
            sources,
            wanted: &config.wanted,
            len: config.strand.iter().map(|part| part.len).sum(),
            links,
            avoided: &avoided,
            aim: config.aim,
            execution: config.execution,
        };
        plan(&question, config.scheme).map(|shape| self.within_memory(shape, links))
    }

    /// In shorter slices, if the windows of what comes to the asker would take more than they may.
    fn within_memory(&self, shape: Shape, links: &Links) -> Shape {
        let is_asker = |step: u32| shape.steps[step as usize].at == Place::Asker;
        let edges = shape.edges.iter().filter(|edge| is_asker(edge.to) && !is_asker(edge.from)).count();
        let slices = (edges as u64 * u64::from(shape.window)).max(1);
        let most = u32::try_from(self.config.flow_bytes / slices).unwrap_or(u32::MAX);
        if shape.slice_len <= most || self.config.execution == Execution::Incoherent {
            return shape;
        }
        let halves = std::iter::successors(Some(shape.slice_len), |len| Some(len / 2));
        let slice_len = halves.take_while(|len| *len >= MIN_SLICE_BYTES).find(|len| *len <= most);
        shape.with_slices(slice_len.unwrap_or(MIN_SLICE_BYTES), links)
    }

    /// Whether what is wanted cannot be computed even if everybody had what is not known to be missing.
    fn is_lost(&self, links: &Links) -> bool {
        let left = self.suspects.without_missing(&self.sources);
        matches!(self.ask_planner(&left, links), Err(Unplannable::Unsolvable { .. }))
    }
}
