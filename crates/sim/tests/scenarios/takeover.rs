//! A primary is lost, alone or in company, and so is whoever takes over.

use sim::{Options, Story};
use types::RoleStatus;

/// How many keys each role has in these stories.
const KEYS: usize = 6;

fn filled(k: usize, m: usize, nodes: usize) -> Story {
    let mut story = Story::new(k, m, nodes);
    story.fill(KEYS);
    story
}

#[test]
fn a_stand_in_on_a_spare_node_serves_every_key_of_the_lost_primary() {
    let mut story = filled(3, 2, 6);
    story.kill(story.primary(1));
    story.is_filled(KEYS);
    assert_eq!(story.primary(1), 5, "the spare node takes over");
    story.until_full(1);
    story.end();
}

#[test]
fn without_a_spare_node_the_stand_in_lives_beside_a_parity() {
    let mut story = filled(3, 2, 5);
    story.kill(story.primary(1));
    story.is_filled(KEYS);
    assert!([3, 4].contains(&story.primary(1)));
    story.until_full(1);
    story.is_filled(KEYS);
    story.end();
}

#[test]
fn two_primaries_die_at_once() {
    for nodes in [5, 6, 7] {
        let mut story = filled(3, 2, nodes);
        story.kill(story.primary(0));
        story.kill(story.primary(2));
        story.is_filled(KEYS);
        story.until_full(0);
        story.until_full(2);
        assert_eq!(story.in_sync(), [0, 1]);
        story.end();
    }
}

#[test]
fn a_primary_and_a_parity_die_at_once() {
    for row in 0..2 {
        let mut story = filled(3, 2, 6);
        story.kill(story.parity(row));
        story.kill(story.primary(0));
        story.is_filled(KEYS);
        story.until_full(0);
        assert_eq!(story.in_sync(), [1 - row]);
        story.end();
    }
}

#[test]
fn both_parities_die_and_the_data_goes_on_alone() {
    let mut story = filled(3, 2, 5);
    story.kill(story.parity(0));
    story.kill(story.parity(1));
    story.run_until("both are removed", |story| story.in_sync().is_empty());
    let key = story.key(0, 0);
    story.set(key, "alone");
    assert_eq!(story.get(key).as_deref(), Some("alone"));
    story.end();
}

#[test]
fn the_stand_in_dies_at_any_moment_of_its_rebuild() {
    for moment in (0..120).step_by(3) {
        let mut story = filled(2, 2, 6);
        story.kill(story.primary(0));
        story.until_appointed(0);
        story.steps(moment);
        story.kill(story.primary(0));
        story.is_filled(KEYS);
        story.until_full(0);
        story.end();
    }
}

#[test]
fn a_parity_dies_between_any_two_steps_of_a_recovery() {
    for moment in (0..200).step_by(5) {
        let mut story = filled(2, 2, 5);
        story.kill(story.primary(0));
        story.run_until("the loss is noticed", |story| story.status(0) != RoleStatus::Full);
        story.steps(moment);
        story.kill(story.parity(moment % 2));
        story.is_filled(KEYS);
        story.until_full(0);
        story.end();
    }
}

#[test]
fn the_coordinator_stands_still_between_any_two_steps_of_a_recovery() {
    for moment in (0..60).step_by(2) {
        let mut story = filled(2, 1, 4);
        story.kill(story.primary(0));
        story.run_until("the loss is noticed", |story| story.status(0) != RoleStatus::Full);
        story.steps(moment);
        story.coordinator().stop();
        story.run(5 * story.lease_us());
        story.coordinator().go_on();
        story.is_filled(KEYS);
        story.until_full(0);
        story.end();
    }
}

#[test]
fn the_messages_of_a_recovery_are_lost_and_sent_again() {
    for moment in (0..60).step_by(2) {
        let mut story = filled(2, 2, 5);
        story.kill(story.primary(0));
        story.run_until("the loss is noticed", |story| story.status(0) != RoleStatus::Full);
        story.steps(moment);
        let parity = story.parity(moment / 2 % 2);
        story.line(parity).sever();
        story.run(story.lease_us() / 4);
        story.line(parity).mend();
        story.is_filled(KEYS);
        story.until_full(0);
        story.end();
    }
}

#[test]
fn primaries_die_one_after_the_other_while_the_others_rebuild() {
    for gap in [0, 50, 500, 5_000, 50_000, 500_000] {
        let mut story = filled(4, 3, 7);
        for role in 0..3 {
            let primary = story.primary(role);
            story.kill_watched(primary);
            story.run(gap);
        }
        story.is_filled(KEYS);
        story.end();
    }
}

#[test]
fn a_watched_death_is_taken_over_without_waiting_for_the_lease() {
    let mut story = filled(3, 2, 6);
    story.kill_watched(story.primary(0));
    let asked = story.read(story.key(0, 0));
    assert!(matches!(asked, types::op::Outcome::Hit(_)));
    story.until_full(0);
    story.end();
}

#[test]
fn a_node_that_restarts_under_its_old_id_owns_nothing_and_serves_again() {
    for wait in [0, 1_000, 150_000, 1_000_000] {
        let mut story = filled(3, 2, 5);
        let node = story.primary(0);
        story.kill(node);
        story.run(wait);
        story.start(node);
        story.is_filled(KEYS);
        story.until_full(0);
        story.end();
    }
}

#[test]
fn a_parity_that_restarts_under_its_old_id_is_not_taken_for_its_former_self() {
    for wait in [0, 1_000, 150_000] {
        let mut story = filled(3, 2, 5);
        let node = story.parity(0);
        story.kill(node);
        story.run(wait);
        story.start(node);
        let key = story.key(1, 0);
        story.set(key, "after");
        story.run_until("the old parity is out", |story| story.in_sync() == [1]);
        story.kill(story.primary(1));
        assert_eq!(story.get(key).as_deref(), Some("after"));
        story.end();
    }
}

#[test]
fn a_node_with_members_of_many_groups_dies() {
    let mut options = Options::quiet(3, 2, 5);
    options.groups = 5;
    options.shards = 2;
    options.text_keys = 200;
    let mut story = Story::with(options);
    story.fill(2);
    story.kill(1);
    story.kill(3);
    story.is_filled(2);
    story.end();
}

#[test]
fn a_chain_of_stand_ins_takes_over_from_each_other_while_clients_write() {
    let mut story = filled(2, 1, 5);
    let key = story.key(0, 0);
    for round in 0..3 {
        let node = story.primary(0);
        story.kill(node);
        story.set(key, &format!("round {round}"));
        story.until_full(0);
        story.start(node);
        assert_eq!(story.get(key), Some(format!("round {round}")));
    }
    story.end();
}
