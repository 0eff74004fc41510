//! Values in chunks: one that is longer than any item, through a real cluster that loses a node.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use processes::local_cluster::{LocalCluster, Options};
use serde_json::Value;

use crate::support::{connect, eventually, json, run};

const LEN: usize = 64 << 20;

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len / 8).flat_map(|_| word()).collect()
}

/// What node `node` answers to a set of `value`.
fn set(cluster: &LocalCluster, node: u16, key: &str, value: &[u8]) -> String {
    let mut stream = connect(cluster, node);
    stream.write_all(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes()).unwrap();
    stream.write_all(value).unwrap();
    stream.write_all(b"\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// All that node `node` answers to a get.
fn get(cluster: &LocalCluster, node: u16, key: &str) -> Vec<u8> {
    let mut stream = connect(cluster, node);
    stream.write_all(format!("get {key}\r\nquit\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Most memory that node `node` has ever had, in bytes.
fn peak(cluster: &LocalCluster, node: u16) -> u64 {
    let pid = cluster.pid(node).expect("the node lives");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn a_long_value_comes_back_with_a_node_less() {
    let options = Options { memory: "256MiB".to_owned(), ..Options::default() };
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let value = noise(LEN);
    let (code, _, error) = run(&cluster, &["namespace", "set", "default", "--striped-above", "2MiB"]);
    assert!(code == 1 && error.contains("1 MiB"), "{code} {error}");
    let (code, shown) = json(&cluster, &["namespace", "set", "default", "--striped-above", "64KiB"]);
    let objects = |shown: &Value| shown["policy"]["objects"].clone();
    assert_eq!((code, objects(&shown)["striped_above"].as_u64()), (0, Some(65_536)), "{shown}");
    let (_, table, _) = run(&cluster, &["namespace", "show", "default"]);
    assert!(table.contains("64KiB") && table.contains("1MiB"), "{table}");
    let before = peak(&cluster, 0);
    // The node hears of it a moment later.
    eventually("stored", || set(&cluster, 0, "long", &value) == "STORED\r\n");
    let expected = [format!("VALUE long 0 {LEN}\r\n").as_bytes(), &value, b"\r\nEND\r\n"].concat();
    assert!(get(&cluster, 0, "long") == expected);
    assert!(get(&cluster, 3, "long") == expected);
    let grown = (peak(&cluster, 0) - before) >> 20;
    println!("the node of the client has grown by {grown} MiB for a value of {} MiB", LEN >> 20);
    assert!(grown < 48, "a node keeps a third of a value, and never all of it");
    is_probed(&cluster);
    is_measured(&cluster, &[]);
    cluster.kill_nodes(&[2]);
    is_measured(&cluster, &[2]);
    eventually("read without node 2", || get(&cluster, 0, "long") == expected);
    assert!(get(&cluster, 1, "long") == expected);
}

/// Nodes 0 and 3 have fetched cells of others, and know how long that took; `graph explain` takes what is known.
fn is_probed(cluster: &LocalCluster) {
    let (code, probe) = json(cluster, &["graph", "probe"]);
    let nodes = probe["nodes"].as_array().expect("nodes");
    assert_eq!((code, nodes.len(), probe["silent"].as_array().map(Vec::len)), (0, 5, Some(0)), "{probe}");
    for node in nodes.iter().filter(|node| node["node"] == 0 || node["node"] == 3) {
        let seen = node["seen"].as_array().expect("links");
        assert!(seen.len() >= 2 && node["products_per_s"].as_f64() > Some(0.0), "{node}");
        assert!(seen.iter().all(|link| link["usual_us"].as_f64() > Some(0.0)), "{node}");
    }
    let (code, text, _) = run(cluster, &["graph", "probe"]);
    assert!(code == 0 && text.contains("64 KiB") && text.contains("node-3"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("links.json");
    std::fs::write(&path, probe["links"].to_string()).expect("it is written");
    let path = path.to_str().expect("a path");
    let (status, out, error) =
        cluster.gestalt(&["graph", "explain", "--links", path]).expect("the binary runs");
    assert!(status.success() && out.contains("chosen: "), "{out}{error}");
}

/// Each node fetches something of each other one on purpose; who is down is named, and the others are measured.
fn is_measured(cluster: &LocalCluster, down: &[u64]) {
    // On a machine that is busy with other things somebody may be silent for as long as is waited for him.
    eventually("all that live answer", || all_answer(cluster, down));
    let (code, text, _) = run(cluster, &["graph", "probe", "--active", "--bytes", "64KiB"]);
    assert!(code == 0 && text.contains("round trip"), "{text}");
    assert!(down.iter().all(|node| text.contains(&format!("node-{node} did not answer"))), "{text}");
    let (code, _, error) = run(cluster, &["graph", "probe", "--active", "--bytes", "17MiB"]);
    assert!(code == 1 && error.contains("16MiB"), "{error}");
}

/// Whether all nodes but those that are `down` are measured by all others.
fn all_answer(cluster: &LocalCluster, down: &[u64]) -> bool {
    let (code, probe) = json(cluster, &["graph", "probe", "--active", "--bytes", "1MiB"]);
    let nodes = probe["nodes"].as_array().expect("nodes");
    let silent: Vec<u64> =
        probe["silent"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    assert_eq!((code, nodes.len(), &silent[..]), (0, 5 - down.len(), down), "{probe}");
    nodes.iter().all(|node| {
        let measured = node["measured"].as_array().expect("links");
        assert_eq!(measured.len(), 4, "{node}");
        let (answered, silent): (Vec<&Value>, Vec<&Value>) =
            measured.iter().partition(|link| link["answer"] == "answered");
        assert!(answered.iter().all(|link| link["questions"].as_u64() > Some(0)), "{node}");
        silent.iter().filter_map(|link| link["node"].as_u64()).eq(down.iter().copied())
    })
}

/// Whether the ranges of a place are all of a value, each on a node, and the first one has so many bytes, or some times as many.
fn ranges_are(place: &Value, longest: u64) -> bool {
    let number = |range: &Value, name: &str| range[name].as_u64().expect("a number");
    let ranges = place["ranges"].as_array().expect("nodes speak the native protocol");
    let mut at = 0;
    for range in ranges {
        assert!(number(range, "start") == at && range["node"].is_u64(), "{range}");
        at = number(range, "end");
    }
    at == LEN as u64 && number(&ranges[0], "end").is_multiple_of(longest)
}

#[test]
fn a_file_is_a_value_and_comes_back_as_a_file() {
    let options = Options { memory: "256MiB".to_owned(), ..Options::default() };
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (there, back, none) = (path("there"), path("back"), path("none"));
    let value = noise(LEN);
    std::fs::write(&there, &value).unwrap();
    assert_eq!(run(&cluster, &["kv", "set", "file", "--file", &there, "--flags", "7"]).0, 0);
    assert_eq!(run(&cluster, &["kv", "get", "file", "--file", &back]).0, 0);
    assert!(std::fs::read(&back).unwrap() == value);
    let (code, stat) = json(&cluster, &["kv", "stat", "file"]);
    assert_eq!(
        (code, stat["bytes"].as_u64(), stat["layout"].as_str()),
        (0, Some(LEN as u64), Some("spread"))
    );
    assert_eq!((stat["losses_asked"].as_u64(), stat["losses_survived"].as_u64()), (Some(2), Some(2)));
    let (code, place) = json(&cluster, &["kv", "locate", "file"]);
    let nodes = place["chunks"]["groups"][0]["nodes"].as_array().expect("a group with chunks");
    assert!(code == 0 && nodes.len() == 5 && nodes.iter().all(Value::is_u64), "{place}");
    for (layout, longest) in [("spread", 64 << 10), ("wide", 1 << 20), ("copy", 3 << 20)] {
        assert_eq!(run(&cluster, &["namespace", "set", "default", "--layout", layout]).0, 0);
        eventually("stored so", || {
            assert_eq!(run(&cluster, &["kv", "set", "file", "--file", &there]).0, 0);
            let (_, place) = json(&cluster, &["kv", "locate", "file"]);
            place["layout"] == layout && ranges_are(&place, longest)
        });
        assert_eq!(run(&cluster, &["kv", "get", "file", "--file", &back]).0, 0);
        assert!(std::fs::read(&back).unwrap() == value, "{layout}");
    }
    let (code, _, error) = run(&cluster, &["kv", "get", "nothing", "--file", &none]);
    assert!(code == 1 && error.contains("is not there"), "{code} {error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "what is not there leaves no file");
    let (code, _, error) = run(&cluster, &["kv", "set", "file", "--file", &none]);
    assert!(code == 1 && error.contains("cannot read"), "{code} {error}");
    cluster.kill_nodes(&[4]);
    eventually("one loss is known", || {
        let (_, out, _) = run(&cluster, &["kv", "stat", "file", "-o", "json"]);
        serde_json::from_str::<Value>(&out).is_ok_and(|stat| stat["losses_survived"].as_u64() == Some(1))
    });
    assert_eq!(run(&cluster, &["kv", "get", "file", "--file", &back]).0, 0);
    assert!(std::fs::read(&back).unwrap() == value);
}

/// Of a value whose owner is left and whose chunks are not the key is named, until something is done about it.
#[test]
fn keys_of_which_too_few_chunks_are_left_are_named_until_they_are_written_anew() {
    let flags = ["--evict", "none", "--restart", "always"].map(str::to_owned).to_vec();
    let cluster = LocalCluster::start(&Options { memory: "256MiB".to_owned(), flags, ..Options::default() })
        .expect("a cluster starts");
    let value = noise(2 << 20);
    let keys: Vec<String> = (0..24).map(|n| format!("long-{n}")).collect();
    for key in &keys {
        assert_eq!(set(&cluster, 0, key, &value), "STORED\r\n");
    }
    let listed = || -> Vec<String> {
        let (_, lines) = json(&cluster, &["lost", "list", "--keys"]);
        let key = |line: &Value| line["key"].as_str().expect("a key").to_owned();
        lines.as_array().expect("a list").iter().map(key).collect()
    };
    assert_eq!(listed(), Vec::<String>::new());
    cluster.kill_nodes(&[0, 1, 2]);
    // The roles that were lost begin anew, with the keys that they had.
    eventually("accepted", || {
        run(&cluster, &["lost", "accept", "--all", "--yes"]);
        let (_, lines) = json(&cluster, &["lost", "list"]);
        lines == serde_json::json!([]) && json(&cluster, &["status"]).1["protection_achieved"] == 2
    });
    eventually("those whose owners are left are named", || !listed().is_empty());
    let (code, _, error) = run(&cluster, &["status"]);
    assert!(code != 0 && error.contains("gestalt lost list"), "{code} {error}");
    assert!(run(&cluster, &["lost", "list"]).1.contains("long-"));
    eventually("all that cannot be read are named", || {
        let named = listed();
        keys.iter().all(|key| {
            let answer = String::from_utf8_lossy(&get(&cluster, 3, key)).into_owned();
            (answer == "END\r\n") != named.contains(key)
                && (answer == "END\r\n" || answer.starts_with("SERVER_ERROR lost"))
        })
    });
    let named = listed();
    println!("{} of {} keys are named", named.len(), keys.len());
    let stat = json(&cluster, &["kv", "stat", &named[0]]).1;
    assert!(stat["lost"] == true && stat["losses_survived"].is_null(), "{stat}");
    for (n, key) in named.iter().enumerate() {
        if n % 2 == 0 {
            assert_eq!(set(&cluster, 4, key, &value), "STORED\r\n");
        } else {
            let (code, _, error) = run(&cluster, &["kv", "del", key]);
            assert_eq!((code, error.as_str()), (0, ""));
        }
    }
    eventually("none is named any more", || listed().is_empty() && json(&cluster, &["status"]).0 == 0);
}

/// A client that sends a value bit by bit for as long as somebody wants it to: at the end, what it was told.
fn set_slowly(cluster: &LocalCluster, node: u16, value: &[u8], goes_on: impl Fn(usize) -> bool) -> String {
    const PIECE: usize = 128 << 10;
    let mut stream = connect(cluster, node);
    stream.write_all(format!("set slow 0 0 {}\r\n", value.len()).as_bytes()).unwrap();
    for (at, piece) in value.chunks(PIECE).enumerate() {
        stream.write_all(piece).unwrap();
        // The last half goes at once when nobody needs it to last.
        if at < value.len() / PIECE / 2 || goes_on(at) {
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    stream.write_all(b"\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_node_is_drained_while_a_value_comes_in() {
    let options = Options { spares: 1, memory: "256MiB".to_owned(), ..Options::default() };
    let cluster = LocalCluster::start(&options).expect("a cluster starts");
    let value = noise(32 << 20);
    // So that there are holders to move.
    assert_eq!(set(&cluster, 0, "before", &value), "STORED\r\n");
    let is_drained = AtomicBool::new(false);
    let answer = std::thread::scope(|scope| {
        let upload = scope.spawn(|| set_slowly(&cluster, 0, &value, |_| !is_drained.load(Ordering::Relaxed)));
        std::thread::sleep(Duration::from_millis(200));
        let (code, drained) = json(&cluster, &["node", "drain", "3", "--wait"]);
        is_drained.store(true, Ordering::Relaxed);
        assert_eq!((code, drained["state"].as_str()), (0, Some("drained")));
        upload.join().expect("the upload ends")
    });
    assert_eq!(answer, "STORED\r\n");
    cluster.kill_nodes(&[3]);
    for key in ["slow", "before"] {
        let expected =
            [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), &value, b"\r\nEND\r\n"].concat();
        assert!(get(&cluster, 1, key) == expected, "{key}");
    }
    eventually("nothing is left behind", || cluster.metric("gestalt_object_tentative_bytes") == Ok(0));
}
