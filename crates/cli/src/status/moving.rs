//! Namespaces that move to another pool: how far that has come, and what it waits for.

use serde::Serialize;
use server::NamespaceStatus;
use types::{Catalog, ClusterMap, DataRole, Name, Namespace, NamespaceId, NodeId, Pool, RoleStatus};

use super::survey::Survey;
use crate::words::{self, count};

/// A namespace that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moving {
    /// Which.
    pub namespace: Name,
    /// The pool that it leaves.
    pub from: Name,
    /// The pool that it moves to.
    pub to: Name,
    /// Whether operators let it stand still.
    pub paused: bool,
    /// Items that are still in the former pool, if nodes tell.
    pub items_left: Option<u64>,
    /// What some of its items wait for, in words.
    pub waits_for: Vec<String>,
}

impl Moving {
    /// All that move.
    pub fn all(survey: &Survey) -> Vec<Self> {
        let catalog = &survey.map.catalog;
        catalog.namespaces.iter().filter_map(|known| Self::of(catalog, known, Some(survey))).collect()
    }

    /// How far `namespace` has come, if it moves by `catalog`, which may be newer than the map of who was `seen`.
    pub fn of(catalog: &Catalog, namespace: &Namespace, seen: Option<&Survey>) -> Option<Self> {
        let conversion = namespace.conversion?;
        let (from, to) = (catalog.pool(namespace.pool)?, catalog.pool(conversion.to)?);
        let mut moving = Self {
            namespace: namespace.name.clone(),
            from: from.name.clone(),
            to: to.name.clone(),
            paused: conversion.paused,
            items_left: None,
            waits_for: Vec::new(),
        };
        if let Some(Survey { map, nodes, assessment, .. }) = seen {
            let used: Vec<NamespaceStatus> =
                nodes.iter().flat_map(|node| &node.namespaces).copied().collect();
            moving.items_left = Some(items_left(&used, namespace.id));
            moving.waits_for = [from, to].iter().flat_map(|pool| waits_in(map, pool)).collect();
            if map.layout.repair.paused {
                moving.waits_for.push("repair is paused (`gestalt repair resume`)".to_owned());
            }
            moving.waits_for.extend(waits_of(namespace, &assessment.refusing_nodes));
        }
        Some(moving)
    }

    /// `moving to b: 12 items left; it waits for ...`.
    pub fn words(&self) -> String {
        let left = match self.items_left {
            Some(left) => words::count_u64(left, "item left", "items left"),
            None => "no node tells how many items are left".to_owned(),
        };
        let paused = match self.paused {
            true => {
                format!(
                    "; it stands still: `gestalt namespace convert {} --resume` lets it go on",
                    self.namespace
                )
            }
            false => String::new(),
        };
        let waits = match self.waits_for.as_slice() {
            [] => String::new(),
            waits => format!("; it waits: {}", waits.join(", ")),
        };
        format!("moving to {}: {left}{paused}{waits}", self.to)
    }
}

/// Items of a namespace that are still in its former pool.
pub fn items_left(used: &[NamespaceStatus], namespace: NamespaceId) -> u64 {
    used.iter().filter(|known| known.namespace == namespace).map(|known| known.leaving_items).sum()
}

/// What cannot be given or taken because of roles of `pool`.
fn waits_in(map: &ClusterMap, pool: &Pool) -> Vec<String> {
    let has_nobody = |data: &DataRole| matches!(data.status, RoleStatus::Fenced | RoleStatus::Orphan(_));
    let of_pool = |is_meant: fn(&DataRole) -> bool| {
        map.members_that(is_meant).filter(|member| pool.has(member.group)).count()
    };
    let (unserved, lost) = (of_pool(has_nobody), of_pool(|data| data.status.is_lost()));
    let roles = |number: usize| format!("{} of pool {}", count(number, "data role", "data roles"), pool.name);
    let unserved = (unserved > 0).then(|| format!("{} without a primary", roles(unserved)));
    let lost = (lost > 0).then(|| format!("{} lost (`gestalt lost list`)", roles(lost)));
    unserved.into_iter().chain(lost).collect()
}

/// What it waits for of its own: lost slots that nobody has given up, and room.
fn waits_of(namespace: &Namespace, refusing: &[NodeId]) -> Vec<String> {
    let name = &namespace.name;
    let mut waits = Vec::new();
    if !namespace.lost.is_empty() {
        waits.push(format!("lost slots (`gestalt lost accept --all --namespace {name}` gives them up)"));
    }
    if !refusing.is_empty() {
        waits.push(format!("no memory at {}", words::nodes(refusing)));
    }
    waits
}

#[cfg(test)]
mod tests {
    use cluster::place;
    use types::{ClusterId, HostId, Incarnation, Policy, Profile, Slot, SlotRange};

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Namespace `n` moves from the default pool to `b`, which is of no interest to the views here.
    fn map() -> ClusterMap {
        let hosts: Vec<_> =
            (0..5).map(|node| HostId { node: NodeId(node), incarnation: Incarnation(1) }).collect();
        let profile = Profile::rs(3, 2).unwrap();
        let groups = place(profile, &hosts, 5).unwrap();
        let mut catalog = Catalog::first(profile, 5);
        catalog.create_pool(name("b"), "rep(3)".parse().unwrap(), 5).unwrap();
        let policy = Policy { quota_bytes: 3_000, ..Policy::default() };
        catalog.create_namespace(name("n"), &Name::default_name(), policy).unwrap();
        catalog.convert(&name("n"), &name("b")).unwrap();
        let (layout, nodes) = (Default::default(), vec![]);
        ClusterMap { cluster: ClusterId(1), version: 3, catalog, shards: 1, layout, nodes, groups }
    }

    fn moving(map: &ClusterMap) -> Moving {
        Moving::of(&map.catalog, map.catalog.namespace_named(&name("n")).unwrap(), None).unwrap()
    }

    #[test]
    fn it_is_said_how_far_a_namespace_has_come_and_whether_it_stands_still() {
        let mut map = map();
        assert!(moving(&map).words().starts_with("moving to b: no node tells"));
        let one = Moving { items_left: Some(1), ..moving(&map) };
        assert_eq!(one.words(), "moving to b: 1 item left");
        map.catalog.pause_conversion(&name("n"), true).unwrap();
        let paused = Moving { items_left: Some(1_200), ..moving(&map) };
        let words = paused.words();
        assert!(words.starts_with("moving to b: 1200 items left; it stands still: "), "{words}");
        assert!(words.contains("`gestalt namespace convert n --resume`"), "{words}");
        let default = &map.catalog.namespaces[0];
        assert_eq!(Moving::of(&map.catalog, default, None), None);
    }

    #[test]
    fn items_are_left_at_all_nodes_that_tell() {
        let of_node = |namespace: u32, leaving_items| NamespaceStatus {
            namespace: NamespaceId(namespace),
            leaving_items,
            ..NamespaceStatus::default()
        };
        let used = [of_node(1, 3), of_node(2, 50), of_node(1, 4)];
        assert_eq!([0, 1, 2].map(|namespace| items_left(&used, NamespaceId(namespace))), [0, 7, 50]);
    }

    #[test]
    fn roles_that_nobody_serves_or_that_are_lost_are_waited_for() {
        let mut map = map();
        let pool = map.catalog.pools[0].clone();
        assert_eq!(waits_in(&map, &pool), Vec::<String>::new());
        map.groups[0].data[0].status = RoleStatus::Fenced;
        map.groups[1].data[2].status = RoleStatus::Fenced;
        map.groups[2].data[1].status = RoleStatus::Lost;
        let waits = waits_in(&map, &pool);
        assert_eq!(waits[0], "2 data roles of pool default without a primary");
        assert_eq!(waits[1], "1 data role of pool default lost (`gestalt lost list`)");
        assert_eq!(waits_in(&map, &map.catalog.pools[1]), Vec::<String>::new());
    }

    #[test]
    fn lost_slots_and_want_of_room_are_waited_for() {
        let mut map = map();
        let waits = |map: &ClusterMap, refusing: &[NodeId]| {
            waits_of(map.catalog.namespace(NamespaceId(1)).unwrap(), refusing)
        };
        assert_eq!(waits(&map, &[]), Vec::<String>::new());
        assert_eq!(waits(&map, &[NodeId(1), NodeId(4)]), ["no memory at nodes 1, 4"]);
        map.catalog.namespaces[1].lost = vec![SlotRange { first: Slot(3), last: Slot(9) }];
        assert!(waits(&map, &[])[0].contains("`gestalt lost accept --all --namespace n`"));
    }
}
