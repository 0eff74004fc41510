//! A primary that has made way for its mirror hears of nothing after that. Also told with the rule broken that keeps it from
//! reading then (planted.rs).

use cluster::{RoleIndex, RoleStatus};
use testing::sim::Story;
use testing::sim::story::{is_unknown, set};
use wire::op::{Get, Op, Outcome};

#[test]
fn a_primary_that_made_way_in_vain_reads_nothing_old() {
    tell();
}

/// The story. The role is fenced half a lease after the primary began to keep still, so its parities renew the old lease until
/// half a lease after it goes on.
pub fn tell() {
    let mut story = Story::new(3, 2, 6);
    story.fill(4);
    let (primary, mirror) = (story.primary(0), 5);
    let key = story.key(0, 1);
    story.move_to(0, mirror);
    story.run_until("the mirror is whole", |story| {
        story.view().learner(RoleIndex(0)).is_some_and(|learner| learner.whole)
    });
    let witnesses = [story.parity(0), story.parity(1), mirror];
    witnesses.iter().for_each(|node| story.sever_coordinator(*node));
    story.run_until("the primary has made way", |story| story.status(0) == RoleStatus::Fenced);
    story.sever_coordinator(primary);
    story.run(story.lease_us() * 4 / 10);
    witnesses.iter().for_each(|node| story.mend_coordinator(*node));
    story.until_appointed(0);
    assert_eq!(story.primary(0), mirror);
    let written = story.ask(mirror, key, set(b"after the move"));
    assert!(matches!(story.wait_for(written), Outcome::Stored(_)));
    // The old primary has waited long enough, and goes on.
    story.run(story.lease_us() * 4 / 10);
    let read = story.ask(primary, key, Op::Get(Get::default()));
    story.run(story.lease_us() / 10);
    let early = story.answer(read).cloned();
    assert!(early.as_ref().is_none_or(|outcome| is_new(outcome) || is_unknown(outcome)), "{early:?}");
    story.mend_coordinator(primary);
    assert_eq!(story.get(key).as_deref(), Some("after the move"));
    story.end();
}

fn is_new(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Hit(item) if item.value.as_ref() == b"after the move")
}
