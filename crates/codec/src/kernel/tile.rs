//! Tiles: a large linear combination cut into pieces that suit registers and caches.

use super::Backend;
use super::cache::CACHE_LEN;
use crate::chunks::Chunks;

/// Most outputs of a tile: that many accumulators stay in registers.
pub(super) const MAX_OUTPUTS: usize = 4;
/// Most sources of a tile: that many coefficients per output stay in the first cache level.
pub(super) const MAX_SOURCES: usize = 32;
/// Bytes of all sources together that stay in the first cache level while all outputs pass over them.
const BLOCK_LEN: usize = 32 << 10;
/// Shortest and longest block of one source.
const BLOCK_LENS: (usize, usize) = (512, 4096);

/// `outputs[o][range] (+)= sum_s factor(o, s) * sources[s][range]`, for 1 to [`MAX_OUTPUTS`] outputs and 1 to
/// [`MAX_SOURCES`] sources.
///
/// Every source and output is at least `end` long, and `start <= end`: back ends rely on it.
pub(super) struct Tile<'a, 'b> {
    sources: &'a [&'a [u8]],
    outputs: &'a mut [&'b mut [u8]],
    factors: &'a [u64],
    /// Whether the first output is the sum of all sources.
    ones: bool,
    start: usize,
    end: usize,
    add: bool,
    stream: bool,
}

impl Tile<'_, '_> {
    pub(super) fn sources(&self) -> &[&[u8]] {
        self.sources
    }

    pub(super) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The bytes of output `o` that this tile is about, and of all sources.
    pub(super) fn split(&mut self, o: usize) -> (&mut [u8], impl Iterator<Item = &[u8]>) {
        let (start, end) = (self.start, self.end);
        (&mut self.outputs[o][start..end], self.sources.iter().map(move |source| &source[start..end]))
    }

    /// Start of output `o`, valid for reads and writes of `end()` bytes.
    pub(super) fn output_pointer(&mut self, o: usize) -> *mut u8 {
        self.outputs[o].as_mut_ptr()
    }

    /// The factors as the back end stores them, those of one source together: `factors[s * outputs + o]`.
    pub(super) fn factors(&self) -> &[u64] {
        self.factors
    }

    /// Whether the first output is the sum of all sources: its factors need not be looked at.
    pub(super) fn first_is_sum(&self) -> bool {
        self.ones
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Whether the sums are added to what the outputs hold, or replace it.
    pub(super) fn adds(&self) -> bool {
        self.add
    }

    /// Whether the outputs are so large that they had better not go through the cache.
    pub(super) fn streams(&self) -> bool {
        self.stream
    }
}

/// The coefficients of a combination.
#[derive(Clone, Copy)]
pub(super) enum Factors<'a> {
    /// Row by row, as they are.
    Raw(&'a [u8]),
    /// Ready to be used.
    Stored(&'a StoredFactors),
}

/// Coefficients as a back end wants them.
#[derive(Clone, Debug)]
pub(super) struct StoredFactors {
    /// Band by band of up to [`MAX_OUTPUTS`] rows, in each one source after the other.
    factors: Vec<u64>,
    /// Of each band, whether its first row is all ones.
    ones: Vec<bool>,
}

impl StoredFactors {
    /// `rows` of `columns` coefficients for `backend`.
    pub(super) fn new(backend: &dyn Backend, columns: usize, rows: &[u8]) -> Self {
        let bands = || rows.chunks((columns * MAX_OUTPUTS).max(1));
        let of_band = |band| (0..columns).flat_map(move |s| column_of(band, columns, s));
        let factors = bands().flat_map(of_band).map(|coefficient| backend.stored(coefficient)).collect();
        let ones = bands().map(|band| band[..columns].iter().all(|coefficient| *coefficient == 1)).collect();
        Self { factors, ones }
    }
}

fn column_of(band: &[u8], columns: usize, s: usize) -> impl Iterator<Item = u8> {
    band.chunks_exact(columns).map(move |row| row[s])
}

/// Cuts a combination (see [`Kernel::combine`](super::Kernel::combine)) into tiles and has `backend` compute them; with
/// `add`, it is added to what the outputs hold. There is a factor for each source and output.
#[inline]
pub(super) fn for_each(
    backend: &dyn Backend,
    factors: Factors<'_>,
    mut chunks: Chunks<'_, '_, '_>,
    add: bool,
) {
    let (sources, len) = (chunks.sources(), chunks.len());
    let outputs = chunks.outputs();
    if outputs.is_empty() || len == 0 {
        return;
    }
    if sources.is_empty() {
        if !add {
            outputs.iter_mut().for_each(|output| output.fill(0));
        }
        return;
    }
    let stream = !add && sources.len() <= MAX_SOURCES && len * outputs.len() > CACHE_LEN;
    match factors {
        Factors::Stored(stored) if outputs.len() <= MAX_OUTPUTS && sources.len() <= MAX_SOURCES => {
            let (factors, ones) = (&stored.factors, stored.ones[0]);
            backend.combine(Tile { sources, outputs, factors, ones, start: 0, end: len, add, stream });
        }
        factors => for_each_block(backend, factors, sources, outputs, (add, stream)),
    }
}

/// Sources are read block by block, so that the second band of outputs finds them in cache.
#[inline(never)]
fn for_each_block(
    backend: &dyn Backend,
    factors: Factors<'_>,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    (add, stream): (bool, bool),
) {
    let len = outputs[0].len();
    let is_one = outputs.len() <= MAX_OUTPUTS && sources.len() <= MAX_SOURCES;
    let block = if is_one { len.max(1) } else { block_len(sources.len()) };
    for start in (0..len).step_by(block) {
        let end = len.min(start + block);
        for (band, outputs) in outputs.chunks_mut(MAX_OUTPUTS).enumerate() {
            for (part, some) in sources.chunks(MAX_SOURCES).enumerate() {
                let at = (band * MAX_OUTPUTS, part * MAX_SOURCES);
                let mut scratch = [0; MAX_SOURCES * MAX_OUTPUTS];
                let shape = (sources.len(), some.len(), outputs.len());
                let (factors, ones) = factors.of_tile(backend, at, shape, &mut scratch);
                let add = add || part > 0;
                backend.combine(Tile { sources: some, outputs, factors, ones, start, end, add, stream });
            }
        }
    }
}

/// How much of each of `sources` is read at a time where several tiles read it.
fn block_len(sources: usize) -> usize {
    (BLOCK_LEN / sources / 64 * 64).clamp(BLOCK_LENS.0, BLOCK_LENS.1)
}

impl<'a> Factors<'a> {
    /// The factors of a tile that begins at `(row, column)`, and whether its first row is all ones. The shape is the number of
    /// all columns, of the tile's columns and of its rows.
    fn of_tile<'b>(
        self,
        backend: &dyn Backend,
        (row, column): (usize, usize),
        (stride, columns, rows): (usize, usize, usize),
        scratch: &'b mut [u64; MAX_SOURCES * MAX_OUTPUTS],
    ) -> (&'b [u64], bool)
    where
        'a: 'b,
    {
        match self {
            Self::Stored(all) => {
                let factors = &all.factors[row * stride + column * rows..][..columns * rows];
                (factors, all.ones[row / MAX_OUTPUTS])
            }
            Self::Raw(all) => {
                for s in 0..columns {
                    for o in 0..rows {
                        scratch[s * rows + o] = backend.stored(all[(row + o) * stride + column + s]);
                    }
                }
                let first = &all[row * stride + column..][..columns];
                (&scratch[..columns * rows], first.iter().all(|coefficient| *coefficient == 1))
            }
        }
    }
}
