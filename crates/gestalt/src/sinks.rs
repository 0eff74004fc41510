//! Who waits for what in this crate.

use bytes::buf::Limit;
use bytes::{BufMut, Bytes, BytesMut};
use client_core::{Done, Error, Landed};
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

/// Waits for a whole value. What comes at once is not copied; what comes in pieces is received behind each other in one buffer.
pub(crate) struct Whole {
    sender: oneshot::Sender<Result<Option<Value>, Error>>,
    meta: Option<Meta>,
    /// How long it is said to be.
    len: u64,
    /// Its first bytes, as long as there are no others.
    first: Bytes,
    /// All of them, and behind those perhaps what has been received of a frame that has not come to its end.
    all: Limit<BytesMut>,
    /// How many there are.
    come: usize,
}

/// Longest value for which memory is taken before it has come.
const LONGEST_AT_ONCE: u64 = 64 << 20;

impl Whole {
    pub(crate) fn new(sender: oneshot::Sender<Result<Option<Value>, Error>>) -> Self {
        let all = BytesMut::new().limit(0);
        Self { sender, meta: None, len: 0, first: Bytes::new(), all, come: 0 }
    }

    /// The buffer, with what has come and no more.
    fn begun(&mut self, len: u64) -> &mut BytesMut {
        let all = self.all.get_mut();
        if all.capacity() == 0 {
            all.reserve(len.min(LONGEST_AT_ONCE) as usize);
        }
        let first = std::mem::take(&mut self.first);
        if !first.is_empty() {
            all.clear();
            all.extend_from_slice(&first);
        }
        all.truncate(self.come);
        all
    }
}

impl Sink for Whole {
    fn head(&mut self, meta: &Meta, len: u64) -> bool {
        (self.meta, self.len) = (Some(*meta), len);
        true
    }

    fn room_for_pieces(&self) -> u64 {
        LONGEST_AT_ONCE
    }

    fn place(&mut self, all: u64, at: u64, len: usize) -> Option<&mut dyn BufMut> {
        let at = usize::try_from(at).ok().filter(|at| *at >= self.come)?;
        if self.all.get_ref().len() != at || at == 0 {
            // What was received behind the value's bytes belongs to a frame that has not come to its end.
            self.begun(all);
        }
        if self.all.get_ref().len() != at {
            return None;
        }
        self.all.set_limit(len);
        Some(&mut self.all)
    }

    fn view(&self, _at: u64, len: usize) -> Landed {
        Landed::Kept(len)
    }

    fn kept(&mut self, len: usize) {
        self.come += len;
    }

    fn data(&mut self, bytes: Bytes) -> usize {
        let len = bytes.len();
        if self.come == 0 && self.all.get_ref().is_empty() {
            self.first = bytes;
        } else {
            let all = self.len;
            self.begun(all).extend_from_slice(&bytes);
        }
        self.come += len;
        len
    }

    fn done(self: Box<Self>, result: Result<Done, Error>) {
        let Self { sender, meta, first, all, come, .. } = *self;
        let mut all = all.into_inner();
        all.truncate(come);
        let value = result.map(|_| {
            let bytes = if all.is_empty() { first } else { all.freeze() };
            meta.map(|meta| Value { meta, bytes })
        });
        let _ = sender.send(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame's value is received, in part if `cut` says so.
    fn receive(whole: &mut Whole, at: u64, bytes: &[u8], cut: usize) -> bool {
        let (now, later) = bytes.split_at(cut);
        for (at, part) in [(at, now), (at + cut as u64, later)] {
            let Some(place) = whole.place(20, at, bytes.len()) else { return false };
            place.put_slice(part);
        }
        true
    }

    fn whole() -> (Whole, oneshot::Receiver<Result<Option<Value>, Error>>) {
        let (sender, receiver) = oneshot::channel();
        let mut whole = Whole::new(sender);
        whole.head(&Meta::default(), 20);
        (whole, receiver)
    }

    fn ends_with(whole: Whole, mut receiver: oneshot::Receiver<Result<Option<Value>, Error>>, bytes: &[u8]) {
        Box::new(whole).done(Ok(Done::Value));
        let value = receiver.try_recv().expect("told").expect("no failure").expect("a value");
        assert_eq!(value.bytes, bytes);
    }

    #[test]
    fn pieces_are_received_behind_each_other_and_behind_what_came_otherwise() {
        let (mut whole, receiver) = whole();
        whole.data(Bytes::from_static(b"ab"));
        assert!(receive(&mut whole, 2, b"cdef", 1));
        whole.kept(4);
        whole.data(Bytes::from_static(b"gh"));
        assert!(receive(&mut whole, 8, b"ij", 2));
        whole.kept(2);
        ends_with(whole, receiver, b"abcdefghij");
    }

    #[test]
    fn a_frame_that_does_not_come_to_its_end_leaves_nothing() {
        for lands in [false, true] {
            let (mut whole, receiver) = whole();
            whole.data(Bytes::from_static(b"ab"));
            whole.place(20, 2, 4).expect("a place").put_slice(b"xyz");
            if lands {
                assert!(receive(&mut whole, 2, b"cd", 0));
                whole.kept(2);
            } else {
                whole.data(Bytes::from_static(b"cd"));
            }
            ends_with(whole, receiver, b"abcd");
        }
    }

    #[test]
    fn what_was_not_told_yet_leaves_no_place_behind_it() {
        let (mut whole, receiver) = whole();
        assert!(!receive(&mut whole, 2, b"xx", 0), "two bytes are on their way here");
        whole.data(Bytes::from_static(b"ab"));
        assert!(!receive(&mut whole, 1, b"xx", 0), "these have come");
        whole.data(Bytes::from_static(b"cd"));
        ends_with(whole, receiver, b"abcd");
    }
}
