//! Maps that change, logs of that, and what becomes of maps that are told.

use cluster::place;
use types::{
    Applied, Catalog, ChangeLog, ClusterId, ClusterMap, GroupId, HostId, ImpossibleMap, Incarnation, Layout,
    LayoutVersion, MapChanges, MapPart, NodeId, NodeInfo, Pool, Profile,
};

fn host(node: u16) -> HostId {
    HostId { node: NodeId(node), incarnation: Incarnation(1) }
}

fn info(node: u16) -> NodeInfo {
    let address = ([127, 0, 0, 1], 1000 + node).into();
    let zone = String::new();
    NodeInfo {
        host: host(node),
        peer: address,
        memcached: address,
        http: address,
        native: None,
        zone,
        alive: true,
    }
}

/// A map and the log of its changes.
struct Story {
    map: ClusterMap,
    log: ChangeLog,
    /// State of a small generator (splitmix64).
    random: u64,
}

impl Story {
    fn new(seed: u64) -> Self {
        let profile = Profile::rs(3, 2).unwrap();
        let hosts: Vec<HostId> = (0..5).map(host).collect();
        let map = ClusterMap {
            cluster: ClusterId(1),
            version: 7,
            catalog: Catalog::first(profile, 5),
            shards: 1,
            layout: Layout::default(),
            nodes: (0..5).map(info).collect(),
            groups: place(profile, &hosts, 5).unwrap(),
        };
        Self { log: ChangeLog::from_version(map.version), map, random: seed }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// One more version, in which something or other is new.
    fn change(&mut self) {
        self.map.version += 1;
        let parts = match self.below(6) {
            0 => self.change_layout(),
            1 => self.add_pool(),
            2 => self.remove_pool(),
            3 => self.come_or_go(),
            4 => self.change_node(),
            _ => self.change_view(),
        };
        parts.into_iter().for_each(|part| self.log.note(part, self.map.version));
        assert_eq!(self.map.check(), Ok(()));
    }

    fn change_layout(&mut self) -> Vec<MapPart> {
        self.map.layout.version = LayoutVersion(self.map.layout.version.0 + 1);
        vec![MapPart::Layout]
    }

    fn add_pool(&mut self) -> Vec<MapPart> {
        let profile = Profile::rs(2, 1).unwrap();
        let name = format!("pool-{}", self.map.version).parse().unwrap();
        if self.map.catalog.create_pool(name, profile, 2).is_err() {
            return Vec::new();
        }
        let pool = self.map.catalog.pools.last().expect("it was just made").clone();
        let hosts: Vec<HostId> = (0..5).map(host).collect();
        let mut views = place(profile, &hosts, 2).unwrap();
        views.iter_mut().zip(pool.group_ids()).for_each(|(view, group)| view.group = group);
        self.map.groups.extend(views);
        pool.group_ids().map(MapPart::View).chain([MapPart::Catalog]).collect()
    }

    fn remove_pool(&mut self) -> Vec<MapPart> {
        let Some(pool) = self.map.catalog.pools.get(1).map(|pool: &Pool| pool.name.clone()) else {
            return Vec::new();
        };
        self.map.catalog.remove_pool(&pool).unwrap();
        let catalog = &self.map.catalog;
        self.map.groups.retain(|view| catalog.pool_of_group(view.group).is_some());
        vec![MapPart::Catalog]
    }

    fn come_or_go(&mut self) -> Vec<MapPart> {
        let node = 5 + self.below(3) as u16;
        match self.map.nodes.iter().position(|info| info.host.node == NodeId(node)) {
            Some(at) => drop(self.map.nodes.remove(at)),
            None => {
                self.map.nodes.push(info(node));
                self.map.nodes.sort_by_key(|info| info.host.node);
            }
        }
        vec![MapPart::Node(NodeId(node))]
    }

    fn change_node(&mut self) -> Vec<MapPart> {
        let at = self.below(self.map.nodes.len() as u64) as usize;
        self.map.nodes[at].alive ^= true;
        vec![MapPart::Node(self.map.nodes[at].host.node)]
    }

    fn change_view(&mut self) -> Vec<MapPart> {
        let at = self.below(self.map.groups.len() as u64) as usize;
        let view = &mut self.map.groups[at];
        view.version = view.version.next();
        vec![MapPart::View(view.group)]
    }
}

#[test]
fn whoever_is_told_what_has_changed_since_its_version_has_the_map() {
    for seed in 0..50 {
        let mut story = Story::new(seed);
        let mut old = vec![story.map.clone()];
        for _ in 0..40 {
            story.change();
            old.push(story.map.clone());
        }
        for mut map in old {
            let changes = story.log.changes(&story.map, map.version).expect("it remembers all");
            assert_eq!(changes.check(), Ok(()));
            let applied = if map.version == story.map.version { Applied::Nothing } else { Applied::Whole };
            let between = map.changes_to(&story.map);
            let mut other = map.clone();
            assert_eq!((map.apply(&changes), other.apply(&between)), (Ok(applied), Ok(applied)));
            assert_eq!((&map, &other), (&story.map, &story.map));
        }
    }
}

#[test]
fn changes_are_for_all_versions_from_their_base_on() {
    for seed in 0..50 {
        let mut story = Story::new(seed);
        let base = story.map.clone();
        let middle = (0..5).fold(Vec::new(), |mut maps, _| {
            story.change();
            maps.push(story.map.clone());
            maps
        });
        let changes = story.log.changes(&story.map, base.version).expect("it remembers all");
        for mut map in middle {
            map.apply(&changes).expect("it can be");
            assert_eq!(map, story.map);
        }
    }
}

#[test]
fn whoever_lacks_what_was_before_takes_newer_views_and_nothing_else() {
    let mut story = Story::new(1);
    let mut late = story.map.clone();
    story.map.version += 2;
    story.map.layout.version = LayoutVersion(3);
    story.map.groups[2].version = story.map.groups[2].version.next();
    let mut changes = late.changes_to(&story.map);
    changes.since += 1;
    let version = late.version;
    assert_eq!(late.apply(&changes), Ok(Applied::ViewsOnly));
    assert_eq!((late.version, late.layout.version), (version, LayoutVersion(0)));
    assert_eq!(late.groups, story.map.groups);
}

#[test]
fn a_log_that_has_forgotten_says_so() {
    let mut story = Story::new(1);
    let first = story.map.version;
    for _ in 0..=ChangeLog::MAX_PARTS {
        story.map.version += 1;
        // More parts than it remembers, each of which changes once.
        story.log.note(MapPart::View(GroupId(story.map.version as u32)), story.map.version);
    }
    assert_eq!(story.log.changes(&story.map, first), None);
    assert_eq!(story.log.changes(&story.map, story.map.version + 1), None, "nor of what is to come");
    assert!(story.log.changes(&story.map, first + 1).is_some());
}

#[test]
fn what_no_map_can_become_is_an_error_and_changes_nothing() {
    let story = Story::new(1);
    let none = MapChanges::none(story.map.cluster, story.map.version, story.map.version + 1);
    let strange = |group, profile: Profile| {
        let mut view = story.map.groups[0].clone();
        view.group = GroupId(group);
        view.data.truncate(profile.k());
        view
    };
    let cases = [
        MapChanges { views: vec![strange(9, Profile::rs(3, 2).unwrap())], ..none.clone() },
        MapChanges { views: vec![strange(1, Profile::rs(2, 2).unwrap())], ..none.clone() },
        MapChanges { catalog: Some(Catalog::first(Profile::rs(3, 2).unwrap(), 6)), ..none.clone() },
    ];
    for changes in cases {
        let mut map = story.map.clone();
        assert!(map.apply(&changes).is_err(), "{changes:?}");
        assert_eq!(map, story.map);
    }
    let backwards = MapChanges { since: 9, version: 8, ..none.clone() };
    assert_eq!(backwards.check(), Err(ImpossibleMap::Version(8)));
    let twice = MapChanges { nodes: vec![info(1), info(1)], ..none };
    assert_eq!(twice.check(), Err(ImpossibleMap::Nodes));
}
