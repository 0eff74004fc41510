//! What happens between native clients and nodes: who hears of which bytes, and what comes of it.

use bytes::Bytes;
use client_core::{Action, Body, Done, Error, Event as Happened, Operation, RequestId};
use native::{Ask, Breach, Code, Content, Heard, Piece, Request, RouteMap, StoreAsk};
use proto::{QuickRead, Token};
use types::op::{Begin, Failure, Get, Key, ObjectOp, Op, Outcome, Request as Asked, Store};
use types::{KeyHash, MemberId, Scan, UnixSeconds, split_key};

use super::World;
use crate::clients::calls::{Ask as Call, NOBODY};
use crate::cluster::process::{CLUSTER, Input, Life, Submission};
use crate::natives::outcome::{asked, outcome_of};
use crate::natives::{Around, Caller, Parts, Port, Wants};
use crate::options::NativeClients;
use crate::stage::queue::{Event, NativeEvent};

/// By how much the end of a request may come after its deadline.
const LATE_US: u64 = 1_000;
/// Most bytes that a client gives at once of a value that it gives bit by bit.
const FED_BYTES: u64 = 100_000;
/// One of so many times that more is wanted a client that has pauses makes one.
const PAUSES: u64 = 3;
/// One piece of so many is the last that a server wants, or has, of a value.
const ENOUGH: u64 = 20;

/// The world, for native clients.
pub(crate) struct Natively<'a> {
    world: &'a mut World,
}

impl World {
    /// What native clients have to do with.
    pub(crate) fn natively(&mut self) -> Natively<'_> {
        Natively { world: self }
    }
}

impl Natively<'_> {
    pub(super) fn world(&mut self) -> &mut World {
        self.world
    }
}

/// Clients.
impl Natively<'_> {
    pub(super) fn handle(&mut self, event: NativeEvent) {
        match event {
            NativeEvent::Dial(link) => self.dialled(link),
            NativeEvent::Up(link) => self.arrives_up(link),
            NativeEvent::Down(link) => self.arrives_down(link),
            NativeEvent::Lost(link) => self.lost(link),
            NativeEvent::Gone(link) => self.gone(link),
            NativeEvent::Tick { process, life } => {
                let owner = &mut self.world.natives.processes[usize::from(process)];
                if owner.life == life {
                    owner.tick(&mut self.world.stage);
                    self.stir(usize::from(process));
                }
            }
            NativeEvent::Due(call) => self.due(call),
            NativeEvent::Anew(process) => self.begin_anew(usize::from(process)),
            NativeEvent::Scan(process) => self.scan(usize::from(process)),
            NativeEvent::Feed { process, life, id } => {
                let process = usize::from(process);
                if self.world.natives.processes[process].life == life {
                    self.feed(process, id);
                    self.stir(process);
                }
            }
        }
    }

    /// A client asks something of the core that it shares with others.
    pub(super) fn turn(&mut self, client: u16, process: usize) {
        let World { stage, clients, natives, .. } = &mut *self.world;
        let namespace = natives.processes[process].namespace;
        if let Some(ask) = clients.native_turn(stage, client, namespace) {
            let call = self.ask(process, ask, None);
            self.world.clients.wait(&mut self.world.stage, client, call);
        }
    }

    /// Begins a call at the core of a process. It may have ended when this returns.
    pub(crate) fn ask(&mut self, process: usize, ask: Call, timeout_us: Option<u64>) -> u32 {
        let World { stage, cluster, clients, natives, .. } = &mut *self.world;
        let call = clients.begin(stage, &cluster.nodes, &ask);
        // Some values are given bit by bit, and only once.
        let (is_fed, mut unfed) = (stage.rng.natives.once_in(3), Bytes::new());
        let body = |value: &Bytes| {
            if !is_fed || value.is_empty() {
                return Body::Here(value.clone());
            }
            unfed = value.clone();
            Body::Fed(value.len() as u64)
        };
        let Some(op) = asked(&ask.op, body) else { return call };
        let key = Bytes::copy_from_slice(split_key(&clients.keys()[ask.key].bytes).1);
        let owner = &mut natives.processes[process];
        stage.book.stats.native_calls += 1;
        let due_us = timeout_us.or(stage.options.natives.map(|natives| natives.timeout_us)).unwrap_or(0);
        stage.queue.push(owner.in_us(stage, due_us) + LATE_US, Event::Native(NativeEvent::Due(call)));
        let now = owner.now(stage);
        let parts = Parts::of(call, &op, &key, now + due_us).filter(|_| ask.client != NOBODY);
        let op = parts.as_ref().map_or(op, Parts::first);
        // The last reads have no buffers, and so none that are too short.
        let reads = ask.client != NOBODY && matches!(ask.op, Op::Get(_)) && parts.is_none();
        let caller = Caller { client: ask.client, call, found: None, value: Vec::new(), unfed, parts };
        match owner.core.submit(now, Operation { key, op, timeout_us }) {
            Ok(id) => {
                owner.callers.insert(id, caller);
                if reads {
                    self.lend(process, id);
                }
            }
            Err(error) => self.end(caller, Err(error)),
        }
        self.stir(process);
        call
    }

    /// A client has no patience any more; false if it asks nodes itself.
    pub(super) fn cancel(&mut self, call: u32) -> bool {
        let processes = &mut self.world.natives.processes;
        let found =
            processes.iter().enumerate().find_map(|(at, process)| Some((at, process.request_of(call)?)));
        let Some((process, id)) = found else { return false };
        processes[process].core.cancel(id);
        self.stir(process);
        true
    }

    /// A request should have ended by now.
    fn due(&mut self, call: u32) {
        if !self.world.clients.has_ended(call) {
            let what = format!("call {call} of a native client has no answer though its deadline has passed");
            self.world.stage.book.fail("deadline", None, what);
        }
    }

    fn begin_anew(&mut self, process: usize) {
        self.check_buffers(process);
        let World { stage, cluster, clients, natives, .. } = &mut *self.world;
        let Some(map) = cluster.map().filter(|_| !clients.have_stopped()) else { return };
        for caller in natives.begin_anew(stage, map, process) {
            clients.give_up(stage, caller.client, caller.call);
        }
    }

    /// Does what a core wants done, and hears what its requests have come to.
    pub(super) fn stir(&mut self, process: usize) {
        loop {
            let World { stage, natives, .. } = &mut *self.world;
            let owner = &mut natives.processes[process];
            if let Some(action) = owner.core.poll_action() {
                match action {
                    Action::Connect(conn, address) => natives.dial(stage, process, conn, address),
                    Action::Close(conn) => {
                        owner.promises.forget(conn);
                        if let Some(link) = owner.links.remove(&conn) {
                            natives.close(stage, link);
                        }
                    }
                    Action::Send(conn) => {
                        if let Some(link) = owner.links.get(&conn).copied() {
                            self.send(process, link);
                        }
                    }
                }
            } else if let Some(event) = owner.core.poll_event() {
                self.happened(process, event);
            } else {
                return natives.processes[process].arm(stage, process);
            }
        }
    }

    /// A core has something to send.
    fn send(&mut self, process: usize, link: u32) {
        let World { stage, cluster, natives, .. } = &mut *self.world;
        if !natives.link(link).stands {
            return;
        }
        let conn = natives.link(link).conn;
        let owner = &mut natives.processes[process];
        let (now, mut out) = (owner.now(stage), Vec::new());
        owner.core.poll_output(now, conn, usize::MAX, &mut out);
        let bytes = Bytes::from(out.concat());
        let Some(map) = cluster.map() else { return };
        let member_of = |key: &[u8]| map.default_pool().member_of(KeyHash::of(CLUSTER, key));
        match owner.promises.leave(conn, &bytes, member_of) {
            Ok(said) => {
                said.iter().for_each(|said| note!(stage.book, "native client {process} on {link}: {said}"));
            }
            Err((rule, what)) => stage.book.fail(rule, None, what),
        }
        if !bytes.is_empty() {
            natives.send_up(stage, link, bytes);
        }
    }

    fn happened(&mut self, process: usize, event: Happened) {
        let owner = &mut self.world.natives.processes[process];
        match event {
            Happened::Head(id, meta, len) => {
                if let Some(caller) = owner.callers.get_mut(&id) {
                    caller.found = Some(meta);
                }
                // What does not fit is not wanted, and may be here already.
                if owner.buffers.refuses(id, len) {
                    owner.core.cancel(id);
                }
            }
            Happened::Data(id, bytes) => {
                if let Some(caller) = owner.callers.get_mut(&id) {
                    caller.value.extend_from_slice(&bytes);
                }
                owner.buffers.fill(id, &bytes);
                owner.core.taken(id, bytes.len() as u64);
            }
            Happened::Kept(id, len) => {
                let bytes = owner.buffers.keep(id, len).unwrap_or_default();
                if let Some(caller) = owner.callers.get_mut(&id) {
                    caller.value.extend_from_slice(bytes);
                }
                owner.core.taken(id, len as u64);
            }
            Happened::Wants(id) => {
                let (life, stage) = (owner.life, &mut self.world.stage);
                let pause_us = stage.options.natives.map_or(0, |natives| natives.feed_pause_us);
                if pause_us > 0 && stage.rng.natives.once_in(PAUSES) {
                    let after = stage.rng.natives.range(1, pause_us);
                    let event = NativeEvent::Feed { process: process as u16, life, id };
                    return stage.after(after, Event::Native(event));
                }
                self.feed(process, id);
            }
            Happened::Done(id, result) => self.done(process, id, result),
        }
    }

    /// Gives some more of a value that is given bit by bit.
    fn feed(&mut self, process: usize, id: RequestId) {
        let World { stage, natives, .. } = &mut *self.world;
        let owner = &mut natives.processes[process];
        let now = owner.now(stage);
        let Some(caller) = owner.callers.get_mut(&id) else { return };
        let most = stage.rng.natives.range(1, FED_BYTES) as usize;
        let bytes = caller.unfed.split_to(most.min(caller.unfed.len()));
        if !bytes.is_empty() {
            owner.core.feed(now, id, bytes);
        }
    }

    fn done(&mut self, process: usize, id: RequestId, result: Result<Done, Error>) {
        if self.hear_of_scan(process, id, &result) {
            return;
        }
        match self.world.natives.processes[process].callers.remove(&id) {
            Some(caller) => {
                let caller = self.take_back(process, id, caller, &result);
                if let Some((caller, result)) = self.reads_on(process, caller, result) {
                    self.end(caller, result);
                }
            }
            None => {
                let what = format!("a native client has ended {id:?} twice, or nobody asked it");
                self.world.stage.book.fail("reply", None, what);
            }
        }
    }

    fn end(&mut self, caller: Caller, result: Result<Done, Error>) {
        let World { stage, cluster, clients, .. } = &mut *self.world;
        if !clients.has_ended(caller.call) {
            let call = caller.call;
            clients.end(stage, cluster.map(), call, outcome_of(caller, result));
        }
    }
}

/// Connections.
impl Natively<'_> {
    /// A connection stands, or nobody listens there.
    fn dialled(&mut self, link: u32) {
        let World { cluster, natives, .. } = &mut *self.world;
        let node = natives.link(link).node;
        let listens = cluster.nodes[node].state != Life::Down;
        let Some((process, owner)) = natives.owner(link) else { return };
        if !listens {
            return self.lost(link);
        }
        let is_wanted = owner.links.values().any(|one| *one == link);
        natives.link(link).port = Some(Port::default());
        natives.link(link).stands = true;
        if is_wanted {
            let conn = natives.link(link).conn;
            natives.processes[process].core.connected(conn);
            self.stir(process);
        }
    }

    fn lost(&mut self, link: u32) {
        let World { stage, natives, .. } = &mut *self.world;
        let conn = natives.link(link).conn;
        let Some((process, owner)) = natives.owner(link) else { return };
        owner.promises.forget(conn);
        if owner.links.get(&conn) == Some(&link) {
            owner.links.remove(&conn);
        }
        let now = owner.now(stage);
        owner.core.lost(now, conn);
        self.stir(process);
    }

    fn arrives_up(&mut self, link: u32) {
        let World { stage, natives, .. } = &mut *self.world;
        let node = natives.link(link).node;
        if let Some(bytes) = natives.link(link).up.pop(stage.now())
            && natives.link(link).port.is_some()
        {
            self.world.give(node, Input::Native { link, bytes });
        }
    }

    fn port(&mut self, link: u32) -> Option<&mut Port> {
        self.world.natives.link(link).port.as_mut()
    }
}

/// Nodes' ends of them.
impl Natively<'_> {
    /// A node reads bytes.
    pub(super) fn read(&mut self, link: u32, bytes: &Bytes) {
        let Some(NativeClients { credits, .. }) = self.world.stage.options.natives else { return };
        let Some(port) = self.port(link) else { return };
        port.take(bytes);
        while let Some(port) = self.port(link) {
            match port.next(credits) {
                Ok(None) => break,
                Ok(Some(heard)) => self.hear(link, credits, heard),
                Err(breach) => return self.breaks(link, breach),
            }
        }
        self.flush(link);
    }

    fn hear(&mut self, link: u32, credits: u32, heard: Heard) {
        let node = self.world.natives.link(link).node;
        match heard {
            Heard::Hello(version, both) => {
                let id = self.world.cluster.nodes[node].id.node;
                if let Some(port) = self.port(link) {
                    port.welcome(version, both, credits, id);
                }
            }
            Heard::MapWanted(has) => {
                if let (Some(map), Some(port)) = (self.map_of(node), self.port(link)) {
                    port.tell_whole_map(map, has);
                }
            }
            Heard::Request(id, request) => self.begin(link, id, *request),
            Heard::Scan(id, ask) => self.begin_scan(link, id, ask.scan),
            Heard::Cancel(id) => {
                if let Some(put) = self.port(link).and_then(|port| port.cancel(id)) {
                    self.drop_put(put);
                }
            }
            Heard::Window(window) => {
                if let Some(port) = self.port(link) {
                    port.granted(window);
                }
            }
            Heard::Piece(piece) if self.port(link).is_some_and(|port| port.puts(piece.id)) => {
                self.take_cell(link, &piece);
            }
            Heard::Piece(piece) => self.take_piece(link, &piece),
        }
    }

    fn take_piece(&mut self, link: u32, piece: &Piece) {
        // A server may have had enough of a value before its end.
        let has_enough = self.world.stage.rng.natives.once_in(ENOUGH);
        let Some(port) = self.port(link) else { return };
        match port.take_piece(piece) {
            Ok(Some((request, value))) => self.submit(link, piece.id, request, Some(value)),
            Ok(None) if has_enough => port.answer_early(piece.id, Code::Busy),
            Ok(None) => {}
            Err(breach) => self.breaks(link, breach),
        }
    }

    pub(super) fn breaks(&mut self, link: u32, breach: Breach) {
        let what = format!("a native client breaks the protocol on {link}: {breach:?}");
        self.world.stage.book.fail("protocol", None, what);
    }

    fn begin(&mut self, link: u32, id: u64, request: Request) {
        let now = self.world.stage.now();
        self.world.natives.vows.hear(now, (link, id), &request.ask);
        let Some(port) = self.port(link) else { return };
        if let Ask::Store(StoreAsk { content: Content::Pieces(len), .. }) = request.ask {
            return port.expect_pieces(id, request, len);
        }
        match &request.ask {
            Ask::Fetch(fetch) => return self.fetch(link, id, &request.key, fetch),
            Ask::Put(put) => return self.put(link, id, &request.key, (**put).clone()),
            Ask::Begin(begin) => {
                let Some(chunks) = self.places_for(link, &request.key, begin) else {
                    return self.say(link, id, Code::NotDirect);
                };
                if let Some(port) = self.port(link) {
                    port.expect_id(id, chunks);
                }
            }
            Ask::Commit(commit) if !self.may_be(link, &request.key, &commit.written) => {
                return self.say(link, id, Code::NotDirect);
            }
            ask => {
                let wants = Wants::of(ask);
                if let Some(port) = self.port(link) {
                    port.expect(id, wants);
                }
            }
        }
        self.submit(link, id, request, None);
    }

    /// A page of keys is asked for.
    fn begin_scan(&mut self, link: u32, id: u64, scan: Scan) {
        let node = self.world.natives.link(link).node;
        if let Some(port) = self.port(link) {
            port.expect(id, Wants::Code);
        }
        let nodes = &self.world.cluster.nodes;
        let host = nodes.host(nodes.hosts_on(node).start);
        let Some(member) = host.and_then(|host| proto::locate_scan(host, &scan).member) else {
            return self.settle(link, id, &Outcome::Failed(Failure::Unavailable));
        };
        let host = nodes.host_for(node, member.group);
        let (token, request) = (Token([u64::from(link), id]), Asked::scan(scan));
        self.world.submit(host, Submission { token, member: None, request });
    }

    /// A request is whole, and begins at a host; its value is this, if it came in pieces.
    fn submit(&mut self, link: u32, id: u64, request: Request, value: Option<Bytes>) {
        let node = self.world.natives.link(link).node;
        let Request { key, once, ask, .. } = request;
        let Some(host) = self.host_of(node, &key) else {
            return self.settle(link, id, &Outcome::Failed(Failure::Unavailable));
        };
        // Servers try this short way first. Half of the reads leave it out.
        let goes_to_chunks = matches!(&ask, Ask::Get(get) if get.direct);
        let read = if let Ask::Get(get) = &ask { Some(*get) } else { None };
        let reads = matches!(&ask, Ask::Get(get) if get.touch.is_none());
        if reads && self.world.stage.rng.natives.percent(50) {
            let World { stage, cluster, .. } = &mut *self.world;
            if let Some(outcome) = cluster.nodes.quick_read(stage, host, QuickRead::plain(&key)) {
                return self.settle(link, id, &outcome);
            }
        }
        // Nothing here expires, so the second does not matter.
        let op = match (ask.operation(UnixSeconds(0)), value) {
            (Some(Op::Store(store)), Some(value)) => Op::Store(Store { value, ..store }),
            (Some(op), _) => op,
            (None, _) => return,
        };
        let op = self.placed(host, &key, op);
        let request = Asked::on(key, op).once(once);
        let token = Token([u64::from(link), id]);
        let submission = Submission { token, member: None, request };
        match read {
            Some(_) if goes_to_chunks => self.world.submit(host, submission),
            Some(get) => {
                self.world.streams.expect(token, get);
                self.world.submit_or_stream(host, submission);
            }
            None => self.world.submit_or_stream(host, submission),
        }
    }

    /// What asks for an id says in which pool the chunks are to lie, as a node knows.
    fn placed(&self, host: usize, key: &Key, op: Op) -> Op {
        let Op::Object(ObjectOp::Begin(begin)) = op else { return op };
        let machine = self.world.cluster.nodes.host(host);
        let into = |machine: &proto::Host| {
            let group = machine.locate(key).member?.group;
            Some(machine.map()?.catalog.conversions_into(key.namespace(), group))
        };
        let conversions = machine.and_then(into).unwrap_or(begin.conversions);
        Op::Object(ObjectOp::Begin(Begin { conversions, ..begin }))
    }

    /// The host that sees to a key; none if nobody knows that yet.
    fn host_of(&self, node: usize, key: &[u8]) -> Option<usize> {
        let nodes = &self.world.cluster.nodes;
        let first = nodes.hosts_on(node).start;
        match nodes.host(first)?.locate(key).member {
            Some(MemberId { group, .. }) => Some(nodes.host_for(node, group)),
            // The host lets requests wait for a map.
            None => (nodes.hosts_on(node).len() == 1).then_some(first),
        }
    }

    /// A host has answered.
    pub(super) fn answer(&mut self, token: Token, outcome: &Outcome) {
        let Token([link, id]) = token;
        let link = link as u32;
        self.settle(link, id, outcome);
        self.flush(link);
    }

    fn settle(&mut self, link: u32, id: u64, outcome: &Outcome) {
        let World { stage, cluster, natives, .. } = &mut *self.world;
        let timing = stage.options.timing;
        let term_of = |member: MemberId| {
            let role = cluster.map()?.group(member.group)?.data_role(member.role)?;
            Some(role.term)
        };
        let (now, open_us) = (stage.now(), timing.object_deadline_us);
        if let Err((rule, what)) = natives.vows.settle(now, (link, id), outcome, open_us, term_of) {
            stage.book.fail(rule, None, what);
        }
        let (pin_us, open_ms) = (timing.pin_us, (timing.object_deadline_us / 1000) as u32);
        let around = Around { map: cluster.nodes.map_of(natives.link(link).node), pin_us, open_ms };
        if natives.link(link).port.as_mut().is_some_and(|port| !port.settle(id, outcome, around)) {
            let what = format!("request {id} on {link} is answered again, or was never asked");
            self.world.stage.book.fail("reply", None, what);
        }
    }

    /// A node tells its native clients what is new of the map.
    pub(super) fn tell_maps(&mut self, node: usize) {
        if self.world.cluster.nodes.is_up(node) {
            self.world.natives.at(node).into_iter().for_each(|link| self.flush(link));
        }
    }

    /// Sends what there is to be sent.
    fn flush(&mut self, link: u32) {
        let World { stage, cluster, natives, .. } = &mut *self.world;
        let node = natives.link(link).node;
        let map = cluster.nodes.map_of(node);
        let breaks_off = stage.rng.natives.once_in(ENOUGH);
        let Some(port) = &mut natives.link(link).port else { return };
        if breaks_off {
            port.break_off();
        }
        if let Some(map) = map.filter(|map| port.lacks_map(Some(map.version))) {
            port.tell_map(RouteMap::of(map));
        }
        let bytes = port.take_output();
        if !bytes.is_empty() {
            natives.send_down(stage, link, bytes);
        }
    }

    fn map_of(&self, node: usize) -> Option<RouteMap> {
        self.world.cluster.nodes.map_of(node).map(RouteMap::of)
    }
}

/// The end of a run.
impl Natively<'_> {
    /// How many processes there are.
    pub(crate) fn count(&self) -> usize {
        self.world.natives.processes.len()
    }

    /// A read of some key by a process, which nobody else waits for; none if it has no keys.
    pub(crate) fn last_read(&mut self, process: usize) -> Option<(usize, u32)> {
        let namespace = self.world.natives.processes[process].namespace;
        let key = self.world.clients.keys_in(namespace).first().copied()?;
        let timing = self.world.stage.options.timing;
        let timeout_us = 4 * timing.request_deadline_us + 40 * timing.node_lease_us;
        let ask = Call::native(NOBODY, key, Op::Get(Get::default()));
        Some((key, self.ask(process, ask, Some(timeout_us))))
    }
}
