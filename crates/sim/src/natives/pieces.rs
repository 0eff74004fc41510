//! Values that are longer than a frame, at a node: they come and go in pieces, as far as windows allow.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use native::{Answer, Code, FromServer, MAX_PIECE_BYTES, Meta, Piece, Request, Value, Window};

/// Bytes of one value that a client may send at a time.
const WINDOW_BYTES: u64 = 100_000;

/// The values of one connection that are on their way.
#[derive(Default)]
pub(super) struct Pieces {
    incoming: BTreeMap<u64, Incoming>,
    /// In the order of their turns.
    outgoing: VecDeque<Outgoing>,
}

struct Incoming {
    request: Request,
    len: u64,
    bytes: BytesMut,
    granted: u64,
}

struct Outgoing {
    id: u64,
    bytes: Bytes,
    window: u64,
}

/// More came than was announced or granted.
pub(super) struct TooMany;

impl Pieces {
    /// How many requests have their values sent.
    pub(super) fn outgoing(&self) -> usize {
        self.outgoing.len()
    }

    /// A write is to come of `len` bytes.
    pub(super) fn expect(&mut self, id: u64, request: Request, len: u64, out: &mut Vec<u8>) {
        self.incoming.insert(id, Incoming { request, len, bytes: BytesMut::new(), granted: 0 });
        self.grant(id, out);
    }

    fn grant(&mut self, id: u64, out: &mut Vec<u8>) {
        let Some(one) = self.incoming.get_mut(&id) else { return };
        let may_come = (one.bytes.len() as u64 + WINDOW_BYTES).min(one.len);
        if let Some(bytes) = u32::try_from(may_come - one.granted).ok().filter(|bytes| *bytes > 0) {
            one.granted = may_come;
            Window { id, bytes }.put(out);
        }
    }

    /// A piece comes: the request and its value, if that is whole. Nothing happens if it is not wanted any more.
    pub(super) fn take(
        &mut self,
        piece: &Piece,
        out: &mut Vec<u8>,
    ) -> Result<Option<(Request, Bytes)>, TooMany> {
        let Some(one) = self.incoming.get_mut(&piece.id) else { return Ok(None) };
        one.bytes.extend_from_slice(&piece.bytes);
        let come = one.bytes.len() as u64;
        if come > one.granted {
            return Err(TooMany);
        }
        if come < one.len {
            self.grant(piece.id, out);
            return Ok(None);
        }
        let whole = self.incoming.remove(&piece.id);
        Ok(whole.map(|Incoming { request, bytes, .. }| (request, bytes.freeze())))
    }

    /// What has come of a write is thrown away, and what comes; whether there was any.
    pub(super) fn drop_incoming(&mut self, id: u64) -> bool {
        self.incoming.remove(&id).is_some()
    }

    /// A value is to be sent, within this window at first.
    pub(super) fn send(
        &mut self,
        id: u64,
        meta: Meta,
        start: u64,
        bytes: Bytes,
        window: u32,
        out: &mut Vec<u8>,
    ) {
        let len = bytes.len() as u64;
        Answer::Value(Value { meta, start, len, bytes: None }).put(id, out);
        self.outgoing.push_back(Outgoing { id, bytes, window: window.into() });
    }

    pub(super) fn granted(&mut self, window: Window) {
        if let Some(one) = self.outgoing.iter_mut().find(|one| one.id == window.id) {
            one.window += u64::from(window.bytes);
        }
    }

    /// A value that is on its way to the client ends before its end; whether there was one.
    pub(super) fn end(&mut self, id: u64, code: Code, out: &mut Vec<u8>) -> bool {
        let Some(at) = self.outgoing.iter().position(|one| one.id == id) else { return false };
        self.outgoing.remove(at);
        FromServer::End(id, code).put(out);
        true
    }

    /// The value whose turn is next, if there is any.
    pub(super) fn next_outgoing(&self) -> Option<u64> {
        self.outgoing.front().map(|one| one.id)
    }

    /// A piece of each, as far as its window goes, and so on.
    pub(super) fn go_on(&mut self, out: &mut Vec<u8>) {
        let mut idle = 0;
        while idle < self.outgoing.len()
            && let Some(mut one) = self.outgoing.pop_front()
        {
            let most = usize::try_from(one.window).unwrap_or(usize::MAX).min(MAX_PIECE_BYTES);
            let bytes = one.bytes.split_to(most.min(one.bytes.len()));
            idle = if bytes.is_empty() { idle + 1 } else { 0 };
            one.window -= bytes.len() as u64;
            if !bytes.is_empty() {
                FromServer::Piece(Piece { id: one.id, bytes }).put(out);
            }
            if one.bytes.is_empty() {
                FromServer::End(one.id, Code::Whole).put(out);
            } else {
                self.outgoing.push_back(one);
            }
        }
    }
}
