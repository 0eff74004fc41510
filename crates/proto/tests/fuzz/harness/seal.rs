//! Right magic numbers and checksums around any bytes: what is to be found lies behind them.

use bytes::BytesMut;
use types::{ClusterId, HostId};
use wire::frame::{Decoder, FORMAT_VERSION, FrameError, HEADER_BYTES, MAGIC, Message};
use wire::record;

const CLUSTER: ClusterId = ClusterId(7);

/// A frame of `from`, the first on its link.
fn frame(from: HostId, kind: u8, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + body.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[FORMAT_VERSION, kind]);
    out.extend_from_slice(&from.node.0.to_le_bytes());
    out.extend_from_slice(&CLUSTER.0.to_le_bytes());
    out.extend_from_slice(&from.incarnation.0.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// What a receiver makes of this body.
pub(super) fn decode(from: HostId, kind: u8, body: &[u8]) -> Result<Message, FrameError> {
    let mut bytes = frame(from, kind, body);
    let decoded = Decoder::new(CLUSTER).next(&mut bytes)?;
    decoded.map(|(_, message)| message).ok_or(FrameError::Malformed(wire::frame::Malformed::Magic))
}

/// Kind and body of a message.
pub(super) fn encode(from: HostId, message: &Message) -> Option<(u8, Vec<u8>)> {
    let header = wire::frame::Header { cluster: CLUSTER, source: from, sequence: 0 };
    let mut out = Vec::new();
    wire::frame::encode(&header, message, &mut out).ok()?;
    let body = out.split_off(HEADER_BYTES);
    out.get(5).map(|kind| (*kind, body))
}

/// A value of the store with this body.
pub(super) fn record(body: &[u8]) -> Vec<u8> {
    let mut out = record::MAGIC.to_vec();
    out.push(record::RECORD_VERSION);
    out.extend_from_slice(body);
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// The body of a value.
pub(super) fn body_of_record(value: &[u8]) -> &[u8] {
    value.get(5..value.len().saturating_sub(4)).unwrap_or_default()
}
