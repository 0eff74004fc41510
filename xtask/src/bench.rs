//! `cargo xtask bench`: takes the figures in `docs/benchmarks` anew.

use crate::clients;
use crate::debian::{self, Needed};
use crate::run::Run;
use crate::steps::PEERS_NEED;

/// Where figures go.
const OUT: &str = "docs/benchmarks";
/// All other libraries.
const AGAINST: &str = "isal,jerasure,reed-solomon-erasure,reed-solomon-simd,rusty_erasure,klauspost";

/// Builds `gestalt` with the other libraries and runs all sweeps with `args` (such as `--quick`, or another `--against`).
pub fn codec(args: &[&str]) -> Result<(), String> {
    debian::ensure(PEERS_NEED)?;
    let run = ["run", "--release", "--quiet", "-p", "cli", "--features", "peers", "--", "codec", "bench"];
    let sweep = ["--sweep", "all", "--out", OUT];
    let against = if args.contains(&"--against") { &[][..] } else { &["--against", AGAINST] };
    Run::cargo(&[&run[..], &sweep, against, args].concat()).show()
}

/// Builds `gestalt` and measures it beside memcached and valkey with `args` (such as `--quick`).
pub fn peers(args: &[&str]) -> Result<(), String> {
    beside_peers("peers", args)
}

/// The same with long values, with `args` (such as `--rounds 3`).
pub fn values(args: &[&str]) -> Result<(), String> {
    beside_peers("values", args)
}

/// The native protocol and its clients, with `args` (such as `--quick`).
pub fn native(args: &[&str]) -> Result<(), String> {
    let library = clients::library()?;
    beside_peers("native", &[&["--python-library", &library], args].concat())
}

fn beside_peers(name: &str, args: &[&str]) -> Result<(), String> {
    debian::ensure(&[
        Needed { file: "cc", package: "gcc" },
        Needed { file: "make", package: "make" },
        Needed { file: "xz", package: "xz-utils" },
    ])?;
    Run::cargo(&["build", "--release", "--quiet", "-p", "cli"]).show()?;
    let program = ["run", "--release", "--quiet", "-p", "measure", "--bin", name, "--"];
    Run::cargo(&[&program, args].concat()).show()
}

/// Measures what changes of the map cost, with `args` (such as `--nodes 5,100`).
pub fn map(args: &[&str]) -> Result<(), String> {
    let program = ["run", "--release", "--quiet", "-p", "measure", "--bin", "map", "--"];
    Run::cargo(&[&program, args].concat()).show()
}

/// Fills a holder over shaped links, with `args` (such as `--mbit 100`). Needs root.
pub fn fills(args: &[&str]) -> Result<(), String> {
    debian::ensure(&[Needed { file: "tc", package: "iproute2" }])?;
    Run::cargo(&["build", "--release", "--quiet", "-p", "cli"]).show()?;
    let program = ["run", "--release", "--quiet", "-p", "measure", "--bin", "fills", "--"];
    Run::cargo(&[&program, args].concat()).show()
}

/// Runs coding graphs over a network in virtual time, with `args` (such as `--nodes 10,50`).
pub fn graphs(args: &[&str]) -> Result<(), String> {
    let program = ["run", "--release", "--quiet", "-p", "measure", "--bin", "graphs", "--"];
    Run::cargo(&[&program, args].concat()).show()
}
