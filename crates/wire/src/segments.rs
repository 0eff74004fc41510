//! Bytes that are to be sent. Most are written one after the other; long ones stay where they are, shared by all streams that
//! send them, and go from there into the socket.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};
use smallvec::SmallVec;

/// From this length on bytes are shared rather than copied: below, one more slice costs the system as much.
pub const SHARED_FROM: usize = 4096;
/// Slices of one write.
const MAX_SLICES: usize = 64;

/// A queue of bytes.
#[derive(Debug, Default)]
pub struct Segments {
    /// What was copied. Of it, `sent` have been sent.
    copied: Vec<u8>,
    sent: usize,
    /// In the order of their places.
    shared: VecDeque<Shared>,
    shared_bytes: usize,
}

/// Bytes that are sent before the copied ones from `place` on.
#[derive(Debug)]
struct Shared {
    place: usize,
    bytes: Bytes,
}

impl Segments {
    /// How many bytes are to be sent.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.copied.len() - self.sent + self.shared_bytes
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that this queue holds alone, in bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.copied.capacity()
    }

    /// Bytes that are shared with others.
    #[must_use]
    pub fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// Where what was copied ends.
    #[must_use]
    #[inline]
    pub fn end(&self) -> usize {
        self.copied.len()
    }

    /// How many bytes are to be sent before what was copied from `end` on.
    #[must_use]
    #[inline]
    pub fn len_until(&self, end: usize) -> usize {
        debug_assert!(self.shared.back().is_none_or(|last| last.place <= end), "what is shared is sent");
        end - self.sent + self.shared_bytes
    }

    /// They, if nothing of them is shared.
    #[must_use]
    #[inline]
    pub fn text_until(&self, end: usize) -> Option<&[u8]> {
        self.shared.is_empty().then(|| &self.copied[self.sent..end])
    }

    /// The first bytes, as many as fit into one write.
    #[must_use]
    pub fn slices(&self) -> SmallVec<[IoSlice<'_>; 8]> {
        self.slices_until(self.copied.len())
    }

    /// Those of them that come before what was copied from `end` on.
    #[must_use]
    pub fn slices_until(&self, end: usize) -> SmallVec<[IoSlice<'_>; 8]> {
        let mut slices = SmallVec::new();
        let mut at = self.sent;
        // Each may have copied bytes before it, and some may follow the last one.
        for shared in self.shared.iter().take(MAX_SLICES / 2 - 1) {
            if at < shared.place {
                slices.push(IoSlice::new(&self.copied[at..shared.place]));
                at = shared.place;
            }
            slices.push(IoSlice::new(&shared.bytes));
        }
        let end = self.shared.get(MAX_SLICES / 2 - 1).map_or(end, |shared| shared.place);
        if at < end {
            slices.push(IoSlice::new(&self.copied[at..end]));
        }
        slices
    }

    /// `count` of the first bytes have been sent.
    pub fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let copied_until = self.shared.front().map_or(self.copied.len(), |shared| shared.place);
            if self.sent < copied_until {
                let part = count.min(copied_until - self.sent);
                self.sent += part;
                count -= part;
                continue;
            }
            let Some(first) = self.shared.front_mut() else { return };
            let part = count.min(first.bytes.len());
            first.bytes.advance(part);
            self.shared_bytes -= part;
            count -= part;
            if first.bytes.is_empty() {
                self.shared.pop_front();
            }
        }
    }

    /// Gives back what has been sent, and keeps no more than `kept_bytes` of memory if that is all: by how much places become less.
    #[inline]
    pub fn tidy(&mut self, kept_bytes: usize) -> usize {
        let left = self.copied.len() - self.sent;
        if self.is_empty() {
            self.copied.clear();
            self.copied.shrink_to(kept_bytes);
        // Only when less is to be moved than was sent: so no byte is moved more than once on the average.
        } else if self.sent > left {
            self.copied.drain(..self.sent);
            self.shared.iter_mut().for_each(|shared| shared.place -= self.sent);
        } else {
            return 0;
        }
        std::mem::take(&mut self.sent)
    }

    /// Where bytes are copied to, behind those that are there.
    #[inline]
    pub fn copied_mut(&mut self) -> &mut Vec<u8> {
        &mut self.copied
    }

    /// Sends `bytes` from where they are, before what is copied from `place` on. Those that were shared before are sent before.
    pub fn share(&mut self, place: usize, bytes: Bytes) {
        self.shared_bytes += bytes.len();
        self.shared.push_back(Shared { place, bytes });
    }
}
