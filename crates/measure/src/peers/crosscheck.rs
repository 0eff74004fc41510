//! The same servers under YCSB, a client that others wrote: what our own client says must not depend on it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use processes::servers::Server;

use crate::peers::arguments::Arguments;
use crate::peers::cells::Workload;
use crate::peers::document::{Crosscheck, CrosscheckFigures, Document};
use crate::peers::side::{Setup, Side};
use crate::spread::Spread;
use crate::ycsb::{self, Extent, Mix, Protocol, Report, Spread as Keys, Target};

const VALUE_BYTES: u32 = 1024;
const RECORDS: u32 = 100_000;
/// Of the client, each with one operation at a time.
const THREADS: u32 = 32;
const MEMORY: u64 = 2 << 30;
/// Of each run; its first seconds are the compiler's.
const TIME: Duration = Duration::from_secs(8);
const ROUNDS: usize = 3;

/// All workloads on all sides, which take turns.
pub fn measure(arguments: &Arguments, document: &mut Document) -> Result<(), String> {
    let sides = arguments.sides();
    let mut servers: BTreeMap<Setup, Server> = BTreeMap::new();
    for &side in &sides {
        if let Entry::Vacant(place) = servers.entry(side.setup()) {
            let server = side.setup().start(MEMORY)?;
            // To a load the mix means nothing.
            refuse_failures(side, &ycsb::load(&target(side, &server), &workload(Mix::C))?)?;
            place.insert(server);
        }
        let name = &servers[&side.setup()].name;
        document.names.insert(side, format!("{name}{}", side.suffix()));
    }
    document.crosschecks.clear();
    for (kind, mix) in
        [(Workload::C, Mix::C), (Workload::B, Mix::B), (Workload::A, Mix::A), (Workload::Set, Mix::Writes)]
    {
        let sides = sides.iter().copied().filter(|side| side.runs(kind));
        let mut runs: BTreeMap<Side, Vec<CrosscheckRun>> = BTreeMap::new();
        for _ in 0..ROUNDS {
            for side in sides.clone() {
                runs.entry(side).or_default().push(run(side, &servers[&side.setup()], mix)?);
            }
        }
        let sides = runs.into_iter().map(|(side, runs)| (side, summary(&runs))).collect();
        let crosscheck = Crosscheck { workload: kind, sides };
        println!("YCSB {}: {crosscheck:?}", kind.title());
        document.crosschecks.push(crosscheck);
    }
    Ok(())
}

struct CrosscheckRun {
    kops: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
}

/// A client that knows no map may ask any node of ours.
fn target(side: Side, server: &Server) -> Target {
    let protocol = match side {
        Side::Valkey | Side::Replicas => Protocol::Redis { wait: 0 },
        Side::Wait => Protocol::Redis { wait: 2 },
        _ => Protocol::Memcached,
    };
    Target { protocol, hosts: server.addresses.clone(), spread: Keys::Any }
}

fn workload(mix: Mix) -> ycsb::Workload {
    ycsb::Workload {
        mix,
        distribution: ycsb::Distribution::Zipfian,
        records: RECORDS,
        value_bytes: VALUE_BYTES,
        threads: THREADS,
        verify: false,
    }
}

fn run(side: Side, server: &Server, mix: Mix) -> Result<CrosscheckRun, String> {
    let before = server.cpu_time();
    let report = ycsb::run(&target(side, server), &workload(mix), Extent::Time(TIME))?;
    let cpu = server.cpu_time() - before;
    refuse_failures(side, &report)?;
    let count: u64 = report.operations.values().map(ycsb::Operation::count).sum();
    // Of the operation of which there are more.
    let usual =
        report.operations.values().max_by_key(|operation| operation.count()).cloned().unwrap_or_default();
    Ok(CrosscheckRun {
        kops: report.ops_per_second / 1000.0,
        p50_us: usual.p50_us,
        p99_us: usual.p99_us,
        cpu_us: cpu.as_secs_f64() * 1e6 / count.max(1) as f64,
    })
}

fn refuse_failures(side: Side, report: &Report) -> Result<(), String> {
    if report.failed() > 0 { Err(format!("{side:?}: YCSB says {:?}", report.operations)) } else { Ok(()) }
}

fn summary(runs: &[CrosscheckRun]) -> CrosscheckFigures {
    let of = |pick: fn(&CrosscheckRun) -> f64| Spread::of(runs.iter().map(pick));
    CrosscheckFigures {
        kops: of(|run| run.kops),
        p50_us: of(|run| run.p50_us),
        p99_us: of(|run| run.p99_us),
        cpu_us: of(|run| run.cpu_us),
    }
}
