//! A stream of frames to or from the coordinator, on either side: few messages, so plain asynchronous calls.

use std::io;

use bytes::BytesMut;
use thiserror::Error;
use types::{ClusterId, HostId};
use wire::frame::{Decoder, Encode, Encoder, FrameError, Message};

use crate::transport::Reader;

/// The cluster that frames to and from the coordinator name: a node does not know its own before the coordinator has
/// told it, so both sides check the identity in the messages instead.
const COORDINATOR_CLUSTER: ClusterId = ClusterId(0);

/// Why a stream has ended.
#[derive(Debug, Error)]
pub(crate) enum StreamError {
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side closed it.
    #[error("closed")]
    Closed,
    /// What came is no frame.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// What came is a message of another conversation.
    #[error("message of another conversation")]
    Unexpected,
    /// The other side is silent.
    #[error("silent for too long")]
    Silent,
    /// The other side does not read.
    #[error("does not read")]
    Stalled,
    /// Another process coordinates now.
    #[error("another process coordinates now")]
    Moved,
    /// The coordinator is not of this node's cluster.
    #[error("the coordinator is not of this node's cluster: {0}")]
    Foreign(String),
    /// A worker of this node does not take what it is sent.
    #[error("a worker is stuck")]
    StuckWorker,
}

/// The receiving side.
pub(crate) struct FrameReader {
    socket: Reader,
    decoder: Decoder,
    bytes: BytesMut,
}

impl FrameReader {
    pub(crate) fn new(socket: Reader) -> Self {
        Self { socket, decoder: Decoder::new(COORDINATOR_CLUSTER), bytes: BytesMut::new() }
    }

    /// Takes messages that are longer than a frame, from now on: the other side is one of this cluster.
    pub(crate) fn taking_parts(self) -> Self {
        Self { decoder: self.decoder.taking_parts(), ..self }
    }

    /// How many frames have come; of a long message each one counts.
    pub(crate) fn frames(&self) -> u64 {
        self.decoder.frames()
    }

    /// The next message. Nothing is lost if the call is given up.
    pub(crate) async fn next(&mut self) -> Result<Message, StreamError> {
        loop {
            if let Some((_, message)) = self.decoder.next(&mut self.bytes)? {
                return Ok(message);
            }
            if self.socket.read(&mut self.bytes).await? == 0 {
                return Err(StreamError::Closed);
            }
        }
    }
}

/// The sending side: frames in a buffer.
pub(crate) struct FrameBuffer {
    encoder: Encoder,
    pub bytes: Vec<u8>,
    /// Bytes of the longest message so far.
    longest: usize,
}

impl FrameBuffer {
    pub(crate) fn new(me: HostId) -> Self {
        Self { encoder: Encoder::new(COORDINATOR_CLUSTER, me), bytes: Vec::new(), longest: 0 }
    }

    /// Whether more waits than `most_bytes`, and than the longest messages of this stream twice: they come when they come.
    pub(crate) fn is_overdue(&self, most_bytes: usize) -> bool {
        self.bytes.len() > most_bytes + 2 * self.longest
    }

    /// Appends `message`; one that is too long for any is dropped and reported.
    pub(crate) fn push<M: Encode>(&mut self, message: &M) {
        let before = self.bytes.len();
        if let Err(error) = self.encoder.encode_long(message, &mut self.bytes) {
            tracing::error!(%error, "message dropped");
        }
        self.longest = self.longest.max(self.bytes.len() - before);
    }
}
