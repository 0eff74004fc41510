//! A non-blocking socket with its two buffers.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

/// Whether more may be waiting in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// The kernel had less than there was room for.
    Yes,
    /// There may be more.
    No,
}

/// A connection; requests are collected in `out`, answers in `input`.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// Bytes to be sent.
    pub out: Vec<u8>,
    sent: usize,
    buffer: Vec<u8>,
    taken: usize,
    filled: usize,
}

impl Socket {
    /// Starts to connect; writable once connected.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn connect(address: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { stream, out: Vec::new(), sent: 0, buffer: vec![0; 32 * 1024], taken: 0, filled: 0 })
    }

    /// What has arrived and is not taken.
    pub fn input(&self) -> &[u8] {
        &self.buffer[self.taken..self.filled]
    }

    /// That, and what is to be sent.
    pub fn both(&mut self) -> (&[u8], &mut Vec<u8>) {
        (&self.buffer[self.taken..self.filled], &mut self.out)
    }

    /// Takes `len` bytes of the input.
    pub fn take(&mut self, len: usize) {
        self.taken += len;
    }

    /// Reads once.
    ///
    /// # Errors
    /// `UnexpectedEof` if the server closed, otherwise what the operating system says.
    pub fn fill(&mut self) -> io::Result<Drained> {
        self.make_room();
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => {
                self.filled += got;
                Ok(if self.filled == self.buffer.len() { Drained::No } else { Drained::Yes })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Drained::Yes),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Drained::No),
            Err(error) => Err(error),
        }
    }

    fn make_room(&mut self) {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
        // Only once more than half has been taken: so less is moved than was taken since the last time.
        } else if self.taken > self.buffer.len() / 2 {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    /// Sends as much of `out` as the kernel takes.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error)
                    // Not connected yet: the socket becomes writable once it is.
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) =>
                {
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }
}
