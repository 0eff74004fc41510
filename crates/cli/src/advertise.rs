//! Where others reach a node, if that is not where it listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use server::Advertise;

use crate::config::NodeFile;
use crate::endpoint::DEFAULT_HTTP_PORTS;
use crate::units::address;

/// Flags for addresses that others are told.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "If others reach the node elsewhere than where it listens (0.0.0.0, NAT)")]
pub struct AdvertiseArgs {
    /// The address of this machine that others are told, for all listeners that are not on the loopback
    #[arg(long, env = "GESTALT_ADVERTISE", value_name = "IP")]
    advertise: Option<IpAddr>,
    /// Where memcached's clients reach it
    #[arg(long, env = "GESTALT_ADVERTISE_MEMCACHED", value_name = "IP:PORT", value_parser = address)]
    advertise_memcached: Option<SocketAddr>,
    /// Where other nodes reach it
    #[arg(long, env = "GESTALT_ADVERTISE_PEER", value_name = "IP:PORT", value_parser = address)]
    advertise_peer: Option<SocketAddr>,
    /// Where its status and metrics are reached
    #[arg(long, env = "GESTALT_ADVERTISE_HTTP", value_name = "IP:PORT", value_parser = address)]
    advertise_http: Option<SocketAddr>,
    /// Where nodes reach it while it has the coordinator
    #[arg(long, env = "GESTALT_ADVERTISE_LISTEN", value_name = "IP:PORT", value_parser = address)]
    advertise_listen: Option<SocketAddr>,
}

impl AdvertiseArgs {
    /// Where to listen for HTTP, and what others are told. A node that others reach at `peer` is to be asked for its status by them and
    /// on its own machine, so it listens on all addresses unless it is told otherwise.
    pub fn settle(
        &self,
        file: &NodeFile,
        http: Option<SocketAddr>,
        peer: SocketAddr,
    ) -> (SocketAddr, Advertise) {
        let mut told = Advertise {
            host: self.advertise.or(file.advertise),
            memcached: self.advertise_memcached.or(file.advertise_memcached),
            peer: self.advertise_peer.or(file.advertise_peer),
            http: self.advertise_http.or(file.advertise_http),
            listen: self.advertise_listen.or(file.advertise_listen),
        };
        let port = DEFAULT_HTTP_PORTS[1];
        let listen = match (http, peer) {
            (Some(http), _) => return (http, told),
            (None, peer) if peer.ip().is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            (None, SocketAddr::V4(_)) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            (None, SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        if listen.is_unspecified() && told.host.is_none() && !peer.ip().is_unspecified() {
            told.http.get_or_insert(SocketAddr::new(peer.ip(), port));
        }
        (SocketAddr::new(listen, port), told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(args: &AdvertiseArgs, http: Option<&str>, peer: &str) -> (String, Option<String>) {
        let (listen, told) =
            args.settle(&NodeFile::default(), http.map(|at| at.parse().unwrap()), peer.parse().unwrap());
        (listen.to_string(), told.http.map(|at| at.to_string()))
    }

    #[test]
    fn status_is_reached_from_here_and_from_where_the_peers_are() {
        let none = AdvertiseArgs::default();
        assert_eq!(settled(&none, None, "127.0.0.1:0"), ("127.0.0.1:9181".into(), None));
        assert_eq!(
            settled(&none, None, "10.0.0.7:9178"),
            ("0.0.0.0:9181".into(), Some("10.0.0.7:9181".into()))
        );
        assert_eq!(
            settled(&none, None, "[fd00::7]:9178"),
            ("[::]:9181".into(), Some("[fd00::7]:9181".into()))
        );
        assert_eq!(settled(&none, Some("10.0.0.8:80"), "10.0.0.7:9178"), ("10.0.0.8:80".into(), None));
        let host = AdvertiseArgs { advertise: Some("10.1.1.1".parse().unwrap()), ..Default::default() };
        assert_eq!(settled(&host, None, "0.0.0.0:9178"), ("0.0.0.0:9181".into(), None), "the host is told");
        let own = AdvertiseArgs { advertise_http: Some("10.1.1.1:7".parse().unwrap()), ..Default::default() };
        assert_eq!(settled(&own, None, "10.0.0.7:9178").1, Some("10.1.1.1:7".into()));
    }
}
