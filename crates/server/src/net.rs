//! Sockets: listening, and the options that every connection gets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use proto::Timing;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::StartError;
use crate::limits::CLIENT_KEEPALIVE;

/// Connections that the system may hold before they are accepted.
const BACKLOG: i32 = 1024;

/// A non-blocking listener at `addr` (port 0: any free port).
pub(crate) fn listen(what: &'static str, addr: SocketAddr) -> Result<TcpListener, StartError> {
    bind(addr).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse { what, addr },
        _ => StartError::Listen { what, addr, source },
    })
}

fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Where `listener` really listens.
pub(crate) fn local_addr(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|source| StartError::System { what: "a listener", source })
}

/// Options of a client's connection. A failure is harmless.
pub(crate) fn tune_client(stream: &impl std::os::fd::AsFd) {
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    let (silence, probes) = CLIENT_KEEPALIVE;
    let probing = TcpKeepalive::new().with_time(silence).with_interval(silence / probes).with_retries(probes);
    let _ = socket.set_tcp_keepalive(&probing);
}

/// Options of a connection between nodes: a peer that is gone without a word is noticed after `silence`.
pub(crate) fn tune_peer(stream: &impl std::os::fd::AsFd, silence: Duration) {
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_nodelay(true);
    let probe = (silence / 4).max(Duration::from_secs(1));
    let _ =
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(probe).with_interval(probe).with_retries(3));
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(silence));
}

/// How long a peer may be silent, keep-alive probes included, before its connection counts as lost.
pub(crate) fn silence(timing: &Timing) -> Duration {
    Duration::from_micros(timing.node_lease_us * 4).max(Duration::from_secs(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_named() {
        let first = listen("memcached", "127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = local_addr(&first).unwrap();
        let error = listen("memcached", addr).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "memcached address {addr} is in use: stop the process that listens there or choose another port"
            )
        );
    }

    #[test]
    fn an_address_of_another_machine_is_refused() {
        let error = listen("peer", "192.0.2.1:0".parse().unwrap()).unwrap_err();
        assert!(matches!(error, StartError::Listen { what: "peer", .. }), "{error}");
    }
}
