//! A store of a few lines behind the memcached face, so that whole conversations can be compared with memcached's.

use std::collections::BTreeMap;

use crate::golden::End;
use bytes::{Bytes, BytesMut};
use faces::memcache::{Access, Ask, Parser, Step, reply};
use types::UnixSeconds;
use types::op::{
    Arith, Delete, Direction, Expiry, Failure, FlushAt, Get, ItemView, Key, Op, Outcome, Request, Store,
    StoreMode, Want, is_too_large,
};

/// The time in all tests: November 2023.
pub const NOW: UnixSeconds = UnixSeconds(1_700_000_000);

#[derive(Clone)]
struct Item {
    value: Bytes,
    flags: u32,
    expiry: Expiry,
    version: u64,
    fetched: bool,
}

/// Items by key, in one version of time.
#[derive(Default)]
pub struct Fake {
    items: BTreeMap<Bytes, Item>,
    versions: u64,
}

/// A whole conversation: `input` arrives in pieces of `piece` bytes.
pub fn converse(store: &mut Fake, access: Access, input: &[u8], piece: usize) -> (Vec<u8>, End) {
    let mut parser = Parser::new(access);
    let (mut buffer, mut out) = (BytesMut::new(), Vec::new());
    for bytes in input.chunks(piece) {
        buffer.extend_from_slice(bytes);
        loop {
            match parser.next(&mut buffer, NOW) {
                Step::Incomplete => break,
                Step::Say(line) | Step::Refuse(line) => out.extend_from_slice(line),
                Step::Close | Step::Quit => return (out, End::Closed),
                Step::Ask(ask) => store.serve(ask, &mut parser, &mut out),
                Step::Stream(_) => unreachable!("no value is streamed unless somebody says so"),
            }
        }
    }
    (out, End::Open)
}

fn on(key: Bytes, op: Op) -> Request {
    Request::on(Key::new(key).expect("the parser has checked it"), op)
}

impl Fake {
    fn serve(&mut self, ask: Ask, parser: &mut Parser, out: &mut Vec<u8>) {
        match ask {
            Ask::Read { keys, touch, style: with_cas } => {
                let get = Get { touch, ..Get::default() };
                let outcomes: Vec<_> =
                    keys.handles().map(|key| (key.clone(), self.execute(on(key, Op::Get(get))))).collect();
                assert_eq!(outcomes.len(), keys.count());
                reply::write_get(outcomes.iter().map(|(key, outcome)| (&key[..], outcome)), with_cas, out);
            }
            Ask::One { request, style: reply } => {
                let key = request.key_bytes().to_vec();
                let outcome = self.execute(*request);
                reply::write(&reply, &key, &outcome, out);
            }
            Ask::Flush { at, style: reply } => {
                if at == FlushAt::Now {
                    self.items.clear();
                }
                reply::write(&reply, b"", &Outcome::Flushed, out);
            }
            Ask::Stats(faces::Stats::Reset) => out.extend_from_slice(reply::RESET),
            Ask::Stats(_) => out.extend_from_slice(reply::END),
            Ask::Authenticate(credentials) if &credentials[..] == b"u p" => {
                parser.unlock();
                out.extend_from_slice(reply::STORED);
            }
            Ask::Authenticate(_) => out.extend_from_slice(reply::AUTH_FAILED),
        }
    }

    fn execute(&mut self, Request { key, op, .. }: Request) -> Outcome {
        let key = key.map(Key::into_bytes).unwrap_or_default();
        if matches!(self.items.get(&key), Some(item) if matches!(item.expiry, Expiry::At(at) if at <= NOW)) {
            self.items.remove(&key);
        }
        self.versions += 1;
        let versions = self.versions;
        match op {
            Op::Get(get) => self.get(&key, get),
            Op::Store(store) => self.store(key, store),
            Op::Delete(delete) => self.delete(&key, delete),
            Op::Arith(arith) => self.arith(key, arith),
            Op::Touch(expiry) => self.items.get_mut(&key).map_or(Outcome::NotFound, |item| {
                item.expiry = expiry;
                item.version = versions;
                Outcome::Touched(view(item, Want::NoValue))
            }),
            Op::Debug => {
                self.items.get(&key).map_or(Outcome::Miss, |item| Outcome::Hit(view(item, Want::NoValue)))
            }
            Op::Flush(_) => Outcome::Flushed,
            Op::Object(_) | Op::Session | Op::Scan(_) | Op::Expect(_) => {
                unreachable!("clients do not ask for it")
            }
        }
    }

    fn get(&mut self, key: &[u8], get: Get) -> Outcome {
        let Some(item) = self.items.get_mut(key) else { return Outcome::Miss };
        item.expiry = get.touch.unwrap_or(item.expiry);
        let seen = view(item, get.value);
        item.fetched = true;
        Outcome::Hit(seen)
    }

    fn store(&mut self, key: Bytes, store: Store) -> Outcome {
        let old = self.items.get(&key);
        match (store.mode, store.compare, old) {
            (StoreMode::Add, _, Some(_)) => return Outcome::NotStored,
            (StoreMode::Replace | StoreMode::Append | StoreMode::Prepend, _, None) => {
                return Outcome::NotStored;
            }
            (_, Some(_), None) => return Outcome::NotFound,
            (_, Some(version), Some(old)) if version != old.version => return Outcome::Exists,
            _ => (),
        }
        let old = old.map(|item| item.value.clone()).unwrap_or_default();
        let value = match store.mode {
            StoreMode::Append => [old, store.value].concat().into(),
            StoreMode::Prepend => [store.value, old].concat().into(),
            _ => store.value,
        };
        if is_too_large(key.len(), value.len(), store.flags) {
            return Outcome::Failed(Failure::TooLarge);
        }
        let version = store.version.unwrap_or(self.versions);
        let item = Item { value, flags: store.flags, expiry: store.expiry, version, fetched: false };
        let outcome = Outcome::Stored(view(&item, Want::NoValue));
        self.items.insert(key, item);
        outcome
    }

    fn delete(&mut self, key: &[u8], delete: Delete) -> Outcome {
        match (self.items.get(key), delete.compare) {
            (None, _) => Outcome::NotFound,
            (Some(item), Some(version)) if item.version != version => Outcome::Exists,
            _ => {
                self.items.remove(key);
                Outcome::Deleted
            }
        }
    }

    fn arith(&mut self, key: Bytes, arith: Arith) -> Outcome {
        let version = self.versions;
        if let (None, Some(expiry)) = (self.items.get(&key), arith.vivify) {
            let value = arith.initial.to_string().into();
            let item = Item { value, flags: 0, expiry, version, fetched: false };
            let outcome = Outcome::Number(arith.initial, view(&item, Want::NoValue));
            self.items.insert(key, item);
            return outcome;
        }
        let Some(item) = self.items.get_mut(&key) else { return Outcome::NotFound };
        let text = std::str::from_utf8(&item.value).unwrap_or_default().trim_end();
        let Ok(old) = text.parse::<u64>() else { return Outcome::Failed(Failure::NotANumber) };
        let new = match arith.direction {
            Direction::Increment => old.wrapping_add(arith.delta),
            Direction::Decrement => old.saturating_sub(arith.delta),
        };
        // As in memcached, a shorter number is padded with spaces.
        item.value = format!("{new:<width$}", width = item.value.len()).into();
        item.version = version;
        Outcome::Number(new, view(item, Want::NoValue))
    }
}

fn view(item: &Item, want: Want) -> ItemView {
    ItemView {
        value: if want == Want::Value { item.value.clone() } else { Bytes::new() },
        value_len: item.value.len() as u64,
        flags: item.flags,
        version: item.version,
        ttl_seconds: match item.expiry {
            Expiry::Never => None,
            Expiry::At(at) => Some(at.0.saturating_sub(NOW.0)),
        },
        fetched: item.fetched,
        size_bytes: item.value.len() as u32 + 60,
        ..ItemView::default()
    }
}
