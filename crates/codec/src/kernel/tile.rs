//! Tiles: a large linear combination cut into pieces that suit registers and caches.
#![allow(unsafe_code)]

use std::ops::Range;

use arrayvec::ArrayVec;

use super::cache::CACHE_LEN;
use super::{Backend, Loop};
use crate::chunks::Chunks;

/// Most outputs of a tile: that many accumulators stay in registers.
pub(super) const MAX_OUTPUTS: usize = 4;
/// Most sources of a tile: that many coefficients per output stay in the first cache level.
pub(super) const MAX_SOURCES: usize = 32;
/// Bytes of all sources together that stay in the first cache level while all outputs pass over them.
const BLOCK_LEN: usize = 32 << 10;
/// Shortest and longest block of one source.
const BLOCK_LENS: (usize, usize) = (512, 4096);

/// What becomes of the sums of a tile: they replace what the outputs hold,
pub(super) const SET: u8 = 0;
/// are added to it,
pub(super) const ADD: u8 = 1;
/// or replace it past the caches.
pub(super) const STREAM: u8 = 2;

/// The loops for tiles: by what becomes of the sums, by whether the first output is the sum of all sources (so that its factors
/// need not be looked at), by the number of outputs less one.
pub(super) type Tiles = [[[Loop; MAX_OUTPUTS]; 2]; 3];

/// Coefficients as a back end wants them, with the loops for them.
#[derive(Clone, Debug)]
pub(super) struct StoredFactors {
    columns: usize,
    rows: usize,
    /// Band by band of up to [`MAX_OUTPUTS`] rows, in each one source after the other.
    factors: Vec<u64>,
    /// Of each band, by what becomes of the sums.
    bands: Vec<[Loop; 3]>,
}

impl StoredFactors {
    /// `rows` of `columns` coefficients for `backend`.
    pub(super) fn new(backend: &Backend, columns: usize, rows: &[u8]) -> Self {
        let bands = || rows.chunks((columns * MAX_OUTPUTS).max(1));
        let of_band = |band| (0..columns).flat_map(move |s| column_of(band, columns, s));
        Self {
            columns,
            rows: rows.len().checked_div(columns).unwrap_or(0),
            factors: bands().flat_map(of_band).map(|c| backend.factors[usize::from(c)]).collect(),
            bands: bands()
                .map(|band| backend.loops(band.len() / columns, are_ones(&band[..columns])))
                .collect(),
        }
    }

    /// The factors of the tile of `sources` columns and `outputs` rows whose first ones are `column` and `row`, which begins a
    /// band, and the loops for it.
    fn of_tile(
        &self,
        (row, outputs): (usize, usize),
        (column, sources): (usize, usize),
    ) -> (&[u64], [Loop; 3]) {
        let factors = &self.factors[row * self.columns + column * outputs..][..sources * outputs];
        (factors, self.bands[row / MAX_OUTPUTS])
    }

    /// If they are those of a single tile: all factors, and its loops.
    pub(super) fn single(&self) -> Option<(&[u64], [Loop; 3])> {
        match &*self.bands {
            [loops] if (1..=MAX_SOURCES).contains(&self.columns) => Some((&self.factors, *loops)),
            _ => None,
        }
    }

    /// Adds to each of the outputs the single source times its coefficient in column `column`.
    ///
    /// # Panics
    /// Unless there is one source, such a column, and a row for each output.
    #[inline]
    pub(super) fn add_column(&self, column: usize, mut chunks: Chunks<'_, '_, '_>) {
        let (sources, len) = (chunks.sources(), chunks.len());
        let fits = (sources.len() == 1) & (column < self.columns) & (chunks.output_count() == self.rows);
        assert!(fits, "one source, and one row for each output");
        if let [loops] = &*self.bands {
            // SAFETY: the loop is for so many outputs, for each there is a factor in the column, and all are of one length.
            return unsafe {
                let factors = self.factors.as_ptr().add(column * self.rows);
                loops[usize::from(ADD)](factors, sources, chunks.outputs(), len)
            };
        }
        self.add_column_by_bands(column, chunks);
    }

    /// Apart from [`StoredFactors::add_column`], which would have to save its registers.
    #[inline(never)]
    fn add_column_by_bands(&self, column: usize, mut chunks: Chunks<'_, '_, '_>) {
        let (sources, len) = (chunks.sources(), chunks.len());
        for (band, outputs) in chunks.outputs().chunks_mut(MAX_OUTPUTS).enumerate() {
            let (factors, loops) = self.of_tile((band * MAX_OUTPUTS, outputs.len()), (column, 1));
            // SAFETY: as for a single band.
            unsafe { loops[usize::from(ADD)](factors.as_ptr(), sources, outputs, len) }
        }
    }
}

impl Backend {
    /// The loops for tiles of so many outputs, by what becomes of the sums.
    fn loops(&self, outputs: usize, ones: bool) -> [Loop; 3] {
        [SET, ADD, STREAM].map(|mode| self.tiles[usize::from(mode)][usize::from(ones)][outputs - 1])
    }
}

fn column_of(band: &[u8], columns: usize, s: usize) -> impl Iterator<Item = u8> {
    band.chunks_exact(columns).map(move |row| row[s])
}

fn are_ones(row: &[u8]) -> bool {
    row.iter().all(|coefficient| *coefficient == 1)
}

/// The coefficients of a combination.
#[derive(Clone, Copy)]
pub(super) enum Factors<'a> {
    /// Row by row, as they are.
    Raw(&'a [u8]),
    /// Ready to be used.
    Stored(&'a StoredFactors),
}

/// Cuts a combination (see [`Kernel::combine`](super::Kernel::combine)) into tiles and computes them; with `add`, it is added to
/// what the outputs hold.
///
/// # Panics
/// Unless there is a factor for each source and output.
#[inline(never)]
pub(super) fn for_each(backend: &Backend, factors: Factors<'_>, mut chunks: Chunks<'_, '_, '_>, add: bool) {
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
    let is_one = outputs.len() <= MAX_OUTPUTS && sources.len() <= MAX_SOURCES;
    let block = if is_one { len } else { block_len(sources.len()) };
    for start in (0..len).step_by(block) {
        let end = len.min(start + block);
        for (band, outputs) in outputs.chunks_mut(MAX_OUTPUTS).enumerate() {
            let mut outputs = cut_mut(outputs, start..end);
            for (part, sources_of_part) in sources.chunks(MAX_SOURCES).enumerate() {
                let mode = if add || part > 0 {
                    ADD
                } else if stream {
                    STREAM
                } else {
                    SET
                };
                let rows = (band * MAX_OUTPUTS, outputs.len());
                let columns = (part * MAX_SOURCES, sources_of_part.len());
                let mut scratch = [0; MAX_SOURCES * MAX_OUTPUTS];
                let (factors, loops) = match factors {
                    Factors::Stored(all) => all.of_tile(rows, columns),
                    Factors::Raw(all) => of_tile(backend, all, sources.len(), rows, columns, &mut scratch),
                };
                let sources = cut(sources_of_part, start..end);
                // SAFETY: the loop is for so many outputs, for each of them and of the sources there is a factor, and all of
                // them are of that length.
                unsafe { loops[usize::from(mode)](factors.as_ptr(), &sources, &mut outputs, end - start) }
            }
        }
    }
}

/// The same range of up to [`MAX_SOURCES`] sources.
fn cut<'a>(sources: &[&'a [u8]], range: Range<usize>) -> ArrayVec<&'a [u8], MAX_SOURCES> {
    sources.iter().map(|source| &source[range.clone()]).collect()
}

/// The same range of up to [`MAX_OUTPUTS`] outputs.
fn cut_mut<'a>(outputs: &'a mut [&mut [u8]], range: Range<usize>) -> ArrayVec<&'a mut [u8], MAX_OUTPUTS> {
    outputs.iter_mut().map(|output| &mut output[range.clone()]).collect()
}

/// How much of each of `sources` is read at a time where several tiles read it: the second band of outputs is to find it in cache.
fn block_len(sources: usize) -> usize {
    (BLOCK_LEN / sources / 64 * 64).clamp(BLOCK_LENS.0, BLOCK_LENS.1)
}

/// As [`StoredFactors::of_tile`], of `all` coefficients, row by row of `stride`.
fn of_tile<'a>(
    backend: &Backend,
    all: &[u8],
    stride: usize,
    (row, rows): (usize, usize),
    (column, columns): (usize, usize),
    scratch: &'a mut [u64; MAX_SOURCES * MAX_OUTPUTS],
) -> (&'a [u64], [Loop; 3]) {
    for s in 0..columns {
        for o in 0..rows {
            scratch[s * rows + o] = backend.factors[usize::from(all[(row + o) * stride + column + s])];
        }
    }
    let ones = are_ones(&all[row * stride + column..][..columns]);
    (&scratch[..columns * rows], backend.loops(rows, ones))
}
