//! Lines that are refused, and what is said about them, beyond the recorded cases of `bad_input`.

use bytes::BytesMut;
use faces::memcache::{Access, Ask, Parser, Step};
use types::NamespaceId;
use types::op::{Op, StoreMode};

use crate::roundtrip::steps;
use crate::store::NOW;

/// What one line is answered without a store; `-` for a command that needs one, empty for silence.
fn answer(line: &str) -> String {
    let show = |line: &[u8]| String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
    match steps(Access::Open, [format!("{line}\r\n").as_bytes()]).first() {
        None => String::new(),
        Some(Step::Ask(_) | Step::Stream(_) | Step::Say(_) | Step::Quit) => "-".into(),
        Some(Step::Refuse(line)) => show(line),
        Some(Step::Close) => "(closed)".into(),
        Some(Step::Incomplete) => unreachable!("not a step"),
    }
}

const ERROR: &str = "ERROR";
const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
const DUPLICATE: &str = "CLIENT_ERROR duplicate flag";
const INVALID: &str = "CLIENT_ERROR invalid flag";
const INVALID_OR_DUPLICATE: &str = "CLIENT_ERROR invalid or duplicate flag";
const EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
const DELTA: &str = "CLIENT_ERROR invalid numeric delta argument";
#[test]
fn text_lines() {
    let table = [
        ("set", BAD_FORMAT),
        ("set a", BAD_FORMAT),
        ("set a 0 0 x", BAD_FORMAT),
        ("cas a 0 0 x 1 noreply", BAD_FORMAT),
        ("set a 0 0 1 noreply x", ""),
        ("set a x 0 1", BAD_FORMAT),
        ("set a x 0 1 noreply", ""),
        ("set a 0 x 1 noreply", ""),
        ("cas a 0 0 1 x noreply", ""),
        ("cas a 0 0 1 5 no", ""),
        ("gat", BAD_FORMAT),
        ("gat 0", BAD_FORMAT),
        ("gats x a", EXPTIME),
        ("incr a", BAD_FORMAT),
        ("incr a 1 noreply x", "-"),
        ("incr a 1 norepl", "-"),
        ("incr a x", DELTA),
        ("incr a x noreply", ""),
        ("touch a x", EXPTIME),
        ("touch a x noreply", ""),
        ("touch a", BAD_FORMAT),
        ("delete", BAD_FORMAT),
        ("delete a 0", "-"),
        ("delete a 0 noreply", "-"),
        ("delete a 5 noreply", "-"),
        ("delete a 0 x", "-"),
        ("delete a noreply x", "-"),
        ("delete a 0 noreply x", "-"),
        ("flush_all x", EXPTIME),
        ("flush_all x noreply", ""),
        ("flush_all 1 x", "-"),
        ("flush_all 1 noreply x", "-"),
        ("verbosity x", BAD_FORMAT),
        ("verbosity x noreply", ""),
        ("verbosity 1 x", "-"),
        ("version x", "-"),
        ("stats bogus", ERROR),
        ("stats detail dump", "CLIENT_ERROR stats detail not allowed"),
        ("watch", "CLIENT_ERROR watch commands not allowed"),
        ("lru_crawler enable", ERROR),
        ("cache_memlimit x", ERROR),
        ("cache_memlimit 64", "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"),
        ("stats cachedump 1 0", "CLIENT_ERROR stats cachedump not allowed"),
        ("lru_crawler metadump all", "ERROR metadump not allowed"),
        ("lru_crawler mgdump all", "ERROR key dump not allowed"),
        ("GET / HTTP/1.1", "(closed)"),
        ("get / HTTP/1.1", "-"),
        ("\u{1}", BAD_FORMAT),
    ];
    for (line, expected) in table {
        assert_eq!(answer(line), expected, "{line}");
    }
}

#[test]
fn meta_lines() {
    let table = [
        ("mg", BAD_FORMAT),
        ("ms", BAD_FORMAT),
        ("md", BAD_FORMAT),
        ("ma", BAD_FORMAT),
        ("mz a", ERROR),
        ("mg a \u{7f}", BAD_FORMAT),
        ("mg a é", BAD_FORMAT),
        ("mg a t t", DUPLICATE),
        ("mg a S1", INVALID),
        ("mg a Tx t t", DUPLICATE),
        ("mg a Tx !", BAD_FORMAT),
        ("mg a Tx 1", INVALID),
        ("mg a Tx", BAD_TOKEN),
        ("mg a N", BAD_TOKEN),
        ("mg a Rx", BAD_TOKEN),
        ("mg a Ex", BAD_TOKEN),
        ("mg a Cx Fx", BAD_TOKEN),
        ("mg a Fx", BAD_FORMAT),
        ("mg a Jx", "CLIENT_ERROR invalid numeric initial value"),
        ("mg a Dx", "CLIENT_ERROR invalid numeric delta value"),
        ("mg a MXX", "-"),
        ("mg a M", "-"),
        ("mg a P1 L2 F5 J1 D1 MQ C1 I x", "-"),
        ("mg YQ b", "CLIENT_ERROR error decoding key"),
        ("md a Cx", BAD_TOKEN),
        ("md a q q", DUPLICATE),
        ("ma a Nx", INVALID_OR_DUPLICATE),
        ("ma a MX", "CLIENT_ERROR invalid mode for ma M token"),
        ("ms a 1 MX", "CLIENT_ERROR invalid mode for ms M token"),
        ("ms a 1 t t q", DUPLICATE),
        ("me a !", BAD_FORMAT),
        ("me ! b", BAD_FORMAT),
        ("mn a b c", "-"),
    ];
    for (line, expected) in table {
        assert_eq!(answer(line), expected, "{line}");
    }
}

#[test]
fn meta_commands_have_at_most_twenty_tokens() {
    const FLAGS: [&str; 19] =
        ["b", "c", "f", "h", "k", "l", "q", "s", "t", "u", "v", "I", "x", "P", "L", "O1", "E1", "T1", "N1"];
    const TOO_LONG: &str = "CLIENT_ERROR options flags are too long";
    let with = |start: &str, count: usize| answer(&format!("{start} {}", FLAGS[..count].join(" ")));
    assert_eq!((with("mg YQ==", 18), with("mg YQ==", 19)), ("-".into(), TOO_LONG.into()));
    assert_eq!((with("md YQ==", 18), with("md YQ==", 19)), ("-".into(), TOO_LONG.into()));
    assert_eq!((with("ms YQ== 0", 17), with("ms YQ== 0", 18)), (String::new(), TOO_LONG.into()));
}

#[test]
fn a_version_to_compare_makes_set_and_replace_cas_and_means_nothing_to_add() {
    let stored =
        |flags: &str| match steps(Access::Open, [format!("ms a 1 {flags}\r\nx\r\n").as_bytes()]).remove(0) {
            Step::Ask(Ask::One { request, .. }) => match request.op {
                Op::Store(store) => (store.mode, store.compare, store.invalidate),
                op => panic!("{op:?}"),
            },
            step => panic!("{step:?}"),
        };
    assert_eq!(stored("C7"), (StoreMode::Set, Some(7), false));
    assert_eq!(stored("C7 MR I"), (StoreMode::Set, Some(7), true));
    assert_eq!(stored("C7 ME I"), (StoreMode::Add, None, false));
    assert_eq!(stored("C7 MA I"), (StoreMode::Append, Some(7), false));
    assert_eq!(stored("I"), (StoreMode::Set, None, false));
}

#[test]
fn keys_and_values_are_slices_of_what_was_received() {
    let mut buffer = BytesMut::from(&b"get one two\r\nset key 0 0 5\r\nvalue\r\n"[..]);
    let range = buffer.as_ptr_range();
    let mut parser = Parser::default();
    let Step::Ask(Ask::Read { keys, .. }) = parser.next(&mut buffer, NOW) else { panic!("no keys") };
    assert!(keys.handles().all(|key| range.contains(&key.as_ptr())));
    let Step::Ask(Ask::One { request, .. }) = parser.next(&mut buffer, NOW) else { panic!("no set") };
    assert!(range.contains(&request.key_bytes().as_ptr()));
    let Op::Store(store) = request.op else { panic!("no store") };
    assert!(range.contains(&store.value.as_ptr()));
}

#[test]
fn keys_can_be_taken_off_one_by_one() {
    let mut steps = steps(Access::Open, [&b"get  one   two three  \r\n"[..]]);
    let Step::Ask(Ask::Read { mut keys, .. }) = steps.remove(0) else { panic!("no keys") };
    let mut popped = Vec::new();
    for left in (0..3).rev() {
        popped.push(keys.pop(NamespaceId::DEFAULT).expect("three keys"));
        assert_eq!((keys.count(), keys.iter().count()), (left, left));
    }
    assert!(popped.iter().map(|key| &key[..]).eq([&b"one"[..], b"two", b"three"]));
    assert_eq!((keys.pop(NamespaceId::DEFAULT), keys.count()), (None, 0));
}
