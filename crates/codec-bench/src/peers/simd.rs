//! The crate `reed-solomon-simd` as a side. Its calls copy chunks into memory of its own, and results are read there: that
//! is part of what it costs.

use std::hint::black_box;
use std::time::Duration;

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::peer::Peer;
use crate::memory::{Memory, Set};
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

const NAME: &str = "reed-solomon-simd 3";

/// The crate, prepared for a job.
pub struct Simd {
    job: Job,
    k: usize,
    m: usize,
    encoder: ReedSolomonEncoder,
    decoder: ReedSolomonDecoder,
}

fn unable(error: impl ToString) -> BenchError {
    Peer::ReedSolomonSimd.unable(error)
}

impl Simd {
    /// With its only code, over GF(2^16).
    pub fn new(job: &Job) -> Result<Self, BenchError> {
        Peer::ReedSolomonSimd.check(job, &[Op::Encode, Op::Decode])?;
        let (k, m) = Peer::ReedSolomonSimd.reed_solomon(job)?;
        let encoder = ReedSolomonEncoder::new(k, m, job.len).map_err(unable)?;
        let decoder = ReedSolomonDecoder::new(k, m, job.len).map_err(unable)?;
        Ok(Self { job: *job, k, m, encoder, decoder })
    }

    fn encode(&mut self, set: &mut Set<'_>) -> Result<(), BenchError> {
        for chunk in &set.data {
            self.encoder.add_original_shard(chunk).map_err(unable)?;
        }
        let result = self.encoder.encode().map_err(unable)?;
        set.parity.iter_mut().zip(result.recovery_iter()).for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }

    fn decode(&mut self, set: &mut Set<'_>) -> Result<(), BenchError> {
        for (index, chunk) in set.data.iter().enumerate().skip(self.job.losses) {
            self.decoder.add_original_shard(index, chunk).map_err(unable)?;
        }
        for (index, chunk) in set.parity.iter().enumerate().take(self.job.losses.min(self.m)) {
            self.decoder.add_recovery_shard(index, chunk).map_err(unable)?;
        }
        let result = self.decoder.decode().map_err(unable)?;
        for (index, chunk) in result.restored_original_iter() {
            set.extra[index].copy_from_slice(black_box(chunk));
        }
        Ok(())
    }
}

impl Side for Simd {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let bytes = self.job.data_bytes(self.k);
        let mut sets = memory.sets();
        if self.job.op == Op::Encode {
            return timed(&mut sets, bytes, time, |set| self.encode(set));
        }
        self.encode(&mut sets[0])?;
        let rate = timed(&mut sets, bytes, time, |set| self.decode(set))?;
        drop(sets);
        crate::ours::check_first(memory, &self.job, NAME)?;
        Ok(rate)
    }
}
