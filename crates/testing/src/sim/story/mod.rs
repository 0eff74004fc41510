//! The same world, moved by hand: for scenarios in plain words.
//!
//! A story begins with a healthy cluster and exact clocks, every message takes 50 us. Whatever it does, the checks of
//! the simulator look on; [`Story::end`] heals what is broken and demands that everything ends, is whole and agrees.
//! A broken rule ends the story with a panic that tells the last events.

mod coordinators;
mod counts;
#[cfg(feature = "planted-bugs")]
mod damage;
mod links;
mod operator;
mod scrub;

use bytes::Bytes;
use types::op::{Arith, Delete, Direction, Expiry, Failure, Get, ItemView, Op, Outcome, Store, StoreMode};
use types::{GroupId, GroupView, RoleStatus};

use super::calls::{Ask, NOBODY};
use super::options::Options;
use super::queue::Event;
use super::report::Stats;
use super::run::{check_at_rest, final_reads, form, wait};
use super::trace::Trace;
use super::world::World;

pub use coordinators::{Elected, Writing};
pub use counts::Resumed;
pub use links::{Held, Line, Link, Wire};
pub use operator::Operator;
pub use scrub::Scrub;

/// Lines of trace that a failing story shows.
const TRACE_LINES: usize = 300;
/// How often a story tries to set a key.
const MAX_TRIES: usize = 20;
/// How long a story waits for what must happen.
const PATIENCE_US: u64 = 5_000_000;

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked(u32);

/// A cluster of one group, for a scenario.
pub struct Story {
    world: World,
}

impl Story {
    /// A healthy cluster with `k` data and `m` parity roles on `nodes` nodes: role `r` is on node `r`.
    #[must_use]
    pub fn new(k: usize, m: usize, nodes: usize) -> Self {
        Self::with(Options::quiet(k, m, nodes))
    }

    /// A healthy cluster made of `options`.
    ///
    /// # Panics
    /// If it does not form.
    #[must_use]
    pub fn with(options: Options) -> Self {
        let mut story = Self { world: World::new(options, Trace::keep(TRACE_LINES)) };
        form(&mut story.world);
        story.look();
        story.world.admit_clients();
        story
    }

    // --- who is where ---

    /// The node that serves data role `role`.
    ///
    /// # Panics
    /// If nobody does.
    #[must_use]
    pub fn primary(&self, role: usize) -> usize {
        usize::from(self.view().data[role].primary.expect("the role is served").node.0)
    }

    /// The node of the parity in row `row`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn parity(&self, row: usize) -> usize {
        usize::from(self.view().parity[row].expect("the parity exists").node.0)
    }

    /// The coordinator's view of the group.
    ///
    /// # Panics
    /// If the cluster has not formed.
    #[must_use]
    pub fn view(&self) -> &GroupView {
        self.world.map().and_then(|map| map.group(GroupId(0))).expect("the cluster has formed")
    }

    /// Where data role `role` stands.
    #[must_use]
    pub fn status(&self, role: usize) -> RoleStatus {
        self.view().data[role].status
    }

    /// Which parity rows are in sync.
    #[must_use]
    pub fn in_sync(&self) -> Vec<usize> {
        let k = self.view().k();
        self.view().in_sync().map(|(role, _)| usize::from(role.0) - k).collect()
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.world.stage.book.stats
    }

    // --- requests ---

    /// The `n`-th key of data role `role`.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn key(&self, role: usize, n: usize) -> usize {
        let keys = self.world.clients.keys();
        let mut mine = (0..keys.len()).filter(|key| usize::from(keys[*key].member.role.0) == role);
        mine.nth(n).expect("a story has many keys")
    }

    /// Sends an operation on a key to `node`.
    pub fn ask(&mut self, node: usize, key: usize, op: Op) -> Asked {
        let asked = Asked(self.world.call(Ask { client: NOBODY, node, key, op }));
        self.look();
        asked
    }

    /// Sends a set to the primary of the key.
    pub fn begin_set(&mut self, key: usize, value: &str) -> Asked {
        // While nobody serves the role, any node takes the request.
        let role = usize::from(self.world.clients.keys()[key].member.role.0);
        let node = self.view().data[role]
            .primary
            .map_or_else(|| self.primary((role + 1) % self.view().k()), |host| usize::from(host.node.0));
        self.ask(node, key, set(value.as_bytes()))
    }

    /// What became of a request; none while it runs.
    #[must_use]
    pub fn answer(&self, asked: Asked) -> Option<&Outcome> {
        self.world.clients.answer(asked.0)
    }

    /// Whether a request was answered with success.
    #[must_use]
    pub fn stored(&self, asked: Asked) -> bool {
        matches!(self.answer(asked), Some(Outcome::Stored(_)))
    }

    /// Waits for the answer.
    ///
    /// # Panics
    /// If it does not come.
    pub fn wait_for(&mut self, asked: Asked) -> Outcome {
        self.run_until("an answer comes", |story| story.answer(asked).is_some());
        self.answer(asked).cloned().expect("just waited for")
    }

    /// Sets a key through any node.
    ///
    /// # Panics
    /// If that fails.
    pub fn set(&mut self, key: usize, value: &str) {
        self.set_bytes(key, value.as_bytes());
    }

    /// Sets a key through any node; again if nobody knows whether it was done.
    ///
    /// # Panics
    /// If that fails.
    pub fn set_bytes(&mut self, key: usize, value: &[u8]) {
        for _ in 0..MAX_TRIES {
            let node = self.any_node();
            let asked = self.ask(node, key, set(value));
            match self.wait_for(asked) {
                Outcome::Stored(_) => return,
                Outcome::Failed(Failure::Unknown | Failure::Unavailable) => {}
                outcome => panic!("set of key {key}: {outcome:?}{}", self.told()),
            }
        }
        panic!("key {key} cannot be set{}", self.told());
    }

    /// Deletes a key through any node.
    pub fn delete(&mut self, key: usize) -> Outcome {
        let node = self.any_node();
        let asked = self.ask(node, key, Op::Delete(Delete::default()));
        self.wait_for(asked)
    }

    /// Reads a key through any node: its value, or none if it is missing.
    ///
    /// # Panics
    /// If that fails.
    pub fn get(&mut self, key: usize) -> Option<String> {
        match self.read(key) {
            Outcome::Hit(ItemView { value, .. }) => Some(String::from_utf8_lossy(&value).into_owned()),
            Outcome::Miss => None,
            other => panic!("get of key {key}: {other:?}{}", self.told()),
        }
    }

    /// Reads a key through any node.
    pub fn read(&mut self, key: usize) -> Outcome {
        let node = self.any_node();
        let asked = self.ask(node, key, Op::Get(Get::default()));
        self.wait_for(asked)
    }

    /// Gives every data role `count` keys with values that name them.
    pub fn fill(&mut self, count: usize) {
        for role in 0..self.view().k() {
            for n in 0..count {
                let key = self.key(role, n);
                self.set(key, &value_of(role, n));
            }
        }
    }

    /// Whether every key of [`Story::fill`] has the value that it was given.
    ///
    /// # Panics
    /// If one has not.
    pub fn is_filled(&mut self, count: usize) {
        for role in 0..self.view().k() {
            for n in 0..count {
                let key = self.key(role, n);
                assert_eq!(self.get(key), Some(value_of(role, n)), "key {n} of role {role}{}", self.told());
            }
        }
    }

    fn any_node(&mut self) -> usize {
        let up = self.world.cluster.nodes.up();
        self.world.stage.rng.clients.pick(&up)
    }

    // --- time ---

    /// Lets `us` microseconds pass.
    pub fn run(&mut self, us: u64) {
        let until = self.world.stage.now() + us;
        self.world.run_until(until);
        self.look();
    }

    /// Lets `count` events happen.
    pub fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.world.step();
        }
        self.look();
    }

    /// Goes on, event by event, until `done`.
    ///
    /// # Panics
    /// If that does not happen within 5 seconds of virtual time.
    pub fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = self.world.stage.now() + PATIENCE_US;
        while !done(self) {
            let moved = self.world.step();
            self.look();
            assert!(
                moved && self.world.stage.now() < deadline,
                "the story waits in vain until {what}{}",
                self.told()
            );
        }
    }

    /// Waits until the coordinator has appointed a living process for role `role`.
    pub fn until_appointed(&mut self, role: usize) {
        self.run_until("somebody is appointed", |story| {
            story.view().data[role].primary.is_some_and(|host| story.world.cluster.nodes.is_alive(host))
        });
    }

    /// Waits until role `role` is served by a stand-in, all pages present.
    pub fn until_full(&mut self, role: usize) {
        self.run_until("the role is full", |story| {
            let data = &story.view().data[role];
            data.status == RoleStatus::Full
                && data.primary.is_some_and(|host| story.world.cluster.nodes.is_alive(host))
        });
    }

    /// Waits until `count` parities are in sync.
    pub fn until_protected(&mut self, count: usize) {
        self.run_until("the parities are in sync", |story| story.in_sync().len() == count);
    }

    /// Lets everything that is under way arrive.
    pub fn calm_down(&mut self) {
        let time = self.world.stage.options.timing.commit_delay_us + 2_000;
        self.run(time);
    }

    /// The time after which a silent node counts as lost.
    #[must_use]
    pub fn lease_us(&self) -> u64 {
        self.world.stage.options.timing.node_lease_us
    }

    // --- processes ---

    /// The process of `node` ends (SIGKILL); nobody tells the coordinator.
    pub fn kill(&mut self, node: usize) {
        self.world.crash(node);
        self.look();
    }

    /// The process of `node` ends, and the coordinator's parent sees it at once.
    pub fn kill_watched(&mut self, node: usize) {
        let life = self.world.cluster.nodes[node].life;
        self.world.crash(node);
        self.world.stage.queue.push(self.world.stage.now(), Event::Exited { node: node as u16, life });
        self.look();
    }

    /// A new process on `node`, with empty memory.
    pub fn start(&mut self, node: usize) {
        self.world.restart(node);
    }

    /// The process of `node` stands still (SIGSTOP).
    pub fn stop(&mut self, node: usize) {
        self.world.cluster.nodes.pause(&mut self.world.stage, node);
    }

    /// The process of `node` goes on (SIGCONT).
    pub fn go_on(&mut self, node: usize) {
        self.world.resume(node);
        self.look();
    }

    // --- the end ---

    /// More members are to be lost than the code can bear.
    pub fn expect_loss(&mut self) {
        self.world.stage.options.faults.beyond = self.world.stage.options.m + 1;
    }

    /// Everything is mended; everything must end, be whole and agree.
    ///
    /// # Panics
    /// If it does not.
    pub fn end(mut self) -> Stats {
        let wires = self.world.stage.options.nodes;
        for (a, b) in (0..wires).flat_map(|a| (0..wires).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            self.wire(a, b).release();
        }
        self.world.wires.unblock_all();
        self.world.lines.unblock_all();
        self.world.heal();
        let deadline = self.world.stage.now() + PATIENCE_US;
        let whole = wait(&mut self.world, deadline, |world| world.at_rest().is_whole());
        self.look();
        let missing = || self.world.at_rest().what_is_missing();
        assert!(whole, "the story does not come to rest: {}{}", missing(), self.told());
        self.calm_down();
        self.run(2 * self.world.stage.options.timing.heartbeat_us);
        self.world.onlooker().look_everywhere();
        check_at_rest(&mut self.world, |rest, book| rest.check_agreement(book));
        self.look();
        final_reads(&mut self.world);
        self.look();
        self.world.stage.book.stats
    }

    /// A broken rule ends the story.
    fn look(&self) {
        if let Some(failure) = self.world.failure() {
            panic!("{failure}{}", self.told());
        }
    }

    /// The last events, for a panic.
    fn told(&self) -> String {
        let lines: Vec<&str> =
            self.world.stage.book.lines().filter(|line| !line.contains("Heartbeat")).collect();
        format!("\n{}", lines.join("\n"))
    }
}

impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told())
    }
}

fn value_of(role: usize, n: usize) -> String {
    format!("value {n} of role {role}")
}

/// A plain set.
#[must_use]
pub fn set(value: &[u8]) -> Op {
    store(StoreMode::Set, value)
}

/// A plain store of any mode.
#[must_use]
pub fn store(mode: StoreMode, value: &[u8]) -> Op {
    Op::Store(Store {
        mode,
        value: Bytes::copy_from_slice(value),
        flags: 0,
        expiry: Expiry::Never,
        compare: None,
        version: None,
        invalidate: false,
        vivify: None,
    })
}

/// A plain increment.
#[must_use]
pub fn increment(delta: u64) -> Op {
    Op::Arith(Arith { direction: Direction::Increment, delta, ..Arith::default() })
}

/// Whether an outcome says that nobody knows.
#[must_use]
pub fn is_unknown(outcome: &Outcome) -> bool {
    *outcome == Outcome::Failed(Failure::Unknown)
}
