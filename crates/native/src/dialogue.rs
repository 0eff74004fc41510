//! What a server makes of the frames of one connection, without I/O: which of them may come, and which map its client has.

use std::sync::Arc;

use crate::closing::Reason;
use crate::frame::Frame;
use crate::hello::{Capabilities, Hello, agree};
use crate::map::RouteMap;
use crate::message::{FromClient, Piece, Window};
use crate::request::Request;
use crate::scan::ScanAsk;

/// Highest number of a request.
pub const MAX_REQUEST_ID: u64 = (1 << 47) - 1;

/// See the module.
#[derive(Debug, Default)]
pub struct Dialogue {
    /// What both sides can, once the client has said hello.
    greeted: Option<Capabilities>,
    /// The highest number of a request so far.
    last_id: u64,
    /// The map that the client has.
    map: Option<Arc<RouteMap>>,
}

/// What a client has said, who may say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Hello: what is spoken from now on, and what both sides can.
    Hello(u16, Capabilities),
    /// It has the map of this version, and wants the newest one.
    MapWanted(u64),
    /// A request under a number that is new.
    Request(u64, Box<Request>),
    /// Keys of a data role are wanted, under a number that is new.
    Scan(u64, Box<ScanAsk>),
    /// Bytes of the value of a write that there was.
    Piece(Piece),
    /// More of a read that there was may be sent.
    Window(Window),
    /// What comes of a request is of no interest any more.
    Cancel(u64),
}

/// What a client may not say: its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Why.
    pub reason: Reason,
    /// The request that it is about, or 0.
    pub id: u64,
}

impl Dialogue {
    /// What a frame says, where the client may begin so many requests more.
    ///
    /// # Errors
    /// If no client may say that now.
    pub fn hear(&mut self, frame: Frame, credits: usize) -> Result<Heard, Breach> {
        let id = frame.header.id;
        let breach = |reason| Breach { reason, id };
        let malformed = if self.greeted.is_some() { Reason::Malformed } else { Reason::NoHello };
        let message = FromClient::take(frame).map_err(|_| breach(malformed))?;
        match message {
            FromClient::Hello(hello) => self.greet(&hello),
            _ if self.greeted.is_none() => Err(breach(Reason::NoHello)),
            FromClient::MapWanted(has) => Ok(Heard::MapWanted(has)),
            FromClient::Request(id, request) => {
                self.begin(id, credits)?;
                Ok(Heard::Request(id, request))
            }
            FromClient::Scan(id, ask) => {
                self.begin(id, credits)?;
                Ok(Heard::Scan(id, ask))
            }
            _ if id > self.last_id => Err(breach(Reason::BadId)),
            FromClient::Piece(piece) => Ok(Heard::Piece(piece)),
            FromClient::Window(window) => Ok(Heard::Window(window)),
            FromClient::Cancel(id) => Ok(Heard::Cancel(id)),
        }
    }

    fn greet(&mut self, hello: &Hello) -> Result<Heard, Breach> {
        if self.greeted.is_some() {
            return Err(Breach { reason: Reason::Malformed, id: 0 });
        }
        let version = agree(hello).ok_or(Breach { reason: Reason::Version, id: 0 })?;
        let both = hello.capabilities.both(Capabilities::ALL);
        self.greeted = Some(both);
        Ok(Heard::Hello(version, both))
    }

    fn begin(&mut self, id: u64, credits: usize) -> Result<(), Breach> {
        if id <= self.last_id || id > MAX_REQUEST_ID {
            return Err(Breach { reason: Reason::BadId, id });
        }
        self.last_id = id;
        if credits == 0 { Err(Breach { reason: Reason::TooManyRequests, id }) } else { Ok(()) }
    }

    /// Whether the client wants to hear of maps, and has not heard of the one of this version.
    #[must_use]
    pub fn lacks_map(&self, version: Option<u64>) -> bool {
        let wants = self.greeted.is_some_and(|both| both.has(Capabilities::MAP));
        wants && version != self.map.as_ref().map(|map| map.version)
    }

    /// Appends what has changed of the map, or all of it.
    pub fn tell_map(&mut self, newest: &Arc<RouteMap>, out: &mut Vec<u8>) {
        let changes = self.map.as_ref().and_then(|old| newest.since(old));
        match changes.filter(|changes| changes.since < changes.version) {
            Some(changes) => changes.put(out),
            None => newest.put(out),
        }
        self.map = Some(Arc::clone(newest));
    }

    /// The client asks for the map, and has this version of it: it has lost the thread of changes if that is not the newest one.
    pub fn tell_whole_map(&mut self, newest: &Arc<RouteMap>, has: u64, out: &mut Vec<u8>) {
        if newest.version != has {
            newest.put(out);
            self.map = Some(Arc::clone(newest));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::frame::Decoder;

    fn frame(message: &FromClient) -> Frame {
        let mut bytes = Vec::new();
        message.put(&mut bytes);
        Decoder::next(&mut BytesMut::from(&bytes[..])).expect("a frame").expect("a whole one")
    }

    fn cancel(id: u64) -> Frame {
        frame(&FromClient::Cancel(id))
    }

    #[test]
    fn nothing_may_come_before_hello_which_comes_once() {
        let mut dialogue = Dialogue::default();
        let hello = FromClient::Hello(Hello::default());
        assert_eq!(dialogue.hear(cancel(1), 1), Err(Breach { reason: Reason::NoHello, id: 1 }));
        assert_eq!(dialogue.hear(frame(&hello), 1), Ok(Heard::Hello(1, Capabilities::ALL)));
        assert_eq!(dialogue.hear(frame(&hello), 1), Err(Breach { reason: Reason::Malformed, id: 0 }));
    }

    #[test]
    fn numbers_grow_within_the_credits() {
        let mut dialogue = Dialogue::default();
        dialogue.hear(frame(&FromClient::Hello(Hello::default())), 1).expect("hello");
        let begun = dialogue.begin(7, 1);
        assert_eq!((begun, dialogue.hear(cancel(7), 0)), (Ok(()), Ok(Heard::Cancel(7))));
        assert_eq!(dialogue.begin(7, 1), Err(Breach { reason: Reason::BadId, id: 7 }));
        assert_eq!(dialogue.begin(8, 0), Err(Breach { reason: Reason::TooManyRequests, id: 8 }));
        assert_eq!(dialogue.hear(cancel(9), 1), Err(Breach { reason: Reason::BadId, id: 9 }));
    }
}
