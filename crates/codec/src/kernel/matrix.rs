//! Matrices: coefficients that are used many times, made ready for one kernel.
#![allow(unsafe_code)]

use super::cache;
use super::instruction_set::{Kernel, Loop};
use super::stopwatch::{SMALL, Way, best_times};
use super::tile::{self, Factors, StoredFactors};
use super::transform::{self, Whole};
use crate::chunks::Chunks;

/// `rows` of `columns` coefficients.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    kernel: Kernel,
    rows: usize,
    columns: usize,
    /// Row-major.
    coefficients: Vec<u8>,
    factors: StoredFactors,
    /// What computes all outputs at once, if anything does.
    whole: Option<Whole>,
    /// Bytes of a chunk up to which all chunks together stay in the second-level cache.
    cached: usize,
    /// Whether the rows are those of [`Family::Lch`](crate::Family::Lch).
    is_lch: bool,
    method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Matrix,
    Transform,
}

/// Bytes of the chunks of which the matrix and the transform are tried: an object in the first-level cache, as most are.
const TRIED_LEN: usize = 4096;

/// Bytes of each source that are copied and combined before the next ones, where that is not one loop: they stay in the caches.
const PIECE_LEN: usize = 4096;

impl Matrix {
    pub(crate) fn new(kernel: Kernel, columns: usize, coefficients: Vec<u8>) -> Self {
        let factors = StoredFactors::new(kernel.0, columns, &coefficients);
        let rows = coefficients.len().checked_div(columns).unwrap_or(0);
        let new = Self {
            kernel,
            rows,
            columns,
            coefficients,
            factors,
            whole: None,
            cached: cache::second_level() / (rows + columns).max(1),
            is_lch: false,
            method: Method::Matrix,
        };
        new.without_transform()
    }

    /// The same with the transform of [`Family::Lch`](crate::Family::Lch), whose rows these are, if it is the faster way here.
    pub(crate) fn with_transform(self) -> Self {
        let without = Self { is_lch: true, ..self.without_transform() };
        let with = without.clone().with_transform_if_any();
        if with.method != without.method && is_faster(&with, &without) { with } else { without }
    }

    /// The same with the transform, if there is one for these numbers.
    pub(super) fn with_transform_if_any(self) -> Self {
        match transform::whole(self.kernel.0, self.columns, self.rows) {
            Some(whole) => Self { whole: Some(whole), method: Method::Transform, is_lch: true, ..self },
            None => self,
        }
    }

    /// The same, whose sums are made coefficient by coefficient.
    pub(crate) fn without_transform(self) -> Self {
        let whole = self.factors.single().map(|(factors, [through, _, past, ..])| Whole {
            factors: factors.to_vec(),
            loops: [through, past],
        });
        Self { whole, method: Method::Matrix, ..self }
    }

    /// The same for another kernel.
    pub(crate) fn with_kernel(self, kernel: Kernel) -> Self {
        let new = Self::new(kernel, self.columns, self.coefficients);
        if self.is_lch { new.with_transform() } else { new }
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }

    pub(crate) fn coefficients(&self) -> &[u8] {
        &self.coefficients
    }

    #[inline]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How [`Matrix::combine`] goes about it.
    pub(crate) fn method(&self) -> &'static str {
        match self.method {
            Method::Matrix => "matrix",
            Method::Transform => "transform",
        }
    }

    /// `outputs[o] = sum_s coefficient(o, s) * sources[s]`.
    ///
    /// # Panics
    /// Unless there is a row for each output and a column for each source.
    #[inline]
    pub(crate) fn combine(&self, chunks: Chunks<'_, '_, '_>) {
        if chunks.len() <= self.cached {
            self.combine_as(chunks, false);
        } else {
            self.combine_by(&|chunks, past| self.combine_as(chunks, past), chunks);
        }
    }

    /// Has `way` do what [`Matrix::combine`] does, with the results stored where that is faster for all of `chunks` together.
    pub(crate) fn combine_by(&self, way: Way<'_>, chunks: Chunks<'_, '_, '_>) {
        cache::run(self.kernel, chunks.len() * (self.columns + self.rows), chunks, way);
    }

    /// What does [`Matrix::combine`] for chunks of `len` bytes, with what it multiplies by, if that is one loop and results are stored
    /// through the caches.
    pub(super) fn direct(&self, len: usize) -> Option<(Loop, &[u64])> {
        let whole = self.whole.as_ref().filter(|_| len <= self.cached)?;
        Some((whole.loops[0], &whole.factors))
    }

    /// [`Matrix::combine`] with the results stored through the caches, or past them.
    #[inline]
    pub(crate) fn combine_as(&self, mut chunks: Chunks<'_, '_, '_>, past: bool) {
        let fits = (chunks.sources().len() == self.columns) & (chunks.output_count() == self.rows);
        assert!(fits, "one column for each source, one row for each output");
        let Some(whole) = &self.whole else {
            let mode = if past { tile::STREAM } else { tile::SET };
            return tile::for_each(self.kernel.0, Factors::Stored(&self.factors), chunks, mode);
        };
        let (sources, len) = (chunks.sources(), chunks.len());
        // SAFETY: the loop and the factors are for so many sources and outputs, which are all of one length.
        unsafe {
            whole.loops[usize::from(past)](whole.factors.as_ptr(), sources, chunks.outputs(), len);
        }
    }

    /// [`Matrix::combine`], and a copy of each source: the outputs are the sums, then the copies. What is read for the one is there
    /// for the other.
    ///
    /// # Panics
    /// Unless there is an output for each row and for each column, and a column for each source.
    pub(crate) fn combine_and_copy(&self, chunks: Chunks<'_, '_, '_>) {
        let bytes = chunks.len() * (2 * self.columns + self.rows);
        cache::run(self.kernel, bytes, chunks, &|chunks, past| self.combine_and_copy_as(chunks, past));
    }

    /// [`Matrix::combine_and_copy`] with everything stored through the caches, or past them where that is possible.
    fn combine_and_copy_as(&self, mut chunks: Chunks<'_, '_, '_>, past: bool) {
        let (sources, len) = (chunks.sources(), chunks.len());
        let fits = sources.len() == self.columns && chunks.output_count() == self.rows + self.columns;
        assert!(fits, "one column for each source, one output for each row and column");
        let outputs = chunks.outputs();
        if let Some((factors, loops)) = self.factors.single() {
            let mode = if past { tile::COPY_STREAM } else { tile::COPY };
            // SAFETY: the loop and the factors are for so many sources and outputs, which are all of one length.
            return unsafe { loops[usize::from(mode)](factors.as_ptr(), sources, outputs, len) };
        }
        for start in (0..len).step_by(PIECE_LEN) {
            let range = start..len.min(start + PIECE_LEN);
            let of_piece: Vec<&[u8]> = sources.iter().map(|source| &source[range.clone()]).collect();
            let mut pieces: Vec<&mut [u8]> =
                outputs.iter_mut().map(|output| &mut output[range.clone()]).collect();
            let (sums, copies) = pieces.split_at_mut(self.rows);
            copies.iter_mut().zip(&of_piece).for_each(|(copy, source)| copy.copy_from_slice(source));
            if let Ok(chunks) = Chunks::new(&of_piece, sums) {
                self.combine_as(chunks, false);
            }
        }
    }

    /// `outputs[o] ^= coefficient(o, column) * source`, for the single source. Outputs that have no share in it are not touched.
    ///
    /// # Panics
    /// Unless there is a row for each output, and such a column.
    #[inline]
    pub(crate) fn add_column(&self, column: usize, chunks: Chunks<'_, '_, '_>) {
        self.factors.add_column(column, chunks);
    }
}

/// Whether `a` takes less time than `b`, a matrix of the same shape, for chunks that stay in cache.
fn is_faster(a: &Matrix, b: &Matrix) -> bool {
    let shape = (a.columns(), a.rows(), TRIED_LEN);
    let [of_a, of_b] = best_times(shape, SMALL, [&|chunks| a.combine(chunks), &|chunks| b.combine(chunks)]);
    of_a < of_b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::kernels;
    use crate::{Code, Family};

    /// Chunks in `buffer`, all of them misaligned by `offset`.
    fn cut(buffer: &mut [u8], len: usize, offset: usize) -> Vec<&mut [u8]> {
        buffer
            .chunks_mut(len.next_multiple_of(64) + 64)
            .map(|chunk| &mut chunk[offset..offset + len])
            .collect()
    }

    #[test]
    fn copies_are_copies_and_sums_are_the_same_beside_them() {
        for (k, m) in [(1, 1), (3, 2), (6, 3), (10, 4), (5, 6), (40, 2)] {
            for len in [1usize, 63, 64, 65, 200, 513, 5000] {
                let room = len.next_multiple_of(64) + 64;
                let mut data: Vec<u8> = (0..k * room).map(|i| ((i * 167) ^ (i >> 7)) as u8).collect();
                let data: Vec<&[u8]> = cut(&mut data, len, 0).into_iter().map(|chunk| &*chunk).collect();
                let mut expected = vec![0; m * room];
                Code::rs(k, m).unwrap().encode(&data, &mut cut(&mut expected, len, 0)).unwrap();
                for (kernel, past, offset) in
                    kernels().iter().flat_map(|k| [(k, false, 0), (k, true, 0), (k, true, 5)])
                {
                    let matrix = Code::rs(k, m).unwrap().matrix().clone().with_kernel(*kernel);
                    let mut found = vec![0xa5; (m + k) * room];
                    let mut found = cut(&mut found, len, offset);
                    matrix.combine_and_copy_as(Chunks::new(&data, &mut found).unwrap(), past);
                    let what = format!("{kernel:?} {k}+{m} len {len} past {past} offset {offset}");
                    assert!(found[m..].iter().zip(&data).all(|(copy, source)| copy == source), "{what}");
                    assert!(found[..m] == cut(&mut expected, len, 0)[..], "{what}");
                }
            }
        }
    }

    #[test]
    fn outputs_without_a_share_are_not_touched() {
        for kernel in kernels() {
            let code = Code::lrc(12, 2, 2).unwrap().with_kernel(*kernel);
            let delta = [0x1d; 100];
            let mut parities = vec![vec![0x77; 100]; code.m()];
            let mut outputs: Vec<&mut [u8]> = parities.iter_mut().map(Vec::as_mut_slice).collect();
            code.update(3, &delta, &mut outputs).unwrap();
            for (parity, bytes) in parities.iter().enumerate() {
                let share = crate::gf::mul(code.coefficient(parity, 3), 0x1d);
                assert!(bytes.iter().all(|byte| *byte == 0x77 ^ share), "{kernel:?} parity {parity}");
            }
            assert_eq!(code.coefficient(1, 3), 0, "the other local group");
        }
    }

    #[test]
    fn a_transform_is_weighed_again_for_every_kernel_and_never_for_other_rows() {
        let lch = Code::of_family(Family::Lch, 32, 8).unwrap();
        let rs = Code::rs(32, 8).unwrap();
        for kernel in kernels() {
            let by_scalar = lch.matrix().clone().with_kernel(*kernels().last().unwrap());
            assert_eq!(by_scalar.method(), "matrix", "the scalar kernel has no transforms");
            let back = by_scalar.with_kernel(*kernel);
            assert!(back.is_lch && !rs.matrix().clone().with_kernel(*kernel).is_lch);
            assert_eq!(back.without_transform().method(), "matrix");
        }
    }
}
