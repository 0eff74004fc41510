//! Clients: their calls, and what they are told.

use proto::{Read, Token};
use types::op::{Failure, ItemView, Op, Outcome, Request};
use types::{MemberId, Term};

use super::super::book::Suspect;
use super::super::calls::{Client, Running, Subject, key_space};
use super::super::options::Options;
use super::super::oracle::{Contradiction, Fate, Oracle, Vanishing, brief_op, brief_outcome};
use super::super::process::{CLUSTER, Input, Life, request, unix_at, unix_bounds};
use super::super::queue::Event;
use super::World;

/// Longest pause of a client within a burst.
const SHORT_THINK_US: u64 = 100;

/// Client number of calls that no client made: those of stories and of final reads.
pub(crate) const NOBODY: u16 = u16::MAX;

impl World {
    /// Draws the key space and lets the clients begin. The cluster must have formed.
    pub(crate) fn admit_clients(&mut self) {
        let Some(map) = self.store.map() else { return };
        self.keys = key_space(&self.stage.options, map, CLUSTER, &mut self.stage.rng.clients);
        let vanishing = if self.stage.options.memory.evict { Vanishing::Anytime } else { Vanishing::Never };
        self.oracles = self.keys.iter().map(|_| Oracle::new(vanishing)).collect();
        for client in 0..self.stage.options.clients {
            let node = self.stage.rng.clients.index(self.stage.options.nodes);
            self.clients.push(Client::new(node, self.keys.len()));
            self.client_later(client);
        }
    }

    fn client_later(&mut self, client: usize) {
        let Options { think_us, bursts_percent, .. } = self.stage.options;
        let long = self.stage.rng.clients.percent(bursts_percent);
        let most = match (bursts_percent, long) {
            (0, _) => think_us,
            (percent, true) => think_us * 100 / percent,
            (_, false) => think_us.min(SHORT_THINK_US),
        };
        let after = 1 + self.stage.rng.clients.below(most + 1);
        self.stage.after(after, Event::Client { client: client as u16 });
    }

    pub(super) fn client_turn(&mut self, client: usize) {
        if self.clients_stop || self.clients[client].running.is_some() {
            return;
        }
        let node = self.clients[client].node;
        if self.nodes[node].state == Life::Down || self.map_of(node).is_none() {
            self.clients[client].node = self.stage.rng.clients.index(self.stage.options.nodes);
            return self.client_later(client);
        }
        let key = self.pick_key(client);
        let now = unix_at(&self.stage.options, self.stage.now());
        let number = self.keys[key].number;
        let op = self.clients[client].draw(
            client,
            key,
            number,
            &self.stage.options,
            now,
            &mut self.stage.rng.clients,
        );
        self.clients[client].begun += 1;
        self.calls_begun += 1;
        let call = match op {
            Op::Flush(_) => self.flush_call(client as u16, node, self.keys[key].member, op),
            op => self.call(client as u16, node, key, op),
        };
        if self.running[call as usize].ended {
            return;
        }
        self.clients[client].running = Some(call);
        if self.stage.options.patience_us != u64::MAX {
            let at = self.stage.now() + self.stage.options.patience_us;
            self.stage.queue.push(at, Event::Patience { client: client as u16, call });
        }
    }

    fn pick_key(&mut self, client: usize) -> usize {
        if self.stage.options.faithful {
            let roles = self.stage.options.groups * self.stage.options.k;
            let member = |key: &usize| self.stream_index(self.keys[*key].member) == client % roles;
            let mine: Vec<usize> = (0..self.keys.len()).filter(member).collect();
            if !mine.is_empty() {
                return self.stage.rng.clients.pick(&mine);
            }
        }
        self.stage.rng.clients.index(self.keys.len())
    }

    fn map_of(&self, node: usize) -> Option<&types::ClusterMap> {
        self.shards[node * self.stage.options.shards].host.as_ref().and_then(proto::Host::map)
    }

    /// Begins a call on a key at `node`. It may have ended when this returns.
    pub(crate) fn call(&mut self, client: u16, node: usize, key: usize, op: Op) -> u32 {
        let (unix, _) = unix_bounds(&self.stage.options, self.stage.now());
        let at_oracle = self.oracles[key].invoke(op.clone(), unix);
        let token = self.begin(client, node, Subject::Key { key: key as u16, call: at_oracle });
        let group = self.keys[key].member.group;
        note!(
            self.stage.book,
            "call {token} of client {client} at node-{node} on \"{}\" ({}): {}",
            self.keys[key].bytes.escape_ascii(),
            self.keys[key].member,
            brief_op(&op)
        );
        self.stage.book.mix(u64::from(token) << 20 ^ key as u64 ^ (node as u64) << 60);
        let plain = matches!(&op, Op::Get(get) if get.touch.is_none());
        if plain && self.nodes[node].state == Life::Up && self.stage.rng.clients.percent(50) {
            let host = node * self.stage.options.shards + group.0 as usize % self.stage.options.shards;
            if let Some(outcome) = self.quick_read(host, key) {
                self.end(token, outcome);
                return token;
            }
        }
        let shard = (group.0 as usize % self.stage.options.shards) as u16;
        let request = request(&self.keys[key].bytes, op);
        self.give(node, Input::Submit { shard, token: Token(u64::from(token)), member: None, request });
        token
    }

    /// Reads by the way without messages, if that is possible.
    fn quick_read(&mut self, host: usize, key: usize) -> Option<Outcome> {
        let now = self.now_of(host);
        let key = self.keys[key].bytes.clone();
        let mut view = None;
        let machine = self.shards[host].host.as_mut()?;
        let read = machine.read(now, machine.locate(&key), &key, |item| {
            view = Some(ItemView {
                value: bytes::Bytes::copy_from_slice(item.value),
                flags: item.client_flags,
                version: item.version,
                ..ItemView::default()
            });
        });
        match read {
            Read::Hit => view.map(Outcome::Hit),
            Read::Miss => Some(Outcome::Miss),
            Read::Submit => None,
        }
    }

    /// Removes all keys of a data role.
    pub(crate) fn flush_call(&mut self, client: u16, node: usize, member: MemberId, op: Op) -> u32 {
        let (unix, _) = unix_bounds(&self.stage.options, self.stage.now());
        let concerned: Vec<usize> =
            (0..self.keys.len()).filter(|key| self.keys[*key].member == member).collect();
        let list =
            concerned.iter().map(|key| (*key as u16, self.oracles[*key].invoke(op.clone(), unix))).collect();
        self.flushes.push(list);
        let list = (self.flushes.len() - 1) as u32;
        let token = self.begin(client, node, Subject::Member { member, list });
        note!(self.stage.book, "call {token} of client {client} at node-{node}: flush of {member}");
        let shard = (member.group.0 as usize % self.stage.options.shards) as u16;
        let request = Request { key: None, op };
        self.give(
            node,
            Input::Submit { shard, token: Token(u64::from(token)), member: Some(member), request },
        );
        token
    }

    fn begin(&mut self, client: u16, node: usize, subject: Subject) -> u32 {
        let life = self.nodes[node].life;
        self.running.push(Running { client, node: node as u16, life, subject, ended: false, told: false });
        if client == NOBODY {
            self.answers.resize(self.running.len(), None);
        }
        (self.running.len() - 1) as u32
    }

    /// A host answers.
    pub(super) fn reply(&mut self, host: usize, token: Token, outcome: Outcome) {
        let node = host / self.stage.options.shards;
        let Some(call) = self.running.get_mut(token.0 as usize) else {
            return self.stage.book.fail(
                "reply",
                None,
                format!("{} answers call {}, which nobody made", node, token.0),
            );
        };
        let mine = usize::from(call.node) == node && call.life == self.nodes[node].life;
        if !mine || std::mem::replace(&mut call.told, true) {
            let id = self.nodes[node].id;
            return self.stage.book.fail(
                "reply",
                None,
                format!("{id} answers call {} again, or for another", token.0),
            );
        }
        if !call.ended {
            self.end(token.0 as u32, outcome);
        }
    }

    /// A call ends with an answer.
    fn end(&mut self, token: u32, outcome: Outcome) {
        let client = self.running[token as usize].client;
        note!(self.stage.book, "call {token} of client {client} ends: {}", brief_outcome(&outcome));
        if client == NOBODY && (token as usize) < self.answers.len() {
            self.answers[token as usize] = Some(outcome.clone());
        }
        self.stage.book.mix(u64::from(token) << 8 ^ outcome_number(&outcome));
        self.check_failure_is_allowed(token, &outcome);
        let fate = match outcome {
            Outcome::Failed(Failure::Unknown) => Fate::Unknown,
            Outcome::Failed(Failure::NotANumber) => Fate::Answered(outcome),
            Outcome::Failed(_) => Fate::Void,
            outcome => Fate::Answered(outcome),
        };
        match &fate {
            Fate::Answered(_) => self.stage.book.stats.answered += 1,
            Fate::Unknown => self.stage.book.stats.unknown += 1,
            _ => self.stage.book.stats.refused += 1,
        }
        self.remember(token, &fate);
        self.settle(token, &fate);
        if client != NOBODY {
            self.clients[usize::from(client)].running = None;
            self.client_later(usize::from(client));
        }
    }

    fn check_failure_is_allowed(&mut self, token: u32, outcome: &Outcome) {
        let Outcome::Failed(failure) = outcome else { return };
        let member = match self.running[token as usize].subject {
            Subject::Key { key, .. } => self.keys[usize::from(key)].member,
            Subject::Member { member, .. } => member,
        };
        let role = self.map().and_then(|map| map.group(member.group)?.data_role(member.role)).copied();
        let status = role.map(|role| role.status);
        let allowed = match failure {
            // Not everybody has heard yet that the role has begun anew.
            Failure::Lost => role.is_some_and(|role| role.status.is_lost() || role.origin > Term(1)),
            Failure::Corrupt | Failure::WrongPrimary => false,
            _ => true,
        };
        if !allowed {
            let what = format!("call {token} ends with {failure:?} while {member} is {status:?}");
            self.stage.book.fail("answer", Some(Suspect::Group(member.group)), what);
        }
    }

    /// What a client knows of a key from the answer.
    fn remember(&mut self, token: u32, fate: &Fate) {
        let call = self.running[token as usize];
        let (Subject::Key { key, .. }, false) = (call.subject, call.client == NOBODY) else { return };
        let seen = &mut self.clients[usize::from(call.client)].seen[usize::from(key)];
        match fate {
            Fate::Answered(Outcome::Hit(view) | Outcome::Stored(view) | Outcome::Number(_, view)) => {
                *seen = view.version;
            }
            Fate::Answered(Outcome::Exists) => *seen = 0,
            _ => {}
        }
    }

    fn settle(&mut self, token: u32, fate: &Fate) {
        let (_, unix) = unix_bounds(&self.stage.options, self.stage.now());
        let call = &mut self.running[token as usize];
        call.ended = true;
        match call.subject {
            Subject::Key { key, call } => {
                let key = usize::from(key);
                let settled = self.oracles[key].settle(call, fate.clone(), unix);
                self.judge(key, settled);
            }
            Subject::Member { list, .. } => {
                for (key, call) in std::mem::take(&mut self.flushes[list as usize]) {
                    let settled = self.oracles[usize::from(key)].settle(call, fate.clone(), unix);
                    self.judge(usize::from(key), settled);
                }
            }
        }
    }

    pub(crate) fn judge(&mut self, key: usize, settled: Result<(), Contradiction>) {
        if let Err(contradiction) = settled {
            let what = format!(
                "\"{}\" of {}: call {} cannot be explained; the key could be: {}",
                self.keys[key].bytes.escape_ascii(),
                self.keys[key].member,
                contradiction.call,
                contradiction.states.join(" | ")
            );
            self.stage.book.fail("linearizability", Some(Suspect::Key(key)), what);
        }
    }

    /// A client gives up, or learns that its node is gone.
    pub(super) fn patience(&mut self, client: usize, call: u32) {
        if self.running[call as usize].ended {
            return;
        }
        note!(self.stage.book, "client {client} gives call {call} up");
        self.stage.book.stats.unknown += 1;
        self.settle(call, &Fate::Unknown);
        if client != usize::from(NOBODY) {
            self.clients[client].running = None;
            self.clients[client].node = self.stage.rng.clients.index(self.stage.options.nodes);
            self.client_later(client);
        }
    }

    /// The calls that ran at `node` have nobody left to answer them.
    pub(crate) fn drop_calls_at(&mut self, node: usize) {
        let life = self.nodes[node].life;
        let lost: Vec<(u32, u16)> = (0u32..)
            .zip(&self.running)
            .filter(|(_, call)| !call.ended && usize::from(call.node) == node && call.life == life)
            .map(|(token, call)| (token, call.client))
            .collect();
        for (call, client) in lost {
            let after = self.stage.rng.clients.below(self.stage.options.network.notice_us + 1);
            self.stage.after(after, Event::Dropped { client, call });
        }
    }

    /// Whether no client waits for an answer.
    pub(crate) fn clients_are_idle(&self) -> bool {
        self.clients.iter().all(|client| client.running.is_none())
    }
}

fn outcome_number(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Hit(view) => 1 ^ view.version << 4,
        Outcome::Miss => 2,
        Outcome::Stored(view) => 3 ^ view.version << 4,
        Outcome::NotStored => 4,
        Outcome::Exists => 5,
        Outcome::NotFound => 6,
        Outcome::Deleted => 7,
        Outcome::Touched(view) => 8 ^ view.version << 4,
        Outcome::Number(number, _) => 9 ^ number << 4,
        Outcome::Flushed => 10,
        Outcome::Failed(failure) => 11 ^ (*failure as u64) << 4,
    }
}
