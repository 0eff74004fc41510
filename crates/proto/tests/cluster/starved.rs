//! Nodes whose memory is full lose others: there is no room for the pages of the roles that they take over.

use std::collections::BTreeMap;

use store::Category;
use types::EXTENT_BYTES;
use types::op::{Delete, Failure};

use super::*;

/// Limit of each node; a 32nd of it is headroom.
const LIMIT: u64 = 224 << 20;
/// Extents below the headroom that are left to members: each node has five roles.
const EXTENTS: u64 = 26;

struct Story {
    cluster: Cluster,
    budgets: Vec<Budget>,
    /// What clients were told.
    model: BTreeMap<String, Vec<u8>>,
}

/// Five nodes that are to be filled.
fn full_cluster(eviction: Eviction) -> Story {
    full_nodes(5, &Setup::default(), eviction)
}

fn full_nodes(nodes: u16, setup: &Setup, eviction: Eviction) -> Story {
    let budgets: Vec<Budget> = (0..nodes).map(|_| Budget::new(LIMIT)).collect();
    for budget in &budgets {
        let extents = LIMIT - LIMIT / store::HEADROOM_SHARE;
        // Something else of the node has the rest: the test need not fill it.
        let ballast = extents as usize - EXTENTS as usize * EXTENT_BYTES;
        budget.try_reserve_extent(Category::Buffers, ballast).unwrap();
    }
    let store = StoreConfig { cluster: ClusterId(7), area_limit_bytes: 64 << 20, eviction };
    let budget = |node| budgets[usize::from(node)].clone();
    let cluster = Cluster::assemble(nodes, "rs(3+2)", &store, setup, budget);
    Story { cluster, budgets, model: BTreeMap::new() }
}

fn value(i: usize, round: usize) -> Vec<u8> {
    let len = 10_000 + (i * 3571 + round * 997) % 40_000;
    (0..len).map(|b| (b * 7 + i * 13 + round) as u8).collect()
}

fn name(i: usize) -> String {
    format!("key-{i}")
}

pub(crate) fn delete(key: &str) -> Request {
    Request::on(key_of(key), Op::Delete(Delete::default()))
}

impl Story {
    /// The answer, however long it takes.
    fn ask(&mut self, node: u16, request: Request) -> Outcome {
        let token = self.cluster.begin(node, request);
        for _ in 0..700 {
            if let Some(outcome) = self.cluster.answers.remove(&token) {
                return outcome;
            }
            self.cluster.advance(10);
        }
        panic!("no answer");
    }

    /// Whether there was room.
    fn set(&mut self, node: u16, i: usize, round: usize) -> bool {
        match self.ask(node, set(&name(i), &value(i, round))) {
            Outcome::Stored(_) => {
                self.model.insert(name(i), value(i, round));
                true
            }
            Outcome::Failed(Failure::OutOfMemory) => false,
            other => panic!("set {i}: {other:?}"),
        }
    }

    fn delete(&mut self, node: u16, i: usize) {
        let expected = self.model.remove(&name(i)).is_some();
        let outcome = self.ask(node, delete(&name(i)));
        assert_eq!(outcome, if expected { Outcome::Deleted } else { Outcome::NotFound }, "delete {i}");
    }

    fn check(&mut self, node: u16, i: usize) {
        let value = match self.ask(node, get(&name(i))) {
            Outcome::Hit(view) => Some(view.value.to_vec()),
            Outcome::Miss => None,
            other => panic!("get {i}: {other:?}"),
        };
        assert!(value.as_ref() == self.model.get(&name(i)), "key-{i}");
        self.check_budgets();
    }

    fn check_budgets(&self) {
        for budget in &self.budgets {
            assert!(budget.total_used() <= LIMIT, "{} of {LIMIT} bytes", budget.total_used());
        }
    }

    fn rebuilding(&self) -> usize {
        self.stand_ins().len()
    }

    /// The nodes of stand-ins that lack pages, one for each.
    fn stand_ins(&self) -> Vec<u16> {
        let map = self.cluster.coordinator.map().unwrap();
        let roles = map.groups.iter().flat_map(|view| &view.data);
        let rebuilding = roles.filter(|role| matches!(role.status, RoleStatus::Rebuilding { .. }));
        rebuilding.filter_map(|role| Some(role.primary?.node.0)).collect()
    }

    /// Writes until the cluster has refused a few.
    fn fill(&mut self) -> usize {
        let (mut keys, mut refused) = (0, 0);
        while refused < 40 {
            refused += usize::from(!self.set((keys % 5) as u16, keys, 0));
            keys += 1;
        }
        keys
    }

    fn lose_two_nodes(&mut self) {
        self.cluster.kill(1);
        self.cluster.kill(3);
        self.cluster.advance(3500);
    }
}

#[test]
fn full_nodes_serve_every_key_of_those_that_died() {
    let mut story = full_cluster(Eviction::None);
    let keys = story.fill();
    story.lose_two_nodes();
    for i in 0..keys {
        story.check([0, 2, 4][i % 3], i * 7919 % keys);
    }
    assert_eq!(story.rebuilding(), 6, "there is no memory for all pages");
    // Many at once: each repair may take the place of another one's.
    let tokens: Vec<_> = (0..keys).map(|i| (i, story.cluster.begin(0, get(&name(i))))).collect();
    story.cluster.advance(4000);
    for (i, token) in tokens {
        let answer = story.cluster.answers.remove(&token);
        let value = story.model.get(&name(i));
        let right = match &answer {
            Some(Outcome::Hit(view)) => Some(&view.value[..]) == value.map(|value| &value[..]),
            Some(Outcome::Miss) => value.is_none(),
            _ => false,
        };
        assert!(right, "key-{i}");
    }
    story.check_budgets();
}

#[test]
fn full_nodes_take_writes_for_those_that_died() {
    let mut story = full_cluster(Eviction::None);
    let keys = story.fill();
    story.lose_two_nodes();
    let mut stored = 0;
    for i in 0..keys {
        let at = i * 7919 % keys;
        match i % 3 {
            0 => story.delete(2, at),
            1 => stored += usize::from(story.set(0, at, i)),
            _ => story.check(4, at),
        }
    }
    assert!(stored > keys / 6, "{stored} of {keys}");
    assert_eq!(story.rebuilding(), 6);
    (0..keys).for_each(|i| story.check(0, i));
    // Memory comes back: the sweep finishes what it had paused.
    for budget in &story.budgets {
        budget.release(Category::Buffers, 48 << 20);
    }
    story.cluster.advance(3000);
    assert_eq!(story.rebuilding(), 0);
    (0..keys).for_each(|i| story.check(2, i));
}

impl Story {
    /// Extents that members have, by node: data and parity.
    fn extents(&self) -> Vec<(u64, u64)> {
        let of = |budget: &Budget, category| budget.used(category) / EXTENT_BYTES as u64;
        self.budgets.iter().map(|b| (of(b, Category::Area), of(b, Category::Parity))).collect()
    }

    fn delete_all(&mut self, keys: usize) {
        (0..keys).for_each(|i| self.delete([0, 2, 4][i % 3], i));
    }
}

/// On a full node: what was deleted goes back, at the primaries and at the parities, and what comes then has room.
#[test]
fn extents_of_what_was_deleted_go_back_and_are_used_again() {
    let mut story = full_cluster(Eviction::None);
    let keys = story.fill();
    let full = story.extents();
    assert!(full.iter().all(|(area, parity)| area + parity >= EXTENTS - 4), "{full:?}");
    for _ in 0..2 {
        story.delete_all(keys);
        story.cluster.advance(2000);
        let left = story.extents();
        let fewer = |(left, full): (&(u64, u64), &(u64, u64))| left.0 + 2 < full.0 && left.1 + 2 < full.1;
        assert!(left.iter().zip(&full).all(fewer), "{left:?} of {full:?}");
        // Another size, so that other runs are written.
        let stored = (0..keys).filter(|i| story.set((i % 5) as u16, *i, 1)).count();
        assert!(stored * 10 > keys * 8, "{stored} of {keys}");
        (0..keys).for_each(|i| story.check(0, i));
    }
    // The parities are still the sums of what there is.
    story.lose_two_nodes();
    (0..keys).for_each(|i| story.check([0, 2, 4][i % 3], i));
}

/// A stand-in that found no memory for its pages gets it from its neighbours, once these do not need theirs.
#[test]
fn a_starved_stand_in_becomes_whole_once_others_have_vacant_extents() {
    let mut story = full_cluster(Eviction::None);
    let keys = story.fill();
    story.cluster.kill(1);
    story.cluster.advance(3500);
    assert!(story.rebuilding() > 0, "there is memory for all pages");
    // The dead node's parities may come back for a while, and nothing is given back until they cannot.
    story.delete_all(keys);
    story.cluster.advance(90_000);
    assert_eq!(story.rebuilding(), 0, "{:?}", story.extents());
    let stored = (0..keys).filter(|i| story.set(0, *i, 1)).count();
    assert!(stored * 10 > keys * 6, "{stored} of {keys}");
    (0..keys).for_each(|i| story.check(2, i));
}

/// A node dies of eight that are full; then those get memory that do not stand in for it. How many stand-ins lacked pages before that,
/// and how many do in the end.
fn stand_ins_beside_memory(rules: Rules) -> (usize, usize) {
    let mut story = full_nodes(8, &Setup { rules, ..Setup::default() }, Eviction::None);
    let keys = story.fill();
    story.cluster.kill(1);
    story.cluster.advance(6_000);
    let stand_ins = story.stand_ins();
    for (node, budget) in story.budgets.iter().enumerate() {
        if !stand_ins.contains(&(node as u16)) {
            budget.release(Category::Buffers, 64 << 20);
        }
    }
    story.cluster.advance(10_000);
    (0..keys).for_each(|i| story.check(0, i));
    (stand_ins.len(), story.rebuilding())
}

#[test]
fn starved_stand_ins_make_way_for_nodes_with_memory() {
    let (before, after) = stand_ins_beside_memory(Rules::all());
    assert!(before > 0, "there is memory for all pages");
    assert_eq!(after, 0);
}

#[test]
#[cfg(feature = "planted-bugs")]
fn stand_ins_that_stay_without_memory_are_seen() {
    let (before, after) = stand_ins_beside_memory(Rules::without(proto::Bug::StarvedStandInStays));
    assert!(before > 0 && after > 0, "{after} of {before}");
}

/// Of six nodes that are full one dies: what it had finds no room, until three of four items go, here and there.
#[test]
fn roles_that_are_missing_find_room_when_three_of_four_items_go() {
    let mut story = full_nodes(6, &Setup::default(), Eviction::None);
    let keys = story.fill();
    story.cluster.kill(1);
    story.cluster.advance(20_000);
    let missing = |story: &Story| {
        let map = story.cluster.coordinator.map().unwrap();
        let absent = map.groups.iter().flat_map(|view| &view.parity).filter(|host| host.is_none()).count();
        absent + story.rebuilding()
    };
    assert!(missing(&story) > 0, "there is memory for all");
    for i in (0..keys).filter(|i| i % 4 != 0) {
        story.delete([0, 2, 4][i % 3], i);
    }
    story.cluster.advance(60_000);
    assert_eq!(missing(&story), 0, "{:?}", story.extents());
    (0..keys).for_each(|i| story.check(2, i));
}
