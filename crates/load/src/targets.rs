//! Which servers there are, and which key belongs to which of them.

use std::net::SocketAddr;
use std::time::Duration;

use client::Router;
use types::{ClusterId, ClusterMap, KeyHash};

use crate::keys::KeyFormat;

/// Where the list of servers comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A fixed list, sharded by key.
    Sharded(Vec<SocketAddr>),
    /// A fixed list; every server answers for every key.
    Any(Vec<SocketAddr>),
    /// The cluster's map, fetched from this HTTP address; keys go to their primaries.
    Map(SocketAddr),
    /// The cluster's map; every node is asked for every key.
    AnyOfMap(SocketAddr),
}

/// The servers now, and the owner of each key.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Where to connect.
    pub addresses: Vec<SocketAddr>,
    /// By key number, an index into `addresses`; empty if any server will do.
    pub owners: Vec<u16>,
    /// Processes to be asked for their CPU time are found by these.
    pub process_addresses: Vec<SocketAddr>,
    /// Where a map can be had.
    map_addresses: Vec<SocketAddr>,
}

const FETCH_LIMIT: Duration = Duration::from_secs(2);

impl Targets {
    /// Asks the source; `format` and `keys` say which keys there are.
    ///
    /// # Errors
    /// One line if the map cannot be had or names no live node.
    pub fn resolve(source: &Source, format: &mut KeyFormat, keys: u32) -> Result<Self, String> {
        match source {
            Source::Any(addresses) => Ok(Self::fixed(addresses, Vec::new())),
            Source::Sharded(addresses) if addresses.len() == 1 => Ok(Self::fixed(addresses, Vec::new())),
            Source::Sharded(addresses) => {
                let count = addresses.len() as u64;
                let owner = |key: &[u8]| (KeyHash::of(ClusterId(0), key).0 % count) as u16;
                Ok(Self::fixed(addresses, (0..keys).map(|number| owner(format.write(number))).collect()))
            }
            Source::Map(http) => Self::routed(&fetch_map(&[*http])?, *http, format, keys),
            Source::AnyOfMap(http) => Self::routed(&fetch_map(&[*http])?, *http, format, 0),
        }
    }

    /// Asks again, any node that has a map; none if the source has no map, or nobody answers.
    pub fn refreshed(&self, source: &Source, format: &mut KeyFormat, keys: u32) -> Option<Self> {
        let (http, keys) = match source {
            Source::Map(http) => (*http, keys),
            Source::AnyOfMap(http) => (*http, 0),
            Source::Any(_) | Source::Sharded(_) => return None,
        };
        Self::routed(&fetch_map(&self.map_addresses).ok()?, http, format, keys).ok()
    }

    fn fixed(addresses: &[SocketAddr], owners: Vec<u16>) -> Self {
        Self {
            addresses: addresses.to_vec(),
            owners,
            process_addresses: addresses.to_vec(),
            map_addresses: Vec::new(),
        }
    }

    fn routed(map: &ClusterMap, http: SocketAddr, format: &mut KeyFormat, keys: u32) -> Result<Self, String> {
        let addresses: Vec<_> =
            map.nodes.iter().filter(|node| node.alive).map(|node| node.memcached).collect();
        if addresses.is_empty() {
            return Err("the map names no live node: see `gestalt status`".to_owned());
        }
        let count = addresses.len();
        let owner = |number: u32| {
            let location = Router::locate_in(map, format.write(number));
            let at = addresses.iter().position(|&address| Some(address) == location.address);
            // A slot without a primary: any node forwards, or says why not.
            at.unwrap_or(number as usize % count) as u16
        };
        let owners = (0..keys).map(owner).collect();
        let process_addresses = addresses.iter().copied().chain([http]).collect();
        let nodes = map.nodes.iter().filter(|node| node.alive).map(|node| node.http);
        let map_addresses = [http].into_iter().chain(nodes).collect();
        Ok(Self { addresses, owners, process_addresses, map_addresses })
    }

    /// Whether `key` may be asked of server `target`.
    pub fn owns(&self, target: usize, key: u32) -> bool {
        self.owners.get(key as usize).is_none_or(|&owner| usize::from(owner) == target)
    }
}

fn fetch_map(sources: &[SocketAddr]) -> Result<ClusterMap, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let router = runtime.block_on(Router::fetch(sources, FETCH_LIMIT));
    router
        .map(|router| router.map().clone())
        .map_err(|error| format!("{error}: is the cluster running, and is --http its address?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharding_gives_every_server_its_part() {
        let addresses: Vec<SocketAddr> =
            (1..=3).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let targets = Targets::resolve(&Source::Sharded(addresses), &mut KeyFormat::new(24), 3000).unwrap();
        for target in 0..3 {
            let owned = (0..3000).filter(|&key| targets.owns(target, key)).count();
            assert!((900..1100).contains(&owned), "{owned}");
        }
    }

    #[test]
    fn one_server_owns_everything() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let targets = Targets::resolve(&Source::Sharded(vec![address]), &mut KeyFormat::new(24), 10).unwrap();
        assert!(targets.owners.is_empty() && targets.owns(0, 9));
    }
}
