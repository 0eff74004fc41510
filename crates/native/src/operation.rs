//! For servers: what is asked, as operations on items, and what comes of these, as answers.

use bytes::Bytes;
use types::op::{
    Arith, Begin, Bump, Commit, Condition, Delete, Expiry, Get, ItemView, ObjectOp, Op, Outcome, Store,
    Unpin, Want,
};
use types::{Descriptor, UnixSeconds};

use crate::answer::{About, Answer, Layout, Meta};
use crate::chunks::{BeginAsk, CommitAsk, UnpinAsk, Written};
use crate::outcome::code_of;
use crate::request::{Ask, Content, GetAsk, Request, StoreAsk};

impl Request {
    /// Whether it came too late to be begun, where it has waited for so long.
    #[must_use]
    pub fn is_late(&self, waited_us: u64) -> bool {
        self.deadline_ms > 0 && waited_us > u64::from(self.deadline_ms) * 1000
    }
}

impl Ask {
    /// What is to be done to the item, but for a value that comes in pieces; none if it is asked of a holder of chunks.
    #[must_use]
    pub fn operation(&self, now: UnixSeconds) -> Option<Op> {
        Some(match self {
            Self::Get(get) => Op::Get(Get { touch: get.touch.map(|ttl| expiry(ttl, now)), ..Get::default() }),
            Self::Store(ask) => {
                let value = match &ask.content {
                    Content::Here(bytes) => bytes.clone(),
                    Content::Pieces(_) => Bytes::new(),
                };
                Op::Store(Store { value, ..ask.operation(now) })
            }
            Self::Delete { compare } => Op::Delete(Delete { compare: *compare, ..Delete::default() }),
            Self::Arith { direction, delta, initial } => {
                let vivify = initial.map(|(_, ttl)| expiry(ttl, now));
                let initial = initial.map_or(0, |(number, _)| number);
                Op::Arith(Arith { direction: *direction, delta: *delta, vivify, initial, ..Arith::default() })
            }
            Self::Touch { ttl } => Op::Touch(expiry(*ttl, now)),
            Self::Session => Op::Session,
            // A read that brings no bytes and leaves no trace.
            Self::Stat | Self::Locate { .. } => {
                Op::Get(Get { value: Want::NoValue, bump: Bump::Silent, ..Get::default() })
            }
            Self::Unpin(UnpinAsk { object, pin, done }) => {
                Op::Object(ObjectOp::Unpin(Unpin { object: *object, pin: *pin, done: *done }))
            }
            Self::Begin(BeginAsk { mode, compare, .. }) => {
                let condition = Condition { mode: *mode, compare: *compare, invalidate: false };
                // A node knows how often the namespace has moved.
                Op::Object(ObjectOp::Begin(Begin { condition, conversions: 0 }))
            }
            Self::Commit(commit) => Op::Object(ObjectOp::Commit(Box::new(Commit {
                descriptor: commit.written.descriptor(commit.checksum),
                store: commit.store().operation(now),
            }))),
            Self::Abandon(written) => Op::Object(ObjectOp::Abandon(Box::new(written.descriptor(0)))),
            Self::Renew(object) => Op::Object(ObjectOp::Renew(*object)),
            Self::Fetch(_) | Self::Put(_) => return None,
        })
    }
}

impl CommitAsk {
    /// As if its value came through this node.
    fn store(&self) -> StoreAsk {
        let Self { mode, flags, ttl, compare, .. } = *self;
        StoreAsk { mode, flags, ttl, compare, content: Content::Pieces(self.written.geometry.len) }
    }
}

impl Written {
    /// What it is once it is committed.
    #[must_use]
    pub fn descriptor(&self, checksum: u32) -> Descriptor {
        let Self { object: id, geometry, groups } = self.clone();
        Descriptor { id, geometry, groups, exceptions: Vec::new(), checksum }
    }
}

impl StoreAsk {
    /// The write, but for its value.
    #[must_use]
    pub fn operation(&self, now: UnixSeconds) -> Store {
        Store {
            mode: self.mode,
            value: Bytes::new(),
            flags: self.flags,
            expiry: expiry(self.ttl, now),
            compare: self.compare,
            version: None,
            invalidate: false,
            vivify: None,
        }
    }
}

impl GetAsk {
    /// Which bytes of a value of this length are wanted: from where to where.
    #[must_use]
    pub fn wanted(&self, value_len: u64) -> (u64, u64) {
        self.range.map_or((0, value_len), |range| range.within(value_len))
    }
}

/// Seconds to live as a time.
fn expiry(ttl: u32, now: UnixSeconds) -> Expiry {
    match ttl {
        0 => Expiry::Never,
        ttl => Expiry::At(UnixSeconds(now.0.saturating_add(ttl))),
    }
}

impl Meta {
    /// What is known of an item.
    #[must_use]
    pub fn of(item: &ItemView) -> Self {
        let ItemView { version, flags, ttl_seconds, value_len, .. } = *item;
        Self { version, flags, ttl: ttl_seconds, value_len }
    }
}

impl About {
    /// What is known of an item.
    #[must_use]
    pub fn of(item: &ItemView) -> Self {
        let layout = item.object.as_ref().map_or(Layout::Packed, |object| {
            let geometry = object.descriptor.geometry;
            Layout::Chunks { chunk_len: geometry.chunk_len, k: geometry.k, rule: geometry.layout }
        });
        Self { meta: Meta::of(item), idle: item.idle_seconds, fetched: item.fetched, layout }
    }
}

impl Answer {
    /// The answer that has nothing to do with a value's bytes.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Stored(item) => Self::Stored(item.version),
            Outcome::Number(number, item) => Self::Number(*number, item.version),
            Outcome::Session(session) => Self::Session(*session),
            Outcome::Keys(page) => Self::Keys(page.clone()),
            // It was asked for something else than a value.
            Outcome::Hit(_) => Self::Just(crate::answer::Code::Touched),
            outcome => Self::Just(code_of(outcome)),
        }
    }
}
