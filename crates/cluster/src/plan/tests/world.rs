//! A map and its nodes, and what it takes to move roles about in them.

use crate::place;
use crate::plan::*;
use types::{
    ClusterId, Exchange, GroupId, GroupView, Incarnation, Learner, NodeId, Profile, RoleIndex, RoleStatus,
    Term,
};

pub fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

pub fn node(id: u16, zone: &str) -> PlanNode {
    PlanNode {
        host: host(id),
        zone: zone.into(),
        draining: false,
        can_host: true,
        bytes: 0,
        room: u64::MAX,
        former: vec![],
    }
}

#[derive(Clone, Debug)]
pub struct World {
    pub map: ClusterMap,
    pub nodes: Vec<PlanNode>,
}

impl World {
    /// Groups over the first `placed` of the nodes; node `i` is in zone `zones[i]`.
    pub fn new(profile: &str, zones: &[&str], placed: u16, groups: u32) -> Self {
        let profile: Profile = profile.parse().unwrap();
        let hosts: Vec<HostId> = (0..placed).map(host).collect();
        let map = ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, groups),
            shards: 1,
            layout: types::Layout::default(),
            nodes: vec![],
            groups: place(profile, &hosts, groups).unwrap(),
        };
        let nodes = zones.iter().enumerate().map(|(id, zone)| node(id as u16, zone)).collect();
        Self { map, nodes }
    }

    pub fn without_zones(profile: &str, nodes: usize, placed: u16, groups: u32) -> Self {
        Self::new(profile, &vec![""; nodes], placed, groups)
    }

    pub fn next(&self, under_way: &[Move]) -> Vec<Move> {
        next_moves(&self.map, &self.nodes, under_way, &PlanLimits::default())
    }

    /// Everything that the planner wants is done, one batch after the other; how many moves it took.
    pub fn settle(&mut self, limits: &PlanLimits) -> usize {
        let mut done = 0;
        loop {
            let moves = next_moves(&self.map, &self.nodes, &[], limits);
            if moves.is_empty() {
                return done;
            }
            for step in &moves {
                self.finish(step);
            }
            done += moves.len();
            assert!(done < 20_000, "the plan does not end");
        }
    }

    /// A move is done; the bytes of the role, as the planner takes them, go with it. A mirror beside a parity waits until that
    /// has moved.
    pub fn finish(&mut self, step: &Move) {
        let view = &mut self.map.groups[step.group.0 as usize];
        let is_data = usize::from(step.role.0) < view.k();
        if is_data && view.in_sync().any(|(_, host)| host == step.to) {
            learn(view, step.role, step.to);
            view.learners[0].whole = true;
            return;
        }
        let exchange = view.exchanges().find(|known| (known.parity, known.from) == (step.role, step.to));
        match exchange {
            Some(exchange) => self.complete(step.group, &exchange),
            None => self.carry(step),
        }
    }

    /// The data role and the parity have changed places.
    fn complete(&mut self, group: GroupId, exchange: &Exchange) {
        let Exchange { data, from, parity, to, .. } = *exchange;
        self.map.groups[group.0 as usize].learners.clear();
        let reason = Reason::Balance;
        self.carry(&Move { group, role: data, from: Some(from), to, reason });
        self.carry(&Move { group, role: parity, from: Some(to), to: from, reason });
    }

    /// As it is when the exchanges under way are done, and how many those are.
    pub fn with_exchanges_done(&self) -> (Self, u64) {
        let mut done = self.clone();
        let groups = self.map.groups.iter();
        let exchanges: Vec<(GroupId, Exchange)> =
            groups.flat_map(|view| view.exchanges().map(|known| (view.group, known))).collect();
        exchanges.iter().for_each(|(group, exchange)| done.complete(*group, exchange));
        (done, exchanges.len() as u64)
    }

    fn carry(&mut self, step: &Move) {
        let counts = self.counts();
        let bytes = match step.from {
            Some(from) => {
                let from = self.place_of(from);
                let bytes = self.nodes[from].bytes / counts[from].total() as u64;
                self.nodes[from].bytes -= bytes;
                bytes
            }
            None => {
                let roles: usize = counts.iter().map(|counts| counts.total()).sum();
                self.nodes.iter().map(|node| node.bytes).sum::<u64>() / roles as u64
            }
        };
        let to = self.place_of(step.to);
        self.nodes[to].bytes += bytes;
        let view = &mut self.map.groups[step.group.0 as usize];
        seat(view, step.role, Some(step.to));
    }

    fn place_of(&self, host: HostId) -> usize {
        self.nodes.iter().position(|node| node.host == host).unwrap()
    }

    pub fn seat(&mut self, group: usize, role: u8, host: Option<HostId>) {
        seat(&mut self.map.groups[group], RoleIndex(role), host);
    }

    /// The primary of a data role is lost.
    pub fn fence(&mut self, group: usize, role: usize) {
        let role = &mut self.map.groups[group].data[role];
        (role.primary, role.term, role.status) = (None, Term(2), RoleStatus::Fenced);
    }

    /// The process of a node ends: its data roles go to stand-ins, which are taken to be full at once, its parities are missing.
    pub fn lose(&mut self, node: u16) {
        self.nodes[usize::from(node)].can_host = false;
        let lost = host(node);
        for group in 0..self.map.groups.len() {
            for (role, _) in Self::seats(&self.map.groups[group]).iter().filter(|(_, at)| *at == lost) {
                seat(&mut self.map.groups[group], *role, None);
            }
        }
        let living: Vec<PlanNode> = self.targets().cloned().collect();
        for group in 0..self.map.groups.len() {
            for role in 0..self.map.default_pool().profile.k() {
                let view = &self.map.groups[group];
                if view.data[role].primary.is_none() {
                    let stand_in = choose_stand_in(view, &living, &RoleTally::of(&self.map.groups));
                    seat(&mut self.map.groups[group], RoleIndex(role as u8), stand_in);
                }
            }
        }
    }

    /// A process of the node comes back, empty.
    pub fn bring_back(&mut self, node: u16) {
        self.nodes[usize::from(node)].can_host = true;
    }

    /// Roles of both kinds on each node.
    pub fn counts(&self) -> Vec<RoleCounts> {
        let counts = RoleTally::of(&self.map.groups);
        self.nodes.iter().map(|node| counts.get(node.host.node)).collect()
    }

    /// Where each role of a group is.
    pub fn seats(view: &GroupView) -> Vec<(RoleIndex, HostId)> {
        let primaries = view.data_roles().filter_map(|(role, data)| Some((role, data.primary?)));
        primaries.chain(view.in_sync()).collect()
    }

    pub fn zone_of(&self, host: HostId) -> String {
        let known = self.nodes.iter().find(|node| node.host == host);
        match known {
            Some(node) if !node.zone.is_empty() => node.zone.clone(),
            _ => format!("only {host}"),
        }
    }

    pub fn targets(&self) -> impl Iterator<Item = &PlanNode> {
        self.nodes.iter().filter(|node| node.can_host && !node.draining)
    }

    /// Pairs of roles of the group that have the same `place`.
    pub fn pairs<T: Ord>(&self, view: &GroupView, place: impl Fn(HostId) -> T) -> usize {
        let places: Vec<T> = Self::seats(view).into_iter().map(|(_, host)| place(host)).collect();
        let pairs = (0..places.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.filter(|&(a, b)| places[a] == places[b]).count()
    }
}

/// Has `role` served by `host`, or a parity by nobody.
pub fn seat(view: &mut GroupView, role: RoleIndex, host: Option<HostId>) {
    let (role, k) = (usize::from(role.0), view.k());
    if role < k {
        view.data[role].primary = host;
    } else {
        view.parity[role - k] = host;
    }
}

/// `role` is being built on `host`.
pub fn learn(view: &mut GroupView, role: RoleIndex, host: HostId) {
    view.learners.push(Learner { role, host, since: view.version, whole: false });
}
