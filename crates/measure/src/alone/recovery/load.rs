//! A paced load by many connections through any node, each answer with its time, so that windows can be compared
//! afterwards: before a fault, during the repair, and after it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Keys that are read and written.
const KEYS: u64 = 20_000;
const VALUE_BYTES: usize = 1024;
/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Nobody is to be left out.
const NOBODY: usize = usize::MAX;

/// Half reads, half writes of 1 KiB, so many a second in all.
pub struct Load {
    threads: Vec<JoinHandle<Vec<Answer>>>,
    shared: Arc<Shared>,
}

struct Shared {
    nodes: Vec<SocketAddr>,
    end: AtomicBool,
    /// A node that no request is to go through.
    away: AtomicUsize,
}

/// One request's end.
#[derive(Clone, Copy)]
struct Answer {
    at: Instant,
    /// From when it was due, so that requests that had to queue count with their wait.
    waited: Duration,
    is_right: bool,
}

/// What clients saw in some stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    pub longest: Duration,
    pub failed: usize,
}

/// All that was answered.
pub struct Answers(Vec<Answer>);

impl Load {
    /// Begins to ask `nodes` by `connections` connections, `rate` times a second.
    pub fn start(nodes: &[SocketAddr], connections: u32, rate: u32) -> Result<Self, String> {
        let shared = Arc::new(Shared {
            nodes: nodes.to_vec(),
            end: AtomicBool::new(false),
            away: AtomicUsize::new(NOBODY),
        });
        let mut first = Connection::open(nodes[0])?;
        for key in 0..KEYS {
            first.set(key)?;
        }
        let every = Duration::from_secs(1) * connections / rate;
        let spawn = |number: u32| {
            let shared = Arc::clone(&shared);
            let offset = every * number / connections;
            thread::spawn(move || ask(&shared, number as usize, offset, every))
        };
        let threads = (0..connections).map(spawn).collect();
        Ok(Self { threads, shared })
    }

    /// No request goes through `node` from now on; none is left out any more with none.
    pub fn avoid(&self, node: Option<u16>) {
        self.shared.away.store(node.map_or(NOBODY, usize::from), Ordering::Relaxed);
    }

    /// Ends it.
    pub fn finish(mut self) -> Result<Answers, String> {
        self.shared.end.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads);
        let answers: Result<Vec<_>, _> = threads.into_iter().map(JoinHandle::join).collect();
        let answers = answers.map_err(|_| "a client has panicked".to_owned())?;
        Ok(Answers(answers.concat()))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
    }
}

impl Answers {
    /// What ended from `from` until `to`.
    pub fn between(&self, from: Instant, to: Instant) -> Window {
        let within: Vec<&Answer> = self.0.iter().filter(|answer| (from..to).contains(&answer.at)).collect();
        let mut waits: Vec<Duration> = within.iter().map(|answer| answer.waited).collect();
        waits.sort_unstable();
        let rank = |share: usize| waits.get(waits.len() * share / 100).copied().unwrap_or_default();
        Window {
            per_second: within.len() as f64 / (to - from).as_secs_f64(),
            p50: rank(50),
            p99: rank(99),
            longest: waits.last().copied().unwrap_or_default(),
            failed: within.iter().filter(|answer| !answer.is_right).count(),
        }
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { per_second, p50, p99, longest, failed } = self;
        write!(
            f,
            "{per_second:.0} op/s, p50 {p50:.1?}, p99 {p99:.1?}, longest {longest:.0?}, {failed} failed"
        )
    }
}

/// One client: a request whenever one is due, over the same connection until it breaks or its node is left out.
fn ask(shared: &Shared, number: usize, offset: Duration, every: Duration) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut connection: Option<(usize, Connection)> = None;
    let mut due = Instant::now() + offset;
    let mut count = number as u64;
    while !shared.end.load(Ordering::Relaxed) {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let away = shared.away.load(Ordering::Relaxed);
        if connection.as_ref().is_none_or(|(node, _)| *node == away) {
            let others = (0..shared.nodes.len()).map(|n| (n + count as usize) % shared.nodes.len());
            let node = others.into_iter().find(|node| *node != away).unwrap_or(0);
            connection = Connection::open(shared.nodes[node]).ok().map(|opened| (node, opened));
        }
        let key = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS;
        let result =
            connection.as_mut().map(|(_, open)| if count & 16 == 0 { open.set(key) } else { open.get(key) });
        let is_right = matches!(result, Some(Ok(())));
        if !is_right {
            connection = None;
        }
        let at = Instant::now();
        answers.push(Answer { at, waited: at.saturating_duration_since(due), is_right });
        due += every;
        count += 1;
    }
    answers
}

/// A connection in memcached's text protocol.
pub struct Connection {
    lines: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(node: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect_timeout(&node, LIMIT).map_err(|error| error.to_string())?;
        let ready = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(LIMIT)));
        ready.map_err(|error| error.to_string())?;
        Ok(Self { lines: BufReader::new(stream) })
    }

    /// Sets one of the load's keys to the one value that it ever has.
    pub fn set(&mut self, key: u64) -> Result<(), String> {
        let mut request = format!("set load-{key} 0 0 {VALUE_BYTES}\r\n").into_bytes();
        request.extend_from_slice(&value_of(key));
        request.extend_from_slice(b"\r\n");
        self.say(&request)?;
        let answer = self.line()?;
        if answer == "STORED\r\n" { Ok(()) } else { Err(answer) }
    }

    /// Reads one of them, every byte.
    pub fn get(&mut self, key: u64) -> Result<(), String> {
        self.say(format!("get load-{key}\r\n").as_bytes())?;
        let answer = self.line()?;
        if answer != format!("VALUE load-{key} 0 {VALUE_BYTES}\r\n") {
            return Err(answer);
        }
        let mut rest = [0; VALUE_BYTES + b"\r\nEND\r\n".len()];
        self.lines.read_exact(&mut rest).map_err(|error| error.to_string())?;
        if rest[..VALUE_BYTES] == value_of(key) { Ok(()) } else { Err("wrong bytes".to_owned()) }
    }

    fn say(&mut self, request: &[u8]) -> Result<(), String> {
        self.lines.get_mut().write_all(request).map_err(|error| error.to_string())
    }

    fn line(&mut self) -> Result<String, String> {
        let mut answer = String::new();
        match self.lines.read_line(&mut answer) {
            Ok(0) => Err("closed".to_owned()),
            Ok(_) => Ok(answer),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn value_of(key: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    for (at, chunk) in value.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&(key * 1_000_003 + at as u64).to_le_bytes());
    }
    value
}
