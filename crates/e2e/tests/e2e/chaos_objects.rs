//! Values of one byte to 64 MiB under chaos: real processes killed, stopped and restarted while clients write, read, append to, touch
//! and delete them, every other one by the native protocol, now and then break off in the midst of one, and write down what they see.
//!
//! Each word of a value says which value it is of, and where: one that is put together of two, or is half of one, has no name that
//! anybody has written, and the history is not linearizable.
//!
//! That nothing is left of what was never committed takes two ask intervals to show: `cargo run -p chaos -- --long 64MiB` waits for that.

use std::thread::sleep;
use std::time::Duration;

use history::recorder::{Mix, Recorder, Workload};
use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options};

use crate::support::{PATIENCE, is_linearizable, run, within};

/// Long: what the clients send and read keeps all processors busy, and a node that gets none for half a lease counts as one more loss.
const LEASE: Duration = Duration::from_secs(2);
const LONGEST_BYTES: usize = 64 << 20;
/// Answers that show that a cluster goes on.
const PROGRESS: u64 = 50;
const READ_LIMIT: Duration = Duration::from_secs(30);

fn start() -> LocalCluster {
    let mut options = Options { lease: LEASE, memory: "512MiB".to_owned(), ..Options::default() };
    options.flags.extend(["--restart", "always"].map(str::to_owned));
    LocalCluster::start(&options).expect("a cluster starts")
}

fn set_policy(cluster: &LocalCluster, striped_above: &str, chunk: &str, layout: &str) {
    let cut = ["--striped-above", striped_above, "--chunk", chunk, "--layout", layout];
    let args = [&["namespace", "set", "default"][..], &cut].concat();
    assert_eq!(run(cluster, &args).0, 0);
}

fn is_whole(cluster: &LocalCluster) -> bool {
    let (status, ..) = cluster.gestalt(&["status", "--http", "{http}"]).expect("status runs");
    status.code() == Some(0)
}

/// Kills these nodes once nothing is missing any more: a busy node may have been taken for lost before.
fn kill_of_whole(cluster: &LocalCluster, nodes: &[u16]) {
    within("whole", 2 * PATIENCE, || is_whole(cluster));
    cluster.kill_nodes(nodes);
}

fn goes_on(recorder: &Recorder, when: &str) {
    recorder.wait_for(PROGRESS, PATIENCE).unwrap_or_else(|why| panic!("{when}: {why}"));
}

#[test]
fn long_values_are_whole_whatever_becomes_of_the_nodes() {
    let cluster = start();
    set_policy(&cluster, "64KiB", "1MiB", "wide");
    let workload = Workload {
        clients: 6,
        native: cluster.all_native().expect("the coordinator says it"),
        keys: 16,
        max_value_bytes: LONGEST_BYTES,
        pause: Duration::from_millis(20),
        mix: Mix::Long,
        hears_trouble: true,
        ..Workload::default()
    };
    let recorder = Recorder::start(&workload, &cluster.all_memcached());
    goes_on(&recorder, "a healthy cluster");
    set_policy(&cluster, "64KiB", "1MiB", "spread");
    goes_on(&recorder, "another layout");
    kill_of_whole(&cluster, &[0, 3]);
    goes_on(&recorder, "two nodes are killed at once");
    within("whole again", 2 * PATIENCE, || is_whole(&cluster));
    // Everything is in chunks from now on, of another length, and with a copy.
    set_policy(&cluster, "always", "64KiB", "copy");
    assert!(recorder.flusher().flush(PATIENCE), "flushed");
    cluster.signal(1, Signal::SIGSTOP);
    sleep(2 * LEASE);
    goes_on(&recorder, "a node is stopped");
    cluster.kill_nodes(&[4]);
    goes_on(&recorder, "another one is killed");
    cluster.signal(1, Signal::SIGCONT);
    within("whole again", 2 * PATIENCE, || is_whole(&cluster));
    goes_on(&recorder, "all are back");
    let seen = recorder.finish_and_read_all(READ_LIMIT).expect("every key is answered");
    assert_eq!(seen.refusals.lost, 0, "no more were lost than the code makes up for");
    is_linearizable(&seen);
    assert_eq!(cluster.pids().len(), 5);
}
