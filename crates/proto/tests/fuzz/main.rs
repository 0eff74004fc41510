//! Bytes against the state machines: see `harness`.

#![allow(clippy::unwrap_used)] // a panic is how a test reports

mod harness;

use std::path::Path;

use harness::{self as fuzz, Toll};

/// Kinds of messages that a cluster without scrubs, moves and operators sends to its nodes and to its coordinator.
const KINDS: [std::ops::RangeInclusive<u32>; 4] = [0x10..=0x11, 0x20..=0x31, 0x41..=0x41, 0x43..=0x46];

/// The files of a folder of the corpus, by name.
fn corpus(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn no_frame_of_the_corpus_panics_a_host() {
    for (name, bytes) in corpus("peers") {
        println!("{name}: {:?}", fuzz::peers(&bytes));
    }
}

#[test]
fn no_message_of_the_corpus_panics_a_coordinator() {
    for (name, bytes) in corpus("coordinator") {
        println!("{name}: {:?}", fuzz::coordinator(&bytes));
    }
}

#[test]
fn no_records_of_the_corpus_panic_a_successor() {
    for (name, bytes) in corpus("records") {
        println!("{name}: {}", fuzz::records(&bytes));
    }
}

#[test]
fn valid_messages_with_wrong_numbers_panic_nobody() {
    let seeds = std::env::var("FUZZ_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    let mut all = Toll::default();
    for seed in 0..seeds {
        let toll = std::panic::catch_unwind(|| fuzz::mutated(seed));
        let toll = toll.unwrap_or_else(|_| panic!("seed {seed}"));
        all.changed += toll.changed;
        all.malformed += toll.malformed;
        all.impossible += toll.impossible;
        all.answered += toll.answered;
        all.delivered += toll.delivered;
        all.kinds |= toll.kinds;
    }
    println!("{all:?}");
    // It has come past the first checks, and into all of them.
    let missed: Vec<u32> = KINDS.into_iter().flatten().filter(|kind| all.kinds >> kind & 1 == 0).collect();
    assert!(missed.is_empty(), "{missed:x?}");
    assert!(all.changed > 5 * seeds as usize && all.malformed > seeds as usize, "{all:?}");
    assert!(all.impossible > seeds as usize && all.answered > 20 * seeds as usize, "{all:?}");
}
