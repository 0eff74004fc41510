//! A connection in both directions, before it is split.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, ToSocketAddrs};

use super::reader::Reader;
use super::tuning::Tuning;
use super::writer::Writer;

/// See the module.
#[derive(Debug)]
pub(crate) struct Stream(TcpStream);

/// A connection that belongs to no runtime: it may go to another thread.
#[derive(Debug)]
pub(crate) struct DetachedStream(std::net::TcpStream);

impl Stream {
    /// Connects to an address, or to a name and port.
    pub(crate) async fn connect(to: impl ToSocketAddrs) -> io::Result<Self> {
        TcpStream::connect(to).await.map(Self)
    }

    pub(super) fn of_tcp(stream: TcpStream) -> Self {
        Self(stream)
    }

    pub(crate) fn tune(&self, tuning: Tuning) {
        tuning.apply(&self.0);
    }

    /// Where the other side is.
    pub(crate) fn remote_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }

    /// Where this side is.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Its halves, for two who read and write without waiting for each other.
    pub(crate) fn split(self) -> (Reader, Writer) {
        let (reader, writer) = self.0.into_split();
        (Reader::of_tcp(reader), Writer::of_tcp(writer))
    }

    /// Takes it off the runtime of this thread.
    pub(crate) fn detach(self) -> io::Result<DetachedStream> {
        self.0.into_std().map(DetachedStream)
    }

    /// Ends it with `last`, of which only what is taken at once is said.
    pub(crate) fn close_with(self, last: &[u8]) {
        // The runtime does not know yet whether the socket can be written; the system does.
        if let Ok(mut stream) = self.0.into_std() {
            let _ = io::Write::write_all(&mut stream, last);
        }
    }
}

impl DetachedStream {
    /// The same on the runtime of this thread.
    pub(crate) fn attach(self) -> io::Result<Stream> {
        TcpStream::from_std(self.0).map(Stream)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
