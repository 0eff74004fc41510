//! A client that knows no map: one connection, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// For one answer.
const LIMIT: Duration = Duration::from_secs(60);
const PIECE_BYTES: usize = 256 << 10;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Memcached,
    /// Replicas that a write waits for.
    Redis {
        wait: u8,
    },
}

/// A connection.
pub struct Plain {
    protocol: Protocol,
    stream: BufReader<TcpStream>,
    piece: Vec<u8>,
}

/// What a read found.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    pub bytes: usize,
    /// From the request to the first byte of the value.
    pub first: Duration,
    pub all: Duration,
}

impl Plain {
    pub fn connect(protocol: Protocol, address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_read_timeout(Some(LIMIT)).map_err(text)?;
        stream.set_write_timeout(Some(LIMIT)).map_err(text)?;
        let stream = BufReader::with_capacity(PIECE_BYTES, stream);
        Ok(Self { protocol, stream, piece: vec![0; PIECE_BYTES] })
    }

    /// Writes `key` with as many bytes, taken from `pattern` over and over.
    pub fn set(&mut self, key: &str, len: usize, pattern: &[u8]) -> Result<(), String> {
        let head = match self.protocol {
            Protocol::Memcached => format!("set {key} 0 0 {len}\r\n"),
            Protocol::Redis { .. } => {
                format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${len}\r\n", key.len())
            }
        };
        self.send(head.as_bytes())?;
        let mut left = len;
        while left > 0 {
            let most = left.min(pattern.len());
            self.send(&pattern[..most])?;
            left -= most;
        }
        self.send(b"\r\n")?;
        if let Protocol::Redis { wait } = self.protocol
            && wait > 0
        {
            self.send(format!("*3\r\n$4\r\nWAIT\r\n$1\r\n{wait}\r\n$1\r\n0\r\n").as_bytes())?;
        }
        self.expect(if self.protocol == Protocol::Memcached { "STORED" } else { "+OK" })?;
        match self.protocol {
            Protocol::Redis { wait } if wait > 0 => self.expect(&format!(":{wait}")),
            _ => Ok(()),
        }
    }

    /// Reads `key`, which must be there with as many bytes.
    pub fn get_whole(&mut self, key: &str, len: usize) -> Result<Fetched, String> {
        let got = self.get(key)?;
        if got.bytes == len { Ok(got) } else { Err(format!("{key} has {} bytes, not {len}", got.bytes)) }
    }

    fn get(&mut self, key: &str) -> Result<Fetched, String> {
        let begun = Instant::now();
        let request = match self.protocol {
            Protocol::Memcached => format!("get {key}\r\n"),
            Protocol::Redis { .. } => format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len()),
        };
        self.send(request.as_bytes())?;
        let line = self.line()?;
        let digits = match self.protocol {
            Protocol::Memcached => line.strip_prefix("VALUE ").and_then(|rest| rest.split(' ').nth(2)),
            Protocol::Redis { .. } => line.strip_prefix('$'),
        };
        let bytes: usize =
            digits.and_then(|digits| digits.parse().ok()).ok_or(format!("not a value: {line}"))?;
        let mut left = bytes;
        let mut first = None;
        while left > 0 {
            let most = left.min(self.piece.len());
            let got = self.stream.read(&mut self.piece[..most]).map_err(text)?;
            if got == 0 {
                return Err(format!("{key} broke off with {left} of {bytes} bytes to come"));
            }
            first.get_or_insert_with(|| begun.elapsed());
            left -= got;
        }
        self.expect("")?;
        if self.protocol == Protocol::Memcached {
            self.expect("END")?;
        }
        Ok(Fetched { bytes, first: first.unwrap_or_default(), all: begun.elapsed() })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(bytes).map_err(text)
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        let line = self.line()?;
        if line == wanted { Ok(()) } else { Err(format!("'{line}' instead of '{wanted}'")) }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(text)?;
        if line.is_empty() {
            return Err("the server closed the connection".to_owned());
        }
        Ok(line.trim_end().to_owned())
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

/// Bytes without structure: what a server might compress or share is not.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| step()).collect()
}
