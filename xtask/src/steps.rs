//! The steps of `cargo xtask test`, in order: the quick ones first.

use std::fs;
use std::sync::OnceLock;

use crate::built::Built;
use crate::ceph;
use crate::cuda;
use crate::debian::{self, Needed};
use crate::publish;
use crate::run::{Run, root};

/// A named part of the tests.
pub struct Step {
    /// As given on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// What may be done at the same time.
    pub lane: Lane,
    /// Does it.
    pub run: fn() -> Result<(), String>,
}

/// What a step does with two cores, where all steps are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Builds what the others need: it goes first, and alone.
    First,
    /// Computes, whenever nobody else wants the cores: no clock decides what comes of it.
    Beside,
    /// Waits for processes more than it computes, and they have deadlines.
    Timed,
}

/// All of them.
pub const STEPS: &[Step] = &[
    Step { name: "format", about: "the code is formatted", lane: Lane::First, run: format },
    Step { name: "clippy", about: "no warnings anywhere", lane: Lane::Beside, run: clippy },
    Step { name: "docs", about: "the documentation builds without warnings", lane: Lane::Beside, run: docs },
    Step {
        name: "publish",
        about: "the client for Rust can be packaged for crates.io, with the crates that it needs (sends nothing)",
        lane: Lane::Beside,
        run: publish::rust,
    },
    Step {
        name: "unit",
        about: "unit, property and scenario tests of all crates",
        lane: Lane::First,
        run: unit,
    },
    Step {
        name: "peers",
        about: "chunks are exchanged with the real ISA-L and Jerasure (installs what they need)",
        lane: Lane::Beside,
        run: peers,
    },
    Step {
        name: "arm",
        about: "the codec's tests on an emulated 64-bit ARM processor (installs what they need)",
        lane: Lane::Beside,
        run: arm,
    },
    Step {
        name: "cuda",
        about: "the codec for cards: its kernels on an emulated card, and compiled by the real NVRTC (installs what they need)",
        lane: Lane::Beside,
        run: cuda::test,
    },
    Step {
        name: "ceph",
        about: "Ceph's plugin in a cluster of real daemons, and its chunks beside those of isa and jerasure (installs Ceph)",
        lane: Lane::Timed,
        run: ceph::test,
    },
    Step { name: "sim", about: "the simulator, with seeds from the commit", lane: Lane::Beside, run: sim },
    Step {
        name: "planted",
        about: "the simulator finds every planted bug within its budget, and a scrub finds damaged memory",
        lane: Lane::Beside,
        run: planted,
    },
    Step {
        name: "commands",
        about: "the command line does what the architecture promises",
        lane: Lane::Timed,
        run: commands,
    },
    Step {
        name: "etcd",
        about: "a cluster whose map lives in a real etcd, which is hurt too",
        lane: Lane::Timed,
        run: etcd,
    },
    Step {
        name: "conformance",
        about: "clients, suites and a load generator that others wrote, against a real cluster; their history checker against ours",
        lane: Lane::Timed,
        run: conformance,
    },
    Step {
        name: "chaos",
        about: "real processes killed, stopped and restarted under recorded load",
        lane: Lane::Timed,
        run: chaos,
    },
    Step {
        name: "chaos-net",
        about: "slices of chaos between network namespaces: partitions, loss, delay, corruption, leaders and etcd killed; the samples of the documents as they stand there (needs root)",
        lane: Lane::Timed,
        run: chaos_net,
    },
];

/// What is run only when it is named: it needs a nightly compiler.
pub const ASIDE: &[Step] = &[Step {
    name: "miri",
    about: "the arena, the index and the chunks of the store, and callers' buffers in C, by an interpreter that finds wrong uses of memory (installs a nightly compiler)",
    lane: Lane::First,
    run: miri,
}];

/// What is worth running before every commit: minutes where everything is built.
pub const QUICK: &[Step] = &[
    Step { name: "format", about: "the code is formatted", lane: Lane::First, run: format },
    Step { name: "clippy", about: "no warnings anywhere", lane: Lane::Beside, run: clippy },
    Step {
        name: "tidy",
        about: "lengths, methods, import circles, layers, words, names of files in documents",
        lane: Lane::First,
        run: tidy,
    },
    Step {
        name: "libraries",
        about: "the unit tests within the libraries",
        lane: Lane::First,
        run: libraries,
    },
    Step {
        name: "slice",
        about: "a slice of the simulator, with seeds from the commit",
        lane: Lane::First,
        run: slice,
    },
];

fn format() -> Result<(), String> {
    Run::cargo(&["fmt", "--all", "--check"]).show()
}

/// The peers' features build others' C libraries: their own step does that. So the crates that have such features are checked
/// without them here.
fn clippy() -> Result<(), String> {
    lint(LINTED)
}

/// What does not need others' C libraries.
const LINTED: &str = "e2e/processes,sim/planted-bugs";

/// The features of whatever is built for tests, so that all of them share it.
pub const TESTED: &str = "sim/planted-bugs";

fn lint(features: &str) -> Result<(), String> {
    let what = ["clippy", "--quiet", "--workspace", "--all-targets", "--features", features];
    Run::cargo(&[&what[..], &["--", "-D", "warnings"]].concat()).builds()
}

fn docs() -> Result<(), String> {
    Run::cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings").builds()
}

/// Other steps name the whole workspace, too: cargo unites the features of what is named, so all of them share what is built.
fn unit() -> Result<(), String> {
    let what = ["test", "--workspace", "--features", TESTED, "--quiet"];
    Run::cargo(&[&what[..], &["--no-run"]].concat()).builds()?;
    Run::cargo(&[&what[..], &["--no-fail-fast"]].concat()).show()
}

fn tidy() -> Result<(), String> {
    Run::cargo(&["test", "--workspace", "--features", TESTED, "--quiet", "--test", "tidy"]).show()
}

fn libraries() -> Result<(), String> {
    let what = ["test", "--workspace", "--features", TESTED, "--quiet", "--lib"];
    Run::cargo(&[&what[..], &["--no-run"]].concat()).builds()?;
    Run::cargo(&[&what[..], &["--no-fail-fast"]].concat()).show()
}

/// The tests that do without gigabytes of address space, and whose loops are short there.
const UNDER_MIRI: &[&str] = &[
    "area::tests::only_committed",
    "area::tests::a_full_budget",
    "area::tests::what_was_given_back",
    "area::tests::the_first_extents",
    "index::tests::an_item",
    "index::tests::entries",
    "chunks::tests::cells",
    "chunks::tests::a_worker",
    "chunks::tests::pages_of_a_removed",
    "chunks::tests::the_pool_outlives",
    "chunks::tests::damage",
    "chunks::tests::every_byte",
];

/// Small inputs: it takes a thousand times as long as the processor.
fn miri() -> Result<(), String> {
    if Run::new("cargo", &["+nightly", "miri", "--version"]).read().is_err() {
        let components = ["--component", "miri", "--component", "rust-src"];
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        Run::new("rustup", &[&install[..], &components].concat()).show()?;
    }
    let what = ["+nightly", "miri", "test", "--quiet", "-p", "store", "--lib", "--"];
    Run::new("cargo", &[&what[..], UNDER_MIRI].concat()).show()?;
    let rooms = ["+nightly", "miri", "test", "--quiet", "-p", "gestalt-c", "--lib", "--", "room::tests"];
    Run::new("cargo", &rooms).show()
}

/// ISA-L is built from the sources in the crate `isal-sys`, Jerasure is Debian's.
fn peers() -> Result<(), String> {
    debian::ensure(PEERS_NEED)?;
    lint(&[LINTED, PEERS].join(","))?;
    let features = [TESTED, PEERS].join(",");
    let built = Built::by(&[
        "--workspace",
        "--features",
        &features,
        "--lib",
        "--test",
        "exchange",
        "--test",
        WITH_BINARY,
    ])?;
    for test in ["codec_peers", "codec_bench", "exchange"] {
        Run::new(built.test(test)?, &["--quiet"]).show()?;
    }
    Run::new(built.binary("gestalt")?, &["codec", "verify", "--against", "isal,jerasure"]).show()
}

/// A test of `cli`: with a package's tests cargo builds its binaries.
const WITH_BINARY: &str = "usage";

/// Others' libraries.
const PEERS: &str = "cli/peers,codec-peers/isal,codec-peers/jerasure";

/// What the other libraries are built with, and Jerasure.
pub const PEERS_NEED: &[Needed] = &[
    Needed { file: "cc", package: "gcc" },
    Needed { file: "make", package: "make" },
    Needed { file: "nasm", package: "nasm" },
    Needed { file: "autoreconf", package: "autoconf" },
    Needed { file: "automake", package: "automake" },
    Needed { file: "libtoolize", package: "libtool" },
    Needed { file: "/usr/include/jerasure.h", package: "libjerasure-dev" },
];

/// The NEON kernel passes what the others pass.
fn arm() -> Result<(), String> {
    debian::ensure(&[
        Needed { file: "qemu-aarch64", package: "qemu-user" },
        Needed { file: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" },
        Needed { file: "/usr/aarch64-linux-gnu/lib/libc.so.6", package: "libc6-dev-arm64-cross" },
    ])?;
    let target = "aarch64-unknown-linux-gnu";
    Run::new("rustup", &["target", "add", target]).show()?;
    let test = ["test", "--quiet", "-p", "codec", "--lib", "--tests", "--target", target, "--"];
    Run::cargo(&[&test[..], WITHOUT_ALGEBRA].concat())
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
        .show()
}

/// What no processor decides took most of the time on an emulated one.
const WITHOUT_ALGEBRA: &[&str] =
    &["--skip", "constructions::", "--skip", "generators::", "--skip", "costs::", "--skip", "helpers::"];

fn sim() -> Result<(), String> {
    let built = Built::by(SIMULATOR)?;
    Run::new(built.test("seeds")?, &["--quiet", "--ignored", "runs::"]).show()?;
    let first = u64::from(commit_seed());
    for (focus, count) in SIM_SEEDS {
        let seeds = format!("{first}..{}", first + count);
        Run::new(built.binary("sim")?, &["--seeds", &seeds, "--focus", focus]).show()?;
    }
    Ok(())
}

fn slice() -> Result<(), String> {
    let built = Built::by(SIMULATOR)?;
    let first = u64::from(commit_seed());
    Run::new(built.binary("sim")?, &["--seeds", &format!("{first}..{}", first + QUICK_SEEDS)]).show()
}

/// Seeds of that slice.
const QUICK_SEEDS: u64 = 150;

/// The simulator as all tests are built: fast, with assertions.
const SIMULATOR: &[&str] = &["--workspace", "--features", TESTED, "--test", "seeds"];

/// What the simulator looks at in one run of the tests, and for how many seeds.
const SIM_SEEDS: [(&str, u64); 13] = [
    ("anything", 250),
    ("moves", 80),
    ("returns", 60),
    ("succession", 60),
    ("forgetting", 80),
    ("releases", 60),
    ("codes", 30),
    ("objects", 60),
    ("graphs", 20),
    ("sessions", 60),
    ("native", 40),
    ("scans", 20),
    ("conversions", 40),
];

/// A number that changes with every commit and is the same for everyone who has it.
fn commit_seed() -> u32 {
    let hash = Run::new("git", &["rev-parse", "HEAD"]).read().unwrap_or_default();
    hash.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(1)
}

fn planted() -> Result<(), String> {
    let built = Built::by(SIMULATOR)?;
    Run::new(built.test("seeds")?, &["--quiet", "--ignored", "planted::", "damage::"]).show()
}

fn commands() -> Result<(), String> {
    end_to_end(COMMANDS)
}

fn etcd() -> Result<(), String> {
    end_to_end(ETCD)
}

fn conformance() -> Result<(), String> {
    end_to_end(CONFORMANCE)
}

fn chaos() -> Result<(), String> {
    end_to_end(CHAOS)
}

fn chaos_net() -> Result<(), String> {
    end_to_end(CHAOS_NET)
}

/// The modules of the end-to-end tests, by steps.
const COMMANDS: &[&str] = &[
    "bad_values",
    "capped",
    "command_line",
    "conversions",
    "operations",
    "advertised",
    "health",
    "memory",
    "namespaces",
    "objects",
    "scrub",
    "silence",
    "size",
];
const ETCD: &[&str] = &["etcd"];
const CONFORMANCE: &[&str] = &["conformance", "memcached", "native_suite", "porcupine", "ycsb"];
const CHAOS: &[&str] = &["chaos", "chaos_objects", "native_faults"];
const CHAOS_NET: &[&str] = &["chaos_net", "samples"];

/// These start `gestalt local`, with the binary that is built for `cli`'s own tests. One at a time: they share two cores.
fn end_to_end(modules: &[&str]) -> Result<(), String> {
    let EndToEnd { tests, gestalt } = EndToEnd::built()?;
    let modules: Vec<String> = modules.iter().map(|module| format!("{module}::")).collect();
    let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
    Run::new(tests, &[&["--quiet", "--nocapture", "--test-threads=1"], &modules[..]].concat())
        .env("GESTALT_BIN", gestalt)
        .env("CARGO_MANIFEST_DIR", &path_of("crates/e2e"))
        .within(&root().join("crates/e2e"))
        .show()
}

/// The end-to-end tests, and the binary that they start.
struct EndToEnd {
    tests: String,
    gestalt: String,
}

impl EndToEnd {
    /// Built once, and copied: other steps build a `gestalt` with other features at the same time.
    fn built() -> Result<&'static Self, String> {
        static BUILT: OnceLock<Result<EndToEnd, String>> = OnceLock::new();
        BUILT.get_or_init(Self::build).as_ref().map_err(Clone::clone)
    }

    fn build() -> Result<Self, String> {
        let what = ["--workspace", "--features", LINTED, "--test", "e2e", "--test", WITH_BINARY];
        let built = Built::by(&what)?;
        let gestalt = path_of("target/e2e/gestalt");
        let failed = |error: std::io::Error| format!("{gestalt}: {error}");
        fs::create_dir_all(root().join("target/e2e")).map_err(failed)?;
        // Not over the former one, which something may run.
        let _ = fs::remove_file(&gestalt);
        fs::copy(built.binary("gestalt")?, &gestalt).map_err(failed)?;
        Ok(Self { tests: built.test("e2e")?.to_owned(), gestalt })
    }
}

/// Builds what the steps of end-to-end tests run.
pub fn build_end_to_end() -> Result<(), String> {
    EndToEnd::built().map(|_| ())
}

fn path_of(name: &str) -> String {
    root().join(name).display().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run::root;

    #[test]
    fn every_end_to_end_test_belongs_to_a_step() {
        let mut named = [COMMANDS, ETCD, CONFORMANCE, CHAOS, CHAOS_NET, &["main", "support"]].concat();
        named.sort_unstable();
        let files = fs::read_dir(root().join("crates/e2e/tests/e2e")).expect("there are tests");
        let name =
            |file: fs::DirEntry| file.path().file_stem().map(|name| name.to_string_lossy().into_owned());
        let mut there: Vec<String> = files.filter_map(|file| name(file.expect("a file"))).collect();
        there.sort_unstable();
        assert_eq!(named, there);
    }
}
