//! From a caller's pointers to slices. This is where C's word is taken for what cannot be checked: that so many bytes are there.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::slice;

use codec::MAX_ROLES;

use crate::coder::roles;
use crate::status::Failure;

/// The text at `text`.
///
/// # Safety
/// `text` is null or ends with a zero byte, and nobody changes it for as long as the result is used.
pub unsafe fn text<'a>(text: *const c_char, what: &'static str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::Null(what));
    }
    // SAFETY: not null; the rest is the caller's.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| Failure::Name(format!("{what} is not text")))
}

/// `count` entries at `entries`. No code needs more than it has roles.
///
/// # Safety
/// `entries` is null or there are so many, and nobody changes them for as long as the result is used.
pub unsafe fn list<'a, T>(entries: *const T, count: usize, what: &'static str) -> Result<&'a [T], Failure> {
    if count > MAX_ROLES {
        return Err(Failure::Length(format!("{what} has {count} entries, and no code has so many roles")));
    }
    if count == 0 {
        return Ok(&[]);
    }
    if entries.is_null() {
        return Err(Failure::Null(what));
    }
    // SAFETY: not null; the rest is the caller's.
    Ok(unsafe { slice::from_raw_parts(entries, count) })
}

/// The roles of a list.
///
/// # Safety
/// As [`list`].
pub unsafe fn role_list(
    entries: *const u32,
    count: usize,
    what: &'static str,
) -> Result<Vec<usize>, Failure> {
    // SAFETY: the caller's.
    Ok(unsafe { list(entries, count, what) }?.iter().map(|role| roles(*role)).collect())
}

/// The buffers of one call: they are of one length, and outputs share no byte with anything.
pub struct Buffers {
    len: usize,
    /// Where each begins, and whether it is written.
    starts: Vec<(usize, bool)>,
}

impl Buffers {
    /// # Errors
    /// `Length` for more bytes than memory has.
    pub fn new(len: usize) -> Result<Self, Failure> {
        if len == 0 || isize::try_from(len).is_err() {
            return Err(Failure::Length(format!("chunks of {len} bytes")));
        }
        Ok(Self { len, starts: Vec::new() })
    }

    /// Takes buffers that are read.
    pub fn read(&mut self, buffers: &[*const u8]) -> Result<(), Failure> {
        buffers.iter().try_for_each(|buffer| self.take(*buffer, false))
    }

    /// Takes buffers that are written.
    pub fn written(&mut self, buffers: &[*mut u8]) -> Result<(), Failure> {
        buffers.iter().try_for_each(|buffer| self.take(buffer.cast_const(), true))
    }

    fn take(&mut self, buffer: *const u8, is_written: bool) -> Result<(), Failure> {
        if buffer.is_null() {
            return Err(Failure::Null("a chunk"));
        }
        if buffer.addr().checked_add(self.len).is_none() {
            return Err(Failure::Length(format!("chunks of {} bytes", self.len)));
        }
        self.starts.push((buffer.addr(), is_written));
        Ok(())
    }

    /// # Errors
    /// `Overlap` if an output shares bytes with anything.
    pub fn check(mut self) -> Result<(), Failure> {
        self.starts.sort_unstable();
        let (mut read_to, mut written_to) = (0, 0);
        for (start, is_written) in self.starts {
            if start < written_to || (is_written && start < read_to) {
                return Err(Failure::Overlap);
            }
            let end = start + self.len;
            *(if is_written { &mut written_to } else { &mut read_to }) = end;
        }
        Ok(())
    }
}

/// Slices of what is read.
///
/// # Safety
/// Each pointer is to `len` bytes that nobody writes for as long as the result is used; [`Buffers`] has taken it.
pub unsafe fn sources<'a>(buffers: &[*const u8], len: usize) -> Vec<&'a [u8]> {
    // SAFETY: the caller's; `Buffers` has refused null and lengths beyond `isize::MAX`.
    buffers.iter().map(|buffer| unsafe { slice::from_raw_parts(*buffer, len) }).collect()
}

/// Slices of what is written.
///
/// # Safety
/// Each pointer is to `len` bytes that nobody else uses for as long as the result is used; [`Buffers::check`] has passed.
pub unsafe fn outputs<'a>(buffers: &[*mut u8], len: usize) -> Vec<&'a mut [u8]> {
    // SAFETY: as above, and they do not overlap.
    buffers.iter().map(|buffer| unsafe { slice::from_raw_parts_mut(*buffer, len) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(len: usize, read: &[usize], written: &[usize]) -> Result<(), Failure> {
        let mut buffers = Buffers::new(len)?;
        let at = |start: &usize| std::ptr::without_provenance_mut::<u8>(*start);
        buffers.read(&read.iter().map(|start| at(start).cast_const()).collect::<Vec<_>>())?;
        buffers.written(&written.iter().map(at).collect::<Vec<_>>())?;
        buffers.check()
    }

    #[test]
    fn outputs_share_no_byte_with_anything() {
        assert!(checked(8, &[8, 8, 12], &[20, 28]).is_ok());
        for (read, written) in [(&[8, 30][..], &[15][..]), (&[16], &[9]), (&[], &[8, 8]), (&[], &[8, 12])] {
            assert!(matches!(checked(8, read, written), Err(Failure::Overlap)), "{read:?} {written:?}");
        }
        // A long way behind: the source that ends last is not the one that begins last.
        assert!(checked(8, &[100, 8, 50], &[16, 58, 92]).is_ok());
    }

    #[test]
    fn lengths_that_no_memory_has_are_refused() {
        for (len, start) in [(0, 8), (usize::MAX, 8), (16, usize::MAX - 3)] {
            assert!(matches!(checked(len, &[start], &[]), Err(Failure::Length(_))), "{len}");
        }
        assert!(matches!(checked(8, &[0], &[]), Err(Failure::Null(_))));
    }
}
