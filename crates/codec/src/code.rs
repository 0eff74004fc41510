//! Codes: which linear combination of the data each parity role holds.

use std::num::NonZeroUsize;

use crate::checks::{check_count, check_lengths, check_role};
use crate::chunks::Chunks;
use crate::kernel::Matrix;
use crate::plan::Plan;
use crate::{CodeError, Kernel, Prepared, threads};

/// A systematic linear code of `k` data roles `0..k` and `m` parity roles `k..k+m`, with the kernel that runs it.
///
/// Parity role `k + j` holds `sum_i coefficient(j, i) * data_i`, byte by byte.
#[derive(Clone, Debug)]
pub struct Code {
    /// `m` rows of `k`.
    matrix: Matrix,
}

impl Code {
    /// A code from its parity rows, one after the other. The caller has checked the bounds.
    pub(crate) fn from_rows(k: usize, coefficients: Vec<u8>) -> Self {
        debug_assert!(k >= 1 && coefficients.len().is_multiple_of(k));
        Self { matrix: Matrix::new(crate::kernel(), k, coefficients) }
    }

    /// The same code, run by `kernel` instead of the chosen one: for comparing kernels.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { matrix: self.matrix.with_kernel(kernel) }
    }

    /// The same code, whose rows are those of [`Family::Lch`](crate::Family::Lch), so that a transform computes its parities.
    pub(crate) fn with_transform(self) -> Self {
        Self { matrix: self.matrix.with_transform() }
    }

    /// The same code, encoded by its matrix even where a transform is faster: for comparing the two.
    #[must_use]
    pub fn without_transform(self) -> Self {
        Self { matrix: self.matrix.without_transform() }
    }

    /// How parities are encoded: by the `matrix`, or by a `transform` (see [`Family::Lch`](crate::Family::Lch)), which was the
    /// faster one when the code was made.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.matrix.method()
    }

    /// Number of data roles.
    #[inline]
    #[must_use]
    pub fn k(&self) -> usize {
        self.matrix.columns()
    }

    /// Number of parity roles. With a Reed-Solomon code, as many losses as that are survived, whichever they are.
    #[inline]
    #[must_use]
    pub fn m(&self) -> usize {
        self.matrix.rows()
    }

    /// Number of all roles.
    #[must_use]
    pub fn n(&self) -> usize {
        self.k() + self.m()
    }

    /// By what parity row `parity` (`0..m`) multiplies data role `data` (`0..k`).
    ///
    /// # Panics
    /// If there is no such parity row or data role.
    #[must_use]
    pub fn coefficient(&self, parity: usize, data: usize) -> u8 {
        assert!(
            parity < self.m() && data < self.k(),
            "no coefficient ({parity}, {data}) in {}+{}",
            self.k(),
            self.m()
        );
        self.coefficients()[parity * self.k() + data]
    }

    /// By what role `role` (`0..n`) multiplies data role `data`: the identity, then the parity rows.
    pub(crate) fn generator(&self, role: usize, data: usize) -> u8 {
        if role < self.k() { u8::from(role == data) } else { self.coefficient(role - self.k(), data) }
    }

    /// Computes all `m` parity chunks from the `k` data chunks, all of one length. What the parity chunks held is
    /// overwritten.
    ///
    /// # Errors
    /// `Count` unless there are `k` data and `m` parity chunks, `Length` unless all are of one length, `Empty` if that
    /// is 0.
    #[expect(clippy::inline_always, reason = "of 64 bytes, a call and its result take a tenth of the time")]
    #[inline(always)]
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodeError> {
        self.matrix.combine(self.check_chunks(data, parity)?);
        Ok(())
    }

    /// [`Code::encode`] by several threads, for objects much larger than a cache: each takes a range of all chunks,
    /// cut at multiples of 64 bytes, the calling thread one of them. Short chunks are left to fewer threads. The
    /// result is the same.
    ///
    /// # Errors
    /// As [`Code::encode`].
    pub fn encode_with_threads(
        &self,
        data: &[&[u8]],
        parity: &mut [&mut [u8]],
        threads: NonZeroUsize,
    ) -> Result<(), CodeError> {
        threads::combine(&self.matrix, self.check_chunks(data, parity)?, threads);
        Ok(())
    }

    /// [`Code::encode`], to be run on the same chunks any number of times.
    ///
    /// # Errors
    /// As [`Code::encode`].
    pub fn prepare<'c, 'a>(
        &'c self,
        data: Vec<&'a mut [u8]>,
        parity: Vec<&'a mut [u8]>,
    ) -> Result<Prepared<'c, 'a>, CodeError> {
        Prepared::new(&self.matrix, data, parity)
    }

    /// Brings all `m` parity chunks up to date after a change of one data role: `delta` is its old bytes XOR its new
    /// ones, and each slice of `parities` is the same range of a parity chunk. The delta is read once for up to four
    /// parities. Parities that do not cover the role are left alone.
    ///
    /// # Errors
    /// `NoSuchRole` unless `data_role` is below `k`, `Count` unless there are `m` parities, `Length` unless all byte
    /// strings are of one length, `Empty` if that is 0.
    #[expect(clippy::inline_always, reason = "as for `encode`")]
    #[inline(always)]
    pub fn update(
        &self,
        data_role: usize,
        delta: &[u8],
        parities: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        check_role(data_role, self.k())?;
        check_count("parity chunks", self.m(), parities.len())?;
        self.matrix.add_column(data_role, Chunks::new(&[delta], parities)?);
        Ok(())
    }

    /// Refuses all but `k` data and `m` parity chunks of one length.
    #[inline]
    pub(crate) fn check_chunks<'a, 's, 'o>(
        &self,
        data: &'a [&'s [u8]],
        parity: &'a mut [&'o mut [u8]],
    ) -> Result<Chunks<'a, 's, 'o>, CodeError> {
        check_count("data chunks", self.k(), data.len())?;
        check_count("parity chunks", self.m(), parity.len())?;
        Chunks::new(data, parity)
    }

    /// How to compute the roles `wanted` from the roles `present` (data `0..k` and parity `k..n`, in any order).
    /// Data is preferred over parity, earlier parities over later ones, in the order of `present`; the plan names the
    /// roles that it really needs. It depends on nothing but the arguments, so keep it where losses repeat.
    ///
    /// # Errors
    /// `NoSuchRole`, `Duplicate`, or `Undetermined` for a wanted role that the present ones do not determine (for
    /// Reed-Solomon: fewer than `k` are present and it is not one of them).
    pub fn plan(&self, present: &[usize], wanted: &[usize]) -> Result<Plan, CodeError> {
        Plan::reconstruct(self, present, wanted)
    }

    /// Computes the chunks of the roles `wanted` from those of the roles `present`: `(role, bytes)` each, all of one
    /// length. [`Code::plan`] and [`Plan::run`] in one.
    ///
    /// # Errors
    /// As [`Code::plan`]; `Length` unless all chunks are of one length, `Empty` if that is 0.
    pub fn reconstruct(
        &self,
        present: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        let (roles, missing) = roles_of(present, wanted);
        self.plan(&roles, &missing)?.run_among(present, wanted)
    }

    /// How to compute data role `wanted` from residuals: the residual of parity row `parities[i]` (`0..m`) is
    /// `sum over b in lost of coefficient(parities[i], b) * data_b`. The plan's sources are parity *roles* `k..n`.
    ///
    /// # Errors
    /// `NoSuchRole`, `Duplicate`, `NotLost` if `wanted` is not in `lost`, or `Undetermined` if the rows do not
    /// determine it (for Reed-Solomon: fewer parities than lost roles).
    pub fn recovery_plan(
        &self,
        parities: &[usize],
        lost: &[usize],
        wanted: usize,
    ) -> Result<Plan, CodeError> {
        Plan::recover(self, parities, lost, wanted)
    }

    /// Computes data role `wanted` into `out` from the residuals of the parity rows `parities`, as repair of a page
    /// does. `residuals[i]` belongs to `parities[i]`. See [`Code::recovery_plan`].
    ///
    /// # Errors
    /// As [`Code::recovery_plan`]; `Count` unless there is one residual for each parity, `Length` unless all byte
    /// strings are of one length, `Empty` if that is 0.
    pub fn recover(
        &self,
        parities: &[usize],
        lost: &[usize],
        wanted: usize,
        residuals: &[&[u8]],
        out: &mut [u8],
    ) -> Result<(), CodeError> {
        check_count("residuals", parities.len(), residuals.len())?;
        check_lengths(residuals, &mut [&mut *out])?;
        let plan = self.recovery_plan(parities, lost, wanted)?;
        let needed = plan.sources().iter().map(|role| residuals[position(parities, role - self.k())]);
        plan.run(&needed.collect::<Vec<_>>(), &mut [out])
    }

    /// Parity row `parity` (`0..m`): by what it multiplies each data role.
    ///
    /// # Panics
    /// If there is no such parity row.
    #[must_use]
    pub fn row(&self, parity: usize) -> &[u8] {
        assert!(parity < self.m(), "no parity row {parity} in {}+{}", self.k(), self.m());
        &self.coefficients()[parity * self.k()..][..self.k()]
    }

    /// Whether every parity is made of every data role: any `k` chunks are as good as any others.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        !self.coefficients().contains(&0)
    }

    /// All parity rows, one after the other.
    pub(crate) fn coefficients(&self) -> &[u8] {
        self.matrix.coefficients()
    }

    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// What runs it.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.matrix.kernel()
    }
}

/// The roles of chunks that are present and of those that are wanted.
pub(crate) fn roles_of(
    present: &[(usize, &[u8])],
    wanted: &[(usize, &mut [u8])],
) -> (Vec<usize>, Vec<usize>) {
    (present.iter().map(|(role, _)| *role).collect(), wanted.iter().map(|(role, _)| *role).collect())
}

/// Where `role` stands in `roles`.
fn position(roles: &[usize], role: usize) -> usize {
    roles.iter().position(|r| *r == role).expect("a plan's sources are among the roles it was made from")
}
