//! ISA-L, as built by the crate `isal-sys`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uchar};
use std::marker::PhantomData;

use codec::Family;
// Links the library.
use isal_sys as _;

use crate::{Peer, PeerError, check};

/// Name and version of what is linked.
pub const NAME: &str = "ISA-L 2.31 (isal-sys 0.5.3)";

// erasure_code.h. Tables are 32 bytes for each coefficient.
unsafe extern "C" {
    fn ec_init_tables(k: c_int, rows: c_int, a: *const c_uchar, tables: *mut c_uchar);
    fn ec_encode_data(
        len: c_int,
        k: c_int,
        rows: c_int,
        tables: *const c_uchar,
        data: *const *const c_uchar,
        coding: *const *mut c_uchar,
    );
    fn ec_encode_data_update(
        len: c_int,
        k: c_int,
        rows: c_int,
        column: c_int,
        tables: *const c_uchar,
        data: *const c_uchar,
        coding: *const *mut c_uchar,
    );
    fn gf_gen_rs_matrix(a: *mut c_uchar, n: c_int, k: c_int);
    fn gf_gen_cauchy1_matrix(a: *mut c_uchar, n: c_int, k: c_int);
    fn gf_invert_matrix(input: *mut c_uchar, output: *mut c_uchar, n: c_int) -> c_int;
    fn gf_mul(a: c_uchar, b: c_uchar) -> c_uchar;
}

/// A linear combination prepared for `ec_encode_data`.
pub struct Combination {
    k: usize,
    rows: usize,
    tables: Vec<u8>,
}

impl Combination {
    /// From a matrix of `rows` rows of `k`, at least one of each.
    ///
    /// # Panics
    /// If there are no coefficients, or not a whole number of rows.
    #[must_use]
    pub fn new(k: usize, coefficients: &[u8]) -> Self {
        assert!(k > 0 && !coefficients.is_empty() && coefficients.len().is_multiple_of(k), "no matrix");
        let rows = coefficients.len() / k;
        let mut tables = vec![0; 32 * coefficients.len()];
        // SAFETY: the matrix has k * rows entries, the tables 32 bytes for each.
        unsafe { ec_init_tables(int(k), int(rows), coefficients.as_ptr(), tables.as_mut_ptr()) };
        Self { k, rows, tables }
    }

    /// Computes the outputs from the sources.
    ///
    /// # Errors
    /// `BadChunks` unless there are as many as the matrix says, all of one length.
    pub fn run(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), PeerError> {
        let outputs = outputs.iter_mut().map(|output| &mut **output).collect();
        self.prepare(sources, outputs)?.run();
        Ok(())
    }

    /// The same, to be run any number of times on the same chunks: the lists of pointers are made once.
    ///
    /// # Errors
    /// As [`Combination::run`].
    pub fn prepare<'a>(
        &'a self,
        sources: &[&'a [u8]],
        outputs: Vec<&'a mut [u8]>,
    ) -> Result<Prepared<'a>, PeerError> {
        if sources.len() != self.k {
            return Err(PeerError::BadChunks("not the sources of this matrix"));
        }
        Prepared::new(self, None, sources, outputs)
    }

    /// Adds to all outputs their share of `delta`, a change of source number `column`, any number of times.
    ///
    /// # Errors
    /// As [`Combination::run`]; `BadChunks` if there is no such source.
    pub fn prepare_update<'a>(
        &'a self,
        column: usize,
        delta: &'a [u8],
        outputs: Vec<&'a mut [u8]>,
    ) -> Result<Prepared<'a>, PeerError> {
        if column >= self.k {
            return Err(PeerError::BadChunks("no such source"));
        }
        Prepared::new(self, Some(int(column)), &[delta], outputs)
    }
}

/// A combination and the chunks that it is for.
pub struct Prepared<'a> {
    combination: &'a Combination,
    /// Which source the only one is, for an update.
    column: Option<c_int>,
    len: c_int,
    data: Vec<*const u8>,
    coding: Vec<*mut u8>,
    chunks: PhantomData<(&'a [u8], &'a mut [u8])>,
}

impl<'a> Prepared<'a> {
    /// The caller has checked the number of sources.
    fn new(
        combination: &'a Combination,
        column: Option<c_int>,
        sources: &[&'a [u8]],
        mut outputs: Vec<&'a mut [u8]>,
    ) -> Result<Self, PeerError> {
        let all = sources.iter().copied().chain(outputs.iter().map(|output| &**output));
        let len = check((sources.len() + outputs.len(), sources.len() + combination.rows), all)?;
        let len = c_int::try_from(len).map_err(|_| PeerError::BadChunks("longer than 2 GiB"))?;
        let data = sources.iter().map(|source| source.as_ptr()).collect();
        let coding = outputs.iter_mut().map(|output| output.as_mut_ptr()).collect();
        Ok(Self { combination, column, len, data, coding, chunks: PhantomData })
    }

    /// Does it.
    pub fn run(&mut self) {
        let Combination { k, rows, tables } = self.combination;
        let (k, rows, tables) = (int(*k), int(*rows), tables.as_ptr());
        let (data, coding) = (self.data.as_ptr(), self.coding.as_ptr());
        // SAFETY: k sources (for an update: one, which is one of the k) and `rows` outputs of `len` bytes each, which are borrowed
        // for as long as this lives, and tables made for that shape.
        unsafe {
            match self.column {
                None => ec_encode_data(self.len, k, rows, tables, data, coding),
                Some(column) => {
                    ec_encode_data_update(self.len, k, rows, column, tables, self.data[0], coding);
                }
            }
        }
    }
}

/// ISA-L, prepared for one code.
pub struct IsaL {
    k: usize,
    /// All `n` rows of `k`, the identity first.
    generator: Vec<u8>,
    encoder: Combination,
}

impl IsaL {
    /// With one of its own matrices. They need not be MDS.
    ///
    /// # Errors
    /// `Unavailable` for a family of others, `m = 0` and `k + m > 256`.
    pub fn new(family: Family, k: usize, m: usize) -> Result<Self, PeerError> {
        let generate = match family {
            Family::IsalCauchy => gf_gen_cauchy1_matrix,
            Family::IsalVandermonde => gf_gen_rs_matrix,
            _ => return Err(PeerError::Unavailable { peer: NAME, family, k, m }),
        };
        if k == 0 || m == 0 || k.saturating_add(m) > codec::MAX_ROLES {
            return Err(PeerError::Unavailable { peer: NAME, family, k, m });
        }
        let mut generator = vec![0; (k + m) * k];
        // SAFETY: room for k + m rows of k.
        unsafe { generate(generator.as_mut_ptr(), int(k + m), int(k)) };
        let encoder = Combination::new(k, &generator[k * k..]);
        Ok(Self { k, generator, encoder })
    }

    /// What decodes the roles `lost` from the first `k` others, which come second.
    ///
    /// # Errors
    /// `Undecodable` if too many are lost or ISA-L cannot invert the matrix.
    pub fn decoder(&self, lost: &[usize]) -> Result<(Combination, Vec<usize>), PeerError> {
        let (k, n) = (self.k, self.generator.len() / self.k);
        let helpers: Vec<usize> = (0..n).filter(|role| !lost.contains(role)).take(k).collect();
        if helpers.len() < k || lost.is_empty() || lost.iter().any(|role| *role >= n) {
            return Err(PeerError::Undecodable);
        }
        let mut matrix: Vec<u8> = helpers.iter().flat_map(|role| self.row(*role)).copied().collect();
        let mut inverse = vec![0; k * k];
        // SAFETY: both are k by k.
        if unsafe { gf_invert_matrix(matrix.as_mut_ptr(), inverse.as_mut_ptr(), int(k)) } != 0 {
            return Err(PeerError::Undecodable);
        }
        let entry = |role: usize, column: usize| {
            // SAFETY: a pure function of two bytes.
            let product = |i: usize| unsafe { gf_mul(self.row(role)[i], inverse[i * k + column]) };
            (0..k).fold(0, |sum, i| sum ^ product(i))
        };
        let rows: Vec<u8> =
            lost.iter().flat_map(|role| (0..k).map(move |column| entry(*role, column))).collect();
        Ok((Combination::new(k, &rows), helpers))
    }

    fn row(&self, role: usize) -> &[u8] {
        &self.generator[role * self.k..][..self.k]
    }
}

impl Peer for IsaL {
    fn name(&self) -> &'static str {
        NAME
    }

    fn rows(&self) -> Vec<u8> {
        self.generator[self.k * self.k..].to_vec()
    }

    fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), PeerError> {
        self.encoder.run(data, parity)
    }

    fn decode(&self, lost: &[usize], chunks: &mut [&mut [u8]]) -> Result<(), PeerError> {
        if chunks.len() * self.k != self.generator.len() {
            return Err(PeerError::BadChunks("not as many chunks as roles"));
        }
        let (decoder, helpers) = self.decoder(lost)?;
        let mut slots: Vec<Option<&mut [u8]>> = chunks.iter_mut().map(|chunk| Some(&mut **chunk)).collect();
        let mut outputs = Vec::new();
        for role in lost {
            outputs.push(slots[*role].take().ok_or(PeerError::BadChunks("a role is listed twice"))?);
        }
        let sources: Vec<&[u8]> = helpers.iter().filter_map(|role| slots[*role].as_deref()).collect();
        decoder.run(&sources, &mut outputs)
    }
}

/// A count or length that was checked.
fn int(value: usize) -> c_int {
    c_int::try_from(value).expect("checked against the bounds of a code, or as a length")
}
