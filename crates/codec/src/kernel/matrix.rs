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
    /// Whether the rows are those of [`Family::Lch`](crate::Family::Lch).
    is_lch: bool,
    /// A faster way to the same sums.
    transform: Option<Transform>,
}

impl Matrix {
    pub(crate) fn new(kernel: Kernel, columns: usize, coefficients: Vec<u8>) -> Self {
        let factors = StoredFactors::new(kernel.0, columns, &coefficients);
        let rows = coefficients.len().checked_div(columns).unwrap_or(0);
        Self { kernel, rows, columns, coefficients, factors, is_lch: false, transform: None }
    }

    /// The same with the transform of [`Family::Lch`](crate::Family::Lch), whose rows these are, if it is the faster way here.
    pub(crate) fn with_transform(self) -> Self {
        let without = Self { is_lch: true, transform: None, ..self };
        let transform = Transform::new(without.kernel.0, without.columns, without.rows);
        let with = Self { transform, ..without.clone() };
        if with.transform.is_some() && calibrate::is_faster(&with, &without) { with } else { without }
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

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The same, whose sums are made coefficient by coefficient.
    pub(crate) fn without_transform(self) -> Self {
        Self { transform: None, ..self }
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
        match &self.transform {
            Some(transform) => transform.run(self.kernel.0, &mut chunks),
            None => tile::for_each(self.kernel.0, Factors::Stored(&self.factors), chunks, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::kernels;
    use crate::{Code, Family};

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
