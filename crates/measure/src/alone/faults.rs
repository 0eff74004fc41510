//! The longest pause that any client sees when a node is lost.

use std::time::Duration;

use history::recorder::{Recorder, Workload};
use nix::sys::signal::Signal;
use processes::local_cluster::{LocalCluster, Options};

/// Clients, enough that every data role has some at any moment.
const CLIENTS: u64 = 48;

/// Kills a node, and in another cluster stops one, while clients read and write through the others.
pub fn pause() -> Result<(), String> {
    println!(
        "\nLongest wait of any of {CLIENTS} clients (all through surviving nodes, lease 1 s), five tries each:"
    );
    for (what, signal) in
        [("node killed (its parent sees it)", Signal::SIGKILL), ("node stopped", Signal::SIGSTOP)]
    {
        let mut waits = Vec::new();
        for node in 0..5 {
            waits.push(longest_wait(node, signal)?);
        }
        println!("{what}: {waits:.0?}");
    }
    Ok(())
}

fn longest_wait(node: u16, signal: Signal) -> Result<Duration, String> {
    let cluster = LocalCluster::start(&Options::default())?;
    let survivors: Vec<_> =
        (0..5).filter(|&other| other != node).map(|other| cluster.memcached(other)).collect();
    let workload = Workload { clients: CLIENTS, keys: 2000, max_value_bytes: 1024, ..Workload::default() };
    let recorder = Recorder::start(&workload, &survivors);
    // Until all clients are well under way.
    recorder.wait_for(20_000, Duration::from_secs(60))?;
    cluster.signal(node, signal);
    recorder.wait_for(40_000, Duration::from_secs(60))?;
    let longest = recorder.finish().longest_wait;
    cluster.signal(node, Signal::SIGCONT);
    Ok(longest)
}
