//! A matrix that is loaded, and launches of it: many stripes at once, all in the card's memory.
#![allow(unsafe_code)] // Addresses in a card's memory are the caller's word.

use std::sync::Arc;

use codec::CodeError;

use crate::driver::{Kernel, Launch, Mark, Memory, Stream};
use crate::kernels::{self, Scheme};
use crate::{CudaError, Device, Matrix};

/// Bytes of a stripe's description.
const STRIPE_BYTES: usize = 24;
/// Chunks that begin at multiples of this are loaded and stored by whole vectors.
const ALIGN: u64 = 16;
/// Most blocks of a launch in its first dimension.
const MAX_BLOCKS: u64 = (1 << 31) - 1;

/// A [`Matrix`] on a card.
#[derive(Clone, Debug)]
pub struct Combination {
    device: Arc<Device>,
    matrix: Matrix,
    kernel: Kernel,
    /// None for the generic kernel.
    scheme: Option<Scheme>,
    /// The coefficients' tables, for the generic kernel.
    tables: Option<Arc<Memory>>,
}

/// Chunks of one length in the card's memory, in a matrix' order.
#[derive(Clone, Debug, Default)]
pub struct Stripe {
    /// Where the sources begin.
    pub sources: Vec<u64>,
    /// Where the outputs begin.
    pub outputs: Vec<u64>,
    /// Bytes of each.
    pub len: u64,
}

impl Combination {
    pub(crate) fn generic(device: &Arc<Device>, matrix: &Matrix, kernel: Kernel) -> Result<Self, CudaError> {
        let tables = kernels::tables(matrix);
        let memory = device.context().allocate(tables.len())?;
        memory.write(0, &tables)?;
        let (device, matrix) = (device.clone(), matrix.clone());
        Ok(Self { device, matrix, kernel, scheme: None, tables: Some(Arc::new(memory)) })
    }

    pub(crate) fn specialised(device: &Arc<Device>, matrix: &Matrix, scheme: Scheme, kernel: Kernel) -> Self {
        let (device, matrix) = (device.clone(), matrix.clone());
        Self { device, matrix, kernel, scheme: Some(scheme), tables: None }
    }

    /// What it computes.
    #[must_use]
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// `generic`, or how its own kernel multiplies.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.scheme.map_or("generic", Scheme::name)
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Computes the outputs of all stripes, which are in the card's memory, in one launch; nothing is copied. Gives the seconds
    /// that the card took.
    ///
    /// # Errors
    /// `Count` for a stripe with other numbers of chunks than the matrix has; the driver's.
    ///
    /// # Safety
    /// All chunks are memory of this card, `len` bytes each, which nobody else writes meanwhile. An output overlaps no other
    /// chunk.
    pub unsafe fn run_on_device(&self, stripes: &[Stripe]) -> Result<f64, CudaError> {
        let lists = Lists::of(&self.matrix, stripes, self.tile_bytes())?;
        if lists.tiles == 0 {
            return Ok(0.0);
        }
        let stream = self.device.context().new_stream()?;
        let memory = self.device.context().allocate(lists.bytes.len())?;
        memory.write(0, &lists.bytes)?;
        // SAFETY: the caller's, for the chunks; the lists stay until the stream has been waited for.
        let submitted = unsafe { self.timed(&stream, &lists, memory.address()) };
        stream.wait()?;
        let (begin, end) = submitted?;
        begin.seconds_to(&end)
    }

    /// Launches between two marks.
    ///
    /// # Safety
    /// As [`Combination::launch`].
    unsafe fn timed(&self, stream: &Stream, lists: &Lists, at: u64) -> Result<(Mark, Mark), CudaError> {
        let begin = stream.mark()?;
        // SAFETY: the caller's.
        unsafe { self.launch(stream, lists, at) }?;
        Ok((begin, stream.mark()?))
    }

    /// Puts the computation into `stream`; the lists are at address `at` by then.
    ///
    /// # Safety
    /// All chunks in the lists are memory of this card that stays until the stream has been waited for, and so are the lists.
    pub(crate) unsafe fn launch(&self, stream: &Stream, lists: &Lists, at: u64) -> Result<(), CudaError> {
        let rows = self.matrix.rows() as u32;
        let generic_rows = rows.div_ceil(kernels::GENERIC_OUTPUTS);
        let launch = Launch {
            stripes: at,
            stripe_count: lists.count,
            chunks: at + lists.chunks_at,
            tables: self.tables.as_ref().map_or(0, |tables| tables.address()),
            sources: self.matrix.columns() as u32,
            outputs: rows,
            blocks: (lists.tiles, if self.scheme.is_some() { 1 } else { generic_rows }),
        };
        // SAFETY: the caller's; the arguments are what `kernels/` says.
        unsafe { stream.launch(&self.kernel, launch) }
    }

    /// Bytes of each chunk that a block computes.
    pub(crate) fn tile_bytes(&self) -> u64 {
        kernels::tile_bytes(self.scheme)
    }
}

/// Stripes as the kernels want them: descriptions, then the addresses of all chunks.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) bytes: Vec<u8>,
    chunks_at: u64,
    count: u32,
    tiles: u32,
}

impl Lists {
    pub(crate) fn of(matrix: &Matrix, stripes: &[Stripe], tile_bytes: u64) -> Result<Self, CudaError> {
        let mut tiles = 0;
        let mut bytes = Vec::with_capacity(Self::len_for(matrix, stripes.len()));
        for stripe in stripes {
            check_count("sources", matrix.columns(), stripe.sources.len())?;
            check_count("outputs", matrix.rows(), stripe.outputs.len())?;
            let mut chunks = stripe.sources.iter().chain(&stripe.outputs);
            let aligned = chunks.all(|chunk| chunk.is_multiple_of(ALIGN));
            bytes.extend([tiles, stripe.len, u64::from(aligned)].into_iter().flat_map(u64::to_le_bytes));
            tiles += stripe.len.div_ceil(tile_bytes);
        }
        for stripe in stripes {
            bytes.extend(stripe.sources.iter().chain(&stripe.outputs).flat_map(|chunk| chunk.to_le_bytes()));
        }
        if tiles > MAX_BLOCKS || stripes.len() > u32::MAX as usize {
            return Err(CudaError::Driver { reason: format!("{tiles} blocks are too many for one launch") });
        }
        let chunks_at = (stripes.len() * STRIPE_BYTES) as u64;
        Ok(Self { bytes, chunks_at, count: stripes.len() as u32, tiles: tiles as u32 })
    }

    /// Bytes for so many stripes.
    pub(crate) fn len_for(matrix: &Matrix, stripes: usize) -> usize {
        stripes * (STRIPE_BYTES + 8 * matrix.chunks())
    }
}

pub(crate) fn check_count(what: &'static str, expected: usize, found: usize) -> Result<(), CodeError> {
    if found == expected { Ok(()) } else { Err(CodeError::Count { what, expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_where_stripes_begin_and_which_are_aligned() {
        let matrix = Matrix::new(1, vec![5]).unwrap();
        let stripe = |source, len| Stripe { sources: vec![source], outputs: vec![4096], len };
        let lists = Lists::of(&matrix, &[stripe(16, 4097), stripe(17, 0), stripe(32, 1)], 4096).unwrap();
        let words: Vec<u64> =
            lists.bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..9], [0, 4097, 1, 2, 0, 0, 2, 1, 1]);
        assert_eq!(words[9..], [16, 4096, 17, 4096, 32, 4096]);
        assert_eq!((lists.count, lists.tiles, lists.chunks_at), (3, 3, 72));
        assert_eq!(lists.bytes.len(), Lists::len_for(&matrix, 3));
    }

    #[test]
    fn stripes_of_another_shape_are_refused() {
        let matrix = Matrix::new(2, vec![5, 6]).unwrap();
        let stripe = Stripe { sources: vec![0], outputs: vec![0], len: 1 };
        assert!(matches!(Lists::of(&matrix, &[stripe], 4096), Err(CudaError::Code(CodeError::Count { .. }))));
    }
}
