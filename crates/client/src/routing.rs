//! Which node serves a key, by the newest map at hand.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use types::{
    ClusterId, ClusterMap, HostId, KeyBuffer, KeyHash, MapNews, MemberId, NamespaceId, Slot, qualify,
};

use crate::{HttpError, fetch, fetch_json};

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
    /// Changes did not fit this map: the whole one is asked for.
    doubts: bool,
}

/// What of a map is at hand.
#[derive(Clone, Copy)]
struct Has {
    cluster: ClusterId,
    since: u64,
}

impl Router {
    /// Fetches the newest map that `sources` (HTTP addresses of nodes or of the coordinator) have. All are asked at the same
    /// time; those that are slow are not waited for.
    ///
    /// # Errors
    /// The last source's error if none has one within `limit`.
    pub async fn fetch(sources: &[SocketAddr], limit: Duration) -> Result<Self, HttpError> {
        let answers = ask(sources.iter().copied(), None, limit).await?;
        let maps = answers.into_iter().filter_map(|news| match news {
            MapNews::Whole(map) => Some(Arc::unwrap_or_clone(map)),
            MapNews::Changes(_) => None,
        });
        let map = newest(maps.collect(), None).ok_or(HttpError::NoSource)?;
        Ok(Self { map, sources: sources.to_vec(), refreshed: 0, doubts: false })
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
        let has = Has { cluster: self.map.cluster, since: self.map.version };
        let answers = ask(asked.into_iter(), (!self.doubts).then_some(has), limit).await?;
        self.doubts = false;
        self.take(answers);
        Ok(())
    }

    /// What sources have answered to whoever has this map.
    fn take(&mut self, answers: Vec<MapNews>) {
        let (mut maps, mut agreeing) = (Vec::new(), 0);
        for news in answers {
            match news {
                MapNews::Whole(map) => maps.push(Arc::unwrap_or_clone(map)),
                MapNews::Changes(changes) => {
                    agreeing += 1;
                    // What does not fit is somebody's fault, perhaps this map's own.
                    self.doubts |= self.map.apply(&changes).is_err();
                }
            }
        }
        if let Some(found) = newest(maps, Some((self.map.cluster, agreeing))) {
            let of_same = (found.cluster == self.map.cluster).then(|| self.map.clone());
            self.map = of_same.into_iter().fold(found, merged);
        }
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

/// Asks all `sources` at the same time for their maps, or for what has changed since the one that is at hand.
async fn ask(
    sources: impl Iterator<Item = SocketAddr>,
    has: Option<Has>,
    limit: Duration,
) -> Result<Vec<MapNews>, HttpError> {
    let mut asked = JoinSet::new();
    for source in sources {
        asked.spawn(fetch_news(source, has, limit));
    }
    let (mut answers, mut last) = (Vec::new(), HttpError::NoSource);
    // Every question ends within `limit` by itself.
    let mut until = None;
    while let Some(answer) = next(&mut asked, until).await {
        match answer {
            Ok(news) => {
                answers.push(news);
                // A source that is cut off would be waited for as long as the caller can wait; and the first that answers may be behind.
                until.get_or_insert_with(|| Instant::now() + GRACE);
            }
            Err(error) => last = error,
        }
    }
    if answers.is_empty() { Err(last) } else { Ok(answers) }
}

/// The next answer, if there is one `until` then.
async fn next<T: 'static>(asked: &mut JoinSet<T>, until: Option<Instant>) -> Option<T> {
    let joined = match until {
        None => asked.join_next().await,
        Some(until) => timeout_at(until, asked.join_next()).await.ok().flatten(),
    };
    joined?.ok()
}

async fn fetch_news(source: SocketAddr, has: Option<Has>, limit: Duration) -> Result<MapNews, HttpError> {
    let Some(Has { cluster, since }) = has else {
        return fetch_map(source, limit).await.map(|map| MapNews::Whole(map.into()));
    };
    let path = format!("{PATH}?cluster={}&since={since}", cluster.0);
    let body = fetch(source, &path, limit).await?;
    if let Ok(changes) = serde_json::from_slice(&body) {
        return Ok(MapNews::Changes(changes));
    }
    let whole = serde_json::from_slice(&body).map(|map: ClusterMap| MapNews::Whole(map.into()));
    whole.map_err(|error| HttpError::Content { address: source, path, reason: error.to_string() })
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
/// that most sources have counts, and among equals the one that is known already, of which so many more have only told what has
/// changed.
fn newest(maps: Vec<ClusterMap>, known: Option<(ClusterId, usize)>) -> Option<ClusterMap> {
    let is_known = |cluster| known.is_some_and(|(known, _)| known == cluster);
    let agreeing = |cluster| known.filter(|_| is_known(cluster)).map_or(0, |(_, agreeing)| agreeing);
    let named = |cluster| maps.iter().filter(|map| map.cluster == cluster).count() + agreeing(cluster);
    let rank = |cluster: &ClusterId| (named(*cluster), is_known(*cluster), *cluster);
    let clusters = maps.iter().map(|map| map.cluster).chain(known.map(|(cluster, _)| cluster));
    let cluster = clusters.max_by_key(rank)?;
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
