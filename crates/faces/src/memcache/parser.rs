//! The bytes of one connection, cut into commands: an incremental parser over a buffer that the connection owns.
//!
//! Between calls the parser remembers how far it has looked for a newline, which storage command waits for its data
//! block, and how much of a refused block is still to be thrown away; so no byte is looked at twice, and where the
//! network cuts the stream makes no difference. Keys and values are slices of the buffer.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use types::UnixSeconds;

use types::op::Op;

use super::limits::{
    MAX_KEYS_LINE_BYTES, MAX_LEADING_SPACES, MAX_LINE_BYTES, MIN_LINE_BYTES, MIN_LOCKED_LINE_BYTES,
};
use super::parsed::{Ask, Parsed, Pending, PendingKind, Step};
use super::style::ReplyStyle;
use super::{lines, meta, text};
use crate::face::ValueLimits;

/// Who may use the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    #[default]
    Open,
    /// Nobody before [`Parser::unlock`]: the only command is a `set` whose data block is `user password`.
    Locked,
}

/// Parser of one connection.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    access: Access,
    limits: ValueLimits,
}

#[derive(Debug)]
enum State {
    /// At the start of a line, of which the first `scanned` bytes hold no newline.
    Line { scanned: usize },
    /// A storage command whose data block has not arrived in full.
    Data(Pending),
    /// So many bytes of a refused data block are still to come.
    Swallow { left: usize },
    /// Closed: whatever else arrives is not looked at.
    Closed,
}

impl Default for State {
    fn default() -> Self {
        Self::Line { scanned: 0 }
    }
}

impl Parser {
    /// Of a new connection.
    #[must_use]
    pub fn new(access: Access) -> Self {
        Self { state: State::default(), access, limits: ValueLimits::default() }
    }

    /// Which values the client may send, from the next command on.
    pub fn limit_values(&mut self, limits: ValueLimits) {
        self.limits = limits;
    }

    /// The client has authenticated itself.
    pub fn unlock(&mut self) {
        self.access = Access::Open;
    }

    /// How many bytes more make the next step possible, at least 1: a hint for the size of the next read. It follows
    /// a length that the client declared, so bound what you reserve by it.
    #[must_use]
    pub fn wanted(&self, buffer: &BytesMut) -> usize {
        match &self.state {
            State::Data(pending) => (pending.len + 2).saturating_sub(buffer.len()).max(1),
            State::Swallow { left } => (*left).max(1),
            State::Line { .. } | State::Closed => 1,
        }
    }

    /// Whether the connection is between two commands: nothing was half received.
    #[must_use]
    pub fn is_idle(&self, buffer: &BytesMut) -> bool {
        matches!(self.state, State::Line { .. }) && buffer.is_empty()
    }

    /// Takes the next command off the front of `buffer`. `now` turns relative times into absolute ones.
    pub fn next(&mut self, buffer: &mut BytesMut, now: UnixSeconds) -> Step {
        loop {
            let step = match &mut self.state {
                State::Line { scanned } => match take_line(buffer, scanned, self.access) {
                    Cut::Incomplete => return Step::Incomplete,
                    Cut::Refused => self.close(Step::Close),
                    Cut::Short => Some(Step::Refuse(lines::BAD_FORMAT)),
                    Cut::Line(line) => {
                        let parsed = self.parse(&line, now);
                        self.act(parsed, buffer)
                    }
                },
                State::Data(_) => self.resume(buffer),
                State::Swallow { left } => {
                    let gone = buffer.len().min(*left);
                    buffer.advance(gone);
                    *left -= gone;
                    if *left > 0 {
                        return Step::Incomplete;
                    }
                    self.state = State::default();
                    None
                }
                State::Closed => return Step::Close,
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// What `line` amounts to.
    #[inline]
    fn parse(&self, line: &Bytes, now: UnixSeconds) -> Parsed {
        match self.access {
            Access::Open if is_meta(line) => meta::parse(line, now, &self.limits),
            Access::Open => text::parse(line, now, &self.limits),
            Access::Locked => text::parse_locked(line),
        }
    }

    /// Moves to the state after `parsed`; none if there is nothing to tell. A part of its callers, or else commands are copied on their way.
    #[inline(always)]
    fn act(&mut self, parsed: Parsed, buffer: &mut BytesMut) -> Option<Step> {
        match parsed {
            Parsed::Swallow { then, bytes } => {
                self.state = State::Swallow { left: bytes };
                then.map(|step| *step)
            }
            Parsed::Done(ask) => Some(Step::Ask(ask)),
            Parsed::Answer(line) => Some(Step::Say(line)),
            Parsed::Quit => Some(Step::Quit),
            Parsed::Say(line) => Some(Step::Refuse(line)),
            Parsed::Hush => None,
            Parsed::Await(pending) => self.wait(pending, buffer),
            Parsed::Stream(streamed) => Some(Step::Stream(streamed)),
            Parsed::Close => self.close(Step::Close),
        }
    }

    /// Goes on with the command that waits for its data block.
    fn resume(&mut self, buffer: &mut BytesMut) -> Option<Step> {
        match std::mem::take(&mut self.state) {
            State::Data(pending) => self.wait(pending, buffer),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Completes a storage command, or waits for the rest of its data block.
    #[inline]
    fn wait(&mut self, pending: Pending, buffer: &mut BytesMut) -> Option<Step> {
        match take_data(buffer, pending.len) {
            Some(data) => complete(pending, data),
            None => {
                self.state = State::Data(pending);
                Some(Step::Incomplete)
            }
        }
    }

    fn close(&mut self, step: Step) -> Option<Step> {
        self.state = State::Closed;
        Some(step)
    }
}

/// A command with its data block; none if it is refused in silence.
#[inline]
fn complete(pending: Pending, data: Result<Bytes, BadChunk>) -> Option<Step> {
    match (pending.what, data) {
        (PendingKind::Store(mut request, reply), Ok(value)) => {
            if let Op::Store(store) = &mut request.op {
                store.value = value;
            }
            Some(Step::Ask(Ask::One { request, style: reply }))
        }
        // `noreply` hides this error, too, although client and server may disagree about the stream from here on.
        (PendingKind::Store(_, ReplyStyle::Silent), Err(BadChunk)) => None,
        (PendingKind::Credentials, Err(BadChunk)) => Some(Step::Refuse(lines::AUTH_BAD_END)),
        (PendingKind::Credentials, Ok(data)) if !data.contains(&b' ') => {
            Some(Step::Refuse(lines::AUTH_BAD_FORMAT))
        }
        (PendingKind::Credentials, Ok(data)) => Some(Step::Ask(Ask::Authenticate(data))),
        (_, Err(BadChunk)) => Some(Step::Refuse(lines::BAD_CHUNK)),
    }
}

/// What the front of the buffer holds.
enum Cut {
    Incomplete,
    /// Too long, or no memcached text at all.
    Refused,
    /// Shorter than any command.
    Short,
    /// A line without its end.
    Line(Bytes),
}

/// A data block that does not end where its length says.
struct BadChunk;

/// Takes a line off the buffer. `scanned` bytes are known to hold no newline.
fn take_line(buffer: &mut BytesMut, scanned: &mut usize, access: Access) -> Cut {
    match buffer.first() {
        None => return Cut::Incomplete,
        // The binary protocol's magic, and a TLS handshake: neither begins any text command.
        Some(0x80 | 0x16) => return Cut::Refused,
        Some(_) => (),
    }
    let Some(at) = memchr(b'\n', buffer.get(*scanned..).unwrap_or_default()).map(|at| at + *scanned) else {
        *scanned = buffer.len();
        return if may_grow(buffer, buffer.len() + 1, access) { Cut::Incomplete } else { Cut::Refused };
    };
    // Also where the newline is here already: how the network cuts a line makes no difference.
    if !may_grow(buffer, at + 1, access) {
        return Cut::Refused;
    }
    *scanned = 0;
    if access == Access::Locked && at < MIN_LOCKED_LINE_BYTES {
        return Cut::Refused;
    }
    let mut line = buffer.split_to(at + 1).freeze();
    if line.len() < MIN_LINE_BYTES {
        return Cut::Short;
    }
    let end = if at > 0 && line.get(at - 1) == Some(&b'\r') { at - 1 } else { at };
    line.truncate(end);
    Cut::Line(line)
}

/// Whether a line that begins like `buffer` may be `len` bytes long, newline included.
fn may_grow(buffer: &[u8], len: usize, access: Access) -> bool {
    len <= MAX_LINE_BYTES
        || (access == Access::Open && len <= MAX_KEYS_LINE_BYTES && begins_with_keys(buffer))
}

/// Whether a line is one of many keys.
fn begins_with_keys(line: &[u8]) -> bool {
    // memcached's own way to tell a long line of many keys from garbage, with its limit of spaces.
    let spaces = line.iter().take_while(|&&byte| byte == b' ').count();
    let command = line.get(spaces..).unwrap_or_default();
    spaces <= MAX_LEADING_SPACES
        && [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|name| command.starts_with(name))
}

/// Whether a line is a meta command.
fn is_meta(line: &[u8]) -> bool {
    matches!(line, [b'm', _] | [b'm', _, b' ', ..])
}

/// Takes a data block of `len` bytes and its end of line off the buffer; none if it has not arrived in full.
fn take_data(buffer: &mut BytesMut, len: usize) -> Option<Result<Bytes, BadChunk>> {
    if buffer.len() < len + 2 {
        return None;
    }
    let mut block = buffer.split_to(len + 2).freeze();
    // What was taken is gone all the same: as in memcached, the next command begins behind it.
    if !block.ends_with(b"\r\n") {
        return Some(Err(BadChunk));
    }
    block.truncate(len);
    Some(Ok(block))
}
