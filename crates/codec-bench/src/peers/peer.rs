//! Which other libraries there are.

use std::str::FromStr;

use crate::{BenchError, Job, Op};

/// Another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Intel's ISA-L, in C and assembly.
    IsaL,
    /// Jerasure 2, in C.
    Jerasure,
    /// The crate `reed-solomon-erasure`, with its C loops.
    ReedSolomonErasure,
    /// The crate `reed-solomon-simd`: GF(2^16), O(n log n).
    ReedSolomonSimd,
    /// The crate `rusty_erasure`.
    RustyErasure,
    /// klauspost/reedsolomon, in Go: a process of its own.
    Klauspost,
}

/// A name that no peer has.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "no peer '{0}': there are isal, jerasure, reed-solomon-erasure, reed-solomon-simd, rusty_erasure and klauspost"
)]
pub struct UnknownPeer(pub String);

impl Peer {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::IsaL,
        Self::Jerasure,
        Self::ReedSolomonErasure,
        Self::ReedSolomonSimd,
        Self::RustyErasure,
        Self::Klauspost,
    ];

    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IsaL => "isal",
            Self::Jerasure => "jerasure",
            Self::ReedSolomonErasure => "reed-solomon-erasure",
            Self::ReedSolomonSimd => "reed-solomon-simd",
            Self::RustyErasure => "rusty_erasure",
            Self::Klauspost => "klauspost",
        }
    }

    /// That this binary has it.
    ///
    /// # Errors
    /// `NotBuilt`.
    pub fn check_built(self) -> Result<(), BenchError> {
        let built = cfg!(feature = "peers") || self == Self::Klauspost;
        if built { Ok(()) } else { Err(BenchError::NotBuilt { peer: self.name() }) }
    }

    /// For a job that it cannot do.
    pub(super) fn unable(self, reason: impl ToString) -> BenchError {
        BenchError::Unable { peer: self.name(), reason: reason.to_string() }
    }

    /// That `job` is one of `ops`, and one that a single thread does unless the peer has threads of its own.
    pub(super) fn check(self, job: &Job, ops: &[Op]) -> Result<(), BenchError> {
        if !ops.contains(&job.op) {
            return Err(self.unable(format_args!("it has no {}", job.op.name())));
        }
        if job.threads.get() > 1 && self != Self::Klauspost {
            return Err(self.unable("it has no threads of its own"));
        }
        Ok(())
    }

    /// `k` and `m` of a job with a Reed-Solomon code.
    pub(super) fn reed_solomon(self, job: &Job) -> Result<(usize, usize), BenchError> {
        match job.scheme {
            codec::Scheme::Rs { k, m, .. } => Ok((k, m)),
            other => Err(self.unable(format_args!("it has no {other}"))),
        }
    }
}

impl FromStr for Peer {
    type Err = UnknownPeer;

    fn from_str(name: &str) -> Result<Self, UnknownPeer> {
        Self::ALL.into_iter().find(|peer| peer.name() == name).ok_or_else(|| UnknownPeer(name.to_owned()))
    }
}
