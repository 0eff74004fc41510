//! Values in chunks, as the connection of a client writes and reads them: piece by piece, for one call.
//!
//! To the client a call is what it always is: a value is stored, or read. What its node does for a long one comes between.

use std::collections::BTreeMap;

use bytes::Bytes;
use native::GetAsk;
use proto::{GatherId, NewGather, NewUpload, Token, UploadId};
use types::GroupId;
use types::op::{Failure, ItemView, Op, Outcome, Request, Store, StoreMode, Want};

use super::World;
use crate::cluster::process::{Life, Submission};
use crate::options::Objects;
use crate::stage::queue::Event;

/// The streams of all nodes, by the calls that they serve.
#[derive(Default)]
pub(crate) struct Streams {
    all: BTreeMap<Token, Stream>,
    /// Reads that may turn out to be of values in chunks.
    reads: BTreeMap<Token, Request>,
    /// How native clients read, by their requests.
    asks: BTreeMap<Token, GetAsk>,
    /// Values that hosts have workers of their nodes write.
    written: BTreeMap<Token, UploadId>,
}

impl Streams {
    /// A native client reads like this.
    pub(super) fn expect(&mut self, token: Token, ask: GetAsk) {
        self.asks.insert(token, ask);
    }

    pub(super) fn begin_writing(&mut self, token: Token, upload: UploadId) {
        self.written.insert(token, upload);
    }

    pub(super) fn written(&self, token: Token) -> Option<UploadId> {
        self.written.get(&token).copied()
    }

    /// Whether it was under way.
    pub(super) fn end_writing(&mut self, token: Token) -> bool {
        self.written.remove(&token).is_some()
    }
}

struct Stream {
    host: usize,
    /// The life of its node.
    life: u32,
    /// Whether its next step is in the queue.
    stirs: bool,
    kind: Kind,
}

enum Kind {
    Upload { id: UploadId, value: Bytes, at: usize },
    Gather(Box<Gather>),
}

/// A value that is read, range by range: together they are the value of one moment.
struct Gather {
    /// The range that is under way.
    id: GatherId,
    request: Request,
    view: ItemView,
    bytes: Vec<u8>,
    taken: usize,
}

/// Of so many reads one asks for its value in ranges, ...
const RANGED: u64 = 4;
/// ... of this part of its length each.
const RANGES: u64 = 3;

/// Up to where the next range goes, of which call's value.
fn range_end(Token([call, _]): Token, start: u64, len: u64) -> u64 {
    let is_ranged = call % RANGED == RANGED - 1;
    if is_ranged { (start + len.div_ceil(RANGES)).min(len) } else { len }
}

impl World {
    /// A call's request comes to its host.
    pub(super) fn submit_or_stream(&mut self, host: usize, submission: Submission) {
        let above = self.stage.options.objects.map(|objects| objects.above);
        let is_long = |store: &Store| {
            let replaces = matches!(store.mode, StoreMode::Set | StoreMode::Add | StoreMode::Replace);
            replaces && above.is_some_and(|above| store.value.len() > above)
        };
        match &submission.request.op {
            Op::Store(store) if is_long(store) => self.begin_upload(host, &submission),
            Op::Get(get) if above.is_some() && get.value == Want::Value => {
                self.streams.reads.insert(submission.token, submission.request.clone());
                self.submit(host, submission);
            }
            _ => self.submit(host, submission),
        }
    }

    fn begin_upload(&mut self, host: usize, submission: &Submission) {
        let token = submission.token;
        let Op::Store(store) = submission.request.op.clone() else { return };
        let (Some(key), Some(objects)) = (submission.request.key.clone(), self.stage.options.objects) else {
            return;
        };
        let (value, once) = (store.value.clone(), submission.request.once.as_deref().copied());
        let store = Store { value: Bytes::new(), ..store };
        let mut begun = None;
        let place = self.cluster.nodes.host(host).map(|machine| proto::locate_chunks(machine, &key));
        let owner = place.and_then(|place| place.member);
        let host = owner.map_or(host, |owner| worker_of(self, host, owner.group));
        self.cluster.nodes.drive(&self.stage, host, |machine, now| {
            let place = place.unwrap_or_else(|| machine.locate(&key));
            let (len, Objects { chunk_len, layout, .. }) = (value.len() as u64, objects);
            let new = NewUpload { key, store, len, chunk_len, layout, once, via: None };
            begun = Some(machine.streams(now).begin_upload(token, place, new));
        });
        match begun {
            Some(Ok(id)) => self.add_stream(token, host, Kind::Upload { id, value, at: 0 }),
            Some(Err(failure)) => self.reply(host, token, Outcome::Failed(failure)),
            None => {}
        }
        self.after(host);
        self.stir(token);
    }

    fn add_stream(&mut self, token: Token, host: usize, kind: Kind) {
        let life = self.cluster.nodes[self.cluster.nodes.node_of(host)].life;
        self.streams.all.insert(token, Stream { host, life, stirs: false, kind });
    }

    /// An answer of a host, for the client or for what its node does for it.
    pub(super) fn answer(&mut self, host: usize, token: Token, outcome: Outcome) {
        let read = self.streams.reads.remove(&token);
        if let Some(Stream { kind: Kind::Gather(gather), .. }) = self.streams.all.remove(&token)
            && outcome == Outcome::Failed(Failure::Replaced)
        {
            // Nobody has seen a byte of it: the call begins anew.
            let submission = Submission { token, member: None, request: gather.request };
            return self.submit_or_stream(host, submission);
        }
        match (read, outcome) {
            (Some(request), Outcome::Hit(view)) if view.object.is_some() => {
                self.begin_gather(host, token, request, view, Vec::new());
            }
            (_, outcome) => self.reply(host, token, outcome),
        }
    }

    /// Begins to read what follows `bytes`.
    fn begin_gather(&mut self, host: usize, token: Token, request: Request, view: ItemView, bytes: Vec<u8>) {
        let (Some(key), Some(object)) = (request.key.clone(), view.object.clone()) else { return };
        let ask = self.streams.asks.get(&token).copied().unwrap_or_default();
        let (start, end) = match ask.range {
            Some(range) => range.within(view.value_len),
            None => (bytes.len() as u64, range_end(token, bytes.len() as u64, view.value_len)),
        };
        // The worker that has the groups of its chunks.
        let host = worker_of(self, host, object.descriptor.id.owner.group);
        // What is not wanted of a value nobody will see.
        let bytes = if ask.range.is_some() { vec![0; start as usize] } else { bytes };
        let mut begun = None;
        self.cluster.nodes.drive(&self.stage, host, |machine, now| {
            let hash = machine.locate(&key).hash;
            let changed = matches!(&request.op, Op::Get(get) if get.may_change());
            let by_graph = ask.by_graph;
            let new = NewGather { key, object: *object, start, end, changed, by_graph };
            begun = Some(machine.streams(now).begin_gather(token, hash, new));
        });
        match begun {
            Some(Ok(id)) => {
                let taken = bytes.len();
                self.add_stream(
                    token,
                    host,
                    Kind::Gather(Box::new(Gather { id, request, view, bytes, taken })),
                );
            }
            Some(Err(failure)) => self.reply(host, token, Outcome::Failed(failure)),
            None => {}
        }
        self.after(host);
    }

    /// The next bytes of a value that is read.
    pub(super) fn part(&mut self, token: Token, part: &Bytes) {
        if let Some(Stream { kind: Kind::Gather(gather), .. }) = self.streams.all.get_mut(&token) {
            gather.bytes.extend_from_slice(part);
            self.stir(token);
        }
    }

    /// All of a value has come, or of a range of it.
    pub(super) fn whole(&mut self, host: usize, token: Token) {
        let Some(Stream { kind: Kind::Gather(gather), .. }) = self.streams.all.remove(&token) else { return };
        let Gather { request, view, mut bytes, .. } = *gather;
        if self.streams.asks.get(&token).is_some_and(|ask| ask.range.is_some()) {
            bytes.resize(view.value_len as usize, 0);
        } else if (bytes.len() as u64) < view.value_len {
            return self.begin_gather(host, token, request, view, bytes);
        }
        let value = bytes.into();
        self.reply(host, token, Outcome::Hit(ItemView { value, object: None, ..view }));
    }

    /// A stream goes on, a little later.
    pub(super) fn stir(&mut self, token: Token) {
        let Some(objects) = self.stage.options.objects else { return };
        let Some(stream) = self.streams.all.get_mut(&token).filter(|stream| !stream.stirs) else { return };
        stream.stirs = true;
        let after = self.stage.rng.clients.below(objects.pause_us + 1);
        let Token([call, request]) = token;
        self.stage.after(after, Event::Stream { call: call as u32, request: request as u32 });
    }

    /// The next step of a stream: bytes are sent, or taken.
    pub(super) fn go_on_streaming(&mut self, call: u32, request: u32) {
        let token = Token([u64::from(call), u64::from(request)]);
        let Some(stream) = self.streams.all.get_mut(&token) else { return };
        stream.stirs = false;
        let (host, life) = (stream.host, stream.life);
        let node = &self.cluster.nodes[self.cluster.nodes.node_of(host)];
        match (node.life == life, node.state) {
            (true, Life::Up) => {}
            // What a client sends waits.
            (true, Life::Paused) => return self.stir(token),
            (true, Life::Down) | (false, _) => return drop(self.streams.all.remove(&token)),
        }
        if self.client_leaves(token, call) {
            return self.abandon(host, token);
        }
        let Some(Stream { kind, .. }) = self.streams.all.get_mut(&token) else { return };
        let mut goes_on = false;
        match kind {
            Kind::Upload { id, value, at } => {
                let piece = self.stage.rng.clients.range(1, 80_000) as usize;
                self.cluster.nodes.drive(&self.stage, host, |machine, now| {
                    let wanted = machine.streams(now).upload_wants(*id).min(piece).min(value.len() - *at);
                    if wanted > 0 {
                        machine.streams(now).feed(*id, value.slice(*at..*at + wanted));
                        *at += wanted;
                        goes_on = *at < value.len();
                    }
                });
            }
            Kind::Gather(gather) => {
                let Gather { id, bytes, taken, .. } = &mut **gather;
                let more = bytes.len() - std::mem::replace(taken, bytes.len());
                self.cluster.nodes.drive(&self.stage, host, |machine, now| {
                    machine.streams(now).gather_taken(*id, more);
                });
            }
        }
        self.after(host);
        if goes_on {
            self.stir(token);
        }
    }

    /// Whether the client of a call closes its connection now.
    fn client_leaves(&mut self, token: Token, call: u32) -> bool {
        let percent = self.stage.options.objects.map_or(0, |objects| objects.leave_percent);
        // On a native client's connection there are others' values, too.
        let leaves = self.stage.rng.clients.percent(percent) && token.0[1] == 0;
        leaves && self.streams.all.contains_key(&token) && self.clients.leave(&mut self.stage, call)
    }

    fn abandon(&mut self, host: usize, token: Token) {
        let Some(stream) = self.streams.all.remove(&token) else { return };
        self.cluster.nodes.drive(&self.stage, host, |machine, now| match stream.kind {
            Kind::Upload { id, .. } => machine.streams(now).abandon_upload(id),
            Kind::Gather(gather) => machine.streams(now).abandon_gather(gather.id),
        });
        self.after(host);
    }

    fn reply(&mut self, host: usize, token: Token, outcome: Outcome) {
        self.streams.asks.remove(&token);
        match token {
            Token([_, 0]) => self.clients.reply(&mut self.stage, &self.cluster, host, token, outcome),
            token => self.natively().answer(token, &outcome),
        }
    }
}

/// The worker of a host's node that has `group`.
fn worker_of(world: &World, host: usize, group: GroupId) -> usize {
    world.cluster.nodes.host_for(world.cluster.nodes.node_of(host), group)
}
