//! Reads memcached text answers out of a buffer, without copying.
//!
//! [`parse`] is given what has arrived so far and answers with one reply and its length, or asks for more. A get of
//! one key is one reply: `VALUE … END` is a [`Reply::Value`], a bare `END` a [`Reply::Miss`].

/// An answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The one key of a get was there.
    Value {
        /// As sent.
        key: &'a [u8],
        /// Client flags.
        flags: u32,
        /// The unique that `gets` asks for.
        cas: Option<u64>,
        /// The bytes.
        value: &'a [u8],
    },
    /// The one key of a get was not there.
    Miss,
    /// `STORED`.
    Stored,
    /// `NOT_STORED`.
    NotStored,
    /// `EXISTS`.
    Exists,
    /// `NOT_FOUND`.
    NotFound,
    /// `DELETED`.
    Deleted,
    /// `TOUCHED`.
    Touched,
    /// `OK`.
    Ok,
    /// The answer to incr and decr.
    Number(u64),
    /// `VERSION …`.
    Version(&'a [u8]),
    /// `HD …` of the meta protocol, with its return flags.
    Header(&'a [u8]),
    /// `ME …` of the meta protocol: the key, and what is known of it.
    Debug(&'a [u8]),
    /// `ERROR`: the request was not understood.
    Error,
    /// `CLIENT_ERROR …`.
    ClientError(&'a [u8]),
    /// `SERVER_ERROR …`.
    ServerError(&'a [u8]),
}

/// What is at the start of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A reply and the number of bytes it takes.
    Complete(Reply<'a>, usize),
    /// A part of a reply; at least this many bytes in all are needed to go on.
    Incomplete(usize),
    /// Not memcached's protocol; the stream is of no more use.
    Malformed(&'static str),
}

/// Longest line that is waited for.
const MAX_LINE_BYTES: usize = 2048;
/// Longest value that is waited for.
const MAX_VALUE_BYTES: usize = 1 << 30;
const END: &[u8] = b"\r\nEND\r\n";

/// Reads the reply at the start of `buffer`.
#[must_use]
pub fn parse(buffer: &[u8]) -> Parsed<'_> {
    // Whatever sends no end of a line would have to be kept for ever.
    let window = &buffer[..buffer.len().min(MAX_LINE_BYTES)];
    let Some(newline) = memchr::memchr(b'\n', window) else {
        return if window.len() == MAX_LINE_BYTES {
            Parsed::Malformed("a line has no end")
        } else {
            Parsed::Incomplete(buffer.len() + 1)
        };
    };
    let line = &buffer[..newline];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(rest) = line.strip_prefix(b"VALUE ") {
        return parse_value(buffer, rest, newline + 1);
    }
    match parse_line(line) {
        Some(reply) => Parsed::Complete(reply, newline + 1),
        None => Parsed::Malformed("an unknown answer"),
    }
}

fn parse_line(line: &[u8]) -> Option<Reply<'_>> {
    Some(match line {
        b"STORED" => Reply::Stored,
        b"END" | b"EN" => Reply::Miss,
        b"NOT_STORED" => Reply::NotStored,
        b"EXISTS" => Reply::Exists,
        b"NOT_FOUND" => Reply::NotFound,
        b"DELETED" => Reply::Deleted,
        b"TOUCHED" => Reply::Touched,
        b"OK" => Reply::Ok,
        b"ERROR" => Reply::Error,
        _ => return parse_worded_line(line),
    })
}

fn parse_worded_line(line: &[u8]) -> Option<Reply<'_>> {
    if let Some(text) = line.strip_prefix(b"SERVER_ERROR ") {
        return Some(Reply::ServerError(text));
    }
    if let Some(text) = line.strip_prefix(b"CLIENT_ERROR ") {
        return Some(Reply::ClientError(text));
    }
    if let Some(text) = line.strip_prefix(b"VERSION ") {
        return Some(Reply::Version(text));
    }
    if let Some(text) = line.strip_prefix(b"ME ") {
        return Some(Reply::Debug(text));
    }
    if let Some(flags) = line.strip_prefix(b"HD") {
        return Some(Reply::Header(flags.trim_ascii_start()));
    }
    // decr pads with blanks where a number gets shorter.
    decimal(line.trim_ascii_end()).map(Reply::Number)
}

/// `rest` is the line after "VALUE ", `data` where the value starts in `buffer`.
fn parse_value<'a>(buffer: &'a [u8], rest: &'a [u8], data: usize) -> Parsed<'a> {
    let mut fields = rest.split(|&b| b == b' ');
    let (Some(key), Some(flags), Some(len)) = (fields.next(), fields.next(), fields.next()) else {
        return Parsed::Malformed("a VALUE line lacks fields");
    };
    let flags = decimal(flags).and_then(|flags| u32::try_from(flags).ok());
    let len = decimal(len).and_then(|len| usize::try_from(len).ok()).filter(|&len| len <= MAX_VALUE_BYTES);
    let (Some(flags), Some(len)) = (flags, len) else {
        return Parsed::Malformed("a VALUE line has bad numbers");
    };
    let cas = fields.next().and_then(decimal);
    // The end belongs to the reply: a get asks for one key.
    let total = data + len + END.len();
    if buffer.len() < total {
        return Parsed::Incomplete(total);
    }
    if &buffer[data + len..total] != END {
        return Parsed::Malformed("a value is not followed by END");
    }
    Parsed::Complete(Reply::Value { key, flags, cas, value: &buffer[data..data + len] }, total)
}

/// Flags and length of a value whose bytes are to follow its line; none if `line` is not that of a value.
pub(crate) fn parse_value_line(line: &[u8]) -> Option<(u32, u64)> {
    let mut fields = line.trim_ascii_end().strip_prefix(b"VALUE ")?.split(|&b| b == b' ').skip(1);
    let flags = u32::try_from(decimal(fields.next()?)?).ok()?;
    Some((flags, decimal(fields.next()?)?))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 { None } else { sum.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hit_is_one_reply_with_its_value() {
        let bytes = b"VALUE key 5 3\r\na\nb\r\nEND\r\nSTORED\r\n";
        let expected = Reply::Value { key: b"key", flags: 5, cas: None, value: b"a\nb" };
        assert_eq!(parse(bytes), Parsed::Complete(expected, bytes.len() - 8));
    }

    #[test]
    fn gets_brings_the_unique() {
        let bytes = b"VALUE key 0 0 77\r\n\r\nEND\r\n";
        let expected = Reply::Value { key: b"key", flags: 0, cas: Some(77), value: b"" };
        assert_eq!(parse(bytes), Parsed::Complete(expected, bytes.len()));
    }

    #[test]
    fn every_prefix_of_a_reply_asks_for_more() {
        for whole in [&b"VALUE key 5 3\r\na\nb\r\nEND\r\n"[..], b"SERVER_ERROR out of memory\r\n", b"12\r\n"]
        {
            for cut in 0..whole.len() {
                assert!(matches!(parse(&whole[..cut]), Parsed::Incomplete(need) if need > cut));
            }
            assert!(matches!(parse(whole), Parsed::Complete(_, len) if len == whole.len()));
        }
    }

    #[test]
    fn single_line_answers_are_told_apart() {
        for (text, reply) in [
            ("END\r\n", Reply::Miss),
            ("NOT_FOUND\r\n", Reply::NotFound),
            ("17  \r\n", Reply::Number(17)),
            ("SERVER_ERROR lost\r\n", Reply::ServerError(b"lost")),
            ("HD s12 f0\r\n", Reply::Header(b"s12 f0")),
            ("ME k exp=-1 la=0\r\n", Reply::Debug(b"k exp=-1 la=0")),
            ("VERSION 1.6\r\n", Reply::Version(b"1.6")),
        ] {
            assert_eq!(parse(text.as_bytes()), Parsed::Complete(reply, text.len()));
        }
    }

    #[test]
    fn nonsense_is_malformed() {
        for text in [
            "HTTP/1.1 200 OK\r\n",
            "VALUE k 1\r\n",
            "VALUE k 1 99999999999\r\n",
            "VALUE k 0 1\r\nabcdefgh\r\n",
        ] {
            assert!(matches!(parse(text.as_bytes()), Parsed::Malformed(_)), "{text}");
        }
        assert!(matches!(parse(&[b'x'; 4096]), Parsed::Malformed(_)));
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Parsed::Complete(_, len) = parse(&bytes) {
                prop_assert!(len <= bytes.len());
            }
        }
    }
}
