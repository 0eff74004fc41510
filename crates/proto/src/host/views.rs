//! What a host knows of the cluster: the map with its views, and where keys lie by it (`homes`).

use std::collections::BTreeSet;

use types::op::{Failure, Op, Request};
use types::{
    Applied, ClusterId, ClusterMap, FastMap, GroupId, GroupView, HostId, ImpossibleMap, KeyHash, MapChanges,
    MemberId, NamespaceId, Scan, SlotRange, Time, split_key,
};

use super::driver::Place;
use super::homes::{After, Homes};
use super::zones::Zones;
use crate::{Rules, Timing};

/// See the module.
#[derive(Default)]
pub(crate) struct Views {
    map: Option<ClusterMap>,
    /// Those of the map's catalog.
    homes: Homes,
    /// Those of its nodes.
    zones: Zones,
    /// When a group's view was last asked for.
    asked: FastMap<GroupId, Time>,
}

/// What has become of the map by changes.
#[derive(Default)]
pub(super) struct Adopted {
    /// Whether all that has changed is known.
    pub is_whole: bool,
    /// Groups whose views are new or newer.
    pub views: BTreeSet<GroupId>,
}

impl Views {
    pub(crate) fn map(&self) -> Option<&ClusterMap> {
        self.map.as_ref()
    }

    /// Where the map's nodes are.
    pub(crate) fn zones(&self) -> &Zones {
        &self.zones
    }

    pub(crate) fn group(&self, group: GroupId) -> Option<&GroupView> {
        self.map.as_ref()?.group(group)
    }

    /// Where a key is.
    pub(crate) fn locate(&self, key: &[u8]) -> Place {
        let Some(map) = &self.map else { return place_without_map(key) };
        let hash = KeyHash::of(map.cluster, key);
        let id = split_key(key).0;
        if let Some(home) = self.homes.find(id) {
            return home.place(hash);
        }
        // One with a number that is still to be given is of a newer map, which is on its way.
        let refusal = map.catalog.is_gone(id).then_some(Failure::NoNamespace);
        Place { hash, member: None, refusal }
    }

    /// Where the chunks of a value go that is written under this key now.
    pub(crate) fn locate_chunks(&self, key: &[u8]) -> Place {
        let hash = self.map.as_ref().map(|map| KeyHash::of(map.cluster, key));
        let home = hash.zip(self.homes.find(split_key(key).0));
        home.map_or_else(|| self.locate(key), |(hash, home)| home.place_of_chunks(hash))
    }

    /// Where a request goes: by its key, or to all of `member` if it has none.
    pub(super) fn place_of(&self, member: Option<MemberId>, request: &Request) -> Place {
        match (&request.op, member, request.departure()) {
            (Op::Scan(scan), ..) => self.locate_scan(scan),
            (_, Some(member), _) if request.key.is_none() => Place::of(member),
            (Op::Object(op), ..) if op.for_owner().is_some() => {
                Place { member: op.for_owner(), refusal: None, ..self.locate(request.key_bytes()) }
            }
            (.., None) => self.locate(request.key_bytes()),
            (.., Some(departure)) => match self.locate_after(request.key_bytes(), departure.number) {
                After::Next(place) | After::Home(place) => place,
                After::NewerMap => Place { member: None, ..self.locate(request.key_bytes()) },
            },
        }
    }

    /// Where a key is that has left its role by conversion `number` of its namespace.
    pub(super) fn locate_after(&self, key: &[u8], number: u32) -> After {
        let hash = self.map.as_ref().map(|map| KeyHash::of(map.cluster, key));
        let home = hash.zip(self.homes.find(split_key(key).0));
        home.map_or_else(|| After::Home(self.locate(key)), |(hash, home)| home.place_after(hash, number))
    }

    /// How often `namespace` has begun to move to another pool; none if there is no such namespace.
    pub(super) fn conversions_of(&self, namespace: NamespaceId) -> Option<u32> {
        let known = self.map.as_ref()?.catalog.namespace(namespace)?;
        Some(known.conversions)
    }

    /// Where the keys are that a scan is about.
    pub(crate) fn locate_scan(&self, scan: &Scan) -> Place {
        let nowhere = Place { hash: KeyHash(0), member: None, refusal: None };
        let Some(map) = &self.map else { return nowhere };
        let Some(home) = self.homes.find(scan.namespace) else {
            let refusal = map.catalog.is_gone(scan.namespace).then_some(Failure::NoNamespace);
            return Place { refusal, ..nowhere };
        };
        // Where it moves, keys are at roles of either pool, and go from one to the other.
        if map.catalog.target_of(scan.namespace).is_some() {
            return Place { refusal: Some(Failure::Unavailable), ..nowhere };
        }
        let pool = map.catalog.pool_of(scan.namespace);
        let range = SlotRange { first: scan.slot, last: scan.slot };
        match pool.and_then(|pool| pool.whole_roles(range)) {
            Some(slots) => home.place_of_slot(scan.slot, slots),
            // There is no such slot.
            None => Place { refusal: Some(Failure::TooLarge), ..nowhere },
        }
    }

    /// Whether `member` is a data role.
    pub(super) fn is_primary_role(&self, member: MemberId) -> bool {
        self.group(member.group).is_some_and(|view| usize::from(member.role.0) < view.k())
    }

    /// Whether `shard` of each node serves the group.
    pub(crate) fn is_of_shard(&self, group: GroupId, shard: u16) -> bool {
        self.map.as_ref().is_some_and(|map| group.shard(map.shards) == shard)
    }

    /// The first map.
    pub(crate) fn begin(&mut self, map: ClusterMap) {
        self.homes = Homes::of(&map.catalog);
        self.zones = Zones::of_nodes(&map.nodes);
        self.map = Some(map);
    }

    /// What has changed of the map.
    ///
    /// # Errors
    /// Why the map that would come of it cannot be; then nothing has changed.
    pub(super) fn adopt_changes(
        &mut self,
        changes: &MapChanges,
        rules: Rules,
        host: HostId,
    ) -> Result<Adopted, ImpossibleMap> {
        let lacks_base = self.map.as_ref().is_some_and(|map| map.version < changes.since);
        let is_early = |view: &&GroupView| {
            rules.conversions().primaries_know_the_map(lacks_base && self.appoints(view, host))
        };
        let early: Vec<GroupId> = changes.views.iter().filter(is_early).map(|view| view.group).collect();
        if !early.is_empty() {
            let mut changes = changes.clone();
            changes.views.retain(|view| !early.contains(&view.group));
            return self.adopt_changes(&changes, rules, host);
        }
        let Some(map) = &mut self.map else { return Ok(Adopted::default()) };
        let is_newer =
            |view: &&GroupView| map.group(view.group).is_none_or(|known| known.version < view.version);
        let newer: Vec<GroupId> = changes.views.iter().filter(is_newer).map(|view| view.group).collect();
        let is_whole = match rules.changes_have_a_base() {
            true => map.apply(changes)?,
            false => map.apply(&MapChanges { since: 0, ..changes.clone() })?,
        } == Applied::Whole;
        if is_whole && changes.catalog.is_some() {
            self.homes = Homes::of(&map.catalog);
            self.asked.retain(|group, _| map.group(*group).is_some());
        }
        if is_whole && !(changes.nodes.is_empty() && changes.gone.is_empty()) {
            self.zones = Zones::of_nodes(&map.nodes);
        }
        let views: BTreeSet<GroupId> =
            newer.into_iter().filter(|group| map.group(*group).is_some()).collect();
        for group in &views {
            self.asked.remove(group);
        }
        Ok(Adopted { is_whole, views })
    }

    /// Whether `view` makes `host` the primary of a data role for a term that is not known here.
    pub(super) fn appoints(&self, view: &GroupView, host: HostId) -> bool {
        let known = self.group(view.group);
        view.data_roles().any(|(role, data)| {
            let before = known.and_then(|known| known.data_role(role));
            data.primary == Some(host) && before.is_none_or(|before| before.term < data.term)
        })
    }

    /// A group's view; whether it is newer than the one known.
    pub(super) fn adopt(&mut self, view: &GroupView) -> bool {
        let Some(map) = &mut self.map else { return false };
        if !map.has_place_for(view) {
            tracing::error!(group = %view.group, view = %view.version, "a view that this map has no place for");
            return false;
        }
        let newer = map.adopt(view.clone());
        if newer {
            self.asked.remove(&view.group);
        }
        newer
    }

    /// Whether to ask for the view of `group` now: once per heartbeat.
    pub(super) fn may_ask(&mut self, group: GroupId, now: Time, timing: &Timing) -> bool {
        let recent = |at: &Time| now.since(*at) < timing.heartbeat_us;
        let due = !self.asked.get(&group).is_some_and(recent);
        if due {
            self.asked.insert(group, now);
        }
        due
    }
}

/// Where a key is of which nothing is known yet.
#[cold]
fn place_without_map(key: &[u8]) -> Place {
    // The key of a namespace by a name that no map has said the number of. Once one has, it cannot be put into the key any more.
    let refusal = (split_key(key).0 >= NamespaceId::MAX).then_some(Failure::Unavailable);
    Place { hash: KeyHash::of(ClusterId(0), key), member: None, refusal }
}
