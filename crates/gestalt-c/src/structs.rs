//! What C hands in and gets back. The header has the same; a test compares sizes and places.

use std::ffi::c_void;

/// `gestalt_options`: how a client is made.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// `sizeof(gestalt_options)`: later versions may be longer.
    pub size: u32,
    /// `GESTALT_LAZY`, `GESTALT_CHECK_BUFFERS`.
    pub set: u32,
    /// 0 = as the URI says, here and below.
    pub timeout_ms: u64,
    /// Most bytes of one value on their way.
    pub window: u32,
    /// Most requests that have not been released.
    pub max_requests: u32,
}

/// `gestalt_call`: what is not the same for all requests.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// `sizeof(gestalt_call)`: later versions may be longer.
    pub size: u32,
    /// Which of the fields below the next two lines count: `GESTALT_WITH_…`.
    pub set: u32,
    /// Where its end is told; 0 = nowhere.
    pub queue: u64,
    /// The caller's, given back with its end.
    pub tag: u64,
    /// 0 = the client's.
    pub timeout_ms: u64,
    /// Only if this version is there.
    pub version: u64,
    /// A part of the value begins there, ...
    pub offset: u64,
    /// ... and has so many bytes.
    pub length: u64,
    /// The number if there is none yet.
    pub initial: u64,
    /// Opaque to the cluster, kept with the value.
    pub flags: u32,
    /// Seconds to live.
    pub ttl: u32,
}

/// `gestalt_part`: one key of many.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Part {
    /// The key.
    pub key: *const c_void,
    /// Its length.
    pub key_len: usize,
    /// Where its value goes; null = into a buffer of the library.
    pub buffer: *mut c_void,
    /// Its length.
    pub buffer_len: usize,
}

/// `gestalt_result`: what a request has come to.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Outcome {
    /// A `GESTALT_…` code.
    pub code: i32,
    /// The item's.
    pub flags: u32,
    /// The caller's.
    pub tag: u64,
    /// The value; null if none was read.
    pub data: *const c_void,
    /// So many bytes of it.
    pub len: u64,
    /// How long the buffer has to be, where it was too short.
    pub needed: u64,
    /// Length of the whole value.
    pub value_len: u64,
    /// The item's version.
    pub version: u64,
    /// The number as it is now.
    pub number: u64,
    /// Seconds to live; the greatest number = for ever.
    pub ttl: u32,
    /// Seconds since it was last read.
    pub idle: u32,
    /// 1 if it has been read since it was stored.
    pub was_read: u32,
    /// Longest chunk and data chunks of a stripe; 0 = it lies whole at one member.
    pub chunk_len: u32,
    /// See above.
    pub data_chunks: u32,
    /// How bytes are dealt to them: 0 = `spread`, 1 = `wide`, 2 = `copy`.
    pub layout: u32,
}

/// `gestalt_event`: a request that is over.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// Which.
    pub request: u64,
    /// The caller's.
    pub tag: u64,
    /// What it has come to.
    pub code: i32,
    /// 0.
    pub reserved: u32,
}

/// `gestalt_place`: where a key is at home.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Place {
    /// Slot of the pool.
    pub slot: u32,
    /// Its group.
    pub group: u32,
    /// Its data role.
    pub role: u32,
    /// Node of its primary; -1 = none now.
    pub primary: i32,
}

/// `gestalt_span`: bytes of a value that lie on certain nodes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// How many.
    pub len: u64,
    /// Bytes on one node before it is the next one's turn; 0 if there is one.
    pub cell_len: u32,
    /// How many nodes.
    pub node_count: u32,
    /// They; 65535 = nobody serves it now.
    pub nodes: *const u16,
}
