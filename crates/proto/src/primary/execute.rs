//! What an operation does to an item: memcached's semantics as a function from (operation, item) to a decision.
//!
//! Nothing is changed here. The primary turns a decision into a record, or into an answer.

use store::{Access, Item, ItemSpec, ItemState, encoded_len};
use types::op::{
    Arith, Bump, Claim, Commit, Condition, Delete, Direction, Expiry, Failure, Get, ItemView, Object,
    ObjectOp, Op, Outcome, Request, Store, StoreMode, Want, is_too_large,
};
use types::{Descriptor, UnixSeconds};
use wire::descriptor::{descriptor_bytes, descriptor_of};

/// A larger item would not fit into its slot.
const _: () = assert!(types::op::MAX_PAYLOAD_BYTES + store::ITEM_HEADER_BYTES <= types::MAX_ITEM_BYTES);

/// Longest value that incr accepts, the spaces that it was padded with included.
const MAX_NUMBER_DIGITS: usize = 20;

/// The newest state of a key: pending if there is one, else committed. Expired items are not passed.
#[derive(Clone, Copy)]
pub(super) struct Current<'a> {
    pub item: Item<'a>,
    pub access: Access,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// Nothing changes.
    Answer(Outcome),
    /// A whole new item, to be put into a new slot.
    Put { image: Vec<u8>, outcome: Outcome },
    /// The same slot with another header.
    Header { version: u64, expiry: u32, state: ItemState, outcome: Outcome },
    /// The key goes.
    Remove { outcome: Outcome },
    /// As things stand an object may come in its place.
    Begin,
    /// A session begins, whatever the item is.
    Session,
    /// What comes of it lies in chunks: the value is read, and written anew (`objects/extension.rs`).
    Extend,
}

/// What the decision may depend on, besides the item.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    pub now: UnixSeconds,
    /// The version that a new item gets unless the client chose one.
    pub next_version: u64,
    /// The generation of what its namespace writes now.
    pub generation: u8,
    /// Seconds that an item lives which is written without a time of its own; 0 = for ever.
    pub default_ttl: u32,
    /// Length of the value where what is written is its descriptor.
    pub object_len: Option<u64>,
    /// Whether values of the namespace may lie in chunks.
    pub takes_objects: bool,
}

impl Context {
    /// The marks of an item that is written now.
    fn fresh(self) -> ItemState {
        let object = self.object_len.is_some();
        ItemState { generation: self.generation, object, ..ItemState::default() }
    }

    /// The expiry of an item that is written with this one.
    fn expiry(self, expiry: Expiry) -> u32 {
        match expiry {
            Expiry::Never if self.default_ttl > 0 => self.now.0.saturating_add(self.default_ttl),
            given => given.to_stored(),
        }
    }
}

/// Decides `request` against the newest state of its key.
pub(super) fn decide(request: &Request, current: Option<Current<'_>>, context: Context) -> Decision {
    let key = request.key_bytes();
    match &request.op {
        Op::Get(get) => decide_get(key, *get, current, context),
        Op::Store(store) => decide_store(key, store, current, context),
        Op::Delete(delete) => decide_delete(key, *delete, current, context),
        Op::Arith(arith) => decide_arith(key, *arith, current, context),
        Op::Touch(expiry) => decide_touch(*expiry, current, context),
        Op::Debug => Decision::Answer(
            current.map_or(Outcome::Miss, |c| Outcome::Hit(c.view(context.now, Want::NoValue))),
        ),
        Op::Object(ObjectOp::Begin(begin)) => decide_begin(key, begin.condition, current, context),
        Op::Object(ObjectOp::Commit(commit)) => decide_commit(key, commit, current, context),
        Op::Object(ObjectOp::Renew(_) | ObjectOp::Abandon(_) | ObjectOp::Unpin(_)) => {
            unreachable!("these are about no item and are taken before")
        }
        Op::Flush(_) | Op::Scan(_) | Op::Expect(_) => unreachable!("what has no key is taken before"),
        Op::Session => Decision::Session,
    }
}

/// Whether a value could be stored under this condition now.
#[cold]
fn decide_begin(
    key: &[u8],
    condition: Condition,
    current: Option<Current<'_>>,
    context: Context,
) -> Decision {
    let Condition { mode, compare, invalidate } = condition;
    if is_extension(mode) {
        return match extended(compare, current) {
            Ok(_) => Decision::Begin,
            Err(refused) => Decision::Answer(refused),
        };
    }
    let store = Store {
        mode,
        value: bytes::Bytes::new(),
        flags: 0,
        expiry: Expiry::Never,
        compare,
        version: None,
        invalidate,
        vivify: None,
    };
    match decide_store(key, &store, current, context) {
        Decision::Put { .. } => Decision::Begin,
        refused => refused,
    }
}

/// The descriptor is stored as any value is.
#[cold]
fn decide_commit(key: &[u8], commit: &Commit, current: Option<Current<'_>>, context: Context) -> Decision {
    let value = descriptor_bytes(&commit.descriptor).into();
    let context = Context { object_len: Some(commit.descriptor.geometry.len), ..context };
    let store = Store { value, ..commit.store.clone() };
    if !is_extension(store.mode) {
        return decide_store(key, &store, current, context);
    }
    match extended(store.compare, current) {
        Ok(current) => longer(key, &store, [&store.value, b""], &current, context).stored(context.now),
        Err(refused) => Decision::Answer(refused),
    }
}

/// Whether a refusal is the last word: whoever makes a value longer that lies in chunks tries again.
pub(super) fn is_final(op: &Op) -> bool {
    match op {
        Op::Object(ObjectOp::Begin(begin)) => !is_extension(begin.condition.mode),
        Op::Object(ObjectOp::Commit(commit)) => !is_extension(commit.store.mode),
        _ => true,
    }
}

pub(super) fn is_extension(mode: StoreMode) -> bool {
    matches!(mode, StoreMode::Append | StoreMode::Prepend)
}

/// What is made longer, or why nothing is.
fn extended(compare: Option<u64>, current: Option<Current<'_>>) -> Result<Current<'_>, Outcome> {
    let current = current.ok_or(Outcome::NotStored)?;
    let is_it = compare.is_none_or(|compare| compare == current.item.version);
    if is_it { Ok(current) } else { Err(Outcome::Exists) }
}

/// An item that was made longer: append and prepend keep flags and expiry.
fn longer<'a>(
    key: &'a [u8],
    store: &Store,
    value: [&'a [u8]; 2],
    current: &Current<'_>,
    context: Context,
) -> NewItem<'a> {
    NewItem {
        key,
        value,
        flags: current.item.client_flags,
        expiry: current.item.expiry,
        version: store.version.unwrap_or(context.next_version),
        state: context.fresh(),
        object_len: context.object_len,
    }
}

/// Whether a read has no effect on the replicated state whatever it finds, so that it needs no record.
pub(super) fn is_plain_read(op: &Op) -> bool {
    match op {
        Op::Get(get) => get.touch.is_none() && get.vivify.is_none() && get.claim == Claim::Never,
        Op::Debug | Op::Scan(_) => true,
        Op::Store(_)
        | Op::Delete(_)
        | Op::Arith(_)
        | Op::Touch(_)
        | Op::Flush(_)
        | Op::Object(_)
        | Op::Session
        | Op::Expect(_) => false,
    }
}

/// Whether a request that may have been lost on its way can be sent again without being done twice.
pub(crate) fn is_repeatable(op: &Op) -> bool {
    match op {
        // A session that nobody knows of ends by itself.
        Op::Debug | Op::Session | Op::Scan(_) | Op::Expect(_) => true,
        Op::Get(_) => is_plain_read(op),
        // An id that nobody knows of ends by itself; a Commit counts once.
        Op::Object(object) => !matches!(object, ObjectOp::Commit(_)),
        Op::Store(_) | Op::Delete(_) | Op::Arith(_) | Op::Touch(_) | Op::Flush(_) => false,
    }
}

impl Current<'_> {
    /// Where the value's bytes lie, if they are in chunks.
    pub(super) fn descriptor(&self) -> Option<Descriptor> {
        let is_object = self.item.object;
        is_object.then(|| descriptor_of(bytes::Bytes::copy_from_slice(self.item.value)).ok()).flatten()
    }

    pub(super) fn view(&self, now: UnixSeconds, want: Want) -> ItemView {
        let value = match want {
            Want::Value if !self.item.object => bytes::Bytes::copy_from_slice(self.item.value),
            Want::Value | Want::NoValue => bytes::Bytes::new(),
        };
        let object = self.descriptor().map(|descriptor| Box::new(Object { descriptor, pin: None }));
        let len_of = |object: &Object| object.descriptor.geometry.len;
        let value_len = object.as_deref().map_or(self.item.value.len() as u64, len_of);
        ItemView {
            value,
            value_len,
            flags: self.item.client_flags,
            version: self.item.version,
            ttl_seconds: (self.item.expiry != 0).then(|| self.item.expiry.saturating_sub(now.0)),
            fetched: self.access.fetched,
            idle_seconds: self.access.idle_seconds(now),
            size_bytes: self.item.len_bytes() as u32,
            win: false,
            stale: self.item.stale,
            win_sent: self.item.win_sent,
            object,
        }
    }
}

fn decide_get(key: &[u8], get: Get, current: Option<Current<'_>>, context: Context) -> Decision {
    let Some(current) = current else { return vivify(key, get, context) };
    let mut view = current.view(context.now, get.value);
    let expiring =
        get.recache_below_seconds.is_some_and(|below| view.ttl_seconds.is_some_and(|ttl| ttl < below));
    let due = get.claim == Claim::IfDue && (view.stale || expiring);
    // One client at a time is to fetch the value anew; the others hear that somebody does.
    let wins = due && !view.win_sent;
    if wins {
        view.win = true;
    }
    let mut state = current.item.state();
    state.win_sent |= wins;
    let expiry = get.touch.map_or(current.item.expiry, Expiry::to_stored);
    if let Some(expiry) = get.touch {
        view.ttl_seconds = ttl_of(expiry, context.now);
    }
    if state == current.item.state() && expiry == current.item.expiry {
        return Decision::Answer(Outcome::Hit(view));
    }
    Decision::Header { version: current.item.version, expiry, state, outcome: Outcome::Hit(view) }
}

/// mg with N on a miss: an empty item, and the win.
fn vivify(key: &[u8], get: Get, context: Context) -> Decision {
    let Some(expiry) = get.vivify else { return Decision::Answer(Outcome::Miss) };
    let new = NewItem {
        key,
        value: [b"", b""],
        flags: 0,
        expiry: context.expiry(expiry),
        version: get.version.unwrap_or(context.next_version),
        state: ItemState { win_sent: true, ..context.fresh() },
        object_len: context.object_len,
    };
    let view = ItemView { win: true, win_sent: false, ..new.view(context.now) };
    new.put(Outcome::Hit(view))
}

/// An item about to be written.
struct NewItem<'a> {
    key: &'a [u8],
    value: [&'a [u8]; 2],
    flags: u32,
    expiry: u32,
    version: u64,
    state: ItemState,
    /// Length of the value whose descriptor this is.
    object_len: Option<u64>,
}

impl NewItem<'_> {
    fn len_bytes(&self) -> usize {
        encoded_len(self.key.len(), self.value[0].len() + self.value[1].len())
    }

    fn view(&self, now: UnixSeconds) -> ItemView {
        ItemView {
            value_len: self.object_len.unwrap_or((self.value[0].len() + self.value[1].len()) as u64),
            flags: self.flags,
            version: self.version,
            ttl_seconds: (self.expiry != 0).then(|| self.expiry.saturating_sub(now.0)),
            size_bytes: self.len_bytes() as u32,
            stale: self.state.stale,
            win_sent: self.state.win_sent,
            ..ItemView::default()
        }
    }

    fn put(&self, outcome: Outcome) -> Decision {
        let value_len = self.value[0].len() + self.value[1].len();
        if is_too_large(self.key.len(), value_len, self.flags) {
            return Decision::Answer(Outcome::Failed(Failure::TooLarge));
        }
        let mut image = Vec::with_capacity(self.len_bytes());
        ItemSpec {
            key: self.key,
            value: self.value,
            client_flags: self.flags,
            expiry: self.expiry,
            version: self.version,
            state: self.state,
        }
        .encode(&mut image);
        Decision::Put { image, outcome }
    }

    fn stored(&self, now: UnixSeconds) -> Decision {
        self.put(Outcome::Stored(self.view(now)))
    }
}

#[inline(always)]
fn decide_store(key: &[u8], store: &Store, current: Option<Current<'_>>, context: Context) -> Decision {
    match (store.mode, store.compare, current) {
        (StoreMode::Set, None, _) => whole(key, store, context),
        (StoreMode::Set, Some(_), None) => Decision::Answer(Outcome::NotFound),
        (StoreMode::Set, Some(compare), Some(current)) => {
            compare_and_store(key, store, compare, &current, context)
        }
        (StoreMode::Add, _, None) => whole(key, store, context),
        (StoreMode::Add, _, Some(_)) | (StoreMode::Replace, _, None) => Decision::Answer(Outcome::NotStored),
        (StoreMode::Replace, _, Some(_)) => whole(key, store, context),
        (StoreMode::Append | StoreMode::Prepend, _, None) => match store.vivify {
            Some(expiry) => whole(key, &Store { expiry, ..store.clone() }, context),
            None => Decision::Answer(Outcome::NotStored),
        },
        (StoreMode::Append | StoreMode::Prepend, _, Some(_)) => extend(key, store, current, context),
    }
}

/// The value as sent.
#[inline]
fn whole(key: &[u8], store: &Store, context: Context) -> Decision {
    NewItem {
        key,
        value: [&store.value, b""],
        flags: store.flags,
        expiry: context.expiry(store.expiry),
        version: store.version.unwrap_or(context.next_version),
        state: context.fresh(),
        object_len: context.object_len,
    }
    .stored(context.now)
}

/// cas; with `invalidate` an older version is stored all the same, but marked stale (memcached's protocol.txt, "ms", I).
fn compare_and_store(
    key: &[u8],
    store: &Store,
    compare: u64,
    current: &Current<'_>,
    context: Context,
) -> Decision {
    if compare == current.item.version {
        return whole(key, store, context);
    }
    if !(store.invalidate && compare < current.item.version) {
        return Decision::Answer(Outcome::Exists);
    }
    NewItem {
        key,
        value: [&store.value, b""],
        flags: store.flags,
        expiry: current.item.expiry,
        version: store.version.unwrap_or(context.next_version),
        state: ItemState { stale: true, win_sent: current.item.win_sent, ..context.fresh() },
        object_len: context.object_len,
    }
    .stored(context.now)
}

/// append and prepend.
fn extend(key: &[u8], store: &Store, current: Option<Current<'_>>, context: Context) -> Decision {
    let current = match extended(store.compare, current) {
        Ok(current) => current,
        Err(refused) => return Decision::Answer(refused),
    };
    let old = current.item.value;
    let len = old.len() + store.value.len();
    let is_too_large = context.takes_objects && is_too_large(key.len(), len, current.item.client_flags);
    if current.item.object || is_too_large {
        return Decision::Extend;
    }
    let value: [&[u8]; 2] =
        if store.mode == StoreMode::Append { [old, &store.value] } else { [&store.value, old] };
    longer(key, store, value, &current, context).stored(context.now)
}

fn decide_delete(key: &[u8], delete: Delete, current: Option<Current<'_>>, context: Context) -> Decision {
    let Some(current) = current else { return Decision::Answer(Outcome::NotFound) };
    if delete.compare.is_some_and(|compare| compare != current.item.version) {
        return Decision::Answer(Outcome::Exists);
    }
    if let Some(flags) = delete.drop_value {
        return drop_value(key, delete, flags, &current, context);
    }
    if delete.invalidate {
        let expiry = delete.touch.map_or(current.item.expiry, Expiry::to_stored);
        let version = delete.version.unwrap_or(context.next_version);
        // The next reader is to fetch the value anew, whoever was to do so before.
        let state = ItemState { stale: true, win_sent: false, ..current.item.state() };
        return Decision::Header { version, expiry, state, outcome: Outcome::Deleted };
    }
    Decision::Remove { outcome: Outcome::Deleted }
}

/// md x: as in memcached, an empty item that keeps nothing but its version, and that only as long as it is not stale too.
fn drop_value(key: &[u8], delete: Delete, flags: u32, current: &Current<'_>, context: Context) -> Decision {
    let version = if delete.invalidate { context.next_version } else { current.item.version };
    NewItem {
        key,
        value: [b"", b""],
        flags,
        expiry: delete.touch.map_or(0, Expiry::to_stored),
        version: delete.version.unwrap_or(version),
        state: ItemState { stale: delete.invalidate, ..context.fresh() },
        object_len: context.object_len,
    }
    .put(Outcome::Deleted)
}

fn decide_touch(expiry: Expiry, current: Option<Current<'_>>, context: Context) -> Decision {
    let Some(current) = current else { return Decision::Answer(Outcome::NotFound) };
    let mut view = current.view(context.now, Want::NoValue);
    view.ttl_seconds = ttl_of(expiry, context.now);
    let outcome = Outcome::Touched(view);
    if expiry.to_stored() == current.item.expiry {
        return Decision::Answer(outcome);
    }
    let (version, state) = (current.item.version, current.item.state());
    Decision::Header { version, expiry: expiry.to_stored(), state, outcome }
}

fn decide_arith(key: &[u8], arith: Arith, current: Option<Current<'_>>, context: Context) -> Decision {
    let version = arith.version.unwrap_or(context.next_version);
    let Some(current) = current else {
        let Some(expiry) = arith.vivify else { return Decision::Answer(Outcome::NotFound) };
        let attributes = Attributes { flags: 0, expiry: context.expiry(expiry), version };
        return number(key, arith.initial, 0, attributes, context);
    };
    if arith.compare.is_some_and(|compare| compare != current.item.version) {
        return Decision::Answer(Outcome::Exists);
    }
    let digits = if current.item.object { b"" } else { current.item.value };
    let Some(old) = parse_number(digits) else {
        return Decision::Answer(Outcome::Failed(Failure::NotANumber));
    };
    // As in memcached: up it wraps at 64 bits, down it stops at zero.
    let new = match arith.direction {
        Direction::Increment => old.wrapping_add(arith.delta),
        Direction::Decrement => old.saturating_sub(arith.delta),
    };
    let expiry = arith.touch.map_or(current.item.expiry, Expiry::to_stored);
    let attributes = Attributes { flags: current.item.client_flags, expiry, version };
    number(key, new, current.item.value.len(), attributes, context)
}

/// What an item has beside its key and its value.
struct Attributes {
    flags: u32,
    expiry: u32,
    version: u64,
}

/// Stores `value` in decimal. A shorter number keeps the old length, padded with spaces, as memcached does.
fn number(key: &[u8], value: u64, old_len: usize, attributes: Attributes, context: Context) -> Decision {
    let Attributes { flags, expiry, version } = attributes;
    let digits = format!("{value:<old_len$}");
    let state = context.fresh();
    let new =
        NewItem { key, value: [digits.as_bytes(), b""], flags, expiry, version, state, object_len: None };
    let view = ItemView { value: bytes::Bytes::copy_from_slice(digits.as_bytes()), ..new.view(context.now) };
    new.put(Outcome::Number(value, view))
}

/// A decimal number, possibly among spaces, such as `number` leaves.
fn parse_number(value: &[u8]) -> Option<u64> {
    if value.len() > MAX_NUMBER_DIGITS {
        return None;
    }
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn ttl_of(expiry: Expiry, now: UnixSeconds) -> Option<u32> {
    match expiry {
        Expiry::Never => None,
        Expiry::At(at) => Some(at.0.saturating_sub(now.0)),
    }
}

/// Whether the access counts for the LRU.
pub(super) fn counts(op: &Op) -> bool {
    match op {
        Op::Get(get) => get.bump == Bump::Count,
        Op::Touch(_) => true,
        Op::Store(_)
        | Op::Delete(_)
        | Op::Arith(_)
        | Op::Debug
        | Op::Flush(_)
        | Op::Object(_)
        | Op::Scan(_)
        | Op::Expect(_)
        | Op::Session => false,
    }
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;
