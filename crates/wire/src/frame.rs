//! Frames: how messages between nodes, and with the coordinator, lie in a byte stream (docs/format.md, "Frames").
//!
//! A frame is a header of 44 bytes with its own checksum, and a body with another. The header says whose it is before
//! a byte of the body is believed: cluster, format, source and its incarnation, and the frame's number on this link,
//! which starts at 0 and never skips. Numbers are little-endian.
//!
//! What fails here is sorted by what to do about it: a malformed stream is closed and counted, a peer of another
//! cluster or of another format is told so and closed.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;
use types::{ClusterId, HostId, Incarnation, NodeId};

pub use crate::codec::BadBody;
use crate::codec::{Choice, Reader, SharedDeltas, Wire, Writer};
use crate::graph::GraphMessage;
use crate::message::{FromCoordinator, GroupBody, GroupMessage, PeerMessage, ToCoordinator};
use crate::object::ObjectMessage;
use crate::segments::Segments;
use types::op::MAX_VALUE_BYTES;

/// First bytes of every frame.
pub const MAGIC: [u8; 4] = *b"GSTL";
/// Version of the format: header and bodies.
pub const FORMAT_VERSION: u8 = 13;
/// Length of a header.
pub const HEADER_BYTES: usize = 44;
/// Longest body.
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// Most bytes of a body that comes in several frames: maps and records between nodes and coordinators alone.
pub const MAX_LONG_BYTES: usize = 1 << 30;
/// Bytes of such a body in one frame.
const PART_BYTES: usize = MAX_FRAME_BYTES / 4;

const _: () =
    assert!(MAX_FRAME_BYTES >= 2 * MAX_VALUE_BYTES, "a value and its neighbours fit into one frame");

/// Whose frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The cluster of both ends.
    pub cluster: ClusterId,
    /// The process that sends.
    pub source: HostId,
    /// Number of the frame on its link, from 0.
    pub sequence: u64,
}

/// Anything that travels in a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The handshake of a link.
    Link(LinkMessage),
    /// Between nodes.
    Peer(PeerMessage),
    /// From a node to the coordinator.
    ToCoordinator(Box<ToCoordinator>),
    /// From the coordinator to a node.
    FromCoordinator(Box<FromCoordinator>),
}

/// The handshake: the side that connects sends `Hello` as frame 0, the other answers with `Welcome` or `Refused` as
/// its frame 0; nothing else is sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMessage {
    /// Who connects, and to whom.
    Hello(LinkHello),
    /// The link is open.
    Welcome(LinkWelcome),
    /// It is not; the link closes.
    Refused(Refusal),
}

/// See [`LinkMessage::Hello`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHello {
    /// The cluster.
    pub cluster: ClusterId,
    /// Who connects.
    pub from: HostId,
    /// Who is meant.
    pub to: NodeId,
    /// Which of its workers.
    pub shard: u16,
}

/// See [`LinkMessage::Welcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkWelcome {
    /// Who answers.
    pub from: HostId,
}

/// Why a link is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The address belongs to another node.
    #[error("this address belongs to another node")]
    WrongNode,
    /// The node has fewer workers.
    #[error("no such shard: all nodes of a cluster need the same number of workers")]
    WrongShard,
    /// The map does not have the node that connects.
    #[error("the connecting node is not in the map")]
    UnknownNode,
    /// A newer incarnation of the node that connects is known.
    #[error("a newer incarnation of the connecting node is known")]
    StaleIncarnation,
    /// Too many links.
    #[error("too many links")]
    Busy,
}

/// Why a stream cannot go on, sorted by what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// Not a stream of frames, or a damaged one: close and count.
    #[error("malformed frame: {0}")]
    Malformed(Malformed),
    /// A peer of another cluster: close and tell the operator.
    #[error("peer belongs to {theirs}")]
    WrongCluster {
        /// Its cluster.
        theirs: ClusterId,
    },
    /// A peer that speaks another format: close and tell the operator.
    #[error("peer speaks frame format {theirs}, this node speaks {FORMAT_VERSION}")]
    WrongVersion {
        /// Its format.
        theirs: u8,
    },
}

/// What is wrong with a frame.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// The stream does not begin like a frame.
    #[error("wrong magic")]
    Magic,
    /// The header does not match its checksum.
    #[error("header checksum")]
    HeaderChecksum,
    /// The body is declared longer than any may be.
    #[error("body of {0} bytes is too long")]
    TooLong(u32),
    /// A part of a body that has none, or of one that is too long: so many bytes with this one.
    #[error("a part of a message of {0} bytes")]
    Parts(usize),
    /// A frame is missing or came twice.
    #[error("frame number {got} instead of {expected}")]
    Sequence {
        /// The number that is due.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// The body does not match its checksum.
    #[error("body checksum")]
    BodyChecksum,
    /// No such kind of message.
    #[error("unknown kind {0:#04x}")]
    Kind(u8),
    /// The body is no message of its kind.
    #[error("kind {kind:#04x}: {error}")]
    Body {
        /// The kind.
        kind: u8,
        /// What is wrong with it.
        error: BadBody,
    },
}

/// A message that no receiver would accept: a body longer than [`MAX_FRAME_BYTES`], or too long a list in it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("message of {body_bytes} bytes does not fit into a frame")]
pub struct DoesNotFit {
    /// Length of the body.
    pub body_bytes: usize,
}

/// A message that can be put into a frame.
pub trait Encode: sealed::Body {}

mod sealed {
    use crate::codec::Writer;

    /// The kind of a message and its body.
    pub trait Body {
        fn kind(&self) -> u8;
        fn put_body(&self, out: &mut Writer<'_>);
    }
}

/// First kinds of the families of messages; what the kind adds is the message's tag.
mod kind {
    /// Bytes of a body that goes on in the next frame.
    pub const PART: u8 = 0x70;
    pub const LINK: u8 = 0x00;
    pub const FORWARD: u8 = 0x10;
    pub const ANSWER: u8 = 0x11;
    pub const GROUP: u8 = 0x20;
    pub const TO_COORDINATOR: u8 = 0x40;
    pub const FROM_COORDINATOR: u8 = 0x50;
    pub const OBJECT: u8 = 0x60;
    pub const GRAPH: u8 = 0x80;
    /// Messages about chunks of which there are more than one family has numbers.
    pub const MORE_OBJECT: u8 = 0x90;
    /// The same of messages to the coordinator.
    pub const MORE_TO_COORDINATOR: u8 = 0xa0;
    /// Numbers of one family.
    pub const FAMILY: u8 = 0x10;

    /// The kind of the message with this tag, where a family goes on in another one.
    pub fn in_two(first: u8, more: u8, tag: u8) -> u8 {
        tag.checked_sub(FAMILY).map_or(first + tag, |tag| more + tag)
    }
}

/// Appends a frame to `out`.
///
/// # Errors
/// `DoesNotFit`; `out` is as it was.
pub fn encode<M: Encode>(header: &Header, message: &M, out: &mut Vec<u8>) -> Result<(), DoesNotFit> {
    let start = begin(out);
    let mut writer = Writer::new(out);
    message.put_body(&mut writer);
    let overflow = writer.overflow;
    seal(header, message.kind(), out, start, &[], overflow)
}

/// Appends frames to `out` that are one message together: all but the last one are parts of its body.
fn seal_parts(next: &mut Header, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<(), DoesNotFit> {
    if body.len() > MAX_LONG_BYTES {
        return Err(DoesNotFit { body_bytes: body.len() });
    }
    let mut parts = body.chunks(PART_BYTES).peekable();
    while let Some(part) = parts.next() {
        let kind = if parts.peek().is_some() { kind::PART } else { kind };
        let start = begin(out);
        out.extend_from_slice(part);
        seal(next, kind, out, start, &[], false)?;
        next.sequence += 1;
    }
    Ok(())
}

/// Room for a header; where it begins.
fn begin(out: &mut Vec<u8>) -> usize {
    // Length and checksum of the body stand before it, and are known after it.
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    start
}

/// Puts the header before a body, which is what was copied after it and the shared deltas between that.
#[inline]
fn seal(
    header: &Header,
    kind: u8,
    out: &mut Vec<u8>,
    start: usize,
    shared: &[(usize, Bytes, u32)],
    overflow: bool,
) -> Result<(), DoesNotFit> {
    let copied = out.len() - start - HEADER_BYTES;
    let body_bytes = copied + shared.iter().map(|(_, bytes, _)| bytes.len()).sum::<usize>();
    if overflow || body_bytes > MAX_FRAME_BYTES {
        // What goes into a socket is whole frames only: nobody could find the next one behind a part.
        out.truncate(start);
        return Err(DoesNotFit { body_bytes });
    }
    let raw = RawHeader {
        version: FORMAT_VERSION,
        kind,
        header: *header,
        body_len: u32::try_from(body_bytes).map_err(|_| DoesNotFit { body_bytes })?,
        body_crc: body_checksum(out, start + HEADER_BYTES, shared),
    };
    if let Some(room) = out.get_mut(start..start + HEADER_BYTES) {
        room.copy_from_slice(&raw.to_bytes());
    }
    Ok(())
}

fn body_checksum(out: &[u8], from: usize, shared: &[(usize, Bytes, u32)]) -> u32 {
    let part = |from: usize, to: usize| out.get(from..to).unwrap_or_default();
    let Some((first, ..)) = shared.first() else { return types::checksum(part(from, out.len())) };
    let (mut sum, mut at) = (types::checksum(part(from, *first)), *first);
    // A delta goes to all parities, and is summed up once.
    for (place, bytes, checksum) in shared {
        sum = types::checksum_append(sum, part(at, *place));
        sum = types::checksum_combine(sum, *checksum, bytes.len());
        at = *place;
    }
    types::checksum_append(sum, part(at, out.len()))
}

/// The sending side of a link: numbers its frames.
#[derive(Clone, Debug)]
pub struct Encoder {
    next: Header,
}

impl Encoder {
    /// Of a new link.
    #[must_use]
    pub fn new(cluster: ClusterId, source: HostId) -> Self {
        Self { next: Header { cluster, source, sequence: 0 } }
    }

    /// Appends the next frame to `out`.
    ///
    /// # Errors
    /// `DoesNotFit`; `out` is as it was and the number is not used up.
    pub fn encode<M: Encode>(&mut self, message: &M, out: &mut Vec<u8>) -> Result<(), DoesNotFit> {
        encode(&self.next, message, out)?;
        self.next.sequence += 1;
        Ok(())
    }

    /// Appends the next frames to `out`: more than one where the message is longer than a frame. The other side must
    /// [take parts](Decoder::taking_parts).
    ///
    /// # Errors
    /// `DoesNotFit`, by [`MAX_LONG_BYTES`]; `out` is as it was and no number is used up.
    pub fn encode_long<M: Encode>(&mut self, message: &M, out: &mut Vec<u8>) -> Result<(), DoesNotFit> {
        let start = begin(out);
        let mut writer = Writer::new(out);
        message.put_body(&mut writer);
        let overflow = writer.overflow;
        if overflow || out.len() - start - HEADER_BYTES <= MAX_FRAME_BYTES {
            seal(&self.next, message.kind(), out, start, &[], overflow)?;
            self.next.sequence += 1;
            return Ok(());
        }
        let body = out.split_off(start + HEADER_BYTES);
        out.truncate(start);
        seal_parts(&mut self.next, message.kind(), &body, out)
    }

    /// Appends the next frame to `out`, which shares its long deltas with the message.
    ///
    /// # Errors
    /// `DoesNotFit`; `out` is as it was and the number is not used up.
    pub fn encode_shared<M: Encode>(&mut self, message: &M, out: &mut Segments) -> Result<(), DoesNotFit> {
        let (copied, mut shared) = (out.copied_mut(), SharedDeltas::new());
        let start = begin(copied);
        let mut writer = Writer::sharing(copied, &mut shared);
        message.put_body(&mut writer);
        let overflow = writer.overflow;
        // Nothing is shared before this: what does not fit leaves no trace.
        seal(&self.next, message.kind(), copied, start, &shared, overflow)?;
        shared.into_iter().for_each(|(place, bytes, _)| out.share(place, bytes));
        self.next.sequence += 1;
        Ok(())
    }
}

/// The receiving side of a link.
#[derive(Debug)]
pub struct Decoder {
    cluster: ClusterId,
    next_sequence: u64,
    /// The header whose body is still to come.
    waiting: Option<RawHeader>,
    /// Most bytes of a body that comes in several frames; 0 = none does.
    most_bytes: usize,
    /// What has come of such a body.
    parts: BytesMut,
}

impl Decoder {
    /// Of a new link in this cluster.
    #[must_use]
    pub fn new(cluster: ClusterId) -> Self {
        Self { cluster, next_sequence: 0, waiting: None, most_bytes: 0, parts: BytesMut::new() }
    }

    /// One that takes messages of several frames, up to [`MAX_LONG_BYTES`].
    #[must_use]
    pub fn taking_parts(self) -> Self {
        Self { most_bytes: MAX_LONG_BYTES, ..self }
    }

    /// How many frames have come. Grows also while a message of several frames is on its way.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.next_sequence
    }

    /// How many bytes more make the next message possible, at least 1: a hint for the size of the next read, at most
    /// [`MAX_FRAME_BYTES`].
    #[must_use]
    pub fn wanted(&self, buffer: &BytesMut) -> usize {
        let whole = self.waiting.as_ref().map_or(HEADER_BYTES, RawHeader::body_bytes);
        whole.saturating_sub(buffer.len()).max(1)
    }

    /// Takes the next message off the front of `buffer`; none if more bytes are needed. Bytes in the message are
    /// slices of the buffer.
    ///
    /// # Errors
    /// The stream cannot go on.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<(Header, Message)>, FrameError> {
        while let Some((raw, body)) = self.frame(buffer)? {
            let message = if matches!(raw.kind & 0xf0, kind::OBJECT | kind::GRAPH | kind::MORE_OBJECT) {
                take_summed(&raw, body)?
            } else {
                // First: what is wrong in a body after this was sent so, and is no damage on the way.
                check_body(types::checksum(&body), &raw)?;
                if raw.kind == kind::PART {
                    self.add_part(&body)?;
                    continue;
                }
                take_all(raw.kind, &mut Reader::new(self.whole(body)))?
            };
            return Ok(Some((raw.header, message)));
        }
        Ok(None)
    }

    /// The next frame, if it has arrived; its body is not checked yet.
    fn frame(&mut self, buffer: &mut BytesMut) -> Result<Option<(RawHeader, Bytes)>, FrameError> {
        let Some(raw) = self.header(buffer)? else { return Ok(None) };
        if buffer.len() < raw.body_bytes() {
            // Its header is off the buffer, and need not be checked again.
            self.waiting = Some(raw);
            return Ok(None);
        }
        let body = buffer.split_to(raw.body_bytes()).freeze();
        self.next_sequence += 1;
        Ok(Some((raw, body)))
    }

    fn add_part(&mut self, part: &Bytes) -> Result<(), FrameError> {
        if self.most_bytes == 0 {
            return Err(FrameError::Malformed(Malformed::Kind(kind::PART)));
        }
        let bytes = self.parts.len() + part.len();
        // The last piece is no part, and no longer than a frame.
        if part.is_empty() || bytes > self.most_bytes {
            return Err(FrameError::Malformed(Malformed::Parts(bytes)));
        }
        self.parts.extend_from_slice(part);
        Ok(())
    }

    /// The body that ends with `last`.
    fn whole(&mut self, last: Bytes) -> Bytes {
        if self.parts.is_empty() {
            return last;
        }
        let mut body = std::mem::take(&mut self.parts);
        body.extend_from_slice(&last);
        body.freeze()
    }

    /// The header of the next frame, if it has arrived and is acceptable.
    fn header(&mut self, buffer: &mut BytesMut) -> Result<Option<RawHeader>, FrameError> {
        if let Some(raw) = self.waiting.take() {
            return Ok(Some(raw));
        }
        // By the first bytes: whoever speaks another protocol may never send as many as a header has.
        if !MAGIC.starts_with(buffer.get(..4.min(buffer.len())).unwrap_or_default()) {
            return Err(FrameError::Malformed(Malformed::Magic));
        }
        let Some(bytes) = buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let raw = RawHeader::from_bytes(bytes).ok_or(FrameError::Malformed(Malformed::HeaderChecksum))?;
        self.check(&raw)?;
        buffer.advance(HEADER_BYTES);
        Ok(Some(raw))
    }

    /// Whether a frame with this header may come next.
    fn check(&self, raw: &RawHeader) -> Result<(), FrameError> {
        let Header { cluster, sequence, .. } = raw.header;
        // First what an operator has to hear of. Of another format the rest may be anything.
        if raw.version != FORMAT_VERSION {
            return Err(FrameError::WrongVersion { theirs: raw.version });
        }
        if cluster != self.cluster {
            return Err(FrameError::WrongCluster { theirs: cluster });
        }
        // Before anybody waits for the body, or makes room for it.
        if raw.body_bytes() > MAX_FRAME_BYTES {
            return Err(FrameError::Malformed(Malformed::TooLong(raw.body_len)));
        }
        if sequence != self.next_sequence {
            let expected = self.next_sequence;
            return Err(FrameError::Malformed(Malformed::Sequence { expected, got: sequence }));
        }
        Ok(())
    }
}

/// All of a header but the magic and its checksum.
#[derive(Clone, Copy, Debug)]
struct RawHeader {
    version: u8,
    kind: u8,
    header: Header,
    body_len: u32,
    body_crc: u32,
}

impl RawHeader {
    fn body_bytes(&self) -> usize {
        usize::try_from(self.body_len).unwrap_or(usize::MAX)
    }

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let Header { cluster, source, sequence } = self.header;
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4] = self.version;
        bytes[5] = self.kind;
        bytes[6..8].copy_from_slice(&source.node.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&cluster.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&source.incarnation.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&sequence.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.body_len.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = types::checksum(&bytes[..40]);
        bytes[40..44].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// None if the checksum is wrong.
    fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        if types::checksum(&bytes[..40]) != u32_at(bytes, 40) {
            return None;
        }
        let source = HostId {
            node: NodeId(u16::from_le_bytes([bytes[6], bytes[7]])),
            incarnation: Incarnation(u64_at(bytes, 16)),
        };
        Some(Self {
            version: bytes[4],
            kind: bytes[5],
            header: Header { cluster: ClusterId(u64_at(bytes, 8)), source, sequence: u64_at(bytes, 24) },
            body_len: u32_at(bytes, 32),
            body_crc: u32_at(bytes, 36),
        })
    }
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    bytes[at..].first_chunk().copied().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    bytes[at..].first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// The message of this kind.
fn check_body(checksum: u32, raw: &RawHeader) -> Result<(), FrameError> {
    if checksum == raw.body_crc { Ok(()) } else { Err(FrameError::Malformed(Malformed::BodyChecksum)) }
}

/// A message with long bytes that have a checksum of their own: they are summed up once for both. It is nobody's before all is found
/// right, and what is wrong in it counts only then.
fn take_summed(raw: &RawHeader, body: Bytes) -> Result<Message, FrameError> {
    let mut reader = Reader::new(body.clone());
    let taken = take_all(raw.kind, &mut reader);
    check_body(reader.checksum(&body), raw)?;
    taken
}

/// A message that is the whole body.
fn take_all(kind: u8, from: &mut Reader) -> Result<Message, FrameError> {
    let message = take_message(kind, from)?;
    from.end().map_err(|error| bad_body(kind, error))?;
    Ok(message)
}

fn take_message(kind: u8, from: &mut Reader) -> Result<Message, FrameError> {
    let (family, tag) = (kind & 0xf0, kind & 0x0f);
    let message = match (kind, family) {
        (kind::FORWARD, _) => Wire::take(from).map(PeerMessage::Forward).map(Message::Peer),
        (kind::ANSWER, _) => Wire::take(from).map(PeerMessage::Answer).map(Message::Peer),
        (_, kind::LINK) => LinkMessage::take_fields(tag, from).map(Message::Link),
        // More kinds than one family has numbers.
        (kind::GROUP..kind::TO_COORDINATOR, _) => {
            take_group(kind - kind::GROUP, from).map(PeerMessage::Group).map(Message::Peer)
        }
        (_, kind::TO_COORDINATOR) => ToCoordinator::take_fields(tag, from).map(Message::from),
        (_, kind::MORE_TO_COORDINATOR) => {
            ToCoordinator::take_fields(tag + kind::FAMILY, from).map(Message::from)
        }
        (_, kind::OBJECT) => ObjectMessage::take_fields(tag, from).map(PeerMessage::from).map(Message::Peer),
        (_, kind::MORE_OBJECT) => {
            let tag = tag + kind::FAMILY;
            ObjectMessage::take_fields(tag, from).map(PeerMessage::from).map(Message::Peer)
        }
        (_, kind::GRAPH) => GraphMessage::take_fields(tag, from).map(PeerMessage::from).map(Message::Peer),
        (_, kind::FROM_COORDINATOR) => FromCoordinator::take_fields(tag, from).map(Message::from),
        _ => return Err(FrameError::Malformed(Malformed::Kind(kind))),
    };
    message.map_err(|error| bad_body(kind, error))
}

fn take_group(tag: u8, from: &mut Reader) -> Result<GroupMessage, BadBody> {
    Ok(GroupMessage {
        group: Wire::take(from)?,
        view: Wire::take(from)?,
        from: Wire::take(from)?,
        to: Wire::take(from)?,
        body: GroupBody::take_fields(tag, from)?,
    })
}

fn bad_body(kind: u8, error: BadBody) -> FrameError {
    FrameError::Malformed(Malformed::Body { kind, error })
}

impl sealed::Body for GroupMessage {
    fn kind(&self) -> u8 {
        kind::GROUP + self.body.tag()
    }

    fn put_body(&self, out: &mut Writer<'_>) {
        let Self { group, view, from, to, body } = self;
        out.numbers([group.0.into(), view.0.into(), from.0.into(), to.0.into()]);
        body.put_fields(out);
    }
}

impl sealed::Body for PeerMessage {
    fn kind(&self) -> u8 {
        match self {
            Self::Group(group) => group.kind(),
            Self::Forward(_) => kind::FORWARD,
            Self::Answer(_) => kind::ANSWER,
            Self::Object(object) => kind::in_two(kind::OBJECT, kind::MORE_OBJECT, object.tag()),
            Self::Graph(graph) => kind::GRAPH + graph.tag(),
        }
    }

    fn put_body(&self, out: &mut Writer<'_>) {
        match self {
            Self::Group(group) => group.put_body(out),
            Self::Forward(forward) => forward.put(out),
            Self::Answer(answer) => answer.put(out),
            Self::Object(object) => object.put_fields(out),
            Self::Graph(graph) => graph.put_fields(out),
        }
    }
}

macro_rules! family {
    ($type:ident, $kind:expr) => {
        impl sealed::Body for $type {
            fn kind(&self) -> u8 {
                $kind(self.tag())
            }

            fn put_body(&self, out: &mut Writer<'_>) {
                self.put_fields(out);
            }
        }

        impl Encode for $type {}

        impl From<$type> for Message {
            fn from(message: $type) -> Self {
                family!(@wrap $type, message)
            }
        }
    };
    (@wrap LinkMessage, $message:ident) => { Self::Link($message) };
    (@wrap ToCoordinator, $message:ident) => { Self::ToCoordinator(Box::new($message)) };
    (@wrap FromCoordinator, $message:ident) => { Self::FromCoordinator(Box::new($message)) };
}

family!(LinkMessage, |tag| kind::LINK + tag);
family!(ToCoordinator, |tag| kind::in_two(kind::TO_COORDINATOR, kind::MORE_TO_COORDINATOR, tag));
family!(FromCoordinator, |tag| kind::FROM_COORDINATOR + tag);

impl Encode for GroupMessage {}
impl Encode for PeerMessage {}
impl Encode for Message {}

impl From<PeerMessage> for Message {
    fn from(message: PeerMessage) -> Self {
        Self::Peer(message)
    }
}

impl sealed::Body for Message {
    fn kind(&self) -> u8 {
        match self {
            Self::Link(message) => message.kind(),
            Self::Peer(message) => message.kind(),
            Self::ToCoordinator(message) => message.kind(),
            Self::FromCoordinator(message) => message.kind(),
        }
    }

    fn put_body(&self, out: &mut Writer<'_>) {
        match self {
            Self::Link(message) => message.put_body(out),
            Self::Peer(message) => message.put_body(out),
            Self::ToCoordinator(message) => message.put_body(out),
            Self::FromCoordinator(message) => message.put_body(out),
        }
    }
}
