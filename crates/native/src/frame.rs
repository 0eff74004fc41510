//! Frames: a header of 16 bytes and a body.

use bytes::{Buf, Bytes, BytesMut};

use crate::fields::{Malformed, Put};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Most bytes of a value in one frame; longer values come in several, between which other frames may come.
pub const MAX_PIECE_BYTES: usize = 64 * 1024;
/// Longest body: a piece, and what may stand before it.
pub const MAX_BODY_BYTES: usize = MAX_PIECE_BYTES + 1024;
/// Longest deadline of a request, in milliseconds: an hour.
pub const MAX_DEADLINE_MS: u32 = 60 * 60 * 1000;
/// Longest frame.
pub const MAX_FRAME_BYTES: usize = HEADER_BYTES + MAX_BODY_BYTES;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What a frame is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The kind with this number.
            #[must_use]
            pub fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// The client's first frame.
    Hello = 1,
    /// The server's first frame.
    Welcome = 2,
    /// The server's last frame: why it closes.
    Closing = 3,
    /// The client asks for the map.
    MapWanted = 4,
    /// A map, or a part of one.
    Map = 5,
    /// What has changed of a map.
    MapChanges = 6,
    /// A value is wanted.
    Get = 16,
    /// A value is to be stored.
    Store = 17,
    /// A key is to be removed.
    Delete = 18,
    /// A number is to be changed.
    Arith = 19,
    /// An item is to live longer or shorter.
    Touch = 20,
    /// What is known of an item is wanted, without its value.
    Stat = 21,
    /// Where the bytes of a value lie is wanted.
    Locate = 22,
    /// Writes are to be done once: under which session.
    Session = 23,
    /// Rows of a chunk are wanted.
    Fetch = 24,
    /// So far chunks have been read.
    Unpin = 25,
    /// A value is to be put into chunks.
    Begin = 26,
    /// A chunk.
    Put = 27,
    /// All chunks of a value are there.
    Commit = 28,
    /// Nothing comes of a value whose chunks were put.
    Abandon = 29,
    /// Keys of a data role are wanted.
    Scan = 30,
    /// Bytes of a value that is being put into chunks are still coming.
    Renew = 31,
    /// Bytes of a value.
    Piece = 32,
    /// So many more bytes of a value may be sent.
    Window = 33,
    /// The client does not want to hear of a request any more.
    Cancel = 34,
    /// What came of a request.
    Answer = 48,
    /// A value that came in pieces has come to its end.
    End = 49,
}

/// What stands before a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the body.
    pub len: u32,
    /// What it is.
    pub kind: Kind,
    /// By kind.
    pub flags: u8,
    /// The request that it is about; 0 if it is about none.
    pub id: u64,
}

impl Header {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.len);
        out.put_u8(self.kind as u8);
        out.put_u8(self.flags);
        out.put_u16(0);
        out.put_u64(self.id);
    }

    /// The header that `bytes` begin with; none while it has not come in full.
    ///
    /// # Errors
    /// There can be no such header.
    pub fn take(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some(mut head) = bytes.get(..HEADER_BYTES) else { return Ok(None) };
        let len = head.get_u32_le();
        let (kind, flags, reserved, id) =
            (head.get_u8(), head.get_u8(), head.get_u16_le(), head.get_u64_le());
        if len as usize > MAX_BODY_BYTES {
            return Err(Malformed::Long(len.into()));
        }
        if reserved != 0 {
            return Err(Malformed::Reserved);
        }
        let kind = Kind::of(kind).ok_or(Malformed::Kind(kind))?;
        Ok(Some(Self { len, kind, flags, id }))
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What stands before its body.
    pub header: Header,
    /// The rest.
    pub body: Bytes,
}

/// Cuts frames off a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoder;

impl Decoder {
    /// The next frame; none while it has not come in full.
    ///
    /// # Errors
    /// What comes next is none.
    pub fn next(buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let Some(header) = Header::take(buffer)? else { return Ok(None) };
        let len = HEADER_BYTES + header.len as usize;
        if buffer.len() < len {
            return Ok(None);
        }
        let mut body = buffer.split_to(len).freeze();
        body.advance(HEADER_BYTES);
        Ok(Some(Frame { header, body }))
    }

    /// How many bytes more make the next frame possible, at least 1.
    #[must_use]
    pub fn wanted(buffer: &[u8]) -> usize {
        let len = match Header::take(buffer) {
            Ok(Some(header)) => HEADER_BYTES + header.len as usize,
            Ok(None) | Err(_) => HEADER_BYTES,
        };
        len.saturating_sub(buffer.len()).max(1)
    }
}

/// Appends a frame whose body `fill` writes, with `more` bytes that the caller appends to it.
pub(crate) fn put_frame(
    (kind, flags, id): (Kind, u8, u64),
    more: usize,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    Header { len: 0, kind, flags, id }.put(out);
    fill(out);
    let len = out.len() - start - HEADER_BYTES + more;
    debug_assert!(len <= MAX_BODY_BYTES, "{kind:?} of {len} bytes");
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}
