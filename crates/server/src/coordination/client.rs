//! A node's connection to its coordinator: registers, keeps the lease, hands everything received to every worker.
//!
//! A heartbeat says that *all* workers run: while one has been silent for a lease, none is sent, and the coordinator
//! does what it does for a dead node.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use proto::{End, Entrance, Rules, Verdict};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use types::{Applied, ChangeLog, ClusterMap, Forming, MapChanges};
use wire::frame::{FrameError, Message};
use wire::message::{FromCoordinator, ToCoordinator};

use crate::NodeExit;
use crate::coordination::frames::{FrameBuffer, FrameReader, StreamError};
use crate::limits::{CONNECT_DEADLINE, COORDINATOR_SILENCE_LEASES, FORMING_PATIENCE, REDIAL_MAX, REDIAL_MIN};
use crate::node::shared::Shared;
use crate::transport::{Stream, Tuning, Writer};

/// Stays connected, for ever.
pub(crate) async fn run(shared: Arc<Shared>, mut outgoing: Receiver<ToCoordinator>) {
    let (mut pause, mut entrance) = (REDIAL_MIN, Entrance::new(shared.expectations(), Rules::all()));
    let mut place = shared.coordinator_at.subscribe();
    let mut complained = None;
    loop {
        let Ok(Some(authority)) = place.wait_for(Option::is_some).await.map(|at| at.clone()) else { return };
        place.mark_unchanged();
        match connect(&shared, &authority, &mut entrance).await {
            Ok(mut conversation) => {
                if complained.is_none() {
                    tracing::info!(node = %shared.host.node, coordinator = authority, "coordinator connected");
                }
                let error = tokio::select! {
                    Err(error) = conversation.run(&mut outgoing) => error,
                    _ = place.changed() => StreamError::Moved,
                };
                give_up_on_another_version(&shared, &error);
                // A foreign one can always be reached: without longer pauses it would be dialled in a loop.
                if !matches!(error, StreamError::Foreign(_)) {
                    pause = REDIAL_MIN;
                }
                report(&shared, &error, &mut complained);
            }
            Err(error @ StreamError::StuckWorker) => report(&shared, &error, &mut complained),
            Err(error) => tracing::debug!(%error, "coordinator not reached"),
        }
        shared.coordinator_connected.store(false, Ordering::Relaxed);
        shared.coordinator_answers.store(false, Ordering::Relaxed);
        // What was for the coordinator is asked for again by the protocol.
        while outgoing.try_recv().is_ok() {}
        // At once if there is another one.
        let _ = timeout(pause, place.changed()).await;
        pause = (pause * 2).min(REDIAL_MAX);
    }
}

/// What somebody has to look at is an error, said once for each reason.
fn report(shared: &Shared, error: &StreamError, said: &mut Option<String>) {
    let node = shared.host.node;
    let (StreamError::Foreign(_) | StreamError::StuckWorker) = error else {
        *said = None;
        return tracing::info!(%node, %error, "coordinator connection lost");
    };
    let reason = error.to_string();
    if said.as_ref() != Some(&reason) {
        tracing::error!(%node, reason, "going on without the coordinator at this address");
        *said = Some(reason);
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
) -> Result<Conversation<'a>, StreamError> {
    // A registration begins a lease, and a lease says that all workers run.
    // Before there is a map workers have no members to speak for, and may not have run once.
    if shared.map().is_some() && shared.longest_silence_us() >= shared.config.timing.node_lease_us {
        return Err(StreamError::StuckWorker);
    }
    let connecting = timeout(CONNECT_DEADLINE, Stream::connect(authority));
    let stream = connecting.await.map_err(|_| StreamError::Silent)??;
    stream.tune(Tuning::of_peers(&shared.config.timing));
    let (read, write) = stream.split();
    let mut conversation = Conversation {
        shared: Arc::clone(shared),
        reader: FrameReader::new(read).taking_parts(),
        writer: write,
        out: FrameBuffer::new(shared.host),
        entrance,
        forms_since: None,
        forms_said: false,
    };
    let registration = conversation.entrance.knock(shared.info(), shared.map_version());
    conversation.out.push(&ToCoordinator::Register(registration));
    conversation.write().await?;
    Ok(conversation)
}

struct Conversation<'a> {
    shared: Arc<Shared>,
    reader: FrameReader,
    writer: Writer,
    out: FrameBuffer,
    entrance: &'a mut Entrance,
    /// Since when the coordinator waits for others, and whether the log says so.
    forms_since: Option<Instant>,
    forms_said: bool,
}

impl Conversation<'_> {
    /// Until the connection is lost.
    async fn run(
        &mut self,
        outgoing: &mut Receiver<ToCoordinator>,
    ) -> Result<std::convert::Infallible, StreamError> {
        let timing = self.shared.config.timing;
        let silence = Duration::from_micros(timing.node_lease_us * COORDINATOR_SILENCE_LEASES);
        let mut beats = interval(Duration::from_micros(timing.heartbeat_us.max(1000)));
        // After a pause one heartbeat is enough: a burst of them would say nothing more.
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut heard, mut frames) = (Instant::now(), self.reader.frames());
        loop {
            tokio::select! {
                message = self.reader.next() => {
                    heard = Instant::now();
                    self.receive(message?).await?;
                }
                Some(message) = outgoing.recv() => {
                    self.out.push(&message);
                    while let Ok(message) = outgoing.try_recv() {
                        self.out.push(&message);
                    }
                    self.write().await?;
                }
                _ = beats.tick() => {
                    // Of a long message nothing is known before it is whole, but that it comes.
                    if frames != self.reader.frames() {
                        (heard, frames) = (Instant::now(), self.reader.frames());
                    }
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
        // Who waits for its place is not one of the nodes yet, so its heartbeats would count for nobody.
        if self.entrance.asks_again() {
            let registration = self.entrance.registration(self.shared.info(), self.shared.map_version());
            self.out.push(&ToCoordinator::Register(registration));
            return self.write().await;
        }
        let (host, map, load) = (self.shared.host, self.shared.map_version(), self.shared.load());
        self.out.push(&ToCoordinator::Heartbeat { host, map, load });
        if let Some(report) = self.shared.quotas.report() {
            self.out.push(&ToCoordinator::Quotas(report));
        }
        self.write().await
    }

    async fn write(&mut self) -> Result<(), StreamError> {
        let lease = Duration::from_micros(self.shared.config.timing.node_lease_us);
        let written = timeout(lease.max(REDIAL_MAX), self.writer.write_all(&self.out.bytes)).await;
        self.out.bytes.clear();
        Ok(written.map_err(|_| StreamError::Stalled)??)
    }

    async fn receive(&mut self, message: Message) -> Result<(), StreamError> {
        let Message::FromCoordinator(message) = message else { return Err(StreamError::Unexpected) };
        let shared = Arc::clone(&self.shared);
        let verdict = self.entrance.receive(shared.clock.time(), *message);
        if says_something(&verdict) {
            shared.coordinator_connected.store(presides(&verdict), Ordering::Relaxed);
            shared.coordinator_answers.store(is_at_work(&verdict), Ordering::Relaxed);
        }
        if is_at_work(&verdict) && shared.map().is_none() {
            // It waits for others, and this process knows of no cluster that could be older than that.
            self.enter(false);
        }
        match verdict {
            Verdict::Deliver(message) => return self.deliver(message),
            Verdict::Answer(answer) => {
                self.out.push(&answer);
                return self.write().await;
            }
            Verdict::Alive(waited) => self.enter(waited),
            Verdict::Forms(waited, forming) => {
                self.enter(waited);
                self.note_forming(forming);
            }
            Verdict::WaitForPlace(most_us) => self.wait_for_place(most_us),
            Verdict::Waits | Verdict::Nothing => (),
            Verdict::Foreign(reason) => return Err(StreamError::Foreign(reason)),
            Verdict::End(End::Refused(text)) => shared.end(NodeExit::Refused(text)),
            Verdict::End(End::WrongCluster(text)) => shared.end(NodeExit::WrongCluster(text)),
        }
        Ok(())
    }

    fn deliver(&mut self, message: FromCoordinator) -> Result<(), StreamError> {
        match &message {
            FromCoordinator::Map(map) => {
                self.enter(self.shared.waits_for_place.load(Ordering::Relaxed));
                adopt_map(&self.shared, map);
            }
            FromCoordinator::Changes(changes) => {
                self.enter(self.shared.waits_for_place.load(Ordering::Relaxed));
                adopt_changes(&self.shared, changes);
            }
            FromCoordinator::View(view) => adopt_view(&self.shared, view),
            FromCoordinator::Admin { id, reply } => {
                self.shared.desk.answer(*id, reply.clone());
                return Ok(());
            }
            FromCoordinator::Fence { .. }
            | FromCoordinator::Settle { .. }
            | FromCoordinator::HandOver { .. }
            | FromCoordinator::Shares { .. }
            | FromCoordinator::Confirm { .. } => (),
            // The entrance has taken these.
            FromCoordinator::Alive
            | FromCoordinator::Waiting
            | FromCoordinator::Forming(_)
            | FromCoordinator::Refused(_)
            | FromCoordinator::Occupied { .. }
            | FromCoordinator::Keep { .. }
            | FromCoordinator::Recall { .. } => (),
        }
        self.hand_over(&message)
    }

    fn enter(&mut self, waited: bool) {
        self.shared.coordinator_heard.store(self.shared.clock.time().0, Ordering::Relaxed);
        if waited {
            self.shared.waits_for_place.store(false, Ordering::Relaxed);
            tracing::info!(node = %self.shared.host.node, "its place is free: registered");
        }
    }

    /// The cluster waits for others. Said once, when they should have come.
    fn note_forming(&mut self, forming: Forming) {
        let since = *self.forms_since.get_or_insert_with(Instant::now);
        if !self.forms_said && since.elapsed() >= FORMING_PATIENCE {
            self.forms_said = true;
            tracing::info!(node = %self.shared.host.node, "the cluster has not formed yet: {forming}");
        }
        *self.shared.forming.lock().unwrap_or_else(PoisonError::into_inner) = Some(forming);
    }

    /// Another process has the id of this one.
    fn wait_for_place(&mut self, most_us: u64) {
        self.shared.waits_for_place.store(true, Ordering::Relaxed);
        let most = Duration::from_micros(most_us);
        let node = self.shared.host.node;
        tracing::warn!(
            "{node} is already here as another process: waiting until its lease has run out, {most:?} at most"
        );
    }

    /// To the worker whose group it is about, or to all.
    fn hand_over(&self, message: &FromCoordinator) -> Result<(), StreamError> {
        let workers = &self.shared.workers;
        let only = message.group().map(|group| usize::from(group.shard(workers.len() as u16)));
        let meant = |shard: usize| only.is_none_or(|only| only == shard);
        for (_, worker) in workers.iter().enumerate().filter(|(shard, _)| meant(*shard)) {
            // Not dropped: the worker would miss it for good. The next connection begins with the whole map.
            worker.coordinator.try_send(message.clone()).map_err(|_| StreamError::StuckWorker)?;
        }
        Ok(())
    }
}

/// Whether anything follows from it about the coordinator. What came too early, too late or a second time is no reason to think it
/// gone: operators' commands would be refused until it says more.
fn says_something(verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Nothing)
}

/// Whether a coordinator that says this takes what operators want, if only to refuse it.
fn is_at_work(verdict: &Verdict) -> bool {
    presides(verdict) || matches!(verdict, Verdict::Waits | Verdict::Answer(_))
}

/// Whether a coordinator that says this is one of this node's cluster, at work.
fn presides(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Deliver(_) | Verdict::Alive(_) | Verdict::Forms(..) => true,
        // Who asks for what is kept (`Recall`) does not know yet whether it will preside.
        Verdict::Answer(answer) => matches!(answer, ToCoordinator::Kept { .. }),
        Verdict::Waits
        | Verdict::WaitForPlace(_)
        | Verdict::Nothing
        | Verdict::Foreign(_)
        | Verdict::End(_) => false,
    }
}

fn adopt_map(shared: &Shared, map: &ClusterMap) {
    shared.map.send_if_modified(|known| {
        let newer = known.as_ref().is_none_or(|known| known.version < map.version);
        if newer {
            tracing::info!(node = %shared.host.node, version = map.version, nodes = map.nodes.len(), "map");
            let mut map = map.clone();
            let changes = known.as_ref().map(|known| known.changes_to(&map));
            note_in_log(shared, map.version, changes.as_ref());
            // Views travel by themselves, so some that are known may be newer than those of this map.
            for view in known.iter().flat_map(|known| &known.groups) {
                map.adopt(view.clone());
            }
            *known = Some(Arc::new(map));
        }
        newer
    });
}

fn adopt_changes(shared: &Shared, changes: &MapChanges) {
    shared.map.send_if_modified(|known| {
        let Some(known) = known else { return false };
        match Arc::make_mut(known).apply(changes) {
            Ok(applied) => {
                if applied == Applied::Whole {
                    note_in_log(shared, changes.version, Some(changes));
                    note_changes(shared, changes);
                }
                applied != Applied::Nothing
            }
            Err(error) => {
                tracing::error!(%error, "changes of the map that cannot be");
                false
            }
        }
    });
}

/// The map is of another version by these changes; the first one if there are none.
fn note_in_log(shared: &Shared, version: u64, changes: Option<&MapChanges>) {
    let mut log = shared.map_log.lock().unwrap_or_else(PoisonError::into_inner);
    match changes {
        None => *log = ChangeLog::from_version(version),
        Some(changes) => changes.parts().for_each(|part| log.note(part, version)),
    }
}

/// What an operator may want to know of it. Views say what they lead to.
fn note_changes(shared: &Shared, changes: &MapChanges) {
    let MapChanges { version, catalog, layout, nodes, gone, .. } = changes;
    if catalog.is_some() || layout.is_some() || !nodes.is_empty() || !gone.is_empty() {
        tracing::info!(node = %shared.host.node, version, nodes = nodes.len(), gone = gone.len(), "the map has changed");
    }
}

fn adopt_view(shared: &Shared, view: &types::GroupView) {
    shared.map.send_if_modified(|known| {
        let Some(known) = known else { return false };
        Arc::make_mut(known).adopt(view.clone())
    });
}

#[cfg(test)]
mod tests {
    use types::Epoch;

    use super::*;

    /// Whether it says something of the coordinator; if so, whether that is at work, and presides.
    fn said(verdict: &Verdict) -> Option<(bool, bool)> {
        says_something(verdict).then(|| (is_at_work(verdict), presides(verdict)))
    }

    #[test]
    fn what_is_no_news_of_the_coordinator_leaves_what_is_known_of_it() {
        assert_eq!(said(&Verdict::Nothing), None);
    }

    #[test]
    fn a_coordinator_presides_if_it_counts_this_node_as_one_of_its_own() {
        let epoch = Epoch(3);
        let presiding = [
            Verdict::Alive(false),
            Verdict::Alive(true),
            Verdict::Forms(false, Forming::default()),
            Verdict::Deliver(FromCoordinator::Alive),
            Verdict::Answer(ToCoordinator::Kept { epoch, position: 1 }),
        ];
        presiding.iter().for_each(|verdict| assert_eq!(said(verdict), Some((true, true)), "{verdict:?}"));
    }

    #[test]
    fn a_coordinator_that_waits_or_asks_what_was_kept_answers_and_does_not_preside() {
        let asks = ToCoordinator::Recalled { epoch: Epoch(3), kept: None };
        for verdict in [Verdict::Waits, Verdict::Answer(asks)] {
            assert_eq!(said(&verdict), Some((true, false)), "{verdict:?}");
        }
    }

    #[test]
    fn a_coordinator_of_others_is_none_here() {
        let refused = || End::Refused("fenced".to_owned());
        for verdict in
            [Verdict::Foreign("of others".to_owned()), Verdict::WaitForPlace(1), Verdict::End(refused())]
        {
            assert_eq!(said(&verdict), Some((false, false)), "{verdict:?}");
        }
    }
}
