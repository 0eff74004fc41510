//! Which operations clients do, and on which keys.

use std::net::SocketAddr;
use std::time::Duration;

use crate::linearizability::{Bytes, Op};

use super::manner::Manner;
use super::pattern::{Piece, PieceId};

/// What the clients do.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many clients.
    pub clients: u64,
    /// Where nodes take the native protocol: every other client asks by it. None = nobody does.
    pub native: Vec<SocketAddr>,
    /// On how many keys; few, so that they meet.
    pub keys: u64,
    /// Longest value.
    pub max_value_bytes: usize,
    /// When a client gives up on an answer.
    pub timeout: Duration,
    /// Pause between a client's operations, which bounds the history.
    pub pause: Duration,
    /// Which operations, on which keys.
    pub mix: Mix,
    /// Draws them.
    pub seed: u64,
    /// What every value begins with that is no number: values of different loads are never alike.
    pub mark: String,
    /// Whether "out of memory" and "lost" are answers to be counted. If not, a client that hears one panics.
    pub hears_trouble: bool,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            clients: 12,
            native: Vec::new(),
            keys: 60,
            max_value_bytes: 3000,
            timeout: Duration::from_secs(8),
            pause: Duration::from_millis(1),
            mix: Mix::Plain,
            seed: 0,
            mark: String::new(),
            hears_trouble: false,
        }
    }
}

/// Kinds of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Values without structure: get, set, add, replace, cas and delete.
    Plain,
    /// Beside these, counters that are incremented and texts that are appended to. Every so often clients turn to new
    /// keys, so that the history of one key stays short; of the old keys one is read now and then.
    Full {
        /// How long keys are in use.
        generation: Duration,
    },
    /// Values of one byte up to `Workload::max_value_bytes`, many of them at the edges of cells, chunks and stripes: get, set, add,
    /// replace, cas, append, touch and delete, by clients that now and then read slowly, or go in the midst of what they send. The
    /// history has their names only: a value that is not what one of these clients has written has a name that nobody gave.
    Long,
}

impl Mix {
    /// Whether the history has names of values, and not the values.
    pub(super) fn names_values(self) -> bool {
        self == Self::Long
    }
}

/// Of so many keys one is a counter and one a text.
const KINDS: u64 = 6;
/// Per cent of the values that are short, and how short: histories of long runs have to fit into memory.
const SHORT_VALUES: u64 = 85;
const SHORT_BYTES: usize = 80;
/// So many clients write counters and texts; the others read them. An increment or an append without an answer may be in
/// any later value, and with many of them a search for the ones that are does not end.
const WRITERS: u64 = 5;
/// Longest suffix of a text.
const SUFFIX_BYTES: u64 = 24;
/// Per cent of the operations that read a key of an earlier generation.
const OLD_READS: u64 = 8;

/// Per cent of the long values that lie at an edge, and the edges: a cell, a row, a chunk and stripes of either.
const EDGES: u64 = 30;
const EDGES_BYTES: [u64; 6] = [64 << 10, 128 << 10, 192 << 10, 1 << 20, 3 << 20, 6 << 20];
/// Longest piece that is appended, unless values are no longer.
const APPENDED_BYTES: usize = 300 << 10;
/// Per cent of what is sent that breaks off, and of the reads that are slow.
const BROKEN_OFF: u64 = 8;
const SLOW_READS: u64 = 15;

/// Draws one client's operations.
#[derive(Debug)]
pub(super) struct Drawer {
    id: u64,
    keys: u64,
    max_value_bytes: usize,
    mix: Mix,
    random: u64,
    written: u64,
    /// What every value begins with.
    mark: String,
}

impl Drawer {
    pub(super) fn new(id: u64, workload: &Workload) -> Self {
        let seed = workload.seed.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(id);
        Self {
            id,
            keys: workload.keys,
            max_value_bytes: workload.max_value_bytes,
            mix: workload.mix,
            // Never 0, from which this generator would not come away.
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            written: 0,
            mark: workload.mark.clone(),
        }
    }

    /// A key and what to do with it at this time. A cas has no unique yet.
    pub(super) fn draw(&mut self, time: Duration) -> (String, Op) {
        let number = self.next() % self.keys;
        let generation = match self.mix {
            Mix::Full { generation } => generation,
            Mix::Plain => return (format!("key-{number}"), self.plain()),
            Mix::Long => return (format!("long-{number}"), self.long()),
        };
        let now = u64::try_from(time.as_nanos() / generation.as_nanos().max(1)).unwrap_or(0);
        if now > 0 && self.next() % 100 < OLD_READS {
            let earlier = self.next() % now;
            return (format!("{}-{earlier}-{number}", kind(number)), Op::Get);
        }
        let op = match number % KINDS {
            0 | 1 if self.id >= WRITERS => Op::Get,
            0 => self.counter(),
            1 => self.text(),
            _ => self.plain(),
        };
        (format!("{}-{now}-{number}", kind(number)), op)
    }

    fn plain(&mut self) -> Op {
        match self.next() % 100 {
            0..45 => Op::Get,
            45..75 => Op::Set(self.value()),
            75..83 => Op::Delete,
            83..88 => Op::Add(self.value()),
            88..93 => Op::Replace(self.value()),
            _ => Op::Cas { unique: 0, value: self.value() },
        }
    }

    fn long(&mut self) -> Op {
        match self.next() % 100 {
            0..42 => Op::Get,
            42..68 => Op::Set(self.piece(self.max_value_bytes)),
            68..73 => Op::Add(self.piece(self.max_value_bytes)),
            73..78 => Op::Replace(self.piece(self.max_value_bytes)),
            78..84 => Op::Cas { unique: 0, value: self.piece(self.max_value_bytes) },
            84..90 => Op::Delete,
            90..95 => Op::Touch,
            _ if self.id < WRITERS => Op::Append(self.piece(APPENDED_BYTES.min(self.max_value_bytes))),
            _ => Op::Get,
        }
    }

    /// In which way a client does this.
    pub(super) fn manner(&mut self, op: &Op) -> Manner {
        if self.mix != Mix::Long {
            return Manner::AsFastAsPossible;
        }
        let (draw, thousandths) = (self.next() % 100, self.next() % 1000);
        match op {
            Op::Get if draw < SLOW_READS => Manner::Slowly,
            Op::Get | Op::Delete | Op::Touch => Manner::AsFastAsPossible,
            _ if draw < BROKEN_OFF => Manner::BrokenOff(thousandths),
            _ => Manner::AsFastAsPossible,
        }
    }

    /// The name of a piece of 1 to `longest` bytes: as many are short as are long.
    fn piece(&mut self, longest: usize) -> Bytes {
        let (longest, draw) = (longest.max(1) as u64, self.next() % 100);
        let edge = EDGES_BYTES[(self.next() % EDGES_BYTES.len() as u64) as usize];
        let bits = self.next() % u64::from(longest.ilog2() + 1);
        let len = if draw < EDGES && edge < longest {
            edge + self.next() % 3 - 1
        } else {
            (1 << bits) + self.next() % (1 << bits)
        };
        self.written += 1;
        let id = PieceId { client: self.id, count: self.written };
        Piece { id, len: len.min(longest) }.name()
    }

    /// Steps are long and unlike each other, so that a sum tells which of them are in it.
    fn counter(&mut self) -> Op {
        let step = self.next() % 1_000_000_007;
        match self.next() % 100 {
            0..35 => Op::Get,
            35..85 => Op::Incr(step),
            85..93 => Op::Set(number(step)),
            93..97 => Op::Add(number(step)),
            _ => Op::Delete,
        }
    }

    fn text(&mut self) -> Op {
        match self.next() % 100 {
            0..40 => Op::Get,
            40..75 => Op::Append(self.suffix()),
            75..88 => Op::Set(self.suffix()),
            88..94 => Op::Add(self.suffix()),
            _ => Op::Delete,
        }
    }

    /// Unlike any other value, and of any length up to the longest.
    fn value(&mut self) -> Bytes {
        let is_short = matches!(self.mix, Mix::Full { .. }) && self.next() % 100 < SHORT_VALUES;
        let longest = self.max_value_bytes.min(if is_short { SHORT_BYTES } else { usize::MAX });
        let len = (self.next() as usize) % longest;
        self.unique_bytes(len)
    }

    fn suffix(&mut self) -> Bytes {
        let len = (self.next() % SUFFIX_BYTES) as usize;
        self.unique_bytes(len)
    }

    fn unique_bytes(&mut self, len: usize) -> Bytes {
        self.written += 1;
        let mut value = format!("{}{}-{}-", self.mark, self.id, self.written).into_bytes();
        let fill = b'a' + (self.next() % 26) as u8;
        value.resize(len.max(value.len()), fill);
        Bytes(value)
    }

    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}

fn kind(number: u64) -> &'static str {
    match number % KINDS {
        0 => "count",
        1 => "text",
        _ => "key",
    }
}

fn number(number: u64) -> Bytes {
    Bytes(number.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::pattern::len_of;

    fn drawer(mix: Mix) -> Drawer {
        Drawer::new(3, &Workload { mix, keys: 60, ..Workload::default() })
    }

    #[test]
    fn kinds_of_keys_have_their_operations() {
        let mut drawer = drawer(Mix::Full { generation: Duration::from_secs(10) });
        for _ in 0..2000 {
            let (key, op) = drawer.draw(Duration::ZERO);
            match op {
                Op::Incr(_) => assert!(key.starts_with("count-0-"), "{key}"),
                Op::Append(_) => assert!(key.starts_with("text-0-"), "{key}"),
                Op::Cas { .. } | Op::Replace(_) => assert!(key.starts_with("key-0-"), "{key}"),
                _ => (),
            }
        }
    }

    #[test]
    fn only_some_clients_count_and_append() {
        let mix = Mix::Full { generation: Duration::from_secs(10) };
        let mut reader = Drawer::new(WRITERS, &Workload { mix, ..Workload::default() });
        for _ in 0..2000 {
            let (key, op) = reader.draw(Duration::ZERO);
            assert!(key.starts_with("key-") || op == Op::Get, "{key}: {op}");
        }
    }

    #[test]
    fn old_keys_are_only_read() {
        let mut drawer = drawer(Mix::Full { generation: Duration::from_secs(10) });
        let drawn: Vec<_> = (0..2000).map(|_| drawer.draw(Duration::from_secs(25))).collect();
        let old = drawn.iter().filter(|(key, _)| !key.contains("-2-")).collect::<Vec<_>>();
        assert!(old.len() > 50 && old.iter().all(|(_, op)| *op == Op::Get), "{}", old.len());
        assert!(
            old.iter().any(|(key, _)| key.contains("-0-")) && old.iter().any(|(key, _)| key.contains("-1-"))
        );
    }

    #[test]
    fn long_values_have_all_lengths_and_only_some_clients_append() {
        let workload = Workload { mix: Mix::Long, max_value_bytes: 64 << 20, ..Workload::default() };
        let mut lengths = Vec::new();
        for id in [0, WRITERS] {
            let mut drawer = Drawer::new(id, &workload);
            for _ in 0..3000 {
                let (key, op) = drawer.draw(Duration::ZERO);
                assert!(key.starts_with("long-"), "{key}");
                assert!(id < WRITERS || !matches!(op, Op::Append(_)), "{op}");
                let broken = matches!(drawer.manner(&op), Manner::BrokenOff(_));
                assert!(!broken || !matches!(op, Op::Get | Op::Delete | Op::Touch), "{op}");
                if let Op::Set(value) = op {
                    lengths.push(len_of(&value));
                }
            }
        }
        let within = |low: u64, high: u64| lengths.iter().any(|len| (low..=high).contains(len));
        assert!(within(1, 1) && within(20, 1000) && within(33 << 20, 64 << 20));
        assert!(within(3 << 20, 3 << 20) && within((3 << 20) + 1, (3 << 20) + 1));
        assert!(lengths.iter().all(|len| (1..=64 << 20).contains(len)));
    }

    #[test]
    fn the_plain_mix_keeps_to_plain_keys() {
        let mut drawer = drawer(Mix::Plain);
        assert!((0..100).all(|_| drawer.draw(Duration::from_secs(99)).0.starts_with("key-")));
    }
}
