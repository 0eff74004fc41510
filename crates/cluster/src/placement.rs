//! Placement: which node hosts which role, balanced by kind of role.

use thiserror::Error;

use crate::{DataRole, GroupId, GroupView, HostId, Profile, RoleStatus, Term, ViewVersion};

/// Why no placement exists.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PlacementError {
    /// Two roles of a group would share a node.
    #[error(
        "profile {profile} needs {needed} nodes, there are {nodes}: start more nodes or choose a smaller profile"
    )]
    TooFewNodes {
        /// The profile asked for.
        profile: Profile,
        /// Its roles.
        needed: usize,
        /// Nodes at hand.
        nodes: usize,
    },
}

/// Views of `groups` new groups over `hosts`: role `r` of group `g` lives on host `(g + r) mod hosts`, so that with
/// a multiple of `hosts` groups every node hosts the same number of data and of parity roles.
///
/// # Errors
/// `TooFewNodes` if two roles of a group would share a node.
pub fn place(profile: Profile, hosts: &[HostId], groups: u32) -> Result<Vec<GroupView>, PlacementError> {
    if hosts.len() < profile.n() {
        return Err(PlacementError::TooFewNodes { profile, needed: profile.n(), nodes: hosts.len() });
    }
    let host_of = |group: u32, role: usize| hosts[(group as usize + role) % hosts.len()];
    let view = |group: u32| GroupView {
        group: GroupId(group),
        version: ViewVersion(1),
        data: (0..profile.k())
            .map(|r| DataRole { primary: Some(host_of(group, r)), term: Term(1), status: RoleStatus::Full })
            .collect(),
        parity: (profile.k()..profile.n()).map(|r| Some(host_of(group, r))).collect(),
        learners: Vec::new(),
    };
    Ok((0..groups).map(view).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Incarnation, NodeId};

    #[test]
    fn no_two_roles_share_a_node_and_all_nodes_carry_the_same() {
        let hosts: Vec<_> = (0..7).map(|n| HostId { node: NodeId(n), incarnation: Incarnation(9) }).collect();
        let views = place(Profile::rs(3, 2).unwrap(), &hosts, 14).unwrap();
        for node in 0..7 {
            let node = NodeId(node);
            assert!(views.iter().all(|v| v.roles_on(node) <= 1));
            let data = views.iter().flat_map(|v| &v.data).filter(|r| r.primary.unwrap().node == node).count();
            let parity = views.iter().flat_map(|v| v.in_sync()).filter(|(_, h)| h.node == node).count();
            assert_eq!((data, parity), (6, 4));
        }
    }

    #[test]
    fn too_few_nodes_are_refused() {
        let hosts = [HostId { node: NodeId(0), incarnation: Incarnation(0) }];
        let error = place(Profile::rs(3, 2).unwrap(), &hosts, 1).unwrap_err();
        assert!(error.to_string().contains("needs 5 nodes"));
    }
}
