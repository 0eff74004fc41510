//! Bytes that no client should send: nothing panics, nothing grows, and where they are cut makes no difference.

use bytes::BytesMut;
use faces::memcache::{Access, Parser, Step};
use proptest::prelude::*;

use crate::roundtrip::{cut, sample, steps};
use crate::samples::Gen;
use crate::store::NOW;

/// All steps, the same however the bytes arrive.
pub fn all_cuts_agree(stream: &[u8], lengths: &[usize]) -> Result<(), TestCaseError> {
    for access in [Access::Open, Access::Locked] {
        let at_once = steps(access, [stream]);
        prop_assert_eq!(&steps(access, cut(stream, lengths)), &at_once);
        prop_assert_eq!(&steps(access, cut(stream, &[1])), &at_once);
    }
    Ok(())
}

/// Changes a stream of valid commands in a few places.
fn mutate(from: &mut Gen, stream: &mut Vec<u8>) {
    const WORDS: [&[u8]; 16] = [
        b"\r\n",
        b"\n",
        b" ",
        b"\0",
        b"-1",
        b"99999999999999999999",
        b"4294967296",
        b"noreply",
        b"\x80",
        b"get ",
        b"set a 0 0 5\r\n",
        b"ms a 3 ",
        b"mg a b v k O1 q",
        b"HTTP/1.1",
        b"1048576",
        b"gat ",
    ];
    for _ in 0..1 + from.len(5) {
        let at = from.len(stream.len() + 1);
        match from.below(4) {
            0 => {
                let word = from.pick(&WORDS);
                stream.splice(at..at, word.iter().copied());
            }
            1 => stream.truncate(at),
            2 => {
                let end = stream.len().min(at + from.len(20));
                stream.drain(at..end);
            }
            _ => stream.get_mut(at).into_iter().for_each(|byte| *byte = from.next() as u8),
        }
    }
}

proptest! {
    #[test]
    fn random_bytes(
        stream in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b" \r\ngmsv01".to_vec())], 0..3000),
        lengths in prop::collection::vec(1usize..500, 1..5),
    ) {
        all_cuts_agree(&stream, &lengths)?;
    }

    #[test]
    fn damaged_commands(seed: u64, lengths in prop::collection::vec(1usize..500, 1..5)) {
        let mut from = Gen::new(seed);
        let mut stream = Vec::new();
        for _ in 0..1 + from.len(5) {
            stream.extend(sample(&mut from).text);
        }
        mutate(&mut from, &mut stream);
        all_cuts_agree(&stream, &lengths)?;
    }

    #[test]
    fn random_lines_of_known_words(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..60)) {
        all_cuts_agree(&words.concat(), &[3, 11])?;
    }
}

/// What lines are made of.
const WORDS: [&[u8]; 42] = [
    b"get",
    b"gets",
    b"gat",
    b"gats",
    b"set",
    b"add",
    b"cas",
    b"append",
    b"delete",
    b"incr",
    b"touch",
    b"flush_all",
    b"verbosity",
    b"stats",
    b"quit",
    b"mg",
    b"ms",
    b"md",
    b"ma",
    b"me",
    b"mn",
    b" ",
    b" ",
    b" ",
    b" ",
    b" ",
    b" ",
    b"\r\n",
    b"\r\n",
    b"\r\n",
    b"\n",
    b"a",
    b"0",
    b"1",
    b"2",
    b"noreply",
    b"v",
    b"k",
    b"b",
    b"T0",
    b"Oxy",
    b"MA",
];

#[test]
fn a_declared_length_reserves_nothing() {
    for line in ["set a 0 0 1048000\r\n", "ms a 1048000\r\n", "set a 0 0 2147483645\r\n"] {
        let (mut parser, mut buffer) = (Parser::default(), BytesMut::from(line));
        while parser.next(&mut buffer, NOW) != Step::Incomplete {}
        assert!(buffer.capacity() < 1024, "{line}");
        assert!(parser.wanted(&buffer) >= 1_048_000);
        assert!(!parser.is_idle(&buffer));
    }
}

#[test]
fn what_is_swallowed_is_not_kept() {
    let (mut parser, mut buffer) = (Parser::default(), BytesMut::from("add a 0 0 2147483645\r\n"));
    assert_eq!(parser.next(&mut buffer, NOW), Step::Refuse(b"SERVER_ERROR object too large for cache\r\n"));
    for _ in 0..100 {
        buffer.extend_from_slice(&[b'x'; 65536]);
        assert_eq!(parser.next(&mut buffer, NOW), Step::Incomplete);
        assert!(buffer.is_empty());
    }
}

#[test]
fn lines_are_bounded() {
    let refused = |line: &[u8]| steps(Access::Open, [line]) == [Step::Close];
    assert!(refused(&[b'x'; 2049]), "no newline in 2049 bytes");
    assert!(!refused(&[b'x'; 2048]));
    assert!(refused(&[&b"delete "[..], &[b'x'; 2042], b"\n"].concat()), "a newline that comes too late");
    assert!(refused(&[&b"get "[..], &[b'x'; 1 << 20]].concat()), "keys without end");
    assert!(refused(&[&[b' '; 101][..], b"get ", &[b'x'; 2000]].concat()), "spaces without end");
    assert!(!refused(&[&[b' '; 100][..], b"gats ", &[b'x'; 2000]].concat()));
    let keys = [&b"get "[..], &[b'x'; 2045]].concat();
    assert_eq!(steps(Access::Locked, [&keys[..]]), [Step::Close], "many keys before authentication");
}

/// Looking at every byte again with each piece would take minutes.
#[test]
fn no_byte_is_looked_at_again_with_the_next_piece() {
    let value = [&b"set a 0 0 1048000\r\n"[..], &vec![b'\n'; 1_048_000], b"\r\n"].concat();
    let keys = [&b"get"[..], &b" key".repeat(260_000), b"\r\n"].concat();
    for stream in [value, keys] {
        assert_eq!(steps(Access::Open, cut(&stream, &[4])).len(), 1);
    }
}
