//! What the core does for names of writes: it asks for sessions, and finds out that one is over. What a session is, [`Sessions`] knows.
//!
//! [`Sessions`]: crate::sessions::Sessions

use native::{Answer, Code};
use types::Time;

use super::Core;
use crate::error::Error;
use crate::event::{Done, RequestId};
use crate::operation::Op;
use crate::request::Request;
use crate::sessions::{Naming, RoleId};

impl Core {
    /// Gives a write its name, if it is one that should have one; whether it can be sent now, with one or without.
    pub(super) fn name(&mut self, now: Time, id: RequestId) -> bool {
        let Some(role) = self.role_to_be_named_at(id) else { return true };
        match self.sessions.name(now, role, id) {
            Naming::Named(name) => {
                if let Some(request) = self.requests.get_mut(id) {
                    request.name = Some(name);
                }
                true
            }
            Naming::Nameless => true,
            Naming::Waits => false,
            Naming::Asks => {
                self.ask_for_session(now, id, role);
                false
            }
        }
    }

    fn role_to_be_named_at(&self, id: RequestId) -> Option<RoleId> {
        let request = self.requests.get(id).filter(|_| self.config.sessions)?;
        let wants = request.name.is_none() && request.op.can_be_done_once();
        let namespace = self.nodes.namespace().filter(|_| wants)?;
        self.nodes.role(namespace, &request.key)
    }

    fn ask_for_session(&mut self, now: Time, id: RequestId, role: RoleId) {
        let Some(request) = self.requests.get(id) else { return };
        let (key, deadline) = (request.key.clone(), now + self.config.timeout_us);
        let asks = self.requests.add(Request::new(key, Op::Session, deadline));
        self.sessions.asked_by(role, asks);
        self.route(now, asks);
    }

    /// A session has begun, or none is to be had. Whether it was one that `id` has asked for.
    pub(super) fn session_settles(
        &mut self,
        id: RequestId,
        request: &Request,
        result: &Result<Done, Error>,
    ) -> bool {
        let asked = matches!(request.op, Op::Session).then(|| self.sessions.asked_for_by(id)).flatten();
        let Some(role) = asked else { return false };
        let begun = match result {
            Ok(Done::Answer(Answer::Session(session))) => Some(*session),
            _ => None,
        };
        let waiting = self.sessions.settle(role, begun);
        self.requests.wake(waiting);
        true
    }

    /// The session of a write is over, as a server has said. A first try is made again, under the next one. What may have been done is
    /// never taken for a first try, and nobody knows any more what has come of it: that is its end. Whether it was a write with a name.
    pub(super) fn session_is_over(&mut self, now: Time, id: RequestId) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return false };
        let is_new = !request.may_be_done();
        let Some(name) = request.name.take() else { return false };
        let held = self.sessions.drop_session(&name);
        if is_new {
            self.send_again(now, id, 0);
        } else {
            self.finish(id, Err(Error::Code(Code::Expired)));
        }
        self.requests.wake(held);
        true
    }

    /// A write has come to its end, or goes on without its name.
    pub(super) fn name_is_free(&mut self, request: &Request) {
        let next = request.name.and_then(|name| self.sessions.end(&name));
        self.requests.wake(next);
    }
}
