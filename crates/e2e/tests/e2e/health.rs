//! What `gestalt status` says when somebody is away, with real processes: never that all is well.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use processes::binary::binary;
use processes::local_cluster::{LocalCluster, Options};
use processes::pages::page;
use processes::ports::free_run;
use serde_json::{Value, json};

use crate::support::within;

const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(1);
/// After this long nothing may be called well any more: three leases of a second, and the rest for a machine that others use, too.
const NOT_WELL_AFTER: Duration = Duration::from_secs(15);

/// Exit code, standard output and standard error.
fn gestalt(http: SocketAddr, args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(binary().unwrap()).args(args).args(["--http", &http.to_string()]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (code, out, error) = (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr));
    println!("$ gestalt {args:?}: {code}\n{error}");
    (code, out, error)
}

/// Exit code and document of `gestalt status`.
fn status(http: SocketAddr) -> (i32, Value) {
    let (code, out, _) = gestalt(http, &["status", "-o", "json"]);
    (code, serde_json::from_str(&out).unwrap_or(Value::Null))
}

fn metric(http: SocketAddr, name: &str) -> Option<f64> {
    let page = page(http, "/metrics").ok()?;
    let line = page.lines().find(|line| line.split(' ').next() == Some(name))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

/// A process that ends with this one.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(args: &[&str]) -> Process {
    let mut command = Command::new(binary().unwrap());
    command.args(args).args(["--parent-pid", &std::process::id().to_string()]);
    Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Three nodes and a coordinator, each a process of its own.
struct StandAlone {
    coordinator: Option<Process>,
    nodes: Vec<Option<Process>>,
    base_port: u16,
}

impl StandAlone {
    /// Only the coordinator, for now.
    fn start() -> Self {
        let base_port = free_run(8).unwrap();
        let mut cluster = Self { coordinator: None, nodes: Vec::new(), base_port };
        let [listen, http] = [0, 1].map(|at| cluster.address(at).to_string());
        let coordinator = start(&[
            "coordinator",
            "--listen",
            &listen,
            "--http",
            &http,
            "--nodes",
            "3",
            "--profile",
            "rs(2+1)",
            "--workers",
            "1",
            "--lease",
            "1s",
        ]);
        cluster.coordinator = Some(coordinator);
        cluster
    }

    fn start_node(&mut self) {
        self.start_node_at("127.0.0.1", &[]);
    }

    /// Whose listeners are on address `ip`.
    fn start_node_at(&mut self, ip: &str, more: &[&str]) {
        let node = u16::try_from(self.nodes.len()).unwrap();
        let at = |port: u16| format!("{ip}:{port}");
        let (memcached, http) = (at(self.base_port + 2 + node), at(self.base_port + 5 + node));
        let coordinator = format!("embedded://{}", self.address(0));
        let node = node.to_string();
        let own =
            ["--node", &node, "--coordinator", &coordinator, "--memcached", &memcached, "--http", &http];
        let peer = at(0);
        let all = ["--peer", &peer, "--workers", "1", "--memory", "64MiB", "--lease", "1s"];
        self.nodes.push(Some(start(&[&["serve"], &own[..], &all, more].concat())));
    }

    fn address(&self, at: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.base_port + at))
    }

    fn coordinator_http(&self) -> SocketAddr {
        self.address(1)
    }

    fn http(&self, node: u16) -> SocketAddr {
        self.address(5 + node)
    }
}

#[test]
fn a_node_that_ended_a_moment_ago_counts_as_lost_when_the_next_one_is_to_be_stopped() {
    let mut cluster = StandAlone::start();
    (0..3).for_each(|_| cluster.start_node());
    let http = cluster.coordinator_http();
    within("ok", PATIENCE, || status(http).0 == 0);
    let (code, text, error) = gestalt(http, &["node", "can-stop", "1"]);
    assert_eq!(code, 3, "after it nothing is survived: {text}{error}");
    // Nobody tells the coordinator, which waits for the lease.
    cluster.nodes[0] = None;
    let (code, text, error) = gestalt(http, &["node", "can-stop", "1"]);
    assert!(code == 4 && error.contains("node 0 has not been heard since this was asked"), "{text}{error}");
}

#[test]
fn when_nobody_presides_nothing_is_well_and_what_a_dead_node_served_is_named() {
    let mut cluster = StandAlone::start();
    let coordinator = cluster.coordinator_http();
    within("forming", PATIENCE, || {
        let (code, status) = status(coordinator);
        (code, &status["health"], &status["expected_nodes"]) == (3, &json!("forming"), &json!(3))
    });
    (0..3).for_each(|_| cluster.start_node());
    let http = cluster.http(0);
    within("ok", PATIENCE, || status(http).0 == 0);

    drop(cluster.coordinator.take());
    within("unknown", NOT_WELL_AFTER, || status(http).1["health"] == "unknown");
    let (code, told) = status(http);
    assert_eq!((code, &told["health"], &told["unavailable_slots"]), (3, &json!("unknown"), &json!([])));
    assert!(
        told["coordinator_age_seconds"].as_f64().unwrap() > 3.0 * told["lease_seconds"].as_f64().unwrap()
    );
    let (_, text, error) = gestalt(http, &["status"]);
    assert!(text.starts_with("unknown") && text.contains("no coordinator has been heard for"), "{text}");
    assert!(error.contains("bring the coordinator back"), "{error}");
    let ready = page(http, "/readyz").expect("a node that serves stays ready");
    assert!(ready.contains("no coordinator heard for"), "{ready}");
    assert_eq!(metric(http, "gestalt_protection_achieved"), None);
    assert!(metric(http, "gestalt_coordinator_age_seconds").unwrap() > 3.0);
    // What rests on the same knowledge says so.
    let (_, out, error) = gestalt(http, &["repair", "status", "-o", "json"]);
    let repair: Value = serde_json::from_str(&out).unwrap();
    assert!(
        repair["coordinator_age_seconds"].as_f64().unwrap() > 3.0 && error.contains("may be as old"),
        "{error}"
    );
    assert_eq!(gestalt(http, &["node", "can-stop", "1"]).0, 2, "nobody knows");

    drop(cluster.nodes[2].take());
    within("unavailable", NOT_WELL_AFTER, || status(http).1["health"] == "unavailable");
    let (code, told) = status(http);
    assert_eq!((code, &told["silent_nodes"], &told["nodes"][2]["state"]), (4, &json!([2]), &json!("silent")));
    assert_eq!((&told["protection_achieved"], &told["missing_nodes"]), (&json!(0), &json!([2])));
    assert!(!told["unavailable_slots"].as_array().unwrap().is_empty());
    assert_eq!(told["at_risk_by"].as_array().unwrap().len(), 2, "either of the others is one too many");
    let (_, text, error) = gestalt(http, &["status"]);
    assert!(text.contains("unavailable: slots ") && text.contains("node 2 is silent"), "{text}");
    assert!(error.contains("bring the coordinator back, or node 2"), "{error}");
    assert!(metric(http, "gestalt_unavailable_slots").unwrap() > 0.0);
}

#[test]
fn a_coordinator_names_who_is_silent() {
    let mut cluster = StandAlone::start();
    (0..3).for_each(|_| cluster.start_node());
    let coordinator = cluster.coordinator_http();
    within("ok", PATIENCE, || status(coordinator).0 == 0);
    drop(cluster.nodes[1].take());
    let report = || serde_json::from_str::<Value>(&page(coordinator, "/status").unwrap()).unwrap();
    within("silent", PATIENCE, || report()["nodes"][1]["silent"] == true);
    let node = &report()["nodes"][1];
    assert!(node["node"] == 1 && node["age_seconds"].as_f64().unwrap() >= LEASE.as_secs_f64(), "{node}");
    within("lost", PATIENCE, || {
        gestalt(coordinator, &["node", "list"]).1.lines().nth(2).is_some_and(|line| line.contains("lost"))
    });
}

#[test]
fn more_stopped_nodes_than_the_code_makes_up_for_are_named_and_nobody_is_told_to_wait() {
    // So long that nobody is given up, which takes five leases, while this test asks; each question waits for who is stopped.
    let lease = Duration::from_secs(4);
    let cluster = LocalCluster::start(&Options { lease, ..Options::default() }).unwrap();
    let http = cluster.http();
    assert_eq!(gestalt(http, &["kv", "set", "k", "v"]).0, 0);
    let stopped = [1, 2, 3];
    stopped.iter().for_each(|node| cluster.signal(*node, Signal::SIGSTOP));
    let mut told = Value::Null;
    within("beyond repair", PATIENCE, || {
        let (code, status) = status(http);
        assert_ne!(code, 0, "{status}");
        told = status;
        !told["beyond_repair"].is_null()
    });
    assert_eq!(
        (told["silent_nodes"].clone(), told["health"].clone()),
        (json!(stopped), json!("unavailable"))
    );
    assert!(!told["unavailable_slots"].as_array().unwrap().is_empty(), "{}", told["states"]);
    let (code, text, error) = gestalt(http, &["status"]);
    assert!(code == 4 && error.contains("more is missing than the code can make up for"), "{error}");
    assert!(error.contains("without nodes ") && error.contains("gestalt lost accept"), "{error}");
    assert!(
        !error.contains("wait for the repair") && text.contains("nodes 1, 2, 3 are silent"),
        "{text}{error}"
    );
    // What it tells to do is what helps.
    stopped.iter().for_each(|node| cluster.signal(*node, Signal::SIGCONT));
    within("ok again", PATIENCE, || status(http).0 == 0);
    assert_eq!(gestalt(http, &["kv", "get", "k"]).1, "v");
}

#[test]
fn nodes_that_listen_everywhere_are_reached_where_they_say() {
    let mut cluster = StandAlone::start();
    (0..3).for_each(|_| cluster.start_node_at("0.0.0.0", &["--advertise", "127.0.0.2"]));
    let coordinator = cluster.coordinator_http();
    within("ok", PATIENCE, || status(coordinator).0 == 0);
    let (_, told) = status(coordinator);
    let told = |of: &str| told["nodes"][2][of].as_str().unwrap().to_owned();
    assert_eq!(told("memcached"), format!("127.0.0.2:{}", cluster.base_port + 4));
    assert_eq!(told("http"), format!("127.0.0.2:{}", cluster.base_port + 7));
    assert_eq!(gestalt(coordinator, &["kv", "set", "k", "v"]).0, 0);
    assert_eq!(gestalt(cluster.http(2), &["kv", "get", "k"]).1, "v");
}

#[test]
fn full_is_a_state_of_its_own() {
    let full = |evict: &str| {
        let flags = vec!["--evict".to_owned(), evict.to_owned()];
        let (profile, memory) = ("rs(2+1)".to_owned(), "32MiB".to_owned());
        let options = Options { nodes: 3, profile, memory, flags, ..Options::default() };
        let cluster = LocalCluster::start(&options).unwrap();
        let http = cluster.http();
        gestalt(http, &["bench", "load", "--keys", "1500", "--value-size", "100000"]);
        within("full", PATIENCE, || status(http).1["health"] == "full");
        let (code, told) = status(http);
        let count = |field: &str| told[field].as_array().unwrap().len();
        (code, count("refusing_nodes"), count("evicting_nodes"))
    };
    let (code, refusing, _) = full("none");
    assert!(code == 3 && refusing > 0, "{code} {refusing}");
    let (code, refusing, evicting) = full("clock");
    assert_eq!((code, refusing), (0, 0), "a cache that evicts does what it is for");
    assert!(evicting > 0);
}
