//! Catalogs that are changed, and those that cannot be.

use super::*;
use crate::RoleIndex;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn catalog() -> Catalog {
    Catalog::first("rs(3+2)".parse().unwrap(), 5)
}

#[test]
fn names_are_short_and_plain() {
    for good in ["a", "0", "sessions", "team-a.cache_2", &"x".repeat(64)] {
        assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
    }
    for bad in ["", "-a", ".a", "A", "a b", "a/b", "ä", &"x".repeat(65)] {
        assert!(bad.parse::<Name>().is_err(), "{bad}");
    }
}

#[test]
fn every_slot_belongs_to_exactly_the_role_whose_range_names_it() {
    for (k, groups, first) in [(3, 5, 0), (1, 1, 7), (8, 7, 100), (10, 96, 3), (3, 1000, 5)] {
        let profile = Profile::rs(k, 0).unwrap();
        let slot_bits = slot_bits_for(u64::from(groups * k));
        let (id, name) = (PoolId(1), name("p"));
        let pool = Pool { id, name, profile, first_group: GroupId(first), groups, slot_bits };
        let mut covered = 0;
        for group in pool.group_ids() {
            for role in 0..k {
                let member = MemberId { group, role: RoleIndex(role as u8) };
                let range = pool.slots_of(member);
                for slot in range.first.0..=range.last.0 {
                    assert_eq!(pool.member_of_slot(Slot(slot)), member);
                    covered += 1;
                }
            }
        }
        assert_eq!(covered, pool.slots());
    }
}

#[test]
fn a_pool_has_some_sixteen_slots_for_each_role_and_never_fewer_than_one() {
    assert_eq!([1, 15, 1024, 1025, 4000].map(slot_bits_for), [14, 14, 14, 15, 16]);
    assert_eq!([1 << 20, 1 << 24, u64::MAX].map(slot_bits_for), [24; 3]);
    let mut catalog = catalog();
    let error = catalog.create_pool(name("wide"), "rs(32+2)".parse().unwrap(), 600_000).unwrap_err();
    assert_eq!(error, BadCatalog::Pool(name("wide")));
}

#[test]
fn no_number_is_used_again() {
    let mut catalog = catalog();
    let profile = "rep(3)".parse().unwrap();
    assert_eq!(catalog.create_pool(name("a"), profile, 4), Ok(PoolId(1)));
    assert_eq!(catalog.create_namespace(name("n"), &name("a"), Policy::default()), Ok(NamespaceId(1)));
    assert_eq!(catalog.remove_namespace(&name("n")), Ok(NamespaceId(1)));
    assert!(catalog.is_gone(NamespaceId(1)) && !catalog.is_gone(NamespaceId(2)));
    catalog.remove_pool(&name("a")).unwrap();
    assert_eq!(catalog.pool_of_group(GroupId(5)), None);
    assert_eq!(catalog.create_pool(name("a"), profile, 4), Ok(PoolId(2)));
    assert_eq!(catalog.pool_named(&name("a")).unwrap().first_group, GroupId(9));
    assert_eq!(catalog.create_namespace(name("n"), &name("a"), Policy::default()), Ok(NamespaceId(2)));
    catalog.check().unwrap();
}

#[test]
fn what_cannot_be_changed_is_refused_and_nothing_has_changed() {
    let mut catalog = catalog();
    catalog.create_pool(name("p"), "none".parse().unwrap(), 1).unwrap();
    catalog.create_namespace(name("n"), &name("p"), Policy::default()).unwrap();
    let before = catalog.clone();
    let taken = |kind, text| Some(BadCatalog::NameTaken { kind, name: name(text) });
    assert_eq!(catalog.create_pool(name("p"), "none".parse().unwrap(), 1).err(), taken(POOL, "p"));
    let again = catalog.create_namespace(name("n"), &name("p"), Policy::default());
    assert_eq!(again.err(), taken(NAMESPACE, "n"));
    let unknown = BadCatalog::Unknown { kind: POOL, name: name("q") };
    assert_eq!(catalog.remove_pool(&name("q")), Err(unknown));
    assert_eq!(catalog.remove_pool(&name("default")), Err(BadCatalog::Default { kind: POOL }));
    assert_eq!(catalog.remove_namespace(&name("default")), Err(BadCatalog::Default { kind: NAMESPACE }));
    let in_use = BadCatalog::InUse { pool: name("p"), namespaces: vec!["n".to_owned()] };
    assert_eq!(catalog.remove_pool(&name("p")), Err(in_use));
    assert_eq!(catalog, before);
}

/// The default pool, `p` with namespace `n` in it, and `q`; `n` is on its way to `q`.
fn converting() -> Catalog {
    let mut catalog = catalog();
    catalog.create_pool(name("p"), "rep(2)".parse().unwrap(), 3).unwrap();
    catalog.create_pool(name("q"), "rs(4+2)".parse().unwrap(), 2).unwrap();
    catalog.create_namespace(name("n"), &name("p"), Policy::default()).unwrap();
    catalog.convert(&name("n"), &name("q")).unwrap();
    catalog.check().unwrap();
    catalog
}

fn why_not(catalog: &mut Catalog, of: &str, to: &str) -> String {
    let before = catalog.clone();
    let why = catalog.convert(&name(of), &name(to)).unwrap_err().to_string();
    assert_eq!(*catalog, before);
    why
}

#[test]
fn a_namespace_stays_in_its_former_pool_until_its_conversion_ends() {
    let mut catalog = converting();
    let id = NamespaceId(1);
    let of = |catalog: &Catalog| {
        let known = catalog.namespace(id).unwrap();
        (known.pool.0, known.conversion.map(|known| (known.to.0, known.paused)), known.conversions)
    };
    assert_eq!(of(&catalog), (1, Some((2, false)), 1));
    assert_eq!(catalog.pool_of(id).unwrap().name, name("p"));
    assert!(catalog.namespaces_in(PoolId(1)).eq(catalog.namespaces_coming_to(PoolId(2))));
    assert_eq!(catalog.namespaces_in(PoolId(2)).count() + catalog.namespaces_coming_to(PoolId(1)).count(), 0);
    for paused in [true, true, false] {
        catalog.pause_conversion(&name("n"), paused).unwrap();
        assert_eq!(of(&catalog), (1, Some((2, paused)), 1));
    }
    assert!(catalog.end_conversion(id) && !catalog.end_conversion(id), "it ends once");
    assert_eq!(of(&catalog), (2, None, 1));
    assert_eq!(catalog.pause_conversion(&name("n"), true), Err(BadCatalog::Settled(name("n"))));
    // And back again, under another number.
    catalog.convert(&name("n"), &name("p")).unwrap();
    assert_eq!(of(&catalog), (2, Some((1, false)), 2));
    assert!(!catalog.end_conversion(NamespaceId(7)), "of a namespace that is not there");
    // It turns back: who has had what has not moved yet is asked second.
    catalog.convert(&name("n"), &name("q")).unwrap();
    assert_eq!(of(&catalog), (1, Some((2, false)), 3));
    assert_eq!(
        [1, 2, 0].map(|pool| catalog.conversions_into(id, catalog.pools[pool].group_ids().next().unwrap())),
        [2, 3, 4]
    );
    catalog.check().unwrap();
}

#[test]
fn a_conversion_that_cannot_begin_is_refused_and_says_why() {
    let mut catalog = converting();
    assert!(why_not(&mut catalog, "n", "default").contains("on its way to another pool"));
    assert!(why_not(&mut catalog, "n", "q").contains("it is on its way there"));
    let mut lossy = catalog.clone();
    lossy.namespaces[1].lost = vec![SlotRange { first: Slot(3), last: Slot(9) }];
    assert!(why_not(&mut lossy, "n", "p").contains("gestalt lost accept"));
    assert!(why_not(&mut catalog, "default", "default").contains("it is there"));
    assert!(why_not(&mut catalog, "default", "x").contains("no pool 'x'"));
    assert!(why_not(&mut catalog, "x", "q").contains("no namespace 'x'"));
    catalog.namespaces[0].lost = vec![SlotRange { first: Slot(3), last: Slot(9) }];
    assert!(why_not(&mut catalog, "default", "q").contains("gestalt lost accept"));
    catalog.namespaces[0].lost.clear();
    catalog.convert(&name("default"), &name("q")).unwrap();
    assert!(catalog.namespaces[0].comes_to(PoolId(2)), "also the default one may move");
}

#[test]
fn neither_pool_of_a_conversion_can_be_removed() {
    let mut catalog = converting();
    let why = |catalog: &mut Catalog, pool: &str| catalog.remove_pool(&name(pool)).unwrap_err().to_string();
    let (from, to) = (why(&mut catalog, "p"), why(&mut catalog, "q"));
    assert!(from.contains("'p' has namespaces: n (it is leaving)"), "{from}");
    assert!(to.contains("'q' has namespaces: n (it is coming)"), "{to}");
    assert!(catalog.end_conversion(NamespaceId(1)));
    catalog.remove_pool(&name("p")).unwrap();
    assert!(why(&mut catalog, "q").contains("'q' has namespaces: n; remove them, or move them"));
    catalog.check().unwrap();
}

#[test]
fn a_namespace_that_is_removed_moves_nowhere_any_more() {
    let mut catalog = converting();
    assert_eq!(catalog.remove_namespace(&name("n")), Ok(NamespaceId(1)));
    assert!(!catalog.end_conversion(NamespaceId(1)));
    catalog.remove_pool(&name("q")).unwrap();
    catalog.remove_pool(&name("p")).unwrap();
    catalog.check().unwrap();
}

#[test]
fn a_conversion_that_cannot_be_is_noticed() {
    let with = |to: u32| {
        let mut catalog = converting();
        catalog.namespaces[1].conversion = Some(Conversion { to: PoolId(to), paused: false });
        catalog.check()
    };
    assert_eq!([with(0), with(2)], [Ok(()), Ok(())]);
    assert_eq!(with(1), Err(BadCatalog::Homeless(name("n"))), "to where it is");
    assert_eq!(with(7), Err(BadCatalog::Homeless(name("n"))), "to a pool that is not there");
}

#[test]
fn both_pools_of_a_conversion_are_meant_by_their_names() {
    let catalog = converting();
    let meant = |pool: Option<&str>| {
        catalog.pool_meant(pool.map(name).as_ref(), Some(&name("n"))).map(|pool| pool.id.0)
    };
    let elsewhere = BadCatalog::Elsewhere { namespace: name("n"), pool: name("p") };
    assert_eq!([meant(None), meant(Some("p")), meant(Some("q"))], [Ok(1), Ok(1), Ok(2)]);
    assert_eq!(meant(Some("default")), Err(elsewhere));
}

#[test]
fn the_dearer_code_of_a_conversion_counts_for_the_quota() {
    let mut catalog = catalog();
    catalog.create_pool(name("dear"), "rep(3)".parse().unwrap(), 3).unwrap();
    catalog.create_pool(name("cheap"), "rs(4+1)".parse().unwrap(), 3).unwrap();
    let policy = Policy { quota_bytes: 3_000, ..Policy::default() };
    catalog.create_namespace(name("n"), &name("default"), policy).unwrap();
    let id = NamespaceId(1);
    assert_eq!((catalog.data_quota(id), catalog.data_quota(NamespaceId::DEFAULT)), (Some(1_800), None));
    catalog.convert(&name("n"), &name("dear")).unwrap();
    assert_eq!(catalog.data_quota(id), Some(1_000), "where it goes");
    catalog.end_conversion(id);
    assert_eq!(catalog.data_quota(id), Some(1_000));
    catalog.convert(&name("n"), &name("cheap")).unwrap();
    assert_eq!(catalog.data_quota(id), Some(1_000), "where it comes from");
    catalog.end_conversion(id);
    assert_eq!(catalog.data_quota(id), Some(2_400));
}

#[test]
fn a_pool_is_meant_by_its_name_or_by_that_of_a_namespace() {
    let mut catalog = catalog();
    catalog.create_pool(name("p"), "rep(2)".parse().unwrap(), 3).unwrap();
    catalog.create_namespace(name("n"), &name("p"), Policy::default()).unwrap();
    let meant = |pool: Option<&str>, namespace: Option<&str>| {
        let (pool, namespace) = (pool.map(name), namespace.map(name));
        catalog.pool_meant(pool.as_ref(), namespace.as_ref()).map(|pool| pool.id.0)
    };
    assert_eq!([meant(None, None), meant(Some("p"), None), meant(None, Some("n"))], [Ok(0), Ok(1), Ok(1)]);
    assert_eq!([meant(Some("p"), Some("n")), meant(None, Some("default"))], [Ok(1), Ok(0)]);
    let elsewhere = BadCatalog::Elsewhere { namespace: name("n"), pool: name("p") };
    assert_eq!(meant(Some("default"), Some("n")), Err(elsewhere));
    assert_eq!(meant(Some("q"), None), Err(BadCatalog::Unknown { kind: POOL, name: name("q") }));
    assert_eq!(meant(None, Some("q")), Err(BadCatalog::Unknown { kind: NAMESPACE, name: name("q") }));
}

#[test]
fn a_catalog_that_cannot_be_is_noticed() {
    let with = |change: fn(&mut Catalog)| {
        let mut catalog = catalog();
        catalog.create_pool(name("p"), "rep(2)".parse().unwrap(), 3).unwrap();
        catalog.create_namespace(name("n"), &name("p"), Policy::default()).unwrap();
        change(&mut catalog);
        catalog.check()
    };
    assert_eq!(with(|_| ()), Ok(()));
    assert_eq!(with(|catalog| catalog.next_pool = PoolId(1)), Err(BadCatalog::Numbers));
    assert_eq!(with(|catalog| catalog.namespaces.reverse()), Err(BadCatalog::Numbers));
    assert_eq!(with(|catalog| drop(catalog.namespaces.remove(0))), Err(BadCatalog::Numbers));
    let overlaps = with(|catalog| catalog.pools[1].first_group = GroupId(4));
    assert_eq!(overlaps, Err(BadCatalog::Pool(name("p"))));
    let ahead = with(|catalog| catalog.next_group = GroupId(7));
    assert_eq!(ahead, Err(BadCatalog::Pool(name("p"))));
    assert_eq!(with(|catalog| catalog.pools[0].groups = 0), Err(BadCatalog::Pool(name("default"))));
    let homeless = with(|catalog| catalog.namespaces[1].pool = PoolId(7));
    assert_eq!(homeless, Err(BadCatalog::Homeless(name("n"))));
    let many = with(|catalog| {
        catalog.next_group = GroupId(2_000_000);
        catalog.pools[1].groups = Catalog::MAX_GROUPS;
        catalog.pools[1].slot_bits = MAX_SLOT_BITS;
    });
    assert!(many.unwrap_err().to_string().contains("at most 1048576 groups"));
    let lost = |ranges: &[(u32, u32)]| {
        let mut catalog = catalog();
        let range = |&(first, last): &(u32, u32)| SlotRange { first: Slot(first), last: Slot(last) };
        catalog.namespaces[0].lost = ranges.iter().map(range).collect();
        catalog.check()
    };
    assert_eq!(lost(&[(0, 9), (11, 16_383)]), Ok(()));
    for bad in
        [&[(5, 3)][..], &[(0, 16_384)], &[(4, 9), (0, 2)], &[(0, 9), (10, 11)], &[(0, u32::MAX), (1, 2)]]
    {
        assert_eq!(lost(bad), Err(BadCatalog::Lost(name("default"))), "{bad:?}");
    }
}
