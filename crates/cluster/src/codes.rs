//! What the codes of all pools protect from, by group.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use types::{Catalog, ClusterMap, GroupId, GroupView, Name, NodeId, Pool, Profile};

use crate::Protection;

/// The protection of every pool.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    pools: Vec<(Pool, Arc<Protection>)>,
}

impl Codes {
    /// Those of the pools of `catalog`.
    #[must_use]
    pub fn of(catalog: &Catalog) -> Self {
        Self::default().changed_to(catalog)
    }

    /// Those of the pools of `catalog`, where these are of an earlier one: what a pool's code is never changes.
    #[must_use]
    pub fn changed_to(&self, catalog: &Catalog) -> Self {
        let known = |pool: &Pool| {
            let found = self.pools.iter().find(|(known, _)| known == pool);
            found.map_or_else(
                || Arc::new(Protection::of(pool.profile)),
                |(_, protection)| Arc::clone(protection),
            )
        };
        Self { pools: catalog.pools.iter().map(|pool| (pool.clone(), known(pool))).collect() }
    }

    /// The protection of `group`; none if no pool has it.
    #[must_use]
    pub fn of_group(&self, group: GroupId) -> Option<&Arc<Protection>> {
        self.pools.iter().find(|(pool, _)| pool.has(group)).map(|(_, protection)| protection)
    }

    /// The pools with their protections, ascending by number.
    pub fn pools(&self) -> impl Iterator<Item = (&Pool, &Protection)> {
        self.pools.iter().map(|(pool, protection)| (pool, &**protection))
    }
}

/// How well a pool is protected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolProtection {
    /// Which.
    pub pool: Name,
    /// Its code.
    pub profile: Profile,
    /// Node losses that the profile is to survive.
    pub asked: usize,
    /// Further node losses that each of its groups would survive now.
    pub achieved: usize,
}

impl PoolProtection {
    /// Whether the loss of one more node may cost data that was to be protected from it.
    #[must_use]
    pub fn is_at_risk(&self) -> bool {
        self.achieved == 0 && self.asked > 0
    }

    /// How many losses fewer are survived than were asked for.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.asked.saturating_sub(self.achieved)
    }
}

impl Codes {
    /// How well each pool of `map` is protected once the nodes `gone` are lost; ascending by number.
    #[must_use]
    pub fn protections(&self, map: &ClusterMap, gone: &[NodeId]) -> Vec<PoolProtection> {
        let of_pool = |(pool, code): (&Pool, &Protection)| {
            let survived = |view: &GroupView| code.losses_survived_without(view, gone).unwrap_or(0);
            let (name, profile) = (pool.name.clone(), pool.profile);
            let least = map.groups_of(pool).iter().map(survived).min().unwrap_or(0);
            PoolProtection {
                pool: name,
                profile,
                asked: profile.tolerance(),
                achieved: least.min(profile.tolerance()),
            }
        };
        self.pools().map(of_pool).collect()
    }
}

/// Of the pools that miss something of what was asked for, or of all if none does, the one that survives least; of those alike
/// the one that misses most.
#[must_use]
pub fn worst_off(protections: &[PoolProtection]) -> Option<&PoolProtection> {
    let is_whole = |pool: &PoolProtection| pool.missing() == 0;
    protections.iter().min_by_key(|pool| (is_whole(pool), pool.achieved, std::cmp::Reverse(pool.missing())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, asked: usize, achieved: usize) -> PoolProtection {
        let profile = Profile::rs(4, asked as u32).expect("a profile");
        PoolProtection { pool: name.parse().expect("a name"), profile, asked, achieved }
    }

    #[test]
    fn the_worst_off_is_who_may_lose_data_next() {
        let worst = |pools: &[PoolProtection]| worst_off(pools).map(|pool| pool.pool.to_string());
        assert_eq!(worst(&[]), None);
        // It asks for nothing, so it misses nothing.
        let unprotected = pool("none", 0, 0);
        assert_eq!(worst(&[unprotected.clone(), pool("short", 4, 3)]).as_deref(), Some("short"));
        let (wide, at_risk) = (pool("wide", 4, 2), pool("at-risk", 1, 0));
        assert_eq!(worst(&[unprotected, wide.clone(), at_risk]).as_deref(), Some("at-risk"));
        assert_eq!(worst(&[wide, pool("whole", 1, 1)]).as_deref(), Some("wide"));
    }
}
