//! What operators ask, what they are told, and the layout.

use std::collections::BTreeMap;

use types::{
    AdminAnswer, AdminCommand, AdminError, AdminRequest, CatalogChange, Entry as NodeEntry, EvictPolicy,
    Expectations, GroupId, Layout, LayoutVersion, LossPolicy, NamespaceLossPolicy, NodeId, NodeLayout,
    NodeLoad, NodeState, OnFinding, OnLoss, RepairSettings, ScrubProgress, ScrubSettings, Slot, SlotRange,
    StopReport,
};

use super::coordinator::{MAX_GROUPS, MAX_NODES};
use super::{BadBody, Entry, Reader, Wire, Writer, wire_bounded, wire_newtypes, wire_struct};

wire_bounded!(LayoutVersion);
wire_newtypes!(Slot);
wire_struct!(AdminRequest { expect, command });
wire_struct!(Layout { version, nodes, repair, scrub, on_loss });
wire_struct!(SlotRange { first, last });
wire_struct!(NodeLayout { state, zone });
wire_struct!(RepairSettings { paused, bytes_per_second, memory_bytes });
wire_struct!(ScrubSettings { generation, running, repair, bytes_per_second } if has_a_successor);
wire_struct!(ScrubProgress { generation, checked_pages, left_pages, mismatches, corrected });
wire_struct!(StopReport {
    node,
    data_roles,
    parity_roles,
    losses_survived_after,
    groups_lost,
    unheard,
    heartbeat_us
});
wire_struct!(NodeLoad {
    used_bytes,
    limit_bytes,
    member_bytes,
    repair_done_bytes,
    repair_left_bytes,
    repair_bytes_per_second,
    scrub
});
wire_struct!(Expectations { cluster, profile, shards, entry, lease_us });

/// Whether there can be a scrub after this one.
fn has_a_successor(scrub: &ScrubSettings) -> bool {
    scrub.generation <= ScrubSettings::MAX_GENERATION
}

impl Entry for GroupId {
    const MAX_COUNT: u32 = MAX_GROUPS;
}

impl Entry for SlotRange {
    const MAX_COUNT: u32 = MAX_GROUPS;
}

/// Choices without fields, numbered from 0 in this order.
macro_rules! wire_plain_choices {
    ($($type:ident { $($tag:literal => $variant:ident),* })*) => { $(
        impl Wire for $type {
            fn put(&self, out: &mut Writer<'_>) {
                let tag: u8 = match self { $( Self::$variant => $tag, )* };
                tag.put(out);
            }

            fn take(from: &mut Reader) -> Result<Self, BadBody> {
                match u8::take(from)? {
                    $( $tag => Ok(Self::$variant), )*
                    tag => Err(BadBody::Tag(tag)),
                }
            }
        }
    )* };
}

wire_plain_choices! {
    NodeState { 0 => Active, 1 => Draining }
    OnLoss { 0 => Refuse, 1 => Accept }
    LossPolicy { 0 => Error, 1 => Empty }
    EvictPolicy { 0 => Node, 1 => Evict, 2 => Keep }
    NamespaceLossPolicy { 0 => Cluster, 1 => Error, 2 => Empty }
    OnFinding { 0 => Report, 1 => Correct }
    NodeEntry { 0 => Founder, 1 => Joiner }
}

/// A table: its entries with ascending keys.
impl Wire for BTreeMap<NodeId, NodeLayout> {
    fn put(&self, out: &mut Writer<'_>) {
        out.count(self.len(), MAX_NODES);
        for (node, layout) in self {
            node.put(out);
            layout.put(out);
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        let mut table = Self::new();
        for _ in 0..from.count(MAX_NODES)? {
            let node = NodeId::take(from)?;
            // In another order it would be a second encoding of the same table.
            if table.last_key_value().is_some_and(|(last, _)| *last >= node) {
                return Err(BadBody::Order);
            }
            table.insert(node, Wire::take(from)?);
        }
        Ok(table)
    }
}

impl Wire for AdminCommand {
    fn put(&self, out: &mut Writer<'_>) {
        match self {
            Self::Drain { node } => put_tagged(0, node, out),
            Self::Undrain { node } => put_tagged(1, node, out),
            Self::Fence { node, loss } => {
                put_tagged(2, node, out);
                loss.put(out);
            }
            Self::CanStop { node, heard_within_us } => {
                put_tagged(3, node, out);
                heard_within_us.put(out);
            }
            Self::PauseRepair => 4u8.put(out),
            Self::ResumeRepair => 5u8.put(out),
            Self::LimitRepair { bytes_per_second, memory_bytes } => {
                put_tagged(6, bytes_per_second, out);
                memory_bytes.put(out);
            }
            Self::Apply { layout } => put_tagged(7, layout, out),
            Self::StartScrub { finding, bytes_per_second } => {
                put_tagged(8, finding, out);
                bytes_per_second.put(out);
            }
            Self::StopScrub => 9u8.put(out),
            Self::Remove { node } => put_tagged(10, node, out),
            Self::AcceptLoss { pool, slots, namespace } => {
                put_tagged(11, pool, out);
                slots.put(out);
                namespace.put(out);
            }
            Self::SetLossPolicy { policy } => put_tagged(12, policy, out),
            Self::Reset => 13u8.put(out),
            Self::Catalog(change) => put_tagged(14, change, out),
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(match u8::take(from)? {
            0 => Self::Drain { node: Wire::take(from)? },
            1 => Self::Undrain { node: Wire::take(from)? },
            2 => Self::Fence { node: Wire::take(from)?, loss: Wire::take(from)? },
            3 => Self::CanStop { node: Wire::take(from)?, heard_within_us: Wire::take(from)? },
            4 => Self::PauseRepair,
            5 => Self::ResumeRepair,
            6 => Self::LimitRepair { bytes_per_second: Wire::take(from)?, memory_bytes: Wire::take(from)? },
            7 => Self::Apply { layout: Wire::take(from)? },
            8 => Self::StartScrub { finding: Wire::take(from)?, bytes_per_second: Wire::take(from)? },
            9 => Self::StopScrub,
            10 => Self::Remove { node: Wire::take(from)? },
            11 => Self::AcceptLoss {
                pool: Wire::take(from)?,
                slots: Wire::take(from)?,
                namespace: Wire::take(from)?,
            },
            12 => Self::SetLossPolicy { policy: Wire::take(from)? },
            13 => Self::Reset,
            14 => Self::Catalog(Wire::take(from)?),
            tag => return Err(BadBody::Tag(tag)),
        })
    }
}

impl Wire for CatalogChange {
    fn put(&self, out: &mut Writer<'_>) {
        match self {
            Self::CreatePool { name, profile, groups } => {
                put_tagged(0, name, out);
                profile.put(out);
                groups.put(out);
            }
            Self::RemovePool { name } => put_tagged(1, name, out),
            Self::CreateNamespace { name, pool, policy } => {
                put_tagged(2, name, out);
                pool.put(out);
                policy.put(out);
            }
            Self::SetPolicy { name, change } => {
                put_tagged(3, name, out);
                change.put(out);
            }
            Self::RemoveNamespace { name } => put_tagged(4, name, out),
            Self::ConvertNamespace { name, to } => {
                put_tagged(5, name, out);
                to.put(out);
            }
            Self::PauseConversion { name, paused } => {
                put_tagged(6, name, out);
                paused.put(out);
            }
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(match u8::take(from)? {
            0 => Self::CreatePool {
                name: Wire::take(from)?,
                profile: Wire::take(from)?,
                groups: Wire::take(from)?,
            },
            1 => Self::RemovePool { name: Wire::take(from)? },
            2 => Self::CreateNamespace {
                name: Wire::take(from)?,
                pool: Wire::take(from)?,
                policy: Wire::take(from)?,
            },
            3 => Self::SetPolicy { name: Wire::take(from)?, change: Wire::take(from)? },
            4 => Self::RemoveNamespace { name: Wire::take(from)? },
            5 => Self::ConvertNamespace { name: Wire::take(from)?, to: Wire::take(from)? },
            6 => Self::PauseConversion { name: Wire::take(from)?, paused: Wire::take(from)? },
            tag => return Err(BadBody::Tag(tag)),
        })
    }
}

impl Wire for AdminAnswer {
    fn put(&self, out: &mut Writer<'_>) {
        match self {
            Self::Layout(layout) => put_tagged(0, layout, out),
            Self::CanStop(report) => put_tagged(1, report, out),
            Self::Accepted(slots) => put_tagged(2, slots, out),
            Self::Catalog(catalog) => put_tagged(3, catalog, out),
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(match u8::take(from)? {
            0 => Self::Layout(Wire::take(from)?),
            1 => Self::CanStop(Wire::take(from)?),
            2 => Self::Accepted(Wire::take(from)?),
            3 => Self::Catalog(Wire::take(from)?),
            tag => return Err(BadBody::Tag(tag)),
        })
    }
}

impl Wire for AdminError {
    fn put(&self, out: &mut Writer<'_>) {
        match self {
            Self::NotFormed => 0u8.put(out),
            Self::VersionConflict { named, have } => {
                put_tagged(1, named, out);
                have.put(out);
            }
            Self::UnknownNode { node } => put_tagged(2, node, out),
            Self::NotEnoughNodes { node, left, profile, needed } => {
                put_tagged(3, node, out);
                left.put(out);
                profile.put(out);
                needed.put(out);
            }
            Self::WouldLoseData { reason, way_out } => {
                put_tagged(4, reason, out);
                way_out.put(out);
            }
            Self::BadLayout { reason } => put_tagged(5, reason, out),
            Self::StillThere { node, reason, way_out } => {
                put_tagged(6, node, out);
                reason.put(out);
                way_out.put(out);
            }
            Self::BadCatalog { reason } => put_tagged(7, reason, out),
        }
    }

    fn take(from: &mut Reader) -> Result<Self, BadBody> {
        Ok(match u8::take(from)? {
            0 => Self::NotFormed,
            1 => Self::VersionConflict { named: Wire::take(from)?, have: Wire::take(from)? },
            2 => Self::UnknownNode { node: Wire::take(from)? },
            3 => Self::NotEnoughNodes {
                node: Wire::take(from)?,
                left: Wire::take(from)?,
                profile: Wire::take(from)?,
                needed: Wire::take(from)?,
            },
            4 => Self::WouldLoseData { reason: Wire::take(from)?, way_out: Wire::take(from)? },
            5 => Self::BadLayout { reason: Wire::take(from)? },
            6 => Self::StillThere {
                node: Wire::take(from)?,
                reason: Wire::take(from)?,
                way_out: Wire::take(from)?,
            },
            7 => Self::BadCatalog { reason: Wire::take(from)? },
            tag => return Err(BadBody::Tag(tag)),
        })
    }
}

/// The number of a choice and its first field.
fn put_tagged(tag: u8, field: &impl Wire, out: &mut Writer<'_>) {
    tag.put(out);
    field.put(out);
}
