//! A workload's figures, as a table row and as JSON.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use load::tally::Tally;
use load::timeline::{Stretch, Timeline};
use serde::Serialize;

use super::args::{BenchArgs, Dialect, Workload};
use crate::output::Table;
use crate::value_sizes::ValueSize;

/// The figures of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Which workload.
    pub workload: &'static str,
    /// Keys in all.
    pub keys: u32,
    /// Bytes of a value, in the mean of those that were read and written where they differ.
    pub value_bytes: u64,
    /// Connections.
    pub clients: u16,
    /// Requests in flight on each.
    pub depth: u16,
    /// When it began, in seconds since 1970.
    pub began_unix_s: f64,
    /// How long it ran.
    pub seconds: f64,
    /// Answered operations.
    pub operations: u64,
    /// Of them, a second.
    pub operations_per_second: f64,
    /// Megabytes (10^6) of the values that were read and written, a second.
    pub megabytes_per_second: f64,
    /// Reads that found nothing.
    pub misses: u64,
    /// Reads whose bytes were wrong; 0 if they were not checked.
    pub wrong_values: u64,
    /// Writes of the native protocol that had no names though they should have: those before a session was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless_writes: Option<u64>,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// Of all operations.
    pub latency_us: Option<Latency>,
    /// Of reads.
    pub get_latency_us: Option<Latency>,
    /// Of writes.
    pub set_latency_us: Option<Latency>,
    /// Of reads with the writes that came of them, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modify_latency_us: Option<Latency>,
    /// How often another client had written between the two.
    pub conflicts: u64,
    /// CPU time of all server processes per operation; none if they are unknown.
    pub server_cpu_us_per_operation: Option<f64>,
    /// CPU time of this process per operation.
    pub client_cpu_us_per_operation: Option<f64>,
    /// What happened when, if `--interval` asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Stretch>,
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half are faster.
    pub p50: f64,
    /// 99 % are faster.
    pub p99: f64,
    /// 99.9 % are faster.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        Some(Self {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1000.0,
            mean: histogram.mean() / 1000.0,
        })
    }
}

/// CPU time spent while a workload ran.
pub struct Cpu {
    /// By the servers, none if they are unknown.
    pub servers: Option<Duration>,
    /// By this process.
    pub client: Duration,
}

impl Report {
    /// From the counts.
    pub fn new(
        args: &BenchArgs,
        workload: Workload,
        tally: &Tally,
        began: SystemTime,
        elapsed: Duration,
        cpu: &Cpu,
    ) -> Self {
        let operations = tally.operations();
        let per_operation =
            |time: Duration| (operations > 0).then(|| time.as_secs_f64() * 1e6 / operations as f64);
        let seconds = elapsed.as_secs_f64();
        Self {
            workload: workload.name(),
            keys: args.keys,
            value_bytes: value_bytes(args, tally),
            clients: args.clients,
            depth: args.depth,
            began_unix_s: began.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
            seconds,
            operations,
            operations_per_second: if seconds > 0.0 { operations as f64 / seconds } else { 0.0 },
            megabytes_per_second: if seconds > 0.0 { tally.bytes as f64 / 1e6 / seconds } else { 0.0 },
            misses: tally.misses,
            wrong_values: tally.wrong,
            nameless_writes: (args.protocol == Dialect::Native && !args.nameless).then_some(tally.nameless),
            errors: tally.errors.clone(),
            latency_us: Latency::of(&tally.all()),
            get_latency_us: Latency::of(&tally.gets),
            set_latency_us: Latency::of(&tally.sets),
            modify_latency_us: Latency::of(&tally.modifies),
            conflicts: tally.conflicts,
            server_cpu_us_per_operation: cpu.servers.and_then(per_operation),
            client_cpu_us_per_operation: per_operation(cpu.client),
            timeline: tally.timeline.as_ref().map_or_else(Vec::new, Timeline::stretches),
        }
    }
}

/// Bytes of a value, or of the mean one.
fn value_bytes(args: &BenchArgs, tally: &Tally) -> u64 {
    match &args.value_size[..] {
        [ValueSize { size, .. }] => size.0,
        _ => tally.bytes / tally.operations().saturating_sub(tally.misses).max(1),
    }
}

/// All reports as a table, errors below it.
pub fn render(reports: &[Report]) -> String {
    let mut table = Table::new(&[
        "workload",
        "ops/s",
        "MB/s",
        "operations",
        "p50 µs",
        "p99 µs",
        "p999 µs",
        "max ms",
        "misses",
        "wrong",
        "errors",
        "server CPU µs/op",
        "client CPU µs/op",
    ]);
    for report in reports {
        table.row(row(report));
    }
    let mut text = table.render();
    for report in reports {
        text.push_str(&stretches(&report.timeline));
        for (kind, count) in &report.errors {
            text.push_str(&format!("{}: {count} x {kind}\n", report.workload));
        }
    }
    text
}

/// A run's stretches as a table of their own; nothing if there are none.
fn stretches(timeline: &[Stretch]) -> String {
    if timeline.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["until s", "ops/s", "failed", "p50 µs", "p99 µs", "max ms"]);
    for stretch in timeline {
        table.row(vec![
            format!("{:.2}", stretch.until_s),
            format!("{:.0}", stretch.operations_per_second),
            stretch.failed.to_string(),
            format!("{:.0}", stretch.p50_us),
            format!("{:.0}", stretch.p99_us),
            format!("{:.1}", stretch.max_us / 1000.0),
        ]);
    }
    table.render()
}

fn row(report: &Report) -> Vec<String> {
    let latency = |pick: fn(&Latency) -> f64, scale: f64| {
        report.latency_us.as_ref().map_or_else(|| "-".to_owned(), |l| format!("{:.1}", pick(l) * scale))
    };
    let cpu = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"));
    vec![
        report.workload.to_owned(),
        format!("{:.0}", report.operations_per_second),
        format!("{:.1}", report.megabytes_per_second),
        report.operations.to_string(),
        latency(|l| l.p50, 1.0),
        latency(|l| l.p99, 1.0),
        latency(|l| l.p999, 1.0),
        latency(|l| l.max, 1e-3),
        report.misses.to_string(),
        report.wrong_values.to_string(),
        report.errors.values().sum::<u64>().to_string(),
        cpu(report.server_cpu_us_per_operation),
        cpu(report.client_cpu_us_per_operation),
    ]
}
