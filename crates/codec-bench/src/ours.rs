//! Our own library as a side.

use std::time::Duration;

use codec::{Code, Family, Kernel, Plan, Scheme};

use crate::memory::{Memory, Set};
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

/// Our code of one family, with one kernel.
pub struct Ours {
    pub(crate) name: String,
    pub(crate) code: Code,
    pub(crate) job: Job,
    pub(crate) plan: Option<Plan>,
}

/// One operation, ready to be run.
struct Call<'a> {
    sources: Vec<&'a [u8]>,
    outputs: Vec<&'a mut [u8]>,
    copies: Vec<&'a mut [u8]>,
    sums: Vec<u32>,
}

impl Ours {
    /// For `job`, with `family` in place of its Reed-Solomon matrix if one is given, and `kernel` in place of the chosen one.
    ///
    /// # Errors
    /// The codec's, for a matrix that does not exist.
    pub fn new(job: Job, family: Option<Family>, kernel: Option<Kernel>) -> Result<Self, BenchError> {
        let scheme = with_family(job.scheme, family);
        let mut code = Job { scheme, ..job }.code()?;
        if let Some(kernel) = kernel {
            code = code.with_kernel(kernel);
        }
        let plan = plan(&code, &job)?;
        let name = format!("{scheme} {} {}", code.kernel().name(), code.method());
        Ok(Self { name, code, job: Job { scheme, ..job }, plan })
    }

    /// Which kernel runs it.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        self.code.kernel().name()
    }

    /// By a matrix or by a transform: see [`Code::method`].
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.code.method()
    }

    /// The code that it runs.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.job.scheme
    }

    fn call<'a>(&self, set: Set<'a>) -> Call<'a> {
        let Set { data, parity, mut extra } = set;
        let parity_count = parity.len();
        let (sources, outputs) = match (&self.plan, self.job.op) {
            (Some(plan), _) => {
                let chunks: Vec<&[u8]> = data.into_iter().chain(parity).map(|chunk| &*chunk).collect();
                let sources = plan.sources().iter().map(|role| chunks[*role]).collect();
                let outputs = extra.drain(..self.job.losses).collect();
                (sources, outputs)
            }
            (None, Op::Delta) => (data.into_iter().take(1).map(|chunk| &*chunk).collect(), parity),
            (None, _) => (data.into_iter().map(|chunk| &*chunk).collect(), parity),
        };
        let sums = vec![0; self.code.k() + parity_count];
        Call { sources, outputs, copies: extra, sums }
    }

    /// Which operation it is, is settled before it is timed.
    fn time(&self, calls: &mut [Call<'_>], time: Duration) -> Result<f64, BenchError> {
        let code = &self.code;
        let (bytes, threads) = (self.job.data_bytes(code.k()), self.job.threads);
        match (&self.plan, self.job.op, threads.get()) {
            (Some(plan), _, 1) => timed(calls, bytes, time, |c| Ok(plan.run(&c.sources, &mut c.outputs)?)),
            (Some(plan), ..) => timed(calls, bytes, time, |c| {
                Ok(plan.run_with_threads(&c.sources, &mut c.outputs, threads)?)
            }),
            (None, Op::Delta, _) => {
                timed(calls, bytes, time, |c| Ok(code.update(0, c.sources[0], &mut c.outputs)?))
            }
            (None, Op::CopyEncode, _) => timed(calls, bytes, time, |c| {
                Ok(code.encode_and_copy(&c.sources, &mut c.copies, &mut c.outputs)?)
            }),
            (None, Op::ChecksumEncode, _) => timed(calls, bytes, time, |c| {
                Ok(code.encode_and_sum(&c.sources, &mut c.outputs, &mut c.sums)?)
            }),
            (None, _, 1) => timed(calls, bytes, time, |c| Ok(code.encode(&c.sources, &mut c.outputs)?)),
            (None, ..) => timed(calls, bytes, time, |c| {
                Ok(code.encode_with_threads(&c.sources, &mut c.outputs, threads)?)
            }),
        }
    }
}

impl Side for Ours {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        if self.plan.is_some() {
            encode_first(&self.code, memory)?;
        }
        let rate = {
            let mut calls: Vec<Call<'_>> = memory.sets().into_iter().map(|set| self.call(set)).collect();
            self.time(&mut calls, time)?
        };
        if self.plan.is_some() {
            check_first(memory, &self.job, &self.name)?;
        }
        Ok(rate)
    }
}

/// What repairs the job's losses, if it is to decode: from any that are there.
pub fn plan(code: &Code, job: &Job) -> Result<Option<Plan>, BenchError> {
    if job.op != Op::Decode {
        return Ok(None);
    }
    let lost = job.lost();
    // The cheapest plan is what makes a local code worth having; for Reed-Solomon it is the first parities.
    Ok(Some(code.cheapest_plan(&lost, &lost)?))
}

/// Makes the parities of the first set, so that what is decoded from them can be checked.
pub fn encode_first(code: &Code, memory: &mut Memory) -> Result<(), BenchError> {
    if let Some(set) = memory.sets().first_mut() {
        let data: Vec<&[u8]> = set.data.iter().map(|chunk| &**chunk).collect();
        code.encode(&data, &mut set.parity)?;
        // What an earlier round has left there must not pass for what this one repairs.
        set.extra.iter_mut().for_each(|chunk| chunk[0] = !data[0][0]);
    }
    Ok(())
}

/// That the first set's lost chunks came back.
pub fn check_first(memory: &mut Memory, job: &Job, side: &str) -> Result<(), BenchError> {
    let sets = memory.sets();
    let right = sets.first().is_none_or(|set| {
        let mut pairs = set.data.iter().zip(&set.extra).take(job.losses);
        pairs.all(|(lost, found)| lost == found)
    });
    if right { Ok(()) } else { Err(BenchError::Wrong { side: side.to_owned(), job: job.to_string() }) }
}

/// The scheme with another matrix, where it is a Reed-Solomon code.
pub(crate) fn with_family(scheme: Scheme, family: Option<Family>) -> Scheme {
    match (scheme, family) {
        (Scheme::Rs { k, m, .. }, Some(family)) => Scheme::Rs { family, k, m },
        _ => scheme,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    #[test]
    fn every_operation_runs_on_every_kind_of_code() {
        for scheme in ["3+2", "lch(10+4)", "lrc(4,2,2)", "xor(3+1)", "rep(3)", "isal-cauchy(6+3)"] {
            let scheme: Scheme = scheme.parse().unwrap();
            let k = Code::of(scheme).unwrap().k();
            for op in Op::ALL {
                let job = Job::new(scheme, op, Extent::Chunk(100), k);
                let mut side = Ours::new(job, None, None).unwrap();
                let mut memory = Memory::new(&job, k, side.code.m());
                assert!(side.round(&mut memory, Duration::from_micros(50)).unwrap() > 0.0, "{}", side.name());
            }
        }
    }

    #[test]
    fn wrong_bytes_are_noticed() {
        let job = Job::new("3+2".parse().unwrap(), Op::Decode, Extent::Chunk(100), 3);
        let mut memory = Memory::new(&job, 3, 2);
        encode_first(&job.code().unwrap(), &mut memory).unwrap();
        assert!(matches!(check_first(&mut memory, &job, "nobody"), Err(BenchError::Wrong { .. })));
    }
}
