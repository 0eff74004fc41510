//! What would follow from a layout: the moves that the planner would make, what would travel for them, and how the nodes
//! would be filled afterwards. Nobody knows the bytes of a single role, so a node's bytes are shared out evenly to its roles.

use std::collections::BTreeMap;

use cluster::{Move, PlanLimits, PlanNode, RoleCounts, RoleTally, plan, warnings};
use serde::Serialize;
use types::{ClusterMap, GroupView, Layout, NodeId};

use crate::output::Table;
use crate::status::nodes::NodeReport;
use crate::units::Size;
use crate::words;

/// Moves that the text names; all are in the JSON.
const MOVES_SHOWN: usize = 20;

/// See the module.
#[derive(Debug, Serialize)]
pub struct Preview {
    /// In the order of the planner.
    moves: Vec<Move>,
    /// What would travel between nodes, about.
    travelling_bytes: u64,
    nodes: Vec<Balance>,
    /// What could not be had.
    warnings: Vec<String>,
}

/// A node now and afterwards.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Balance {
    node: NodeId,
    before: Share,
    after: Share,
}

/// What a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Share {
    data_roles: usize,
    parity_roles: usize,
    bytes: u64,
}

impl Share {
    fn roles(&self) -> usize {
        self.data_roles + self.parity_roles
    }

    fn count_of(&mut self, is_data: bool) -> &mut usize {
        if is_data { &mut self.data_roles } else { &mut self.parity_roles }
    }
}

impl Preview {
    /// With `wanted` instead of the layout in force. Nodes that did not answer count as empty.
    pub fn of(map: &ClusterMap, wanted: &Layout, reports: &[NodeReport]) -> Self {
        let nodes = plan_nodes(map, wanted, reports);
        let moves = plan(map, &nodes, &PlanLimits::default());
        let counts = RoleTally::of(&map.groups);
        let share = |node: &PlanNode| {
            let RoleCounts { data, parity } = counts.get(node.host.node);
            (node.host.node, Share { data_roles: data, parity_roles: parity, bytes: node.bytes })
        };
        let before: BTreeMap<NodeId, Share> = nodes.iter().map(share).collect();
        let mut after = before.clone();
        let travelling = moves.iter().map(|step| carry_out(&mut after, step, data_roles(map, step))).sum();
        let balance = |(node, before): (&NodeId, &Share)| {
            let after = after.get(node).copied().unwrap_or_default();
            Balance { node: *node, before: *before, after }
        };
        let nodes_after = before.iter().map(balance).collect();
        let warnings = warnings(map, &nodes).iter().map(ToString::to_string).collect();
        Self { travelling_bytes: travelling, nodes: nodes_after, warnings, moves }
    }

    /// A table of the nodes, the first moves, and what could not be had.
    pub fn text(&self) -> String {
        if self.moves.is_empty() {
            return self.warnings_text() + "no role would move\n";
        }
        let mut text = format!(
            "{} would move, with about {} on the network:\n",
            words::count(self.moves.len(), "role", "roles"),
            Size(self.travelling_bytes)
        );
        self.moves.iter().take(MOVES_SHOWN).for_each(|step| text.push_str(&format!("  {step}\n")));
        if self.moves.len() > MOVES_SHOWN {
            text.push_str(&format!("  and {} more (-o json)\n", self.moves.len() - MOVES_SHOWN));
        }
        text + &self.table() + &self.warnings_text()
    }

    fn table(&self) -> String {
        let mut table = Table::new(&["node", "data", "parity", "memory"]);
        let change = |from: String, to: String| if from == to { from } else { format!("{from} -> {to}") };
        let count = |from: usize, to: usize| change(from.to_string(), to.to_string());
        for Balance { node, before, after } in &self.nodes {
            table.row(vec![
                node.0.to_string(),
                count(before.data_roles, after.data_roles),
                count(before.parity_roles, after.parity_roles),
                change(Size(before.bytes).to_string(), Size(after.bytes).to_string()),
            ]);
        }
        table.render()
    }

    fn warnings_text(&self) -> String {
        self.warnings.iter().map(|warning| format!("{warning}\n")).collect()
    }
}

/// The nodes as the coordinator would look at them with this layout.
fn plan_nodes(map: &ClusterMap, wanted: &Layout, reports: &[NodeReport]) -> Vec<PlanNode> {
    let report = |node| reports.iter().find(|report| report.node == node);
    let told = |node| report(node).and_then(|report| report.member_bytes);
    let room = |node| {
        let report = report(node)?;
        Some(report.memory_limit_bytes?.saturating_sub(report.memory_used_bytes?))
    };
    let plan_node = |info: &types::NodeInfo| {
        let node = info.host.node;
        PlanNode {
            host: info.host,
            zone: wanted.zone_of(node).unwrap_or(&info.zone).to_owned(),
            draining: wanted.is_draining(node),
            can_host: info.alive,
            bytes: told(node).unwrap_or(0),
            room: room(node).unwrap_or(u64::MAX),
            former: Vec::new(),
        }
    };
    map.nodes.iter().map(plan_node).collect()
}

/// Data roles of the group that `step` is about.
fn data_roles(map: &ClusterMap, step: &Move) -> usize {
    map.group(step.group).map_or(0, GroupView::k)
}

/// Does `step` in `shares`; the bytes that travel: a data role's own, or, for a parity, those of all data roles.
fn carry_out(shares: &mut BTreeMap<NodeId, Share>, step: &Move, k: usize) -> u64 {
    let is_data = usize::from(step.role.0) < k;
    let bytes = match step.from.and_then(|host| shares.get_mut(&host.node)) {
        Some(from) => {
            let bytes = from.bytes.checked_div(from.roles() as u64).unwrap_or(0);
            from.bytes -= bytes;
            *from.count_of(is_data) = from.count_of(is_data).saturating_sub(1);
            bytes
        }
        None => mean_role_bytes(shares),
    };
    let to = shares.entry(step.to.node).or_default();
    to.bytes += bytes;
    *to.count_of(is_data) += 1;
    if is_data { bytes } else { bytes.saturating_mul(k as u64) }
}

fn mean_role_bytes(shares: &BTreeMap<NodeId, Share>) -> u64 {
    let (bytes, roles) = shares.values().fold((0u64, 0), |(bytes, roles), share| {
        (bytes.saturating_add(share.bytes), roles + share.roles() as u64)
    });
    bytes.checked_div(roles).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, HostId, Incarnation, LayoutVersion, NodeInfo, NodeLayout, NodeState, Profile};

    use super::*;

    fn map(nodes: u16, groups: u32) -> ClusterMap {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let hosts: Vec<_> = (0..5).map(host).collect();
        let address = "127.0.0.1:1".parse().unwrap();
        let info = |node| NodeInfo {
            host: host(node),
            peer: address,
            memcached: address,
            http: address,
            native: None,
            zone: String::new(),
            alive: true,
        };
        let profile = Profile::rs(3, 2).unwrap();
        ClusterMap {
            cluster: ClusterId(1),
            version: 1,
            catalog: types::Catalog::first(profile, groups),
            shards: 1,
            layout: Layout { version: LayoutVersion(3), ..Layout::default() },
            nodes: (0..nodes).map(info).collect(),
            groups: place(profile, &hosts, groups).unwrap(),
        }
    }

    fn draining(map: &ClusterMap, node: u16) -> Layout {
        let mut wanted = map.layout.clone();
        wanted.nodes.insert(NodeId(node), NodeLayout { state: NodeState::Draining, zone: None });
        wanted
    }

    #[test]
    fn a_drain_moves_everything_to_where_there_is_none_of_the_group() {
        let map = map(6, 5);
        let preview = Preview::of(&map, &draining(&map, 2), &[]);
        let roles = |share: &Share| (share.data_roles, share.parity_roles);
        assert_eq!((preview.moves.len(), roles(&preview.nodes[2].after)), (5, (0, 0)));
        assert_eq!(roles(&preview.nodes[5].after), roles(&preview.nodes[2].before));
        assert!(preview.text().contains("drain group-0/role-"), "{}", preview.text());
        assert!(preview.text().contains("3 -> 0"), "{}", preview.text());
    }

    #[test]
    fn a_parity_is_built_from_all_data_roles_and_a_data_role_from_itself() {
        let map = map(6, 1);
        let mut shares: BTreeMap<NodeId, Share> = BTreeMap::new();
        shares.insert(NodeId(0), Share { data_roles: 1, parity_roles: 1, bytes: 200 });
        let from = Some(map.nodes[0].host);
        let step = |role, from| Move {
            group: types::GroupId(0),
            role: types::RoleIndex(role),
            from,
            to: map.nodes[5].host,
            reason: cluster::Reason::Drain,
        };
        assert_eq!(carry_out(&mut shares, &step(0, from), 3), 100);
        assert_eq!(carry_out(&mut shares, &step(3, from), 3), 300);
        assert_eq!(shares[&NodeId(5)], Share { data_roles: 1, parity_roles: 1, bytes: 200 });
        assert_eq!(shares[&NodeId(0)], Share::default());
        assert_eq!(carry_out(&mut shares, &step(4, None), 3), 300, "a lost one weighs as much as the others");
    }

    #[test]
    fn what_has_nowhere_to_go_is_said() {
        let map = map(5, 5);
        let preview = Preview::of(&map, &draining(&map, 2), &[]);
        assert!(preview.moves.is_empty() && !preview.warnings.is_empty());
        assert!(preview.text().ends_with("no role would move\n"), "{}", preview.text());
        assert!(Preview::of(&map, &map.layout, &[]).moves.is_empty());
    }
}
