//! A state, one message, the verdict.

use types::{Incarnation, Layout, NodeId, Profile};

use super::*;

const OWN: ClusterId = ClusterId(7);

fn map(cluster: ClusterId) -> FromCoordinator {
    FromCoordinator::Map(Arc::new(ClusterMap {
        cluster,
        version: 1,
        catalog: types::Catalog::first(Profile::rs(3, 2).unwrap(), 1),
        shards: 1,
        layout: Layout::default(),
        nodes: Vec::new(),
        groups: Vec::new(),
    }))
}

fn refused(cluster: Option<ClusterId>, epoch: u64, fenced: bool) -> FromCoordinator {
    FromCoordinator::Refused(Refused { cluster, epoch: Epoch(epoch), fenced, reason: "no".into() })
}

fn occupied(cluster: Option<ClusterId>, epoch: u64) -> FromCoordinator {
    let by = HostId { node: NodeId(1), incarnation: Incarnation(9) };
    let peer = ([127, 0, 0, 1], 1).into();
    FromCoordinator::Occupied { by, peer, lease_us: 1_000, cluster, epoch: Epoch(epoch) }
}

/// One that serves [`OWN`], under coordinator 3.
fn serving() -> Entrance {
    let mut entrance = Entrance::new(Expectations::default(), Rules::all());
    assert_eq!(entrance.receive(Time(0), map(OWN)), Verdict::Deliver(map(OWN)));
    assert!(matches!(
        entrance.receive(Time(0), FromCoordinator::Recall { epoch: Epoch(3) }),
        Verdict::Answer(_)
    ));
    entrance
}

#[test]
fn who_serves_ends_only_if_its_own_cluster_has_fenced_it_or_given_its_place_away() {
    let ends = |message| matches!(serving().receive(Time(0), message), Verdict::End(_));
    assert!(ends(refused(Some(OWN), 3, true)));
    assert!(ends(occupied(Some(OWN), 3)));
    for foreign in [
        refused(Some(OWN), 3, false),
        refused(Some(OWN), 2, true),
        refused(Some(ClusterId(8)), 4, true),
        refused(None, 1, false),
        occupied(Some(ClusterId(8)), 4),
        occupied(None, 4),
        map(ClusterId(8)),
    ] {
        assert!(matches!(serving().receive(Time(0), foreign), Verdict::Foreign(_)));
    }
    let late = occupied(Some(OWN), 2);
    assert_eq!(serving().receive(Time(0), late), Verdict::Nothing, "of when it waited for its place");
}

#[test]
fn who_serves_nothing_ends_with_the_reason() {
    let expect = Expectations { cluster: Some(OWN), ..Expectations::default() };
    let fresh = || Entrance::new(expect, Rules::all());
    assert_eq!(fresh().receive(Time(0), refused(None, 1, false)), Verdict::End(End::Refused("no".into())));
    let wrong = fresh().receive(Time(0), map(ClusterId(8)));
    assert!(matches!(wrong, Verdict::End(End::WrongCluster(text)) if text.contains("meant for cluster-7")));
}

#[test]
fn commands_count_only_after_a_map_of_the_own_cluster_on_this_connection() {
    let mut entrance = serving();
    let info = NodeInfo {
        host: HostId { node: NodeId(1), incarnation: Incarnation(1) },
        peer: ([127, 0, 0, 1], 1).into(),
        memcached: ([127, 0, 0, 1], 1).into(),
        http: ([127, 0, 0, 1], 1).into(),
        native: None,
        zone: String::new(),
        alive: true,
    };
    let registration = entrance.knock(info, 0);
    assert_eq!((registration.holds, registration.promised), (Some(OWN), Epoch(3)));
    let (group, role, parity) = (types::GroupId(0), types::RoleIndex(0), types::RoleIndex(3));
    let fence = FromCoordinator::Fence { group, role, term: types::Term(2), parity, epoch: Epoch(9) };
    assert_eq!(entrance.receive(Time(0), fence.clone()), Verdict::Nothing);
    entrance.receive(Time(0), map(OWN));
    assert_eq!(entrance.receive(Time(0), fence.clone()), Verdict::Deliver(fence));
}

fn keep(epoch: u64, position: u64, whole: bool) -> FromCoordinator {
    let (electors, records) = (vec![Vec::new()], Vec::new());
    FromCoordinator::Keep { epoch: Epoch(epoch), position, electors, whole, records }
}

fn kept(epoch: u64, position: u64) -> Verdict {
    Verdict::Answer(ToCoordinator::Kept { epoch: Epoch(epoch), position })
}

fn fence(epoch: u64) -> FromCoordinator {
    let (group, role, parity) = (types::GroupId(0), types::RoleIndex(0), types::RoleIndex(3));
    FromCoordinator::Fence { group, role, term: types::Term(2), parity, epoch: Epoch(epoch) }
}

#[test]
fn a_command_of_a_coordinator_that_another_one_has_followed_is_not_obeyed() {
    let mut entrance = serving();
    assert_eq!(entrance.receive(Time(0), fence(5)), Verdict::Deliver(fence(5)));
    assert_eq!(entrance.receive(Time(0), fence(4)), Verdict::Nothing);
    assert_eq!(entrance.receive(Time(0), fence(5)), Verdict::Deliver(fence(5)));
}

#[test]
fn records_are_kept_before_there_is_a_map_and_for_no_older_coordinator_than_was_promised() {
    let mut entrance = Entrance::new(Expectations::default(), Rules::all());
    assert_eq!(entrance.receive(Time(0), keep(2, 7, true)), kept(2, 7));
    assert_eq!(entrance.receive(Time(0), keep(2, 9, false)), Verdict::Nothing, "records between are missing");
    let recalled = entrance.receive(Time(0), FromCoordinator::Recall { epoch: Epoch(4) });
    let Verdict::Answer(ToCoordinator::Recalled { epoch, kept: Some(kept) }) = recalled else {
        panic!("{recalled:?}")
    };
    assert_eq!((epoch, kept.epoch, kept.position), (Epoch(4), Epoch(2), 7));
    assert_eq!(entrance.receive(Time(0), keep(3, 8, true)), Verdict::Nothing);
    assert_eq!(entrance.receive(Time(0), FromCoordinator::Recall { epoch: Epoch(3) }), Verdict::Nothing);
    assert_eq!(entrance.receive(Time(0), keep(4, 1, true)), self::kept(4, 1));
}

#[test]
fn who_keeps_nothing_says_so_and_has_promised_all_the_same() {
    let mut entrance = Entrance::new(Expectations::default(), Rules::all());
    let nothing = Verdict::Answer(ToCoordinator::Recalled { epoch: Epoch(4), kept: None });
    assert_eq!(entrance.receive(Time(0), FromCoordinator::Recall { epoch: Epoch(4) }), nothing);
    assert_eq!(entrance.receive(Time(0), keep(3, 1, true)), Verdict::Nothing);
}

#[test]
fn a_coordinator_without_a_cluster_is_nobody_to_whom_has_one() {
    let forming = Forming { expected: 3, here: Vec::new() };
    let message = FromCoordinator::Forming(forming.clone());
    assert_eq!(serving().receive(Time(0), message.clone()), Verdict::Waits);
    let mut fresh = Entrance::new(Expectations::default(), Rules::all());
    assert_eq!(fresh.receive(Time(0), message), Verdict::Forms(false, forming));
}

#[test]
fn who_waits_for_its_place_ends_after_its_patience_and_is_told_of_the_end_of_the_wait() {
    let mut fresh = Entrance::new(Expectations::default(), Rules::all());
    assert_eq!(fresh.receive(Time(0), occupied(Some(OWN), 1)), Verdict::WaitForPlace(5_000));
    assert!(fresh.asks_again());
    assert_eq!(fresh.receive(Time(1), FromCoordinator::Alive), Verdict::Alive(true));
    assert_eq!(fresh.receive(Time(2), FromCoordinator::Alive), Verdict::Alive(false));
}

#[test]
fn a_map_of_another_profile_or_of_other_workers_is_not_what_it_is_meant_for() {
    let profile = Some(Profile::rs(2, 1).unwrap());
    for (expect, why) in [
        (Expectations { profile, ..Expectations::default() }, "profile"),
        (Expectations { shards: 4, ..Expectations::default() }, "workers = 1"),
    ] {
        let verdict = Entrance::new(expect, Rules::all()).receive(Time(0), map(OWN));
        assert!(
            matches!(&verdict, Verdict::End(End::WrongCluster(text)) if text.contains(why)),
            "{verdict:?}"
        );
    }
}
