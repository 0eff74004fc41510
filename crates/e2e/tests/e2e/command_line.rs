//! The command line as the architecture promises it, against a real cluster.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use processes::binary::binary;
use processes::local_cluster::{LocalCluster, Options};
use processes::ports::free_run;
use serde_json::Value;
use types::NodeId;

use crate::support;

fn cluster() -> LocalCluster {
    LocalCluster::start(&Options::default()).expect("a cluster starts")
}

/// Exit code and standard output.
fn run(cluster: &LocalCluster, args: &[&str]) -> (i32, String) {
    let (code, out, _) = support::run(cluster, args);
    (code, out)
}

#[test]
fn keys_are_set_read_located_listed_and_removed() {
    let mut options = Options::default();
    options.flags.push("--native-scans".to_owned());
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    assert_eq!(run(&cluster, &["kv", "set", "greeting", "hello there"]), (0, String::new()));
    assert_eq!(run(&cluster, &["kv", "get", "greeting"]), (0, "hello there".to_owned()));
    let (code, place) = run(&cluster, &["kv", "locate", "greeting", "-o", "json"]);
    let place: Value = serde_json::from_str(&place).unwrap();
    assert_eq!((code, place["bytes"].as_u64(), place["layout"].as_str()), (0, Some(11), Some("packed")));
    assert!(place["slot"].as_u64().unwrap() < 16_384 && place["node"].as_u64().unwrap() < 5);
    let http = cluster.http().to_string();
    for command in [&["kv", "get", "greeting"][..], &["kv", "scan"], &["kv", "scan", "-o", "json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut gestalt = Command::new(binary().unwrap());
        gestalt.args(command).args(["--http", http.as_str()]).stdout(full);
        assert_eq!(
            gestalt.status().unwrap().code(),
            Some(1),
            "{command:?}: what cannot be written was not got"
        );
    }
    assert_eq!(run(&cluster, &["kv", "set", "other", "x"]).0, 0);
    assert_eq!(run(&cluster, &["kv", "scan", "--prefix", "greet"]), (0, "greeting\n".to_owned()));
    let (code, all) = run(&cluster, &["kv", "scan", "-o", "json"]);
    let mut all: Vec<String> = serde_json::from_str(&all).unwrap();
    all.sort_unstable();
    assert_eq!((code, all), (0, vec!["greeting".to_owned(), "other".to_owned()]));
    assert_eq!(run(&cluster, &["kv", "del", "greeting"]), (0, String::new()));
    assert_eq!(run(&cluster, &["kv", "get", "greeting"]).0, 1);
    assert_eq!(run(&cluster, &["kv", "del", "greeting"]).0, 1);
    assert_eq!(run(&cluster, &["kv", "set", "two words", "x"]).0, 1);
    // Two sets, gets and deletes each; the last set has a key that no client of memcached could spell.
    assert!(cluster.metric("gestalt_native_requests_total").unwrap() >= 5);
}

#[test]
fn any_code_protects_a_cluster_and_status_says_what_it_survives() {
    for (profile, nodes, survives) in [("lrc(4,2,1)", 7, 2), ("mirror(2)", 4, 1), ("isal-cauchy(3+2)", 5, 2)]
    {
        let options = Options { nodes, profile: profile.to_owned(), ..Options::default() };
        let cluster = LocalCluster::start(&options).expect("a cluster starts");
        for key in 0..8 {
            let (key, value) = (format!("key-{key}"), format!("value {key}"));
            assert_eq!(run(&cluster, &["kv", "set", &key, &value]).0, 0, "{profile}");
        }
        let (code, status) = support::json(&cluster, &["status"]);
        let number = |name: &str| status[name].as_u64();
        assert_eq!(
            (code, number("protection_asked"), number("protection_achieved")),
            (0, Some(survives), Some(survives))
        );
        cluster.kill_nodes(&(0..survives as u16).collect::<Vec<_>>());
        for key in 0..8 {
            let value = format!("value {key}");
            let get = || run(&cluster, &["kv", "get", &format!("key-{key}")]);
            support::eventually("the key is served", || get() == (0, value.clone()));
        }
    }
}

#[test]
fn status_tells_ok_from_degraded_from_at_risk_from_lost() {
    let cluster = cluster();
    let health = || {
        let (code, out) = run(&cluster, &["status", "-o", "json"]);
        let status: Value = serde_json::from_str(&out).unwrap();
        (code, status["health"].as_str().unwrap().to_owned(), status["lost_slots"].as_array().unwrap().len())
    };
    let wait_for = |code: i32, word: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while (health().0, health().1.as_str()) != (code, word) {
            assert!(Instant::now() < deadline, "status is {:?}, not {code} {word}", health());
            sleep(Duration::from_millis(100));
        }
    };
    wait_for(0, "ok");
    assert_eq!(health().2, 0);
    assert_eq!(run(&cluster, &["kv", "set", "k", "v"]).0, 0);
    cluster.kill_nodes(&[0]);
    wait_for(3, "degraded");
    cluster.kill_nodes(&[1]);
    wait_for(4, "at_risk");
    assert_eq!(run(&cluster, &["kv", "get", "k"]), (0, "v".to_owned()));
    let (code, _, why) = support::run(&cluster, &["kv", "scan"]);
    assert!(code == 1 && why.contains("--native-scans"), "{code}: {why}");
    cluster.kill_nodes(&[2, 3]);
    wait_for(4, "lost");
    assert!(health().2 > 0);
    // What is lost is answered with an error, never with a silent miss or wrong bytes.
    let answers: Vec<_> =
        (0..40).map(|n| run(&cluster, &["kv", "get", &format!("absent-{n}"), "--timeout", "2s"])).collect();
    assert!(answers.iter().all(|(code, out)| [1, 2, 4].contains(code) && out.is_empty()));
    assert!(answers.iter().any(|(code, _)| *code == 4));
}

#[test]
fn bench_verifies_what_it_loaded() {
    let cluster = cluster();
    let args = ["bench", "load", "a", "c", "--keys", "5000", "--duration", "500ms", "--verify", "-o", "json"];
    for more in [
        &[][..],
        &["--any-node"],
        &["--zipf", "0.99", "--depth", "8"],
        &["--threads", "2", "--value-size", "5"],
        &["--protocol", "native"],
        &["--protocol", "native", "--threads", "2", "--depth", "16", "--any-node"],
        &["--protocol", "native", "--nameless", "--value-size", "5"],
    ] {
        let (code, out) = run(&cluster, &[&args, more].concat());
        assert_eq!(code, 0);
        let reports: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!(reports.len(), 3);
        for report in &reports {
            assert!(report["operations"].as_u64().unwrap() > 0, "{report}");
            assert_eq!(report["wrong_values"], 0);
            assert_eq!(report["misses"], 0);
            assert_eq!(report["errors"], serde_json::json!({}));
            assert!(report["latency_us"]["p99"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn bench_moves_values_of_all_lengths_over_the_native_protocol() {
    let cluster = cluster();
    let sizes = "1B:0.4,65536B:0.3,65537B:0.1,200KiB:0.1,1536KiB:0.1";
    let args = ["bench", "load", "a", "--keys", "200", "--ops", "600", "--clients", "4", "--depth", "4"];
    let more = ["--value-size", sizes, "--protocol", "native", "--verify", "-o", "json"];
    let (code, out) = run(&cluster, &[&args[..], &more].concat());
    let reports: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!((code, reports.len()), (0, 2), "{out}");
    assert_eq!(
        (reports[0]["operations"].as_u64(), reports[1]["operations"].as_u64()),
        (Some(200), Some(600))
    );
    // All but those before there was a session for their data role have names.
    let nameless = reports[1]["nameless_writes"].as_u64().unwrap();
    assert!((1..300).contains(&nameless), "{out}");
}

#[test]
fn bench_adds_keys_and_replaces_values_by_their_versions_over_both_protocols() {
    let cluster = cluster();
    for protocol in ["memcached", "native"] {
        let args = ["bench", "load", "d", "f", "--keys", "500", "--ops", "4000", "--verify", "-o", "json"];
        let more = ["--clients", "8", "--depth", "4", "--threads", "2", "--protocol", protocol];
        let (code, out) = run(&cluster, &[&args[..], &more].concat());
        let reports: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!((code, reports.len()), (0, 3), "{out}");
        for report in &reports[1..] {
            let zero = ["misses", "wrong_values"].map(|name| report[name].as_u64());
            assert_eq!((report["operations"].as_u64(), zero), (Some(4000), [Some(0); 2]), "{report}");
        }
        assert!(reports[1]["set_latency_us"]["p50"].as_f64().unwrap() > 0.0, "some keys were added");
        assert!(reports[2]["modify_latency_us"]["p50"].as_f64().unwrap() > 0.0);
        assert!(reports[2]["set_latency_us"].is_null(), "nothing is written that was not read");
        // All write the same key, so many find that another one was faster, and read again.
        let args = ["bench", "load", "f", "--keys", "1", "--ops", "500", "--verify", "-o", "json"];
        let (code, out) = run(&cluster, &[&args[..], &more].concat());
        let reports: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert!(code == 0 && reports[1]["conflicts"].as_u64() > Some(0), "{out}");
    }
}

#[test]
fn bench_says_which_node_does_not_speak_the_native_protocol() {
    let cluster = cluster();
    let joined = cluster.join(9, "64MiB").expect("one more node");
    support::eventually("in the map", || {
        cluster.map().unwrap().node(NodeId(9)).is_some_and(|node| node.alive && node.native.is_none())
    });
    let (status, _, said) =
        cluster.gestalt(&["bench", "c", "--keys", "10", "--protocol", "native", "--http", "{http}"]).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("node 9 does not speak the native protocol: start it with --native"), "{said}");
    drop(joined);
}

#[test]
fn an_interrupt_stops_everything_and_exits_with_0() {
    let cluster = cluster();
    let pids = cluster.pids();
    assert_eq!(pids.len(), 5);
    assert_eq!(cluster.stop().unwrap().code(), Some(0));
    let alive = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(!pids.iter().any(alive), "a node outlived its cluster");
}

#[test]
fn nodes_die_with_their_parent() {
    let cluster = cluster();
    let pids = cluster.pids();
    drop(cluster);
    let deadline = Instant::now() + Duration::from_secs(60);
    while pids.iter().any(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists()) {
        assert!(Instant::now() < deadline, "a node outlived its parent");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_second_cluster_on_the_same_ports_is_refused_in_one_line() {
    let cluster = cluster();
    let (port, http) = (cluster.memcached(0).port().to_string(), cluster.http().port().to_string());
    let output =
        Command::new(binary().unwrap()).args(["local", "--port", &port, "--http", &http]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("in use by process"), "{text}");
    assert_eq!(run(&cluster, &["status"]).0, 0);
}

#[test]
fn a_value_that_is_too_large_and_a_full_store_are_exit_code_1_and_name_the_limit() {
    let options =
        Options { nodes: 3, profile: "rs(2+1)".to_owned(), memory: "32MiB".to_owned(), ..Options::default() };
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let set = |key: &str, bytes: usize| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        std::fs::write(&path, vec![b'x'; bytes]).unwrap();
        let output = Command::new(binary().unwrap())
            .args(["kv", "set", key, "-", "--http", &cluster.http().to_string()])
            .stdin(std::fs::File::open(&path).unwrap())
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(set("long", 2 << 20).0, 0, "it lies in chunks");
    assert_eq!(run(&cluster, &["namespace", "set", "default", "--striped-above", "never"]).0, 0);
    support::eventually("too large", || {
        let (code, text) = set("large", 2 << 20);
        code == 1 && text.contains("too large") && text.contains("have 1048517 bytes at most")
    });
    let full = (0..400).map(|n| set(&format!("key-{n}"), 500_000)).find(|(code, _)| *code != 0);
    let (code, text) = full.expect("32 MiB are full before 200 MB are in them");
    assert!(code == 1 && text.contains("out of memory") && text.contains("of 32MiB (--memory)"), "{text}");
    let load = ["bench", "load", "--keys", "300", "--value-size", "500000"];
    let (code, _) = run(&cluster, &load);
    assert!(code == 1 || code == 3, "a load with errors is not 0: {code}");
    assert_eq!(run(&cluster, &["bench", "load", "--keys", "10", "--value-size", "2MiB"]).0, 1);
}

#[test]
fn a_local_cluster_says_where_its_coordinator_and_its_logs_are() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().to_str().unwrap();
    // Each with ports of its own: the nodes of a killed one may end a moment after it.
    let start = |more: &[&str], until: &str| {
        let port = free_run(12).unwrap();
        let (memcached, http) = (port.to_string(), (port + 6).to_string());
        let mut child = Command::new(binary().unwrap())
            .args(["local", "--nodes", "3", "--profile", "rs(2+1)", "--memory", "64MiB"])
            .args(["--port", &memcached, "--http", &http, "--dir", logs])
            .args(more)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let mut text = String::new();
        for line in lines.map_while(Result::ok) {
            text.push_str(&format!("{line}\n"));
            if line.starts_with(until) {
                break;
            }
        }
        let _ = child.kill();
        child.wait().unwrap();
        (text, http)
    };
    let (text, http) = start(&[], "logs");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("node  pid") && lines[4] == "ready", "{text}");
    assert_eq!(
        lines[5..],
        [format!("coordinator  127.0.0.1:{http}"), format!("logs         {logs}")],
        "{text}"
    );
    let (text, http) = start(&["-o", "json"], "ready");
    let rows: Value = serde_json::from_str(text.trim_end().strip_suffix("ready").unwrap()).unwrap();
    assert_eq!(rows[2]["coordinator"], format!("127.0.0.1:{http}"));
    assert_eq!(rows[2]["logs"], logs);
}
