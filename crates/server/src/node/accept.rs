//! Accepting: clients are dealt to the workers in turn, peers introduce themselves first.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use native::{Closing, Reason};
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::timeout;
use types::HostId;

use crate::limits::{ACCEPT_PAUSE, DEAL_PAUSE, HANDSHAKE_DEADLINE, HANDSHAKES_AT_ONCE};
use crate::node::shared::{AcceptedLink, ClientSocket, Door, Errand, Shared};
use crate::peers::handshake::{self, Opened};
use crate::places::Places;
use crate::transport::{Listener, Stream, Tuning};

/// What memcached says in this place.
const TOO_MANY: &[u8] = b"ERROR Too many open connections\r\n";

/// What a client is told for whom there is no place.
fn too_many(door: Door) -> Cow<'static, [u8]> {
    match door {
        Door::Memcached(_) => TOO_MANY.into(),
        Door::Native => {
            let mut bytes = Vec::new();
            Closing::with(Reason::TooManyConnections).put(0, &mut bytes);
            bytes.into()
        }
    }
}

/// Accepts clients, for ever.
pub(crate) async fn clients(shared: Arc<Shared>, listener: Listener, door: Door) {
    let mut turn = 0;
    loop {
        let stream = match accept_or_pause(&listener).await {
            Ok(stream) => stream,
            Err(NoConnection::Gone) => continue,
            Err(NoConnection::Paused) => {
                shared.note_accept_pause();
                continue;
            }
        };
        let Some(place) = shared.admit_connection() else {
            stream.close_with(&too_many(door));
            continue;
        };
        stream.tune(Tuning::Client);
        let Ok(stream) = stream.detach() else { continue };
        deal(&shared, &mut turn, Errand::Client(ClientSocket { stream, place, door })).await;
    }
}

/// Gives a client to the next worker that runs and has room for it. While there is none, clients wait to be accepted.
async fn deal(shared: &Shared, turn: &mut usize, mut errand: Errand) {
    loop {
        for _ in 0..shared.workers.len() {
            let worker = &shared.workers[*turn % shared.workers.len()];
            *turn = turn.wrapping_add(1);
            // Its queue has room for many, who would wait there in vain.
            if worker.silence_us(shared.clock.time()) >= shared.config.timing.node_lease_us {
                continue;
            }
            errand = match worker.errands.try_send(errand) {
                Ok(()) => return,
                Err(TrySendError::Full(errand) | TrySendError::Closed(errand)) => errand,
            };
        }
        tokio::time::sleep(DEAL_PAUSE).await;
    }
}

/// Accepts other nodes, for ever.
pub(crate) async fn peers(shared: Arc<Shared>, listener: Listener) {
    let places = Places::new(HANDSHAKES_AT_ONCE);
    loop {
        let Some(stream) = accept(&listener).await else { continue };
        // A peer that loses its place dials again.
        let Some(place) = places.take() else { continue };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            tokio::select! {
                welcomed = welcome(&shared, stream) => if let Err(error) = welcomed {
                    tracing::debug!(node = %shared.host.node, %error, "link not opened");
                },
                () = place.lost() => tracing::debug!(node = %shared.host.node, "link not opened: others came"),
            }
        });
    }
}

async fn welcome(shared: &Shared, stream: Stream) -> Result<(), handshake::HandshakeError> {
    let map = shared.map();
    let tuning = Tuning::of_peers(&shared.config.timing);
    let (opened, shard) = handshake::accept(shared.host, map.as_deref(), stream, tuning).await?;
    // In bounds: the shard is one of the map's, and no map with other workers than this node's gets here.
    let worker = &shared.workers[usize::from(shard)];
    let errand = Errand::Link(Box::new(portable(opened)?));
    // A worker that takes nothing gets no links; its peers dial again. If it is gone, so is the node.
    let handed_over = timeout(HANDSHAKE_DEADLINE, worker.errands.send(errand)).await;
    handed_over.map(drop).map_err(|_| handshake::HandshakeError::StuckWorker)
}

/// A link without its tie to this thread's runtime.
fn portable(opened: Opened) -> io::Result<AcceptedLink> {
    let Opened { peer, stream, encoder, decoder, input } = opened;
    let peer: HostId = peer;
    Ok(AcceptedLink { peer, stream: stream.detach()?, encoder, decoder, input })
}

/// The next connection; none after a failure, which is mostly a want of file descriptors that will pass.
pub(crate) async fn accept(listener: &Listener) -> Option<Stream> {
    accept_or_pause(listener).await.ok()
}

/// Why there is no connection.
enum NoConnection {
    /// It was gone again.
    Gone,
    /// There is no room for one: a pause was made.
    Paused,
}

async fn accept_or_pause(listener: &Listener) -> Result<Stream, NoConnection> {
    match listener.accept().await {
        Ok(stream) => Ok(stream),
        Err(error) if is_of_one_connection(&error) => Err(NoConnection::Gone),
        Err(error) => {
            tracing::warn!(%error, "accept");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            Err(NoConnection::Paused)
        }
    }
}

/// Whether only the connection that was to be accepted is concerned.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};
    use types::{ClusterId, ClusterMap, Incarnation, NodeId, NodeInfo, Profile};

    use super::*;
    use crate::NodeConfig;
    use crate::limits::ERRAND_QUEUE;
    use crate::node::shared::Addresses;
    use crate::node::worker_ends;
    use crate::peers::handshake::Identity;
    use crate::transport;
    use crate::workers::crossings::Crossings;
    use crate::workers::run::Inbox;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A node of two workers that nobody runs, and what they would take.
    fn two_workers() -> (Arc<Shared>, [Inbox; 2]) {
        let (shared, inboxes) = two_new_workers();
        shared.workers.iter().for_each(runs);
        (shared, inboxes)
    }

    fn two_new_workers() -> (Arc<Shared>, [Inbox; 2]) {
        let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let (faces, inboxes): (Vec<_>, Vec<_>) = Crossings::mesh(2).into_iter().map(worker_ends).unzip();
        let config = NodeConfig { workers: 2, ..NodeConfig::local(NodeId(1), nowhere.into()) };
        let addresses = Addresses { memcached: nowhere, peer: nowhere, http: nowhere, native: None };
        let shared = Shared::new(config, addresses, faces, mpsc::channel(1).0);
        (shared, inboxes.try_into().ok().unwrap())
    }

    fn runs(worker: &crate::node::shared::WorkerFace) {
        worker.pulse.store(u64::MAX, Ordering::Relaxed);
    }

    /// Fills the queue of the first worker, which takes nothing out of it.
    fn stick(shared: &Shared) {
        for _ in 0..ERRAND_QUEUE {
            shared.workers[0].errands.try_send(Errand::Snapshot(oneshot::channel().0)).unwrap();
        }
    }

    /// Connects clients, all of which the second worker must be given.
    async fn second_worker_gets_all(shared: &Arc<Shared>, inbox: &mut Inbox) {
        let (listener, addr) = transport::on_loopback();
        tokio::spawn(clients(Arc::clone(shared), listener, Door::Memcached(None)));
        let mut kept = Vec::new();
        for _ in 0..10 {
            kept.push(Stream::connect(addr).await.unwrap());
            let errand = timeout(PATIENCE, inbox.errands.recv()).await.expect("accepting goes on");
            assert!(matches!(errand, Some(Errand::Client(_))), "{errand:?}");
        }
    }

    #[tokio::test]
    async fn clients_go_on_to_the_other_workers_when_the_queue_of_one_is_full() {
        let (shared, [_first, mut second]) = two_workers();
        stick(&shared);
        second_worker_gets_all(&shared, &mut second).await;
    }

    #[test]
    fn workers_that_are_made_now_have_a_lease_to_run() {
        let (shared, _inboxes) = two_new_workers();
        let (now, lease_us) = (shared.clock.time(), shared.config.timing.node_lease_us);
        assert!(shared.workers.iter().all(|worker| worker.silence_us(now) < lease_us));
        let later = now + 2 * lease_us;
        assert!(shared.workers.iter().all(|worker| worker.silence_us(later) > lease_us), "and no longer");
    }

    #[tokio::test]
    async fn a_worker_that_has_not_run_for_a_lease_gets_no_clients() {
        let (shared, [mut first, mut second]) = two_workers();
        shared.workers[0].pulse.store(0, Ordering::Relaxed);
        second_worker_gets_all(&shared, &mut second).await;
        assert!(first.errands.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_worker_that_takes_no_links_does_not_keep_others_from_theirs() {
        let (shared, [_first, mut second]) = two_workers();
        stick(&shared);
        let (listener, addr) = transport::on_loopback();
        let me = HostId { node: NodeId(0), incarnation: Incarnation(5) };
        let info = |host| NodeInfo {
            host,
            peer: addr,
            memcached: addr,
            http: addr,
            native: None,
            zone: String::new(),
            alive: true,
        };
        let map = ClusterMap {
            cluster: ClusterId(7),
            version: 1,
            catalog: types::Catalog::first(Profile::rs(1, 1).unwrap(), 1),
            shards: 2,
            layout: Default::default(),
            nodes: vec![info(me), info(shared.host)],
            groups: vec![],
        };
        shared.map.send_replace(Some(Arc::new(map)));
        tokio::spawn(peers(Arc::clone(&shared), listener));
        let dial = |shard| {
            let me = Identity { cluster: ClusterId(7), host: me };
            let peer = info(shared.host);
            async move { handshake::dial(me, &peer, shard, Tuning::Peer { silence: PATIENCE }).await }
        };
        let mut waiting = Vec::new();
        for _ in 0..HANDSHAKES_AT_ONCE + 8 {
            waiting.push(dial(0).await.expect("a link that waits for its worker"));
        }
        dial(1).await.expect("a link");
        let errand = timeout(PATIENCE, second.errands.recv()).await.expect("handed over");
        assert!(matches!(errand, Some(Errand::Link(_))), "{errand:?}");
    }
}
