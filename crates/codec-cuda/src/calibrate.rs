//! From which size on the card is the faster place, by measurement.
#![expect(
    clippy::disallowed_methods,
    reason = "where an operation runs is decided by a clock; the bytes are the same whatever it says"
)]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use codec::Code;

use crate::place::{Choice, Place, Residence};
use crate::{CudaError, Device, HostStripe, Matrix, Pipeline};

/// Fewer bytes of sources are never worth a card: a launch and two copies take longer.
pub(crate) const LEAST_BYTES: usize = 256 << 10;
/// How often each is done; the best counts.
const TRIES: usize = 3;
/// Chunks that are measured begin at multiples of this.
const LINE: usize = 64;
/// Bytes of sources that are measured.
const SIZES: [usize; 4] = [1 << 20, 4 << 20, 16 << 20, 64 << 20];

/// What was found for a matrix' shape and a residence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Crossover {
    /// Bytes of sources from which on the card was faster; none if it never was.
    from: Option<usize>,
    /// How many times as fast the card was at the largest size.
    ratio: f64,
}

impl Crossover {
    pub(crate) fn choose(self, bytes: usize) -> Choice {
        let ratio = self.ratio;
        match self.from {
            Some(from) if bytes >= from => {
                Choice { place: Place::Card, why: format!("measured: {ratio:.2} times the processor's rate") }
            }
            Some(from) => Choice {
                place: Place::Cpu,
                why: format!("measured: the card is faster from {from} bytes on"),
            },
            None => Choice {
                place: Place::Cpu,
                why: format!("measured: the card has {ratio:.2} of the processor's rate"),
            },
        }
    }

    /// Of seconds on the processor and on the card, by ascending size.
    fn of(times: &[(usize, f64, f64)]) -> Self {
        let faster = times.iter().rev().take_while(|(_, cpu, card)| card < cpu);
        let ratio = times.last().map_or(0.0, |(_, cpu, card)| cpu / card);
        Self { from: faster.last().map(|(bytes, ..)| *bytes), ratio }
    }
}

/// Compares `threads` of the processor with the card.
pub(crate) fn crossover(
    device: &Arc<Device>,
    pipeline: &mut Pipeline,
    matrix: &Matrix,
    residence: Residence,
    threads: NonZeroUsize,
) -> Result<Crossover, CudaError> {
    let combination = device.best(matrix)?;
    let (k, m) = (matrix.columns(), matrix.rows());
    // Any code of the shape takes the processor as long as this one.
    let rows: Vec<&[u8]> = matrix.coefficients().chunks(k).collect();
    let code = Code::custom(k, &rows)?;
    let largest = SIZES[SIZES.len() - 1].div_ceil(k).next_multiple_of(LINE);
    let mut memory = Chunks::new(device, residence, (k + m) * largest)?;
    let mut times = Vec::new();
    for bytes in SIZES {
        let len = bytes.div_ceil(k).next_multiple_of(LINE);
        let (sources, outputs) = memory.bytes()[..(k + m) * len].split_at_mut(k * len);
        let sources: Vec<&[u8]> = sources.chunks(len).collect();
        let mut outputs: Vec<&mut [u8]> = outputs.chunks_mut(len).collect();
        let (mut cpu, mut card) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TRIES {
            cpu = cpu.min(seconds(|| Ok(code.encode_with_threads(&sources, &mut outputs, threads)?))?);
            let mut stripe = [HostStripe { sources: &sources, outputs: &mut outputs }];
            card = card.min(seconds(|| pipeline.run(&combination, &mut stripe).map(drop))?);
        }
        times.push((bytes, cpu, card));
    }
    Ok(Crossover::of(&times))
}

fn seconds(work: impl FnOnce() -> Result<(), CudaError>) -> Result<f64, CudaError> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Memory of the host.
enum Chunks {
    Pageable(Vec<u8>),
    Pinned(crate::PinnedBuffer),
}

impl Chunks {
    fn new(device: &Arc<Device>, residence: Residence, len: usize) -> Result<Self, CudaError> {
        Ok(match residence {
            Residence::Host => Self::Pageable(vec![0x5a; len]),
            Residence::Pinned | Residence::Device => Self::Pinned(device.allocate_pinned(len)?),
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Pageable(bytes) => bytes,
            Self::Pinned(buffer) => buffer.bytes_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_is_chosen_from_where_it_stays_faster() {
        let found = Crossover::of(&[(1, 1.0, 0.5), (4, 1.0, 2.0), (16, 4.0, 3.0), (64, 16.0, 4.0)]);
        assert_eq!(found, Crossover { from: Some(16), ratio: 4.0 });
        assert_eq!(found.choose(15).place, Place::Cpu);
        assert_eq!(found.choose(16).place, Place::Card);
        let never = Crossover::of(&[(1, 1.0, 2.0), (4, 1.0, 2.0)]);
        assert_eq!((never.from, never.choose(1 << 40).place), (None, Place::Cpu));
    }
}
