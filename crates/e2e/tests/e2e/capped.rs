//! Values of 1 GiB under limits from outside: nodes keep within what they were given, whatever comes in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use chaos::{CapBy, Caps};
use processes::local_cluster::{LocalCluster, Options};

use crate::support::{LeftOver, PATIENCE, connect, flush};

/// Of each node, by itself and from outside: the rest is the program, its stacks, and what the allocator does not give back at once.
const MEMORY_MIB: u64 = 448;
const CAP_MIB: u64 = MEMORY_MIB + 64;
const LEN: u64 = 1 << 30;
const SLICE: usize = 1 << 20;
/// Nothing that is not committed is left by then.
const ASKED_BY: Duration = Duration::from_secs(150);

/// Slices of a value, of which each page says which it is.
struct Slices {
    bytes: Vec<u8>,
}

impl Slices {
    fn of(value: u64) -> Self {
        let mut rng = rng::Rng::new(value, LEN);
        Self { bytes: (0..SLICE / 8).flat_map(|_| rng.next().to_le_bytes()).collect() }
    }

    fn nth(&mut self, number: u64) -> &[u8] {
        self.bytes.chunks_mut(4096).for_each(|page| page[..8].copy_from_slice(&number.to_le_bytes()));
        &self.bytes
    }
}

/// The answer to a set of value `value`.
fn set(mut stream: TcpStream, key: &str, value: u64) -> String {
    stream.write_all(format!("set {key} 0 0 {LEN}\r\n").as_bytes()).expect("it is read");
    let mut slices = Slices::of(value);
    for number in 0..LEN / SLICE as u64 {
        stream.write_all(slices.nth(number)).expect("it is read");
    }
    stream.write_all(b"\r\nquit\r\n").expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    answer
}

/// Reads value `value` back.
fn verify(mut stream: TcpStream, key: &str, value: u64) {
    stream.write_all(format!("get {key}\r\nquit\r\n").as_bytes()).expect("it is read");
    let mut line = vec![0; format!("VALUE {key} 0 {LEN}\r\n").len()];
    stream.read_exact(&mut line).expect("it is there");
    let (mut here, mut slices) = (vec![0; SLICE], Slices::of(value));
    for number in 0..LEN / SLICE as u64 {
        stream.read_exact(&mut here).expect("it comes");
        assert!(here == slices.nth(number), "slice {number}");
    }
    let mut end = Vec::new();
    stream.read_to_end(&mut end).expect("its end");
    assert_eq!(end, b"\r\nEND\r\n");
}

#[test]
fn values_of_a_gibibyte_are_stored_or_refused_within_the_memory_that_there_is() {
    let options = Options { memory: format!("{MEMORY_MIB}MiB"), ..Options::default() };
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let caps = Caps::new(CAP_MIB << 20, CapBy::Any, 5);
    let pids: Vec<u32> = (0..5).map(|node| cluster.pid(node).expect("it lives")).collect();
    for (node, pid) in (0..).zip(&pids) {
        caps.take_in(node, *pid).expect("a limit");
    }
    assert_eq!(set(connect(&cluster, 0), "first", 1), "STORED\r\n");
    // There is no room for another one, nor for one that is to take the place of the first: several come at once.
    let others: Vec<_> = [(1, "other"), (2, "first")]
        .map(|(node, key)| (connect(&cluster, node), key))
        .map(|(stream, key)| thread::spawn(move || set(stream, key, 2)))
        .into();
    for other in others {
        let answer = other.join().expect("it is answered");
        assert_eq!(answer, "SERVER_ERROR out of memory storing object\r\n");
    }
    LeftOver::is_gone_within(&cluster, PATIENCE + ASKED_BY, true);
    verify(connect(&cluster, 2), "first", 1);
    flush(&cluster, 1);
    LeftOver::is_gone_within(&cluster, PATIENCE + ASKED_BY, false);
    assert_eq!(set(connect(&cluster, 4), "again", 3), "STORED\r\n");
    println!("{caps}{}", caps.account());
    let now: Vec<u32> = (0..5).filter_map(|node| cluster.pid(node)).collect();
    assert_eq!(now, pids, "nobody has ended");
}
