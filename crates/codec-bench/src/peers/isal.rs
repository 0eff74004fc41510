//! ISA-L as a side. Its matrices, or any other: what it runs is a table of coefficients.

use std::time::Duration;

use codec::{Code, Family, Plan, Scheme};
use codec_peers::isal::{Combination, NAME, Prepared};

use super::peer::Peer;
use crate::memory::{Memory, Set};
use crate::ours::{check_first, encode_first, plan};
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

/// ISA-L, prepared for a job. Decode matrices are made once, as our plans are.
pub struct IsaL {
    job: Job,
    code: Code,
    plan: Option<Plan>,
    combination: Combination,
}

impl IsaL {
    /// With its Cauchy matrix for Reed-Solomon codes, with our matrix for others.
    pub fn new(job: &Job) -> Result<Self, BenchError> {
        Peer::IsaL.check(job, &[Op::Encode, Op::Decode, Op::Delta])?;
        let scheme = match job.scheme {
            Scheme::Rs { k, m, .. } => Scheme::Rs { family: Family::IsalCauchy, k, m },
            other => other,
        };
        let job = Job { scheme, ..*job };
        let code = job.code()?;
        let plan = plan(&code, &job)?;
        let combination = match &plan {
            Some(plan) => {
                let (rows, columns) = (plan.outputs().len(), plan.sources().len());
                let entries = (0..rows).flat_map(|o| (0..columns).map(move |s| plan.coefficient(o, s)));
                Combination::new(columns, &entries.collect::<Vec<u8>>())
            }
            None => {
                let rows: Vec<u8> = (0..code.m()).flat_map(|j| code.row(j)).copied().collect();
                Combination::new(code.k(), &rows)
            }
        };
        Ok(Self { job, code, plan, combination })
    }

    fn prepare<'a>(&'a self, set: Set<'a>) -> Result<Prepared<'a>, BenchError> {
        let Set { data, parity, mut extra } = set;
        let prepared = match &self.plan {
            Some(plan) => {
                let chunks: Vec<&[u8]> = data.into_iter().chain(parity).map(|chunk| &*chunk).collect();
                let sources: Vec<&[u8]> = plan.sources().iter().map(|role| chunks[*role]).collect();
                extra.truncate(self.job.losses);
                self.combination.prepare(&sources, extra)
            }
            None => {
                let sources: Vec<&[u8]> = data.into_iter().map(|chunk| &*chunk).collect();
                match self.job.op {
                    Op::Delta => self.combination.prepare_update(0, sources[0], parity),
                    _ => self.combination.prepare(&sources, parity),
                }
            }
        };
        prepared.map_err(|error| Peer::IsaL.unable(error))
    }
}

impl Side for IsaL {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        if self.plan.is_some() {
            encode_first(&self.code, memory)?;
        }
        let bytes = self.job.data_bytes(self.code.k());
        let rate = {
            let prepared: Result<Vec<Prepared<'_>>, BenchError> =
                memory.sets().into_iter().map(|set| self.prepare(set)).collect();
            timed(&mut prepared?, bytes, time, |prepared| {
                prepared.run();
                Ok(())
            })?
        };
        if self.plan.is_some() {
            check_first(memory, &self.job, NAME)?;
        }
        Ok(rate)
    }
}
