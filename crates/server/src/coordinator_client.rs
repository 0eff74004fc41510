//! A node's connection to its coordinator: registers, keeps the lease, hands everything received to every worker.
//!
//! A heartbeat says that *all* workers run: while one has been silent for a lease, none is sent, and the coordinator
//! does what it does for a dead node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cluster::{ClusterMap, Epoch, HostId};
use proto::{Entrance, Patience};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use wire::frame::{FrameError, Message};
use wire::message::{FromCoordinator, ToCoordinator};

use crate::frames::{FrameBuffer, FrameReader, StreamError};
use crate::limits::{CONNECT_DEADLINE, COORDINATOR_SILENCE_LEASES, REDIAL_MAX, REDIAL_MIN};
use crate::shared::Shared;
use crate::{NodeExit, net};

/// Stays connected, for ever.
pub(crate) async fn run(shared: Arc<Shared>, mut outgoing: Receiver<ToCoordinator>) {
    let (mut pause, mut entrance) = (REDIAL_MIN, Entrance::default());
    let mut place = shared.coordinator_at.subscribe();
    loop {
        let Ok(Some(authority)) = place.wait_for(Option::is_some).await.map(|at| at.clone()) else { return };
        place.mark_unchanged();
        match connect(&shared, &authority, &mut entrance).await {
            Ok(mut session) => {
                pause = REDIAL_MIN;
                tracing::info!(node = %shared.host.node, coordinator = authority, "coordinator connected");
                let error = tokio::select! {
                    Err(error) = session.run(&mut outgoing) => error,
                    _ = place.changed() => StreamError::Moved,
                };
                give_up_on_another_version(&shared, &error);
                tracing::info!(node = %shared.host.node, %error, "coordinator connection lost");
            }
            Err(error) => tracing::debug!(%error, "coordinator not reached"),
        }
        shared.coordinator_connected.store(false, Ordering::Relaxed);
        // What was for the coordinator is asked for again by the protocol.
        while outgoing.try_recv().is_ok() {}
        // At once if there is another one.
        let _ = timeout(pause, place.changed()).await;
        pause = (pause * 2).min(REDIAL_MAX);
    }
}

/// A node that has no cluster yet ends if the coordinator's version is another; one that serves goes on without it.
fn give_up_on_another_version(shared: &Shared, error: &StreamError) {
    if let StreamError::Frame(error @ FrameError::WrongVersion { .. }) = error
        && shared.map().is_none()
    {
        let text =
            format!("the coordinator's version is another one: {error}: run the same version everywhere");
        shared.end(NodeExit::WrongCluster(text));
    }
}

async fn connect<'a>(
    shared: &Arc<Shared>,
    authority: &str,
    entrance: &'a mut Entrance,
) -> Result<Session<'a>, StreamError> {
    let connecting = timeout(CONNECT_DEADLINE, TcpStream::connect(authority));
    let stream = connecting.await.map_err(|_| StreamError::Silent)??;
    net::tune_peer(&stream, net::silence(&shared.config.timing));
    let (read, write) = stream.into_split();
    let mut session = Session {
        shared: Arc::clone(shared),
        reader: FrameReader::new(read),
        writer: write,
        out: FrameBuffer::new(shared.host),
        entrance,
    };
    session.out.push(&ToCoordinator::Register(shared.registration()));
    session.write().await?;
    Ok(session)
}

struct Session<'a> {
    shared: Arc<Shared>,
    reader: FrameReader,
    writer: OwnedWriteHalf,
    out: FrameBuffer,
    entrance: &'a mut Entrance,
}

impl Session<'_> {
    /// Until the connection is lost.
    async fn run(
        &mut self,
        outgoing: &mut Receiver<ToCoordinator>,
    ) -> Result<std::convert::Infallible, StreamError> {
        let timing = self.shared.config.timing;
        let silence = Duration::from_micros(timing.node_lease_us * COORDINATOR_SILENCE_LEASES);
        let mut beats = interval(Duration::from_micros(timing.heartbeat_us.max(1000)));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                message = self.reader.next() => {
                    heard = Instant::now();
                    self.receive(message?)?;
                }
                Some(message) = outgoing.recv() => {
                    self.out.push(&message);
                    while let Ok(message) = outgoing.try_recv() {
                        self.out.push(&message);
                    }
                    self.write().await?;
                }
                _ = beats.tick() => {
                    if heard.elapsed() > silence {
                        return Err(StreamError::Silent);
                    }
                    self.beat().await?;
                }
            }
        }
    }

    async fn beat(&mut self) -> Result<(), StreamError> {
        let silence_us = self.shared.longest_silence_us();
        if silence_us >= self.shared.config.timing.node_lease_us {
            tracing::error!(silence_us, "a worker is stuck: no heartbeat");
            return Ok(());
        }
        if self.entrance.asks_again() {
            self.out.push(&ToCoordinator::Register(self.shared.registration()));
            return self.write().await;
        }
        let (host, map, load) = (self.shared.host, self.shared.map_version(), self.shared.load());
        self.out.push(&ToCoordinator::Heartbeat { host, map, load });
        self.write().await
    }

    async fn write(&mut self) -> Result<(), StreamError> {
        let lease = Duration::from_micros(self.shared.config.timing.node_lease_us);
        let written = timeout(lease.max(REDIAL_MAX), self.writer.write_all(&self.out.bytes)).await;
        self.out.bytes.clear();
        Ok(written.map_err(|_| StreamError::Stalled)??)
    }

    fn receive(&mut self, message: Message) -> Result<(), StreamError> {
        let Message::FromCoordinator(message) = message else { return Err(StreamError::Unexpected) };
        self.shared.coordinator_connected.store(true, Ordering::Relaxed);
        match &message {
            FromCoordinator::Alive => {
                self.enter();
                return Ok(());
            }
            FromCoordinator::Occupied { by, peer, lease_us, epoch } => {
                self.wait_for_place((*by, *peer), *lease_us, *epoch);
                return Ok(());
            }
            FromCoordinator::Refused(text) => {
                self.shared.end(NodeExit::Refused(text.clone()));
                return Ok(());
            }
            FromCoordinator::Map(map) => {
                if let Err(text) = expected(&self.shared, map) {
                    self.shared.end(NodeExit::WrongCluster(text));
                    return Ok(());
                }
                self.enter();
                adopt_map(&self.shared, map);
            }
            FromCoordinator::View(view) => adopt_view(&self.shared, view),
            FromCoordinator::Admin { id, reply } => {
                self.shared.desk.answer(*id, reply.clone());
                return Ok(());
            }
            FromCoordinator::Fence { .. }
            | FromCoordinator::Settle { .. }
            | FromCoordinator::HandOver { .. }
            | FromCoordinator::Confirm { .. } => (),
        }
        self.hand_over(&message)
    }

    fn enter(&mut self) {
        if self.entrance.admitted() {
            self.shared.waits_for_place.store(false, Ordering::Relaxed);
            tracing::info!(node = %self.shared.host.node, "its place is free: registered");
        }
    }

    /// Process `by` has the id of this one: waits, and ends if that one lives.
    fn wait_for_place(&mut self, (by, peer): (HostId, SocketAddr), lease_us: u64, epoch: Epoch) {
        let taken = format!("{} is already here as another process ({by}, at {peer})", by.node);
        if self.shared.map().is_some() {
            return self.shared.end(NodeExit::Refused(format!("{taken}, which has taken its place")));
        }
        match self.entrance.occupied(self.shared.clock.time(), lease_us, epoch) {
            Patience::Begins(most_us) => {
                self.shared.waits_for_place.store(true, Ordering::Relaxed);
                let [lease, most] = [lease_us, most_us].map(Duration::from_micros);
                tracing::warn!("{taken}: waiting until its lease of {lease:?} has run out, {most:?} at most");
            }
            Patience::Lasts => (),
            Patience::Ends => {
                let remedy = "stop it first, or give this one another --node";
                self.shared.end(NodeExit::Refused(format!("{taken}, and that one lives: {remedy}")));
            }
        }
    }

    /// To every worker.
    fn hand_over(&self, message: &FromCoordinator) -> Result<(), StreamError> {
        for worker in &self.shared.workers {
            worker.coordinator.try_send(message.clone()).map_err(|_| StreamError::StuckWorker)?;
        }
        Ok(())
    }
}

/// Whether `map` is of the cluster that this node is meant for.
fn expected(shared: &Shared, map: &ClusterMap) -> Result<(), String> {
    let config = &shared.config;
    let known = shared.map().map(|known| known.cluster);
    match known.or(config.cluster) {
        Some(wanted) if wanted != map.cluster => {
            return Err(format!("this node is meant for {wanted}, the coordinator has {}", map.cluster));
        }
        _ => (),
    }
    match config.profile {
        Some(wanted) if wanted != map.profile => {
            Err(format!("this node is meant for profile {wanted}, the cluster has {}", map.profile))
        }
        _ if map.shards != config.workers => {
            let (mine, theirs) = (config.workers, map.shards);
            Err(format!(
                "this node has {mine} workers, the cluster's nodes have {theirs}: set workers = {theirs}"
            ))
        }
        _ => Ok(()),
    }
}

fn adopt_map(shared: &Shared, map: &ClusterMap) {
    shared.map.send_if_modified(|known| {
        let newer = known.as_ref().is_none_or(|known| known.version < map.version);
        if newer {
            tracing::info!(node = %shared.host.node, version = map.version, nodes = map.nodes.len(), "map");
            let mut map = map.clone();
            for view in known.iter().flat_map(|known| &known.groups) {
                map.adopt(view.clone());
            }
            *known = Some(Arc::new(map));
        }
        newer
    });
}

fn adopt_view(shared: &Shared, view: &cluster::GroupView) {
    shared.map.send_if_modified(|known| {
        let Some(known) = known else { return false };
        Arc::make_mut(known).adopt(view.clone())
    });
}
