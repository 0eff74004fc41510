//! A data role and a parity change places while everything goes on: at no moment do fewer losses of nodes cost data.

use proto::Rules;
use sim::{Options, Story};
use types::{RoleIndex, RoleStatus};

/// A group of 3+2 on five nodes, filled; the nodes of its first data role and of its first parity, which are to change places.
fn filled() -> (Story, usize, usize) {
    filled_by(Rules::all())
}

fn filled_by(rules: Rules) -> (Story, usize, usize) {
    let mut story = Story::with(Options::quiet(3, 2, 5).by(rules));
    story.fill(4);
    let (from, to) = (story.primary(0), story.parity(0));
    story.operator().move_to(0, to);
    (story, from, to)
}

fn is_mirrored(story: &Story) -> bool {
    story.view().mirror(RoleIndex(0)).is_some()
}

/// Whether the data role is served by `node`, with everything.
fn is_at(story: &Story, node: usize) -> bool {
    let data = &story.view().data[0];
    data.status == RoleStatus::Full && data.primary.is_some_and(|host| usize::from(host.node.0) == node)
}

/// Whether the parity is on `node`, in sync.
fn has_parity(story: &Story, node: usize) -> bool {
    story.view().parity[0].is_some_and(|host| usize::from(host.node.0) == node)
}

/// Whether no node has two roles, and none is being built.
fn is_at_rest(story: &Story) -> bool {
    let view = story.view();
    view.learners.is_empty() && view.is_full() && view.hosts().all(|host| view.roles_on(host.node) == 1)
}

/// The data role's primary has the parity beside it, and the mirror waits alone.
fn both_on_one_node(rules: Rules) -> (Story, usize, usize) {
    let (mut story, from, to) = filled_by(rules);
    story.run_until("the parity has come", |story| has_parity(story, from));
    assert!(is_at(&story, from) && is_mirrored(&story));
    assert_eq!(Options::quiet(3, 2, 5).protection().losses_survived(story.view()), 2);
    (story, from, to)
}

#[test]
fn a_data_role_and_a_parity_change_places() {
    let (mut story, from, to) = filled();
    story.run_until("they have changed places", |story| is_at(story, to) && has_parity(story, from));
    assert!(is_at_rest(&story));
    story.is_filled(4);
    // Both are what they are said to be.
    story.kill(to);
    story.kill(story.primary(1));
    story.until_full(0);
    story.until_full(1);
    story.is_filled(4);
    story.end();
}

#[test]
fn the_mirror_waits_until_the_parity_has_gone() {
    let (mut story, from, to) = filled();
    story.run_until("the mirror is whole", is_mirrored);
    story.run_until("they have changed places", |story| {
        assert!(has_parity(story, to) || has_parity(story, from), "it is in sync all the time");
        assert!(!is_at(story, to) || has_parity(story, from), "the mirror came before the parity went");
        is_at_rest(story) && is_at(story, to)
    });
    story.end();
}

#[test]
fn writes_during_an_exchange_are_there_afterwards() {
    for moment in (0..900).step_by(29) {
        let (mut story, _, to) = filled();
        story.steps(moment);
        let key = story.key(0, 1);
        let asked = story.begin_set(key, "during the exchange");
        story.run_until("it is done", |story| is_at(story, to));
        story.wait_for(asked);
        assert_eq!(story.get(key).as_deref(), Some("during the exchange"), "after {moment} events");
        story.end();
    }
}

/// Two nodes die at the same moment, of an exchange that has come to any point.
pub fn whichever_two_die(rules: Rules) {
    for moment in (0..1000).step_by(37) {
        for (first, second) in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)] {
            let (mut story, from, to) = filled_by(rules);
            let nodes = [from, to, story.primary(1), story.parity(1)];
            story.steps(moment);
            story.kill(nodes[first]);
            story.kill(nodes[second]);
            (0..3).for_each(|role| story.until_full(role));
            story.is_filled(4);
            story.end();
        }
    }
}

#[test]
fn whichever_two_nodes_die_during_an_exchange_nothing_is_lost() {
    whichever_two_die(Rules::all());
}

#[test]
fn the_whole_mirror_takes_over_with_everything_if_the_node_with_both_dies() {
    let (mut story, from, to) = both_on_one_node(Rules::all());
    story.kill(from);
    story.run_until("the mirror serves", |story| is_at(story, to));
    story.is_filled(4);
    story.kill(story.parity(1));
    story.is_filled(4);
    story.start(from);
    story.run_until("the parity is back", |story| story.view().parity[0].is_some());
    story.end();
}

#[test]
fn if_the_mirror_dies_the_two_roles_part_as_soon_as_there_is_a_node() {
    let (mut story, _, to) = both_on_one_node(Rules::all());
    story.kill(to);
    story.run_until("the mirror is given up", |story| story.view().learners.is_empty());
    (0..3).for_each(|role| story.until_full(role));
    story.is_filled(4);
    story.start(to);
    story.run_until("no node has two roles", is_at_rest);
    story.is_filled(4);
    story.end();
}

/// Another primary dies while one node has both; then that node dies.
pub fn another_primary_dies_first(rules: Rules) {
    let (mut story, from, to) = both_on_one_node(rules);
    let other = story.primary(1);
    story.kill_watched(other);
    story.run_until("the loss is noticed", |story| story.status(1) != RoleStatus::Full);
    assert!(is_at(&story, from) && has_parity(&story, from));
    story.kill_watched(from);
    story.until_full(0);
    assert_eq!(story.primary(0), to);
    story.until_full(1);
    story.is_filled(4);
    story.end();
}

#[test]
fn a_failure_in_the_group_leaves_the_mirror_to_the_node_with_both() {
    another_primary_dies_first(Rules::all());
}

#[test]
fn whoever_stands_still_during_an_exchange_it_ends() {
    for moment in (0..1000).step_by(53) {
        for at in 0..3 {
            let (mut story, from, to) = filled();
            let node = [from, to, story.parity(1)][at];
            story.steps(moment);
            story.stop(node);
            story.run(3 * story.lease_us());
            story.go_on(node);
            story.run_until("no node has two roles", is_at_rest);
            story.is_filled(4);
            story.end();
        }
    }
}
