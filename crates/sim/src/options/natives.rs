//! Clients of the native protocol.

use client_core::Rules;

/// What such clients are like, and their connections.
#[derive(Clone, Copy, Debug)]
pub struct NativeClients {
    /// Processes, each of which has one core that several clients share.
    pub processes: usize,
    /// Requests of one connection that may be unanswered.
    pub credits: u32,
    /// How long a request may take.
    pub timeout_us: u64,
    /// How long a connection may take until it has been welcomed.
    pub connect_us: u64,
    /// Pause before something is tried again.
    pub pause_us: u64,
    /// Percent of processes whose writes have names.
    pub sessions_percent: u64,
    /// Of a thousand times that bytes are sent, how often their connection breaks.
    pub cut_per_mille: u64,
    /// How much later than it is sent that may arrive which was under way then.
    pub late_us: u64,
    /// How much later the rest comes of what comes to a client in two parts, at most; 0 = no later than the network has it.
    pub stall_us: u64,
    /// How long a process lives on the average; 0 = for ever.
    pub process_us: u64,
    /// Pause between two scans of a process on the average; 0 = there are none.
    pub scan_pause_us: u64,
    /// Longest pause before more is fed of a value that is given bit by bit; 0 = there is none.
    pub feed_pause_us: u64,
    /// The rules that they keep.
    pub rules: Rules,
}
