//! A transport in memory, for tests of those who use the seam. It does what TCP does not and others may: it changes the bytes on their
//! way, takes a record even where the pipe is full, and holds it until there is room.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;

use super::{Reader, Writer};

/// Most bytes that are taken at a time.
const RECORD_BYTES: usize = 100;
/// What bytes are changed with on their way.
const SEAL: u8 = 0x5a;

/// One direction.
#[derive(Debug)]
struct Pipe {
    bytes: VecDeque<u8>,
    room: usize,
    has_ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

type Shared = Arc<Mutex<Pipe>>;

#[derive(Debug)]
pub(super) struct MemoryReader(Shared);

#[derive(Debug)]
pub(super) struct MemoryWriter {
    pipe: Shared,
    held: Mutex<VecDeque<u8>>,
}

/// The two ends of a connection whose pipes take `room` bytes.
pub(crate) fn in_memory(room: usize) -> [(Reader, Writer); 2] {
    let [one, other] = [(); 2].map(|()| {
        let pipe = Pipe { bytes: VecDeque::new(), room, has_ended: false, reader: None, writer: None };
        Arc::new(Mutex::new(pipe))
    });
    [(&one, &other), (&other, &one)].map(|(from, to)| {
        let writer = MemoryWriter { pipe: Arc::clone(to), held: Mutex::default() };
        (Reader::of_memory(MemoryReader(Arc::clone(from))), Writer::of_memory(writer))
    })
}

impl MemoryReader {
    pub(super) fn poll_read(&mut self, into: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut pipe = lock(&self.0);
        if into.len() == into.capacity() {
            into.reserve(RECORD_BYTES);
        }
        let len = pipe.bytes.len().min(into.capacity() - into.len());
        into.extend(pipe.bytes.drain(..len).map(|byte| byte ^ SEAL));
        if len == 0 && !pipe.has_ended {
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        pipe.writer.take().inspect(Waker::wake_by_ref);
        Poll::Ready(Ok(len))
    }
}

impl MemoryWriter {
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.pass_on();
        if self.held() > 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = bytes.len().min(RECORD_BYTES);
        lock(&self.held).extend(bytes[..len].iter().map(|byte| byte ^ SEAL));
        self.pass_on();
        Ok(len)
    }

    pub(super) fn held(&self) -> usize {
        lock(&self.held).len()
    }

    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pass_on();
        if self.held() == 0 {
            return Poll::Ready(Ok(()));
        }
        lock(&self.pipe).writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// As far as there is room.
    fn pass_on(&self) {
        let (mut pipe, mut held) = (lock(&self.pipe), lock(&self.held));
        let len = held.len().min(pipe.room - pipe.bytes.len());
        pipe.bytes.extend(held.drain(..len));
        if len > 0 {
            pipe.reader.take().inspect(Waker::wake_by_ref);
        }
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        let mut pipe = lock(&self.pipe);
        pipe.has_ended = true;
        pipe.reader.take().inspect(Waker::wake_by_ref);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap()
}
