//! What a seed that looks at one thing more closely is made of.

use codec::Scheme;
use proto::{Limits, Timing};
use rng::Rng;
use types::EXTENT_BYTES;

use super::draw::{draw_memory, draw_network, draw_timing};
use super::{Batching, FaultKind, Faults, Focus, Memory, NativeClients, Network, Options, Succession, Verb};

/// Codes that `codes` looks at: some of whose parities cover some of the data roles, and some with other matrices.
const CODES: [&str; 9] = [
    "lrc(4,2,1)",
    "lrc(4,2,1)",
    "lrc(4,2,2)",
    "lrc(6,2,2)",
    "lrc(6,3,1)",
    "mirror(2)",
    "mirror(3)",
    "xor(3+1)",
    "jerasure-reed_sol_van(4+2)",
];

impl Options {
    /// The usual faults, with a code that need not make up for any losses of as many members as it has parities.
    pub(super) fn with_codes(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Codes;
        let scheme: Scheme = rng.pick(&CODES).parse().expect("these are schemes");
        (self.code, self.k, self.m) = (Some(scheme), scheme.k(), scheme.m());
        self.nodes = self.n() + rng.weighted(&[3, 2, 1]);
        self.groups = rng.pick(&[1, 1, 2]);
        self.memory = draw_memory(rng, self.groups, self.k, self.m, self.nodes);
        self.faults.beyond = 0;
        self
    }

    /// Second faults into the recovery from the first, again and again: several parities, spare nodes, slow sweeps, and
    /// a parent who sees every crash.
    pub(super) fn with_double_faults(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::DoubleFaults;
        (self.k, self.m) = rng.pick(&[(2, 2), (3, 2), (2, 3), (4, 3)]);
        self.nodes = self.n() + rng.range(1, 3) as usize;
        self.groups = 1;
        self.shards = 1;
        self.memory = Memory { node_bytes: 256 << 20, area_extents: 16, evict: false };
        // A slow sweep, so that pages are absent still when the next fault comes.
        self.limits.sweep_sessions = 1;
        self.limits.demand_sessions = rng.range(1, 4) as usize;
        self.sizes.mix = [2, 30, 20, 6, 0, 0, 0];
        self.text_keys = 60;
        self.clients = 4 * self.k;
        self.faithful = true;
        self.bursts_percent = 3;
        // Wires of unequal speed, so that parities of one role are never at the same record.
        let lease_us = rng.pick(&[100_000, 250_000]);
        self.network = Network { slow_percent: 40, jitter_us: 20, ..draw_network(rng, lease_us) };
        self.network.most_us = self.network.least_us + 20;
        self.timing = draw_timing(rng, lease_us, &self.network);
        self.faults = Faults {
            mix: [0; FaultKind::ALL.len()],
            every_us: lease_us,
            lasting_us: lease_us / 4,
            restart_percent: 100,
            supervised_us: Some(rng.range(1, 300)),
            aimed_percent: 70,
            // Without its parities a group could not bear the next loss, and the nemesis would not cause it.
            spare_parities_percent: 95,
            beyond: 0,
            forgets: false,
        };
        self.faults.mix[FaultKind::Crash as usize] = 1;
        self.faults.mix[FaultKind::CrashSeveral as usize] = 4;
        // A fence that takes long enough for a repair session to run meanwhile.
        self.network.line_us = rng.pick(&[100, 5_000, lease_us / 10]);
        self.phase_us = lease_us * 30;
        self.calls = 6_000;
        self.evenly_busy()
    }

    /// Roles that move all the time, over wires of unequal speed, with nodes that stand still or die meanwhile, and a
    /// coordinator that does.
    pub(super) fn with_moves(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Moves;
        (self.k, self.m) = rng.pick(&[(2, 1), (2, 2), (3, 2)]);
        self.nodes = self.n() + rng.range(1, 4) as usize;
        self.groups = rng.range(1, 3) as usize;
        self.shards = 1;
        self.memory = Memory { node_bytes: 512 << 20, area_extents: 16, evict: false };
        self.sizes.mix = [2, 30, 20, 6, 0, 0, 0];
        self.clients = 4 * self.k;
        self.bursts_percent = 3;
        let lease_us = rng.pick(&[50_000, 100_000, 250_000]);
        self.network = Network { slow_percent: 40, jitter_us: 20, ..draw_network(rng, lease_us) };
        self.network.line_us = rng.pick(&[100, 5_000, lease_us / 10]);
        self.timing = draw_timing(rng, lease_us, &self.network);
        self.faults = Faults {
            mix: [0; FaultKind::ALL.len()],
            every_us: lease_us / 2,
            lasting_us: lease_us * rng.pick(&[1, 4, 12]) / 4,
            restart_percent: 100,
            supervised_us: Some(rng.range(1, 300)),
            aimed_percent: 30,
            spare_parities_percent: 0,
            beyond: 0,
            forgets: false,
        };
        self.faults.mix[FaultKind::Move as usize] = 30;
        for kind in [FaultKind::Crash, FaultKind::Pause, FaultKind::Flap, FaultKind::CoordinatorPause] {
            self.faults.mix[kind as usize] = rng.pick(&[0, 1, 3]);
        }
        // Without a spare node a data role can only change places with a parity.
        if rng.percent(40) {
            self.nodes = self.n();
        }
        self.phase_us = lease_us * 60;
        self.calls = 8_000;
        self.evenly_busy()
    }

    /// Many long values that stay, and nodes that die and come back with nothing, again and again: what they had is made anew, while
    /// others die, stand still, are slow or are cut off, and roles move.
    pub(super) fn with_lost_chunks(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Graphs;
        (self.k, self.m) = rng.pick(&[(2, 1), (2, 2), (3, 2), (4, 2), (6, 2)]);
        if rng.once_in(3) {
            let scheme: Scheme = rng.pick(&["lrc(4,2,1)", "lrc(4,2,2)"]).parse().expect("these are schemes");
            (self.code, self.k, self.m) = (Some(scheme), scheme.k(), scheme.m());
        }
        self.nodes = self.n() + rng.range(1, 3) as usize;
        self.groups = rng.range(1, 3) as usize;
        self.memory = Memory { node_bytes: 512 << 20, area_extents: 16, evict: false };
        self.text_keys = rng.pick(&[20, 60]);
        self.sizes.mix = [0, 1, 1, 1, 2, 6, 6];
        self.mix[Verb::Set as usize] = 12;
        self.mix[Verb::Get as usize] = 30;
        let lease_us = self.timing.node_lease_us;
        self.faults = Faults {
            mix: [0; FaultKind::ALL.len()],
            every_us: lease_us * rng.pick(&[2, 4, 8]),
            lasting_us: lease_us * rng.pick(&[1, 4, 12]) / 4,
            restart_percent: 100,
            supervised_us: if rng.once_in(3) { Some(lease_us / 100) } else { None },
            aimed_percent: rng.pick(&[0, 50]),
            spare_parities_percent: 0,
            beyond: 0,
            forgets: false,
        };
        self.weigh(
            rng,
            &[
                (FaultKind::Crash, 8),
                (FaultKind::CrashSeveral, 2),
                (FaultKind::Pause, 3),
                (FaultKind::Flap, 3),
                (FaultKind::Cut, 2),
                (FaultKind::IsolateFromPeers, 2),
                (FaultKind::Slow, 4),
                (FaultKind::Move, 6),
            ],
        );
        self.faults.mix[FaultKind::Crash as usize] = 8;
        self.phase_us = lease_us * 60;
        self.calls = 3_000;
        self.evenly_busy()
    }

    /// Few keys with large values, which are often all gone, on nodes that have too little memory to keep what they do not use.
    pub(super) fn with_releases(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Releases;
        (self.k, self.m) = rng.pick(&[(2, 1), (2, 2), (3, 2)]);
        self.nodes = self.n() + rng.range(0, 2) as usize;
        self.groups = rng.range(1, 3) as usize;
        self.shards = 1;
        self.text_keys = rng.pick(&[2, 5, 12]);
        self.number_keys = 1;
        self.sizes.mix = [1, 2, 6, 6, 4, 8, 8];
        self.mix[Verb::Set as usize] = 30;
        self.mix[Verb::Delete as usize] = 30;
        self.mix[Verb::Flush as usize] = rng.pick(&[0, 1, 4]);
        // None is kept for later.
        self.limits.vacant_extents = 0;
        let members = (self.groups * self.n()).div_ceil(self.nodes) as u64;
        let node_bytes = EXTENT_BYTES as u64 * (members + rng.range(2, 5));
        self.memory = Memory { node_bytes, area_extents: rng.range(2, 3) as u32, evict: rng.once_in(3) };
        self.evenly_busy()
    }

    /// Nodes that stand still or are cut off until they are evicted, over wires of unequal speed, and primaries that die at
    /// about the same time: what comes back has received more than others, or less.
    pub(super) fn with_returns(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Returns;
        (self.k, self.m) = rng.pick(&[(1, 2), (2, 2), (2, 2), (3, 2), (2, 3)]);
        self.nodes = self.n() + rng.weighted(&[4, 1]);
        self.groups = rng.range(1, 2) as usize;
        self.text_keys = 60;
        let lease_us = self.with_small_items_on_uneven_wires(rng);
        // With the short ones a primary no longer has what the parity lacks, and the lesson begins from nothing.
        self.limits.history_bytes = rng.pick(&[2_000, 20_000, 64 << 20, 64 << 20]);
        self.faults = Faults {
            mix: [0; FaultKind::ALL.len()],
            every_us: lease_us / 2,
            lasting_us: lease_us * rng.pick(&[4, 6, 12]) / 4,
            restart_percent: 100,
            supervised_us: if rng.once_in(3) { Some(rng.range(1, 300)) } else { None },
            aimed_percent: 70,
            spare_parities_percent: 90,
            beyond: 0,
            forgets: false,
        };
        self.weigh(
            rng,
            &[
                (FaultKind::Pause, 8),
                (FaultKind::Crash, 4),
                (FaultKind::Slow, 3),
                (FaultKind::Cut, 2),
                (FaultKind::Isolate, 2),
                (FaultKind::IsolateFromPeers, 2),
                (FaultKind::Flap, 1),
            ],
        );
        // In every seed: without it hardly anybody comes back. Nodes that crash have nothing to offer.
        self.faults.mix[FaultKind::Pause as usize] = 8;
        self.phase_us = lease_us * 60;
        self.calls = 8_000;
        self.evenly_busy()
    }

    /// Clients that have sessions, where roles are taken over, move, and are taught to others; some of them soon lose patience.
    pub(super) fn with_sessions(self, rng: &mut Rng) -> Self {
        let mut options = match rng.weighted(&[3, 3, 2, 2]) {
            0 => self,
            1 => self.with_double_faults(rng),
            2 => self.with_moves(rng),
            _ => self.with_returns(rng),
        };
        options.focus = Focus::Sessions;
        options.sessions = rng.pick(&[1, 2, 2, 3]);
        options.clients = options.clients.max(6);
        options.number_keys = 12;
        // By verb: what done twice shows in the key.
        options.mix = [24, 1, 8, 8, 3, 12, 3, 8, 8, 16, 4, 2, 0];
        options.patience_us = options.timing.node_lease_us * rng.pick(&[1, 2, 1_000_000]) / 2;
        options.timing.session_lease_us = options.timing.node_lease_us * rng.pick(&[4, 60, 60]);
        options.calls = options.calls.min(6_000);
        options
    }

    /// Namespaces that move to another pool while roles are taken over, move, and come back; half of the seeds have clients with sessions.
    pub(super) fn with_conversions(self, rng: &mut Rng) -> Self {
        let mut options = match rng.weighted(&[3, 3, 2, 2]) {
            0 => self,
            1 => self.with_double_faults(rng),
            2 => self.with_moves(rng),
            _ => self.with_returns(rng),
        };
        options.focus = Focus::Conversions;
        options.faults.beyond = 0;
        options.sessions = rng.pick(&[0, 0, 1, 2]);
        options.clients = options.clients.max(6);
        options.number_keys = 12;
        // By verb: what done twice, or of an old copy, shows in the key.
        options.mix = [24, 3, 8, 8, 3, 12, 3, 12, 8, 16, 4, 4, 0];
        // Both pools have room for everything: else a namespace waits for memory for ever.
        options.memory.node_bytes = options.memory.node_bytes.max(256 << 20);
        options.convert_every_us = options.timing.node_lease_us * rng.range(1, 12) / 4;
        options.calls = options.calls.min(6_000);
        options
    }

    /// Two clients of three are native, in processes that come and go, over connections that break.
    pub(super) fn with_native_clients(self, rng: &mut Rng) -> Self {
        let mut options = match rng.weighted(&[4, 2, 3, 2]) {
            0 => self,
            1 => self.with_double_faults(rng),
            2 => self.with_moves(rng),
            _ => self.with_returns(rng),
        };
        options.focus = Focus::Native;
        options.faults.beyond = 0;
        options.clients = options.clients.clamp(6, 15);
        options.number_keys = 12;
        options.expiry_percent = 0;
        // By verb: what done twice shows in the key. No flush: there is none in the protocol.
        options.mix = [24, 1, 8, 8, 3, 12, 3, 8, 8, 16, 4, 2, 0];
        // In one seed of three some values do not fit into a frame.
        let long = if rng.once_in(3) { [2, 2] } else { [0, 0] };
        options.sizes.mix = [4, 30, 10, 4, 2, long[0], long[1]];
        let lease_us = options.timing.node_lease_us;
        options.patience_us = rng.pick(&[lease_us, u64::MAX, u64::MAX]);
        options.timing.session_lease_us = lease_us * rng.pick(&[4, 60, 60]);
        options.calls = options.calls.min(5_000);
        options.natives = Some(NativeClients {
            processes: rng.range(1, 3) as usize,
            credits: rng.pick(&[1, 2, 64]),
            timeout_us: lease_us * rng.pick(&[1, 3, 10]),
            connect_us: lease_us / rng.pick(&[1, 2, 8]),
            pause_us: lease_us / rng.pick(&[10, 50, 200]),
            sessions_percent: rng.pick(&[0, 80, 100, 100]),
            cut_per_mille: rng.pick(&[0, 2, 20]),
            late_us: lease_us * rng.pick(&[0, 1, 4]) / 4,
            // By the seed alone, so that all else is drawn as it was.
            stall_us: if options.seed.is_multiple_of(3) { lease_us } else { 0 },
            process_us: lease_us * rng.pick(&[0, 5, 20]),
            scan_pause_us: 0,
            feed_pause_us: 0,
            rules: client_core::Rules::all(),
        });
        options.evenly_busy()
    }

    /// Native clients that scan their keys, a few at a time, while these come and go and roles change hands.
    pub(super) fn with_scans(self, rng: &mut Rng) -> Self {
        let mut options = self.with_native_clients(rng);
        options.focus = Focus::Scans;
        // What may be evicted no scan has to bring.
        options.memory.evict = false;
        options.text_keys = rng.pick(&[40, 120]);
        options.mix = [12, 0, 20, 8, 2, 4, 0, 2, 12, 4, 0, 0, 0];
        options.sizes.mix = [4, 30, 10, 2, 0, 0, 0];
        options.calls = options.calls.min(3_000);
        let lease_us = options.timing.node_lease_us;
        if let Some(natives) = &mut options.natives {
            natives.scan_pause_us = lease_us / rng.pick(&[4, 20]);
            natives.credits = natives.credits.max(2);
        }
        options.evenly_busy()
    }

    /// Nodes that end or are cut off together, more of them than the code can bear, and come back or not; some go on as long as
    /// they have each other.
    pub(super) fn with_losses(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Losses;
        (self.k, self.m) = rng.pick(&[(1, 1), (2, 1), (2, 1), (2, 2), (3, 2)]);
        self.nodes = self.n() + rng.range(1, 4) as usize;
        self.groups = rng.range(1, 3) as usize;
        let lease_us = self.with_small_items_on_uneven_wires(rng);
        self.faults = Faults {
            mix: [0; FaultKind::ALL.len()],
            every_us: lease_us,
            lasting_us: lease_us * rng.pick(&[1, 4, 16]),
            restart_percent: rng.pick(&[0, 50, 100, 100]),
            supervised_us: if rng.once_in(2) { Some(rng.range(1, 300)) } else { None },
            aimed_percent: 50,
            spare_parities_percent: 0,
            beyond: 1 + rng.index(3),
            forgets: false,
        };
        self.weigh(
            rng,
            &[
                (FaultKind::Crash, 6),
                (FaultKind::CrashSeveral, 4),
                (FaultKind::Pause, 4),
                (FaultKind::Isolate, 3),
                (FaultKind::IsolateFromCoordinator, 5),
                (FaultKind::IsolateFromPeers, 2),
                (FaultKind::Split, 2),
                (FaultKind::Move, 2),
            ],
        );
        // In every seed, or nothing might be lost at all.
        self.faults.mix[FaultKind::Crash as usize] = 6;
        self.phase_us = lease_us * 80;
        self.calls = 8_000;
        self.evenly_busy()
    }

    /// Coordinators that end, or are deposed and live on, or are cut off, in the middle of recoveries, moves and complaints.
    pub(super) fn with_succession(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Succession;
        (self.k, self.m) = rng.pick(&[(2, 1), (2, 2), (3, 2), (2, 3)]);
        self.nodes = self.n() + rng.range(1, 3) as usize;
        self.groups = rng.range(1, 3) as usize;
        self.shards = 1;
        self.memory = Memory { node_bytes: 512 << 20, area_extents: 16, evict: false };
        self.sizes.mix = [2, 30, 20, 6, 0, 0, 0];
        self.clients = 4 * self.k;
        let lease_us = rng.pick(&[50_000, 100_000, 250_000]);
        self.network =
            Network { slow_percent: rng.pick(&[0, 40]), jitter_us: 20, ..draw_network(rng, lease_us) };
        self.network.line_us = rng.pick(&[100, 5_000, lease_us / 10]);
        self.timing = draw_timing(rng, lease_us, &self.network);
        self.nodes_keep = false;
        self.succession = Some(Succession {
            write_us: rng.pick(&[200, 2_000, lease_us / 10]),
            gap_us: rng.pick(&[100, lease_us / 10, lease_us * 2]),
            late_us: rng.pick(&[100, lease_us / 10, lease_us / 2, lease_us * 2]),
            lease_us: rng.pick(&[0, lease_us / 2, lease_us * 2]),
            by_hand: false,
        });
        self.faults = Faults {
            mix: [0; FaultKind::ALL.len()],
            every_us: lease_us * rng.pick(&[1, 2, 4]) / 4,
            lasting_us: lease_us * rng.pick(&[1, 4, 12]) / 4,
            restart_percent: rng.pick(&[50, 100]),
            supervised_us: rng.pick(&[None, Some(200)]),
            aimed_percent: 60,
            spare_parities_percent: rng.pick(&[0, 60]),
            beyond: 0,
            forgets: false,
        };
        let mut weigh =
            |kind: FaultKind, weights: [u32; 3]| self.faults.mix[kind as usize] = rng.pick(&weights);
        weigh(FaultKind::CoordinatorCrash, [6, 6, 12]);
        weigh(FaultKind::CoordinatorDepose, [0, 6, 12]);
        weigh(FaultKind::CoordinatorIsolate, [0, 1, 2]);
        weigh(FaultKind::CoordinatorPause, [0, 1, 2]);
        weigh(FaultKind::Crash, [4, 4, 8]);
        weigh(FaultKind::CrashSeveral, [0, 4, 4]);
        weigh(FaultKind::Pause, [0, 2, 4]);
        weigh(FaultKind::Isolate, [0, 1, 2]);
        weigh(FaultKind::IsolateFromPeers, [0, 0, 1]);
        weigh(FaultKind::Cut, [0, 0, 2]);
        weigh(FaultKind::Flap, [0, 0, 2]);
        weigh(FaultKind::Move, [0, 6, 20]);
        self.phase_us = lease_us * 45;
        self.calls = 4_500;
        self.evenly_busy()
    }

    /// The same without a store: the next coordinator has to ask the nodes.
    pub(super) fn with_forgetting(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::Forgetting;
        self.succession = None;
        self.nodes_keep = true;
        (self.k, self.m) = rng.pick(&[(1, 2), (2, 1), (2, 2), (3, 2), (3, 2)]);
        self.nodes = self.nodes.max(self.n() + 1);
        self.faults.forgets = true;
        // Both need a store, which can elect another one while the former lives.
        for kind in [FaultKind::CoordinatorDepose, FaultKind::CoordinatorIsolate] {
            self.faults.mix[kind as usize] = 0;
        }
        for (kind, weight) in
            [(FaultKind::Slow, 3), (FaultKind::IsolateFromCoordinator, 4), (FaultKind::CoordinatorHalves, 2)]
        {
            self.faults.mix[kind as usize] = if rng.percent(50) { weight } else { 0 };
        }
        self.evenly_busy()
    }

    /// Lines to the coordinator on which its repeated questions overtake the answers to the first ones.
    pub(super) fn with_slow_lines(mut self, rng: &mut Rng) -> Self {
        self.focus = Focus::SlowLines;
        let lease_us = rng.pick(&[50_000, 100_000]);
        self.network = draw_network(rng, lease_us);
        self.network.slow_percent = 0;
        self.network.most_us = self.network.least_us + 20;
        self.network.jitter_us = 5;
        self.timing = Timing::from_lease(lease_us);
        self.timing.retry_us = lease_us / 16;
        // There and back takes three retry time-outs, so every question is asked again
        // before the first answer comes.
        self.network.line_us = self.timing.retry_us * 3 / 2;
        self.phase_us = lease_us * 30;
        self.calls = 4_000;
        self.clients = rng.range(6, 12) as usize;
        self.mix[Verb::Set as usize] += 60;
        self.limits = Limits::default();
        self.batching = Batching::Never;
        self.faults.every_us = lease_us;
        self.faults.lasting_us = lease_us / 4;
        self.faults.restart_percent = 100;
        self.faults.supervised_us = Some(rng.range(1, 300));
        self.faults.spare_parities_percent = 90;
        self.faults.mix = [0; FaultKind::ALL.len()];
        self.faults.mix[FaultKind::Crash as usize] = 3;
        self.faults.mix[FaultKind::CrashSeveral as usize] = 1;
        self.evenly_busy()
    }

    /// Values of few sizes and short leases, over wires of unequal speed; the lease.
    fn with_small_items_on_uneven_wires(&mut self, rng: &mut Rng) -> u64 {
        self.shards = 1;
        self.memory = Memory { node_bytes: 512 << 20, area_extents: 16, evict: false };
        self.sizes.mix = [2, 30, 20, 6, 0, 0, 0];
        self.clients = 4 * self.k;
        self.bursts_percent = 3;
        let lease_us = rng.pick(&[20_000, 50_000, 100_000]);
        self.network = Network { slow_percent: 40, jitter_us: 20, ..draw_network(rng, lease_us) };
        self.timing = draw_timing(rng, lease_us, &self.network);
        lease_us
    }

    /// Faults of these kinds with these weights, each left out in a quarter of the seeds.
    fn weigh(&mut self, rng: &mut Rng, weights: &[(FaultKind, u32)]) {
        for (kind, weight) in weights {
            self.faults.mix[*kind as usize] = if rng.percent(25) { 0 } else { *weight };
        }
    }
}
