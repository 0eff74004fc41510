//! Messages to and from the coordinator, with views and the map.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use types::{
    ClusterId, ClusterMap, DataRole, Epoch, Former, Forming, GroupView, Holder, Holders, HostId, Incarnation,
    Learner, MapChanges, NodeId, NodeInfo, Profile, RoleIndex, RoleStatus,
};

use super::{
    BadBody, Entry, Reader, Wire, Writer, wire_bounded, wire_choice, wire_enum, wire_newtypes, wire_struct,
};
use crate::message::{Electors, FromCoordinator, KeptRecords, Refused, Registration, ToCoordinator};
use crate::object::ChunkReport;
use crate::record::Record;

wire_newtypes!(ClusterId, NodeId, Incarnation);
wire_bounded!(Epoch);
wire_struct!(HostId { node, incarnation });

/// Most nodes of a map: as many as there are node ids.
pub(super) const MAX_NODES: u32 = 1 << 16;
/// Most groups of a map; the frame's length bounds them sooner.
pub(super) const MAX_GROUPS: u32 = 1 << 20;
/// Most roles of a group.
const MAX_ROLES: u32 = Profile::MAX_K as u32 + Profile::MAX_M as u32;

wire_choice!(ToCoordinator {
    0 => Register { 0: node },
    1 => Heartbeat { host: host, map: map, load: load },
    2 => FetchView { group: group },
    3 => Stalled { group: group, role: role, term: term, view: view, silent: silent },
    4 => Repaired { group: group, role: role, term: term },
    5 => Fenced {
        group: group, role: role, term: term, parity: parity, received: received, applied: applied,
        quiet_us: quiet_us, epoch: epoch
    },
    6 => Settled { group: group, role: role, term: term, parity: parity, epoch: epoch },
    7 => CaughtUp { group: group, role: role, term: term, learner: learner, lesson: lesson },
    8 => GaveUp { group: group, learner: learner, since: since },
    9 => HandedOver { group: group, role: role, term: term, since: since, asked_at: asked_at, epoch: epoch },
    10 => Admin { id: id, request: request },
    11 => Kept { epoch: epoch, position: position },
    12 => Recalled { epoch: epoch, kept: kept },
    13 => Confirmed { group: group, view: view, epoch: epoch },
    14 => Quotas { 0: report },
    15 => Chunks { 0: report },
    16 => Converted { member: member, namespace: namespace, number: number },
    17 => Starved { group: group, role: role, term: term, bytes: bytes },
});
wire_enum!(ChunkReport {
    0 => Open { group: group },
    1 => Filled { group: group, role: role, since: since },
});
wire_choice!(FromCoordinator {
    0 => Map { 0: map },
    1 => View { 0: view },
    2 => Refused { 0: refused },
    3 => Fence { group: group, role: role, term: term, parity: parity, epoch: epoch },
    4 => Settle { group: group, role: role, term: term, parity: parity, upto: upto, epoch: epoch },
    5 => Alive {},
    6 => HandOver { group: group, role: role, term: term, since: since, asked_at: asked_at, epoch: epoch },
    7 => Admin { id: id, reply: reply },
    8 => Occupied { by: by, peer: peer, lease_us: lease_us, cluster: cluster, epoch: epoch },
    9 => Keep { epoch: epoch, position: position, electors: electors, whole: whole, records: records },
    10 => Recall { epoch: epoch },
    11 => Waiting {},
    12 => Confirm { group: group, view: view, epoch: epoch },
    13 => Forming { 0: forming },
    14 => Shares { round: round, grants: grants },
    15 => Changes { 0: changes },
});

// Whoever follows takes the next epoch.
wire_struct!(Registration { info, expect, holds, promised, map } if |it: &Self| it.promised < Epoch::MAX);
wire_struct!(KeptRecords { epoch, position, electors, records } if |kept: &Self| kept.epoch < Epoch::MAX);
wire_struct!(Forming { expected, here });
wire_struct!(Refused { cluster, epoch, fenced, reason });
wire_struct!(ClusterMap { cluster, version, catalog, shards, layout, nodes, groups } checked |map: &Self| {
    map.check().map_err(|why| BadBody::Map(Box::new(why)))
});
wire_struct!(MapChanges { cluster, since, version, catalog, layout, nodes, gone, views } checked |changes: &Self| {
    changes.check().map_err(|why| BadBody::Map(Box::new(why)))
});
wire_struct!(NodeInfo { host, peer, memcached, http, native, zone, alive });
wire_struct!(GroupView { group, version, data, parity, learners, former, holders } checked |view: &Self| {
    view.check().map_err(|why| BadBody::View(Box::new(why)))
});
wire_struct!(DataRole { primary, term, origin, status });
wire_struct!(Former { role, primary, witnesses });
wire_struct!(Learner { role, host, since, whole });
wire_struct!(Holders { whole, filling });
wire_struct!(Holder { host, since });

/// What many are told is made once.
impl<T: Wire> Wire for Arc<T> {
    fn put(&self, out: &mut Writer<'_>) {
        self.as_ref().put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        T::take(from).map(Arc::new)
    }
}

impl Entry for NodeInfo {
    const MAX_COUNT: u32 = MAX_NODES;
}

impl Entry for GroupView {
    const MAX_COUNT: u32 = MAX_GROUPS;
}

/// Nodes that are here.
impl Entry for NodeId {
    const MAX_COUNT: u32 = MAX_NODES;
}

/// Processes of a head. Of the witnesses of a role there are fewer: the view says how many.
impl Entry for HostId {
    const MAX_COUNT: u32 = MAX_NODES;
}

impl Entry for Electors {
    const MAX_COUNT: u32 = KeptRecords::MAX_ELECTORS as u32;
}

/// One of each group and node, and the head; of one that changes often some more.
impl Entry for Record {
    const MAX_COUNT: u32 = 2 * MAX_GROUPS;
}

impl Entry for DataRole {
    const MAX_COUNT: u32 = Profile::MAX_K as u32;
}

/// Hosts of parities.
impl Entry for Option<HostId> {
    const MAX_COUNT: u32 = Profile::MAX_M as u32;
}

impl Entry for Former {
    const MAX_COUNT: u32 = Profile::MAX_K as u32;
}

impl Entry for Holders {
    const MAX_COUNT: u32 = MAX_ROLES;
}

impl Entry for Learner {
    const MAX_COUNT: u32 = MAX_ROLES;
}

/// A member by its role and its host: where a role moves, two hosts have the same one for a while.
impl Wire for (RoleIndex, HostId) {
    fn put(&self, out: &mut Writer<'_>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok((Wire::take(from)?, Wire::take(from)?))
    }
}

/// Each parity role twice, and a mirror.
impl Entry for (RoleIndex, HostId) {
    const MAX_COUNT: u32 = 2 * MAX_ROLES;
}

impl Wire for RoleStatus {
    fn put(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Full => 0u8.put(out),
            Self::Fenced => 1u8.put(out),
            Self::Orphan(end) => {
                2u8.put(out);
                end.put(out);
            }
            Self::Rebuilding { start, wait_us } => {
                3u8.put(out);
                start.put(out);
                wait_us.put(out);
            }
            Self::Lost => 4u8.put(out),
            Self::Accepted => 5u8.put(out),
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(match u8::take(from)? {
            0 => Self::Full,
            1 => Self::Fenced,
            2 => Self::Orphan(Wire::take(from)?),
            3 => Self::Rebuilding { start: Wire::take(from)?, wait_us: Wire::take(from)? },
            4 => Self::Lost,
            5 => Self::Accepted,
            tag => return Err(BadBody::Tag(tag)),
        })
    }
}

/// By its name.
impl Wire for Profile {
    fn put(&self, out: &mut Writer<'_>) {
        self.to_string().put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        String::take(from)?.parse().map_err(|_| BadBody::Profile)
    }
}

/// Flow label and scope of an IPv6 address mean nothing on another machine and are not sent.
impl Wire for SocketAddr {
    fn put(&self, out: &mut Writer<'_>) {
        match self.ip() {
            IpAddr::V4(ip) => {
                4u8.put(out);
                out.bytes(&ip.octets());
            }
            IpAddr::V6(ip) => {
                6u8.put(out);
                out.bytes(&ip.octets());
            }
        }
        self.port().put(out);
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let ip: IpAddr = match u8::take(from)? {
            4 => from.array::<4>()?.into(),
            6 => from.array::<16>()?.into(),
            tag => return Err(BadBody::Tag(tag)),
        };
        Ok(Self::new(ip, Wire::take(from)?))
    }
}
