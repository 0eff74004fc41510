//! Which node serves a key, by the newest map at hand.

use std::net::SocketAddr;
use std::time::Duration;

use cluster::{ClusterMap, HostId, KeyHash, MemberId, Slot};

use crate::{HttpError, fetch_json};

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
}

/// A map and where to get the next one.
#[derive(Clone, Debug)]
pub struct Router {
    map: ClusterMap,
    sources: Vec<SocketAddr>,
}

impl Router {
    /// Fetches the map from the first of `sources` (HTTP addresses of nodes or of the coordinator) that has one.
    ///
    /// # Errors
    /// The last source's error if none has one.
    pub async fn fetch(sources: &[SocketAddr], limit: Duration) -> Result<Self, HttpError> {
        let map = newest_map(sources.iter().copied(), limit).await?;
        Ok(Self { map, sources: sources.to_vec() })
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &ClusterMap {
        &self.map
    }

    /// Asks again: the first of the sources and then the map's own nodes that has a map.
    ///
    /// # Errors
    /// The last source's error if none answers; the old map stays.
    pub async fn refresh(&mut self, limit: Duration) -> Result<(), HttpError> {
        let nodes = self.map.nodes.iter().filter(|node| node.alive).map(|node| node.http);
        let sources: Vec<_> = self.sources.iter().copied().chain(nodes).collect();
        let map = newest_map(sources.into_iter(), limit).await?;
        if map.version >= self.map.version || map.cluster != self.map.cluster {
            self.map = map;
        }
        Ok(())
    }

    /// Where `key` lies.
    #[must_use]
    pub fn locate(&self, key: &[u8]) -> Location {
        Self::locate_in(&self.map, key)
    }

    /// Where `key` lies by `map`.
    #[must_use]
    pub fn locate_in(map: &ClusterMap, key: &[u8]) -> Location {
        let hash = KeyHash::of(map.cluster, key);
        let member = map.member_of(hash);
        let primary = map.primary_of(member);
        let address = primary.and_then(|host| map.node(host.node)).map(|node| node.memcached);
        Location { slot: hash.slot(), member, primary, address }
    }

    /// Every memcached address that may answer for `key`, the primary's first.
    pub fn candidates(&self, key: &[u8]) -> Vec<SocketAddr> {
        let first = self.locate(key).address;
        let alive = self.map.nodes.iter().filter(|node| node.alive).map(|node| node.memcached);
        first.into_iter().chain(alive.filter(|&address| Some(address) != first)).collect()
    }
}

async fn newest_map(
    sources: impl Iterator<Item = SocketAddr>,
    limit: Duration,
) -> Result<ClusterMap, HttpError> {
    let mut last = HttpError::NoSource;
    for source in sources {
        match fetch_json(source, "/map", limit).await {
            Ok(map) => return Ok(map),
            Err(error) => last = error,
        }
    }
    Err(last)
}
