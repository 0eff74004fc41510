//! 119 bad inputs with the answers of memcached 1.6.18, recorded over a socket, one fresh connection each, in this
//! order against one server (those that authenticate: against another). Ours are the same, or stand in `DEVIATIONS`
//! with the reason.

use std::collections::BTreeMap;

use wire::memcache::Access;

use crate::store::{End, Fake, converse};
use End::{Closed, Open};
use Part::{Bytes, Keys, Repeat};

/// A part of an input or of an answer.
#[derive(Clone, Copy)]
pub enum Part {
    Bytes(&'static [u8]),
    Repeat(&'static [u8], usize),
    /// `k0 k1 k2 ...`
    Keys(usize),
}

#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    input: &'static [Part],
    /// What memcached answers.
    real: &'static [Part],
    /// Whether memcached closes the connection.
    end: End,
    access: Access,
}

struct Deviation {
    name: &'static str,
    /// What we answer.
    ours: &'static [Part],
    end: End,
    reason: &'static str,
}

const BAD_FORMAT: Part = Bytes(b"CLIENT_ERROR bad command line format\r\n");
const VERSION: Part = Bytes(b"VERSION 1.6.18\r\n");
const ERROR: Part = Bytes(b"ERROR\r\n");

const SWALLOWED: &str = "the data block of a refused command is swallowed, not executed";
const NO_LENGTH: &str = "without a valid length nobody knows where the data block ends: closed, not executed";
const NO_WRAPPING: &str = "lengths and flags never wrap";
const NOT_TEXT: &str = "neither the binary protocol nor TLS is spoken here: closed at once";
const NO_DUMPS: &str = "keys are not dumped";

const DEVIATIONS: &[Deviation] = &[
    swallowed("set key 251, data line follows", &[BAD_FORMAT, VERSION]),
    deviation(
        "set key with NUL",
        &[ERROR, ERROR, VERSION],
        Open,
        "memcached cuts the line at the NUL; here such a key is refused, and the data block is swallowed",
    ),
    deviation("set missing length", &[ERROR], Closed, NO_LENGTH),
    no_length("set length -1"),
    no_length("set length 1e1"),
    no_length("set length 0x1"),
    no_length("set length 2147483647"),
    no_length("set length 2147483646"),
    deviation(
        "set length 2147483645",
        &[Bytes(b"SERVER_ERROR object too large for cache\r\n")],
        Open,
        "the refusal is not kept back until two gigabytes have been swallowed",
    ),
    no_length("set length 4294967295"),
    deviation("set length 4294967296", &[BAD_FORMAT], Closed, NO_WRAPPING),
    no_length("set length 2^63"),
    no_length("set length 2^64"),
    no_length("set length 100 digits"),
    deviation("flags 2^32", &[BAD_FORMAT, VERSION], Open, NO_WRAPPING),
    swallowed("flags -1", &[BAD_FORMAT, VERSION]),
    deviation(
        "exptime 2^31",
        &[Bytes(b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n")],
        Open,
        "times never wrap: 2^31 is a second in the year 2038, not one before 1970",
    ),
    swallowed("exptime 2^63", &[BAD_FORMAT, VERSION]),
    swallowed("exptime text", &[BAD_FORMAT, VERSION]),
    no_length("noreply on bad set"),
    deviation("noreply misspelt", &[BAD_FORMAT, VERSION], Open, "a misspelt noreply is refused"),
    swallowed("extra token", &[ERROR, VERSION]),
    swallowed("cas missing unique", &[ERROR, VERSION]),
    swallowed("cas unique 2^64", &[BAD_FORMAT, VERSION]),
    swallowed("cas unique -1", &[BAD_FORMAT, VERSION]),
    no_length("ms missing length"),
    no_length("ms length -1"),
    no_length("ms length huge"),
    no_length("ms length S flag"),
    deviation("ms invalid token F2^32", &[BAD_FORMAT, VERSION], Open, NO_WRAPPING),
    no_length("ms quiet error"),
    deviation("binary magic 0x80 keylen>body", &[], Closed, NOT_TEXT),
    deviation("binary append body<keylen (CVE-2016-8704 shape)", &[], Closed, NOT_TEXT),
    deviation("binary body 0xffffffe8 (issue 192)", &[], Closed, NOT_TEXT),
    deviation("TLS ClientHello to plain port", &[], Closed, NOT_TEXT),
    deviation("stats cachedump huge", &[Bytes(b"END\r\n"), VERSION], Open, NO_DUMPS),
    deviation("lru_crawler metadump all", &[Bytes(b"ERROR metadump not allowed\r\n")], Open, NO_DUMPS),
    deviation(
        "auth: bad",
        &[Bytes(b"CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR unauthenticated\r\n")],
        Open,
        "memcached overwrites the first answer with the second",
    ),
    deviation(
        "auth: length 5000",
        &[Bytes(b"CLIENT_ERROR unauthenticated\r\n")],
        Open,
        "nothing is collected from the unauthenticated that cannot be credentials",
    ),
];

const fn deviation(name: &'static str, ours: &'static [Part], end: End, reason: &'static str) -> Deviation {
    Deviation { name, ours, end, reason }
}

const fn swallowed(name: &'static str, ours: &'static [Part]) -> Deviation {
    deviation(name, ours, Open, SWALLOWED)
}

const fn no_length(name: &'static str) -> Deviation {
    deviation(name, &[BAD_FORMAT], Closed, NO_LENGTH)
}

const fn case(name: &'static str, input: &'static [Part], real: &'static [Part], end: End) -> Case {
    Case { name, input, real, end, access: Access::Open }
}

const fn auth(name: &'static str, input: &'static [Part], real: &'static [Part], end: End) -> Case {
    Case { name, input, real, end, access: Access::Locked }
}

/// The bytes that some parts stand for.
fn bytes(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match *part {
            Bytes(bytes) => out.extend_from_slice(bytes),
            Repeat(bytes, count) => out.extend(bytes.repeat(count)),
            Keys(count) => {
                let keys: Vec<_> = (0..count).map(|i| format!("k{i}")).collect();
                out.extend_from_slice(keys.join(" ").as_bytes());
            }
        }
    }
    out
}

/// The inputs alone.
pub fn inputs() -> impl Iterator<Item = (&'static str, Access, Vec<u8>)> {
    CASES.iter().map(|case| (case.name, case.access, bytes(case.input)))
}

/// Runs all cases in order, each arriving in pieces of `piece` bytes.
fn run(piece: usize) {
    let deviations: BTreeMap<_, _> = DEVIATIONS.iter().map(|deviation| (deviation.name, deviation)).collect();
    let (mut store, mut locked_store) = (Fake::default(), Fake::default());
    for case in CASES {
        let store = if case.access == Access::Open { &mut store } else { &mut locked_store };
        let input = bytes(case.input);
        let (answer, mut end) = converse(store, case.access, &input, piece.min(input.len()));
        if case.name.ends_with("half close") {
            end = Closed;
        }
        let (expected, expected_end) = match deviations.get(case.name) {
            None => (case.real, case.end),
            Some(deviation) => (deviation.ours, deviation.end),
        };
        let expected = bytes(expected);
        assert!(
            answer == expected && end == expected_end,
            "{} in pieces of {piece}: {:?} {end:?} instead of {:?} {expected_end:?}",
            case.name,
            answer.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
        );
    }
}

#[test]
fn bad_inputs_get_the_answers_of_memcached_or_the_documented_safer_ones() {
    assert_eq!(CASES.len(), 119);
    run(usize::MAX);
}

#[test]
fn where_the_network_cuts_a_bad_input_makes_no_difference() {
    for piece in [1, 7, 1448, 16384] {
        run(piece);
    }
}

#[test]
fn every_deviation_names_a_case_differs_from_memcached_and_has_a_reason() {
    for deviation in DEVIATIONS {
        let case = CASES.iter().find(|case| case.name == deviation.name).expect(deviation.name);
        let same = bytes(case.real) == bytes(deviation.ours) && case.end == deviation.end;
        assert!(!same && !deviation.reason.is_empty(), "{}", deviation.name);
    }
}

const CASES: &[Case] = &[
    case("empty line", &[Bytes(b"\r\nversion\r\n")], &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")], Open),
    case("bare LF", &[Bytes(b"\nversion\r\n")], &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")], Open),
    case("LF only command", &[Bytes(b"get a\nversion\r\n")], &[Bytes(b"END\r\nVERSION 1.6.18\r\n")], Open),
    case(
        "unknown command",
        &[Bytes(b"bogus x\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("HTTP GET", &[Bytes(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")], &[], Closed),
    case(
        "HTTP POST smuggle",
        &[Bytes(b"POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\nset a 0 0 1\r\nx\r\n")],
        &[],
        Closed,
    ),
    case("get no key", &[Bytes(b"get\r\nversion\r\n")], &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")], Open),
    case(
        "key 250",
        &[Bytes(b"get "), Repeat(b"k", 250), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"END\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "key 251",
        &[Bytes(b"get "), Repeat(b"k", 251), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set key 251, data line follows",
        &[Bytes(b"set "), Repeat(b"k", 251), Bytes(b" 0 0 1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set key with control char",
        &[Bytes(b"set a\x01b 0 0 1\r\nx\r\nget a\x01b\r\n")],
        &[Bytes(b"STORED\r\nVALUE a\x01b 0 1\r\nx\r\nEND\r\n")],
        Open,
    ),
    case(
        "set key with NUL",
        &[Bytes(b"set a\0b 0 0 1\r\nx\r\nget a\0b\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nERROR\r\nEND\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set key non-utf8",
        &[Bytes(b"set \xff\xfe 0 0 1\r\nx\r\nget \xff\xfe\r\n")],
        &[Bytes(b"STORED\r\nVALUE \xff\xfe 0 1\r\nx\r\nEND\r\n")],
        Open,
    ),
    case(
        "set missing length",
        &[Bytes(b"set a 0 0\r\nx\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length -1",
        &[Bytes(b"set a 0 0 -1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length +1",
        &[Bytes(b"set a 0 0 +1\r\nx\r\nversion\r\n")],
        &[Bytes(b"STORED\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 0",
        &[Bytes(b"set a 0 0 0\r\n\r\nget a\r\n")],
        &[Bytes(b"STORED\r\nVALUE a 0 0\r\n\r\nEND\r\n")],
        Open,
    ),
    case(
        "set length 01",
        &[Bytes(b"set a 0 0 01\r\nx\r\nversion\r\n")],
        &[Bytes(b"STORED\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 1e1",
        &[Bytes(b"set a 0 0 1e1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 0x1",
        &[Bytes(b"set a 0 0 0x1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 2147483647",
        &[Bytes(b"set a 0 0 2147483647\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 2147483646",
        &[Bytes(b"set a 0 0 2147483646\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("set length 2147483645", &[Bytes(b"set a 0 0 2147483645\r\nx\r\nversion\r\n")], &[], Open),
    case(
        "set length 4294967295",
        &[Bytes(b"set a 0 0 4294967295\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 4294967296",
        &[Bytes(b"set a 0 0 4294967296\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad data chunk\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 2^63",
        &[Bytes(b"set a 0 0 9223372036854775808\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 2^64",
        &[Bytes(b"set a 0 0 18446744073709551616\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set length 100 digits",
        &[Bytes(b"set a 0 0 "), Repeat(b"9", 100), Bytes(b"\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set too large (2MiB) then data",
        &[Bytes(b"set a 0 0 2097152\r\n"), Repeat(b"x", 2097152), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"SERVER_ERROR object too large for cache\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "set overwritten by too-large set must not keep old value",
        &[
            Bytes(b"set old 0 0 1\r\n1\r\nset old 0 0 2097152\r\n"),
            Repeat(b"x", 2097152),
            Bytes(b"\r\nget old\r\n"),
        ],
        &[Bytes(b"STORED\r\nSERVER_ERROR object too large for cache\r\nEND\r\n")],
        Open,
    ),
    case(
        "data longer than length",
        &[Bytes(b"set a 0 0 1\r\nxyz\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad data chunk\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("data shorter than length then half close", &[Bytes(b"set a 0 0 10\r\nxyz")], &[], Closed),
    case(
        "data without CRLF (LF only)",
        &[Bytes(b"set a 0 0 1\r\nx\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad data chunk\r\nERROR\r\n")],
        Open,
    ),
    case(
        "data terminator wrong",
        &[Bytes(b"set a 0 0 1\r\nxABversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad data chunk\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "flags 2^32-1",
        &[Bytes(b"set a 4294967295 0 1\r\nx\r\nget a\r\n")],
        &[Bytes(b"STORED\r\nVALUE a 4294967295 1\r\nx\r\nEND\r\n")],
        Open,
    ),
    case(
        "flags 2^32",
        &[Bytes(b"set a 4294967296 0 1\r\nx\r\nversion\r\n")],
        &[Bytes(b"STORED\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "flags -1",
        &[Bytes(b"set a -1 0 1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("exptime -1", &[Bytes(b"set a 0 -1 1\r\nx\r\nget a\r\n")], &[Bytes(b"STORED\r\nEND\r\n")], Open),
    case(
        "exptime 2^31",
        &[Bytes(b"set a 0 2147483648 1\r\nx\r\nget a\r\n")],
        &[Bytes(b"STORED\r\nEND\r\n")],
        Open,
    ),
    case(
        "exptime 2^63",
        &[Bytes(b"set a 0 9223372036854775808 1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "exptime text",
        &[Bytes(b"set a 0 abc 1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "noreply on bad set",
        &[Bytes(b"set a 0 0 -1 noreply\r\nx\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "noreply misspelt",
        &[Bytes(b"set a 0 0 1 noreplyX\r\nx\r\nversion\r\n")],
        &[Bytes(b"STORED\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "extra token",
        &[Bytes(b"set a 0 0 1 noreply zz\r\nx\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "cas missing unique",
        &[Bytes(b"cas a 0 0 1\r\nx\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "cas unique 2^64",
        &[Bytes(b"cas a 0 0 1 18446744073709551616\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "cas unique -1",
        &[Bytes(b"cas a 0 0 1 -1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "incr non-number value",
        &[Bytes(b"set n 0 0 1\r\nx\r\nincr n 1\r\n")],
        &[Bytes(b"STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n")],
        Open,
    ),
    case(
        "incr by -1",
        &[Bytes(b"set n 0 0 1\r\n1\r\nincr n -1\r\n")],
        &[Bytes(b"STORED\r\nCLIENT_ERROR invalid numeric delta argument\r\n")],
        Open,
    ),
    case(
        "incr 2^64",
        &[Bytes(b"set n 0 0 1\r\n1\r\nincr n 18446744073709551616\r\n")],
        &[Bytes(b"STORED\r\nCLIENT_ERROR invalid numeric delta argument\r\n")],
        Open,
    ),
    case(
        "incr wraps",
        &[Bytes(b"set n 0 0 20\r\n18446744073709551615\r\nincr n 1\r\n")],
        &[Bytes(b"STORED\r\n0\r\n")],
        Open,
    ),
    case("decr floor", &[Bytes(b"set n 0 0 1\r\n5\r\ndecr n 10\r\n")], &[Bytes(b"STORED\r\n0\r\n")], Open),
    case(
        "decr keeps length",
        &[Bytes(b"set n 0 0 2\r\n10\r\ndecr n 1\r\nget n\r\n")],
        &[Bytes(b"STORED\r\n9\r\nVALUE n 0 2\r\n9 \r\nEND\r\n")],
        Open,
    ),
    case(
        "incr on 21-digit value",
        &[Bytes(b"set n 0 0 21\r\n100000000000000000000\r\nincr n 1\r\n")],
        &[Bytes(b"STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n")],
        Open,
    ),
    case(
        "touch missing arg",
        &[Bytes(b"touch a\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("gat no key", &[Bytes(b"gat 0\r\nversion\r\n")], &[Bytes(b"END\r\nVERSION 1.6.18\r\n")], Open),
    case(
        "gat bad exptime",
        &[Bytes(b"gat x a\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR invalid exptime argument\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("delete with time 0", &[Bytes(b"delete a 0\r\n")], &[Bytes(b"DELETED\r\n")], Open),
    case(
        "delete with time 5",
        &[Bytes(b"delete a 5\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n")],
        Open,
    ),
    case(
        "delete extra",
        &[Bytes(b"delete a b c\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n")],
        Open,
    ),
    case("flush_all negative", &[Bytes(b"flush_all -1\r\n")], &[Bytes(b"OK\r\n")], Open),
    case(
        "flush_all text",
        &[Bytes(b"flush_all x\r\n")],
        &[Bytes(b"CLIENT_ERROR invalid exptime argument\r\n")],
        Open,
    ),
    case("verbosity no arg", &[Bytes(b"verbosity\r\n")], &[Bytes(b"ERROR\r\n")], Open),
    case("3000 bytes without newline", &[Repeat(b"x", 3000)], &[], Closed),
    case("8192-byte line no newline (set)", &[Bytes(b"set "), Repeat(b"k", 9000)], &[], Closed),
    case(
        "multiget 2000 keys",
        &[Bytes(b"get "), Keys(2000), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"END\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "multiget 100000 keys one line",
        &[Bytes(b"get "), Keys(100_000), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"END\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "300 spaces then get",
        &[Repeat(b" ", 300), Bytes(b"get a\r\nversion\r\n")],
        &[Bytes(b"END\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "tabs as separators",
        &[Bytes(b"get\x09a\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("double spaces", &[Bytes(b"set  a  0  0  1\r\nx\r\n")], &[Bytes(b"STORED\r\n")], Open),
    case("trailing spaces", &[Bytes(b"get a   \r\n")], &[Bytes(b"VALUE a 0 1\r\nx\r\nEND\r\n")], Open),
    case(
        "uppercase command",
        &[Bytes(b"GET a\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "pipelined 10000 gets",
        &[Repeat(b"get a\r\n", 10_000), Bytes(b"version\r\n")],
        &[Repeat(b"VALUE a 0 1\r\nx\r\nEND\r\n", 10_000), Bytes(b"VERSION 1.6.18\r\n")],
        Open,
    ),
    case("meta get no flags", &[Bytes(b"mg a\r\n")], &[Bytes(b"HD\r\n")], Open),
    case(
        "mg key 251",
        &[Bytes(b"mg "), Repeat(b"k", 251), Bytes(b" v\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("mg duplicate flag", &[Bytes(b"mg a v v\r\n")], &[Bytes(b"CLIENT_ERROR duplicate flag\r\n")], Open),
    case("mg unknown flag", &[Bytes(b"mg a !\r\n")], &[Bytes(b"CLIENT_ERROR invalid flag\r\n")], Open),
    case(
        "mg opaque 32",
        &[Bytes(b"mg a k O"), Repeat(b"o", 32), Bytes(b"\r\n")],
        &[Bytes(b"CLIENT_ERROR opaque token too long\r\n")],
        Open,
    ),
    case(
        "mg opaque 33",
        &[Bytes(b"mg a k O"), Repeat(b"o", 33), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR opaque token too long\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "mg opaque long",
        &[Bytes(b"mg a k O"), Repeat(b"o", 300), Bytes(b"\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR opaque token too long\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "mg base64 bad",
        &[Bytes(b"mg !!! b v\r\n")],
        &[Bytes(b"CLIENT_ERROR error decoding key\r\n")],
        Open,
    ),
    case(
        "mg base64 ok",
        &[Bytes(b"ms YWE= 1 b\r\nx\r\nmg YWE= b v k\r\n")],
        &[Bytes(b"HD\r\nVA 1 kYWE= b\r\nx\r\n")],
        Open,
    ),
    case(
        "ms missing length",
        &[Bytes(b"ms a\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms length -1",
        &[Bytes(b"ms a -1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms length huge",
        &[Bytes(b"ms a 4294967295\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms length S flag",
        &[Bytes(b"ms a S1\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms bad mode",
        &[Bytes(b"ms a 1 MZ\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR invalid mode for ms M token\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms bad flag arg",
        &[Bytes(b"ms a 1 Tzz\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad token in command line format\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms invalid token F2^32",
        &[Bytes(b"ms a 1 F4294967296\r\nx\r\nversion\r\n")],
        &[Bytes(b"HD\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms data bad terminator",
        &[Bytes(b"ms a 1\r\nxyz\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad data chunk\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ms quiet error",
        &[Bytes(b"ms a -1 q\r\nx\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR bad command line format\r\nERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "ma non-number",
        &[Bytes(b"set n 0 0 1\r\nx\r\nma n\r\n")],
        &[Bytes(b"STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n")],
        Open,
    ),
    case(
        "ma delta -1",
        &[Bytes(b"set n 0 0 1\r\n1\r\nma n D-1\r\n")],
        &[Bytes(b"STORED\r\nCLIENT_ERROR invalid or duplicate flag\r\n")],
        Open,
    ),
    case(
        "md cas 2^64",
        &[Bytes(b"md a C18446744073709551616\r\n")],
        &[Bytes(b"CLIENT_ERROR invalid or duplicate flag\r\n")],
        Open,
    ),
    case("mn", &[Bytes(b"mn\r\n")], &[Bytes(b"MN\r\n")], Open),
    case("me no key", &[Bytes(b"me\r\n")], &[Bytes(b"CLIENT_ERROR bad command line format\r\n")], Open),
    case("mg no key", &[Bytes(b"mg\r\nversion\r\n")], &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")], Open),
    case(
        "mg many flags (30)",
        &[Bytes(b"mg a "), Repeat(b"k ", 29), Bytes(b"k\r\nversion\r\n")],
        &[Bytes(b"CLIENT_ERROR options flags are too long\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "binary magic 0x80 keylen>body",
        &[Bytes(b"\x80\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0")],
        &[],
        Open,
    ),
    case(
        "binary append body<keylen (CVE-2016-8704 shape)",
        &[Bytes(b"\x80\x0e\0\xfa\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), Repeat(b"a", 1024)],
        &[Bytes(b"\x81\x0e\0\0\0\0\0\x81\0\0\0\x0f\0\0\0\0\0\0\0\0\0\0\0\0Unknown command")],
        Closed,
    ),
    case(
        "binary body 0xffffffe8 (issue 192)",
        &[
            Bytes(b"\x80\x12\0\x01\x08\0\0\0\xff\xff\xff\xe8\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x01"),
            Repeat(b"\0", 24),
        ],
        &[Bytes(b"\x81\x12\0\0\0\0\0\x03\0\0\0\n\0\0\0\0\0\0\0\0\0\0\0\0Too large.")],
        Open,
    ),
    case(
        "TLS ClientHello to plain port",
        &[Bytes(b"\x16\x03\x01\0\xc8\x01\0\0\xc4\x03\x03"), Repeat(b"\0", 190)],
        &[],
        Open,
    ),
    case("quit with args", &[Bytes(b"quit now\r\nversion\r\n")], &[], Closed),
    case("quit then more", &[Bytes(b"quit\r\nversion\r\n")], &[], Closed),
    case(
        "shutdown",
        &[Bytes(b"shutdown\r\nversion\r\n")],
        &[Bytes(b"ERROR: shutdown not enabled\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "stats cachedump huge",
        &[Bytes(b"stats cachedump 1 4294967296\r\nversion\r\n")],
        &[Bytes(b"ITEM n [1 b; 0 s]\r\nITEM a [1 b; 0 s]\r\nEND\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case("stats reset extra", &[Bytes(b"stats reset x\r\n")], &[Bytes(b"RESET\r\n")], Open),
    case("misbehave", &[Bytes(b"misbehave\r\nversion\r\n")], &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")], Open),
    case("lru_crawler metadump all", &[Bytes(b"lru_crawler metadump all\r\n")], &[Bytes(b"...")], Open),
    case(
        "debugtime",
        &[Bytes(b"debugtime x\r\nversion\r\n")],
        &[Bytes(b"ERROR\r\nVERSION 1.6.18\r\n")],
        Open,
    ),
    case(
        "byte-by-byte",
        &[Bytes(b"set c 0 0 3\r\nabc\r\nget c\r\n")],
        &[Bytes(b"STORED\r\nVALUE c 0 3\r\nabc\r\nEND\r\n")],
        Open,
    ),
    auth(
        "auth: get before auth",
        &[Bytes(b"get a\r\n")],
        &[Bytes(b"CLIENT_ERROR unauthenticated\r\n")],
        Open,
    ),
    auth("auth: good", &[Bytes(b"set k 0 0 3\r\nu p\r\nget a\r\n")], &[Bytes(b"STORED\r\nEND\r\n")], Open),
    auth(
        "auth: bad",
        &[Bytes(b"set k 0 0 3\r\nu q\r\nget a\r\n")],
        &[Bytes(b"CLIENT_ERROR unauthenticated\r\n")],
        Open,
    ),
    auth("auth: length 5000", &[Bytes(b"set k 0 0 5000\r\n"), Repeat(b"x", 5000)], &[], Open),
    auth("auth: 3000B no newline", &[Repeat(b"x", 3000)], &[], Closed),
    auth(
        "auth: version before auth",
        &[Bytes(b"version\r\n")],
        &[Bytes(b"CLIENT_ERROR unauthenticated\r\n")],
        Open,
    ),
    auth("auth: mn before", &[Bytes(b"mn\r\n")], &[Bytes(b"CLIENT_ERROR unauthenticated\r\n")], Open),
    auth("auth: stats before", &[Bytes(b"stats\r\n")], &[Bytes(b"CLIENT_ERROR unauthenticated\r\n")], Open),
];
