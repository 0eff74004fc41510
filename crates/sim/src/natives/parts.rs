//! A value that a client reads part by part, each with a request of its own: together they are the value of one version.

use bytes::Bytes;
use client_core::{Op, Operation};
use native::{Meta, Range};
use types::Time;

/// Of so many reads one is made so.
const ONE_IN: u32 = 3;
/// How long the first part is, by calls.
const FIRST: [u64; 5] = [1, 20, 70, 1_000, 70_000];
/// Each other one is so much of the whole.
const SHARE: u64 = 3;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    key: Bytes,
    first: u64,
    deadline: Time,
    /// Of the value whose beginning has come.
    version: Option<u64>,
}

/// What is to be done when a part has come.
pub(crate) enum Next {
    /// That was the last one.
    Over,
    /// Another one is asked for, after what has come.
    More(Operation),
    /// The value is another one by now.
    Anew(Operation),
    /// There is no time left.
    Late,
}

impl Parts {
    /// Of a call that reads, if it is one of those.
    pub(crate) fn of(call: u32, op: &Op, key: &Bytes, deadline: Time) -> Option<Self> {
        let reads = matches!(op, Op::Get { range: None, touch: None });
        let first = FIRST[(call / ONE_IN) as usize % FIRST.len()];
        (reads && call % ONE_IN == 1).then(|| Self { key: key.clone(), first, deadline, version: None })
    }

    /// What is asked first.
    pub(crate) fn first(&self) -> Op {
        Op::Get { range: Some(Range { start: 0, len: self.first }), touch: None }
    }

    /// A part has come, of a value that was found like this; so many bytes of it are here now.
    pub(crate) fn next(&mut self, now: Time, meta: &Meta, come: u64) -> Next {
        let is_same = *self.version.get_or_insert(meta.version) == meta.version;
        if is_same && come >= meta.value_len {
            return Next::Over;
        }
        if now >= self.deadline {
            return Next::Late;
        }
        let left_us = self.deadline.since(now);
        let op = if is_same {
            let range = Range { start: come, len: meta.value_len.div_ceil(SHARE) };
            Op::Get { range: Some(range), touch: None }
        } else {
            self.version = None;
            self.first()
        };
        let next = Operation { key: self.key.clone(), op, timeout_us: Some(left_us) };
        if is_same { Next::More(next) } else { Next::Anew(next) }
    }
}
