//! What operators do, with the real binary on a real cluster.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use processes::binary::binary;
use processes::local_cluster::{LocalCluster, Options};
use serde_json::Value;

use crate::support::{PATIENCE, at_rest, eventually, json, run};

fn cluster(spares: u16) -> LocalCluster {
    LocalCluster::start(&Options { spares, ..Options::default() }).expect("a cluster starts")
}

#[test]
fn nodes_are_listed_and_spares_take_their_share() {
    let cluster = cluster(1);
    let (code, nodes) = json(&cluster, &["node", "list"]);
    let nodes = nodes.as_array().unwrap();
    assert_eq!((code, nodes.len()), (0, 6));
    let roles = |node: &Value| node["data_roles"].as_u64().unwrap() + node["parity_roles"].as_u64().unwrap();
    assert!(nodes[..5].iter().all(|node| node["state"] == "up" && roles(node) > 0));
    eventually("a share of the roles on the spare", || roles(&json(&cluster, &["node", "list"]).1[5]) > 0);
    let (code, table, _) = run(&cluster, &["node", "list"]);
    assert!(code == 0 && table.lines().count() == 7 && table.starts_with("node  state  zone"), "{table}");
}

#[test]
fn can_stop_tells_harmless_from_degrading_from_fatal() {
    let cluster = cluster(0);
    at_rest(&cluster);
    let (code, report) = json(&cluster, &["node", "can-stop", "1"]);
    assert_eq!((code, report["verdict"].as_str()), (0, Some("yes")));
    assert_eq!(report["losses_survived_after"], 1);
    cluster.kill_nodes(&[0]);
    eventually("degraded", || json(&cluster, &["node", "can-stop", "1"]).0 == 3);
    cluster.kill_nodes(&[2]);
    eventually("fatal", || {
        let (code, report) = json(&cluster, &["node", "can-stop", "1"]);
        code == 4 && !report["groups_lost"].as_array().unwrap().is_empty()
    });
    let (code, _, error) = run(&cluster, &["node", "can-stop", "9"]);
    assert!(code == 1 && error.contains("gestalt node list"), "{error}");
}

#[test]
fn a_drain_is_refused_with_the_way_out_or_remembered() {
    let cluster = cluster(1);
    let (code, drained) = json(&cluster, &["node", "drain", "5", "--wait"]);
    assert_eq!((code, drained["state"].as_str()), (0, Some("drained")));
    let (code, _, error) = run(&cluster, &["node", "drain", "0"]);
    assert!(code == 3 && error.contains("gestalt serve --join") && error.contains("needs 5"), "{error}");
    assert_eq!(json(&cluster, &["node", "undrain", "5"]).1["state"], "active");
    let (code, drained) = json(&cluster, &["node", "drain", "0", "--expect", "2"]);
    assert_eq!((code, drained["layout_version"].as_u64()), (0, Some(3)));
    let (code, _, error) = run(&cluster, &["node", "drain", "1", "--expect", "2"]);
    assert!(code == 1 && error.contains("version 3 by now"), "{error}");
    let (_, status) = json(&cluster, &["status"]);
    assert_eq!(status["draining_nodes"], serde_json::json!([0]));
    let state = json(&cluster, &["node", "list"]).1[0]["state"].as_str().unwrap().to_owned();
    assert!(["draining", "drained"].contains(&state.as_str()), "{state}");
}

#[test]
fn a_drain_that_waits_waits_for_a_node_that_is_started_again() {
    let cluster = cluster(1);
    cluster.kill_nodes(&[5]);
    eventually("refused", || run(&cluster, &["node", "drain", "0"]).0 == 3);
    let drained = std::thread::scope(|scope| {
        let drained = scope.spawn(|| run(&cluster, &["node", "drain", "0", "--wait"]));
        sleep(Duration::from_millis(500));
        assert_eq!(run(&cluster, &["node", "start", "5"]).0, 0);
        drained.join().unwrap()
    });
    let (code, text, error) = drained;
    assert!(code == 0 && text.contains("node 0 is drained"), "{text}{error}");
    assert!(error.contains("waits for up to 30 s"), "{error}");
}

#[test]
fn a_fenced_process_ends_and_its_roles_go_elsewhere() {
    let cluster = cluster(1);
    // What is fenced while the spare takes its share leaves groups that the next loss ends, and that is asked about.
    at_rest(&cluster);
    assert_eq!(run(&cluster, &["kv", "set", "k", "v"]).0, 0);
    let (code, fenced) = json(&cluster, &["node", "fence", "2"]);
    assert_eq!((code, fenced["state"].as_str()), (0, Some("fenced")));
    eventually("ended", || cluster.pid(2).is_none());
    assert_eq!(run(&cluster, &["kv", "get", "k"]).1, "v");
    eventually("whole again", || json(&cluster, &["status"]).0 == 0);
    at_rest(&cluster);
    assert_eq!(run(&cluster, &["node", "fence", "0"]).0, 0);
    // One more, and the next loss costs data: somebody has to say so.
    let (code, _, error) = run(&cluster, &["node", "fence", "1"]);
    assert!(code == 1 && error.contains("next loss would cost data") && error.contains("--yes"), "{error}");
    assert!(cluster.pid(1).is_some());
    assert_eq!(run(&cluster, &["node", "fence", "1", "--yes"]).0, 0);
    let (code, _, error) = run(&cluster, &["node", "fence", "3"]);
    assert!(code == 4 && error.contains("--accept-loss"), "{error}");
    assert!(cluster.pid(3).is_some());
    assert_eq!(run(&cluster, &["node", "fence", "3", "--accept-loss"]).0, 0);
    eventually("lost", || json(&cluster, &["status"]).1["health"] == "lost");
}

#[test]
fn paused_repair_waits_and_the_status_says_so() {
    let cluster = cluster(1);
    let (code, _, _) = run(&cluster, &["bench", "load", "--keys", "20000", "--value-size", "1000"]);
    assert_eq!(code, 0);
    assert_eq!(json(&cluster, &["repair", "pause"]).1["paused"], true);
    assert!(run(&cluster, &["repair", "limit"]).1.contains("any bandwidth a second and any memory"));
    let (code, limited) = json(&cluster, &["repair", "limit", "--rate", "300MiB", "--memory", "8MiB"]);
    assert_eq!((code, limited["bytes_per_second"].as_u64()), (0, Some(300 << 20)));
    assert_eq!(limited["memory_bytes"], 8 << 20);
    cluster.kill_nodes(&[0]);
    eventually("known", || {
        let (_, repair) = json(&cluster, &["repair", "status"]);
        repair["paused"] == true && repair["progress"]["left_bytes"].as_u64().is_some_and(|left| left > 0)
    });
    // Long enough for a repair that does not wait.
    sleep(Duration::from_secs(2));
    let mut told = (0, Value::Null);
    eventually("served by others", || {
        told = json(&cluster, &["status"]);
        told.0 == 3 && told.1["protection_achieved"] == 1
    });
    let (_, status) = told;
    assert_eq!(status["repair"]["paused"].as_bool(), Some(true));
    // The spare has its share, so not every group had a role on the node that is lost. How many
    // had depends on what the spare was filled with first.
    let margin = |losses: &str| status["groups_by_margin"][losses].as_u64().unwrap_or(0);
    let groups = status["groups"].as_array().unwrap().len() as u64;
    assert!(margin("1") >= 1 && margin("1") + margin("2") == groups, "{}", status["groups_by_margin"]);
    assert_eq!(status["bytes_at_risk"], 0);
    assert!(run(&cluster, &["status"]).1.contains("repair is paused"));
    let (_, text, _) = run(&cluster, &["repair", "limit"]);
    assert!(text.contains("paused") && text.contains("300MiB") && text.contains("8MiB of memory"), "{text}");
    assert_eq!(json(&cluster, &["repair", "limit"]).1["bytes_per_second"], 300 << 20);
    cluster.kill_nodes(&[1]);
    eventually("at risk", || {
        let (_, status) = json(&cluster, &["status"]);
        status["bytes_at_risk"].as_u64().is_some_and(|bytes| bytes > 1_000_000)
            && status["protection_achieved"] == 0
    });
    assert!(run(&cluster, &["status"]).1.contains("at risk by the next loss: "));
    assert_eq!(run(&cluster, &["repair", "limit", "--rate", "none"]).0, 0);
    assert_eq!(run(&cluster, &["repair", "resume"]).0, 0);
    eventually("repaired", || {
        let (_, repair) = json(&cluster, &["repair", "status"]);
        repair["progress"]["left_bytes"] == 0 && json(&cluster, &["status"]).1["protection_achieved"] == 1
    });
}

#[test]
fn a_layout_is_edited_compared_and_applied_once() {
    let cluster = cluster(1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("layout.json");
    let file = path.to_str().unwrap();
    at_rest(&cluster);
    let (_, mut layout) = json(&cluster, &["layout", "show"]);
    assert_eq!((layout["version"].as_u64(), layout["nodes"].as_object().unwrap().len()), (Some(0), 6));
    layout["nodes"]["3"]["zone"] = "rack-b".into();
    layout["nodes"]["4"]["state"] = "draining".into();
    std::fs::write(&path, layout.to_string()).unwrap();
    let (code, diff, _) = run(&cluster, &["layout", "diff", "-f", file]);
    assert!(code == 0 && diff.contains("node 3 zone: its own -> rack-b"), "{diff}");
    assert!(diff.contains("node 4 state: active -> draining") && diff.contains(" roles would leave node 4"));
    assert!(diff.contains("roles would move, with about ") && diff.contains("drain group-"), "{diff}");
    let (_, diff) = json(&cluster, &["layout", "diff", "-f", file]);
    let preview = &diff["preview"];
    assert!(preview["moves"].as_array().unwrap().len() >= 3, "{preview}");
    let roles = |when: &str| {
        let share = &preview["nodes"][4][when];
        share["data_roles"].as_u64().unwrap() + share["parity_roles"].as_u64().unwrap()
    };
    // A role whose group the spare has a role of already has nowhere to go.
    assert!(roles("after") <= 2 && roles("after") < roles("before"), "{preview}");
    assert_eq!(diff["leaving"][0]["node"], 4);
    assert_eq!(json(&cluster, &["layout", "show"]).1["version"], 0, "a diff changes nothing");
    // Somebody else is faster.
    assert_eq!(run(&cluster, &["repair", "pause"]).0, 0);
    assert!(run(&cluster, &["layout", "diff", "-f", file]).1.contains("conflict: made from version 0"));
    let (code, _, error) = run(&cluster, &["layout", "apply", "-f", file]);
    assert!(code == 1 && error.contains("version 1 by now") && error.contains("layout show"), "{error}");
    layout["version"] = 1.into();
    layout["repair"]["paused"] = true.into();
    std::fs::write(&path, layout.to_string()).unwrap();
    let (code, applied) = json(&cluster, &["layout", "apply", "-f", file]);
    assert_eq!((code, applied["version"].as_u64()), (0, Some(2)));
    assert_eq!(json(&cluster, &["node", "list"]).1[3]["zone"], "rack-b");
    let shown = json(&cluster, &["layout", "show"]).1;
    assert_eq!(shown["nodes"]["4"]["state"], "draining");
    assert_eq!(shown["repair"]["paused"], true);
    std::fs::write(&path, "{\"version\": 2, \"ndoes\": {}}").unwrap();
    let (code, _, error) = run(&cluster, &["layout", "apply", "-f", file]);
    assert!(code == 1 && error.contains("unknown field `ndoes`"), "{error}");
}

#[test]
fn a_node_that_is_drained_and_stopped_can_be_forgotten() {
    let cluster = cluster(1);
    let (code, _, error) = run(&cluster, &["node", "remove", "5"]);
    assert!(code == 1 && error.contains("is alive") && error.contains("gestalt node drain 5"), "{error}");
    assert_eq!(run(&cluster, &["node", "drain", "5", "--wait"]).0, 0);
    cluster.kill_nodes(&[5]);
    eventually("down", || json(&cluster, &["node", "list"]).1[5]["state"] == "down");
    let (code, removed) = json(&cluster, &["node", "remove", "5"]);
    assert_eq!((code, removed["state"].as_str()), (0, Some("removed")));
    eventually("gone from the lists", || {
        json(&cluster, &["node", "list"]).1.as_array().unwrap().len() == 5
            && json(&cluster, &["status"]).1["draining_nodes"] == serde_json::json!([])
    });
    assert_eq!(run(&cluster, &["node", "remove", "5"]).0, 1);
    // One whose roles were rebuilt elsewhere, too; not before.
    cluster.kill_nodes(&[0]);
    eventually("lost", || json(&cluster, &["node", "list"]).1[0]["alive"] == false);
    eventually("served by others", || json(&cluster, &["node", "remove", "0"]).0 == 0);
}

#[test]
fn orders_go_through_any_node() {
    let cluster = cluster(0);
    let (_, nodes) = json(&cluster, &["node", "list"]);
    let http = nodes[3]["http"].as_str().unwrap();
    let (status, out, _) = cluster.gestalt(&["repair", "pause", "--http", http, "-o", "json"]).unwrap();
    assert!(status.success() && out.contains("\"paused\": true"), "{out}");
    assert_eq!(json(&cluster, &["layout", "show"]).1["repair"]["paused"], true);
}

/// Standard error of a `gestalt serve` that is expected to end by itself.
fn refused(cluster: &LocalCluster, coordinator: &str, flags: &[&str]) -> String {
    let any = "127.0.0.1:0";
    let mut child = Command::new(binary().unwrap())
        .args(["serve", "--coordinator", coordinator, "--memcached", any, "--http", any, "--workers", "1"])
        .args(["--memory", "64MiB", "--node"])
        .args(flags)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{flags:?} was not refused by {:?}", cluster.http());
        }
        sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    text
}

#[test]
fn who_does_not_fit_may_not_join() {
    let cluster = cluster(0);
    let coordinator = cluster.coordinator().unwrap();
    let text = refused(&cluster, &coordinator, &["7", "--join", "--cluster", "99"]);
    assert!(text.contains("this node is meant for cluster-99, the coordinator has cluster-"), "{text}");
    let text = refused(&cluster, &coordinator, &["7", "--join", "--profile", "rs(4+2)"]);
    assert!(text.contains("meant for profile rs(4+2), the cluster has rs(3+2)"), "{text}");
    assert_eq!(json(&cluster, &["node", "list"]).1.as_array().unwrap().len(), 5);
}

#[test]
fn a_layout_comes_from_standard_input_too() {
    let cluster = cluster(0);
    let http = cluster.http().to_string();
    let mut child = Command::new(binary().unwrap())
        .args(["layout", "apply", "-f", "-", "--http", &http])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"version\":0,\"repair\":{\"paused\":true}}").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert_eq!(text, "repair paused: false -> true\nlayout 1 is in force\n");
}

/// Sets and reads back through nodes other than the one that is being restarted; how many requests it made.
fn use_the_cluster(addresses: &[SocketAddr], away: &Mutex<usize>, end: &AtomicBool) -> u64 {
    let mut count = 0;
    while !end.load(Ordering::Relaxed) {
        // Held until both are answered: nobody goes away meanwhile.
        let away = away.lock().unwrap();
        let node = (0..addresses.len()).map(|n| (n + count as usize) % addresses.len()).find(|n| *n != *away);
        let stream = TcpStream::connect(addresses[node.unwrap()]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut lines = BufReader::new(stream);
        let mut say = |text: String| {
            lines.get_mut().write_all(text.as_bytes()).unwrap();
            let mut answer = String::new();
            lines.read_line(&mut answer).unwrap();
            answer
        };
        let (key, value) = (count % 500, format!("{count:010}"));
        assert_eq!(say(format!("set key{key} 0 0 10\r\n{value}\r\n")), "STORED\r\n");
        assert_eq!(say(format!("get key{key}\r\n")), format!("VALUE key{key} 0 10\r\n"));
        count += 1;
    }
    count
}

#[test]
fn every_node_is_restarted_in_turn_and_no_request_fails() {
    let flags = ["--evict", "none", "--restart", "always"].map(str::to_owned).to_vec();
    let cluster = LocalCluster::start(&Options { spares: 1, flags, ..Options::default() }).unwrap();
    let addresses = cluster.all_memcached();
    let (away, end) = (Mutex::new(usize::MAX), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let client = scope.spawn(|| use_the_cluster(&addresses, &away, &end));
        for node in 0..cluster.node_count() {
            let id = node.to_string();
            assert_eq!(run(&cluster, &["node", "drain", &id, "--wait"]).0, 0);
            *away.lock().unwrap() = usize::from(node);
            let before = cluster.pid(node);
            cluster.signal(node, nix::sys::signal::Signal::SIGTERM);
            eventually("started again", || cluster.pid(node).is_some_and(|pid| Some(pid) != before));
            eventually("up again", || {
                json(&cluster, &["node", "list"]).1[usize::from(node)]["state"] == "drained"
            });
            assert_eq!(run(&cluster, &["node", "undrain", &id]).0, 0);
            *away.lock().unwrap() = usize::MAX;
        }
        end.store(true, Ordering::Relaxed);
        assert!(client.join().unwrap() > 100);
    });
    eventually("as protected as asked", || json(&cluster, &["status"]).1["protection_achieved"] == 2);
}

fn restarting(flags: &[&str]) -> LocalCluster {
    let flags = ["--evict", "none", "--restart", "always"].iter().chain(flags).map(|flag| (*flag).to_owned());
    LocalCluster::start(&Options { flags: flags.collect(), ..Options::default() }).expect("a cluster starts")
}

/// Whether every slot takes a value and gives it back, as far as some keys can tell.
fn serves_everything(cluster: &LocalCluster) -> bool {
    (0..40).all(|n| {
        let (key, value) = (format!("key-{n}"), format!("value-{n}"));
        run(cluster, &["kv", "set", &key, &value]).0 == 0 && run(cluster, &["kv", "get", &key]).1 == value
    })
}

fn has_begun_anew(cluster: &LocalCluster) -> bool {
    let map = cluster.map().expect("a map");
    map.groups.iter().flat_map(|view| &view.data).any(|role| role.origin > types::Term(1))
}

#[test]
fn three_of_five_nodes_are_killed_and_what_is_lost_begins_anew_once_that_is_accepted() {
    let cluster = restarting(&[]);
    assert!(serves_everything(&cluster));
    assert_eq!(run(&cluster, &["lost", "list"]).1, "nothing is lost\n");
    cluster.kill_nodes(&[0, 1, 2]);
    eventually("lost", || json(&cluster, &["status"]).1["health"] == "lost");
    let (code, lost) = json(&cluster, &["lost", "list"]);
    assert!(code == 0 && lost[0]["state"] == "lost", "{lost}");
    let lines = lost.as_array().unwrap();
    let meets = |pair: &[Value]| {
        let is_same = |field: &str| pair[0][field] == pair[1][field];
        let touch = pair[0]["last"].as_u64().unwrap() + 1 == pair[1]["first"].as_u64().unwrap();
        touch && is_same("state") && is_same("waits_for")
    };
    assert!(!lines.windows(2).any(meets), "neighbours of a kind are one range: {lost}");
    assert!(!serves_everything(&cluster));
    let (code, _, error) = run(&cluster, &["lost", "accept", "--all"]);
    assert!(code == 1 && error.contains("--yes"), "{error}");
    let (code, _, error) = run(&cluster, &["lost", "accept"]);
    assert!(code == 1 && error.contains("--slots"), "{error}");
    assert_eq!(run(&cluster, &["lost", "accept", "--all", "--yes"]).0, 0);
    eventually("accepted", || {
        let left = json(&cluster, &["lost", "list"]).1;
        // The nodes are not missed all at once: of some roles it turns out later that nobody can make them up.
        if left.as_array().is_some_and(|left| left.iter().any(|range| range["state"] == "lost")) {
            run(&cluster, &["lost", "accept", "--all", "--yes"]);
        }
        left == serde_json::json!([])
    });
    eventually("served", || serves_everything(&cluster));
    assert!(has_begun_anew(&cluster));
    eventually("protected again", || json(&cluster, &["status"]).0 == 0);
    cluster.kill_nodes(&[3, 4]);
    eventually("whole again", || json(&cluster, &["status"]).0 == 0);
    assert_eq!(run(&cluster, &["kv", "get", "key-7"]).1, "value-7");
    assert_eq!(run(&cluster, &["lost", "accept", "--all"]).1, "nothing is lost there\n");
}

#[test]
fn with_the_policy_of_caches_nobody_needs_to_accept_a_loss() {
    let cluster = restarting(&["--on-loss", "empty"]);
    assert!(run(&cluster, &["lost", "policy"]).1.starts_with("empty"));
    cluster.kill_nodes(&[0, 1, 2]);
    eventually("begun anew", || has_begun_anew(&cluster));
    eventually("served", || serves_everything(&cluster));
    eventually("protected again", || json(&cluster, &["status"]).0 == 0);
    assert!(run(&cluster, &["lost", "policy", "error"]).1.starts_with("error"));
}

#[test]
fn a_reset_begins_anew_on_whatever_nodes_are_left() {
    let cluster = cluster(0);
    assert!(serves_everything(&cluster));
    let (code, _, error) = run(&cluster, &["cluster", "reset"]);
    assert!(code == 1 && error.contains("--yes-lose-everything"), "{error}");
    assert_eq!(run(&cluster, &["kv", "get", "key-7"]).1, "value-7");
    cluster.kill_nodes(&[0, 1, 2]);
    assert_eq!(run(&cluster, &["cluster", "reset", "--yes-lose-everything"]).0, 0);
    eventually("served", || serves_everything(&cluster));
    let map = cluster.map().expect("a map");
    assert!(map.groups.iter().flat_map(|view| &view.data).all(|role| role.origin > types::Term(1)));
}

#[test]
fn a_node_of_a_local_cluster_is_stopped_and_started_again() {
    let cluster = cluster(0);
    assert_eq!(run(&cluster, &["kv", "set", "k", "v"]).0, 0);
    let (code, _, error) = run(&cluster, &["node", "start", "2"]);
    assert!(code == 1 && error.contains("node 2 runs already, pid"), "{error}");
    let before = cluster.pid(2).unwrap();
    let (code, stopped) = json(&cluster, &["node", "stop", "2"]);
    assert_eq!((code, stopped["pid"].as_u64()), (0, Some(u64::from(before))));
    eventually("ended", || cluster.pid(2).is_none());
    eventually("missed", || json(&cluster, &["node", "can-stop", "3"]).0 != 0);
    let (code, _, error) = run(&cluster, &["node", "stop", "3"]);
    assert!(code == 1 && error.contains("--yes") && cluster.pid(3).is_some(), "{error}");
    eventually("missed", || {
        json(&cluster, &["repair", "status"]).1["missing_nodes"] == serde_json::json!([2])
    });
    let (_, text, _) = run(&cluster, &["repair", "status"]);
    assert!(text.contains("node 2 is missing") && text.contains("--join"), "{text}");
    let (code, started) = json(&cluster, &["node", "start", "2"]);
    assert_eq!((code, started["pid"].as_u64()), (0, cluster.pid(2).map(u64::from)));
    assert_ne!(cluster.pid(2), Some(before));
    eventually("whole again", || json(&cluster, &["status"]).0 == 0);
    assert_eq!(run(&cluster, &["kv", "get", "k"]).1, "v");
    let (code, _, error) = run(&cluster, &["node", "start", "9"]);
    assert!(code == 1 && error.contains("gestalt node list"), "{error}");
    let node = json(&cluster, &["node", "list"]).1[0]["http"].as_str().unwrap().to_owned();
    let (status, _, error) = cluster.gestalt(&["node", "start", "2", "--http", &node]).unwrap();
    assert!(
        status.code() == Some(1) && error.contains("gestalt local") && error.contains("gestalt serve"),
        "{error}"
    );
}

#[test]
fn a_layout_is_shown_in_words() {
    let cluster = cluster(0);
    let (code, text, _) = run(&cluster, &["layout", "show"]);
    assert_eq!(code, 0);
    assert!(
        text.starts_with(
            "layout   version 0\nrepair   on, each node may take any bandwidth a second and any memory\n"
        ),
        "{text}"
    );
    assert!(text.contains("\nnode  state   zone\n0     active  -\n"), "{text}");
}
