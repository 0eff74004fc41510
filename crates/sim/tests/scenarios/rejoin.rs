//! A parity that was evicted while its process lived on comes back: it goes on from what it has applied, if everybody's log
//! still reaches that far, and is built from nothing if not.

use sim::story::Resumed;
use sim::{Options, Story};

/// Keys of each data role.
const KEYS: usize = 8;

/// A group of 3+2 with nowhere else to go, and some hundred kilobytes in it.
fn filled(options: Options) -> Story {
    let mut story = Story::with(options);
    story.fill(KEYS);
    for role in 0..3 {
        for n in KEYS..2 * KEYS {
            let key = story.key(role, n);
            story.set_bytes(key, &[n as u8; 6000]);
        }
    }
    story
}

fn quiet() -> Options {
    Options::quiet(3, 2, 5)
}

/// Stops `node`, which has the parity of row 0, until that is evicted.
fn evict(story: &mut Story, node: usize) {
    assert_eq!(story.parity(0), node);
    story.stop(node);
    story.run_until("the parity is evicted", |story| story.in_sync() == [1]);
}

fn until_both_are_in_sync(story: &mut Story) {
    story.run_until("both parities are in sync", |story| story.in_sync() == [0, 1]);
    // The parity hears of it, too.
    story.calm_down();
}

/// The parity of row 0 has what it should: the data can be had from it and two of the others.
fn is_worth_a_parity(mut story: Story) {
    story.calm_down();
    story.kill(story.parity(1));
    story.kill(story.primary(0));
    story.until_full(0);
    story.is_filled(KEYS);
    story.end();
}

#[test]
fn a_parity_that_stood_still_goes_on_from_what_it_had() {
    let mut story = filled(quiet());
    let sleeper = story.parity(0);
    evict(&mut story, sleeper);
    let key = story.key(1, 2 * KEYS);
    story.set(key, "while it slept");
    let taught = story.taught_bytes();
    story.go_on(sleeper);
    until_both_are_in_sync(&mut story);
    assert_eq!(story.parity(0), sleeper);
    let Resumed { parities, bytes, instead_of_bytes: instead_of } = story.resumed();
    assert_eq!(parities, 1);
    assert!(instead_of > 150_000 && bytes < instead_of / 50, "{bytes} instead of {instead_of}");
    let taught = story.taught_bytes() - taught;
    // Beside the records only lists of extents.
    assert!(taught < bytes + 100, "{taught} bytes taught, {bytes} of them records");
    story.fill(KEYS);
    assert_eq!(story.get(key).as_deref(), Some("while it slept"));
    is_worth_a_parity(story);
}

#[test]
fn writes_at_any_moment_of_the_return_are_in_the_parity() {
    for moment in (0..80).chain((80..400).step_by(17)) {
        let mut story = filled(quiet());
        let sleeper = story.parity(0);
        evict(&mut story, sleeper);
        story.fill(KEYS);
        story.go_on(sleeper);
        story.steps(moment);
        let key = story.key(0, 1);
        let asked = story.begin_set(key, "during the return");
        until_both_are_in_sync(&mut story);
        story.wait_for(asked);
        assert_eq!(story.resumed().parities, 1, "after {moment} events");
        story.kill(story.parity(1));
        story.kill(story.primary(0));
        story.until_full(0);
        assert_eq!(story.get(key).as_deref(), Some("during the return"), "after {moment} events");
        story.end();
    }
}

#[test]
fn a_parity_that_comes_back_after_the_logs_were_cut_is_built_anew() {
    let mut options = quiet();
    options.limits.history_bytes = 10_000;
    let mut story = filled(options);
    let sleeper = story.parity(0);
    evict(&mut story, sleeper);
    // Of one role only: all the others could go on.
    for n in KEYS..2 * KEYS {
        let key = story.key(2, n);
        story.set_bytes(key, &[7; 6000]);
    }
    story.go_on(sleeper);
    until_both_are_in_sync(&mut story);
    assert_eq!(story.resumed().parities, 0);
    is_worth_a_parity(story);
}

#[test]
fn a_log_that_is_cut_during_the_return_makes_it_start_from_nothing() {
    for moment in (0..120).step_by(3) {
        let mut options = quiet();
        options.limits.history_bytes = 15_000;
        options.limits.frame_bytes = 4_000;
        let mut story = filled(options);
        let sleeper = story.parity(0);
        evict(&mut story, sleeper);
        let key = story.key(1, KEYS);
        story.set_bytes(key, &[1; 6000]);
        story.go_on(sleeper);
        story.steps(moment);
        let asked: Vec<_> = (0..6)
            .map(|n| {
                let key = story.key(1, KEYS + n);
                story.begin_set(key, &"x".repeat(6000))
            })
            .collect();
        until_both_are_in_sync(&mut story);
        for asked in asked {
            story.wait_for(asked);
        }
        is_worth_a_parity(story);
    }
}

#[test]
fn after_a_takeover_a_parity_goes_on_only_if_it_had_all_that_came_before() {
    for written in [false, true] {
        let mut story = filled(quiet());
        let sleeper = story.parity(0);
        story.calm_down();
        evict(&mut story, sleeper);
        let key = story.key(0, 0);
        if written {
            story.set(key, "of the first term");
        }
        story.kill(story.primary(0));
        story.until_full(0);
        story.set(key, "of the second term");
        story.go_on(sleeper);
        until_both_are_in_sync(&mut story);
        assert_eq!(story.resumed().parities, u64::from(!written));
        assert_eq!(story.get(key).as_deref(), Some("of the second term"));
        story.end();
    }
}

#[test]
fn what_was_received_and_never_committed_is_nothing_to_go_on_from() {
    let mut story = filled(quiet());
    let (primary, sleeper, other) = (story.primary(0), story.parity(0), story.parity(1));
    story.calm_down();
    story.wire(primary, other).hold();
    let key = story.key(0, 0);
    story.ask(primary, key, sim::story::set(b"never acknowledged"));
    story.run(200);
    story.stop(sleeper);
    story.kill(primary);
    story.until_full(0);
    story.set(key, "of the second term");
    story.go_on(sleeper);
    until_both_are_in_sync(&mut story);
    assert_eq!(story.resumed().parities, 1);
    assert_eq!(story.get(key).as_deref(), Some("of the second term"));
    story.end();
}

#[test]
fn a_parity_that_is_evicted_again_and_again_goes_on_each_time() {
    let mut story = filled(quiet());
    let sleeper = story.parity(0);
    for round in 1..=3 {
        evict(&mut story, sleeper);
        story.fill(KEYS);
        story.go_on(sleeper);
        until_both_are_in_sync(&mut story);
        assert_eq!(story.resumed().parities, round);
    }
    is_worth_a_parity(story);
}

#[test]
fn a_return_that_is_interrupted_by_another_standstill_goes_on_later() {
    for moment in (0..160).step_by(13) {
        let mut story = filled(quiet());
        let sleeper = story.parity(0);
        evict(&mut story, sleeper);
        story.fill(KEYS);
        story.go_on(sleeper);
        story.steps(moment);
        story.stop(sleeper);
        story.run(8 * story.lease_us());
        story.fill(KEYS);
        story.go_on(sleeper);
        until_both_are_in_sync(&mut story);
        assert!(story.resumed().parities >= 1, "after {moment} events");
        is_worth_a_parity(story);
    }
}

#[test]
fn a_restarted_node_has_nothing_to_go_on_from() {
    let mut story = filled(quiet());
    let sleeper = story.parity(0);
    evict(&mut story, sleeper);
    story.kill(sleeper);
    story.start(sleeper);
    until_both_are_in_sync(&mut story);
    assert_eq!(story.resumed().parities, 0);
    is_worth_a_parity(story);
}

#[test]
fn a_link_that_breaks_during_the_return_does_not_cost_what_is_there() {
    for moment in (0..120).step_by(7) {
        let mut story = filled(quiet());
        let sleeper = story.parity(0);
        evict(&mut story, sleeper);
        story.fill(KEYS);
        story.go_on(sleeper);
        story.steps(moment);
        story.link(story.primary(1), sleeper).cut();
        until_both_are_in_sync(&mut story);
        assert_eq!(story.resumed().parities, 1, "after {moment} events");
        is_worth_a_parity(story);
    }
}

#[test]
fn a_primary_that_dies_during_the_return_costs_no_data() {
    for moment in (0..160).step_by(7) {
        let mut story = filled(quiet());
        let sleeper = story.parity(0);
        evict(&mut story, sleeper);
        story.fill(KEYS);
        story.go_on(sleeper);
        story.steps(moment);
        let dead = story.primary(1);
        story.kill(dead);
        story.until_full(1);
        // The stand-in may be where the parity was: there has to be a place for both.
        story.start(dead);
        until_both_are_in_sync(&mut story);
        story.is_filled(KEYS);
        story.end();
    }
}

#[test]
fn a_parity_that_lost_one_primary_for_a_while_goes_on() {
    let mut story = filled(quiet());
    let (primary, parity) = (story.primary(2), story.parity(0));
    story.link(primary, parity).sever();
    let key = story.key(2, 2 * KEYS);
    let asked = story.begin_set(key, "over the other one");
    story.run_until("the parity is evicted", |story| story.in_sync() == [1]);
    story.wait_for(asked);
    story.link(primary, parity).mend();
    until_both_are_in_sync(&mut story);
    assert_eq!(story.get(key).as_deref(), Some("over the other one"));
    is_worth_a_parity(story);
}
