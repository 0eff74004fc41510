//! What a connection does with its commands: answer at once, submit, or wait for its turn.
//!
//! Rules: replies keep the order of commands; a command on a key with an unanswered command of the same connection
//! waits if either of them writes; everything else goes on side by side up to the connection's window.

use std::rc::Rc;

use bytes::Bytes;
use faces::{Ask, Face, Found, Keys, Stats, Step, Streamed};
use proto::{Now, Place, QuickRead, Read};
use types::NamespaceId;
use types::op::{Expiry, Flush, FlushAt, Get, Key, Op, OpKind, Outcome, Request};

use crate::clients::client::Client;
use crate::clients::connection::{Connection, Phase, Stall, State};
use crate::clients::gate::{AtGate, Load};
use crate::clients::key_uses::{Access, KeyUse};
use crate::clients::latency::Operation;
use crate::clients::replies::{Asked, Expected, Print};
use crate::clients::{Protocol, Style, Values, stats};
use crate::limits::{CLIENT_OUT_HIGH_BYTES, REQUEST_OVERHEAD_BYTES};
use crate::workers::asker::{Asker, Awaits};
use crate::workers::worker::Worker;

/// A command that has been read and not yet been carried out.
pub(crate) enum Work {
    /// An operation on one key.
    One(Box<Request>, Style),
    /// get gets gat gats.
    Get(Cursor),
    /// flush_all.
    Flush(FlushAt, Style),
    /// A value whose bytes follow.
    Stream(Box<Streamed<Style>>),
}

/// A get on its way through its keys.
pub(crate) struct Cursor {
    /// Whose keys they are.
    namespace: NamespaceId,
    /// The keys that are left.
    keys: Keys,
    /// A key whose turn has to wait.
    next: Option<Key>,
    progress: Progress,
    style: Values,
    touch: Option<Expiry>,
}

/// How far a get has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It has one key: no need to remember where it begins.
    Single,
    /// It has several, and none has been asked for.
    Fresh,
    /// Some have been asked for.
    Begun,
}

impl Work {
    fn kind(&self) -> OpKind {
        match self {
            Self::One(request, _) => request.op.kind(),
            Self::Stream(streamed) => streamed.request.op.kind(),
            Self::Get(cursor) if cursor.touch.is_some() => OpKind::GetAndTouch,
            Self::Get(_) => OpKind::Get,
            Self::Flush(..) => OpKind::FlushAll,
        }
    }

    /// Bytes that it holds.
    pub(crate) fn weight(&self) -> usize {
        REQUEST_OVERHEAD_BYTES
            + match self {
                Self::One(request, _) => request.op.value_bytes(),
                Self::Get(_) | Self::Flush(..) | Self::Stream(_) => 0,
            }
    }
}

/// A request on its way to the host.
struct Asking {
    /// How its outcome is printed.
    print: Print,
    used: KeyUse,
    place: Place,
    request: Box<Request>,
}

/// What became of a command.
pub(super) enum Turn {
    Done,
    /// It took no more than printing.
    Told,
    /// It has to wait, for this.
    Wait(Work, Stall),
}

impl Connection {
    /// Carries out every command that has arrived in full, as far as that is possible now.
    pub(crate) fn execute(self: &Rc<Self>, worker: &Rc<Worker>, state: &mut State, now: Now) {
        state.output.borrow(&worker.pool);
        state.stall = None;
        state.heed_map(worker, self.binding);
        if state.upload.is_some() && !self.take_block(worker, state, now) {
            return;
        }
        // A command that had to wait came before the end, and is still carried out.
        while state.phase == Phase::Open || state.work.is_some() {
            if let Some(stall) = self.must_wait(worker, state) {
                return self.stall(worker, state, stall);
            }
            let turn = if let Some(work) = state.work.take() {
                self.run_again(worker, state, now, work)
            } else {
                // Not for one that has waited: its time runs since it was understood.
                state.began = now.time;
                match Face::next(&mut state.parser, &mut state.input, now.unix) {
                    Step::Incomplete => break,
                    step => self.take_step(worker, state, now, step),
                }
            };
            match turn {
                Turn::Wait(work, stall) => {
                    state.work = Some(work);
                    return self.stall(worker, state, stall);
                }
                Turn::Told => continue,
                Turn::Done => {}
            }
            // A whole command has come: what is incomplete now has begun after it.
            state.times.half_sent = None;
            if state.upload.is_some() && !self.take_block(worker, state, now) {
                return;
            }
        }
        self.note_half_sent(worker, state, now);
    }

    /// Why nothing more may be started now, if so.
    fn must_wait(&self, worker: &Worker, state: &State) -> Option<Stall> {
        let (limits, replies) = (&worker.shared.config.limits, &state.replies);
        if state.output_len() >= CLIENT_OUT_HIGH_BYTES {
            return Some(Stall::Output);
        }
        // With nothing unanswered no answer would ever wake the task again, however low the limits are.
        if !replies.is_empty() {
            // Replies that are known, but not their turn yet, take places too; so they have a bound of their own.
            let full = replies.waiting() >= limits.outstanding_requests
                || replies.len() >= limits.outstanding_requests * 2
                || replies.load().held + replies.load().expected >= limits.outstanding_bytes;
            if full {
                return Some(Stall::Answers);
            }
        }
        let mid_command = !state.parser.is_idle(&state.input);
        (!worker.gate.admits(self.id, mid_command)).then_some(Stall::Gate)
    }

    /// Remembers to go on when something has changed.
    pub(super) fn stall(self: &Rc<Self>, worker: &Worker, state: &mut State, stall: Stall) {
        worker.counters.client_stalls.inc();
        state.stall = Some(stall);
        // Once: a connection that is woken for other reasons would come onto the gate's list again each time.
        if stall == Stall::Gate && !self.at_gate.replace(true) {
            worker.gate.wait(Rc::clone(self) as Rc<dyn AtGate>);
        }
    }

    fn note_half_sent(&self, worker: &Worker, state: &mut State, now: Now) {
        if state.parser.is_idle(&state.input) {
            state.times.half_sent = None;
            // An idle connection must not keep the gate's privilege from others that are in the middle of a command.
            worker.gate.finished(self.id);
        } else {
            state.times.half_sent.get_or_insert(now.time);
        }
    }

    /// Deals with what the parser has found. A part of its caller, or else commands are copied on their way; for the same reason none
    /// is made a [`Work`] that need not wait.
    #[inline(always)]
    fn take_step(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        step: Step<Style, Values>,
    ) -> Turn {
        match step {
            // Who has lost its place is not answered any more.
            Step::Ask(_) | Step::Stream(_) | Step::Say(_) | Step::Quit
                if state.silent.is_some() && !state.keep_place() => {}
            Step::Ask(ask) => return self.take_ask(worker, state, now, ask),
            Step::Stream(mut streamed) => {
                move_to(worker.namespace(self.binding), &mut streamed.request);
                return self.run_stream(worker, state, now, streamed);
            }
            // Who sends nothing but what is refused has not kept its place by that.
            Step::Say(line) | Step::Refuse(line) => state.print(|out| out.extend_from_slice(line)),
            Step::Quit | Step::Close => state.phase = Phase::Closing,
            Step::Incomplete => (),
        }
        Turn::Told
    }

    #[inline(always)]
    fn take_ask(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        ask: Ask<Style, Values>,
    ) -> Turn {
        match ask {
            Ask::Read { keys, touch, style } => {
                let namespace = worker.namespace(self.binding);
                return self.run_get(worker, state, now, Cursor::new(namespace, keys, style, touch));
            }
            Ask::One { mut request, style } => {
                move_to(worker.namespace(self.binding), &mut request);
                return self.run_one(worker, state, now, request, style);
            }
            Ask::Flush { at, style } => return self.run_flush(worker, state, now, at, style),
            Ask::Stats(which) => self.tell_stats(worker, state, which),
            Ask::Authenticate(_) => {
                // No access control is configured, so nobody is asked for a password.
                let line = Face::unlock(&mut state.parser);
                state.print(|out| out.extend_from_slice(line));
            }
        }
        Turn::Told
    }

    /// Statistics need the other workers' figures, so a task of its own gathers them.
    #[inline(never)]
    fn tell_stats(self: &Rc<Self>, worker: &Rc<Worker>, state: &mut State, which: Stats) {
        let slot = state.replies.expect(Expected {
            print: Print::Lines,
            asked: None,
            used: None,
            load: Load::default(),
        });
        // The connection may end meanwhile. Its slots are gone then, and the lines find no place.
        let (worker, connection) = (Rc::clone(worker), Rc::clone(self));
        let limits = worker.value_limits(self.binding);
        tokio::task::spawn_local(async move {
            let lines = stats::lines(&worker.shared, which, limits).await;
            connection.state.borrow_mut().replies.answer_lines(slot, lines);
            connection.deliver(&worker);
        });
    }

    /// Carries out a command that had to wait.
    #[inline(never)]
    fn run_again(self: &Rc<Self>, worker: &Rc<Worker>, state: &mut State, now: Now, work: Work) -> Turn {
        let kind = work.kind();
        let turn = match work {
            Work::One(request, style) => self.run_one(worker, state, now, request, style),
            Work::Get(cursor) => self.run_get(worker, state, now, cursor),
            Work::Flush(at, style) => self.run_flush(worker, state, now, at, style),
            Work::Stream(streamed) => self.run_stream(worker, state, now, streamed),
        };
        if matches!(turn, Turn::Done) {
            worker.stopwatch.queued(kind, state.began, now.time);
        }
        turn
    }

    #[inline(always)]
    fn run_get(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        mut cursor: Cursor,
    ) -> Turn {
        let stall = match cursor.progress {
            Progress::Single => self.run_single(worker, state, now, &mut cursor),
            Progress::Fresh | Progress::Begun => self.run_multi(worker, state, now, &mut cursor),
        };
        stall.map_or(Turn::Done, |stall| Turn::Wait(Work::Get(cursor), stall))
    }

    #[inline(always)]
    fn run_one(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        request: Box<Request>,
        style: Style,
    ) -> Turn {
        let place = worker.host.borrow().locate(request.key_bytes());
        let used = KeyUse::of(place, access_of(&request.op));
        // Before anything is counted: a command that has to wait comes here again.
        if state.replies.uses().conflicts(used) {
            return Turn::Wait(Work::One(request, style), Stall::Answers);
        }
        let prints_key = Protocol::prints_key(&style);
        if prints_key {
            worker.counters.cmd_meta.inc();
        }
        if read_one(worker, state, now, (place, &request), &style) != Read::Submit {
            return Turn::Done;
        }
        let printed = request.key.as_ref().filter(|_| prints_key);
        let key = printed.map(Key::client_bytes).unwrap_or_default();
        self.submit(worker, state, now, Asking { print: Print::Styled(style, key), used, place, request });
        Turn::Done
    }

    #[inline(always)]
    fn run_single(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        cursor: &mut Cursor,
    ) -> Option<Stall> {
        let key = cursor.take_key()?;
        let place = worker.host.borrow().locate(&key);
        let used = KeyUse::of(place, cursor.access());
        if state.replies.uses().conflicts(used) {
            cursor.next = Some(key);
            return Some(Stall::Answers);
        }
        match cursor.read(worker, state, now, place, &key) {
            Read::Hit | Read::Miss => state.print(|out| Protocol::print_end(cursor.style, None, out)),
            Read::Submit => {
                let print = Print::Get(key.client_bytes(), cursor.style);
                let request = cursor.request(key);
                self.submit(worker, state, now, Asking { print, used, place, request });
            }
        }
        None
    }

    fn run_multi(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        cursor: &mut Cursor,
    ) -> Option<Stall> {
        if cursor.progress == Progress::Fresh {
            cursor.progress = Progress::Begun;
            state.replies.begin_get(state.output.text());
        }
        while let Some(key) = cursor.take_key() {
            let place = worker.host.borrow().locate(&key);
            let used = KeyUse::of(place, cursor.access());
            // For each key anew: one get may have more keys than a connection may have unanswered.
            let conflict = state.replies.uses().conflicts(used).then_some(Stall::Answers);
            if let Some(stall) = conflict.or_else(|| self.must_wait(worker, state)) {
                cursor.next = Some(key);
                return Some(stall);
            }
            if cursor.read(worker, state, now, place, &key) == Read::Submit {
                let print = Print::Value(key.client_bytes(), cursor.style);
                let request = cursor.request(key);
                self.submit(worker, state, now, Asking { print, used, place, request });
            }
        }
        state.replies.end_get(cursor.style, state.output.text());
        None
    }

    /// flush_all goes to every data role, and is answered when all have answered.
    #[inline(never)]
    fn run_flush(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        state: &mut State,
        now: Now,
        at: FlushAt,
        style: Style,
    ) -> Turn {
        let used = KeyUse::ALL;
        if state.replies.uses().conflicts(used) {
            return Turn::Wait(Work::Flush(at, style), Stall::Answers);
        }
        worker.counters.count_command(OpKind::FlushAll);
        if !worker.shared.config.limits.flush_all {
            state.print(|out| Protocol::print_no_flush(&style, out));
            return Turn::Done;
        }
        let namespace = worker.namespace(self.binding);
        let members = match worker.data_roles(namespace) {
            Ok(members) => members,
            // What is gathered from nobody would never be complete.
            Err(failure) => {
                let outcome = Outcome::Failed(failure);
                state.replies.know(Print::Styled(style, Bytes::new()), outcome, state.output.text());
                return Turn::Done;
            }
        };
        let print = Print::gathered(style, members.len());
        let asked = state.asked(&print, OpKind::FlushAll);
        let slot = state.replies.expect(Expected { print, asked, used: Some(used), load: Load::default() });
        for member in members {
            let request = Request::flush(Flush { namespace, at });
            let asker = self.asker(worker, slot);
            if let Some(outcome) = worker.submit(now, asker, Place::of(member), request)
                && let Some(asked) =
                    state.replies.answer(slot, outcome, state.output.text(), &worker.counters)
            {
                worker.stopwatch.served(asked.operation, asked.began, now.time);
            }
        }
        Turn::Done
    }

    /// Submits a request whose reply comes next.
    fn submit(self: &Rc<Self>, worker: &Rc<Worker>, state: &mut State, now: Now, asking: Asking) {
        let Asking { print, used, place, request } = asking;
        let kind = request.op.kind();
        worker.counters.count_command(kind);
        let guess = if matches!(request.op, Op::Get(_)) { worker.reply_guess.len_bytes() } else { 0 };
        let load = Load { held: REQUEST_OVERHEAD_BYTES + request.op.value_bytes(), expected: guess };
        let asked = state.asked(&print, kind);
        let expected = Expected { print, asked, used: Some(used), load };
        let slot = state.replies.expect(expected);
        if let Some(mut outcome) = worker.submit(now, self.asker(worker, slot), place, request) {
            worker.spare_memory(&mut outcome, state.load().held);
            if let Some(asked) = state.replies.answer(slot, outcome, state.output.text(), &worker.counters) {
                worker.stopwatch.served(asked.operation, asked.began, now.time);
            }
        }
    }

    pub(super) fn asker(&self, worker: &Worker, slot: u64) -> Asker {
        Asker { shard: worker.shard, connection: self.id, slot, awaits: Awaits::Answer }
    }

    /// The same for news of a value that is sent or read bit by bit.
    pub(super) fn stream_asker(&self, worker: &Worker, slot: u64) -> Asker {
        Asker { awaits: Awaits::News, ..self.asker(worker, slot) }
    }
}

impl State {
    /// The command that is being carried out.
    pub(super) fn asked(&self, print: &Print, kind: OpKind) -> Option<Asked> {
        print.operation(kind).map(|operation| Asked { operation, began: self.began })
    }

    /// The next reply, known already.
    fn print(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.replies.say(self.output.text(), write);
    }
}

impl Cursor {
    fn new(namespace: NamespaceId, keys: Keys, style: Values, touch: Option<Expiry>) -> Self {
        let progress = if keys.count() == 1 { Progress::Single } else { Progress::Fresh };
        Self { namespace, keys, next: None, progress, style, touch }
    }

    fn take_key(&mut self) -> Option<Key> {
        self.next.take().or_else(|| self.keys.pop(self.namespace))
    }

    /// Tries to answer `key` here and now.
    fn read(&self, worker: &Worker, state: &mut State, now: Now, place: Place, key: &Key) -> Read {
        if self.touch.is_some() {
            // A touch changes the item, so it needs a record.
            return Read::Submit;
        }
        let State { replies, output, .. } = state;
        let read = worker.host.borrow_mut().read(now, place, QuickRead::plain(key), |seen| {
            let item = &seen.item;
            let found = Found { flags: item.client_flags, version: item.version, value: item.value };
            replies.say(output.text(), |out| Protocol::print_value(self.style, key.client(), &found, out));
        });
        worker.counters.count_read(read);
        if read != Read::Submit {
            let operation = Operation::of_read(OpKind::Get, self.style);
            worker.stopwatch.served(operation, state.began, now.time);
        }
        read
    }

    fn access(&self) -> Access {
        if self.touch.is_some() { Access::Write } else { Access::Read }
    }

    fn request(&self, key: Key) -> Box<Request> {
        Box::new(Request::on(key, Op::Get(Get { touch: self.touch, ..Get::default() })))
    }
}

/// Tries to answer a request here and now: it may be a read that changes nothing.
#[inline(always)]
fn read_one(
    worker: &Worker,
    state: &mut State,
    now: Now,
    (place, request): (Place, &Request),
    style: &Style,
) -> Read {
    let (Op::Get(get), Some(key)) = (&request.op, &request.key) else { return Read::Submit };
    let Some(asked) = QuickRead::of(key, get) else { return Read::Submit };
    let State { replies, output, .. } = state;
    let read = worker.host.borrow_mut().read(now, place, asked, |seen| {
        replies.say(output.text(), |out| {
            Protocol::print_found(style, key.client(), &seen.view(), seen.item.value, out);
        });
    });
    if read == Read::Miss {
        state.print(|out| Protocol::print(style, key.client(), &Outcome::Miss, out));
    }
    worker.counters.count_read(read);
    if read != Read::Submit {
        worker.stopwatch.served(Operation::of(OpKind::Get, style), state.began, now.time);
    }
    read
}

/// A client of `namespace` asks this.
fn move_to(namespace: NamespaceId, request: &mut Request) {
    if namespace != NamespaceId::DEFAULT {
        request.key = request.key.take().map(|key| key.moved_to(namespace));
    }
}

fn access_of(op: &Op) -> Access {
    match op {
        Op::Get(get) if !get.may_change() => Access::Read,
        Op::Debug | Op::Scan(_) => Access::Read,
        Op::Get(_)
        | Op::Store(_)
        | Op::Delete(_)
        | Op::Arith(_)
        | Op::Touch(_)
        | Op::Flush(_)
        | Op::Object(_)
        | Op::Session
        | Op::Expect(_) => Access::Write,
    }
}
