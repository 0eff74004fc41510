//! A lost parity is built anew on a node that is free, while everything goes on.

use sim::Story;

fn in_sync(story: &Story, count: usize) -> bool {
    story.in_sync().len() == count
}

/// A group of `k + 1` whose only parity has died, and whose next one has just been appointed.
fn learning(k: usize, nodes: usize) -> Story {
    let mut story = Story::new(k, 1, nodes);
    story.fill(3);
    story.kill(story.parity(0));
    story.run_until("a learner is appointed", |story| !story.view().learners.is_empty());
    story
}

#[test]
fn a_lost_parity_is_built_on_a_spare_node_and_counts() {
    let mut story = Story::new(3, 2, 6);
    story.fill(4);
    let lost = story.parity(0);
    story.kill(lost);
    story.run_until("the other parity is alone", |story| in_sync(story, 1));
    story.run_until("a new parity is in sync", |story| in_sync(story, 2));
    assert_ne!(story.parity(0), lost);
    // It is worth as much as the one that was lost: two more may die.
    story.kill(story.parity(1));
    story.kill(story.primary(0));
    story.until_full(0);
    story.is_filled(4);
    story.end();
}

#[test]
fn writes_before_during_and_after_a_lesson_are_in_the_new_parity() {
    for moment in (0..60).chain((60..900).step_by(41)) {
        let mut story = learning(2, 4);
        story.steps(moment);
        let key = story.key(0, 1);
        let asked = story.begin_set(key, "during the lesson");
        story.run_until("the learner is in sync", |story| in_sync(story, 1));
        story.wait_for(asked);
        story.kill(story.primary(0));
        story.until_full(0);
        assert_eq!(story.get(key).as_deref(), Some("during the lesson"), "after {moment} events");
        story.end();
    }
}

#[test]
fn a_learner_that_dies_is_replaced() {
    let mut story = learning(3, 6);
    let learner = story.view().learners[0].host.node;
    story.kill(usize::from(learner.0));
    story.run_until("another one is in sync", |story| in_sync(story, 1));
    assert_ne!(story.parity(0), usize::from(learner.0));
    story.is_filled(3);
    story.end();
}

#[test]
fn a_link_that_breaks_during_a_lesson_makes_the_learner_start_again() {
    for moment in (0..400).step_by(37) {
        let mut story = learning(3, 5);
        story.steps(moment);
        let learner = usize::from(story.view().learners[0].host.node.0);
        story.link(story.primary(1), learner).cut();
        story.run_until("it is in sync all the same", |story| in_sync(story, 1));
        story.kill(story.primary(1));
        story.until_full(1);
        story.is_filled(3);
        story.end();
    }
}

#[test]
fn a_restarted_node_learns_what_is_missing() {
    let mut story = Story::new(3, 2, 5);
    story.fill(3);
    let lost = story.parity(1);
    story.kill(lost);
    story.run_until("the other parity is alone", |story| in_sync(story, 1));
    story.start(lost);
    story.run_until("its new life is in sync", |story| in_sync(story, 2));
    story.is_filled(3);
    story.end();
}
