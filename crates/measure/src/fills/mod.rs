//! `cargo xtask bench fills`: a node is lost, and another one gets the chunks of long values that it had, over links of limited
//! bandwidth, by each scheme; or a client reads parts of what is lost (`parts`), or writes values (`uploads`). Real processes in network namespaces; needs root, `ip` and `tc`.

mod answers;
mod machines;
mod parts;
mod rows;
mod uploads;

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::code;
use answers::answers;
use clap::Parser;
use machines::{Cluster, Plan};
use rows::{Filled, Trouble, line};

/// How chunks are made, and how the steps of graphs work.
const WAYS: [(&str, &str); 11] = [
    ("cells", "coherent"),
    ("star", "coherent"),
    ("lrc", "coherent"),
    ("ppr", "coherent"),
    ("chain", "coherent"),
    ("tri", "coherent"),
    ("auto", "coherent"),
    ("star", "incoherent"),
    ("ppr", "incoherent"),
    ("chain", "incoherent"),
    ("tri", "incoherent"),
];
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// How often it is looked whether a fill has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A holder is filled over shaped links, as a page.
#[derive(Parser, Debug)]
#[command(name = "fills", after_help = "Example: fills --codes 'rs(6+3)' --mbit 100 --trouble slow --runs 3")]
struct Arguments {
    /// Codes
    #[arg(long, value_delimiter = ';', default_value = "rs(3+2);rs(6+3)")]
    codes: Vec<String>,
    /// Bandwidths of each node's link, in Mbit/s
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    mbit: Vec<u32>,
    /// What is wrong with one of the nodes whose chunks are needed
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Trouble::None, Trouble::Slow, Trouble::Busy])]
    trouble: Vec<Trouble>,
    /// Chunks of 1 MiB that the node gets at 100 Mbit/s, or as many bytes in others; twice as many at ten times that
    #[arg(long, default_value_t = 32)]
    chunks: u32,
    /// Lengths of chunks, in KiB
    #[arg(long, value_delimiter = ',', default_values_t = [1024])]
    chunk: Vec<u32>,
    /// Ways: as --repair-by says, or with /coherent or /incoherent behind; all of them if not given
    #[arg(long, value_delimiter = ',')]
    ways: Vec<String>,
    /// Runs of each, of which the median counts; ways take turns
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// A client reads parts of a lost chunk, and nobody is filled
    #[arg(long)]
    parts: bool,
    /// Values are written, and nobody is filled
    #[arg(long, conflicts_with = "parts")]
    uploads: bool,
    /// Where the page goes. What is not measured is kept from the last time
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,
}

/// What one run has taken.
struct Run {
    bytes: u64,
    seconds: f64,
    sent_bytes: u64,
    cpu_seconds: f64,
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    crate::ended("fills", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.parts {
        return parts::run(arguments);
    }
    if arguments.uploads {
        return uploads::run(arguments);
    }
    let mut all = open(&arguments.out.join("fills.json"))?;
    for scene in scenes(arguments) {
        for filled in measure(arguments, &scene)? {
            println!("{}", line(&filled));
            keep(&mut all, filled);
        }
        // After each of them: the next one may fail.
        save(arguments, &all)?;
    }
    Ok(())
}

/// What ways take turns in.
struct Scene {
    code: String,
    mbit: u32,
    trouble: Trouble,
    /// In KiB.
    chunk: u32,
}

fn scenes(arguments: &Arguments) -> Vec<Scene> {
    let mut scenes = Vec::new();
    for code in &arguments.codes {
        for mbit in &arguments.mbit {
            for trouble in &arguments.trouble {
                let scene = |chunk| Scene { code: code.clone(), mbit: *mbit, trouble: *trouble, chunk };
                scenes.extend(arguments.chunk.iter().map(|chunk| scene(*chunk)));
            }
        }
    }
    scenes
}

/// What was measured the last time.
fn open(path: &Path) -> Result<Vec<Filled>, String> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// In the place of the same that was measured before, if it was.
fn keep(all: &mut Vec<Filled>, filled: Filled) {
    match all.iter_mut().find(|known| known.is_same_as(&filled)) {
        Some(known) => *known = filled,
        None => all.push(filled),
    }
}

fn save(arguments: &Arguments, all: &[Filled]) -> Result<(), String> {
    let write = |name: &str, text: String| {
        let path = arguments.out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write("fills.json", serde_json::to_string_pretty(all).map_err(|error| error.to_string())?)?;
    write("fills.md", page(all))
}

/// All ways, which take turns.
fn measure(arguments: &Arguments, scene: &Scene) -> Result<Vec<Filled>, String> {
    let Scene { code: name, mbit, trouble, chunk } = scene;
    let code = code(name)?;
    let ways: Vec<_> = WAYS.into_iter().filter(|way| arguments.wants(*way)).collect();
    let mut runs: Vec<Vec<Run>> = ways.iter().map(|_| Vec::new()).collect();
    let bytes = arguments.chunks as usize * MIB * if *mbit >= 1000 { 2 } else { 1 };
    let (nodes, chunk_len) = (code.n() as u16 + 1, *chunk as usize * KIB);
    for _ in 0..arguments.runs {
        for ((way, execution), runs) in ways.iter().zip(&mut runs) {
            let flags = vec![format!("--repair-by={way}"), format!("--graphs={execution}")];
            let plan =
                Plan { trouble: *trouble, flags, stored: bytes, ..Plan::new(name, nodes, *mbit, *chunk) };
            runs.push(fill(&plan, code.k(), chunk_len, (bytes / chunk_len) as u32)?);
        }
    }
    let filled = |((way, execution), runs): ((&str, &str), Vec<Run>)| Filled {
        code: name.clone(),
        mbit: *mbit,
        trouble: *trouble,
        chunk: *chunk,
        runs: runs.len(),
        way: way.to_owned(),
        execution: execution.to_owned(),
        bytes: middle(&runs, |run| run.bytes as f64)[0] as u64,
        seconds: middle(&runs, |run| run.seconds),
        sent_bytes: middle(&runs, |run| run.sent_bytes as f64)[0] as u64,
        cpu_seconds: middle(&runs, |run| run.cpu_seconds)[0],
    };
    Ok(ways.into_iter().zip(runs).map(filled).collect())
}

/// The median of what runs have taken, the least and the most.
fn middle<T>(runs: &[T], of: impl Fn(&T) -> f64) -> [f64; 3] {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

/// Values of one stripe each; then a node is killed, and what it held is made anew at the one that is to spare.
fn fill(plan: &Plan, k: usize, chunk_len: usize, chunks: u32) -> Result<Run, String> {
    const HERE: &str = "gestalt_object_chunks";
    const LACKING: &str = "gestalt_object_lacking_chunks";
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut cluster = Cluster::start(plan, dir.path())?;
    cluster.store(chunks, k * chunk_len)?;
    let of_role = u64::from(chunks);
    let all = of_role * u64::from(plan.nodes - 1);
    cluster.wait_for("chunks at all nodes", |cluster| cluster.metric(HERE) == all)?;
    cluster.shape_nodes()?;
    let has = |node: u16, count: u64| cluster.metric_of(node, HERE) == Some(count);
    // Not the one that clients write to.
    let mut holders = (1..plan.nodes).filter(|node| has(*node, of_role));
    let (lost, troubled) =
        holders.next().zip(holders.next()).ok_or("no two nodes have a chunk of each value")?;
    let spare = (0..plan.nodes).find(|node| has(*node, 0)).ok_or("no node is to spare")?;
    let here = |cluster: &Cluster| cluster.metric_of(spare, HERE).unwrap_or(0);
    let _busy = cluster.trouble(troubled)?;
    cluster.kill(lost);
    // From when it is known what is lacking: a graph makes many chunks, and they are there at once when it ends.
    let has_begun =
        |cluster: &Cluster| cluster.metric_of(spare, LACKING).is_some_and(|it| it > 0) || here(cluster) > 0;
    cluster.wait_looking_every(LOOK, "a fill that begins", has_begun)?;
    let sent = || cluster.metric("gestalt_peer_sent_bytes_total");
    // Those that are there by now do not count: when they were asked for nobody has seen.
    let (first, start) = (here(&cluster), Instant::now());
    let (sent_before, cpu_before) = (sent(), cluster.cpu_seconds());
    cluster.wait_looking_every(LOOK, "fill that ends", |cluster| here(cluster) == of_role)?;
    let seconds = start.elapsed().as_secs_f64();
    let (sent_bytes, cpu_seconds) = (sent() - sent_before, cluster.cpu_seconds() - cpu_before);
    Ok(Run { bytes: (of_role - first) * chunk_len as u64, seconds, sent_bytes, cpu_seconds })
}

impl Arguments {
    fn wants(&self, (way, execution): (&str, &str)) -> bool {
        let both = format!("{way}/{execution}");
        self.ways.is_empty() || self.ways.iter().any(|it| *it == way || *it == both)
    }
}

fn page(all: &[Filled]) -> String {
    let mut page = "# A holder that is filled over shaped links\n\n\
         Real processes, one worker each, in network namespaces of one machine of two cores; the link of each node is shaped in both directions\n\
         (`tc tbf`), once what is stored has been written. Values of one stripe each are written; then one node is killed, and the one that is to spare gets its chunk of each value\n\
         ([graphs.md](../graphs.md), \"In a server\"). `cargo xtask bench fills` runs it; medians, ways take turns.\n\n\
         *Trouble*: of those that have chunks one has, from the loss on, a link of a quarter of the bandwidth, or it stands still for 10 ms of each 20 ms.\n\
         *Of the link*: bytes that were made, of what the downlink of the node carries in that time: a star of `k` cannot do more than `1/k`, a chain\n\
         up to 1. *Sent*: bytes that all nodes have sent each other, for each byte that was made. *CPU*: processor time of all nodes, milliseconds\n\
         for each MiB that was made.\n\n"
        .to_owned();
    page.push_str(&answers(all));
    page.push_str(
        "Rows stay until they are measured anew: they are of builds of several days, with other work beside them, which shows most at 1 Gbit/s, where\n\
         processors are busy. Those of 12 MiB at 100 Mbit/s are of values that were written over the shaped links already.\n\n",
    );
    page.push_str(
        "| code | chunk, KiB | Mbit/s | trouble | way | MiB made | seconds (least to most) | MiB/s | of the link | sent | CPU | runs |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for filled in all {
        let _ = writeln!(page, "{} {} |", line(filled), filled.runs);
    }
    page
}
