//! What the core does for values in chunks that it reads and writes itself (`direct`).

use native::{Answer, BegunChunks, Code, FoundChunks, FromClient};
use types::op::Key;
use types::{NodeId, Time};

use super::Core;
use crate::direct::{By, Command, Direct, Estimates, Means, Stats};
use crate::error::Error;
use crate::event::{Done, Event, RequestId};
use crate::operation::{Body, Op};
use crate::request::{Found, Place, Reading, Request};

/// For how long a farewell waits for something else that goes to its node: by itself it would cost as much of the node's time as a request.
const FAREWELL_WAITS_US: u64 = 10_000;

impl Core {
    /// What this client has done by itself.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.direct.stats()
    }

    /// What it knows of its own means, and of the ways between which it chooses where it may.
    #[must_use]
    pub fn estimates(&self) -> Estimates {
        self.direct.estimates()
    }

    /// The core has no clock: whoever drives it says how long it has coded so many [bytes](Stats::coded_bytes).
    pub fn coding_took(&mut self, bytes: u64, us: u64) {
        self.direct.note_coded(bytes, us);
    }

    pub(super) fn means(&self, now: Time) -> Means {
        let window = u64::from(self.config.window);
        let (hedge_us, lost_by, rules) = (self.config.hedge_us, self.config.lost_by, self.config.rules);
        Means { now, deadline: Time::NEVER, window, hedge_us, lost_by, rules }
    }

    fn key_of(&self, id: RequestId) -> Option<(Key, Time)> {
        let request = self.requests.get(id)?;
        let namespace = self.nodes.namespace()?;
        Some((Key::of(namespace, request.key.clone()).ok()?, request.deadline))
    }

    /// A value lies in chunks, which are to be read here.
    pub(super) fn chunks_found(&mut self, now: Time, id: RequestId, found: FoundChunks) {
        let Some((key, deadline)) = self.key_of(id) else { return };
        let Some(request) = self.requests.get_mut(id) else { return };
        request.place = None;
        let room = request.room.of_any();
        let means = Means { deadline, ..self.means(now) };
        self.direct.read(means, id, key, found, room);
        self.carry_out(now);
    }

    /// A value may be put into chunks.
    pub(super) fn chunks_begun(&mut self, now: Time, id: RequestId, begun: BegunChunks) {
        let Some((key, deadline)) = self.key_of(id) else { return };
        let Some(request) = self.requests.get_mut(id) else { return };
        let Op::Store { body, .. } = &request.op else { return };
        let value = match body {
            Body::Here(value) => Some(value.clone()),
            Body::Fed(_) => None,
        };
        request.place = None;
        let means = Means { deadline, ..self.means(now) };
        self.direct.write(means, id, key, value, begun);
        self.feed_transfer(now, id);
        self.carry_out(now);
    }

    /// Gives a transfer what has been fed of its value, as far as it takes that, and asks for more.
    pub(super) fn feed_transfer(&mut self, now: Time, id: RequestId) {
        let means = self.means(now);
        let Some(upload) = self.requests.get_mut(id).and_then(|request| request.upload.as_mut()) else {
            return;
        };
        while self.direct.wants(id)
            && let Some(bytes) = upload.take_fed()
        {
            self.direct.feed(means, id, bytes);
        }
        if self.direct.wants(id) && upload.wants_more() {
            self.events.push_back(Event::Wants(id));
        }
    }

    /// The caller has taken bytes of a value.
    pub(super) fn taken_of_transfer(&mut self, id: RequestId) {
        let Some(reading) = self.requests.get(id).and_then(|request| request.reading) else { return };
        if self.direct.is_under_way(id) {
            let now = self.seen;
            self.direct.taken(self.means(now), id, reading.untaken());
            self.carry_out(now);
        }
    }

    /// Does what transfers want done.
    pub(super) fn carry_out(&mut self, now: Time) {
        while let Some(command) = self.direct.poll(now) {
            match command {
                Command::Send(part, to) => self.send_part(now, part, to),
                Command::Drop(Place { conn, sent }) => {
                    if let Some((wire, _)) = sent {
                        self.links.say(conn, &FromClient::Cancel(wire));
                    }
                }
                Command::Found(id, meta, (start, len)) => {
                    let rules = self.config.rules;
                    let Some(request) = self.requests.get_mut(id) else { continue };
                    match request.found(rules, &meta, start, len) {
                        Found::First => self.events.push_back(Event::Head(id, meta, len)),
                        Found::Same => {}
                        Found::Other => self.finish(id, Err(Error::Changed)),
                    }
                }
                Command::Bring(id, bytes) => {
                    let request = self.requests.get_mut(id);
                    if add(request, bytes.len() as u64) {
                        self.events.push_back(Event::Data(id, bytes));
                    }
                }
                Command::Whole(id) => self.finish(id, Ok(Done::Value)),
                Command::Commit(id) => {
                    if let Some(request) = self.requests.get_mut(id) {
                        request.committing = true;
                    }
                    self.route(now, id);
                }
                Command::Room(id) => self.feed_transfer(now, id),
                // It goes through a node from here on.
                Command::GiveWay(id) => self.send_again(now, id, 0),
                Command::Gone(id) => self.forget_commit(now, id),
            }
        }
    }

    /// The id is gone of a value that is to be committed: what waits for its turn is not sent. What was sent is answered, or asked again.
    fn forget_commit(&mut self, now: Time, id: RequestId) {
        let Some(request) = self.requests.get(id) else { return };
        let was_sent = request.may_be_done() || request.place.is_some_and(|place| place.sent.is_some());
        if was_sent {
            return;
        }
        if let Some(connection) = request.place.and_then(|place| self.links.get_mut(place.conn)) {
            connection.waiting.retain(|one| *one != id);
        }
        self.failed(now, id, Code::NotOpen);
    }

    /// A part goes to a node, or to where its key is.
    fn send_part(&mut self, now: Time, part: RequestId, to: Option<NodeId>) {
        let address = match (to, self.direct.key(part)) {
            (Some(node), _) => self.nodes.address_of(now, node),
            (None, Some(key)) => {
                let primary = self.nodes.primary(now, key.namespace(), key.client());
                primary.or_else(|| self.nodes.any(now, |_| true))
            }
            (None, None) => None,
        };
        let Some(address) = address else { return self.direct.fails(self.means(now), part) };
        let conn = self.links.to(now, self.config.rules, address);
        self.direct.wait_at(part, conn);
        if self.direct.can_wait(part) {
            return self.links.send_until(conn, now + FAREWELL_WAITS_US, part);
        }
        if let Some(connection) = self.links.get_mut(conn) {
            connection.waiting.push_back(part);
        }
        self.pump(now, conn);
    }
}

/// The next bytes of a value have come; whether they are no more than were announced.
fn add(request: Option<&mut Request>, bytes: u64) -> bool {
    request.and_then(|request| request.reading.as_mut()).is_some_and(|reading| reading.add(bytes))
}

/// A request whose way was chosen has come to this. What had to be asked again, went another way in the end, or was fed says nothing of its
/// way; nor does a value of no more than `chunks_above` bytes.
pub(super) fn measure(
    direct: &mut Direct,
    now: Time,
    id: RequestId,
    request: &Request,
    result: &Result<Done, Error>,
    chunks_above: usize,
) {
    let Some(trip) = request.trip else { return };
    let is_fed = matches!(request.op, Op::Store { body: Body::Fed(_), .. });
    let is_straight = request.attempts == 0 && !is_fed && direct.has(id) == (trip.by == By::Client);
    let len = match result {
        Ok(Done::Value) => request.reading.map(Reading::len),
        Ok(Done::Answer(Answer::Stored(_))) => Some(request.value_len()),
        _ => None,
    };
    let len = len.filter(|len| is_straight && *len > chunks_above as u64);
    direct.arrives(now, request.op.only_reads(), trip, len);
}
