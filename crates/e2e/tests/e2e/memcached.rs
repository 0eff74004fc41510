//! memcached 1.6.45 is the reference of the memcached face: what it says to the golden inputs, what we say to them, and its
//! own suite run against a node. [docs/memcached.md](../../../../docs/memcached.md) has the outcome.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use golden::{BAD_INPUT, CONVERSATIONS, Case, DEVIATIONS, End, cases};
use processes::binary::binary;
use processes::local_cluster::{LocalCluster, Options};
use processes::others::{others_dir, outputs};
use processes::peers;

#[path = "../../../faces/tests/golden/mod.rs"]
mod golden;

/// The version that all of this is about.
const REFERENCE: &str = "memcached 1.6.45";
/// Silence after which a server has said all that it will.
const QUIET: Duration = Duration::from_millis(50);
/// The same while it has said less than is expected.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest that one file of the suite may take.
const SUITE_LIMIT: &str = "120";
/// First port for the suite's nodes: below the range from which the kernel picks ports of outgoing connections.
const SUITE_PORTS: u16 = 27_500;

/// Files of memcached's t/ that pass. Those that do not, and why, are in docs/memcached.md.
const GREEN: [&str; 28] = [
    "binary-get",
    "bogus-commands",
    "cas",
    "chunked-items",
    "dash-M",
    "evictions",
    "flags",
    "flush-all",
    "getandtouch",
    "getset",
    "incrdecr",
    "issue_104",
    "issue_108",
    "issue_14",
    "issue_152",
    "issue_192",
    "issue_29",
    "issue_3",
    "issue_41",
    "issue_68",
    "issue_70",
    "malicious-commands",
    "metaget",
    "multiversioning",
    "noreply",
    "quit",
    "strtol-testing",
    "touch",
];

/// A memcached, killed when dropped.
struct Reference {
    child: Child,
    address: SocketAddr,
}

impl Reference {
    fn start(program: &Path, flags: &[&str]) -> Self {
        let address = free_address();
        let port = address.port().to_string();
        let mut command = Command::new(program);
        command.args(["-u", "nobody", "-l", "127.0.0.1", "-U", "0", "-p", &port]).args(flags);
        let child = command.stdin(Stdio::null()).spawn().expect("memcached starts");
        let reference = Self { child, address };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "memcached does not answer");
            sleep(Duration::from_millis(20));
        }
        reference
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
    listener.local_addr().expect("it is bound")
}

/// What a server says to `input` on a fresh connection, and how that ends. An answer of `len` bytes is waited for.
fn ask(server: SocketAddr, input: &[u8], len: usize) -> (Vec<u8>, End) {
    let mut stream = TcpStream::connect(server).expect("the server runs");
    let mut writer = stream.try_clone().expect("another handle");
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    std::thread::scope(|scope| {
        // A server that closes early takes no more.
        scope.spawn(move || writer.write_all(input));
        loop {
            let patience = if answer.len() < len { PATIENCE } else { QUIET };
            stream.set_read_timeout(Some(patience)).expect("a time");
            match stream.read(&mut buffer) {
                Ok(0) => return (answer, End::Closed),
                Ok(len) => answer.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return (answer, End::Open),
                Err(_) => return (answer, End::Closed),
            }
        }
    })
}

/// The cases as the servers answer them: the second one asks for a password.
fn recorded(cases: Vec<Case>, open: SocketAddr, locked: SocketAddr) -> Vec<Case> {
    let record = |case: Case| {
        let server = if case.locked { locked } else { open };
        let (answer, end) = ask(server, &case.input_bytes(), case.answer_bytes().len());
        Case { answer: golden::written(&answer), end, ..case }
    };
    cases.into_iter().map(record).collect()
}

#[test]
fn the_golden_answers_are_those_of_memcached() {
    let peer = peers::memcached().unwrap();
    assert_eq!(peer.title, REFERENCE, "the golden answers are its, and it cannot be had");
    let passwords = others_dir().unwrap().join("memcached-passwords");
    fs::write(&passwords, "u:p\n").unwrap();
    let open = Reference::start(&peer.program, &[]);
    let locked = Reference::start(&peer.program, &["-Y", passwords.to_str().unwrap()]);
    for (name, file) in [("bad_input.txt", BAD_INPUT), ("conversations.txt", CONVERSATIONS)] {
        let now = golden::file(&recorded(cases(file), open.address, locked.address));
        if now != file {
            let path = others_dir().unwrap().join(name);
            fs::write(&path, &now).unwrap();
            panic!("memcached says otherwise: {} has what it says now", path.display());
        }
    }
}

#[test]
fn a_cluster_gives_the_golden_answers_or_the_documented_others() {
    let cluster = LocalCluster::start(&Options::default().with_memcacheds_values()).unwrap();
    let deviations: BTreeMap<_, _> =
        cases(DEVIATIONS).into_iter().map(|case| (case.name.clone(), case)).collect();
    // What we are to say; and a cluster asks nobody for a password: the parser's own test has those cases.
    let ours = |case: Case| match deviations.get(&case.name) {
        Some(other) => Case { answer: other.answer.clone(), end: other.end, ..case },
        None => case,
    };
    let mut wrong = String::new();
    for (turn, file) in (1u16..).zip([BAD_INPUT, CONVERSATIONS]) {
        let expected: Vec<Case> = cases(file).into_iter().filter(|case| !case.locked).map(ours).collect();
        let node = cluster.memcached(turn);
        for (case, said) in expected.iter().zip(recorded(expected.clone(), node, node)) {
            if (case.answer_bytes(), case.end) != (said.answer_bytes(), said.end) {
                let (says, not) = (golden::file(&[said]), &case.answer);
                wrong += &format!("{says}not {not} {:?}\n", case.end);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn memcacheds_own_suite_passes_but_for_what_the_table_names() {
    let program = peers::memcached().unwrap().program;
    let source = program.parent().expect("it was built in its source");
    let helpers = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/memcached-suite");
    let mut failed = Vec::new();
    for (index, file) in (0u16..).zip(GREEN) {
        let mut perl = Command::new("timeout");
        perl.args([SUITE_LIMIT, "perl", "-It/lib", &format!("-I{helpers}"), "-MGestaltNode"])
            .arg(format!("t/{file}.t"))
            .current_dir(source)
            .env("GESTALT_BIN", fs::canonicalize(binary().unwrap()).unwrap())
            .env("GESTALT_PORTS", (SUITE_PORTS + 50 * index).to_string());
        match outputs(&mut perl) {
            Ok((text, _)) if text.contains("\nok 1") || text.starts_with("ok 1") => {}
            Ok(_) => failed.push(format!("{file}: no test ran")),
            Err(reason) => failed.push(format!("{file}: {reason}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
