//! Ceph's plugin in real daemons. `cargo xtask test ceph` builds the plugin, installs Ceph, and says where the plugins are by
//! `GESTALT_CEPH_PLUGINS`; without that, nothing is tested here.
//!
//! One story, since a cluster takes half a minute to start: pools of several techniques and one of Ceph's own `isa`; the plugin of two
//! pools is exchanged for the other with the same matrix; two OSDs are killed; two empty ones take their places; all is scrubbed. After
//! each chapter every object is read and compared.
#![allow(clippy::disallowed_methods)]

mod cluster;

use std::fs;
use std::path::PathBuf;

use cluster::Cluster;

/// Data and parity chunks of the pools; there is one OSD more.
const K: usize = 3;
const M: usize = 2;

/// Pools with their profiles.
const POOLS: [(&str, &str); 5] = [
    ("ours", "plugin=gestalt technique=rs k=3 m=2"),
    ("transform", "plugin=gestalt technique=lch k=3 m=2"),
    ("local", "plugin=gestalt technique=lrc(3,1,1)"),
    ("theirs", "plugin=isa technique=reed_sol_van k=3 m=2"),
    ("given", "plugin=gestalt technique=isal-vandermonde k=3 m=2"),
];

/// What pools are exchanged for: the same matrix, by the other plugin.
const EXCHANGED: [(&str, &str); 2] = [
    ("theirs", "plugin=gestalt technique=isal-vandermonde k=3 m=2"),
    ("given", "plugin=isa technique=reed_sol_van k=3 m=2"),
];

/// Lengths of objects: within a stripe, a few stripes, many.
const LENGTHS: [usize; 4] = [1, 5_000, 123_456, 1_500_000];

fn object(length: usize) -> Vec<u8> {
    let mut state = length as u64 + 1;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| byte()).collect()
}

fn set_profile(cluster: &Cluster, name: &str, profile: &str, more: &[&str]) {
    let words: Vec<&str> = profile.split(' ').collect();
    let set = ["osd", "erasure-code-profile", "set", name];
    cluster.ceph(&[&set[..], &words, &["crush-failure-domain=osd"], more].concat());
}

fn make_pool(cluster: &Cluster, name: &str, profile: &str) {
    set_profile(cluster, name, profile, &[]);
    cluster.ceph(&["osd", "pool", "create", name, "4", "4", "erasure", name]);
    // So that as many losses as the code bears leave the pool in use.
    cluster.ceph(&["osd", "pool", "set", name, "min_size", &K.to_string()]);
}

fn write_all(cluster: &Cluster) {
    for length in LENGTHS {
        let file = cluster.file(&format!("object-{length}"));
        fs::write(&file, object(length)).expect("a file");
        for (pool, _) in POOLS {
            cluster.rados(pool, &["put", &format!("object-{length}"), &file]);
        }
    }
}

fn read_all(cluster: &Cluster, chapter: &str) {
    for length in LENGTHS {
        let file = cluster.file("read");
        for (pool, _) in POOLS {
            cluster.rados(pool, &["get", &format!("object-{length}"), &file]);
            let read = fs::read(&file).expect("a file");
            assert!(read == object(length), "{chapter}: {length} bytes of pool {pool} have changed");
        }
    }
    println!("{chapter}: all objects are what they were");
}

fn bench(cluster: &Cluster) {
    let said = cluster
        .rados("ours", &["bench", "3", "write", "--no-cleanup", "-b", "65536", "--max-objects", "100"]);
    let line = |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    println!("rados bench: {}, {}", line("Total writes made"), line("Bandwidth"));
}

/// `rados bench` compares what it reads with what it wrote.
fn bench_again(cluster: &Cluster, chapter: &str) {
    let said = cluster.rados("ours", &["bench", "3", "seq", "-t", "4"]);
    assert!(said.contains("Total reads made"), "{said}");
    println!("{chapter}: rados bench reads what it wrote");
}

/// The stamps of the last scrubs of a pool's groups.
fn stamps(cluster: &Cluster, pool: &str, kind: &str) -> Vec<String> {
    let groups = cluster.json(&["pg", "ls-by-pool", pool])["pg_stats"].clone();
    let stamp = |group: &serde_json::Value| group[kind].as_str().unwrap_or_default().to_owned();
    groups.as_array().expect("a list of groups").iter().map(stamp).collect()
}

fn scrub_all(cluster: &Cluster) {
    for (command, kind) in [("scrub", "last_scrub_stamp"), ("deep-scrub", "last_deep_scrub_stamp")] {
        let before: Vec<Vec<String>> = POOLS.iter().map(|(pool, _)| stamps(cluster, pool, kind)).collect();
        POOLS.iter().for_each(|(pool, _)| drop(cluster.ceph(&["osd", "pool", command, pool])));
        for ((pool, _), before) in POOLS.iter().zip(before) {
            cluster.wait(&format!("{command} of {pool}"), |cluster| {
                let now = stamps(cluster, pool, kind);
                now.len() == before.len() && now.iter().zip(&before).all(|(now, before)| now != before)
            });
        }
    }
    for (pool, _) in POOLS {
        let found = cluster.rados(pool, &["list-inconsistent-pg", pool]);
        assert_eq!(found.trim(), "[]", "pool {pool}");
    }
    let health = cluster.ceph(&["health", "detail"]);
    assert!(!health.contains("inconsistent") && !health.contains("SCRUB_ERRORS"), "{health}");
    println!("scrub and deep-scrub of all pools found nothing");
}

fn refusals(cluster: &Cluster) {
    for (words, sentence) in [
        (&["k=1", "m=2"][..], "k=1 must be >= 2"),
        (&["technique=cauchy"], "technique=cauchy is not a valid coding technique"),
        (&["technique=lrc(4,5,1)"], "at most one for each data role"),
    ] {
        let set = ["osd", "erasure-code-profile", "set", "bad", "plugin=gestalt"];
        let said = cluster.refusal(&[&set[..], words].concat());
        assert!(said.contains("EINVAL") && said.contains(sentence), "{said}");
    }
}

/// More chunks than a simple rule allows.
fn wide_pool(cluster: &Cluster) {
    set_profile(cluster, "wide", "plugin=gestalt k=18 m=4", &[]);
    cluster.ceph(&["osd", "pool", "create", "wide", "1", "1", "erasure", "wide"]);
    assert_eq!(cluster.json(&["osd", "crush", "rule", "dump", "wide"])["max_size"].as_u64(), Some(22));
    cluster.ceph(&["osd", "pool", "rm", "wide", "wide", "--yes-i-really-really-mean-it"]);
}

/// The plugin is in the processes, not only in the monitor's word.
fn loaded_by_all(cluster: &Cluster) {
    for osd in cluster.osds() {
        let maps = fs::read_to_string(format!("/proc/{}/maps", osd.id())).expect("a process of ours");
        assert!(maps.contains("libec_gestalt.so"), "OSD {} has not loaded the plugin", osd.id());
    }
}

#[test]
fn real_osds_keep_repair_and_scrub_pools_of_the_plugin() {
    let Some(plugins) = std::env::var_os("GESTALT_CEPH_PLUGINS").map(PathBuf::from) else {
        return println!("skipped: `cargo xtask test ceph` installs Ceph and sets GESTALT_CEPH_PLUGINS");
    };
    let mut cluster = Cluster::start(&plugins, K + M + 1);
    refusals(&cluster);
    wide_pool(&cluster);
    POOLS.iter().for_each(|(name, profile)| make_pool(&cluster, name, profile));
    cluster.wait_until_clean();
    loaded_by_all(&cluster);
    write_all(&cluster);
    bench(&cluster);
    read_all(&cluster, "written");

    for (pool, profile) in EXCHANGED {
        set_profile(&cluster, pool, profile, &["--force"]);
    }
    cluster.restart_osds();
    cluster.wait_until_clean();
    loaded_by_all(&cluster);
    read_all(&cluster, "plugins exchanged");

    let dead: Vec<usize> = (0..M).collect();
    cluster.kill_osds(&dead);
    read_all(&cluster, "two OSDs killed");
    bench_again(&cluster, "two OSDs killed");

    dead.iter().for_each(|osd| cluster.new_osd(*osd));
    cluster.wait("all OSDs up", |cluster| {
        cluster.json(&["osd", "stat"])["num_up_osds"].as_u64() == Some((K + M + 1) as u64)
    });
    cluster.wait_until_clean();
    read_all(&cluster, "recovered");
    scrub_all(&cluster);
    bench_again(&cluster, "recovered");
}
