//! Clients: their keys, their calls, what they are told, and whether a single memcached could have said it.

pub(crate) mod calls;
mod sessions;
mod watch;

use std::collections::BTreeMap;

use proto::Token;
use types::op::{Failure, Flush, FlushAt, Op, Outcome, Request};
use types::{Catalog, ClusterMap, EvictPolicy, MemberId, NamespaceId, Term, split_key};

use crate::cluster::Cluster;
use crate::cluster::nodes::Nodes;
use crate::cluster::process::{CLUSTER, Input, Life, Submission, request};
use crate::options::Options;
use crate::oracle::{Contradiction, Fate, Oracle, Vanishing};
use crate::stage::Stage;
use crate::stage::book::Suspect;
use crate::stage::brief::{brief_op, brief_outcome, outcome_number};
use crate::stage::queue::Event;
use calls::{Ask, Call, Client, Key, NOBODY, NOWHERE, Subject, fate_of, key_space};
use sessions::{Named, Sessions, is_open};
use watch::Turns;
pub(crate) use watch::Watch;

/// Longest pause of a client within a burst.
const SHORT_THINK_US: u64 = 100;
/// The newest calls, among which those are that run.
const NEWEST_CALLS: usize = 4096;

/// A call's number at the oracle of a key.
#[derive(Clone, Copy, Debug)]
struct AtOracle {
    key: usize,
    call: u32,
}

/// Whether the item of `key` may be evicted, where `evicts` holds for those namespaces that say nothing.
fn vanishing(map: &ClusterMap, key: &Key, evicts: bool) -> Vanishing {
    let namespace = map.catalog.namespace(split_key(&key.bytes).0);
    let policy = namespace.map(|known| known.policy.evict).unwrap_or_default();
    let may_go = match policy {
        EvictPolicy::Node => evicts,
        EvictPolicy::Evict => true,
        EvictPolicy::Keep => false,
    };
    if may_go { Vanishing::Anytime } else { Vanishing::Never }
}

/// All clients, and the oracles of their keys.
#[derive(Default)]
pub(crate) struct Clients {
    keys: Vec<Key>,
    /// By key.
    oracles: Vec<Oracle>,
    /// By key.
    turns: Vec<Turns>,
    clients: Vec<Client>,
    /// By token.
    calls: Vec<Call>,
    /// Of each flush: the calls at the oracles of the keys concerned.
    flushes: Vec<Vec<AtOracle>>,
    /// By token, of the calls that no client made.
    answers: Vec<Option<Outcome>>,
    /// Calls that clients have begun.
    begun: u32,
    sessions: Sessions,
    /// By token, of the calls under names that run.
    named: BTreeMap<u32, Named>,
    stopped: bool,
}

impl Clients {
    /// Draws the key space and lets the clients begin. The cluster has formed.
    pub(crate) fn admit(&mut self, stage: &mut Stage, map: &ClusterMap) {
        self.keys = key_space(&stage.options, map, CLUSTER, &mut stage.rng.clients);
        let evicts = stage.options.memory.evict;
        self.oracles = self.keys.iter().map(|key| Oracle::new(vanishing(map, key, evicts))).collect();
        self.turns = vec![Turns::default(); self.keys.len()];
        for client in 0..stage.options.clients {
            let node = stage.rng.clients.index(stage.options.nodes);
            self.clients.push(Client::new(node, self.keys.len()));
            client_later(stage, client as u16);
        }
    }

    /// No client begins anything more.
    pub(crate) fn stop(&mut self, stage: &mut Stage) {
        self.stopped = true;
        let open: Vec<Named> = self.clients.iter_mut().filter_map(|client| client.again.take()).collect();
        for named in open {
            if let Some(Subject::Key { key, call }) = named.subject {
                self.note_end_at(stage, AtOracle { key: usize::from(key), call }, &Fate::Unknown);
            }
        }
    }

    // --- what there is ---

    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    pub(crate) fn oracle(&self, key: usize) -> &Oracle {
        &self.oracles[key]
    }

    /// Keys whose history was not checked to the end.
    pub(crate) fn keys_given_up(&self) -> u64 {
        self.oracles.iter().filter(|oracle| !oracle.is_complete()).count() as u64
    }

    /// Whether clients begin nothing more.
    pub(crate) fn have_stopped(&self) -> bool {
        self.stopped
    }

    /// How many calls clients have begun.
    pub(crate) fn begun(&self) -> u32 {
        self.begun
    }

    /// Whether nothing was ever asked, and nothing can be.
    pub(crate) fn are_absent(&self) -> bool {
        self.keys.is_empty() && self.calls.is_empty()
    }

    /// Whether nobody waits for an answer.
    pub(crate) fn are_idle(&self) -> bool {
        let newest = self.calls.iter().rev().take(NEWEST_CALLS);
        self.clients.iter().all(|client| client.running.is_none()) && newest.into_iter().all(|it| it.ended)
    }

    /// How many calls have not ended.
    pub(crate) fn running_count(&self) -> usize {
        self.calls.iter().filter(|call| !call.ended).count()
    }

    pub(crate) fn has_ended(&self, call: u32) -> bool {
        self.calls[call as usize].ended
    }

    /// What became of a call that no client made; none while it runs.
    pub(crate) fn answer(&self, call: u32) -> Option<&Outcome> {
        self.answers.get(call as usize)?.as_ref()
    }

    // --- calls begin ---

    /// A client may do something: what it asks.
    pub(crate) fn turn(&mut self, stage: &mut Stage, nodes: &Nodes, client: u16) -> Option<Ask> {
        let state = &mut self.clients[usize::from(client)];
        if self.stopped || state.running.is_some() {
            return None;
        }
        let node = state.node;
        if nodes[node].state == Life::Down || nodes.map_of(node).is_none() {
            state.node = stage.rng.clients.index(stage.options.nodes);
            client_later(stage, client);
            return None;
        }
        if let Some(named) = self.clients[usize::from(client)].again.take() {
            stage.book.stats.asked_again += 1;
            return Some(Ask { client, node, key: named.key, op: named.op.clone(), named: Some(named) });
        }
        let key = self.pick_key(stage, usize::from(client));
        let op = self.draw(stage, usize::from(client), key);
        Some(self.under_a_name(stage, Ask { client, node, key, op, named: None }))
    }

    /// The same for a client that shares a core with others, whose keys are those of one namespace.
    pub(crate) fn native_turn(
        &mut self,
        stage: &mut Stage,
        client: u16,
        namespace: NamespaceId,
    ) -> Option<Ask> {
        if self.stopped || self.clients[usize::from(client)].running.is_some() {
            return None;
        }
        let keys = self.keys_in(namespace);
        if keys.is_empty() {
            return None;
        }
        let key = stage.rng.clients.pick(&keys);
        let op = self.draw(stage, usize::from(client), key);
        Some(Ask::native(client, key, op))
    }

    /// The keys of a namespace.
    pub(crate) fn keys_in(&self, namespace: NamespaceId) -> Vec<usize> {
        (0..self.keys.len()).filter(|key| split_key(&self.keys[*key].bytes).0 == namespace).collect()
    }

    /// Where clients have sessions a write gets a name; or a session is begun in its place.
    fn under_a_name(&mut self, stage: &Stage, ask: Ask) -> Ask {
        if stage.options.sessions == 0 || !ask.op.can_be_done_once() {
            return ask;
        }
        let member = self.keys[ask.key].member;
        let process = usize::from(ask.client) % stage.options.sessions;
        let Some(once) = self.sessions.name(process, member) else {
            return Ask { op: Op::Session, ..ask };
        };
        let named = Named { once, tries: 0, subject: None, key: ask.key, op: ask.op.clone() };
        Ask { named: Some(named), ..ask }
    }

    fn pick_key(&self, stage: &mut Stage, client: usize) -> usize {
        let Options { faithful, groups, k, .. } = stage.options;
        if faithful {
            let role = |member: MemberId| member.group.0 as usize * k + usize::from(member.role.0);
            let is_mine = |key: &usize| role(self.keys[*key].member) == client % (groups * k);
            let mine: Vec<usize> = (0..self.keys.len()).filter(is_mine).collect();
            if !mine.is_empty() {
                return stage.rng.clients.pick(&mine);
            }
        }
        stage.rng.clients.index(self.keys.len())
    }

    fn draw(&mut self, stage: &mut Stage, client: usize, key: usize) -> Op {
        let now = stage.unix();
        let rng = &mut stage.rng.clients;
        let state = &mut self.clients[client];
        let op = state.draw(client, key, &self.keys[key], &stage.options, now, rng);
        state.begun += 1;
        self.begun += 1;
        op
    }

    /// A call begins. The result names it.
    pub(crate) fn begin(&mut self, stage: &mut Stage, nodes: &Nodes, ask: &Ask) -> u32 {
        let before = ask.named.as_ref().and_then(|named| named.subject);
        let subject = match (before, &ask.op) {
            // The same call as far as its key is concerned.
            (Some(subject), _) => subject,
            (None, Op::Flush(_)) => self.flushed(stage, ask),
            (None, _) => Subject::Key {
                key: ask.key as u16,
                call: self.oracles[ask.key].invoke(ask.op.clone(), stage.least_unix()),
            },
        };
        self.note_turn(ask);
        let Ask { client, node, key, .. } = *ask;
        let life = if node == NOWHERE { 0 } else { nodes[node].life };
        self.calls.push(Call { client, node: node as u16, life, subject, ended: false, told: false });
        if client == NOBODY {
            self.answers.resize(self.calls.len(), None);
        }
        let call = (self.calls.len() - 1) as u32;
        if let Some(named) = &ask.named {
            self.named.insert(call, Named { subject: Some(subject), ..named.clone() });
        }
        self.note_begin(stage, call, ask);
        if let Subject::Key { .. } = subject {
            stage.book.mix(u64::from(call) << 20 ^ key as u64 ^ (node as u64) << 60);
        }
        call
    }

    /// What may come or go by a call: of a flush all that it is about.
    fn note_turn(&mut self, ask: &Ask) {
        let calls = self.calls.len();
        let keys =
            if let Op::Flush(_) = ask.op { self.keys_of(self.keys[ask.key].member) } else { vec![ask.key] };
        keys.into_iter().for_each(|key| self.turns[key].note(&ask.op, calls));
    }

    /// A flush concerns all keys of the key's namespace at the member that it belongs to.
    fn flushed(&mut self, stage: &Stage, ask: &Ask) -> Subject {
        let (member, unix) = (self.keys[ask.key].member, stage.least_unix());
        let namespace = |key: usize| split_key(&self.keys[key].bytes).0;
        let mut concerned = self.keys_of(member);
        concerned.retain(|key| namespace(*key) == namespace(ask.key));
        let concerned = concerned.into_iter();
        let list =
            concerned.map(|key| AtOracle { key, call: self.oracles[key].invoke(ask.op.clone(), unix) });
        let list = list.collect();
        self.flushes.push(list);
        Subject::Member { member, list: (self.flushes.len() - 1) as u32 }
    }

    fn note_begin(&self, stage: &mut Stage, call: u32, ask: &Ask) {
        let Ask { client, node, key, ref op, ref named } = *ask;
        let Key { member, bytes, .. } = &self.keys[key];
        if let Op::Flush(_) = op {
            note!(stage.book, "call {call} of client {client} at node-{node}: flush of {member}");
        } else {
            note!(
                stage.book,
                "call {call} of client {client} at {} on \"{}\" ({member}): {}{}",
                if node == NOWHERE { "a native client".to_owned() } else { format!("node-{node}") },
                bytes.escape_ascii(),
                brief_op(op),
                named.as_ref().map(|named| format!(" as {:?}", named.once)).unwrap_or_default()
            );
        }
    }

    /// What the node of a call is given.
    pub(crate) fn submission(&self, nodes: &Nodes, call: u32, ask: Ask) -> Input {
        let key = &self.keys[ask.key];
        let once = ask.named.as_ref().map(|named| named.once);
        let (member, request) = match ask.op {
            Op::Flush(_) => (Some(key.member), Request { key: None, op: ask.op, once: None, via: None }),
            op => (None, request(&key.bytes, op).once(once)),
        };
        let submission = Submission { token: Token([u64::from(call), 0]), member, request };
        Input::Submit { host: nodes.host_for(ask.node, key.member.group), submission }
    }

    /// The client that has begun a call waits for its answer, unless that has come already.
    pub(crate) fn wait(&mut self, stage: &mut Stage, client: u16, call: u32) {
        if self.has_ended(call) {
            return;
        }
        self.clients[usize::from(client)].running = Some(call);
        if stage.options.patience_us != u64::MAX {
            stage.after(stage.options.patience_us, Event::Patience { client, call });
        }
    }

    // --- calls end ---

    /// A host answers.
    pub(crate) fn reply(
        &mut self,
        stage: &mut Stage,
        cluster: &Cluster,
        host: usize,
        Token([number, _]): Token,
        outcome: Outcome,
    ) {
        let node = cluster.nodes.node_of(host);
        let Some(call) = self.calls.get_mut(number as usize) else {
            let what = format!("{node} answers call {number}, which nobody made");
            return stage.book.fail("reply", None, what);
        };
        let mine = usize::from(call.node) == node && call.life == cluster.nodes[node].life;
        if !mine || std::mem::replace(&mut call.told, true) {
            let id = cluster.nodes[node].id;
            let what = format!("{id} answers call {number} again, or for another");
            return stage.book.fail("reply", None, what);
        }
        // Who has given up hears no answer any more. The call counts as unknown, and the host
        // has to answer all the same, once.
        if !call.ended {
            self.end(stage, cluster.map(), number as u32, outcome);
        }
    }

    /// A call ends with an answer.
    pub(crate) fn end(&mut self, stage: &mut Stage, map: Option<&ClusterMap>, call: u32, outcome: Outcome) {
        let client = self.calls[call as usize].client;
        note!(stage.book, "call {call} of client {client} ends: {}", brief_outcome(&outcome));
        if client == NOBODY && (call as usize) < self.answers.len() {
            self.answers[call as usize] = Some(outcome.clone());
        }
        stage.book.mix(u64::from(call) << 8 ^ outcome_number(&outcome));
        self.check_failure_is_allowed(stage, map, call, &outcome);
        if is_open(&outcome) && self.make_again(stage, call) {
            return;
        }
        self.note_session(stage, call, &outcome);
        let fate = fate_of(outcome);
        match &fate {
            Fate::Answered(_) => stage.book.stats.answered += 1,
            Fate::Unknown => stage.book.stats.unknown += 1,
            _ => stage.book.stats.refused += 1,
        }
        self.remember(call, &fate);
        self.note_end(stage, call, &fate);
        if client != NOBODY {
            self.clients[usize::from(client)].running = None;
            client_later(stage, client);
        }
    }

    fn check_failure_is_allowed(
        &self,
        stage: &mut Stage,
        map: Option<&ClusterMap>,
        call: u32,
        outcome: &Outcome,
    ) {
        let Outcome::Failed(failure) = outcome else { return };
        let member = match self.calls[call as usize].subject {
            Subject::Key { key, .. } => self.keys[usize::from(key)].member,
            Subject::Member { member, .. } => member,
        };
        let role = map.and_then(|map| map.group(member.group)?.data_role(member.role)).copied();
        let status = role.map(|role| role.status);
        let allowed = match failure {
            // Not everybody has heard yet that the role has begun anew.
            Failure::Lost => role.is_some_and(|role| role.status.is_lost() || role.origin > Term(1)),
            // A seed damages no memory; and to find the right primary is the nodes' business.
            Failure::Corrupt | Failure::WrongPrimary | Failure::Departed(_) => false,
            Failure::NoSession => self.named.contains_key(&call),
            _ => true,
        };
        if !allowed {
            let what = format!("call {call} ends with {failure:?} while {member} is {status:?}");
            stage.book.fail("answer", Some(Suspect::Group(member.group)), what);
        }
    }

    /// A call may have been done or not: if it has a name its client makes it again, with another node, and waits for that. Whether it does.
    fn make_again(&mut self, stage: &mut Stage, call: u32) -> bool {
        if self.stopped {
            return false;
        }
        let Some(again) = self.named.get(&call).and_then(|named| named.clone().again()) else { return false };
        self.named.remove(&call);
        let state = &mut self.calls[call as usize];
        state.ended = true;
        let client = state.client;
        let state = &mut self.clients[usize::from(client)];
        (state.running, state.again) = (None, Some(again));
        state.node = stage.rng.clients.index(stage.options.nodes);
        client_later(stage, client);
        true
    }

    /// What a call says of the session that it was made under, or has begun.
    fn note_session(&mut self, stage: &Stage, call: u32, outcome: &Outcome) {
        let Call { client, subject, .. } = self.calls[call as usize];
        let Subject::Key { key, .. } = subject else { return };
        let member = self.keys[usize::from(key)].member;
        let process = usize::from(client) % stage.options.sessions.max(1);
        if let Outcome::Session(id) = outcome {
            self.sessions.begin(process, member, *id);
        }
        let Some(named) = self.named.remove(&call) else { return };
        self.sessions.forget(process, member, &named.once);
        if matches!(outcome, Outcome::Failed(Failure::NoSession | Failure::Expired | Failure::Unknown)) {
            self.sessions.end(process, member, named.once.session);
        }
    }

    /// What a client knows of a key from the answer.
    fn remember(&mut self, call: u32, fate: &Fate) {
        let call = self.calls[call as usize];
        let (Subject::Key { key, .. }, false) = (call.subject, call.client == NOBODY) else { return };
        let seen = &mut self.clients[usize::from(call.client)].seen[usize::from(key)];
        match fate {
            Fate::Answered(Outcome::Hit(view) | Outcome::Stored(view) | Outcome::Number(_, view)) => {
                *seen = view.version;
            }
            // So that it reads the key next, and does not fail in the same way for ever.
            Fate::Answered(Outcome::Exists) => *seen = 0,
            _ => {}
        }
    }

    fn note_end(&mut self, stage: &mut Stage, call: u32, fate: &Fate) {
        let call = &mut self.calls[call as usize];
        call.ended = true;
        match call.subject {
            Subject::Key { key, call } => {
                self.note_end_at(stage, AtOracle { key: usize::from(key), call }, fate);
            }
            Subject::Member { list, .. } => {
                for at in std::mem::take(&mut self.flushes[list as usize]) {
                    self.note_end_at(stage, at, fate);
                }
            }
        }
    }

    fn note_end_at(&mut self, stage: &mut Stage, AtOracle { key, call }: AtOracle, fate: &Fate) {
        let ended = self.oracles[key].close(call, fate.clone(), stage.most_unix());
        if let Err(Contradiction { call, states }) = ended {
            let Key { bytes, member, .. } = &self.keys[key];
            let what = format!(
                "\"{}\" of {member}: call {call} cannot be explained; the key could be: {}",
                bytes.escape_ascii(),
                states.join(" | ")
            );
            stage.book.fail("linearizability", Some(Suspect::Key(key)), what);
        }
    }

    /// The client of a running call closes its connection; false if nobody waits for it, or it is nobody's.
    pub(crate) fn leave(&mut self, stage: &mut Stage, call: u32) -> bool {
        let state = &mut self.calls[call as usize];
        let client = state.client;
        if client == NOBODY || state.ended {
            return false;
        }
        state.told = true;
        self.give_up(stage, client, call);
        true
    }

    /// A client gives up, or learns that its node is gone.
    pub(crate) fn give_up(&mut self, stage: &mut Stage, client: u16, call: u32) {
        if self.has_ended(call) {
            return;
        }
        note!(stage.book, "client {client} gives call {call} up");
        if self.make_again(stage, call) {
            return;
        }
        self.note_session(stage, call, &Outcome::Failed(Failure::Unknown));
        stage.book.stats.unknown += 1;
        self.note_end(stage, call, &Fate::Unknown);
        if client != NOBODY {
            let state = &mut self.clients[usize::from(client)];
            state.running = None;
            state.node = stage.rng.clients.index(stage.options.nodes);
            client_later(stage, client);
        }
    }

    /// The calls that ran at `node` have nobody left to answer them.
    pub(crate) fn drop_calls_at(&mut self, stage: &mut Stage, nodes: &Nodes, node: usize) {
        let life = nodes[node].life;
        for (call, state) in (0u32..).zip(&self.calls) {
            if !state.ended && usize::from(state.node) == node && state.life == life {
                let after = stage.rng.clients.below(stage.options.network.notice_us + 1);
                stage.after(after, Event::Dropped { client: state.client, call });
            }
        }
    }

    // --- losses ---

    /// A role that was lost begins anew: at this moment, and at no other, all its keys vanish.
    pub(crate) fn begin_anew(&mut self, stage: &mut Stage, member: MemberId) {
        note!(stage.book, "{member} begins anew");
        stage.book.stats.begun_anew += 1;
        for key in self.keys_of(member) {
            let call = self.oracles[key].invoke(
                Op::Flush(Flush { namespace: NamespaceId::DEFAULT, at: FlushAt::Now }),
                stage.least_unix(),
            );
            self.note_end_at(stage, AtOracle { key, call }, &Fate::Answered(Outcome::Flushed));
        }
    }

    /// Items of namespaces that `catalog` had and has no more may be gone from now on, at each role at another time.
    pub(crate) fn let_vanish(&mut self, catalog: &Catalog) {
        for (key, oracle) in self.keys.iter().zip(&mut self.oracles) {
            if catalog.is_gone(split_key(&key.bytes).0) {
                oracle.let_vanish();
            }
        }
    }

    fn keys_of(&self, member: MemberId) -> Vec<usize> {
        (0..self.keys.len()).filter(|key| self.keys[*key].member == member).collect()
    }
}

/// The next turn of a client.
fn client_later(stage: &mut Stage, client: u16) {
    let Options { think_us, bursts_percent, .. } = stage.options;
    let long = stage.rng.clients.percent(bursts_percent);
    // Long pauses are so long that the mean stays what it is without bursts.
    let most = match (bursts_percent, long) {
        (0, _) => think_us,
        (percent, true) => think_us * 100 / percent,
        (_, false) => think_us.min(SHORT_THINK_US),
    };
    let after = 1 + stage.rng.clients.below(most + 1);
    stage.after(after, Event::Client { client });
}
