//! Clients of all languages with 10,000 requests in flight, while a node is drained, another one stands still past its lease, a third one is
//! killed, and the map is no longer what it was: all at once. No request is lost or ends after its deadline, and no answer is wrong.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gestalt::{Client, Error};
use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options};
use processes::others::read;
use tokio::task::JoinSet;

use crate::conformance::packages_python;
use crate::support::{PATIENCE, run};

const LEASE: Duration = Duration::from_secs(1);
const IN_FLIGHT: u32 = 10_000;
/// Longer than the cluster needs to get over everything, and what a busy machine may add to it.
const TIMEOUT: Duration = Duration::from_secs(20);
const SLACK: Duration = Duration::from_secs(5);

/// Six nodes, so that one can be drained.
fn cluster() -> LocalCluster {
    let options = Options { spares: 1, lease: LEASE, ..Options::default() };
    LocalCluster::start(&options).expect("a cluster starts")
}

fn uri(cluster: &LocalCluster, nodes: &[u16]) -> String {
    let all: Vec<String> =
        nodes.iter().map(|node| cluster.native(*node).expect("it listens").to_string()).collect();
    format!("gestalt://{}/default?timeout={}s", all.join(","), TIMEOUT.as_secs())
}

/// Everything at once, until all is well again without the node that was killed.
fn hurt(cluster: &LocalCluster) {
    let (code, ..) = run(cluster, &["node", "drain", "0"]);
    assert_eq!(code, 0);
    // Both at once: no more than the code makes up for.
    cluster.signal(1, Signal::SIGSTOP);
    cluster.kill_nodes(&[2]);
    sleep(3 * LEASE);
    cluster.signal(1, Signal::SIGCONT);
    sleep(5 * LEASE);
}

/// What came of the requests of one key of numbers and one of texts.
#[derive(Default)]
struct Told {
    done: u64,
    /// Those of which nobody knows.
    unknown: u64,
    /// The number that was read or made last: it never sinks.
    last: u64,
    /// Texts that may be there.
    texts: Vec<u64>,
}

/// Asks for one thing after the other: each ends in time, and says nothing that cannot be.
async fn ask(client: Client, id: u32, ends: Arc<AtomicBool>) -> Result<Told, Error> {
    let (number, text) = (format!("number-{id}"), format!("text-{id}"));
    let mut told = Told { texts: vec![0], ..Told::default() };
    client.set(number.clone(), "0").await?;
    client.set(text.clone(), format!("{id}:0")).await?;
    for turn in 1.. {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let begun = Instant::now();
        match turn % 3 {
            0 => told.counted(client.add_number(number.clone(), 1).await),
            1 => match client.set(text.clone(), format!("{id}:{turn}")).await {
                Ok(_) => told.texts = vec![turn],
                Err(error) if error.is_harmless() => {}
                Err(_) => told.texts.push(turn),
            },
            _ => {
                let found = client.get(text.clone()).await;
                if let Ok(found) = found {
                    told.is_text(id, &found.expect("it was stored, and nobody removes it").bytes);
                }
            }
        }
        assert!(begun.elapsed() < TIMEOUT + SLACK, "a request took {:?}", begun.elapsed());
    }
    Ok(told)
}

impl Told {
    fn counted(&mut self, answer: Result<Option<u64>, Error>) {
        match answer {
            Ok(number) => {
                self.done += 1;
                self.is_number(number.expect("nobody removes it"));
            }
            Err(error) if error.is_harmless() => {}
            Err(_) => self.unknown += 1,
        }
    }

    /// Everything that was acknowledged was done once, and of the rest nothing twice.
    fn is_number(&mut self, number: u64) {
        let possible = self.done..=self.done + self.unknown;
        assert!(possible.contains(&number) && number >= self.last, "{number} of {possible:?}");
        self.last = number;
    }

    fn is_text(&self, id: u32, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).expect("text");
        let (whose, turn) = text.split_once(':').expect("a colon");
        assert_eq!(whose, id.to_string());
        let turn = turn.parse().expect("a number");
        // What was given up may still come.
        assert!(self.texts.contains(&turn), "{turn} of {:?}", self.texts);
    }
}

#[test]
fn rust_loses_no_request_and_hears_nothing_wrong() {
    let cluster = cluster();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // This one has a map from before everything, and is told of no other until it asks.
    let late = runtime.block_on(Client::connect(&uri(&cluster, &[2, 1, 3]))).expect("a node that listens");
    let client = runtime.block_on(Client::connect(&uri(&cluster, &[0, 2]))).expect("a node that listens");
    let ends = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for id in 0..IN_FLIGHT {
        let task = ask(client.clone(), id, Arc::clone(&ends));
        tasks.spawn_on(async move { (id, task.await) }, runtime.handle());
    }
    sleep(2 * LEASE);
    hurt(&cluster);
    ends.store(true, Ordering::Relaxed);
    let all = runtime.block_on(async {
        let mut all = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            let (id, told) = ended.expect("no wrong answer");
            all.push((id, told.unwrap_or_else(|error| panic!("{id} did not begin: {error}"))));
        }
        all
    });
    assert_eq!(all.len(), IN_FLIGHT as usize, "each task has ended");
    let sum = |of: fn(&Told) -> u64| all.iter().map(|(_, told)| of(told)).sum::<u64>();
    println!("{} counted, {} unknown", sum(|told| told.done), sum(|told| told.unknown));
    assert!(sum(|told| told.done) > 0);
    runtime.block_on(async {
        for (id, mut told) in all {
            let text = late.get(format!("text-{id}")).await.expect("all is well").expect("it is there");
            told.is_text(id, &text.bytes);
            let number = late.get(format!("number-{id}")).await.expect("all is well").expect("it is there");
            told.is_number(std::str::from_utf8(&number.bytes).unwrap().parse().expect("a number"));
        }
    });
}

#[test]
fn c_loses_no_request_and_hears_nothing_wrong() {
    let krate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gestalt-c");
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("faults");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu99", "-pthread", "-o"])
        .arg(&program)
        .arg(krate.join("tests/c_client/c/faults.c"));
    compiler.arg(format!("-I{}", krate.join("include").display()));
    compiler.arg(built("libgestalt_c.a")).args(["-ldl", "-lm"]);
    read(&mut compiler).unwrap();
    goes_through_it(Command::new(program));
}

#[test]
fn python_loses_no_request_and_hears_nothing_wrong() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/python");
    let mut program = Command::new(packages_python().unwrap());
    program.arg(package.join("tests/faults.py")).env("PYTHONPATH", &package);
    program.env("GESTALT_LIBRARY", built("libgestalt_c.so")).env("PYTHONDONTWRITEBYTECODE", "1");
    goes_through_it(program);
}

fn built(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(name)
}

/// A program that says when it has 10,000 requests in flight, goes on until its input ends, and then tells how many came to what: it ends
/// badly if one was wrong, late or lost.
fn goes_through_it(mut program: Command) {
    let cluster = cluster();
    program.arg(uri(&cluster, &[0, 2])).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = program.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    hurt(&cluster);
    drop(child.stdin.take());
    let mut tally = String::new();
    output.read_to_string(&mut tally).unwrap();
    println!("{tally}");
    assert!(ends_well(&mut child), "{tally}");
    let count = |line: &str| line.split_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
    let done = tally.lines().find(|line| line.starts_with("Ok ")).and_then(count);
    let all: u64 = tally.lines().filter_map(count).sum();
    assert!(done > Some(u64::from(IN_FLIGHT)) && all >= u64::from(IN_FLIGHT), "{tally}");
}

fn ends_well(child: &mut Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    false
}
