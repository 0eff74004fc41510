//! Codes: which linear combination of the data each parity role holds.

use crate::plan::{self, Plan};
use crate::{CodeError, Kernel, gf};

/// A systematic linear code of `k` data roles `0..k` and `m` parity roles `k..k+m`, with the kernel that runs it.
///
/// Parity role `k + j` holds `sum_i coefficient(j, i) * data_i`, byte by byte.
#[derive(Clone, Debug)]
pub struct Code {
    k: usize,
    m: usize,
    /// Row-major, `m` rows of `k`.
    coefficients: Vec<u8>,
    kernel: Kernel,
}

impl Code {
    /// The Reed-Solomon code with `k` data and `m` parity roles: any `k` of the `k + m` chunks determine the rest.
    /// `m = 0` is no protection. The first parity row is all ones, so parity role `k` is the XOR of the data.
    ///
    /// **The matrix.** Take `y_i = i` for data role `i` and `x_j = 255 - j` for parity row `j`. While `k + m <= 256`
    /// these are `k + m` different field elements, so `1 / (x_j + y_i)` is a Cauchy matrix, all of whose square
    /// submatrices are non-singular: their determinant is
    /// `prod_{a<b} (x_a + x_b)(y_a + y_b) / prod_{a,b} (x_a + y_b)`, a quotient of non-zero products.
    /// Multiplying column `i` by the non-zero `x_0 + y_i` multiplies every such determinant by non-zero factors and
    /// turns row 0 into ones: `c[j][i] = (x_0 + y_i) / (x_j + y_i)`. With `k` chunks left, of which `f` are parities,
    /// the `f` missing data chunks solve a system whose matrix is such an `f` by `f` submatrix.
    ///
    /// A coefficient depends on `j` and `i` alone, not on `k` and `m`: wider codes extend narrower ones.
    ///
    /// # Errors
    /// `Bounds` unless `k >= 1` and `k + m <= 256`.
    pub fn rs(k: usize, m: usize) -> Result<Self, CodeError> {
        let bounds = CodeError::Bounds { k, m };
        let (Ok(data), Ok(parity)) = (u8::try_from(k.wrapping_sub(1)), u8::try_from(m)) else {
            return Err(bounds);
        };
        if k + m > 256 {
            return Err(bounds);
        }
        let cauchy = |j: u8, i: u8| gf::mul(255 ^ i, gf::inverse((255 - j) ^ i));
        let coefficients = (0..parity).flat_map(|j| (0..=data).map(move |i| cauchy(j, i))).collect();
        Ok(Self { k, m, coefficients, kernel: crate::kernel() })
    }

    /// The same code, run by `kernel` instead of the chosen one: for comparing kernels.
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        Self { kernel, ..self }
    }

    /// Number of data roles.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of parity roles: how many losses are survived.
    #[must_use]
    pub fn m(&self) -> usize {
        self.m
    }

    /// Number of all roles.
    #[must_use]
    pub fn n(&self) -> usize {
        self.k + self.m
    }

    /// By what parity row `parity` (`0..m`) multiplies data role `data` (`0..k`).
    ///
    /// # Panics
    /// If there is no such parity row or data role.
    #[must_use]
    pub fn coefficient(&self, parity: usize, data: usize) -> u8 {
        assert!(
            parity < self.m && data < self.k,
            "no coefficient ({parity}, {data}) in {}+{}",
            self.k,
            self.m
        );
        self.coefficients[parity * self.k + data]
    }

    /// By what role `role` (`0..n`) multiplies data role `data`: the identity, then the parity rows.
    pub(crate) fn generator(&self, role: usize, data: usize) -> u8 {
        if role < self.k { u8::from(role == data) } else { self.coefficient(role - self.k, data) }
    }

    /// Computes all `m` parity chunks from the `k` data chunks, all of one length. What the parity chunks held is
    /// overwritten.
    ///
    /// # Errors
    /// `Count` unless there are `k` data and `m` parity chunks, `Length` unless all are of one length.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), CodeError> {
        plan::check_count("data chunks", self.k, data.len())?;
        plan::check_count("parity chunks", self.m, parity.len())?;
        plan::check_lengths(data, parity)?;
        self.kernel.combine(&self.coefficients, data, parity);
        Ok(())
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
    /// As [`Code::plan`]; `Length` unless all chunks are of one length.
    pub fn reconstruct(
        &self,
        present: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        let roles: Vec<usize> = present.iter().map(|(role, _)| *role).collect();
        let missing: Vec<usize> = wanted.iter().map(|(role, _)| *role).collect();
        let plan = self.plan(&roles, &missing)?;
        let chunks: Vec<&[u8]> = present.iter().map(|(_, bytes)| *bytes).collect();
        let mut outputs: Vec<&mut [u8]> = wanted.iter_mut().map(|(_, bytes)| &mut **bytes).collect();
        plan::check_lengths(&chunks, &outputs)?;
        let needed = plan.sources().iter().map(|source| chunks[position(&roles, *source)]);
        plan.run(&needed.collect::<Vec<_>>(), &mut outputs)
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
    /// strings are of one length.
    pub fn recover(
        &self,
        parities: &[usize],
        lost: &[usize],
        wanted: usize,
        residuals: &[&[u8]],
        out: &mut [u8],
    ) -> Result<(), CodeError> {
        plan::check_count("residuals", parities.len(), residuals.len())?;
        plan::check_lengths(residuals, &[&mut *out])?;
        let plan = self.recovery_plan(parities, lost, wanted)?;
        let needed = plan.sources().iter().map(|role| residuals[position(parities, role - self.k)]);
        plan.run(&needed.collect::<Vec<_>>(), &mut [out])
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }
}

/// Where `role` stands in `roles`.
fn position(roles: &[usize], role: usize) -> usize {
    roles.iter().position(|r| *r == role).expect("a plan's sources are among the roles it was made from")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::rank;

    /// All ways to choose `count` of `0..limit`.
    fn choices(limit: usize, count: usize) -> Vec<Vec<usize>> {
        let subsets = (0u32..1 << limit).filter(|set| set.count_ones() as usize == count);
        subsets.map(|set| (0..limit).filter(|i| set >> i & 1 == 1).collect()).collect()
    }

    fn submatrix_is_regular(code: &Code, rows: &[usize], columns: &[usize]) -> bool {
        let row = |j: usize| columns.iter().map(|i| code.coefficient(j, *i)).collect();
        rank(rows.iter().map(|j| row(*j)).collect()) == rows.len()
    }

    #[test]
    fn every_square_submatrix_of_small_codes_is_regular() {
        for (k, m) in [(3, 2), (6, 3), (10, 4), (8, 8)] {
            let code = Code::rs(k, m).unwrap();
            for size in 1..=m.min(k) {
                for rows in choices(m, size) {
                    for columns in choices(k, size) {
                        assert!(
                            submatrix_is_regular(&code, &rows, &columns),
                            "{k}+{m}: {rows:?} {columns:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn sampled_submatrices_of_wide_codes_are_regular() {
        let mut state = 1u64;
        let mut draw = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        for (k, m) in [(32, 8), (128, 128), (200, 56), (1, 255), (255, 1)] {
            let code = Code::rs(k, m).unwrap();
            for _ in 0..60 {
                let size = 1 + draw(k.min(m).min(12));
                let mut distinct = |limit: usize| {
                    let mut chosen: Vec<usize> = Vec::new();
                    while chosen.len() < size {
                        let candidate = draw(limit);
                        if !chosen.contains(&candidate) {
                            chosen.push(candidate);
                        }
                    }
                    chosen
                };
                let (rows, columns) = (distinct(m), distinct(k));
                assert!(submatrix_is_regular(&code, &rows, &columns), "{k}+{m}: {rows:?} {columns:?}");
            }
        }
    }

    #[test]
    fn the_first_parity_is_the_xor_and_wider_codes_extend_narrower_ones() {
        let wide = Code::rs(200, 56).unwrap();
        let narrow = Code::rs(3, 2).unwrap();
        assert!((0..200).all(|i| wide.coefficient(0, i) == 1));
        for (j, i) in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)] {
            assert_eq!(wide.coefficient(j, i), narrow.coefficient(j, i));
        }
    }

    #[test]
    fn codes_out_of_bounds_are_refused() {
        for (k, m) in [(0, 0), (0, 3), (257, 0), (256, 1), (1, 256), (usize::MAX, 2), (2, usize::MAX)] {
            assert_eq!(Code::rs(k, m).unwrap_err(), CodeError::Bounds { k, m });
        }
        assert_eq!(Code::rs(256, 0).unwrap().n(), 256);
    }
}
