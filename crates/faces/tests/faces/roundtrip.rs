//! Commands printed and parsed again: what comes out is what went in, however it was cut.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use faces::Stats;
use faces::memcache::{Access, Ask, MetaStyle, MetaVerb, Parser, ReplyStyle, ReturnFlags, Step, WithCas};
use proptest::prelude::*;
use types::UnixSeconds;
use types::op::{
    Arith, Bump, Claim, Delete, Direction, Expiry, FlushAt, Get, Key, MAX_KEY_BYTES, Op, Request, Store,
    StoreMode, Want,
};

use crate::samples::Gen;
use crate::store::NOW;

/// A line (with its data block) and what it says.
pub struct Sample {
    pub text: Vec<u8>,
    says: Says,
}

#[derive(Debug, PartialEq)]
enum Says {
    Keys { keys: Vec<Bytes>, with_cas: WithCas, touch: Option<Expiry> },
    Other(Step),
}

impl From<Step> for Says {
    fn from(step: Step) -> Self {
        match step {
            Step::Ask(Ask::Read { keys, touch, style: with_cas }) => {
                Self::Keys { keys: keys.handles().collect(), with_cas, touch }
            }
            other => Self::Other(other),
        }
    }
}

/// All steps of a connection on which these pieces arrive.
pub fn steps<'a>(access: Access, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Step> {
    let (mut parser, mut buffer, mut steps) = (Parser::new(access), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            assert!(parser.wanted(&buffer) >= 1);
            match parser.next(&mut buffer, NOW) {
                Step::Incomplete => break,
                step @ Step::Close => {
                    steps.push(step);
                    assert_eq!(parser.next(&mut buffer, NOW), Step::Close);
                    return steps;
                }
                step => steps.push(step),
            }
        }
    }
    steps
}

pub fn sample(from: &mut Gen) -> Sample {
    match from.below(10) {
        0 | 1 => many_keys(from),
        2..=4 => text(from),
        5..=8 => meta(from),
        _ => admin(from),
    }
}

/// Any bytes that a key of the text protocol may have.
fn key(from: &mut Gen) -> Vec<u8> {
    let len = from.pick(&[1, 2, 10, 30, MAX_KEY_BYTES]);
    let mut key = from.bytes(len);
    for byte in &mut key {
        if matches!(byte, 0 | b' ' | b'\n') {
            *byte = b'k';
        }
    }
    // Only at the start of a line would these mean another protocol, and a key never stands there.
    key
}

fn value(from: &mut Gen) -> Bytes {
    let len = from.pick(&[0, 1, 2, 50, 1000, 20_000]);
    from.bytes(len).into()
}

/// A time, and one of the ways to write it.
fn time(from: &mut Gen) -> (Expiry, i64) {
    match from.below(5) {
        0 => (Expiry::Never, 0),
        1 => (Expiry::At(UnixSeconds(1)), -1 - from.below(1000) as i64),
        2 => {
            let seconds = 1 + from.below(60 * 60 * 24 * 30) as u32;
            (Expiry::At(UnixSeconds(NOW.0 + seconds)), seconds.into())
        }
        _ => {
            let at = 2_592_001 + from.below(i32::MAX as u64 - 2_592_001) as u32;
            (Expiry::At(UnixSeconds(at)), at.into())
        }
    }
}

fn eol(from: &mut Gen) -> &'static str {
    if from.one_in(4) { "\n" } else { "\r\n" }
}

/// Joins tokens with one or more spaces, perhaps with spaces behind them.
fn line(from: &mut Gen, tokens: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if i > 0 {
            text.extend(vec![b' '; from.pick(&[1, 1, 1, 3])]);
        }
        text.extend_from_slice(token);
    }
    // A space at the end also keeps a key's last "\r" apart from the end of the line.
    text.extend(vec![b' '; from.pick(&[1, 2])]);
    text.extend_from_slice(eol(from).as_bytes());
    text
}

fn many_keys(from: &mut Gen) -> Sample {
    let count = from.pick(&[1, 1, 2, 5, 300]);
    let keys: Vec<_> = (0..count).map(|_| key(from)).collect();
    let with_cas = from.pick(&[WithCas::Yes, WithCas::No]);
    let touch = from.one_in(2).then(|| time(from));
    let name = match (with_cas, touch) {
        (WithCas::No, None) => "get",
        (WithCas::Yes, None) => "gets",
        (WithCas::No, Some(_)) => "gat",
        (WithCas::Yes, Some(_)) => "gats",
    };
    let mut tokens = vec![name.into()];
    tokens.extend(touch.map(|(_, seconds)| seconds.to_string().into_bytes()));
    tokens.extend(keys.iter().cloned());
    let keys = keys.into_iter().map(Bytes::from).collect();
    Sample {
        text: line(from, &tokens),
        says: Says::Keys { keys, with_cas, touch: touch.map(|(expiry, _)| expiry) },
    }
}

fn text(from: &mut Gen) -> Sample {
    let key = key(from);
    let mut tokens = vec![Vec::new(), key.clone()];
    let mut block = None;
    let op = match from.below(4) {
        0 => {
            let store = text_store(from, &mut tokens);
            block = Some(store.value.clone());
            Op::Store(store)
        }
        1 => {
            tokens[0] = "delete".into();
            if from.one_in(3) {
                tokens.push("0".into());
            }
            Op::Delete(Delete::default())
        }
        2 => {
            let (direction, name) =
                from.pick(&[(Direction::Increment, "incr"), (Direction::Decrement, "decr")]);
            let delta = from.of();
            tokens[0] = name.into();
            tokens.push(number(delta));
            Op::Arith(Arith { direction, delta, ..Arith::default() })
        }
        _ => {
            let (expiry, seconds) = time(from);
            tokens[0] = "touch".into();
            tokens.push(seconds.to_string().into());
            Op::Touch(expiry)
        }
    };
    let reply = from.pick(&[false, true]);
    if reply {
        tokens.push("noreply".into());
    }
    let mut text = line(from, &tokens);
    if let Some(value) = block {
        text.extend_from_slice(&value);
        text.extend_from_slice(b"\r\n");
    }
    let reply = if reply { ReplyStyle::Silent } else { ReplyStyle::Text };
    let command = Ask::One { request: on(key, op).into(), style: reply };
    Sample { text, says: Says::Other(Step::Ask(command)) }
}

fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn text_store(from: &mut Gen, tokens: &mut Vec<Vec<u8>>) -> Store {
    let (mode, name) = from.pick(&[
        (StoreMode::Set, "set"),
        (StoreMode::Add, "add"),
        (StoreMode::Replace, "replace"),
        (StoreMode::Append, "append"),
        (StoreMode::Prepend, "prepend"),
        (StoreMode::Set, "cas"),
    ]);
    let (expiry, seconds) = time(from);
    let store = Store {
        mode,
        value: value(from),
        flags: from.of(),
        expiry,
        compare: (name == "cas").then(|| from.of()),
        version: None,
        invalidate: false,
        vivify: None,
    };
    tokens[0] = name.into();
    tokens.push(number(store.flags.into()));
    tokens.push(seconds.to_string().into());
    tokens.push(number(store.value.len() as u64));
    tokens.extend(store.compare.map(number));
    store
}

/// Flags of a meta command: what each is written as, to be shuffled.
#[derive(Default)]
struct Flags(Vec<Vec<u8>>);

impl Flags {
    fn bare(&mut self, letter: u8) {
        self.0.push(vec![letter]);
    }

    fn with(&mut self, letter: u8, argument: impl ToString) {
        self.0.push([vec![letter], argument.to_string().into_bytes()].concat());
    }

    fn number(&mut self, from: &mut Gen, letter: u8) -> Option<u64> {
        let number = from.one_in(2).then(|| from.of());
        number.inspect(|number| self.with(letter, number))
    }

    fn time(&mut self, from: &mut Gen, letter: u8) -> Option<Expiry> {
        let (expiry, seconds) = from.one_in(2).then(|| time(from))?;
        self.with(letter, seconds);
        Some(expiry)
    }

    fn flag(&mut self, from: &mut Gen, letter: u8) -> bool {
        let set = from.one_in(3);
        if set {
            self.bare(letter);
        }
        set
    }
}

fn meta(from: &mut Gen) -> Sample {
    let mut flags = Flags::default();
    let verb = from.pick(&[MetaVerb::Get, MetaVerb::Set, MetaVerb::Delete, MetaVerb::Arith]);
    let base64 = flags.flag(from, b'b');
    let key = if base64 { from.bytes(40) } else { key(from) };
    let quiet = flags.flag(from, b'q');
    let opaque = if from.one_in(2) { format!("{:x}", from.next()) } else { String::new() };
    if !opaque.is_empty() {
        flags.with(b'O', &opaque);
    }
    for letter in *b"kcst" {
        flags.flag(from, letter);
    }
    let (mut value, mut block, mut known_version) = (false, None, None);
    let (name, op) = match verb {
        MetaVerb::Get => {
            value = flags.flag(from, b'v');
            known_version = flags.number(from, b'C');
            ("mg", Op::Get(meta_get(from, &mut flags, value)))
        }
        MetaVerb::Set => {
            let store = meta_store(from, &mut flags);
            block = Some(store.value.clone());
            ("ms", Op::Store(store))
        }
        MetaVerb::Delete => ("md", Op::Delete(meta_delete(from, &mut flags))),
        _ => {
            value = flags.flag(from, b'v');
            ("ma", Op::Arith(meta_arith(from, &mut flags)))
        }
    };
    for i in (1..flags.0.len()).rev() {
        let other = from.len(i + 1);
        flags.0.swap(i, other);
    }
    let letters: Vec<u8> = flags.0.iter().map(|flag| flag[0]).collect();
    let mut tokens = vec![name.into(), if base64 { STANDARD.encode(&key).into() } else { key.clone() }];
    tokens.extend(block.as_ref().map(|value| number(value.len() as u64)));
    tokens.extend(flags.0);
    let mut text = line(from, &tokens);
    let sent_len = block.as_ref().map_or(0, |value| value.len() as u64);
    if let Some(value) = block {
        text.extend_from_slice(&value);
        text.extend_from_slice(b"\r\n");
    }
    let flags = ReturnFlags::of(&letters);
    let style =
        MetaStyle { verb, quiet, base64, value, known_version, flags, opaque: opaque.into(), sent_len };
    let command = Ask::One { request: on(key, op).into(), style: ReplyStyle::Meta(style) };
    Sample { text, says: Says::Other(Step::Ask(command)) }
}

fn meta_get(from: &mut Gen, flags: &mut Flags, value: bool) -> Get {
    let recache = from.one_in(3).then(|| from.below(2_592_000) as u32);
    if let Some(seconds) = recache {
        flags.with(b'R', seconds);
    }
    for letter in *b"fhl" {
        flags.flag(from, letter);
    }
    Get {
        touch: flags.time(from, b'T'),
        vivify: flags.time(from, b'N'),
        recache_below_seconds: recache,
        value: if value { Want::Value } else { Want::NoValue },
        claim: Claim::IfDue,
        version: flags.number(from, b'E'),
        bump: if flags.flag(from, b'u') { Bump::Silent } else { Bump::Count },
    }
}

fn meta_store(from: &mut Gen, flags: &mut Flags) -> Store {
    let (mode, letter) = from.pick(&[
        (StoreMode::Set, None),
        (StoreMode::Set, Some("S")),
        (StoreMode::Add, Some("E")),
        (StoreMode::Replace, Some("R")),
        (StoreMode::Append, Some("A")),
        (StoreMode::Prepend, Some("P")),
    ]);
    if let Some(letter) = letter {
        flags.with(b'M', letter);
    }
    let compares = !matches!(mode, StoreMode::Add | StoreMode::Replace);
    let compare = if compares { flags.number(from, b'C') } else { None };
    let appends = matches!(mode, StoreMode::Append | StoreMode::Prepend);
    let client_flags = from.of::<u32>();
    flags.with(b'F', client_flags);
    Store {
        mode,
        value: value(from),
        flags: client_flags,
        expiry: flags.time(from, b'T').unwrap_or_default(),
        compare,
        version: flags.number(from, b'E'),
        invalidate: flags.flag(from, b'I') && mode == StoreMode::Set && compare.is_some(),
        vivify: if appends { flags.time(from, b'N') } else { None },
    }
}

fn meta_delete(from: &mut Gen, flags: &mut Flags) -> Delete {
    Delete {
        compare: flags.number(from, b'C'),
        version: flags.number(from, b'E'),
        invalidate: flags.flag(from, b'I'),
        touch: flags.time(from, b'T'),
        drop_value: flags.flag(from, b'x').then(|| {
            let client_flags = from.of::<u32>();
            flags.with(b'F', client_flags);
            client_flags
        }),
    }
}

fn meta_arith(from: &mut Gen, flags: &mut Flags) -> Arith {
    let (direction, letter) = from.pick(&[
        (Direction::Increment, None),
        (Direction::Increment, Some("I")),
        (Direction::Increment, Some("+")),
        (Direction::Decrement, Some("D")),
        (Direction::Decrement, Some("-")),
    ]);
    if let Some(letter) = letter {
        flags.with(b'M', letter);
    }
    Arith {
        direction,
        delta: flags.number(from, b'D').unwrap_or(1),
        vivify: flags.time(from, b'N'),
        initial: flags.number(from, b'J').unwrap_or(0),
        touch: flags.time(from, b'T'),
        compare: flags.number(from, b'C').filter(|&version| version != 0),
        version: flags.number(from, b'E'),
    }
}

fn admin(from: &mut Gen) -> Sample {
    let in_seconds = |seconds: u32| FlushAt::At(UnixSeconds(NOW.0 + seconds));
    let flush = |at, style| Step::Ask(Ask::Flush { at, style });
    let text = || ReplyStyle::Text;
    let silent = || ReplyStyle::Silent;
    let (line, command) = match from.below(14) {
        0 => ("version", Step::Say(b"VERSION 1.6.45\r\n")),
        1 => ("verbosity 1", Step::Say(b"OK\r\n")),
        2 => ("verbosity 0 noreply", Step::Say(b"")),
        3 => ("stats", Step::Ask(Ask::Stats(Stats::General))),
        4 => ("stats settings", Step::Ask(Ask::Stats(Stats::Settings))),
        5 => ("stats reset", Step::Ask(Ask::Stats(Stats::Reset))),
        6 => ("mn", Step::Say(b"MN\r\n")),
        7 => ("quit", Step::Quit),
        8 => ("flush_all", flush(FlushAt::Now, text())),
        9 => ("flush_all 0", flush(FlushAt::Now, text())),
        10 => ("flush_all noreply", flush(FlushAt::Now, silent())),
        11 => ("flush_all 10", flush(in_seconds(10), text())),
        12 => ("flush_all 2000000000 noreply", flush(FlushAt::At(UnixSeconds(2_000_000_000)), silent())),
        _ => {
            let flags = ReturnFlags::default();
            let (base64, verb) = (true, MetaVerb::Debug);
            let style = MetaStyle {
                verb,
                quiet: false,
                base64,
                value: false,
                known_version: None,
                flags,
                opaque: Bytes::new(),
                sent_len: 0,
            };
            let request = on(b"aa".to_vec(), Op::Debug);
            ("me YWE= b", Step::Ask(Ask::One { request: request.into(), style: ReplyStyle::Meta(style) }))
        }
    };
    // A line of three bytes is too short in memcached.
    let eol = if line.len() < 3 { "\r\n" } else { eol(from) };
    Sample { text: format!("{line}{eol}").into(), says: Says::Other(command) }
}

fn on(key: Vec<u8>, op: Op) -> Request {
    Request::on(Key::new(key.into()).expect("samples are lawful"), op)
}

/// Cuts `stream` at lengths that repeat.
pub fn cut<'a>(stream: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let (mut rest, mut lengths) = (stream, lengths.iter().cycle());
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.len().min(*lengths.next()?));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[test]
fn every_command_is_read_as_it_was_meant() {
    for seed in 0..20_000 {
        let sample = sample(&mut Gen::new(seed));
        let mut read = steps(Access::Open, [&sample.text[..]]);
        let shown = sample.text.escape_ascii().to_string();
        assert_eq!(read.len(), 1, "{shown}");
        assert_eq!(Says::from(read.remove(0)), sample.says, "{shown}");
    }
}

proptest! {
    #[test]
    fn where_the_network_cuts_makes_no_difference(
        seeds in prop::collection::vec(any::<u64>(), 1..10),
        lengths in prop::collection::vec(1usize..2000, 1..10),
    ) {
        let stream: Vec<u8> = seeds.iter().flat_map(|&seed| sample(&mut Gen::new(seed)).text).collect();
        let at_once = steps(Access::Open, [&stream[..]]);
        prop_assert_eq!(at_once.len(), seeds.len());
        prop_assert_eq!(&steps(Access::Open, cut(&stream, &lengths)), &at_once);
        prop_assert_eq!(&steps(Access::Open, cut(&stream, &[1])), &at_once);
    }
}
