//! What each node of a cluster has in memory with so many items, and once a node is lost and everything is repaired.
//!
//! Nothing here is measured: roles are placed, taken over and moved by the functions that do so in a cluster, and what a role takes
//! comes from the store's own rules ([`store::forecast`]).

use std::collections::{BTreeMap, BTreeSet};

use cluster::{PlacementError, PlanLimits, PlanNode, RoleTally, choose_stand_in, place, plan};
use serde::Serialize;
use server::BUFFER_FLOOR_BYTES;
use store::forecast::{Forecast, Portion, RoleForecast, area_bytes, dealt};
use store::{Budget, encoded_len};
use thiserror::Error;
use types::op::is_too_large;
use types::{
    CHUNK_PAGE_BYTES, Catalog, ClusterId, ClusterMap, Geometry, GroupView, HostId, Incarnation, Layout,
    MemberId, NodeId, NodeInfo, ObjectPolicy, Pool, PoolId, Profile, RoleIndex,
};

/// A cluster to be.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its protection.
    pub profile: Profile,
    /// How many nodes it has.
    pub nodes: u16,
    /// Workers of each.
    pub workers: u16,
    /// Its groups.
    pub groups: u32,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value, and how many items have such.
    pub values: Vec<(u64, u64)>,
    /// Which values lie in chunks, and how.
    pub objects: ObjectPolicy,
}

/// What the descriptor of a value in chunks has at most in a cluster of many groups.
const DESCRIPTOR_BYTES: u64 = 160;

impl Question {
    /// Whether a value of so many bytes lies in chunks: it is longer than those that are to lie whole, or too long for an item.
    fn is_object(&self, value: u64) -> bool {
        let is_long = self.objects.striped_above.is_some_and(|longest| value > u64::from(longest));
        is_long || is_too_large(self.key_bytes, usize::try_from(value).unwrap_or(usize::MAX), 0)
    }

    /// Bytes of the item of such a value.
    fn item_bytes(&self, value: u64) -> usize {
        let kept = if self.is_object(value) { DESCRIPTOR_BYTES } else { value };
        encoded_len(self.key_bytes, kept as usize)
    }

    /// Bytes of all chunks of a role of one group: stripes go round the groups. None if nobody could count them.
    fn chunk_bytes(&self, role: u8) -> Option<u64> {
        let ObjectPolicy { chunk_bytes: chunk_len, layout, .. } = self.objects;
        let k = self.profile.k() as u8;
        let of_value = |len: u64| {
            let geometry = Geometry { len, chunk_len, k, layout };
            let whole = u64::from(geometry.stripe_count()) - 1;
            let (first, last) = (geometry.stripe(0)?, geometry.stripe(whole as u32)?);
            Some(whole * first.len_of(role) + last.len_of(role).next_multiple_of(CHUNK_PAGE_BYTES as u64))
        };
        let mut sum: u64 = 0;
        for &(len, items) in self.values.iter().filter(|(len, _)| self.is_object(*len)) {
            sum = sum.checked_add(of_value(len)?.checked_mul(items)?)?;
        }
        Some(sum.div_ceil(u64::from(self.groups.max(1))))
    }

    /// Keys and values of all items; none if nobody could count them.
    pub fn user_bytes(&self) -> Option<u64> {
        let bytes = |&(value, items): &(u64, u64)| (self.key_bytes as u64 + value).checked_mul(items);
        self.values.iter().try_fold(0u64, |sum, value| sum.checked_add(bytes(value)?))
    }
}

/// Bytes that count against `--memory`, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Uses {
    /// Data roles.
    pub data_roles: u64,
    /// Parity roles.
    pub parity_roles: u64,
    /// Slots in which items lie.
    pub slot_bytes: u64,
    /// The rest of the extents of data areas: slots and runs that are free.
    pub free_bytes: u64,
    /// Parity areas.
    pub parity_bytes: u64,
    /// The primaries' indexes.
    pub index_bytes: u64,
    /// Their replicas at the parities.
    pub replica_bytes: u64,
    /// Tables of runs and pages, at primaries and parities, and the state of each slot.
    pub table_bytes: u64,
    /// Chunks of values that are too long for an item.
    pub chunk_bytes: u64,
    /// Clients' buffers: what each worker has in any case.
    pub buffer_bytes: u64,
    /// All of these.
    pub total_bytes: u64,
}

/// What a cluster comes to.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Of each node, and whoever reads it sees how even they are.
    pub nodes: BTreeMap<u16, Uses>,
    /// Of all nodes.
    pub all: Uses,
}

/// Roles of one group: where they are and what they take.
struct Group {
    data: Vec<RoleForecast>,
    /// Runs of a parity's area: as many as the longest area that it covers.
    parity_runs: u32,
    /// Bytes of each role's chunks.
    chunk_bytes: Vec<u64>,
    /// Who has which role.
    hosts: Vec<Option<NodeId>>,
    /// Which roles are not where they were filled.
    moved: BTreeSet<usize>,
}

/// See the module.
pub struct Model {
    question: Question,
    map: ClusterMap,
    groups: Vec<Group>,
    user_bytes: u64,
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum NoPlan {
    /// Roles cannot be placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// More bytes than a number of 64 bits holds.
    #[error("these are more bytes than any cluster has")]
    TooMany,
}

impl Model {
    /// Places the roles and fills them.
    ///
    /// # Errors
    /// If there are too few nodes for the profile, or too many bytes.
    pub fn new(question: Question) -> Result<Self, NoPlan> {
        // With all chunks and whatever goes with them there is still room in the number.
        let user_bytes = question.user_bytes().filter(|bytes| *bytes < 1 << 56).ok_or(NoPlan::TooMany)?;
        let roles = 0..question.profile.n() as u8;
        let chunk_bytes = roles.map(|role| question.chunk_bytes(role)).collect::<Option<Vec<u64>>>();
        let chunk_bytes = chunk_bytes.ok_or(NoPlan::TooMany)?;
        let map = map(&question)?;
        let pool = map.catalog.pool(PoolId::DEFAULT).expect("every catalog has a default pool");
        let filling = Filling { question: &question, pool, forecast: Forecast::default(), chunk_bytes };
        let groups = map.groups.iter().map(|view| filling.group(view)).collect();
        Ok(Self { question, map, groups, user_bytes })
    }

    /// Keys and values of all items.
    pub fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// What the nodes have now.
    pub fn uses(&self) -> Answer {
        let mut nodes: BTreeMap<u16, Uses> = BTreeMap::new();
        for node in self.living() {
            let buffer_bytes = u64::from(self.question.workers) * BUFFER_FLOOR_BYTES as u64;
            nodes.insert(node.0, Uses { buffer_bytes, ..Uses::default() });
        }
        for group in &self.groups {
            for (role, host) in group.hosts.iter().enumerate() {
                if let Some(uses) = host.and_then(|host| nodes.get_mut(&host.0)) {
                    group.count(role, uses);
                }
            }
        }
        nodes.values_mut().for_each(Uses::add_up);
        let all = nodes.values().fold(Uses::default(), Uses::with);
        Answer { nodes, all }
    }

    /// The most that one role takes: room for it is needed while it moves.
    pub fn largest_role_bytes(&self) -> u64 {
        let bytes = |group: &Group, role| {
            let mut uses = Uses::default();
            group.count(role, &mut uses);
            uses.add_up();
            uses.total_bytes
        };
        let of_group = |group| (0..self.question.profile.n()).map(move |role| bytes(group, role));
        self.groups.iter().flat_map(of_group).max().unwrap_or(0)
    }

    /// The longest area of all roles.
    pub fn longest_area_bytes(&self) -> u64 {
        self.groups.iter().map(|group| area_bytes(group.parity_runs)).max().unwrap_or(0)
    }

    /// `node` ends: stand-ins take its data roles over, and everything that can be is built anew and balanced.
    pub fn lose(&mut self, node: NodeId) {
        self.map.nodes.iter_mut().filter(|info| info.host.node == node).for_each(|info| info.alive = false);
        let living = self.plan_nodes();
        let mut load = RoleTally::of(&self.map.groups);
        for view in &mut self.map.groups {
            // Each stand-in is another role of its node, which the next one takes into account.
            let before = view.clone();
            take_over(view, node, &living, &load);
            load.remove(&before);
            load.add(view);
        }
        let moves = plan(&self.map, &living, &PlanLimits::default());
        for (group, view) in self.groups.iter_mut().zip(&self.map.groups) {
            hosts(view).into_iter().enumerate().for_each(|(role, host)| group.seat(role, host));
        }
        for step in moves {
            self.groups[step.group.0 as usize].seat(usize::from(step.role.0), Some(step.to.node));
        }
    }

    fn living(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.map.nodes.iter().filter(|info| info.alive).map(|info| info.host.node)
    }

    fn plan_nodes(&self) -> Vec<PlanNode> {
        let plan_node = |node| PlanNode {
            host: host(node),
            zone: String::new(),
            draining: false,
            can_host: true,
            bytes: 0,
            room: u64::MAX,
            former: Vec::new(),
        };
        self.living().map(plan_node).collect()
    }
}

impl Group {
    /// `role` is at `host` from now on.
    fn seat(&mut self, role: usize, host: Option<NodeId>) {
        if self.hosts[role] != host {
            self.hosts[role] = host;
            self.moved.insert(role);
        }
    }

    /// Counts what `role` takes at its node.
    fn count(&self, role: usize, uses: &mut Uses) {
        uses.chunk_bytes += self.chunk_bytes[role];
        let Some(own) = self.data.get(role) else {
            uses.parity_roles += 1;
            uses.parity_bytes += area_bytes(self.parity_runs);
            uses.replica_bytes += self.data.iter().map(|role| role.index_bytes).sum::<u64>();
            uses.table_bytes += self.data.iter().map(|role| role.table_bytes).sum::<u64>();
            return;
        };
        let has_moved = self.moved.contains(&role);
        let area_bytes = if has_moved { own.inherited_area_bytes() } else { own.area_bytes() };
        uses.data_roles += 1;
        uses.slot_bytes += own.slot_bytes;
        uses.free_bytes += area_bytes - own.slot_bytes;
        uses.index_bytes += own.index_bytes;
        uses.table_bytes += own.table_bytes + own.slot_state_bytes;
    }
}

impl Uses {
    fn add_up(&mut self) {
        let areas = self.slot_bytes + self.free_bytes + self.parity_bytes;
        let indexes = self.index_bytes + self.replica_bytes + self.table_bytes;
        self.total_bytes = areas + indexes + self.chunk_bytes + self.buffer_bytes;
    }

    fn with(self, other: &Self) -> Self {
        Self {
            data_roles: self.data_roles + other.data_roles,
            parity_roles: self.parity_roles + other.parity_roles,
            slot_bytes: self.slot_bytes + other.slot_bytes,
            free_bytes: self.free_bytes + other.free_bytes,
            parity_bytes: self.parity_bytes + other.parity_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
            replica_bytes: self.replica_bytes + other.replica_bytes,
            table_bytes: self.table_bytes + other.table_bytes,
            chunk_bytes: self.chunk_bytes + other.chunk_bytes,
            buffer_bytes: self.buffer_bytes + other.buffer_bytes,
            total_bytes: self.total_bytes + other.total_bytes,
        }
    }
}

impl Answer {
    /// What the fullest node has.
    pub fn fullest(&self) -> Uses {
        self.nodes.values().max_by_key(|uses| uses.total_bytes).copied().unwrap_or_default()
    }
}

/// The least `--memory` that makes `uses` possible, and as much for a role that moves.
pub fn with_headroom(uses: &Uses, moving: u64) -> u64 {
    Budget::least_limit(uses.total_bytes + moving, uses.chunk_bytes > 0)
}

fn host(node: NodeId) -> HostId {
    HostId { node, incarnation: Incarnation(1) }
}

/// The cluster as it forms.
fn map(question: &Question) -> Result<ClusterMap, PlacementError> {
    let hosts: Vec<HostId> = (0..question.nodes).map(|node| host(NodeId(node))).collect();
    // Nobody is asked there.
    let nowhere = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
    let info = |&host: &HostId| NodeInfo {
        host,
        alive: true,
        zone: String::new(),
        peer: nowhere,
        memcached: nowhere,
        http: nowhere,
        native: None,
    };
    Ok(ClusterMap {
        cluster: ClusterId(0),
        version: 1,
        catalog: Catalog::first(question.profile, question.groups),
        shards: question.workers,
        layout: Layout::default(),
        nodes: hosts.iter().map(info).collect(),
        groups: place(question.profile, &hosts, question.groups)?,
    })
}

fn hosts(view: &GroupView) -> Vec<Option<NodeId>> {
    let data = view.data.iter().map(|role| role.primary);
    data.chain(view.parity.iter().copied()).map(|host| host.map(|host| host.node)).collect()
}

/// What fills roles.
struct Filling<'a> {
    question: &'a Question,
    pool: &'a Pool,
    forecast: Forecast,
    /// By role.
    chunk_bytes: Vec<u64>,
}

impl Filling<'_> {
    fn group(&self, view: &GroupView) -> Group {
        let role = |role| self.role(MemberId { group: view.group, role: RoleIndex(role) });
        let data: Vec<RoleForecast> = (0..self.question.profile.k() as u8).map(role).collect();
        let parity_runs = data.iter().map(|role| role.runs).max().unwrap_or(0);
        let chunk_bytes = self.chunk_bytes.clone();
        Group { data, parity_runs, chunk_bytes, hosts: hosts(view), moved: BTreeSet::new() }
    }

    /// A data role with the items that the hash of their keys deals to it.
    fn role(&self, member: MemberId) -> RoleForecast {
        let range = self.pool.slots_of(member);
        let share = f64::from(range.last.0 - range.first.0 + 1) / f64::from(self.pool.slots());
        let first = u64::from(range.first.0) * self.question.values.len() as u64;
        let portion = |(at, &(value, items)): (u64, &(u64, u64))| Portion {
            item_bytes: self.question.item_bytes(value),
            items: dealt(items as f64 * share, first + at) as u64,
        };
        let portions: Vec<Portion> = (0..).zip(&self.question.values).map(portion).collect();
        self.forecast.role(&portions)
    }
}

/// What the coordinator does for the roles of `view` that `lost` had.
fn take_over(view: &mut GroupView, lost: NodeId, living: &[PlanNode], load: &RoleTally) {
    let is_lost = |host: Option<HostId>| host.is_some_and(|host| host.node == lost);
    view.parity.iter_mut().filter(|host| is_lost(**host)).for_each(|host| *host = None);
    for role in 0..view.data.len() {
        if is_lost(view.data[role].primary) {
            view.data[role].primary = choose_stand_in(view, living, load);
        }
    }
}
