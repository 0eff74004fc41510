//! A record on its way: who has it when somebody dies.

use sim::Story;
use types::op::{Outcome, StoreMode};

#[test]
fn a_parity_that_dies_between_its_ack_and_the_commit_costs_nothing() {
    let mut story = Story::new(3, 2, 5);
    let key = story.key(0, 0);
    let (primary, dying, slow) = (story.primary(0), story.parity(0), story.parity(1));
    story.wire(slow, primary).hold();
    let asked = story.begin_set(key, "new");
    story.run(500);
    assert!(!story.stored(asked), "one ack is missing");
    story.kill(dying);
    story.wire(slow, primary).release();
    story.run_until("the write is committed without the dead parity", |story| story.stored(asked));
    assert_eq!(story.in_sync(), [1]);
    assert_eq!(story.get(key).as_deref(), Some("new"));
    story.end();
}

#[test]
fn a_parity_that_dies_before_it_acks_delays_the_write_until_it_is_removed() {
    let mut story = Story::new(3, 2, 5);
    let key = story.key(0, 0);
    let (primary, dying) = (story.primary(0), story.parity(0));
    story.wire(primary, dying).hold();
    let asked = story.begin_set(key, "new");
    story.run(500);
    story.kill(dying);
    story.run(1_000);
    assert!(!story.stored(asked), "the primary may not go on alone");
    story.run_until("the parity is removed", |story| story.in_sync() == [1]);
    story.run_until("the write is committed", |story| story.stored(asked));
    story.end();
}

#[test]
fn a_record_that_reached_some_parities_is_dropped_with_its_primary() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "old");
    story.calm_down();
    let (primary, missing) = (story.primary(0), story.parity(1));
    story.wire(primary, missing).hold();
    let asked = story.begin_set(key, "new");
    story.run(500);
    story.kill(primary);
    story.until_full(0);
    assert!(!story.stored(asked));
    assert_eq!(story.get(key).as_deref(), Some("old"));
    story.end();
}

#[test]
fn a_record_that_reached_all_parities_survives_its_primary() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "old");
    story.calm_down();
    let primary = story.primary(0);
    for row in 0..2 {
        story.wire(story.parity(row), primary).hold();
    }
    let asked = story.begin_set(key, "new");
    story.run(500);
    story.kill(primary);
    story.until_full(0);
    assert!(!story.stored(asked), "the client was never told");
    assert_eq!(story.get(key).as_deref(), Some("new"));
    story.end();
}

#[test]
fn a_record_that_reached_no_parity_dies_with_its_primary() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "old");
    story.calm_down();
    let primary = story.primary(0);
    for row in 0..2 {
        story.wire(primary, story.parity(row)).hold();
    }
    story.begin_set(key, "new");
    story.run(500);
    story.kill(primary);
    story.until_full(0);
    assert_eq!(story.get(key).as_deref(), Some("old"));
    story.end();
}

#[test]
fn an_acknowledged_record_survives_although_no_parity_knows_that_it_is_committed() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "old");
    story.calm_down();
    let asked = story.begin_set(key, "new");
    story.run_until("the client is told", |story| story.stored(asked));
    story.kill(story.primary(0));
    story.until_full(0);
    assert_eq!(story.get(key).as_deref(), Some("new"));
    story.end();
}

#[test]
fn a_key_is_written_again_and_again_before_its_first_write_is_committed() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    let (primary, parity) = (story.primary(0), story.parity(0));
    story.wire(parity, primary).hold();
    let asked: Vec<_> = (0..20).map(|n| story.begin_set(key, &format!("value {n}"))).collect();
    let refused = story.ask(primary, key, sim::story::store(StoreMode::Add, b"no"));
    story.run(1_000);
    assert!(asked.iter().all(|asked| story.answer(*asked).is_none()));
    assert!(story.answer(refused).is_none(), "a refusal that rests on an uncommitted write waits for it");
    story.wire(parity, primary).release();
    story.run_until("all are committed", |story| asked.iter().all(|asked| story.stored(*asked)));
    assert_eq!(story.wait_for(refused), Outcome::NotStored);
    assert_eq!(story.get(key).as_deref(), Some("value 19"));
    story.end();
}

#[test]
fn pending_writes_of_one_key_survive_or_vanish_together_with_all_before_them() {
    for reached in 0..=4 {
        let mut story = Story::new(2, 1, 4);
        let key = story.key(0, 0);
        story.set(key, "old");
        story.calm_down();
        let (primary, parity) = (story.primary(0), story.parity(0));
        story.wire(parity, primary).hold();
        story.wire(primary, parity).hold();
        for n in 0..8 {
            story.begin_set(key, &format!("value {n}"));
            story.run(200);
        }
        for _ in 0..reached {
            story.wire(primary, parity).deliver_one();
        }
        story.kill(primary);
        story.until_full(0);
        let left = story.get(key).expect("the old value at least");
        assert!(left == "old" || left.starts_with("value "), "{left}");
        story.end();
    }
}

#[test]
fn a_slow_parity_is_removed_after_a_bounded_stall_and_writes_go_on() {
    let mut story = Story::new(3, 2, 5);
    let key = story.key(0, 0);
    let (primary, slow) = (story.primary(0), story.parity(1));
    story.wire(primary, slow).hold();
    let asked = story.begin_set(key, "new");
    story.run_until("the slow parity is removed", |story| story.in_sync() == [0]);
    story.run_until("the write is committed without it", |story| story.stored(asked));
    story.wire(primary, slow).release();
    story.set(key, "newer");
    assert_eq!(story.get(key).as_deref(), Some("newer"));
    story.end();
}

#[test]
fn nobody_but_the_coordinator_removes_a_silent_parity() {
    let mut story = Story::new(3, 2, 5);
    let key = story.key(0, 0);
    let (primary, silent) = (story.primary(0), story.parity(1));
    story.link(primary, silent).sever();
    story.coordinator().stop();
    let asked = story.begin_set(key, "new");
    story.run(20 * story.lease_us());
    assert!(!story.stored(asked), "without the coordinator's word the write waits");
    story.coordinator().go_on();
    story.run(5 * story.lease_us());
    assert_eq!(story.in_sync(), [0]);
    story.end();
}
