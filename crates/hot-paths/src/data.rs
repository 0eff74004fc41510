//! Keys, values and commands: the same in every run.

use std::fmt::Write as _;

use rng::Rng;

/// The one seed.
const SEED: u64 = 0x6765_7374;

/// `len` bytes that do not compress.
pub fn bytes(purpose: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(SEED, purpose);
    (0..len).map(|_| rng.next() as u8).collect()
}

/// The `n`-th key that anybody may have: 20 bytes.
pub fn key(n: u64) -> String {
    let mut rng = Rng::new(SEED, n);
    format!("user{:016x}", rng.next())
}

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `get`, `set`.
    Text,
    /// `mg`, `ms`.
    Meta,
}

/// A command that asks for `keys`, each with its own line.
pub fn gets(dialect: Dialect, keys: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for key in keys {
        let written = match dialect {
            Dialect::Text => write!(text, "get {key}\r\n"),
            Dialect::Meta => write!(text, "mg {key} v\r\n"),
        };
        written.expect("strings take everything");
    }
    text.into_bytes()
}

/// One command that asks for all `keys`.
pub fn multiget(keys: &[&str]) -> Vec<u8> {
    format!("get {}\r\n", keys.join(" ")).into_bytes()
}

/// Commands that give `value` to each of `keys`.
pub fn sets(dialect: Dialect, keys: &[&str], value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in keys {
        let line = match dialect {
            Dialect::Text => format!("set {key} 0 0 {}\r\n", value.len()),
            Dialect::Meta => format!("ms {key} {}\r\n", value.len()),
        };
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// What a hit of each key of `gets` is answered with.
pub fn hits(dialect: Dialect, keys: &[&str], value: &[u8]) -> Vec<u8> {
    let hit = |key: &&str| match dialect {
        Dialect::Text => [values(&[key], value), b"END\r\n".to_vec()].concat(),
        Dialect::Meta => [format!("VA {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
    };
    keys.iter().flat_map(hit).collect()
}

/// What a hit of all keys of `multiget` is answered with.
pub fn multihit(keys: &[&str], value: &[u8]) -> Vec<u8> {
    [values(keys, value), b"END\r\n".to_vec()].concat()
}

fn values(keys: &[&str], value: &[u8]) -> Vec<u8> {
    let one = |key: &&str| [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
    keys.iter().flat_map(one).collect()
}

/// What `count` writes are answered with.
pub fn stored(dialect: Dialect, count: usize) -> Vec<u8> {
    let one: &[u8] = match dialect {
        Dialect::Text => b"STORED\r\n",
        Dialect::Meta => b"HD\r\n",
    };
    one.repeat(count)
}
