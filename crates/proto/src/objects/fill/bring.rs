//! What becomes of a chunk that was got from others.

use store::{Chunk, ChunkHeader, ChunkStore, Inserted};
use types::ChunkId;

use crate::objects::scope::Scope;

/// Keeps what was got from others: whatever its namespace's quota is, it is stored already. None if it is not kept.
pub(super) fn bring(
    scope: &Scope<'_>,
    chunks: &mut ChunkStore,
    id: ChunkId,
    header: ChunkHeader,
    chunk: Chunk,
) -> Option<Inserted> {
    if scope.rules().objects().fills_pass_quotas() {
        Some(chunks.insert(id, header, chunk))
    } else {
        chunks.try_insert(id, header, chunk).ok()
    }
}

#[cfg(test)]
#[cfg(feature = "planted-bugs")]
mod tests {
    use store::{Budget, ChunkBuilder, ChunkPages, Eviction, Quotas, StoreConfig};
    use types::{
        Catalog, ClusterId, ClusterMap, DataRole, Geometry, GroupId, GroupView, Holders, HostId, Incarnation,
        KeyHash, MemberId, NamespaceId, NodeId, ObjectId, RoleIndex, RoleStatus, Term, Time, UnixSeconds,
        ViewVersion,
    };

    use super::*;
    use crate::host::{Surroundings, Views};
    use crate::objects::holder::Holder;
    use crate::{Bug, HostConfig, Limits, Now, Rules, Timing};

    fn surroundings(rules: Rules) -> Surroundings {
        let host = HostId { node: NodeId(0), incarnation: Incarnation(1) };
        let (timing, limits, graphs) =
            (Timing::default(), Limits::default(), crate::GraphSettings::default());
        let (budget, quotas) = (Budget::new(1 << 20), Quotas::new(1));
        let store =
            StoreConfig { cluster: ClusterId(1), area_limit_bytes: 1 << 20, eviction: Eviction::None };
        let coder = codec::Coder::default();
        Surroundings::new(HostConfig {
            host,
            shard: 0,
            secret: crate::Secret::known_to_all(),
            timing,
            limits,
            graphs,
            coder,
            rules,
            store,
            budget,
            quotas,
        })
    }

    /// A chunk of role 0 of two data roles, 64 bytes long.
    fn chunk_in(pages: &ChunkPages) -> (ChunkId, ChunkHeader, Chunk) {
        let mut builder = ChunkBuilder::new(pages, 64, 1);
        builder.push(&[7; 64]).unwrap();
        let built = builder.finish().ok().unwrap();
        let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
        let object = ObjectId { owner, term: Term(1), number: 1, salt: 1, namespace: NamespaceId::DEFAULT };
        let header = ChunkHeader {
            key_hash: KeyHash(1),
            geometry: Geometry { len: 100, chunk_len: 65_536, k: 2, layout: types::ObjectLayout::Spread },
            trailer: [built.checksum(), 0, 0].into_iter().collect(),
            received_at: Time(0),
            last_access: UnixSeconds(0),
        };
        (ChunkId { object, stripe: 0 }, header, built)
    }

    const NOW: Now = Now { time: Time(1), unix: UnixSeconds(0) };

    /// Whether a chunk that was bad and is got anew is kept where nothing is left of the quota of its namespace.
    fn is_kept(rules: Rules) -> bool {
        let quotas = Quotas::new(1);
        let pages = ChunkPages::new(Budget::new(64 << 20)).unwrap();
        let mut chunks = ChunkStore::new(RoleIndex(0), &pages);
        let limited = [(NamespaceId::DEFAULT, quotas.share(NamespaceId::DEFAULT))];
        chunks.heed_quotas("rs(2+1)".parse().unwrap(), 3, limited.into_iter());
        let (id, header, built) = chunk_in(&pages);
        let (mut around, views) = (surroundings(rules), Views::default());
        let scope = Scope { now: NOW, around: &mut around, views: &views };
        bring(&scope, &mut chunks, id, header, built) == Some(Inserted::New)
    }

    #[test]
    fn what_is_got_anew_is_kept_whatever_the_quota_is() {
        assert!(is_kept(Rules::all()));
        assert!(!is_kept(Rules::without(Bug::FillKeptToQuota)));
    }
    /// A map of one group of two data roles and a parity: the first role is held here and the second elsewhere.
    fn map(third: Holders) -> ClusterMap {
        let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
        let since = ViewVersion(1);
        let whole = |node| Holders { whole: Some(types::Holder { host: host(node), since }), filling: None };
        let data = |node| {
            let (primary, term) = (Some(host(node)), Term(1));
            DataRole { primary, term, origin: term, status: RoleStatus::Full }
        };
        let mut catalog = Catalog::first("rs(2+1)".parse().unwrap(), 1);
        catalog.namespaces[0].policy.quota_bytes = 1 << 20;
        let view = GroupView {
            group: GroupId(0),
            version: since,
            data: vec![data(0), data(1)],
            parity: vec![Some(host(2))],
            learners: vec![],
            former: vec![],
            holders: vec![whole(0), whole(1), third],
        };
        let (cluster, layout) = (ClusterId(1), types::Layout::default());
        ClusterMap { cluster, version: 1, catalog, shards: 1, layout, nodes: vec![], groups: vec![view] }
    }

    /// What is charged for one page of chunks here.
    fn charged(rules: Rules, third: Holders) -> u64 {
        let (mut around, mut views) = (surroundings(rules), Views::default());
        views.begin(map(third));
        let pages = ChunkPages::new(Budget::new(64 << 20)).unwrap();
        let mut holder = Holder::new(MemberId { group: GroupId(0), role: RoleIndex(0) }, &pages);
        let (id, header, built) = chunk_in(&pages);
        holder.chunks_mut().insert(id, header, built);
        holder.heed_quotas(&Scope { now: NOW, around: &mut around, views: &views });
        holder.chunks().charged().map(|(_, bytes)| bytes).sum()
    }

    #[test]
    fn what_a_lost_holder_had_counts_at_the_others_until_it_is_made_again() {
        let holder = |node| {
            let host = HostId { node: NodeId(node), incarnation: Incarnation(1) };
            Some(types::Holder { host, since: ViewVersion(1) })
        };
        let (whole, filling, none) = (
            Holders { whole: holder(2), filling: None },
            Holders { whole: None, filling: holder(2) },
            Holders::default(),
        );
        let all = |rules| [whole, filling, none].map(|third| charged(rules, third));
        assert_eq!(all(Rules::all()), [683, 1024, 1024]);
        assert_eq!(all(Rules::without(Bug::LostChunksUncounted)), [683, 683, 683]);
    }
}
