//! A session in which no role is lost must end in zero, whatever goes on meanwhile.

use sim::Story;
use types::{OnFinding, RoleStatus};

/// A group of 3+2 on six nodes, filled; a large item makes its parities reserve a whole extent, so that there is much to compare.
fn filled() -> Story {
    let mut story = Story::new(3, 2, 6);
    story.fill(4);
    let (large, value) = (story.key(0, 9), [7; 600_000]);
    story.set_bytes(large, &value);
    story
}

/// Every page that has memory was compared by both parities, and nothing was found.
fn found_nothing(story: &Story) {
    let progress = story.scrub().progress();
    assert!(progress.checked_pages >= 2 * 256, "two parities, an extent each: {progress:?}");
    assert_eq!((progress.left_pages, progress.mismatches), (0, 0));
    assert_eq!(story.scrub().findings(), []);
}

#[test]
fn a_healthy_cluster_ends_in_zero() {
    let mut story = filled();
    story.operator().start_scrub(OnFinding::Report);
    assert!(!story.scrub().is_done());
    story.until_scrubbed();
    found_nothing(&story);
    story.end();
}

#[test]
fn writes_before_during_and_after_a_session_change_nothing_of_it() {
    for moment in (0..60).chain((60..240).step_by(7)) {
        let mut story = filled();
        story.operator().start_scrub(OnFinding::Report);
        story.steps(moment);
        let keys = (0..6).map(|n| story.key(n % 3, 5 * (n / 3)));
        let keys: Vec<_> = keys.collect();
        let begin = |key| (key, story.begin_set(key, "while it was compared"));
        let asked: Vec<_> = keys.into_iter().map(begin).collect();
        for (key, asked) in asked {
            story.wait_for(asked);
            story.delete(key);
        }
        story.until_scrubbed();
        found_nothing(&story);
        story.end();
    }
}

#[test]
fn records_that_wait_on_a_slow_link_are_in_the_sum_before_the_page_that_has_them() {
    let mut story = filled();
    let (primary, parity) = (story.primary(1), story.parity(0));
    story.operator().start_scrub(OnFinding::Report);
    story.wire(primary, parity).hold();
    let key = story.key(1, 0);
    let asked = story.begin_set(key, "held");
    story.run(20_000);
    story.wire(primary, parity).release();
    story.wait_for(asked);
    story.until_scrubbed();
    found_nothing(&story);
    story.end();
}

#[test]
fn a_primary_that_is_lost_meanwhile_delays_it() {
    for moment in (0..80).step_by(3) {
        let mut story = filled();
        story.operator().start_scrub(OnFinding::Report);
        story.steps(moment);
        story.kill(story.primary(0));
        story.until_full(0);
        story.until_scrubbed();
        assert_eq!(story.scrub().findings(), []);
        story.is_filled(4);
        story.end();
    }
}

#[test]
fn nothing_is_compared_while_a_role_is_lost_or_rebuilding() {
    let mut story = filled();
    story.kill(story.primary(0));
    story.run_until("the role is given away", |story| story.status(0) != RoleStatus::Full);
    story.operator().start_scrub(OnFinding::Report);
    while story.status(0) != RoleStatus::Full {
        assert_eq!(story.scrub().progress().checked_pages, 0);
        story.steps(1);
    }
    story.until_scrubbed();
    assert_eq!(story.scrub().findings(), []);
    story.end();
}

#[test]
fn a_role_that_moves_meanwhile_is_compared_where_it_was_and_where_it_is() {
    for moment in (0..80).step_by(5) {
        for role in [0, 3] {
            let mut story = filled();
            story.operator().start_scrub(OnFinding::Report);
            story.steps(moment);
            story.operator().move_to(role, 5);
            let key = story.key(0, 1);
            let asked = story.begin_set(key, "during the move");
            story.run_until("it has moved", |story| {
                let view = story.view();
                let host = if role < 3 { view.data[role].primary } else { view.parity[role - 3] };
                view.is_full() && host.is_some_and(|host| host.node.0 == 5)
            });
            story.wait_for(asked);
            story.until_scrubbed();
            assert_eq!(story.scrub().findings(), []);
            story.end();
        }
    }
}

#[test]
fn a_broken_link_costs_a_session_and_no_more() {
    for moment in (0..60).step_by(3) {
        let mut story = filled();
        story.operator().start_scrub(OnFinding::Report);
        story.steps(moment);
        story.link(story.primary(1), story.parity(1)).cut();
        story.until_scrubbed();
        found_nothing(&story);
        story.end();
    }
}

#[test]
fn a_second_scrub_begins_from_the_beginning() {
    let mut story = filled();
    story.operator().start_scrub(OnFinding::Report);
    story.until_scrubbed();
    let first = story.scrub().progress();
    story.operator().start_scrub(OnFinding::Report);
    assert!(!story.scrub().is_done());
    story.until_scrubbed();
    let second = story.scrub().progress();
    assert_eq!((first.generation, second.generation), (1, 2));
    assert_eq!(first.checked_pages, second.checked_pages);
    story.end();
}
