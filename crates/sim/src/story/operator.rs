//! What operators say to the coordinator.

use types::{
    AdminCommand, CatalogChange, GroupId, MemberId, Name, NamespaceId, OnFinding, RoleIndex, split_key,
};

use super::told::Story;
use crate::cluster::scrub::start_scrub;

/// Whoever operates the cluster of a story.
#[derive(Debug)]
pub struct Operator<'a> {
    story: &'a mut Story,
}

impl Story {
    /// Whoever operates the cluster.
    pub fn operator(&mut self) -> Operator<'_> {
        Operator { story: self }
    }
}

impl Operator<'_> {
    /// Has `role` built on `node`, to move there.
    ///
    /// # Panics
    /// If that cannot be.
    pub fn move_to(self, role: usize, node: usize) {
        let member = MemberId { group: GroupId(0), role: RoleIndex(role as u8) };
        let host = self.story.world.cluster.nodes[node].id;
        let mut reign = self.story.world.reign();
        let number = reign.appoint(member, host).expect("nothing can move there now");
        reign.after(number);
        self.story.look();
    }

    /// Accepts whatever is lost.
    pub fn accept_losses(self) {
        self.story.world.reign().accept_losses();
        self.story.look();
    }

    /// Gives everything up.
    pub fn reset_cluster(self) {
        self.story.world.reign().operate(AdminCommand::Reset);
        self.story.look();
    }

    /// Those of `keys` that are of a namespace that an operator made.
    #[must_use]
    pub fn named(self, keys: impl Iterator<Item = usize>) -> Vec<usize> {
        let known = self.story.world.clients.keys();
        keys.filter(|key| split_key(&known[*key].bytes).0 != NamespaceId::DEFAULT).collect()
    }

    /// The first namespace of clients' keys is removed, and another one made under its name.
    pub fn make_namespace_anew(self) {
        let mut reign = self.story.world.reign();
        let name: Name = "own-1".parse().expect("a name");
        reign.operate(AdminCommand::Catalog(CatalogChange::RemoveNamespace { name }));
        reign.make_namespaces();
        self.story.look();
    }

    /// Has everything compared with its parities.
    pub fn start_scrub(self, finding: OnFinding) {
        self.story.world.reign().command(start_scrub(finding));
        self.story.look();
    }
}
