//! Index operations: what a record does to the index of its role, on the primary and on every replica alike.

use crate::{Addr, ClientSession, IndexHash, NamespaceId, ResultCode, UnixSeconds};

/// The items that a namespace has written at one data role between two flushes of it there: its number, and how many flushes
/// there were, counted to sixteen and from the beginning again.
///
/// An item that is of an earlier cohort than its namespace's present one has been flushed: nobody finds it, and it goes when
/// somebody comes by. Those of one cohort are gone before its number is used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cohort(pub u32);

impl Cohort {
    /// How many generations are told from each other.
    pub const GENERATIONS: u8 = 16;
    /// The largest one.
    pub const MAX: Self = Self(NamespaceId::MAX.0 << 4 | 15);

    /// Of `namespace`, after so many flushes.
    #[must_use]
    pub fn of(namespace: NamespaceId, generation: u8) -> Self {
        Self(namespace.0 << 4 | u32::from(generation % Self::GENERATIONS))
    }

    /// Whose they are.
    #[must_use]
    pub fn namespace(self) -> NamespaceId {
        NamespaceId(self.0 >> 4)
    }

    /// How many flushes were before, counted to sixteen.
    #[must_use]
    pub fn generation(self) -> u8 {
        (self.0 & 15) as u8
    }
}

/// One change of an index or of its run table. Applied in record order; the sender has checked that it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOp {
    /// The 64 KiB run number `run` now holds slots of size class `class`, or starts / continues a large item. Or it is
    /// [`RunClass::FREE`]: all of its bytes are zero again, as if it had never been written.
    Assign {
        /// Number of the run in the area.
        run: u32,
        /// Its class.
        class: RunClass,
    },
    /// A key that was not there now lies at `addr`.
    Insert {
        /// Bits of the key's hash.
        hash: IndexHash,
        /// Its slot.
        addr: Addr,
        /// Whose it is.
        cohort: Cohort,
    },
    /// The key at `old` now lies at `new`; `old` is free.
    Replace {
        /// Bits of the key's hash.
        hash: IndexHash,
        /// The slot that becomes free.
        old: Addr,
        /// The slot that holds the item.
        new: Addr,
        /// Whose it is.
        cohort: Cohort,
    },
    /// The key at `addr` is gone; `addr` is free.
    Remove {
        /// Bits of the key's hash.
        hash: IndexHash,
        /// The slot that becomes free.
        addr: Addr,
        /// Whose it was.
        cohort: Cohort,
    },
    /// All keys of a namespace are gone (`flush_all`). Where nobody else has any, so are their entries; else they are found no more.
    Flush {
        /// Whose.
        namespace: NamespaceId,
    },
    /// They will be gone at this time (`flush_all` with a delay); 0 calls a scheduled flush off.
    FlushAt {
        /// Whose.
        namespace: NamespaceId,
        /// When.
        at: UnixSeconds,
    },
    /// A client's session begins.
    SessionBegins {
        /// Which.
        session: ClientSession,
    },
    /// It ends, and what was kept for it goes.
    SessionEnds {
        /// Which.
        session: ClientSession,
    },
    /// A write that has a name was done, and what its client waits for no more goes.
    WriteDone {
        /// Of which session.
        session: ClientSession,
        /// Its number there.
        sequence: u32,
        /// See [`crate::Once::behind`].
        behind: u16,
        /// What came of it.
        code: ResultCode,
        /// See [`crate::WriteResult::version`].
        version: u64,
    },
    /// The same write has counted to this.
    WriteCounted {
        /// Of which session.
        session: ClientSession,
        /// Its number there.
        sequence: u32,
        /// The number that is there now.
        number: u64,
    },
}

// Every record has room for two.
const _: () = assert!(size_of::<IndexOp>() == 24);

impl IndexOp {
    /// Of what is about clients' sessions: whether there can be such a thing.
    #[must_use]
    pub fn is_possible_of_sessions(&self) -> bool {
        match *self {
            Self::WriteDone { sequence, behind, .. } => crate::session::can_be(sequence, behind),
            Self::WriteCounted { sequence, .. } => sequence > 0,
            _ => true,
        }
    }
}

/// What a run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunClass(pub u8);

impl RunClass {
    /// Nothing yet.
    pub const FREE: Self = Self(0);
    /// A further run of a span of several runs that is cut into slots; the span's first run has the class.
    pub const SPAN_CONTINUED: Self = Self(253);
    /// The first run of an item that has several runs to itself.
    pub const LARGE: Self = Self(254);
    /// A further run of such an item.
    pub const LARGE_CONTINUED: Self = Self(255);
}
