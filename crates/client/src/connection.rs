//! One socket to one node: requests out in a batch, replies back in order.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ClientError;
use crate::reply::{Parsed, Reply, parse};

const READ_BYTES: usize = 16 * 1024;

/// A pipelined connection: write any number of requests to [`Connection::requests`], [`Connection::flush`] them, then
/// take as many replies.
///
/// After an error, or after a reply was waited for in vain, the stream is out of step: drop the connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that replies already taken occupy.
    taken: usize,
    /// Bytes of `buffer` that have arrived.
    filled: usize,
}

impl Connection {
    /// Connects, without Nagle's delay.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, out: Vec::new(), buffer: vec![0; READ_BYTES], taken: 0, filled: 0 })
    }

    /// Where requests are collected; see [`crate::request`].
    pub fn requests(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Sends what was collected.
    ///
    /// # Errors
    /// What the operating system says; some of the requests may have been sent.
    pub async fn flush(&mut self) -> io::Result<()> {
        let result = self.stream.write_all(&self.out).await;
        self.out.clear();
        result
    }

    /// The next reply.
    ///
    /// # Errors
    /// `Io` if the connection broke, `Protocol` if what came is no reply.
    pub async fn reply(&mut self) -> Result<Reply<'_>, ClientError> {
        let len = loop {
            match parse(&self.buffer[self.taken..self.filled]) {
                Parsed::Complete(_, len) => break len,
                Parsed::Incomplete(need) => self.fill(need).await?,
                Parsed::Malformed(reason) => return Err(ClientError::Protocol(reason)),
            }
        };
        let start = self.taken;
        self.taken += len;
        // Once more, because a reply that was borrowed in the loop could not be returned from it.
        match parse(&self.buffer[start..self.filled]) {
            Parsed::Complete(reply, _) => Ok(reply),
            _ => unreachable!("the same bytes were a reply a moment ago"),
        }
    }

    /// Reads once, with room for a reply of `need` bytes.
    async fn fill(&mut self, need: usize) -> io::Result<()> {
        self.make_room(need);
        let got = self.stream.read(&mut self.buffer[self.filled..]).await?;
        if got == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        self.filled += got;
        Ok(())
    }

    /// Moves what is not taken to the front; grows by doubling at most, however much a reply declares.
    fn make_room(&mut self, need: usize) {
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        self.taken = 0;
        if self.filled == self.buffer.len() {
            let grown = need.max(READ_BYTES).min(self.buffer.len() * 2);
            self.buffer.resize(grown, 0);
        }
    }
}
