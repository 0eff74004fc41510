//! Records, acknowledgements and silence (docs/protocol.md, "A SET" and "A takeover").

use super::*;

/// The numbers of the records of the only Frame that was sent, and its commit index.
fn frame(stage: &Stage) -> (Vec<u64>, u64) {
    let [(_, GroupBody::Frame(frame))] = &stage.sent[..] else { panic!("{:?}", stage.sent) };
    (frame.records.iter().map(|record| record.seq.0).collect(), frame.committed.0)
}

#[test]
fn records_gather_while_a_frame_is_unacknowledged_and_its_ack_sends_them_on() {
    let mut stage = Stage::leased();
    stage.set(1);
    stage.grow();
    assert_eq!(stage.flush(), to_both("records"));
    stage.set(2);
    stage.set(3);
    assert_eq!(stage.flush(), [], "a Frame is on its way to both");
    assert_eq!(stage.ack(PARITIES[0], 1), []);
    assert_eq!(stage.flush(), [Done::Sends(PARITIES[0], "records")]);
    assert_eq!(frame(&stage), (vec![2, 3], 0));
}

#[test]
fn a_commit_index_travels_by_itself_when_no_record_follows_for_a_while() {
    let mut stage = Stage::with_item();
    assert_eq!(stage.flush(), []);
    stage.now += stage.timing.commit_delay_us;
    assert_eq!(stage.tick(), []);
    assert_eq!(stage.flush(), to_both("Frame"));
    let committed = |(_, body): &(RoleIndex, GroupBody)| matches!(body, GroupBody::Frame(frame) if frame.committed == Seq(1));
    assert!(stage.sent.iter().all(committed));
}

#[test]
fn on_a_new_link_the_stream_goes_on_after_what_the_parity_has() {
    let mut stage = Stage::with_item();
    stage.set(2);
    stage.set(3);
    stage.flush();
    let host = stage.parity_host(PARITIES[0]);
    let linked = stage.act(|primary, context| primary.link_up(context, host)).1;
    assert_eq!(linked, [Done::Sends(PARITIES[0], "Hello")]);
    assert_eq!(stage.flush(), [], "it says first what it has");
    let welcome = Welcome { term: Term(1), received: Seq(2), wall: UnixSeconds(0) };
    stage.hear(PARITIES[0], GroupBody::Welcome(welcome));
    assert_eq!(stage.flush(), [Done::Sends(PARITIES[0], "records")]);
    assert_eq!(frame(&stage), (vec![3], 1));
}

#[test]
fn a_parity_in_sync_that_lacks_what_it_has_acknowledged_is_believed_by_nobody() {
    let mut stage = Stage::with_item();
    let host = stage.parity_host(PARITIES[1]);
    stage.act(|primary, context| primary.link_up(context, host));
    let welcome = Welcome { term: Term(1), received: Seq(0), wall: UnixSeconds(0) };
    let forgotten = Impossible::Forgotten { received: Seq(0), committed: Seq(1) };
    assert_eq!(stage.hear(PARITIES[1], GroupBody::Welcome(welcome)), [Done::Accuses(host.node, forgotten)]);
}

#[test]
fn only_a_view_without_a_silent_parity_ends_the_waiting() {
    let mut stage = Stage::with_item();
    stage.set(2);
    stage.flush();
    stage.ack(PARITIES[0], 2);
    stage.now += 4 * LEASE_US;
    assert_eq!(stage.tick(), [Done::Reports("Stalled")]);
    assert_eq!(stage.ack(PARITIES[0], 2), [], "however long that takes");
    let done = stage.adopt(|view| view.parity[1] = None);
    assert!(matches!(&done[..], [Done::Replies(2, Outcome::Stored(_))]), "{done:?}");
}

#[test]
fn two_parities_that_fall_silent_one_after_the_other_are_complained_of_together() {
    let mut stage = Stage::leased();
    stage.now += stage.timing.heartbeat_us;
    stage.tick();
    assert_eq!(stage.flush(), to_both("Frame"));
    stage.ack(PARITIES[0], 0);
    let since = stage.now;
    stage.now += stage.timing.heartbeat_us;
    stage.tick();
    assert_eq!(stage.flush(), [Done::Sends(PARITIES[0], "Frame")]);
    stage.now = since + stage.timing.stall_us;
    assert_eq!(stage.tick(), [], "the other one is about to be silent for too long, too");
    stage.now = since + stage.timing.heartbeat_us + stage.timing.stall_us;
    assert_eq!(stage.tick(), [Done::Reports("Stalled")]);
    let [ToCoordinator::Stalled { silent, .. }] = &stage.reported[..] else { panic!("{:?}", stage.reported) };
    assert_eq!(silent.iter().map(|(role, _)| *role).collect::<Vec<_>>(), PARITIES);
}
