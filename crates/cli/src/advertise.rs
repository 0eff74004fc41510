//! Where a node listens if it is not told, and what others are told of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use server::Advertise;

use crate::config::NodeSettings;
use crate::exit::Exit;

/// What others are told.
pub fn advertised(settings: &NodeSettings) -> Advertise {
    Advertise {
        host: settings.advertise,
        memcached: settings.advertise_memcached,
        peer: settings.advertise_peer,
        http: settings.advertise_http,
        native: settings.advertise_native,
        listen: settings.advertise_listen,
    }
}

/// Without etcd no node ever has the coordinator.
///
/// # Errors
/// `Usage` if its address is given.
pub fn refuse_listen(settings: &NodeSettings) -> Result<(), Exit> {
    match settings.advertise_listen {
        Some(_) => Err(Exit::usage(
            "--advertise-listen needs --coordinator etcd://...: with embedded://... no node has the coordinator",
        )),
        None => Ok(()),
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
