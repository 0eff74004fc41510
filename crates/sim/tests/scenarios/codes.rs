//! Codes whose parities cover some of the data roles: whom a primary waits for, what a lost page is read from, which losses are survived,
//! and what goes with those that are not.

use sim::{Options, Story};
use types::op::{Failure, Outcome};
use types::{OnFinding, PAGE_BYTES, RoleStatus};

/// A cluster of one group with two nodes to spare.
fn story_of(scheme: &str) -> Story {
    let scheme: codec::Scheme = scheme.parse().expect("a scheme");
    Story::with(Options::quiet_with(scheme, scheme.k() + scheme.m() + 2))
}

fn kill_roles(story: &mut Story, roles: &[usize]) {
    let k = story.view().k();
    let nodes: Vec<usize> = roles
        .iter()
        .map(|role| if *role < k { story.primary(*role) } else { story.parity(role - k) })
        .collect();
    nodes.into_iter().for_each(|node| story.kill(node));
}

/// What was sent to repair the pages of role 0, by byte repaired.
fn repair_cost(scheme: &str) -> f64 {
    let mut story = story_of(scheme);
    story.fill(4);
    story.kill(story.primary(0));
    story.until_full(0);
    story.is_filled(4);
    // Nobody learns: what was rebuilt are pages that the stand-in has decoded.
    let (sent, repaired) = (story.stats().repair_bytes, story.taught_bytes());
    assert!(repaired >= PAGE_BYTES as u64, "there was something to repair");
    story.end();
    sent as f64 / repaired as f64
}

#[test]
fn a_lost_page_of_an_lrc_is_read_from_its_local_group() {
    // Five others of the local group and a residual; with Reed-Solomon eleven others and a residual.
    assert_eq!(repair_cost("lrc(12,2,2)"), 6.0);
    assert_eq!(repair_cost("rs(12+4)"), 12.0);
    assert_eq!(repair_cost("mirror(4)"), 1.0);
}

#[test]
fn a_primary_waits_for_the_parities_that_cover_it_and_for_no_others() {
    let mut story = story_of("lrc(4,2,1)");
    story.fill(2);
    // The local parity of roles 2 and 3 is row 1.
    let (elsewhere, here) = (story.parity(1), story.parity(0));
    let primary = story.primary(0);
    story.link(primary, elsewhere).sever();
    let key = story.key(0, 0);
    story.set(key, "without the parity of the others");
    story.run(10 * story.lease_us());
    assert_eq!(story.in_sync(), [0, 1, 2], "nobody complains");
    story.link(primary, here).sever();
    let asked = story.begin_set(key, "with its own");
    story.run(1_000);
    assert!(!story.stored(asked), "the local parity has not got it");
    story.link(primary, here).mend();
    story.link(primary, elsewhere).mend();
    story.wait_for(asked);
    story.end();
}

#[test]
fn losses_of_more_than_the_tolerance_are_survived_where_their_pattern_can_be_solved() {
    for (scheme, roles) in [
        ("lrc(12,2,2)", &[0, 1, 2, 6][..]),
        ("lrc(12,2,2)", &[0, 1, 6, 15]),
        ("lrc(4,2,2)", &[0, 4, 2, 6]),
        ("lrc(6,3,1)", &[0, 2, 4, 9]),
        ("mirror(3)", &[0, 1, 5]),
        ("xor(3+1)", &[1]),
    ] {
        let mut story = story_of(scheme);
        story.fill(2);
        kill_roles(&mut story, roles);
        let k = story.view().k();
        for role in roles.iter().filter(|role| **role < k) {
            story.until_full(*role);
        }
        story.is_filled(2);
        story.end();
    }
}

#[test]
fn what_cannot_be_solved_is_lost_and_nothing_else() {
    let mut story = story_of("lrc(4,2,1)");
    story.expect_loss();
    story.fill(2);
    // Both of the first local group and its parity; one of the second, whose own parity makes up for it.
    kill_roles(&mut story, &[0, 1, 4, 2]);
    story.until_full(2);
    story.run(40 * story.lease_us());
    let statuses: Vec<RoleStatus> = (0..4).map(|role| story.status(role)).collect();
    assert_eq!(statuses, [RoleStatus::Lost, RoleStatus::Lost, RoleStatus::Full, RoleStatus::Full]);
    let (lost, alive) = (story.key(0, 0), story.key(2, 0));
    assert_eq!(story.read(lost), Outcome::Failed(Failure::Lost));
    assert_eq!(story.get(alive).as_deref(), Some("value 0 of role 2"));
    story.end();
}

#[test]
fn parities_that_cover_nothing_lost_stay_in_sync() {
    let mut story = story_of("mirror(3)");
    story.expect_loss();
    story.fill(2);
    let others = [story.parity(1), story.parity(2)];
    for node in [story.primary(0), story.parity(0)] {
        story.kill_watched(node);
    }
    story.run_until("role 0 is lost", |story| story.status(0) == RoleStatus::Lost);
    assert_eq!([story.parity(1), story.parity(2)], others);
    story.operator().accept_losses();
    story.run_until("it begins anew", |story| story.status(0) == RoleStatus::Full);
    story.run_until("its parity is in sync, too", |story| story.in_sync() == [0, 1, 2]);
    story.end();
}

#[test]
fn a_lost_local_parity_is_taught_by_its_group_alone() {
    let taught = |row: usize| {
        let mut story = story_of("lrc(4,2,1)");
        story.fill(4);
        story.kill_watched(story.parity(row));
        story.until_protected(2);
        story.until_protected(3);
        let taught = story.taught_bytes();
        story.end();
        taught
    };
    let (first, second, global) = (taught(0), taught(1), taught(2));
    assert!(first > 0 && second > 0);
    assert_eq!(
        first + second,
        global,
        "each local group teaches its own parity, and all teach the global one"
    );
}

#[test]
fn a_scrub_compares_each_parity_with_what_it_covers() {
    for scheme in ["lrc(4,2,1)", "mirror(3)"] {
        let mut story = story_of(scheme);
        story.fill(4);
        story.operator().start_scrub(OnFinding::Report);
        story.until_scrubbed();
        assert!(
            story.scrub().progress().checked_pages > 0 && story.scrub().findings().is_empty(),
            "{scheme}"
        );
        story.end();
    }
}
