//! Matrices: coefficients that are used many times, made ready for one kernel.

use super::tile::{self, Factors, StoredFactors};
use super::{Kernel, Transform, calibrate};
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
    /// A faster way to the same sums.
    transform: Option<Transform>,
}

impl Matrix {
    pub(crate) fn new(kernel: Kernel, columns: usize, coefficients: Vec<u8>) -> Self {
        let factors = StoredFactors::new(kernel.0, columns, &coefficients);
        let rows = coefficients.len().checked_div(columns).unwrap_or(0);
        Self { kernel, rows, columns, coefficients, factors, transform: None }
    }

    /// The same with the transform of [`Family::Lch`](crate::Family::Lch), whose rows these are, if it is the faster way here.
    pub(crate) fn with_transform(self) -> Self {
        let transform = Transform::new(self.kernel.0, self.columns, self.rows());
        let with = Self { transform, ..self.clone() };
        if with.transform.is_some() && calibrate::is_faster(&with, &self) { with } else { self }
    }

    /// The same for another kernel.
    pub(crate) fn with_kernel(self, kernel: Kernel) -> Self {
        let has_transform = self.transform.is_some();
        let new = Self::new(kernel, self.columns, self.coefficients);
        if has_transform { new.with_transform() } else { new }
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }

    pub(crate) fn coefficients(&self) -> &[u8] {
        &self.coefficients
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How [`Matrix::combine`] goes about it.
    pub(crate) fn method(&self) -> &'static str {
        if self.transform.is_some() { "transform" } else { "matrix" }
    }

    /// `outputs[o] = sum_s coefficient(o, s) * sources[s]`.
    ///
    /// # Panics
    /// Unless there is a row for each output and a column for each source.
    #[inline]
    pub(crate) fn combine(&self, mut chunks: Chunks<'_, '_, '_>) {
        let fits = chunks.sources().len() == self.columns && chunks.output_count() == self.rows;
        assert!(fits, "one column for each source, one row for each output");
        if let Some(transform) = &self.transform
            && transform.run(self.kernel.0, &mut chunks)
        {
            return;
        }
        tile::for_each(self.kernel.0, Factors::Stored(&self.factors), chunks, false);
    }
}
