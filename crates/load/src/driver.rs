//! The load generator's loop: one thread, many non-blocking connections, each closed-loop at a fixed depth.
//!
//! One read and one write per answer (or batch of answers) and an `epoll_wait` shared by all connections that are
//! ready: the least that sockets cost. The clock is read once per batch; a request's time starts when it is handed to
//! the kernel and ends when its answer has been read.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::exchange::Exchange;
use crate::keys::KeyFormat;
use crate::protocol::{Answer, Broken, Material, Pending, Protocol, Step};
use crate::socket::{Drained, Socket};
use crate::source::Source;
use crate::tally::Tally;
use crate::targets::{self, Targets};
use crate::values::{Checking, Values, Verdict};

/// How long a broken connection waits before it is opened again.
const RECONNECT_AFTER: Duration = Duration::from_millis(20);
/// How often time-outs are looked for.
const TICK: Duration = Duration::from_millis(20);
/// How long answers are waited for after the end.
const DRAIN: Duration = Duration::from_secs(5);

/// What a thread needs to know.
#[derive(Clone)]
pub struct Plan {
    /// What the servers speak.
    pub protocol: Protocol,
    /// The servers at the start.
    pub targets: Targets,
    /// Where to ask for them again.
    pub source: targets::Source,
    /// How keys are spelt.
    pub format: KeyFormat,
    /// How many there are.
    pub keys: u32,
    /// What is written, and checked if `checking` says so.
    pub values: Values,
    /// Whether values are checked.
    pub checking: Checking,
    /// Connections of this thread.
    pub lanes: Vec<usize>,
    /// Requests in flight on each.
    pub depth: usize,
    /// When to give up on a request.
    pub timeout: Duration,
    /// When to stop starting operations.
    pub duration: Duration,
    /// Length of the stretches that are counted by themselves, if any are.
    pub interval: Option<Duration>,
    /// First version that this thread writes.
    pub version: u64,
}

/// What a thread brings home.
pub struct Outcome {
    /// The counts.
    pub tally: Tally,
    /// From the start to the last answer that counts.
    pub elapsed: Duration,
}

/// One connection and what it waits for.
struct Lane {
    target: usize,
    socket: Option<Socket>,
    exchange: Exchange,
    /// Second halves of operations, which go before others.
    next: VecDeque<Pending>,
    reconnect_at: u64,
}

/// The loop's state.
pub struct Driver<'a> {
    plan: Plan,
    source: Source,
    poll: Poll,
    lanes: Vec<Lane>,
    tally: Tally,
    started: Instant,
    /// Of all threads, for the progress line.
    done: &'a AtomicU64,
    last_answer_ns: u64,
    stopping: Stopping,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Answers are waited for, but no longer counted.
    Since(u64),
}

impl<'a> Driver<'a> {
    /// Opens the connections.
    ///
    /// # Errors
    /// If the operating system has no more sockets.
    pub fn new(plan: Plan, source: Source, done: &'a AtomicU64) -> io::Result<Self> {
        let lane = |&number: &usize| Lane {
            target: number % plan.targets.addresses.len(),
            socket: None,
            exchange: Exchange::new(plan.protocol, plan.checking),
            next: VecDeque::new(),
            reconnect_at: 0,
        };
        let lanes = plan.lanes.iter().map(lane).collect();
        let poll = Poll::new()?;
        let (tally, started) = (Tally::new(plan.interval), Instant::now());
        Ok(Self {
            plan,
            source,
            poll,
            lanes,
            tally,
            started,
            done,
            last_answer_ns: 0,
            stopping: Stopping::No,
        })
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// If waiting for events fails.
    pub fn run(mut self) -> io::Result<Outcome> {
        self.started = Instant::now();
        self.open_lanes(0);
        let mut events = Events::with_capacity(1024);
        let mut next_tick = 0;
        while !self.is_finished() {
            match self.poll.poll(&mut events, Some(TICK)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                self.handle(event.token().0, event.is_readable() || event.is_error());
            }
            let now = self.now_ns();
            if now >= next_tick {
                // Half of how long the poll sleeps: so every turn after a quiet one looks, and a busy loop does so rarely.
                next_tick = now + TICK.as_nanos() as u64 / 2;
                self.tick(now);
            }
        }
        let end_ns = match self.stopping {
            Stopping::Since(at) => at,
            Stopping::No => self.last_answer_ns,
        };
        self.tally.nameless += self.lanes.iter().map(|lane| lane.exchange.nameless()).sum::<u64>();
        Ok(Outcome { tally: self.tally, elapsed: Duration::from_nanos(end_ns) })
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_finished(&self) -> bool {
        self.source.is_exhausted() && self.lanes.iter().all(|lane| lane.waiting() == 0)
    }

    /// A connection is ready.
    fn handle(&mut self, index: usize, readable: bool) {
        let result = if readable { self.receive(index) } else { Ok(self.now_ns()) };
        if let Err(broken) = result.and_then(|now| self.send(index, now)) {
            self.lose(index, &broken.words());
        }
    }

    /// Reads all that is there. The time of the last read.
    fn receive(&mut self, index: usize) -> Result<u64, Broken> {
        let Self { lanes, plan, tally, stopping, source, .. } = self;
        let Lane { socket, exchange, next, .. } = &mut lanes[index];
        let Some(socket) = socket.as_mut() else { return Ok(0) };
        loop {
            // Read until the kernel has no more: readiness is told once, not again for what was left.
            let drained = socket.fill()?;
            let now = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let mut taken = 0;
            let mut heard = |pending: &Pending, answer: Answer<'_>| {
                // What is answered after the end is read, so that the stream stays in step, and not counted.
                if *stopping == Stopping::No {
                    next.extend(take_answer(tally, source, plan, pending, answer, now));
                    taken += 1;
                }
            };
            exchange.receive(socket, &plan.values, &mut heard)?;
            if taken > 0 {
                self.last_answer_ns = now;
                self.done.fetch_add(taken, Ordering::Relaxed);
            }
            if drained == Drained::Yes {
                return Ok(now);
            }
        }
    }

    /// Fills the connection up to its depth.
    fn send(&mut self, index: usize, now: u64) -> Result<(), Broken> {
        let Self { lanes, plan, source, .. } = self;
        let lane = &mut lanes[index];
        while let Some(socket) = lane.socket.as_mut().filter(|_| lane.exchange.has_credit())
            && let Some(pending) =
                next_of(&lane.exchange, &mut lane.next, lane.target, (&mut *source, &mut *plan), now)
        {
            let key = plan.format.write(pending.key);
            plan.version += 1;
            let of = Material {
                values: &plan.values,
                targets: &plan.targets,
                version: plan.version,
                timeout_ms: u32::try_from(plan.timeout.as_millis()).unwrap_or(u32::MAX),
            };
            lane.exchange.ask(&mut socket.out, key, pending, &of);
        }
        Ok(lane.socket.as_mut().map_or(Ok(()), Socket::flush)?)
    }

    /// Gives a connection up; what it waited for has failed.
    fn lose(&mut self, index: usize, why: &str) {
        let now = self.now_ns();
        let lane = &mut self.lanes[index];
        lane.socket = None;
        lane.reconnect_at = now + RECONNECT_AFTER.as_nanos() as u64;
        let mut abandoned = lane.exchange.abandon();
        abandoned.extend(lane.next.drain(..));
        // A connection that waited for nothing has failed, too; otherwise each of its requests says so.
        if abandoned.is_empty() && self.stopping == Stopping::No {
            self.tally.failed(now, why);
        }
        for request in abandoned {
            if self.stopping == Stopping::No {
                self.tally.failed(now, why);
                self.source.give_back(lane.target, request.key);
            }
        }
        // Any server will do, so the next one is tried; with a map, only a newer map says where to go.
        if matches!(self.plan.source, targets::Source::Any(_)) {
            lane.target = (lane.target + 1) % self.plan.targets.addresses.len();
        }
    }

    fn tick(&mut self, now: u64) {
        self.expire(now);
        if self.lanes.iter().any(|lane| lane.socket.is_none()) {
            self.refresh_targets();
            self.open_lanes(now);
        }
        // Where nobody answers any more, waiting for the end would only fill the tally with time-outs.
        let silent = now.saturating_sub(self.last_answer_ns) > 2 * self.plan.timeout.as_nanos() as u64;
        if self.stopping == Stopping::No && (silent || now >= self.plan.duration.as_nanos() as u64) {
            self.stopping = Stopping::Since(now);
            self.source.stop();
        }
        if let Stopping::Since(at) = self.stopping
            && now > at + DRAIN.as_nanos() as u64
        {
            // Whoever has not answered by now will not.
            self.lanes.iter_mut().for_each(|lane| lane.abandon());
        }
    }

    /// Gives up on connections whose oldest request is too old.
    fn expire(&mut self, now: u64) {
        let limit = self.plan.timeout.as_nanos() as u64;
        let is_late = |lane: &Lane| lane.exchange.oldest_ns().is_some_and(|sent_ns| now > sent_ns + limit);
        let late: Vec<usize> = (0..self.lanes.len()).filter(|&index| is_late(&self.lanes[index])).collect();
        late.into_iter().for_each(|index| self.lose(index, "no answer in time"));
    }

    /// A connection is lost, so nodes may be: asks for the map again where there is one.
    fn refresh_targets(&mut self) {
        let plan = &mut self.plan;
        let listener = plan.protocol.listener();
        let newer = plan.targets.refreshed(&plan.source, listener, &mut plan.format, plan.keys);
        let Some(newer) = newer else { return };
        if newer.addresses != self.plan.targets.addresses {
            for (index, lane) in self.lanes.iter_mut().enumerate() {
                let address = self.plan.targets.addresses[lane.target];
                // A connection stays with its server, wherever that stands in the new list: it may have requests under way.
                let kept = newer.addresses.iter().position(|&other| other == address);
                lane.target = kept.unwrap_or(index % newer.addresses.len());
            }
        }
        self.plan.targets = newer;
    }

    /// Opens connections that are not open and may be.
    fn open_lanes(&mut self, now: u64) {
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.socket.is_some() || lane.reconnect_at > now {
                continue;
            }
            let address = self.plan.targets.addresses[lane.target];
            match Socket::connect(address, self.poll.registry(), Token(index)) {
                Ok(mut socket) => {
                    lane.exchange.greet(&mut socket.out);
                    lane.socket = Some(socket);
                }
                Err(error) => self.tally.failed(now, &format!("connect: {}", error.kind())),
            }
        }
    }
}

impl Lane {
    /// Operations that have begun here.
    fn waiting(&self) -> usize {
        self.exchange.waiting() + self.next.len()
    }

    /// Waits for nothing any more.
    fn abandon(&mut self) {
        self.exchange.abandon();
        self.next.clear();
    }
}

/// What a connection asks next, if there is room for it.
fn next_of(
    exchange: &Exchange,
    next: &mut VecDeque<Pending>,
    target: usize,
    (source, plan): (&mut Source, &mut Plan),
    now: u64,
) -> Option<Pending> {
    if let Some(next) = next.pop_front() {
        return Some(Pending { sent_ns: now, ..next });
    }
    if exchange.waiting() >= plan.depth {
        return None;
    }
    let (operation, key) = source.next(&mut plan.targets, &mut plan.format, target)?;
    Some(Pending { step: Step::first_of(operation), key, begun_ns: now, sent_ns: now })
}

/// Counts an answer; what has to be asked now, if its operation goes on.
fn take_answer(
    tally: &mut Tally,
    source: &mut Source,
    plan: &Plan,
    request: &Pending,
    answer: Answer<'_>,
    now: u64,
) -> Option<Pending> {
    match answer {
        Answer::Refused(words) => {
            tally.failed(now, &String::from_utf8_lossy(words));
            return None;
        }
        Answer::Exists => {
            tally.conflicts += 1;
            return Some(Pending { step: Step::Look, ..*request });
        }
        Answer::Miss => tally.misses += 1,
        Answer::Hit { len, bytes, version } => {
            tally.bytes += len;
            let is_wrong = |value: &[u8]| plan.values.check(value, request.key) == Verdict::Wrong;
            if plan.checking == Checking::On && bytes.is_none_or(is_wrong) {
                tally.wrong += 1;
            }
            if request.step == Step::Look {
                return Some(Pending { step: Step::Replace(version), ..*request });
            }
        }
        Answer::Stored => {
            tally.bytes += plan.values.len_of(request.key) as u64;
            source.stored(request.key);
        }
    }
    tally.answered(request.step.operation(), now, now.saturating_sub(request.begun_ns));
    None
}
