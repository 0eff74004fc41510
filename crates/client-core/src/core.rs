//! All of a client's requests and connections. What happens is routed to who is concerned; what has to happen is said as data.

mod scans;
mod transfers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use native::{
    Answer, Code, Decoder, FromClient, FromServer, Malformed, Reason, RouteMap, Value, Welcome, Window,
};
use types::{MAX_OBJECT_BYTES, NamespaceId, Time};

use crate::config::Config;
use crate::connection::{Connection, Stage};
use crate::direct::{Direct, Policy};
use crate::error::Error;
use crate::event::{Action, ConnId, Done, Event, RequestId};
use crate::nodes::Nodes;
use crate::operation::{Op, Operation};
use crate::request::{Fate, Found, Place, Reading, Request, Way};
use crate::sessions::{Naming, RoleId, Sessions};

/// Most times that the pause before a request is sent again doubles.
const DOUBLINGS: u32 = 5;
/// Connections that a client has at least, where there are as many nodes: from one of them it hears what became of the other's node.
const LEAST_CONNECTIONS: usize = 2;
/// With the next tick.
const AT_ONCE: Time = Time(0);

/// See the module.
#[derive(Debug)]
pub struct Core {
    config: Config,
    nodes: Nodes,
    requests: BTreeMap<RequestId, Request>,
    connections: BTreeMap<ConnId, Connection>,
    by_address: BTreeMap<SocketAddr, ConnId>,
    deadlines: BTreeSet<(Time, RequestId)>,
    /// Requests that are sent again then.
    parked: BTreeSet<(Time, RequestId)>,
    /// Requests for which there is no node now, or no map yet.
    homeless: BTreeSet<RequestId>,
    sessions: Sessions,
    direct: Direct,
    /// Which values are coded here.
    encode: Policy,
    decode: Policy,
    /// The newest time that is known.
    seen: Time,
    actions: VecDeque<Action>,
    events: VecDeque<Event>,
    /// The last numbers that were given.
    last_request: u64,
    last_connection: u64,
    is_closed: bool,
}

/// Commands of the caller.
impl Core {
    /// A client that has asked for nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            nodes: Nodes::new(config.seeds.clone()),
            sessions: Sessions::new(config.no_session_us, config.rules),
            direct: Direct::default(),
            encode: Policy::new(config.encode),
            decode: Policy::new(config.decode),
            seen: Time(0),
            config,
            requests: BTreeMap::new(),
            connections: BTreeMap::new(),
            by_address: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            parked: BTreeSet::new(),
            homeless: BTreeSet::new(),
            actions: VecDeque::new(),
            events: VecDeque::new(),
            last_request: 0,
            last_connection: 0,
            is_closed: false,
        }
    }

    /// Asks for something. What it comes to is an event.
    ///
    /// # Errors
    /// `Closed`, `Full`, `BadKey` or `TooLarge`: then nothing has been asked.
    pub fn submit(&mut self, now: Time, operation: Operation) -> Result<RequestId, Error> {
        let Operation { key, op, timeout_us } = operation;
        self.seen = now;
        if self.is_closed {
            return Err(Error::Closed);
        }
        if self.requests.len() >= self.config.max_requests {
            return Err(Error::Full);
        }
        if !scans::has_right_key(&key, &op) {
            return Err(Error::BadKey);
        }
        if matches!(&op, Op::Store { body, .. } if body.len() > MAX_OBJECT_BYTES) {
            return Err(Error::TooLarge);
        }
        let deadline = now + timeout_us.unwrap_or(self.config.timeout_us);
        let way = self.way_of(now, &op);
        let request = Request { way, ..Request::new(key, op, deadline) };
        let waits = request.is_incomplete();
        let wants = request.upload.as_ref().is_some_and(|upload| upload.wants_more());
        let id = self.add(request);
        if wants {
            self.events.push_back(Event::Wants(id));
        }
        if !waits {
            self.route(now, id);
        }
        Ok(id)
    }

    fn add(&mut self, request: Request) -> RequestId {
        self.last_request += 1;
        let id = RequestId(self.last_request);
        self.deadlines.insert((request.deadline, id));
        self.requests.insert(id, request);
        id
    }

    /// Gives bytes of a value that is fed; nothing happens if its request has ended. Too many are cut off by its length.
    pub fn feed(&mut self, now: Time, id: RequestId, bytes: Bytes) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let waited = request.is_incomplete();
        if request.feed(bytes).is_none() {
            return self.finish(id, Err(Error::TooLarge));
        }
        let (waits, place) = (request.is_incomplete(), request.place);
        let wants = request.upload.as_ref().is_some_and(|upload| upload.wants_more());
        match place {
            _ if waits => {}
            None if waited => self.route(now, id),
            Some(Place { conn, sent: Some(_) }) => self.push(conn),
            Some(_) | None => {}
        }
        if wants {
            self.events.push_back(Event::Wants(id));
        }
    }

    /// The caller has taken so many bytes of a value that it reads.
    pub fn taken(&mut self, id: RequestId, len: u64) {
        let window = self.config.window;
        let Some(request) = self.requests.get_mut(&id) else { return };
        let grant = request.reading.as_mut().and_then(|reading| reading.taken(len, window));
        if let (Some(bytes), Some(Place { conn, sent: Some((wire, _)) })) = (grant, request.place) {
            self.say(conn, &FromClient::Window(Window { id: wire, bytes }));
        }
        self.taken_of_transfer(id);
    }

    /// The caller does not want to wait any more. What the request has done so far stays done.
    pub fn cancel(&mut self, id: RequestId) {
        self.give_up(id, Error::Cancelled);
    }

    /// Looks for a map before anything is asked.
    pub fn reach_out(&mut self, now: Time) {
        if self.nodes.map().is_none() {
            self.look_for_a_map(now);
        }
    }

    /// The map, once there is one.
    #[must_use]
    pub fn map(&self) -> Option<&RouteMap> {
        self.nodes.map()
    }

    /// How many requests have not ended.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.requests.len()
    }

    /// The memory of a value whose request has ended is its owner's again: what waits to be sent of it is copied. What
    /// [`Self::poll_output`] has given, its caller [copies](crate::disown).
    pub fn disown(&mut self, memory: &Range<usize>) {
        self.connections.values_mut().for_each(|connection| connection.disown(memory));
    }

    /// Everything ends: what is unfinished, and all connections. Nothing is asked any more.
    pub fn close(&mut self) {
        self.is_closed = true;
        let unfinished: Vec<RequestId> = self.requests.keys().copied().collect();
        unfinished.into_iter().for_each(|id| self.finish(id, Err(Error::Closed)));
        let connections = std::mem::take(&mut self.connections);
        self.actions.extend(connections.into_keys().map(Action::Close));
        self.by_address.clear();
        self.direct = Direct::default();
    }
}

/// What is to be done.
impl Core {
    /// The next thing to be done with a connection.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next thing that a request has come to.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What a connection has to send next, at most so many buffers: it counts as sent from now on.
    pub fn poll_output(&mut self, now: Time, conn: ConnId, most: usize, into: &mut Vec<Bytes>) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        connection.take_output(most, into);
        // There may be room again for what was held back.
        self.pump(now, conn);
        self.push(conn);
    }

    /// When [`Self::tick`] has something to do; none = never.
    #[must_use]
    pub fn next_deadline(&self, now: Time) -> Option<Time> {
        let opening = self.connections.values().filter_map(|connection| match connection.stage {
            Stage::Opening(since) => Some(since + self.config.connect_us),
            Stage::Open(_) => None,
        });
        let first = |set: &BTreeSet<(Time, RequestId)>| set.first().map(|(time, _)| *time);
        let homeless = (!self.homeless.is_empty()).then(|| self.nodes.next_try(now)).flatten();
        let hold = self.config.rules.deadlines_hold(self.nodes.map().is_some());
        [first(&self.deadlines).filter(|_| hold), first(&self.parked), homeless, self.direct.due()]
            .into_iter()
            .flatten()
            .chain(opening)
            .min()
    }
}

/// What arrives.
impl Core {
    /// A connection has been made.
    pub fn connected(&mut self, conn: ConnId) {
        // What was said before had nowhere to go.
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.announced = false;
        }
        self.announce(conn);
    }

    /// Bytes have come, which are taken off `input` as far as they are whole frames.
    pub fn received(&mut self, now: Time, conn: ConnId, input: &mut BytesMut) {
        self.seen = now;
        while self.connections.contains_key(&conn) {
            let message = match Decoder::next(input) {
                Ok(None) => return,
                Ok(Some(frame)) => FromServer::take(frame),
                Err(malformed) => Err(malformed),
            };
            match message {
                Ok(message) => self.hear(now, conn, message),
                Err(malformed) => return self.distrust(now, conn, malformed),
            }
        }
    }

    /// A connection could not be made, or has ended.
    pub fn lost(&mut self, now: Time, conn: ConnId) {
        self.seen = now;
        let Some(connection) = self.connections.remove(&conn) else { return };
        self.by_address.remove(&connection.address);
        self.nodes.fails(now, connection.address, self.config.pause_us);
        for id in &connection.waiting {
            if let Some(request) = self.requests.get_mut(id) {
                request.place = None;
                self.route(now, *id);
            }
        }
        for id in connection.in_flight.values() {
            let Some(request) = self.requests.get_mut(id) else { continue };
            // It may have been sent again elsewhere.
            if request.place.is_none_or(|place| place.conn != conn) {
                continue;
            }
            match request.fate(self.config.rules, |place| connection.has_left(place)) {
                Fate::Again => self.send_again(now, *id, 0),
                Fate::Nothing => self.finish(*id, Err(Error::Unreachable)),
                Fate::Unknown => self.finish(*id, Err(Error::Unknown)),
            }
        }
        self.direct.lose(self.means(now), conn);
        self.carry_out(now);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        self.seen = now;
        let hold = self.config.rules.deadlines_hold(self.nodes.map().is_some());
        while hold
            && let Some(entry @ (_, id)) = self.deadlines.first().copied().filter(|(time, _)| *time <= now)
        {
            self.deadlines.remove(&entry);
            let error = self.requests.get(&id).map_or(Error::TimedOut, timed_out);
            self.give_up(id, error);
        }
        while let Some(entry) = self.parked.first().copied().filter(|(time, _)| *time <= now) {
            self.parked.remove(&entry);
            self.route(now, entry.1);
        }
        self.direct.tick(self.means(now));
        self.carry_out(now);
        let late = |connection: &Connection| matches!(connection.stage, Stage::Opening(since) if since + self.config.connect_us <= now);
        let late: Vec<ConnId> =
            self.connections.iter().filter(|(_, one)| late(one)).map(|(conn, _)| *conn).collect();
        for conn in late {
            self.actions.push_back(Action::Close(conn));
            self.lost(now, conn);
        }
        self.settle_homeless(now);
    }
}

/// What a request that is given up at its deadline has come to.
fn timed_out(request: &Request) -> Error {
    let was_sent = request.place.is_some_and(|place| place.sent.is_some());
    if was_sent || request.may_be_done() { Error::TimedOut } else { Error::Unreachable }
}

/// Messages.
impl Core {
    fn hear(&mut self, now: Time, conn: ConnId, message: FromServer) {
        let hears_of_maps = self.config.rules.hears_of_maps(self.nodes.map().is_some());
        match message {
            FromServer::Map(..) | FromServer::Changes(_) if !hears_of_maps => {}
            FromServer::Welcome(welcome) => self.welcomed(now, conn, welcome),
            FromServer::Closing(_, closing) => {
                // Whoever has broken a rule does not do so again at once.
                let is_ours = !matches!(closing.reason, Reason::Ends | Reason::Idle | Reason::SlowReader);
                if is_ours && let Some(connection) = self.connections.get(&conn) {
                    self.nodes.fails(now, connection.address, self.config.pause_us);
                }
                self.actions.push_back(Action::Close(conn));
                self.lost(now, conn);
            }
            FromServer::Map(part, more) => self.hear_map(now, conn, &part, more),
            FromServer::Changes(changes) => {
                if self.nodes.apply(&changes) {
                    self.map_changed(now);
                } else {
                    self.say(conn, &FromClient::MapWanted(0));
                }
            }
            FromServer::Answer(wire, answer) => self.hear_answer(now, conn, wire, *answer),
            FromServer::Piece(piece) => self.hear_piece(now, conn, piece.id, piece.bytes),
            FromServer::Window(window) => {
                let Some(id) = self.in_flight(conn, window.id) else { return };
                if let Some(upload) = self.requests.get_mut(&id).and_then(|request| request.upload.as_mut()) {
                    upload.window += u64::from(window.bytes);
                    self.push(conn);
                }
            }
            FromServer::End(wire, code) => {
                match self.end(conn, wire) {
                    Some(id) if id.is_part() => {
                        self.direct.hear_end(self.means(now), id, code);
                        self.carry_out(now);
                    }
                    Some(id) => self.ended(now, id, code),
                    None => {}
                }
                self.pump(now, conn);
            }
        }
    }

    /// A value in pieces is at its end.
    fn ended(&mut self, now: Time, id: RequestId, code: Code) {
        let is_whole = |reading: Reading| reading.is_whole();
        let reading = self.requests.get(&id).and_then(|request| request.reading);
        match code {
            Code::Whole if reading.is_some_and(is_whole) => self.finish(id, Ok(Done::Value)),
            Code::Whole => self.finish(id, Err(Error::Code(Code::Corrupt))),
            code => self.failed(now, id, code),
        }
    }

    fn welcomed(&mut self, now: Time, conn: ConnId, welcome: Welcome) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let address = connection.address;
        connection.stage = Stage::Open(welcome);
        self.nodes.works(address);
        self.pump(now, conn);
        self.settle_homeless(now);
    }

    fn hear_map(&mut self, now: Time, conn: ConnId, part: &[u8], more: bool) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        match connection.assembly.add(part, more) {
            Ok(None) => {}
            Ok(Some(map)) => {
                if self.nodes.adopt(map) {
                    self.map_changed(now);
                }
            }
            Err(_) => self.distrust(now, conn, Malformed::Field("the map")),
        }
    }

    fn map_changed(&mut self, now: Time) {
        // What is asked of a node that is gone would wait for its deadline.
        let gone = |address: &SocketAddr| {
            let nodes = self.nodes.map().into_iter().flat_map(|map| map.nodes.values());
            nodes.filter(|node| node.native == Some(*address)).any(|node| !node.alive)
        };
        let gone: Vec<ConnId> =
            self.by_address.iter().filter(|(address, _)| gone(address)).map(|(_, conn)| *conn).collect();
        for conn in gone {
            self.actions.push_back(Action::Close(conn));
            self.lost(now, conn);
        }
        self.settle_homeless(now);
        if self.connections.len() < LEAST_CONNECTIONS
            && let Some(address) = self.nodes.any(now, |address| !self.by_address.contains_key(&address))
        {
            self.connection_to(now, address);
        }
    }

    fn hear_answer(&mut self, now: Time, conn: ConnId, wire: u64, answer: Answer) {
        let id = if answer.goes_on() { self.in_flight(conn, wire) } else { self.end(conn, wire) };
        if let Some(id) = id {
            match answer {
                answer if id.is_part() => {
                    self.direct.hear_answer(self.means(now), id, &answer);
                    self.carry_out(now);
                }
                Answer::Chunks(found) => self.chunks_found(now, id, *found),
                Answer::Begun(begun) => self.chunks_begun(now, id, *begun),
                Answer::Value(value) => self.found(conn, id, value),
                Answer::Keys(page) => self.keys_come(id, page),
                Answer::Just(code) if code as u8 >= Code::NotANumber as u8 => self.failed(now, id, code),
                // The key has nothing any more: what has come is the beginning of a value without its end.
                _ if self.has_begun_to_read(id) => self.finish(id, Err(Error::Changed)),
                answer => self.finish(id, Ok(Done::Answer(answer))),
            }
        }
        self.pump(now, conn);
    }

    /// Whether bytes of a value may have been given to the caller: then there is a value or a failure, and no other answer.
    fn has_begun_to_read(&self, id: RequestId) -> bool {
        let rules = self.config.rules;
        self.requests.get(&id).is_some_and(|request| request.reading.is_some() && !rules.reads_on(false))
    }

    fn found(&mut self, conn: ConnId, id: RequestId, value: Value) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        match request.found(self.config.rules, &value.meta, value.start, value.len) {
            Found::First => self.events.push_back(Event::Head(id, value.meta, value.len)),
            Found::Same => {}
            Found::Other => return self.give_up(id, Error::Changed),
        }
        if let Some(bytes) = value.bytes {
            self.bring(conn, id, bytes);
            self.finish(id, Ok(Done::Value));
        }
    }

    fn hear_piece(&mut self, now: Time, conn: ConnId, wire: u64, bytes: Bytes) {
        let Some(id) = self.in_flight(conn, wire) else { return };
        let is_one = if id.is_part() {
            self.direct.hear_piece(self.means(now), id, bytes)
        } else {
            self.bring(conn, id, bytes)
        };
        self.carry_out(now);
        if !is_one {
            self.distrust(now, conn, Malformed::Field("the length of a value"));
        }
    }

    /// Bytes of a value have come; whether they are no more than were announced.
    fn bring(&mut self, conn: ConnId, id: RequestId, bytes: Bytes) -> bool {
        let Some(request) = self.requests.get_mut(&id) else { return true };
        // It may be asked elsewhere by now.
        if request.place.is_none_or(|place| place.conn != conn) {
            return true;
        }
        let Some(reading) = &mut request.reading else { return false };
        let fits = reading.add(bytes.len() as u64);
        if fits && !bytes.is_empty() {
            self.events.push_back(Event::Data(id, bytes));
        }
        fits
    }

    /// A server has said that a request has failed.
    fn failed(&mut self, now: Time, id: RequestId, code: Code) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let is_new = !request.may_be_done();
        if code == Code::NoSession
            && let Some(name) = request.name.take()
        {
            let held = self.sessions.drop_session(&name);
            if is_new {
                self.send_again(now, id, 0);
            } else {
                self.finish(id, Err(Error::Unknown));
            }
            return self.parked.extend(held.into_iter().map(|id| (AT_ONCE, id)));
        }
        if matches!(code, Code::NotDirect | Code::Moved) && request.way == Way::Chunks {
            if code == Code::NotDirect {
                self.encode.is_not_direct(now, request.value_len());
            }
            request.restart(self.config.rules);
            request.way = Way::Node;
            return self.send_again(now, id, 0);
        }
        // Under its name it may be asked again what became of it.
        let asks_again = self.config.rules.asks_again_what_may_be_done(request.name.is_some());
        let may_repeat = code.may_repeat() || code == Code::Unknown && asks_again;
        if may_repeat && request.can_restart() {
            let pause = self.config.pause_us << request.attempts.min(DOUBLINGS);
            return self.send_again(now, id, pause);
        }
        let error = if code == Code::Late && !is_new { Error::Unknown } else { Error::Code(code) };
        self.finish(id, Err(error));
    }

    /// A server that breaks the protocol is not listened to.
    fn distrust(&mut self, now: Time, conn: ConnId, _why: Malformed) {
        self.actions.push_back(Action::Close(conn));
        self.lost(now, conn);
    }

    /// The request that goes by this number at a connection, if it still does.
    fn in_flight(&self, conn: ConnId, wire: u64) -> Option<RequestId> {
        let id = *self.connections.get(&conn)?.in_flight.get(&wire)?;
        let place = if id.is_part() { self.direct.place(id) } else { self.requests.get(&id)?.place }?;
        (place.conn == conn && place.sent.is_some_and(|(number, _)| number == wire)).then_some(id)
    }

    /// The same, of its last frame: its credit is free again.
    fn end(&mut self, conn: ConnId, wire: u64) -> Option<RequestId> {
        let id = self.in_flight(conn, wire);
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.in_flight.remove(&wire);
        }
        id
    }
}

/// Ways of requests.
impl Core {
    /// Finds a connection for a request, and sends it as soon as that takes it.
    fn route(&mut self, now: Time, id: RequestId) {
        // Several may have looked for its way: those who wait for a node, and those for a session.
        let Some(request) = self.requests.get(&id).filter(|request| request.place.is_none()) else { return };
        if self.direct.is_under_way(id) {
            return;
        }
        let Some(map) = self.nodes.map() else {
            self.homeless.insert(id);
            return self.look_for_a_map(now);
        };
        let Some(namespace) = self.namespace(map) else { return self.finish(id, Err(Error::NoNamespace)) };
        self.homeless.remove(&id);
        if self.config.sessions && request.name.is_none() && request.op.can_be_done_once() {
            let role = self.nodes.role(namespace, &request.key);
            if role.is_some_and(|role| !self.name(now, id, role)) {
                return;
            }
        }
        let Some(request) = self.requests.get(&id) else { return };
        let beside = self.config.beside.filter(|_| request.op.is_plain_read());
        let beside = beside.and_then(|address| self.nodes.any(now, |known| known == address));
        let first = beside.or_else(|| scans::primary_of(&self.nodes, now, namespace, request));
        let Some(address) = first.or_else(|| self.nodes.any(now, |_| true)) else {
            self.homeless.insert(id);
            return;
        };
        let conn = self.connection_to(now, address);
        if let Some(request) = self.requests.get_mut(&id) {
            request.place = Some(Place { conn, sent: None });
        }
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.waiting.push_back(id);
        }
        self.pump(now, conn);
    }

    fn namespace(&self, map: &RouteMap) -> Option<NamespaceId> {
        map.namespace_named(self.config.namespace.as_str())
    }

    fn look_for_a_map(&mut self, now: Time) {
        let is_on_its_way = !self.connections.is_empty();
        if !is_on_its_way && let Some(address) = self.nodes.any(now, |_| true) {
            self.connection_to(now, address);
        }
    }

    fn settle_homeless(&mut self, now: Time) {
        if self.homeless.is_empty() {
            return;
        }
        if self.nodes.map().is_none() {
            return self.look_for_a_map(now);
        }
        let homeless: Vec<RequestId> = self.homeless.iter().copied().collect();
        homeless.into_iter().for_each(|id| self.route(now, id));
    }

    fn connection_to(&mut self, now: Time, address: SocketAddr) -> ConnId {
        if let Some(conn) = self.by_address.get(&address) {
            return *conn;
        }
        self.last_connection += 1;
        let conn = self.config.rules.connection(ConnId(self.last_connection), address.port());
        self.connections.insert(conn, Connection::new(address, now));
        self.by_address.insert(address, conn);
        self.actions.push_back(Action::Connect(conn, address));
        conn
    }

    /// Sends what waits at a connection, as far as it takes it.
    fn pump(&mut self, now: Time, conn: ConnId) {
        let window = self.config.window;
        let namespace = self.nodes.map().and_then(|map| self.namespace(map));
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let mut refused = Vec::new();
        while connection.has_credit()
            && let Some(id) = connection.waiting.pop_front()
        {
            if id.is_part() {
                self.direct.launch(id, conn, connection);
                continue;
            }
            let Some(request) = self.requests.get_mut(&id) else { continue };
            if !connection.takes_chunks() {
                request.way = Way::Node;
            }
            if let Some(sent) = scans::send(&self.nodes, namespace, now, (conn, connection), (id, request)) {
                refused.extend(sent.err().map(|error| (id, error)));
                continue;
            }
            if !connection.takes_names() && request.needs_names() {
                refused.push((id, if request.may_be_done() { Error::Unknown } else { Error::Unreachable }));
                continue;
            }
            // Whoever knows no names does it as if it had none.
            if let Some(name) = request.name.take_if(|_| !connection.takes_names()) {
                self.parked.extend(self.sessions.end(&name).map(|id| (AT_ONCE, id)));
            }
            let once = request.name.map(|name| self.sessions.freshened(name));
            let written = self.direct.written(id);
            let message =
                namespace.and_then(|namespace| request.message(namespace, now, window, once, written));
            let Some(message) = message else { continue };
            let sent = connection.ask(id, &message);
            request.place = Some(Place { conn, sent: Some(sent) });
            if request.upload.is_some() && request.way == Way::Node {
                connection.uploading.push_back(id);
            }
        }
        self.announce(conn);
        refused.into_iter().for_each(|(id, error)| self.finish(id, Err(error)));
    }

    /// Sends pieces of values, in turns, as far as their windows and the connection go.
    fn push(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let mut idle = 0;
        while connection.has_room()
            && idle < connection.uploading.len()
            && let Some(id) = connection.uploading.pop_front()
        {
            let found = if id.is_part() {
                self.direct.upload(id)
            } else {
                self.requests.get_mut(&id).and_then(Request::uploading)
            };
            let Some((Place { conn: at, sent: Some((wire, _)) }, upload)) = found else { continue };
            if at != conn {
                continue;
            }
            idle += 1;
            if upload.is_ready()
                && let Some((piece, is_last)) = upload.next_piece()
            {
                idle = 0;
                let end = connection.send_piece(wire, &piece);
                if upload.wants_more() {
                    self.events.push_back(Event::Wants(id));
                }
                if is_last {
                    upload.end = Some(end);
                    continue;
                }
            }
            connection.uploading.push_back(id);
        }
        self.announce(conn);
    }

    fn send_again(&mut self, now: Time, id: RequestId, pause_us: u64) {
        if self.passes_over(id) {
            return;
        }
        let Some(request) = self.requests.get_mut(&id) else { return };
        request.restart(self.config.rules);
        if self.direct.has(id) {
            // What did not come of it once is left to a node.
            self.direct.end(id);
            request.way = Way::Node;
        }
        if pause_us == 0 {
            self.route(now, id);
        } else {
            self.parked.insert((now + pause_us, id));
        }
    }

    /// The caller, or its clock, waits no more; the server need not send what it has.
    fn give_up(&mut self, id: RequestId, error: Error) {
        let Some(request) = self.requests.get(&id) else { return };
        if let Some(Place { conn, sent: Some((wire, _)) }) = request.place {
            self.say(conn, &FromClient::Cancel(wire));
        }
        self.finish(id, Err(error));
    }

    fn finish(&mut self, id: RequestId, result: Result<Done, Error>) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.deadlines.remove(&(request.deadline, id));
        self.homeless.remove(&id);
        self.direct.end(id);
        let next = request.name.and_then(|name| self.sessions.end(&name));
        if let Some(role) = self.sessions.asked_for_by(id).filter(|_| matches!(request.op, Op::Session)) {
            return self.session_settles(role, &result);
        }
        self.events.push_back(Event::Done(id, result));
        self.parked.extend(next.map(|id| (AT_ONCE, id)));
        self.carry_out(self.seen);
    }

    /// Gives a write its name; whether it can be sent now, with one or without.
    fn name(&mut self, now: Time, id: RequestId, role: RoleId) -> bool {
        match self.sessions.name(now, role, id) {
            Naming::Named(name) => {
                if let Some(request) = self.requests.get_mut(&id) {
                    request.name = Some(name);
                }
                true
            }
            Naming::Nameless => true,
            Naming::Waits => false,
            Naming::Asks => {
                let Some(request) = self.requests.get(&id) else { return false };
                let (key, deadline) = (request.key.clone(), now + self.config.timeout_us);
                let asks = self.add(Request::new(key, Op::Session, deadline));
                self.sessions.asked_by(role, asks);
                self.route(now, asks);
                false
            }
        }
    }

    /// A session has begun, or none is to be had.
    fn session_settles(&mut self, role: RoleId, result: &Result<Done, Error>) {
        let begun = match result {
            Ok(Done::Answer(Answer::Session(session))) => Some(*session),
            _ => None,
        };
        let waiting = self.sessions.settle(role, begun);
        self.parked.extend(waiting.into_iter().map(|id| (AT_ONCE, id)));
    }

    fn say(&mut self, conn: ConnId, message: &FromClient) {
        if let Some(connection) = self.connections.get_mut(&conn).filter(|connection| connection.is_open()) {
            connection.say(message);
            self.announce(conn);
        }
    }

    /// Says once that a connection has something to send.
    fn announce(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(&conn)
            && connection.has_output()
            && !std::mem::replace(&mut connection.announced, true)
        {
            self.actions.push_back(Action::Send(conn));
        }
    }
}
