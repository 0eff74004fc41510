//! Programs in C and C++.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::Cluster;

pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// A program that was built with the static library.
pub struct Program {
    /// Where it lies until it is dropped.
    _dir: TempDir,
    path: PathBuf,
}

/// A library that was built with this test.
pub fn library(name: &str) -> PathBuf {
    std::env::current_exe().expect("this test is a file").with_file_name(name)
}

impl Program {
    /// One of the files beside this one.
    pub fn of(file: &str) -> Self {
        Self::build(&Path::new(CRATE).join("tests/c_client/c").join(file))
    }

    /// One that is this text.
    pub fn of_text(name: &str, text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(format!("{name}.c"));
        fs::write(&file, text).expect("a file");
        Self::build(&file)
    }

    fn build(source: &Path) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("program");
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        let (compiler, standard) = if is_c { ("cc", "-std=gnu99") } else { ("c++", "-std=c++17") };
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"]);
        command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover", "-pthread"]);
        command.arg(format!("-I{CRATE}/include")).arg("-o").arg(&path).arg(source);
        command.arg(library("libgestalt_c.a")).args(["-ldl", "-lm"]);
        let built = command.output().expect("a C compiler");
        assert!(built.status.success(), "{}", said(&built));
        Self { _dir: dir, path }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(args);
        command
    }

    /// What it says; it has to end well.
    pub fn run(&self, args: &[&str]) -> String {
        let ran = self.command(args).output().expect("a program");
        assert!(ran.status.success(), "{}", said(&ran));
        String::from_utf8(ran.stdout).expect("text")
    }

    /// The same with this on its standard input.
    pub fn filter(&self, args: &[&str], input: &str) -> String {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a program");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        let ran = child.wait_with_output().expect("it ends");
        assert!(ran.status.success(), "{}", said(&ran));
        String::from_utf8(ran.stdout).expect("text")
    }
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

pub fn uri(cluster: &Cluster, node: usize) -> String {
    let addr = cluster.nodes[node].addresses().native.expect("a native listener");
    format!("gestalt://{addr}/default?timeout=30s")
}

#[test]
fn a_program_in_c_does_everything_right_and_wrong() {
    let cluster = Cluster::start();
    // Whoever calls is not answered.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = format!("gestalt://{}", silent.local_addr().expect("an address"));
    Program::of("everything.c").run(&[&uri(&cluster, 0), &nobody]);
}

#[test]
fn a_program_in_cpp_computes_beside_a_transfer() {
    let cluster = Cluster::start();
    Program::of("overlapping.cc").run(&[&uri(&cluster, 1)]);
}

#[test]
fn a_queue_lives_in_somebody_elses_epoll_loop() {
    let cluster = Cluster::start();
    Program::of("epoll.c").run(&[&uri(&cluster, 2)]);
}

#[test]
fn the_program_in_the_document_works() {
    let document = fs::read_to_string(Path::new(CRATE).join("../../docs/c-client.md")).expect("the document");
    let sample =
        document.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let cluster = Cluster::start();
    let said = Program::of_text("sample", sample).run(&[&uri(&cluster, 0)]);
    assert!(said.starts_with("hello, version "), "{said}");
}

#[test]
fn threads_that_know_nothing_of_each_other_share_requests() {
    let cluster = Cluster::start();
    Program::of("crowd.c").run(&[&uri(&cluster, 0)]);
}

#[test]
fn a_process_that_is_forked_off_makes_a_client_of_its_own() {
    let cluster = Cluster::start();
    Program::of("fork.c").run(&[&uri(&cluster, 0)]);
}

#[test]
fn overlap_is_measured_for_writes_and_reads() {
    let cluster = Cluster::start();
    let said = Program::of("overlap.c").run(&[&uri(&cluster, 0), "100000", "5"]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.len() == 2
            && lines[0].starts_with("set 100000 bytes: overlap ")
            && lines[1].starts_with("get ")
    );
}

/// Ten thousand requests are in flight when a node ends, and for two leases afterwards.
#[test]
fn every_request_ends_in_time_when_a_node_is_lost() {
    let mut cluster = Cluster::start();
    let program = Program::of("faults.c");
    let mut command = program.command(&[&uri(&cluster, 0)]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a program");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it speaks");
    assert_eq!(line, "running\n", "{}", ending(&mut child));
    std::thread::sleep(Duration::from_millis(300));
    cluster.nodes.remove(3).stop();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(child.stdin.take());
    let mut tally = String::new();
    output.read_to_string(&mut tally).expect("text");
    let complaint = ending(&mut child);
    assert!(child.wait().expect("it ends").success(), "{tally}{complaint}");
    println!("{tally}");
    let count = |name: &str| {
        let line = tally.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |count| count.parse::<u64>().expect("a number"))
    };
    assert!(count("Ok") > 20_000, "{tally}");
    let lost = ["Unknown", "TimedOut", "Unreachable", "Unavailable", "Late", "Busy"].map(count);
    let all: u64 = tally.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).sum();
    assert_eq!(count("Ok") + lost.iter().sum::<u64>(), all, "{tally}");
    // That the fault was felt.
    assert!(lost.iter().sum::<u64>() > 0, "{tally}");
}

/// What it complains about, if it has ended.
fn ending(child: &mut Child) -> String {
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut complaint);
    }
    complaint
}
