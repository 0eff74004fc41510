//! Listening, and accepting what comes.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::stream::Stream;
use crate::StartError;

/// Connections that the system may hold before they are accepted.
const BACKLOG: i32 = 1024;

/// It listens already, and accepts nothing before it is attached.
#[derive(Debug)]
pub(crate) struct DetachedListener(std::net::TcpListener);

/// A listener on the runtime of its thread.
#[derive(Debug)]
pub(crate) struct Listener(tokio::net::TcpListener);

/// A listener at `addr` (port 0: any free port), which is called `what`.
pub(crate) fn listen(what: &'static str, addr: SocketAddr) -> Result<DetachedListener, StartError> {
    bind(addr).map(DetachedListener).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::AddressInUse { what, addr },
        _ => StartError::Listen { what, addr, source },
    })
}

fn bind(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // A node that is started again needs its port while connections of its former life are still in TIME_WAIT.
    socket.set_reuse_address(true)?;
    // The runtime takes a socket as it is: a blocking `accept` would stop the whole thread.
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

impl DetachedListener {
    /// Where it really listens.
    pub(crate) fn addr(&self) -> Result<SocketAddr, StartError> {
        self.0.local_addr().map_err(|source| StartError::System { what: "a listener", source })
    }

    /// The same on the runtime of this thread.
    pub(crate) fn attach(self) -> io::Result<Listener> {
        tokio::net::TcpListener::from_std(self.0).map(Listener)
    }
}

impl Listener {
    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        let (stream, _) = self.0.accept().await?;
        Ok(Stream::of_tcp(stream))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A listener at some free port of this machine, and its address.
    pub(crate) fn on_loopback() -> (Listener, SocketAddr) {
        let listener = listen("test", "127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = listener.addr().unwrap();
        (listener.attach().unwrap(), addr)
    }

    #[test]
    fn a_port_in_use_is_named() {
        let first = listen("memcached", "127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = first.addr().unwrap();
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
