//! Protocols of lines, whose answers come in the order of their requests: so peers are measured by the same client.

use std::collections::VecDeque;

use client::reply::{Parsed, Reply, parse};
use client::request;

use crate::protocol::{Answer, Broken, Material, Pending, Step, Text};
use crate::socket::Socket;

/// What is at the start of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded<'a> {
    /// An answer and its length.
    Done(Answer<'a>, usize),
    /// Not all of it has arrived.
    More,
    /// Nonsense.
    Malformed,
}

/// One connection's requests.
pub(crate) struct Lines {
    text: Text,
    in_flight: VecDeque<Pending>,
}

impl Lines {
    pub(crate) fn new(text: Text) -> Self {
        Self { text, in_flight: VecDeque::new() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.in_flight.front().map(|first| first.sent_ns)
    }

    /// Asks for what `pending` says, of `key`.
    pub(crate) fn ask(&mut self, out: &mut Vec<u8>, key: &[u8], pending: Pending, of: &Material<'_>) {
        match pending.step {
            Step::Get => self.text.write_get(out, key),
            Step::Look => self.text.write_look(out, key),
            Step::Set => self.text.write_set(out, key, pending.key, None, of),
            Step::Replace(version) => self.text.write_set(out, key, pending.key, version, of),
        }
        self.in_flight.push_back(pending);
    }

    /// Hears all whole answers that have come.
    pub(crate) fn receive(
        &mut self,
        socket: &mut Socket,
        heard: &mut dyn FnMut(&Pending, Answer<'_>),
    ) -> Result<(), Broken> {
        while let Some(first) = self.in_flight.front() {
            let len = match self.text.decode(first.step, socket.input()) {
                Decoded::More => break,
                Decoded::Malformed => return Err(Broken::Malformed),
                Decoded::Done(answer, len) => {
                    heard(first, answer);
                    len
                }
            };
            socket.take(len);
            self.in_flight.pop_front();
        }
        Ok(())
    }

    /// The connection is lost: what it waited for.
    pub(crate) fn abandon(&mut self) -> Vec<Pending> {
        self.in_flight.drain(..).collect()
    }
}

impl Text {
    /// Appends a read of `key`.
    fn write_get(self, out: &mut Vec<u8>, key: &[u8]) {
        match self {
            Self::Memcached => request::get(out, key),
            Self::Redis { .. } => {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                bulk(out, key);
            }
        }
    }

    /// Appends a read of `key` that also asks for the version, where there is one.
    fn write_look(self, out: &mut Vec<u8>, key: &[u8]) {
        match self {
            Self::Memcached => {
                out.extend_from_slice(b"gets ");
                out.extend_from_slice(key);
                out.extend_from_slice(b"\r\n");
            }
            Self::Redis { .. } => self.write_get(out, key),
        }
    }

    /// Appends a write of `key`, whose number is `number`, in the place of `compare` if there is that.
    fn write_set(self, out: &mut Vec<u8>, key: &[u8], number: u32, compare: Option<u64>, of: &Material<'_>) {
        let len = of.values.len_of(number);
        match self {
            Self::Memcached => {
                out.extend_from_slice(if compare.is_some() { b"cas " } else { b"set " });
                out.extend_from_slice(key);
                out.extend_from_slice(b" 0 0 ");
                out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
                if let Some(version) = compare {
                    out.push(b' ');
                    out.extend_from_slice(itoa::Buffer::new().format(version).as_bytes());
                }
            }
            Self::Redis { .. } => {
                out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                bulk(out, key);
                out.push(b'$');
                out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        of.values.write(out, number, of.version);
        out.extend_from_slice(b"\r\n");
        if let Self::Redis { wait: Some(replicas) } = self {
            out.extend_from_slice(b"*3\r\n$4\r\nWAIT\r\n");
            bulk(out, itoa::Buffer::new().format(replicas).as_bytes());
            bulk(out, b"0");
        }
    }

    /// Reads the answer to `step`.
    fn decode(self, step: Step, buffer: &[u8]) -> Decoded<'_> {
        match self {
            Self::Memcached => decode_memcached(buffer),
            Self::Redis { wait } => {
                let writes = matches!(step, Step::Set | Step::Replace(_));
                decode_redis(buffer, wait.filter(|_| writes))
            }
        }
    }
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    out.extend_from_slice(itoa::Buffer::new().format(bytes.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn decode_memcached(buffer: &[u8]) -> Decoded<'_> {
    match parse(buffer) {
        Parsed::Complete(reply, len) => {
            let answer = match reply {
                Reply::Value { value, cas, .. } => {
                    Answer::Hit { len: value.len() as u64, bytes: Some(value), version: cas }
                }
                // A value that was to be replaced, and is gone.
                Reply::Miss | Reply::NotFound => Answer::Miss,
                Reply::Stored => Answer::Stored,
                Reply::Exists => Answer::Exists,
                Reply::ServerError(text) | Reply::ClientError(text) => Answer::Refused(text),
                _ => Answer::Refused(b"an answer to another request"),
            };
            Decoded::Done(answer, len)
        }
        Parsed::Incomplete(_) => Decoded::More,
        Parsed::Malformed(_) => Decoded::Malformed,
    }
}

fn decode_redis(buffer: &[u8], wait: Option<u32>) -> Decoded<'_> {
    let first = decode_resp(buffer);
    let (Some(wait), Decoded::Done(Answer::Stored, len)) = (wait, first) else { return first };
    // The write counts when the replicas have it, so both answers are one.
    let Some(end) = memchr::memchr(b'\n', &buffer[len..]) else { return Decoded::More };
    let line = buffer[len..len + end].trim_ascii_end();
    let total = len + end + 1;
    match line.strip_prefix(b":").and_then(number) {
        Some(replicas) if replicas >= u64::from(wait) => Decoded::Done(Answer::Stored, total),
        Some(_) => Decoded::Done(Answer::Refused(b"too few replicas"), total),
        None => Decoded::Malformed,
    }
}

/// One RESP value: simple string, error or bulk string.
fn decode_resp(buffer: &[u8]) -> Decoded<'_> {
    let Some(end) = memchr::memchr(b'\n', buffer) else { return Decoded::More };
    let line = buffer[..end].trim_ascii_end();
    let body = end + 1;
    match (line.first(), line.get(1..).unwrap_or_default()) {
        (Some(b'+'), _) => Decoded::Done(Answer::Stored, body),
        (Some(b'-'), text) => Decoded::Done(Answer::Refused(text), body),
        (Some(b'$'), b"-1") => Decoded::Done(Answer::Miss, body),
        (Some(b'$'), digits) => {
            let Some(len) = number(digits).and_then(|len| usize::try_from(len).ok()) else {
                return Decoded::Malformed;
            };
            // A length that cannot be must not overflow: then the rest never comes, and the time-out says so.
            let total = body.saturating_add(len).saturating_add(2);
            if buffer.len() < total {
                Decoded::More
            } else {
                Decoded::Done(Answer::hit(&buffer[body..body + len]), total)
            }
        }
        _ => Decoded::Malformed,
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::targets::Targets;
    use crate::values::{Lengths, Values};

    const WAITING: Text = Text::Redis { wait: Some(2) };

    #[test]
    fn a_waiting_set_is_one_answer() {
        let decode = |bytes: &'static [u8]| WAITING.decode(Step::Set, bytes);
        assert_eq!(decode(b"+OK\r\n:2\r\n+"), Decoded::Done(Answer::Stored, 9));
        assert_eq!(decode(b"+OK\r\n:"), Decoded::More);
        assert_eq!(decode(b"+OK\r\n:1\r\n"), Decoded::Done(Answer::Refused(b"too few replicas"), 9));
        assert_eq!(decode(b"-OOM\r\n"), Decoded::Done(Answer::Refused(b"OOM"), 6));
    }

    #[test]
    fn bulk_strings_are_hits_and_nil_is_a_miss() {
        let decode = |bytes: &'static [u8]| WAITING.decode(Step::Get, bytes);
        assert_eq!(decode(b"$3\r\na\r\n\r\n"), Decoded::Done(Answer::hit(b"a\r\n"), 9));
        assert_eq!(decode(b"$3\r\na\r\n"), Decoded::More);
        assert_eq!(decode(b"$-1\r\n"), Decoded::Done(Answer::Miss, 5));
        assert_eq!(decode(b"hm\r\n"), Decoded::Malformed);
    }

    #[test]
    fn requests_have_their_protocols_form() {
        let (values, address) = (Values::new(Lengths::all(1)), SocketAddr::from(([127, 0, 0, 1], 1)));
        let targets = Targets::of_one_role(address, 1);
        let of = Material { values: &values, targets: &targets, version: 1, timeout_ms: 1 };
        let mut out = Vec::new();
        WAITING.write_set(&mut out, b"key", 1, Some(7), &of);
        let text = String::from_utf8_lossy(&out);
        assert!(text.starts_with("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$1\r\n"), "it compares nothing");
        assert!(text.ends_with("\r\n*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$1\r\n0\r\n"));
        let begins = |compare, head: &[u8]| {
            let mut out = Vec::new();
            Text::Memcached.write_set(&mut out, b"key", 1, compare, &of);
            assert!(out.starts_with(head) && out.ends_with(b"\r\n"));
        };
        begins(None, b"set key 0 0 1\r\n");
        begins(Some(7), b"cas key 0 0 1 7\r\n");
    }

    #[test]
    fn a_value_brings_its_version_where_that_was_asked_for() {
        let answer = |bytes: &'static [u8]| Text::Memcached.decode(Step::Look, bytes);
        let hit = Answer::Hit { len: 1, bytes: Some(b"v"), version: Some(77) };
        assert_eq!(answer(b"VALUE k 0 1 77\r\nv\r\nEND\r\n"), Decoded::Done(hit, 24));
        assert_eq!(answer(b"EXISTS\r\n"), Decoded::Done(Answer::Exists, 8));
        assert_eq!(answer(b"NOT_FOUND\r\n"), Decoded::Done(Answer::Miss, 11));
    }
}
