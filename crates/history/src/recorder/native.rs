//! Clients of the native protocol: threads that ask through one client, which they share as those of a program do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gestalt::{Client, Code, Coding, Error, LostBy, Options, Store, StoreMode, Stored};
use tokio::runtime::{Builder, Runtime};

use crate::linearizability::{Bytes, Op, Outcome};

use super::manner::Manner;
use super::pattern::{Mark, Reader, len_of, write};
use super::socket::{Heard, Refusal};

/// Seconds that an item lives after it was touched: beyond the end of any run.
const LONG_AFTERWARDS: u32 = 1_000_000;
static TOUCHES: AtomicU32 = AtomicU32::new(0);
/// Who encodes and who decodes long values, by clients.
static CLIENTS: AtomicU32 = AtomicU32::new(0);
const CODINGS: [(Coding, Coding); 4] = [
    (Coding::Client, Coding::Client),
    (Coding::Auto, Coding::Auto),
    (Coding::Server, Coding::Client),
    (Coding::Client, Coding::Server),
];
/// Long values up to this length are given whole, every second time: only those can a client code.
const WHOLE_BYTES: u64 = 8 << 20;
static LONG: AtomicU32 = AtomicU32::new(0);
/// Values above this are sent bit by bit, each of so many bytes at most.
const PART_BYTES: usize = 256 << 10;
/// How slow a slow reader is: a pause after every so many bytes.
const PAUSE: (usize, Duration) = (512 << 10, Duration::from_millis(20));

/// See the module.
#[derive(Clone)]
pub(super) struct Native {
    runtime: Arc<Runtime>,
    client: Client,
}

impl Native {
    /// A client that knows these addresses.
    pub(super) fn new(seeds: &[SocketAddr], timeout: Duration) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let mut options = Options::default();
        (options.seeds, options.timeout) = (seeds.to_vec(), timeout);
        // In turns, so that every run has clients that code and others that do not.
        let turn = CLIENTS.fetch_add(1, Ordering::Relaxed) as usize;
        (options.encode, options.decode) = CODINGS[turn % CODINGS.len()];
        let others = turn / CODINGS.len();
        options.lost_by = if others.is_multiple_of(2) { LostBy::Graph } else { LostBy::Star };
        let client = runtime.block_on(async { Client::lazy(&options) });
        Self { runtime: Arc::new(runtime), client }
    }

    /// Asks for `op`; values are named in the history if they have a mark.
    pub(super) fn ask(&self, key: &str, op: &Op, mark: Option<Mark>, manner: Manner) -> Heard {
        let done = self.runtime.block_on(self.do_it(key, op, mark, manner));
        match done {
            Ok(outcome) => Heard::Outcome(outcome),
            Err(Error::Code(Code::NotANumber)) => Heard::Outcome(Outcome::NotNumber),
            Err(Error::Code(Code::OutOfMemory)) => Heard::Refused(Refusal::NoMemory),
            Err(Error::Code(Code::Lost)) => Heard::Refused(Refusal::Lost),
            // Nobody may come across one.
            Err(Error::Code(code @ (Code::Corrupt | Code::TooLarge))) => {
                panic!("the answer to {op} is {code:?}")
            }
            Err(error) if error.is_harmless() => Heard::Refused(Refusal::Unavailable),
            Err(_) => Heard::Unknown,
        }
    }

    /// Goes after so many thousandths of a value. Nothing may come of it.
    pub(super) fn break_off(&self, key: &str, op: &Op, mark: Mark, thousandths: u64) {
        let (Some(value), Some(store)) = (value_of(op), store_of(op)) else { return };
        let len = len_of(value);
        let part = bytes_of(value, mark, len * thousandths.min(999) / 1000);
        let _ = self.runtime.block_on(async {
            let mut upload = self.client.upload(key.to_owned(), len, store)?;
            upload.write(part).await
        });
    }

    async fn do_it(&self, key: &str, op: &Op, mark: Option<Mark>, manner: Manner) -> Result<Outcome, Error> {
        let key = key.to_owned();
        if let (Some(value), Some(store)) = (value_of(op), store_of(op)) {
            let stored = match mark {
                Some(mark) if len_of(value) > PART_BYTES as u64 && is_streamed(len_of(value)) => {
                    self.upload(key, value, mark, store).await?
                }
                Some(mark) => {
                    let bytes = bytes_of(value, mark, len_of(value));
                    self.client.store(key, bytes, store).await?
                }
                None => self.client.store(key, value.0.clone(), store).await?,
            };
            return Ok(outcome_of(stored));
        }
        Ok(match op {
            Op::Get => self.read(key, mark, manner).await?,
            Op::Delete => {
                if self.client.delete(key).await? {
                    Outcome::Deleted
                } else {
                    Outcome::NotFound
                }
            }
            // Always for another time: else nothing would be done.
            Op::Touch => {
                let ttl = LONG_AFTERWARDS + TOUCHES.fetch_add(1, Ordering::Relaxed);
                if self.client.touch(key, ttl).await? { Outcome::Touched } else { Outcome::NotFound }
            }
            Op::Incr(by) => {
                let by = i64::try_from(*by).expect("steps are short");
                self.client.add_number(key, by).await?.map_or(Outcome::NotFound, Outcome::Number)
            }
            // There is no flush in the protocol; the others store, and were done above.
            _ => return Err(Error::BadKey),
        })
    }

    async fn upload(&self, key: String, value: &Bytes, mark: Mark, store: Store) -> Result<Stored, Error> {
        let len = len_of(value);
        let mut bytes = bytes_of(value, mark, len);
        let mut upload = self.client.upload(key, len, store)?;
        while !bytes.is_empty() {
            upload.write(bytes.split_to(PART_BYTES.min(bytes.len()))).await?;
        }
        upload.finish().await
    }

    async fn read(&self, key: String, mark: Option<Mark>, manner: Manner) -> Result<Outcome, Error> {
        let Some(mut parts) = self.client.reader(key, None).await? else { return Ok(Outcome::NotFound) };
        let cas = Some(parts.meta().version);
        let (mut plain, mut named, mut unpaused) = (Vec::new(), mark.map(Reader::new), 0);
        while let Some(part) = parts.next().await? {
            match &mut named {
                Some(reader) => reader.take(&part),
                None => plain.extend_from_slice(&part),
            }
            unpaused += part.len();
            if manner == Manner::Slowly && unpaused >= PAUSE.0 {
                unpaused = 0;
                tokio::time::sleep(PAUSE.1).await;
            }
        }
        let value = named.map_or(Bytes(plain), Reader::finish);
        Ok(Outcome::Value { value, cas })
    }
}

/// The value that an operation stores.
fn value_of(op: &Op) -> Option<&Bytes> {
    match op {
        Op::Set(value) | Op::Add(value) | Op::Replace(value) | Op::Append(value) | Op::Cas { value, .. } => {
            Some(value)
        }
        Op::Get | Op::Delete | Op::Touch | Op::Incr(_) | Op::Flush => None,
    }
}

/// How.
fn store_of(op: &Op) -> Option<Store> {
    let (mode, compare) = match op {
        Op::Set(_) => (StoreMode::Set, None),
        Op::Add(_) => (StoreMode::Add, None),
        Op::Replace(_) => (StoreMode::Replace, None),
        Op::Append(_) => (StoreMode::Append, None),
        Op::Cas { unique, .. } => (StoreMode::Set, Some(*unique)),
        Op::Get | Op::Delete | Op::Touch | Op::Incr(_) | Op::Flush => return None,
    };
    Some(Store { mode, compare, ..Store::default() })
}

/// Whether a long value is given bit by bit.
fn is_streamed(len: u64) -> bool {
    len > WHOLE_BYTES || LONG.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
}

fn outcome_of(stored: Stored) -> Outcome {
    match stored {
        Stored::Version(_) => Outcome::Stored,
        Stored::No => Outcome::NotStored,
        Stored::Other => Outcome::Exists,
        Stored::Missing => Outcome::NotFound,
    }
}

/// The first `len` bytes of a value of this name.
fn bytes_of(name: &Bytes, mark: Mark, len: u64) -> gestalt::Bytes {
    let mut bytes = Vec::new();
    write(name, mark, len, &mut bytes).expect("memory takes everything");
    bytes.into()
}
