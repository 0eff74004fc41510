//! One connection of a native client: what is under way, and what has come in part.

use std::collections::VecDeque;

use bytes::Bytes;
use client_core::{ConnId, Intake};
use rng::Rng;

use super::port::Port;

/// See the module.
pub(crate) struct Link {
    /// Whose it is, and in which life.
    pub process: usize,
    pub life: u32,
    /// How its core calls it.
    pub conn: ConnId,
    pub node: usize,
    pub up: Flow,
    pub down: Flow,
    /// What has come to the client and is no whole frame yet.
    pub intake: Intake,
    /// Whether the client has been told that it stands.
    pub stands: bool,
    /// The node's end; none before there is one, and when it has ended.
    pub port: Option<Port>,
}

impl Link {
    pub(crate) fn new(process: usize, life: u32, conn: ConnId, node: usize) -> Self {
        let (up, down) = (Flow::default(), Flow::default());
        let intake = Intake::of(conn);
        Self { process, life, conn, node, up, down, intake, stands: false, port: None }
    }
}

/// One direction: bytes arrive in their order, or not at all.
#[derive(Default)]
pub(crate) struct Flow {
    parts: VecDeque<Bytes>,
    /// When the newest arrives.
    last_at: u64,
    /// Nothing more is taken.
    is_over: bool,
    /// Nothing arrives before this.
    held_until: u64,
}

impl Flow {
    /// Bytes are sent that would arrive at `at`; when they do, if anything is taken still.
    pub(super) fn push(&mut self, at: u64, bytes: Bytes) -> Option<u64> {
        if self.is_over {
            return None;
        }
        self.last_at = self.last_at.max(at);
        self.parts.push_back(bytes);
        Some(self.last_at)
    }

    /// The next bytes arrive now, unless they were lost.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Bytes> {
        if now < self.held_until { None } else { self.parts.pop_front() }
    }

    /// Nothing is sent any more; when the other end learns that, by itself at `at`.
    pub(super) fn close(&mut self, at: u64) -> u64 {
        self.is_over = true;
        self.last_at.max(at)
    }

    /// Of what is under way only the first parts arrive, at `at`; how many.
    pub(super) fn cut(&mut self, rng: &mut Rng, at: u64) -> usize {
        self.is_over = true;
        let kept = rng.index(self.parts.len() + 1);
        self.parts.truncate(kept);
        self.held_until = at;
        kept
    }
}
