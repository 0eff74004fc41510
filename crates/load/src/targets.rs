//! Which servers there are, and which key belongs to which of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use client::Router;
use types::{ClusterId, ClusterMap, KeyHash, MemberId, NodeId, NodeInfo};

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

/// Which address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// That for memcached's protocols.
    Memcached,
    /// That for the native protocol.
    Native,
}

/// Why there are no servers to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// There is no map, or nobody lives in it.
    NoMap(String),
    /// A node does not speak what is wanted.
    NoListener(String),
}

/// The servers now, and the owner of each key.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Where to connect.
    pub addresses: Vec<SocketAddr>,
    /// By key number, an index into `addresses`; empty if any server will do.
    pub owners: Vec<u16>,
    /// By key number, its data role; empty if nobody asks.
    roles: Vec<MemberId>,
    /// Processes to be asked for their CPU time are found by these.
    pub process_addresses: Vec<SocketAddr>,
    /// Where a map can be had.
    map_addresses: Vec<SocketAddr>,
    rule: Rule,
}

/// Where a key belongs.
#[derive(Clone, Debug)]
enum Rule {
    Anywhere,
    /// By its hash, to one of so many.
    Sharded(u64),
    Mapped(Arc<Mapped>),
}

/// Where the map says.
#[derive(Debug)]
struct Mapped {
    map: ClusterMap,
    /// In the order of the addresses.
    nodes: Vec<NodeId>,
    routing: Routing,
    listener: Listener,
}

const FETCH_LIMIT: Duration = Duration::from_secs(2);

impl Targets {
    /// Asks the source; `format` and `keys` say which keys there are.
    ///
    /// # Errors
    /// If the map cannot be had, names no live node, or one without such a listener.
    pub fn resolve(
        source: &Source,
        listener: Listener,
        format: &mut KeyFormat,
        keys: u32,
    ) -> Result<Self, Unresolved> {
        match source {
            Source::Any(addresses) => Ok(Self::fixed(addresses, Rule::Anywhere)),
            Source::Sharded(addresses) if addresses.len() == 1 => Ok(Self::fixed(addresses, Rule::Anywhere)),
            Source::Sharded(addresses) => {
                let mut targets = Self::fixed(addresses, Rule::Sharded(addresses.len() as u64));
                targets.cover(keys, format);
                Ok(targets)
            }
            Source::Map(http) | Source::AnyOfMap(http) => {
                let map = fetch_map(&[*http]).map_err(Unresolved::NoMap)?;
                Self::routed(map, source.routing(), *http, listener, (format, keys))
            }
        }
    }

    /// Asks again, any node that has a map; none if the source has no map, or nobody answers.
    pub fn refreshed(
        &self,
        source: &Source,
        listener: Listener,
        format: &mut KeyFormat,
        keys: u32,
    ) -> Option<Self> {
        let (Source::Map(http) | Source::AnyOfMap(http)) = source else { return None };
        let map = fetch_map(&self.map_addresses).ok()?;
        let covered = self.owners.len().max(self.roles.len());
        // Also those that were added since.
        let keys = u32::try_from(covered).unwrap_or(u32::MAX).max(keys);
        Self::routed(map, source.routing(), *http, listener, (format, keys)).ok()
    }

    fn fixed(addresses: &[SocketAddr], rule: Rule) -> Self {
        Self {
            addresses: addresses.to_vec(),
            owners: Vec::new(),
            roles: Vec::new(),
            process_addresses: addresses.to_vec(),
            map_addresses: Vec::new(),
            rule,
        }
    }

    fn routed(
        map: ClusterMap,
        routing: Routing,
        http: SocketAddr,
        listener: Listener,
        (format, keys): (&mut KeyFormat, u32),
    ) -> Result<Self, Unresolved> {
        let (nodes, addresses): (Vec<NodeId>, Vec<SocketAddr>) =
            listening(&map, listener)?.into_iter().unzip();
        let alive = map.nodes.iter().filter(|node| node.alive).map(|node| node.http);
        let map_addresses = [http].into_iter().chain(alive).collect();
        let process_addresses = addresses.iter().copied().chain([http]).collect();
        let rule = Rule::Mapped(Arc::new(Mapped { map, nodes, routing, listener }));
        let mut targets = Self { process_addresses, map_addresses, ..Self::fixed(&addresses, rule) };
        targets.cover(keys, format);
        Ok(targets)
    }

    /// Knows where the keys below `keys` belong.
    pub(crate) fn cover(&mut self, keys: u32, format: &mut KeyFormat) {
        match &self.rule {
            Rule::Anywhere => {}
            Rule::Sharded(count) => {
                for number in self.owners.len() as u32..keys {
                    let hash = KeyHash::of(ClusterId(0), format.write(number));
                    self.owners.push((hash.0 % count) as u16);
                }
            }
            Rule::Mapped(mapped) => {
                for number in self.owners.len().max(self.roles.len()) as u32..keys {
                    let location = Router::locate_in(&mapped.map, format.write(number));
                    if mapped.routing == Routing::ToPrimaries {
                        let primary = location.primary.map(|host| host.node);
                        let at = mapped.nodes.iter().position(|node| Some(*node) == primary);
                        // A slot without a primary: any node forwards, or says why not.
                        self.owners.push(at.unwrap_or(number as usize % mapped.nodes.len()) as u16);
                    }
                    if mapped.listener == Listener::Native {
                        self.roles.push(location.member);
                    }
                }
            }
        }
    }

    /// One server, which has all keys under one data role.
    #[cfg(test)]
    pub(crate) fn of_one_role(address: SocketAddr, keys: u32) -> Self {
        let role = MemberId { group: types::GroupId(0), role: types::RoleIndex(0) };
        Self { roles: vec![role; keys as usize], ..Self::fixed(&[address], Rule::Anywhere) }
    }

    /// The server to which `key` belongs; none if any will do.
    pub(crate) fn owner_of(&self, key: u32) -> Option<usize> {
        self.owners.get(key as usize).map(|&owner| usize::from(owner))
    }

    /// Whether nobody but its owner knows a key.
    pub(crate) fn is_sharded(&self) -> bool {
        matches!(self.rule, Rule::Sharded(_))
    }

    /// Whether `key` may be asked of server `target`.
    pub fn owns(&self, target: usize, key: u32) -> bool {
        self.owners.get(key as usize).is_none_or(|&owner| usize::from(owner) == target)
    }

    /// The data role of `key`, where a map says that and somebody asks.
    pub fn role_of(&self, key: u32) -> Option<MemberId> {
        self.roles.get(key as usize).copied()
    }
}

/// What a map is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Routing {
    ToPrimaries,
    ToAny,
}

impl Source {
    fn routing(&self) -> Routing {
        match self {
            Self::Map(_) | Self::Sharded(_) => Routing::ToPrimaries,
            Self::AnyOfMap(_) | Self::Any(_) => Routing::ToAny,
        }
    }
}

/// The nodes that live, and where each of them listens.
fn listening(map: &ClusterMap, listener: Listener) -> Result<Vec<(NodeId, SocketAddr)>, Unresolved> {
    let alive = || map.nodes.iter().filter(|node| node.alive);
    if alive().next().is_none() {
        return Err(Unresolved::NoMap("the map names no live node: see `gestalt status`".to_owned()));
    }
    let address = |node: &NodeInfo| {
        let id = node.host.node;
        let address = match listener {
            Listener::Memcached => Some(node.memcached),
            Listener::Native => node.native,
        };
        address.map(|address| (id, address)).ok_or_else(|| {
            Unresolved::NoListener(format!(
                "node {} does not speak the native protocol: start it with --native ADDR, or leave out --protocol native",
                id.0
            ))
        })
    };
    alive().map(address).collect()
}

fn fetch_map(sources: &[SocketAddr]) -> Result<ClusterMap, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let router = runtime.block_on(Router::fetch(sources, FETCH_LIMIT));
    router.map(|router| router.map().clone()).map_err(|error| match error.not_yet() {
        Some(why) => why.to_owned(),
        None => format!("{error}: is the cluster running, and is --http its address?"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(addresses: Vec<SocketAddr>, keys: u32) -> Result<Targets, Unresolved> {
        let source = Source::Sharded(addresses);
        Targets::resolve(&source, Listener::Memcached, &mut KeyFormat::new(24), keys)
    }

    #[test]
    fn sharding_gives_every_server_its_part() {
        let addresses: Vec<SocketAddr> =
            (1..=3).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let targets = resolved(addresses, 3000).unwrap();
        for target in 0..3 {
            let owned = (0..3000).filter(|&key| targets.owns(target, key)).count();
            assert!((900..1100).contains(&owned), "{owned}");
        }
    }

    #[test]
    fn keys_that_are_added_have_owners_too() {
        let addresses: Vec<SocketAddr> =
            (1..=3).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let mut targets = resolved(addresses.clone(), 10).unwrap();
        targets.cover(100, &mut KeyFormat::new(24));
        assert_eq!(targets.owners, resolved(addresses, 100).unwrap().owners);
    }

    #[test]
    fn one_server_owns_everything() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let targets = resolved(vec![address], 10).unwrap();
        assert!(targets.owners.is_empty() && targets.owns(0, 9));
    }
}
