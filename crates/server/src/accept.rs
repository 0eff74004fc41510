//! Accepting: clients are dealt to the workers in turn, peers introduce themselves first.

use std::io::{self, Write};
use std::sync::Arc;

use cluster::HostId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::handshake::{self, Opened};
use crate::limits::{ACCEPT_PAUSE, HANDSHAKES_AT_ONCE};
use crate::net;
use crate::shared::{AcceptedLink, ClientSocket, Errand, Shared};

/// What memcached says in this place.
const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

/// Accepts memcached clients, for ever.
pub(crate) async fn clients(shared: Arc<Shared>, listener: TcpListener) {
    let mut turn = 0;
    loop {
        let Some(stream) = accept(&listener).await else { continue };
        let Some(counted) = shared.admit_connection() else {
            turn_away(stream);
            continue;
        };
        net::tune_client(&stream);
        let worker = &shared.workers[turn % shared.workers.len()];
        turn += 1;
        let Ok(stream) = stream.into_std() else { continue };
        let socket = ClientSocket { stream, counted };
        if worker.errands.send(Errand::Client(socket)).await.is_err() {
            return;
        }
    }
}

/// Accepts other nodes, for ever.
pub(crate) async fn peers(shared: Arc<Shared>, listener: TcpListener) {
    let at_once = Arc::new(Semaphore::new(HANDSHAKES_AT_ONCE));
    loop {
        let Some(stream) = accept(&listener).await else { continue };
        // Who finds everybody busy is closed, and dials again.
        let Ok(permit) = Arc::clone(&at_once).try_acquire_owned() else { continue };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            if let Err(error) = welcome(&shared, stream).await {
                tracing::debug!(node = %shared.host.node, %error, "link not opened");
            }
            drop(permit);
        });
    }
}

async fn welcome(shared: &Shared, stream: TcpStream) -> Result<(), handshake::HandshakeError> {
    let map = shared.map();
    let silence = net::silence(&shared.config.timing);
    let (opened, shard) = handshake::accept(shared.host, map.as_deref(), stream, silence).await?;
    let worker = &shared.workers[usize::from(shard)];
    // If the worker is gone, so is the node.
    let _ = worker.errands.send(Errand::Link(Box::new(portable(opened)?))).await;
    Ok(())
}

/// A link without its tie to this thread's runtime.
fn portable(opened: Opened) -> io::Result<AcceptedLink> {
    let Opened { peer, stream, encoder, decoder, input } = opened;
    let peer: HostId = peer;
    Ok(AcceptedLink { peer, stream: stream.into_std()?, encoder, decoder, input })
}

/// The next connection; none after a failure, which is mostly a want of file descriptors that will pass.
async fn accept(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(error) if is_of_one_connection(&error) => None,
        Err(error) => {
            tracing::warn!(%error, "accept");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Whether only the connection that was to be accepted is concerned.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn turn_away(stream: TcpStream) {
    if let Ok(mut stream) = stream.into_std() {
        // Non-blocking: what the socket does not take at once is not said.
        let _ = stream.write_all(TOO_MANY);
    }
}
