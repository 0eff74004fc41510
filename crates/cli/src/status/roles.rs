//! The roles of a group, in words.

use serde::Serialize;
use types::{GroupView, HostId, RoleIndex, RoleStatus};

/// One role of a group, in words.
#[derive(Clone, Debug, Serialize)]
pub struct RoleReport {
    /// Its index.
    pub role: RoleIndex,
    /// `data` or `parity`.
    pub kind: &'static str,
    /// Who hosts it.
    pub host: Option<HostId>,
    /// Where it stands.
    pub state: &'static str,
}

/// The roles of a group, data first.
pub fn roles_of(group: &GroupView) -> Vec<RoleReport> {
    let data = group.data_roles().map(|(role, known)| RoleReport {
        role,
        kind: "data",
        host: known.primary,
        state: match known.status {
            RoleStatus::Full => "full",
            RoleStatus::Fenced => "fenced",
            RoleStatus::Orphan(_) => "orphan",
            RoleStatus::Rebuilding { .. } => "rebuilding",
            RoleStatus::Lost => "lost",
            RoleStatus::Accepted => "accepted",
        },
    });
    let k = group.k();
    let parity = group.parity.iter().enumerate().map(|(index, host)| RoleReport {
        role: RoleIndex((k + index) as u8),
        kind: "parity",
        host: *host,
        state: if host.is_some() { "in_sync" } else { "absent" },
    });
    let learners = group.learners.iter().map(|learner| RoleReport {
        role: learner.role,
        kind: if usize::from(learner.role.0) < k { "mirror" } else { "parity" },
        host: Some(learner.host),
        state: if learner.whole { "whole" } else { "learner" },
    });
    data.chain(parity).chain(learners).collect()
}
