//! Inputs that have been worth keeping, from fuzzing and from other people's bugs: every file under `tests/corpus` is
//! replayed. A new find is saved there as it came.

use std::path::Path;

use crate::bad_input;
use crate::garbage::all_cuts_agree;

/// The files of a folder of the corpus, by name.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let entries = std::fs::read_dir(&path).expect("the corpus is part of the repository");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("readable")))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn memcache_inputs_neither_panic_nor_depend_on_how_they_are_cut() {
    let bad = bad_input::inputs();
    for (name, bytes) in files("memcache").into_iter().chain(bad) {
        all_cuts_agree(&bytes, &[2, 13, 500]).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
