//! What can go wrong, and how coordinators follow each other.

/// What can go wrong; positions in [`Faults::mix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum FaultKind {
    /// A node ends; its memory is gone.
    Crash,
    /// Several nodes end, at one moment or one after the other.
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
    /// At most `m` nodes are cut off from all others, and not from each other.
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
    /// Percent of faults that wait for messages of some kind to be under way.
    pub aimed_percent: u64,
    /// Percent of crashes that spare nodes with a parity: lost parities take their time to come back.
    pub spare_parities_percent: u64,
    /// How many losses beyond what the code can bear the seed may cause.
    pub beyond: usize,
    /// Whether a coordinator that has ended is followed by one that starts with nothing.
    pub forgets: bool,
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
