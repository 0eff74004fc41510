//! Many clients say that a long value will come, and then nothing.

use std::fs::read_to_string;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use processes::local_cluster::{LocalCluster, Options};

use crate::support::{LeftOver, PATIENCE, connect, eventually};

const CLIENTS: u64 = 10_000;
/// Files that each of both sides needs besides.
const OTHER_FILES: u64 = 600;
/// So many of them have sent this much of their values before.
const TALKERS: usize = 64;
const SENT: usize = 500_000;
/// What a node may have in memory for each of those who are silent: a socket's state, a buffer for the beginning of a value.
const EACH: u64 = 8 << 10;
/// What it has for the values of those who have sent something: stripes of all of an eighth of its memory.
const VALUES: u64 = 32 << 20;

/// How many clients there may be by what the system lets a process open.
fn possible_clients() -> u64 {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("there is a limit");
    let wanted = CLIENTS + OTHER_FILES;
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).expect("up to the hard limit");
    }
    let possible = CLIENTS.min(hard.saturating_sub(OTHER_FILES));
    if possible < CLIENTS {
        println!("the system lets a process open {hard} files: {possible} clients, not {CLIENTS}");
    }
    possible
}

/// What node 0 has in memory now, in bytes.
fn resident(cluster: &LocalCluster) -> u64 {
    let pid = cluster.pid(0).expect("the node lives");
    let status = read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Sends what is taken at once, the system's buffers included.
fn send_some(stream: &mut TcpStream) {
    stream.set_nonblocking(true).expect("a socket option");
    let mut left = SENT;
    while let Ok(len) = stream.write(&vec![b'x'; left]) {
        left -= len;
        if left == 0 {
            return;
        }
    }
}

/// What node 0 answers to a set of `value`.
fn set(cluster: &LocalCluster, key: &str, value: &[u8]) -> String {
    let mut stream = connect(cluster, 0);
    stream.write_all(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes()).expect("it is read");
    stream.write_all(value).expect("it is read");
    stream.write_all(b"\r\nquit\r\n").expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    answer
}

#[test]
fn who_only_says_that_a_long_value_will_come_holds_little_and_keeps_nobody_out() {
    let clients = possible_clients();
    let mut flags: Vec<String> =
        ["--evict=none", "--write-timeout=2s", "--ask-interval=3s"].map(str::to_owned).into();
    flags.push(format!("--max-connections={}", clients + 64));
    let cluster = LocalCluster::start(&Options { flags, ..Options::default() }).expect("a cluster starts");
    assert_eq!(set(&cluster, "before", &vec![b'b'; 5 << 20]), "STORED\r\n");
    let before = resident(&cluster);
    let mut crowd: Vec<TcpStream> = Vec::new();
    for number in 0..clients {
        let mut stream = connect(&cluster, 0);
        stream.write_all(format!("set k{number} 0 0 100000000\r\n").as_bytes()).expect("it is read");
        if crowd.len() < TALKERS {
            send_some(&mut stream);
        }
        crowd.push(stream);
    }
    let grown = resident(&cluster).saturating_sub(before);
    println!("{clients} clients: the node has grown by {} MiB", grown >> 20);
    assert!(grown < clients * EACH + VALUES, "{grown} bytes");
    assert_eq!(set(&cluster, "short", b"value"), "STORED\r\n");
    let took = eventually("a long value is stored beside them", || {
        set(&cluster, "long", &vec![b'v'; 5 << 20]) == "STORED\r\n"
    });
    println!("a long value has waited for {took:?}");
    // Those who were silent while others were kept out have lost their ids; what had been put of theirs goes.
    LeftOver::is_gone_within(&cluster, PATIENCE + Duration::from_secs(30), true);
    println!("{} MiB more than before", resident(&cluster).saturating_sub(before) >> 20);
    drop(crowd);
    assert_eq!(set(&cluster, "after", &vec![b'a'; 5 << 20]), "STORED\r\n");
}
