//! Encoding together with what else has to be done with the bytes, so that they come from memory once.

use crate::checks::{check_count, check_lengths};
use crate::chunks::Chunks;
use crate::{Code, CodeError};

/// What is read at a time of all data chunks together: it stays in the first cache level until all is done with it.
const TILE_LEN: usize = 24 << 10;
/// Shortest and longest piece of one chunk.
const PIECE_LEN: (usize, usize) = (512, 4096);

/// What to do with the bytes besides encoding them: copy the data chunks, sum up all chunks, or both.
///
/// The work is done piece by piece, so that each byte leaves the source once: what is copied is still in the first
/// cache level when it is multiplied, and what is multiplied when it is summed up.
///
/// ```
/// use codec::{Code, Fused};
///
/// let code = Code::rs(2, 1)?;
/// let (mut copies, mut parity, mut sums) = ([[0; 3]; 2], [0; 3], [0; 3]);
/// let [first, second] = &mut copies;
/// let fused = Fused { copies: Some(&mut [first, second]), checksums: Some(&mut sums) };
/// code.encode_fused(&[b"abc", b"ABC"], &mut [&mut parity], fused)?;
/// assert_eq!((&copies[0], &copies[1], &parity), (b"abc", b"ABC", &[32; 3]));
/// assert_eq!(sums[0], crc32c::crc32c(b"abc"));
/// # Ok::<(), codec::CodeError>(())
/// ```
#[derive(Default)]
pub struct Fused<'a, 'b> {
    /// Where to copy the `k` data chunks.
    pub copies: Option<&'a mut [&'b mut [u8]]>,
    /// Where to put the CRC32C of each of the `n` chunks, in the order of the roles.
    pub checksums: Option<&'a mut [u32]>,
}

/// # Fused forms
impl Code {
    /// Encodes, copies the data chunks to `copies` and computes the CRC32C of all chunks, as `fused` asks for.
    ///
    /// # Errors
    /// As [`Code::encode`]; `Count` or `Length` unless there are `k` copies of the same length and `n` checksums.
    pub fn encode_fused(
        &self,
        data: &[&[u8]],
        parity: &mut [&mut [u8]],
        mut fused: Fused<'_, '_>,
    ) -> Result<(), CodeError> {
        self.check_chunks(data, parity)?;
        if let Some(copies) = &mut fused.copies {
            check_count("copies", self.k(), copies.len())?;
            check_lengths(&data[..1], copies)?;
        }
        if let Some(checksums) = &mut fused.checksums {
            check_count("checksums", self.n(), checksums.len())?;
            checksums.fill(0);
        }
        let len = data[0].len();
        // Only checksums are made by a second pass, which has to find the bytes in the first cache level.
        let piece = if fused.checksums.is_some() { piece_len(self.k()) } else { len };
        let is_copied = fused.copies.is_some();
        let mut sources = Vec::with_capacity(self.k());
        for start in (0..len).step_by(piece) {
            let range = start..len.min(start + piece);
            sources.clear();
            sources.extend(data.iter().map(|chunk| &chunk[range.clone()]));
            let mut outputs: Vec<&mut [u8]> =
                parity.iter_mut().map(|chunk| &mut chunk[range.clone()]).collect();
            if let Some(copies) = &mut fused.copies {
                outputs.extend(copies.iter_mut().map(|chunk| &mut chunk[range.clone()]));
            }
            let chunks = Chunks::new(&sources, &mut outputs)?;
            if is_copied {
                self.matrix().combine_and_copy(chunks);
            } else {
                self.matrix().combine(chunks);
            }
            if let Some(checksums) = &mut fused.checksums {
                let parities = outputs[..self.m()].iter().map(|output| &**output);
                let sums = checksums.iter_mut().zip(sources.iter().copied().chain(parities));
                sums.for_each(|(sum, chunk)| *sum = crc32c::crc32c_append(*sum, chunk));
            }
        }
        Ok(())
    }

    /// Encodes and copies the data chunks to `copies`: a cold source is read once.
    ///
    /// # Errors
    /// As [`Code::encode_fused`].
    pub fn encode_and_copy(
        &self,
        data: &[&[u8]],
        copies: &mut [&mut [u8]],
        parity: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        self.encode_fused(data, parity, Fused { copies: Some(copies), checksums: None })
    }

    /// Encodes and computes the CRC32C of all `n` chunks, in the order of the roles.
    ///
    /// # Errors
    /// As [`Code::encode_fused`].
    pub fn encode_and_sum(
        &self,
        data: &[&[u8]],
        parity: &mut [&mut [u8]],
        checksums: &mut [u32],
    ) -> Result<(), CodeError> {
        self.encode_fused(data, parity, Fused { copies: None, checksums: Some(checksums) })
    }
}

/// How much of each of `k` data chunks is done at a time: a multiple of the widest vector.
fn piece_len(k: usize) -> usize {
    (TILE_LEN / k / 64 * 64).clamp(PIECE_LEN.0, PIECE_LEN.1)
}
