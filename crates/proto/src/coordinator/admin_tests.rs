//! What operators ask of a coordinator whose nodes are only names.

use types::{
    AdminAnswer, AdminCommand, AdminError, AdminReply, AdminRequest, ClusterId, Entry, Expectations, GroupId,
    HostId, Incarnation, Layout, LayoutVersion, NodeId, NodeInfo, NodeLayout, NodeLoad, NodeState, OnFinding,
    OnLoss, Profile, Time, UnixSeconds,
};
use wire::message::{FromCoordinator, Registration, ToCoordinator};

use super::{Coordinator, CoordinatorAction, CoordinatorConfig, RecordKeeping};
use crate::{Now, Rules, Timing};

const NOW: Now = Now { time: Time(1_000_000), unix: UnixSeconds(1) };

fn host(node: u16, life: u64) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(life) }
}

fn registration(node: u16, life: u64, entry: Entry) -> Registration {
    let address = "127.0.0.1:1".parse().unwrap();
    let info = NodeInfo {
        host: host(node, life),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: "own".to_owned(),
        alive: true,
    };
    Registration {
        info,
        expect: Expectations { entry, ..Expectations::default() },
        holds: None,
        promised: types::Epoch(0),
        map: 0,
    }
}

fn register(coordinator: &mut Coordinator, registration: Registration) -> Vec<CoordinatorAction> {
    coordinator.handle(NOW, registration.info.host, ToCoordinator::Register(registration));
    actions(coordinator)
}

fn actions(coordinator: &mut Coordinator) -> Vec<CoordinatorAction> {
    std::iter::from_fn(|| coordinator.poll_action()).collect()
}

fn waiting(nodes: u16) -> Coordinator {
    Coordinator::new(CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(3, 2).unwrap(),
        nodes,
        shards: 1,
        groups: u32::from(nodes),
        timing: Timing::default(),
        rules: Rules::all(),
        records: RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    })
}

/// Five nodes that the cluster formed with, and further ones.
fn formed(spares: u16) -> Coordinator {
    let mut coordinator = waiting(5);
    for node in 0..5 {
        register(&mut coordinator, registration(node, 1, Entry::Founder));
    }
    for node in 5..5 + spares {
        register(&mut coordinator, registration(node, 1, Entry::Joiner));
    }
    coordinator
}

fn ask(coordinator: &mut Coordinator, command: AdminCommand) -> AdminReply {
    coordinator.administer(NOW, &AdminRequest { expect: None, command })
}

fn layout(reply: AdminReply) -> Layout {
    match reply {
        Ok(AdminAnswer::Layout(layout)) => layout,
        other => panic!("not a layout: {other:?}"),
    }
}

fn remove(node: u16) -> AdminCommand {
    AdminCommand::Remove { node: NodeId(node) }
}

#[test]
fn a_node_that_is_gone_and_empty_can_be_forgotten() {
    let mut coordinator = formed(1);
    let refusal = ask(&mut coordinator, remove(5)).unwrap_err();
    assert!(refusal.to_string().contains("is alive") && refusal.to_string().contains("node drain 5"));
    layout(ask(&mut coordinator, drain(5)));
    coordinator.exited(NOW, NodeId(5));
    let after = layout(ask(&mut coordinator, remove(5)));
    assert!(!after.nodes.contains_key(&NodeId(5)) && !after.is_draining(NodeId(5)));
    assert_eq!(coordinator.map().unwrap().nodes.len(), 5);
    assert_eq!(ask(&mut coordinator, remove(5)), Err(AdminError::UnknownNode { node: NodeId(5) }));
    // Its id is that of a stranger now.
    actions(&mut coordinator);
    let told = register(&mut coordinator, registration(5, 2, Entry::Founder));
    assert!(
        matches!(&told[..], [CoordinatorAction::Send { message: FromCoordinator::Refused(why), .. }] if why.reason.contains("--join"))
    );
    register(&mut coordinator, registration(5, 3, Entry::Joiner));
    assert_eq!(coordinator.map().unwrap().nodes.len(), 6);
}

#[test]
fn a_node_whose_roles_are_waited_for_is_not_forgotten() {
    let mut coordinator = formed(0);
    let mut now = NOW;
    while now.time < NOW.time + 3_000_000 {
        now.time = now.time + 100_000;
        for node in [3, 4] {
            let (host, load) = (host(node, 1), NodeLoad::default());
            coordinator.handle(now, host, ToCoordinator::Heartbeat { host, map: 1, load });
        }
        coordinator.tick(now);
    }
    let with_roles = (0..3)
        .find(|node| coordinator.map().unwrap().groups.iter().any(|view| view.roles_on(NodeId(*node)) > 0));
    let node = with_roles.expect("three of five are one too many: some are waited for");
    let request = AdminRequest { expect: None, command: remove(node) };
    let refusal = coordinator.administer(now, &request).unwrap_err().to_string();
    assert!(refusal.contains("still has") && refusal.contains(&format!("node fence {node}")), "{refusal}");
}

#[test]
fn every_start_is_a_scrub_of_its_own_and_a_layout_changes_nothing_of_it() {
    let mut coordinator = formed(0);
    let start = |finding, bytes_per_second| AdminCommand::StartScrub { finding, bytes_per_second };
    let first = layout(ask(&mut coordinator, start(OnFinding::Report, 7)));
    assert_eq!((first.version, first.scrub.generation, first.scrub.running), (LayoutVersion(1), 1, true));
    assert_eq!((first.scrub.repair, first.scrub.bytes_per_second), (false, 7));
    let given = Layout { scrub: Default::default(), ..first.clone() };
    let applied = layout(ask(&mut coordinator, AdminCommand::Apply { layout: given }));
    assert_eq!(applied.scrub, first.scrub);
    let stopped = layout(ask(&mut coordinator, AdminCommand::StopScrub));
    assert_eq!((stopped.scrub.generation, stopped.scrub.running), (1, false));
    let second = layout(ask(&mut coordinator, start(OnFinding::Correct, 0)));
    assert!(second.scrub.running && second.scrub.repair && second.scrub.generation == 2);
    let told = actions(&mut coordinator).into_iter().filter(|action| {
        matches!(action, CoordinatorAction::Send { message: FromCoordinator::Changes(changes), .. }
            if changes.layout.as_ref().is_some_and(|layout| layout.scrub == second.scrub))
    });
    assert_eq!(told.count(), 5, "all nodes are told");
}

fn drain(node: u16) -> AdminCommand {
    AdminCommand::Drain { node: NodeId(node) }
}

fn fence(node: u16, loss: OnLoss) -> AdminCommand {
    AdminCommand::Fence { node: NodeId(node), loss }
}

fn beat(coordinator: &mut Coordinator, node: u16, load: NodeLoad) {
    let host = host(node, 1);
    coordinator.handle(NOW, host, ToCoordinator::Heartbeat { host, map: u64::MAX, load });
    actions(coordinator);
}

fn refusals(actions: &[CoordinatorAction]) -> Vec<(HostId, &str)> {
    let mut found = Vec::new();
    for action in actions {
        if let CoordinatorAction::Send { to, message: FromCoordinator::Refused(refused) } = action {
            found.push((*to, refused.reason.as_str()));
        }
    }
    found
}

#[test]
fn of_two_operators_at_once_one_is_told_of_the_other() {
    let mut coordinator = formed(2);
    let seen = LayoutVersion(0);
    let from = |command| AdminRequest { expect: Some(seen), command };
    let first = layout(coordinator.administer(NOW, &from(drain(0))));
    assert_eq!((first.version, first.is_draining(NodeId(0))), (LayoutVersion(1), true));
    let conflict = AdminError::VersionConflict { named: seen, have: LayoutVersion(1) };
    assert_eq!(coordinator.administer(NOW, &from(drain(1))), Err(conflict.clone()));
    let mut edited = Layout { version: seen, ..Layout::default() };
    edited.repair.paused = true;
    assert_eq!(ask(&mut coordinator, AdminCommand::Apply { layout: edited.clone() }), Err(conflict));
    assert_eq!(coordinator.map().unwrap().layout, first, "no mixture of the two");
    edited.version = LayoutVersion(1);
    let applied = layout(ask(&mut coordinator, AdminCommand::Apply { layout: edited }));
    assert!(applied.repair.paused && !applied.is_draining(NodeId(0)));
    assert_eq!(applied.version, LayoutVersion(2));
}

#[test]
fn a_change_reaches_every_node_and_what_changes_nothing_is_no_change() {
    let mut coordinator = formed(1);
    layout(ask(&mut coordinator, AdminCommand::PauseRepair));
    let told: Vec<(HostId, bool)> = actions(&mut coordinator)
        .into_iter()
        .filter_map(|action| match action {
            CoordinatorAction::Send { to, message: FromCoordinator::Changes(changes) } => {
                changes.layout.as_ref().map(|layout| (to, layout.repair.paused))
            }
            _ => None,
        })
        .collect();
    assert_eq!(told, (0..6).map(|node| (host(node, 1), true)).collect::<Vec<_>>());
    let again = layout(ask(&mut coordinator, AdminCommand::PauseRepair));
    assert_eq!((again.version, actions(&mut coordinator)), (LayoutVersion(1), vec![]));
    let limit = AdminCommand::LimitRepair { bytes_per_second: Some(5 << 20), memory_bytes: None };
    let limited = layout(ask(&mut coordinator, limit)).repair;
    assert!(limited.paused && limited.bytes_per_second == 5 << 20 && limited.memory_bytes == 0);
    assert!(!layout(ask(&mut coordinator, AdminCommand::ResumeRepair)).repair.paused);
}

#[test]
fn a_drain_without_a_place_to_go_is_refused_with_the_way_out() {
    let mut coordinator = formed(0);
    let error = ask(&mut coordinator, drain(2)).unwrap_err();
    assert!(matches!(error, AdminError::NotEnoughNodes { node: NodeId(2), left: 4, needed: 5, .. }));
    assert!(error.to_string().contains("gestalt serve --join"), "{error}");
    assert_eq!(coordinator.map().unwrap().layout, Layout::default());

    let mut coordinator = formed(1);
    layout(ask(&mut coordinator, drain(2)));
    let second = ask(&mut coordinator, drain(3)).unwrap_err();
    assert!(matches!(second, AdminError::NotEnoughNodes { left: 4, .. }), "node 2 is not a place: {second}");
    layout(ask(&mut coordinator, AdminCommand::Undrain { node: NodeId(2) }));
    let drained = layout(ask(&mut coordinator, drain(3)));
    assert_eq!(drained.draining().collect::<Vec<_>>(), [NodeId(3)]);
    assert_eq!(layout(ask(&mut coordinator, drain(3))), drained, "it drains already");
    assert_eq!(
        layout(ask(&mut coordinator, drain(5))).draining().count(),
        2,
        "the spare has nothing that would have to go"
    );
}

#[test]
fn a_dead_node_is_no_place_to_go() {
    let mut coordinator = formed(1);
    coordinator.exited(NOW, NodeId(5));
    assert!(matches!(ask(&mut coordinator, drain(0)), Err(AdminError::NotEnoughNodes { left: 4, .. })));
}

#[test]
fn a_drain_for_which_there_is_no_memory_is_refused() {
    let mut coordinator = formed(1);
    let load = |used, member| NodeLoad {
        used_bytes: used,
        limit_bytes: 100,
        member_bytes: member,
        ..NodeLoad::default()
    };
    for node in 0..5 {
        beat(&mut coordinator, node, load(95, 90));
    }
    layout(ask(&mut coordinator, drain(0)));
    layout(ask(&mut coordinator, AdminCommand::Undrain { node: NodeId(0) }));
    // The spare has said how full it is by now.
    beat(&mut coordinator, 5, load(50, 40));
    let error = ask(&mut coordinator, drain(0)).unwrap_err();
    assert!(matches!(error, AdminError::WouldLoseData { .. }), "{error}");
    assert!(error.to_string().contains("move 90 bytes, and the other nodes have room for 70"), "{error}");
    beat(&mut coordinator, 5, load(10, 5));
    layout(ask(&mut coordinator, drain(0)));
}

#[test]
fn nobody_becomes_a_stand_in_on_a_node_that_is_emptied_if_there_is_another() {
    let mut coordinator = formed(2);
    layout(ask(&mut coordinator, drain(5)));
    let draining =
        |id: u16| coordinator.state.plan_nodes().iter().any(|node| node.host == host(id, 1) && node.draining);
    assert!(draining(5));
    assert!(!draining(6));
    assert!(coordinator.state.nodes().living().contains(&host(5, 1)));
}

#[test]
fn a_fenced_process_counts_as_lost_and_does_not_come_back() {
    let mut coordinator = formed(0);
    layout(ask(&mut coordinator, fence(1, OnLoss::Refuse)));
    let map = coordinator.map().unwrap();
    assert!(!map.node(NodeId(1)).unwrap().alive);
    assert!(map.groups.iter().all(|view| view.roles_on(NodeId(1)) == 0));
    let told = actions(&mut coordinator);
    assert_eq!(refusals(&told).len(), 1);
    // It lives, and says so.
    let heartbeat = ToCoordinator::Heartbeat { host: host(1, 1), map: 0, load: NodeLoad::default() };
    coordinator.handle(NOW, host(1, 1), heartbeat);
    assert_eq!(refusals(&actions(&mut coordinator))[0].0, host(1, 1));
    let told = register(&mut coordinator, registration(1, 1, Entry::Founder));
    assert!(refusals(&told)[0].1.contains("fenced"));
    assert!(!coordinator.map().unwrap().node(NodeId(1)).unwrap().alive);
    // A new process under the same id is welcome.
    let told = register(&mut coordinator, registration(1, 2, Entry::Founder));
    assert_eq!(refusals(&told), []);
    assert!(coordinator.map().unwrap().node(NodeId(1)).unwrap().alive);
}

#[test]
fn a_fence_that_loses_data_needs_to_be_told_so() {
    let mut coordinator = formed(0);
    layout(ask(&mut coordinator, fence(0, OnLoss::Refuse)));
    layout(ask(&mut coordinator, fence(1, OnLoss::Refuse)));
    let error = ask(&mut coordinator, fence(2, OnLoss::Refuse)).unwrap_err();
    assert!(error.to_string().contains("--accept-loss"), "{error}");
    assert!(coordinator.map().unwrap().node(NodeId(2)).unwrap().alive);
    layout(ask(&mut coordinator, fence(2, OnLoss::Accept)));
    assert!(!coordinator.map().unwrap().node(NodeId(2)).unwrap().alive);
    let unknown = ask(&mut coordinator, fence(9, OnLoss::Accept));
    assert_eq!(unknown, Err(AdminError::UnknownNode { node: NodeId(9) }));
}

fn can_stop(node: u16, heard_within_us: Option<u64>) -> AdminCommand {
    AdminCommand::CanStop { node: NodeId(node), heard_within_us }
}

#[test]
fn who_has_not_been_heard_since_counts_as_lost_when_a_node_is_to_be_stopped() {
    let mut coordinator = formed(1);
    let later = Now { time: NOW.time + 300_000, ..NOW };
    for node in [0, 1, 2, 3, 5] {
        let map = coordinator.map().unwrap().version;
        let beat = ToCoordinator::Heartbeat { host: host(node, 1), map, load: NodeLoad::default() };
        coordinator.handle(later, host(node, 1), beat);
    }
    let mut report = |heard_within_us| {
        let request = AdminRequest { expect: None, command: can_stop(0, heard_within_us) };
        match coordinator.administer(later, &request) {
            Ok(AdminAnswer::CanStop(report)) => report,
            other => panic!("{other:?}"),
        }
    };
    let lately = report(Some(300_000));
    assert_eq!((lately.unheard, lately.losses_survived_after), (vec![NodeId(4)], Some(0)));
    let before = report(Some(300_001));
    assert_eq!((before.unheard, before.losses_survived_after), (vec![], Some(1)));
    assert_eq!(report(None).losses_survived_after, Some(1), "two heartbeats have not passed");
}

#[test]
fn what_a_stop_would_mean_counts_who_is_dead_already() {
    let mut coordinator = formed(1);
    let mut report = |node| match ask(&mut coordinator, can_stop(node, None)) {
        Ok(AdminAnswer::CanStop(report)) => report,
        other => panic!("{other:?}"),
    };
    let first = report(0);
    assert_eq!((first.data_roles, first.parity_roles, first.losses_survived_after), (3, 2, Some(1)));
    assert_eq!(report(5).losses_survived_after, Some(2), "it hosts nothing");
    for node in [3, 4] {
        coordinator.exited(NOW, NodeId(node));
    }
    let Ok(AdminAnswer::CanStop(last)) = ask(&mut coordinator, can_stop(0, None)) else {
        panic!("no report")
    };
    assert_eq!(last.losses_survived_after, None);
    assert!(last.groups_lost.contains(&GroupId(0)), "{last:?}");
}

#[test]
fn a_layout_that_makes_no_sense_is_refused() {
    let mut coordinator = formed(1);
    let mut wanted = Layout::default();
    wanted.nodes.insert(NodeId(77), NodeLayout { state: NodeState::Draining, zone: None });
    let reply = ask(&mut coordinator, AdminCommand::Apply { layout: wanted });
    assert_eq!(reply, Err(AdminError::UnknownNode { node: NodeId(77) }));
    let mut wanted = Layout::default();
    wanted.nodes.insert(NodeId(0), NodeLayout { state: NodeState::Active, zone: Some("z".repeat(256)) });
    assert!(matches!(
        ask(&mut coordinator, AdminCommand::Apply { layout: wanted }),
        Err(AdminError::BadLayout { .. })
    ));
    let tiny = AdminCommand::LimitRepair { bytes_per_second: None, memory_bytes: Some(4096) };
    assert!(matches!(ask(&mut coordinator, tiny), Err(AdminError::BadLayout { .. })));
    let mut wanted = Layout::default();
    for node in [0, 1] {
        wanted.nodes.insert(NodeId(node), NodeLayout { state: NodeState::Draining, zone: None });
    }
    let both = ask(&mut coordinator, AdminCommand::Apply { layout: wanted });
    assert!(matches!(both, Err(AdminError::NotEnoughNodes { left: 4, .. })), "{both:?}");
    let before = ask(&mut waiting(5), AdminCommand::PauseRepair);
    assert_eq!(before, Err(AdminError::NotFormed));
}

#[test]
fn a_zone_that_operators_give_is_the_one_that_counts() {
    let mut coordinator = formed(0);
    let zone = |coordinator: &Coordinator| coordinator.map().unwrap().nodes[3].zone.clone();
    assert_eq!(zone(&coordinator), "own");
    let mut wanted = Layout::default();
    wanted.nodes.insert(NodeId(3), NodeLayout { state: NodeState::Active, zone: Some("b".to_owned()) });
    let given = layout(ask(&mut coordinator, AdminCommand::Apply { layout: wanted }));
    assert_eq!(zone(&coordinator), "b");
    layout(ask(
        &mut coordinator,
        AdminCommand::Apply { layout: Layout { version: given.version, ..Layout::default() } },
    ));
    assert_eq!(zone(&coordinator), "own");
}

#[test]
fn joiners_wait_for_the_cluster_and_come_without_members() {
    let mut coordinator = waiting(5);
    register(&mut coordinator, registration(5, 1, Entry::Joiner));
    for node in 0..4 {
        register(&mut coordinator, registration(node, 1, Entry::Founder));
        assert!(coordinator.map().is_none(), "the joiner is none of the five");
    }
    register(&mut coordinator, registration(4, 1, Entry::Founder));
    let map = coordinator.map().unwrap();
    assert_eq!(map.nodes.len(), 6);
    assert!(map.groups.iter().all(|view| view.roles_on(NodeId(5)) == 0));
    let told = register(&mut coordinator, registration(6, 1, Entry::Joiner));
    assert_eq!(refusals(&told), []);
    assert_eq!(coordinator.map().unwrap().nodes.len(), 7);
    let told = register(&mut coordinator, registration(5, 2, Entry::Founder));
    let occupied =
        matches!(&told[..], [CoordinatorAction::Send { message: FromCoordinator::Occupied { .. }, .. }]);
    assert!(occupied, "its lease runs: {told:?}");
}

#[test]
fn a_joiner_of_other_expectations_is_refused_with_both_values() {
    let mut coordinator = formed(0);
    let mut refused = |expect: Expectations| {
        let registration = Registration { expect, ..registration(8, 1, Entry::Joiner) };
        refusals(&register(&mut coordinator, registration))[0].1.to_owned()
    };
    let expect = Expectations { entry: Entry::Joiner, ..Expectations::default() };
    let text = refused(Expectations { cluster: Some(ClusterId(1)), ..expect });
    assert!(text.contains("meant for cluster-1, the coordinator has cluster-7"), "{text}");
    let text = refused(Expectations { profile: Some(Profile::rs(4, 2).unwrap()), ..expect });
    assert!(text.contains("meant for profile rs(4+2), the cluster has rs(3+2)"), "{text}");
    let text = refused(Expectations { lease_us: 3_000_000, ..expect });
    assert!(text.contains("has a lease of 3s, the coordinator one of 1s"), "{text}");
    let text = refused(Expectations { shards: 4, ..expect });
    assert!(text.contains("has 4 workers, the cluster's nodes have 1"), "{text}");
    assert!(coordinator.map().unwrap().node(NodeId(8)).is_none());
}
