//! Buffers that a worker's connections share: an idle connection holds none.

use std::cell::RefCell;

use bytes::BytesMut;

use crate::limits::{BUFFERS_POOLED, CLIENT_BUFFER_KEPT_BYTES};

/// Buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    input: RefCell<Vec<BytesMut>>,
    output: RefCell<Vec<Vec<u8>>>,
}

impl Pool {
    /// Gives `input` a buffer if it is empty.
    pub(crate) fn lend_input(&self, input: &mut BytesMut) {
        if input.is_empty()
            && let Some(buffer) = self.input.borrow_mut().pop()
        {
            *input = buffer;
        }
    }

    /// Memory of the buffers that nobody uses.
    pub(crate) fn memory_bytes(&self) -> usize {
        let input: usize = self.input.borrow().iter().map(BytesMut::capacity).sum();
        let output: usize = self.output.borrow().iter().map(Vec::capacity).sum();
        input + output
    }

    /// Takes `input`'s buffer back if it is empty.
    pub(crate) fn return_input(&self, input: &mut BytesMut) {
        // One without memory would be lent in the place of one with.
        if !input.is_empty() || input.capacity() == 0 {
            return;
        }
        let buffer = std::mem::take(input);
        let mut pool = self.input.borrow_mut();
        // Without both bounds one burst, or one long value, would keep its memory for ever.
        if pool.len() < BUFFERS_POOLED && buffer.capacity() <= CLIENT_BUFFER_KEPT_BYTES {
            pool.push(buffer);
        }
    }

    /// Gives `output` a buffer if it has none.
    pub(crate) fn lend_output(&self, output: &mut Vec<u8>) {
        if output.capacity() == 0
            && let Some(buffer) = self.output.borrow_mut().pop()
        {
            *output = buffer;
        }
    }

    /// Takes `output`'s buffer back if it is empty.
    pub(crate) fn return_output(&self, output: &mut Vec<u8>) {
        // Without memory it is none: in the pool it would take the place of a real one.
        if !output.is_empty() || output.capacity() == 0 {
            return;
        }
        let buffer = std::mem::take(output);
        let mut pool = self.output.borrow_mut();
        if pool.len() < BUFFERS_POOLED && buffer.capacity() <= CLIENT_BUFFER_KEPT_BYTES {
            pool.push(buffer);
        }
    }
}

/// How far a buffer may be ahead of what has come: bytes for each that is there. With one for one, it would be copied three times as often.
const AHEAD: usize = 3;

/// Makes room for a read: a buffer of `chunk` bytes in all, or more if `wanted` are known to come, but never more than
/// [`AHEAD`] of what has come already: memory is not reserved on somebody's word.
pub(crate) fn make_room(buffer: &mut BytesMut, wanted: usize, chunk: usize) {
    // The lower bound keeps a buffer that is nearly full from being read into a few bytes at a time.
    let bounded = wanted.clamp(chunk / 4, chunk.max(buffer.len() * AHEAD));
    if buffer.capacity() - buffer.len() < bounded {
        // No more than fills it up: so the memory before these bytes, once nobody has it any more, serves again.
        buffer.reserve(bounded.max(chunk.saturating_sub(buffer.len())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_length_reserves_no_more_than_has_come() {
        let mut buffer = BytesMut::new();
        make_room(&mut buffer, 1 << 30, 1024);
        assert!((1024..10_000).contains(&buffer.capacity()));
        buffer.extend_from_slice(&[0; 5000]);
        make_room(&mut buffer, 1 << 30, 1024);
        assert!((20_000..30_000).contains(&buffer.capacity()), "{}", buffer.capacity());
    }

    #[test]
    fn memory_of_messages_that_are_gone_serves_again() {
        let mut buffer = BytesMut::new();
        make_room(&mut buffer, 1, 1024);
        let (at, len) = (buffer.as_ptr(), buffer.capacity());
        for _ in 0..10 {
            buffer.resize(len, 7);
            drop(buffer.split_to(len - 100).freeze());
            make_room(&mut buffer, 200, 1024);
            assert_eq!((buffer.as_ptr(), buffer.capacity(), buffer.len()), (at, len, 100));
        }
    }

    #[test]
    fn buffers_go_round() {
        let pool = Pool::default();
        let mut input = BytesMut::with_capacity(100);
        input.extend_from_slice(b"x");
        pool.return_input(&mut input);
        assert_eq!(&input[..], b"x");
        input.clear();
        pool.return_input(&mut input);
        assert_eq!(input.capacity(), 0);
        pool.lend_input(&mut input);
        assert!(input.capacity() >= 100);
    }

    #[test]
    fn a_buffer_without_memory_is_not_kept() {
        let pool = Pool::default();
        pool.return_input(&mut BytesMut::with_capacity(100));
        pool.return_input(&mut BytesMut::new());
        let mut input = BytesMut::new();
        pool.lend_input(&mut input);
        assert!(input.capacity() >= 100);
    }
}
