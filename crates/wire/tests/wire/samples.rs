//! Arbitrary values of every type that travels, drawn from a seed.

use bytes::Bytes;
use smallvec::{Array, SmallVec};
use std::net::SocketAddr;
use std::sync::Arc;
use types::op::*;
use types::{
    Addr, AdminAnswer, AdminCommand, AdminError, AdminRequest, Catalog, CatalogChange, ClientSession,
    ClusterId, ClusterMap, Cohort, DataRole, Entry, Epoch, EvictPolicy, Expectations, Former, Forming, Grant,
    GroupId, GroupView, Holder, Holders, HostId, Incarnation, IndexHash, IndexOp, Layout, LayoutVersion,
    Learner, LossPolicy, MapChanges, Name, NamespaceId, NamespaceLossPolicy, NodeId, NodeInfo, NodeLayout,
    NodeLoad, NodeState, ObjectPolicy, OnFinding, OnLoss, Once, PageRange, Policy, PolicyChange, PoolSlots,
    Profile, QuotaReport, QuotaUse, RepairSettings, ResultCode, RoleIndex, RoleStatus, Round, RunClass, Scan,
    ScanBound, ScanPage, ScrubProgress, ScrubSettings, Seq, Slot, SlotRange, StopReport, Striped, Term, Time,
    UnixSeconds, ViewVersion,
};
use wire::frame::{LinkHello, LinkMessage, LinkWelcome, Message, Refusal};
use wire::message::*;
use wire::record::{KnownNode, MapHead, NodeRecord, Record as Kept, ViewRecord};

/// A small generator of numbers (xorshift64*).
pub struct Gen(u64);

impl Gen {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// A length below `end`.
    pub fn len(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// One time in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.len(from.len())]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    pub fn of<T: Sample>(&mut self) -> T {
        T::sample(self)
    }
}

pub trait Sample {
    fn sample(from: &mut Gen) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Sample for $type {
            fn sample(from: &mut Gen) -> Self {
                // Often an edge, often small.
                match from.below(4) {
                    0 => from.pick(&[0, 1, <$type>::MAX, <$type>::MAX - 1]),
                    1 => from.below(100) as $type,
                    _ => from.next() as $type,
                }
            }
        }
    )* };
}

macro_rules! newtypes {
    ($($type:ident),*) => { $(
        impl Sample for $type {
            fn sample(from: &mut Gen) -> Self {
                Self(from.of())
            }
        }
    )* };
}

macro_rules! structs {
    ($($type:ident { $($field:ident),* })*) => { $(
        impl Sample for $type {
            fn sample(from: &mut Gen) -> Self {
                Self { $($field: from.of()),* }
            }
        }
    )* };
}

macro_rules! choices {
    ($($type:ident { $($tag:literal $variant:ident { $($field:tt),* })* })*) => { $(
        impl Sample for $type {
            fn sample(from: &mut Gen) -> Self {
                const COUNT: u64 = [$($tag),*].len() as u64;
                match from.below(COUNT) {
                    $( $tag => Self::$variant { $($field: from.of()),* }, )*
                    _ => unreachable!("tags count from 0"),
                }
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64, i64);
newtypes!(ClusterId, ClientSession, NodeId, Incarnation, GroupId, Time, UnixSeconds);
newtypes!(Addr, IndexHash, RunClass, Slot);

macro_rules! bounded {
    ($($type:ident),*) => { $(
        impl Sample for $type {
            fn sample(from: &mut Gen) -> Self {
                Self(from.of()).min(Self::MAX)
            }
        }
    )* };
}

bounded!(Cohort, NamespaceId, Seq, Term, ViewVersion, LayoutVersion);

/// Where one comes in a registration or with records, another one has to follow.
impl Sample for Epoch {
    fn sample(from: &mut Gen) -> Self {
        Self(from.of::<u64>().min(Self::MAX.0 - 1))
    }
}

impl Sample for RoleIndex {
    fn sample(from: &mut Gen) -> Self {
        Self(from.below(40) as u8)
    }
}

impl Sample for Key {
    fn sample(from: &mut Gen) -> Self {
        let len = from.pick(&[1, 2, 30, MAX_KEY_BYTES]);
        Self::new(from.bytes(len).into()).expect("a lawful length")
    }
}

impl Sample for Request {
    fn sample(from: &mut Gen) -> Self {
        let request = match from.of() {
            Op::Flush(at) => Self::flush(at),
            Op::Scan(scan) => Self::scan(*scan),
            Op::Expect(expect) => Self::expect(expect),
            op if op.can_be_done_once() => {
                let behind = from.below(1024) as u16;
                let sequence = u32::from(behind) + 1 + from.below(1 << 20) as u32;
                let once = Once { session: from.of(), sequence, behind, again: from.of() };
                Self::on(from.of(), op).once(from.one_in(2).then_some(once))
            }
            op => Self::on(from.of(), op),
        };
        Self { via: if from.one_in(4) { Some(from.of()) } else { None }, ..request }
    }
}

impl Sample for Scan {
    fn sample(from: &mut Gen) -> Self {
        let (keys, prefix) = (1 + from.below(256) as u16, (0..from.below(251)).map(|_| from.of()).collect());
        let bound = ScanBound::new(from.below(ScanBound::END)).expect("it is below the end");
        Self { namespace: from.of(), slot: from.of(), from: bound, prefix, keys, bytes: from.of() }
    }
}

impl Sample for ScanPage {
    fn sample(from: &mut Gen) -> Self {
        let keys = (0..from.below(6)).map(|_| from.of::<Key>().client_bytes()).collect();
        Self { keys, next: ScanBound::new(from.below(2 * ScanBound::END)), damaged: from.of() }
    }
}

impl Sample for ItemView {
    fn sample(from: &mut Gen) -> Self {
        let value: Bytes = from.of();
        let object: Option<Box<Object>> = if value.is_empty() { from.of() } else { None };
        let len = object.as_ref().map(|object| object.descriptor.geometry.len);
        let value_len = len.unwrap_or(value.len() as u64);
        Self {
            value,
            value_len,
            flags: from.of(),
            version: from.of(),
            ttl_seconds: from.of(),
            fetched: from.of(),
            idle_seconds: from.of(),
            size_bytes: from.of(),
            win: from.of(),
            stale: from.of(),
            win_sent: from.of(),
            object,
        }
    }
}

/// Some pages of a run.
impl Sample for PageRange {
    fn sample(from: &mut Gen) -> Self {
        Self { first: from.below(1 << 22) as u32, count: 1 + from.below(16) as u32 }
    }
}

/// Records that follow each other.
impl Sample for Frame {
    fn sample(from: &mut Gen) -> Self {
        let mut records: Vec<Record> = from.of();
        let first = from.below(u64::MAX / 4);
        (first..).zip(&mut records).for_each(|(seq, record)| record.seq = Seq(seq));
        let wall = from.of();
        Self { term: from.of(), sent_at: from.of(), wall, committed: from.of(), records }
    }
}

impl Sample for ScrubSettings {
    fn sample(from: &mut Gen) -> Self {
        let generation = from.of::<u64>().min(Self::MAX_GENERATION);
        Self { generation, running: from.of(), repair: from.of(), bytes_per_second: from.of() }
    }
}

/// Holders that a view of this version may name.
fn holders(from: &mut Gen, version: ViewVersion) -> Holders {
    let until = |holder: Option<Holder>| holder.map(|it| Holder { since: it.since.min(version), ..it });
    Holders { whole: until(from.of()), filling: until(from.of()) }
}

/// A view that a group of this profile may have.
fn view(from: &mut Gen, group: GroupId, profile: Profile) -> GroupView {
    let version = ViewVersion(1 + from.of::<ViewVersion>().0.min(ViewVersion::MAX.0 - 1));
    let role = |from: &mut Gen| {
        let status = from.of();
        let served = matches!(status, RoleStatus::Full | RoleStatus::Rebuilding { .. });
        let primary = if served { Some(from.of()) } else { None };
        let origin = Term(1 + from.below(1 << 20) as u32);
        DataRole { primary, term: Term(origin.0 + from.below(1 << 20) as u32), origin, status }
    };
    let data = (0..profile.k()).map(|_| role(from)).collect();
    let parity = (0..profile.m()).map(|_| from.of()).collect();
    let mut learners: Vec<Learner> = from.of();
    for (role, learner) in (0..).zip(&mut learners) {
        (learner.role, learner.since) = (RoleIndex(role), learner.since.min(version));
    }
    learners.truncate(profile.n());
    let mut former = |role| Former { role: RoleIndex(role), primary: from.of(), witnesses: vec![from.of()] };
    let former = if profile.k() > 1 { vec![former(0)] } else { Vec::new() };
    let holders = match from.one_in(2) {
        true => Vec::new(),
        false => (0..profile.n()).map(|_| holders(from, version)).collect(),
    };
    GroupView { group, version, data, parity, learners, former, holders }
}

impl Sample for GroupView {
    fn sample(from: &mut Gen) -> Self {
        let (group, profile) = (from.of(), from.of());
        view(from, group, profile)
    }
}

impl Sample for ClusterMap {
    fn sample(from: &mut Gen) -> Self {
        let catalog: Catalog = from.of();
        let mut nodes: Vec<NodeInfo> = from.of();
        nodes.sort_by_key(|info| info.host.node);
        nodes.dedup_by_key(|info| info.host.node);
        let pools = catalog.pools.iter().flat_map(|pool| pool.group_ids().map(|group| (group, pool.profile)));
        let groups = pools.map(|(group, profile)| view(from, group, profile)).collect();
        Self {
            cluster: from.of(),
            version: from.of::<u64>().min(Self::MAX_VERSION),
            catalog,
            shards: from.of::<u16>().max(1),
            layout: from.of(),
            nodes,
            groups,
        }
    }
}

impl Sample for MapChanges {
    fn sample(from: &mut Gen) -> Self {
        let version = from.of::<u64>().min(ClusterMap::MAX_VERSION);
        let mut nodes: Vec<NodeInfo> = from.of();
        nodes.sort_by_key(|info| info.host.node);
        nodes.dedup_by_key(|info| info.host.node);
        let mut gone: Vec<NodeId> = from.of();
        gone.sort_unstable();
        gone.dedup();
        let mut views: Vec<GroupView> = from.of();
        views.sort_by_key(|view| view.group);
        views.dedup_by_key(|view| view.group);
        let (cluster, catalog, layout) = (from.of(), from.of(), from.of());
        Self { cluster, since: from.below(version + 1), version, catalog, layout, nodes, gone, views }
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(from: &mut Gen) -> Self {
        Self::new(from.of())
    }
}

impl<T: Sample> Sample for Arc<T> {
    fn sample(from: &mut Gen) -> Self {
        Self::new(from.of())
    }
}

impl Sample for MapHead {
    fn sample(from: &mut Gen) -> Self {
        Self {
            cluster: from.of(),
            epoch: from.of(),
            version: from.of::<u64>().min(ClusterMap::MAX_VERSION),
            catalog: from.of(),
            shards: from.of(),
            layout: from.of(),
            nodes: from.of(),
        }
    }
}

/// A first pool and namespace, and some that came and went.
impl Sample for ObjectPolicy {
    fn sample(from: &mut Gen) -> Self {
        let striped_above = from.of::<Option<u32>>().map(|bytes| bytes % (types::MAX_STRIPED_ABOVE + 1));
        let cells = 1 + from.below(1024) as u32;
        Self { striped_above, chunk_bytes: cells * types::MAX_CELL_BYTES, layout: from.of() }
    }
}

impl Sample for Catalog {
    fn sample(from: &mut Gen) -> Self {
        let mut catalog = Self::first(from.of(), 1 + from.below(4) as u32);
        let name = |kind: &str, at: u64| -> Name { format!("{kind}-{at}").parse().expect("a name") };
        for at in 0..from.below(3) {
            let made = catalog.create_pool(name("p", at), from.of(), 1 + from.below(3) as u32);
            made.expect("there is room for it");
            let made = catalog.create_namespace(name("n", at), &name("p", at), from.of());
            let made = made.expect("there is room for it");
            if from.one_in(3) {
                catalog.convert(&name("n", at), &Name::default_name()).expect("it is elsewhere");
                catalog.pause_conversion(&name("n", at), from.of()).expect("it is on its way");
                assert!(from.one_in(2) || catalog.end_conversion(made));
            }
            if from.one_in(4) {
                catalog.remove_namespace(&name("n", at)).expect("it was just made");
                catalog.remove_pool(&name("p", at)).expect("nobody is in it any more");
            }
        }
        catalog
    }
}

impl Sample for Name {
    fn sample(from: &mut Gen) -> Self {
        from.pick(&["default", "a", "team-1.cache_2", &"0".repeat(64)]).parse().expect("these are names")
    }
}

impl Sample for ViewRecord {
    fn sample(from: &mut Gen) -> Self {
        Self { map_version: from.of::<u64>().min(ClusterMap::MAX_VERSION), view: from.of() }
    }
}

impl Sample for NodeRecord {
    fn sample(from: &mut Gen) -> Self {
        Self { map_version: from.of::<u64>().min(ClusterMap::MAX_VERSION), node: from.of() }
    }
}

impl Sample for bool {
    fn sample(from: &mut Gen) -> Self {
        from.one_in(2)
    }
}

impl Sample for Write {
    fn sample(from: &mut Gen) -> Self {
        Self::new(from.of(), from.of())
    }
}

impl Sample for Bytes {
    fn sample(from: &mut Gen) -> Self {
        let len = from.pick(&[0, 1, 5, 100, 5000]);
        from.bytes(len).into()
    }
}

impl Sample for String {
    fn sample(from: &mut Gen) -> Self {
        from.pick(&[
            "",
            "zone-a",
            "größer",
            "a much longer text that says what went wrong and what to do next",
        ])
        .into()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(from: &mut Gen) -> Self {
        if from.one_in(3) { None } else { Some(from.of()) }
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(from: &mut Gen) -> Self {
        (0..from.len(6)).map(|_| from.of()).collect()
    }
}

impl<A: Array> Sample for SmallVec<A>
where
    A::Item: Sample,
{
    fn sample(from: &mut Gen) -> Self {
        (0..from.len(6)).map(|_| from.of()).collect()
    }
}

impl Sample for (RoleIndex, HostId) {
    fn sample(from: &mut Gen) -> Self {
        (from.of(), from.of())
    }
}

impl<T: Sample, E: Sample> Sample for Result<T, E> {
    fn sample(from: &mut Gen) -> Self {
        if from.one_in(2) { Ok(from.of()) } else { Err(from.of()) }
    }
}

impl Sample for std::collections::BTreeMap<NodeId, NodeLayout> {
    fn sample(from: &mut Gen) -> Self {
        (0..from.len(6)).map(|_| (from.of(), from.of())).collect()
    }
}

impl Sample for Profile {
    fn sample(from: &mut Gen) -> Self {
        const NAMES: [&str; 7] =
            ["none", "rep(9)", "rs(32+32)", "rs(3+2)", "lrc(12,2,2)", "mirror(4)", "isal-cauchy(10+4)"];
        from.pick(&NAMES).parse().expect("these are profiles")
    }
}

impl Sample for SocketAddr {
    fn sample(from: &mut Gen) -> Self {
        let port = from.of();
        if from.one_in(2) {
            (from.of::<u32>().to_be_bytes(), port).into()
        } else {
            ([(); 8].map(|()| from.of::<u16>()), port).into()
        }
    }
}

structs! {
    Transfer { expected, departure, stale, win_sent }
    Departure { number, wall }
    Expect { from, term, number }
    HostId { node, incarnation }
    NodeInfo { host, peer, memcached, http, native, zone, alive }
    Layout { version, nodes, repair, scrub, on_loss }
    NodeLayout { state, zone }
    RepairSettings { paused, bytes_per_second, memory_bytes }
    ScrubProgress { generation, checked_pages, left_pages, mismatches, corrected }
    AdminRequest { expect, command }
    StopReport { node, data_roles, parity_roles, losses_survived_after, groups_lost, unheard, heartbeat_us }
    NodeLoad {
        used_bytes, limit_bytes, member_bytes, repair_done_bytes, repair_left_bytes, repair_bytes_per_second, scrub
    }
    Expectations { cluster, profile, shards, entry, lease_us }
    Registration { info, expect, holds, promised, map }
    KeptRecords { epoch, position, electors, records }
    Forming { expected, here }
    Refused { cluster, epoch, fenced, reason }
    SlotRange { first, last }
    Policy { evict, on_loss, default_ttl_seconds, quota_bytes, objects }
    PolicyChange { evict, on_loss, default_ttl_seconds, quota_bytes, striped, chunk_bytes, layout }
    Flush { namespace, at }
    QuotaUse { namespace, roles, used_bytes, share_bytes, dealt }
    QuotaReport { heard, uses }
    Round { epoch, number }
    Grant { namespace, bytes }
    PoolSlots { pool, slots }
    Learner { role, host, since, whole }
    LinkHello { cluster, from, to, shard }
    LinkWelcome { from }
    Forward { id, group, role, request }
    Answer { id, outcome }
    GroupMessage { group, view, from, to, body }
    Hello { term, committed }
    Welcome { term, received, wall }
    Record { seq, writes, ops }
    Ack { term, received, echo }
    Reject { fence }
    Reserve { term, run }
    Reserved { term, run, granted }
    FetchIndex { term, part }
    IndexPart { term, part, last, bytes }
    SessionId { role, term, number }
    Open { session, pages, committed }
    Opened { session }
    Read { session, pages, parities }
    Page { session, term, committed, bytes, wrong }
    Residual { session, lost, bytes }
    Abort { session }
    Lesson { since, attempt }
    KnownNode { info, fenced }
    LearnHello { lesson, applied }
    Learn { lesson, term, number, tag, part }
    Learned { lesson, term, number }
    Get { touch, vivify, recache_below_seconds, value, claim, version, bump }
    Store { mode, value, flags, expiry, compare, version, invalidate, vivify }
    Delete { compare, version, invalidate, touch, drop_value }
    Arith { direction, delta, vivify, initial, touch, compare, version }
}

choices! {
    Kept { 0 Head { 0 } 1 View { 0 } 2 Node { 0 } }
    RoleStatus { 0 Full {} 1 Fenced {} 2 Orphan { 0 } 3 Rebuilding { start, wait_us } 4 Lost {} 5 Accepted {} }
    Refusal { 0 WrongNode {} 1 WrongShard {} 2 UnknownNode {} 3 StaleIncarnation {} 4 Busy {} }
    LinkMessage { 0 Hello { 0 } 1 Welcome { 0 } 2 Refused { 0 } }
    IndexOp {
        0 Assign { run, class } 1 Insert { hash, addr, cohort } 2 Replace { hash, old, new, cohort }
        3 Remove { hash, addr, cohort } 4 Flush { namespace } 5 FlushAt { namespace, at }
        6 SessionBegins { session } 7 SessionEnds { session } 8 WriteDone { session, sequence, behind, code, version }
        9 WriteCounted { session, sequence, number }
    }
    ResultCode {
        0 Stored {} 1 Deleted {} 2 Touched {} 3 Number {} 4 NotStored {} 5 Exists {} 6 NotFound {} 7 NotANumber {}
        8 TooLarge {}
    }
    GroupBody {
        0 Hello { 0 } 1 Welcome { 0 } 2 Frame { 0 } 3 Ack { 0 } 4 Reject { 0 } 5 Reserve { 0 } 6 Reserved { 0 }
        7 FetchIndex { 0 } 8 IndexPart { 0 } 9 Open { 0 } 10 Opened { 0 } 11 Read { 0 } 12 Page { 0 }
        13 Residual { 0 } 14 Abort { 0 } 15 LearnHello { 0 } 16 Learn { 0 } 17 Learned { 0 }
    }
    PeerMessage { 0 Group { 0 } 1 Forward { 0 } 2 Answer { 0 } 3 Object { 0 } 4 Graph { 0 } }
    ToCoordinator {
        0 Register { 0 } 1 Heartbeat { host, map, load } 2 FetchView { group }
        3 Stalled { group, role, term, view, silent } 4 Repaired { group, role, term }
        5 Fenced { group, role, term, parity, received, applied, quiet_us, epoch } 6 Settled { group, role, term, parity, epoch }
        7 CaughtUp { group, role, term, learner, lesson } 8 GaveUp { group, learner, since }
        9 HandedOver { group, role, term, since, asked_at, epoch } 10 Admin { id, request }
        11 Kept { epoch, position } 12 Recalled { epoch, kept } 13 Confirmed { group, view, epoch }
        14 Quotas { 0 } 15 Chunks { 0 } 16 Converted { member, namespace, number }
        17 Starved { group, role, term, bytes }
    }
    LearnPart {
        0 Begin { rows, classes } 1 Run { run, pages, bytes } 2 Segment { segment, entries } 3 End { runs }
        4 Resume {} 5 Gone {}
    }
    FromCoordinator {
        0 Map { 0 } 1 View { 0 } 2 Refused { 0 } 3 Fence { group, role, term, parity, epoch }
        4 Settle { group, role, term, parity, upto, epoch } 5 Alive {} 6 HandOver { group, role, term, since, asked_at, epoch } 7 Admin { id, reply }
        8 Occupied { by, peer, lease_us, cluster, epoch } 9 Keep { epoch, position, electors, whole, records } 10 Recall { epoch } 11 Waiting {}
        12 Confirm { group, view, epoch } 13 Forming { 0 } 14 Shares { round, grants }
        15 Changes { 0 }
    }
    NodeState { 0 Active {} 1 Draining {} }
    OnLoss { 0 Refuse {} 1 Accept {} }
    LossPolicy { 0 Error {} 1 Empty {} }
    EvictPolicy { 0 Node {} 1 Evict {} 2 Keep {} }
    NamespaceLossPolicy { 0 Cluster {} 1 Error {} 2 Empty {} }
    Striped { 0 Never {} 1 Above { 0 } }
    OnFinding { 0 Report {} 1 Correct {} }
    Entry { 0 Founder {} 1 Joiner {} }
    AdminCommand {
        0 Drain { node } 1 Undrain { node } 2 Fence { node, loss } 3 CanStop { node, heard_within_us } 4 PauseRepair {}
        5 ResumeRepair {} 6 LimitRepair { bytes_per_second, memory_bytes } 7 Apply { layout }
        8 StartScrub { finding, bytes_per_second } 9 StopScrub {} 10 Remove { node }
        11 AcceptLoss { pool, slots, namespace } 12 SetLossPolicy { policy } 13 Reset {}
        14 Catalog { 0 }
    }
    CatalogChange {
        0 CreatePool { name, profile, groups } 1 RemovePool { name } 2 CreateNamespace { name, pool, policy }
        3 SetPolicy { name, change } 4 RemoveNamespace { name } 5 ConvertNamespace { name, to } 6 PauseConversion { name, paused }
    }
    AdminAnswer { 0 Layout { 0 } 1 CanStop { 0 } 2 Accepted { 0 } 3 Catalog { 0 } }
    AdminError {
        0 NotFormed {} 1 VersionConflict { named, have } 2 UnknownNode { node }
        3 NotEnoughNodes { node, left, profile, needed } 4 WouldLoseData { reason, way_out } 5 BadLayout { reason }
        6 StillThere { node, reason, way_out } 7 BadCatalog { reason }
    }
    Message { 0 Link { 0 } 1 Peer { 0 } 2 ToCoordinator { 0 } 3 FromCoordinator { 0 } }
    Op { 0 Get { 0 } 1 Store { 0 } 2 Delete { 0 } 3 Arith { 0 } 4 Touch { 0 } 5 Debug {} 6 Flush { 0 } 7 Object { 0 } 8 Session {} 9 Scan { 0 } 10 Expect { 0 } }
    Via { 0 Departed { 0 } 1 Transfer { 0 } }
    Expiry { 0 Never {} 1 At { 0 } }
    FlushAt { 0 Now {} 1 At { 0 } }
    Claim { 0 Never {} 1 IfDue {} }
    Want { 0 Value {} 1 NoValue {} }
    Bump { 0 Count {} 1 Silent {} }
    StoreMode { 0 Set {} 1 Add {} 2 Replace {} 3 Append {} 4 Prepend {} }
    Direction { 0 Increment {} 1 Decrement {} }
    Outcome {
        0 Hit { 0 } 1 Miss {} 2 Stored { 0 } 3 NotStored {} 4 Exists {} 5 NotFound {} 6 Deleted {} 7 Touched { 0 }
        8 Number { 0, 1 } 9 Flushed {} 10 Failed { 0 } 11 Begun { 0 } 12 Noted {} 13 Session { 0 }
        14 Keys { 0 }
    }
    Failure {
        0 NotANumber {} 1 TooLarge {} 2 OutOfMemory {} 3 Busy {} 4 Unavailable {} 5 Lost {} 6 Unknown {}
        7 Corrupt {} 8 WrongPrimary {} 9 NoNamespace {} 10 NotOpen {} 11 Replaced {} 12 NoSession {} 13 Expired {} 14 Departed { 0 }
    }
}

#[path = "samples/graphs.rs"]
mod graphs;
#[path = "samples/objects.rs"]
mod objects;
