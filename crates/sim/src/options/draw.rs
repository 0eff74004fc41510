//! What a seed chooses.

use proto::{GraphSettings, Limits, Rules, Timing};
use rng::Rng;
use types::{EXTENT_BYTES, LossPolicy};

use super::{Batching, FaultKind, Faults, Focus, Memory, Network, Options, Sizes, Verb, purpose};
use crate::stage::clock::WallClocks;

/// Codes, the usual one more often.
const CODES: [(usize, usize); 12] =
    [(1, 1), (2, 1), (3, 1), (3, 2), (3, 2), (3, 2), (4, 2), (2, 2), (2, 3), (4, 3), (1, 2), (6, 2)];

impl Options {
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
            Focus::Codes => options.with_codes(rng),
            Focus::Objects => Self { focus: Focus::Objects, ..options },
            Focus::Graphs => options.with_lost_chunks(rng),
            Focus::Sessions => options.with_sessions(rng),
            Focus::Native => options.with_native_clients(rng),
            Focus::Scans => options.with_scans(rng),
            Focus::Conversions => options.with_conversions(rng),
        };
        let focused = Self { founders: focused.nodes, ..focused };
        // Each from a stream of its own: one draw more in any of these leaves all that the
        // seed chooses elsewhere as it is.
        let restarted =
            focused.with_policy().with_namespaces().with_restarts(&mut Rng::new(seed, purpose::RESTARTS));
        let scrubbed = restarted.with_scrubs(&mut Rng::new(seed, purpose::SCRUBS));
        let timed = scrubbed.with_wall_clocks(&mut Rng::new(seed, purpose::WALL));
        let chunked = timed.with_objects(&mut Rng::new(seed, purpose::OBJECTS));
        chunked.with_graphs(&mut Rng::new(seed, purpose::GRAPHS)).with_readers_of_parts()
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
    /// their items, or native clients, who count the time to live from when a node hears of it.
    fn with_wall_clocks(mut self, rng: &mut Rng) -> Self {
        if !matches!(self.focus, Focus::Releases | Focus::Native | Focus::Scans) && rng.once_in(3) {
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

    /// Two seeds of three have keys of several namespaces; in every other one pools and namespaces come and go. By the seed alone, so
    /// that all else is drawn as it was.
    fn with_namespaces(mut self) -> Self {
        self.namespaces = (self.seed % 3) as u32;
        // From one that a few items use up to one that nobody ever does.
        self.quota_bytes = [0, 1 << 12, 1 << 14, 1 << 16, 1 << 30][(self.seed / 3 % 5) as usize];
        if self.seed.is_multiple_of(2) {
            self.catalog_every_us = self.timing.node_lease_us * (1 + self.seed / 2 % 7);
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
            code: None,
            nodes,
            founders: nodes,
            groups,
            shards: if groups > 1 && rng.once_in(4) { 2 } else { 1 },
            sessions: 0,
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
            graphs: GraphSettings::default(),
            rules: Rules::all(),
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
            namespaces: 0,
            quota_bytes: 0,
            catalog_every_us: 0,
            convert_every_us: 0,
            objects: None,
            natives: None,
        };
        options.evenly_busy()
    }

    /// Pauses of clients such that the calls last for the whole phase.
    pub(super) fn evenly_busy(mut self) -> Self {
        self.think_us = 2 * self.phase_us * self.clients as u64 / u64::from(self.calls);
        self
    }
}

pub(super) fn draw_network(rng: &mut Rng, lease_us: u64) -> Network {
    let least_us = rng.range(10, 60);
    let most_us = least_us + rng.pick(&[0, 50, lease_us / 500]);
    Network {
        least_us,
        most_us,
        jitter_us: rng.pick(&[5, 50, lease_us / 800]),
        slow_percent: rng.pick(&[0, 0, 10, 30]),
        full_percent: 0,
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

pub(super) fn draw_timing(rng: &mut Rng, lease_us: u64, network: &Network) -> Timing {
    let slowest_us = slowest_us(network);
    let mut timing = Timing::from_lease(lease_us);
    timing.read_lease_us = lease_us * rng.pick(&[2, 4, 4]) / 4;
    timing.stall_us = lease_us * rng.pick(&[2, 4, 8]) / 4;
    // Who asks again before an ordinary answer can come never gets to the end of anything.
    timing.retry_us = (lease_us / rng.pick(&[2, 4, 8])).max(6 * slowest_us);
    timing.commit_delay_us = rng.pick(&[200, 1_000, lease_us / 20]);
    timing.request_deadline_us = lease_us * rng.pick(&[3, 5, 20]);
    timing
}

fn draw_mix(rng: &mut Rng) -> [u32; Verb::ALL.len()] {
    let usual = [30, 3, 30, 6, 5, 5, 4, 8, 8, 8, 4, 3, 0];
    let mut mix = usual.map(|weight: u32| if rng.percent(30) { 0 } else { weight * rng.range(1, 4) as u32 });
    // Without these two nothing would be stored, or nobody would look.
    mix[Verb::Set as usize] = mix[Verb::Set as usize].max(2);
    mix[Verb::Get as usize] = mix[Verb::Get as usize].max(2);
    // Seldom: a flush takes away all that has grown old enough to be interesting.
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
    // Bounds of very few: every wait for room has to happen, and with the usual ones none would.
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

pub(super) fn draw_memory(rng: &mut Rng, groups: usize, k: usize, m: usize, nodes: usize) -> Memory {
    let extent = EXTENT_BYTES as u64;
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
    // What goes wrong in such a seed has no fault to blame.
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
