//! What a caller asks.

use bytes::Bytes;
use native::Range;
use types::op::{Direction, StoreMode};
use types::{MAX_KEY_BYTES, MAX_PAGE_KEYS, ScanBound};

/// A request about one key.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The caller's bytes of it; none for [`Op::Scan`].
    pub key: Bytes,
    /// What is wanted.
    pub op: Op,
    /// How long it may take, in microseconds; none = as configured.
    pub timeout_us: Option<u64>,
}

/// What is wanted of a key.
#[derive(Clone, Debug)]
pub enum Op {
    /// Its value, or a part of it.
    Get {
        /// Which bytes; none = all.
        range: Option<Range>,
        /// It is to live for so many seconds from now on.
        touch: Option<u32>,
    },
    /// A value is to be stored.
    Store {
        /// How.
        mode: StoreMode,
        /// The value.
        body: Body,
        /// Opaque to the cluster.
        flags: u32,
        /// Seconds to live; 0 = as long as the namespace says.
        ttl: u32,
        /// Only if the version is this.
        compare: Option<u64>,
    },
    /// It is to be removed.
    Delete {
        /// Only if its version is this.
        compare: Option<u64>,
    },
    /// Its number is to change.
    Arith {
        /// Which way.
        direction: Direction,
        /// By how much.
        delta: u64,
        /// The number and its seconds to live, if there is none yet.
        initial: Option<(u64, u32)>,
    },
    /// It is to live for so many seconds from now on; 0 = for ever.
    Touch {
        /// Seconds.
        ttl: u32,
    },
    /// What is known of it.
    Stat,
    /// Where its bytes lie: a page of that.
    Locate {
        /// Beginning with the stripe that has this byte of the value. Beyond 0 not every node knows it: [`Error::TooOld`](crate::Error::TooOld).
        from: u64,
    },
    /// A session at its data role. This client begins those that it needs by itself.
    Session,
    /// Keys of a data role: there is no key then.
    Scan(ScanOp),
}

/// A page of a scan ([`crate::Walk`]).
#[derive(Clone, Debug)]
pub struct ScanOp {
    /// The data role: its place in the map's list.
    pub role: u32,
    /// From where on.
    pub from: ScanBound,
    /// What keys begin with.
    pub prefix: Bytes,
    /// How many at most, from 1 to 256.
    pub keys: u16,
    /// No further key once they have so many bytes.
    pub bytes: u32,
}

impl ScanOp {
    /// Whether a node would take it for a request.
    pub(crate) fn is_possible(&self) -> bool {
        self.prefix.len() <= MAX_KEY_BYTES && (1..=MAX_PAGE_KEYS).contains(&usize::from(self.keys))
    }
}

/// The value of a write.
#[derive(Clone, Debug)]
pub enum Body {
    /// It is here, and can be sent as often as that takes.
    Here(Bytes),
    /// So many bytes are [fed](crate::Core::feed), once.
    Fed(u64),
}

impl Body {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::Fed(len) => *len,
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Op {
    /// Whether it changes nothing, so that it may be asked twice.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        // A session that nobody knows of ends by itself.
        matches!(
            self,
            Self::Get { touch: None, .. } | Self::Stat | Self::Locate { .. } | Self::Session | Self::Scan(_)
        )
    }

    /// Whether it can be asked of this key, or of none.
    pub(crate) fn may_be_about(&self, key: &[u8]) -> bool {
        match self {
            Self::Scan(scan) => scan.is_possible(),
            _ => (1..=MAX_KEY_BYTES).contains(&key.len()),
        }
    }

    /// Whether it asks for a value, and for nothing else.
    pub(crate) fn is_plain_read(&self) -> bool {
        matches!(self, Self::Get { touch: None, .. })
    }

    /// Whether it is a write that may have a name.
    pub(crate) fn can_be_done_once(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Delete { .. } | Self::Arith { .. } | Self::Touch { .. })
    }
}
