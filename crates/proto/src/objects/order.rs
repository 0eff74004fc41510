//! What holders and readers of this host want of graphs, and what they get.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use graph::Part;
use types::{GroupId, MemberId, RoleIndex, checksum};

use super::names::GatherId;

/// For whom chunks are made, and the number that they are known by there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Purpose {
    pub whose: Whose,
    pub number: u64,
}

/// Who wants chunks made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// A holder that lacks them.
    Holder(MemberId),
    /// Somebody who reads what lies in them.
    Reader(GatherId),
}

impl Whose {
    pub(super) fn is_holder(self) -> bool {
        matches!(self, Self::Holder(_))
    }
}

/// Chunks, or a part of one, that are to be made.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub purpose: Purpose,
    pub group: GroupId,
    /// Of which roles.
    pub wanted: Vec<RoleIndex>,
    /// Which, one behind the other.
    pub strand: Vec<Part>,
    /// CRC32C that each of them should have where one role is wanted; empty if nobody knows, as of a part of a chunk.
    pub sums: Vec<u32>,
}

/// What has become of an order.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub purpose: Purpose,
    /// The bytes of the strand by role; none if they could not be made by a graph.
    pub bytes: Option<BTreeMap<RoleIndex, Bytes>>,
}

impl Order {
    pub(super) fn len(&self) -> u32 {
        self.strand.iter().map(|part| part.len).sum()
    }

    /// Whether this is what was wanted, as far as anybody knows.
    pub(super) fn is_right(&self, staged: &Staged) -> bool {
        let is_whole = |role: &RoleIndex| staged.get(role).is_some_and(|it| it.len() == self.len() as usize);
        self.wanted.iter().all(is_whole) && staged.values().all(|bytes| self.has_sums(bytes))
    }

    fn has_sums(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        self.strand.iter().zip(&self.sums).all(|(part, sum)| {
            let Some((chunk, behind)) = rest.split_at_checked(part.len as usize) else { return false };
            rest = behind;
            checksum(chunk) == *sum
        })
    }
}

/// What a run has written so far, by roles.
pub(super) type Staged = BTreeMap<RoleIndex, BytesMut>;
