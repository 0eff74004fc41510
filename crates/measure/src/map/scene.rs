//! A coordinator and its nodes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::{Coordinator, CoordinatorAction, CoordinatorConfig, Now, RecordKeeping, Rules, Timing};
use types::{
    AdminCommand, AdminRequest, CatalogChange, ClusterId, ClusterMap, Entry, Expectations, HostId,
    Incarnation, LossPolicy, MapChanges, Name, NodeId, NodeInfo, Policy, Profile, RoleIndex, RoleStatus, Seq,
    Time, UnixSeconds,
};
use wire::frame::Encoder;
use wire::message::{FromCoordinator, Registration, ToCoordinator};
use wire::record::Record;

use super::document::{Change, Measured};

/// Bits a second of the coordinator's line.
const LINE_BITS: f64 = 10e9;
/// One way between two machines, in microseconds.
const LATENCY_US: f64 = 50.0;
const CLUSTER: ClusterId = ClusterId(1);
const LEASE_US: u64 = 3_000_000;

/// See the module.
pub(super) struct Scene {
    coordinator: Coordinator,
    nodes: Vec<Stub>,
    groups: u32,
    records: BTreeMap<String, Record>,
    encoder: Encoder,
    /// Answers that are on their way to the coordinator.
    answers: VecDeque<(HostId, ToCoordinator)>,
    cost: Cost,
}

/// A node: what it knows of the map.
struct Stub {
    host: HostId,
    version: u64,
    /// The map itself, at a few of them.
    map: Option<Box<ClusterMap>>,
    is_watched: bool,
}

/// What has been spent.
#[derive(Default)]
struct Cost {
    cpu: Duration,
    sent_bytes: u64,
    recorded_bytes: u64,
    /// How often what was sent waited for answers to come back.
    round_trips: u32,
    applying: Vec<Duration>,
}

impl Scene {
    /// A cluster that has formed.
    pub(super) fn form(nodes: u16, groups: u32) -> Result<Self, String> {
        let profile = Profile::rs(3, 2).map_err(|error| error.to_string())?;
        let coordinator = Coordinator::new(CoordinatorConfig {
            cluster: CLUSTER,
            profile,
            nodes,
            shards: 1,
            groups,
            timing: Timing::from_lease(LEASE_US),
            rules: Rules::all(),
            records: RecordKeeping::Stored,
            on_loss: LossPolicy::Error,
        });
        let is_watched = |node: u16| [0, nodes / 2, nodes - 1].contains(&node);
        let stub = |node| Stub { host: host(node), version: 0, map: None, is_watched: is_watched(node) };
        let mut scene = Self {
            coordinator,
            nodes: (0..nodes).map(stub).collect(),
            groups,
            records: BTreeMap::new(),
            encoder: Encoder::new(CLUSTER, host(u16::MAX)),
            answers: VecDeque::new(),
            cost: Cost::default(),
        };
        for node in 0..nodes {
            scene.coordinator.handle(NOW, host(node), register(node, 0, Entry::Founder));
        }
        scene.come_to_rest(Wire::Ignored)?;
        scene.look_at_timers();
        scene.come_to_rest(Wire::Ignored)?;
        match scene.coordinator.map() {
            Some(_) => Ok(scene),
            None => Err(format!("{nodes} nodes do not form a cluster of {groups} groups")),
        }
    }

    /// One change after the other.
    pub(super) fn measure(mut self) -> Result<Measured, String> {
        let map = self.coordinator.map().cloned().map(Arc::new).ok_or("no map")?;
        let map_bytes = self.encoded(&FromCoordinator::Map(map))?.len() as u64;
        let (nodes, groups) = (self.nodes.len() as u16, self.groups);
        let namespace = self.change("a namespace is made", |scene| {
            let name: Name = "one-more".parse().map_err(|_| "a name")?;
            let (pool, policy) = (Name::default_name(), Policy::default());
            let command = AdminCommand::Catalog(CatalogChange::CreateNamespace { name, pool, policy });
            let request = AdminRequest { expect: None, command };
            scene.coordinator.administer(NOW, &request).map(drop).map_err(|error| error.to_string())
        })?;
        let mut changes = self.measure_death()?;
        let join = self.change("a node joins", |scene| {
            scene.nodes.push(Stub { host: host(nodes), version: 0, map: None, is_watched: true });
            scene.coordinator.handle(NOW, host(nodes), register(nodes, 0, Entry::Joiner));
            Ok(())
        })?;
        let plan = self.change("the planner looks", |scene| {
            scene.coordinator.tick(Now { time: NOW.time + LEASE_US / 4, ..NOW });
            Ok(())
        })?;
        let succession = self.change("another coordinator", Self::succeed)?;
        self.check()?;
        changes.extend([namespace, join, plan, succession]);
        Ok(Measured { nodes, groups, map_bytes, changes })
    }

    /// One view, and all those of a node that dies.
    fn measure_death(&mut self) -> Result<Vec<Change>, String> {
        let death = self.change("a node dies", |scene| {
            scene.coordinator.exited(NOW, NodeId(1));
            Ok(())
        })?;
        let stand_in = self.a_stand_in().ok_or("nobody is rebuilt")?;
        let view = self.change("a stand-in is whole", |scene| {
            let (host, message) = stand_in;
            scene.coordinator.handle(NOW, host, message);
            Ok(())
        })?;
        Ok(vec![view, death])
    }

    /// What `event` and all that follows from it cost.
    fn change(
        &mut self,
        what: &str,
        event: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<Change, String> {
        self.cost = Cost::default();
        let version = |scene: &Self| scene.coordinator.map().map_or(0, |map| map.version);
        let before = version(self);
        let began = Instant::now();
        event(self)?;
        self.look_at_timers();
        self.cost.cpu += began.elapsed();
        self.come_to_rest(Wire::Reckoned)?;
        let cost = &self.cost;
        let cpu_us = cost.cpu.as_secs_f64() * 1e6;
        let applying = cost.applying.iter().sum::<Duration>().as_secs_f64() * 1e6;
        let ways = f64::from(1 + 2 * cost.round_trips);
        Ok(Change {
            what: what.to_owned(),
            versions: version(self) - before,
            cpu_us,
            sent_bytes: cost.sent_bytes,
            recorded_bytes: cost.recorded_bytes,
            last_us: cpu_us + cost.sent_bytes as f64 * 8e6 / LINE_BITS + ways * LATENCY_US,
            node_us: applying / self.nodes.iter().filter(|node| node.is_watched).count() as f64,
        })
    }

    /// Does all that the coordinator wants, with the answers that come of it, until there is nothing more.
    fn come_to_rest(&mut self, wire: Wire) -> Result<(), String> {
        loop {
            self.carry_out(wire)?;
            if self.answers.is_empty() {
                return Ok(());
            }
            self.cost.round_trips += 1;
            for (from, answer) in std::mem::take(&mut self.answers) {
                let began = Instant::now();
                self.coordinator.handle(NOW, from, answer);
                self.look_at_timers();
                self.cost.cpu += began.elapsed();
            }
        }
    }

    /// As whoever runs a coordinator does after each event.
    fn look_at_timers(&mut self) {
        if self.coordinator.next_deadline() <= NOW.time {
            self.coordinator.tick(NOW);
        }
    }

    fn carry_out(&mut self, wire: Wire) -> Result<(), String> {
        loop {
            let began = Instant::now();
            let Some(action) = self.coordinator.poll_action() else { return Ok(()) };
            match action {
                CoordinatorAction::Send { to, message } => {
                    if wire == Wire::Reckoned {
                        self.cost.sent_bytes += self.encoded(&message)?.len() as u64;
                    }
                    self.cost.cpu += began.elapsed();
                    self.deliver(to, message)?;
                }
                CoordinatorAction::Record(record) => {
                    let bytes = record.encode().map_err(|error| error.to_string())?;
                    self.cost.recorded_bytes += bytes.len() as u64;
                    self.cost.cpu += began.elapsed();
                    self.records.insert(record.key(), record);
                }
                CoordinatorAction::Close { peer, why } => return Err(format!("{peer} is closed: {why}")),
                CoordinatorAction::Resign => return Err("it resigns".to_owned()),
            }
        }
    }

    fn encoded(&mut self, message: &FromCoordinator) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        self.encoder.encode_long(message, &mut out).map_err(|error| error.to_string())?;
        Ok(out)
    }

    fn deliver(&mut self, to: HostId, message: FromCoordinator) -> Result<(), String> {
        // Whoever is dead hears nothing.
        let Some(node) = self.nodes.get_mut(usize::from(to.node.0)).filter(|node| node.host == to) else {
            return Ok(());
        };
        match message {
            FromCoordinator::Map(map) => {
                node.version = map.version;
                node.map = node.is_watched.then(|| Box::new((*map).clone()));
            }
            FromCoordinator::Changes(changes) => self.cost.applying.extend(node.apply(&changes)?),
            FromCoordinator::Fence { group, role, term, parity, epoch } => {
                let (received, applied, quiet_us) = (Seq(0), Seq(0), LEASE_US);
                let answer =
                    ToCoordinator::Fenced { group, role, term, parity, received, applied, quiet_us, epoch };
                self.answers.push_back((to, answer));
            }
            FromCoordinator::Settle { group, role, term, parity, epoch, .. } => {
                let answer = ToCoordinator::Settled { group, role, term, parity, epoch };
                self.answers.push_back((to, answer));
            }
            FromCoordinator::Confirm { group, view, epoch } => {
                self.answers.push_back((to, ToCoordinator::Confirmed { group, view, epoch }));
            }
            FromCoordinator::Refused(refused) => return Err(refused.reason),
            _ => {}
        }
        Ok(())
    }

    /// A role that is being rebuilt, and what its host says when it has been.
    fn a_stand_in(&self) -> Option<(HostId, ToCoordinator)> {
        let views = self.coordinator.map()?.groups.iter();
        let mut roles =
            views.flat_map(|view| (0u8..).zip(&view.data).map(|(role, data)| (view.group, role, data)));
        let (group, role, data) =
            roles.find(|(_, _, data)| matches!(data.status, RoleStatus::Rebuilding { .. }))?;
        Some((data.primary?, ToCoordinator::Repaired { group, role: RoleIndex(role), term: data.term }))
    }

    /// Another coordinator goes on from the records, and all nodes register with it.
    fn succeed(&mut self) -> Result<(), String> {
        let config = CoordinatorConfig {
            cluster: CLUSTER,
            profile: Profile::rs(3, 2).map_err(|error| error.to_string())?,
            nodes: 1,
            shards: 1,
            groups: self.groups,
            timing: Timing::from_lease(LEASE_US),
            rules: Rules::all(),
            records: RecordKeeping::Stored,
            on_loss: LossPolicy::Error,
        };
        let records: Vec<Record> = self.records.values().cloned().collect();
        self.coordinator = Coordinator::resume(config, records, NOW).map_err(|error| error.to_string())?;
        for node in self.nodes.iter().filter(|node| node.host.node != NodeId(1)) {
            let registration = register(node.host.node.0, node.version, Entry::Joiner);
            self.coordinator.handle(NOW, node.host, registration);
        }
        Ok(())
    }

    /// Everybody has the map, and who has all of it has the coordinator's.
    fn check(&self) -> Result<(), String> {
        let map = self.coordinator.map().ok_or("no map")?;
        for node in self.nodes.iter().filter(|node| node.host.node != NodeId(1)) {
            let is_same = node.map.as_ref().is_none_or(|known| **known == *map);
            if node.version != map.version || !is_same {
                return Err(format!("{} does not have the map, but version {}", node.host, node.version));
            }
        }
        Ok(())
    }
}

/// Whether what is sent is encoded and counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Reckoned,
    Ignored,
}

impl Stub {
    /// How long that took, where the map itself is here.
    fn apply(&mut self, changes: &MapChanges) -> Result<Option<Duration>, String> {
        if changes.since > self.version {
            return Err(format!("{} lacks what was before {}", self.host, changes.since));
        }
        self.version = changes.version;
        let Some(map) = &mut self.map else { return Ok(None) };
        let began = Instant::now();
        map.apply(changes).map_err(|error| error.to_string())?;
        Ok(Some(began.elapsed()))
    }
}

const NOW: Now = Now { time: Time(1_000_000_000), unix: UnixSeconds(1) };

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn register(node: u16, map: u64, entry: Entry) -> ToCoordinator {
    let [high, low] = node.to_be_bytes();
    let address = |port| ([10, 0, high, low], port).into();
    let info = NodeInfo {
        host: host(node),
        peer: address(7001),
        memcached: address(11211),
        http: address(9181),
        native: None,
        zone: String::new(),
        alive: true,
    };
    let expect = Expectations { entry, ..Expectations::default() };
    ToCoordinator::Register(Registration { expect, map, ..Registration::from(info) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_costs_what_it_changes_whatever_the_map() {
        let costs =
            [20, 80].map(|nodes| Scene::form(nodes, 8 * u32::from(nodes)).unwrap().measure().unwrap());
        for measured in &costs {
            let per_node = |at: usize| measured.changes[at].sent_bytes / u64::from(measured.nodes);
            assert!(per_node(0) < 500, "a view: {measured:?}");
            assert!(per_node(2) < 500, "a namespace: {measured:?}");
            assert!(measured.changes[0].recorded_bytes < 500, "{measured:?}");
            assert!(
                measured.changes[3].sent_bytes < 2 * measured.map_bytes + 500 * u64::from(measured.nodes)
            );
        }
    }
}
