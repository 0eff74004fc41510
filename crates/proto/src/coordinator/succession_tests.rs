//! Coordinators that follow each other, by their records alone.

use std::collections::{BTreeMap, BTreeSet};
use types::{
    AdminCommand, AdminRequest, CatalogChange, ClusterId, Entry, Epoch, Expectations, GroupId, HostId,
    Incarnation, MemberId, NamespaceId, NodeId, NodeInfo, NodeLoad, OnLoss, PolicyChange, Profile, RoleIndex,
    RoleStatus, Seq, Striped, Term, Time, UnixSeconds, ViewVersion,
};
use wire::message::{FromCoordinator, Registration, ToCoordinator};
use wire::record::Record;

use super::{Coordinator, CoordinatorAction, CoordinatorConfig, RecordKeeping, ResumeError};
use crate::{Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;

fn at(us: u64) -> Now {
    Now { time: Time(us), unix: UnixSeconds(1) }
}

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(3, 2).unwrap(),
        nodes: 6,
        shards: 1,
        groups: 2,
        timing: Timing::from_lease(LEASE_US),
        rules: Rules::all(),
        records: RecordKeeping::Stored,
        on_loss: types::LossPolicy::Error,
    }
}

fn register(coordinator: &mut Coordinator, now: Now, host: HostId) {
    let address = "127.0.0.1:1".parse().unwrap();
    let info = NodeInfo {
        host,
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone: String::new(),
        alive: true,
    };
    let expect = Expectations { entry: Entry::Founder, ..Expectations::default() };
    coordinator.handle(
        now,
        host,
        ToCoordinator::Register(Registration {
            info,
            expect,
            holds: None,
            promised: types::Epoch(0),
            map: 0,
        }),
    );
}

/// What a store holds after these actions, and what was sent.
#[derive(Default)]
struct Kept {
    records: BTreeMap<String, Record>,
    sent: Vec<(HostId, FromCoordinator)>,
}

impl Kept {
    /// Does what `coordinator` wants; at most `count` actions.
    fn take(&mut self, coordinator: &mut Coordinator, count: usize) {
        for action in std::iter::from_fn(|| coordinator.poll_action()).take(count) {
            match action {
                CoordinatorAction::Send { to, message } => self.sent.push((to, message)),
                CoordinatorAction::Record(record) => {
                    self.records.insert(record.key(), record);
                }
                CoordinatorAction::Close { peer, why } => panic!("{peer}: {why}"),
                CoordinatorAction::Resign => panic!("nobody has asked it to"),
            }
        }
    }

    fn successor(&self, now: Now) -> Result<Coordinator, ResumeError> {
        Coordinator::resume(config(), self.records.values().cloned(), now)
    }
}

fn formed() -> (Coordinator, Kept) {
    let (mut coordinator, mut kept) = (Coordinator::new(config()), Kept::default());
    (0..6).for_each(|node| register(&mut coordinator, at(0), host(node)));
    kept.take(&mut coordinator, usize::MAX);
    (coordinator, kept)
}

fn heartbeat(coordinator: &mut Coordinator, now: Now, node: u16) {
    let beat = ToCoordinator::Heartbeat { host: host(node), map: 1, load: NodeLoad::default() };
    coordinator.handle(now, host(node), beat);
}

/// Lets time pass until `until`, with ticks and the heartbeats of `nodes`.
fn pass(coordinator: &mut Coordinator, from: u64, until: u64, nodes: &[u16]) {
    for now in (from..=until).step_by(LEASE_US as usize / 20) {
        nodes.iter().for_each(|node| heartbeat(coordinator, at(now), *node));
        coordinator.tick(at(now));
    }
}

fn status(coordinator: &Coordinator, group: u32, role: usize) -> RoleStatus {
    coordinator.map().unwrap().groups[group as usize].data[role].status
}

#[test]
fn every_change_is_recorded_before_anybody_is_told_of_it() {
    let mut coordinator = Coordinator::new(config());
    (0..6).for_each(|node| register(&mut coordinator, at(0), host(node)));
    pass(&mut coordinator, 0, 3 * LEASE_US, &[1, 2, 3, 4, 5]);
    let (mut views, mut map): (BTreeMap<GroupId, ViewVersion>, u64) = (BTreeMap::new(), 0);
    let mut told = 0;
    while let Some(action) = coordinator.poll_action() {
        match action {
            CoordinatorAction::Record(record) => {
                assert!(record.map_version() >= map, "versions of the map never go back");
                map = record.map_version();
                if let Record::View(record) = record {
                    views.insert(record.view.group, record.view.version);
                }
            }
            CoordinatorAction::Send { message: FromCoordinator::Changes(changes), .. } => {
                assert!(changes.version <= map);
                assert!(changes.views.iter().all(|view| views.get(&view.group) == Some(&view.version)));
                told += 1;
            }
            CoordinatorAction::Send { message: FromCoordinator::Map(sent), .. } => {
                assert!(sent.version <= map);
                assert!(sent.groups.iter().all(|view| views.get(&view.group) == Some(&view.version)));
                told += 1;
            }
            _ => {}
        }
    }
    assert!(told > 12, "a node was lost, and all were told");
}

#[test]
fn the_successor_has_the_map_of_the_one_before_and_a_higher_epoch() {
    let (before, kept) = formed();
    let after = kept.successor(at(77)).unwrap();
    assert_eq!(after.map(), before.map());
    assert_eq!((before.epoch(), after.epoch()), (Epoch(1), Epoch(2)));
}

#[test]
fn the_first_thing_a_successor_does_is_to_record_its_epoch() {
    let (_, kept) = formed();
    let mut after = kept.successor(at(77)).unwrap();
    let Some(CoordinatorAction::Record(Record::Head(head))) = after.poll_action() else {
        panic!("no command may go out under an epoch that is not recorded");
    };
    assert_eq!((head.epoch, after.poll_action()), (Epoch(2), None));
}

#[test]
fn nobody_is_given_up_for_the_time_without_a_coordinator() {
    let (_, mut kept) = formed();
    let mut after = kept.successor(at(500 * LEASE_US)).unwrap();
    after.tick(at(500 * LEASE_US));
    after.tick(at(500 * LEASE_US + 2 * LEASE_US - 1));
    kept.take(&mut after, usize::MAX);
    assert!((0..3).all(|role| status(&after, 0, role) == RoleStatus::Full));
    assert!(after.map().unwrap().nodes.iter().all(|node| node.alive));
}

#[test]
fn a_fenced_role_is_asked_for_anew_and_only_answers_to_this_coordinator_count() {
    let (mut before, mut kept) = formed();
    before.exited(at(10), NodeId(0));
    kept.take(&mut before, usize::MAX);
    assert_eq!(status(&before, 0, 0), RoleStatus::Fenced);
    let mut after = kept.successor(at(20)).unwrap();
    register(&mut after, at(20), host(3));
    register(&mut after, at(20), host(4));
    after.tick(at(20));
    kept.sent.clear();
    kept.take(&mut after, usize::MAX);
    let (group, role, term) = (GroupId(0), RoleIndex(0), Term(2));
    let asked = |(_, message): &&(HostId, FromCoordinator)| {
        matches!(message, FromCoordinator::Fence { epoch: Epoch(2), term: Term(2), .. })
    };
    assert_eq!(kept.sent.iter().filter(asked).count(), 2);
    let mut answer = |epoch: u64, received: u64| {
        for parity in [3, 4] {
            let (epoch, received) = (Epoch(epoch), Seq(received));
            let (parity, applied) = (RoleIndex(parity), Seq(0));
            let from = after.map().unwrap().groups[0].parity_host(parity).unwrap();
            let fenced =
                ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us: 0, epoch };
            after.handle(at(30), from, fenced);
        }
        let mut kept = Kept::default();
        kept.take(&mut after, usize::MAX);
        let settles = |(_, message): &(HostId, FromCoordinator)| match message {
            FromCoordinator::Settle { upto, .. } => Some(upto.0),
            _ => None,
        };
        kept.sent.iter().filter_map(settles).collect::<Vec<_>>()
    };
    assert_eq!(answer(1, 5), [], "these are answers to the coordinator before");
    assert_eq!(answer(2, 6), [6, 6]);
}

#[test]
fn an_orphan_keeps_the_end_that_was_found() {
    let (_, mut kept) = formed();
    let Some(Record::View(record)) = kept.records.get_mut("view/00000000") else { panic!("no view") };
    let role = &mut record.view.data[0];
    (role.primary, role.term, role.status) = (None, Term(2), RoleStatus::Orphan(Seq(9)));
    record.view.version = ViewVersion(5);
    let mut after = kept.successor(at(20)).unwrap();
    for node in 0..6 {
        register(&mut after, at(20), host(node));
    }
    after.tick(at(20));
    kept.take(&mut after, usize::MAX);
    kept.sent.clear();
    let (group, role, term, epoch) = (GroupId(0), RoleIndex(0), Term(2), Epoch(2));
    for parity in [3, 4].map(RoleIndex) {
        let (received, applied) = (Seq(9), Seq(9));
        let from = after.map().unwrap().groups[0].parity_host(parity).unwrap();
        let fenced =
            ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us: 0, epoch };
        after.handle(at(30), from, fenced);
        after.handle(at(30), from, ToCoordinator::Settled { group, role, term, parity, epoch });
    }
    for parity in [3, 4].map(RoleIndex) {
        let from = after.map().unwrap().groups[0].parity_host(parity).unwrap();
        after.handle(at(30), from, ToCoordinator::Settled { group, role, term, parity, epoch });
    }
    let RoleStatus::Rebuilding { start, wait_us } = status(&after, 0, 0) else { panic!("no stand-in") };
    assert_eq!(start, Seq(9));
    assert!(wait_us >= LEASE_US, "nobody knows any more whether the former primary is dead");
}

#[test]
fn whoever_was_fenced_stays_fenced() {
    let (mut before, mut kept) = formed();
    let command = types::AdminCommand::Fence { node: NodeId(1), loss: OnLoss::Refuse };
    before.administer(at(10), &types::AdminRequest { expect: None, command }).unwrap();
    // The successor comes after any number of the actions.
    let mut actions = Vec::new();
    while let Some(action) = before.poll_action() {
        actions.push(action);
    }
    for done in 1..=actions.len() {
        let mut kept = Kept { records: kept.records.clone(), sent: Vec::new() };
        for action in &actions[..done] {
            if let CoordinatorAction::Record(record) = action {
                kept.records.insert(record.key(), record.clone());
            }
        }
        let mut after = kept.successor(at(20)).unwrap();
        kept.take(&mut after, usize::MAX);
        register(&mut after, at(20), host(1));
        kept.sent.clear();
        kept.take(&mut after, usize::MAX);
        assert!(
            matches!(&kept.sent[..], [(to, FromCoordinator::Refused(_))] if *to == host(1)),
            "after {done}"
        );
        assert!(after.map().unwrap().groups.iter().all(|view| view.roles_on(NodeId(1)) == 0), "after {done}");
    }
    kept.sent.clear();
}

#[test]
fn a_cluster_that_had_half_formed_forms_anew_above_what_is_there() {
    let (_, whole) = formed();
    let mut half = Kept::default();
    let view = whole.records.get("view/00000001").unwrap();
    half.records.insert(view.key(), view.clone());
    let mut after = half.successor(at(20)).unwrap();
    assert!(after.map().is_none());
    (0..6).for_each(|node| register(&mut after, at(20), host(node)));
    half.take(&mut after, usize::MAX);
    let versions: Vec<_> = after.map().unwrap().groups.iter().map(|view| view.version).collect();
    assert_eq!(versions, [ViewVersion(2), ViewVersion(2)]);
    assert_eq!(half.successor(at(30)).unwrap().map(), after.map());
}

#[test]
fn records_that_do_not_fit_are_named_and_nothing_is_done() {
    type Damage = fn(&mut BTreeMap<String, Record>);
    fn view(records: &mut BTreeMap<String, Record>) -> &mut types::GroupView {
        match records.get_mut("view/00000001") {
            Some(Record::View(record)) => &mut record.view,
            _ => panic!("no view"),
        }
    }
    fn head(records: &mut BTreeMap<String, Record>) -> &mut wire::record::MapHead {
        match records.get_mut("map") {
            Some(Record::Head(head)) => head,
            _ => panic!("no head"),
        }
    }
    let damages: [(Damage, &str); 10] = [
        (|records| drop(records.remove("view/00000001")), "view/00000001"),
        (|records| drop(records.remove("node/00002")), "node/00002"),
        (|records| head(records).catalog.pools[0].groups = 3, "map"),
        (|records| head(records).catalog.pools[0].groups = 0, "map"),
        (|records| head(records).nodes.swap(0, 1), "map"),
        (|records| head(records).nodes.truncate(2), "view/0000000"),
        (|records| view(records).data.truncate(2), "view/00000001"),
        (|records| view(records).parity.push(None), "view/00000001"),
        (|records| view(records).data[0].primary = None, "view/00000001"),
        (|records| view(records).version = ViewVersion(0), "view/00000001"),
    ];
    for (damage, named) in damages {
        let (_, mut kept) = formed();
        damage(&mut kept.records);
        let Err(error) = kept.successor(at(20)) else { panic!("{named} cannot be believed") };
        assert!(error.to_string().contains(named), "{error}");
    }
    let (_, kept) = formed();
    let twice = kept.records.values().chain(kept.records.values()).cloned();
    assert!(matches!(Coordinator::resume(config(), twice, at(20)), Err(ResumeError::Twice { .. })));
}

#[test]
fn a_coordinator_that_hears_less_than_half_of_those_that_live_resigns_and_gives_nobody_up() {
    let (_, mut kept) = formed();
    let mut after = kept.successor(at(0)).unwrap();
    after.store_sees(at(0), &(0..6).map(host).collect());
    kept.take(&mut after, usize::MAX);
    kept.sent.clear();
    pass(&mut after, 0, 3 * LEASE_US, &[0, 1]);
    assert!(after.has_resigned());
    let actions: Vec<_> = std::iter::from_fn(|| after.poll_action()).collect();
    assert_eq!(actions.last(), Some(&CoordinatorAction::Resign));
    assert!((0..3).all(|role| status(&after, 0, role) == RoleStatus::Full), "nobody was given up");
    assert!(after.map().unwrap().nodes.iter().all(|node| node.alive));
}

/// Its lease runs out before those of the others do, which have had no time yet to find this coordinator.
#[test]
fn who_alone_has_found_a_coordinator_that_is_cut_off_then_is_not_given_up() {
    let (_, mut kept) = formed();
    let mut after = kept.successor(at(0)).unwrap();
    after.store_sees(at(0), &(0..6).map(host).collect());
    kept.take(&mut after, usize::MAX);
    pass(&mut after, 0, LEASE_US / 10, &[0]);
    pass(&mut after, LEASE_US / 10, 3 * LEASE_US, &[]);
    assert!(after.has_resigned() && after.map().unwrap().nodes.iter().all(|node| node.alive));
}

#[test]
fn a_coordinator_that_hears_half_of_those_that_live_decides() {
    let (_, mut kept) = formed();
    let mut after = kept.successor(at(0)).unwrap();
    after.store_sees(at(0), &(0..6).map(host).collect());
    pass(&mut after, 0, 3 * LEASE_US, &[0, 1, 2]);
    assert!(!after.has_resigned());
    kept.take(&mut after, usize::MAX);
    assert_eq!(after.map().unwrap().nodes.iter().filter(|node| node.alive).count(), 3);
}

#[test]
fn those_who_have_ended_by_the_stores_word_are_not_counted() {
    let (_, kept) = formed();
    let mut after = kept.successor(at(0)).unwrap();
    after.store_sees(at(0), &[0, 1].map(host).into());
    pass(&mut after, 0, 3 * LEASE_US, &[0]);
    assert!(!after.has_resigned());
    after.store_sees(at(3 * LEASE_US), &BTreeSet::new());
    pass(&mut after, 3 * LEASE_US, 6 * LEASE_US, &[]);
    assert!(!after.has_resigned(), "there is nobody to be heard");
}

#[test]
fn a_successor_hears_anew_which_roles_have_nothing_left_of_a_namespace_that_moves() {
    let (mut before, mut kept) = formed();
    let name = |text: &str| text.parse::<types::Name>().unwrap();
    let profile = Profile::rs(1, 1).unwrap();
    let never = PolicyChange { striped: Some(Striped::Never), ..PolicyChange::default() };
    let changes = [
        CatalogChange::CreatePool { name: name("own"), profile, groups: Some(1) },
        CatalogChange::SetPolicy { name: name("default"), change: never },
        CatalogChange::ConvertNamespace { name: name("default"), to: name("own") },
    ];
    for change in changes {
        let request = AdminRequest { expect: None, command: AdminCommand::Catalog(change) };
        before.administer(at(0), &request).unwrap();
    }
    let says = |coordinator: &mut Coordinator, group: u32, role: u8| {
        let (group, role, namespace) = (GroupId(group), RoleIndex(role), NamespaceId::DEFAULT);
        let primary = coordinator.map().unwrap().group(group).unwrap().data[usize::from(role.0)].primary;
        let said = ToCoordinator::Converted { member: MemberId { group, role }, namespace, number: 1 };
        coordinator.handle(at(1), primary.unwrap(), said);
        let known = coordinator.map().unwrap().catalog.namespace(namespace).unwrap();
        (known.pool.0, known.conversion.is_some())
    };
    let roles: Vec<(u32, u8)> = (0..2).flat_map(|group| (0..3).map(move |role| (group, role))).collect();
    for (group, role) in &roles[..5] {
        assert_eq!(says(&mut before, *group, *role), (0, true));
    }
    kept.take(&mut before, usize::MAX);
    let mut after = kept.successor(at(1)).unwrap();
    (0..6).for_each(|node| register(&mut after, at(1), host(node)));
    assert_eq!(says(&mut after, 1, 2), (0, true), "of the others it knows nothing");
    for (group, role) in &roles[..4] {
        assert_eq!(says(&mut after, *group, *role), (0, true));
    }
    assert_eq!(says(&mut after, 1, 1), (1, false), "the last one");
    // What it has decided the next one knows.
    kept.take(&mut after, usize::MAX);
    let last = kept.successor(at(2)).unwrap();
    let known = last.map().unwrap().catalog.namespace(NamespaceId::DEFAULT).unwrap();
    assert_eq!((known.pool.0, known.conversion.is_some(), known.conversions), (1, false, 1));
}
