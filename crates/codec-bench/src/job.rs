//! What is measured.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use codec::{Code, CodeError, Scheme};

use crate::BenchError;

/// Longest chunk and largest object: what a bench allocates is bounded.
const MAX_BYTES: usize = 4 << 30;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// All parities from the data.
    Encode,
    /// Lost data chunks from what is left.
    Decode,
    /// All parities after a change of one data chunk.
    Delta,
    /// Copy the data and encode it, in one pass.
    CopyEncode,
    /// Encode, and the CRC32C of all chunks, in one pass.
    ChecksumEncode,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Encode, Self::Decode, Self::Delta, Self::CopyEncode, Self::ChecksumEncode];

    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Delta => "delta",
            Self::CopyEncode => "copy-encode",
            Self::ChecksumEncode => "checksum-encode",
        }
    }
}

/// A name that no operation has.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("no operation '{0}': there are encode, decode, delta, copy-encode and checksum-encode")]
pub struct UnknownOp(pub String);

impl FromStr for Op {
    type Err = UnknownOp;

    fn from_str(name: &str) -> Result<Self, UnknownOp> {
        Self::ALL.into_iter().find(|op| op.name() == name).ok_or_else(|| UnknownOp(name.to_owned()))
    }
}

/// How much is coded at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Chunks of so many bytes.
    Chunk(usize),
    /// An object of so many bytes, cut into `k` chunks.
    Object(usize),
}

impl Extent {
    /// Bytes of a chunk; those of an object are rounded up to whole cache lines.
    #[must_use]
    pub fn chunk_len(self, k: usize) -> usize {
        match self {
            Self::Chunk(len) => len,
            Self::Object(len) => len.div_ceil(k.max(1)).next_multiple_of(64),
        }
    }
}

/// What is measured: every side does the same work, each with its own matrix if it insists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The code. Peers that have no such matrix take one of theirs, of the same `k` and `m`.
    pub scheme: Scheme,
    /// What is done.
    pub op: Op,
    /// Bytes of a chunk.
    pub len: usize,
    /// How many data chunks are lost, for [`Op::Decode`].
    pub losses: usize,
    /// How many threads share the work.
    pub threads: NonZeroUsize,
    /// Whether the chunks come from a pool much larger than the caches.
    pub cold: bool,
}

impl Job {
    /// One thread, chunks in cache, one loss.
    #[must_use]
    pub fn new(scheme: Scheme, op: Op, extent: Extent, k: usize) -> Self {
        Self { scheme, op, len: extent.chunk_len(k), losses: 1, threads: NonZeroUsize::MIN, cold: false }
    }

    /// The code, if the job makes sense.
    ///
    /// # Errors
    /// One line that says what does not.
    pub fn code(&self) -> Result<Code, BenchError> {
        let code = Code::of(self.scheme)?;
        let refuse = |reason: String| Err(BenchError::Job(reason));
        if self.len == 0 {
            return refuse("--size 0: there is nothing to code".to_owned());
        }
        if self.len.checked_mul(code.n()).is_none_or(|bytes| bytes > MAX_BYTES) {
            return refuse(format!("{} chunks of {} bytes are more than 4 GiB", code.n(), self.len));
        }
        if code.m() == 0 {
            return refuse(format!("{} has no parities: there is nothing to compute", self.scheme));
        }
        if self.op == Op::Decode {
            self.check_losses(&code)?;
        }
        if self.threads.get() > 1 && !matches!(self.op, Op::Encode | Op::Decode) {
            return refuse(format!("--threads is for encode and decode, not for {}", self.op.name()));
        }
        Ok(code)
    }

    fn check_losses(&self, code: &Code) -> Result<(), BenchError> {
        let (k, m) = (code.k(), code.m());
        if self.losses == 0 || self.losses > m || self.losses > k {
            let most = m.min(k);
            return Err(BenchError::Job(format!(
                "--losses {} is out of bounds: {} can lose 1 to {most} data chunks",
                self.losses, self.scheme
            )));
        }
        // Some codes do not make up for every loss of as many chunks as they have parities.
        if !code.decodable(&self.lost())? {
            return Err(BenchError::Code(CodeError::Undetermined {
                role: 0,
                present: code.n() - self.losses,
            }));
        }
        Ok(())
    }

    /// The data roles that are lost: the first ones.
    #[must_use]
    pub fn lost(&self) -> Vec<usize> {
        (0..self.losses).collect()
    }

    /// Data bytes that one operation is about: what a rate counts.
    #[must_use]
    pub fn data_bytes(&self, k: usize) -> usize {
        if self.op == Op::Delta { self.len } else { self.len * k }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} with chunks of {} B", self.op.name(), self.scheme, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(scheme: &str, op: Op) -> Job {
        Job::new(scheme.parse().unwrap(), op, Extent::Chunk(64), 4)
    }

    #[test]
    fn operations_are_read_as_they_are_written() {
        for op in Op::ALL {
            assert_eq!(op.name().parse(), Ok(op));
        }
        assert!("decrypt".parse::<Op>().unwrap_err().to_string().contains("copy-encode"));
    }

    #[test]
    fn objects_are_cut_into_chunks_of_whole_cache_lines() {
        assert_eq!(Extent::Object(1 << 20).chunk_len(10), 104_896);
        assert_eq!(Extent::Object(1 << 20).chunk_len(4), 1 << 18);
        assert_eq!(Extent::Chunk(77).chunk_len(10), 77);
    }

    #[test]
    fn jobs_without_sense_are_refused_with_the_reason() {
        let refused = |job: Job| job.code().unwrap_err().to_string();
        assert!(refused(Job { len: 0, ..job("4+2", Op::Encode) }).contains("--size 0"));
        assert!(refused(Job { len: 1 << 31, ..job("4+2", Op::Encode) }).contains("4 GiB"));
        assert!(refused(Job { losses: 3, ..job("4+2", Op::Decode) }).contains("1 to 2"));
        assert!(refused(Job { losses: 0, ..job("4+2", Op::Decode) }).contains("1 to 2"));
        assert!(refused(Job { losses: 4, ..job("lrc(12,2,2)", Op::Decode) }).contains("cannot be computed"));
        assert!(refused(job("none", Op::Encode)).contains("no parities"));
        assert!(refused(job("200+57", Op::Encode)).contains("k + m <= 256"));
        let threads = NonZeroUsize::new(2).unwrap();
        assert!(refused(Job { threads, ..job("4+2", Op::Delta) }).contains("--threads"));
    }

    #[test]
    fn a_delta_counts_its_own_bytes_only() {
        assert_eq!(job("4+2", Op::Delta).data_bytes(4), 64);
        assert_eq!(job("4+2", Op::Decode).data_bytes(4), 256);
    }
}
