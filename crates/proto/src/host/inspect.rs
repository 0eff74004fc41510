//! The inside of a host, for tests, the simulator's invariants and `status`. Nothing here changes anything.

use std::collections::BTreeMap;

use store::{Area, ClassUse, CohortUse, Replica};
use types::{Catalog, GroupId, MemberId, NamespaceId, RunClass, Seq, Term, Time};
use wire::message::Record;
use wire::object::Harm;

use super::Host;
use crate::objects::WrongStripe;
pub use crate::primary::PrimaryInfo;
use crate::primary::{self, LostKey, Primary};

/// What a namespace takes at a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceUse {
    /// Of which it is the primary.
    pub items: CohortUse,
    /// Those among them that are found, and still to go to the pool that it moves to.
    pub leaving: CohortUse,
    /// Bytes of the pages of chunks, of data and parities.
    pub chunk_bytes: u64,
}

impl NamespaceUse {
    /// With that at another one.
    pub fn add(&mut self, other: Self) {
        self.items.add(other.items);
        self.leaving.add(other.leaving);
        self.chunk_bytes = self.chunk_bytes.saturating_add(other.chunk_bytes);
    }
}

/// A parity, seen from outside.
pub struct ParityInfo<'a> {
    /// Which role.
    pub member: MemberId,
    /// Its row in the parity part of the code; none for the mirror of a data role.
    pub row: Option<usize>,
    /// Its area.
    pub area: &'a Area,
    /// What it has of each data role, in role order.
    pub streams: Vec<StreamInfo<'a>>,
}

impl ParityInfo<'_> {
    /// That its memory is in order, of a parity that has all: a pass over its replicas.
    ///
    /// # Panics
    /// If it is not.
    pub fn check_memory(&self) {
        self.area.check_invariants();
        self.streams.iter().for_each(|stream| stream.replica.check_invariants());
    }
}

/// A stream at a parity, seen from outside.
pub struct StreamInfo<'a> {
    /// Lowest term that is accepted.
    pub fence: Term,
    /// Newest record of the contiguous prefix.
    pub received: Seq,
    /// Newest record that the area contains.
    pub applied: Seq,
    /// Records `applied + 1 ..= received`.
    pub kept: Vec<&'a Record>,
    /// Replica of the index, as of `applied`.
    pub replica: &'a Replica,
}

/// What a data role holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleBytes {
    /// Which role.
    pub member: MemberId,
    /// Bytes of its items.
    pub item_bytes: u64,
    /// Pages that are still to be repaired.
    pub absent_pages: u64,
    /// Whether it may answer clients now: its read lease runs, and it waits for nobody else's to end.
    pub serves: bool,
}

impl Host {
    /// The chunks that are kept here, role by role.
    pub fn chunks(&self) -> impl Iterator<Item = (MemberId, &store::ChunkStore)> {
        self.objects.holders().iter().map(|(member, holder)| (member, holder.chunks()))
    }

    /// What the data roles hold that are served here, by member; those whose stand-in fetches its index are missing.
    pub fn role_bytes(&self, now: Time) -> impl Iterator<Item = RoleBytes> + '_ {
        self.members.primaries().all().values().filter_map(move |primary| {
            let stats = primary.store()?.stats();
            Some(RoleBytes {
                member: primary.core().member(),
                item_bytes: stats.item_bytes as u64,
                absent_pages: stats.absent_pages as u64,
                serves: primary.may_serve(now, &self.around.config().timing),
            })
        })
    }

    /// What each namespace takes here: its items at the primaries, those that were flushed and are not swept yet included, and its chunks;
    /// ascending.
    #[must_use]
    pub fn namespace_uses(&self) -> BTreeMap<NamespaceId, NamespaceUse> {
        let mut uses: BTreeMap<NamespaceId, NamespaceUse> = BTreeMap::new();
        let catalog = self.map().map(|map| &map.catalog);
        let primaries = self.members.primaries().all().values();
        let stores = primaries.filter_map(|primary| Some((primary.core().member().group, primary.store()?)));
        for (group, store) in stores {
            for (cohort, known) in store.replica().cohorts().uses() {
                let of_namespace = uses.entry(cohort.namespace()).or_default();
                of_namespace.items.add(known);
                let leaves = catalog.is_some_and(|catalog| leaves(catalog, cohort.namespace(), group));
                if leaves && store.replica().cohorts().is_present(cohort) {
                    of_namespace.leaving.add(known);
                }
            }
        }
        for (namespace, bytes) in self.chunks().flat_map(|(_, chunks)| chunks.taken_by_namespaces()) {
            uses.entry(namespace).or_default().chunk_bytes += bytes;
        }
        uses
    }

    /// What the primaries here hold of each class of slots, ascending. Takes a pass over their run tables.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassUse> {
        let mut classes: BTreeMap<RunClass, ClassUse> = BTreeMap::new();
        let stores = self.members.primaries().all().values().filter_map(Primary::store);
        for one in stores.flat_map(store::DataStore::classes) {
            classes.entry(one.class).and_modify(|sum| sum.add(&one)).or_insert(one);
        }
        classes.into_values().collect()
    }

    /// Whether any of the data roles here may answer clients now; none if there are no data roles here.
    #[must_use]
    pub fn serves_some(&self, now: Time) -> Option<bool> {
        let primaries = self.members.primaries().all();
        let timing = &self.around.config().timing;
        (!primaries.is_empty()).then(|| primaries.values().any(|primary| primary.may_serve(now, timing)))
    }

    /// The primaries here, by member.
    pub fn primaries(&self) -> impl Iterator<Item = PrimaryInfo<'_>> {
        self.members.primaries().all().values().map(Primary::info)
    }

    /// The parities and mirrors here, by member.
    pub fn parities(&self) -> impl Iterator<Item = ParityInfo<'_>> {
        self.members.parities().values().map(|parity| ParityInfo {
            member: parity.member(),
            row: parity.row(),
            area: parity.area(),
            streams: parity
                .streams()
                .iter()
                .map(|stream| StreamInfo {
                    fence: stream.fence(),
                    received: stream.received(),
                    applied: stream.applied(),
                    kept: stream.kept().collect(),
                    replica: stream.replica(),
                })
                .collect(),
        })
    }

    /// Requests between their client and their primary.
    #[must_use]
    pub fn routed_requests(&self) -> usize {
        self.routes.len()
    }
}

/// Whether `namespace` moves by `catalog`, and `group` is one of its former pool.
fn leaves(catalog: &Catalog, namespace: NamespaceId, group: GroupId) -> bool {
    let moves = catalog.namespace(namespace).is_some_and(|known| known.conversion.is_some());
    moves && catalog.pool_of(namespace).is_some_and(|pool| pool.has(group))
}

/// Stripes of values in chunks that the newest scrub has found here to be no code words.
#[must_use]
pub fn wrong_stripes(host: &Host) -> &[WrongStripe] {
    host.objects.wrong_stripes()
}

/// Keys of primaries of `host` whose values have too few chunks left, as far as anybody has found.
pub fn lost_keys(host: &Host) -> impl Iterator<Item = &LostKey> {
    harmed_keys(host).filter(|known| known.harm == Harm::Lost)
}

/// Keys of primaries of `host` whose values' chunks are no code words, as far as a scrub has found.
pub fn wrong_keys(host: &Host) -> impl Iterator<Item = &LostKey> {
    harmed_keys(host).filter(|known| known.harm == Harm::Wrong)
}

fn harmed_keys(host: &Host) -> impl Iterator<Item = &LostKey> {
    host.members.primaries().all().values().flat_map(primary::harmed_keys)
}

/// Flips the bits of `mask` in a byte of a chunk of the role that is `member` at a host; false if it has no such byte.
#[cfg(feature = "planted-bugs")]
pub fn damage_chunk(host: &mut Host, member: MemberId, chunk: types::ChunkId, byte: usize, mask: u8) -> bool {
    host.objects.damage(member, chunk, byte, mask)
}

/// How fast other nodes are to a host, by what it has fetched of them.
#[must_use]
pub fn seen_links(host: &Host) -> Vec<crate::objects::SeenLink> {
    host.around.meter().links()
}

/// What planners of graphs at a host know of the network now.
#[must_use]
pub fn graph_links(host: &Host, now: types::Time) -> graph::Links {
    host.objects.graphs().links_of(now, host.around.config(), host.around.meter(), host.views.zones())
}

/// What a host has said of slow links, and what it believes now of what others have said.
#[must_use]
pub fn said_links(host: &Host, now: types::Time) -> crate::objects::SaidLinks {
    host.objects.graphs().slow_links(now, host.around.config())
}

/// What has come of the last probe of links.
#[must_use]
pub fn probe_report(host: &Host) -> crate::objects::ProbeReport {
    host.objects.probe_report()
}
