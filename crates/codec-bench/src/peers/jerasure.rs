//! Jerasure as a side, with the matrix that its users take: `reed_sol_van`.

use std::time::Duration;

use codec::{Code, Family, Scheme};
use codec_peers::Peer as _;
use codec_peers::jerasure::NAME;

use super::peer::Peer;
use crate::memory::Memory;
use crate::ours::encode_first;
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

/// Jerasure, prepared for a job. It makes its decode matrix at each call.
pub struct Jerasure {
    job: Job,
    code: Code,
    peer: codec_peers::jerasure::Jerasure,
}

impl Jerasure {
    /// Whatever the job's matrix, the one of Jerasure's own that is recommended.
    pub fn new(job: &Job) -> Result<Self, BenchError> {
        Peer::Jerasure.check(job, &[Op::Encode, Op::Decode])?;
        let (k, m) = Peer::Jerasure.reed_solomon(job)?;
        if !job.len.is_multiple_of(8) {
            return Err(Peer::Jerasure.unable("it needs chunks of whole words"));
        }
        let family = Family::JerasureReedSolVan;
        let peer = codec_peers::jerasure::Jerasure::new(family, k, m);
        let peer = peer.map_err(|error| Peer::Jerasure.unable(error))?;
        let code = Job { scheme: Scheme::Rs { family, k, m }, ..*job }.code()?;
        Ok(Self { job: *job, code, peer })
    }
}

impl Side for Jerasure {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let bytes = self.job.data_bytes(self.code.k());
        let unable = |error| Peer::Jerasure.unable(error);
        if self.job.op == Op::Decode {
            encode_first(&self.code, memory)?;
            let lost = self.job.lost();
            let mut words = memory.words();
            // It decodes in place: what is lost is what was there before, so damage it to see it repaired.
            let before = words[0][0].to_vec();
            words[0][0].fill(0);
            let rate = timed(&mut words, bytes, time, |word| self.peer.decode(&lost, word).map_err(unable))?;
            if words[0][0] != before {
                return Err(BenchError::Wrong { side: self.name(), job: self.job.to_string() });
            }
            return Ok(rate);
        }
        let sets = memory.sets().into_iter();
        let mut calls: Vec<_> = sets.map(|set| (read_only(set.data), set.parity)).collect();
        timed(&mut calls, bytes, time, |(data, parity)| self.peer.encode(data, parity).map_err(unable))
    }
}

fn read_only(chunks: Vec<&mut [u8]>) -> Vec<&[u8]> {
    chunks.into_iter().map(|chunk| &*chunk).collect()
}
