//! The crate `reed-solomon-erasure` as a side. It keeps decode matrices itself.

use std::time::Duration;

use reed_solomon_erasure::galois_8::ReedSolomon;

use super::peer::Peer;
use crate::memory::Memory;
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

const NAME: &str = "reed-solomon-erasure 6 (simd-accel)";

/// The crate, prepared for a job.
pub struct Erasure {
    job: Job,
    k: usize,
    codec: ReedSolomon,
}

impl Erasure {
    /// With its only matrix.
    pub fn new(job: &Job) -> Result<Self, BenchError> {
        let peer = Peer::ReedSolomonErasure;
        peer.check(job, &[Op::Encode, Op::Decode])?;
        let (k, m) = peer.reed_solomon(job)?;
        let codec = ReedSolomon::new(k, m).map_err(|error| peer.unable(error))?;
        Ok(Self { job: *job, k, codec })
    }
}

impl Side for Erasure {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let bytes = self.job.data_bytes(self.k);
        let unable = |error| Peer::ReedSolomonErasure.unable(error);
        let mut words = memory.words();
        let encode = |word: &mut Vec<&mut [u8]>| self.codec.encode(word).map_err(unable);
        if self.job.op == Op::Encode {
            return timed(&mut words, bytes, time, encode);
        }
        encode(&mut words[0])?;
        let before = words[0][0].to_vec();
        words[0][0].fill(0);
        let mut shards: Vec<Vec<(&mut [u8], bool)>> =
            words.into_iter().map(|word| word.into_iter().map(|chunk| (chunk, true)).collect()).collect();
        let rate = timed(&mut shards, bytes, time, |shards| {
            shards[..self.job.losses].iter_mut().for_each(|shard| shard.1 = false);
            self.codec.reconstruct_data(shards).map_err(unable)
        })?;
        if *shards[0][0].0 != *before {
            return Err(BenchError::Wrong { side: self.name(), job: self.job.to_string() });
        }
        Ok(rate)
    }
}
