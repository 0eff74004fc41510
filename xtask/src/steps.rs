//! The steps of `cargo xtask test`, in order: the quick ones first.

use crate::cuda;
use crate::debian::{self, Needed};
use crate::run::Run;

/// A named part of the tests.
pub struct Step {
    /// As given on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Does it.
    pub run: fn() -> Result<(), String>,
}

/// All of them.
pub const STEPS: &[Step] = &[
    Step { name: "format", about: "the code is formatted", run: format },
    Step { name: "clippy", about: "no warnings anywhere", run: clippy },
    Step { name: "docs", about: "the documentation builds without warnings", run: docs },
    Step { name: "unit", about: "unit, property and scenario tests of all crates", run: unit },
    Step {
        name: "peers",
        about: "chunks are exchanged with the real ISA-L and Jerasure (installs what they need)",
        run: peers,
    },
    Step {
        name: "arm",
        about: "the codec's tests on an emulated 64-bit ARM processor (installs what they need)",
        run: arm,
    },
    Step {
        name: "cuda",
        about: "the codec for cards: its kernels on an emulated card, and compiled by the real NVRTC (installs what they need)",
        run: cuda::test,
    },
    Step { name: "sim", about: "the simulator, with seeds from the commit", run: sim },
    Step {
        name: "planted",
        about: "the simulator finds every planted bug within its budget, and a scrub finds damaged memory",
        run: planted,
    },
    Step { name: "commands", about: "the command line does what the architecture promises", run: commands },
    Step { name: "etcd", about: "a cluster whose map lives in a real etcd, which is hurt too", run: etcd },
    Step {
        name: "conformance",
        about: "clients, suites and a load generator that others wrote, against a real cluster; their history checker against ours",
        run: conformance,
    },
    Step {
        name: "chaos",
        about: "real processes killed, stopped and restarted under recorded load",
        run: chaos,
    },
    Step {
        name: "chaos-net",
        about: "slices of chaos between network namespaces: partitions, loss, delay, corruption, leaders and etcd killed (needs root)",
        run: chaos_net,
    },
];

fn format() -> Result<(), String> {
    Run::cargo(&["fmt", "--all", "--check"]).show()
}

/// The peers' features build others' C libraries: their own step does that. So the crates that have such features are checked
/// without them here.
fn clippy() -> Result<(), String> {
    let features = ["--features", "testing/processes,testing/planted-bugs,testing/hot-paths"];
    let what = [&["clippy", "--workspace", "--all-targets"], &features[..]].concat();
    Run::cargo(&[&what[..], &["--", "-D", "warnings"]].concat()).show()
}

fn docs() -> Result<(), String> {
    Run::cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings").show()
}

fn unit() -> Result<(), String> {
    Run::cargo(&["test", "--workspace", "--features", "testing/hot-paths", "--quiet"]).show()
}

/// ISA-L is built from the sources in the crate `isal-sys`, Jerasure is Debian's.
fn peers() -> Result<(), String> {
    debian::ensure(PEERS_NEED)?;
    let what = ["-p", "codec-peers", "-p", "codec-bench", "-p", "cli", "--all-features", "--quiet"];
    Run::cargo(&[&["clippy", "--all-targets"], &what[..], &["--", "-D", "warnings"]].concat()).show()?;
    let what = ["-p", "codec-peers", "-p", "codec-bench", "--all-features", "--quiet"];
    Run::cargo(&[&["test"], &what[..]].concat()).show()?;
    let verify = ["codec", "verify", "--against", "isal,jerasure"];
    Run::cargo(&[&["run", "--quiet", "-p", "cli", "--features", "peers", "--"], &verify[..]].concat()).show()
}

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
    Run::cargo(&["test", "--quiet", "-p", "codec", "--lib", "--tests", "--target", target])
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu")
        .show()
}

fn sim() -> Result<(), String> {
    let first = u64::from(commit_seed());
    for (focus, count) in SIM_SEEDS {
        let seeds = format!("{first}..{}", first + count);
        let sim = ["run", "--release", "--quiet", "-p", "testing", "--bin", "sim", "--"];
        Run::cargo(&[&sim[..], &["--seeds", &seeds, "--focus", focus]].concat()).show()?;
    }
    Ok(())
}

/// What the simulator looks at in one run of the tests, and for how many seeds.
const SIM_SEEDS: [(&str, u64); 5] =
    [("anything", 250), ("moves", 80), ("returns", 60), ("succession", 60), ("releases", 60)];

/// A number that changes with every commit and is the same for everyone who has it.
fn commit_seed() -> u32 {
    let hash = Run::new("git", &["rev-parse", "HEAD"]).read().unwrap_or_default();
    hash.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(1)
}

fn planted() -> Result<(), String> {
    Run::cargo(&[
        "test",
        "--release",
        "--quiet",
        "-p",
        "testing",
        "--features",
        "planted-bugs",
        "--test",
        "planted",
        "--test",
        "damage",
    ])
    .show()
}

fn commands() -> Result<(), String> {
    with_processes(&["command_line", "operations", "health", "memory", "scrub"])
}

fn etcd() -> Result<(), String> {
    with_processes(&["etcd"])
}

fn conformance() -> Result<(), String> {
    with_processes(&["conformance", "porcupine", "ycsb"])
}

fn chaos() -> Result<(), String> {
    with_processes(&["chaos"])
}

fn chaos_net() -> Result<(), String> {
    with_processes(&["chaos_net"])
}

/// Tests that start `gestalt local`, so the binary has to be there first. One at a time: they share two cores. The whole
/// workspace is named each time, so that crates are built once, with the same features as in the steps before.
fn with_processes(tests: &[&str]) -> Result<(), String> {
    Run::cargo(&["build", "--quiet", "--workspace", "--bin", "gestalt"]).show()?;
    let what = ["test", "--quiet", "--workspace", "--features", "testing/processes"];
    let tests: Vec<&str> = tests.iter().flat_map(|test| ["--test", test]).collect();
    Run::cargo(&[&what[..], &tests, &["--", "--nocapture", "--test-threads=1"]].concat()).show()
}
