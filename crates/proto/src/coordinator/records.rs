//! What a coordinator writes down, and which messages tell of it.

use types::{ClusterMap, Epoch, GroupView, Profile};
use wire::frame::MAX_LONG_BYTES;
use wire::message::FromCoordinator;
use wire::record::{KnownNode, MapHead, NodeRecord, Record, ViewRecord};

use super::nodes::NodeState;

/// Room in a message beside the views of all groups: for the head and the sets of electors.
const BESIDE_VIEWS: usize = MAX_LONG_BYTES / 4;

/// Most bytes of the views of all groups. A node is sent all of them in one message, and answers them in one.
pub(super) const VIEWS_BYTES: usize = MAX_LONG_BYTES - BESIDE_VIEWS;

/// Of a view's record: every role is being rebuilt, has a former primary, is learned by somebody, and has two holders (docs/format.md).
pub(super) fn longest_view_bytes(profile: Profile) -> usize {
    let (k, m) = (profile.k(), profile.m());
    let former = 15 + 10 * (m + 1);
    41 + 36 * k + 11 * m + (20 + 38) * (k + m) + former * k
}

/// Everything of `map` but its views, and what its nodes are like.
pub(super) fn head_of(epoch: Epoch, map: &ClusterMap) -> Record {
    Record::Head(MapHead {
        cluster: map.cluster,
        epoch,
        version: map.version,
        catalog: map.catalog.clone(),
        shards: map.shards,
        layout: map.layout.clone(),
        nodes: map.nodes.iter().map(|info| info.host.node).collect(),
    })
}

/// Everything that there is to record. The head comes last: where it is missing, nothing has formed.
pub(super) fn all_records<'a>(
    epoch: Epoch,
    map: &ClusterMap,
    nodes: impl Iterator<Item = &'a NodeState>,
) -> Vec<Record> {
    let views = map.groups.iter().map(|view| Record::View(view_record(map.version, view)));
    let nodes = nodes.map(|node| node_record(map.version, node.record()));
    views.chain(nodes).chain([head_of(epoch, map)]).collect()
}

/// Whether a message tells of a decision, and so has to wait until that is recorded.
pub(super) fn waits(message: &FromCoordinator) -> bool {
    match message {
        // By name: what slips out before its record is in force may tell of what never will be.
        FromCoordinator::Map(_)
        | FromCoordinator::Changes(_)
        | FromCoordinator::View(_)
        | FromCoordinator::Fence { .. }
        | FromCoordinator::Settle { .. }
        | FromCoordinator::HandOver { .. }
        | FromCoordinator::Confirm { .. }
        // It is answered by whoever has heard what was said before.
        | FromCoordinator::Shares { .. }
        | FromCoordinator::Admin { .. } => true,
        // Fencing is recorded first.
        FromCoordinator::Refused(refused) => refused.fenced,
        FromCoordinator::Alive
        | FromCoordinator::Waiting
        | FromCoordinator::Forming(_)
        | FromCoordinator::Occupied { .. }
        | FromCoordinator::Keep { .. }
        | FromCoordinator::Recall { .. } => false,
    }
}

pub(super) fn node_record(map_version: u64, node: KnownNode) -> Record {
    Record::Node(NodeRecord { map_version, node })
}

pub(super) fn view_record(map_version: u64, view: &GroupView) -> ViewRecord {
    ViewRecord { map_version, view: view.clone() }
}

#[cfg(test)]
mod tests {
    use types::{
        DataRole, Former, GroupId, Holder, Holders, HostId, Incarnation, Learner, NodeId, RoleIndex,
        RoleStatus, Seq, Term, ViewVersion,
    };
    use wire::frame::{Header, encode};

    use super::*;

    /// A message with so many of the longest views.
    fn encoded_bytes(profile: Profile, views: u32) -> usize {
        let host = HostId { node: NodeId(1), incarnation: Incarnation(1) };
        let rebuilding = RoleStatus::Rebuilding { start: Seq(1), wait_us: 1 };
        let data = DataRole { primary: Some(host), term: Term(2), origin: Term(1), status: rebuilding };
        let since = ViewVersion(1);
        let role = |at: usize| RoleIndex(at as u8);
        let (k, m) = (profile.k(), profile.m());
        let former = |at| Former { role: role(at), primary: host, witnesses: vec![host; m + 1] };
        let view = |group| GroupView {
            group: GroupId(group),
            version: since,
            data: vec![data; k],
            parity: vec![Some(host); m],
            learners: (0..k + m).map(|at| Learner { role: role(at), host, since, whole: false }).collect(),
            former: (0..k).map(former).collect(),
            holders: vec![
                Holders {
                    whole: Some(Holder { host, since }),
                    filling: Some(Holder { host, since })
                };
                k + m
            ],
        };
        let records = (0..views).map(|group| Record::View(view_record(1, &view(group)))).collect();
        let electors = Vec::new();
        let keep = FromCoordinator::Keep { epoch: Epoch(1), position: 1, electors, whole: true, records };
        let header = Header { cluster: types::ClusterId(1), source: host, sequence: 0 };
        let mut out = Vec::new();
        encode(&header, &keep, &mut out).expect("it fits");
        out.len()
    }

    #[test]
    fn the_longest_views_are_as_long_as_is_reckoned() {
        for (k, m) in [(2, 1), (3, 2), (10, 4), (32, 8)] {
            let profile = Profile::rs(k, m).unwrap();
            let (one, two) = (encoded_bytes(profile, 1), encoded_bytes(profile, 2));
            assert_eq!(two - one, longest_view_bytes(profile), "rs({k}+{m})");
        }
        let most = types::Catalog::MAX_GROUPS as usize;
        assert!(most * longest_view_bytes(Profile::rs(3, 2).unwrap()) <= VIEWS_BYTES);
    }
}
