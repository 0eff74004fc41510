//! Short slices of chaos between network namespaces, with the embedded coordinator and with an elected one: fixed seeds, many kinds of fault, and the history judged by our checker
//! and by porcupine. `cargo run -p chaos` is the long one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use chaos::{Coordinator, HISTORY, Length, Options, Report, run};
use history::linearizability::Operation;
use history::porcupine::verdicts;

use crate::support::is_possible;

/// Operations without an answer on one key, of which each doubles what porcupine has to try.
const MOST_UNKNOWN: usize = 8;

fn chaos(options: Options) -> Report {
    let report = run(&options).expect("chaos can run");
    println!("{report}");
    assert!(report.passed(), "{:?}", report.failures);
    report
}

#[test]
fn a_slice_of_chaos_shows_nothing_wrong_to_either_checker() {
    if !is_possible(&[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        seed: SEED,
        length: Length::Actions(12),
        clients: 12,
        keys: 48,
        cold: 4000,
        dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let report = chaos(options);
    assert!(report.done.len() >= 6, "too few kinds of faults: {:?}", report.done);
    assert!(report.answered > 2000 && report.unknown > 0, "the faults were not felt");
    assert!(report.bits_flipped > 0, "nothing was corrupted");
    assert!(report.orders.len() >= 4, "too little was made and removed: {:?}", report.orders);
    assert!(report.answered_elsewhere > 1000, "too little was asked in other namespaces");
    for of in ["", "copies-", "cache-"] {
        ask_porcupine(&dir.path().join(format!("{of}{HISTORY}")));
    }
}

#[test]
fn a_slice_with_an_elected_coordinator_shows_nothing_wrong_to_either_checker() {
    if !is_possible(&[("etcd", "etcd-server")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        seed: SEED_FOR_ETCD,
        length: Length::Actions(7),
        coordinator: Coordinator::Etcd,
        etcd_members: 3,
        clients: 8,
        keys: 48,
        cold: 2000,
        dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let report = chaos(options);
    for kind in ["kill leader", "kill etcd", "cut etcd member off"] {
        assert!(report.done.contains_key(kind), "no {kind}: {:?}", report.done);
    }
    assert!(report.answered > 1000, "too little was asked");
    assert!(report.orders.contains_key("remove namespace"), "nothing was removed: {:?}", report.orders);
    ask_porcupine(&dir.path().join(HISTORY));
}

/// As below.
const SEED_FOR_ETCD: u64 = 638;

/// Chosen for the variety of its first actions.
const SEED: u64 = 94;

/// Hands porcupine the histories of all keys that it can be expected to decide.
fn ask_porcupine(path: &Path) {
    let lines = BufReader::new(fs::File::open(path).expect("the history is written")).lines();
    let parse = |line: String| serde_json::from_str(&line).expect("a line is a key's history");
    let histories: Vec<Vec<Operation>> = lines.map_while(Result::ok).map(parse).collect();
    let unknown = |operations: &Vec<Operation>| {
        operations.iter().filter(|operation| operation.answer.is_none()).count()
    };
    let (easy, hard): (Vec<_>, Vec<_>) =
        histories.into_iter().partition(|operations| unknown(operations) <= MOST_UNKNOWN);
    let theirs = verdicts("chaos", &easy).expect("porcupine can be asked");
    let count = |verdict: &str| theirs.iter().filter(|theirs| *theirs == verdict).count();
    println!(
        "porcupine: {} keys ok, {} illegal, {} undecided; {} keys with too many unanswered operations not asked about",
        count("ok"),
        count("illegal"),
        count("unknown"),
        hard.len()
    );
    assert_eq!(count("illegal"), 0, "porcupine sees what our checker does not");
    assert!(count("ok") * 10 >= (easy.len() + hard.len()) * 9, "porcupine has decided too little");
}
