//! Values that are written once, before the first fault, and never again: in the end every one must be there, byte for byte.
//! They give takeovers, repair and lessons something to do.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::reply::{Parsed, Reply, parse};
use faces::memcache::FailureCode;
use rng::Rng;

/// What their keys begin with; a number follows.
pub const PREFIX: &str = "cold-";
/// Bytes of each value.
const VALUE_BYTES: usize = 4096;
/// Connections.
const STREAMS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);
const TRY_AGAIN: Duration = Duration::from_millis(20);
/// For one key to be answered.
const KEY_LIMIT: Duration = Duration::from_secs(30);

/// Writes `count` values through `nodes`. The calling thread must be where the clients are.
///
/// # Errors
/// One line about the first value that could not be stored.
pub fn load(count: usize, nodes: &[SocketAddr]) -> Result<(), String> {
    for_each(count, nodes, &|key, nodes| {
        let value = value(key);
        let mut request = format!("set {PREFIX}{key} 0 0 {VALUE_BYTES}\r\n").into_bytes();
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        nodes.ask(&request, |reply| match reply {
            Reply::Stored => Some(Ok(())),
            Reply::ServerError(words) if FailureCode::parse(words) == Some(FailureCode::OutOfMemory) => {
                Some(Err(format!(
                    "there is no memory for value {key} of {count}: load less, or give more --memory"
                )))
            }
            _ => None,
        })
    })
}

/// Reads them all back; of how many the cluster said that they are lost.
///
/// # Errors
/// One line about the first value that is missing, is another one, or is not answered.
pub fn verify(count: usize, nodes: &[SocketAddr]) -> Result<usize, String> {
    let lost = AtomicUsize::new(0);
    for_each(count, nodes, &|key, nodes| {
        let request = format!("get {PREFIX}{key}\r\n").into_bytes();
        let expected = value(key);
        nodes.ask(&request, |reply| match reply {
            Reply::Value { value, .. } if value == expected => Some(Ok(())),
            Reply::Value { .. } => Some(Err(format!("cold-{key} has another value than was written"))),
            Reply::Miss => Some(Err(format!("cold-{key} was written and is not there"))),
            Reply::ServerError(words) if FailureCode::parse(words) == Some(FailureCode::Lost) => {
                lost.fetch_add(1, Ordering::Relaxed);
                Some(Ok(()))
            }
            _ => None,
        })
    })?;
    Ok(lost.into_inner())
}

/// Does `work` for every key, on several connections at once.
fn for_each(
    count: usize,
    nodes: &[SocketAddr],
    work: &(dyn Fn(usize, &mut Nodes) -> Result<(), String> + Sync),
) -> Result<(), String> {
    thread::scope(|scope| {
        let stream = |first: usize| {
            scope.spawn(move || {
                let mut nodes = Nodes { all: nodes.to_vec(), at: first, stream: None };
                (first..count).step_by(STREAMS).try_for_each(|key| work(key, &mut nodes))
            })
        };
        let streams: Vec<_> = (0..STREAMS).map(stream).collect();
        streams.into_iter().try_for_each(|stream| stream.join().expect("no stream panics"))
    })
}

/// The bytes that belong to `key`; each key has others.
fn value(key: usize) -> Vec<u8> {
    let mut rng = Rng::new(key as u64, VALUE_BYTES as u64);
    (0..VALUE_BYTES / 8).flat_map(|_| rng.next().to_le_bytes()).collect()
}

/// A connection to any node.
struct Nodes {
    all: Vec<SocketAddr>,
    at: usize,
    stream: Option<TcpStream>,
}

impl Nodes {
    /// Asks until `judge` is content with an answer.
    fn ask(
        &mut self,
        request: &[u8],
        judge: impl Fn(Reply<'_>) -> Option<Result<(), String>>,
    ) -> Result<(), String> {
        let deadline = Instant::now() + KEY_LIMIT;
        loop {
            match self.exchange(request, &judge) {
                Ok(Some(verdict)) => return verdict,
                Ok(None) => (),
                Err(_) => {
                    self.stream = None;
                    // The next time another node: this one may be the one that is hurt.
                    self.at += 1;
                }
            }
            if Instant::now() > deadline {
                let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
                return Err(format!("no answer to `{}` in {KEY_LIMIT:?}", line.escape_ascii()));
            }
            thread::sleep(TRY_AGAIN);
        }
    }

    fn exchange<T>(
        &mut self,
        request: &[u8],
        judge: impl Fn(Reply<'_>) -> Option<T>,
    ) -> std::io::Result<Option<T>> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect(&self.all[self.at % self.all.len()])?),
        };
        stream.write_all(request)?;
        let mut buffer = Vec::new();
        let mut chunk = [0; 8192];
        loop {
            let len = stream.read(&mut chunk)?;
            if len == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            buffer.extend_from_slice(&chunk[..len]);
            match parse(&buffer) {
                Parsed::Complete(reply, _) => return Ok(judge(reply)),
                Parsed::Incomplete(_) => (),
                Parsed::Malformed(reason) => return Err(std::io::Error::other(reason)),
            }
        }
    }
}

fn connect(node: &SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(node, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers every connection with `answer`, and closes it.
    fn server(answer: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read(&mut [0; 100]);
                let _ = stream.write_all(&answer);
            }
        });
        address
    }

    fn hit(value: &[u8]) -> Vec<u8> {
        [format!("VALUE cold-0 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat()
    }

    #[test]
    fn only_the_very_bytes_pass() {
        assert_eq!(verify(1, &[server(hit(&value(0)))]), Ok(0));
        let mut other = value(0);
        other[4000] ^= 1;
        assert!(verify(1, &[server(hit(&other))]).unwrap_err().contains("another value"));
        assert!(verify(1, &[server(b"END\r\n".to_vec())]).unwrap_err().contains("not there"));
        assert_eq!(verify(1, &[server(b"SERVER_ERROR lost: it is\r\n".to_vec())]), Ok(1));
    }
}
