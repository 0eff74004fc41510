//! What documents say of files.

use std::fs;
use std::path::{Path, PathBuf};

use super::sources::{files_under, relative, root};

/// Names of source files in documents that no file has.
pub fn dead_paths() -> Vec<String> {
    let sources = files_under(&root().join("crates")).into_iter().chain(files_under(&root().join("xtask")));
    let sources: Vec<String> = sources.map(|file| relative(&file)).collect();
    documents().iter().flat_map(|document| dead_paths_in(document, &sources)).collect()
}

fn documents() -> Vec<PathBuf> {
    let is_document = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "md");
    files_under(&root()).into_iter().filter(is_document).collect()
}

fn dead_paths_in(document: &Path, sources: &[String]) -> Vec<String> {
    let text = fs::read_to_string(document).expect("a document can be read");
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter(|name| name.ends_with(".rs") && !name.contains([' ', '*', '{']));
    let dead = named.filter(|name| !sources.iter().any(|source| names(name, source)));
    dead.map(|name| format!("{}: {name}", relative(document))).collect()
}

/// Whether `name` may stand for `source`: the end of its path, with or without `src`.
fn names(name: &str, source: &str) -> bool {
    let ends = |source: &str| source == name || source.ends_with(&format!("/{name}"));
    ends(source) || ends(&source.replace("/src/", "/"))
}
