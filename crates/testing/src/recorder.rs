//! Clients that hammer a real cluster and write down what they asked and saw.
//!
//! Each client is a thread with one plain socket to any node: a stock memcached client that knows nothing of the
//! cluster. What was certainly not done is left out of the history; what may have been done stays in it unanswered.
#![allow(clippy::disallowed_methods)] // Real processes take real time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use client::reply::{Parsed, Reply, parse};

use crate::linearizability::{Bytes, History, Op, Outcome};

/// What the clients do.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many clients.
    pub clients: u64,
    /// On how many keys; few, so that they meet.
    pub keys: u64,
    /// Longest value.
    pub max_value_bytes: usize,
    /// When a client gives up on an answer.
    pub timeout: Duration,
    /// Pause between a client's operations, which bounds the history.
    pub pause: Duration,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            clients: 12,
            keys: 60,
            max_value_bytes: 3000,
            timeout: Duration::from_secs(8),
            pause: Duration::from_millis(1),
        }
    }
}

/// Running clients.
pub struct Recorder {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Recording>>,
}

/// What one client saw.
#[derive(Default)]
struct Recording {
    operations: Vec<Recorded>,
    longest_wait: Duration,
    refusals: u64,
}

struct Recorded {
    client: u64,
    key: String,
    op: Op,
    invoked_ns: u64,
    answer: Option<(u64, Outcome)>,
}

/// What all clients saw.
pub struct Seen {
    /// To be checked.
    pub history: History,
    /// Operations with an answer.
    pub answered: usize,
    /// Operations that may or may not have been done.
    pub unknown: usize,
    /// Requests that were refused without effect.
    pub refusals: u64,
    /// The longest that any client waited between two answers.
    pub longest_wait: Duration,
}

impl Recorder {
    /// Starts clients that talk to `nodes`.
    #[must_use]
    pub fn start(workload: &Workload, nodes: &[SocketAddr]) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let epoch = Instant::now();
        let start = |id: u64| {
            let client = Client {
                id,
                workload: workload.clone(),
                nodes: nodes.to_vec(),
                node: id as usize,
                epoch,
                random: id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                written: 0,
                socket: None,
                recording: Recording::default(),
            };
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            thread::spawn(move || client.run(&stop, &answered))
        };
        Self { clients: (0..workload.clients).map(start).collect(), stop, answered }
    }

    /// Answers so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until `count` more answers have come.
    ///
    /// # Errors
    /// One line if they have not within `limit`.
    pub fn wait_for(&self, count: u64, limit: Duration) -> Result<(), String> {
        let (goal, deadline) = (self.answered() + count, Instant::now() + limit);
        while self.answered() < goal {
            if Instant::now() > deadline {
                let missing = goal - self.answered();
                return Err(format!("{missing} of {count} answers are missing after {limit:?}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Stops the clients and puts together what they saw.
    ///
    /// # Panics
    /// If a client has.
    #[must_use]
    pub fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        let recordings: Vec<Recording> =
            self.clients.into_iter().map(|client| client.join().expect("no client panics")).collect();
        let longest_wait =
            recordings.iter().map(|recording| recording.longest_wait).max().unwrap_or_default();
        let refusals = recordings.iter().map(|recording| recording.refusals).sum();
        let operations: Vec<Recorded> =
            recordings.into_iter().flat_map(|recording| recording.operations).collect();
        let answered = operations.iter().filter(|operation| operation.answer.is_some()).count();
        let unknown = operations.len() - answered;
        Seen { history: merge(operations), answered, unknown, refusals, longest_wait }
    }
}

/// One history in the order of time; at equal times invocations come first, which makes operations concurrent.
fn merge(operations: Vec<Recorded>) -> History {
    enum Event {
        Invoke(usize),
        Answer(usize, Outcome),
    }
    let mut events = Vec::new();
    let mut asked = Vec::new();
    for (index, operation) in operations.into_iter().enumerate() {
        events.push((operation.invoked_ns, 0, Event::Invoke(index)));
        if let Some((at, outcome)) = operation.answer {
            events.push((at, 1, Event::Answer(index, outcome)));
        }
        asked.push(Some((operation.client, operation.key, operation.op)));
    }
    events.sort_by_key(|(at, rank, _)| (*at, *rank));
    let mut history = History::default();
    let mut ids = vec![None; asked.len()];
    for (at, _, event) in events {
        match event {
            Event::Invoke(index) => {
                let (client, key, op) = asked[index].take().expect("each operation is invoked once");
                ids[index] = Some(history.invoke(at, client, key.as_str(), op));
            }
            Event::Answer(index, outcome) => {
                history.answer(at, ids[index].expect("an answer comes after its question"), outcome);
            }
        }
    }
    history
}

struct Client {
    id: u64,
    workload: Workload,
    nodes: Vec<SocketAddr>,
    node: usize,
    epoch: Instant,
    random: u64,
    written: u64,
    socket: Option<Socket>,
    recording: Recording,
}

struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came of a request.
enum Heard {
    Outcome(Outcome),
    /// Refused, and certainly not done.
    Refused,
    /// Nobody knows.
    Unknown,
}

impl Client {
    fn run(mut self, stop: &AtomicBool, answered: &AtomicU64) -> Recording {
        let mut last_answer = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            if self.connect().is_err() {
                self.next_node();
                continue;
            }
            if self.step() {
                let now = Instant::now();
                self.recording.longest_wait = self.recording.longest_wait.max(now - last_answer);
                last_answer = now;
                answered.fetch_add(1, Ordering::Relaxed);
            }
            thread::sleep(self.workload.pause);
        }
        self.recording
    }

    fn connect(&mut self) -> io::Result<()> {
        if self.socket.is_some() {
            return Ok(());
        }
        let address = self.nodes[self.node % self.nodes.len()];
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.workload.timeout))?;
        stream.set_write_timeout(Some(self.workload.timeout))?;
        self.socket = Some(Socket { stream, buffer: Vec::new() });
        Ok(())
    }

    fn next_node(&mut self) {
        self.node += 1;
        thread::sleep(Duration::from_millis(2));
    }

    /// One operation; whether it was answered.
    fn step(&mut self) -> bool {
        let key = format!("key-{}", self.draw() % self.workload.keys);
        let op = self.choose(&key);
        let Some(op) = op else { return false };
        let invoked_ns = self.now_ns();
        let heard = self.ask(&request(&key, &op), &op);
        let answer = match heard {
            Heard::Outcome(outcome) => Some((self.now_ns(), outcome)),
            Heard::Refused => {
                self.recording.refusals += 1;
                return false;
            }
            Heard::Unknown => None,
        };
        let is_answered = answer.is_some();
        if is_answered || op != Op::Get {
            self.recording.operations.push(Recorded { client: self.id, key, op, invoked_ns, answer });
        }
        is_answered
    }

    /// An operation; a cas begins with a read of its own, which is recorded too. None if that read failed.
    fn choose(&mut self, key: &str) -> Option<Op> {
        Some(match self.draw() % 100 {
            0..45 => Op::Get,
            45..75 => Op::Set(self.value()),
            75..83 => Op::Delete,
            83..88 => Op::Add(self.value()),
            88..93 => Op::Replace(self.value()),
            _ => Op::Cas { unique: self.read_unique(key)?, value: self.value() },
        })
    }

    fn read_unique(&mut self, key: &str) -> Option<u64> {
        let invoked_ns = self.now_ns();
        let Heard::Outcome(outcome) = self.ask(&request(key, &Op::Get), &Op::Get) else { return None };
        let unique = match &outcome {
            Outcome::Value { cas, .. } => *cas,
            _ => None,
        };
        let answer = Some((self.now_ns(), outcome));
        self.recording.operations.push(Recorded {
            client: self.id,
            key: key.to_owned(),
            op: Op::Get,
            invoked_ns,
            answer,
        });
        unique
    }

    /// Unlike any other value, and of any length up to the longest.
    fn value(&mut self) -> Bytes {
        self.written += 1;
        let len = (self.draw() as usize) % self.workload.max_value_bytes;
        let mut value = format!("{}-{}-", self.id, self.written).into_bytes();
        let fill = b'a' + (self.draw() % 26) as u8;
        value.resize(len.max(value.len()), fill);
        Bytes(value)
    }

    fn ask(&mut self, request: &[u8], op: &Op) -> Heard {
        let Some(socket) = self.socket.as_mut() else { return Heard::Refused };
        let heard = socket.exchange(request, op);
        heard.unwrap_or_else(|_| {
            self.socket = None;
            self.next_node();
            Heard::Unknown
        })
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Socket {
    fn exchange(&mut self, request: &[u8], op: &Op) -> io::Result<Heard> {
        self.stream.write_all(request)?;
        let mut chunk = [0; 16 * 1024];
        loop {
            match parse(&self.buffer) {
                Parsed::Complete(reply, len) => {
                    let heard = hear(reply, op);
                    self.buffer.drain(..len);
                    return Ok(heard);
                }
                Parsed::Malformed(reason) => return Err(io::Error::other(reason)),
                Parsed::Incomplete(_) => {}
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => self.buffer.extend_from_slice(&chunk[..got]),
            }
        }
    }
}

fn request(key: &str, op: &Op) -> Vec<u8> {
    let store = |verb: &str, value: &Bytes, tail: String| {
        let mut request = format!("{verb} {key} 0 0 {}{tail}\r\n", value.0.len()).into_bytes();
        request.extend_from_slice(&value.0);
        request.extend_from_slice(b"\r\n");
        request
    };
    match op {
        Op::Get => format!("gets {key}\r\n").into_bytes(),
        Op::Set(value) => store("set", value, String::new()),
        Op::Add(value) => store("add", value, String::new()),
        Op::Replace(value) => store("replace", value, String::new()),
        Op::Append(value) => store("append", value, String::new()),
        Op::Cas { value, unique } => store("cas", value, format!(" {unique}")),
        Op::Delete => format!("delete {key}\r\n").into_bytes(),
        Op::Incr(by) => format!("incr {key} {by}\r\n").into_bytes(),
    }
}

fn hear(reply: Reply<'_>, op: &Op) -> Heard {
    let outcome = match reply {
        Reply::Value { value, cas, .. } => Outcome::Value { value: Bytes(value.to_vec()), cas },
        Reply::Miss | Reply::NotFound => Outcome::NotFound,
        Reply::Stored => Outcome::Stored,
        Reply::NotStored => Outcome::NotStored,
        Reply::Exists => Outcome::Exists,
        Reply::Deleted => Outcome::Deleted,
        Reply::Number(number) => Outcome::Number(number),
        Reply::ServerError(words) if words.windows(16).any(|part| part == b"nothing was done") => {
            return Heard::Refused;
        }
        Reply::ServerError(words) if words.starts_with(b"outcome unknown") => return Heard::Unknown,
        // Out of memory, lost, corrupt: no test that records may come across one.
        other => panic!("the answer to {op} is {other:?}"),
    };
    Heard::Outcome(outcome)
}
