//! Swarm options: what one seed is made of. Drawn wide and uneven, so that every seed leaves something out.

mod focus;

use std::fmt;

use proto::{Limits, Timing};
use types::{LossPolicy, Profile};

use super::clock::WallClocks;
use super::rng::Rng;

/// Streams of random numbers, one for each purpose.
pub(crate) mod purpose {
    pub(crate) const OPTIONS: u64 = 1;
    pub(crate) const NETWORK: u64 = 2;
    pub(crate) const CLIENTS: u64 = 3;
    pub(crate) const FAULTS: u64 = 4;
    pub(crate) const CHECKS: u64 = 5;
    pub(crate) const PROCESSES: u64 = 6;
    pub(crate) const FOCUS: u64 = 7;
    pub(crate) const SCRUBS: u64 = 8;
    pub(crate) const SUCCESSION: u64 = 9;
    pub(crate) const RESTARTS: u64 = 10;
    pub(crate) const WALL: u64 = 11;
}

/// What clients ask for; positions in [`Options::mix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Verb {
    /// A plain read.
    Get,
    /// A read that sets the expiry.
    GetAndTouch,
    /// Store always.
    Set,
    /// Store if missing.
    Add,
    /// Store if present.
    Replace,
    /// Extend.
    Append,
    /// Extend in front.
    Prepend,
    /// Store if unchanged since a read.
    Cas,
    /// Remove.
    Delete,
    /// Count up.
    Increment,
    /// Count down.
    Decrement,
    /// Set the expiry.
    Touch,
    /// Remove all keys of one data role.
    Flush,
}

impl Verb {
    /// All of them, in the order of [`Options::mix`].
    pub const ALL: [Self; 13] = [
        Self::Get,
        Self::GetAndTouch,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Append,
        Self::Prepend,
        Self::Cas,
        Self::Delete,
        Self::Increment,
        Self::Decrement,
        Self::Touch,
        Self::Flush,
    ];
}

/// What can go wrong; positions in [`Faults::mix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum FaultKind {
    /// A node ends; its memory is gone.
    Crash,
    /// Several nodes end at the same moment.
    CrashSeveral,
    /// A node stands still (SIGSTOP), shorter or longer than every time-out.
    Pause,
    /// A node is cut off from everyone.
    Isolate,
    /// A node is cut off from its peers and still heard by the coordinator.
    IsolateFromPeers,
    /// A node is cut off from the coordinator only.
    IsolateFromCoordinator,
    /// Two nodes cannot reach each other.
    Cut,
    /// A connection breaks and comes back at once.
    Flap,
    /// The nodes fall into two halves.
    Split,
    /// One direction between two nodes becomes slow.
    Slow,
    /// The coordinator stands still.
    CoordinatorPause,
    /// No fault: a role is to move to another node.
    Move,
    /// The coordinator ends, between any two of its actions; the next one goes on from what is recorded, or starts with
    /// nothing.
    CoordinatorCrash,
    /// Another coordinator is elected while the former one lives on.
    CoordinatorDepose,
    /// No node reaches the coordinator any more; another one could be reached.
    CoordinatorIsolate,
    /// Coordinators without a store follow each other, and each hears another part of the nodes.
    CoordinatorHalves,
}

impl FaultKind {
    /// All of them, in the order of [`Faults::mix`].
    pub const ALL: [Self; 16] = [
        Self::Crash,
        Self::CrashSeveral,
        Self::Pause,
        Self::Isolate,
        Self::IsolateFromPeers,
        Self::IsolateFromCoordinator,
        Self::Cut,
        Self::Flap,
        Self::Split,
        Self::Slow,
        Self::CoordinatorPause,
        Self::Move,
        Self::CoordinatorCrash,
        Self::CoordinatorDepose,
        Self::CoordinatorIsolate,
        Self::CoordinatorHalves,
    ];
}

/// Which faults, how often.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Weight of each kind, by [`FaultKind`].
    pub mix: [u32; FaultKind::ALL.len()],
    /// Mean time between faults; 0 = none ever.
    pub every_us: u64,
    /// How long a fault lasts, on average.
    pub lasting_us: u64,
    /// Whether crashed nodes come back, with empty memory, before the end: percent.
    pub restart_percent: u64,
    /// Whether the coordinator is told of a crash by the process's parent, and how soon.
    pub supervised_us: Option<u64>,
    /// Percent of faults that wait for a record to be under way.
    pub aimed_percent: u64,
    /// Percent of crashes that spare nodes with a parity: lost parities take their time to come back.
    pub spare_parities_percent: u64,
    /// How many losses beyond what the code can bear the seed may cause.
    pub beyond: usize,
    /// Whether a coordinator that has ended is followed by one that starts with nothing.
    pub forgets: bool,
}

/// Which value sizes clients draw.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Weights of: 0 or 1 byte, tiny (up to 32), small (up to 1 KiB), class edges (up to 16 KiB), around a page, around
    /// a run, large (100 to 300 KiB).
    pub mix: [u32; 7],
}

/// How the driver batches inputs before `Host::flush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// After every input.
    Never,
    /// After up to so many microseconds.
    Upto(u64),
}

/// Delays of the network.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Least delay of the fastest wire.
    pub least_us: u64,
    /// Least delay of the slowest ordinary wire.
    pub most_us: u64,
    /// Mean of what comes on top for each message.
    pub jitter_us: u64,
    /// Percent of wires that are ten times slower.
    pub slow_percent: u64,
    /// How long an end takes at most to see that its wire was cut.
    pub notice_us: u64,
    /// How long a broken connection stays broken at least.
    pub reconnect_us: u64,
    /// Delay of the slowest line between a node and the coordinator, one way.
    pub line_us: u64,
}

/// Memory of stores and nodes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Limit of each node.
    pub node_bytes: u64,
    /// Extents of one data area at most.
    pub area_extents: u32,
    /// Whether a full store evicts instead of refusing.
    pub evict: bool,
}

/// How coordinators follow each other over a store; without it the nodes keep their records.
#[derive(Clone, Copy, Debug)]
pub struct Succession {
    /// Longest time that a record takes to be written.
    pub write_us: u64,
    /// Longest time without a coordinator.
    pub gap_us: u64,
    /// Longest time until a node follows to the one that was elected, and a former one notices; also by how much its last
    /// messages are late.
    pub late_us: u64,
    /// For how long the store shows a process that has ended.
    pub lease_us: u64,
    /// Whether nobody is elected but by hand.
    pub by_hand: bool,
}

/// What a seed looks at most closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// Nothing in particular.
    Anything,
    /// Second faults into the recovery from the first.
    DoubleFaults,
    /// A coordinator whose questions and answers cross.
    SlowLines,
    /// Roles that move, and what goes wrong meanwhile.
    Moves,
    /// Parities that are evicted and come back, with takeovers in between.
    Returns,
    /// Coordinators that follow each other in the middle of everything.
    Succession,
    /// A coordinator without a store that is started again with nothing.
    Forgetting,
    /// Extents that go back while nodes are short of memory.
    Releases,
    /// More losses than the code can bear, which are accepted.
    Losses,
}

/// Everything that a seed determines.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed.
    pub seed: u64,
    /// What it looks at.
    pub focus: Focus,
    /// Data roles.
    pub k: usize,
    /// Parity roles.
    pub m: usize,
    /// Nodes.
    pub nodes: usize,
    /// With how many of them the cluster forms; the others start together with them, and join.
    pub founders: usize,
    /// Groups.
    pub groups: usize,
    /// Workers of a node.
    pub shards: usize,
    /// Clients.
    pub clients: usize,
    /// Whether every client stays with the keys of one data role, so that some go on while others wait.
    pub faithful: bool,
    /// Keys with any value.
    pub text_keys: usize,
    /// Keys that hold numbers.
    pub number_keys: usize,
    /// How long faults go on.
    pub phase_us: u64,
    /// Calls of all clients together, after which the first phase ends early.
    pub calls: u32,
    /// Longest pause of a client between its calls.
    pub think_us: u64,
    /// Percent of pauses that are ten times longer, all others being as short as can be; 0 = all alike.
    pub bursts_percent: u64,
    /// When a client gives up.
    pub patience_us: u64,
    /// Weight of each verb, by [`Verb`].
    pub mix: [u32; Verb::ALL.len()],
    /// Value sizes.
    pub sizes: Sizes,
    /// Percent of writes that set an expiry.
    pub expiry_percent: u64,
    /// Virtual time of one second of wall time.
    pub second_us: u64,
    /// How far the nodes' clocks of the wall are off.
    pub wall: WallClocks,
    /// Time-outs.
    pub timing: Timing,
    /// Bounds.
    pub limits: Limits,
    /// Memory.
    pub memory: Memory,
    /// Delays.
    pub network: Network,
    /// Batches.
    pub batching: Batching,
    /// Largest drift of a clock, in millionths.
    pub drift_ppm: i64,
    /// Faults.
    pub faults: Faults,
    /// Coordinators that follow each other over a store.
    pub succession: Option<Succession>,
    /// What becomes of lost data roles; where nothing does, an operator accepts the loss now and then, and at the end.
    pub on_loss: LossPolicy,
    /// Whether nodes keep the coordinator's records; else they are written at once, or as `succession` says.
    pub nodes_keep: bool,
    /// Events between two expensive checks, on average; 0 = none.
    pub check_every: u64,
    /// Time between two scrubs; 0 = none.
    pub scrub_every_us: u64,
}

/// Codes, the usual one more often.
const CODES: [(usize, usize); 12] =
    [(1, 1), (2, 1), (3, 1), (3, 2), (3, 2), (3, 2), (4, 2), (2, 2), (2, 3), (4, 3), (1, 2), (6, 2)];

impl Options {
    /// Protection: with one data role, every other seed has copies.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let (k, m) = (self.k as u32, self.m as u32);
        let profile = if k == 1 && self.seed % 2 == 1 { Profile::rep(m + 1) } else { Profile::rs(k, m) };
        profile.expect("options name a valid profile")
    }

    /// A quiet cluster for a story: fixed delays, no clients, no faults, exact clocks.
    #[must_use]
    pub fn quiet(k: usize, m: usize, nodes: usize) -> Self {
        Self {
            seed: 0,
            focus: Focus::Anything,
            k,
            m,
            nodes,
            founders: nodes,
            groups: 1,
            shards: 1,
            clients: 0,
            faithful: false,
            text_keys: 32 * k,
            number_keys: 0,
            phase_us: u64::MAX,
            calls: u32::MAX,
            think_us: 0,
            bursts_percent: 0,
            patience_us: u64::MAX,
            mix: [0; Verb::ALL.len()],
            sizes: Sizes { mix: [0, 1, 0, 0, 0, 0, 0] },
            expiry_percent: 0,
            second_us: 1_000_000,
            wall: WallClocks::EXACT,
            timing: Timing::from_lease(100_000),
            limits: Limits::default(),
            memory: Memory { node_bytes: 256 << 20, area_extents: 16, evict: false },
            network: Network {
                least_us: 50,
                most_us: 50,
                jitter_us: 0,
                slow_percent: 0,
                notice_us: 0,
                reconnect_us: 1_000,
                line_us: 100,
            },
            batching: Batching::Never,
            drift_ppm: 0,
            faults: Faults::none(),
            succession: None,
            on_loss: LossPolicy::Error,
            nodes_keep: false,
            check_every: 16,
            scrub_every_us: 0,
        }
    }

    /// Tiny values, no faults, many clients: how fast the simulator is.
    #[must_use]
    pub fn speed(seed: u64) -> Self {
        let mut options = Self::quiet(3, 2, 5);
        options.seed = seed;
        options.groups = 5;
        options.clients = 32;
        options.text_keys = 400;
        options.timing = Timing::from_lease(1_000_000);
        options.mix[Verb::Get as usize] = 1;
        options.mix[Verb::Set as usize] = 1;
        options.calls = 200_000;
        options.think_us = 100;
        options.network.jitter_us = 20;
        options.batching = Batching::Upto(20);
        options.check_every = 2_000;
        options
    }

    /// What `seed` stands for.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let focus = [Focus::Anything, Focus::DoubleFaults, Focus::SlowLines];
        let choice = Rng::new(seed, purpose::FOCUS).weighted(&[6, 2, 2]);
        Self::draw_focused(seed, focus[choice])
    }

    /// What `seed` would stand for with this focus.
    #[must_use]
    pub fn draw_focused(seed: u64, focus: Focus) -> Self {
        let rng = &mut Rng::new(seed, purpose::OPTIONS);
        let options = Self::draw_anything(seed, rng);
        let focused = match focus {
            Focus::Anything => options,
            Focus::DoubleFaults => options.with_double_faults(rng),
            Focus::SlowLines => options.with_slow_lines(rng),
            Focus::Moves => options.with_moves(rng),
            Focus::Returns => options.with_returns(rng),
            Focus::Succession => options.with_succession(rng),
            Focus::Forgetting => options.with_succession(rng).with_forgetting(rng),
            Focus::Releases => options.with_releases(rng),
            Focus::Losses => options.with_losses(rng),
        };
        let focused = Self { founders: focused.nodes, ..focused };
        let restarted = focused.with_policy().with_restarts(&mut Rng::new(seed, purpose::RESTARTS));
        let scrubbed = restarted.with_scrubs(&mut Rng::new(seed, purpose::SCRUBS));
        scrubbed.with_wall_clocks(&mut Rng::new(seed, purpose::WALL))
    }

    /// In some seeds the coordinator is started again now and then, and knows nothing; not where too few are left to tell it.
    fn with_restarts(mut self, rng: &mut Rng) -> Self {
        let may = self.succession.is_none() && self.faults.beyond == 0 && self.nodes > 2 * self.m;
        if may && self.faults.every_us > 0 && rng.percent(30) {
            self.faults.forgets = true;
            self.faults.mix[FaultKind::CoordinatorCrash as usize] = rng.pick(&[1, 3, 6]);
        }
        self
    }

    /// In every third seed clocks of the wall differ and step, and then items expire; not where extents are looked at, which need
    /// their items.
    fn with_wall_clocks(mut self, rng: &mut Rng) -> Self {
        if self.focus != Focus::Releases && rng.once_in(3) {
            let steady_us = self.second_us * rng.pick(&[2, 5, 20]);
            self.wall = WallClocks { spread: rng.pick(&[1, 2, 5]), steady_us };
            self.expiry_percent = self.expiry_percent.max(rng.pick(&[5, 30]));
        }
        self
    }

    /// Half of the seeds are of caches.
    fn with_policy(mut self) -> Self {
        if self.seed.is_multiple_of(2) {
            self.on_loss = LossPolicy::Empty;
        }
        self
    }

    /// Now and then everything is compared with its parities; not in every seed.
    fn with_scrubs(mut self, rng: &mut Rng) -> Self {
        if rng.once_in(3) {
            self.scrub_every_us = self.timing.node_lease_us * rng.range(1, 8);
        }
        self
    }

    fn draw_anything(seed: u64, rng: &mut Rng) -> Self {
        let (k, m) = rng.pick(&CODES);
        let nodes = k + m + rng.weighted(&[3, 2, 1]);
        let groups = rng.pick(&[1, 1, 2, 3, nodes.min(5)]);
        let lease_us = rng.pick(&[20_000, 50_000, 100_000, 250_000, 1_000_000]);
        let network = draw_network(rng, lease_us);
        let timing = draw_timing(rng, lease_us, &network);
        let options = Self {
            seed,
            focus: Focus::Anything,
            k,
            m,
            nodes,
            founders: nodes,
            groups,
            shards: if groups > 1 && rng.once_in(4) { 2 } else { 1 },
            clients: rng.range(1, 12) as usize,
            faithful: rng.percent(30),
            text_keys: rng.pick(&[1, 3, 8, 20, 60]),
            number_keys: rng.pick(&[0, 1, 2, 4]),
            phase_us: lease_us * rng.range(15, 60),
            calls: rng.pick(&[1_000, 2_000, 4_000, 8_000]),
            think_us: 0,
            bursts_percent: rng.pick(&[0, 10, 10, 3]),
            patience_us: if rng.percent(70) { u64::MAX } else { lease_us * rng.range(1, 6) },
            mix: draw_mix(rng),
            sizes: draw_sizes(rng),
            expiry_percent: rng.pick(&[0, 0, 5, 30]),
            second_us: lease_us * rng.range(1, 20) / 4,
            wall: WallClocks::EXACT,
            timing,
            limits: draw_limits(rng),
            memory: draw_memory(rng, groups, k, m, nodes),
            network,
            batching: rng.pick(&[Batching::Never, Batching::Upto(20), Batching::Upto(200)]),
            drift_ppm: rng.pick(&[0, 100, 10_000]),
            faults: draw_faults(rng, lease_us, m),
            succession: None,
            on_loss: LossPolicy::Error,
            nodes_keep: true,
            check_every: rng.pick(&[100, 300, 1_000]),
            scrub_every_us: 0,
        };
        options.evenly_busy()
    }

    /// Pauses of clients such that the calls last for the whole phase.
    fn evenly_busy(mut self) -> Self {
        self.think_us = 2 * self.phase_us * self.clients as u64 / u64::from(self.calls);
        self
    }

    /// Roles of a group.
    #[must_use]
    pub fn n(&self) -> usize {
        self.k + self.m
    }

    /// The same seed without any fault, for comparison.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.faults = Faults::none();
        self
    }
}

impl fmt::Display for Focus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anything => "anything",
            Self::DoubleFaults => "double-faults",
            Self::SlowLines => "slow-lines",
            Self::Moves => "moves",
            Self::Returns => "returns",
            Self::Succession => "succession",
            Self::Forgetting => "forgetting",
            Self::Releases => "releases",
            Self::Losses => "losses",
        })
    }
}

impl Faults {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self {
            mix: [0; FaultKind::ALL.len()],
            every_us: 0,
            lasting_us: 0,
            restart_percent: 0,
            supervised_us: None,
            aimed_percent: 0,
            spare_parities_percent: 0,
            beyond: 0,
            forgets: false,
        }
    }
}

fn draw_network(rng: &mut Rng, lease_us: u64) -> Network {
    let least_us = rng.range(10, 60);
    let most_us = least_us + rng.pick(&[0, 50, lease_us / 500]);
    Network {
        least_us,
        most_us,
        jitter_us: rng.pick(&[5, 50, lease_us / 800]),
        slow_percent: rng.pick(&[0, 0, 10, 30]),
        notice_us: rng.pick(&[10, 1_000, lease_us / 20]),
        reconnect_us: rng.pick(&[100, 1_000, lease_us / 20]),
        line_us: rng.pick(&[100, 100, 1_000, lease_us / 10]),
    }
}

/// Longest ordinary delay of one message, batching included.
fn slowest_us(network: &Network) -> u64 {
    let slow = if network.slow_percent > 0 { 10 } else { 1 };
    network.most_us * slow + 8 * network.jitter_us + 200
}

fn draw_timing(rng: &mut Rng, lease_us: u64, network: &Network) -> Timing {
    let slowest_us = slowest_us(network);
    let mut timing = Timing::from_lease(lease_us);
    timing.read_lease_us = lease_us * rng.pick(&[2, 4, 4]) / 4;
    timing.stall_us = lease_us * rng.pick(&[2, 4, 8]) / 4;
    timing.retry_us = (lease_us / rng.pick(&[2, 4, 8])).max(6 * slowest_us);
    timing.commit_delay_us = rng.pick(&[200, 1_000, lease_us / 20]);
    timing.request_deadline_us = lease_us * rng.pick(&[3, 5, 20]);
    timing
}

fn draw_mix(rng: &mut Rng) -> [u32; Verb::ALL.len()] {
    let usual = [30, 3, 30, 6, 5, 5, 4, 8, 8, 8, 4, 3, 0];
    let mut mix = usual.map(|weight: u32| if rng.percent(30) { 0 } else { weight * rng.range(1, 4) as u32 });
    mix[Verb::Set as usize] = mix[Verb::Set as usize].max(2);
    mix[Verb::Get as usize] = mix[Verb::Get as usize].max(2);
    if rng.once_in(5) {
        mix[Verb::Flush as usize] = 1;
    }
    mix
}

fn draw_sizes(rng: &mut Rng) -> Sizes {
    let mut mix = [6, 30, 20, 6, 3, 1, 0].map(|weight: u32| if rng.percent(35) { 0 } else { weight });
    mix[1] = mix[1].max(1);
    if rng.once_in(12) {
        mix[6] = 1;
    }
    Sizes { mix }
}

fn draw_limits(rng: &mut Rng) -> Limits {
    let mut limits = Limits::default();
    if rng.once_in(3) {
        limits.frame_records = rng.range(1, 8) as usize;
        limits.frame_bytes = rng.pick(&[64, 1_024, 16_384]);
    }
    if rng.once_in(4) {
        limits.log_records = rng.range(1, 12) as usize;
        limits.log_bytes = rng.pick(&[512, 8_192, 1 << 20]);
    }
    if rng.once_in(6) {
        limits.parked_requests = rng.range(1, 6) as usize;
        limits.forwarded_requests = 4 * limits.parked_requests;
    }
    if rng.once_in(3) {
        limits.demand_sessions = rng.range(1, 4) as usize;
        limits.sweep_sessions = rng.range(1, 2) as usize;
        limits.parity_sessions = rng.range(2, 8) as usize;
    }
    if rng.once_in(3) {
        limits.index_part_bytes = rng.pick(&[64, 256, 4_096]);
    }
    limits
}

fn draw_memory(rng: &mut Rng, groups: usize, k: usize, m: usize, nodes: usize) -> Memory {
    let extent = types::EXTENT_BYTES as u64;
    let tight = rng.once_in(4);
    let area_extents = if tight { rng.range(1, 3) as u32 } else { 16 };
    // Every node may come to host a member of every group, and a stand-in beside a parity; a tight node has room for
    // little more than its fair share.
    let members = (groups * (k + m)).div_ceil(nodes) as u64;
    let node_bytes = if tight && rng.once_in(2) {
        extent * (members * u64::from(area_extents) + rng.range(2, 6))
    } else {
        extent * 2 * groups as u64 * u64::from(area_extents + 2)
    };
    Memory { node_bytes, area_extents, evict: rng.once_in(3) }
}

fn draw_faults(rng: &mut Rng, lease_us: u64, m: usize) -> Faults {
    if rng.once_in(10) {
        return Faults::none();
    }
    // The kinds after these have a focus of their own.
    let usual = [8, 4, 8, 6, 4, 4, 6, 6, 2, 6, 3];
    let drawn = usual.map(|weight: u32| if rng.percent(40) { 0 } else { weight });
    let mut mix = [0; FaultKind::ALL.len()];
    mix[..drawn.len()].copy_from_slice(&drawn);
    if mix.iter().all(|weight| *weight == 0) {
        mix[FaultKind::Crash as usize] = 1;
    }
    Faults {
        mix,
        every_us: lease_us * rng.pick(&[2, 4, 8, 20]) / 2,
        lasting_us: lease_us * rng.pick(&[1, 4, 12]) / 4,
        restart_percent: rng.pick(&[0, 50, 100]),
        supervised_us: if rng.once_in(3) { Some(lease_us / 100) } else { None },
        aimed_percent: rng.pick(&[0, 50, 90]),
        spare_parities_percent: rng.pick(&[0, 0, 60]),
        beyond: if rng.once_in(12) { 1 + rng.index(m.min(2)) } else { 0 },
        forgets: false,
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} on {} nodes x {} shards, {} groups, {} clients{}, {}+{} keys, {} calls, phase {} ms",
            self.profile(),
            self.nodes,
            self.shards,
            self.groups,
            self.clients,
            if self.faithful { " faithful to a role" } else { "" },
            self.text_keys,
            self.number_keys,
            self.calls,
            self.phase_us / 1000
        )?;
        writeln!(f, "  verbs {}", named(&self.mix, Verb::ALL.map(|v| format!("{v:?}"))))?;
        writeln!(
            f,
            "  sizes {:?}, expiry {} %, second {} us, think {} us, bursts {} %, patience {} us",
            self.sizes.mix,
            self.expiry_percent,
            self.second_us,
            self.think_us,
            self.bursts_percent,
            self.patience_us
        )?;
        writeln!(f, "  {:?}", self.timing)?;
        writeln!(f, "  {:?}", self.limits)?;
        writeln!(f, "  {:?}, {:?}, drift {} ppm", self.memory, self.batching, self.drift_ppm)?;
        writeln!(f, "  {:?}, scrub every {} us, {:?}", self.network, self.scrub_every_us, self.wall)?;
        if let Some(succession) = &self.succession {
            writeln!(f, "  {succession:?}")?;
        }
        let faults = &self.faults;
        write!(
            f,
            "  faults every {} us for {} us, aimed {} %, sparing parities {} %, restart {} %, supervised {:?}, beyond m by {} \
             ({:?}){}: {}",
            faults.every_us,
            faults.lasting_us,
            faults.aimed_percent,
            faults.spare_parities_percent,
            faults.restart_percent,
            faults.supervised_us,
            faults.beyond,
            self.on_loss,
            if faults.forgets { ", coordinators start with nothing" } else { "" },
            named(&faults.mix, FaultKind::ALL.map(|kind| format!("{kind:?}")))
        )
    }
}

/// The names with their weights, those of weight 0 left out.
fn named<const N: usize>(weights: &[u32; N], names: [String; N]) -> String {
    let drawn = weights.iter().zip(names).filter(|(weight, _)| **weight > 0);
    drawn.map(|(weight, name)| format!("{name}:{weight}")).collect::<Vec<_>>().join(" ")
}
