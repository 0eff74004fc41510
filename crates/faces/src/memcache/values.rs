//! What becomes of the value of a storage command, by its length: that is known before its data block comes.

use types::MAX_STRIPED_ABOVE;
use types::op::{Key, Op, Request, Store, StoreMode, is_too_large};

use super::parsed::{Parsed, Pending, PendingKind};
use super::style::ReplyStyle;
use super::text::too_large;
use super::tokens::LONGEST_BLOCK;
use crate::face::{Streamed, ValueLimits};

impl ValueLimits {
    /// Longest data block whose end is looked for, in bytes.
    pub(super) fn longest_block(&self) -> usize {
        let longest = usize::try_from(self.longest).unwrap_or(usize::MAX);
        if self.streamed_above.is_some() { longest.max(LONGEST_BLOCK) } else { LONGEST_BLOCK }
    }

    /// Whether a value of `len` bytes is streamed, and not kept until all of it has come.
    #[inline]
    #[must_use]
    pub fn streams(&self, key: &Key, store: &Store, len: usize) -> bool {
        // Who takes no longer values than memcached has all of them whole, and refuses what it refuses: what is just too long under its key.
        let is_any_longer = self.longest > u64::from(MAX_STRIPED_ABOVE);
        let Some(above) = self.streamed_above.filter(|_| is_any_longer) else { return false };
        let is_long = len as u64 > u64::from(above) || is_too_large(key.len(), len, store.flags);
        // Bytes that are added to a value do not take its place.
        let is_whole = || !matches!(store.mode, StoreMode::Append | StoreMode::Prepend);
        is_long && len as u64 <= self.longest && is_whole()
    }
}

/// A storage command whose line is in order: its data block of `len` bytes comes next. A part of its caller, or else what nearly all
/// values are is copied on its way.
#[inline(always)]
pub(super) fn expect(
    limits: &ValueLimits,
    (key, store, reply): (Key, Store, ReplyStyle),
    len: usize,
    removes: bool,
) -> Parsed {
    if limits.streams(&key, &store, len) {
        return stream(key, store, reply, len);
    }
    if is_too_large(key.len(), len, store.flags) {
        return too_large(key, removes, len, reply);
    }
    let request = Box::new(Request::on(key, Op::Store(store)));
    Parsed::Await(Pending { what: PendingKind::Store(request, reply), len })
}

#[cold]
fn stream(key: Key, store: Store, reply: ReplyStyle, len: usize) -> Parsed {
    let request = Request::on(key, Op::Store(store));
    Parsed::Stream(Box::new(Streamed { request, style: reply, len: len as u64 }))
}
