//! YCSB, a load generator that others wrote, as a cross-check of our own: its client from Maven Central, with our bindings
//! to memcached's text protocol and to RESP (`ycsb/`).
//!
//! Loads and workloads run in a Java process of their own; what it prints is the [`Report`].

mod report;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use processes::others::{ensure_program, others_dir, outputs, show};

pub use report::{Operation, Report};

/// The servers, and how they are spoken to.
#[derive(Clone, Debug)]
pub struct Target {
    /// How.
    pub protocol: Protocol,
    /// Where.
    pub hosts: Vec<SocketAddr>,
    /// Who has which key.
    pub spread: Spread,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// memcached's text protocol, through xmemcached.
    Memcached,
    /// RESP, through Jedis.
    Redis {
        /// Each SET is followed by a WAIT for so many replicas, in one write with it; 0 = by none.
        wait: u32,
    },
}

/// What several hosts are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Any of them answers for every key: each thread uses one, in turn.
    Any,
    /// A key belongs to one of them: the client shards, each thread with a connection to every host.
    Sharded,
}

/// What is done, to which records.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Which operations.
    pub mix: Mix,
    /// Which keys.
    pub distribution: Distribution,
    /// Keys.
    pub records: u32,
    /// Bytes of each value.
    pub value_bytes: u32,
    /// Threads of the client, each with one operation at a time.
    pub threads: u32,
    /// Whether values follow from their keys and every read is compared; if so, when loading too.
    pub verify: bool,
}

/// Shares of reads and updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// YCSB's A: half and half.
    A,
    /// B: 95 % reads.
    B,
    /// C: reads alone.
    C,
    /// Updates alone.
    Writes,
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// A few are hot: YCSB's scrambled Zipf distribution with 0.99.
    Zipfian,
}

/// How long a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many operations of all threads together; at least as many as there are threads.
    Operations(u32),
    /// Whole seconds, at least 1.
    Time(Duration),
}

/// How the lines begin in which our bindings and YCSB say what went wrong, and how many of them are passed on.
const COMPLAINTS: [&str; 2] = ["failed: ", "site.ycsb.DBException: "];
const MOST_COMPLAINTS: usize = 5;
/// Where only the time is bounded: no number at all would be none.
const MOST_OPERATIONS: i32 = i32::MAX;

/// Writes all records of `workload`.
///
/// # Errors
/// One line if YCSB cannot be built or run, or says nothing of what it did. What failed at the servers is in the report.
pub fn load(target: &Target, workload: &Workload) -> Result<Report, String> {
    // YCSB wants the number of operations here, too, and does none of them.
    client(target, workload, &["-load", "-p", "operationcount=0"])
}

/// Runs `workload` on what was loaded.
///
/// # Errors
/// As [`load`].
pub fn run(target: &Target, workload: &Workload, extent: Extent) -> Result<Report, String> {
    let bound = match extent {
        Extent::Operations(count) => vec![format!("operationcount={count}")],
        Extent::Time(time) => {
            let seconds = time.as_secs().max(1);
            vec![format!("operationcount={MOST_OPERATIONS}"), format!("maxexecutiontime={seconds}")]
        }
    };
    let mut args = vec!["-t"];
    bound.iter().for_each(|property| args.extend(["-p", property]));
    client(target, workload, &args)
}

fn client(target: &Target, workload: &Workload, phase: &[&str]) -> Result<Report, String> {
    let dir = BUILT.as_ref()?;
    let classes = format!("{0}/ycsb.jar:{0}/lib/*", dir.display());
    let mut java = Command::new("java");
    java.args(["-cp", &classes, "site.ycsb.Client"]).args(phase);
    java.args(["-threads", &workload.threads.to_string()]);
    for (name, value) in target.properties().into_iter().chain(workload.properties()) {
        java.args(["-p", &format!("{name}={value}")]);
    }
    let (printed, complaints) = outputs(&mut java)?;
    let told = complaints.lines().filter(|line| COMPLAINTS.iter().any(|begin| line.starts_with(begin)));
    told.take(MOST_COMPLAINTS).for_each(|line| println!("{line}"));
    Report::parse(&printed)
}

impl Target {
    fn properties(&self) -> Vec<(&'static str, String)> {
        let (class, wait) = match self.protocol {
            Protocol::Memcached => ("gestalt.ycsb.MemcachedDb", 0),
            Protocol::Redis { wait } => ("gestalt.ycsb.RedisDb", wait),
        };
        let hosts: Vec<String> = self.hosts.iter().map(SocketAddr::to_string).collect();
        vec![
            ("db", class.to_owned()),
            ("hosts", hosts.join(",")),
            ("any", (self.spread == Spread::Any).to_string()),
            ("wait", wait.to_string()),
        ]
    }
}

impl Workload {
    fn properties(&self) -> Vec<(&'static str, String)> {
        let reads = match self.mix {
            Mix::A => 0.5,
            Mix::B => 0.95,
            Mix::C => 1.0,
            Mix::Writes => 0.0,
        };
        let distribution = match self.distribution {
            Distribution::Uniform => "uniform",
            Distribution::Zipfian => "zipfian",
        };
        vec![
            ("workload", "site.ycsb.workloads.CoreWorkload".to_owned()),
            ("recordcount", self.records.to_string()),
            ("fieldcount", "1".to_owned()),
            ("fieldlength", self.value_bytes.to_string()),
            ("readproportion", reads.to_string()),
            ("updateproportion", (1.0 - reads).to_string()),
            ("requestdistribution", distribution.to_owned()),
            ("dataintegrity", self.verify.to_string()),
            ("hdrhistogram.percentiles", report::PERCENTILES.to_owned()),
        ]
    }
}

/// The directory with YCSB and our bindings, built once a process.
static BUILT: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    ensure_program("javac", "default-jdk-headless")?;
    ensure_program("mvn", "maven")?;
    let dir = others_dir()?.join("ycsb");
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/ycsb"));
    let out = format!("-Dout={}", dir.display());
    show(Command::new("mvn").current_dir(source).args(["--quiet", "--batch-mode", &out, "package"]))?;
    Ok(dir)
});
