//! One client: a thread with one plain socket to any node.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::reply::{Parsed, Reply, parse};
use faces::memcache::FailureCode;

use crate::linearizability::{Bytes, Op, Outcome};

use super::mix::Drawer;
use super::{Recorded, Recording, Workload};

/// Pause after an answer that was none, where one is waited for.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// See the module.
pub(super) struct Client {
    id: u64,
    workload: Workload,
    nodes: Vec<SocketAddr>,
    node: usize,
    epoch: Instant,
    drawer: Drawer,
    socket: Option<Socket>,
    recording: Recording,
}

struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Why a request was not done.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Unavailable,
    NoMemory,
    Lost,
}

/// What came of a request.
enum Heard {
    Outcome(Outcome),
    /// Refused, and certainly not done.
    Refused(Refusal),
    /// Nobody knows.
    Unknown,
}

impl Client {
    /// Client number `id`, not yet connected.
    pub(super) fn new(id: u64, workload: &Workload, nodes: &[SocketAddr], epoch: Instant) -> Self {
        Self {
            id,
            workload: workload.clone(),
            nodes: nodes.to_vec(),
            node: id as usize,
            epoch,
            drawer: Drawer::new(id, workload),
            socket: None,
            recording: Recording::default(),
        }
    }

    /// Until it is told to stop.
    pub(super) fn run(mut self, stop: &AtomicBool, answered: &AtomicU64) -> Recording {
        let mut last_answer = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            // A node that cannot be reached counts towards the longest wait, though nothing was asked.
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
        let (key, wanted) = self.drawer.draw(self.epoch.elapsed());
        let Some(op) = self.fit(&key, wanted) else { return false };
        self.perform(&key, op).is_some()
    }

    /// A cas begins with a read of its own, which is recorded too. None if that read failed.
    fn fit(&mut self, key: &str, wanted: Op) -> Option<Op> {
        let Op::Cas { value, .. } = wanted else { return Some(wanted) };
        let unique = match self.perform(key, Op::Get)? {
            Outcome::Value { cas, .. } => cas?,
            _ => return None,
        };
        Some(Op::Cas { value, unique })
    }

    /// Asks, and writes down what came of it.
    fn perform(&mut self, key: &str, op: Op) -> Option<Outcome> {
        let invoked_ns = self.now_ns();
        let answer = match self.ask(&request(key, &op), &op) {
            Heard::Outcome(outcome) => Some((self.now_ns(), outcome)),
            Heard::Refused(refusal) => {
                self.count(refusal);
                return None;
            }
            Heard::Unknown => None,
        };
        let outcome = answer.as_ref().map(|(_, outcome)| outcome.clone());
        // A read without an answer has changed nothing, and says nothing.
        if outcome.is_some() || op != Op::Get {
            let (client, key) = (self.id, key.to_owned());
            self.recording.operations.push(Recorded { client, key, op, invoked_ns, answer });
        }
        outcome
    }

    fn count(&mut self, refusal: Refusal) {
        assert!(
            self.workload.hears_trouble || matches!(refusal, Refusal::Unavailable),
            "a request was refused: {refusal:?}"
        );
        let refusals = &mut self.recording.refusals;
        match refusal {
            Refusal::Unavailable => refusals.unavailable += 1,
            Refusal::NoMemory => refusals.no_memory += 1,
            Refusal::Lost => refusals.lost += 1,
        }
    }

    /// Reads `key` at any node until one answers.
    pub(super) fn read_until_answered(&mut self, key: &str, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        let lost = self.recording.refusals.lost;
        while Instant::now() < deadline {
            let is_connected = self.connect().is_ok();
            if is_connected && self.perform(key, Op::Get).is_some() {
                return Ok(());
            }
            // An answer as well: more tries will not bring it back.
            if self.recording.refusals.lost > lost {
                return Ok(());
            }
            self.next_node();
            thread::sleep(TRY_AGAIN);
        }
        Err(format!("key {key} is not answered within {limit:?}"))
    }

    /// Has everything flushed at one of the nodes: when that was asked and, if it was answered, when. None if nobody could be asked.
    pub(super) fn flush(&mut self) -> Option<(u64, Option<u64>)> {
        if self.connect().is_err() {
            self.next_node();
            return None;
        }
        let invoked_ns = self.now_ns();
        let heard = self.ask(&request("", &Op::Flush), &Op::Flush);
        // Refused by one role, it may have been done by others.
        let is_done = matches!(heard, Heard::Outcome(Outcome::Flushed));
        if !is_done {
            self.next_node();
        }
        Some((invoked_ns, is_done.then(|| self.now_ns())))
    }

    /// Number of the client.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// What it saw.
    pub(super) fn into_recording(self) -> Recording {
        self.recording
    }

    fn ask(&mut self, request: &[u8], op: &Op) -> Heard {
        let Some(socket) = self.socket.as_mut() else { return Heard::Refused(Refusal::Unavailable) };
        let heard = socket.exchange(request, op);
        heard.unwrap_or_else(|_| {
            // Never used again: a late answer would be taken for that to the next request.
            self.socket = None;
            self.next_node();
            Heard::Unknown
        })
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
        // With the unique: what clients may see of it is checked, too.
        Op::Get => format!("gets {key}\r\n").into_bytes(),
        Op::Set(value) => store("set", value, String::new()),
        Op::Add(value) => store("add", value, String::new()),
        Op::Replace(value) => store("replace", value, String::new()),
        Op::Append(value) => store("append", value, String::new()),
        Op::Cas { value, unique } => store("cas", value, format!(" {unique}")),
        Op::Delete => format!("delete {key}\r\n").into_bytes(),
        Op::Incr(by) => format!("incr {key} {by}\r\n").into_bytes(),
        Op::Flush => b"flush_all\r\n".to_vec(),
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
        Reply::Ok => Outcome::Flushed,
        Reply::Number(number) => Outcome::Number(number),
        Reply::ServerError(words) | Reply::ClientError(words) => match FailureCode::parse(words) {
            // A namespace that this node has not heard of yet.
            Some(FailureCode::Busy | FailureCode::Unavailable | FailureCode::NoNamespace) => {
                return Heard::Refused(Refusal::Unavailable);
            }
            Some(FailureCode::Unknown | FailureCode::Partial) => return Heard::Unknown,
            Some(FailureCode::OutOfMemory) => return Heard::Refused(Refusal::NoMemory),
            Some(FailureCode::Lost) => return Heard::Refused(Refusal::Lost),
            Some(FailureCode::NotANumber) => Outcome::NotNumber,
            // Corrupt, or not understood: nobody may come across one.
            _ => panic!("the answer to {op} is {reply:?}"),
        },
        other => panic!("the answer to {op} is {other:?}"),
    };
    Heard::Outcome(outcome)
}
