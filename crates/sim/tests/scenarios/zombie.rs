//! Processes that were taken for dead, and wake up with live sockets.

use sim::Story;
use sim::story::{is_unknown, set};
use types::op::{Get, Op, Outcome};

#[test]
fn a_primary_that_slept_past_every_time_out_acknowledges_nothing_when_it_wakes() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "before");
    let sleeper = story.primary(0);
    story.stop(sleeper);
    let asked = story.ask(sleeper, key, set(b"by the sleeper"));
    story
        .run_until("another takes over", |story| story.view().data[0].primary.is_some_and(|h| h.node.0 == 5));
    story.set(key, "by the stand-in");
    story.go_on(sleeper);
    story.run(4 * story.lease_us());
    if let Some(Outcome::Stored(_)) = story.answer(asked) {
        assert_ne!(story.get(key).as_deref(), Some("by the stand-in"), "it went through the stand-in, later");
    } else {
        assert_eq!(story.get(key).as_deref(), Some("by the stand-in"));
    }
    story.end();
}

#[test]
fn a_primary_that_slept_never_answers_a_read_from_its_old_memory() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "old");
    let sleeper = story.primary(0);
    story.stop(sleeper);
    story
        .run_until("another takes over", |story| story.view().data[0].primary.is_some_and(|h| h.node.0 == 5));
    story.set(key, "new");
    let asked = story.ask(sleeper, key, Op::Get(Get::default()));
    story.go_on(sleeper);
    match story.wait_for(asked) {
        Outcome::Hit(view) => assert_eq!(&view.value[..], b"new"),
        other => assert!(matches!(other, Outcome::Failed(_)), "{other:?}"),
    }
    story.end();
}

#[test]
fn a_write_in_flight_at_a_deposed_primary_ends_as_unknown() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "before");
    let sleeper = story.primary(0);
    for row in 0..2 {
        story.wire(sleeper, story.parity(row)).hold();
    }
    let asked = story.ask(sleeper, key, set(b"in flight"));
    story.stop(sleeper);
    story
        .run_until("another takes over", |story| story.view().data[0].primary.is_some_and(|h| h.node.0 == 5));
    story.go_on(sleeper);
    let outcome = story.wait_for(asked);
    assert!(is_unknown(&outcome), "{outcome:?}");
    story.end();
}

#[test]
fn a_parity_that_slept_is_removed_and_its_old_acks_count_for_nothing() {
    let mut story = Story::new(3, 2, 5);
    let key = story.key(0, 0);
    let sleeper = story.parity(0);
    story.stop(sleeper);
    let asked = story.begin_set(key, "new");
    story.run_until("the parity is removed", |story| story.in_sync() == [1]);
    story.wait_for(asked);
    story.go_on(sleeper);
    story.set(key, "newer");
    story.kill(story.primary(0));
    assert_eq!(story.get(key).as_deref(), Some("newer"));
    story.end();
}

#[test]
fn a_short_sleep_costs_nobody_anything() {
    for role in 0..5 {
        let mut story = Story::new(3, 2, 5);
        let key = story.key(0, 0);
        story.stop(role);
        story.run(story.lease_us() / 2);
        story.go_on(role);
        story.set(key, "x");
        story.run(2 * story.lease_us());
        assert_eq!(story.in_sync(), [0, 1], "node {role} slept");
        assert_eq!(story.view().spare_parities(), 2);
        story.end();
    }
}

#[test]
fn the_whole_cluster_sleeps_and_wakes() {
    let mut story = Story::new(3, 2, 5);
    story.fill(3);
    story.coordinator().stop();
    for node in 0..5 {
        story.stop(node);
    }
    story.run(20 * story.lease_us());
    story.coordinator().go_on();
    for node in 0..5 {
        story.go_on(node);
    }
    story.is_filled(3);
    assert_eq!(story.view().spare_parities(), 2, "nothing was lost");
    story.end();
}

#[test]
fn the_last_stand_in_sleeps_and_the_one_after_it_finds_everything() {
    let mut story = Story::new(2, 2, 6);
    story.fill(3);
    for _ in 0..2 {
        let primary = story.primary(0);
        story.stop(primary);
        story.run_until("another takes over", |story| {
            story.view().data[0].primary.is_some_and(|host| usize::from(host.node.0) != primary)
        });
        story.is_filled(3);
        story.go_on(primary);
    }
    story.is_filled(3);
    story.end();
}
