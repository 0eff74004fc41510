//! Words and paths that have no place here.

use std::fs;
use std::path::PathBuf;

use super::limits::{BANNED, ROOMS};
use super::sources::{Sources, files_under, relative, root};

/// What reaches up two levels or more: from there on a path of the crate says better where something is.
pub fn paths_upward(sources: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for source in &sources.0 {
        for (number, line) in source.text.lines().enumerate() {
            if line.contains("super::super") {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    found
}

/// Names that stand outside the room that they belong to, tests included.
pub fn out_of_their_rooms() -> Vec<String> {
    ROOMS.iter().flat_map(|(krate, names, room)| out_of(room, krate, names)).collect()
}

fn out_of(room: &str, krate: &str, names: &[&str]) -> Vec<String> {
    let files = files_under(&root().join("crates").join(krate).join("src"));
    let outside = files.iter().filter(|file| !relative(file).starts_with(room));
    outside.flat_map(|file| names_in(file, room, names)).collect()
}

fn names_in(file: &PathBuf, room: &str, names: &[&str]) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let named = names.iter().filter(|name| has_word(&text, name));
    named.map(|name| format!("{}: \"{name}\" (only in {room})", relative(file))).collect()
}

/// Uses of words that are not used.
pub fn banned() -> Vec<String> {
    written_files().iter().flat_map(banned_in).collect()
}

fn banned_in(file: &PathBuf) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let uses = BANNED.iter().filter(|(word, _)| has_word(&text, word));
    uses.map(|(word, instead)| format!("{}: \"{word}\" ({instead})", relative(file))).collect()
}

/// Whether `word` stands in `text` as a word.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let after = text[at + word.len()..].chars().next().is_some_and(char::is_alphanumeric);
        let is_path = word.ends_with('/');
        !before && (is_path || !after)
    })
}

/// What people write: code and documents. Not this table, and not what others' programs print.
fn written_files() -> Vec<PathBuf> {
    let is_written = |file: &PathBuf| {
        let name = relative(file);
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        matches!(&*extension, "rs" | "md" | "toml" | "sh" | "yml")
            && !name.starts_with("xtask/tests/tidy/")
            && !name.contains("/golden/")
    };
    files_under(&root()).into_iter().filter(is_written).collect()
}
