//! Fills the nodes' memory up, and removes what it wrote.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Threads that write.
pub struct Filler {
    stop: Arc<AtomicBool>,
    /// Nothing is to be removed.
    abandoned: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

const THREADS: usize = 4;

const VALUE_BYTES: usize = 24 * 1024;
const SMALL_BYTES: usize = 2 * 1024;
/// Refused for want of memory so often, it has done what it can.
const FULL: usize = 64;
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE_WHEN_FULL: Duration = Duration::from_millis(20);

impl Filler {
    /// Starts one, which writes about `most` bytes, or until memory is full if there is no such bound, through `nodes` keys that begin with `fill-NUMBER-`. The calling thread must be where the
    /// clients are.
    pub fn start(number: usize, nodes: Vec<SocketAddr>, most: Option<usize>) -> Self {
        Self::start_with(number, nodes, most, VALUE_BYTES)
    }

    /// The same with short values.
    pub fn start_small(number: usize, nodes: Vec<SocketAddr>, most: usize) -> Self {
        Self::start_with(number, nodes, Some(most), SMALL_BYTES)
    }

    fn start_with(number: usize, nodes: Vec<SocketAddr>, most: Option<usize>, value_bytes: usize) -> Self {
        let count = most.map_or(usize::MAX, |bytes| bytes / value_bytes / THREADS);
        let [stop, abandoned] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let thread = |part: usize| {
            let (stopped, abandoned, nodes) = (Arc::clone(&stop), Arc::clone(&abandoned), nodes.clone());
            let prefix = format!("fill-{number}-{part}");
            let value = vec![b'f'; value_bytes];
            thread::spawn(move || {
                let written = fill(&prefix, &value, &nodes, &stopped, count);
                if !abandoned.load(Ordering::Relaxed) {
                    empty(&prefix, written, &nodes);
                }
            })
        };
        let threads = (0..THREADS).map(thread).collect();
        Self { stop, abandoned, threads }
    }

    /// Ends, and leaves what was written.
    pub fn abandon(self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.finish();
    }

    /// Begins to remove what was written.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until it is removed.
    pub fn finish(self) {
        self.stop();
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Writes so many keys, and then waits, until it is told to stop; how many it has written.
fn fill(prefix: &str, value: &[u8], nodes: &[SocketAddr], stop: &AtomicBool, most: usize) -> usize {
    let (mut count, mut refused) = (0, 0);
    let mut socket = None;
    while !stop.load(Ordering::Relaxed) {
        if count == most {
            thread::sleep(PAUSE_WHEN_FULL);
            continue;
        }
        let mut request = format!("set {prefix}-{count} 0 0 {}\r\n", value.len()).into_bytes();
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        let answer = ask(&mut socket, &nodes[count % nodes.len()], &request);
        count += 1;
        if !answer.starts_with(b"STORED") {
            refused += 1;
        }
        if refused >= FULL {
            thread::sleep(PAUSE_WHEN_FULL);
        }
    }
    count
}

fn empty(prefix: &str, count: usize, nodes: &[SocketAddr]) {
    let mut socket = None;
    for key in 0..count {
        let request = format!("delete {prefix}-{key}\r\n");
        // A node may be hurt: each is tried twice. What is left all the same counts as memory in use.
        let tries = nodes.iter().cycle().skip(key).take(2 * nodes.len());
        for node in tries {
            let answer = ask(&mut socket, node, request.as_bytes());
            if answer.starts_with(b"DELETED") || answer.starts_with(b"NOT_FOUND") {
                break;
            }
            socket = None;
        }
    }
}

/// The first bytes of the answer; nothing if there was none.
fn ask(socket: &mut Option<TcpStream>, node: &SocketAddr, request: &[u8]) -> Vec<u8> {
    let asked = (|| {
        if socket.is_none() {
            let stream = TcpStream::connect_timeout(node, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            *socket = Some(stream);
        }
        let stream = socket.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
        stream.write_all(request)?;
        let mut answer = vec![0; 256];
        let len = stream.read(&mut answer)?;
        answer.truncate(len);
        std::io::Result::Ok(answer)
    })();
    asked.unwrap_or_else(|_| {
        *socket = None;
        Vec::new()
    })
}
