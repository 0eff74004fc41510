//! Pools and namespaces: which codes a cluster protects with, and whose keys lie where (docs/pools.md).
//!
//! A *pool* is a profile with its groups and its hash slots; a *namespace* is a set of keys in one pool, with a quota and a policy.
//! Both have names, which operators use, and numbers, which everything else uses. No number is ever used again, neither of a pool
//! nor of a namespace nor of a group: what a late message or an old item names is either this or nothing.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    BadObjects, Deal, GroupId, LossPolicy, MemberId, Name, NamespaceId, ObjectLayout, ObjectPolicy, PoolId,
    Profile, Slot, SlotRange, Striped,
};

/// Fewest bits of a pool's slots: 16,384 of them.
pub const MIN_SLOT_BITS: u8 = 14;
/// Most bits of a pool's slots: 16,777,216 of them.
pub const MAX_SLOT_BITS: u8 = 24;
/// Slots for each data role that a pool has at its birth, as far as there can be so many.
const SLOTS_PER_ROLE: u64 = 16;

/// A code with its groups and its slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Its number.
    pub id: PoolId,
    /// What operators call it.
    pub name: Name,
    /// The protection of its groups.
    pub profile: Profile,
    /// Its first group; the others follow.
    pub first_group: GroupId,
    /// How many groups it has.
    pub groups: u32,
    /// It has two to the power of this many slots.
    pub slot_bits: u8,
}

impl Pool {
    /// Its groups' numbers.
    pub fn group_ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (self.first_group.0..self.end()).map(GroupId)
    }

    /// Whether `group` is one of its groups.
    #[must_use]
    pub fn has(&self, group: GroupId) -> bool {
        (self.first_group.0..self.end()).contains(&group.0)
    }

    /// The number after its last group's.
    fn end(&self) -> u32 {
        self.first_group.0.saturating_add(self.groups)
    }

    /// How many data roles it has.
    #[must_use]
    pub fn data_roles(&self) -> u64 {
        u64::from(self.groups) * self.profile.k() as u64
    }

    /// How many slots it has.
    #[must_use]
    pub fn slots(&self) -> u32 {
        1 << self.slot_bits
    }

    /// All of its slots.
    #[must_use]
    pub fn all_slots(&self) -> SlotRange {
        SlotRange { first: Slot(0), last: Slot(self.slots() - 1) }
    }

    /// How its slots are dealt to its data roles.
    #[must_use]
    pub fn deal(&self) -> Deal {
        let Self { first_group, groups, slot_bits, .. } = *self;
        Deal { first_group, groups, data_roles: self.data_roles(), slot_bits }
    }

    /// The slot of what has this hash.
    #[must_use]
    pub fn slot_of(&self, hash: crate::KeyHash) -> Slot {
        self.deal().slot_of(hash)
    }

    /// The data role that holds what has this hash.
    #[must_use]
    pub fn member_of(&self, hash: crate::KeyHash) -> MemberId {
        self.deal().member_of(hash)
    }

    /// The data role that holds `slot`.
    #[must_use]
    pub fn member_of_slot(&self, slot: Slot) -> MemberId {
        self.deal().member_of_slot(slot)
    }

    /// All slots of the data roles that have one of `range`; none if there is no such slot.
    #[must_use]
    pub fn whole_roles(&self, range: SlotRange) -> Option<SlotRange> {
        let last = range.last.min(self.all_slots().last);
        let of = |slot| self.slots_of(self.member_of_slot(slot));
        (range.first <= last).then(|| SlotRange { first: of(range.first).first, last: of(last).last })
    }

    /// The number of data role `member`, which is one of this pool, in the order of their slots.
    #[must_use]
    pub fn index_of(&self, member: MemberId) -> u64 {
        u64::from(member.role.0) * u64::from(self.groups) + u64::from(member.group.0 - self.first_group.0)
    }

    /// The slots of data role `member`, which is one of this pool.
    #[must_use]
    pub fn slots_of(&self, member: MemberId) -> SlotRange {
        let (roles, slots) = (self.data_roles(), u64::from(self.slots()));
        let index = self.index_of(member);
        // The inverse of `member_of_slot`, which rounds down: a member's slots begin with the first one that comes out as its own.
        let first = (index * slots).div_ceil(roles);
        let end = ((index + 1) * slots).div_ceil(roles);
        SlotRange { first: Slot(first as u32), last: Slot((end - 1) as u32) }
    }
}

/// Bits of the slots of a pool with so many data roles: a power of two that leaves each some sixteen, within the bounds.
#[must_use]
pub fn slot_bits_for(data_roles: u64) -> u8 {
    let wanted = data_roles.saturating_mul(SLOTS_PER_ROLE).max(1);
    (u64::BITS - (wanted - 1).leading_zeros()).clamp(MIN_SLOT_BITS.into(), MAX_SLOT_BITS.into()) as u8
}

/// What holds for the keys of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// What gives way when there is no room.
    #[serde(default)]
    pub evict: EvictPolicy,
    /// What becomes of its keys where a data role's data is lost.
    #[serde(default)]
    pub on_loss: NamespaceLossPolicy,
    /// Seconds that an item lives which was written without a time of its own; 0 = for ever.
    #[serde(default)]
    pub default_ttl_seconds: u32,
    /// Most bytes that the slots of its items and the pages of its chunks take, in all of the cluster, parities included; 0 = no limit.
    #[serde(default)]
    pub quota_bytes: u64,
    /// Which of its values lie in chunks.
    #[serde(default)]
    pub objects: ObjectPolicy,
}

/// Whether items of a namespace give way to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvictPolicy {
    /// As the nodes are told.
    #[default]
    Node,
    /// They do, when they were not read lately.
    Evict,
    /// They never do; writes are refused instead.
    Keep,
}

impl EvictPolicy {
    /// Whether items may be evicted, where `by_default` holds for namespaces that say nothing.
    #[must_use]
    pub fn evicts(self, by_default: bool) -> bool {
        match self {
            Self::Node => by_default,
            Self::Evict => true,
            Self::Keep => false,
        }
    }
}

/// What becomes of the keys of a namespace where a data role's data is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceLossPolicy {
    /// As the layout says of all.
    #[default]
    Cluster,
    /// See [`LossPolicy::Error`].
    Error,
    /// See [`LossPolicy::Empty`].
    Empty,
}

impl NamespaceLossPolicy {
    /// What holds where the layout says `policy`.
    #[must_use]
    pub fn or(self, policy: LossPolicy) -> LossPolicy {
        match self {
            Self::Cluster => policy,
            Self::Error => LossPolicy::Error,
            Self::Empty => LossPolicy::Empty,
        }
    }
}

/// A set of keys in one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Its number.
    pub id: NamespaceId,
    /// What operators call it.
    pub name: Name,
    /// Where its items lie.
    pub pool: PoolId,
    /// What holds for them.
    #[serde(default)]
    pub policy: Policy,
    /// Slots whose items were lost while others of the pool's namespaces had accepted that: its keys there are answered with an
    /// error until an operator accepts it for this one, too.
    #[serde(default)]
    pub lost: Vec<SlotRange>,
    /// The pool that its items are moved to, if they are.
    #[serde(default)]
    pub conversion: Option<Conversion>,
    /// How many conversions have begun, this one included.
    #[serde(default)]
    pub conversions: u32,
}

impl Namespace {
    /// Whether it is on its way to `pool`.
    #[must_use]
    pub fn comes_to(&self, pool: PoolId) -> bool {
        self.conversion.is_some_and(|conversion| conversion.to == pool)
    }
}

/// All items of a namespace move to another pool, which is its own once nothing is left (docs/pools.md, "To another pool").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversion {
    /// That pool.
    pub to: PoolId,
    /// Nothing is moved now: what is asked for is found where it is.
    #[serde(default)]
    pub paused: bool,
}

/// The pools and namespaces of a cluster, and the numbers that come next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// The number of the next pool.
    pub next_pool: PoolId,
    /// The number of the next namespace.
    pub next_namespace: NamespaceId,
    /// The number of the next group.
    pub next_group: GroupId,
    /// Ascending by number.
    pub pools: Vec<Pool>,
    /// Ascending by number.
    pub namespaces: Vec<Namespace>,
}

/// Why a catalog cannot be, or cannot be changed so.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadCatalog {
    /// Pools or namespaces out of order, twice, or with numbers that are still to be given.
    #[error("its numbers are out of order")]
    Numbers,
    /// Two of one kind are called the same.
    #[error("there is a {kind} '{name}' already")]
    NameTaken {
        /// Pool or namespace.
        kind: &'static str,
        /// What both are called.
        name: Name,
    },
    /// A pool whose groups overlap another one's, or that has none, or too many for its slots.
    #[error(
        "the groups of pool '{0}' are out of bounds: give it one at least (--groups), and at most one data role for each of \
         16777216 slots"
    )]
    Pool(Name),
    /// A namespace that is in another pool than the one that is named.
    #[error("namespace '{namespace}' is in pool '{pool}': name that one, or none")]
    Elsewhere {
        /// Which.
        namespace: Name,
        /// Where it is.
        pool: Name,
    },
    /// A namespace in a pool that is not there.
    #[error("namespace '{0}' is in a pool that does not exist")]
    Homeless(Name),
    /// Lost slots out of order, or of another pool.
    #[error("the lost slots of namespace '{0}' are none of its pool's, or out of order")]
    Lost(Name),
    /// Values that cannot be cut like that.
    #[error("namespace '{namespace}': {why}")]
    Objects {
        /// Whose.
        namespace: Name,
        /// Why not.
        why: BadObjects,
    },
    /// More than there may be.
    #[error("a cluster has at most {most} {kind}s")]
    TooMany {
        /// Pool or namespace.
        kind: &'static str,
        /// How many.
        most: usize,
    },
    /// Nothing is called so.
    #[error("there is no {kind} '{name}': `gestalt {kind} list` names them")]
    Unknown {
        /// Pool or namespace.
        kind: &'static str,
        /// What was asked for.
        name: Name,
    },
    /// What every cluster has.
    #[error("the {kind} 'default' stays: a cluster always has it")]
    Default {
        /// Pool or namespace.
        kind: &'static str,
    },
    /// A namespace that is to move to another pool, and does not stand still.
    #[error("namespace '{namespace}' cannot move to pool '{pool}': {why}")]
    Conversion {
        /// Which.
        namespace: Name,
        /// Where to.
        pool: Name,
        /// Why not.
        why: &'static str,
    },
    /// A conversion that is not there.
    #[error("namespace '{0}' does not move to another pool")]
    Settled(Name),
    /// It is in use.
    #[error(
        "pool '{pool}' has namespaces: {}; remove them, or move them to another pool (`gestalt namespace convert`), first",
        .namespaces.join(", ")
    )]
    InUse {
        /// The pool.
        pool: Name,
        /// Who is in it, or on the way to it or from it, which is said.
        namespaces: Vec<String>,
    },
}

const POOL: &str = "pool";
const NAMESPACE: &str = "namespace";

impl Catalog {
    /// Most pools of a cluster.
    pub const MAX_POOLS: usize = 64;
    /// Most namespaces of a cluster.
    pub const MAX_NAMESPACES: usize = 4096;
    /// Most groups of all pools together.
    pub const MAX_GROUPS: u32 = 1 << 20;

    /// What a cluster begins with: a pool of so many groups, and a namespace in it.
    #[must_use]
    pub fn first(profile: Profile, groups: u32) -> Self {
        let slot_bits = slot_bits_for(u64::from(groups) * profile.k() as u64);
        let (id, name, first_group) = (PoolId::DEFAULT, Name::default_name(), GroupId(0));
        let pool = Pool { id, name: name.clone(), profile, first_group, groups, slot_bits };
        let (id, policy) = (NamespaceId::DEFAULT, Policy::default());
        let namespace =
            Namespace { id, name, pool: pool.id, policy, lost: vec![], conversion: None, conversions: 0 };
        Self {
            next_pool: PoolId(1),
            next_namespace: NamespaceId(1),
            next_group: GroupId(groups),
            pools: vec![pool],
            namespaces: vec![namespace],
        }
    }

    /// Whether any cluster can have this catalog.
    ///
    /// # Errors
    /// Why none can.
    pub fn check(&self) -> Result<(), BadCatalog> {
        let too_many = |kind, most| Err(BadCatalog::TooMany { kind, most });
        if self.pools.len() > Self::MAX_POOLS {
            return too_many(POOL, Self::MAX_POOLS);
        }
        if self.namespaces.len() > Self::MAX_NAMESPACES {
            return too_many(NAMESPACE, Self::MAX_NAMESPACES);
        }
        self.check_numbers()?;
        check_names(POOL, self.pools.iter().map(|pool| &pool.name))?;
        check_names(NAMESPACE, self.namespaces.iter().map(|namespace| &namespace.name))?;
        self.check_pools()?;
        self.namespaces.iter().try_for_each(|namespace| self.check_namespace(namespace))
    }

    fn check_namespace(&self, namespace: &Namespace) -> Result<(), BadCatalog> {
        let homeless = || BadCatalog::Homeless(namespace.name.clone());
        let pool = self.pool(namespace.pool).ok_or_else(homeless)?;
        if let Some(Conversion { to, .. }) = namespace.conversion
            && (to == namespace.pool || self.pool(to).is_none())
        {
            return Err(homeless());
        }
        let bad_objects = |why| BadCatalog::Objects { namespace: namespace.name.clone(), why };
        namespace.policy.objects.check().map_err(bad_objects)?;
        // Whoever looks a slot up among them counts on all of this.
        let are_whole = namespace.lost.iter().all(|range| range.first <= range.last);
        let are_apart = namespace
            .lost
            .is_sorted_by(|one, next| one.last.0.checked_add(1).is_some_and(|end| end < next.first.0));
        let end = namespace.lost.last().map_or(Slot(0), |range| range.last);
        let are_its = end <= pool.all_slots().last;
        if are_whole && are_apart && are_its { Ok(()) } else { Err(BadCatalog::Lost(namespace.name.clone())) }
    }

    fn check_numbers(&self) -> Result<(), BadCatalog> {
        let pools = self.pools.iter().map(|pool| pool.id.0).chain([self.next_pool.0]);
        let namespaces = self.namespaces.iter().map(|namespace| namespace.id.0);
        let are_in_order = pools.is_sorted_by(|a, b| a < b)
            && namespaces.chain([self.next_namespace.0]).is_sorted_by(|a, b| a < b)
            && self.next_namespace <= NamespaceId::MAX;
        // Whoever binds nothing else uses it.
        let has_default = self.namespaces.first().is_some_and(|first| first.id == NamespaceId::DEFAULT);
        if are_in_order && has_default { Ok(()) } else { Err(BadCatalog::Numbers) }
    }

    fn check_pools(&self) -> Result<(), BadCatalog> {
        let mut free = 0;
        for pool in &self.pools {
            let end = pool.first_group.0.checked_add(pool.groups);
            let is_possible = pool.groups > 0
                && (MIN_SLOT_BITS..=MAX_SLOT_BITS).contains(&pool.slot_bits)
                && pool.data_roles() <= u64::from(pool.slots())
                && pool.first_group.0 >= free
                && end.is_some_and(|end| end <= self.next_group.0);
            if !is_possible {
                return Err(BadCatalog::Pool(pool.name.clone()));
            }
            free = pool.end();
        }
        let (groups, most) = (self.groups(), Self::MAX_GROUPS as usize);
        if groups > most { Err(BadCatalog::TooMany { kind: "group", most }) } else { Ok(()) }
    }

    /// The pool with this number.
    #[must_use]
    pub fn pool(&self, id: PoolId) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.id == id)
    }

    /// The pool that `group` belongs to.
    #[must_use]
    pub fn pool_of_group(&self, group: GroupId) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.has(group))
    }

    /// The pool of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn pool_named(&self, name: &Name) -> Result<&Pool, BadCatalog> {
        let found = self.pools.iter().find(|pool| pool.name == *name);
        found.ok_or_else(|| BadCatalog::Unknown { kind: POOL, name: name.clone() })
    }

    /// The pool that is meant by its name, by a namespace's, or by neither: the default one. Of a namespace on its way to another pool
    /// either may be named.
    ///
    /// # Errors
    /// If there is none of such a name, or the namespace is in another pool.
    pub fn pool_meant(&self, pool: Option<&Name>, namespace: Option<&Name>) -> Result<&Pool, BadCatalog> {
        let named = pool.map(|name| self.pool_named(name)).transpose()?;
        let Some(namespace) = namespace else {
            return named.map_or_else(|| self.pool_named(&Name::default_name()), Ok);
        };
        let known = self.namespace_named(namespace)?;
        let home = self.pool(known.pool).ok_or_else(|| BadCatalog::Homeless(namespace.clone()))?;
        match named {
            Some(named) if known.comes_to(named.id) => Ok(named),
            Some(named) if named.id != home.id => {
                Err(BadCatalog::Elsewhere { namespace: namespace.clone(), pool: home.name.clone() })
            }
            Some(_) | None => Ok(home),
        }
    }

    /// The namespace with this number.
    #[must_use]
    pub fn namespace(&self, id: NamespaceId) -> Option<&Namespace> {
        let at = self.namespaces.binary_search_by_key(&id, |namespace| namespace.id).ok()?;
        self.namespaces.get(at)
    }

    /// The namespace of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn namespace_named(&self, name: &Name) -> Result<&Namespace, BadCatalog> {
        let found = self.namespaces.iter().find(|namespace| namespace.name == *name);
        found.ok_or_else(|| BadCatalog::Unknown { kind: NAMESPACE, name: name.clone() })
    }

    /// The pool that the keys of `namespace` lie in.
    #[must_use]
    pub fn pool_of(&self, namespace: NamespaceId) -> Option<&Pool> {
        self.pool(self.namespace(namespace)?.pool)
    }

    /// Bytes that the data roles may give to items and chunks of `namespace`: its quota less what parities take of it, at most
    /// `i64::MAX`, so that no share overflows. None if it has no quota. While it moves to another pool it has items in both, and
    /// the code whose parities take more counts: so all of them together never take more than the quota.
    #[must_use]
    pub fn data_quota(&self, namespace: NamespaceId) -> Option<u64> {
        let known = self.namespace(namespace)?;
        let quota = known.policy.quota_bytes;
        let of = |pool: PoolId| self.pool(pool).map(|pool| pool.profile.data_part_of(quota));
        let there = known.conversion.map(|conversion| of(conversion.to));
        let data = there.into_iter().flatten().fold(of(known.pool)?, u64::min).min(i64::MAX as u64);
        (quota > 0).then_some(data)
    }

    /// Whether `namespace` was there once, and is not any more. One with a number that is still to be given is of a newer catalog.
    #[must_use]
    pub fn is_gone(&self, namespace: NamespaceId) -> bool {
        (namespace < self.next_namespace || namespace >= NamespaceId::MAX)
            && self.namespace(namespace).is_none()
    }

    /// The namespaces in `pool`.
    pub fn namespaces_in(&self, pool: PoolId) -> impl Iterator<Item = &Namespace> {
        self.namespaces.iter().filter(move |namespace| namespace.pool == pool)
    }

    /// Those that have items in `pool`, or will: also those that move there.
    pub fn tenants_of(&self, pool: PoolId) -> impl Iterator<Item = &Namespace> {
        self.namespaces.iter().filter(move |namespace| namespace.pool == pool || namespace.comes_to(pool))
    }

    /// The pool that the items of `namespace` move to, if they do.
    #[must_use]
    pub fn target_of(&self, namespace: NamespaceId) -> Option<&Pool> {
        self.pool(self.namespace(namespace)?.conversion?.to)
    }

    /// How often `namespace` has begun to move to another pool when its values are written into the pool of `group`: by what is known here
    /// of a pool that it leaves, has or comes to, and of any other one that there is a newer catalog.
    #[must_use]
    pub fn conversions_into(&self, namespace: NamespaceId, group: GroupId) -> u32 {
        self.namespace(namespace).map_or(0, |known| self.conversions_of(known, group))
    }

    /// [`Self::conversions_into`] of a namespace that was looked up.
    #[must_use]
    pub fn conversions_of(&self, known: &Namespace, group: GroupId) -> u32 {
        let pool = self.pool_of_group(group).map(|pool| pool.id);
        if pool == Some(known.pool) {
            known.conversions.wrapping_sub(u32::from(known.conversion.is_some()))
        } else if pool.is_some_and(|pool| known.comes_to(pool)) {
            known.conversions
        } else {
            known.conversions.wrapping_add(1)
        }
    }

    /// The namespaces that are on their way to `pool`.
    pub fn namespaces_coming_to(&self, pool: PoolId) -> impl Iterator<Item = &Namespace> {
        self.namespaces.iter().filter(move |namespace| namespace.comes_to(pool))
    }

    /// How many groups all pools have.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.pools.iter().map(|pool| pool.groups as usize).sum()
    }

    /// The numbers of all groups, ascending.
    pub fn group_ids(&self) -> impl Iterator<Item = GroupId> {
        self.pools.iter().flat_map(Pool::group_ids)
    }

    /// A pool of `groups` groups more; which one it is.
    ///
    /// # Errors
    /// If the name is taken, or there are too many of something.
    pub fn create_pool(&mut self, name: Name, profile: Profile, groups: u32) -> Result<PoolId, BadCatalog> {
        let id = self.next_pool;
        let slot_bits = slot_bits_for(u64::from(groups) * profile.k() as u64);
        let pool = Pool { id, name, profile, first_group: self.next_group, groups, slot_bits };
        let mut changed = self.clone();
        changed.next_pool = PoolId(id.0.saturating_add(1));
        changed.next_group = GroupId(self.next_group.0.saturating_add(groups));
        changed.pools.push(pool);
        changed.check()?;
        *self = changed;
        Ok(id)
    }

    /// A pool is no more, and nor are its groups; which one it was.
    ///
    /// # Errors
    /// If there is none of this name, it is the first one, or it has namespaces.
    pub fn remove_pool(&mut self, name: &Name) -> Result<Pool, BadCatalog> {
        let pool = self.pool_named(name)?.clone();
        if pool.id == PoolId::DEFAULT {
            return Err(BadCatalog::Default { kind: POOL });
        }
        let stays = |known: &Namespace| match known.conversion {
            Some(_) => format!("{} (it is leaving)", known.name),
            None => known.name.to_string(),
        };
        let comes = |known: &Namespace| format!("{} (it is coming)", known.name);
        let (inside, coming) = (self.namespaces_in(pool.id), self.namespaces_coming_to(pool.id));
        let namespaces: Vec<String> = inside.map(stays).chain(coming.map(comes)).collect();
        if !namespaces.is_empty() {
            return Err(BadCatalog::InUse { pool: pool.name, namespaces });
        }
        self.pools.retain(|known| known.id != pool.id);
        Ok(pool)
    }

    /// A namespace more; which one it is.
    ///
    /// # Errors
    /// If the name is taken, there are too many, or there is no such pool.
    pub fn create_namespace(
        &mut self,
        name: Name,
        pool: &Name,
        policy: Policy,
    ) -> Result<NamespaceId, BadCatalog> {
        let (id, pool) = (self.next_namespace, self.pool_named(pool)?.id);
        let mut changed = self.clone();
        changed.next_namespace = NamespaceId(id.0.saturating_add(1));
        let (lost, conversion, conversions) = (vec![], None, 0);
        changed.namespaces.push(Namespace { id, name, pool, policy, lost, conversion, conversions });
        changed.check()?;
        *self = changed;
        Ok(id)
    }

    /// Something else holds for a namespace.
    ///
    /// # Errors
    /// If there is none of this name, or it cannot hold.
    pub fn set_policy(&mut self, name: &Name, change: PolicyChange) -> Result<(), BadCatalog> {
        let known = self.namespace_named(name)?;
        let (id, policy) = (known.id, change.of(known.policy));
        policy.objects.check().map_err(|why| BadCatalog::Objects { namespace: name.clone(), why })?;
        if let Some(known) = self.namespace_mut(id) {
            known.policy = policy;
        }
        Ok(())
    }

    /// The items of a namespace move to pool `to` from now on. Of one on its way that may be the pool that it comes from: it turns back.
    ///
    /// # Errors
    /// If there is no such namespace or pool, it is there, on its way to it or from another one, or some of its slots are lost.
    pub fn convert(&mut self, name: &Name, to: &Name) -> Result<(), BadCatalog> {
        let (known, pool) = (self.namespace_named(name)?, self.pool_named(to)?);
        let (id, to_id) = (known.id, pool.id);
        let why = match known.conversion {
            Some(conversion) if conversion.to == to_id => Some("it is on its way there"),
            Some(_) if known.pool != to_id => {
                Some("it is on its way to another pool: it may turn back, or move again when it is there")
            }
            None if known.pool == to_id => Some("it is there"),
            _ if !known.lost.is_empty() => {
                Some("some of its slots are lost: accept that first (`gestalt lost accept`)")
            }
            _ => None,
        };
        if let Some(why) = why {
            return Err(BadCatalog::Conversion { namespace: name.clone(), pool: to.clone(), why });
        }
        if let Some(known) = self.namespace_mut(id) {
            if let Some(conversion) = known.conversion {
                // Who decides about what has not moved yet is asked second, as of what has moved before.
                known.pool = conversion.to;
            }
            known.conversion = Some(Conversion { to: to_id, paused: false });
            known.conversions = known.conversions.wrapping_add(1);
        }
        Ok(())
    }

    /// The conversion of a namespace stands still, or goes on.
    ///
    /// # Errors
    /// If there is no such namespace, or it is in its pool.
    pub fn pause_conversion(&mut self, name: &Name, paused: bool) -> Result<(), BadCatalog> {
        let id = self.namespace_named(name)?.id;
        let conversion = self.namespace_mut(id).and_then(|known| known.conversion.as_mut());
        conversion.ok_or_else(|| BadCatalog::Settled(name.clone()))?.paused = paused;
        Ok(())
    }

    /// Nothing of `namespace` is left in its former pool: the one that it has moved to is its own. Whether it was on its way.
    pub fn end_conversion(&mut self, namespace: NamespaceId) -> bool {
        let Some(known) = self.namespace_mut(namespace) else { return false };
        let Some(Conversion { to, .. }) = known.conversion.take() else { return false };
        known.pool = to;
        true
    }

    /// A namespace is no more; which one it was.
    ///
    /// # Errors
    /// If there is none of this name, or it is the first one.
    pub fn remove_namespace(&mut self, name: &Name) -> Result<NamespaceId, BadCatalog> {
        let id = self.namespace_named(name)?.id;
        if id == NamespaceId::DEFAULT {
            return Err(BadCatalog::Default { kind: NAMESPACE });
        }
        self.namespaces.retain(|known| known.id != id);
        Ok(id)
    }

    /// For changes of what was lost.
    pub fn namespace_mut(&mut self, id: NamespaceId) -> Option<&mut Namespace> {
        let at = self.namespaces.binary_search_by_key(&id, |namespace| namespace.id).ok()?;
        self.namespaces.get_mut(at)
    }
}

/// What of a policy is to be something else; nothing of what is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChange {
    /// See [`Policy::evict`].
    #[serde(default)]
    pub evict: Option<EvictPolicy>,
    /// See [`Policy::on_loss`].
    #[serde(default)]
    pub on_loss: Option<NamespaceLossPolicy>,
    /// See [`Policy::default_ttl_seconds`].
    #[serde(default)]
    pub default_ttl_seconds: Option<u32>,
    /// See [`Policy::quota_bytes`].
    #[serde(default)]
    pub quota_bytes: Option<u64>,
    /// See [`ObjectPolicy::striped_above`].
    #[serde(default)]
    pub striped: Option<Striped>,
    /// See [`ObjectPolicy::chunk_bytes`].
    #[serde(default)]
    pub chunk_bytes: Option<u32>,
    /// See [`ObjectPolicy::layout`].
    #[serde(default)]
    pub layout: Option<ObjectLayout>,
}

impl PolicyChange {
    /// What `policy` becomes.
    #[must_use]
    pub fn of(self, policy: Policy) -> Policy {
        Policy {
            evict: self.evict.unwrap_or(policy.evict),
            on_loss: self.on_loss.unwrap_or(policy.on_loss),
            default_ttl_seconds: self.default_ttl_seconds.unwrap_or(policy.default_ttl_seconds),
            quota_bytes: self.quota_bytes.unwrap_or(policy.quota_bytes),
            objects: ObjectPolicy {
                striped_above: self.striped.map_or(policy.objects.striped_above, Striped::above),
                chunk_bytes: self.chunk_bytes.unwrap_or(policy.objects.chunk_bytes),
                layout: self.layout.unwrap_or(policy.objects.layout),
            },
        }
    }
}

fn check_names<'a>(kind: &'static str, names: impl Iterator<Item = &'a Name>) -> Result<(), BadCatalog> {
    let mut sorted: Vec<&Name> = names.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(BadCatalog::NameTaken { kind, name: pair[0].clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
