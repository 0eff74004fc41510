//! Tiles: a large linear combination cut into pieces that suit registers and caches.
#![allow(unsafe_code)]

use std::slice;

use arrayvec::ArrayVec;

use super::instruction_set::{Backend, Loop, MAX_OUTPUTS, Modes};
use crate::chunks::Chunks;

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
/// or replace it past the caches;
pub(super) const STREAM: u8 = 2;
/// as [`SET`], and the sources are copied to as many further outputs;
pub(super) const COPY: u8 = 3;
/// as [`STREAM`], and so are the copies;
pub(super) const COPY_STREAM: u8 = 4;
/// as [`ADD`], of a single source.
pub(super) const UPDATE: u8 = 5;

/// Coefficients as a back end wants them, with the loops for them.
#[derive(Clone, Debug)]
pub(super) struct StoredFactors {
    columns: usize,
    rows: usize,
    /// Band by band of up to [`MAX_OUTPUTS`] rows, in each one source after the other.
    factors: Vec<u64>,
    /// Of each band, by what becomes of the sums.
    bands: Vec<Modes>,
    /// What adds a single source to so many outputs, less one.
    update: [Loop; MAX_OUTPUTS],
    /// Whether any coefficient is 0, which every back end stores as 0.
    is_sparse: bool,
}

impl StoredFactors {
    /// `rows` of `columns` coefficients for `backend`.
    pub(super) fn new(backend: &Backend, columns: usize, rows: &[u8]) -> Self {
        let bands = || rows.chunks((columns * MAX_OUTPUTS).max(1));
        let of_band = |band| (0..columns).flat_map(move |s| column_of(band, columns, s));
        Self {
            update: backend.tiles[usize::from(UPDATE)][0],
            is_sparse: rows.contains(&0),
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
    fn of_tile(&self, (row, outputs): (usize, usize), (column, sources): (usize, usize)) -> (&[u64], Modes) {
        let factors = &self.factors[row * self.columns + column * outputs..][..sources * outputs];
        (factors, self.bands[row / MAX_OUTPUTS])
    }

    /// If they are those of a single tile: all factors, and its loops.
    pub(super) fn single(&self) -> Option<(&[u64], Modes)> {
        match &*self.bands {
            [loops] if (1..=MAX_SOURCES).contains(&self.columns) => Some((&self.factors, *loops)),
            _ => None,
        }
    }

    /// Adds to each of the outputs the single source times its coefficient in column `column`. Where that is 0, the output is not
    /// touched.
    ///
    /// # Panics
    /// Unless there is one source, such a column, and a row for each output.
    #[inline]
    pub(super) fn add_column(&self, column: usize, mut chunks: Chunks<'_, '_, '_>) {
        let (sources, len) = (chunks.sources(), chunks.len());
        let fits = (sources.len() == 1) & (column < self.columns) & (chunks.output_count() == self.rows);
        assert!(fits, "one source, and one row for each output");
        // A loop reads and writes all of its outputs. Those with a factor of 0 are not to be touched, so they take the other way.
        if let [loops] = &*self.bands
            && !self.is_sparse
        {
            // SAFETY: the loop is for so many outputs, for each there is a factor in the column, and all are of one length.
            return unsafe {
                let factors = self.factors.as_ptr().add(column * self.rows);
                loops[usize::from(UPDATE)](factors, sources, chunks.outputs(), len)
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
            if factors.contains(&0) {
                self.add_to_some(factors, sources, outputs, len);
            } else {
                // SAFETY: as for a single band.
                unsafe { loops[usize::from(UPDATE)](factors.as_ptr(), sources, outputs, len) }
            }
        }
    }

    /// Adds to those of up to [`MAX_OUTPUTS`] outputs whose factor is not 0.
    fn add_to_some(&self, factors: &[u64], sources: &[&[u8]], outputs: &mut [&mut [u8]], len: usize) {
        let some = factors.iter().zip(outputs).filter(|(factor, _)| **factor != 0);
        let (factors, mut outputs): (ArrayVec<u64, MAX_OUTPUTS>, ArrayVec<&mut [u8], MAX_OUTPUTS>) =
            some.map(|(factor, output)| (*factor, &mut **output)).unzip();
        if let Some(last) = outputs.len().checked_sub(1) {
            // SAFETY: the loop is for so many outputs, each has its factor, and all are of one length.
            unsafe { self.update[last](factors.as_ptr(), sources, &mut outputs, len) }
        }
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

/// Adds to the single output the single source times `coefficient`.
///
/// # Panics
/// Unless there is one of each.
#[inline]
pub(super) fn add_product(backend: &Backend, coefficient: u8, mut chunks: Chunks<'_, '_, '_>) {
    let (sources, len) = (chunks.sources(), chunks.len());
    assert!((sources.len() == 1) & (chunks.output_count() == 1), "one source and one output");
    let update = backend.tiles[usize::from(UPDATE)][usize::from(coefficient == 1)][0];
    let factor = &backend.factors[usize::from(coefficient)];
    // SAFETY: the loop is for one source and one output, of one length, and one factor.
    unsafe { update(factor, sources, chunks.outputs(), len) }
}

/// Cuts a combination (see [`Kernel::combine`](super::Kernel::combine)) into tiles and computes them; `mode` says what becomes of
/// the sums.
///
/// # Panics
/// Unless there is a factor for each source and output.
#[inline(never)]
pub(super) fn for_each(backend: &Backend, factors: Factors<'_>, mut chunks: Chunks<'_, '_, '_>, mode: u8) {
    let (sources, len) = (chunks.sources(), chunks.len());
    let outputs = chunks.outputs();
    if outputs.is_empty() || len == 0 {
        return;
    }
    if sources.is_empty() {
        // The sum of nothing.
        if mode != ADD {
            outputs.iter_mut().for_each(|output| output.fill(0));
        }
        return;
    }
    // Sums of several parts are added to: they have to stay where they are at hand.
    let mode = if mode == STREAM && sources.len() > MAX_SOURCES { SET } else { mode };
    // A single tile reads every byte once: there is nothing to find in a cache.
    let is_one = outputs.len() <= MAX_OUTPUTS && sources.len() <= MAX_SOURCES;
    let block = block_len(sources.len());
    if is_one || len <= block {
        return for_each_of_block(backend, factors, sources, outputs, len, mode);
    }
    let mut of_block: Vec<&[u8]> = Vec::with_capacity(sources.len());
    for start in (0..len).step_by(block) {
        let range = start..len.min(start + block);
        of_block.clear();
        of_block.extend(sources.iter().map(|source| &source[range.clone()]));
        let mut outputs: Vec<&mut [u8]> =
            outputs.iter_mut().map(|output| &mut output[range.clone()]).collect();
        for_each_of_block(backend, factors, &of_block, &mut outputs, range.len(), mode);
    }
}

/// All tiles of sources and outputs that are `len` bytes long.
fn for_each_of_block(
    backend: &Backend,
    factors: Factors<'_>,
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    len: usize,
    mode: u8,
) {
    let mut scratch = Vec::new();
    for (band, outputs) in outputs.chunks_mut(MAX_OUTPUTS).enumerate() {
        for (part, of_part) in sources.chunks(MAX_SOURCES).enumerate() {
            let rows = (band * MAX_OUTPUTS, outputs.len());
            let columns = (part * MAX_SOURCES, of_part.len());
            let (factors, loops) = factors.of_tile(backend, sources.len(), rows, columns, &mut scratch);
            // Each further part of the sources adds to what the parts before it have left.
            let mode = if part > 0 { ADD } else { mode };
            let mode = if mode == ADD && of_part.len() == 1 { UPDATE } else { mode };
            // SAFETY: the loop is for so many outputs, for each of them and of the sources there is a factor, and all of them are
            // of that length.
            unsafe { loops[usize::from(mode)](factors.as_ptr(), of_part, outputs, len) }
        }
    }
}

/// How much of each of `sources` is read at a time where several tiles read it: the second band of outputs is to find it in cache.
fn block_len(sources: usize) -> usize {
    (BLOCK_LEN / sources / 64 * 64).clamp(BLOCK_LENS.0, BLOCK_LENS.1)
}

impl<'a> Factors<'a> {
    /// See [`StoredFactors::of_tile`]; there are `stride` columns in all.
    fn of_tile<'b>(
        self,
        backend: &Backend,
        stride: usize,
        (row, rows): (usize, usize),
        (column, columns): (usize, usize),
        scratch: &'b mut Vec<u64>,
    ) -> (&'b [u64], Modes)
    where
        'a: 'b,
    {
        match self {
            Self::Stored(all) => all.of_tile((row, rows), (column, columns)),
            // A single coefficient needs no room: half of what a small product would take.
            Self::Raw([c]) => (slice::from_ref(&backend.factors[usize::from(*c)]), backend.loops(1, *c == 1)),
            Self::Raw(all) => {
                scratch.clear();
                for s in column..column + columns {
                    let coefficients = (row..row + rows).map(|row| all[row * stride + s]);
                    scratch.extend(coefficients.map(|c| backend.factors[usize::from(c)]));
                }
                (scratch, backend.loops(rows, are_ones(&all[row * stride + column..][..columns])))
            }
        }
    }
}
