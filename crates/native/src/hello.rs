//! How a connection begins: the client says what it speaks, the server what both will.

use bytes::Bytes;
use types::{ClusterId, NodeId};

use crate::fields::{Fields, Malformed, Put};
use crate::frame::{Kind, put_frame};

/// What a hello begins with.
pub const MAGIC: [u8; 8] = *b"gestalt\n";
/// The oldest version that this code speaks.
pub const OLDEST_VERSION: u16 = 1;
/// The newest one.
pub const NEWEST_VERSION: u16 = 1;

/// What a side can do beyond what its version says. Bits that a side does not know are no error: nobody uses them then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Maps are sent whenever they change.
    pub const MAP: Self = Self(1);
    /// Writes may have names, under which they are done once.
    pub const SESSIONS: Self = Self(2);
    /// Chunks of long values may be read and written at their holders.
    pub const CHUNKS: Self = Self(4);
    /// Which keys there are may be asked; whether that is answered is the node's to say.
    pub const SCANS: Self = Self(8);
    /// Where bytes lie may be asked from any byte of a value on.
    pub const PAGES: Self = Self(16);
    /// What lies in lost chunks may be made by coding graphs for who reads it.
    pub const GRAPHS: Self = Self(32);
    /// All that this code knows.
    pub const ALL: Self = Self(
        Self::MAP.0 | Self::SESSIONS.0 | Self::CHUNKS.0 | Self::SCANS.0 | Self::PAGES.0 | Self::GRAPHS.0,
    );

    /// Those that both have.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` are here.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The client's first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The oldest version that it speaks.
    pub oldest: u16,
    /// The newest one.
    pub newest: u16,
    /// What it can.
    pub capabilities: Capabilities,
}

impl Default for Hello {
    fn default() -> Self {
        Self { oldest: OLDEST_VERSION, newest: NEWEST_VERSION, capabilities: Capabilities::ALL }
    }
}

/// The highest version that both ranges have.
#[must_use]
pub fn agree(hello: &Hello) -> Option<u16> {
    let version = hello.newest.min(NEWEST_VERSION);
    (version >= hello.oldest.max(OLDEST_VERSION)).then_some(version)
}

impl Hello {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_frame((Kind::Hello, 0, 0), 0, out, |out| {
            out.extend_from_slice(&MAGIC);
            out.put_u16(self.oldest);
            out.put_u16(self.newest);
            out.put_u32(self.capabilities.0);
        });
    }

    pub(crate) fn take(body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        if fields.bytes(MAGIC.len())? != MAGIC[..] {
            return Err(Malformed::Hello);
        }
        let (oldest, newest) = (fields.u16()?, fields.u16()?);
        let capabilities = Capabilities(fields.u32()?);
        if oldest > newest {
            return Err(Malformed::Field("the range of versions"));
        }
        // What stands behind is of later versions, which may say more here.
        Ok(Self { oldest, newest, capabilities })
    }
}

/// The server's first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// What is spoken from now on.
    pub version: u16,
    /// What both sides can.
    pub capabilities: Capabilities,
    /// How many requests may be unanswered.
    pub credits: u32,
    /// Longest value that may be stored, in bytes.
    pub longest_value: u64,
    /// Whose node this is.
    pub node: NodeId,
    /// The cluster; 0 while it has not formed.
    pub cluster: ClusterId,
}

impl Welcome {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_frame((Kind::Welcome, 0, 0), 0, out, |out| {
            out.put_u16(self.version);
            out.put_u16(self.node.0);
            out.put_u32(self.capabilities.0);
            out.put_u32(self.credits);
            out.put_u64(self.longest_value);
            out.put_u64(self.cluster.0);
        });
    }

    pub(crate) fn take(body: Bytes) -> Result<Self, Malformed> {
        let mut fields = Fields::of(body);
        let (version, node) = (fields.u16()?, NodeId(fields.u16()?));
        let (capabilities, credits) = (Capabilities(fields.u32()?), fields.u32()?);
        let (longest_value, cluster) = (fields.u64()?, ClusterId(fields.u64()?));
        if credits == 0 {
            return Err(Malformed::Field("the number of credits"));
        }
        Ok(Self { version, capabilities, credits, longest_value, node, cluster })
    }
}
