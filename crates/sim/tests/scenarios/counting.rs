//! A suspected process without which data would be lost is waited for, also where a count of parities says that it can be
//! missed. Also told with the rule broken that asks the rows of the code (planted.rs).

use proto::Rules;
use sim::{Options, Story};
use types::RoleStatus;

#[test]
fn the_last_copy_is_waited_for_whatever_else_is_in_sync() {
    tell(Rules::all());
}

/// The story.
pub fn tell(rules: Rules) {
    let mirrors = "mirror(3)".parse().expect("a scheme");
    // No node is spare: the mirror of role 0 is not built anew.
    let mut story = Story::with(Options::quiet_with(mirrors, 6).by(rules));
    story.fill(2);
    story.kill_watched(story.parity(0));
    story.run_until("the mirror is missing", |story| story.in_sync() == [1, 2]);
    let last = story.primary(0);
    story.line(last).sever();
    story.run(2 * story.lease_us());
    story.line(last).mend();
    story.run(4 * story.lease_us());
    // Two parities are in sync, and neither has anything of this role.
    assert_eq!((story.status(0), story.primary(0)), (RoleStatus::Full, last));
    story.is_filled(2);
    story.end();
}
