//! Who has what, as the planner sees it: as if all moves under way were done.

use std::collections::{BTreeMap, BTreeSet};

use super::question::{Move, PlanNode, Reason};
use crate::{Codes, Protection};
use types::{GroupId, GroupView, HostId, NodeId, RoleIndex, RoleStatus};

/// How many roles of each kind a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleCounts {
    /// Data roles.
    pub data: usize,
    /// Parities.
    pub parity: usize,
}

/// A role that is to move, in the numbers of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub group: usize,
    pub role: usize,
    pub to: usize,
    pub reason: Reason,
}

/// All nodes and groups.
pub(super) struct Layout {
    pub nodes: Vec<Node>,
    pub groups: Vec<Group>,
    index: BTreeMap<NodeId, usize>,
}

/// A node with its roles.
pub(super) struct Node {
    pub host: HostId,
    /// Equal for the nodes of one zone.
    pub zone: usize,
    pub is_draining: bool,
    /// Whether it may get roles.
    pub is_target: bool,
    /// Whether anything but its name is known.
    pub is_known: bool,
    pub bytes: u64,
    /// Memory that is free.
    pub room: u64,
    pub counts: RoleCounts,
    /// Its roles: group and role.
    pub roles: BTreeSet<(usize, usize)>,
    /// Whether it takes part in an exchange.
    pub is_exchanging: bool,
}

/// A group with its roles.
pub(super) struct Group {
    pub id: GroupId,
    pub k: usize,
    /// Who has each role; none while nobody has.
    pub seats: Vec<Option<Seat>>,
    /// Parities that nobody could teach anything.
    pub untaught: BTreeSet<usize>,
    /// Former hosts of parities, by role and node.
    pub former: BTreeSet<(usize, usize)>,
    /// Further member losses that it can bear.
    pub margin: usize,
    /// Whether a data role is on its way, or none is full, so that nothing can move.
    pub is_in_play: bool,
    /// Whether a data role is on its way back.
    pub is_recovering: bool,
    /// Parities being rebuilt.
    pub rebuilds: usize,
    /// Whether a role that somebody serves is moving.
    pub is_moving: bool,
    /// A data role and a parity that change places.
    pub exchange: Option<Exchange>,
}

/// A data role and a parity that change places; the seats are as if they had.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    pub data: usize,
    pub parity: usize,
    /// Where the data role was.
    pub from: Seat,
    /// Where the parity was.
    pub to: Seat,
    pub stage: Stage,
}

/// How far an exchange is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The mirror is being built.
    Mirror,
    /// The mirror is whole: the parity can be built.
    Due,
    /// The parity is being built.
    Parity,
}

/// Where a role is.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub node: usize,
    pub host: HostId,
}

impl RoleCounts {
    /// Roles of both kinds.
    #[must_use]
    pub fn total(self) -> usize {
        self.data + self.parity
    }

    pub(super) fn of(self, is_data: IsData) -> usize {
        if is_data.0 { self.data } else { self.parity }
    }

    pub(super) fn of_mut(&mut self, is_data: IsData) -> &mut usize {
        if is_data.0 { &mut self.data } else { &mut self.parity }
    }
}

/// The kind of a role.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct IsData(pub bool);

impl Layout {
    pub fn read(groups: &[GroupView], codes: &Codes, nodes: &[PlanNode]) -> Self {
        let mut layout = Self { nodes: Vec::new(), groups: Vec::new(), index: BTreeMap::new() };
        let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
        for node in nodes {
            if layout.index.contains_key(&node.host.node) {
                continue;
            }
            // As many numbers as nodes are enough for all zones.
            let own = layout.nodes.len();
            let zone = if node.zone.is_empty() { own } else { *zones.entry(&node.zone).or_insert(own) };
            layout.add_node(node, zone);
        }
        for view in groups {
            layout.add_group(view, codes.of_group(view.group).map(|protection| &**protection));
        }
        for node in nodes {
            layout.add_former(node);
        }
        layout
    }

    fn add_node(&mut self, node: &PlanNode, zone: usize) {
        self.index.insert(node.host.node, self.nodes.len());
        self.nodes.push(Node {
            host: node.host,
            zone,
            is_draining: node.draining,
            is_target: node.can_host && !node.draining,
            is_known: true,
            bytes: node.bytes,
            room: node.room,
            counts: RoleCounts::default(),
            roles: BTreeSet::new(),
            is_exchanging: false,
        });
    }

    fn add_group(&mut self, view: &GroupView, protection: Option<&Protection>) {
        let group = self.groups.len();
        let mut seats: Vec<Option<Seat>> = vec![None; view.k() + view.m()];
        let primaries = view.data_roles().filter_map(|(role, data)| Some((role, data.primary?)));
        for (role, host) in primaries.chain(view.in_sync()) {
            let node = self.node_of(host);
            seats[usize::from(role.0)] = Some(Seat { node, host });
        }
        let parities = view.k()..view.k() + view.m();
        let is_taught =
            |role: &usize| protection.is_some_and(|code| code.has_teachers(view, RoleIndex(*role as u8)));
        let untaught = parities.filter(|role| !is_taught(role));
        let recovering = |status: RoleStatus| status != RoleStatus::Full && !status.is_lost();
        self.groups.push(Group {
            id: view.group,
            k: view.k(),
            seats: seats.clone(),
            untaught: untaught.collect(),
            former: BTreeSet::new(),
            margin: view.spare_parities(),
            is_in_play: !view.is_steady(),
            is_recovering: view.data_roles().any(|(_, role)| recovering(role.status)),
            rebuilds: 0,
            is_moving: false,
            exchange: None,
        });
        for (role, seat) in seats.iter().enumerate() {
            if let Some(seat) = seat {
                self.count_in(group, role, seat.node);
            }
        }
    }

    fn add_former(&mut self, node: &PlanNode) {
        let Some(&at) = self.index.get(&node.host.node) else { return };
        for (group, role) in &node.former {
            if let Some(group) = self.group_at(*group) {
                self.groups[group].former.insert((usize::from(role.0), at));
            }
        }
    }

    /// The number of a node; of one that the caller did not list there is a number, and nothing else.
    fn node_of(&mut self, host: HostId) -> usize {
        if let Some(&at) = self.index.get(&host.node) {
            return at;
        }
        let at = self.nodes.len();
        self.index.insert(host.node, at);
        self.nodes.push(Node {
            host,
            zone: at,
            is_draining: false,
            is_target: false,
            is_known: false,
            bytes: 0,
            room: 0,
            counts: RoleCounts::default(),
            roles: BTreeSet::new(),
            is_exchanging: false,
        });
        at
    }

    fn group_at(&self, group: GroupId) -> Option<usize> {
        // A map has its groups in ascending order.
        self.groups.binary_search_by_key(&group, |known| known.id).ok()
    }

    /// A learner of the map as a move; why it was begun is guessed from what it is good for.
    pub fn learner_move(&self, group: GroupId, role: RoleIndex, to: HostId) -> Move {
        let seat = self.group_at(group).and_then(|at| Some((at, self.seat(at, usize::from(role.0))?)));
        let reason = match seat {
            None => Reason::Rebuild,
            Some((at, seat)) if self.groups[at].roles_on(seat.node) > 1 => Reason::Crowded,
            Some((_, seat)) if self.nodes[seat.node].is_draining => Reason::Drain,
            Some(_) => Reason::Balance,
        };
        Move { group, role, from: seat.map(|(_, seat)| seat.host), to, reason }
    }

    /// A move in numbers; none if it names what there is not, or has been done.
    pub fn step(&mut self, known: &Move) -> Option<Step> {
        let group = self.group_at(known.group)?;
        let role = usize::from(known.role.0);
        let seat = *self.groups[group].seats.get(role)?;
        let to = self.node_of(known.to);
        let step = Step { group, role, to, reason: known.reason };
        // In an exchange the seats are as after both moves, so the parity seems to be
        // where it has still to be built.
        let is_done = seat.is_some_and(|seat| seat.node == to) && !self.completes_exchange(&step);
        (!is_done).then_some(step)
    }

    /// The second step of the exchange in `group`, where it can begin now.
    pub fn due(&self, group: usize) -> Option<Step> {
        let exchange = self.groups[group].exchange.filter(|known| known.stage == Stage::Due)?;
        Some(Step { group, role: exchange.parity, to: exchange.from.node, reason: Reason::Balance })
    }

    fn completes_exchange(&self, step: &Step) -> bool {
        self.due(step.group).is_some_and(|due| (due.role, due.to) == (step.role, step.to))
    }

    /// The exchange that `step` would begin: it takes a data role to the node of a parity.
    fn exchange_begun_by(&self, step: &Step) -> Option<Exchange> {
        let group = &self.groups[step.group];
        let from = self.seat(step.group, step.role).filter(|_| group.kind(step.role).0)?;
        let is_there = |seat: &Option<Seat>| seat.is_some_and(|seat| seat.node == step.to);
        let parity = (group.k..group.seats.len()).find(|&role| is_there(&group.seats[role]))?;
        let to = group.seats[parity]?;
        Some(Exchange { data: step.role, parity, from, to, stage: Stage::Mirror })
    }

    pub fn describe(&self, step: &Step) -> Move {
        let group = &self.groups[step.group];
        let seat = match group.exchange {
            Some(exchange) if exchange.parity == step.role => Some(exchange.to),
            _ => group.seats[step.role],
        };
        Move {
            group: group.id,
            role: RoleIndex(step.role as u8),
            from: seat.map(|seat| seat.host),
            to: self.nodes[step.to].host,
            reason: step.reason,
        }
    }

    pub fn seat(&self, group: usize, role: usize) -> Option<Seat> {
        *self.groups[group].seats.get(role)?
    }

    /// A move has begun: from now on it is looked at as if it were done. With the first step of an exchange all of it has.
    pub fn begin(&mut self, step: &Step) {
        if self.completes_exchange(step) {
            self.reach(step.group, Stage::Parity);
            return;
        }
        let exchange = self.exchange_begun_by(step);
        self.take(step.group, step.role, step.to);
        if let Some(exchange) = exchange {
            self.take(step.group, exchange.parity, exchange.from.node);
            self.groups[step.group].exchange = Some(exchange);
            self.note_exchange(&exchange, true);
        }
    }

    /// The exchange of the group has come so far.
    pub fn reach(&mut self, group: usize, stage: Stage) {
        if let Some(exchange) = &mut self.groups[group].exchange {
            exchange.stage = stage;
        }
    }

    fn note_exchange(&mut self, exchange: &Exchange, is_exchanging: bool) {
        for node in [exchange.from.node, exchange.to.node] {
            self.nodes[node].is_exchanging = is_exchanging;
        }
    }

    /// A role goes to a node, with what it is taken to weigh.
    fn take(&mut self, group: usize, role: usize, to: usize) {
        let bytes = match self.seat(group, role) {
            Some(seat) => {
                self.groups[group].is_moving = true;
                // Before the role is counted out: its weight is a share of what the node has with it.
                let bytes = self.bytes_per_role(seat.node);
                self.count_out(group, role, seat.node);
                let from = &mut self.nodes[seat.node];
                (from.bytes, from.room) = (from.bytes - bytes, from.room.saturating_add(bytes));
                bytes
            }
            None => {
                self.groups[group].rebuilds += 1;
                self.mean_role_bytes()
            }
        };
        let host = self.nodes[to].host;
        self.groups[group].seats[role] = Some(Seat { node: to, host });
        self.count_in(group, role, to);
        let to = &mut self.nodes[to];
        (to.bytes, to.room) = (to.bytes.saturating_add(bytes), to.room.saturating_sub(bytes));
    }

    /// Everything under way has been done.
    pub fn finish_all(&mut self) {
        for group in 0..self.groups.len() {
            let this = &mut self.groups[group];
            this.margin += std::mem::take(&mut this.rebuilds);
            // Of an exchange the half that is under way is done: after the parity nothing is left, after the mirror
            // the parity is due.
            if let Some(exchange) = this.exchange.take_if(|known| known.stage == Stage::Parity) {
                self.note_exchange(&exchange, false);
            }
            self.reach(group, Stage::Due);
            self.groups[group].is_moving = self.groups[group].exchange.is_some();
        }
    }

    /// What a role on `node` is taken to weigh: nothing is known of the single role.
    pub fn bytes_per_role(&self, node: usize) -> u64 {
        self.nodes[node].bytes.checked_div(self.nodes[node].counts.total() as u64).unwrap_or(0)
    }

    fn mean_role_bytes(&self) -> u64 {
        let bytes: u128 = self.nodes.iter().map(|node| u128::from(node.bytes)).sum();
        let roles: usize = self.nodes.iter().map(|node| node.counts.total()).sum();
        bytes.checked_div(roles as u128).map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX))
    }

    fn count_in(&mut self, group: usize, role: usize, node: usize) {
        let is_data = self.groups[group].kind(role);
        self.nodes[node].roles.insert((group, role));
        *self.nodes[node].counts.of_mut(is_data) += 1;
    }

    fn count_out(&mut self, group: usize, role: usize, node: usize) {
        let is_data = self.groups[group].kind(role);
        self.nodes[node].roles.remove(&(group, role));
        *self.nodes[node].counts.of_mut(is_data) -= 1;
    }

    /// Nodes that may get a role of `group`.
    pub fn targets(&self, group: usize) -> impl Iterator<Item = usize> + '_ {
        let group = &self.groups[group];
        (0..self.nodes.len()).filter(|&node| self.nodes[node].is_target && group.roles_on(node) == 0)
    }

    /// By how many roles of the group the zone of `to` exceeds the one where the role is, the role itself not counted. A
    /// move makes the zones of the group more even if this is negative, less even if it is positive. For a missing
    /// role: the roles in the zone of `to`.
    pub fn zone_change(&self, group: usize, role: usize, to: usize) -> isize {
        let there = self.roles_in_zone(group, self.nodes[to].zone);
        let Some(seat) = self.seat(group, role) else { return there as isize };
        let is_same = self.nodes[seat.node].zone == self.nodes[to].zone;
        let here = self.roles_in_zone(group, self.nodes[seat.node].zone);
        if is_same { 0 } else { there as isize - (here as isize - 1) }
    }

    /// Whether a role would make the zones of the group more even by moving.
    pub fn has_better_zone(&self, group: usize) -> bool {
        let worst = self.worst_zone(group);
        let has_room = |to: usize| self.roles_in_zone(group, self.nodes[to].zone) + 1 < worst;
        worst > 1 && self.targets(group).any(has_room)
    }

    /// Most roles of the group in one zone.
    pub fn worst_zone(&self, group: usize) -> usize {
        let seats = self.groups[group].seats.iter().flatten();
        seats.map(|seat| self.roles_in_zone(group, self.nodes[seat.node].zone)).max().unwrap_or(0)
    }

    fn roles_in_zone(&self, group: usize, zone: usize) -> usize {
        let seats = self.groups[group].seats.iter().flatten();
        seats.filter(|seat| self.nodes[seat.node].zone == zone).count()
    }
}

impl Group {
    pub fn kind(&self, role: usize) -> IsData {
        IsData(role < self.k)
    }

    pub fn roles_on(&self, node: usize) -> usize {
        self.seats.iter().flatten().filter(|seat| seat.node == node).count()
    }

    /// Most roles on one node.
    pub fn worst_node(&self) -> usize {
        self.seats.iter().flatten().map(|seat| self.roles_on(seat.node)).max().unwrap_or(0)
    }

    /// Whether no parity is missing that could be built. A data role that nobody serves is nothing to be built.
    pub fn is_complete(&self) -> bool {
        (self.k..self.seats.len()).all(|role| self.seats[role].is_some() || self.untaught.contains(&role))
    }

    /// Member losses that it could still bear after the worst loss of a node; negative if that would lose data.
    pub fn spare(&self) -> isize {
        self.margin as isize - self.worst_node() as isize
    }
}
