//! Our own library on chunks that were checked beforehand, as ISA-L has them.

use std::time::Duration;

use codec::Prepared;

use crate::memory::{Memory, Set};
use crate::ours::{check_first, encode_first};
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op, Ours};

/// What its name has more than that of [`Ours`].
const NAME: &str = "prepared";

/// Our code, prepared for the chunks of each set.
pub struct OursPrepared(Ours);

impl OursPrepared {
    /// What `ours` does, but with what it does to be prepared for its chunks.
    ///
    /// # Errors
    /// `Unable` for operations that cannot be prepared.
    pub fn new(ours: Ours) -> Result<Self, BenchError> {
        let can = matches!(ours.job.op, Op::Encode | Op::Decode) && ours.job.threads.get() == 1;
        let reason = "encode and decode by one thread only";
        let name = format!("{} {NAME}", ours.name);
        if can {
            Ok(Self(Ours { name, ..ours }))
        } else {
            Err(BenchError::Unable { peer: NAME, reason: reason.to_owned() })
        }
    }

    fn prepare<'a>(&'a self, set: Set<'a>) -> Result<Prepared<'a, 'a>, BenchError> {
        let Set { data, parity, mut extra } = set;
        let Ours { code, job: Job { losses, .. }, plan, .. } = &self.0;
        let Some(plan) = plan else { return Ok(code.prepare(data, parity)?) };
        let mut chunks: Vec<Option<&mut [u8]>> = data.into_iter().chain(parity).map(Some).collect();
        let sources = plan.sources().iter().filter_map(|role| chunks[*role].take()).collect();
        extra.truncate(*losses);
        Ok(plan.prepare(sources, extra)?)
    }
}

impl Side for OursPrepared {
    fn name(&self) -> String {
        self.0.name.clone()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        let Ours { name, code, job, plan } = &self.0;
        if plan.is_some() {
            encode_first(code, memory)?;
        }
        let rate = {
            let prepared: Result<Vec<Prepared<'_, '_>>, BenchError> =
                memory.sets().into_iter().map(|set| self.prepare(set)).collect();
            timed(&mut prepared?, job.data_bytes(code.k()), time, |prepared| {
                prepared.run();
                Ok(())
            })?
        };
        if plan.is_some() {
            check_first(memory, job, name)?;
        }
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    fn side(scheme: &str, op: Op) -> (Result<OursPrepared, BenchError>, Memory) {
        let job = Job::new(scheme.parse().unwrap(), op, Extent::Chunk(64), 10);
        let ours = Ours::new(job, None, None).unwrap();
        let memory = Memory::new(&job, ours.code.k(), ours.code.m());
        (OursPrepared::new(ours), memory)
    }

    #[test]
    fn chunks_are_encoded_and_repaired_and_nothing_else() {
        for scheme in ["3+2", "lch(10+4)", "lrc(4,2,2)", "rs(40+9)"] {
            for op in Op::ALL {
                match (op, side(scheme, op)) {
                    (Op::Encode | Op::Decode, (side, mut memory)) => {
                        let rate = side.unwrap().round(&mut memory, Duration::from_micros(50)).unwrap();
                        assert!(rate > 0.0, "{scheme} {op:?}");
                    }
                    (_, (side, _)) => assert!(matches!(side, Err(BenchError::Unable { .. }))),
                }
            }
        }
    }
}
