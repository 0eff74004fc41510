//! Other libraries as sides.

#[cfg(feature = "peers")]
mod erasure;
#[cfg(feature = "peers")]
mod isal;
#[cfg(feature = "peers")]
mod jerasure;
mod klauspost;
mod peer;
#[cfg(feature = "peers")]
mod rusty;
#[cfg(feature = "peers")]
mod simd;

pub use peer::{Peer, UnknownPeer};

use crate::side::Side;
use crate::{BenchError, Job};

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
    use crate::{Extent, Op};

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
