//! What is linked: licenses, sources and names, as `deny.toml` has them. `cargo deny check` reads the same file, and is a program
//! that takes minutes to compile.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, ParseMode};

/// The parts of `deny.toml` that are held here.
#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<String>,
}

/// What cargo says is linked.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// The registry that everything of others comes from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What must not be linked, a line each.
pub fn not_allowed() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's root");
    let rules = fs::read_to_string(root.join("deny.toml")).expect("deny.toml");
    let rules: Rules = toml::from_str(&rules).expect("deny.toml is in order");
    let packages = rules.graph.targets.iter().flat_map(|target| packages(root, target));
    let mut wrong: Vec<String> = packages.flat_map(|package| complaints(&package, &rules)).collect();
    wrong.sort();
    wrong.dedup();
    wrong
}

fn packages(root: &Path, target: &str) -> Vec<Package> {
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let said = Command::new(env!("CARGO")).args(args).current_dir(root).output().expect("cargo runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let metadata: Metadata = serde_json::from_slice(&said.stdout).expect("cargo's metadata");
    metadata.packages
}

fn complaints(package: &Package, rules: &Rules) -> Vec<String> {
    let Package { name, version, license, source } = package;
    let mut wrong = Vec::new();
    if rules.bans.deny.contains(name) {
        wrong.push(format!("{name} {version} is not to be linked"));
    }
    if source.as_ref().is_some_and(|source| source != REGISTRY) {
        wrong.push(format!("{name} {version} is from {source:?}"));
    }
    let text = license.as_deref().unwrap_or_default();
    if !is_allowed(text, &rules.licenses.allow) {
        wrong.push(format!("{name} {version} has the license '{text}'"));
    }
    wrong
}

/// Whether whoever takes it may choose licenses that are all allowed.
fn is_allowed(license: &str, allowed: &[String]) -> bool {
    let Ok(expression) = Expression::parse_mode(license, ParseMode::LAX) else { return false };
    expression.evaluate(|required| {
        // With an exception more is allowed than without.
        required.license.id().is_some_and(|id| allowed.iter().any(|name| name == id.name))
    })
}

#[test]
fn a_license_is_allowed_if_one_can_choose_it() {
    let allowed = ["MIT", "ISC"].map(str::to_owned);
    for (license, expected) in [
        ("MIT", true),
        ("Apache-2.0/MIT", true),
        ("Apache-2.0 OR ISC", true),
        ("Apache-2.0 AND MIT", false),
        ("(Apache-2.0 OR MIT) AND ISC", true),
        ("GPL-3.0-only", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(license, &allowed), expected, "{license}");
    }
}
