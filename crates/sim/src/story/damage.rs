//! Memory goes bad.

use store::Found;
use types::{Addr, GroupId, MemberId, RoleIndex};

use super::told::Story;
use crate::cluster::inspect::Members;

impl Story {
    /// Flips the bits of `mask` in a byte of what `node` holds for `role`.
    pub fn damage(&mut self, node: usize, role: usize, byte: usize, mask: u8) {
        self.world.checks.are_damaged(true);
        let member = MemberId { group: GroupId(0), role: RoleIndex(role as u8) };
        let host = self.world.cluster.nodes.hosts_on(node).start;
        if let Some(machine) = self.world.cluster.nodes.host_mut(host) {
            machine.damage(member, byte, mask);
        }
    }

    /// What was damaged is right again: from now on everything is looked at as before.
    pub fn is_sound_again(&mut self) {
        self.world.checks.are_damaged(false);
    }

    /// Where the item of `key` lies.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn slot_of(&self, key: usize) -> Addr {
        let key = &self.world.clients.keys()[key];
        let members = Members::of(&self.world.cluster.nodes, self.view());
        let primary = members.data[usize::from(key.member.role.0)].as_ref().expect("the role is served");
        match primary.store.find(key.hash, &key.bytes) {
            Found::Hit(addr, _) => addr,
            other => panic!("the item is not there: {other:?}"),
        }
    }
}
