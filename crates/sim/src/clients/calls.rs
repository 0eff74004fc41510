//! Virtual clients: what they ask, and what they were told.

use bytes::Bytes;
use rng::Rng;
use types::op::{
    Arith, Delete, Direction, Expiry, Failure, Flush, FlushAt, Get, Op, Outcome, Store, StoreMode,
};
use types::{ClusterId, ClusterMap, KeyHash, MemberId, NamespaceId, UnixSeconds, split_key};

use super::sessions::Named;
use crate::options::{Options, Verb};
use crate::oracle::Fate;

/// A key of the small key space.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub bytes: Bytes,
    pub hash: KeyHash,
    pub member: MemberId,
    /// Whether clients count on it.
    pub number: bool,
}

/// A call of a client that has not ended, or its memory of the last one.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Where it is connected.
    pub node: usize,
    /// The call that runs.
    pub running: Option<u32>,
    /// Version of each key as this client last saw it; 0 = never.
    pub seen: Vec<u64>,
    /// Calls it has begun.
    pub begun: u64,
    /// The call that it makes again next.
    pub again: Option<Named>,
}

/// Client number of calls that no client made: those of stories and of final reads.
pub(crate) const NOBODY: u16 = u16::MAX;
/// Node number of calls of native clients, which find their nodes themselves.
pub(crate) const NOWHERE: usize = u16::MAX as usize;

/// What is asked of a node.
#[derive(Debug)]
pub(crate) struct Ask {
    pub client: u16,
    pub node: usize,
    /// Of a flush: any key of the data role.
    pub key: usize,
    pub op: Op,
    /// The name under which it is asked.
    pub named: Option<Named>,
}

impl Ask {
    /// Of nobody in particular, under no name.
    pub(crate) fn plain(node: usize, key: usize, op: Op) -> Self {
        Self { client: NOBODY, node, key, op, named: None }
    }

    /// Of a client that chooses the node by itself.
    pub(crate) fn native(client: u16, key: usize, op: Op) -> Self {
        Self { client, node: NOWHERE, key, op, named: None }
    }

    /// Whether it changes nothing, not even the expiry.
    pub(crate) fn is_plain_read(&self) -> bool {
        matches!(&self.op, Op::Get(get) if get.touch.is_none())
    }
}

/// A call, for as long as anybody may ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub client: u16,
    /// Where it was sent, and in which life of that node.
    pub node: u16,
    pub life: u32,
    pub subject: Subject,
    /// Whether its client has stopped waiting.
    pub ended: bool,
    /// Whether its host has answered.
    pub told: bool,
}

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A key, and the call's number at its oracle.
    Key { key: u16, call: u32 },
    /// All keys of a data role; the call's numbers are in a list of their own.
    Member { member: MemberId, list: u32 },
}

/// What an answer says of the call.
pub(crate) fn fate_of(outcome: Outcome) -> Fate {
    match outcome {
        Outcome::Failed(Failure::Unknown | Failure::Expired) => Fate::Unknown,
        // The only failure that tells something of the key: it is there, and is no number.
        Outcome::Failed(Failure::NotANumber) => Fate::Answered(outcome),
        Outcome::Failed(_) => Fate::Void,
        outcome => Fate::Answered(outcome),
    }
}

/// The key space: some keys of every length class, spread by their hash.
pub(crate) fn key_space(options: &Options, map: &ClusterMap, cluster: ClusterId, rng: &mut Rng) -> Vec<Key> {
    let mut keys = Vec::with_capacity(options.text_keys + options.number_keys);
    for index in 0..options.text_keys + options.number_keys {
        let number = index >= options.text_keys;
        let mut text = format!("{}{index}", if number { "n" } else { "k" });
        if rng.once_in(10) {
            // 250 bytes are the most that a key may have.
            let long = rng.pick(&[100, 249, 250]);
            text.extend(std::iter::repeat_n('-', long - text.len()));
        }
        // Keys of several namespaces, called alike as far as that goes.
        let id = NamespaceId(index as u32 % (options.namespaces + 1));
        let id = if map.catalog.namespace(id).is_some() { id } else { NamespaceId::DEFAULT };
        let bytes = types::Key::of(id, Bytes::from(text)).expect("a short text").into_bytes();
        let hash = KeyHash::of(cluster, &bytes);
        keys.push(Key { member: map.default_pool().member_of(hash), bytes, hash, number });
    }
    keys
}

/// Longest piece that append and prepend add, so that values do not grow without end.
const MAX_PIECE_BYTES: usize = 16;

impl Client {
    pub(crate) fn new(node: usize, keys: usize) -> Self {
        Self { node, running: None, seen: vec![0; keys], begun: 0, again: None }
    }

    /// The next operation of client number `client` on `key`; none if the verb does not suit the key.
    pub(crate) fn draw(
        &self,
        client: usize,
        key: usize,
        of: &Key,
        options: &Options,
        now: UnixSeconds,
        rng: &mut Rng,
    ) -> Op {
        let (number, namespace) = (of.number, split_key(&of.bytes).0);
        let verb = Verb::ALL[rng.weighted(&options.mix)];
        let expiry = |rng: &mut Rng| {
            if rng.percent(options.expiry_percent) {
                Expiry::At(UnixSeconds(now.0 + rng.range(0, 4) as u32))
            } else {
                Expiry::Never
            }
        };
        let store = |mode, compare, rng: &mut Rng| {
            let value = self.value(client, number, mode, options, rng);
            let flags = if rng.once_in(4) { rng.next() as u32 } else { 0 };
            let expiry = expiry(rng);
            Op::Store(Store {
                mode,
                value,
                flags,
                expiry,
                compare,
                version: None,
                invalidate: false,
                vivify: None,
            })
        };
        let count = |direction, rng: &mut Rng| {
            Op::Arith(Arith { direction, delta: rng.pick(&[0, 1, 7, 100]), ..Arith::default() })
        };
        match verb {
            Verb::Get => Op::Get(Get::default()),
            Verb::GetAndTouch => Op::Get(Get { touch: Some(expiry(rng)), ..Get::default() }),
            Verb::Set => store(StoreMode::Set, None, rng),
            Verb::Add => store(StoreMode::Add, None, rng),
            Verb::Replace => store(StoreMode::Replace, None, rng),
            Verb::Append => store(StoreMode::Append, None, rng),
            Verb::Prepend => store(StoreMode::Prepend, None, rng),
            // It has to see a version before it can compare.
            Verb::Cas if self.seen[key] == 0 => Op::Get(Get::default()),
            Verb::Cas => store(StoreMode::Set, Some(self.seen[key]), rng),
            Verb::Delete => Op::Delete(Delete::default()),
            Verb::Increment => count(Direction::Increment, rng),
            Verb::Decrement => count(Direction::Decrement, rng),
            Verb::Touch => Op::Touch(expiry(rng)),
            Verb::Flush => Op::Flush(Flush { namespace, at: FlushAt::Now }),
        }
    }

    fn value(&self, client: usize, number: bool, mode: StoreMode, options: &Options, rng: &mut Rng) -> Bytes {
        if number {
            // The largest one, so that counting up wraps round; the smallest, so that counting down stops.
            return Bytes::from(rng.pick(&[0, 9, 1000, u64::MAX]).to_string());
        }
        let mut len = draw_len(options, rng);
        if matches!(mode, StoreMode::Append | StoreMode::Prepend) {
            len = len.min(MAX_PIECE_BYTES);
        }
        unique_bytes(client, self.begun, len)
    }
}

fn draw_len(options: &Options, rng: &mut Rng) -> usize {
    // A little below the edge, too: header and key take their part of a slot.
    let near = |edge: u64, rng: &mut Rng| rng.range(edge.saturating_sub(64), edge + 4);
    let len = match rng.weighted(&options.sizes.mix) {
        0 => rng.range(0, 1),
        1 => rng.range(2, 32),
        2 => rng.range(0, 1024),
        3 => {
            let edge = 64 << rng.below(9);
            near(edge, rng)
        }
        4 => near(4096, rng),
        5 => near(65_536, rng),
        _ => rng.range(100 << 10, 300 << 10),
    };
    len as usize
}

/// Bytes that no other call writes (from 12 bytes on).
fn unique_bytes(client: usize, number: u64, len: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(len + 32);
    bytes.extend_from_slice(format!("{client}.{number}:").as_bytes());
    let mut state = (client as u64) << 32 ^ number ^ 0x5bd1_e995;
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    Bytes::from(bytes)
}
