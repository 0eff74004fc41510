//! One client: a thread with one plain socket to any node, or one that asks by the native protocol.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::linearizability::{Op, Outcome};

use super::long::break_off;
use super::manner::Manner;
use super::mix::Drawer;
use super::native::Native;
use super::pattern::Mark;
use super::socket::{Heard, Refusal, Socket, request};
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
    /// By what it asks, if not by the socket.
    native: Option<Native>,
    recording: Recording,
    /// Of values that are only named in the history.
    mark: Option<Mark>,
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
            native: None,
            recording: Recording::default(),
            mark: workload.mix.names_values().then(|| Mark::of(&workload.mark)),
        }
    }

    /// The same, by the native protocol if there is a client of it.
    pub(super) fn asking_by(self, native: Option<Native>) -> Self {
        Self { native, ..self }
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
        if self.socket.is_some() || self.native.is_some() {
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
        let manner = self.drawer.manner(&wanted);
        let Some(op) = self.fit(&key, wanted) else { return false };
        match (manner, self.mark) {
            (Manner::BrokenOff(thousandths), Some(mark)) => {
                self.break_off(&key, &op, mark, thousandths);
                false
            }
            _ => self.perform_in(&key, op, manner).is_some(),
        }
    }

    /// Goes in the midst of a value. Nothing may come of it, so it is not written down.
    fn break_off(&mut self, key: &str, op: &Op, mark: Mark, thousandths: u64) {
        if let Some(native) = &self.native {
            return native.break_off(key, op, mark, thousandths);
        }
        if let Some(socket) = self.socket.take() {
            let _ = break_off(&socket.stream, key, op, mark, thousandths);
        }
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
        self.perform_in(key, op, Manner::AsFastAsPossible)
    }

    fn perform_in(&mut self, key: &str, op: Op, manner: Manner) -> Option<Outcome> {
        let invoked_ns = self.now_ns();
        let answer = match self.ask(key, &op, manner) {
            Heard::Outcome(outcome) => Some((self.now_ns(), outcome)),
            Heard::Refused(refusal) | Heard::Broken(refusal) => {
                self.count(refusal);
                return None;
            }
            Heard::Unknown => None,
        };
        let outcome = answer.as_ref().map(|(_, outcome)| outcome.clone());
        // A read without an answer has changed nothing, and says nothing; nor has a touch.
        if outcome.is_some() || !matches!(op, Op::Get | Op::Touch) {
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
        let heard = self.ask("", &Op::Flush, Manner::AsFastAsPossible);
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

    fn ask(&mut self, key: &str, op: &Op, manner: Manner) -> Heard {
        if let Some(native) = &self.native {
            return native.ask(key, op, self.mark, manner);
        }
        let Some(socket) = self.socket.as_mut() else { return Heard::Refused(Refusal::Unavailable) };
        let heard = match self.mark {
            Some(mark) => socket.exchange_long(key, op, mark, manner),
            None => socket.exchange(&request(key, op), op),
        };
        match heard {
            Ok(heard @ (Heard::Outcome(_) | Heard::Refused(_) | Heard::Unknown)) => heard,
            heard => {
                // Never used again: a late answer would be taken for that to the next request.
                self.socket = None;
                self.next_node();
                heard.unwrap_or(Heard::Unknown)
            }
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
