//! What a coordinator does about data that is lost for good.

use types::{
    AdminAnswer, AdminCommand, AdminRequest, CatalogChange, ClusterId, Entry, Expectations, GroupId,
    GroupView, HostId, Incarnation, LossPolicy, Name, NamespaceLossPolicy, NodeId, NodeInfo, NodeLoad,
    Policy, PolicyChange, PoolSlots, Profile, RoleIndex, RoleStatus, Slot, SlotRange, Striped, Time,
    UnixSeconds, ViewVersion,
};
use wire::message::{FromCoordinator, Registration, ToCoordinator};
use wire::record::Record;

use super::{Coordinator, CoordinatorAction, CoordinatorConfig};
use crate::{Now, Rules, Timing};

const LEASE_US: u64 = 1_000_000;

/// Seven nodes, one group of `rs(3+2)` on the first five of them: data on 0, 1 and 2, parities on 3 and 4.
struct Story {
    coordinator: Coordinator,
    lives: Vec<Option<u64>>,
    now: u64,
    records: std::collections::BTreeMap<String, Record>,
    asked: Vec<(HostId, ViewVersion)>,
}

fn host(node: u16, life: u64) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(life) }
}

fn at(us: u64) -> Now {
    Now { time: Time(us), unix: UnixSeconds(1) }
}

fn config(on_loss: LossPolicy) -> CoordinatorConfig {
    CoordinatorConfig {
        cluster: ClusterId(7),
        profile: Profile::rs(3, 2).unwrap(),
        nodes: 7,
        shards: 1,
        groups: 1,
        timing: Timing::from_lease(LEASE_US),
        rules: Rules::all(),
        records: super::RecordKeeping::Stored,
        on_loss,
    }
}

/// All slots of the first pool.
const ALL: SlotRange = SlotRange { first: Slot(0), last: Slot(16_383) };

fn accept(slots: SlotRange) -> AdminCommand {
    AdminCommand::AcceptLoss { pool: None, slots: vec![slots], namespace: None }
}

fn accepted(slots: &[SlotRange]) -> AdminAnswer {
    let of_pool = |slots: &SlotRange| PoolSlots { pool: Name::default_name(), slots: *slots };
    AdminAnswer::Accepted(slots.iter().map(of_pool).collect())
}

impl Story {
    fn new(on_loss: LossPolicy) -> Self {
        Self::of(Coordinator::new(config(on_loss)))
    }

    fn of(coordinator: Coordinator) -> Self {
        let (lives, records) = (vec![Some(1); 7], Default::default());
        let mut story = Self { coordinator, lives, now: 0, records, asked: Vec::new() };
        (0..7).for_each(|node| story.register(node, 1));
        story.take();
        let primaries: Vec<u16> = story.view().data.iter().map(|role| role.primary.unwrap().node.0).collect();
        let parities: Vec<u16> = story.view().in_sync().map(|(_, host)| host.node.0).collect();
        assert_eq!((primaries, parities), (vec![0, 1, 2], vec![3, 4]));
        story
    }

    fn register(&mut self, node: u16, life: u64) {
        let address = "127.0.0.1:1".parse().unwrap();
        let host = host(node, life);
        let zone = String::new();
        let info = NodeInfo {
            host,
            peer: address,
            memcached: address,
            http: address,
            native: None,
            zone,
            alive: true,
        };
        let expect = Expectations { entry: Entry::Founder, ..Expectations::default() };
        let registration = Registration { info, expect, holds: None, promised: types::Epoch(0), map: 0 };
        self.coordinator.handle(at(self.now), host, ToCoordinator::Register(registration));
        self.lives[usize::from(node)] = Some(life);
    }

    fn take(&mut self) {
        while let Some(action) = self.coordinator.poll_action() {
            match action {
                CoordinatorAction::Record(record) => _ = self.records.insert(record.key(), record),
                CoordinatorAction::Send { to, message: FromCoordinator::Confirm { view, .. } } => {
                    self.asked.push((to, view));
                }
                _ => {}
            }
        }
    }

    /// Time passes, with the heartbeats of all that are not silent.
    fn pass(&mut self, us: u64) {
        let until = self.now + us;
        while self.now < until {
            self.now += LEASE_US / 20;
            for node in 0..7u16 {
                let Some(life) = self.lives[usize::from(node)] else { continue };
                let host = host(node, life);
                let beat = ToCoordinator::Heartbeat { host, map: 1, load: NodeLoad::default() };
                self.coordinator.handle(at(self.now), host, beat);
            }
            self.coordinator.tick(at(self.now));
            self.take();
        }
    }

    /// The process of `node` is seen to end.
    fn dies(&mut self, node: u16) {
        self.lives[usize::from(node)] = None;
        self.coordinator.exited(at(self.now), NodeId(node));
        self.take();
    }

    /// The process of `node` is killed: nobody sees it end, but its connection does.
    fn is_killed(&mut self, node: u16) {
        if let Some(life) = self.lives[usize::from(node)].take() {
            self.coordinator.parted(host(node, life));
        }
    }

    fn confirms(&mut self, node: u16, view: ViewVersion) {
        let (from, epoch) = (host(node, 1), self.coordinator.epoch());
        let confirmed = ToCoordinator::Confirmed { group: GroupId(0), view, epoch };
        self.coordinator.handle(at(self.now), from, confirmed);
    }

    fn ask(&mut self, command: AdminCommand) -> AdminAnswer {
        let reply = self.coordinator.administer(at(self.now), &AdminRequest { expect: None, command });
        self.take();
        reply.unwrap()
    }

    fn accept_all(&mut self) -> AdminAnswer {
        self.ask(accept(ALL))
    }

    fn view(&self) -> GroupView {
        self.coordinator.map().unwrap().groups[0].clone()
    }

    fn status(&self, role: usize) -> RoleStatus {
        self.view().data[role].status
    }
}

/// Nodes 0, 1 and 3 have ended: data roles 0 and 1, and one of the parities.
fn beyond(on_loss: LossPolicy) -> Story {
    let mut story = Story::new(on_loss);
    [0, 1, 3].into_iter().for_each(|node| story.dies(node));
    story
}

#[test]
fn what_is_left_beside_lost_data_gets_new_parities_and_the_old_ones_are_none_any_more() {
    let mut story = beyond(LossPolicy::Error);
    let view = story.view();
    assert_eq!(
        view.data.iter().map(|role| role.status).collect::<Vec<_>>(),
        [RoleStatus::Lost, RoleStatus::Lost, RoleStatus::Full]
    );
    assert_eq!(view.in_sync().count(), 0, "the last one's sum has what is lost");
    story.pass(LEASE_US);
    let learners: Vec<HostId> = story.view().learners.iter().map(|learner| learner.host).collect();
    assert_eq!(learners.len(), 2);
    let (primary, term) = (story.view().data[2].primary.unwrap(), story.view().data[2].term);
    for learner in story.view().learners {
        let lesson = wire::message::Lesson { since: learner.since, attempt: 0 };
        let (group, role) = (GroupId(0), RoleIndex(2));
        let caught_up = ToCoordinator::CaughtUp { group, role, term, learner: learner.role, lesson };
        story.coordinator.handle(at(story.now), primary, caught_up);
    }
    assert_eq!(
        (story.view().in_sync().count(), story.view().spare_parities()),
        (2, 2),
        "its only teacher has taught"
    );
}

#[test]
fn a_former_parity_is_not_preferred_for_its_old_bytes() {
    let mut story = beyond(LossPolicy::Error);
    story.pass(LEASE_US / 10);
    assert!(story.coordinator.state.plan_nodes().iter().all(|node| node.former.is_empty()));
}

#[test]
fn an_accepted_role_begins_anew_one_lease_after_its_former_primary_has_ended() {
    let mut story = beyond(LossPolicy::Error);
    story.pass(5 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Lost, "nobody has accepted it");
    let before = story.view();
    story.accept_all();
    assert_eq!((story.status(0), story.status(1)), (RoleStatus::Accepted, RoleStatus::Accepted));
    story.pass(LEASE_US * 9 / 10);
    assert_eq!(story.status(0), RoleStatus::Accepted);
    story.pass(LEASE_US / 2);
    let view = story.view();
    assert!(view.is_full() && view.former.is_empty());
    for (now, before) in view.data.iter().zip(&before.data).take(2) {
        assert!(now.starts_from_nothing() && now.term > before.term);
        assert!(now.first_seq() > before.first_seq(), "no record has a number of the life before");
    }
    assert!(view.data.iter().all(|role| story.lives[usize::from(role.primary.unwrap().node.0)].is_some()));
}

#[test]
fn what_may_still_be_served_waits_until_one_who_is_needed_for_that_knows() {
    let mut story = Story::new(LossPolicy::Error);
    // The parities end; node 0 may have, and may serve without them.
    [3, 4].into_iter().for_each(|node| story.dies(node));
    story.is_killed(0);
    story.pass(8 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Lost);
    let former = story.view().former(RoleIndex(0)).cloned().unwrap();
    assert_eq!((former.primary, former.witnesses), (host(0, 1), vec![]));
    story.accept_all();
    story.pass(20 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Accepted);
    // It is back, and asked.
    story.asked.clear();
    story.lives[0] = Some(1);
    story.pass(LEASE_US);
    let (asked, view) = *story.asked.last().unwrap();
    assert_eq!(asked, host(0, 1));
    story.confirms(0, ViewVersion(view.0 - 1));
    story.pass(2 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Accepted, "an older view says nothing");
    story.confirms(0, view);
    story.pass(LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Accepted, "its lease");
    story.pass(LEASE_US / 5);
    assert_eq!(story.status(0), RoleStatus::Full);
}

/// Three of seven stand still together for so many leases, and go on: whether what one of them has is lost.
fn loses_by_standing_still(leases: u64, rules: Rules, on_loss: LossPolicy) -> bool {
    let mut story = Story::of(Coordinator::new(CoordinatorConfig { rules, ..config(on_loss) }));
    [0, 1, 3].into_iter().for_each(|node| story.lives[node] = None);
    story.pass(leases * LEASE_US);
    [0, 1, 3].into_iter().for_each(|node| story.lives[node] = Some(1));
    story.pass(LEASE_US);
    let view = story.view();
    let parity_stays = view.parity_host(RoleIndex(3)) == Some(host(3, 1));
    assert_eq!(parity_stays, !view.data[0].status.is_lost(), "without it nothing can be decoded");
    !parity_stays
}

#[test]
fn what_only_silent_processes_have_is_there_when_they_are_heard_again() {
    for leases in [3, 9, 600] {
        assert!(!loses_by_standing_still(leases, Rules::all(), LossPolicy::Error), "after {leases} leases");
    }
}

#[test]
fn who_would_go_on_without_it_waits_for_five_leases() {
    assert!(!loses_by_standing_still(3, Rules::all(), LossPolicy::Empty));
    assert!(loses_by_standing_still(9, Rules::all(), LossPolicy::Empty));
}

#[test]
#[cfg(feature = "planted-bugs")]
fn what_silent_processes_have_is_lost_where_they_are_given_up() {
    let rules = Rules::without(crate::Bug::SilentGivenUp);
    assert!(loses_by_standing_still(9, rules, LossPolicy::Error));
}

#[test]
fn one_that_was_killed_is_waited_for_no_longer_than_five_leases_unless_it_is_heard_after_all() {
    let killed = |is_heard: bool| {
        let mut story = Story::new(LossPolicy::Error);
        [0, 1, 3].into_iter().for_each(|node| story.is_killed(node));
        if is_heard {
            // Its connection had ended, and it has another one.
            story.register(3, 1);
            story.lives[3] = None;
        }
        story.pass(9 * LEASE_US);
        story.status(0) == RoleStatus::Lost
    };
    assert!(killed(false) && !killed(true));
}

#[test]
fn a_living_parity_can_tell_for_a_silent_primary() {
    let mut story = Story::new(LossPolicy::Error);
    story.dies(3);
    [0, 1].into_iter().for_each(|node| story.is_killed(node));
    story.pass(8 * LEASE_US);
    assert_eq!((story.status(0), story.status(1)), (RoleStatus::Lost, RoleStatus::Lost));
    story.accept_all();
    story.pass(LEASE_US);
    // For role 0 the dead parity tells: it was needed, too.
    let view = story.asked.iter().find(|(asked, _)| *asked == host(4, 1)).unwrap().1;
    story.confirms(4, view);
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
}

#[test]
fn a_process_whose_name_another_one_has_taken_is_gone() {
    let mut story = Story::new(LossPolicy::Error);
    story.lives.fill(None);
    story.pass(2 * LEASE_US);
    (0..7).for_each(|node| story.register(node, 2));
    story.take();
    assert!(story.view().data.iter().all(|role| role.status == RoleStatus::Lost));
    let answer = story.accept_all();
    assert_eq!(answer, accepted(&[ALL]));
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
}

#[test]
fn leases_run_out_however_many_have_been_given_up_before() {
    let mut story = Story::new(LossPolicy::Error);
    for node in [6, 5, 4, 3] {
        story.is_killed(node);
        story.pass(8 * LEASE_US);
    }
    story.lives[2] = None;
    story.pass(2 * LEASE_US);
    let nodes = &story.coordinator.map().unwrap().nodes;
    let alive: Vec<u16> = nodes.iter().filter(|node| node.alive).map(|node| node.host.node.0).collect();
    assert_eq!(alive, [0, 1]);
}

#[test]
fn an_operator_vouches_for_a_silent_process_by_fencing_it() {
    let mut story = Story::new(LossPolicy::Error);
    [3, 4].into_iter().for_each(|node| story.dies(node));
    story.is_killed(0);
    story.pass(8 * LEASE_US);
    story.accept_all();
    story.pass(3 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Accepted);
    story.ask(AdminCommand::Fence { node: NodeId(0), loss: types::OnLoss::Refuse });
    story.pass(2 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Full);
}

#[test]
fn slots_select_roles_as_a_whole_and_accepting_twice_is_accepting_once() {
    let mut story = beyond(LossPolicy::Error);
    let of_role = |story: &Story, role| {
        let member = types::MemberId { group: GroupId(0), role: RoleIndex(role) };
        story.coordinator.map().unwrap().slots_of(member).unwrap()
    };
    let second = of_role(&story, 1);
    let slot = SlotRange { first: Slot(second.first.0 + 3), last: Slot(second.first.0 + 3) };
    assert_eq!(story.ask(accept(slot)), accepted(&[second]));
    let version = story.view().version;
    assert_eq!(story.ask(accept(slot)), accepted(&[second]));
    assert_eq!((story.view().version, story.status(0)), (version, RoleStatus::Lost));
    story.pass(2 * LEASE_US);
    assert_eq!((story.status(0), story.status(1)), (RoleStatus::Lost, RoleStatus::Full));
    let term = story.view().data[1].term;
    assert_eq!(story.ask(accept(slot)), accepted(&[]), "it has begun anew");
    story.pass(2 * LEASE_US);
    assert_eq!(story.view().data[1].term, term);
    let full = of_role(&story, 2);
    assert_eq!(story.ask(accept(full)), accepted(&[]));
}

#[test]
fn with_the_policy_of_caches_nobody_needs_to_accept() {
    let mut story = beyond(LossPolicy::Empty);
    assert_eq!(story.status(0), RoleStatus::Accepted);
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
    let mut story = beyond(LossPolicy::Error);
    story.pass(2 * LEASE_US);
    story.ask(AdminCommand::SetLossPolicy { policy: LossPolicy::Empty });
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full(), "the policy may change when it is needed");
}

#[test]
fn a_pool_without_namespaces_has_nothing_that_anybody_could_miss() {
    let mut story = Story::new(LossPolicy::Error);
    let (name, profile) = ("own".parse().unwrap(), Profile::rs(1, 1).unwrap());
    story.ask(AdminCommand::Catalog(CatalogChange::CreatePool { name, profile, groups: Some(1) }));
    let own = |story: &Story| story.coordinator.map().unwrap().groups[1].clone();
    let hosts = own(&story).hosts().map(|host| host.node.0).collect::<Vec<u16>>();
    hosts.iter().for_each(|node| story.dies(*node));
    assert_eq!(own(&story).data[0].status, RoleStatus::Accepted);
    story.pass(3 * LEASE_US);
    assert!(own(&story).data[0].primary.is_some_and(|host| !hosts.contains(&host.node.0)));
}

#[test]
fn a_reset_begins_everything_anew_whatever_the_state_is() {
    let mut story = beyond(LossPolicy::Error);
    story.lives[5] = None;
    story.pass(2 * LEASE_US);
    let primary = story.view().data[2].primary.unwrap();
    assert_eq!(story.ask(AdminCommand::Reset), accepted(&[ALL]));
    let view = story.view();
    assert!(view.data.iter().all(|role| role.status == RoleStatus::Accepted && role.primary.is_none()));
    assert!(view.in_sync().count() == 0 && view.learners.is_empty());
    story.pass(2 * LEASE_US);
    assert_eq!(story.status(2), RoleStatus::Accepted, "its primary lives, and has not said that it knows");
    let version = story.asked.iter().rfind(|(asked, _)| *asked == primary).unwrap().1;
    story.confirms(primary.node.0, version);
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
    assert!(story.view().data.iter().all(|role| role.origin == role.term && role.origin.0 > 1));
}

#[test]
fn a_successor_goes_on_with_what_was_accepted() {
    let mut story = beyond(LossPolicy::Error);
    story.accept_all();
    let records: Vec<Record> = story.records.values().cloned().collect();
    story.coordinator = Coordinator::resume(config(LossPolicy::Error), records, at(story.now)).unwrap();
    // It does not know that the former processes have ended: they are silent to it. A parity lives.
    story.asked.clear();
    story.pass(2 * LEASE_US);
    let view = story.asked.iter().find(|(asked, _)| *asked == host(4, 1)).unwrap().1;
    assert_eq!(story.status(0), RoleStatus::Accepted);
    story.confirms(4, view);
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A story with a namespace that accepts losses by itself or not, and data roles 0 and 1 lost.
fn beyond_with(on_loss: NamespaceLossPolicy) -> Story {
    let mut story = Story::new(LossPolicy::Error);
    let policy = Policy { on_loss, ..Policy::default() };
    let make = CatalogChange::CreateNamespace { name: name("cache"), pool: Name::default_name(), policy };
    story.ask(AdminCommand::Catalog(make));
    [0, 1, 3].into_iter().for_each(|node| story.dies(node));
    story
}

fn of_cache() -> AdminCommand {
    AdminCommand::AcceptLoss { pool: None, slots: vec![ALL], namespace: Some(name("cache")) }
}

impl Story {
    /// Ranges that the namespace `of` goes on missing.
    fn missed(&self, of: &str) -> usize {
        self.coordinator.map().unwrap().catalog.namespace_named(&name(of)).unwrap().lost.len()
    }

    fn lost_slots(&self) -> Vec<PoolSlots> {
        self.coordinator.map().unwrap().lost_slots()
    }
}

#[test]
fn a_loss_is_accepted_for_one_namespace_and_missed_by_the_others_until_they_accept_it_too() {
    let mut story = beyond_with(NamespaceLossPolicy::Cluster);
    let lost = story.lost_slots();
    assert_eq!((story.status(0), story.missed("default")), (RoleStatus::Lost, 0));
    assert_eq!(story.ask(of_cache()), AdminAnswer::Accepted(lost.clone()));
    assert_eq!(
        (story.status(0), story.missed("default"), story.missed("cache")),
        (RoleStatus::Accepted, 1, 0)
    );
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
    assert_eq!(story.lost_slots(), lost, "they are lost as long as anybody misses them");
    assert_eq!(story.ask(of_cache()), accepted(&[]));
    assert_eq!(story.accept_all(), AdminAnswer::Accepted(lost));
    assert_eq!(story.lost_slots(), []);
}

#[test]
fn what_a_namespace_misses_is_given_up_role_by_role_and_by_a_reset_altogether() {
    let mut story = beyond_with(NamespaceLossPolicy::Empty);
    story.pass(2 * LEASE_US);
    let pool = story.coordinator.map().unwrap().default_pool().clone();
    let of_role = |role| pool.slots_of(types::MemberId { group: GroupId(0), role: types::RoleIndex(role) });
    let missed = |story: &Story| {
        story.coordinator.map().unwrap().catalog.namespace_named(&name("default")).unwrap().lost.clone()
    };
    assert_eq!(missed(&story), SlotRange::merged(vec![of_role(0), of_role(1)]), "they are neighbours");
    let one = SlotRange { first: of_role(1).last, last: of_role(1).last };
    let command = AdminCommand::AcceptLoss { pool: None, slots: vec![one], namespace: None };
    assert_eq!(story.ask(command), accepted(&[of_role(1)]));
    assert_eq!(missed(&story), [of_role(0)]);
    story.ask(AdminCommand::Reset);
    assert_eq!(missed(&story), []);
}

#[test]
fn a_namespace_that_accepts_losses_by_itself_does_not_wait_for_those_that_do_not() {
    let mut story = beyond_with(NamespaceLossPolicy::Empty);
    assert_eq!(
        (story.status(0), story.missed("default"), story.missed("cache")),
        (RoleStatus::Accepted, 1, 0)
    );
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full() && !story.lost_slots().is_empty());
}

#[test]
fn what_a_namespace_of_another_pool_has_lost_is_not_accepted() {
    let mut story = beyond_with(NamespaceLossPolicy::Cluster);
    let profile = Profile::rs(1, 1).unwrap();
    story.ask(AdminCommand::Catalog(CatalogChange::CreatePool {
        name: name("own"),
        profile,
        groups: Some(1),
    }));
    let (pool, namespace) = (Some(name("own")), Some(name("cache")));
    let command = AdminCommand::AcceptLoss { pool, slots: vec![ALL], namespace };
    let refused = story.coordinator.administer(at(story.now), &AdminRequest { expect: None, command });
    assert!(refused.unwrap_err().to_string().contains("is in pool 'default'"));
    assert_eq!(story.status(0), RoleStatus::Lost);
}

/// The change that makes pool `own`, and that which makes a namespace in it.
fn own_pool() -> CatalogChange {
    CatalogChange::CreatePool { name: name("own"), profile: Profile::rs(1, 1).unwrap(), groups: Some(1) }
}

impl Story {
    fn change(&mut self, change: CatalogChange) {
        self.ask(AdminCommand::Catalog(change));
    }

    fn convert(&mut self, of: &str, to: &str) {
        let change = PolicyChange { striped: Some(Striped::Never), ..PolicyChange::default() };
        self.change(CatalogChange::SetPolicy { name: name(of), change });
        self.change(CatalogChange::ConvertNamespace { name: name(of), to: name(to) });
    }

    /// All primaries of the first group have nothing left of the default namespace, which moves for the first time.
    fn all_say_converted(&mut self) {
        for (role, data) in (0..).zip(self.view().data) {
            let member = types::MemberId { group: GroupId(0), role: RoleIndex(role) };
            let said = ToCoordinator::Converted { member, namespace: types::NamespaceId::DEFAULT, number: 1 };
            self.coordinator.handle(at(self.now), data.primary.unwrap(), said);
        }
        self.take();
    }

    fn pool_of(&self, of: &str) -> types::PoolId {
        self.coordinator.map().unwrap().catalog.namespace_named(&name(of)).unwrap().pool
    }
}

#[test]
fn a_conversion_waits_for_lost_slots_of_the_former_pool_until_they_are_given_up() {
    let mut story = Story::new(LossPolicy::Error);
    story.change(own_pool());
    let (pool, on_loss) = (Name::default_name(), NamespaceLossPolicy::Empty);
    let policy = Policy { on_loss, ..Policy::default() };
    story.change(CatalogChange::CreateNamespace { name: name("cache"), pool, policy });
    story.convert("default", "own");
    [0, 1, 3].into_iter().for_each(|node| story.dies(node));
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full(), "what `cache` does without has begun anew");
    assert_eq!(story.missed("default"), 1);
    story.all_say_converted();
    assert_eq!(story.pool_of("default"), types::PoolId::DEFAULT, "its lost slots are this pool's");
    story.accept_all();
    story.all_say_converted();
    assert_eq!((story.pool_of("default"), story.missed("default")), (types::PoolId(1), 0));
}

#[test]
fn what_is_lost_of_the_new_pool_begins_anew_only_if_who_comes_accepts_it() {
    let mut story = Story::new(LossPolicy::Empty);
    story.change(own_pool());
    let policy = Policy { on_loss: NamespaceLossPolicy::Error, ..Policy::default() };
    story.change(CatalogChange::CreateNamespace { name: name("sessions"), pool: name("own"), policy });
    story.convert("sessions", "default");
    [0, 1, 3].into_iter().for_each(|node| story.dies(node));
    story.pass(3 * LEASE_US);
    assert_eq!(story.status(0), RoleStatus::Lost, "items of `sessions` were there, too");
    assert_eq!(story.missed("sessions"), 0, "such slots would be of its former pool");
    let (pool, namespace) = (Some(Name::default_name()), Some(name("sessions")));
    story.ask(AdminCommand::AcceptLoss { pool, slots: vec![ALL], namespace });
    assert_eq!(story.status(0), RoleStatus::Accepted);
    story.pass(2 * LEASE_US);
    assert!(story.view().is_full());
}
