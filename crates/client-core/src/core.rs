//! All of a client's requests and connections. What happens is routed to who is concerned; what has to happen is said as data.

mod hearing;
mod landing;
mod naming;
mod routing;
mod scans;
mod transfers;

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use native::{Decoder, FromClient, FromServer, RouteMap, Window};
use types::{MAX_OBJECT_BYTES, Time};

use crate::config::Config;
use crate::direct::Direct;
use crate::error::Error;
use crate::event::{Action, ConnId, Event, RequestId};
use crate::links::Links;
use crate::nodes::Nodes;
use crate::operation::{Op, Operation};
use crate::request::{Fate, Place, Request};
use crate::requests::Requests;
use crate::sessions::Sessions;

pub use landing::Receiving;

/// See the module.
#[derive(Debug)]
pub struct Core {
    config: Config,
    nodes: Nodes,
    links: Links,
    requests: Requests,
    sessions: Sessions,
    direct: Direct,
    /// The newest time that is known.
    seen: Time,
    events: VecDeque<Event>,
    is_closed: bool,
    /// Whether a map is looked for although nothing has been asked.
    reaches_out: bool,
}

/// Commands of the caller.
impl Core {
    /// A client that has asked for nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            nodes: Nodes::new(config.seeds.clone(), config.namespace.clone()),
            links: Links::default(),
            requests: Requests::default(),
            sessions: Sessions::new(config.no_session_us, config.rules),
            direct: Direct::new(config.encode, config.decode),
            seen: Time(0),
            events: VecDeque::new(),
            config,
            is_closed: false,
            reaches_out: false,
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
        if !op.may_be_about(&key) {
            return Err(Error::BadKey);
        }
        if matches!(&op, Op::Store { body, .. } if body.len() > MAX_OBJECT_BYTES) {
            return Err(Error::TooLarge);
        }
        let deadline = now + timeout_us.unwrap_or(self.config.timeout_us);
        let (way, trip) = self.direct.way_of(now, self.config.chunks_above, &op);
        let request = Request { way, trip, ..Request::new(key, op, deadline) };
        let waits = request.is_incomplete();
        let wants = request.upload.as_ref().is_some_and(|upload| upload.wants_more());
        let id = self.requests.add(request);
        if wants {
            self.events.push_back(Event::Wants(id));
        }
        if !waits {
            self.route(now, id);
        }
        Ok(id)
    }

    /// Gives bytes of a value that is fed; nothing happens if its request has ended. Too many are cut off by its length.
    pub fn feed(&mut self, now: Time, id: RequestId, bytes: Bytes) {
        let Some(request) = self.requests.get_mut(id) else { return };
        let waited = request.is_incomplete();
        if request.feed(bytes).is_none() {
            return self.finish(id, Err(Error::TooLarge));
        }
        if self.direct.has(id) {
            self.feed_transfer(now, id);
            return self.carry_out(now);
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
        let Some(request) = self.requests.get_mut(id) else { return };
        let grant = request.reading.as_mut().and_then(|reading| reading.taken(len, window));
        if let (Some(bytes), Some(Place { conn, sent: Some((wire, _)) })) = (grant, request.place) {
            self.links.say(conn, &FromClient::Window(Window { id: wire, bytes }));
        }
        self.taken_of_transfer(id);
    }

    /// The caller does not want to wait any more. What the request has done so far stays done.
    pub fn cancel(&mut self, id: RequestId) {
        self.give_up(id, Error::Cancelled);
    }

    /// Looks for a map before anything is asked, until there is one.
    pub fn reach_out(&mut self, now: Time) {
        self.reaches_out = true;
        self.settle_homeless(now);
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
        self.links.disown(memory);
    }

    /// Everything ends: what is unfinished, and all connections. Nothing is asked any more.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.requests.ids().into_iter().for_each(|id| self.finish(id, Err(Error::Closed)));
        self.links.close_all();
        self.direct.end_all();
    }
}

/// What is to be done.
impl Core {
    /// The next thing to be done with a connection.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.links.poll()
    }

    /// The next thing that a request has come to.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What a connection has to send next, at most so many buffers: it counts as sent from now on.
    pub fn poll_output(&mut self, now: Time, conn: ConnId, most: usize, into: &mut Vec<Bytes>) {
        let Some(connection) = self.links.get_mut(conn) else { return };
        let sent = connection.take_output(most, into);
        self.direct.note_sent(sent);
        // There may be room again for what was held back.
        self.pump(now, conn);
        self.push(conn);
    }

    /// When [`Self::tick`] has something to do; none = never.
    #[must_use]
    pub fn next_deadline(&self, now: Time) -> Option<Time> {
        let homeless = self.looks_for_a_node().then(|| self.nodes.next_try(now)).flatten();
        let hold = self.config.rules.deadlines_hold(self.nodes.map().is_some());
        let overdue = self.requests.first_deadline().filter(|_| hold);
        let late = self.links.first_late(self.config.connect_us);
        let (awake, impatient) = (self.requests.first_awake(), self.links.first_impatient());
        [overdue, awake, homeless, self.direct.due(), late, impatient].into_iter().flatten().min()
    }
}

/// What arrives.
impl Core {
    /// A connection has been made.
    pub fn connected(&mut self, conn: ConnId) {
        self.links.made(conn);
    }

    /// Bytes have come, which are taken off `input` as far as they are whole frames.
    pub fn received(&mut self, now: Time, conn: ConnId, input: &mut BytesMut) {
        self.seen = now;
        while self.links.get(conn).is_some() {
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
        let Some(connection) = self.links.remove(conn) else { return };
        self.nodes.fails(now, connection.address, self.config.pause_us);
        for id in &connection.waiting {
            if let Some(request) = self.requests.get_mut(*id) {
                request.place = None;
                self.route(now, *id);
            }
        }
        for id in connection.in_flight.values() {
            let Some(request) = self.requests.get_mut(*id) else { continue };
            // It may have been sent again elsewhere.
            if request.place.is_none_or(|place| place.conn != conn) {
                continue;
            }
            match request.fate(self.config.rules, |place| connection.has_left(place)) {
                Fate::Again => self.send_again(now, *id, 0),
                Fate::Nothing => {
                    let error = request.interrupted();
                    self.finish(*id, Err(error));
                }
                Fate::Unknown => self.finish(*id, Err(Error::Unknown)),
            }
        }
        self.direct.lose(self.means(now), conn);
        self.carry_out(now);
        self.settle_homeless(now);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        self.seen = now;
        let hold = self.config.rules.deadlines_hold(self.nodes.map().is_some());
        while hold && let Some(id) = self.requests.next_overdue(now) {
            let error = self.requests.get(id).map_or(Error::TimedOut, timed_out);
            self.give_up(id, error);
        }
        while let Some(id) = self.requests.next_awake(now) {
            self.route(now, id);
        }
        self.direct.tick(self.means(now));
        self.carry_out(now);
        for conn in self.links.impatient(now) {
            self.pump(now, conn);
        }
        for conn in self.links.late(now, self.config.connect_us) {
            self.links.close(conn);
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
