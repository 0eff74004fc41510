//! What others are told of where this node listens.
//!
//! Mostly that is where it does listen. It is not where a listener has all addresses of its machine (`0.0.0.0`, `[::]`), or where a
//! network in between translates addresses or ports.

use std::net::{IpAddr, SocketAddr};

use crate::StartError;

/// What is to be told in the place of a listener's own address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advertise {
    /// The host, for every listener that has no address of its own below and is not on the loopback; the port stays.
    pub host: Option<IpAddr>,
    /// Where memcached clients connect. Port 0 stands for the port that is listened on, here and below.
    pub memcached: Option<SocketAddr>,
    /// Where other nodes connect.
    pub peer: Option<SocketAddr>,
    /// Where status and metrics are.
    pub http: Option<SocketAddr>,
    /// Where clients of the native protocol connect.
    pub native: Option<SocketAddr>,
    /// Where nodes connect while this one has the coordinator.
    pub listen: Option<SocketAddr>,
}

/// One listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening {
    pub what: &'static str,
    /// Where it really listens.
    pub addr: SocketAddr,
    /// What was asked for it alone.
    pub told: Option<SocketAddr>,
}

impl Advertise {
    /// What others are told of the listener for peers.
    pub(crate) fn peer(&self, addr: SocketAddr) -> Result<SocketAddr, StartError> {
        self.resolve(Listening { what: "peer", addr, told: self.peer }, None)
    }

    /// What they are told of another one. Without a word about it, others reach it where they reach the peers' listener, unless
    /// that is for this machine alone.
    pub(crate) fn beside(&self, peer: SocketAddr, listening: Listening) -> Result<SocketAddr, StartError> {
        self.resolve(listening, Some(peer.ip()).filter(|ip| !ip.is_loopback()))
    }

    fn resolve(&self, listening: Listening, beside: Option<IpAddr>) -> Result<SocketAddr, StartError> {
        let Listening { what, addr, told } = listening;
        let beside = beside.filter(|ip| is_heard_at(*ip, addr.ip()));
        let host = match addr.ip() {
            ip if ip.is_unspecified() => self.host.or(beside),
            // Who listens there is reached there only.
            ip if ip.is_loopback() => Some(ip),
            ip => self.host.or(Some(ip)),
        };
        let port = told.map(|told| told.port()).filter(|port| *port != 0).unwrap_or(addr.port());
        // Also if it was given: nobody can connect to `0.0.0.0`.
        let told = told.map(|told| told.ip()).or(host).filter(|ip| !ip.is_unspecified());
        told.map(|ip| SocketAddr::new(ip, port)).ok_or(StartError::NotAdvertisable { what, addr })
    }
}

/// Whether a listener at `all`, which stands for all addresses of its family, hears what is sent to `ip`.
fn is_heard_at(ip: IpAddr, all: IpAddr) -> bool {
    ip.is_ipv4() || all.is_ipv6()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn beside(advertise: &Advertise, addr: &str, peer: &str) -> Option<String> {
        let listening = Listening { what: "http", addr: at(addr), told: advertise.http };
        advertise.beside(at(peer), listening).ok().map(|told| told.to_string())
    }

    #[test]
    fn a_listener_with_an_address_tells_it() {
        let none = Advertise::default();
        assert_eq!(beside(&none, "10.0.0.1:9181", "10.0.0.2:9178").unwrap(), "10.0.0.1:9181");
        assert_eq!(none.peer(at("10.0.0.2:9178")).unwrap(), at("10.0.0.2:9178"));
    }

    #[test]
    fn a_listener_with_all_addresses_tells_the_one_of_the_peers_if_others_can_use_it() {
        let none = Advertise::default();
        assert_eq!(beside(&none, "0.0.0.0:9181", "10.0.0.2:9178").unwrap(), "10.0.0.2:9181");
        assert_eq!(beside(&none, "[::]:9181", "[fd00::2]:9178").unwrap(), "[fd00::2]:9181");
        assert_eq!(beside(&none, "[::]:9181", "10.0.0.2:9178").unwrap(), "10.0.0.2:9181");
        assert_eq!(beside(&none, "0.0.0.0:9181", "127.0.0.1:9178"), None, "for this machine alone");
        assert_eq!(beside(&none, "0.0.0.0:9181", "[fd00::2]:9178"), None, "not heard there");
    }

    #[test]
    fn what_was_given_beats_what_is_known() {
        let host = Advertise { host: Some("203.0.113.5".parse().unwrap()), ..Advertise::default() };
        assert_eq!(beside(&host, "0.0.0.0:9181", "10.0.0.2:9178").unwrap(), "203.0.113.5:9181");
        assert_eq!(beside(&host, "10.0.0.1:9181", "10.0.0.2:9178").unwrap(), "203.0.113.5:9181");
        assert_eq!(beside(&host, "127.0.0.1:9181", "10.0.0.2:9178").unwrap(), "127.0.0.1:9181");
        let port = Advertise { http: Some(at("203.0.113.6:0")), ..host };
        assert_eq!(beside(&port, "127.0.0.1:9181", "10.0.0.2:9178").unwrap(), "203.0.113.6:9181");
        let both = Advertise { http: Some(at("203.0.113.6:80")), ..host };
        assert_eq!(beside(&both, "0.0.0.0:9181", "10.0.0.2:9178").unwrap(), "203.0.113.6:80");
    }

    #[test]
    fn where_there_is_nothing_to_tell_the_error_names_the_flag() {
        let error = Advertise::default().peer(at("0.0.0.0:9178")).unwrap_err().to_string();
        assert!(error.contains("0.0.0.0:9178") && error.contains("--advertise"), "{error}");
        let useless = Advertise { host: Some("::".parse().unwrap()), ..Advertise::default() };
        assert!(useless.peer(at("10.0.0.1:9178")).is_err());
    }
}
