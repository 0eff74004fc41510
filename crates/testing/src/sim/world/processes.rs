//! Processes start, end, stand still and go on.

use proto::Entrance;
use types::{Expectations, HostId, Incarnation, Learner, MemberId, RoleStatus};

use super::super::book::Suspect;
use super::super::brief::Brief;
use super::super::process::{CoordinatorInput, Life};
use super::super::queue::Event;
use super::super::rng::scatter;
use super::World;

impl World {
    /// The process of `node` begins.
    pub(crate) fn start(&mut self, node: usize) {
        let life = self.nodes[node].life;
        for shard in 0..self.stage.options.shards {
            let host = self.nodes[node].host(shard, &self.stage.options);
            let cell = &mut self.shards[node * self.stage.options.shards + shard];
            cell.host = Some(host);
            cell.tick_at = u64::MAX;
            cell.flush_pending = false;
        }
        for shard in 0..self.stage.options.shards {
            self.arm(node * self.stage.options.shards + shard);
        }
        let after = 1 + self.stage.rng.network.below(self.stage.options.network.reconnect_us + 1);
        self.stage.after(after, Event::Join { node: node as u16, life });
        let beat =
            self.stage.now() + self.stage.rng.network.below(self.stage.options.timing.heartbeat_us + 1);
        self.stage.queue.push(beat, Event::Heartbeat { node: node as u16, life });
        for pair in self.wires.pairs_of(node) {
            self.try_to_connect(pair);
        }
    }

    /// The process of `node` ends; its memory is gone.
    pub(crate) fn crash(&mut self, node: usize) {
        if self.nodes[node].state == Life::Down {
            return;
        }
        note!(self.stage.book, "{} crashes", self.nodes[node].id);
        self.stage.book.stats.crashes += 1;
        let life = self.nodes[node].life;
        self.nodes[node].state = Life::Down;
        self.nodes[node].ended_at = self.stage.now();
        self.nodes[node].backlog.clear();
        for shard in 0..self.stage.options.shards {
            let ended = self.shards[node * self.stage.options.shards + shard].host.take();
            self.stage.book.stats.resumed += ended.map_or(0, |host| host.stats().resumed_parities);
        }
        self.check_budget_is_returned(node);
        for pair in self.wires.pairs_of(node) {
            self.cut(pair);
            for wire in self.wires.of_pair(pair) {
                let (_, to) = self.wires.ends(wire);
                if to / self.stage.options.shards == node {
                    self.wires.get_mut(wire).sender = None;
                }
            }
        }
        self.cut_line(node);
        self.drop_calls_at(node);
        if let Some(after) = self.stage.options.faults.supervised_us {
            self.stage.after(after, Event::Exited { node: node as u16, life });
        }
    }

    fn check_budget_is_returned(&mut self, node: usize) {
        let left = self.nodes[node].budget.total_used();
        if left != 0 {
            let id = self.nodes[node].id;
            self.stage.book.fail("budget", None, format!("{id} has ended and still holds {left} bytes"));
        }
    }

    pub(super) fn exited(&mut self, node: usize, life: u32) {
        if self.nodes[node].life == life && self.nodes[node].state == Life::Down {
            self.tell_leader(CoordinatorInput::Exited(self.nodes[node].id.node));
        }
    }

    pub(super) fn restart_due(&mut self, node: usize, life: u32) {
        if self.nodes[node].life == life && self.nodes[node].state == Life::Down {
            self.restart(node);
        }
    }

    /// A new process on `node`, with empty memory.
    pub(crate) fn restart(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        state.life += 1;
        let number = scatter(u64::from(state.life) << 16 ^ node as u64);
        state.id = HostId { node: state.id.node, incarnation: Incarnation(number) };
        state.state = Life::Up;
        state.entrance = Entrance::new(Expectations::default());
        note!(self.stage.book, "{} starts", self.nodes[node].id);
        self.start(node);
    }

    /// The process of `node` stands still.
    pub(crate) fn pause(&mut self, node: usize) {
        if self.nodes[node].state == Life::Up {
            note!(self.stage.book, "{} stands still", self.nodes[node].id);
            self.nodes[node].state = Life::Paused;
        }
    }

    pub(super) fn resume_due(&mut self, node: usize, life: u32) {
        if self.nodes[node].life == life {
            self.resume(node);
        }
    }

    /// The process of `node` goes on: with its timers first or with its inputs first.
    pub(crate) fn resume(&mut self, node: usize) {
        if self.nodes[node].state != Life::Paused {
            return;
        }
        note!(self.stage.book, "{} goes on", self.nodes[node].id);
        self.nodes[node].state = Life::Up;
        let first = node * self.stage.options.shards;
        let timers_first = self.stage.rng.processes.percent(50);
        if timers_first {
            self.tick_all(first);
        }
        while let Some(input) = self.nodes[node].backlog.pop_front() {
            self.feed(node, input);
            if self.nodes[node].state == Life::Down {
                return;
            }
        }
        self.tick_all(first);
    }

    fn tick_all(&mut self, first: usize) {
        for host in first..first + self.stage.options.shards {
            self.tick_now(host);
            if !self.shards[host].flush_pending {
                self.after(host);
            }
        }
    }

    /// Takes note of new views: ends streams where they say so.
    pub(crate) fn watch_views(&mut self) {
        let Some(map) = self.store.map() else { return };
        let k = self.stage.options.k;
        let (mut broken, mut begun) = (None, Vec::new());
        for view in &map.groups {
            let group = view.group.0 as usize;
            if self.shadow.versions[group] == view.version {
                continue;
            }
            let known = std::mem::replace(&mut self.shadow.versions[group], view.version);
            if known > view.version {
                broken = Some((view.group, format!("the view goes back from {known} to {}", view.version)));
            }
            self.stage.book.stats.views += 1;
            let is_exchange = |learner: &Learner| {
                let is_second_step =
                    view.data_role(learner.role).is_none() && view.roles_on(learner.host.node) > 1;
                is_second_step && learner.since == view.version
            };
            self.stage.book.stats.exchanges +=
                view.learners.iter().filter(|learner| is_exchange(learner)).count() as u64;
            note!(self.stage.book, "coordinator decides {}", Brief(view));
            self.stage.book.mix(view.version.0 ^ (group as u64) << 32 ^ self.stage.now() << 8);
            if self.stage.options.faults.beyond == 0 && view.data.iter().any(|role| role.status.is_lost()) {
                broken =
                    Some((view.group, "roles are lost, though never more than m members were".to_owned()));
            }
            for (role, data) in view.data_roles() {
                let stream = &mut self.shadow.streams[group * k + usize::from(role.0)];
                if stream.first() < data.first_seq() {
                    stream.begin_life(data.origin, data.first_seq());
                    begun.push(MemberId { group: view.group, role });
                }
                let start = match data.status {
                    RoleStatus::Orphan(start) | RoleStatus::Rebuilding { start, .. } => start,
                    RoleStatus::Full | RoleStatus::Fenced | RoleStatus::Lost | RoleStatus::Accepted => {
                        continue;
                    }
                };
                if stream.term().0 < data.term {
                    self.stage.book.stats.takeovers += 1;
                }
                if let Err(what) = stream.begin_term(data.term, start) {
                    broken = Some((view.group, format!("{}/{role}: {what}", view.group)));
                }
            }
        }
        for member in begun {
            self.role_begins_anew(member);
        }
        if let Some((group, what)) = broken {
            self.stage.book.fail("takeover", Some(Suspect::Group(group)), what);
        }
    }
}
