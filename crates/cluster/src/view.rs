//! A group's view: the coordinator's small versioned record of who serves what (group protocol, section 0).

use serde::{Deserialize, Serialize};

use crate::{GroupId, HostId, NodeId, RoleIndex, Seq, Term, ViewVersion};

/// Who serves the roles of one group; changed only by compare-and-swap on `version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupView {
    /// The group.
    pub group: GroupId,
    /// Grows by one with each change.
    pub version: ViewVersion,
    /// Data roles `0..k`.
    pub data: Vec<DataRole>,
    /// Parity roles `k..n`, in order; the role index of `parity[p]` is `k + p`.
    pub parity: Vec<ParityRole>,
}

/// A data role in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRole {
    /// The process that serves it; none between the loss of one primary and the appointment of the next.
    pub primary: Option<HostId>,
    /// The term of `primary`, or the term that will be the next primary's while the role is fenced.
    pub term: Term,
    /// Where the role stands.
    pub status: RoleStatus,
}

/// Where a data role stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleStatus {
    /// The primary has all its pages.
    Full,
    /// The primary is lost; its parities are being fenced at the view's term.
    Fenced,
    /// The stream ends at this record; a stand-in is to be appointed.
    Orphan(Seq),
    /// A stand-in serves, its stream started after `start`; pages come back on demand and by a sweep.
    Rebuilding {
        /// The last record of the terms before; the stand-in's first record is the next one.
        start: Seq,
        /// For how long from now on, in microseconds, the former primary may still hold a read lease; 0 if it
        /// surely does not.
        wait_us: u64,
    },
    /// More members were lost than the code can make up for: answered with an error, named in `status`.
    Lost,
}

/// A parity role in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParityRole {
    /// The process that hosts it; none once it is lost and not yet replaced.
    pub host: Option<HostId>,
    /// Whether its state counts.
    pub state: ParityState,
}

/// Whether a parity's state counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParityState {
    /// Its acks are required and its state may be used for recovery.
    InSync,
    /// Being built; never used for recovery.
    Learner {
        /// The view that appointed it: another one is another learner, even on the same host.
        since: ViewVersion,
    },
    /// Lost or removed.
    Absent,
}

impl GroupView {
    /// Number of data roles.
    #[must_use]
    pub fn k(&self) -> usize {
        self.data.len()
    }

    /// Number of parity roles.
    #[must_use]
    pub fn m(&self) -> usize {
        self.parity.len()
    }

    /// The data roles with their indices.
    pub fn data_roles(&self) -> impl Iterator<Item = (RoleIndex, &DataRole)> {
        self.data.iter().enumerate().map(|(i, role)| (RoleIndex(i as u8), role))
    }

    /// The in-sync parities: role index and host, in role order.
    pub fn in_sync(&self) -> impl Iterator<Item = (RoleIndex, HostId)> + '_ {
        let k = self.k();
        self.parity.iter().enumerate().filter_map(move |(p, role)| match (role.state, role.host) {
            (ParityState::InSync, Some(host)) => Some((RoleIndex((k + p) as u8), host)),
            _ => None,
        })
    }

    /// The learners: role index, host and the view that appointed each.
    pub fn learners(&self) -> impl Iterator<Item = (RoleIndex, HostId, ViewVersion)> + '_ {
        let k = self.k();
        self.parity.iter().enumerate().filter_map(move |(p, role)| match (role.state, role.host) {
            (ParityState::Learner { since }, Some(host)) => Some((RoleIndex((k + p) as u8), host, since)),
            _ => None,
        })
    }

    /// The data role at `role`, none if that is no data role of this group.
    #[must_use]
    pub fn data_role(&self, role: RoleIndex) -> Option<&DataRole> {
        self.data.get(role.0 as usize)
    }

    /// The parity role at `role` (`k..n`), none if that is no parity role of this group.
    #[must_use]
    pub fn parity_role(&self, role: RoleIndex) -> Option<&ParityRole> {
        self.parity.get((role.0 as usize).checked_sub(self.k())?)
    }

    /// Number of data roles whose bytes may not all be present: fenced, orphaned, rebuilding or lost.
    #[must_use]
    pub fn roles_in_play(&self) -> usize {
        self.data.iter().filter(|role| role.status != RoleStatus::Full).count()
    }

    /// Roles of any kind that `node` hosts here.
    #[must_use]
    pub fn roles_on(&self, node: NodeId) -> usize {
        let primaries = self.data.iter().filter(|r| r.primary.is_some_and(|h| h.node == node)).count();
        let parities = self.parity.iter().filter(|r| r.host.is_some_and(|h| h.node == node)).count();
        primaries + parities
    }

    /// How many further member losses this group can bear without losing data.
    #[must_use]
    pub fn margin(&self) -> usize {
        self.in_sync().count().saturating_sub(self.roles_in_play())
    }
}
