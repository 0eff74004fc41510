//! Pages come back while everything goes on: writes before, during and after a session, by every role.

use sim::Story;
use types::RoleStatus;

/// Moments at which a story interferes with the rebuild: so many events after the stand-in was appointed.
fn moments() -> impl Iterator<Item = usize> {
    (0..40).chain((40..200).step_by(7))
}

fn rebuilding(k: usize, m: usize, nodes: usize) -> Story {
    let mut story = Story::new(k, m, nodes);
    story.fill(4);
    story.kill(story.primary(0));
    story.until_appointed(0);
    story
}

#[test]
fn a_live_role_updates_a_page_before_during_and_after_its_session() {
    for moment in moments() {
        let mut story = rebuilding(3, 2, 6);
        story.steps(moment);
        let key = story.key(1, 0);
        let asked = story.begin_set(key, "while the page was repaired");
        story.until_full(0);
        story.wait_for(asked);
        assert_eq!(story.get(key).as_deref(), Some("while the page was repaired"));
        for n in 0..4 {
            let key = story.key(0, n);
            assert_eq!(story.get(key), Some(format!("value {n} of role 0")));
        }
        story.end();
    }
}

#[test]
fn the_stand_in_itself_updates_a_page_before_during_and_after_its_session() {
    for moment in moments() {
        let mut story = rebuilding(3, 2, 6);
        story.steps(moment);
        let key = story.key(0, 1);
        let asked = story.begin_set(key, "by the stand-in");
        story.until_full(0);
        story.wait_for(asked);
        assert_eq!(story.get(key).as_deref(), Some("by the stand-in"));
        let untouched = story.key(0, 2);
        assert_eq!(story.get(untouched).as_deref(), Some("value 2 of role 0"));
        story.end();
    }
}

#[test]
fn two_stand_ins_repair_the_same_pages_while_both_write() {
    for moment in moments().step_by(2) {
        let mut story = Story::new(3, 2, 7);
        story.fill(4);
        story.kill(story.primary(0));
        story.kill(story.primary(1));
        story.until_appointed(0);
        story.until_appointed(1);
        story.steps(moment);
        let (mine, yours, other) = (story.key(0, 0), story.key(1, 0), story.key(2, 0));
        let asked = [story.begin_set(mine, "a"), story.begin_set(yours, "b"), story.begin_set(other, "c")];
        story.until_full(0);
        story.until_full(1);
        for asked in asked {
            story.wait_for(asked);
        }
        assert_eq!(story.get(mine).as_deref(), Some("a"));
        assert_eq!(story.get(yours).as_deref(), Some("b"));
        assert_eq!(story.get(other).as_deref(), Some("c"));
        story.end();
    }
}

#[test]
fn a_view_change_in_the_middle_of_a_session_drops_it_and_pages_still_come_back() {
    for moment in moments().step_by(3) {
        let mut story = rebuilding(3, 2, 7);
        story.steps(moment);
        let idle_row = 1;
        story.kill_watched(story.parity(idle_row));
        story.until_full(0);
        story.is_filled(4);
        story.end();
    }
}

#[test]
fn a_third_member_dies_in_the_middle_of_a_repair_with_three_parities() {
    for moment in moments().step_by(3) {
        let mut story = rebuilding(3, 3, 7);
        story.steps(moment);
        story.kill_watched(story.primary(1));
        story.steps(moment / 2);
        story.kill_watched(story.parity(0));
        story.is_filled(4);
        story.end();
    }
}

#[test]
fn the_pages_of_a_held_back_primary_arrive_late_and_its_later_records_are_not_counted_twice() {
    let mut story = Story::new(3, 2, 6);
    story.fill(4);
    let live = story.primary(1);
    for row in 0..2 {
        story.wire(live, story.parity(row)).hold();
    }
    story.kill_watched(story.primary(0));
    let key = story.key(1, 0);
    story.run(3_000);
    let asked = story.begin_set(key, "behind the page");
    story.run(3_000);
    for row in 0..2 {
        let parity = story.parity(row);
        while story.wire(live, parity).deliver_one() {
            story.run(100);
        }
        story.wire(live, parity).release();
    }
    story.wait_for(asked);
    story.until_full(0);
    assert_eq!(story.get(key).as_deref(), Some("behind the page"));
    story.end();
}

#[test]
fn a_link_of_the_session_breaks_at_any_moment() {
    for moment in moments().step_by(2) {
        let mut story = rebuilding(2, 2, 5);
        story.steps(moment);
        let (stand_in, live, parity) = (story.primary(0), story.primary(1), story.parity(moment % 2));
        match moment % 3 {
            0 if stand_in != parity => story.link(stand_in, parity).cut(),
            1 => story.link(live, parity).cut(),
            _ => story.link(stand_in, live).cut(),
        }
        story.is_filled(4);
        story.until_full(0);
        story.end();
    }
}

#[test]
fn large_and_small_items_come_back_byte_for_byte() {
    let mut story = Story::new(3, 2, 6);
    let sizes = [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 200_000];
    let value =
        |role: usize, size: usize| (0..size).map(|at| (at * 7 + role * 13 + size) as u8).collect::<Vec<u8>>();
    for role in 0..3 {
        for (n, size) in sizes.iter().enumerate() {
            let key = story.key(role, n);
            story.set_bytes(key, &value(role, *size));
        }
    }
    story.kill(story.primary(0));
    story.kill(story.primary(2));
    for role in 0..3 {
        for (n, size) in sizes.iter().enumerate() {
            let key = story.key(role, n);
            match story.read(key) {
                types::op::Outcome::Hit(view) => {
                    assert_eq!(view.value, value(role, *size), "{size} bytes of {role}")
                }
                other => panic!("{size} bytes of role {role}: {other:?}"),
            }
        }
    }
    story.end();
}

#[test]
fn deleted_keys_do_not_come_back_with_a_stand_in() {
    let mut story = Story::new(3, 2, 6);
    story.fill(6);
    for n in 0..3 {
        let key = story.key(0, n);
        assert_eq!(story.delete(key), types::op::Outcome::Deleted);
    }
    story.kill(story.primary(0));
    for n in 0..6 {
        let key = story.key(0, n);
        let expected = (n >= 3).then(|| format!("value {n} of role 0"));
        assert_eq!(story.get(key), expected);
    }
    assert_ne!(story.status(0), RoleStatus::Lost);
    story.end();
}
