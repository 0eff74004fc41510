//! How a pool deals its hash slots to its data roles.

use crate::{GroupId, KeyHash, MemberId, RoleIndex, Slot};

/// All that finding the data role of a key takes of a pool. Slots are dealt to data roles in contiguous, equal ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deal {
    pub(crate) first_group: GroupId,
    pub(crate) groups: u32,
    pub(crate) data_roles: u64,
    pub(crate) slot_bits: u8,
}

impl Deal {
    /// The slot of what has this hash.
    #[must_use]
    #[inline]
    pub fn slot_of(&self, hash: KeyHash) -> Slot {
        Slot((hash.0 >> (u64::BITS - u32::from(self.slot_bits))) as u32)
    }

    /// The data role that holds what has this hash.
    #[must_use]
    #[inline]
    pub fn member_of(&self, hash: KeyHash) -> MemberId {
        self.member_of_slot(self.slot_of(hash))
    }

    /// The data role that holds `slot`.
    #[must_use]
    #[inline]
    pub fn member_of_slot(&self, slot: Slot) -> MemberId {
        // There are no more data roles than slots, whose numbers have 24 bits.
        let index = ((u64::from(slot.0) * self.data_roles) >> self.slot_bits) as u32;
        let groups = self.groups.max(1);
        // Neighbouring ranges go to different groups, so that a scan of the keyspace spreads over the nodes.
        MemberId {
            group: GroupId(self.first_group.0 + index % groups),
            role: RoleIndex((index / groups) as u8),
        }
    }
}
