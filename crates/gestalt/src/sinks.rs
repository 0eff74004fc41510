//! Who waits for what in this crate.

use bytes::{Bytes, BytesMut};
use client_core::{Done, Error};
use native::{Answer, Meta};
use tokio::sync::oneshot;

use crate::shell::Sink;
use crate::value::Value;

/// Waits for an answer without bytes.
pub(crate) struct Answered(pub oneshot::Sender<Result<Answer, Error>>);

impl Sink for Answered {
    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let answer = result.map(|done| match done {
            Done::Answer(answer) => answer,
            // No bytes were asked for.
            Done::Value | Done::Keys(..) => Answer::Just(native::Code::Touched),
        });
        // Who has asked may have gone.
        let _ = self.0.send(answer);
    }
}

/// Waits for a whole value.
pub(crate) struct Whole {
    pub sender: oneshot::Sender<Result<Option<Value>, Error>>,
    pub meta: Option<Meta>,
    /// How long it is said to be.
    pub len: u64,
    pub bytes: Bytes,
    pub rest: BytesMut,
}

/// Longest value for which memory is taken before it has come.
const LONGEST_AT_ONCE: u64 = 64 << 20;

impl Whole {
    pub(crate) fn new(sender: oneshot::Sender<Result<Option<Value>, Error>>) -> Self {
        Self { sender, meta: None, len: 0, bytes: Bytes::new(), rest: BytesMut::new() }
    }
}

impl Sink for Whole {
    fn head(&mut self, meta: &Meta, len: u64) -> bool {
        (self.meta, self.len) = (Some(*meta), len);
        true
    }

    fn data(&mut self, bytes: Bytes) -> usize {
        let len = bytes.len();
        if self.bytes.is_empty() {
            // A value that comes in one piece is not copied.
            self.bytes = bytes;
        } else {
            if self.rest.is_empty() {
                self.rest.reserve(self.len.min(LONGEST_AT_ONCE) as usize);
                self.rest.extend_from_slice(&self.bytes);
            }
            self.rest.extend_from_slice(&bytes);
        }
        len
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let Self { sender, meta, bytes, rest, .. } = *self;
        let value = result.map(|_| {
            let bytes = if rest.is_empty() { bytes } else { rest.freeze() };
            meta.map(|meta| Value { meta, bytes })
        });
        let _ = sender.send(value);
    }
}
