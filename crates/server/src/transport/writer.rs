//! The half of a connection that is written.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::task::{Context, Poll};

use tokio::net::tcp::OwnedWriteHalf;

/// See the module. Dropping it ends this direction.
#[derive(Debug)]
pub(crate) struct Writer(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(OwnedWriteHalf),
    #[cfg(test)]
    Memory(super::memory::MemoryWriter),
}

impl Writer {
    pub(super) fn of_tcp(half: OwnedWriteHalf) -> Self {
        Self(Kind::Tcp(half))
    }

    #[cfg(test)]
    pub(super) fn of_memory(half: super::memory::MemoryWriter) -> Self {
        Self(Kind::Memory(half))
    }

    /// Takes what it can of `bytes` now: how much, `WouldBlock` if that is nothing.
    #[inline]
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(half) => half.try_write(bytes),
            #[cfg(test)]
            Kind::Memory(half) => half.try_write(bytes),
        }
    }

    /// The same for bytes that lie apart.
    #[inline]
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(half) => half.try_write_vectored(slices),
            #[cfg(test)]
            Kind::Memory(half) => half.try_write(slices.first().map_or(&[], |first| first)),
        }
    }

    /// Bytes that it has taken and the system has not. They leave while somebody asks whether it is ready.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        match &self.0 {
            Kind::Tcp(_) => 0,
            #[cfg(test)]
            Kind::Memory(half) => half.held(),
        }
    }

    /// Gives the system what is held. Ready when nothing is any more and it takes more.
    #[inline]
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.0 {
            Kind::Tcp(half) => half.as_ref().poll_write_ready(cx),
            #[cfg(test)]
            Kind::Memory(half) => half.poll_ready(cx),
        }
    }

    /// Writes all of `bytes`, for those who have nothing else to wait for. How much was written is not known if the call is given up.
    pub(crate) async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        loop {
            while !left.is_empty() {
                match self.try_write(left) {
                    Ok(len) => left = &left[len..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if left.is_empty() && self.held() == 0 {
                return Ok(());
            }
            // Also when nothing is left to hand over: what the writer holds leaves only while it is asked.
            poll_fn(|cx| self.poll_ready(cx)).await?;
        }
    }
}
