//! Whether parity chunks are those of the data chunks.

use crate::checks::check_lengths;
use crate::{Code, CodeError};

/// Bytes of a parity that are computed before they are compared.
const BLOCK_LEN: usize = 2048;
/// Parities that are computed in one pass.
const ROWS: usize = 4;

/// A parity chunk that is not the one of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which parity row (`0..m`).
    pub parity: usize,
    /// The first byte that differs.
    pub offset: usize,
}

/// # Checks
impl Code {
    /// Compares the parity chunks with those of the data: one entry for each parity row that disagrees. The memory it
    /// takes does not depend on the length of the chunks.
    ///
    /// ```
    /// let code = codec::Code::xor(2)?;
    /// let found = code.verify(&[b"abc", b"AB!"], &[&[32, 32, 7]])?;
    /// assert_eq!(found, [codec::Mismatch { parity: 0, offset: 2 }]);
    /// # Ok::<(), codec::CodeError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Code::encode`].
    pub fn verify(&self, data: &[&[u8]], parity: &[&[u8]]) -> Result<Vec<Mismatch>, CodeError> {
        crate::checks::check_count("data chunks", self.k(), data.len())?;
        crate::checks::check_count("parity chunks", self.m(), parity.len())?;
        check_lengths(data, &mut [])?;
        check_lengths(&[&data[..1], parity].concat(), &mut [])?;
        let mut first = vec![None; self.m()];
        let mut sources = Vec::with_capacity(self.k());
        for start in (0..data[0].len()).step_by(BLOCK_LEN) {
            let end = data[0].len().min(start + BLOCK_LEN);
            sources.clear();
            sources.extend(data.iter().map(|chunk| &chunk[start..end]));
            for row in (0..self.m()).step_by(ROWS) {
                let rows = row..self.m().min(row + ROWS);
                self.compare(rows, &sources, parity, start, &mut first)?;
            }
        }
        let found = first.into_iter().enumerate();
        Ok(found.filter_map(|(parity, offset)| Some(Mismatch { parity, offset: offset? })).collect())
    }

    /// Compares a block, which begins at `start` and has the data `sources`, of a few parity rows.
    fn compare(
        &self,
        rows: std::ops::Range<usize>,
        sources: &[&[u8]],
        parity: &[&[u8]],
        start: usize,
        first: &mut [Option<usize>],
    ) -> Result<(), CodeError> {
        let len = sources[0].len();
        let mut scratch = [[0; BLOCK_LEN]; ROWS];
        let mut outputs = scratch.each_mut().map(|block| &mut block[..len]);
        let coefficients = &self.coefficients()[rows.start * self.k()..rows.end * self.k()];
        self.kernel().combine(coefficients, sources, &mut outputs[..rows.len()])?;
        for (row, expected) in rows.zip(outputs) {
            let found = &parity[row][start..start + len];
            if first[row].is_none() && *expected != *found {
                let offset = expected.iter().zip(found).position(|(a, b)| a != b);
                first[row] = offset.map(|offset| start + offset);
            }
        }
        Ok(())
    }
}
