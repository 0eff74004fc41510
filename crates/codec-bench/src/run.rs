//! One job on all sides.

use codec::{Family, Kernel};

use crate::harness::{self, Effort, Spread};
use crate::limits::{self, Bound};
use crate::memory::Memory;
use crate::peers::{self, Peer};
use crate::report::{Case, Limit, Ratio, SideFigures, Skipped};
use crate::side::Side;
use crate::{BenchError, Job, Ours};

/// Who takes part.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    /// Our matrices; the job's own if there is none.
    pub families: Vec<Family>,
    /// Our kernels; the chosen one if there is none.
    pub kernels: Vec<Kernel>,
    /// Other libraries.
    pub peers: Vec<Peer>,
    /// Whether the machine's limits are measured too.
    pub limits: bool,
}

/// Runs `job` on all of `sides`, which take turns.
///
/// # Errors
/// What is wrong with the job, or went wrong. A peer that cannot do the job is left out and named in the result.
pub fn measure(job: &Job, sides: &Sides, effort: Effort) -> Result<Case, BenchError> {
    let code = job.code()?;
    let (k, m) = (code.k(), code.m());
    let mut case = Case::new(job, (k, m));
    let mut all = ours(job, sides)?;
    let our_count = all.len();
    for peer in &sides.peers {
        match peers::side(*peer, job) {
            Ok(side) => all.push(side),
            Err(BenchError::Unable { peer, reason }) => case.skipped.push(Skipped { peer, reason }),
            Err(error) => return Err(error),
        }
    }
    let side_count = all.len();
    if sides.limits {
        all.extend(Bound::ALL.map(|bound| Box::new(limits::Limit::new(bound, job)) as Box<dyn Side>));
    }
    let effort = Effort { rounds: effort.rounds.max(1), ..effort };
    let rates = harness::alternate(&mut all, &mut Memory::new(job, k, m), effort)?;
    let names: Vec<String> = all.iter().map(|side| side.name()).collect();
    (case.rounds, case.turn_ms) = (effort.rounds, effort.turn.as_secs_f64() * 1e3);
    case.sides = figures(&names[..side_count], &rates, our_count);
    let limits = names.into_iter().zip(&rates).skip(side_count);
    case.limits = limits.map(|(name, rates)| Limit { name, gb_per_second: Spread::of(rates) }).collect();
    Ok(case)
}

/// Each of our matrices with each of our kernels.
fn ours(job: &Job, sides: &Sides) -> Result<Vec<Box<dyn Side>>, BenchError> {
    let families: Vec<Option<Family>> = or_default(&sides.families);
    let kernels: Vec<Option<Kernel>> = or_default(&sides.kernels);
    let mut all: Vec<Box<dyn Side>> = Vec::new();
    for family in families {
        for kernel in &kernels {
            all.push(Box::new(Ours::new(*job, family, *kernel)?));
        }
    }
    Ok(all)
}

/// What was asked for, or one default.
fn or_default<T: Copy>(asked: &[T]) -> Vec<Option<T>> {
    if asked.is_empty() { vec![None] } else { asked.iter().copied().map(Some).collect() }
}

fn figures(names: &[String], rates: &[Vec<f64>], our_count: usize) -> Vec<SideFigures> {
    let figure = |(index, name): (usize, &String)| {
        let ours = index < our_count;
        let peers = our_count..if ours { names.len() } else { our_count };
        let against = |peer: usize| Ratio {
            peer: names[peer].clone(),
            ratio: harness::ratio(&rates[index], &rates[peer]),
        };
        SideFigures {
            name: name.clone(),
            ours,
            gb_per_second: Spread::of(&rates[index]),
            ratios: peers.map(against).collect(),
        }
    };
    names.iter().enumerate().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Extent, Op};

    #[test]
    fn ours_are_compared_with_every_peer_and_peers_with_nobody() {
        let names = ["a", "b", "x", "y"].map(str::to_owned);
        let rates = [vec![4.0; 3], vec![2.0; 3], vec![1.0; 3], vec![2.0; 3]];
        let all = figures(&names, &rates, 2);
        let ratios = |index: usize| all[index].ratios.iter().map(|r| r.ratio).collect::<Vec<_>>();
        assert_eq!((ratios(0), ratios(1)), (vec![4.0, 2.0], vec![2.0, 1.0]));
        assert!(ratios(2).is_empty() && ratios(3).is_empty() && !all[2].ours);
    }

    #[test]
    fn all_families_and_kernels_take_part_and_so_do_the_limits() {
        let job = Job::new("4+2".parse().unwrap(), Op::Decode, Extent::Chunk(300), 4);
        let sides = Sides {
            families: vec![Family::CauchyXor, Family::Lch],
            kernels: codec::kernels().to_vec(),
            limits: true,
            ..Sides::default()
        };
        let effort = Effort { rounds: 2, turn: Duration::from_micros(50) };
        let case = measure(&Job { losses: 2, ..job }, &sides, effort).unwrap();
        assert_eq!(case.sides.len(), 2 * codec::kernels().len());
        assert_eq!((case.limits.len(), case.losses), (4, Some(2)));
    }
}
