//! Which crate depends on which.

use std::collections::BTreeMap;
use std::fs;

use super::limits::LAYERS;
use super::sources::root;

/// Dependencies between our crates that the table does not allow, and crates that it does not know.
pub fn crossings() -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    let crates = fs::read_dir(root().join("crates"))
        .expect("there are crates")
        .map(|entry| entry.expect("a folder can be read").file_name().to_string_lossy().into_owned());
    let crates: Vec<String> = crates.collect();
    crates.iter().flat_map(|krate| crossings_of(krate, &crates, &allowed)).collect()
}

fn crossings_of(krate: &str, ours: &[String], allowed: &BTreeMap<&str, &[&str]>) -> Vec<String> {
    let Some(allowed) = allowed.get(krate) else {
        return vec![format!("{krate} is not in the table of layers")];
    };
    let used = dependencies(krate).into_iter().filter(|name| ours.contains(name));
    used.filter(|name| !allowed.contains(&name.as_str()))
        .map(|name| format!("{krate} may not depend on {name}"))
        .collect()
}

/// What the crate is built from; not what its tests and benches need.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest = root().join("crates").join(krate).join("Cargo.toml");
    let text = fs::read_to_string(manifest).expect("a crate has a manifest");
    let mut is_dependency = false;
    let mut names = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            is_dependency = line.ends_with("dependencies]") && !line.contains("dev-");
        } else if is_dependency && let Some(end) = line.find(['.', ' ', '=']) {
            names.push(line[..end].to_owned());
        }
    }
    names
}
