//! Append and prepend where the value lies in chunks, or will: it is read and written anew with what is added, in the place of the
//! version that was read.
//!
//! The owner's host does this, so no client has to send what is there already. Those of one key come one after the other. Whoever else
//! changes the key meanwhile comes first: then all begins anew, a few times. Flags and expiry stay (`primary/execute.rs`).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use types::op::{Bump, Failure, Get, ItemView, Object, Op, Outcome, Request, Store, StoreMode, is_too_large};
use types::{KeyHash, MemberId, ObjectPolicy, Time};

use super::gather::NewGather;
use super::names::{Client, ExtensionId, GatherId, OwnerRequest, StreamId, Told, UploadId};
use super::scope::Scope;
use super::transfers::Transfers;
use super::upload::Step;
use super::wanted::Wanted;
use crate::Timing;
use crate::host::driver::NewUpload;
use crate::primary::Pending;

/// So often somebody else may come first.
const MAX_TRIES: u32 = 16;

/// The extensions of one host.
#[derive(Default)]
pub(super) struct Extensions {
    all: BTreeMap<ExtensionId, Extension>,
    /// Those of them whose turn it is not yet, oldest first, but for those behind others of their key.
    waiting: VecDeque<ExtensionId>,
    /// By key, those behind the first, oldest first; how many there are in all.
    behind: BTreeMap<Bytes, VecDeque<ExtensionId>>,
    behind_count: usize,
    started: u64,
    heard: VecDeque<(ExtensionId, Heard)>,
}

/// What an extension hears.
pub(super) enum Heard {
    /// What its key has.
    Owner(Outcome),
    Upload(Told),
    Gather(Told),
}

struct Extension {
    pending: Pending,
    owner: MemberId,
    tries: u32,
    /// Whether it is to hear what its key has.
    asking: bool,
    upload: Option<UploadId>,
    gather: Option<GatherId>,
    /// Bytes that the upload has not taken yet, and whether they are of the old value.
    bytes: VecDeque<(Bytes, bool)>,
    /// What comes behind the old value.
    behind: Bytes,
    moved: Time,
}

impl Extensions {
    pub(super) fn hear(&mut self, id: ExtensionId, heard: Heard) {
        self.heard.push_back((id, heard));
    }

    fn add(&mut self, one: Extension) {
        self.started += 1;
        let id = ExtensionId(self.started);
        if let Some(others) = self.behind.get_mut(one.pending.request.key_bytes()) {
            others.push_back(id);
            self.behind_count += 1;
        } else {
            self.behind.insert(one.pending.key(), VecDeque::new());
            self.waiting.push_back(id);
        }
        self.all.insert(id, one);
    }

    fn remove(&mut self, id: ExtensionId) -> Option<Extension> {
        let one = self.all.remove(&id)?;
        let key = one.pending.request.key_bytes();
        let others = self.behind.get_mut(key)?;
        if let Some(at) = others.iter().position(|other| *other == id) {
            others.remove(at);
            self.behind_count -= 1;
            return Some(one);
        }
        self.waiting.retain(|waiting| *waiting != id);
        if let Some(next) = others.pop_front() {
            self.behind_count -= 1;
            self.waiting.push_back(next);
        } else {
            self.behind.remove(key);
        }
        Some(one)
    }

    /// Whose turn it is if so many may be under way at once.
    fn next(&mut self, most: usize) -> Option<ExtensionId> {
        let under_way = self.all.len() - self.waiting.len() - self.behind_count;
        if under_way < most { self.waiting.pop_front() } else { None }
    }

    /// Bytes that they hold.
    pub(super) fn memory_bytes(&self) -> usize {
        let of = |one: &Extension| {
            one.behind.len() + one.bytes.iter().map(|(bytes, _)| bytes.len()).sum::<usize>()
        };
        self.all.values().map(of).sum()
    }

    /// When something may stand still.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let oldest = self.all.values().map(|one| one.moved).min();
        oldest.map_or(Time::NEVER, |moved| moved + timing.request_deadline_us)
    }
}

impl Extension {
    fn hash(&self) -> KeyHash {
        self.pending.hash
    }

    /// Whether this is news: not of what was dropped meanwhile.
    fn waits_for(&self, heard: &Heard) -> bool {
        match heard {
            Heard::Owner(_) => self.asking,
            Heard::Upload(_) => self.upload.is_some(),
            Heard::Gather(_) => self.gather.is_some(),
        }
    }

    /// What is to be added, and how.
    fn store(&self) -> Option<&Store> {
        match &self.pending.request.op {
            Op::Store(store) => Some(store),
            _ => None,
        }
    }

    /// The next bytes, `most` of them at most.
    fn take(&mut self, most: usize) -> Option<(Bytes, bool)> {
        let (mut bytes, is_old) = self.bytes.pop_front()?;
        let piece = bytes.split_to(most.min(bytes.len()));
        if !bytes.is_empty() {
            self.bytes.push_front((bytes, is_old));
        }
        Some((piece, is_old))
    }

    fn push(&mut self, bytes: Bytes, is_old: bool) {
        if !bytes.is_empty() {
            self.bytes.push_back((bytes, is_old));
        }
    }

    /// All of the old value is here.
    fn end_old(&mut self) {
        self.gather = None;
        let behind = std::mem::take(&mut self.behind);
        self.push(behind, false);
    }
}

/// For owners of this host.
impl Transfers {
    /// A value is to be made longer, when its turn comes ([`Self::go_on_extending`]).
    pub(crate) fn extend(&mut self, scope: &mut Scope<'_>, pending: Pending, owner: MemberId) {
        if self.extensions.all.len() >= scope.limits().uploads {
            let outcome = pending.request.in_all(Outcome::Failed(Failure::Busy));
            return scope.around.out().reply(pending.reply, outcome);
        }
        self.extensions.add(Extension {
            pending,
            owner,
            tries: 0,
            asking: false,
            upload: None,
            gather: None,
            bytes: VecDeque::new(),
            behind: Bytes::new(),
            moved: scope.now.time,
        });
    }

    /// Goes on with everything that was heard, and with those whose turn it is.
    pub(super) fn go_on_extending(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        while let Some((id, heard)) = self.extensions.heard.pop_front() {
            if !self.extensions.all.get(&id).is_some_and(|one| one.waits_for(&heard)) {
                continue;
            }
            match heard {
                Heard::Owner(outcome) => self.hear_what_is_there(scope, id, outcome, wanted),
                Heard::Upload(Told::Ended(outcome)) => self.hear_end(scope, id, outcome, wanted),
                Heard::Upload(_) => self.pump(scope, id, wanted),
                Heard::Gather(Told::Ended(outcome)) => self.hear_unread(scope, id, outcome, wanted),
                Heard::Gather(told) => self.hear_old(scope, id, told, wanted),
            }
        }
        while let Some(id) = self.extensions.next(scope.limits().extensions) {
            self.ask_what_is_there(id, wanted);
        }
    }

    /// Gives up what stands still.
    pub(super) fn tick_extensions(&mut self, scope: &mut Scope<'_>, wanted: &mut Wanted) {
        let (now, patience) = (scope.now.time, scope.timing().request_deadline_us);
        let is_late = |one: &Extension| now.since(one.moved) >= patience;
        let late: Vec<ExtensionId> =
            self.extensions.all.iter().filter(|(_, one)| is_late(one)).map(|(id, _)| *id).collect();
        for id in late {
            let upload = self.extensions.all.get(&id).and_then(|one| one.upload);
            let failure = upload.map_or(Failure::Busy, |upload| self.uploads.what_is_late(upload));
            self.end_extension(scope, id, Outcome::Failed(failure), wanted);
        }
    }

    fn ask_what_is_there(&mut self, id: ExtensionId, wanted: &mut Wanted) {
        let Some(one) = self.extensions.all.get_mut(&id) else { return };
        one.asking = true;
        let get = Get { bump: Bump::Silent, ..Get::default() };
        let Request { key, via, .. } = &*one.pending.request;
        // The owner may be known only to whoever was sent on to it.
        let request = Request { key: key.clone(), op: Op::Get(get), once: None, via: via.clone() };
        let (stream, owner, hash) = (Some(StreamId::Extension(id)), one.owner, one.hash());
        wanted.requests.push(OwnerRequest { stream, owner, hash, request });
    }

    fn hear_what_is_there(
        &mut self,
        scope: &mut Scope<'_>,
        id: ExtensionId,
        outcome: Outcome,
        wanted: &mut Wanted,
    ) {
        if let Some(one) = self.extensions.all.get_mut(&id) {
            one.asking = false;
        }
        match outcome {
            Outcome::Hit(view) if self.lies_in_chunks(id, &view) => self.write_anew(scope, id, view, wanted),
            Outcome::Hit(_) | Outcome::Miss => self.give_back(id, wanted),
            outcome => self.end_extension(scope, id, outcome, wanted),
        }
    }

    /// Whether what comes of it is an object: what is there is one, or it would be too long for an item.
    fn lies_in_chunks(&self, id: ExtensionId, view: &ItemView) -> bool {
        let one = self.extensions.all.get(&id);
        let Some((key, store)) = one.and_then(|one| Some((one.pending.request.key_bytes(), one.store()?)))
        else {
            return false;
        };
        let len = view.value.len() + store.value.len();
        view.object.is_some() || is_too_large(key.len(), len, view.flags)
    }

    /// What is there is known: it is read, if it has to be, and written together with what is added.
    fn write_anew(&mut self, scope: &mut Scope<'_>, id: ExtensionId, view: ItemView, wanted: &mut Wanted) {
        let Some(one) = self.extensions.all.get(&id) else { return };
        let (hash, owner) = (one.hash(), one.owner);
        let (Some(store), Some(key)) = (one.store().cloned(), one.pending.request.key.clone()) else {
            return self.end_extension(scope, id, Outcome::Failed(Failure::Corrupt), wanted);
        };
        let len = view.value_len + store.value.len() as u64;
        let is_other = store.compare.is_some_and(|compare| compare != view.version);
        let refused = if is_other {
            Some(Outcome::Exists)
        } else {
            (len > scope.limits().value_bytes).then_some(Outcome::Failed(Failure::TooLarge))
        };
        let piece = store.value.clone();
        let mode = store.mode;
        let store = Store { value: Bytes::new(), compare: Some(view.version), ..store };
        let ObjectPolicy { chunk_bytes: chunk_len, layout, .. } = scope.object_policy(key.namespace());
        let once = one.pending.request.once.as_deref().copied();
        let new = NewUpload { key: key.clone(), store, len, chunk_len, layout, once, via: None };
        let begun = match refused {
            Some(outcome) => Err(outcome),
            None => {
                let client = Client::Extension(id);
                self.uploads.begin(scope, client, (owner, hash), new).map_err(Outcome::Failed)
            }
        };
        let (upload, request) = match begun {
            Ok(begun) => begun,
            Err(outcome) => {
                self.let_go(scope, id, key, hash, view.object, wanted);
                return self.end_extension(scope, id, outcome, wanted);
            }
        };
        wanted.requests.push(request);
        let Some(one) = self.extensions.all.get_mut(&id) else { return };
        one.upload = Some(upload);
        if mode == StoreMode::Prepend {
            one.push(piece, false)
        } else {
            one.behind = piece
        }
        match view.object {
            None => {
                one.push(view.value, true);
                one.end_old();
            }
            Some(object) => self.read_old(scope, id, key, hash, *object, wanted),
        }
        self.pump(scope, id, wanted);
    }

    fn read_old(
        &mut self,
        scope: &mut Scope<'_>,
        id: ExtensionId,
        key: types::op::Key,
        hash: KeyHash,
        object: Object,
        wanted: &mut Wanted,
    ) {
        let new = NewGather { key, object, start: 0, end: u64::MAX, changed: false, by_graph: false };
        match self.gathers.begin(scope, Client::Extension(id), hash, new) {
            Ok(gather) => {
                if let Some(one) = self.extensions.all.get_mut(&id) {
                    one.gather = Some(gather);
                }
                let progress = self.gathers.go_on(scope, gather);
                self.take_progress(progress, wanted);
            }
            Err(failure) => self.end_extension(scope, id, Outcome::Failed(failure), wanted),
        }
    }

    /// What was pinned is not read after all.
    fn let_go(
        &mut self,
        scope: &mut Scope<'_>,
        id: ExtensionId,
        key: types::op::Key,
        hash: KeyHash,
        object: Option<Box<Object>>,
        wanted: &mut Wanted,
    ) {
        let Some(object) = object else { return };
        let new = NewGather { key, object: *object, start: 0, end: 0, changed: false, by_graph: false };
        if let Ok(gather) = self.gathers.begin(scope, Client::Extension(id), hash, new) {
            wanted.requests.extend(self.gathers.abandon(gather));
        }
    }

    /// More of the old value has come.
    fn hear_old(&mut self, scope: &mut Scope<'_>, id: ExtensionId, told: Told, wanted: &mut Wanted) {
        let Some(one) = self.extensions.all.get_mut(&id) else { return };
        match told {
            Told::Part(bytes) => one.push(bytes, true),
            Told::Whole => one.end_old(),
            Told::Room | Told::Ended(_) => {}
        }
        self.pump(scope, id, wanted);
    }

    /// Gives the upload what it takes.
    fn pump(&mut self, scope: &mut Scope<'_>, id: ExtensionId, wanted: &mut Wanted) {
        loop {
            let Some(one) = self.extensions.all.get_mut(&id) else { return };
            let Some(upload) = one.upload else { return };
            let most = if one.bytes.is_empty() { 0 } else { self.uploads.wanted(upload) };
            let Some((piece, is_old)) = (most > 0).then(|| one.take(most)).flatten() else { return };
            one.moved = scope.now.time;
            let (gather, len) = (one.gather, piece.len());
            self.uploads.feed(scope, upload, piece);
            let step = self.uploads.go_on(scope, upload);
            self.take_step(step, wanted);
            if let Some(gather) = gather.filter(|_| is_old) {
                self.gathers.taken(gather, len);
                let progress = self.gathers.go_on(scope, gather);
                self.take_progress(progress, wanted);
            }
        }
    }

    /// The upload is over.
    fn hear_end(&mut self, scope: &mut Scope<'_>, id: ExtensionId, outcome: Outcome, wanted: &mut Wanted) {
        if let Some(one) = self.extensions.all.get_mut(&id) {
            one.upload = None;
        }
        match outcome {
            Outcome::Exists | Outcome::Failed(Failure::NotOpen) => self.begin_anew(scope, id, wanted),
            Outcome::NotStored => self.give_back(id, wanted),
            outcome => self.end_extension(scope, id, outcome, wanted),
        }
    }

    /// The old value cannot be read.
    fn hear_unread(&mut self, scope: &mut Scope<'_>, id: ExtensionId, outcome: Outcome, wanted: &mut Wanted) {
        if let Some(one) = self.extensions.all.get_mut(&id) {
            one.gather = None;
        }
        match outcome {
            Outcome::Failed(Failure::Replaced) => self.begin_anew(scope, id, wanted),
            outcome => self.end_extension(scope, id, outcome, wanted),
        }
    }

    /// Somebody else has come first.
    fn begin_anew(&mut self, scope: &mut Scope<'_>, id: ExtensionId, wanted: &mut Wanted) {
        self.drop_streams(id, wanted);
        let Some(one) = self.extensions.all.get_mut(&id) else { return };
        one.tries += 1;
        if one.tries >= MAX_TRIES || one.pending.deadline <= scope.now.time {
            return self.end_extension(scope, id, Outcome::Failed(Failure::Busy), wanted);
        }
        self.ask_what_is_there(id, wanted);
    }

    /// Nothing is there any more, or something else: the primary decides anew.
    fn give_back(&mut self, id: ExtensionId, wanted: &mut Wanted) {
        self.drop_streams(id, wanted);
        wanted.given_back.extend(self.extensions.remove(id).map(|one| one.pending));
    }

    fn end_extension(
        &mut self,
        scope: &mut Scope<'_>,
        id: ExtensionId,
        outcome: Outcome,
        wanted: &mut Wanted,
    ) {
        self.drop_streams(id, wanted);
        if let Some(one) = self.extensions.remove(id) {
            let outcome = one.pending.request.in_all(outcome);
            scope.around.out().reply(one.pending.reply, outcome);
        }
    }

    fn drop_streams(&mut self, id: ExtensionId, wanted: &mut Wanted) {
        let Some(one) = self.extensions.all.get_mut(&id) else { return };
        one.bytes.clear();
        one.behind = Bytes::new();
        let (upload, gather) = (one.upload.take(), one.gather.take());
        wanted.requests.extend(gather.and_then(|gather| self.gathers.abandon(gather)));
        if let Some(upload) = upload {
            let request = self.uploads.abandon(upload);
            self.take_step(Step { ended: None, request }, wanted);
        }
    }
}
