//! A Settle of a former coordinator that comes late. Also told with the rule broken that makes it harmless (planted.rs).

use proto::Rules;
use sim::story::{Writing, set};
use sim::{Options, Story};
use types::Seq;

#[test]
fn a_settle_of_a_former_coordinator_that_comes_late_ends_no_stream() {
    tell(Rules::all());
}

/// The story.
pub fn tell(rules: Rules) {
    let mut story = Story::with_successors_of(Options::quiet(2, 3, 7).by(rules));
    story.fill(4);
    let (primary, behind) = (story.primary(0), story.parity(0));
    let (one, other) = (story.parity(1), story.parity(2));
    // Two parities have a record that the third one lacks: the stream would end before it.
    story.wire(primary, behind).hold();
    let key = story.key(0, 1);
    story.ask(primary, key, set(b"at two of three"));
    let has_it = |story: &Story, row| story.received(row, 0) > story.received(0, 0);
    story.run_until("two parities have it", |story| has_it(story, 1) && has_it(story, 2));
    let newest = story.received(1, 0);
    story.line(one).slow(2_000);
    story.line(other).slow(2_000);
    story.kill_watched(primary);
    story.run_until("the stream is to end", |story| {
        story.settle_is_under_way_to(one) && story.settle_is_under_way_to(other)
    });
    let _ = story.line(one).hold_back();
    let held = story.line(other).hold_back();
    story.coordinator().kill(Writing::Lost);
    // Without the third one it ends after the record, and the parities are told so.
    story.kill(behind);
    story.coordinator().elect();
    story.run_until("both are to settle again", |story| {
        story.settle_is_under_way_to(one) && story.settle_is_under_way_to(other)
    });
    assert_eq!(story.received(2, 0), newest);
    story.line(other).deliver_late(held);
    story.until_full(0);
    assert_eq!((story.received(1, 0), story.received(2, 0)), (newest, newest));
    assert_ne!(newest, Seq(0));
    assert_eq!(story.get(key).as_deref(), Some("at two of three"));
    story.end();
}
