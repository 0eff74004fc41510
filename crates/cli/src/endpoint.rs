//! Whom a command asks: `--http`, or whoever answers on this machine.
//!
//! What a process listens on is another thing, and has another variable: `GESTALT_HTTP`, where this is `GESTALT_ENDPOINT`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use client::{HttpError, fetch};

use crate::exit::Exit;
use crate::units::address;

/// Where a coordinator has its pages if it is not told otherwise.
pub const COORDINATOR_HTTP_PORT: u16 = 9180;
/// Where a node has them.
pub const NODE_HTTP_PORT: u16 = 9181;
/// How long somebody on this machine may take to say that it is there.
const LIMIT: Duration = Duration::from_secs(1);

/// One address, or the usual ones of this machine.
#[derive(Args, Clone, Debug, Default)]
pub struct Endpoint {
    /// HTTP address of the coordinator or of any node [default: whoever answers on this machine, a coordinator at 9180 or a node
    /// at 9181]
    #[arg(long, global = true, env = "GESTALT_ENDPOINT", value_name = "ADDR", value_parser = address)]
    http: Option<SocketAddr>,
}

impl Endpoint {
    /// The address that was given, or the first of the usual ones that answers.
    ///
    /// # Errors
    /// `Unreachable` if nobody does.
    pub async fn find(&self) -> Result<SocketAddr, Exit> {
        match self.http {
            Some(given) => Ok(given),
            None => first_of(&usual()).await,
        }
    }

    /// The same for who needs no more than a map: a coordinator that was just started again has none yet, and a node may.
    ///
    /// # Errors
    /// `Unreachable` if nobody answers.
    pub async fn find_map(&self) -> Result<SocketAddr, Exit> {
        if let Some(given) = self.http {
            return Ok(given);
        }
        match first_with("/map", &usual()).await {
            Some(found) => Ok(found),
            None => first_of(&usual()).await,
        }
    }
}

fn usual() -> [SocketAddr; 2] {
    [COORDINATOR_HTTP_PORT, NODE_HTTP_PORT].map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
}

async fn first_of(candidates: &[SocketAddr]) -> Result<SocketAddr, Exit> {
    first_with("/healthz", candidates).await.ok_or_else(|| nobody(candidates))
}

async fn first_with(page: &str, candidates: &[SocketAddr]) -> Option<SocketAddr> {
    // One after the other: of the two the coordinator knows more, so it is asked first.
    for &candidate in candidates {
        if fetch(candidate, page, LIMIT).await.is_ok() {
            return Some(candidate);
        }
    }
    None
}

fn nobody(candidates: &[SocketAddr]) -> Exit {
    let tried = candidates.iter().map(ToString::to_string).collect::<Vec<_>>().join(" nor at ");
    Exit::Unreachable(format!(
        "nobody answers at {tried}, where a coordinator and a node of this machine would: start a cluster with `gestalt local`, or \
         say whom to ask with --http HOST:PORT or GESTALT_ENDPOINT"
    ))
}

/// Why there is no map.
pub fn without_map(error: &HttpError) -> Exit {
    if let Some(why) = error.not_yet() {
        return Exit::Unreachable(why.to_owned());
    }
    Exit::Unreachable(format!(
        "{error}: start a cluster with `gestalt local`, or say whom to ask with --http HOST:PORT or GESTALT_ENDPOINT"
    ))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with `head`.
    fn page(head: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            write!(stream, "HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        });
        address
    }

    fn nobody_there() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn the_first_that_answers_is_asked_and_strangers_are_passed_over() {
        let (stranger, node) = (page("404 Not Found"), page("200 OK"));
        let found = first_of(&[nobody_there(), stranger, node]).await.unwrap();
        assert_eq!(found, node);
    }

    #[tokio::test]
    async fn an_address_that_was_given_is_the_only_one() {
        let given = Endpoint { http: Some(nobody_there()) };
        assert_eq!(given.find().await.unwrap(), given.http.unwrap());
        assert_eq!(given.find_map().await.unwrap(), given.http.unwrap());
    }

    #[tokio::test]
    async fn where_nobody_answers_both_addresses_and_the_way_out_are_named() {
        let (first, second) = (nobody_there(), nobody_there());
        let error = first_of(&[first, second]).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Exit::Unreachable(_)), "{text}");
        for part in [&first.to_string(), &second.to_string(), "gestalt local", "--http", "GESTALT_ENDPOINT"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
