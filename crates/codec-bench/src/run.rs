//! One job on all sides.

use codec::{Family, Kernel};
use codec_cuda::Residence;

use crate::card::{self, OnCard};
use crate::harness::{self, Effort, Spread};
use crate::limits::{self, Bound};
use crate::memory::Memory;
use crate::ours::with_family;
use crate::peers::{self, Peer};
use crate::prepared::OursPrepared;
use crate::report::{Case, Limit, Ratio, SideFigures, Skipped};
use crate::side::Side;
use crate::{BenchError, Job, Ours};

/// Who takes part.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    /// Our matrices; the job's own if there is none.
    pub families: Vec<Family>,
    /// Our kernels; the chosen one if there is none, and no card either.
    pub kernels: Vec<Kernel>,
    /// Whether ours also run with their chunks prepared, as ISA-L's are.
    pub prepared: bool,
    /// A card, with chunks in each of these places.
    pub card: Vec<Residence>,
    /// Other libraries.
    pub peers: Vec<Peer>,
    /// Whether the machine's limits are measured too.
    pub limits: bool,
}

impl Sides {
    fn are_cards_alone(&self) -> bool {
        !self.card.is_empty() && self.kernels.is_empty() && self.peers.is_empty()
    }
}

/// Runs `job` on all of `sides`, which take turns.
///
/// # Errors
/// What is wrong with the job, or went wrong. A peer that cannot do the job is left out and named in the result.
pub fn measure(job: &Job, sides: &Sides, effort: Effort) -> Result<Case, BenchError> {
    let code = job.code()?;
    let (k, m) = (code.k(), code.m());
    let mut case = Case::new(job, (k, m));
    let mut all = ours(job, sides, &mut case)?;
    let mut peers = vec![None; all.len()];
    for peer in &sides.peers {
        match peers::side(*peer, job) {
            Ok(side) => {
                all.push(side);
                peers.push(Some(peer.name()));
            }
            Err(BenchError::Unable { peer, reason }) => case.skipped.push(Skipped { peer, reason }),
            Err(error) => return Err(error),
        }
    }
    if sides.limits && !sides.are_cards_alone() {
        all.extend(Bound::ALL.map(|bound| Box::new(limits::Limit::new(bound, job)) as Box<dyn Side>));
    }
    let effort = Effort { rounds: effort.rounds.max(1), ..effort };
    let mut memory =
        if sides.are_cards_alone() { Memory::for_card(job, k, m) } else { Memory::new(job, k, m) };
    let rates = harness::alternate(&mut all, &mut memory, effort)?;
    let names: Vec<String> = all.iter().map(|side| side.name()).collect();
    (case.rounds, case.turn_ms) = (effort.rounds, effort.turn.as_secs_f64() * 1e3);
    case.sides = figures(&names, &peers, &rates);
    for (figures, side) in case.sides.iter_mut().zip(&all) {
        figures.parts = side.parts();
        figures.allowed_gb_per_second = side.allowed_by_copies();
        figures.trace = side.trace();
    }
    // Limits come last, and have no place among `peers`.
    let limits = names.into_iter().zip(&rates).skip(peers.len());
    case.limits = limits.map(|(name, rates)| Limit { name, gb_per_second: Spread::of(rates) }).collect();
    if sides.limits && case.sides.iter().any(|side| side.parts.is_some()) {
        case.limits.extend(card_limits()?);
    }
    Ok(case)
}

/// Each of our matrices with each of our kernels, and on a card.
fn ours(job: &Job, sides: &Sides, case: &mut Case) -> Result<Vec<Box<dyn Side>>, BenchError> {
    let families: Vec<Option<Family>> = or_default(&sides.families);
    let kernels = if sides.card.is_empty() {
        or_default(&sides.kernels)
    } else {
        sides.kernels.iter().copied().map(Some).collect()
    };
    let mut all: Vec<Box<dyn Side>> = Vec::new();
    for family in families {
        for kernel in &kernels {
            all.push(Box::new(Ours::new(*job, family, *kernel)?));
            if sides.prepared {
                join(&mut all, case, OursPrepared::new(Ours::new(*job, family, *kernel)?))?;
            }
        }
        for residence in &sides.card {
            let scheme = with_family(job.scheme, family);
            join(&mut all, case, OnCard::new(Job { scheme, ..*job }, *residence))?;
        }
    }
    case.skipped.dedup();
    Ok(all)
}

/// Takes a side in. If it cannot do the job, the case says so.
fn join<S: Side + 'static>(
    all: &mut Vec<Box<dyn Side>>,
    case: &mut Case,
    side: Result<S, BenchError>,
) -> Result<(), BenchError> {
    match side {
        Ok(side) => all.push(Box::new(side)),
        Err(BenchError::Unable { peer, reason }) => case.skipped.push(Skipped { peer, reason }),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What the card's own copies are capable of: each byte counted once.
fn card_limits() -> Result<Vec<Limit>, BenchError> {
    let rates = card::copy_rates()?;
    let all = [
        ("copy to the card", rates.host_to_device),
        ("copy from the card", rates.device_to_host),
        ("copy both ways, each", rates.both_ways),
        ("copy within the card", rates.device_to_device),
    ];
    let limit =
        |(name, rate): (&str, f64)| Limit { name: name.to_owned(), gb_per_second: Spread::of(&[rate / 1e9]) };
    Ok(all.map(limit).into())
}

/// What was asked for, or one default.
fn or_default<T: Copy>(asked: &[T]) -> Vec<Option<T>> {
    if asked.is_empty() { vec![None] } else { asked.iter().copied().map(Some).collect() }
}

/// Figures of all sides, the first of `names` and `rates`, whose names as peers are `peers`.
fn figures(names: &[String], peers: &[Option<&'static str>], rates: &[Vec<f64>]) -> Vec<SideFigures> {
    let ratios = |ours: &Vec<f64>| {
        let theirs = peers.iter().zip(rates);
        let each = theirs.filter_map(|(peer, theirs)| Some(((*peer)?, theirs)));
        each.map(|(peer, theirs)| Ratio { peer, ratio: harness::ratio(ours, theirs) }).collect()
    };
    let figure = |((name, peer), rates): ((&String, &Option<&'static str>), &Vec<f64>)| SideFigures {
        name: name.clone(),
        peer: *peer,
        gb_per_second: Spread::of(rates),
        parts: None,
        allowed_gb_per_second: None,
        trace: Vec::new(),
        ratios: if peer.is_none() { ratios(rates) } else { Vec::new() },
    };
    names.iter().zip(peers).zip(rates).map(figure).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Extent, Op};

    #[test]
    fn ours_are_compared_with_every_peer_and_peers_with_nobody() {
        let names = ["a", "b", "X 1", "Y 2", "a limit"].map(str::to_owned);
        let rates = [vec![4.0; 3], vec![2.0; 3], vec![1.0; 3], vec![2.0; 3], vec![9.0; 3]];
        let all = figures(&names, &[None, None, Some("x"), Some("y")], &rates);
        let ratios = |index: usize| all[index].ratios.iter().map(|r| (r.peer, r.ratio)).collect::<Vec<_>>();
        assert_eq!((ratios(0), ratios(1)), (vec![("x", 4.0), ("y", 2.0)], vec![("x", 2.0), ("y", 1.0)]));
        assert!(all.len() == 4 && ratios(2).is_empty() && ratios(3).is_empty());
    }

    #[test]
    fn all_families_and_kernels_take_part_and_so_do_the_limits() {
        let job = Job::new("4+2".parse().unwrap(), Op::Decode, Extent::Chunk(300), 4);
        let sides = Sides {
            families: vec![Family::CauchyXor, Family::Lch],
            kernels: codec::kernels().to_vec(),
            prepared: true,
            limits: true,
            ..Sides::default()
        };
        let effort = Effort { rounds: 2, turn: Duration::from_micros(50) };
        let case = measure(&Job { losses: 2, ..job }, &sides, effort).unwrap();
        assert_eq!(case.sides.len(), 2 * 2 * codec::kernels().len());
        assert_eq!((case.limits.len(), case.losses), (4, Some(2)));
    }
}
