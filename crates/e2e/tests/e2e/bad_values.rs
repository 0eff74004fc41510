//! Long values from clients that do not do what they say: they go at any byte, send nothing, or little, or what does not fit.
//!
//! Each is told so, or nothing if nobody is there; others are served meanwhile; and afterwards nothing is held for them anywhere.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use processes::local_cluster::{LocalCluster, Options};

use crate::support::{LeftOver, PATIENCE, connect, flush, within};

/// Short: what ends after so many of them is to end within the test.
const LEASE: Duration = Duration::from_secs(1);
/// A request waits for so many leases for its turn.
const DEADLINE: Duration = Duration::from_secs(5);
/// An open id ends after the first, and holders ask about what they know nothing of twice, each time after the second.
const TIMES: [&str; 4] = ["--write-timeout", "5s", "--ask-interval", "3s"];
const ASKED_BY: Duration = Duration::from_secs(11);
/// A stripe of three chunks, a row of it, and a value of two stripes and a half.
const STRIPE: usize = 3 << 20;
const ROW: usize = 3 * 64 * 1024;
const LEN: usize = 5 * STRIPE / 2;

fn start(memory: &str) -> LocalCluster {
    let mut options = Options { lease: LEASE, memory: memory.to_owned(), ..Options::default() };
    options.flags.extend(TIMES.map(str::to_owned));
    LocalCluster::start(&options).expect("a cluster starts")
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = rng::Rng::new(seed, len as u64);
    (0..len.div_ceil(8)).flat_map(|_| rng.next().to_le_bytes()).take(len).collect()
}

fn head(key: &str, len: usize) -> Vec<u8> {
    format!("set {key} 0 0 {len}\r\n").into_bytes()
}

/// What is answered to these bytes and a `quit`.
fn ask(cluster: &LocalCluster, node: u16, parts: &[&[u8]]) -> Vec<u8> {
    let mut stream = connect(cluster, node);
    parts.iter().for_each(|part| stream.write_all(part).expect("it is read"));
    stream.write_all(b"quit\r\n").expect("it is read");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it is answered");
    answer
}

fn set(cluster: &LocalCluster, node: u16, key: &str, value: &[u8]) -> String {
    let answer = ask(cluster, node, &[&head(key, value.len()), value, b"\r\n"]);
    String::from_utf8(answer).expect("a line")
}

/// The same until it is taken: nodes that others let wait may be taken for lost for a moment.
#[track_caller]
fn store(cluster: &LocalCluster, node: u16, key: &str, value: &[u8]) {
    let mut answer = String::new();
    within("stored", PATIENCE, || {
        answer = set(cluster, node, key, value);
        println!("{key}: {answer:?}");
        answer == "STORED\r\n"
    });
}

/// What is answered to a get, as soon as anybody can answer.
fn get(cluster: &LocalCluster, node: u16, key: &str) -> Vec<u8> {
    let mut answer = Vec::new();
    within("answered", PATIENCE, || {
        answer = ask(cluster, node, &[format!("get {key}\r\n").as_bytes()]);
        let is_refused =
            answer.starts_with(b"SERVER_ERROR unavailable") || answer.starts_with(b"SERVER_ERROR busy");
        !is_refused
    });
    println!("{key}: {}", answer[..answer.len().min(40)].escape_ascii());
    answer
}

fn hit(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat()
}

/// Waits until nothing is held but what keys have.
#[track_caller]
fn nothing_is_left_but_values(cluster: &LocalCluster) {
    LeftOver::is_gone_within(cluster, PATIENCE + ASKED_BY, true);
}

/// How a client goes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Closes,
    /// It has not read what was answered before: so the system resets the connection.
    Resets,
    /// It sends no more, and still listens.
    Falls,
}

/// One that will go so.
fn begin(cluster: &LocalCluster, node: u16, way: Way) -> TcpStream {
    let mut stream = connect(cluster, node);
    if matches!(way, Way::Resets) {
        stream.write_all(b"mn\r\n").expect("it is read");
        stream.peek(&mut [0; 4]).expect("it is answered");
    }
    stream
}

fn go(stream: TcpStream, way: Way) {
    match way {
        Way::Closes | Way::Resets => drop(stream),
        Way::Falls => {
            stream.shutdown(Shutdown::Write).expect("a connection");
            let mut stream = stream;
            let mut answer = Vec::new();
            let end = stream.read_to_end(&mut answer);
            let is_end = end.as_ref().is_ok_and(|len| *len == 0)
                || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
            assert!(is_end, "half a value is no command: {:?}", answer.escape_ascii().to_string());
        }
    }
}

#[test]
fn clients_that_go_at_any_byte_leave_what_was_there_and_nothing_else() {
    let cluster = start("256MiB");
    let (old, new) = (noise(1, LEN), noise(2, LEN));
    store(&cluster, 0, "key", &old);
    let before = LeftOver::of(&cluster).chunks;
    let head = head("key", LEN);
    let whole = [&head[..], &new, b"\r\n"].concat();
    let first = head.len();
    let edges = [1, first - 1, first, first + 1, first + 65_535, first + 65_536, first + 65_537];
    let rows = [first + ROW, first + ROW + 100_000, first + STRIPE - 1, first + STRIPE, first + STRIPE + 1];
    let ends = [first + 2 * STRIPE, whole.len() - 3, whole.len() - 2, whole.len() - 1];
    for (number, at) in (0..).zip([&edges[..], &rows, &ends].concat()) {
        for way in [Way::Closes, Way::Resets, Way::Falls] {
            let mut stream = begin(&cluster, number % 5, way);
            stream.write_all(&whole[..at]).expect("it is read");
            go(stream, way);
        }
    }
    nothing_is_left_but_values(&cluster);
    assert!(get(&cluster, 3, "key") == hit("key", &old), "what was there is there");
    assert_eq!(LeftOver::of(&cluster).chunks, before);
    // Readers that go, before anything has come and in the midst of it, of a value that is replaced meanwhile.
    for (number, len) in (0..).zip([0, 1, 100_000, STRIPE]) {
        let mut stream = connect(&cluster, number % 5);
        stream.write_all(b"get key\r\n").expect("it is read");
        stream.read_exact(&mut vec![0; len]).expect("it comes");
        drop(stream);
    }
    store(&cluster, 4, "key", &new);
    nothing_is_left_but_values(&cluster);
    assert!(get(&cluster, 3, "key") == hit("key", &new));
    flush(&cluster, 1);
    LeftOver::is_gone_within(&cluster, PATIENCE + ASKED_BY, false);
}

#[test]
fn a_wrong_end_and_an_impossible_length_are_told_and_change_nothing() {
    let cluster = start("256MiB");
    let (old, new) = (noise(1, LEN), noise(2, LEN));
    store(&cluster, 0, "key", &old);
    for end in [&b"xx"[..], b"\rx", b"x\n"] {
        let answer = ask(&cluster, 1, &[&head("key", LEN), &new, end, b"mn\r\n"]);
        assert_eq!(answer.escape_ascii().to_string(), r"CLIENT_ERROR bad data chunk\r\nMN\r\n");
    }
    let (large, format) = ("SERVER_ERROR object too large for cache", "CLIENT_ERROR bad command line format");
    // As in memcached, a set that is too long removes what was there: so it is of another key.
    let lines = [
        (format!("set other 0 0 {}", (1 << 30) + 1), large),
        (format!("append key 0 0 {}", 1 << 30), large),
        (format!("ms other {}", (1 << 30) + 1), large),
        ("set key 0 0 -1".to_owned(), format),
        (format!("set key 0 0 {}", 1_u64 << 32), format),
        (format!("set key 0 0 {}", u64::MAX), format),
        ("set key 0 0 99999999999999999999999".to_owned(), format),
        ("ms key S5000000".to_owned(), format),
    ];
    for (line, expected) in lines {
        let mut stream = connect(&cluster, 2);
        stream.write_all(format!("{line}\r\n").as_bytes()).expect("it is read");
        let mut answer = vec![0; expected.len()];
        stream.read_exact(&mut answer).expect("it is answered");
        assert_eq!(answer.escape_ascii().to_string(), expected, "{line}");
    }
    nothing_is_left_but_values(&cluster);
    assert!(get(&cluster, 3, "key") == hit("key", &old));
}

/// The answer to a long value that somebody else writes, and how long it took.
fn others_write(cluster: &LocalCluster, key: &str, value: &[u8]) -> (String, Duration) {
    let begun = Instant::now();
    (set(cluster, 0, key, value), begun.elapsed())
}

/// Clients that have declared a long value and sent so many bytes of it, at node 0.
fn silent(cluster: &LocalCluster, count: usize, sent: &[u8]) -> Vec<TcpStream> {
    let begin = |number: usize| {
        let mut stream = connect(cluster, 0);
        stream.write_all(&head(&format!("silent-{number}"), 100 << 20)).expect("it is read");
        stream.set_write_timeout(Some(DEADLINE)).expect("a time-out");
        // Who holds too much already is not read: that is as it should be.
        let _ = stream.write_all(sent);
        stream
    };
    (0..count).map(begin).collect()
}

/// Asked until it is stored: those who stand in the way are made to go when somebody is kept out, and not before.
#[track_caller]
fn is_stored_soon(cluster: &LocalCluster, key: &str, value: &[u8]) {
    let mut heard = Vec::new();
    within("stored", PATIENCE / 2, || {
        let (answer, took) = others_write(cluster, key, value);
        let is_stored = answer == "STORED\r\n";
        assert!(is_stored || answer.starts_with("SERVER_ERROR"), "{answer}");
        heard.push((answer, took));
        is_stored
    });
    println!("{heard:?}");
}

#[test]
fn a_crowd_that_sends_nothing_keeps_nobody_out() {
    let cluster = start("256MiB");
    let value = noise(3, LEN);
    // As many as there are places, and more; each has said much and sent one byte.
    let crowd = silent(&cluster, 1500, b"x");
    let held = cluster.metric("gestalt_object_uploads").expect("a metric");
    println!("{held} uploads are open");
    assert!(held <= 1024, "{held}");
    store(&cluster, 0, "short", b"value");
    is_stored_soon(&cluster, "long", &value);
    assert!(get(&cluster, 2, "long") == hit("long", &value));
    drop(crowd);
    nothing_is_left_but_values(&cluster);
}

#[test]
fn clients_that_stand_still_with_all_the_memory_make_way() {
    let cluster = start("256MiB");
    let (value, part) = (noise(3, LEN), noise(4, STRIPE - 100_000));
    let mut crowd = silent(&cluster, 30, &part);
    let held = cluster.metric("gestalt_object_buffer_bytes").expect("a metric");
    println!("{} MiB are held", held >> 20);
    assert!(
        held <= (32 << 20) + 2 * (5 << 20),
        "an eighth of the node's memory, and what the first has: {held}"
    );
    // They send a byte now and then: no more than nothing.
    for stream in &mut crowd {
        let _ = stream.write_all(b"x");
    }
    is_stored_soon(&cluster, "long", &value);
    assert!(get(&cluster, 2, "long") == hit("long", &value));
    drop(crowd);
    nothing_is_left_but_values(&cluster);
}

/// What is answered to a value that is as long as a hundred of these stripes.
fn set_large(cluster: &LocalCluster, node: u16, stripe: &[u8]) -> String {
    let (mut stream, mut answer) = (connect(cluster, node), String::new());
    stream.write_all(&head("large", 100 * stripe.len())).expect("it is read");
    (0..100).for_each(|_| stream.write_all(stripe).expect("it is read"));
    stream.write_all(b"\r\nquit\r\n").expect("it is read");
    stream.read_to_string(&mut answer).expect("it is answered");
    answer
}

#[test]
fn memory_that_ends_in_the_midst_of_a_value_is_told_and_given_back() {
    let cluster = start("64MiB");
    let kept = noise(5, LEN);
    store(&cluster, 0, "kept", &kept);
    let before = LeftOver::of(&cluster).chunks;
    let stripe = noise(6, STRIPE);
    for node in 0..3 {
        within("told", PATIENCE, || {
            let answer = set_large(&cluster, node, &stripe);
            println!("{answer:?}");
            // Or a holder was taken for lost for a moment.
            assert!(answer.starts_with("SERVER_ERROR"), "{answer}");
            answer == "SERVER_ERROR out of memory storing object\r\n"
        });
        assert_eq!(get(&cluster, node, "large"), b"END\r\n");
    }
    nothing_is_left_but_values(&cluster);
    assert_eq!(LeftOver::of(&cluster).chunks, before, "all of it was given back");
    assert!(get(&cluster, 4, "kept") == hit("kept", &kept));
    store(&cluster, 1, "other", &kept);
}
