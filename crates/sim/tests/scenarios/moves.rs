//! Roles move to other nodes while everything goes on.

use sim::Story;
use types::RoleStatus;

/// Whether `role` is served by `node`, with everything.
fn is_at(story: &Story, role: usize, node: usize) -> bool {
    let data = &story.view().data[role];
    data.status == RoleStatus::Full && data.primary.is_some_and(|host| usize::from(host.node.0) == node)
}

/// A group of 3+2 on six nodes, the last of which is free; filled.
fn filled() -> Story {
    let mut story = Story::new(3, 2, 6);
    story.fill(4);
    story
}

#[test]
fn a_data_role_moves_with_everything_it_has() {
    let mut story = filled();
    let before = story.primary(1);
    story.operator().move_to(1, 5);
    story.run_until("the role has moved", |story| is_at(story, 1, 5));
    assert!(story.view().learners.is_empty());
    story.is_filled(4);
    // The parities agree with it, and the node that it left is free.
    story.kill(before);
    story.kill(story.primary(1));
    story.until_full(1);
    story.is_filled(4);
    story.end();
}

#[test]
fn writes_before_during_and_after_a_move_are_there_afterwards() {
    for moment in (0..80).chain((80..700).step_by(23)) {
        let mut story = filled();
        story.operator().move_to(0, 5);
        story.steps(moment);
        let key = story.key(0, 1);
        let asked = story.begin_set(key, "during the move");
        story.run_until("the role has moved", |story| is_at(story, 0, 5));
        story.wait_for(asked);
        assert_eq!(story.get(key).as_deref(), Some("during the move"), "after {moment} events");
        story.end();
    }
}

#[test]
fn a_parity_moves_and_the_one_before_is_relieved() {
    let mut story = filled();
    let before = story.parity(0);
    story.operator().move_to(3, 5);
    story.run_until("it has moved", |story| story.parity(0) == 5);
    assert_eq!(story.in_sync().len(), 2);
    story.kill(before);
    story.kill(story.primary(0));
    story.kill(story.parity(1));
    story.until_full(0);
    story.is_filled(4);
    story.end();
}

#[test]
fn whoever_dies_during_a_move_nothing_is_lost() {
    for moment in (0..900).step_by(19) {
        for victim in 0..3 {
            let mut story = filled();
            let (source, parity) = (story.primary(0), story.parity(1));
            story.operator().move_to(0, 5);
            story.steps(moment);
            story.kill([source, 5, parity][victim]);
            story.until_full(0);
            story.is_filled(4);
            story.end();
        }
    }
}

#[test]
fn a_primary_that_makes_way_in_vain_goes_on_after_a_lease() {
    let mut story = filled();
    story.operator().move_to(0, 5);
    story.run_until("its mirror is whole", |story| story.view().learners.iter().any(|l| l.whole));
    story.coordinator().stop();
    let key = story.key(0, 1);
    let asked = story.begin_set(key, "nobody decides");
    story.wait_for(asked);
    assert_eq!(story.view().data[0].status, RoleStatus::Full);
    story.coordinator().go_on();
    story.run_until("the role has moved", |story| is_at(story, 0, 5));
    assert_eq!(story.get(key).as_deref(), Some("nobody decides"));
    story.end();
}

#[test]
fn a_stand_in_and_a_parity_part_when_there_is_a_better_place() {
    let mut story = Story::new(3, 2, 5);
    story.fill(4);
    let lost = story.primary(0);
    story.kill(lost);
    story.until_full(0);
    let shared = story.primary(0);
    assert!((0..2).any(|row| story.parity(row) == shared));
    story.start(lost);
    story.run_until("no node has two roles", |story| {
        let view = story.view();
        view.learners.is_empty()
            && view.data.iter().all(|role| view.roles_on(role.primary.unwrap().node) == 1)
    });
    story.is_filled(4);
    story.end();
}
