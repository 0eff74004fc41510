//! Clusters whose map lives in a real etcd, with the real binary: what is killed, stopped, garbled and refused.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use history::recorder::{Recorder, Seen, Workload};
use nix::sys::signal::Signal;
use processes::etcd_cluster::EtcdCluster;
use processes::etcd_server::{EtcdServer, TlsFiles};
use processes::pages::page;
use processes::served_cluster::{Served, ServedCluster};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;

use crate::support::{PATIENCE, eventually, is_linearizable};

/// Answers that show that a cluster goes on.
const PROGRESS: u64 = 500;

/// Looks again and again, for as long as a reconfiguration would take at most.
#[track_caller]
fn throughout(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while started.elapsed() < time {
        assert!(holds(), "not {what}");
        sleep(Duration::from_millis(50));
    }
}

fn options(etcd: &EtcdServer, nodes: u16, profile: &str, flags: &[&str]) -> Served {
    served(etcd.url(), nodes, profile, flags)
}

fn served(coordinator: String, nodes: u16, profile: &str, flags: &[&str]) -> Served {
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    Served { nodes, founders: nodes, profile: profile.to_owned(), coordinator, flags }
}

fn five(etcd: &EtcdServer) -> ServedCluster {
    let cluster = ServedCluster::start(options(etcd, 5, "rs(3+2)", &[])).unwrap();
    eventually("ready", || is_ready(&cluster));
    cluster
}

fn is_ready(cluster: &ServedCluster) -> bool {
    cluster.statuses().iter().all(|status| status["ready"] == true)
}

fn record(cluster: &ServedCluster) -> Recorder {
    let recorder = Recorder::start(&Workload { clients: 6, ..Workload::default() }, &cluster.all_memcached());
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    recorder
}

/// Stops the clients; what they saw is linearizable, and every key is read once more.
fn judge(recorder: Recorder) -> Seen {
    let seen = recorder.finish_and_read_all(PATIENCE).unwrap();
    is_linearizable(&seen);
    seen
}

fn cluster_status(cluster: &ServedCluster, node: u16) -> Value {
    let (_, out, _) = cluster.gestalt(node, &["status", "-o", "json"]).unwrap();
    serde_json::from_str(&out).unwrap_or(Value::Null)
}

/// Whether every data role is served by a living node, going by `node`.
fn all_are_served(cluster: &ServedCluster, node: u16, dead: &[u16]) -> bool {
    let status = cluster.status(node);
    let groups = status["cluster"]["groups"].as_array().cloned().unwrap_or_default();
    let roles = groups.iter().flat_map(|group| group["roles"].as_array().unwrap());
    let served = |role: &Value| {
        let host = role["host"]["node"].as_u64();
        host.is_some_and(|host| dead.iter().all(|dead| host != u64::from(*dead)))
    };
    !groups.is_empty() && roles.filter(|role| role["kind"] == "data").all(served)
}

/// Whoever presides, as soon as somebody does.
#[track_caller]
fn a_leader(cluster: &ServedCluster) -> u16 {
    let mut leader = None;
    eventually("a leader", || {
        leader = cluster.leader();
        leader.is_some()
    });
    leader.expect("it has been waited for")
}

/// Everything that a reconfiguration would change.
fn views(cluster: &ServedCluster, node: u16) -> Value {
    cluster.status(node)["cluster"]["groups"].clone()
}

#[test]
fn a_cluster_forms_and_outlives_a_node_and_the_leaders_node() {
    let etcd = EtcdServer::start(None).unwrap();
    let mut cluster = five(&etcd);
    let leader = a_leader(&cluster);
    let others: Vec<u16> = (0..5).filter(|node| *node != leader).collect();
    eventually("known to all", || leader_of_all(&cluster) == Some(leader));
    eventually("well", || {
        let (code, out, _) = cluster.gestalt(others[0], &["status"]).unwrap();
        code == 0 && out.contains(&format!("coordinator: node {leader}"))
    });
    // Operators' commands go through any node.
    assert_eq!(cluster.gestalt(others[1], &["repair", "pause"]).unwrap().0, 0);
    assert_eq!(cluster.gestalt(leader, &["repair", "resume"]).unwrap().0, 0);
    eventually("free to stop", || cluster.gestalt(others[2], &["node", "can-stop", "0"]).unwrap().0 == 0);
    let (code, shown, _) = cluster.gestalt(others[3], &["layout", "show", "-o", "json"]).unwrap();
    assert!(code == 0 && shown.contains("\"version\": 2"), "{shown}");
    let keys =
        String::from_utf8(etcd.ctl(&["get", "--prefix", "--keys-only", "/gestalt/"], b"").unwrap()).unwrap();
    for key in ["config", "leader", "nodes/3", "records/map", "records/view/00000004"] {
        assert!(keys.contains(&format!("/gestalt/gestalt/{key}\n")), "{keys}");
    }

    // With a pool go the records of its groups.
    let has_views = |from: u32| {
        let keys =
            etcd.ctl(&["get", "--prefix", "--keys-only", "/gestalt/gestalt/records/view/"], b"").unwrap();
        let keys = String::from_utf8(keys).unwrap();
        keys.lines().filter_map(|key| key.rsplit('/').next()?.parse::<u32>().ok()).any(|group| group >= from)
    };
    let before = views(&cluster, leader).as_array().unwrap().len() as u32;
    let does = |args: &[&str]| cluster.gestalt(others[0], args).unwrap().0 == 0;
    let create = ["pool", "create", "more", "--profile", "rep(2)", "--groups", "3"];
    eventually("made and recorded", || does(&create) || has_views(before));
    assert!(has_views(before));
    eventually("removed", || does(&["pool", "remove", "more", "--yes"]) || !has_views(before));
    eventually("gone from the records", || !has_views(before));

    let recorder = record(&cluster);
    cluster.kill_node(others[0]);
    let took = eventually("served by others", || all_are_served(&cluster, leader, &[others[0]]));
    println!("a killed node's roles are served by others after {took:?}");
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();

    cluster.kill_node(leader);
    let killed = Instant::now();
    eventually("another leader", || cluster.leader().is_some_and(|new| new != leader));
    println!("the killed leader is succeeded after {:?}", killed.elapsed());
    eventually("served by others", || all_are_served(&cluster, others[1], &[others[0], leader]));
    println!("the killed leader's roles are served by others after {:?}", killed.elapsed());
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    judge(recorder);
    assert_eq!(cluster_status(&cluster, others[1])["lost_slots"], serde_json::json!([]));
    // The layout has outlived its coordinator.
    eventually("known", || cluster_status(&cluster, others[1])["layout_version"] == 2);

    // It has lost its memory, and comes back as another process.
    cluster.start_node(others[0], &[]).unwrap();
    eventually("there again", || cluster.status(others[0])["ready"] == true);
    // A leader that is told to stop gives way at once.
    let leader = a_leader(&cluster);
    cluster.signal(leader, Signal::SIGTERM);
    let took = eventually("another leader", || cluster.leader().is_some_and(|new| new != leader));
    println!("a leader that is told to stop is succeeded after {took:?}");
}

#[test]
fn a_leader_that_stood_still_presides_no_more() {
    let etcd = EtcdServer::start(None).unwrap();
    let mut served = options(&etcd, 5, "rs(3+2)", &[]);
    // One of etcd's members is gone: the other one is asked.
    served.coordinator = etcd.url().replace("etcd://", "etcd://127.0.0.1:1,");
    let cluster = ServedCluster::start(served).unwrap();
    eventually("ready", || is_ready(&cluster));
    let recorder = record(&cluster);
    let leader = a_leader(&cluster);
    cluster.signal(leader, Signal::SIGSTOP);
    let others = || cluster.running().into_iter().filter(|node| *node != leader);
    eventually("another leader", || others().any(|node| cluster.status(node)["etcd"]["presides"] == true));
    cluster.signal(leader, Signal::SIGCONT);
    eventually("one leader", || cluster.leader().is_some_and(|new| new != leader));
    throughout("one leader", Duration::from_secs(1), || cluster.leader().is_none_or(|new| new != leader));
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    judge(recorder);
}

#[test]
fn while_etcd_is_away_requests_go_on_and_nothing_is_reconfigured() {
    let mut etcd = EtcdServer::start(None).unwrap();
    let mut cluster = five(&etcd);
    let recorder = record(&cluster);
    let away = |cluster: &ServedCluster| {
        let is_away =
            |status: &Value| status["etcd"]["reachable"] == false && status["etcd"]["presides"] == false;
        cluster.statuses().iter().all(is_away)
    };
    etcd.signal(Signal::SIGSTOP);
    eventually("known to be away", || away(&cluster));
    let (code, out, _) = cluster.gestalt(1, &["status"]).unwrap();
    // Three leases later nobody knows how well it is.
    assert!([0, 3].contains(&code) && out.contains("coordinator: etcd unreachable since "), "{out}");
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    etcd.signal(Signal::SIGCONT);
    let took = eventually("a leader again", || cluster.leader().is_some());
    println!("etcd went on: a leader after {took:?}");

    etcd.kill();
    eventually("known to be away", || away(&cluster));
    assert!(page(cluster.http(2), "/metrics").unwrap().contains("gestalt_etcd_reachable 0"));
    let (code, _, error) = cluster.gestalt(2, &["repair", "pause"]).unwrap();
    assert!(code == 2 && error.contains("etcd"), "{error}");
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    let seen = judge(recorder);
    assert_eq!((seen.refusals.unavailable, seen.unknown), (0, 0), "no request failed");

    let before = views(&cluster, 0);
    cluster.kill_node(4);
    throughout("as it was", Duration::from_secs(3), || views(&cluster, 0) == before);
    etcd.restart().unwrap();
    let took = eventually("served by others", || all_are_served(&cluster, 0, &[4]));
    println!("etcd is back: what was killed meanwhile is served by others after {took:?}");
    assert_eq!(record(&cluster).finish().unknown, 0);
}

/// The leader, if all that run know it, and it is one of them.
fn leader_of_all(cluster: &ServedCluster) -> Option<u16> {
    let leader = cluster.leader()?;
    cluster.statuses().iter().all(|status| status["etcd"]["leader"] == leader).then_some(leader)
}

/// The member that leads an etcd, once there is one: asked a moment later there may be none again.
fn leader_of(etcd: &EtcdCluster) -> usize {
    let mut leader = None;
    eventually("an etcd with a leader", || {
        leader = etcd.leader();
        leader.is_some()
    });
    leader.expect("it was waited for")
}

/// An etcd's members, those that follow first: the order in which nodes are to ask them.
fn followers_first(etcd: &EtcdCluster) -> [usize; 3] {
    let leader = leader_of(etcd);
    [(leader + 1) % 3, (leader + 2) % 3, leader]
}

#[test]
fn a_member_of_etcd_that_is_cut_off_or_stopped_keeps_nothing_from_being_reconfigured() {
    let etcd = EtcdCluster::start(3).unwrap();
    let order = followers_first(&etcd);
    let mut cluster = ServedCluster::start(served(etcd.url(&order), 5, "rs(3+2)", &[])).unwrap();
    eventually("ready", || is_ready(&cluster));
    let recorder = record(&cluster);

    // Every node is attached to the member that is cut off. It goes on to answer, and hears of nothing new.
    let leader = a_leader(&cluster);
    etcd.cut_off(order[0]);
    throughout("as it was", Duration::from_secs(3), || {
        let same = |status: &Value| status["etcd"]["reachable"] == true && status["etcd"]["leader"] == leader;
        cluster.statuses().iter().all(same)
    });
    eventually("cut off", || !etcd.has_leader(order[0]));
    let lost = (leader + 1) % 5;
    cluster.kill_node(lost);
    let took = eventually("served by others", || all_are_served(&cluster, leader, &[lost]));
    println!("with a member cut off, a killed node's roles are served by others after {took:?}");
    assert_eq!(leader_of_all(&cluster), Some(leader));
    assert!(!cluster.log(leader).contains("presides no more"), "{}", cluster.log(leader));
    kill_leader(&mut cluster, leader, &[lost]);

    // Now every node is attached to the next one, which is cut off at the moment of the leader's end.
    etcd.join();
    for node in [lost, leader] {
        cluster.start_node(node, &[]).unwrap();
    }
    let is_whole = |cluster: &ServedCluster| {
        let leader = leader_of_all(cluster).filter(|_| is_ready(cluster));
        leader.is_some_and(|leader| cluster_status(cluster, leader)["health"] == "ok")
    };
    eventually("whole", || is_whole(&cluster));
    let leader = a_leader(&cluster);
    etcd.cut_off(order[1]);
    kill_leader(&mut cluster, leader, &[]);

    // The one that leads the others stands still: until they have another one, nobody can reconfigure.
    etcd.join();
    etcd.signal(leader_of(&etcd), Signal::SIGSTOP);
    cluster.start_node(leader, &[]).unwrap();
    let took = eventually("ready", || is_ready(&cluster) && leader_of_all(&cluster).is_some());
    println!("with etcd's leader stopped, a node is in again after {took:?}");
    judge(recorder);
    let presides = a_leader(&cluster);
    assert_eq!(cluster_status(&cluster, presides)["lost_slots"], serde_json::json!([]));
}

/// Kills the leader: another one is elected, all others know it, and it sees to what was lost.
fn kill_leader(cluster: &mut ServedCluster, leader: u16, dead: &[u16]) {
    cluster.kill_node(leader);
    let killed = Instant::now();
    eventually("another leader", || cluster.leader().is_some());
    println!("with a member cut off, the killed leader is succeeded after {:?}", killed.elapsed());
    eventually("known to all", || leader_of_all(cluster).is_some());
    println!("which all nodes know after {:?}", killed.elapsed());
    let successor = cluster.running()[0];
    eventually("served by others", || all_are_served(cluster, successor, &[&[leader], dead].concat()));
}

#[test]
fn a_record_that_may_or_may_not_have_been_written_does_no_harm() {
    let etcd = EtcdServer::start(None).unwrap();
    let mut cluster = five(&etcd);
    let recorder = record(&cluster);
    let leader = a_leader(&cluster);
    let killed = (leader + 1) % 5;
    // The leader asks for the records of what it decides about the loss, and hears nothing; etcd does it when it goes on.
    etcd.signal(Signal::SIGSTOP);
    cluster.kill_node(killed);
    eventually("given up", || cluster.status(leader)["etcd"]["presides"] == false);
    eventually("said so", || {
        let log = cluster.log(leader);
        log.contains("its records cannot be written") || log.contains("lease")
    });
    etcd.signal(Signal::SIGCONT);
    eventually("served by others", || all_are_served(&cluster, leader, &[killed]));
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    judge(recorder);
    assert_eq!(cluster_status(&cluster, leader)["lost_slots"], serde_json::json!([]));
}

#[test]
fn garbage_over_a_record_is_reported_and_nobody_presides_over_it() {
    let etcd = EtcdServer::start(None).unwrap();
    let cluster = five(&etcd);
    let recorder = record(&cluster);
    let key = "/gestalt/gestalt/records/view/00000002";
    let before = views(&cluster, 0);
    let get = |key: &str| {
        let mut value = etcd.ctl(&["get", "--print-value-only", key], b"").unwrap();
        assert_eq!(value.pop(), Some(b'\n'));
        value
    };
    // Bytes cannot be given as an argument; "--" keeps a value from being a flag.
    let put = |key: &str, value: &[u8]| drop(etcd.ctl(&["put", "--", key], value).unwrap());
    let whole = get(key);
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (value, why) in [
        (b"garbage".as_slice(), "no record"),
        (&flipped, "checksum"),
        (&get("/gestalt/gestalt/records/view/00000001"), "record of"),
    ] {
        put(key, value);
        eventually("reported", || {
            let told = |status: &Value| {
                let etcd = &status["etcd"];
                etcd["presides"] == false
                    && etcd["bad_key"] == key
                    && etcd["trouble"].as_str().unwrap_or("").contains(why)
            };
            cluster.statuses().iter().all(told)
        });
        eventually("shown", || {
            let (_, out, _) = cluster.gestalt(3, &["status"]).unwrap();
            out.contains(key) && out.contains(why)
        });
        throughout("nobody presides", Duration::from_secs(1), || {
            cluster.leader().is_none() && views(&cluster, 0) == before
        });
        put(key, &whole);
        eventually("a leader again", || cluster.leader().is_some());
    }
    eventually("named in the log", || (0..5).any(|node| cluster.log(node).contains(key)));
    // A record that is missing is as bad as one that is wrong.
    etcd.ctl(&["del", key], b"").unwrap();
    eventually("reported", || {
        let trouble =
            |status: &Value| status["etcd"]["trouble"].as_str().unwrap_or("").contains("is missing");
        cluster.statuses().iter().all(trouble) && cluster.leader().is_none()
    });
    put(key, &whole);
    eventually("a leader again", || cluster.leader().is_some());
    // An etcd that has lost everything gets no second cluster from nodes that serve one.
    etcd.ctl(&["del", "--prefix", "/gestalt/gestalt/"], b"").unwrap();
    eventually("reported", || {
        cluster.statuses().iter().all(|status| status["etcd"]["bad_key"] == "/gestalt/gestalt/config")
    });
    throughout("nobody presides", Duration::from_secs(1), || {
        cluster.leader().is_none() && views(&cluster, 0) == before
    });
    recorder.wait_for(PROGRESS, PATIENCE).unwrap();
    let seen = judge(recorder);
    assert_eq!((seen.refusals.unavailable, seen.unknown), (0, 0), "no request failed");
}

#[test]
fn certificates_and_a_password_are_needed_and_are_enough() {
    let dir = tempfile::tempdir().unwrap();
    let files = certificates(dir.path(), "own");
    let mut etcd = EtcdServer::start(Some(files.clone())).unwrap();
    for args in [
        &["user", "add", "root:top"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "gestalt:hush"],
        &["role", "add", "gestalt"],
        &["role", "grant-permission", "gestalt", "readwrite", "--prefix=true", "/gestalt/mine/"],
        &["user", "grant-role", "gestalt", "gestalt"],
        &["auth", "enable"],
    ] {
        let _ = etcd.ctl(&["role", "add", "root"], b"");
        etcd.ctl(args, b"").unwrap();
    }
    etcd.log_in_as("root:top");
    let password = dir.path().join("password");
    std::fs::write(&password, "hush\n").unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let flags = |ca: &Path, password: &Path| {
        let files = [path(ca), path(&files.certificate), path(&files.key), path(password)];
        let [ca, certificate, key, password] = files;
        ["--etcd-ca", &ca, "--etcd-cert", &certificate, "--etcd-key", &key, "--etcd-user", "gestalt"]
            .iter()
            .map(|flag| (*flag).to_owned())
            .chain(["--etcd-password-file".to_owned(), password, "--cluster".to_owned(), "mine".to_owned()])
            .collect::<Vec<String>>()
    };
    let mut served = options(&etcd, 3, "rs(2+1)", &[]);
    served.flags = flags(&files.ca, &password);
    let cluster = ServedCluster::start(served.clone()).unwrap();
    eventually("ready", || is_ready(&cluster));
    assert_eq!(cluster.gestalt(0, &["kv", "set", "k", "v"]).unwrap().0, 0);
    drop(cluster);

    // Another authority is not trusted: the node waits, and says so.
    let other = certificates(dir.path(), "other");
    served.nodes = 1;
    served.flags = flags(&other.ca, &password);
    let cluster = ServedCluster::start(served.clone()).unwrap();
    eventually("refused", || {
        let status = cluster.status(0);
        status["etcd"]["reachable"] == false
            && status["etcd"]["trouble"].as_str().unwrap_or("").contains("certificate")
    });
    drop(cluster);

    std::fs::write(&password, "hash").unwrap();
    served.flags = flags(&files.ca, &password);
    let mut cluster = ServedCluster::start(served).unwrap();
    assert_eq!(cluster.ended(0, PATIENCE).unwrap().code(), Some(2));
    assert!(cluster.log(0).contains("etcd refuses the login"), "{}", cluster.log(0));
}

/// An authority called `name`, and a certificate of its for this machine.
fn certificates(dir: &Path, name: &str) -> TlsFiles {
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, name);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let write = |what: &str, text: String| {
        let path = dir.join(format!("{name}-{what}.pem"));
        std::fs::write(&path, text).unwrap();
        path
    };
    TlsFiles {
        ca: write("ca", authority.pem()),
        certificate: write("certificate", certificate.pem()),
        key: write("key", key.serialize_pem()),
    }
}

#[test]
fn a_node_that_is_started_again_within_its_lease_comes_in_and_a_second_one_beside_it_does_not() {
    let etcd = EtcdServer::start(None).unwrap();
    let mut cluster = five(&etcd);
    let leader = a_leader(&cluster);
    let other = (leader + 1) % 5;
    for node in [other, leader] {
        cluster.kill_node(node);
        cluster.start_node(node, &[]).unwrap();
        eventually("waiting", || cluster.log(node).contains("is already here as another process"));
        let took = eventually("in again", || cluster.status(node)["ready"] == true);
        println!("in again after {took:?}");
        eventually("all ready", || is_ready(&cluster));
    }
    let key = |node: u16| {
        let value = etcd.ctl(&["get", "--print-value-only", &format!("/gestalt/gestalt/nodes/{node}")], b"");
        String::from_utf8(value.unwrap()).unwrap()
    };
    let is_of = |cluster: &ServedCluster, node: u16| {
        key(node).contains(&cluster.status(node)["node"]["incarnation"].to_string())
    };
    eventually("keys of the new processes", || (0..5).all(|node| is_of(&cluster, node)));

    let mut second = ServedCluster::start(options(&etcd, 5, "rs(3+2)", &[])).unwrap();
    eventually("waiting", || (0..5).all(|node| second.log(node).contains("waiting until its lease")));
    second.signal(4, Signal::SIGTERM);
    assert_eq!(second.ended(4, PATIENCE).unwrap().code(), Some(0), "{}", second.log(4));
    for node in 0..4 {
        assert_eq!(second.ended(node, PATIENCE).unwrap().code(), Some(2), "{}", second.log(node));
        assert!(second.log(node).contains("and that one lives: stop it first"), "{}", second.log(node));
    }
    assert!(is_ready(&cluster) && cluster.running().len() == 5);
    assert!((0..5).all(|node| is_of(&cluster, node)), "nor has it taken a key");
}

#[test]
fn a_node_waits_for_etcd_and_one_that_does_not_fit_is_refused() {
    let mut etcd = EtcdServer::prepare(None).unwrap();
    let mut cluster = ServedCluster::start(options(&etcd, 3, "rs(2+1)", &[])).unwrap();
    eventually("waiting", || {
        cluster
            .statuses()
            .iter()
            .all(|status| status["etcd"]["reachable"] == false && status["ready"] == false)
    });
    eventually("said so", || cluster.log(0).contains("etcd unreachable"));
    etcd.restart().unwrap();
    eventually("ready", || is_ready(&cluster));

    for (flags, complaint) in [
        (["--profile", "rs(1+2)"], "this node has --profile rs(1+2), the cluster has rs(2+1)"),
        (["--groups", "17"], "this node has --groups 17, the cluster has 42"),
        (["--lease", "700ms"], "this node has --lease 700ms, the cluster has 1s"),
    ] {
        cluster.kill_node(2);
        // What is given twice is refused, so the node's own flag has to be the only one.
        let mut other = options(&etcd, 3, "rs(2+1)", &[]);
        if flags[0] == "--profile" {
            other.profile = flags[1].to_owned();
        } else {
            other.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        }
        let mut stranger = ServedCluster::start(Served { nodes: 3, founders: 3, ..other }).unwrap();
        assert_eq!(stranger.ended(2, PATIENCE).unwrap().code(), Some(2));
        assert!(stranger.log(2).contains(complaint), "{}", stranger.log(2));
    }

    let mut wrong = options(&etcd, 1, "none", &[]);
    for (coordinator, complaint) in [
        ("etcd://nohost", "write etcd://host:port"),
        ("zookeeper://a:1", "write embedded://host:port or etcd://"),
    ] {
        wrong.coordinator = coordinator.to_owned();
        let mut cluster = ServedCluster::start(wrong.clone()).unwrap();
        assert_eq!(cluster.ended(0, PATIENCE).unwrap().code(), Some(1));
        assert!(cluster.log(0).contains(complaint), "{}", cluster.log(0));
    }
}

#[test]
fn the_coordinator_is_found_where_its_node_says_and_nodes_beyond_the_first_join() {
    let etcd = EtcdServer::start(None).unwrap();
    let told = ["--peer", "0.0.0.0:0", "--advertise", "127.0.0.2", "--advertise-listen", "127.0.0.3:0"];
    let cluster =
        ServedCluster::start(Served { founders: 3, ..options(&etcd, 5, "rs(2+1)", &told) }).unwrap();
    eventually("ready", || is_ready(&cluster));
    let leader = etcd.ctl(&["get", "/gestalt/gestalt/leader", "--print-value-only"], b"").unwrap();
    let leader: Value = serde_json::from_slice(&leader).unwrap();
    assert!(leader["address"].as_str().unwrap().starts_with("127.0.0.3:"), "{leader}");
    eventually("all five", || {
        let status = cluster_status(&cluster, 0);
        status["health"] == "ok" && status["nodes"].as_array().is_some_and(|nodes| nodes.len() == 5)
    });
}
