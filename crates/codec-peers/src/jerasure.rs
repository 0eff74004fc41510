//! Jerasure 2 with `w = 8`, from the system's library.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::sync::Once;

use codec::Family;

use crate::{Peer, PeerError, check};

/// Name and version of what is linked.
pub const NAME: &str = "Jerasure 2.0";
/// Bits of a field element.
const W: c_int = 8;
/// Chunk lengths are multiples of a machine word, and chunks are alike aligned for vectors: Jerasure ends the process
/// otherwise.
const WORD: usize = 8;
const VECTOR: usize = 16;

// jerasure.h, reed_sol.h, cauchy.h, galois.h.
#[link(name = "Jerasure")]
unsafe extern "C" {
    fn reed_sol_vandermonde_coding_matrix(k: c_int, m: c_int, w: c_int) -> *mut c_int;
    fn cauchy_original_coding_matrix(k: c_int, m: c_int, w: c_int) -> *mut c_int;
    fn galois_single_multiply(a: c_int, b: c_int, w: c_int) -> c_int;
    fn jerasure_matrix_encode(
        k: c_int,
        m: c_int,
        w: c_int,
        matrix: *mut c_int,
        data: *mut *mut c_char,
        coding: *mut *mut c_char,
        size: c_int,
    );
    fn jerasure_matrix_decode(
        k: c_int,
        m: c_int,
        w: c_int,
        matrix: *mut c_int,
        row_k_ones: c_int,
        erasures: *mut c_int,
        data: *mut *mut c_char,
        coding: *mut *mut c_char,
        size: c_int,
    ) -> c_int;
}

/// Jerasure, prepared for one code.
pub struct Jerasure {
    k: usize,
    m: usize,
    matrix: Vec<c_int>,
    first_row_ones: bool,
}

impl Jerasure {
    /// With one of its own matrices.
    ///
    /// # Errors
    /// `Unavailable` for a family of others, `m = 0` and `k + m > 256`.
    pub fn new(family: Family, k: usize, m: usize) -> Result<Self, PeerError> {
        static FIELD: Once = Once::new();
        // SAFETY: a pure function but for making its tables at the first call, which is here.
        FIELD.call_once(|| {
            let _ = unsafe { galois_single_multiply(1, 1, W) };
        });
        let unavailable = PeerError::Unavailable { peer: NAME, family, k, m };
        let generate = match family {
            Family::JerasureReedSolVan => reed_sol_vandermonde_coding_matrix,
            Family::JerasureCauchy => cauchy_original_coding_matrix,
            _ => return Err(unavailable),
        };
        if k == 0 || m == 0 || k.saturating_add(m) > codec::MAX_ROLES {
            return Err(unavailable);
        }
        // SAFETY: returns NULL, or m * k entries that are the caller's to free.
        let matrix = unsafe {
            let entries = generate(int(k), int(m), W);
            if entries.is_null() {
                return Err(unavailable);
            }
            let matrix = std::slice::from_raw_parts(entries, k * m).to_vec();
            libc::free(entries.cast());
            matrix
        };
        let first_row_ones = matrix[..k].iter().all(|entry| *entry == 1);
        Ok(Self { k, m, matrix, first_row_ones })
    }

    /// That the chunks are such as Jerasure survives: their length.
    fn check<'a>(
        &self,
        count: usize,
        chunks: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<c_int, PeerError> {
        let len = check((count, self.k + self.m), chunks.clone())?;
        let mut offsets = chunks.map(|chunk| chunk.as_ptr().align_offset(VECTOR));
        if !len.is_multiple_of(WORD) || offsets.any(|offset| offset != 0) {
            return Err(PeerError::BadChunks("Jerasure needs aligned chunks of whole words"));
        }
        c_int::try_from(len).map_err(|_| PeerError::BadChunks("longer than 2 GiB"))
    }
}

impl Peer for Jerasure {
    fn name(&self) -> &'static str {
        NAME
    }

    fn rows(&self) -> Vec<u8> {
        self.matrix.iter().map(|entry| u8::try_from(*entry).expect("w = 8")).collect()
    }

    fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), PeerError> {
        let all = data.iter().copied().chain(parity.iter().map(|chunk| &**chunk));
        let size = self.check(data.len() + parity.len(), all)?;
        if data.len() != self.k {
            return Err(PeerError::BadChunks("not as many chunks as roles"));
        }
        let mut sources: Vec<*mut c_char> =
            data.iter().map(|chunk| chunk.as_ptr().cast_mut().cast()).collect();
        let mut coding: Vec<*mut c_char> = parity.iter_mut().map(|chunk| chunk.as_mut_ptr().cast()).collect();
        // SAFETY: k and m chunks of `size` bytes; encoding reads the matrix and the data, and writes the parity only.
        unsafe {
            jerasure_matrix_encode(
                int(self.k),
                int(self.m),
                W,
                self.matrix.as_ptr().cast_mut(),
                sources.as_mut_ptr(),
                coding.as_mut_ptr(),
                size,
            );
        }
        Ok(())
    }

    fn decode(&self, lost: &[usize], chunks: &mut [&mut [u8]]) -> Result<(), PeerError> {
        let size = self.check(chunks.len(), chunks.iter().map(|chunk| &**chunk))?;
        if lost.len() > self.m || lost.iter().any(|role| *role >= chunks.len()) {
            return Err(PeerError::Undecodable);
        }
        let mut erasures: Vec<c_int> = lost.iter().map(|role| int(*role)).chain([-1]).collect();
        let mut pointers: Vec<*mut c_char> =
            chunks.iter_mut().map(|chunk| chunk.as_mut_ptr().cast()).collect();
        let (data, coding) = pointers.split_at_mut(self.k);
        // SAFETY: as in `encode`; the list of erasures ends with -1; only the chunks listed there are written.
        let failed = unsafe {
            jerasure_matrix_decode(
                int(self.k),
                int(self.m),
                W,
                self.matrix.as_ptr().cast_mut(),
                c_int::from(self.first_row_ones),
                erasures.as_mut_ptr(),
                data.as_mut_ptr(),
                coding.as_mut_ptr(),
                size,
            )
        };
        if failed == 0 { Ok(()) } else { Err(PeerError::Undecodable) }
    }
}

/// A count that was checked.
fn int(value: usize) -> c_int {
    c_int::try_from(value).expect("at most 256")
}
