//! Other erasure-coding libraries behind one face, so that tests can exchange chunks with them and benchmarks can run
//! beside them.
//!
//! Nothing is built by default. Each library is a feature of its name (`isal`, `jerasure`); the feature's line in
//! `Cargo.toml` says what has to be installed. `cargo xtask test peers` installs it and runs the tests.

#[cfg(feature = "isal")]
pub mod isal;
#[cfg(feature = "jerasure")]
pub mod jerasure;

use codec::Family;
use thiserror::Error;

/// Another library, prepared for one code.
pub trait Peer {
    /// Its name and version.
    fn name(&self) -> &'static str;

    /// The parity rows that the library itself made, one after the other.
    fn rows(&self) -> Vec<u8>;

    /// Computes the parity chunks.
    ///
    /// # Errors
    /// What is wrong with the chunks.
    fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), PeerError>;

    /// Computes the chunks of the roles `lost` in place. `chunks` are those of all roles.
    ///
    /// # Errors
    /// What is wrong with the chunks, or that too many are lost.
    fn decode(&self, lost: &[usize], chunks: &mut [&mut [u8]]) -> Result<(), PeerError>;
}

/// Why a peer was not called, or what it answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PeerError {
    /// The library has no such matrix.
    #[error("{peer} has no {family}({k}+{m})")]
    Unavailable {
        /// The library.
        peer: &'static str,
        /// The family asked for.
        family: Family,
        /// Data roles asked for.
        k: usize,
        /// Parity roles asked for.
        m: usize,
    },
    /// Chunks that the library would not survive.
    #[error("{0}")]
    BadChunks(&'static str),
    /// More was lost than the code bears.
    #[error("too many chunks are lost")]
    Undecodable,
}

/// Chunks of one length, each at the start of a cache line: some libraries insist on it.
pub struct Buffers {
    /// Zeroed, with room for moving the start to a cache line.
    bytes: Vec<u8>,
    stride: usize,
    len: usize,
}

impl Buffers {
    /// `count` chunks of `len` zeros.
    #[must_use]
    pub fn new(count: usize, len: usize) -> Self {
        let stride = len.next_multiple_of(LINE).max(LINE);
        Self { bytes: vec![0; count * stride + LINE], stride, len }
    }

    /// The chunks.
    pub fn chunks(&mut self) -> Vec<&mut [u8]> {
        let offset = self.bytes.as_ptr().align_offset(LINE);
        let len = self.len;
        let strides = self.bytes[offset..].chunks_exact_mut(self.stride);
        strides.map(|stride| &mut stride[..len]).collect()
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// That there are `k` and `m` chunks, all of one length: the length.
#[cfg(any(feature = "isal", feature = "jerasure"))]
fn check<'a>(
    (count, expected): (usize, usize),
    mut lengths: impl Iterator<Item = &'a [u8]>,
) -> Result<usize, PeerError> {
    if count != expected {
        return Err(PeerError::BadChunks("not as many chunks as roles"));
    }
    let len = lengths.next().map_or(0, <[u8]>::len);
    if len == 0 || lengths.any(|chunk| chunk.len() != len) {
        return Err(PeerError::BadChunks("chunks of different lengths or of none"));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_cache_lines_and_do_not_overlap() {
        for (count, len) in [(1, 0), (3, 1), (5, 64), (4, 65)] {
            let mut buffers = Buffers::new(count, len);
            let chunks = buffers.chunks();
            assert!(chunks.len() >= count);
            assert!(chunks.iter().all(|chunk| chunk.len() == len && chunk.as_ptr().align_offset(LINE) == 0));
        }
    }
}
