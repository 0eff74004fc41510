//! After more losses than the code can bear: what is left is protected anew, what is lost begins anew, and nobody is told two
//! stories meanwhile.

use sim::story::{Writing, set};
use sim::{Options, Story};
use types::op::{Failure, Get, Op, Outcome};
use types::{LossPolicy, OnFinding, RoleStatus};

/// Role 0 of `rs(3+2)` on `nodes` nodes is lost with both parities.
fn with_a_lost_role(options: Options) -> Story {
    let mut story = Story::with(options);
    story.expect_loss();
    story.fill(6);
    for node in [story.parity(0), story.parity(1), story.primary(0)] {
        story.kill_watched(node);
    }
    story.run_until("the loss is noticed", |story| story.status(0).is_lost());
    story
}

fn get() -> Op {
    Op::Get(Get::default())
}

#[test]
fn what_is_left_beside_lost_data_survives_m_losses_again() {
    let options = Options::quiet(3, 2, 9);
    let protection = options.protection();
    let mut story = with_a_lost_role(options);
    assert_eq!(story.status(0), RoleStatus::Lost);
    story.until_protected(2);
    assert_eq!((story.view().spare_parities(), protection.losses_survived(story.view())), (2, 2));
    story.operator().start_scrub(OnFinding::Report);
    story.until_scrubbed();
    assert_eq!(story.scrub().findings(), []);
    story.kill_watched(story.primary(1));
    story.kill_watched(story.parity(0));
    story.until_full(1);
    for role in [1, 2] {
        for n in 0..6 {
            let key = story.key(role, n);
            assert_eq!(story.get(key), Some(format!("value {n} of role {role}")));
        }
    }
    let lost = story.key(0, 0);
    assert_eq!(story.read(lost), Outcome::Failed(Failure::Lost));
    story.end();
}

#[test]
fn an_accepted_role_is_empty_and_what_it_is_given_survives_m_losses() {
    let mut story = with_a_lost_role(Options::quiet(3, 2, 9));
    story.until_protected(2);
    story.operator().accept_losses();
    assert_eq!(story.status(0), RoleStatus::Accepted);
    story.until_full(0);
    let keys: Vec<usize> = (0..6).map(|n| story.key(0, n)).collect();
    for key in &keys {
        assert_eq!(story.get(*key), None);
        story.set(*key, "of the new life");
    }
    assert_eq!(story.in_sync().len(), 2, "the parities take it from its first record on");
    story.kill_watched(story.primary(0));
    story.kill_watched(story.parity(1));
    story.until_full(0);
    for key in &keys {
        assert_eq!(story.get(*key).as_deref(), Some("of the new life"));
    }
    story.end();
}

#[test]
fn an_old_unique_is_worth_nothing_in_the_new_life() {
    let mut story = with_a_lost_role(Options::quiet(3, 2, 9));
    story.operator().accept_losses();
    story.until_full(0);
    let key = story.key(0, 0);
    story.set(key, "new");
    let Outcome::Hit(view) = story.read(key) else { panic!("it was just set") };
    assert!(view.version > 1 << 40, "versions of two lives never meet: {}", view.version);
    story.end();
}

#[test]
fn caches_accept_by_themselves() {
    let mut story = with_a_lost_role(Options { on_loss: LossPolicy::Empty, ..Options::quiet(3, 2, 9) });
    let key = story.key(0, 0);
    story.set(key, "new");
    story.until_protected(2);
    story.end();
}

#[test]
fn a_primary_that_needs_nobody_is_waited_for_until_it_knows() {
    // No spare node: the parity is not replaced, and its primaries go on alone.
    let mut story = Story::new(2, 1, 3);
    story.expect_loss();
    story.fill(2);
    story.kill_watched(story.parity(0));
    story.run(story.lease_us());
    let zombie = story.primary(0);
    story.line(zombie).shut();
    story.run(8 * story.lease_us());
    assert_eq!(story.status(0), RoleStatus::Lost);
    story.operator().accept_losses();
    story.run(20 * story.lease_us());
    assert_eq!(story.status(0), RoleStatus::Accepted, "it may still serve");
    let key = story.key(0, 0);
    let asked = story.ask(zombie, key, set(b"by the zombie"));
    assert!(matches!(story.wait_for(asked), Outcome::Stored(_)), "and it does");
    let asked = story.ask(zombie, key, get());
    assert!(matches!(story.wait_for(asked), Outcome::Hit(_)));
    story.line(zombie).mend();
    story.until_full(0);
    assert_eq!(story.get(key), None);
    story.end();
}

#[test]
fn what_only_those_have_who_stand_still_is_there_when_they_go_on() {
    let mut story = Story::new(3, 2, 7);
    story.fill(2);
    let still = [story.primary(0), story.primary(1), story.parity(0)];
    still.into_iter().for_each(|node| story.stop(node));
    story.run(12 * story.lease_us());
    still.into_iter().for_each(|node| story.go_on(node));
    story.until_full(0);
    story.until_full(1);
    // Ends with a check that every key is there.
    story.end();
}

#[test]
fn a_living_parity_vouches_for_the_end_of_a_silent_primary() {
    let mut story = Story::new(2, 1, 4);
    story.expect_loss();
    story.fill(2);
    // Both primaries fall silent at once, which one parity cannot make up for.
    let (first, second) = (story.primary(0), story.primary(1));
    story.line(first).shut();
    story.kill_watched(second);
    story.run(8 * story.lease_us());
    assert_eq!((story.status(0), story.status(1)), (RoleStatus::Lost, RoleStatus::Lost));
    story.operator().accept_losses();
    story.until_full(0);
    story.until_full(1);
    let key = story.key(0, 0);
    let asked = story.ask(first, key, get());
    story.run(story.lease_us());
    assert!(
        !matches!(story.answer(asked), Some(Outcome::Hit(_))),
        "the former primary reads nothing any more"
    );
    story.end();
}

#[test]
fn after_all_nodes_have_started_again_the_cluster_serves_once_that_is_accepted() {
    let mut story = Story::new(3, 2, 5);
    story.expect_loss();
    story.fill(2);
    (0..5).for_each(|node| story.kill(node));
    story.run(2 * story.lease_us());
    (0..5).for_each(|node| story.start(node));
    story.run(4 * story.lease_us());
    assert!((0..3).all(|role| story.status(role) == RoleStatus::Lost), "{:?}", story.view());
    story.operator().accept_losses();
    (0..3).for_each(|role| story.until_full(role));
    story.fill(2);
    story.until_protected(2);
    story.is_filled(2);
    story.end();
}

#[test]
fn a_reset_begins_anew_what_lived_and_what_was_lost() {
    let mut story = with_a_lost_role(Options::quiet(3, 2, 9));
    story.run(story.lease_us());
    story.operator().reset_cluster();
    (0..3).for_each(|role| story.until_full(role));
    for role in 0..3 {
        let key = story.key(role, 0);
        assert_eq!(story.get(key), None);
    }
    story.fill(6);
    story.until_protected(2);
    story.is_filled(6);
    story.end();
}

#[test]
fn what_was_accepted_is_carried_out_by_the_next_coordinator() {
    let mut story = Story::with_successors(3, 2, 9);
    story.expect_loss();
    story.fill(2);
    let dead = [story.primary(0), story.primary(1), story.parity(0)];
    dead.into_iter().for_each(|node| story.kill_watched(node));
    story.run_until("it is lost", |story| story.status(0) == RoleStatus::Lost);
    story.operator().accept_losses();
    story
        .run_until("that is recorded", |story| (0..2).all(|role| story.status(role) == RoleStatus::Accepted));
    story.coordinator().kill(Writing::Lost);
    story.run(story.lease_us());
    story.coordinator().elect();
    // It does not know that the former primaries have ended. A parity lives, and knows.
    (0..2).for_each(|role| story.until_full(role));
    story.end();
}

#[test]
fn a_role_that_begins_anew_may_be_lost_at_once_and_recovered() {
    let mut story = with_a_lost_role(Options::quiet(3, 2, 9));
    story.until_protected(2);
    story.operator().accept_losses();
    story.run_until("it has begun", |story| story.status(0) == RoleStatus::Full);
    // Before its parities have heard of it.
    story.kill_watched(story.primary(0));
    story.until_full(0);
    let key = story.key(0, 0);
    assert_eq!(story.get(key), None);
    story.set(key, "new");
    story.end();
}
