//! Other libraries as sides.

#[cfg(feature = "peers")]
mod erasure;
#[cfg(feature = "peers")]
mod isal;
#[cfg(feature = "peers")]
mod jerasure;
mod klauspost;
#[cfg(feature = "peers")]
mod rusty;
#[cfg(feature = "peers")]
mod simd;

use std::str::FromStr;

use crate::side::Side;
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
    fn unable(self, reason: impl ToString) -> BenchError {
        BenchError::Unable { peer: self.name(), reason: reason.to_string() }
    }

    /// That `job` is one of `ops`, and one that a single thread does unless the peer has threads of its own.
    fn check(self, job: &Job, ops: &[Op]) -> Result<(), BenchError> {
        if !ops.contains(&job.op) {
            return Err(self.unable(format_args!("it has no {}", job.op.name())));
        }
        if job.threads.get() > 1 && self != Self::Klauspost {
            return Err(self.unable("it has no threads of its own"));
        }
        Ok(())
    }

    /// `k` and `m` of a job with a Reed-Solomon code.
    fn reed_solomon(self, job: &Job) -> Result<(usize, usize), BenchError> {
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

/// The peer, prepared for `job`.
///
/// # Errors
/// `NotBuilt`; `Unable` for a job that it cannot do; `Io` if its process does not start.
pub fn side(peer: Peer, job: &Job) -> Result<Box<dyn Side>, BenchError> {
    peer.check_built()?;
    Ok(match peer {
        Peer::Klauspost => Box::new(klauspost::Klauspost::new(job)?),
        #[cfg(feature = "peers")]
        Peer::IsaL => Box::new(isal::IsaL::new(job)?),
        #[cfg(feature = "peers")]
        Peer::Jerasure => Box::new(jerasure::Jerasure::new(job)?),
        #[cfg(feature = "peers")]
        Peer::ReedSolomonErasure => Box::new(erasure::Erasure::new(job)?),
        #[cfg(feature = "peers")]
        Peer::ReedSolomonSimd => Box::new(simd::Simd::new(job)?),
        #[cfg(feature = "peers")]
        Peer::RustyErasure => Box::new(rusty::Rusty::new(job)?),
        #[cfg(not(feature = "peers"))]
        other => return Err(BenchError::NotBuilt { peer: other.name() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    #[test]
    fn peers_are_read_as_they_are_written() {
        for peer in Peer::ALL {
            assert_eq!(peer.name().parse(), Ok(peer));
        }
        assert!("leopard".parse::<Peer>().unwrap_err().to_string().contains("klauspost"));
    }

    #[cfg(not(feature = "peers"))]
    #[test]
    fn a_peer_that_is_not_built_in_says_how_to_build_it() {
        let job = Job::new("3+2".parse().unwrap(), Op::Encode, Extent::Chunk(64), 3);
        let Err(error) = side(Peer::IsaL, &job) else { panic!("there is no ISA-L here") };
        assert!(error.to_string().contains("--features peers"));
    }

    #[cfg(feature = "peers")]
    #[test]
    fn every_peer_built_in_encodes_and_decodes_what_it_says_it_can() {
        use crate::memory::Memory;
        let time = std::time::Duration::from_micros(100);
        for peer in Peer::ALL.into_iter().filter(|peer| *peer != Peer::Klauspost) {
            for op in [Op::Encode, Op::Decode] {
                let job = Job::new("10+4".parse().unwrap(), op, Extent::Chunk(4096), 10);
                let job = Job { losses: 3, ..job };
                let mut side = side(peer, &job).unwrap();
                assert!(side.round(&mut Memory::new(&job, 10, 4), time).unwrap() > 0.0, "{}", peer.name());
            }
        }
    }
}
