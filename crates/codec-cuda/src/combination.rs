//! A matrix that is loaded, and launches of it: many stripes at once, all in the card's memory.
#![allow(unsafe_code)] // Addresses in a card's memory are the caller's word.

use std::sync::Arc;

use codec::CodeError;

use crate::driver::{Kernel, Launch, Mark, Memory, Stream};
use crate::kernels::{self, TILE_BYTES};
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
    /// One after the other.
    parts: Vec<Part>,
    /// The coefficients' tables, for the generic kernel; a compiled one knows them.
    tables: Option<Arc<Memory>>,
}

/// A kernel, and the first output that it computes.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) kernel: Kernel,
    pub(crate) first_output: u32,
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
        let parts = vec![Part { kernel, first_output: 0 }];
        Ok(Self { device, matrix, parts, tables: Some(Arc::new(memory)) })
    }

    pub(crate) fn compiled(device: &Arc<Device>, matrix: &Matrix, parts: Vec<Part>) -> Self {
        let (device, matrix) = (device.clone(), matrix.clone());
        Self { device, matrix, parts, tables: None }
    }

    /// What it computes.
    #[must_use]
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// `generic` or `compiled`: which kernel it is.
    #[must_use]
    pub fn method(&self) -> &'static str {
        if self.tables.is_some() { "generic" } else { "compiled" }
    }

    /// Times that each source is read.
    fn passes(&self) -> usize {
        if self.tables.is_some() {
            self.matrix.rows().div_ceil(kernels::GENERIC_OUTPUTS as usize)
        } else {
            self.parts.len()
        }
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Computes the outputs of all stripes, which are in the card's memory, in one launch; nothing is copied. Gives the seconds
    /// that the card took. Chunks may also be page-locked memory of the host: then the card reads and writes them where they are.
    ///
    /// # Errors
    /// `Count` for a stripe with other numbers of chunks than the matrix has; the driver's.
    ///
    /// # Safety
    /// All chunks are memory of this card, or page-locked, `len` bytes each, which nobody else writes meanwhile. An output overlaps no
    /// other chunk. Of chunks that are read (sources, and outputs of a matrix that adds) and do not begin or end at multiples of 16,
    /// the bytes up to these are read, too, and mean nothing: they are such memory, as they are in whatever CUDA allocates.
    pub unsafe fn run_on_device(&self, stripes: &[Stripe]) -> Result<f64, CudaError> {
        let lists = Lists::of(&self.matrix, stripes)?;
        self.device.with_lane(lists.bytes.len(), |lane| {
            let at = lane.put(&lists.bytes)?;
            // SAFETY: the lane stays until it has been waited for; the chunks are the caller's word.
            unsafe { self.timed(&lane.stream, &lists, at) }
        })
    }

    /// These stripes, ready to be combined any number of times: their descriptions are on the card.
    ///
    /// # Errors
    /// As [`Combination::run_on_device`].
    pub fn batch(&self, stripes: &[Stripe]) -> Result<Batch, CudaError> {
        let mut lists = Lists::of(&self.matrix, stripes)?;
        let memory = self.device.context().allocate(lists.bytes.len())?;
        memory.write(0, &std::mem::take(&mut lists.bytes))?;
        let stream = self.device.context().new_stream()?;
        Ok(Batch { combination: self.clone(), lists, memory, stream })
    }

    /// Launches, waits, and gives the seconds on the card's clock.
    ///
    /// # Safety
    /// As [`Combination::launch`], but for the waiting.
    unsafe fn timed(&self, stream: &Stream, lists: &Lists, at: u64) -> Result<f64, CudaError> {
        // SAFETY: the caller's.
        let submitted = unsafe { self.between_marks(stream, lists, at) };
        stream.wait()?;
        let (begin, end) = submitted?;
        begin.seconds_to(&end)
    }

    /// # Safety
    /// As [`Combination::launch`].
    unsafe fn between_marks(
        &self,
        stream: &Stream,
        lists: &Lists,
        at: u64,
    ) -> Result<(Mark, Mark), CudaError> {
        let begin = stream.mark()?;
        // SAFETY: the caller's.
        unsafe { self.launch(stream, lists, at) }?;
        Ok((begin, stream.mark().map_err(begun)?))
    }

    /// Puts the computation into `stream`; the lists are at address `at` by then.
    ///
    /// # Safety
    /// All chunks in the lists are memory of this card that stays until the stream has been waited for, and so are the lists.
    pub(crate) unsafe fn launch(&self, stream: &Stream, lists: &Lists, at: u64) -> Result<(), CudaError> {
        if lists.tiles == 0 {
            return Ok(());
        }
        let rows = self.matrix.rows() as u32;
        // Blocks of the generic kernel take some outputs each.
        let blocks = u64::from(lists.tiles) * self.passes().div_ceil(self.parts.len()) as u64;
        for (index, part) in self.parts.iter().enumerate() {
            let launch = Launch {
                stripes: at,
                stripe_count: lists.count,
                tiles_each: lists.tiles_each,
                chunks: at + lists.chunks_at,
                tables: self.tables.as_ref().map_or(0, |tables| tables.address()),
                sources: self.matrix.columns() as u32,
                outputs: rows,
                first_output: part.first_output,
                blocks: u32::try_from(blocks).map_err(|_| too_many(blocks))?,
            };
            // SAFETY: the caller's; the arguments are what `kernels/` says.
            let launched = unsafe { stream.launch(&part.kernel, launch) };
            launched.map_err(|error| if index > 0 { begun(error) } else { error })?;
        }
        Ok(())
    }
}

/// Stripes, described to the card once.
#[derive(Debug)]
pub struct Batch {
    combination: Combination,
    lists: Lists,
    memory: Memory,
    stream: Stream,
}

impl Batch {
    /// [`Combination::run_on_device`] of these stripes.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn run(&mut self) -> Result<f64, CudaError> {
        // SAFETY: the caller's; the descriptions stay.
        unsafe { self.combination.timed(&self.stream, &self.lists, self.memory.address()) }
    }
}

/// Stripes as the kernels want them: descriptions, then the addresses of all chunks.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) bytes: Vec<u8>,
    chunks_at: u64,
    count: u32,
    tiles: u32,
    /// Tiles of every stripe; 0 if they differ.
    tiles_each: u32,
}

/// Out of memory when something has been launched already: outputs may have been added to, so nobody may do it once more.
fn begun(error: CudaError) -> CudaError {
    match error {
        CudaError::OutOfMemory { .. } => {
            CudaError::Driver { reason: format!("{error}, with kernels under way") }
        }
        other => other,
    }
}

fn too_many(blocks: u64) -> CudaError {
    CudaError::Driver { reason: format!("{blocks} blocks are too many for one launch") }
}

impl Lists {
    pub(crate) fn of(matrix: &Matrix, stripes: &[Stripe]) -> Result<Self, CudaError> {
        let mut tiles = 0;
        let mut bytes = Vec::with_capacity(Self::len_for(matrix, stripes.len()));
        for stripe in stripes {
            check_count("sources", matrix.columns(), stripe.sources.len())?;
            check_count("outputs", matrix.rows(), stripe.outputs.len())?;
            let mut chunks = stripe.sources.iter().chain(&stripe.outputs);
            let aligned = chunks.all(|chunk| chunk.is_multiple_of(ALIGN));
            bytes.extend([tiles, stripe.len, u64::from(aligned)].into_iter().flat_map(u64::to_le_bytes));
            tiles += stripe.len.div_ceil(TILE_BYTES);
        }
        for stripe in stripes {
            bytes.extend(stripe.sources.iter().chain(&stripe.outputs).flat_map(|chunk| chunk.to_le_bytes()));
        }
        if tiles > MAX_BLOCKS || stripes.len() > u32::MAX as usize {
            return Err(too_many(tiles));
        }
        let chunks_at = (stripes.len() * STRIPE_BYTES) as u64;
        let each = stripes.first().map_or(0, |stripe| stripe.len.div_ceil(TILE_BYTES));
        let alike = stripes.iter().all(|stripe| stripe.len.div_ceil(TILE_BYTES) == each);
        let tiles_each = if alike { each as u32 } else { 0 };
        Ok(Self { bytes, chunks_at, count: stripes.len() as u32, tiles: tiles as u32, tiles_each })
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
        let lists = Lists::of(&matrix, &[stripe(16, 2049), stripe(17, 0), stripe(32, 1)]).unwrap();
        let words: Vec<u64> =
            lists.bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..9], [0, 2049, 1, 2, 0, 0, 2, 1, 1]);
        assert_eq!(words[9..], [16, 4096, 17, 4096, 32, 4096]);
        assert_eq!((lists.count, lists.tiles, lists.tiles_each, lists.chunks_at), (3, 3, 0, 72));
        let alike = Lists::of(&matrix, &[stripe(16, 2049), stripe(17, 4096)]).unwrap();
        assert_eq!((alike.tiles, alike.tiles_each), (4, 2));
        assert_eq!(lists.bytes.len(), Lists::len_for(&matrix, 3));
    }

    #[test]
    fn stripes_of_another_shape_are_refused() {
        let matrix = Matrix::new(2, vec![5, 6]).unwrap();
        let stripe = Stripe { sources: vec![0], outputs: vec![0], len: 1 };
        assert!(matches!(Lists::of(&matrix, &[stripe]), Err(CudaError::Code(CodeError::Count { .. }))));
    }
}
