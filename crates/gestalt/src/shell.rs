//! The core at work: sockets, a timer, and who waits for what.
//!
//! There is one lock around the core and those who wait; it is held while a request is put into frames, frames are heard, or a value is received
//! where its caller wants it (`inbox`), and never over an await. Each connection is a task, in which reading and writing go on beside each other: a server that sends is read also while it takes
//! nothing.
//!
//! Values that are sent lie where the caller has them. When a request has ended and what is left of its value has not been sent, that is copied,
//! before the caller hears of the end: so writing to a socket, which never blocks, goes on under a lock of the connection.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes};
use client_core::{
    Action, Config, ConnId, Core, Done, Error, Estimates, Event, Landed, Operation, RequestId, Stats, disown,
};
use native::Meta;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use types::{NodeId, Time};

use crate::inbox::{Inbox, Sinks};

/// Buffers of one write.
const WRITE_BUFFERS: usize = 64;

/// Who hears what a request comes to. It is called while the core is at work, and must not call it.
pub trait Sink: Send {
    /// A value was found, of which so many bytes follow; whether they are wanted.
    fn head(&mut self, _meta: &Meta, _len: u64) -> bool {
        true
    }

    /// The next bytes of it, some of which may lie in its place; how many of them are taken at once. Of the others the core hears later.
    fn data(&mut self, bytes: Bytes) -> usize {
        bytes.len()
    }

    /// For how many bytes of a value it has a place, in which they may be received; 0 = it has none.
    fn room(&self) -> u64 {
        0
    }

    /// That place, for `len` bytes from `at` on of the `all` that are read. None = it has none for them. They may come more than once, in any
    /// order; [`Self::data`] says in the end which of them are the value.
    fn place(&mut self, _all: u64, _at: u64, _len: usize) -> Option<&mut dyn BufMut> {
        None
    }

    /// The same of a value that comes in pieces and in order, where it has a place for nothing else.
    fn room_for_pieces(&self) -> u64 {
        0
    }

    /// What lies there, all of which has been received.
    fn view(&self, _at: u64, _len: usize) -> Landed {
        Landed::Bytes(Bytes::new())
    }

    /// So many bytes, of which [`Self::view`] has said that they are [kept](Landed::Kept), are the next ones of the value.
    fn kept(&mut self, _len: usize) {}

    /// More bytes of a value that is fed may be given.
    fn wants(&mut self) {}

    /// The memory in which its value lies, if that is not the library's own and somebody may still hold on to it.
    fn lent(&self) -> Option<Range<usize>> {
        None
    }

    /// It has come to its end.
    fn done(self: Box<Self>, result: Result<Done, Error>);
}

/// A client's core with its tasks. See the module.
pub struct Shell {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    start: Instant,
    /// When the timer rings next.
    armed: AtomicU64,
    timer: Notify,
    has_map: watch::Sender<bool>,
    runtime: Handle,
}

struct State {
    core: Core,
    sinks: Sinks,
    connections: BTreeMap<ConnId, Arc<Wake>>,
}

/// What a connection's task waits for.
#[derive(Default)]
struct Wake {
    output: Notify,
    close: Notify,
    /// What is being sent. Locked after the state, never before it.
    sending: Mutex<Sending>,
}

#[derive(Default)]
struct Sending {
    buffers: Vec<Bytes>,
    /// How many of them have been sent.
    sent: usize,
}

impl Shell {
    /// Starts one on `runtime`; nothing is asked yet.
    #[must_use]
    pub fn start(config: Config, runtime: Handle) -> Self {
        let core = Core::new(config);
        let state = State { core, sinks: Sinks::default(), connections: BTreeMap::new() };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            start: Instant::now(),
            armed: AtomicU64::new(u64::MAX),
            timer: Notify::new(),
            has_map: watch::Sender::new(false),
            runtime,
        });
        drop(shared.runtime.spawn(keep_time(Arc::downgrade(&shared))));
        Self { shared }
    }

    /// Asks for something; `sink` hears what comes of it.
    ///
    /// # Errors
    /// Nothing was asked, and `sink` hears nothing.
    pub fn submit(&self, operation: Operation, sink: Box<dyn Sink>) -> Result<RequestId, Error> {
        let (now, mut state) = self.shared.enter();
        let id = self.shared.tell_core(&mut state.core, now, |core| core.submit(now, operation))?;
        state.core.receiving().has_room(id, sink.room());
        state.core.receiving().takes_pieces(id, sink.room_for_pieces());
        state.sinks.0.insert(id, sink);
        self.shared.dispatch(now, state);
        Ok(id)
    }

    /// Gives bytes of a value that is fed.
    pub fn feed(&self, id: RequestId, bytes: Bytes) {
        self.shared.with(|core, now| core.feed(now, id, bytes));
    }

    /// Bytes of a value that is read have been taken.
    pub fn taken(&self, id: RequestId, len: u64) {
        self.shared.with(|core, _| core.taken(id, len));
    }

    /// Nobody waits for a request any more.
    pub fn cancel(&self, id: RequestId) {
        self.shared.with(|core, _| core.cancel(id));
    }

    /// Ends everything that has not ended, and all connections. What is asked afterwards is refused.
    pub fn close(&self) {
        self.shared.with(|core, _| core.close());
        self.shared.timer.notify_one();
    }

    /// Returns when the client has a map, or when the time is over: whether it has.
    pub async fn has_map(&self, limit: Duration) -> bool {
        let mut has_map = self.shared.has_map.subscribe();
        self.shared.with(|core, now| core.reach_out(now));
        matches!(tokio::time::timeout(limit, has_map.wait_for(|has| *has)).await, Ok(Ok(_)))
    }

    /// The nodes that live and take this protocol, by the map that the client has now.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<NodeId, SocketAddr> {
        let (_, state) = self.shared.enter();
        let all = state.core.map().into_iter().flat_map(|map| &map.nodes);
        all.filter(|(_, node)| node.alive).filter_map(|(id, node)| Some((*id, node.native?))).collect()
    }

    /// What the client has done by itself about values in chunks.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.enter().1.core.stats()
    }

    /// What it knows of its means and ways.
    #[must_use]
    pub fn estimates(&self) -> Estimates {
        self.shared.enter().1.core.estimates()
    }

    /// How many requests have not ended.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.shared.enter().1.core.unfinished()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn now(&self) -> Time {
        // The first moment is not 0, which is before all of them.
        Time(1 + u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX - 1))
    }

    fn enter(&self) -> (Time, MutexGuard<'_, State>) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (self.now(), state)
    }

    fn with(self: &Arc<Self>, act: impl FnOnce(&mut Core, Time)) {
        let (now, mut state) = self.enter();
        self.tell_core(&mut state.core, now, |core| act(core, now));
        self.dispatch(now, state);
    }

    /// The core is told something; and how long it has coded, if it has.
    fn tell_core<T>(&self, core: &mut Core, now: Time, act: impl FnOnce(&mut Core) -> T) -> T {
        let before = core.stats();
        let result = act(core);
        let after = core.stats();
        let coded = after.coded_bytes - before.coded_bytes;
        if coded > 0 {
            core.coding_took(coded, self.now().since(now));
        }
        if after.turns > before.turns {
            tracing::info!(estimates = ?core.estimates(), "long values go the other way from here on");
        }
        result
    }

    /// Reads once, and tells the core of what has come: how many bytes; 0 = no more come.
    fn poll_receive(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        conn: ConnId,
        reader: &mut OwnedReadHalf,
        inbox: &mut Inbox,
    ) -> Poll<std::io::Result<usize>> {
        let (now, mut state) = self.enter();
        let came = if inbox.lands() {
            let State { core, sinks, .. } = &mut *state;
            ready!(inbox.poll_land(cx, reader, core, sinks))?
        } else {
            let awaits_values = state.core.receiving().awaits_values(conn);
            drop(state);
            let came = ready!(inbox.poll_fill(cx, reader, awaits_values))?;
            state = self.enter().1;
            came
        };
        let State { core, sinks, .. } = &mut *state;
        self.tell_core(core, now, |core| inbox.hear(now, core, sinks));
        self.dispatch(now, state);
        Poll::Ready(Ok(came))
    }

    /// Tells everybody what has come of what the core was told, and does what it wants done.
    fn dispatch(self: &Arc<Self>, now: Time, mut state: MutexGuard<'_, State>) {
        let State { core, sinks, connections } = &mut *state;
        while let Some(event) = core.poll_event() {
            tell(core, sinks, connections, event);
        }
        while let Some(action) = core.poll_action() {
            match action {
                Action::Connect(conn, address) => {
                    let wake = Arc::new(Wake::default());
                    connections.insert(conn, Arc::clone(&wake));
                    drop(self.runtime.spawn(run(Arc::downgrade(self), conn, address, wake)));
                }
                Action::Close(conn) => {
                    if let Some(wake) = connections.remove(&conn) {
                        // From here on nobody looks for lent memory in it.
                        *wake.sending() = Sending::default();
                        wake.close.notify_one();
                    }
                }
                Action::Send(conn) => {
                    if let Some(wake) = connections.get(&conn) {
                        wake.output.notify_one();
                    }
                }
            }
        }
        if core.map().is_some() && !*self.has_map.borrow() {
            self.has_map.send_replace(true);
        }
        let next = core.next_deadline(now).map_or(u64::MAX, |time| time.0);
        drop(state);
        // A timer that rings too early does no harm, and is cheaper than to move it every time.
        if next < self.armed.load(Ordering::Relaxed) {
            self.armed.store(next, Ordering::Relaxed);
            self.timer.notify_one();
        }
    }
}

fn tell(core: &mut Core, sinks: &mut Sinks, connections: &BTreeMap<ConnId, Arc<Wake>>, event: Event) {
    match event {
        Event::Head(id, meta, len) => {
            let wanted = sinks.0.get_mut(&id).is_some_and(|sink| sink.head(&meta, len));
            if !wanted && sinks.0.contains_key(&id) {
                core.cancel(id);
            }
        }
        Event::Data(id, bytes) => {
            if let Some(sink) = sinks.0.get_mut(&id) {
                let taken = sink.data(bytes);
                core.taken(id, taken as u64);
            }
        }
        Event::Kept(id, len) => {
            if let Some(sink) = sinks.0.get_mut(&id) {
                sink.kept(len);
                core.taken(id, len as u64);
            }
        }
        Event::Wants(id) => {
            if let Some(sink) = sinks.0.get_mut(&id) {
                sink.wants();
            }
        }
        Event::Done(id, result) => {
            if let Some(sink) = sinks.0.remove(&id) {
                if let Some(memory) = sink.lent() {
                    core.disown(&memory);
                    connections.values().for_each(|wake| wake.sending().disown(&memory));
                }
                sink.done(result);
            }
        }
    }
}

/// Rings when the core wants it, until the client is gone.
async fn keep_time(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let until = strong.armed.load(Ordering::Relaxed);
        let left = Duration::from_micros(until.saturating_sub(strong.now().0));
        let rings = tokio::time::timeout(left.min(LONGEST_SLEEP), strong.timer.notified()).await.is_err();
        if rings {
            strong.armed.store(u64::MAX, Ordering::Relaxed);
            strong.with(|core, now| core.tick(now));
        }
        if Arc::strong_count(&strong) == 1 {
            return;
        }
    }
}

/// How long the timer sleeps at most.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// One connection, until it is lost or not wanted any more.
async fn run(shared: Weak<Shared>, conn: ConnId, address: SocketAddr, wake: Arc<Wake>) {
    let talking = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        match shared.upgrade() {
            Some(shared) => shared.with(|core, _| core.connected(conn)),
            None => return Ok(()),
        }
        tokio::select! {
            ended = read(&shared, conn, reader) => ended,
            ended = write(&shared, conn, writer, &wake) => ended,
        }
    };
    let ended: std::io::Result<()> = tokio::select! {
        ended = talking => ended,
        () = wake.close.notified() => return,
    };
    if let Some(shared) = shared.upgrade() {
        tracing::debug!(%address, ?ended, "a connection was lost");
        let (now, mut state) = shared.enter();
        state.connections.remove(&conn);
        state.core.lost(now, conn);
        shared.dispatch(now, state);
    }
}

async fn read(shared: &Weak<Shared>, conn: ConnId, mut reader: OwnedReadHalf) -> std::io::Result<()> {
    let mut inbox = Inbox::of(conn);
    let mut poll = |cx: &mut Context<'_>| match shared.upgrade() {
        Some(shared) => shared.poll_receive(cx, conn, &mut reader, &mut inbox),
        None => Poll::Ready(Ok(0)),
    };
    while poll_fn(&mut poll).await? > 0 {}
    Ok(())
}

async fn write(
    shared: &Weak<Shared>,
    conn: ConnId,
    writer: OwnedWriteHalf,
    wake: &Wake,
) -> std::io::Result<()> {
    loop {
        let Some(shared) = shared.upgrade() else { return Ok(()) };
        shared.with(|core, now| {
            let mut sending = wake.sending();
            core.poll_output(now, conn, WRITE_BUFFERS, &mut sending.buffers);
        });
        drop(shared);
        let mut has_sent = false;
        while let Some(sent) = wake.send(&writer) {
            match sent {
                Ok(()) => has_sent = true,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => writer.writable().await?,
                Err(error) => return Err(error),
            }
        }
        if !has_sent {
            wake.output.notified().await;
        }
    }
}

impl Wake {
    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its lock is not held while the socket takes nothing.
    fn send(&self, writer: &OwnedWriteHalf) -> Option<std::io::Result<()>> {
        self.sending().send(writer)
    }
}

impl Sending {
    /// Sends what the socket takes now; none if there is nothing left.
    fn send(&mut self, writer: &OwnedWriteHalf) -> Option<std::io::Result<()>> {
        let rest = &self.buffers[self.sent..];
        if rest.is_empty() {
            return None;
        }
        let slices: Vec<IoSlice<'_>> = rest.iter().map(|bytes| IoSlice::new(bytes)).collect();
        let result = writer.try_write_vectored(&slices);
        Some(result.and_then(|len| {
            if len == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.advance(len);
            Ok(())
        }))
    }

    fn advance(&mut self, mut len: usize) {
        while let Some(bytes) = self.buffers.get_mut(self.sent) {
            let sent = len.min(bytes.len());
            bytes.advance(sent);
            len -= sent;
            if !bytes.is_empty() {
                return;
            }
            // Nothing holds on to a value that has been sent.
            *bytes = Bytes::new();
            self.sent += 1;
        }
        self.buffers.clear();
        self.sent = 0;
    }

    fn disown(&mut self, memory: &Range<usize>) {
        self.buffers.iter_mut().for_each(|bytes| disown(bytes, memory));
    }
}
