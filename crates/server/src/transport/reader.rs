//! The half of a connection that is read.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::OwnedReadHalf;

/// See the module.
#[derive(Debug)]
pub(crate) struct Reader(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(OwnedReadHalf),
    #[cfg(test)]
    Memory(super::memory::MemoryReader),
}

impl Reader {
    pub(super) fn of_tcp(half: OwnedReadHalf) -> Self {
        Self(Kind::Tcp(half))
    }

    #[cfg(test)]
    pub(super) fn of_memory(half: super::memory::MemoryReader) -> Self {
        Self(Kind::Memory(half))
    }

    /// Puts what has come behind what `into` holds, as far as its memory goes, or a little if it has none left: how many bytes, 0 at the
    /// end.
    #[inline]
    pub(crate) fn poll_read(&mut self, into: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            // One call of the system. The future has no state beside what it borrows, so nothing is lost with it.
            Kind::Tcp(half) => pin!(half.read_buf(into)).poll(cx),
            #[cfg(test)]
            Kind::Memory(half) => half.poll_read(into, cx),
        }
    }

    /// The same for those who have nothing else to wait for. Nothing is lost if the call is given up.
    pub(crate) async fn read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(into, cx)).await
    }
}
