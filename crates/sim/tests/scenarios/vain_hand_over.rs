//! A primary that has made way for its mirror hears of nothing after that. Also told with the rule broken that keeps it from
//! reading then (planted.rs).

use proto::Rules;
use sim::story::{is_unknown, set};
use sim::{Options, Story};
use types::op::{Get, Op, Outcome};
use types::{RoleIndex, RoleStatus};

#[test]
fn a_primary_that_made_way_in_vain_reads_nothing_old() {
    tell(Rules::all());
}

/// The story. The role is fenced half a lease after the primary began to keep still; until shortly before, the parities have renewed
/// its old lease, which outlasts the time for which it keeps still.
pub fn tell(rules: Rules) {
    let mut story = Story::with_successors_of(Options::quiet(3, 2, 6).by(rules));
    story.fill(4);
    let (primary, mirror) = (story.primary(0), 5);
    let key = story.key(0, 1);
    story.operator().move_to(0, mirror);
    story.run_until("the mirror is whole", |story| {
        story.view().learner(RoleIndex(0)).is_some_and(|learner| learner.whole)
    });
    let witnesses = [story.parity(0), story.parity(1), mirror];
    witnesses.iter().for_each(|node| story.line(*node).sever());
    story.run_until("the primary has made way", |story| story.status(0) == RoleStatus::Fenced);
    story.line(primary).sever();
    story.run(story.lease_us() * 4 / 10);
    // Nor will any of them tell it that the role is fenced.
    witnesses.iter().for_each(|node| story.link(primary, *node).sever());
    witnesses.iter().for_each(|node| story.line(*node).mend());
    story.until_appointed(0);
    assert_eq!(story.primary(0), mirror);
    let written = story.ask(mirror, key, set(b"after the move"));
    assert!(matches!(story.wait_for(written), Outcome::Stored(_)));
    // First it keeps still; then it has waited long enough, and goes on.
    reads_nothing_old(&mut story, primary, key);
    story.run(story.lease_us() * 4 / 10);
    reads_nothing_old(&mut story, primary, key);
    story.line(primary).mend();
    witnesses.iter().for_each(|node| story.link(primary, *node).mend());
    assert_eq!(story.get(key).as_deref(), Some("after the move"));
    story.end();
}

fn reads_nothing_old(story: &mut Story, node: usize, key: usize) {
    let read = story.ask(node, key, Op::Get(Get::default()));
    story.run(story.lease_us() / 10);
    let answer = story.answer(read).cloned();
    assert!(answer.as_ref().is_none_or(|outcome| is_new(outcome) || is_unknown(outcome)), "{answer:?}");
}

fn is_new(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Hit(item) if item.value.as_ref() == b"after the move")
}
