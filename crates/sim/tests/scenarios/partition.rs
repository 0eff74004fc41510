//! Nodes that run but cannot be reached: by the coordinator, by their parities, by anybody.

use sim::Story;
use sim::story::set;
use types::op::{Get, Op, Outcome};

fn cut_from_parities(story: &mut Story, primary: usize) {
    for row in 0..story.in_sync().len() {
        let parity = story.parity(row);
        story.link(primary, parity).sever();
    }
}

#[test]
fn a_primary_cut_off_from_the_coordinator_only_is_replaced_and_stops() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "before");
    let old = story.primary(0);
    story.line(old).sever();
    story
        .run_until("another takes over", |story| story.view().data[0].primary.is_some_and(|h| h.node.0 == 5));
    let asked = story.ask(old, key, set(b"by the old one"));
    let node = story.primary(0);
    let through = story.ask(node, key, set(b"by the new one"));
    assert!(matches!(story.wait_for(through), Outcome::Stored(_)));
    story.line(old).mend();
    story.wait_for(asked);
    story.end();
}

#[test]
fn a_primary_cut_off_from_its_parities_only_does_not_stop_the_group_for_ever() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "before");
    let old = story.primary(0);
    cut_from_parities(&mut story, old);
    story.set(key, "after");
    assert_eq!(story.get(key).as_deref(), Some("after"));
    assert!(story.view().spare_parities() >= 1, "one unreachable node costs one loss: {:?}", story.view());
    story.end();
}

#[test]
fn a_primary_cut_off_from_both_is_replaced() {
    let mut story = Story::new(3, 2, 6);
    let key = story.key(0, 0);
    story.set(key, "before");
    let old = story.primary(0);
    story.line(old).sever();
    for other in (0..6).filter(|other| *other != old) {
        story.link(old, other).sever();
    }
    let stale = story.ask(old, key, set(b"nobody hears this"));
    story
        .run_until("another takes over", |story| story.view().data[0].primary.is_some_and(|h| h.node.0 == 5));
    story.run(2 * story.lease_us());
    assert!(!story.stored(stale));
    let read = story.ask(old, key, Op::Get(Get::default()));
    assert!(!matches!(story.answer(read), Some(Outcome::Hit(_))), "its lease has run out");
    for other in (0..6).filter(|other| *other != old) {
        story.link(old, other).mend();
    }
    story.line(old).mend();
    story.wait_for(stale);
    story.end();
}

#[test]
fn the_lease_of_a_cut_off_primary_ends_before_its_stand_in_serves() {
    // The old primary is read at every moment of the takeover; the oracle knows what it may still say.
    let mut story = Story::new(2, 1, 4);
    let key = story.key(0, 0);
    story.set(key, "before");
    let (old, parity) = (story.primary(0), story.parity(0));
    story.line(old).sever();
    story.link(old, parity).sever();
    let mut writes = Vec::new();
    for n in 0..60 {
        let lease = story.lease_us();
        story.run(lease / 20);
        story.ask(old, key, Op::Get(Get::default()));
        let others = if story.view().data[0].primary.is_some_and(|host| usize::from(host.node.0) != old) {
            story.primary(0)
        } else {
            story.primary(1)
        };
        writes.push(story.ask(others, key, set(format!("write {n}").as_bytes())));
    }
    story.link(old, parity).mend();
    story.line(old).mend();
    for asked in writes {
        story.wait_for(asked);
    }
    story.end();
}

#[test]
fn with_the_coordinator_down_reads_and_writes_go_on() {
    let mut story = Story::new(3, 2, 5);
    let key = story.key(0, 0);
    story.coordinator().stop();
    for round in 0..30 {
        story.set(key, &format!("round {round}"));
        story.run(story.lease_us());
        assert_eq!(story.get(key), Some(format!("round {round}")));
    }
    story.coordinator().go_on();
    story.run(3 * story.lease_us());
    assert_eq!(story.view().spare_parities(), 2, "its absence cost nothing");
    story.end();
}

#[test]
fn a_node_that_dies_while_the_coordinator_is_down_is_replaced_when_it_is_back() {
    let mut story = Story::new(3, 2, 6);
    story.fill(3);
    story.coordinator().stop();
    story.kill(story.primary(0));
    story.run(10 * story.lease_us());
    story.coordinator().go_on();
    story.is_filled(3);
    assert_eq!(story.view().spare_parities(), 1 + usize::from(story.status(0) == types::RoleStatus::Full));
    story.end();
}

#[test]
fn the_coordinator_loses_all_its_connections_and_gets_them_back() {
    let mut story = Story::new(3, 2, 5);
    story.fill(3);
    for node in 0..5 {
        story.line(node).sever();
    }
    story.run(story.lease_us() / 2);
    for node in 0..5 {
        story.line(node).mend();
    }
    story.is_filled(3);
    story.run(2 * story.lease_us());
    assert_eq!(story.view().spare_parities(), 2);
    story.end();
}

#[test]
fn the_minority_side_of_a_split_is_replaced_and_comes_back_as_spares() {
    let mut story = Story::new(3, 2, 7);
    story.fill(3);
    for inside in [0, 3] {
        story.line(inside).sever();
        for outside in [1, 2, 4, 5, 6] {
            story.link(inside, outside).sever();
        }
    }
    let key = story.key(1, 0);
    story.set(key, "on the majority side");
    story.run_until("role 0 has a new primary", |story| {
        story.view().data[0].primary.is_some_and(|host| host.node.0 != 0)
    });
    story.until_full(0);
    for inside in [0, 3] {
        for outside in [1, 2, 4, 5, 6] {
            story.link(inside, outside).mend();
        }
        story.line(inside).mend();
    }
    assert_eq!(story.get(key).as_deref(), Some("on the majority side"));
    story.end();
}

#[test]
fn a_coordinator_cut_off_from_everyone_for_long_gives_nobody_up() {
    let mut story = Story::new(3, 2, 5);
    story.fill(3);
    (0..5).for_each(|node| story.line(node).sever());
    story.run(12 * story.lease_us());
    (0..5).for_each(|node| story.line(node).mend());
    (0..3).for_each(|role| story.until_full(role));
    story.is_filled(3);
    assert_eq!(story.end().lost_roles, 0);
}

/// A stand-in on a spare node that is kept from `silent`, and from a primary so that it stays without all its pages.
fn stand_in_kept_from(story: &mut Story, silent: usize) -> usize {
    story.fill(6);
    story.kill(story.primary(0));
    story.until_appointed(0);
    let stand_in = story.primary(0);
    for other in [silent, story.primary(1)] {
        story.link(stand_in, other).sever();
    }
    stand_in
}

#[test]
fn a_stand_in_that_misses_a_living_parity_is_replaced_and_the_parity_stays() {
    let mut story = Story::new(3, 2, 7);
    let parity = story.parity(1);
    let stand_in = stand_in_kept_from(&mut story, parity);
    story.run_until("another stand-in", |story| {
        let primary = story.view().data[0].primary;
        primary.is_some_and(|host| usize::from(host.node.0) != stand_in)
    });
    assert!(story.in_sync().contains(&1));
    story.until_full(0);
    assert!(story.in_sync().contains(&1));
    story.is_filled(6);
    story.end();
}

#[test]
fn a_parity_that_two_stand_ins_in_turn_cannot_reach_is_removed() {
    let mut story = Story::new(3, 2, 7);
    let parity = story.parity(1);
    let first = stand_in_kept_from(&mut story, parity);
    let next = (5..7).find(|spare| *spare != first).expect("there are two spare nodes");
    story.link(next, parity).sever();
    story.link(next, story.primary(1)).sever();
    story.run_until("the parity is removed", |story| !story.in_sync().contains(&1));
    assert_eq!(story.primary(0), next);
    story.link(next, story.primary(1)).mend();
    story.link(next, parity).mend();
    story.until_full(0);
    story.is_filled(6);
    story.end();
}
