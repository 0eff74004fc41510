//! What coordinators write down.

use super::coordinator::MAX_NODES;
use super::{BadBody, Entry, Reader, Wire, Writer, wire_choice, wire_enum, wire_struct};
use crate::record::{KnownNode, MapHead, Record, ViewRecord};

wire_enum!(Record {
    0 => Head { 0: head },
    1 => View { 0: view },
});
wire_struct!(MapHead { cluster, epoch, version, catalog, shards, layout, nodes } if MapHead::is_possible);
wire_struct!(KnownNode { info, fenced });
wire_struct!(ViewRecord { map_version, view } if ViewRecord::is_possible);

impl Entry for KnownNode {
    const MAX_COUNT: u32 = MAX_NODES;
}
