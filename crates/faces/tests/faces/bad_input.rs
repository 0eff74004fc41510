//! Bad inputs with the answers of memcached 1.6.45, and ours where they differ: see `tests/golden`.

use std::collections::BTreeMap;

use faces::memcache::Access;

use crate::golden::{BAD_INPUT, CONVERSATIONS, Case, DEVIATIONS, cases};
use crate::store::{Fake, converse};

fn access(case: &Case) -> Access {
    if case.locked { Access::Locked } else { Access::Open }
}

/// The inputs alone.
pub fn inputs() -> impl Iterator<Item = (String, Vec<u8>)> {
    cases(BAD_INPUT).into_iter().map(|case| (case.name.clone(), case.input_bytes()))
}

/// Runs all cases in order, each arriving in pieces of `piece` bytes.
fn run(piece: usize) {
    let deviations: BTreeMap<_, _> =
        cases(DEVIATIONS).into_iter().map(|case| (case.name.clone(), case)).collect();
    let (mut store, mut locked_store) = (Fake::default(), Fake::default());
    let mut wrong = Vec::new();
    for case in cases(BAD_INPUT) {
        let store = if case.locked { &mut locked_store } else { &mut store };
        let input = case.input_bytes();
        let (answer, end) = converse(store, access(&case), &input, piece.min(input.len()));
        let expected = deviations.get(&case.name).unwrap_or(&case);
        if answer != expected.answer_bytes() || end != expected.end {
            let answer = crate::golden::written(&answer);
            wrong.push(format!(
                "{}\n  ours {answer} {end:?}\n  not  {} {:?}",
                case.name, expected.answer, expected.end
            ));
        }
    }
    assert!(wrong.is_empty(), "in pieces of {piece}:\n{}", wrong.join("\n"));
}

#[test]
fn bad_inputs_get_the_answers_of_memcached_or_the_documented_safer_ones() {
    run(usize::MAX);
}

#[test]
fn where_the_network_cuts_a_bad_input_makes_no_difference() {
    for piece in [1, 7, 1448, 16384] {
        run(piece);
    }
}

#[test]
fn every_deviation_names_a_case_differs_from_memcached_and_has_a_reason() {
    let all: Vec<Case> = [cases(BAD_INPUT), cases(CONVERSATIONS)].concat();
    for deviation in cases(DEVIATIONS) {
        let case = all.iter().find(|case| case.name == deviation.name).expect(&deviation.name);
        let same = case.answer == deviation.answer && case.end == deviation.end;
        assert!(!same && !deviation.reason.is_empty(), "{}", deviation.name);
    }
}
