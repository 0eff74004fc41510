//! Room for chunks: where it becomes short, owners are asked to evict what was not read for long; of all namespaces where the node is
//! short of memory, of one where that is at its quota.
//!
//! Where all memory is used and chunks have less than their share of it ([`store::CHUNK_SHARE`]), it is items that make way, if there are
//! some that may: the data roles of this host each empty an extent, for as long as room is short.
//!
//! A holder knows which of its chunks are cold and not what they are; an owner knows that, and whether its namespace evicts. A few
//! are named at a time, as many as make up for what is missing: the holders of other roles of the same stripes are short of room, too.

use std::collections::BTreeMap;

use store::ChunkPages;
use types::{ChunkId, KeyHash, MemberId, NamespaceId, Time, UnixSeconds};
use wire::object::{Cold, Evict, ObjectMessage};

use super::holders::Holders;
use super::scope::Scope;

/// Chunks that are named at once.
const MAX_NAMED: usize = 64;
/// Chunks of one role among them.
const MAX_OF_ROLE: usize = 16;

/// Whose chunks are to make room: those of one namespace, or everybody's.
pub(super) type Whose = Option<NamespaceId>;

/// How long after items were to make way areas do not grow into the share of chunks, in microseconds.
const CLAIM_US: u64 = 10_000_000;

/// What the items of this host do where chunks have less than their share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Items {
    /// Nobody has asked yet.
    #[default]
    Unknown,
    /// They make way, or others of whom this host keeps only parities do.
    MakeWay,
    /// None of them may go.
    Stay,
}

/// See the module.
#[derive(Default)]
pub(super) struct Pressure {
    /// What items do, if they are to make way.
    items: Option<Items>,
    /// Whether the data roles of this host are to be asked for room.
    asks_items: bool,
    /// Until when areas do not grow into the share of chunks.
    claims_until: Option<Time>,
    named: BTreeMap<Whose, Named>,
    /// The role that was looked at last.
    hand: Option<MemberId>,
}

/// What was named last, and when.
#[derive(Default)]
struct Named {
    chunks: Vec<(MemberId, ChunkId)>,
    at: Time,
}

/// A chunk that may go.
pub(super) struct ColdChunk {
    pub last_access: UnixSeconds,
    pub chunk: ChunkId,
    pub key_hash: KeyHash,
    pub bytes: u64,
}

impl Pressure {
    /// Names the coldest chunks if `missing` bytes are to be made free, unless what was named a moment ago is still here.
    pub(super) fn relieve(
        &mut self,
        scope: &mut Scope<'_>,
        holders: &mut Holders,
        whose: Whose,
        missing: u64,
    ) {
        let is_here = |(member, chunk): &(MemberId, ChunkId)| {
            holders.get(*member).is_some_and(|holder| holder.chunks().get(*chunk).is_some())
        };
        let mut named = self.named.remove(&whose).unwrap_or_default();
        named.chunks.retain(is_here);
        let is_early = scope.now.time.since(named.at) < scope.timing().retry_us;
        if missing > 0 && (named.chunks.is_empty() || !is_early) {
            let chunks = self.name(scope, holders, whose, missing);
            named = Named { chunks, at: scope.now.time };
        }
        if !named.chunks.is_empty() {
            self.named.insert(whose, named);
        }
    }

    /// As [`Self::relieve`] for everybody's chunks in `pages`, by items if those are to make way.
    pub(super) fn relieve_all(&mut self, scope: &mut Scope<'_>, holders: &mut Holders, pages: &ChunkPages) {
        let missing = pages.shortage();
        self.asks_items = missing > 0 && pages.lacks_share() && scope.may_evict_some();
        self.items = self.asks_items.then(|| self.items.unwrap_or_default());
        let of_chunks = if self.items == Some(Items::MakeWay) { 0 } else { missing };
        self.relieve(scope, holders, None, of_chunks);
    }

    /// Whether the data roles of this host are to be asked for room, once.
    pub(super) fn take_question(&mut self) -> bool {
        std::mem::take(&mut self.asks_items)
    }

    /// Items make way for chunks in `pages`, or there are none that may.
    pub(super) fn note_items(&mut self, now: Time, pages: &ChunkPages, make_way: bool) {
        self.items = Some(if make_way { Items::MakeWay } else { Items::Stay });
        if make_way {
            pages.claim(true);
            self.claims_until = Some(now + CLAIM_US);
        }
    }

    /// Until when areas do not grow into the share of chunks.
    pub(super) fn claims_until(&self) -> Option<Time> {
        self.claims_until
    }

    /// Lets areas grow again once chunks were not short of room for a while.
    pub(super) fn tick(&mut self, now: Time, pages: &ChunkPages) {
        if self.claims_until.take_if(|until| *until <= now).is_some() {
            pages.claim(false);
        }
    }

    /// Namespaces that `are_gone` need no room.
    pub(super) fn forget(&mut self, are_gone: impl Fn(NamespaceId) -> bool) {
        self.named.retain(|whose, _| !whose.is_some_and(&are_gone));
    }

    /// Whether room is being made for everybody's chunks.
    pub(super) fn is_being_relieved(&self) -> bool {
        let by_items = self.items.is_some_and(|items| items != Items::Stay);
        by_items || self.named.contains_key(&None)
    }

    fn name(
        &mut self,
        scope: &mut Scope<'_>,
        holders: &mut Holders,
        whose: Whose,
        missing: u64,
    ) -> Vec<(MemberId, ChunkId)> {
        let mut found = self.look_round(scope, holders, whose);
        found.sort_unstable_by_key(|(member, cold)| (cold.last_access, cold.chunk, *member));
        let mut named = Vec::new();
        let mut by_owner: BTreeMap<MemberId, Vec<Cold>> = BTreeMap::new();
        let mut bytes = 0;
        for (member, cold) in found.into_iter().take(MAX_NAMED) {
            if bytes >= missing {
                break;
            }
            bytes += cold.bytes;
            let ColdChunk { last_access, chunk, key_hash, .. } = cold;
            named.push((member, chunk));
            let object = Cold { object: chunk.object, key_hash, last_access };
            by_owner.entry(chunk.object.owner).or_default().push(object);
        }
        for (owner, objects) in by_owner {
            if let Some(primary) = scope.primary_of(owner) {
                scope.send(primary, ObjectMessage::Evict(Evict { owner, objects }));
            }
        }
        named
    }

    /// Cold chunks of the roles behind those that were looked at last, until there are enough to choose from.
    fn look_round(
        &mut self,
        scope: &Scope<'_>,
        holders: &mut Holders,
        whose: Whose,
    ) -> Vec<(MemberId, ColdChunk)> {
        let may_go = |namespace| whose.is_none_or(|only| only == namespace) && scope.may_evict(namespace);
        let behind = |member: &MemberId| self.hand.is_none_or(|hand| *member > hand);
        let (ahead, passed): (Vec<MemberId>, Vec<MemberId>) =
            holders.iter().map(|(member, _)| member).partition(behind);
        let mut found = Vec::new();
        for member in ahead.into_iter().chain(passed) {
            let Some(holder) = holders.get_mut(member) else { continue };
            self.hand = Some(member);
            let cold = holder.coldest(MAX_OF_ROLE, may_go);
            found.extend(cold.into_iter().map(|cold| (member, cold)));
            if found.len() >= MAX_NAMED {
                break;
            }
        }
        found
    }
}
