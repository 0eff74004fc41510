//! The native protocol (docs/native-protocol.md): bytes into messages and back, without I/O, for the server and for clients alike.
//!
//! What comes from the other side becomes a checked type here, or ends the connection with a [`Closing`] reason. Nothing reserves memory
//! by a declared length: a frame is at most [`MAX_FRAME_BYTES`] long, and longer things (values, maps) come in several.

mod answer;
mod chunks;
mod closing;
mod dialogue;
mod fields;
mod frame;
mod hello;
mod holders;
mod map;
mod message;
mod operation;
mod outcome;
mod request;
mod scan;

pub use answer::{
    About, Answer, Code, Layout, Located, MAX_SPANS, Meta, Places, Span, VALUE_HEAD_BYTES, Value,
};
pub use chunks::{
    BeginAsk, BegunChunks, Cells, Chunked, CommitAsk, FetchAsk, FoundChunks, GroupHolders, MAX_FETCH_BYTES,
    MAX_PUTS, MAX_ROWS, PutAsk, RoleHolders, UnpinAsk, Written,
};
pub use closing::{Closing, Reason};
pub use dialogue::{Breach, Dialogue, Heard, MAX_REQUEST_ID};
pub use fields::Malformed;
pub use frame::{
    Decoder, Frame, HEADER_BYTES, Header, Kind, MAX_BODY_BYTES, MAX_DEADLINE_MS, MAX_FRAME_BYTES,
    MAX_PIECE_BYTES,
};
pub use hello::{Capabilities, Hello, MAGIC, NEWEST_VERSION, OLDEST_VERSION, Welcome, agree};
pub use map::{
    BadRouteMap, MAX_MAP_BYTES, MapAssembly, RouteChanges, RouteMap, RouteNamespace, RouteNode, RoutePool,
};
pub use message::{FromClient, FromServer, Piece, Window};
pub use outcome::code_of;
pub use request::{Ask, Content, GetAsk, Range, Request, StoreAsk};
pub use scan::ScanAsk;
