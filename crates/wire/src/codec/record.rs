//! What coordinators write down.

use super::{BadBody, Reader, Wire, Writer, wire_choice, wire_enum, wire_struct};
use crate::record::{KnownNode, MapHead, NodeRecord, Record, ViewRecord};

wire_enum!(Record {
    0 => Head { 0: head },
    1 => View { 0: view },
    2 => Node { 0: node },
});
wire_struct!(MapHead { cluster, epoch, version, catalog, shards, layout, nodes } if MapHead::is_possible);
wire_struct!(KnownNode { info, fenced });
wire_struct!(ViewRecord { map_version, view } if ViewRecord::is_possible);
wire_struct!(NodeRecord { map_version, node } if NodeRecord::is_possible);
