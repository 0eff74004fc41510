//! Which node serves a key, by the newest map at hand.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use types::{ClusterId, ClusterMap, HostId, KeyBuffer, KeyHash, MemberId, NamespaceId, Slot, qualify};

use crate::{HttpError, fetch_json};

/// How long the other sources are waited for once one has answered.
const GRACE: Duration = Duration::from_millis(100);
/// How many of the map's own nodes are asked at one time.
const NODES_ASKED: usize = 8;

/// Where a key lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Its hash slot.
    pub slot: Slot,
    /// Its group and data role.
    pub member: MemberId,
    /// The process that serves it, none while it has no primary.
    pub primary: Option<HostId>,
    /// That process' memcached address.
    pub address: Option<SocketAddr>,
    /// Where its status is.
    pub http: Option<SocketAddr>,
}

/// A map and where to get the next one.
#[derive(Clone, Debug)]
pub struct Router {
    map: ClusterMap,
    sources: Vec<SocketAddr>,
    /// How often the map was asked for again: others of its nodes are asked every time.
    refreshed: usize,
}

impl Router {
    /// Fetches the newest map that `sources` (HTTP addresses of nodes or of the coordinator) have. All are asked at the same
    /// time; those that are slow are not waited for.
    ///
    /// # Errors
    /// The last source's error if none has one within `limit`.
    pub async fn fetch(sources: &[SocketAddr], limit: Duration) -> Result<Self, HttpError> {
        let map = newest(ask(sources.iter().copied(), limit).await?, None).ok_or(HttpError::NoSource)?;
        Ok(Self { map, sources: sources.to_vec(), refreshed: 0 })
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &ClusterMap {
        &self.map
    }

    /// Asks again: the sources, and some of the map's own nodes.
    ///
    /// # Errors
    /// The last source's error if none answers within `limit`; the old map stays.
    pub async fn refresh(&mut self, limit: Duration) -> Result<(), HttpError> {
        let alive = self.map.nodes.iter().filter(|node| node.alive).map(|node| node.http);
        let count = alive.clone().count();
        let some =
            // Others every time: the sources may all be gone, and so may some of those that are asked.
            alive.cycle().skip(self.refreshed * NODES_ASKED % count.max(1)).take(count.min(NODES_ASKED));
        let asked: Vec<SocketAddr> = self.sources.iter().copied().chain(some).collect();
        self.refreshed += 1;
        let found = newest(ask(asked.into_iter(), limit).await?, Some(self.map.cluster));
        if let Some(found) = found {
            let of_same = (found.cluster == self.map.cluster).then(|| self.map.clone());
            self.map = of_same.into_iter().fold(found, merged);
        }
        Ok(())
    }

    /// Where `key` lies.
    #[must_use]
    pub fn locate(&self, key: &[u8]) -> Location {
        Self::locate_in(&self.map, key)
    }

    /// Where `key` of the default namespace lies by `map`.
    #[must_use]
    pub fn locate_in(map: &ClusterMap, key: &[u8]) -> Location {
        let mut buffer = KeyBuffer::new();
        let hash = KeyHash::of(map.cluster, qualify(NamespaceId::DEFAULT, key, &mut buffer));
        let pool = map.default_pool();
        let (slot, member) = (pool.slot_of(hash), pool.member_of(hash));
        let primary = map.primary_of(member);
        let node = primary.and_then(|host| map.node(host.node));
        let (address, http) = (node.map(|node| node.memcached), node.map(|node| node.http));
        Location { slot, member, primary, address, http }
    }

    /// Every memcached address that may answer for `key`, the primary's first.
    pub fn candidates(&self, key: &[u8]) -> Vec<SocketAddr> {
        let first = self.locate(key).address;
        let alive = self.map.nodes.iter().filter(|node| node.alive).map(|node| node.memcached);
        first.into_iter().chain(alive.filter(|&address| Some(address) != first)).collect()
    }
}

/// Asks all `sources` at the same time for their maps.
async fn ask(
    sources: impl Iterator<Item = SocketAddr>,
    limit: Duration,
) -> Result<Vec<ClusterMap>, HttpError> {
    let mut asked = JoinSet::new();
    for source in sources {
        asked.spawn(fetch_map(source, limit));
    }
    let (mut maps, mut last) = (Vec::new(), HttpError::NoSource);
    // Every question ends within `limit` by itself.
    let mut until = None;
    while let Some(answer) = next(&mut asked, until).await {
        match answer {
            Ok(map) => {
                maps.push(map);
                // A source that is cut off would be waited for as long as the caller can wait; and the first that answers may be behind.
                until.get_or_insert_with(|| Instant::now() + GRACE);
            }
            Err(error) => last = error,
        }
    }
    if maps.is_empty() { Err(last) } else { Ok(maps) }
}

/// The next answer, if there is one `until` then.
async fn next<T: 'static>(asked: &mut JoinSet<T>, until: Option<Instant>) -> Option<T> {
    let joined = match until {
        None => asked.join_next().await,
        Some(until) => timeout_at(until, asked.join_next()).await.ok().flatten(),
    };
    joined?.ok()
}

async fn fetch_map(source: SocketAddr, limit: Duration) -> Result<ClusterMap, HttpError> {
    let map: ClusterMap = fetch_json(source, PATH, limit).await?;
    if map.groups.is_empty() {
        let reason = "a map without groups".to_owned();
        return Err(HttpError::Content { address: source, path: PATH.to_owned(), reason });
    }
    Ok(map)
}

/// Where nodes and coordinators have it.
const PATH: &str = "/map";

/// The newest of `maps`, with the newest views of all. Versions of different clusters say nothing of each other: the cluster
/// that most sources have counts, and among equals the one that is known already.
fn newest(maps: Vec<ClusterMap>, known: Option<ClusterId>) -> Option<ClusterMap> {
    let named = |cluster| maps.iter().filter(|map| map.cluster == cluster).count();
    let rank = |cluster: &ClusterId| (named(*cluster), Some(*cluster) == known, *cluster);
    let cluster = maps.iter().map(|map| map.cluster).max_by_key(rank)?;
    maps.into_iter().filter(|map| map.cluster == cluster).reduce(merged)
}

/// The newer of two maps of one cluster, with the newest views of both.
fn merged(one: ClusterMap, other: ClusterMap) -> ClusterMap {
    let (mut newer, older) = if one.version >= other.version { (one, other) } else { (other, one) };
    for view in older.groups {
        newer.adopt(view);
    }
    newer
}
