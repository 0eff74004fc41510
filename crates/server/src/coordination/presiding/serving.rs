//! Connections of nodes, at whoever presides.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use types::HostId;
use wire::frame::{FrameError, Message};
use wire::message::{FromCoordinator, ToCoordinator};

use super::{COORDINATOR, NodeConnection, Presiding};
use crate::coordination::frames::{FrameBuffer, FrameReader, StreamError};
use crate::limits::{COORDINATOR_CONNECTIONS, HANDSHAKE_DEADLINE};
use crate::transport::{Stream, Tuning, Writer};

impl Presiding {
    /// Serves one connection of a node in a task of its own, if there is room for it. Who has registered keeps others out, who has not gives way.
    pub(crate) fn take(self: &Rc<Self>, stream: Stream) {
        if self.open.get() >= COORDINATOR_CONNECTIONS {
            return;
        }
        let this = Rc::clone(self);
        // Counted here and not in the task: many may be taken before the first task runs.
        self.open.set(self.open.get() + 1);
        tokio::task::spawn_local(async move {
            let ended = tokio::select! {
                ended = this.serve_node(stream) => ended,
                _ = this.ended() => Ok(()),
            };
            if let Err(StreamError::Frame(_) | StreamError::Unexpected) = ended {
                this.count(|status| status.malformed_frames += 1);
            }
            if let Err(error) = ended {
                tracing::debug!(%error, "node connection ended");
            }
            this.open.set(this.open.get() - 1);
        });
    }

    /// One connection of a node, until it ends.
    async fn serve_node(&self, stream: Stream) -> Result<(), StreamError> {
        stream.tune(Tuning::of_peers(&self.timing));
        let (read, writer) = stream.split();
        let mut reader = FrameReader::new(read);
        let first = self.first_message(&mut reader).await?;
        if let Err(StreamError::Frame(FrameError::WrongVersion { .. })) = first {
            say_version(&writer).await?;
        }
        let Message::ToCoordinator(message) = first? else { return Err(StreamError::Unexpected) };
        let ToCoordinator::Register(registration) = *message else { return Err(StreamError::Unexpected) };
        let mut reader = reader.taking_parts();
        let host = registration.info.host;
        let out = RefCell::new(FrameBuffer::new(COORDINATOR));
        let connection = Rc::new(NodeConnection { out, wake: Notify::new() });
        // Before the registration is looked at: its answer has to find this connection.
        let before = self.connections.borrow_mut().insert(host, Rc::clone(&connection));
        if let Some(before) = before {
            before.wake.notify_one();
        }
        self.drive(|coordinator, now| coordinator.handle(now, host, ToCoordinator::Register(registration)));
        let ended = tokio::select! {
            ended = self.listen(host, &connection, &mut reader) => ended,
            ended = self.talk(host, &connection, writer) => ended,
        };
        // A newer one of the same process stays.
        if self.is_current(host, &connection) {
            self.connections.borrow_mut().remove(&host);
            // A node is lost with its lease, and not with a connection; but one whose side has closed it may well have ended.
            if ended.as_ref().is_err_and(is_closed_there) {
                self.drive(|coordinator, _| coordinator.parted(host));
            }
        }
        ended
    }

    /// What a node says first. It has not long, and less while others wait.
    async fn first_message(
        &self,
        reader: &mut FrameReader,
    ) -> Result<Result<Message, StreamError>, StreamError> {
        let Some(place) = self.handshakes.take() else { return Err(StreamError::Closed) };
        tokio::select! {
            first = tokio::time::timeout(HANDSHAKE_DEADLINE, reader.next()) => first.map_err(|_| StreamError::Silent),
            () = place.lost() => Err(StreamError::Silent),
        }
    }

    /// Whether `connection` is the node's newest.
    fn is_current(&self, host: HostId, connection: &Rc<NodeConnection>) -> bool {
        self.connections.borrow().get(&host).is_some_and(|known| Rc::ptr_eq(known, connection))
    }

    async fn listen(
        &self,
        host: HostId,
        connection: &Rc<NodeConnection>,
        reader: &mut FrameReader,
    ) -> Result<(), StreamError> {
        loop {
            let Message::ToCoordinator(message) = reader.next().await? else {
                return Err(StreamError::Unexpected);
            };
            let is_of_another = match &*message {
                ToCoordinator::Register(registration) => registration.info.host != host,
                ToCoordinator::Heartbeat { host: from, .. } => *from != host,
                // Who sends these has registered.
                ToCoordinator::FetchView { .. }
                | ToCoordinator::Chunks(_)
                | ToCoordinator::Converted { .. }
                | ToCoordinator::Starved { .. }
                | ToCoordinator::Stalled { .. }
                | ToCoordinator::Repaired { .. }
                | ToCoordinator::Fenced { .. }
                | ToCoordinator::Settled { .. }
                | ToCoordinator::CaughtUp { .. }
                | ToCoordinator::GaveUp { .. }
                | ToCoordinator::HandedOver { .. }
                | ToCoordinator::Admin { .. }
                | ToCoordinator::Kept { .. }
                | ToCoordinator::Recalled { .. }
                | ToCoordinator::Quotas(_)
                | ToCoordinator::Confirmed { .. } => false,
            };
            // What still comes on a connection that was replaced may be older than what the newer one has said.
            if is_of_another || !self.is_current(host, connection) {
                return Err(StreamError::Unexpected);
            }
            self.drive(|coordinator, now| coordinator.handle(now, host, *message));
        }
    }

    async fn talk(
        &self,
        host: HostId,
        connection: &Rc<NodeConnection>,
        writer: Writer,
    ) -> Result<(), StreamError> {
        let lease = Duration::from_micros(self.timing.node_lease_us);
        loop {
            connection.wake.notified().await;
            if !self.is_current(host, connection) {
                return Err(StreamError::Closed);
            }
            let bytes = std::mem::take(&mut connection.out.borrow_mut().bytes);
            let writing = tokio::time::timeout(lease * 2, writer.write_all(&bytes));
            writing.await.map_err(|_| StreamError::Stalled)??;
        }
    }
}

/// Whether the other side has closed the connection, or there is nobody any more: a process that stands still or is cut off does neither.
fn is_closed_there(error: &StreamError) -> bool {
    match error {
        StreamError::Closed => true,
        StreamError::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof
        ),
        _ => false,
    }
}

/// A node of another format cannot read an answer, but any frame says which format this is.
async fn say_version(writer: &Writer) -> Result<(), StreamError> {
    let mut out = FrameBuffer::new(COORDINATOR);
    out.push(&FromCoordinator::Waiting);
    Ok(writer.write_all(&out.bytes).await?)
}
