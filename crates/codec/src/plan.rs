//! Plans: a linear combination that was worked out once and can be run many times, or piecewise on many nodes.

use std::num::NonZeroUsize;

use crate::checks::{check_count, check_lengths, check_roles};
use crate::chunks::Chunks;
use crate::kernel::Matrix;
use crate::solve::solve;
use crate::{Code, CodeError, Kernel, Prepared, threads};

/// How to compute some roles from others: `output = sum over sources of coefficient * source`.
///
/// Sources that no output needs are left out. A graph of nodes runs the same sums in pieces: it needs nothing but
/// [`Plan::coefficient`].
#[derive(Clone, Debug)]
pub struct Plan {
    sources: Vec<usize>,
    outputs: Vec<usize>,
    /// One row per output.
    matrix: Matrix,
}

impl Plan {
    /// The roles whose bytes are needed, in the order in which [`Plan::run`] takes them.
    #[must_use]
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// The roles that are computed, in the order in which [`Plan::run`] takes their buffers.
    #[must_use]
    pub fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// By what output number `output` multiplies source number `source` (positions in the two lists).
    ///
    /// # Panics
    /// If there is no such output or source.
    #[must_use]
    pub fn coefficient(&self, output: usize, source: usize) -> u8 {
        assert!(
            output < self.outputs.len() && source < self.sources.len(),
            "no coefficient ({output}, {source})"
        );
        self.matrix.coefficients()[output * self.sources.len() + source]
    }

    /// Computes the outputs, overwriting them. All byte strings are of one length.
    ///
    /// # Errors
    /// `Count` unless there is one byte string for each source and each output, `Length` unless all are of one
    /// length, `Empty` if that is 0.
    #[expect(clippy::inline_always, reason = "as for `Code::encode`")]
    #[inline(always)]
    pub fn run(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), CodeError> {
        self.matrix.combine(self.check(sources, outputs)?);
        Ok(())
    }

    /// [`Plan::run`], to be run on the same chunks any number of times.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn prepare<'c, 'a>(
        &'c self,
        sources: Vec<&'a mut [u8]>,
        outputs: Vec<&'a mut [u8]>,
    ) -> Result<Prepared<'c, 'a>, CodeError> {
        Prepared::new(&self.matrix, sources, outputs)
    }

    /// [`Plan::run`] by several threads: see [`Code::encode_with_threads`].
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_with_threads(
        &self,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: NonZeroUsize,
    ) -> Result<(), CodeError> {
        threads::combine(&self.matrix, self.check(sources, outputs)?, threads);
        Ok(())
    }

    /// Computes the chunks `wanted`, which are the plan's outputs in their order, from some of those `present`, which
    /// hold its sources.
    pub(crate) fn run_among(
        &self,
        present: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        let mut outputs: Vec<&mut [u8]> = wanted.iter_mut().map(|(_, bytes)| &mut **bytes).collect();
        let chunks: Vec<&[u8]> = present.iter().map(|(_, bytes)| *bytes).collect();
        check_lengths(&chunks, &mut outputs)?;
        let chunk_of =
            |role: &usize| present.iter().find(|(other, _)| other == role).map(|(_, bytes)| *bytes);
        let needed: Vec<&[u8]> = self.sources.iter().filter_map(chunk_of).collect();
        self.run(&needed, &mut outputs)
    }

    #[inline]
    fn check<'a, 's, 'o>(
        &self,
        sources: &'a [&'s [u8]],
        outputs: &'a mut [&'o mut [u8]],
    ) -> Result<Chunks<'a, 's, 'o>, CodeError> {
        check_count("sources", self.sources.len(), sources.len())?;
        check_count("outputs", self.outputs.len(), outputs.len())?;
        Chunks::new(sources, outputs)
    }

    /// See [`Code::plan`]. A wanted row `t` of the generator is written as present data, plus present parities with
    /// factors `y` such that on every lost data role `b` the parities alone give `t[b]`: `sum_q y_q c[q][b] = t[b]`.
    pub(crate) fn reconstruct(code: &Code, present: &[usize], wanted: &[usize]) -> Result<Self, CodeError> {
        check_roles(present, code.n())?;
        check_roles(wanted, code.n())?;
        let (data, parities): (Vec<usize>, Vec<usize>) = present.iter().partition(|role| **role < code.k());
        let lost: Vec<usize> = (0..code.k()).filter(|role| !data.contains(role)).collect();
        let target = |w: usize, b: usize| code.generator(w, b);
        let factors = parity_factors(code, &parities, &lost, wanted.len(), |w, b| target(wanted[w], b))
            .map_err(|w| CodeError::Undetermined { role: wanted[w], present: present.len() })?;
        let data_coefficient = |w: usize, i: usize| {
            let parity_share = |(q, y): (&usize, &Vec<u8>)| crate::gf::mul(y[w], code.generator(*q, i));
            parities
                .iter()
                .zip(&factors)
                .map(parity_share)
                .fold(target(wanted[w], i), |sum, share| sum ^ share)
        };
        let columns = data.iter().map(|i| (*i, (0..wanted.len()).map(|w| data_coefficient(w, *i)).collect()));
        let columns = columns.chain(parities.iter().copied().zip(factors.iter().cloned())).collect();
        Ok(Self::from_columns(columns, wanted.to_vec(), code.kernel()))
    }

    /// See [`Code::recovery_plan`]: the same system, with a single wanted data role and nothing but residuals.
    pub(crate) fn recover(
        code: &Code,
        parities: &[usize],
        lost: &[usize],
        wanted: usize,
    ) -> Result<Self, CodeError> {
        check_roles(parities, code.m())?;
        check_roles(lost, code.k())?;
        if !lost.contains(&wanted) {
            return Err(CodeError::NotLost { role: wanted });
        }
        let roles: Vec<usize> = parities.iter().map(|row| row + code.k()).collect();
        let factors = parity_factors(code, &roles, lost, 1, |_, b| u8::from(b == wanted))
            .map_err(|_| CodeError::Undetermined { role: wanted, present: parities.len() })?;
        Ok(Self::from_columns(roles.into_iter().zip(factors).collect(), vec![wanted], code.kernel()))
    }

    /// A plan from one column (role, coefficient in each output) per source; columns of zeros are dropped.
    fn from_columns(mut columns: Vec<(usize, Vec<u8>)>, outputs: Vec<usize>, kernel: Kernel) -> Self {
        columns.retain(|(_, column)| column.iter().any(|coefficient| *coefficient != 0));
        let coefficients = (0..outputs.len()).flat_map(|o| columns.iter().map(move |(_, column)| column[o]));
        let matrix = Matrix::new(kernel, columns.len(), coefficients.collect());
        Self { sources: columns.iter().map(|(role, _)| *role).collect(), outputs, matrix }
    }
}

/// For each parity role its factor in each of `targets` sums, such that the sum restricted to the data roles `lost` is
/// `target(index, role)`. `Err` is the index of a target that cannot be reached.
fn parity_factors(
    code: &Code,
    parities: &[usize],
    lost: &[usize],
    targets: usize,
    target: impl Fn(usize, usize) -> u8,
) -> Result<Vec<Vec<u8>>, usize> {
    let equation = |b: usize| {
        let left = parities.iter().map(|q| code.generator(*q, b));
        left.chain((0..targets).map(|t| target(t, b))).collect()
    };
    solve(lost.iter().map(|b| equation(*b)).collect(), parities.len(), targets)
}
