//! What a client is made with.

use std::net::SocketAddr;

use native::MAX_PIECE_BYTES;
use types::Name;

use crate::direct::{Coding, LostBy};
use crate::rules::Rules;

/// See the module.
#[derive(Clone, Debug)]
pub struct Config {
    /// Some of the nodes' addresses: the map has the others.
    pub seeds: Vec<SocketAddr>,
    /// Values are read through this node as long as it can be reached, not through those of the keys: it is beside the client, and has
    /// the bytes that are wanted.
    pub beside: Option<SocketAddr>,
    /// Whose keys it is about.
    pub namespace: Name,
    /// How long a request may take that says nothing of it, in microseconds.
    pub timeout_us: u64,
    /// How long a connection may take until it has been welcomed, in microseconds.
    pub connect_us: u64,
    /// Pause before something is tried again, in microseconds; it doubles with every failure of a node, up to 64 times as long.
    pub pause_us: u64,
    /// Whether writes are made under sessions, so that they are done once though they are sent again.
    pub sessions: bool,
    /// For so long nobody asks for a session again where there was none to be had, in microseconds.
    pub no_session_us: u64,
    /// Most requests that have not come to their end.
    pub max_requests: usize,
    /// Most bytes of one value that have been asked for and not been taken by the caller.
    pub window: u32,
    /// Who codes values in chunks that are written, and who puts together those that are read.
    pub encode: Coding,
    /// See `encode`.
    pub decode: Coding,
    /// How what lies in a lost chunk gets here.
    pub lost_by: LostBy,
    /// Values up to this length are not asked about before they are written: they lie whole at one member.
    pub chunks_above: usize,
    /// After how long a holder of chunks is slow at the latest, so that others are asked, in microseconds. Sooner where reads have
    /// mostly taken less.
    pub hedge_us: u64,
    /// The rules that are kept: all of them, but in tests of what each prevents.
    pub rules: Rules,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            beside: None,
            namespace: Name::default_name(),
            timeout_us: 10_000_000,
            connect_us: 1_000_000,
            pause_us: 10_000,
            sessions: true,
            no_session_us: 1_000_000,
            max_requests: 65_536,
            window: 1 << 20,
            encode: Coding::Auto,
            decode: Coding::Auto,
            lost_by: LostBy::Star,
            chunks_above: MAX_PIECE_BYTES,
            hedge_us: 25_000,
            rules: Rules::all(),
        }
    }
}
