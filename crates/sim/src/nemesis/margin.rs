//! What can be borne: whether every group survives, should all that is at risk be lost.

use cluster::Protection;
use types::{ClusterMap, DataRole, GroupView, HostId, Learner, NodeInfo, RoleIndex, RoleStatus};

use crate::cluster::Cluster;
use crate::options::Options;

/// What may be lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Risk {
    /// Nodes that may be taken for dead.
    pub nodes: Vec<usize>,
    /// Pairs of nodes whose parities may be removed.
    pub pairs: Vec<(usize, usize)>,
}

impl Risk {
    pub(crate) fn of_nodes(nodes: Vec<usize>) -> Self {
        Self { nodes, pairs: Vec::new() }
    }

    pub(crate) fn of_pairs(pairs: Vec<(usize, usize)>) -> Self {
        Self { nodes: Vec::new(), pairs }
    }

    /// What `other` puts at risk is at risk, too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.nodes.extend_from_slice(&other.nodes);
        self.pairs.extend_from_slice(&other.pairs);
    }

    /// Whether two nodes may not reach each other.
    fn parts(&self, a: usize, b: usize) -> bool {
        self.pairs.iter().any(|pair| *pair == (a, b) || *pair == (b, a))
    }
}

/// Whether every group survives, should all nodes at risk be lost and all parities behind pairs at risk be removed.
pub(crate) fn can_bear(options: &Options, cluster: &Cluster, risk: &Risk) -> bool {
    // What the coordinator has decided may be recorded or not when something happens next.
    let Some(recorded) = cluster.map() else { return false };
    let decided = cluster.decided().unwrap_or(recorded);
    let are_left = |map: &&ClusterMap| most_are_left(cluster, map, &risk.nodes);
    if options.faults.forgets
        && !([recorded, decided].iter().all(are_left) && most_electors_are_left(cluster, &risk.nodes))
    {
        return false;
    }
    let is_new = |view: &&GroupView| recorded.group(view.group) != Some(*view);
    let views = recorded.groups.iter().chain(decided.groups.iter().filter(is_new));
    let beyond = options.faults.beyond as i64;
    let protection = options.protection();
    let margins = views.map(|view| Margin { cluster, risk, view, protection: &protection });
    let margins: Vec<Margin<'_>> = margins.collect();
    if !margins.iter().all(Margin::leaves_chunks) {
        return false;
    }
    let mut margins = margins.into_iter();
    // Where any parity is as good as another, counting is exact, and tells how far beyond the code a seed goes.
    // Other codes are asked; no seed of these goes beyond.
    if protection.profile().is_mds() {
        return margins.all(|margin| margin.left() >= -beyond);
    }
    margins.all(|margin| !protection.is_beyond_repair(&margin.worst()))
}

/// Whether one more group survives that, wherever it is placed: the coordinator may not have noticed yet who is lost.
pub(crate) fn can_bear_another_group(options: &Options, cluster: &Cluster, risk: &Risk) -> bool {
    let Some(map) = cluster.decided() else { return false };
    let is_at_risk = |node: usize| {
        let shown = map.nodes.iter().find(|info| info.alive && node_of(info.host) == node);
        shown.is_some_and(|info| !cluster.nodes.is_alive(info.host)) || risk.nodes.contains(&node)
    };
    let nodes = (0..cluster.nodes.count()).filter(|node| is_at_risk(*node)).count();
    // Of two that do not reach each other one may be given up.
    let pairs = risk.pairs.iter().filter(|(a, b)| !is_at_risk(*a) && !is_at_risk(*b)).count();
    nodes + pairs <= options.profile().tolerance()
}

/// Whether another coordinator can go on from what is recorded, and from what may yet be.
pub(crate) fn can_be_followed(options: &Options, cluster: &Cluster) -> bool {
    let mut maps = cluster.map().into_iter().chain(cluster.decided());
    !options.faults.forgets
        || maps.all(|map| most_are_left(cluster, map, &[])) && most_electors_are_left(cluster, &[])
}

/// Whether most processes that the map shows as alive are not hit: with fewer a coordinator that starts with nothing waits
/// for an operator.
fn most_are_left(cluster: &Cluster, map: &ClusterMap, hit: &[usize]) -> bool {
    let alive = map.nodes.iter().filter(|info| info.alive);
    let is_left = |info: &&NodeInfo| cluster.nodes.is_alive(info.host) && !hit.contains(&node_of(info.host));
    2 * alive.clone().filter(is_left).count() > alive.count()
}

/// The same for all sets of electors that come with the newest records that are left. A head that is in force is not enough: as
/// long as nodes have not been told so, the electors before it count, too.
fn most_electors_are_left(cluster: &Cluster, hit: &[usize]) -> bool {
    let is_left = |host: &HostId| cluster.nodes.is_alive(*host) && !hit.contains(&node_of(*host));
    let left = cluster.nodes.iter().filter(|node| is_left(&node.id));
    let kept = left.filter_map(|node| node.entrance.electors());
    let newest = kept.max_by_key(|(epoch, position, _)| (*epoch, *position));
    let sets = newest.into_iter().flat_map(|(_, _, sets)| sets);
    sets.into_iter().all(|set| 2 * set.iter().filter(|host| is_left(host)).count() > set.len())
}

fn node_of(host: HostId) -> usize {
    usize::from(host.node.0)
}

/// One group, and what may be lost.
struct Margin<'a> {
    cluster: &'a Cluster,
    risk: &'a Risk,
    view: &'a GroupView,
    protection: &'a Protection,
}

impl Margin<'_> {
    /// How many parities more are left than data roles are lost, at worst.
    fn left(&self) -> i64 {
        let lost = self.view.data_roles().filter(|(role, data)| self.may_be_lost(*role, data)).count();
        let parities: Vec<usize> = self
            .view
            .in_sync()
            .filter(|(_, host)| !self.is_at_risk(*host))
            .map(|(_, host)| node_of(host))
            .collect();
        let left = parities.iter().filter(|parity| !self.is_removable(**parity, lost > 0)).count();
        // But the last one may have been at risk itself when the others were removed.
        let last_stays = !parities.is_empty() && parities.len() == self.view.in_sync().count();
        left.max(usize::from(last_stays)) as i64 - lost as i64
    }

    /// The group at worst.
    fn worst(&self) -> GroupView {
        // Pessimistic: what is being built makes up for nothing yet.
        let mut view = GroupView { learners: Vec::new(), ..self.view.clone() };
        let may_be_lost =
            |role: RoleIndex| self.view.data_role(role).is_some_and(|data| self.may_be_lost(role, data));
        let mut is_any_lost = false;
        for (at, data) in view.data.iter_mut().enumerate() {
            if may_be_lost(RoleIndex(at as u8)) {
                is_any_lost = true;
                (data.primary, data.status) = (None, RoleStatus::Fenced);
            }
        }
        let stays =
            |host: &HostId| !self.is_at_risk(*host) && !self.is_removable(node_of(*host), is_any_lost);
        view.parity.iter_mut().for_each(|parity| *parity = parity.filter(stays));
        view
    }

    /// Whether what is left of the holders of chunks is enough to make all of them.
    fn leaves_chunks(&self) -> bool {
        let is_left = |role: &usize| {
            let whole = self.view.holders[*role].whole;
            whole.is_some_and(|holder| !self.is_hit(holder.host))
        };
        let (left, lost): (Vec<usize>, Vec<usize>) = (0..self.view.holders.len()).partition(is_left);
        lost.is_empty() || self.protection.code().plan(&left, &lost).is_ok()
    }

    /// Whether a primary may complain of the parity on `node`. Where a role is lost, any node may be the next to serve.
    fn is_removable(&self, node: usize, is_any_lost: bool) -> bool {
        let mut nodes = 0..self.cluster.nodes.count();
        nodes.any(|other| self.risk.parts(node, other) && (is_any_lost || self.serves(other)))
    }

    /// What is lost already is in no sum, and cannot be lost once more.
    fn may_be_lost(&self, index: RoleIndex, role: &DataRole) -> bool {
        let may_fail = |host: HostId| self.is_at_risk(host) || self.is_deposable(index, host);
        !role.status.is_lost() && (role.status != RoleStatus::Full || role.primary.is_none_or(may_fail))
    }

    fn is_hit(&self, host: HostId) -> bool {
        !self.cluster.nodes.is_alive(host) || self.risk.nodes.contains(&node_of(host))
    }

    /// A role that moves may be where it moves to before the fault shows.
    fn is_at_risk(&self, host: HostId) -> bool {
        self.is_hit(host) || self.moves_from(host).any(|to| self.is_hit(to))
    }

    /// Where roles of `host` move to. Two that change places are never both on a node without the whole mirror of one elsewhere.
    fn moves_from(&self, host: HostId) -> impl Iterator<Item = HostId> {
        let is_there = move |role: RoleIndex| {
            let primary = self.view.data_role(role).and_then(|data| data.primary);
            primary == Some(host) || self.view.parity_host(role) == Some(host)
        };
        let moves = move |learner: &&Learner| is_there(learner.role) && !self.is_exchanged(learner);
        self.view.learners.iter().filter(moves).map(|learner| learner.host)
    }

    fn is_exchanged(&self, learner: &Learner) -> bool {
        self.view.exchange(learner.role).is_some() || self.view.roles_on(learner.host.node) > 1
    }

    fn serves(&self, node: usize) -> bool {
        self.view.data.iter().filter_map(|role| role.primary).any(|host| node_of(host) == node)
    }

    /// A primary that reaches no parity at all is deposed itself; the last parity is never removed for it.
    fn is_deposable(&self, role: RoleIndex, host: HostId) -> bool {
        let is_unreachable = |parity: HostId| self.risk.parts(node_of(parity), node_of(host));
        let in_sync = || self.protection.in_sync_of(self.view, role).map(|(_, parity)| parity);
        let mut parities = in_sync();
        in_sync().any(is_unreachable)
            && parities.all(|parity| is_unreachable(parity) || self.is_at_risk(parity))
    }
}
