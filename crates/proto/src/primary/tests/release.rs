//! Extents that go back (docs/protocol.md, "Rules beyond the design").

use types::Reach;
use types::op::Delete;

use super::*;

/// All of the first extent was needed once, its only item has been deleted, and no vacant extent is to be kept.
fn emptied() -> Stage {
    let mut stage = Stage::with_item();
    let store = stage.primary.as_mut().unwrap().phase.serving_mut();
    store.commit_extent(Reach::whole(0)).unwrap();
    stage.limits.vacant_extents = 0;
    stage.submit(2, Op::Delete(Delete::default()));
    stage.flush();
    PARITIES.iter().for_each(|role| drop(stage.ack(*role, 2)));
    stage
}

/// The time has come to look for what may go back.
fn keep_up(stage: &mut Stage) -> Vec<Done> {
    stage.now += stage.timing.heartbeat_us;
    stage.tick();
    stage.flush()
}

fn acknowledge_all(stage: &mut Stage) {
    let last = stage.primary().stream.last().0;
    PARITIES.iter().for_each(|role| drop(stage.ack(*role, last)));
}

fn released(stage: &Stage) -> u64 {
    stage.primary().stats().counts.released_extents
}

#[test]
fn an_extent_goes_back_once_all_parities_have_applied_its_wipes_and_is_asked_for_anew() {
    let mut stage = emptied();
    assert_eq!(keep_up(&mut stage), to_both("records"));
    acknowledge_all(&mut stage);
    assert_eq!(stage.flush(), to_both("Frame"), "they are committed; that all apply them is waited for");
    assert_eq!(released(&stage), 0);
    let last = stage.primary().stream.last().0;
    stage.ack(PARITIES[0], last);
    stage.flush();
    assert_eq!(released(&stage), 0, "one of them may not have applied them yet");
    stage.ack(PARITIES[1], last);
    stage.flush();
    assert_eq!(released(&stage), 1);
    assert_eq!(stage.set(3), (None, to_both("Reserve")));
}

#[test]
fn nothing_goes_back_while_a_parity_may_come_back() {
    let mut stage = emptied();
    stage.adopt(|view| view.parity[1] = None);
    keep_up(&mut stage);
    stage.ack(PARITIES[0], 2);
    assert_eq!(stage.primary().stream.last(), Seq(2), "no wipe is logged");
    stage.now += stage.timing.rejoin_us();
    keep_up(&mut stage);
    stage.ack(PARITIES[0], 2);
    assert_eq!(keep_up(&mut stage), [Done::Sends(PARITIES[0], "records")], "nobody waits for it any more");
}

#[test]
fn an_extent_of_which_only_a_part_is_there_stays() {
    let mut stage = Stage::with_item();
    stage.limits.vacant_extents = 0;
    stage.submit(2, Op::Delete(Delete::default()));
    stage.flush();
    acknowledge_all(&mut stage);
    assert_eq!(keep_up(&mut stage), to_both("Frame"));
    assert_eq!(stage.primary().stream.last(), Seq(2));
}

#[test]
fn as_many_vacant_extents_stay_as_are_to_be_kept() {
    let mut stage = emptied();
    stage.limits.vacant_extents = 1;
    assert_eq!(keep_up(&mut stage), to_both("Frame"));
    assert_eq!(stage.primary().stream.last(), Seq(2));
}
