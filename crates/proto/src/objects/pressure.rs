//! Room for chunks: where it becomes short, owners are asked to evict what was not read for long.
//!
//! A holder knows which of its chunks are cold and not what they are; an owner knows that, and whether its namespace evicts. A few
//! are named at a time, as many as make up for what is missing: the holders of other roles of the same stripes are short of room, too.

use std::collections::BTreeMap;

use types::{ChunkId, KeyHash, MemberId, NamespaceId, Time, UnixSeconds};
use wire::object::{Cold, Evict, ObjectMessage};

use super::holder::Holder;
use super::scope::Scope;

/// Chunks that are named at once.
const MAX_NAMED: usize = 64;
/// Chunks of one role among them.
const MAX_OF_ROLE: usize = 16;

/// See the module.
#[derive(Default)]
pub(super) struct Pressure {
    /// What was named last, and when.
    named: Vec<(MemberId, ChunkId)>,
    at: Time,
    /// The role that was looked at last.
    hand: Option<MemberId>,
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
        holders: &mut BTreeMap<MemberId, Holder>,
        missing: u64,
    ) {
        let is_here = |(member, chunk): &(MemberId, ChunkId)| {
            holders.get(member).is_some_and(|holder| holder.chunks().get(*chunk).is_some())
        };
        self.named.retain(is_here);
        let is_early = scope.now.time.since(self.at) < scope.timing().retry_us;
        if missing == 0 || is_early && !self.named.is_empty() {
            return;
        }
        self.name(scope, holders, missing);
    }

    /// Whether room is being made.
    pub(super) fn is_being_relieved(&self) -> bool {
        !self.named.is_empty()
    }

    fn name(&mut self, scope: &mut Scope<'_>, holders: &mut BTreeMap<MemberId, Holder>, missing: u64) {
        let mut found = self.look_round(scope, holders);
        found.sort_unstable_by_key(|(member, cold)| (cold.last_access, cold.chunk, *member));
        (self.at, self.named) = (scope.now.time, Vec::new());
        let mut by_owner: BTreeMap<MemberId, Vec<Cold>> = BTreeMap::new();
        let mut bytes = 0;
        for (member, cold) in found.into_iter().take(MAX_NAMED) {
            if bytes >= missing {
                break;
            }
            bytes += cold.bytes;
            let ColdChunk { last_access, chunk, key_hash, .. } = cold;
            self.named.push((member, chunk));
            let object = Cold { object: chunk.object, key_hash, last_access };
            by_owner.entry(chunk.object.owner).or_default().push(object);
        }
        for (owner, objects) in by_owner {
            if let Some(primary) = scope.primary_of(owner) {
                scope.send(primary, ObjectMessage::Evict(Evict { owner, objects }));
            }
        }
    }

    /// Cold chunks of the roles behind those that were looked at last, until there are enough to choose from.
    fn look_round(
        &mut self,
        scope: &Scope<'_>,
        holders: &mut BTreeMap<MemberId, Holder>,
    ) -> Vec<(MemberId, ColdChunk)> {
        let behind = |member: &MemberId| self.hand.is_none_or(|hand| *member > hand);
        let (ahead, passed): (Vec<MemberId>, Vec<MemberId>) = holders.keys().copied().partition(behind);
        let mut found = Vec::new();
        for member in ahead.into_iter().chain(passed) {
            let Some(holder) = holders.get_mut(&member) else { continue };
            self.hand = Some(member);
            let may_go = |cold: &ColdChunk| may_evict(scope, cold.chunk.object.namespace);
            let cold = holder.coldest(MAX_OF_ROLE).into_iter().filter(may_go);
            found.extend(cold.map(|cold| (member, cold)));
            if found.len() >= MAX_NAMED {
                break;
            }
        }
        found
    }
}

/// Whether values of `namespace` give way to others, as far as it is known here: owners decide.
fn may_evict(scope: &Scope<'_>, namespace: NamespaceId) -> bool {
    let known = scope.views.map().and_then(|map| map.catalog.namespace(namespace));
    let may = known.is_some_and(|known| known.policy.evict.evicts(scope.evicts()));
    scope.rules().objects().evicts(may)
}
