//! What keeps the code in shape: limits of length and number, walls between crates and rooms, words, names of files in documents.
//! All limits are in `limits.rs`. A limit is no aim: code well below it is what reviewers expect.

mod documents;
mod figures;
mod imports;
mod layers;
mod lengths;
mod limits;
mod linked;
mod sources;
mod words;

use sources::Sources;

/// Fails with all that is wrong, a line each.
#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn files_and_functions_are_short() {
    assert_none(&lengths::too_long(&Sources::product_and_tools()));
}

#[test]
fn types_have_few_methods() {
    assert_none(&lengths::too_many_methods(&Sources::product_and_tools()));
}

#[test]
fn no_import_circle_is_large() {
    assert_none(&imports::large_circles(&Sources::product_and_tools()));
}

#[test]
fn crates_know_only_what_lies_below() {
    assert_none(&layers::crossings());
}

#[test]
fn what_is_linked_is_allowed() {
    assert_none(&linked::not_allowed());
}

#[test]
fn nothing_reaches_up_two_levels() {
    assert_none(&words::paths_upward(&Sources::product_and_tools()));
}

#[test]
fn what_has_a_room_stays_there() {
    assert_none(&words::out_of_their_rooms());
}

#[test]
fn some_words_are_not_used() {
    assert_none(&words::banned());
}

#[test]
fn documents_name_files_that_exist() {
    assert_none(&documents::dead_paths());
}

#[test]
fn figures_can_be_read_by_who_takes_them_anew() {
    assert_none(&figures::bad());
}
