//! The ways of requests: to which node, what goes out next, and what is sent again.

use types::Time;

use native::FromClient;

use super::{Core, scans, transfers};
use crate::connection::Connection;
use crate::direct::LostBy;
use crate::error::Error;
use crate::event::{ConnId, Done, Event, RequestId};
use crate::request::{Place, Request, Way};

impl Core {
    /// Finds a connection for a request, and sends it as soon as that takes it.
    pub(super) fn route(&mut self, now: Time, id: RequestId) {
        // Several may have looked for its way: those who wait for a node, and those for a session.
        let is_nowhere = self.requests.get(id).is_some_and(|request| request.place.is_none());
        if !is_nowhere || self.direct.is_under_way(id) {
            return;
        }
        if self.nodes.map().is_none() {
            self.requests.has_no_home(id);
            return self.settle_homeless(now);
        }
        let Some(namespace) = self.nodes.namespace() else {
            return self.finish(id, Err(Error::NoNamespace));
        };
        self.requests.has_a_home(id);
        if !self.name(now, id) {
            return;
        }
        let Some(request) = self.requests.get(id) else { return };
        let beside = self.config.beside.filter(|_| request.op.is_plain_read());
        let beside = beside.and_then(|address| self.nodes.any(now, |known| known == address));
        let first = beside.or_else(|| scans::primary_of(&self.nodes, now, namespace, request));
        let Some(address) = first.or_else(|| self.nodes.any(now, |_| true)) else {
            self.requests.has_no_home(id);
            return;
        };
        let conn = self.links.to(now, self.config.rules, address);
        if let Some(request) = self.requests.get_mut(id) {
            request.place = Some(Place { conn, sent: None });
        }
        if let Some(connection) = self.links.get_mut(conn) {
            connection.waiting.push_back(id);
        }
        self.pump(now, conn);
    }

    /// Whether somebody waits for a node that can be tried.
    pub(super) fn looks_for_a_node(&self) -> bool {
        self.requests.are_homeless() || self.reaches_out && self.nodes.map().is_none()
    }

    pub(super) fn settle_homeless(&mut self, now: Time) {
        if !self.looks_for_a_node() {
            return;
        }
        if self.nodes.map().is_some() {
            return self.requests.homeless().into_iter().for_each(|id| self.route(now, id));
        }
        let is_on_its_way = !self.links.is_empty();
        if !is_on_its_way && let Some(address) = self.nodes.any(now, |_| true) {
            self.links.to(now, self.config.rules, address);
        }
    }

    /// Sends what waits at a connection, as far as it takes it.
    pub(super) fn pump(&mut self, now: Time, conn: ConnId) {
        let window = self.config.window;
        let namespace = self.nodes.namespace();
        self.links.join(now, conn);
        let Some(connection) = self.links.get_mut(conn) else { return };
        let (mut refused, mut woken) = (Vec::new(), Vec::new());
        while connection.has_credit()
            && let Some(id) = connection.waiting.pop_front()
        {
            if id.is_part() {
                self.direct.launch(id, conn, connection);
                continue;
            }
            let Some(request) = self.requests.get_mut(id) else { continue };
            if !connection.takes_chunks() {
                request.way = Way::Node;
            }
            if let Some(sent) = scans::send(&self.nodes, namespace, now, (conn, connection), (id, request)) {
                refused.extend(sent.err().map(|error| (id, error)));
                continue;
            }
            if let Some(error) = refusal(connection, request) {
                refused.push((id, error));
                continue;
            }
            // Whoever knows no names does it as if it had none.
            if let Some(name) = request.name.take_if(|_| !connection.takes_names()) {
                woken.extend(self.sessions.end(&name));
            }
            let once = request.name.map(|name| self.sessions.freshened(name));
            let written = self.direct.written(id);
            let by_graph = self.config.lost_by == LostBy::Graph && connection.takes_graphs();
            let how = (window, by_graph);
            let message = namespace.and_then(|namespace| request.message(namespace, now, how, once, written));
            let Some(message) = message else { continue };
            let sent = connection.ask(id, &message);
            request.place = Some(Place { conn, sent: Some(sent) });
            if request.room.of_any() > 0 {
                connection.landing.insert(sent.0);
            }
            if request.upload.is_some() && request.way == Way::Node {
                connection.uploading.push_back(id);
            }
        }
        self.links.announce(conn);
        self.requests.wake(woken);
        refused.into_iter().for_each(|(id, error)| self.finish(id, Err(error)));
    }

    /// Sends pieces of values, in turns, as far as their windows and the connection go.
    pub(super) fn push(&mut self, conn: ConnId) {
        let Some(connection) = self.links.get_mut(conn) else { return };
        let mut idle = 0;
        while connection.has_room()
            && idle < connection.uploading.len()
            && let Some(id) = connection.uploading.pop_front()
        {
            let found = if id.is_part() {
                self.direct.upload(id)
            } else {
                self.requests.get_mut(id).and_then(Request::uploading)
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
        self.links.announce(conn);
    }

    pub(super) fn send_again(&mut self, now: Time, id: RequestId, pause_us: u64) {
        if self.passes_over(id) {
            return;
        }
        let Some(request) = self.requests.get_mut(id) else { return };
        if request.committing && !request.can_restart() {
            request.ask_again(self.config.rules);
        } else {
            request.restart(self.config.rules);
            if self.direct.has(id) {
                // What did not come of it once is left to a node, if that can still have the value.
                self.direct.end(id);
                if !request.can_restart() {
                    let error = request.interrupted();
                    return self.finish(id, Err(error));
                }
                request.way = Way::Node;
            }
        }
        if pause_us == 0 {
            self.route(now, id);
        } else {
            self.requests.park(now + pause_us, id);
        }
    }

    /// The caller, or its clock, waits no more; the server need not send what it has.
    pub(super) fn give_up(&mut self, id: RequestId, error: Error) {
        let Some(request) = self.requests.get(id) else { return };
        if let Some(Place { conn, sent: Some((wire, _)) }) = request.place {
            self.links.say(conn, &FromClient::Cancel(wire));
        }
        self.finish(id, Err(error));
    }

    pub(super) fn finish(&mut self, id: RequestId, result: Result<Done, Error>) {
        let Some(request) = self.requests.remove(id) else { return };
        let chunks_above = self.config.chunks_above;
        transfers::measure(&mut self.direct, self.seen, id, &request, &result, chunks_above);
        self.direct.end(id);
        self.name_is_free(&request);
        if self.session_settles(id, &request, &result) {
            return;
        }
        self.events.push_back(Event::Done(id, result));
        self.carry_out(self.seen);
    }
}

/// Why a request can not be sent to a node that does not know what it needs.
fn refusal(connection: &Connection, request: &Request) -> Option<Error> {
    if request.needs_names() && !connection.takes_names() {
        return Some(if request.may_be_done() { Error::Unknown } else { Error::Unreachable });
    }
    (request.needs_pages() && !connection.takes_pages()).then_some(Error::TooOld)
}
