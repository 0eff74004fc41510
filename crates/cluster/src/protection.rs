//! What a code makes up for. By its rows: a code whose parities cover some of the data roles survives many losses of more members
//! than it survives whichever they are, and to count tells nothing of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use codec::Code;
use types::{GroupView, HostId, NodeId, Profile, RoleIndex, RoleStatus};

/// Sets of nodes that are tried, of one pattern: beyond that what has been shown so far counts.
const MAX_TRIALS: usize = 20_000;

/// Patterns whose margins are kept.
const MAX_PATTERNS: usize = 4_096;

const _: () = assert!(Profile::MAX_K as u32 + Profile::MAX_M as u32 <= u64::BITS);

/// The code of a profile, and what it means for the groups that it protects.
#[derive(Debug)]
pub struct Protection {
    profile: Profile,
    code: Arc<Code>,
    /// How many more nodes can be lost, by what is missing and what each node has.
    margins: Mutex<BTreeMap<Pattern, usize>>,
}

/// What a group loses for good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Data roles that nothing determines.
    pub roles: Vec<RoleIndex>,
    /// Parities that have something of them in their sums.
    pub parities: Vec<RoleIndex>,
}

/// Roles as bits: bit `r` is role `r` (`0..n`).
type Roles = u64;

/// What the margin of a group depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    /// Roles whose bytes are at nobody's.
    lost: Roles,
    /// What would be lost with each node, ascending.
    nodes: Vec<Roles>,
}

impl Protection {
    /// Of groups with this profile.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        let code = Code::of(profile.scheme()).expect("a profile names a code that exists");
        Self { profile, code: Arc::new(code), margins: Mutex::default() }
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The code, for whoever keeps it.
    #[must_use]
    pub fn shared_code(&self) -> Arc<Code> {
        Arc::clone(&self.code)
    }

    /// Whether the parity role `parity` (`k..n`) has anything of the data role `data` in its sum.
    #[must_use]
    pub fn covers(&self, parity: RoleIndex, data: RoleIndex) -> bool {
        let row = usize::from(parity.0).checked_sub(self.code.k()).filter(|row| *row < self.code.m());
        let column = usize::from(data.0);
        row.is_some_and(|row| column < self.code.k() && self.code.coefficient(row, column) != 0)
    }

    /// Whether somebody can teach the parity role `parity` anything: a data role that it covers and that is not lost. What has
    /// nothing in its sum protects nothing.
    #[must_use]
    pub fn has_teachers(&self, view: &GroupView, parity: RoleIndex) -> bool {
        view.data_roles().any(|(role, data)| !data.status.is_lost() && self.covers(parity, role))
    }

    /// The in-sync parities that have something of data role `role` in their sums, in role order.
    pub fn in_sync_of<'a>(
        &'a self,
        view: &'a GroupView,
        role: RoleIndex,
    ) -> impl Iterator<Item = (RoleIndex, HostId)> + 'a {
        view.in_sync().filter(move |(parity, _)| self.covers(*parity, role))
    }

    /// Whose acks the primary of `role` needs, and who can say how its stream ends: the in-sync parities that cover it, and the
    /// whole mirror of the role itself.
    pub fn witnesses<'a>(
        &'a self,
        view: &'a GroupView,
        role: RoleIndex,
    ) -> impl Iterator<Item = (RoleIndex, HostId)> + 'a {
        self.in_sync_of(view, role).chain(view.mirror(role).map(|host| (role, host)))
    }

    /// Whether what is missing cannot all be made up for.
    #[must_use]
    pub fn is_beyond_repair(&self, view: &GroupView) -> bool {
        !self.is_solvable(lost_roles(view))
    }

    /// The data roles in play that nothing determines any more.
    #[must_use]
    pub fn unsolvable(&self, view: &GroupView) -> Vec<RoleIndex> {
        let lost = list(lost_roles(view));
        let undetermined = self.code.undetermined(&lost).unwrap_or(lost);
        let in_play = view.in_play();
        in_play.filter(|role| undetermined.contains(&usize::from(role.0))).collect()
    }

    /// The in-sync parities whose rows make up for the data role `role` while everything is missing that may be, and that read as
    /// little as any: of an LRC the local one where it is enough. All in sync where too much is missing: some of it may turn up.
    #[must_use]
    pub fn cheapest_rows(&self, view: &GroupView, role: RoleIndex) -> Vec<RoleIndex> {
        let in_sync = view.in_sync().map(|(parity, _)| parity);
        // Every row reads all roles here, so none is cheaper than another.
        if self.profile.is_mds() {
            return in_sync.take(view.roles_in_play()).collect();
        }
        match self.code.cheapest_plan(&list(lost_roles(view)), &[usize::from(role.0)]) {
            Ok(plan) => in_sync.filter(|parity| plan.sources().contains(&usize::from(parity.0))).collect(),
            Err(_) => in_sync.collect(),
        }
    }

    /// What is lost if nothing comes back that is missing. The parities that have something of a lost role in their sums are of no
    /// use without it, and what only they could make up for is lost, too.
    #[must_use]
    pub fn losses(&self, view: &GroupView) -> Losses {
        let (mut view, mut losses) = (view.clone(), Losses::default());
        loop {
            let unsolvable = self.unsolvable(&view);
            if unsolvable.is_empty() {
                return losses;
            }
            let has_lost = |parity: RoleIndex| unsolvable.iter().any(|role| self.covers(parity, *role));
            let spoiled: Vec<RoleIndex> =
                view.in_sync().map(|(role, _)| role).filter(|role| has_lost(*role)).collect();
            unsolvable.iter().for_each(|role| view.data[usize::from(role.0)].status = RoleStatus::Lost);
            spoiled.iter().for_each(|role| view.parity[usize::from(role.0) - self.code.k()] = None);
            losses.roles.extend(unsolvable);
            losses.parities.extend(spoiled);
        }
    }

    /// How many nodes may still be lost, whichever they are. A stand-in shares its node with a parity, so a node's loss may cost a
    /// group more than one member. A data role with a whole mirror is lost with the later one of two nodes: with that which has no
    /// other role of the group, if there is one. Where the group takes chunks, what they survive if that is less. Of codes too large
    /// to try every set of nodes, what could be shown.
    #[must_use]
    pub fn losses_survived(&self, view: &GroupView) -> usize {
        let items = self.margin(Pattern::of_items(view));
        if view.takes_chunks() { items.min(self.margin(Pattern::of_chunks(view))) } else { items }
    }

    fn margin(&self, pattern: Pattern) -> usize {
        if self.profile.is_mds() {
            return pattern.margin_by_counting(self.code.k());
        }
        // A margin that is in the table is right, whatever became of the thread that was about to add another.
        let mut margins = self.margins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(margin) = margins.get(&pattern) {
            return *margin;
        }
        let margin = self.margin_of(&pattern);
        // All at once is simple, and seldom: few patterns are in use at a time.
        if margins.len() >= MAX_PATTERNS {
            margins.clear();
        }
        margins.insert(pattern, margin);
        margin
    }

    /// How many nodes may be lost, whichever they are, so that no group of these loses data; at most as many as the profile asks
    /// for.
    #[must_use]
    pub fn achieved(&self, views: &[GroupView]) -> usize {
        let survived = views.iter().map(|view| self.losses_survived(view));
        survived.min().unwrap_or(0).min(self.profile.tolerance())
    }

    /// As [`Self::losses_survived`], once the nodes `gone` are lost; none if that loses data.
    #[must_use]
    pub fn losses_survived_without(&self, view: &GroupView, gone: &[NodeId]) -> Option<usize> {
        let view = view.without(gone);
        let is_lost = self.is_beyond_repair(&view) || self.loses_chunks(&view);
        (!is_lost).then(|| self.losses_survived(&view))
    }

    /// Whether chunks cannot be made any more of those at the whole holders. Whoever is getting some may have what it takes.
    #[must_use]
    pub fn loses_chunks(&self, view: &GroupView) -> bool {
        view.takes_chunks() && !self.is_solvable(Pattern::of_chunks(view).lost)
    }

    fn is_solvable(&self, lost: Roles) -> bool {
        let data = lost & data_roles(self.code.k());
        if self.profile.is_mds() {
            let parities = self.code.m() as u32 - (lost & !data_roles(self.code.k())).count_ones();
            return data.count_ones() <= parities;
        }
        // Parities alone may all be missing: nothing has to be decoded.
        data == 0 || self.code.decodable(&list(lost)).unwrap_or(false)
    }

    /// The largest number such that any so many nodes may be lost.
    fn margin_of(&self, pattern: &Pattern) -> usize {
        let mut trials = 0;
        let mut is_survived = |size: usize| {
            Subsets::new(pattern.nodes.len(), size).all(|subset| {
                trials += 1;
                let lost = subset.iter().fold(pattern.lost, |lost, at| lost | pattern.nodes[*at]);
                trials <= MAX_TRIALS && self.is_solvable(lost)
            })
        };
        // Where the loss of some nodes is not survived, that of more nodes with these among them is not, either.
        (1..=pattern.nodes.len()).take_while(|size| is_survived(*size)).count()
    }
}

impl Pattern {
    fn of_items(view: &GroupView) -> Self {
        // A role that is not full is in `lost` already: its node takes nothing more with it.
        let full = view.data_roles().filter(|(_, data)| data.status == RoleStatus::Full);
        let full = full.filter_map(|(role, data)| Some((role, view.mirror_apart(role).or(data.primary)?)));
        Self::of(lost_roles(view), full.chain(view.in_sync()))
    }

    /// Of what lies in chunks: roles that nobody has all chunks of are lost.
    fn of_chunks(view: &GroupView) -> Self {
        let holders = view.holders.iter().enumerate();
        let whole = holders.filter_map(|(role, known)| Some((RoleIndex(role as u8), known.whole?.host)));
        let held = whole.clone().fold(0, |all, (role, _)| all | bit(role));
        let roles: Roles = (0..view.holders.len()).fold(0, |all, role| all | 1 << role);
        Self::of(roles & !held, whole)
    }

    fn of(lost: Roles, kept: impl Iterator<Item = (RoleIndex, HostId)>) -> Self {
        let mut by_node: BTreeMap<NodeId, Roles> = BTreeMap::new();
        for (role, host) in kept {
            *by_node.entry(host.node).or_default() |= bit(role);
        }
        let mut nodes: Vec<Roles> = by_node.into_values().collect();
        // Sorted, and without names: groups on other nodes have the same pattern, and need not be worked out again.
        nodes.sort_unstable();
        Self { lost, nodes }
    }

    /// Where any losses are alike: the costliest nodes are lost first.
    fn margin_by_counting(&self, k: usize) -> usize {
        let data = data_roles(k);
        let present: Roles = self.nodes.iter().fold(0, |all, roles| all | roles);
        let parities = (present & !data).count_ones();
        // Of the parities that are present some are needed for what is lost already.
        let Some(mut margin) = parities.checked_sub((self.lost & data).count_ones()) else { return 0 };
        let mut costs: Vec<u32> = self.nodes.iter().map(|roles| roles.count_ones()).collect();
        costs.sort_unstable_by_key(|cost| std::cmp::Reverse(*cost));
        let is_borne = |cost: &&u32| margin.checked_sub(**cost).inspect(|left| margin = *left).is_some();
        costs.iter().take_while(is_borne).count()
    }
}

/// Roles whose bytes may be at nobody's: data roles in play, and parities that nobody has in sync.
fn lost_roles(view: &GroupView) -> Roles {
    let data = view.in_play().map(bit).fold(0, |all, role| all | role);
    let missing = view.parity.iter().enumerate().filter(|(_, host)| host.is_none());
    missing.fold(data, |all, (row, _)| all | 1 << (view.k() + row))
}

fn bit(role: RoleIndex) -> Roles {
    1 << role.0
}

fn data_roles(k: usize) -> Roles {
    (1 << k) - 1
}

fn list(roles: Roles) -> Vec<usize> {
    (0..Roles::BITS as usize).filter(|role| roles >> role & 1 == 1).collect()
}

/// All sets of `size` numbers below `count`, each ascending.
struct Subsets {
    count: usize,
    next: Option<Vec<usize>>,
}

impl Subsets {
    fn new(count: usize, size: usize) -> Self {
        Self { count, next: (size <= count).then(|| (0..size).collect()) }
    }
}

impl Iterator for Subsets {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let current = self.next.take()?;
        let size = current.len();
        let movable = (0..size).rev().find(|at| current[*at] < self.count - size + at);
        self.next = movable.map(|at| {
            let kept = current[..at].iter().copied();
            kept.chain((current[at] + 1..).take(size - at)).collect()
        });
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use types::{Holder, Holders, Incarnation, Seq};

    use super::*;
    use crate::place;

    fn protection(profile: &str) -> Protection {
        Protection::of(profile.parse().unwrap())
    }

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    /// Role `r` is on node `r`.
    fn view(protection: &Protection) -> GroupView {
        let hosts: Vec<HostId> = (0..protection.profile().n() as u16).map(host).collect();
        place(protection.profile(), &hosts, 1).unwrap().remove(0)
    }

    fn without(protection: &Protection, nodes: &[u16]) -> GroupView {
        view(protection).without(&nodes.iter().copied().map(NodeId).collect::<Vec<_>>())
    }

    #[test]
    fn a_whole_group_survives_the_tolerance_of_its_profile() {
        for profile in
            ["rs(3+2)", "rep(3)", "none", "xor(4+1)", "mirror(3)", "lrc(6,2,2)", "lrc(12,2,2)", "lch(10+4)"]
        {
            let protection = protection(profile);
            let survived = protection.losses_survived(&view(&protection));
            assert_eq!(survived, protection.profile().tolerance(), "{profile}");
        }
    }

    #[test]
    fn many_losses_of_more_than_the_tolerance_are_survived_if_their_pattern_can_be_solved() {
        // Roles 0..6 and 6..12 with their local parities 12 and 13; 14 and 15 are global.
        let lrc = protection("lrc(12,2,2)");
        assert!(
            !lrc.is_beyond_repair(&without(&lrc, &[0, 1, 2, 6])),
            "one by each local parity, two by the global ones"
        );
        assert!(
            lrc.is_beyond_repair(&without(&lrc, &[0, 1, 2, 3])),
            "four of one local group have three parities"
        );
        assert!(!lrc.is_beyond_repair(&without(&lrc, &[12, 13, 14, 15])), "no data role is lost");
        let mirror = protection("mirror(4)");
        assert!(!mirror.is_beyond_repair(&without(&mirror, &[0, 1, 2, 3])), "a copy of each is left");
        assert!(mirror.is_beyond_repair(&without(&mirror, &[0, 4])), "both copies of role 0");
    }

    #[test]
    fn only_what_nothing_determines_is_unsolvable() {
        let lrc = protection("lrc(12,2,2)");
        let roles = |nodes: &[u16]| lrc.unsolvable(&without(&lrc, nodes));
        assert_eq!(roles(&[0, 1, 2, 6]), []);
        assert_eq!(roles(&[0, 1, 2, 3, 7]), [0, 1, 2, 3].map(RoleIndex), "role 7 comes from its local group");
        assert_eq!(
            protection("mirror(4)").unsolvable(&without(&protection("mirror(4)"), &[0, 4, 1])),
            [RoleIndex(0)]
        );
        let rs = protection("rs(3+2)");
        assert_eq!(rs.unsolvable(&without(&rs, &[0, 1, 4])), [RoleIndex(0), RoleIndex(1)]);
    }

    #[test]
    fn parities_without_anything_of_what_is_lost_stay() {
        let roles = |roles: &[u8]| roles.iter().copied().map(RoleIndex).collect::<Vec<_>>();
        let lrc = protection("lrc(4,2,1)");
        // Roles 0 and 1 with local parity 4, 2 and 3 with 5; 6 is global.
        let losses = lrc.losses(&without(&lrc, &[0, 1, 4, 2]));
        assert_eq!((losses.roles, losses.parities), (roles(&[0, 1]), roles(&[6])));
        let losses = lrc.losses(&without(&lrc, &[0, 1, 2, 5]));
        assert_eq!((losses.roles, losses.parities), (roles(&[0, 1, 2]), roles(&[4, 6])));
        let rs = protection("rs(3+2)");
        let losses = rs.losses(&without(&rs, &[0, 1, 4]));
        assert_eq!((losses.roles, losses.parities), (roles(&[0, 1]), roles(&[3])));
        assert_eq!(rs.losses(&without(&rs, &[0, 1])), Losses::default());
    }

    #[test]
    fn a_margin_is_that_of_the_worst_pattern() {
        let lrc = protection("lrc(12,2,2)");
        assert_eq!(lrc.losses_survived(&without(&lrc, &[0])), 2);
        assert_eq!(
            lrc.losses_survived(&without(&lrc, &[0, 6])),
            2,
            "a loss in each local group costs no global parity"
        );
        assert_eq!(lrc.losses_survived(&without(&lrc, &[0, 1])), 1);
        assert_eq!(lrc.losses_survived_without(&view(&lrc), &[0, 1, 2].map(NodeId)), Some(0));
        assert_eq!(lrc.losses_survived_without(&view(&lrc), &[0, 1, 2, 3].map(NodeId)), None);
    }

    #[test]
    fn a_node_with_two_roles_counts_twice() {
        for profile in ["rs(3+2)", "lrc(4,2,2)"] {
            let protection = protection(profile);
            let mut view = without(&protection, &[0]);
            let k = protection.profile().k();
            view.data[0].primary = view.parity[0];
            view.data[0].status = RoleStatus::Full;
            let before = protection.losses_survived(&view);
            assert_eq!(before, protection.profile().tolerance() - 1, "{profile}: node {k} has two roles");
        }
    }

    #[test]
    fn who_is_waited_for_covers_the_role() {
        let lrc = protection("lrc(4,2,2)");
        let view = view(&lrc);
        let waited =
            |role| lrc.witnesses(&view, RoleIndex(role)).map(|(parity, _)| parity.0).collect::<Vec<_>>();
        assert_eq!([waited(0), waited(3)], [vec![4, 6, 7], vec![5, 6, 7]]);
        assert!(
            !lrc.covers(RoleIndex(3), RoleIndex(3)) && !lrc.covers(RoleIndex(8), RoleIndex(0)),
            "no parities"
        );
    }

    #[test]
    fn a_lost_role_is_read_from_its_local_group_where_that_is_enough() {
        let lrc = protection("lrc(4,2,2)");
        let rows = |nodes: &[u16], role| {
            lrc.cheapest_rows(&without(&lrc, nodes), RoleIndex(role))
                .iter()
                .map(|row| row.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(rows(&[0], 0), [4]);
        assert_eq!(rows(&[0, 2], 2), [5], "what is lost elsewhere costs nothing");
        assert_eq!(rows(&[0, 1], 0).len(), 2, "the local row and a global one");
        assert_eq!(rows(&[0, 4], 0), [6]);
        assert_eq!(rows(&[0, 4, 2], 0), [5, 6], "the row of the other local group takes its lost role out");
        assert_eq!(rows(&[0, 1, 4, 6], 0).len(), 2, "too much is missing: all that there is");
    }

    #[test]
    fn a_role_that_is_rebuilding_counts_as_missing() {
        let rs = protection("rs(3+2)");
        let mut view = view(&rs);
        view.data[1].status = RoleStatus::Rebuilding { start: Seq(1), wait_us: 0 };
        assert_eq!(rs.losses_survived(&view), 1);
    }

    #[test]
    fn subsets_are_all_there() {
        assert_eq!(Subsets::new(6, 3).count(), 20);
        assert_eq!(Subsets::new(3, 3).collect::<Vec<_>>(), [vec![0, 1, 2]]);
        assert_eq!((Subsets::new(3, 0).count(), Subsets::new(2, 3).count()), (1, 0));
    }

    /// [`view`], whose members have held all chunks from the first version on.
    fn view_with_chunks(protection: &Protection) -> GroupView {
        let mut view = view(protection);
        let since = view.version;
        let whole = |role: usize| view.member_host(RoleIndex(role as u8)).map(|host| Holder { host, since });
        view.holders =
            (0..protection.profile().n()).map(|role| Holders { whole: whole(role), filling: None }).collect();
        view
    }

    #[test]
    fn a_group_survives_what_its_chunks_survive_if_that_is_less() {
        for profile in ["rs(3+2)", "lrc(6,2,2)", "rep(3)"] {
            let protection = protection(profile);
            let mut view = view_with_chunks(&protection);
            let tolerance = protection.profile().tolerance();
            assert_eq!(protection.losses_survived(&view), tolerance, "{profile}");
            // The stand-in has its items, and only some of its chunks.
            view.holders[0] = Holders { whole: None, filling: view.holders[0].whole };
            assert_eq!(protection.losses_survived(&view), tolerance - 1, "{profile}");
        }
    }

    #[test]
    fn chunks_are_lost_with_the_nodes_that_still_have_them() {
        let protection = protection("rs(3+2)");
        let mut view = view_with_chunks(&protection);
        // Roles 0 and 1 have gone to other nodes, which are getting their chunks from node 5.
        for role in 0..2 {
            view.holders[role].filling = view.holders[role].whole;
            view.holders[role].whole = Some(Holder { host: host(5), since: view.version });
        }
        assert_eq!(protection.losses_survived(&view), 1, "node 5 takes two chunks of a stripe with it");
        assert_eq!(protection.losses_survived_without(&view, &[NodeId(5)]), Some(0));
        assert!(!protection.loses_chunks(&view.without(&[NodeId(5)])));
        assert_eq!(protection.losses_survived_without(&view, &[NodeId(2), NodeId(5)]), None);
        assert!(
            !protection.is_beyond_repair(&view.without(&[NodeId(2), NodeId(5)])),
            "its items are not lost"
        );
        assert_eq!((view.roles_on(NodeId(5)), view.roles_left_on(NodeId(5))), (0, 2));
    }
}
