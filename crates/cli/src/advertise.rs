//! Where a node listens if it is not told, and what others are told of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use server::Advertise;

use crate::config::NodeFile;
use crate::exit::Exit;
use crate::units::{address, host};

/// Flags for a node that others do not reach where it listens.
#[derive(Args, Clone, Debug, Default)]
#[command(
    next_help_heading = "Where others reach this node, if not where it listens (0.0.0.0, NAT, containers)"
)]
pub struct AdvertiseArgs {
    /// The host that others are told for all listeners that are not on the loopback; their ports stay
    #[arg(long, env = "GESTALT_ADVERTISE", value_name = "HOST", value_parser = host)]
    advertise: Option<IpAddr>,
    /// For --memcached alone, with its port
    #[arg(long, env = "GESTALT_ADVERTISE_MEMCACHED", value_name = "HOST:PORT", value_parser = address)]
    advertise_memcached: Option<SocketAddr>,
    /// For --peer alone, with its port
    #[arg(long, env = "GESTALT_ADVERTISE_PEER", value_name = "HOST:PORT", value_parser = address)]
    advertise_peer: Option<SocketAddr>,
    /// For --http alone, with its port
    #[arg(long, env = "GESTALT_ADVERTISE_HTTP", value_name = "HOST:PORT", value_parser = address)]
    advertise_http: Option<SocketAddr>,
    /// For --listen alone, with its port
    #[arg(long, env = "GESTALT_ADVERTISE_LISTEN", value_name = "HOST:PORT", value_parser = address)]
    advertise_listen: Option<SocketAddr>,
}

impl AdvertiseArgs {
    /// Flag (or environment), then file.
    pub fn settle(&self, file: &NodeFile) -> Advertise {
        Advertise {
            host: self.advertise.or(file.advertise),
            memcached: self.advertise_memcached.or(file.advertise_memcached),
            peer: self.advertise_peer.or(file.advertise_peer),
            http: self.advertise_http.or(file.advertise_http),
            listen: self.advertise_listen.or(file.advertise_listen),
        }
    }

    /// Without etcd no node ever has the coordinator.
    ///
    /// # Errors
    /// `Usage` if its address is given.
    pub fn refuse_listen(&self, file: &NodeFile) -> Result<(), Exit> {
        match self.settle(file).listen {
            Some(_) => Err(Exit::usage(
                "--advertise-listen needs --coordinator etcd://...: with embedded://... no node has the coordinator",
            )),
            None => Ok(()),
        }
    }
}

/// Where the pages of a process are that was not told: for this machine alone if the process is, else wherever it can be reached.
pub fn pages_beside(listener: SocketAddr, port: u16) -> SocketAddr {
    let ip = match listener.ip() {
        ip if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(ip, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_reached_from_where_the_process_is() {
        let pages = |listener: &str| pages_beside(listener.parse().unwrap(), 9181).to_string();
        assert_eq!(
            (pages("127.0.0.1:0"), pages("[::1]:0")),
            ("127.0.0.1:9181".into(), "127.0.0.1:9181".into())
        );
        assert_eq!(
            (pages("10.0.0.1:9178"), pages("0.0.0.0:9178")),
            ("0.0.0.0:9181".into(), "0.0.0.0:9181".into())
        );
        assert_eq!(pages("[fd00::1]:9178"), "[::]:9181");
    }
}
