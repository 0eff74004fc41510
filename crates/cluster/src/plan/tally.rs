//! How many roles each node has.

use std::collections::BTreeMap;

use super::layout::{IsData, RoleCounts};
use types::{GroupView, NodeId};

/// How many roles of each kind each node has, over groups that are added and removed one by one. Learners count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleTally(BTreeMap<NodeId, RoleCounts>);

impl RoleTally {
    /// Over all of `groups`.
    #[must_use]
    pub fn of(groups: &[GroupView]) -> Self {
        let mut tally = Self::default();
        groups.iter().for_each(|view| tally.add(view));
        tally
    }

    /// `view` is one of them now.
    pub fn add(&mut self, view: &GroupView) {
        each_role(view, |node, kind| *self.0.entry(node).or_default().of_mut(kind) += 1);
    }

    /// `view`, which is one of them, is none any more.
    pub fn remove(&mut self, view: &GroupView) {
        each_role(view, |node, kind| {
            let counts = self.0.entry(node).or_default();
            *counts.of_mut(kind) = counts.of(kind).saturating_sub(1);
            if counts.total() == 0 {
                self.0.remove(&node);
            }
        });
    }

    /// What `node` has.
    #[must_use]
    pub fn get(&self, node: NodeId) -> RoleCounts {
        self.0.get(&node).copied().unwrap_or_default()
    }

    /// The nodes that have any.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, RoleCounts)> + '_ {
        self.0.iter().map(|(node, counts)| (*node, *counts))
    }
}

impl FromIterator<(NodeId, RoleCounts)> for RoleTally {
    fn from_iter<T: IntoIterator<Item = (NodeId, RoleCounts)>>(counts: T) -> Self {
        Self(counts.into_iter().collect())
    }
}

fn each_role(view: &GroupView, mut count: impl FnMut(NodeId, IsData)) {
    view.data_roles().filter_map(|(_, role)| role.primary).for_each(|host| count(host.node, IsData(true)));
    view.in_sync().for_each(|(_, host)| count(host.node, IsData(false)));
    for learner in &view.learners {
        count(learner.host.node, IsData(usize::from(learner.role.0) < view.k()));
    }
}
