//! Quotas: what nodes are given, with the ledgers that nodes keep.

use store::{QuotaCharge, Quotas};
use types::{CatalogChange, Name, NamespaceId, Policy, QuotaUse};

use super::*;

/// What the data roles may have of it: three fifths.
const QUOTA: u64 = 1_000;
const DATA_QUOTA: u64 = 600;
const NAMESPACE: NamespaceId = NamespaceId(1);

/// A cluster with a namespace that has a quota, and what its nodes take of that.
struct Story {
    stage: Stage,
    nodes: Vec<Node>,
}

struct Node {
    ledger: Quotas,
    /// Of its role, if it serves one.
    charge: Option<QuotaCharge>,
    /// Of its chunks, if it keeps any.
    charge_of_chunks: Option<QuotaCharge>,
    /// Whether what it is sent is lost.
    is_deaf: bool,
}

impl Story {
    fn new() -> Self {
        let stage = Stage::new(6);
        let node = |serves: bool| {
            let ledger = Quotas::new(1);
            let charge = serves.then(|| ledger.share(NAMESPACE).open(0));
            Node { ledger, charge, charge_of_chunks: None, is_deaf: false }
        };
        let nodes = (0..6).map(|number| node(number < 3)).collect();
        let mut story = Self { stage, nodes };
        story.set_quota();
        story
    }

    fn set_quota(&mut self) {
        let policy = Policy { quota_bytes: QUOTA, ..Policy::default() };
        let (name, pool) = ("n".parse().unwrap(), Name::default_name());
        let command = AdminCommand::Catalog(CatalogChange::CreateNamespace { name, pool, policy });
        let request = AdminRequest { expect: None, command };
        self.stage.coordinator.administer(self.stage.at(), &request).unwrap();
    }

    /// All nodes but the silent ones send their heartbeats, with what they take, so many times.
    fn beat(&mut self, times: u32) {
        for _ in 0..times {
            self.stage.now += LEASE_US / 20;
            for number in (0..6).filter(|number| !self.stage.silent.contains(number)).collect::<Vec<_>>() {
                let (host, load) = (host(number), NodeLoad::default());
                let map = self.stage.coordinator.map().unwrap().version;
                self.say(number, ToCoordinator::Heartbeat { host, map, load });
                if let Some(report) = self.nodes[usize::from(number)].ledger.report() {
                    self.say(number, ToCoordinator::Quotas(report));
                }
            }
        }
    }

    fn say(&mut self, number: u16, message: ToCoordinator) {
        self.stage.coordinator.handle(self.stage.at(), host(number), message);
        while let Some(action) = self.stage.coordinator.poll_action() {
            let CoordinatorAction::Send { to, message: FromCoordinator::Shares { round, grants } } = action
            else {
                continue;
            };
            let node = &self.nodes[usize::from(to.node.0)];
            if !node.is_deaf {
                node.ledger.deal(round, &grants);
                node.ledger.note_heard(0, round);
            }
        }
        let shares: u64 = (0..6).map(|number| self.known(number).share_bytes).sum();
        assert!(shares <= DATA_QUOTA, "{shares} bytes are dealt out of {DATA_QUOTA}");
    }

    fn known(&self, number: u16) -> QuotaUse {
        let report = self.nodes[usize::from(number)].ledger.report();
        report.and_then(|report| report.uses.first().copied()).unwrap_or_default()
    }

    fn shares(&self) -> Vec<u64> {
        (0..6).map(|number| self.known(number).share_bytes).collect()
    }

    fn takes(&mut self, number: usize, bytes: u64) -> bool {
        self.nodes[number].charge.as_mut().unwrap().try_set(bytes).is_ok()
    }

    /// Node 5 serves the role of node 0, whose process has ended, and has what that one had.
    fn moves(&mut self) {
        let had = self.nodes[0].charge.take().unwrap();
        let share = self.nodes[5].ledger.share(NAMESPACE);
        self.nodes[5].charge = Some(share.open(had.bytes()));
        self.nodes[0].ledger = Quotas::new(1);
    }
}

#[test]
fn all_get_an_equal_part_and_what_is_left_goes_where_it_is_needed() {
    let mut story = Story::new();
    story.nodes[1].is_deaf = true;
    story.beat(3);
    assert_eq!(story.shares(), [0; 6], "one has not said yet what it takes");
    story.nodes[1].is_deaf = false;
    story.beat(14);
    assert_eq!(story.shares(), [200, 200, 200, 0, 0, 0]);
    assert!(story.takes(0, 200) && !story.takes(0, 201));
    story.beat(12);
    let shares = story.shares();
    assert!(shares[0] > 320 && shares[1] < 140, "{shares:?}");
    assert!(story.takes(0, 320));
}

#[test]
fn a_quota_that_becomes_smaller_takes_from_all_alike() {
    let mut story = Story::new();
    story.beat(4);
    assert!(story.takes(0, 200) && story.takes(1, 100));
    let name = "n".parse().unwrap();
    let change = types::PolicyChange { quota_bytes: Some(250), ..types::PolicyChange::default() };
    let command = AdminCommand::Catalog(CatalogChange::SetPolicy { name, change });
    story.stage.coordinator.administer(story.stage.at(), &AdminRequest { expect: None, command }).unwrap();
    story.beat(6);
    assert_eq!(story.shares()[..3], [100, 50, 0], "150 bytes for who has 300");
    assert!(!story.takes(0, 201) && story.takes(0, 90) && !story.takes(0, 101));
}

#[test]
fn what_the_dead_had_is_dealt_out_when_it_is_known_what_has_moved() {
    let mut story = Story::new();
    story.beat(4);
    assert!(story.takes(0, 200) && story.takes(1, 150));
    story.stage.taken_over(0);
    let taker = story.stage.primary(0).unwrap();
    assert_eq!(taker, 5, "the stand-in");
    let before = story.shares();
    // It has not got the index yet, and says nothing.
    story.nodes[5].is_deaf = true;
    story.beat(5);
    let is_given = |(now, before): (&u64, &u64)| now > before;
    assert!(!story.shares()[1..].iter().zip(&before[1..]).any(is_given), "nobody is given anything");
    story.moves();
    story.nodes[5].is_deaf = false;
    story.beat(14);
    let shares = story.shares();
    assert_eq!(
        shares.iter().sum::<u64>(),
        DATA_QUOTA - 1,
        "all of it, but for what is rounded down: {shares:?}"
    );
    assert!(shares[5] > 200, "it has what it took over, and more: {shares:?}");
}

#[test]
fn a_newcomer_hears_of_no_want_before_others_have_given_back_its_part() {
    let mut story = Story::new();
    story.beat(4);
    assert_eq!(story.shares(), [200, 200, 200, 0, 0, 0], "nothing is left");
    story.say(0, ToCoordinator::Chunks(wire::object::ChunkReport::Open { group: GroupId(0) }));
    for node in &mut story.nodes[..5] {
        node.charge_of_chunks = Some(node.ledger.share(NAMESPACE).open_for_chunks(0));
    }
    let mut refusals = Vec::new();
    for _ in 0..20 {
        story.beat(1);
        let newcomer = story.nodes[4].charge_of_chunks.as_mut().unwrap();
        refusals.extend(newcomer.try_set(20).err());
    }
    assert!(refusals.iter().all(|why| *why == store::QuotaShortage::Undealt), "{refusals:?}");
    assert!(story.known(4).used_bytes == 20 && !refusals.is_empty(), "{refusals:?}");
}

#[test]
fn what_was_lost_on_the_way_is_not_given_twice() {
    let mut story = Story::new();
    story.beat(1);
    story.nodes[1].is_deaf = true;
    story.beat(8);
    assert_eq!(story.shares()[1], 0);
    story.nodes[1].is_deaf = false;
    story.beat(20);
    assert_eq!(story.shares(), [200, 200, 200, 0, 0, 0]);
}

#[test]
fn what_a_node_says_that_cannot_be_costs_nobody_else_anything() {
    let mut story = Story::new();
    story.beat(4);
    assert!(story.takes(0, 150));
    let mut report = story.nodes[1].ledger.report().unwrap();
    let known = report.uses[0];
    for claimed in [u64::MAX, u64::MAX, 0] {
        report.uses[0] = QuotaUse { used_bytes: claimed, share_bytes: claimed, ..known };
        story.say(1, ToCoordinator::Quotas(report.clone()));
    }
    story.say(1, ToCoordinator::Quotas(types::QuotaReport { uses: vec![known], ..report }));
    story.beat(20);
    assert!(story.shares().iter().sum::<u64>() > DATA_QUOTA - 10, "{:?}", story.shares());
}

#[test]
fn who_keeps_chunks_has_a_part_and_is_waited_for() {
    let mut story = Story::new();
    story.beat(4);
    assert_eq!(story.shares(), [200, 200, 200, 0, 0, 0]);
    let open = ToCoordinator::Chunks(wire::object::ChunkReport::Open { group: GroupId(0) });
    // The last of its holders says nothing yet.
    story.nodes[4].is_deaf = true;
    story.say(0, open);
    for node in &mut story.nodes[..5] {
        node.charge_of_chunks = Some(node.ledger.share(NAMESPACE).open_for_chunks(0));
    }
    assert!(story.takes(0, 200));
    story.beat(4);
    assert_eq!(story.shares()[3..], [0; 3], "nobody is given anything");
    story.nodes[4].is_deaf = false;
    story.beat(20);
    let shares = story.shares();
    assert!(shares[..5].iter().all(|share| *share > 0) && shares[0] > 240, "{shares:?}");
    assert!(story.nodes[4].charge_of_chunks.as_mut().unwrap().try_set(shares[4]).is_ok());
}
