//! Swarm options: what one seed is made of.
//!
//! - `calls`, `faults`, `machine`, `focus`: what can be chosen;
//! - `draw`: what a seed chooses; wide and uneven, so that every seed leaves something out;
//! - `foci`: what a seed chooses that looks at one thing more closely;
//! - `show`: all of it in a few lines.

mod calls;
mod draw;
mod faults;
mod foci;
mod focus;
mod machine;
mod natives;
mod objects;
pub(crate) mod purpose;
mod show;

use cluster::Protection;
use codec::Scheme;
use proto::{GraphSettings, Limits, Rules, Timing};
use types::{LossPolicy, Profile};

use crate::stage::clock::WallClocks;

pub use calls::{Sizes, Verb};
pub use faults::{FaultKind, Faults, Succession};
pub use focus::Focus;
pub use machine::{Batching, Memory, Network};
pub use natives::NativeClients;
pub use objects::Objects;

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
    /// The code, where it is neither Reed-Solomon nor copies.
    pub code: Option<Scheme>,
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
    /// Processes of clients, which have sessions and make writes again under the same names; 0 = writes have no names.
    pub sessions: usize,
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
    /// Percent of pauses that are long, all others being as short as can be, with the same mean; 0 = all alike.
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
    /// How chunks are made of others.
    pub graphs: GraphSettings,
    /// The rules that are kept.
    pub rules: Rules,
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
    /// Namespaces beside the default one, whose keys are among the others.
    pub namespaces: u32,
    /// Quota of each of them; 0 = none.
    pub quota_bytes: u64,
    /// Time between two changes of pools and namespaces; 0 = none.
    pub catalog_every_us: u64,
    /// Time between two namespaces that move to another pool, or stand still on their way; 0 = none.
    pub convert_every_us: u64,
    /// Values in chunks, if there are any.
    pub objects: Option<Objects>,
    /// Clients of the native protocol, if there are any among them.
    pub natives: Option<NativeClients>,
}

impl Options {
    /// Protection: with one data role, every other seed has copies.
    #[must_use]
    pub fn profile(&self) -> Profile {
        let (k, m) = (self.k as u32, self.m as u32);
        let profile = match self.code {
            Some(scheme) => Profile::new(scheme),
            None if k == 1 && self.seed % 2 == 1 => Profile::rep(m + 1),
            None => Profile::rs(k, m),
        };
        profile.expect("options name a valid profile")
    }

    /// What that makes up for.
    #[must_use]
    pub fn protection(&self) -> Protection {
        Protection::of(self.profile())
    }

    /// A quiet cluster of this code, for a story.
    #[must_use]
    pub fn quiet_with(scheme: Scheme, nodes: usize) -> Self {
        Self { code: Some(scheme), ..Self::quiet(scheme.k(), scheme.m(), nodes) }
    }

    /// A quiet cluster for a story: fixed delays, no clients, no faults, exact clocks.
    #[must_use]
    pub fn quiet(k: usize, m: usize, nodes: usize) -> Self {
        Self {
            seed: 0,
            focus: Focus::Anything,
            k,
            m,
            code: None,
            nodes,
            founders: nodes,
            groups: 1,
            shards: 1,
            clients: 0,
            sessions: 0,
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
            graphs: GraphSettings::default(),
            rules: Rules::all(),
            memory: Memory { node_bytes: 256 << 20, area_extents: 16, evict: false },
            network: Network {
                least_us: 50,
                most_us: 50,
                jitter_us: 0,
                slow_percent: 0,
                full_percent: 0,
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
            namespaces: 0,
            quota_bytes: 0,
            catalog_every_us: 0,
            convert_every_us: 0,
            objects: None,
            natives: None,
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

    /// Roles of a group.
    #[must_use]
    pub fn n(&self) -> usize {
        self.k + self.m
    }

    /// The same seed where these rules are kept.
    #[must_use]
    pub fn by(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The process of native clients that this one belongs to; none if it asks nodes as memcached's clients do.
    pub(crate) fn native_process_of(&self, client: u16) -> Option<usize> {
        let natives = self.natives?;
        (!client.is_multiple_of(3)).then(|| usize::from(client) / 3 % natives.processes)
    }

    /// The same seed where native clients keep these rules.
    #[must_use]
    pub fn by_native(mut self, rules: client_core::Rules) -> Self {
        if let Some(natives) = &mut self.natives {
            natives.rules = rules;
        }
        self
    }

    /// The same seed without any fault, for comparison.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.faults = Faults::none();
        self
    }
}
