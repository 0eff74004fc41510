//! Outcomes as memcached prints them.

use bytes::Bytes;
use faces::memcache::{Access, Again, Ask, Effect, FailureCode, ReplyStyle, Step, WithCas, reply};
use types::op::{Failure, ItemView, Outcome};

use crate::roundtrip::steps;
use crate::samples::Gen;

/// The reply style of a command line.
fn style(line: &str) -> (ReplyStyle, Bytes) {
    let mut stream = format!("{line}\r\n").into_bytes();
    if line.starts_with("ms") {
        stream.extend_from_slice(b"12345\r\n");
    }
    match steps(Access::Open, [&stream[..]]).remove(0) {
        Step::Ask(Ask::One { request, style: reply }) => (reply, Bytes::copy_from_slice(request.key_bytes())),
        other => panic!("{line}: {other:?}"),
    }
}

/// What the answer to `line` is.
fn answer(line: &str, outcome: &Outcome) -> String {
    let (style, key) = style(line);
    let mut out = Vec::new();
    reply::write(&style, &key, outcome, &mut out);
    String::from_utf8(out).expect("text")
}

fn item() -> ItemView {
    ItemView {
        value: Bytes::from_static(b"hi"),
        value_len: 2,
        flags: 9,
        version: 77,
        ttl_seconds: Some(30),
        fetched: true,
        idle_seconds: 4,
        size_bytes: 66,
        ..ItemView::default()
    }
}

#[test]
fn words_of_the_text_protocol() {
    let table = [
        (Outcome::Stored(item()), "STORED\r\n"),
        (Outcome::NotStored, "NOT_STORED\r\n"),
        (Outcome::Exists, "EXISTS\r\n"),
        (Outcome::NotFound, "NOT_FOUND\r\n"),
        (Outcome::Deleted, "DELETED\r\n"),
        (Outcome::Touched(item()), "TOUCHED\r\n"),
        (Outcome::Number(u64::MAX, item()), "18446744073709551615\r\n"),
        (Outcome::Flushed, "OK\r\n"),
        (Outcome::Miss, "END\r\n"),
        (Outcome::Hit(item()), "VALUE a 9 2\r\nhi\r\nEND\r\n"),
    ];
    for (outcome, expected) in table {
        assert_eq!(answer("delete a", &outcome), expected);
        assert_eq!(answer("delete a noreply", &outcome), "");
    }
}

#[test]
fn every_failure_begins_with_its_code_and_is_of_the_right_kind() {
    for code in FailureCode::ALL {
        let kind: &[u8] = if code == FailureCode::NotANumber { b"CLIENT_ERROR " } else { b"SERVER_ERROR " };
        let line = code.line();
        let text = line.strip_prefix(kind).and_then(|text| text.strip_suffix(b"\r\n")).expect("its kind");
        assert!(text.starts_with(code.as_str().as_bytes()) && text.len() < 200, "{code:?}");
        assert!(!text.iter().any(u8::is_ascii_control));
        assert_eq!(FailureCode::parse(text), Some(code));
        assert_eq!(FailureCode::parse(code.as_str().as_bytes()), Some(code));
    }
    let mut lines = FailureCode::ALL.map(FailureCode::line);
    lines.sort_unstable();
    assert!(lines.is_sorted_by(|a, b| a < b), "no two are alike");
}

#[test]
fn what_is_no_code_is_not_taken_for_one() {
    for text in
        ["", "lost2", "out of memory", "outcome unknown: x", "nothing was done", "Busy: x", "bad data chunk"]
    {
        assert_eq!(FailureCode::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_document_has_the_same_codes_with_the_same_meaning() {
    let document = include_str!("../../../../docs/format.md");
    for code in FailureCode::ALL {
        let done = if code.effect() == Effect::NotDone { "no" } else { "perhaps" };
        let again = if code.again() == Again::Worthwhile { "yes" } else { "no" };
        let row = format!("| `{}` | {done} | {again} |", code.as_str());
        assert!(document.contains(&row), "docs/format.md lacks {row}");
    }
}

#[test]
fn every_failure_is_printed_by_its_code() {
    use Failure::*;
    for failure in
        [NotANumber, TooLarge, OutOfMemory, Busy, Unavailable, Lost, Unknown, Corrupt, WrongPrimary]
    {
        let printed = answer("delete a", &Outcome::Failed(failure));
        assert_eq!(printed.as_bytes(), FailureCode::from(failure).line());
    }
}

#[test]
fn meta_answers() {
    let hit = Outcome::Hit(item());
    let stored = Outcome::Stored(item());
    let number = Outcome::Number(12, item());
    let table = [
        ("mg a", &hit, "HD\r\n"),
        ("mg a v", &hit, "VA 2\r\nhi\r\n"),
        ("mg a s t c f h l k O123 v", &hit, "VA 2 s2 t30 c77 f9 h1 l4 ka O123\r\nhi\r\n"),
        ("mg a O123 k l h f c t s", &hit, "HD O123 ka l4 h1 f9 c77 t30 s2\r\n"),
        ("mg a O t", &hit, "HD O t30\r\n"),
        ("mg a k q O1 t v", &Outcome::Miss, ""),
        ("mg a k O1 t v", &Outcome::Miss, "EN ka O1\r\n"),
        ("mg a q", &hit, "HD\r\n"),
        ("mg YWE= b k v", &hit, "VA 2 kYWE= b\r\nhi\r\n"),
        ("mg YWE= k b", &Outcome::Miss, "EN kYWE= b\r\n"),
        ("ms a 5", &stored, "HD\r\n"),
        ("ms a 5 c k O9 s", &stored, "HD c77 ka O9 s2\r\n"),
        ("ms a 5 c k O9 s", &Outcome::NotStored, "NS c0 ka O9 s5\r\n"),
        ("ms a 5 C1 k", &Outcome::Exists, "EX ka\r\n"),
        ("ms a 5 C1 k q", &Outcome::NotFound, "NF ka\r\n"),
        ("ms a 5 q", &stored, ""),
        ("ms a 5 t f h l", &stored, "HD\r\n"),
        ("md a k O1", &Outcome::Deleted, "HD ka O1\r\n"),
        ("md a q", &Outcome::Deleted, ""),
        ("md a q k c", &Outcome::NotFound, "NF ka\r\n"),
        ("md a C5", &Outcome::Exists, "EX\r\n"),
        ("ma a", &number, "HD\r\n"),
        ("ma a v t c k O2", &number, "VA 2 t30 c77 ka O2\r\n12\r\n"),
        ("ma a q v", &number, ""),
        ("ma a k t", &Outcome::NotFound, "NF ka\r\n"),
        ("ma a k t C4", &Outcome::Exists, "EX ka\r\n"),
        ("me a", &hit, "ME a exp=30 la=4 cas=77 fetch=yes cls=4 size=66\r\n"),
        ("me YWE= b", &hit, "ME YWE= exp=30 la=4 cas=77 fetch=yes cls=4 size=66\r\n"),
        ("me a", &Outcome::Miss, "EN\r\n"),
    ];
    for (line, outcome, expected) in table {
        assert_eq!(answer(line, outcome), expected, "{line}");
    }
}

#[test]
fn recache_flags_come_last_and_only_from_mg() {
    let view =
        |win, stale, win_sent| Outcome::Hit(ItemView { win, stale, win_sent, ttl_seconds: None, ..item() });
    assert_eq!(answer("mg a t", &view(true, false, false)), "HD t-1 W\r\n");
    assert_eq!(answer("mg a t", &view(true, true, false)), "HD t-1 X W\r\n");
    assert_eq!(answer("mg a t", &view(false, true, true)), "HD t-1 Z X\r\n");
    assert_eq!(answer("mg a v N30", &view(true, false, false)), "VA 2 W\r\nhi\r\n");
    assert_eq!(answer("ms a 5", &Outcome::Stored(ItemView { win_sent: true, ..item() })), "HD\r\n");
}

#[test]
fn a_failure_is_heard_by_quiet_meta_clients_and_not_after_noreply() {
    let lost = Outcome::Failed(Failure::Lost);
    for line in ["mg a q", "ms a 5 q", "md a q", "ma a q", "delete a"] {
        assert!(answer(line, &lost).starts_with("SERVER_ERROR lost"), "{line}");
    }
    assert_eq!(answer("delete a noreply", &lost), "");
}

#[test]
fn a_value_that_is_too_large_removes_the_old_one_only_if_it_was_to_replace_it() {
    const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache\r\n";
    let first = |line: &str| steps(Access::Open, [line.as_bytes()]).into_iter().next();
    for line in ["set a 0 0 1048517\r\n", "ms a 1048517\r\n", "ms a 1048517 q\r\n", "ms a 1048517 C1\r\n"] {
        let Some(Step::Ask(Ask::One { request, style: reply })) = first(line) else { panic!("{line}") };
        assert!(matches!(request.op, types::op::Op::Delete(_)));
        let mut out = Vec::new();
        reply::write(&reply, request.key_bytes(), &Outcome::NotFound, &mut out);
        assert_eq!(out, TOO_LARGE);
    }
    for line in ["add a 0 0 1048517\r\n", "append a 0 0 1048517\r\n", "cas a 0 0 1048517 1\r\n"] {
        assert_eq!(first(line), Some(Step::Refuse(TOO_LARGE)), "{line}");
    }
    assert_eq!(first("append a 0 0 1048517 noreply\r\n"), None);
}

#[test]
fn values_are_printed_from_where_they_lie() {
    let mut out = Vec::new();
    reply::write_value(b"key", u32::MAX, None, b"a\r\nb", &mut out);
    reply::write_value(b"key", 0, Some(u64::MAX), b"", &mut out);
    assert_eq!(
        out.escape_ascii().to_string(),
        r"VALUE key 4294967295 4\r\na\r\nb\r\nVALUE key 0 0 18446744073709551615\r\n\r\n"
    );
}

#[test]
fn a_get_of_many_keys_fails_as_a_whole() {
    let (hit, miss, lost) = (Outcome::Hit(item()), Outcome::Miss, Outcome::Failed(Failure::Lost));
    let written = |outcomes: &[&Outcome], with_cas| {
        let mut out = b"before".to_vec();
        reply::write_get(outcomes.iter().map(|outcome| (&b"a"[..], *outcome)), with_cas, &mut out);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(
        written(&[&hit, &miss, &hit], WithCas::No),
        "beforeVALUE a 9 2\r\nhi\r\nVALUE a 9 2\r\nhi\r\nEND\r\n"
    );
    assert_eq!(written(&[&hit], WithCas::Yes), "beforeVALUE a 9 2 77\r\nhi\r\nEND\r\n");
    let failed = written(&[&hit, &lost, &hit], WithCas::No);
    assert!(failed.starts_with("beforeSERVER_ERROR lost") && failed.lines().count() == 1, "{failed}");
}

#[test]
fn whatever_is_printed_ends_a_line() {
    let lines = ["delete a", "mg a v k t", "ms a 5 c s k", "md a O1", "ma a v c", "me a"];
    for seed in 0..2000 {
        let mut from = Gen::new(seed);
        let outcome: Outcome = from.of();
        let (style, key) = style(from.pick(&lines));
        let mut out = Vec::new();
        reply::write(&style, &key, &outcome, &mut out);
        assert!(out.ends_with(b"\r\n"));
    }
}
