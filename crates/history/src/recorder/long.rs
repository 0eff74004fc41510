//! Values that do not fit into a buffer, on their way: they are written and read bit by bit, and their names are what a history keeps.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use client::reply::{Parsed, parse};

use crate::linearizability::{Bytes, Op, Outcome};

use super::manner::Manner;
use super::pattern::{Mark, Reader, len_of, write};
use super::socket::{Heard, Refusal, Socket, hear, request};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Longest line that is waited for.
const MAX_LINE_BYTES: usize = 2048;
/// What follows a value that is read.
const END: &[u8] = b"\r\nEND\r\n";
/// How slow a slow reader is: a pause after so many bytes.
const PAUSE: (u64, Duration) = (512 * 1024, Duration::from_millis(20));

impl Socket {
    /// Asks for `op`, whose value has this mark.
    pub(super) fn exchange_long(
        &mut self,
        key: &str,
        op: &Op,
        mark: Mark,
        manner: Manner,
    ) -> io::Result<Heard> {
        let (head, value) = head_of(key, op);
        if let Some(value) = value {
            let begun = self.stream.write_all(&head);
            if begun.and_then(|()| write(value, mark, len_of(value), &self.stream)).is_err() {
                // Nothing is done before all of it has come, with the end that follows it.
                return Ok(Heard::Broken(Refusal::Unavailable));
            }
            self.stream.write_all(b"\r\n")?;
        } else {
            self.stream.write_all(&head)?;
        }
        self.hear_long(op, mark, manner)
    }

    fn hear_long(&mut self, op: &Op, mark: Mark, manner: Manner) -> io::Result<Heard> {
        let line = loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                break &self.buffer[..=end];
            }
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(io::Error::other("a line has no end"));
            }
            self.read_more()?;
        };
        if let Some((len, cas)) = announced(line) {
            let line_len = line.len();
            self.buffer.drain(..line_len);
            let value = self.read_value(len, mark, manner)?;
            return Ok(Heard::Outcome(Outcome::Value { value, cas }));
        }
        match parse(line) {
            Parsed::Complete(reply, len) => {
                let heard = hear(reply, op);
                self.buffer.drain(..len);
                Ok(heard)
            }
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// The name of a value of so many bytes, all of which came, with its end.
    fn read_value(&mut self, len: u64, mark: Mark, manner: Manner) -> io::Result<Bytes> {
        let (mut reader, mut left, mut unpaused) = (Reader::new(mark), len, 0);
        while left > 0 {
            if self.buffer.is_empty() {
                self.read_more()?;
            }
            let here = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            reader.take(&self.buffer[..here]);
            self.buffer.drain(..here);
            left -= here as u64;
            unpaused += here as u64;
            if manner == Manner::Slowly && unpaused >= PAUSE.0 {
                unpaused = 0;
                thread::sleep(PAUSE.1);
            }
        }
        while self.buffer.len() < END.len() {
            self.read_more()?;
        }
        if !self.buffer.starts_with(END) {
            return Err(io::Error::other("a value does not end where its length says"));
        }
        self.buffer.drain(..END.len());
        Ok(reader.finish())
    }

    fn read_more(&mut self) -> io::Result<()> {
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let read = self.stream.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        if read? == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// Sends so many thousandths of a request with a value, and nothing more.
pub(super) fn break_off(
    mut stream: &TcpStream,
    key: &str,
    op: &Op,
    mark: Mark,
    thousandths: u64,
) -> io::Result<()> {
    let (head, Some(value)) = head_of(key, op) else { return Ok(()) };
    stream.write_all(&head)?;
    write(value, mark, len_of(value) * thousandths / 1000, stream)
}

/// The first line of a request, and the name of the value that follows it.
fn head_of<'a>(key: &str, op: &'a Op) -> (Vec<u8>, Option<&'a Bytes>) {
    let (verb, value, tail) = match op {
        Op::Set(value) => ("set", value, String::new()),
        Op::Add(value) => ("add", value, String::new()),
        Op::Replace(value) => ("replace", value, String::new()),
        Op::Append(value) => ("append", value, String::new()),
        Op::Cas { value, unique } => ("cas", value, format!(" {unique}")),
        _ => return (request(key, op), None),
    };
    (format!("{verb} {key} 0 0 {}{tail}\r\n", len_of(value)).into_bytes(), Some(value))
}

/// The length and the unique of the value that such a line announces.
fn announced(line: &[u8]) -> Option<(u64, Option<u64>)> {
    let text = std::str::from_utf8(line.strip_prefix(b"VALUE ")?).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(2);
    let len = fields.next()?.parse().ok()?;
    Some((len, fields.next().and_then(|unique| unique.parse().ok())))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SET: &str = "[7.9:300000]";

    /// What a client of one server hears that takes `taken` bytes and answers with `answer`.
    fn heard(op: &Op, taken: usize, answer: Vec<u8>) -> io::Result<Heard> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut vec![0; taken]).unwrap();
            stream.write_all(&answer).unwrap();
        });
        let heard = Socket { stream, buffer: Vec::new() }.exchange_long(
            "key",
            op,
            Mark::of("m"),
            Manner::AsFastAsPossible,
        );
        server.join().unwrap();
        heard
    }

    fn hit(len: usize, end: &str) -> Vec<u8> {
        let mut answer = b"VALUE key 0 300000 12\r\n".to_vec();
        write(&Bytes::from(SET), Mark::of("m"), len as u64, &mut answer).unwrap();
        answer.extend_from_slice(end.as_bytes());
        answer
    }

    #[test]
    fn a_value_goes_out_and_comes_back_as_its_name() {
        let set = Op::Set(SET.into());
        let all = "set key 0 0 300000\r\n".len() + 300_000 + 2;
        let stored = heard(&set, all, b"STORED\r\n".to_vec());
        assert!(matches!(stored, Ok(Heard::Outcome(Outcome::Stored))));
        let value = Outcome::Value { value: SET.into(), cas: Some(12) };
        let read = heard(&Op::Get, 10, hit(300_000, "\r\nEND\r\n"));
        assert!(matches!(read, Ok(Heard::Outcome(outcome)) if outcome == value));
    }

    #[test]
    fn a_value_that_breaks_off_is_no_answer() {
        assert!(heard(&Op::Get, 10, hit(299_999, "")).is_err());
        assert!(heard(&Op::Get, 10, hit(300_000, "\r\nEN")).is_err());
        assert!(heard(&Op::Get, 10, hit(300_000, "?\r\nEND\r\n")).is_err());
    }
}
