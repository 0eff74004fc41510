//! Which process a command asks.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use clap::Args;

use crate::exit::Exit;
use crate::units::address;

/// Where a coordinator listens for HTTP if it is not told otherwise, and where a node does.
pub const DEFAULT_HTTP_PORTS: [u16; 2] = [9180, 9181];
/// How long somebody on this machine may take to accept a connection.
const PROBE: Duration = Duration::from_secs(1);

/// Whom to ask.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Endpoint {
    /// HTTP address of the coordinator or of any node [default: 127.0.0.1:9180, a coordinator's, or else 127.0.0.1:9181, a node's]
    #[arg(long, global = true, env = "GESTALT_ENDPOINT", value_parser = address)]
    http: Option<SocketAddr>,
}

impl Endpoint {
    /// The address that was given, or the first of this machine's usual ones at which somebody listens.
    ///
    /// # Errors
    /// `Unreachable` if nobody does.
    pub fn find(self) -> Result<SocketAddr, Exit> {
        self.find_among(DEFAULT_HTTP_PORTS)
    }

    fn find_among(self, ports: [u16; 2]) -> Result<SocketAddr, Exit> {
        let usual = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let listens = |at: &SocketAddr| TcpStream::connect_timeout(at, PROBE).is_ok();
        self.http.or_else(|| usual.into_iter().find(listens)).ok_or_else(|| {
            let [coordinator, node] = usual;
            Exit::Unreachable(format!(
                "nobody listens on {coordinator} (a coordinator) or {node} (a node) here: start a cluster with `gestalt local`, or name \
                 a node with --http or GESTALT_ENDPOINT"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_listens_here_is_found_and_who_is_named_is_asked() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = silent.local_addr().unwrap().port();
        drop(silent);
        let node = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = node.local_addr().unwrap();
        assert_eq!(Endpoint::default().find_among([nobody, here.port()]).unwrap(), here);
        assert_eq!(Endpoint::default().find_among([here.port(), nobody]).unwrap(), here);
        let error = Endpoint::default().find_among([nobody, nobody]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("127.0.0.1:{nobody} (a node)")) && error.contains("GESTALT_ENDPOINT")
        );
        let named = "10.0.0.7:9181".parse().unwrap();
        assert_eq!(Endpoint { http: Some(named) }.find_among([here.port(), nobody]).unwrap(), named);
    }
}
