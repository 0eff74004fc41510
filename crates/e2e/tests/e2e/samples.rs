//! The samples of the documents, as they stand there: each machine is a network namespace with the address that the sample names.
//!
//! What is changed: where etcd's data, configurations and logs lie, how much memory nodes have, and, for the machines after the
//! first, what the text says is their own. Needs root, `ip`, and etcd.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use processes::binary::{binary, run};
use processes::namespaces::{Machines, Process};

use crate::support::is_possible;

const PATIENCE: Duration = Duration::from_secs(60);

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// What stands between the fences of a language.
fn fenced(document: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = document.split(&begin).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The one that begins with `word`.
fn sample(samples: &[String], word: &str) -> String {
    let found = samples.iter().find(|sample| sample.starts_with(word));
    found.unwrap_or_else(|| panic!("no sample begins with '{word}'")).clone()
}

fn at(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// Machines, and what runs on them.
struct Place {
    dir: tempfile::TempDir,
    processes: Vec<Process>,
    machines: Machines,
}

impl Place {
    fn new(addresses: &[Ipv4Addr]) -> Self {
        let machines = Machines::build(addresses).unwrap();
        Self { dir: tempfile::tempdir().unwrap(), processes: Vec::new(), machines }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a command line on a machine. It ends with the namespace's thread.
    fn start(&mut self, name: &str, machine: Ipv4Addr, line: &str) {
        let mut process = Process::new(name.to_owned(), self.dir.path());
        let line = format!("exec {}", with_binary(&line.replace("\\\n", " ")));
        println!("{machine}$ {line}");
        let args = ["--pdeathsig=KILL", "sh", "-c", &line].map(str::to_owned);
        process.start(self.machines.at(machine), Path::new("setpriv"), &args).unwrap();
        self.processes.push(process);
    }

    /// Runs a command line on a machine to its end.
    fn run(&self, machine: Ipv4Addr, line: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", &with_binary(line)]).current_dir(self.dir.path());
        command.env_remove("GESTALT_HTTP").env_remove("GESTALT_ENDPOINT");
        let output = self.machines.at(machine).run(move || command.output()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        println!("{machine}$ {line}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
        output
    }

    /// A bare `gestalt status` on this machine says that all is well.
    fn is_well(&self, machine: Ipv4Addr) {
        self.says(machine, "gestalt status");
    }

    /// A command that asks how it is says sooner or later that it is well.
    fn says(&self, machine: Ipv4Addr, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.run(machine, line).status.code() != Some(0) {
            if Instant::now() > deadline {
                let last = |process: &Process| format!("{}: {}\n", process.name(), process.last_line());
                panic!("not well:\n{}", self.processes.iter().map(last).collect::<String>());
            }
            sleep(Duration::from_millis(500));
        }
    }
}

/// The binary under test in the place of the one that is installed.
fn with_binary(line: &str) -> String {
    let binary = binary().unwrap().display().to_string();
    let line = line.trim_start().replace("/usr/bin/gestalt", "gestalt");
    let rest = line.strip_prefix("gestalt ");
    rest.map_or(line.clone(), |rest| format!("{binary} {rest}"))
        .replace("&& gestalt ", &format!("&& {binary} "))
}

/// Less memory than a sample has: several machines are one here.
fn smaller(sample: &str) -> String {
    sample.replace("64GiB", "128MiB")
}

/// Member `member` of etcd, as the sample of the first one says.
fn etcd_member(sample: &str, member: u8, data: &Path) -> String {
    let (own, others) = sample.split_once("--initial-cluster ").unwrap();
    let name = char::from(b'a' + member);
    let own = own.replace("--name a ", &format!("--name {name} "));
    let own = own.replace("10.0.0.1:", &format!("{}:", at(1 + member)));
    format!("{}--initial-cluster {others}", own.replace("/var/lib/etcd", data.to_str().unwrap()))
}

/// What is a node's own in a sample of the first one.
fn of_node(sample: &str, node: u8) -> String {
    sample.replace("10.0.0.11:", &format!("{}:", at(11 + node)))
}

fn with_etcd(nodes: u8) -> Place {
    let samples = fenced(&document("etcd.md"), "sh");
    let addresses: Vec<Ipv4Addr> = (1..=3).chain(11..11 + nodes).map(at).collect();
    let mut place = Place::new(&addresses);
    for member in 0..3 {
        let data = place.path(&format!("etcd-{member}"));
        let line = etcd_member(&sample(&samples, "etcd "), member, &data);
        place.start(&format!("etcd {member}"), at(1 + member), line.trim_end());
    }
    place
}

const ETCD: &[(&str, &str)] = &[("etcd", "etcd-server"), ("setpriv", "util-linux")];

/// `docs/etcd.md`, and then every command of `docs/operations.md` that names no place of its own.
#[test]
fn the_cluster_of_the_page_on_etcd_runs_and_takes_the_commands_of_the_page_on_operations() {
    if !is_possible(ETCD) {
        return;
    }
    let mut place = with_etcd(6);
    let serve = smaller(&sample(&fenced(&document("etcd.md"), "sh"), "gestalt serve"));
    for node in 0..5 {
        let line = of_node(&serve, node).replace("--node 0 ", &format!("--node {node} "));
        place.start(&format!("node {node}"), at(11 + node), line.trim_end());
    }
    (0..5).for_each(|node| place.is_well(at(11 + node)));
    let joiner = of_node(&serve, 5).replace("--node 0 ", "--node 7 --join ");
    place.start("node 7", at(16), joiner.trim_end());
    place.is_well(at(16));
    let commands = commands(&document("operations.md"));
    assert!(commands.len() >= 18, "{commands:?}");
    for command in commands {
        // While a role moves it has no primary for a moment: status says so, and a node that somebody asks for may not stop.
        if command.starts_with("gestalt status") || command.contains(" can-stop ") {
            place.says(at(11), &command);
            continue;
        }
        let output = place.run(at(11), &command);
        assert_eq!(output.status.code(), Some(0), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The lines of a document that are commands, without what is said about them.
fn commands(document: &str) -> Vec<String> {
    let is_command = |line: &&str| line.starts_with("    gestalt ") || line.starts_with("$ gestalt ");
    let bare = |line: &str| {
        let line = line.trim_start_matches("$ ").trim();
        let end = line.find("   ").unwrap_or(line.len());
        line[..end].split(" #").next().unwrap().trim().to_owned()
    };
    document.lines().filter(is_command).map(bare).filter(|line| !line.contains("...")).collect()
}

/// The file of `docs/etcd.md`, and the unit that starts it.
#[test]
fn the_file_and_the_unit_of_the_page_on_etcd_start_a_node() {
    if !is_possible(ETCD) {
        return;
    }
    let mut place = with_etcd(5);
    let (files, units) = (fenced(&document("etcd.md"), "toml"), fenced(&document("etcd.md"), "ini"));
    let file = smaller(&sample(&files, "node = 0"));
    let start = units[0].lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    for node in 0..5 {
        let path = place.path(&format!("node-{node}.toml"));
        fs::write(&path, of_node(&file, node).replace("node = 0", &format!("node = {node}"))).unwrap();
        let line = start.replace("/etc/gestalt/node.toml", path.to_str().unwrap());
        place.start(&format!("node {node}"), at(11 + node), &line);
    }
    (0..5).for_each(|node| place.is_well(at(11 + node)));
}

/// The example of `gestalt coordinator --help`: the coordinator and a node are on one machine.
#[test]
fn the_cluster_of_the_coordinators_help_runs() {
    if !is_possible(&[("setpriv", "util-linux")]) {
        return;
    }
    let (_, help, _) = run(&["coordinator", "--help"]).unwrap();
    let help = help.replace("\\\n", " ");
    let example = |word: &str| {
        let line = help.lines().map(str::trim).find(|line| line.starts_with(word));
        line.unwrap_or_else(|| panic!("no example '{word}' in {help}")).to_owned()
    };
    let mut place = Place::new(&[at(1), at(2), at(3)]);
    place.start("coordinator", at(1), &example("gestalt coordinator --listen"));
    let serve = format!("{} --memory 128MiB", example("gestalt serve --node 0"));
    for node in 0..3 {
        let address = at(1 + node).to_string();
        let own = |flag: &str| (format!("--{flag} 10.0.0.1"), format!("--{flag} {address}"));
        let (memcached, peer) = (own("memcached"), own("peer"));
        let line = serve.replace("--node 0 ", &format!("--node {node} "));
        let line = line.replace(&memcached.0, &memcached.1).replace(&peer.0, &peer.1);
        place.start(&format!("node {node}"), at(1 + node), &line);
    }
    (0..3).for_each(|node| place.is_well(at(1 + node)));
    // Orders are taken on the machine itself, by whoever answers there.
    for machine in [at(1), at(2)] {
        assert_eq!(place.run(machine, "gestalt repair pause").status.code(), Some(0));
        assert_eq!(place.run(machine, "gestalt repair resume").status.code(), Some(0));
    }
    let elsewhere = place.run(at(2), "gestalt repair pause --http 10.0.0.3:9181");
    assert_eq!(elsewhere.status.code(), Some(1), "not from another machine");
}
