//! The crate `rusty_erasure` as a side, with its best kernels.

use std::time::Duration;

use rusty_erasure::{Coder, DecodePlan, Matrix};

use super::peer::Peer;
use crate::memory::{Memory, Set};
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

const NAME: &str = "rusty_erasure 0.4";

/// The crate, prepared for a job. Its decode plan is made once.
pub struct Rusty {
    job: Job,
    coder: Coder,
    plan: Option<DecodePlan>,
}

/// One operation.
struct Call<'a> {
    shards: Vec<Option<&'a [u8]>>,
    sources: Vec<&'a [u8]>,
    outputs: Vec<&'a mut [u8]>,
}

fn unable(error: impl std::fmt::Debug) -> BenchError {
    Peer::RustyErasure.unable(format_args!("{error:?}"))
}

impl Rusty {
    /// With its Cauchy matrix.
    pub fn new(job: &Job) -> Result<Self, BenchError> {
        let peer = Peer::RustyErasure;
        peer.check(job, &[Op::Encode, Op::Decode, Op::Delta])?;
        let (k, m) = peer.reed_solomon(job)?;
        let coder = rusty_erasure::coder(Matrix::cauchy(k, m).map_err(unable)?).map_err(unable)?;
        let lost = job.lost();
        let present: Vec<bool> = (0..k + m).map(|role| !lost.contains(&role)).collect();
        let plan = match job.op {
            Op::Decode => Some(coder.decode_plan(&present, &lost).map_err(unable)?),
            _ => None,
        };
        Ok(Self { job: *job, coder, plan })
    }

    fn call<'a>(&self, set: Set<'a>) -> Call<'a> {
        let Set { data, parity, mut extra } = set;
        if self.plan.is_none() {
            let sources = data.into_iter().map(|chunk| &*chunk).collect();
            return Call { shards: Vec::new(), sources, outputs: parity };
        }
        let chunks = data.into_iter().chain(parity).enumerate();
        let shards = chunks.map(|(role, chunk)| (role >= self.job.losses).then_some(&*chunk)).collect();
        extra.truncate(self.job.losses);
        Call { shards, sources: Vec::new(), outputs: extra }
    }

    fn run(&self, call: &mut Call<'_>) -> Result<(), BenchError> {
        match (&self.plan, self.job.op) {
            (Some(plan), _) => self.coder.recover_with(plan, &call.shards, &mut call.outputs).map_err(unable),
            (None, Op::Delta) => self.coder.update(0, call.sources[0], &mut call.outputs).map_err(unable),
            (None, _) => self.coder.encode(&call.sources, &mut call.outputs).map_err(unable),
        }
    }
}

impl Side for Rusty {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let bytes = self.job.data_bytes(self.coder.k());
        if self.plan.is_some() {
            let mut sets = memory.sets();
            let set = &mut sets[0];
            let data: Vec<&[u8]> = set.data.iter().map(|chunk| &**chunk).collect();
            self.coder.encode(&data, &mut set.parity).map_err(unable)?;
            set.extra.iter_mut().for_each(|chunk| chunk[0] = !data[0][0]);
        }
        let rate = {
            let mut calls: Vec<Call<'_>> = memory.sets().into_iter().map(|set| self.call(set)).collect();
            timed(&mut calls, bytes, time, |call| self.run(call))?
        };
        if self.plan.is_some() {
            crate::ours::check_first(memory, &self.job, NAME)?;
        }
        Ok(rate)
    }
}
