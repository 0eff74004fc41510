//! A story: how it begins, how time goes on in it, and how it ends.

use types::RoleStatus;

use crate::options::Options;
use crate::run::{check_at_rest, final_reads, form, wait};
use crate::stage::report::Stats;
use crate::stage::trace::Trace;
use crate::world::World;

/// Lines of trace that a failing story shows.
const TRACE_LINES: usize = 300;
/// How long a story waits for what must happen.
const PATIENCE_US: u64 = 5_000_000;

/// A cluster of one group, for a scenario.
pub struct Story {
    pub(super) world: World,
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
    pub(super) fn look(&self) {
        if let Some(failure) = self.world.failure() {
            panic!("{failure}{}", self.told());
        }
    }

    /// The last events, for a panic.
    pub(super) fn told(&self) -> String {
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
