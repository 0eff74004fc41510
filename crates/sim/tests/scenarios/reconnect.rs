//! Connections break; the streams go on where they were.

use sim::Story;

#[test]
fn unacked_and_uncommitted_records_are_sent_again_after_a_reconnect() {
    let mut story = Story::new(3, 2, 5);
    let (primary, parity) = (story.primary(0), story.parity(0));
    let keys: Vec<usize> = (0..5).map(|n| story.key(0, n)).collect();
    story.wire(parity, primary).hold();
    let asked: Vec<_> = keys.iter().map(|key| story.begin_set(*key, "pending")).collect();
    story.run(1_000);
    story.link(primary, parity).cut();
    story.wire(parity, primary).release();
    story.run_until("all are committed", |story| asked.iter().all(|asked| story.stored(*asked)));
    story.end();
}

#[test]
fn a_connection_that_breaks_at_any_moment_of_a_burst_loses_and_repeats_nothing() {
    for moment in 0..60 {
        let mut story = Story::new(2, 2, 4);
        let key = story.key(0, 0);
        let asked: Vec<_> = (0..6).map(|n| story.begin_set(key, &format!("value {n}"))).collect();
        story.steps(moment);
        let (primary, parity) = (story.primary(0), story.parity(moment % 2));
        story.link(primary, parity).cut();
        story.run_until("all are committed", |story| asked.iter().all(|asked| story.stored(*asked)));
        assert_eq!(story.get(key).as_deref(), Some("value 5"));
        assert_eq!(story.in_sync(), [0, 1]);
        story.end();
    }
}

#[test]
fn a_link_that_breaks_again_and_again_delays_and_costs_nothing() {
    let mut story = Story::new(2, 1, 3);
    let key = story.key(0, 0);
    for n in 0..40 {
        let asked = story.begin_set(key, &format!("value {n}"));
        story.run(60);
        story.link(story.primary(0), story.parity(0)).cut();
        story.wait_for(asked);
    }
    assert_eq!(story.get(key).as_deref(), Some("value 39"));
    story.end();
}

#[test]
fn a_forwarded_write_whose_link_breaks_is_not_done_twice() {
    for moment in 0..30 {
        let mut story = Story::new(2, 1, 3);
        let key = story.key(0, 0);
        story.set(key, "1");
        let (primary, elsewhere) = (story.primary(0), story.primary(1));
        story.ask(elsewhere, key, sim::story::increment(1));
        story.steps(moment);
        story.link(primary, elsewhere).cut();
        story.run(4 * story.lease_us());
        let left = story.get(key).expect("the number is there");
        assert!(left == "1" || left == "2", "counted to {left} by one increment");
        story.end();
    }
}

#[test]
fn nobody_tries_again_and_again_to_reach_a_node_that_is_down() {
    let mut story = Story::new(2, 1, 4);
    let spare = (0..4).find(|node| ![story.primary(0), story.primary(1), story.parity(0)].contains(node));
    let events_of_a_while = |story: &mut Story| {
        let before = story.stats().events;
        story.run(20 * story.lease_us());
        story.stats().events - before
    };
    let before = events_of_a_while(&mut story);
    story.kill(spare.expect("a node without a role"));
    story.run(4 * story.lease_us());
    let after = events_of_a_while(&mut story);
    assert!(after <= before, "{after} events, {before} before");
    story.end();
}
