//! Memory into which a value is received: the caller's, or the library's own.
//!
//! Bytes are received into any part of it while their request waits (`gestalt::shell`), and are taken for the value from its start on, in order.
//! Where they lie already, none is copied.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::slice;

use bytes::buf::UninitSlice;
use bytes::{BufMut, Bytes};

use crate::codes::Failure;
use crate::memory::check;

/// See the module.
#[derive(Debug)]
pub(crate) struct Room {
    start: *mut u8,
    len: usize,
    /// So many bytes from the start on are the value's.
    filled: usize,
    gap: Gap,
    /// Where it is the library's own.
    own: Option<Vec<u8>>,
}

// SAFETY: only its sink writes to it, and the caller leaves it alone until the request is over.
unsafe impl Send for Room {}

impl Room {
    /// # Safety
    /// `start` is null or has `len` bytes, which are the request's until it is over.
    pub(crate) unsafe fn at(start: *mut c_void, len: usize) -> Result<Self, Failure> {
        check(start, len, "the buffer")?;
        Ok(Self::of(start.cast(), len, None))
    }

    /// One of the library's; none if there is no memory for it.
    pub(crate) fn own(len: usize) -> Option<Self> {
        let mut own = Vec::new();
        own.try_reserve_exact(len).ok()?;
        Some(Self::of(own.as_mut_ptr(), len, Some(own)))
    }

    fn of(start: *mut u8, len: usize, own: Option<Vec<u8>>) -> Self {
        Self { start, len, filled: 0, gap: Gap { start, len: 0 }, own }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The part of it from `at` on, of `len` bytes; none if it has none such.
    pub(crate) fn gap(&mut self, at: u64, len: usize) -> Option<&mut Gap> {
        let at = usize::try_from(at).ok()?;
        at.checked_add(len).filter(|end| *end <= self.len)?;
        self.gap = Gap { start: self.start.wrapping_add(at), len };
        Some(&mut self.gap)
    }

    /// What has been received there.
    pub(crate) fn view(&self, at: u64, len: usize) -> Bytes {
        let Some(at) =
            usize::try_from(at).ok().filter(|at| at.checked_add(len).is_some_and(|end| end <= self.len))
        else {
            return Bytes::new();
        };
        Bytes::from_owner(View { start: self.start.wrapping_add(at), len })
    }

    /// The next bytes of the value; what there is room for.
    pub(crate) fn fill(&mut self, bytes: &Bytes) {
        let len = bytes.len().min(self.len - self.filled);
        let to = self.start.wrapping_add(self.filled);
        if !ptr::eq(to, bytes.as_ptr()) {
            // SAFETY: within the buffer. It may be bytes of another place of it.
            unsafe { ptr::copy(bytes.as_ptr(), to, len) };
        }
        self.filled += len;
    }

    /// Where the value is, if that is the caller's: as an address, and so many bytes of it. Else the value.
    pub(crate) fn finish(self) -> Result<(usize, usize), Bytes> {
        let Some(mut own) = self.own else { return Ok((self.start as usize, self.filled)) };
        // SAFETY: so many have been written, and there is room for them.
        unsafe { own.set_len(self.filled) };
        Err(own.into())
    }
}

/// A part of it that is about to be received.
#[derive(Debug)]
pub(crate) struct Gap {
    start: *mut u8,
    len: usize,
}

// SAFETY: as for `Room`, of which it is a part.
unsafe impl Send for Gap {}

// SAFETY: there are `len` bytes from `start` on, which are the request's: `Room::gap` has looked, and the rest is the caller's. Nobody looks
// at them before all are there.
unsafe impl BufMut for Gap {
    fn remaining_mut(&self) -> usize {
        self.len
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        assert!(count <= self.len, "{count} bytes in a place of {}", self.len);
        self.start = self.start.wrapping_add(count);
        self.len -= count;
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        // SAFETY: see above.
        unsafe { UninitSlice::from_raw_parts_mut(self.start, self.len) }
    }
}

/// Bytes that have been received.
struct View {
    start: *const u8,
    len: usize,
}

// SAFETY: they are read only, while nobody writes to them.
unsafe impl Send for View {}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: they have been written, and lie there until the request is over; then nobody looks at them any more: the core keeps nothing
        // of a request that is over, and before that they are received anew only where it says so, which it does not of a cell that it has.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(room: &mut Room, at: u64, bytes: &[u8]) -> Bytes {
        room.gap(at, bytes.len()).unwrap().put_slice(bytes);
        room.view(at, bytes.len())
    }

    #[test]
    fn what_lies_where_it_belongs_is_not_copied_and_what_lies_elsewhere_is() {
        let mut buffer = [0; 10];
        // SAFETY: it has so many bytes, and is used by nobody else meanwhile.
        let mut room = unsafe { Room::at(buffer.as_mut_ptr().cast(), buffer.len()) }.unwrap();
        let behind = receive(&mut room, 4, b"efgh");
        let before = receive(&mut room, 0, b"abcd");
        room.fill(&before);
        room.fill(&behind);
        room.fill(&Bytes::from_static(b"ij, and more than there is room for"));
        assert_eq!(room.finish().unwrap().1, 10);
        assert_eq!(&buffer, b"abcdefghij");
    }

    #[test]
    fn bytes_that_belong_to_another_place_than_they_came_to_are_moved() {
        let mut buffer = [0; 6];
        // SAFETY: as above.
        let mut room = unsafe { Room::at(buffer.as_mut_ptr().cast(), buffer.len()) }.unwrap();
        let other = receive(&mut room, 2, b"abcd");
        room.fill(&other);
        assert_eq!(room.finish().unwrap().1, 4);
        assert_eq!(&buffer, b"abcdcd");
    }

    #[test]
    fn nothing_is_received_beyond_the_ends_of_a_buffer() {
        let mut buffer = [0; 4];
        // SAFETY: as above.
        let mut room = unsafe { Room::at(buffer.as_mut_ptr().cast(), buffer.len()) }.unwrap();
        for (at, len) in [(0, 5), (4, 1), (5, 0), (u64::MAX, 1), (1, usize::MAX)] {
            assert!(room.gap(at, len).is_none() && room.view(at, len).is_empty());
        }
        let mut place: &mut dyn BufMut = room.gap(1, 2).unwrap();
        assert_eq!(place.remaining_mut(), 2);
        (&mut place).limit(1).put_slice(b"x");
        assert_eq!((place.remaining_mut(), buffer), (1, [0, b'x', 0, 0]));
    }

    #[test]
    fn a_value_in_memory_of_the_library_is_that_memory() {
        let mut room = Room::own(8).unwrap();
        let start = room.start;
        let bytes = receive(&mut room, 0, b"abcdefgh");
        room.fill(&bytes);
        drop(bytes);
        let value = room.finish().unwrap_err();
        assert_eq!((&value[..], value.as_ptr()), (&b"abcdefgh"[..], start.cast_const()));
        assert!(Room::own(usize::MAX).is_none());
    }
}
