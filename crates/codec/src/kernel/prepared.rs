//! Combinations of chunks that stay where they are.
#![allow(unsafe_code)]

use std::slice;

use super::instruction_set::Loop;
use super::matrix::Matrix;
use crate::CodeError;
use crate::checks::check_count;
use crate::chunks::Chunks;

/// A code or a plan with the chunks that it is to be run on, again and again: a stripe's buffers that are filled anew each time. What a
/// call has to look at in its chunks is looked at once, which of short ones takes as long as to combine them.
///
/// ```
/// use codec::Code;
///
/// let code = Code::rs(2, 1)?;
/// let (mut data, mut parity) = ([[0; 64]; 2], [0; 64]);
/// let [first, second] = &mut data;
/// let mut stripe = code.prepare(vec![first, second], vec![&mut parity])?;
/// for turn in 0..3 {
///     stripe.source_mut(0).fill(turn);
///     stripe.source_mut(1).fill(9);
///     stripe.run();
///     assert_eq!(stripe.output(0), [turn ^ 9; 64]);
/// }
/// # Ok::<(), codec::CodeError>(())
/// ```
#[derive(Debug)]
pub struct Prepared<'c, 'a> {
    matrix: &'c Matrix,
    sources: Vec<&'a mut [u8]>,
    outputs: Vec<&'a mut [u8]>,
    len: usize,
    /// What does it, and what that multiplies by, where nothing has to be decided any more.
    direct: Option<(Loop, &'c [u64])>,
}

impl<'c, 'a> Prepared<'c, 'a> {
    pub(crate) fn new(
        matrix: &'c Matrix,
        sources: Vec<&'a mut [u8]>,
        mut outputs: Vec<&'a mut [u8]>,
    ) -> Result<Self, CodeError> {
        check_count("sources", matrix.columns(), sources.len())?;
        check_count("outputs", matrix.rows(), outputs.len())?;
        let len = Chunks::new(shared(&sources), &mut outputs)?.len();
        Ok(Self { matrix, sources, outputs, len, direct: matrix.direct(len) })
    }

    /// Computes the outputs from the sources, overwriting them.
    #[inline]
    pub fn run(&mut self) {
        let sources = shared(&self.sources);
        if let Some((run, factors)) = self.direct {
            // SAFETY: the loop and its factors are the matrix's. There are as many sources and outputs as it has columns and rows, all
            // of `len` bytes, since `new`: nobody else can exchange them.
            unsafe { run(factors.as_ptr(), sources, &mut self.outputs, self.len) }
        } else if let Ok(chunks) = Chunks::new(sources, &mut self.outputs) {
            self.matrix.combine(chunks);
        }
    }

    /// The bytes of source number `index`.
    ///
    /// # Panics
    /// If there is no such source.
    #[must_use]
    pub fn source_mut(&mut self, index: usize) -> &mut [u8] {
        self.sources[index]
    }

    /// The bytes of output number `index`.
    ///
    /// # Panics
    /// If there is no such output.
    #[must_use]
    pub fn output(&self, index: usize) -> &[u8] {
        self.outputs[index]
    }
}

/// The same slices, which nobody writes to meanwhile.
#[inline]
fn shared<'b>(slices: &'b [&mut [u8]]) -> &'b [&'b [u8]] {
    // SAFETY: references to bytes have one layout, whether they are shared or not, and these are borrowed for as long.
    unsafe { slice::from_raw_parts(slices.as_ptr().cast(), slices.len()) }
}
