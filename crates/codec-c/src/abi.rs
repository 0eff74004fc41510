//! The functions that C calls. What they promise is said in `include/gestalt_codec.h`, which a test compares with these.
//!
//! Each function has the same three parts: pointers become slices, the coder works, the result becomes a status. So there is one
//! place for each kind of wrong: `buffers` for pointers and lengths, the codec for roles and counts.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use codec::CodeError;

use crate::buffers::{self, Buffers, list, role_list};
use crate::coder::{ALIGNMENT, Coder, roles};
use crate::status::{Failure, conclude, last_sentence};

/// Changes whenever a function of the interface does.
pub const GESTALT_CODEC_ABI: u32 = 1;

/// A panic is a status too, where panics unwind.
fn guard(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    conclude(catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Failure::Internal)))
}

/// The coder behind a pointer.
///
/// # Safety
/// `codec` is null or was made here and not freed yet.
unsafe fn coder<'a>(codec: *const Coder) -> Result<&'a Coder, Failure> {
    // SAFETY: the caller's.
    unsafe { codec.as_ref() }.ok_or(Failure::Null("codec"))
}

/// Writes a result.
///
/// # Safety
/// `place` is null or may be written.
unsafe fn put<T>(place: *mut T, value: T, what: &'static str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(Failure::Null(what));
    }
    // SAFETY: not null; the rest is the caller's.
    unsafe { place.write(value) };
    Ok(())
}

/// The interface's version: `GESTALT_CODEC_ABI` of the header that the library was built with.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_codec_abi() -> u32 {
    GESTALT_CODEC_ABI
}

/// The library's version, as text.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_codec_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What was wrong with this thread's last call that failed.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_codec_last_error() -> *const c_char {
    last_sentence()
}

/// Makes a Reed-Solomon code of a family.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_new(
    family: *const c_char,
    k: u32,
    m: u32,
    codec: *mut *mut Coder,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let family = unsafe { buffers::text(family, "the family") }?;
        // SAFETY: the caller's.
        unsafe { give(codec, || Coder::of_family(family, k, m)) }
    })
}

/// Makes the code of a scheme's name.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_new_scheme(scheme: *const c_char, codec: *mut *mut Coder) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let scheme = unsafe { buffers::text(scheme, "the scheme") }?;
        // SAFETY: the caller's.
        unsafe { give(codec, || Coder::of_scheme(scheme)) }
    })
}

/// Writes a new coder, or null.
///
/// # Safety
/// `codec` is null or may be written.
unsafe fn give(codec: *mut *mut Coder, make: impl FnOnce() -> Result<Coder, Failure>) -> Result<(), Failure> {
    // SAFETY: the caller's.
    unsafe { put(codec, std::ptr::null_mut(), "where the codec goes") }?;
    let coder = Box::into_raw(Box::new(make()?));
    // SAFETY: it was written to just now.
    unsafe { put(codec, coder, "where the codec goes") }
}

/// Frees a codec.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_free(codec: *mut Coder) {
    if !codec.is_null() {
        // SAFETY: made by `give`, and the caller uses it no more.
        drop(unsafe { Box::from_raw(codec) });
    }
}

/// Says where to compute from now on.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_set_place(codec: *mut Coder, place: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let place = unsafe { buffers::text(place, "the place") }?.parse()?;
        // SAFETY: the caller's; nobody else uses the codec during this call.
        unsafe { codec.as_mut() }.ok_or(Failure::Null("codec"))?.set_place(place);
        Ok(())
    })
}

/// How many operations a card has done.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_card_operations(codec: *const Coder) -> u64 {
    // SAFETY: the caller's.
    unsafe { coder(codec) }.map_or(0, Coder::on_card)
}

/// Data roles.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_k(codec: *const Coder) -> u32 {
    // SAFETY: the caller's.
    unsafe { coder(codec) }.map_or(0, |coder| small(coder.code().k()))
}

/// Parity roles.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_m(codec: *const Coder) -> u32 {
    // SAFETY: the caller's.
    unsafe { coder(codec) }.map_or(0, |coder| small(coder.code().m()))
}

/// A number of roles.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

/// One coefficient of the matrix.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_coefficient(
    codec: *const Coder,
    parity: u32,
    data: u32,
    coefficient: *mut u8,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let code = unsafe { coder(codec) }?.code();
        let (parity, data) = (roles(parity), roles(data));
        for (role, limit) in [(parity, code.m()), (data, code.k())] {
            if role >= limit {
                return Err(CodeError::NoSuchRole { role, limit }.into());
            }
        }
        // SAFETY: the caller's.
        unsafe { put(coefficient, code.coefficient(parity, data), "where the coefficient goes") }
    })
}

/// The multiple of bytes that chunks are best padded to.
#[unsafe(no_mangle)]
pub extern "C" fn gestalt_codec_alignment() -> usize {
    ALIGNMENT
}

/// The length of an object's chunks.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_chunk_size(
    codec: *const Coder,
    object_len: usize,
    alignment: usize,
    chunk_len: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let len = unsafe { coder(codec) }?.chunk_len(object_len, alignment)?;
        // SAFETY: the caller's.
        unsafe { put(chunk_len, len, "where the length goes") }
    })
}

/// Computes all parities.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_encode(
    codec: *const Coder,
    data: *const *const u8,
    parity: *const *mut u8,
    chunk_len: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        let coder = unsafe { coder(codec) }?;
        let data = unsafe { list(data, coder.code().k(), "the list of data chunks") }?;
        let parity = unsafe { list(parity, coder.code().m(), "the list of parity chunks") }?;
        check(chunk_len, data, parity)?;
        let data = unsafe { buffers::sources(data, chunk_len) };
        let mut parity = unsafe { buffers::outputs(parity, chunk_len) };
        coder.encode(&data, &mut parity)
    })
}

/// Computes some chunks from others.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_decode(
    codec: *const Coder,
    present: *const u32,
    present_chunks: *const *const u8,
    present_count: usize,
    wanted: *const u32,
    wanted_chunks: *const *mut u8,
    wanted_count: usize,
    chunk_len: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        let coder = unsafe { coder(codec) }?;
        let present = unsafe { role_list(present, present_count, "the list of roles that are present") }?;
        let wanted = unsafe { role_list(wanted, wanted_count, "the list of roles that are wanted") }?;
        let sources = unsafe { list(present_chunks, present_count, "the list of chunks that are present") }?;
        let outputs = unsafe { list(wanted_chunks, wanted_count, "the list of chunks that are wanted") }?;
        check(chunk_len, sources, outputs)?;
        let sources = unsafe { buffers::sources(sources, chunk_len) };
        let outputs = unsafe { buffers::outputs(outputs, chunk_len) };
        let present: Vec<_> = present.into_iter().zip(sources).collect();
        let mut wanted: Vec<_> = wanted.into_iter().zip(outputs).collect();
        if wanted.is_empty() { Ok(()) } else { coder.decode(&present, &mut wanted) }
    })
}

/// Which chunks to read.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_minimum_to_decode(
    codec: *const Coder,
    wanted: *const u32,
    wanted_count: usize,
    available: *const u32,
    costs: *const u32,
    available_count: usize,
    minimum: *mut u32,
    minimum_count: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        let coder = unsafe { coder(codec) }?;
        let wanted = unsafe { role_list(wanted, wanted_count, "the list of roles that are wanted") }?;
        let available =
            unsafe { role_list(available, available_count, "the list of roles that are available") }?;
        let priced: Vec<(usize, u32)> = if costs.is_null() {
            available.into_iter().map(|role| (role, 1)).collect()
        } else {
            let costs = unsafe { list(costs, available_count, "the list of costs") }?;
            available.into_iter().zip(costs.iter().copied()).collect()
        };
        let reads = coder.reads(&priced, &wanted)?;
        unsafe { put(minimum_count, reads.len(), "where the count goes") }?;
        // There is room for all that are available: the reads are some of them.
        for (index, role) in reads.iter().enumerate() {
            unsafe { put(minimum.wrapping_add(index), small(*role), "where the minimum goes") }?;
        }
        Ok(())
    })
}

/// Any linear combinations.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_combine(
    sources_count: u32,
    outputs_count: u32,
    coefficients: *const u8,
    sources: *const *const u8,
    outputs: *const *mut u8,
    len: usize,
) -> c_int {
    guard(|| {
        let (k, rows) = (roles(sources_count), roles(outputs_count));
        // SAFETY: the caller's, here and below.
        let sources = unsafe { list(sources, k, "the list of sources") }?;
        let outputs = unsafe { list(outputs, rows, "the list of outputs") }?;
        check(len, sources, outputs)?;
        let mut matrix = Buffers::new(k * rows)?;
        matrix.read(&[coefficients])?;
        let coefficients = unsafe { buffers::sources(&[coefficients], k * rows) };
        let sources = unsafe { buffers::sources(sources, len) };
        let mut outputs = unsafe { buffers::outputs(outputs, len) };
        Ok(codec::kernel().combine(coefficients[0], &sources, &mut outputs)?)
    })
}

/// The difference of two versions of some bytes.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_delta(
    old_bytes: *const u8,
    new_bytes: *const u8,
    delta: *mut u8,
    len: usize,
) -> c_int {
    guard(|| {
        check(len, &[old_bytes, new_bytes], &[delta])?;
        // SAFETY: the caller's, here and below; checked above.
        let sources = unsafe { buffers::sources(&[old_bytes, new_bytes], len) };
        let mut outputs = unsafe { buffers::outputs(&[delta], len) };
        Ok(codec::kernel().combine(&[1, 1], &sources, &mut outputs)?)
    })
}

/// Brings parities up to date.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gestalt_codec_apply_delta(
    codec: *const Coder,
    data_role: u32,
    delta: *const u8,
    parity: *const *mut u8,
    len: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's, here and below.
        let coder = unsafe { coder(codec) }?;
        let parity = unsafe { list(parity, coder.code().m(), "the list of parity chunks") }?;
        check(len, &[delta], parity)?;
        let delta = unsafe { buffers::sources(&[delta], len) };
        let mut parity = unsafe { buffers::outputs(parity, len) };
        coder.apply_delta(data_role, delta[0], &mut parity)
    })
}

/// That these can be the buffers of one call.
fn check(len: usize, read: &[*const u8], written: &[*mut u8]) -> Result<(), Failure> {
    let mut buffers = Buffers::new(len)?;
    buffers.read(read)?;
    buffers.written(written)?;
    buffers.check()
}
