//! What servers say, and whom it concerns.

use std::net::SocketAddr;

use native::{Answer, Code, FromClient, FromServer, Malformed, Reason, Value, Welcome};
use types::Time;

use super::Core;
use crate::connection::Stage;
use crate::error::Error;
use crate::event::{ConnId, Done, Event, Landed, RequestId};
use crate::request::{Found, Reading, Way};

/// Most times that the pause before a request is sent again doubles.
const DOUBLINGS: u32 = 5;
/// Connections that a client has at least, where there are as many nodes: from one of them it hears what became of the other's node.
const LEAST_CONNECTIONS: usize = 2;

impl Core {
    pub(super) fn hear(&mut self, now: Time, conn: ConnId, message: FromServer) {
        let hears_of_maps = self.config.rules.hears_of_maps(self.nodes.map().is_some());
        match message {
            FromServer::Map(..) | FromServer::Changes(_) if !hears_of_maps => {}
            FromServer::Welcome(welcome) => self.welcomed(now, conn, welcome),
            FromServer::Closing(_, closing) => {
                // Whoever has broken a rule does not do so again at once.
                let is_ours = !matches!(closing.reason, Reason::Ends | Reason::Idle | Reason::SlowReader);
                if is_ours && let Some(connection) = self.links.get(conn) {
                    self.nodes.fails(now, connection.address, self.config.pause_us);
                }
                self.links.close(conn);
                self.lost(now, conn);
            }
            FromServer::Map(part, more) => self.hear_map(now, conn, &part, more),
            FromServer::Changes(changes) => {
                if self.nodes.apply(&changes) {
                    self.map_changed(now);
                } else {
                    self.links.say(conn, &FromClient::MapWanted(0));
                }
            }
            FromServer::Answer(wire, answer) => self.hear_answer(now, conn, wire, *answer),
            FromServer::Piece(piece) => {
                self.hear_piece(now, conn, piece.id, Some(Landed::Bytes(piece.bytes)))
            }
            FromServer::Window(window) => {
                let Some(id) = self.in_flight(conn, window.id) else { return };
                if let Some(upload) = self.requests.get_mut(id).and_then(|request| request.upload.as_mut()) {
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
        let reading = self.requests.get(id).and_then(|request| request.reading);
        match code {
            Code::Whole if reading.is_some_and(is_whole) => self.finish(id, Ok(Done::Value)),
            Code::Whole => self.finish(id, Err(Error::Code(Code::Corrupt))),
            code => self.failed(now, id, code),
        }
    }

    fn welcomed(&mut self, now: Time, conn: ConnId, welcome: Welcome) {
        let Some(connection) = self.links.get_mut(conn) else { return };
        let address = connection.address;
        connection.stage = Stage::Open(welcome);
        self.nodes.works(address);
        self.pump(now, conn);
        self.settle_homeless(now);
    }

    fn hear_map(&mut self, now: Time, conn: ConnId, part: &[u8], more: bool) {
        let Some(connection) = self.links.get_mut(conn) else { return };
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
        for conn in self.links.to_those(gone) {
            self.links.close(conn);
            self.lost(now, conn);
        }
        self.settle_homeless(now);
        if self.links.len() < LEAST_CONNECTIONS
            && let Some(address) = self.nodes.any(now, |address| !self.links.has_one_to(address))
        {
            self.links.to(now, self.config.rules, address);
        }
    }

    pub(super) fn hear_answer(&mut self, now: Time, conn: ConnId, wire: u64, answer: Answer) {
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
                _ if self.requests.get(id).is_some_and(|it| it.has_begun_to_read(self.config.rules)) => {
                    self.finish(id, Err(Error::Changed));
                }
                answer => self.finish(id, Ok(Done::Answer(answer))),
            }
        }
        self.pump(now, conn);
    }

    fn found(&mut self, conn: ConnId, id: RequestId, value: Value) {
        let Some(request) = self.requests.get_mut(id) else { return };
        match request.found(self.config.rules, &value.meta, value.start, value.len) {
            Found::First => self.events.push_back(Event::Head(id, value.meta, value.len)),
            Found::Same => {}
            Found::Other => return self.give_up(id, Error::Changed),
        }
        if value.bytes.is_none() && request.room.of_pieces() > 0 {
            // Now it is known that there are any.
            let place = request.place.and_then(|place| place.sent);
            if let (Some((wire, _)), Some(connection)) = (place, self.links.get_mut(conn)) {
                connection.landing.insert(wire);
            }
        }
        if let Some(bytes) = value.bytes {
            self.bring(conn, id, Landed::Bytes(bytes));
            self.finish(id, Ok(Done::Value));
        }
    }

    /// A piece has come; none if its bytes were thrown away, which were wanted no more.
    pub(super) fn hear_piece(&mut self, now: Time, conn: ConnId, wire: u64, bytes: Option<Landed>) {
        let Some(id) = self.in_flight(conn, wire) else { return };
        let is_one = if id.is_part() {
            self.direct.hear_piece(self.means(now), id, bytes.and_then(Landed::bytes))
        } else {
            // A value that comes in order is wanted as long as its request waits.
            bytes.is_some_and(|bytes| self.bring(conn, id, bytes))
        };
        self.carry_out(now);
        if !is_one {
            self.distrust(now, conn, Malformed::Field("the length of a value"));
        }
    }

    /// Bytes of a value have come; whether they are no more than were announced.
    fn bring(&mut self, conn: ConnId, id: RequestId, landed: Landed) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return true };
        // It may be asked elsewhere by now.
        if request.place.is_none_or(|place| place.conn != conn) {
            return true;
        }
        let Some(reading) = &mut request.reading else { return false };
        let fits = reading.add(landed.len() as u64);
        if fits && !landed.is_empty() {
            self.events.push_back(match landed {
                Landed::Bytes(bytes) => Event::Data(id, bytes),
                Landed::Kept(len) => Event::Kept(id, len),
            });
        }
        fits
    }

    /// A server has said that a request has failed.
    pub(super) fn failed(&mut self, now: Time, id: RequestId, code: Code) {
        if matches!(code, Code::NoSession | Code::Expired) && self.session_is_over(now, id) {
            return;
        }
        let Some(request) = self.requests.get_mut(id) else { return };
        if matches!(code, Code::NotDirect | Code::Moved) && request.way == Way::Chunks {
            if code == Code::NotDirect {
                self.direct.is_not_direct(now, request.value_len());
            }
            request.restart(self.config.rules);
            request.way = Way::Node;
            return self.send_again(now, id, 0);
        }
        // Its chunks are nobody's any more, and its bytes are gone.
        if code == Code::NotOpen && request.committing && !request.can_restart() {
            let error = request.interrupted();
            return self.finish(id, Err(error));
        }
        // Under its name it may be asked again what became of it.
        let asks_again = self.config.rules.asks_again_what_may_be_done(request.name.is_some());
        let may_repeat = code.may_repeat() || code == Code::Unknown && asks_again;
        if may_repeat && request.can_be_asked_again() {
            let pause = self.config.pause_us << request.attempts.min(DOUBLINGS);
            return self.send_again(now, id, pause);
        }
        let error =
            if code == Code::Late && request.may_be_done() { Error::Unknown } else { Error::Code(code) };
        self.finish(id, Err(error));
    }

    /// A server that breaks the protocol is not listened to.
    pub(super) fn distrust(&mut self, now: Time, conn: ConnId, _why: Malformed) {
        self.links.close(conn);
        self.lost(now, conn);
    }

    /// The request that goes by this number at a connection, if it still does.
    pub(super) fn in_flight(&self, conn: ConnId, wire: u64) -> Option<RequestId> {
        let id = *self.links.get(conn)?.in_flight.get(&wire)?;
        let place = if id.is_part() { self.direct.place(id) } else { self.requests.get(id)?.place }?;
        (place.conn == conn && place.sent.is_some_and(|(number, _)| number == wire)).then_some(id)
    }

    /// The same, of its last frame: its credit is free again.
    fn end(&mut self, conn: ConnId, wire: u64) -> Option<RequestId> {
        let id = self.in_flight(conn, wire);
        if let Some(connection) = self.links.get_mut(conn) {
            connection.in_flight.remove(&wire);
            connection.landing.remove(&wire);
        }
        id
    }
}
