//! Values that are not kept until they are whole: which ones, and what is said around their bytes.

use bytes::{Bytes, BytesMut};
use faces::memcache::{Ask, Parser, ReplyStyle, Step, WithCas};
use faces::{Face, Streamed, ValueLimits};
use types::op::{ItemView, Object, Op, Outcome, StoreMode};
use types::{Descriptor, Geometry, GroupId, MemberId, NamespaceId, ObjectId, ObjectLayout, RoleIndex, Term};

use crate::store::NOW;

const LIMITS: ValueLimits = ValueLimits { streamed_above: Some(100), longest: 1 << 33 };

fn parser(limits: ValueLimits) -> Parser {
    let mut parser = Parser::default();
    parser.limit_values(limits);
    parser
}

/// What comes next on a connection on which `text` has come.
fn next(limits: ValueLimits, text: &str) -> Step {
    parser(limits).next(&mut BytesMut::from(text), NOW)
}

fn streamed(text: &str) -> Streamed<ReplyStyle> {
    match next(LIMITS, text) {
        Step::Stream(streamed) => *streamed,
        other => panic!("{text}: {other:?}"),
    }
}

fn object() -> ItemView {
    let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
    let id = ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId::DEFAULT };
    let geometry = Geometry { len: 300, chunk_len: 1 << 16, k: 3, layout: ObjectLayout::Spread };
    let groups = vec![GroupId(0)];
    let descriptor = Descriptor { id, geometry, groups, exceptions: vec![], checksum: 0 };
    let object = Some(Box::new(Object { descriptor, pin: Some(1) }));
    ItemView { value_len: 300, flags: 9, version: 77, object, ..ItemView::default() }
}

#[test]
fn every_storage_command_streams_a_long_value_as_soon_as_its_line_is_there() {
    for (line, mode, compare) in [
        ("set k 5 0 101", StoreMode::Set, None),
        ("add k 5 0 101", StoreMode::Add, None),
        ("replace k 5 0 101", StoreMode::Replace, None),
        ("cas k 5 0 101 7", StoreMode::Set, Some(7)),
        ("ms k 101 F5", StoreMode::Set, None),
        ("ms k 101 F5 ME", StoreMode::Add, None),
        ("ms k 101 F5 MR", StoreMode::Replace, None),
        ("ms k 101 F5 C7", StoreMode::Set, Some(7)),
    ] {
        let Streamed { request, len, .. } = streamed(&format!("{line}\r\n"));
        let Op::Store(store) = &request.op else { panic!("{line}") };
        assert_eq!((request.key_bytes(), len, store.flags), (&b"k"[..], 101, 5), "{line}");
        assert_eq!((store.mode, store.compare, store.value.len()), (mode, compare, 0), "{line}");
    }
}

#[test]
fn the_block_is_left_to_who_has_the_connection() {
    let mut parser = parser(LIMITS);
    let mut buffer = BytesMut::from("set k 0 0 101\r\nmn\r\nwhatever");
    assert!(matches!(parser.next(&mut buffer, NOW), Step::Stream(_)));
    assert_eq!(&buffer[..], b"mn\r\nwhatever");
    buffer.truncate(4);
    assert!(matches!(parser.next(&mut buffer, NOW), Step::Say(b"MN\r\n")), "the next command");
}

#[test]
fn a_value_streams_by_its_length_alone() {
    let streams = |limits, line: &str| matches!(next(limits, &format!("{line}\r\n")), Step::Stream(_));
    let above = |bytes| ValueLimits { streamed_above: Some(bytes), longest: 2_000_000 };
    assert!(!streams(above(100), "set k 0 0 100") && streams(above(100), "set k 0 0 101"));
    assert!(!streams(above(0), "set k 0 0 0") && streams(above(0), "set k 0 0 1"));
    assert!(streams(above(100), "set k 0 0 2000000") && !streams(above(100), "set k 0 0 2000001"));
    // Whatever does not fit into an item, also where the threshold is higher than that.
    let most = above(1 << 20);
    assert!(!streams(most, "set k 0 0 1048516") && streams(most, "set k 0 0 1048517"));
    assert!(!streams(ValueLimits::default(), "set k 0 0 1048517"));
    // Unless no longer ones than memcached's are taken: then what memcached refuses is refused.
    let memcacheds = ValueLimits { longest: 1 << 20, ..most };
    assert!(!streams(memcacheds, "set k 0 0 1048517") && !streams(memcacheds, "set k 0 0 1048577"));
}

#[test]
fn what_is_added_to_a_value_is_not_streamed() {
    for line in ["append k 0 0 101", "prepend k 0 0 101", "ms k 101 MA", "ms k 101 MP"] {
        assert_eq!(next(LIMITS, &format!("{line}\r\n")), Step::Incomplete, "{line}");
    }
    let refused = next(LIMITS, "append k 0 0 1048517\r\n");
    assert_eq!(refused, Step::Refuse(b"SERVER_ERROR object too large for cache\r\n"));
}

#[test]
fn what_is_too_long_is_refused_and_swallowed_as_where_nothing_streams() {
    let limits = ValueLimits { streamed_above: Some(100), longest: 2_000_000 };
    let mut parser = parser(limits);
    let mut buffer = BytesMut::from("set k 0 0 2000001\r\n");
    let step = parser.next(&mut buffer, NOW);
    let Step::Ask(Ask::One { request, style: ReplyStyle::TooLarge }) = step else { panic!("{step:?}") };
    assert!(matches!(request.op, Op::Delete(_)), "no old value stays that its client believes overwritten");
    buffer.extend_from_slice(&[b'x'; 2_000_001]);
    buffer.extend_from_slice(b"\r\nmn\r\n");
    assert_eq!(parser.next(&mut buffer, NOW), Step::Say(b"MN\r\n"));
}

#[test]
fn blocks_beyond_memcacheds_numbers_are_known_where_they_may_come() {
    let len = |text: &str| streamed(text).len;
    assert_eq!((len("set k 0 0 8589934592\r\n"), len("ms k 8589934592\r\n")), (1 << 33, 1 << 33));
    const BAD_FORMAT: Step = Step::Refuse(b"CLIENT_ERROR bad command line format\r\n");
    assert_eq!(next(LIMITS, "set k 0 0 8589934593\r\n"), BAD_FORMAT);
    assert_eq!(next(ValueLimits::default(), "set k 0 0 4294967296\r\n"), BAD_FORMAT);
}

#[test]
fn a_wrong_end_is_told_unless_nothing_is_to_be_heard() {
    let check = |line: &str, end: &[u8]| Parser::check_value_end(&streamed(line).style, end);
    for line in ["set k 0 0 101\r\n", "ms k 101\r\n", "ms k 101 q\r\n", "set k 0 0 101 noreply\r\n"] {
        assert_eq!(check(line, b"\r\n"), Ok(()));
    }
    let bad = Err(&b"CLIENT_ERROR bad data chunk\r\n"[..]);
    for end in [b"\n\n", b"xy", b"\rx"] {
        assert_eq!(check("set k 0 0 101\r\n", end), bad);
        assert_eq!(check("ms k 101 q\r\n", end), bad, "errors are heard by quiet clients, too");
        assert_eq!(check("set k 0 0 101 noreply\r\n", end), Err(&b""[..]));
    }
}

#[test]
fn an_outcome_is_printed_as_that_of_any_store() {
    let print = |line: &str, outcome: &Outcome| {
        let mut out = Vec::new();
        Parser::print(&streamed(line).style, b"k", outcome, &mut out);
        String::from_utf8(out).unwrap()
    };
    let stored = Outcome::Stored(ItemView { value_len: 101, version: 8, ..ItemView::default() });
    assert_eq!(print("set k 0 0 101\r\n", &stored), "STORED\r\n");
    assert_eq!(print("set k 0 0 101 noreply\r\n", &stored), "");
    assert_eq!(print("ms k 101 c s\r\n", &stored), "HD c8 s101\r\n");
    assert_eq!(print("ms k 101 q\r\n", &stored), "");
    assert_eq!(print("ms k 5000000000 ME q s\r\n", &Outcome::NotStored), "NS s5000000000\r\n");
}

#[test]
fn the_head_of_a_value_in_chunks_stands_before_its_bytes() {
    let head = |with_cas| {
        let mut out = Vec::new();
        Parser::print_head(with_cas, b"k", &object(), &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        (head(WithCas::No), head(WithCas::Yes)),
        ("VALUE k 9 300\r\n".into(), "VALUE k 9 300 77\r\n".into())
    );
    let meta = |line: &str| {
        let step = parser(LIMITS).next(&mut BytesMut::from(line), NOW);
        let Step::Ask(Ask::One { style, .. }) = step else { panic!("{line}") };
        let mut out = Vec::new();
        Parser::print(&style, b"k", &Outcome::Hit(object()), &mut out);
        (Parser::streams(&style, &object()), String::from_utf8(out).unwrap())
    };
    assert_eq!(meta("mg k v s f\r\n"), (true, "VA 300 s300 f9\r\n".into()));
    assert_eq!(meta("mg k s\r\n"), (false, "HD s300\r\n".into()));
    assert_eq!(meta("mg k v C77 s\r\n"), (false, "HD s300\r\n".into()), "the client has it already");
    let known = meta("me k\r\n").1;
    assert!(known.starts_with("ME k exp=-1"), "{known}");
    assert!(known.ends_with(" layout=spread len=300 stripes=1 chunk=65536 k=3 groups=0\r\n"), "{known}");
    let whole = ItemView { value: Bytes::from_static(b"x"), value_len: 1, ..ItemView::default() };
    assert!(!Parser::streams(&ReplyStyle::Text, &whole));
}
