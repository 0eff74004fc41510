//! memcached's protocols as a [`Face`].

use bytes::BytesMut;
use types::UnixSeconds;
use types::op::{Failure, ItemView, OpKind, Outcome};

use super::failure::FailureCode;
use super::lines::{self, Line};
use super::parsed::Step;
use super::parser::Parser;
use super::reply;
use super::style::{ReplyStyle, WithCas};
use crate::face::{Face, Found, ValueLimits};

/// The version that clients are told: memcached's, whose answers these are. They parse and compare it, so it is three plain
/// numbers.
pub const VERSION: &str = "1.6.45";
const KINDS: usize = OpKind::ALL.len();
/// Commands that are not called as what they do is.
const OTHERS: [&str; 6] = ["gets", "gats", "mg", "ms", "md", "ma"];
static NAMES: [&str; KINDS + OTHERS.len()] = names();

const fn names() -> [&'static str; KINDS + OTHERS.len()] {
    let mut names = [""; KINDS + OTHERS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = if at < KINDS { OpKind::ALL[at].name() } else { OTHERS[at - KINDS] };
        at += 1;
    }
    names
}

impl Face for Parser {
    type Style = ReplyStyle;
    type Values = WithCas;

    const NAMES: &'static [&'static str] = &NAMES;
    const VALUE_END: Line = b"\r\n";

    fn limit_values(&mut self, limits: ValueLimits) {
        self.limit_values(limits);
    }

    fn wanted(&self, buffer: &BytesMut) -> usize {
        self.wanted(buffer)
    }

    fn is_idle(&self, buffer: &BytesMut) -> bool {
        self.is_idle(buffer)
    }

    fn next(&mut self, buffer: &mut BytesMut, now: UnixSeconds) -> Step {
        self.next(buffer, now)
    }

    fn unlock(&mut self) -> Line {
        self.unlock();
        reply::STORED
    }

    fn check_value_end(style: &ReplyStyle, end: &[u8]) -> Result<(), Line> {
        match style {
            _ if end == Self::VALUE_END => Ok(()),
            // As for a value that was not streamed.
            ReplyStyle::Silent => Err(b""),
            _ => Err(lines::BAD_CHUNK),
        }
    }

    fn print(style: &ReplyStyle, key: &[u8], outcome: &Outcome, out: &mut Vec<u8>) {
        reply::write(style, key, outcome, out);
    }

    fn print_found(style: &ReplyStyle, key: &[u8], item: &ItemView, value: &[u8], out: &mut Vec<u8>) {
        reply::write_found(style, key, item, value, out);
    }

    fn prints_key(style: &ReplyStyle) -> bool {
        matches!(style, ReplyStyle::Meta(_))
    }

    fn streams(style: &ReplyStyle, item: &ItemView) -> bool {
        item.object.is_some() && reply::prints_value(style, item)
    }

    fn print_head(with_cas: WithCas, key: &[u8], item: &ItemView, out: &mut Vec<u8>) {
        let version = (with_cas == WithCas::Yes).then_some(item.version);
        reply::write_head(key, item.flags, version, item.value_len, out);
    }

    fn print_value(with_cas: WithCas, key: &[u8], found: &Found<'_>, out: &mut Vec<u8>) {
        let version = (with_cas == WithCas::Yes).then_some(found.version);
        reply::write_value(key, found.flags, version, found.value, out);
    }

    fn print_end(_: WithCas, failure: Option<Failure>, out: &mut Vec<u8>) {
        out.extend_from_slice(failure.map_or(reply::END, reply::failure_line));
    }

    fn print_partial(style: &ReplyStyle, out: &mut Vec<u8>) {
        reply::write_failure(style, FailureCode::Partial, out);
    }

    fn print_no_flush(style: &ReplyStyle, out: &mut Vec<u8>) {
        if *style != ReplyStyle::Silent {
            out.extend_from_slice(lines::NO_FLUSH);
        }
    }

    fn print_stats(stats: Option<&[(String, String)]>, out: &mut Vec<u8>) {
        let Some(stats) = stats else { return out.extend_from_slice(reply::RESET) };
        stats.iter().for_each(|(name, value)| reply::write_stat(name, value, out));
        out.extend_from_slice(reply::END);
    }

    fn name_of(kind: OpKind, style: &ReplyStyle) -> usize {
        use OpKind::{Add, Append, Cas, Decr, Delete, Get, GetAndTouch, Incr, Prepend, Replace, Set};
        match (style, kind) {
            (ReplyStyle::Meta(_), Get | GetAndTouch) => KINDS + 2,
            (ReplyStyle::Meta(_), Set | Add | Replace | Append | Prepend | Cas) => KINDS + 3,
            (ReplyStyle::Meta(_), Delete) => KINDS + 4,
            (ReplyStyle::Meta(_), Incr | Decr) => KINDS + 5,
            (_, kind) => kind as usize,
        }
    }

    fn name_of_read(kind: OpKind, with_cas: WithCas) -> usize {
        match (with_cas, kind) {
            (WithCas::Yes, OpKind::Get) => KINDS,
            (WithCas::Yes, OpKind::GetAndTouch) => KINDS + 1,
            (_, kind) => kind as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_called_as_clients_call_them() {
        let name = |kind, style: &ReplyStyle| NAMES[Parser::name_of(kind, style)];
        assert_eq!(name(OpKind::Cas, &ReplyStyle::Text), "cas");
        assert_eq!(NAMES[Parser::name_of_read(OpKind::GetAndTouch, WithCas::Yes)], "gats");
        assert_eq!(NAMES[Parser::name_of_read(OpKind::Get, WithCas::No)], "get");
        assert_eq!(lines::VERSION_LINE, format!("VERSION {VERSION}\r\n").as_bytes());
    }
}
