//! More nodes start together than the cluster forms with.

use sim::{Options, Story};

#[test]
fn nodes_that_are_too_many_join_and_take_the_place_of_lost_ones() {
    let mut story = Story::with(Options { founders: 5, ..Options::quiet(3, 2, 7) });
    story.fill(4);
    let (primary, parity) = (story.primary(1), story.parity(0));
    story.kill(primary);
    story.kill(parity);
    // All five roles on five living nodes again: two of them are not of those that formed the cluster.
    story.until_full(1);
    story.run_until("the parity is elsewhere", |story| {
        let in_sync = story.in_sync();
        in_sync.len() == 2 && !in_sync.contains(&parity)
    });
    let hosts = [story.primary(0), story.primary(1), story.primary(2), story.parity(0), story.parity(1)];
    assert!(!hosts.contains(&primary) && !hosts.contains(&parity), "{hosts:?}");
    story.is_filled(4);
    story.end();
}
