//! For servers: who has the chunks of a value, by the map, as clients are told that go there themselves.

use types::op::Object;
use types::{
    ClusterMap, Descriptor, Geometry, GroupId, GroupView, MemberId, NamespaceId, NodeId, ObjectId,
    ObjectLayout, RoleIndex,
};

use crate::answer::Meta;
use crate::chunks::{Chunked, FoundChunks, GroupHolders, RoleHolders, Written};
use crate::request::GetAsk;

impl Chunked {
    /// Of a value that is there; none if its reader has to go through a node.
    #[must_use]
    pub fn of(map: &ClusterMap, descriptor: &Descriptor) -> Option<Self> {
        if descriptor.geometry.layout != ObjectLayout::Spread {
            return None;
        }
        let Descriptor { id: object, geometry, groups, exceptions, .. } = descriptor.clone();
        let code = map.catalog.pool_of_group(object.owner.group)?.profile;
        let holders = descriptor.all_groups().into_iter().map(|group| map.group(group).and_then(holders_in));
        let holders = holders.collect::<Option<Vec<GroupHolders>>>()?;
        let are_all = holders.iter().all(|group| group.roles.len() == code.n());
        are_all.then_some(Self { object, geometry, code, groups, exceptions, holders })
    }

    /// Of a value that is to be put into `groups`; none if it has to go through a node, for some role has nobody who would take its
    /// chunks now.
    #[must_use]
    pub fn to_be(
        map: &ClusterMap,
        object: ObjectId,
        geometry: Geometry,
        groups: Vec<GroupId>,
    ) -> Option<Self> {
        let (exceptions, checksum) = (Vec::new(), 0);
        let descriptor = Descriptor { id: object, geometry, groups, exceptions, checksum };
        let chunked = Self::of(map, &descriptor)?;
        let takes = |role: &RoleHolders| role.whole.is_some() || role.filling.is_some();
        let all_take = chunked.holders.iter().all(|group| group.roles.iter().all(takes));
        (descriptor.is_possible() && all_take).then_some(chunked)
    }
}

impl Written {
    /// Whether a value of `namespace` whose key has this owner can lie like that: in groups of its pool that one worker has, and dealt to
    /// as many roles as they have.
    #[must_use]
    pub fn may_be(&self, map: &ClusterMap, namespace: NamespaceId, owner: Option<MemberId>) -> bool {
        let Self { object, geometry, groups } = self;
        let is_of_key = object.namespace == namespace && owner == Some(object.owner);
        let Some(pool) = map.catalog.pool_of(namespace).filter(|_| is_of_key) else { return false };
        let shard = object.owner.group.shard(map.shards);
        let are_there = groups.iter().all(|group| pool.has(*group) && group.shard(map.shards) == shard);
        are_there && pool.profile.k() == usize::from(geometry.k) && self.descriptor(0).is_possible()
    }
}

impl FoundChunks {
    /// Of an item that is in chunks, for a client that wants to go there.
    #[must_use]
    pub fn of(map: &ClusterMap, meta: Meta, get: &GetAsk, object: &Object, pin_us: u64) -> Option<Self> {
        let chunks = Chunked::of(map, &object.descriptor)?;
        let (start, end) = get.wanted(meta.value_len);
        let pin_ms = u32::try_from(pin_us / 1000).unwrap_or(u32::MAX);
        Some(Self { meta, part: (start, end - start), pin: object.pin, pin_ms, chunks })
    }
}

fn holders_in(view: &GroupView) -> Option<GroupHolders> {
    if !view.takes_chunks() {
        return None;
    }
    let node = |holder: Option<types::Holder>| -> Option<NodeId> { holder.map(|holder| holder.host.node) };
    let roles = (0..view.holders.len()).map(|role| {
        let holders = view.holders_of(RoleIndex(role as u8));
        RoleHolders { whole: node(holders.whole), filling: node(holders.filling) }
    });
    Some(GroupHolders { group: view.group, view: view.version, roles: roles.collect() })
}
