//! Coordinators that end or are deposed in the middle of a decision, and those who go on from what was recorded.

use sim::Story;
use sim::story::{Writing, set};
use types::RoleStatus;

fn filled() -> Story {
    let mut story = Story::with_successors(3, 2, 7);
    story.fill(4);
    story
}

fn is_fenced(story: &Story) -> bool {
    story.status(0) == RoleStatus::Fenced
}

#[test]
fn a_coordinator_that_dies_after_a_fence_is_recorded_is_succeeded() {
    let mut story = filled();
    story.kill_watched(story.primary(0));
    story.run_until("the fence is recorded", is_fenced);
    story.coordinator().kill(Writing::Lost);
    story.run(3 * story.lease_us());
    assert!(is_fenced(&story), "nobody decides anything");
    story.coordinator().elect();
    story.until_full(0);
    story.is_filled(4);
    story.end();
}

#[test]
fn a_coordinator_that_dies_when_some_have_settled_is_succeeded() {
    let mut story = filled();
    let (primary, late) = (story.primary(0), story.parity(1));
    // One parity has a record that the other one lacks, and is told long before the other one how the stream ends.
    story.wire(primary, late).hold();
    let key = story.key(0, 1);
    story.ask(primary, key, set(b"never acknowledged"));
    story.run_until("one parity has it", |story| story.received(0, 0) > story.received(1, 0));
    story.line(late).slow(5_000);
    story.kill_watched(primary);
    story.run_until("one has settled", |story| {
        is_fenced(story) && story.received(0, 0) == story.received(1, 0)
    });
    assert!(story.settle_is_under_way_to(late));
    story.coordinator().kill(Writing::Lost);
    story.run(story.lease_us() / 2);
    story.coordinator().elect();
    story.until_full(0);
    story.is_filled(4);
    story.end();
}

#[test]
fn a_coordinator_that_dies_between_recording_a_stand_in_and_telling_it_is_succeeded() {
    let mut story = filled();
    story.kill_watched(story.primary(0));
    story.run_until("a stand-in is decided on", |story| story.decided().data[0].primary.is_some());
    story.run_until("a stand-in is being recorded", |story| {
        story.is_recording() && is_fenced(story) && story.decided().data[0].primary.is_some()
    });
    story.coordinator().stop();
    story.run_until("it is recorded", |story| story.view().data[0].primary.is_some());
    let (stand_in, recorded) = (story.primary(0), story.view().version);
    story.coordinator().kill(Writing::Lost);
    story.run(story.lease_us());
    assert!(story.known_to(stand_in) < Some(recorded), "nobody has told it");
    story.coordinator().elect();
    story.until_full(0);
    assert_eq!(story.primary(0), stand_in);
    story.is_filled(4);
    story.end();
}

#[test]
fn a_decision_that_was_never_recorded_was_never_made() {
    let mut story = filled();
    story.kill_watched(story.primary(0));
    story.run_until("a fence is decided on", |story| {
        story.is_recording() && story.decided().data[0].status == RoleStatus::Fenced
    });
    let before = story.view().clone();
    story.coordinator().kill(Writing::Lost);
    story.run(story.lease_us());
    assert_eq!(*story.view(), before);
    assert!((0..7).filter_map(|node| story.known_to(node)).all(|known| known == before.version));
    story.coordinator().elect();
    story.until_full(0);
    story.is_filled(4);
    story.end();
}

#[test]
fn a_coordinator_may_die_at_any_moment_of_a_takeover() {
    for writing in [Writing::Lost, Writing::Done] {
        for moment in (0..240).step_by(6) {
            let mut story = filled();
            story.kill_watched(story.primary(0));
            story.steps(moment);
            story.coordinator().kill(writing);
            story.run(story.lease_us() / 4);
            story.coordinator().elect();
            story.run_until("the role is served again", |story| {
                let view = story.view();
                view.data[0].term.0 >= 2 && view.data[0].status == RoleStatus::Full
            });
            story.is_filled(4);
            story.end();
        }
    }
}

#[test]
fn a_coordinator_may_die_at_any_moment_of_a_move() {
    for moment in (0..900).step_by(23) {
        let mut story = filled();
        story.operator().move_to(0, 5);
        story.steps(moment);
        story.coordinator().kill(if moment % 2 == 0 { Writing::Done } else { Writing::Lost });
        let key = story.key(0, 1);
        let asked = story.begin_set(key, "meanwhile");
        story.run(story.lease_us() / 4);
        story.coordinator().elect();
        story.wait_for(asked);
        story.run_until("nothing moves any more", |story| {
            let view = story.view();
            view.is_full() && view.learners.is_empty()
        });
        assert_eq!(story.get(key).as_deref(), Some("meanwhile"), "after {moment} events");
        story.end();
    }
}

#[test]
fn a_coordinator_that_may_not_write_any_more_deposes_nobody() {
    let mut story = filled();
    let (unheard, before) = (story.primary(0), story.view().clone());
    story.line(unheard).sever();
    story.run(story.lease_us() / 2);
    story.coordinator().depose();
    story.run_until("its decision could not be recorded", |story| story.coordinators() == 0);
    assert_eq!(*story.view(), before);
    assert!((0..7).all(|node| story.known_to(node) == Some(before.version)));
    story.line(unheard).mend();
    story.coordinator().elect();
    story.run(3 * story.lease_us());
    assert_eq!(*story.view(), before, "nobody was lost");
    story.is_filled(4);
    story.end();
}

#[test]
fn a_coordinator_whose_nodes_follow_another_one_deposes_nobody() {
    let mut story = filled();
    let before = story.view().clone();
    story.coordinator().depose();
    story.coordinator().elect();
    assert_eq!(story.coordinators(), 2);
    story.run(5 * story.lease_us());
    assert_eq!(story.coordinators(), 1, "the former one has heard nobody, and has resigned");
    assert_eq!(*story.view(), before);
    story.is_filled(4);
    story.end();
}
