//! GET, 95/5, 50/50 and SET at 1 KiB, servers alternating.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use testing::local_cluster::binary;

use crate::Arguments;
use crate::servers::Server;

const WORKLOADS: [(&str, &str); 4] = [("c", "GET"), ("b", "95/5"), ("a", "50/50"), ("set", "SET")];

/// The figures of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    kops: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// Runs all workloads on all servers, round by round, and prints the best and the median of the rounds.
pub fn measure(arguments: &Arguments) -> Result<(), String> {
    let servers = [Server::gestalt("1GiB")?, Server::memcached("memcached x3", 3)?, Server::redis()?];
    for server in &servers {
        bench(arguments, server, "load")?;
    }
    let mut found: BTreeMap<(usize, usize), Vec<Figures>> = BTreeMap::new();
    for round in 0..arguments.rounds {
        for (w, (workload, title)) in WORKLOADS.into_iter().enumerate() {
            for (s, server) in servers.iter().enumerate() {
                let figures = bench(arguments, server, workload)?;
                eprintln!("round {} {title:<5} {:<16} {figures:?}", round + 1, server.name);
                found.entry((w, s)).or_default().push(figures);
            }
        }
    }
    print(arguments, &servers, &found);
    Ok(())
}

fn print(arguments: &Arguments, servers: &[Server], found: &BTreeMap<(usize, usize), Vec<Figures>>) {
    println!(
        "\n1 KiB values, {} keys of 24 B, one client thread, {} connections, depth {}: best kops/s of {} | median \
         p50/p99 µs | median server CPU µs/op",
        arguments.keys, arguments.clients, arguments.depth, arguments.rounds
    );
    let names: Vec<&str> = servers.iter().map(|server| server.name).collect();
    println!("| | {} |\n|{}", names.join(" | "), " --- |".repeat(names.len() + 1));
    for (w, (_, title)) in WORKLOADS.into_iter().enumerate() {
        let cells = (0..servers.len()).map(|s| cell(&found[&(w, s)]));
        println!("| {title} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

fn cell(runs: &[Figures]) -> String {
    let best = runs.iter().map(|run| run.kops).fold(0.0, f64::max);
    let median = |pick: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (p50, p99, cpu) = (median(|run| run.p50_us), median(|run| run.p99_us), median(|run| run.cpu_us));
    format!("{best:.1} \\| {p50:.0}/{p99:.0} \\| {cpu:.1}")
}

fn bench(arguments: &Arguments, server: &Server, workload: &str) -> Result<Figures, String> {
    let duration = format!("{}s", arguments.seconds);
    let (keys, clients, depth) =
        (arguments.keys.to_string(), arguments.clients.to_string(), arguments.depth.to_string());
    let mut flags = vec!["--keys", &keys, "--clients", &clients, "--depth", &depth];
    if workload != "load" {
        flags.extend(["--duration", &duration]);
    }
    let report = run_bench(server, workload, &flags)?;
    let number = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    if let Some(errors) = report["errors"].as_object().filter(|errors| !errors.is_empty()) {
        return Err(format!("{} {workload}: errors {errors:?}", server.name));
    }
    Ok(Figures {
        kops: number("/operations_per_second") / 1000.0,
        p50_us: number("/latency_us/p50"),
        p99_us: number("/latency_us/p99"),
        cpu_us: number("/server_cpu_us_per_operation"),
    })
}

/// `gestalt bench` with JSON output: its one report.
pub fn run_bench(server: &Server, workload: &str, flags: &[&str]) -> Result<Value, String> {
    let pids = server.pids().iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut command = Command::new(binary()?);
    command.args(["bench", workload, "-o", "json", "--pids", &pids]).args(&server.flags).args(flags);
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    let mut reports: Vec<Value> =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    reports.pop().ok_or_else(|| "gestalt bench printed no report".to_owned())
}
