//! Namespaces that move to another pool: when the coordinator takes it for done.

use types::{CatalogChange, Conversion, Name, NamespaceId, Policy, PoolId};

use super::*;

const NAMESPACE: NamespaceId = NamespaceId(1);

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The group of pool `b`, whose one data role anybody may serve.
const GROUP_OF_B: GroupId = GroupId(1);

/// Six nodes, pool `b` beside the default one, and namespace `n` on its way there.
struct Story(Stage);

impl Story {
    fn new() -> Self {
        let mut story = Self(Stage::new(6));
        let profile = "rep(2)".parse().unwrap();
        story.ask(CatalogChange::CreatePool { name: name("b"), profile, groups: Some(1) });
        let (pool, policy) = (Name::default_name(), Policy::default());
        story.ask(CatalogChange::CreateNamespace { name: name("n"), pool, policy });
        story.convert("b");
        story
    }

    fn ask(&mut self, change: CatalogChange) {
        let request = AdminRequest { expect: None, command: AdminCommand::Catalog(change) };
        self.0.coordinator.administer(self.0.at(), &request).unwrap();
        self.0.told();
    }

    fn convert(&mut self, to: &str) {
        self.ask(CatalogChange::ConvertNamespace { name: name("n"), to: name(to) });
    }

    /// Node `from` says that data role `member` has nothing left, in conversion `number`.
    fn says_of(&mut self, from: u16, member: MemberId, number: u32) {
        let told = self.0.hear(from, ToCoordinator::Converted { member, namespace: NAMESPACE, number });
        assert_eq!(told, [], "nobody is asked, and no link closed");
    }

    /// The primary of a data role of the default pool says so of the first conversion.
    fn says(&mut self, role: u8) {
        self.says_of(self.0.primary(role).unwrap(), member(role), 1);
    }

    /// The pool that it is in, and the one that it moves to.
    fn pools(&self) -> (u32, Option<u32>) {
        let known = self.0.coordinator.map().unwrap().catalog.namespace(NAMESPACE).unwrap();
        (known.pool.0, known.conversion.map(|Conversion { to, .. }| to.0))
    }

    fn kept(&self) -> usize {
        self.0.coordinator.conversions.kept()
    }
}

const UNDER_WAY: (u32, Option<u32>) = (0, Some(1));
const OVER: (u32, Option<u32>) = (1, None);

#[test]
fn a_conversion_ends_when_all_data_roles_of_the_former_pool_have_nothing_left() {
    let mut story = Story::new();
    for role in [1, 0, 0, 1] {
        story.says(role);
        assert_eq!(story.pools(), UNDER_WAY, "one of them counts once");
    }
    story.says(2);
    assert_eq!((story.pools(), story.kept()), (OVER, 0));
    // They say so until they have heard of it.
    story.says(0);
    assert_eq!((story.pools(), story.kept()), (OVER, 0));
}

#[test]
fn only_the_primary_of_a_data_role_of_the_former_pool_is_believed() {
    let mut story = Story::new();
    (0..2).for_each(|role| story.says(role));
    let of_b = story.0.coordinator.map().unwrap().group(GROUP_OF_B).unwrap().data[0].primary.unwrap();
    let primary = story.0.primary(2).unwrap();
    let another = (0..6).find(|node| *node != primary).unwrap();
    story.says_of(another, member(2), 1);
    for (role, node) in PARITIES {
        story.says_of(node, MemberId { group: GROUP, role }, 1);
    }
    story.says_of(of_b.node.0, MemberId { group: GROUP_OF_B, role: RoleIndex(0) }, 1);
    for (group, role) in [(0, 63), (0, 5), (7, 0), (u32::MAX, u8::MAX)] {
        story.says_of(primary, MemberId { group: GroupId(group), role: RoleIndex(role) }, 1);
    }
    for number in [0, 2, u32::MAX] {
        story.says_of(primary, member(2), number);
    }
    assert_eq!(story.pools(), UNDER_WAY);
    story.says(2);
    assert_eq!(story.pools(), OVER);
}

#[test]
fn what_was_said_of_an_earlier_conversion_says_nothing_of_this_one() {
    let mut story = Story::new();
    (0..3).for_each(|role| story.says(role));
    story.says_of(story.0.primary(0).unwrap(), member(0), 1);
    // Back again: now pool `b` is the former one.
    story.convert("default");
    assert_eq!(story.pools(), (1, Some(0)));
    (0..3).for_each(|role| story.says_of(u16::from(role), member(role), 2));
    let of_b = MemberId { group: GROUP_OF_B, role: RoleIndex(0) };
    let primary = story.0.coordinator.map().unwrap().group(GROUP_OF_B).unwrap().data[0].primary.unwrap();
    story.says_of(primary.node.0, of_b, 1);
    assert_eq!(story.pools(), (1, Some(0)));
    story.says_of(primary.node.0, of_b, 2);
    assert_eq!(story.pools(), (0, None));
    // And to `b` a second time: two have said so of the first time.
    story.convert("b");
    (0..3).for_each(|role| story.says(role));
    assert_eq!(story.pools(), UNDER_WAY);
    (0..3).for_each(|role| story.says_of(u16::from(role), member(role), 3));
    assert_eq!(story.pools(), OVER);
}

#[test]
fn what_a_role_has_said_holds_for_its_next_primary_and_who_has_not_said_it_is_waited_for() {
    let mut story = Story::new();
    story.says(0);
    let former = story.0.primary(1).unwrap();
    story.0.taken_over(0);
    story.0.taken_over(1);
    story.says(2);
    assert_eq!(story.pools(), UNDER_WAY);
    story.says_of(former, member(1), 1);
    assert_eq!(story.pools(), UNDER_WAY, "it serves the role no more");
    story.says(1);
    assert_eq!(story.pools(), OVER, "the stand-in of role 0 has nothing either");
}

#[test]
fn a_pause_does_not_keep_what_is_done_from_ending() {
    let mut story = Story::new();
    story.ask(CatalogChange::PauseConversion { name: name("n"), paused: true });
    (0..3).for_each(|role| story.says(role));
    assert_eq!(story.pools(), OVER);
}

#[test]
fn what_roles_have_said_of_namespaces_that_are_gone_is_not_kept() {
    let mut story = Story::new();
    story.says(0);
    assert_eq!(story.kept(), 1);
    story.ask(CatalogChange::RemoveNamespace { name: name("n") });
    story.says(1);
    let (pool, policy) = (Name::default_name(), Policy::default());
    story.ask(CatalogChange::CreateNamespace { name: name("n"), pool, policy });
    story.convert("b");
    let namespace = NamespaceId(2);
    for role in 0..3u8 {
        story.0.hear(role.into(), ToCoordinator::Converted { member: member(role), namespace, number: 1 });
        assert!(story.kept() <= 1);
    }
    let known = story.0.coordinator.map().unwrap().catalog.namespace(namespace).unwrap();
    assert_eq!((known.pool, known.conversion), (PoolId(1), None));
}
