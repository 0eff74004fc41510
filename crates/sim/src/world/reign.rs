//! Coordinators: what they are given, what they want done, and how one follows another.
//!
//! A coordinator reaches nodes through their lines and nothing else: no host is touched here. Where coordinators follow each other,
//! records take their time, and those of a coordinator that is not the elected one any more are refused.

use std::collections::BTreeSet;

use proto::CoordinatorAction;
use types::{
    AdminCommand, AdminRequest, CatalogChange, EvictPolicy, HostId, MemberId, Name, OnFinding, Policy,
    PolicyChange, Slot, SlotRange,
};
use wire::message::{FromCoordinator, ToCoordinator};
use wire::record::Record;

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::cluster::process::{CoordinatorInput, Life, Node};
use crate::cluster::scrub::start_scrub;
use crate::nemesis::{Nemesis, Target, can_be_followed};
use crate::network::lines::Lines;
use crate::options::Succession;
use crate::shadow::Shadow;
use crate::stage::Stage;
use crate::stage::brief::Brief;
use crate::stage::queue::Event;

/// The coordinators with all that they reach, and those who look on.
pub(crate) struct Reign<'a> {
    pub stage: &'a mut Stage,
    pub cluster: &'a mut Cluster,
    pub lines: &'a mut Lines,
    pub shadow: &'a mut Shadow,
    pub clients: &'a mut Clients,
    pub nemesis: &'a mut Nemesis,
}

impl Reign<'_> {
    // --- inputs ---

    /// A node's oldest message arrives, unless its line was cut since.
    pub(crate) fn uplink(&mut self, node: usize, epoch: u32) {
        let Some(message) = self.lines.take_up(node, epoch) else { return };
        self.stage.book.mix(self.stage.now() ^ (node as u64) << 50);
        self.stage.book.stats.messages += 1;
        let from = self.cluster.nodes[node].id;
        self.give(self.lines.end_of(node), CoordinatorInput::Message(from, Box::new(message)));
    }

    /// The coordinator's parent saw the process of `node` end, unless another one runs there.
    pub(crate) fn exited(&mut self, node: usize) {
        let state = &self.cluster.nodes[node];
        if let (Life::Down, Some(leader)) = (state.state, self.cluster.coordinators.leader()) {
            self.give(leader, CoordinatorInput::Exited(state.id.node));
        }
    }

    /// The coordinator is told that `node` has closed its line.
    pub(crate) fn is_parted_from(&mut self, node: usize) {
        let id = self.cluster.nodes[node].id;
        if let Some(leader) = self.cluster.coordinators.leader() {
            self.give(leader, CoordinatorInput::Parted(id));
        }
    }

    /// A coordinator notices that the line of `node` was cut, unless it stands again. Where nothing is in between the other end has closed it;
    /// else nobody can tell.
    pub(crate) fn parted(&mut self, node: usize, epoch: u32) {
        let to = self.lines.end_of(node);
        if let Some(id) = self.lines.parted(node, epoch).filter(|_| !self.lines.is_blocked(node)) {
            self.give(to, CoordinatorInput::Parted(id));
        }
    }

    /// Gives `input` to a coordinator: at once, or when it goes on after a pause.
    fn give(&mut self, number: u32, input: CoordinatorInput) {
        if let Some(input) = self.cluster.coordinators.accept(number, input) {
            self.feed(number, input);
        }
    }

    fn feed(&mut self, number: u32, input: CoordinatorInput) {
        if let CoordinatorInput::Message(from, message) = &input {
            note!(self.stage.book, "coordinator {number} <- {from}: {}", Brief(&**message));
            if let ToCoordinator::Register(_) = **message {
                // Before the coordinator hears of it: its answer needs somebody at the other end of the line.
                self.lines.register(*from);
            }
        }
        let Some(process) = self.cluster.coordinators.get_mut(number) else { return };
        let now = self.stage.read(&process.clock);
        match input {
            CoordinatorInput::Message(from, message) => process.coordinator.handle(now, from, *message),
            CoordinatorInput::Exited(node) => process.coordinator.exited(now, node),
            CoordinatorInput::Parted(id) => process.coordinator.parted(id),
            CoordinatorInput::Written(true) => process.awaits_store = false,
            CoordinatorInput::Written(false) => return self.end(number),
        }
        self.after(number);
    }

    /// A timer is due, unless it was set anew since.
    pub(crate) fn timer(&mut self, number: u32) {
        if self.cluster.coordinators.tick_is_due(self.stage, number) {
            self.tick(number);
        }
    }

    fn tick(&mut self, number: u32) {
        let alive = self.stage.options.succession.map(|succession| self.store_shows(succession.lease_us));
        let Some(process) = self.cluster.coordinators.get_mut(number) else { return };
        let now = self.stage.read(&process.clock);
        if process.shown != alive {
            alive.iter().for_each(|alive| process.coordinator.store_sees(now, alive));
            process.shown = alive;
        }
        process.coordinator.tick(now);
        self.after(number);
    }

    /// The processes whose leases at the store have not run out.
    fn store_shows(&self, lease_us: u64) -> BTreeSet<HostId> {
        let now = self.stage.now();
        let lives = |node: &&Node| node.state != Life::Down || now < node.ended_at + lease_us;
        self.cluster.nodes.iter().filter(lives).map(|node| node.id).collect()
    }

    /// When the store has news for a coordinator: at once where it shows others than the coordinator was told, else when the next
    /// lease of a process that has ended runs out there.
    fn news_at(&self, number: u32) -> Option<u64> {
        let lease_us = self.stage.options.succession?.lease_us;
        let shown = self.cluster.coordinators.get(number)?.shown.as_ref();
        if shown != Some(&self.store_shows(lease_us)) {
            return Some(self.stage.now() + 1);
        }
        let ended = self.cluster.nodes.iter().filter(|node| node.state == Life::Down);
        ended.map(|node| node.ended_at + lease_us).filter(|at| *at > self.stage.now()).min()
    }

    // --- operators ---

    /// Tells the elected coordinator, if there is one that listens. Before the cluster has formed it refuses.
    pub(crate) fn command(&mut self, command: AdminCommand) {
        let Some(process) = self.cluster.coordinators.leading_mut().filter(|process| !process.paused) else {
            return;
        };
        let (number, now) = (process.number, self.stage.read(&process.clock));
        let _ = process.coordinator.administer(now, &AdminRequest { expect: None, command });
        self.after(number);
    }

    /// Everything is to be compared with its parities, now and then.
    pub(crate) fn scrub(&mut self) {
        self.command(start_scrub(OnFinding::Report));
        self.scrub_later();
    }

    /// The next scrub, for as long as clients go on.
    pub(crate) fn scrub_later(&mut self) {
        let every_us = self.stage.options.scrub_every_us;
        if every_us > 0 && !self.clients.have_stopped() {
            self.stage.after(every_us, Event::Scrub);
        }
    }

    /// The namespaces that clients have keys of. Once the cluster has formed, and again with each coordinator that comes or goes on: one
    /// that stood still has not heard of it, one that has ended may not have recorded it. An operator would not know either, and
    /// asks again.
    pub(crate) fn make_namespaces(&mut self) {
        for number in 1..=self.stage.options.namespaces {
            let name = format!("own-{number}").parse().expect("a name");
            let evict = if number == 1 { EvictPolicy::Node } else { EvictPolicy::Evict };
            let policy = Policy { evict, quota_bytes: self.stage.options.quota_bytes, ..Policy::default() };
            let pool = Name::default_name();
            self.command(AdminCommand::Catalog(CatalogChange::CreateNamespace { name, pool, policy }));
        }
    }

    /// A namespace comes, changes or goes while clients go on; sometimes a pool does, which nobody uses.
    pub(crate) fn change_catalog(&mut self) {
        let passing: Name = "passing".parse().expect("a name");
        let profile = self.stage.options.profile();
        let change = match self.stage.rng.faults.below(5) {
            0 => create_namespace(passing),
            1 => CatalogChange::RemoveNamespace { name: passing },
            2 => {
                let evict = self.stage.rng.faults.pick(&[EvictPolicy::Node, EvictPolicy::Keep]);
                let change = PolicyChange { evict: Some(evict), ..PolicyChange::default() };
                CatalogChange::SetPolicy { name: passing, change }
            }
            3 => CatalogChange::CreatePool { name: passing, profile, groups: Some(1) },
            _ => CatalogChange::RemovePool { name: passing },
        };
        let makes_pool = matches!(change, CatalogChange::CreatePool { .. });
        if !makes_pool || self.nemesis.can_bear_another_pool(self.stage, self.cluster) {
            self.operate(AdminCommand::Catalog(change));
        }
        self.change_catalog_later();
    }

    /// The next such change, for as long as clients go on.
    pub(crate) fn change_catalog_later(&mut self) {
        let every_us = self.stage.options.catalog_every_us;
        if every_us > 0 && !self.clients.have_stopped() {
            self.stage.after(every_us, Event::Catalog);
        }
    }

    /// An operator accepts whatever is lost.
    pub(crate) fn accept_losses(&mut self) {
        if self.cluster.has_lost_roles() {
            let pools = self.cluster.map().into_iter().flat_map(|map| &map.catalog.pools);
            let pools: Vec<Name> = pools.map(|pool| pool.name.clone()).collect();
            for pool in pools {
                let slots = vec![SlotRange { first: Slot(0), last: Slot(u32::MAX) }];
                self.operate(AdminCommand::AcceptLoss { pool: Some(pool), slots, namespace: None });
            }
        }
    }

    /// As [`Self::command`], for the trace to tell.
    pub(crate) fn operate(&mut self, command: AdminCommand) {
        if self.cluster.coordinators.leader().is_some() {
            note!(self.stage.book, "an operator: {command:?}");
            self.command(command);
        }
    }

    /// A role is to move to another node, if the elected coordinator listens and can see to it.
    pub(crate) fn move_role(&mut self, member: MemberId, host: HostId) {
        if self.cluster.coordinators.leading().is_none_or(|leader| leader.paused) {
            return;
        }
        if let Some(number) = self.appoint(member, host) {
            note!(self.stage.book, "{} of {} is to move to {host}", member.role, member.group);
            self.stage.book.stats.moves += 1;
            self.after(number);
        }
    }

    /// Has a role built on another node, to move there. The coordinator that sees to it, if it can.
    pub(crate) fn appoint(&mut self, member: MemberId, host: HostId) -> Option<u32> {
        let leader = self.cluster.coordinators.leading_mut()?;
        leader.coordinator.appoint_learner(member, host).then_some(leader.number)
    }

    // --- actions ---

    /// Does what a coordinator wants, as far as that may be done.
    pub(crate) fn after(&mut self, number: u32) {
        if self.stage.options.objects.is_some_and(|objects| objects.opened_early)
            && let Some(process) = self.cluster.coordinators.get_mut(number)
        {
            process.coordinator.open_pools();
        }
        while let Some(action) = self.cluster.coordinators.next_action(number) {
            match action {
                CoordinatorAction::Send { to, message } => self.send(number, to, message),
                // All members here are honest.
                CoordinatorAction::Close { peer, why } => {
                    self.stage.book.fail("impossible", None, format!("{peer}: {why}"));
                }
                CoordinatorAction::Record(record) => self.record(number, record),
                CoordinatorAction::Resign => return self.resign(number),
            }
            // After each single action: what it has done so far is out, whatever it had decided beside that is lost.
            if self.ends_now(number) {
                return self.end(number);
            }
        }
        self.watch_views();
        if self.cluster.coordinators.goes_on(number) {
            note!(self.stage.book, "coordinator {number} goes on");
            self.nemesis.coordinator_sees_again(self.stage);
            self.make_namespaces();
        }
        let news_at = self.news_at(number);
        self.cluster.coordinators.arm(self.stage, number, news_at);
    }

    fn send(&mut self, number: u32, to: HostId, message: FromCoordinator) {
        self.nemesis.aim(self.stage, Target::of_coordinator(&message));
        self.lines.send_down(self.stage, self.cluster, number, to, message);
    }

    fn resign(&mut self, number: u32) {
        note!(self.stage.book, "coordinator {number} resigns");
        self.stage.book.stats.resignations += 1;
        self.end(number);
    }

    /// Whether it was to end after this action; later, if nobody could go on from here.
    fn ends_now(&mut self, number: u32) -> bool {
        self.cluster.coordinators.was_the_last(number) && can_be_followed(&self.stage.options, self.cluster)
    }

    fn record(&mut self, number: u32, record: Record) {
        let Some(Succession { write_us, .. }) = self.stage.options.succession else {
            return self.write(&record);
        };
        self.nemesis.aim(self.stage, Some(Target::Decision));
        self.cluster.coordinators.write_later(self.stage, number, record, write_us);
    }

    /// What a coordinator was writing comes to the store.
    pub(crate) fn write_arrives(&mut self, number: u32) {
        let Some(records) = self.cluster.coordinators.take_writing(number) else { return };
        // The store takes nothing from one that was deposed; from the answer it learns that it was.
        let elected = self.cluster.coordinators.leads(number);
        if elected {
            records.iter().for_each(|record| self.write(record));
            self.watch_views();
        }
        self.give(number, CoordinatorInput::Written(elected));
    }

    pub(crate) fn write(&mut self, record: &Record) {
        note!(self.stage.book, "recorded: {} in version {} of the map", record.key(), record.map_version());
        if let Err(what) = self.cluster.store.write(record) {
            self.stage.book.fail("records", None, what);
        }
    }

    /// Those who look on take note of new views.
    fn watch_views(&mut self) {
        let Some(map) = self.cluster.store.map() else { return };
        self.clients.let_vanish(&map.catalog);
        let news = self.shadow.recorded(self.stage, map);
        news.begun.iter().for_each(|member| self.clients.begin_anew(self.stage, *member));
        news.tell(&mut self.stage.book);
    }

    // --- one after another ---

    /// The process of a coordinator ends. What it was writing is written, or not; what it has sent may still arrive.
    pub(crate) fn end(&mut self, number: u32) {
        let Some(process) = self.cluster.coordinators.remove(number) else { return };
        note!(self.stage.book, "coordinator {number} ends");
        // Nobody can know whether a record came to the store whose writer ended while it was under way.
        let written = self.stage.rng.succession.percent(50);
        if self.cluster.coordinators.leads(number) {
            process.writing.iter().filter(|_| written).for_each(|record| self.write(record));
            self.watch_views();
            self.nemesis.nobody_decides(self.stage);
            self.cluster.coordinators.step_down(self.stage);
        }
        self.lines.part_from(self.stage, self.cluster, number);
    }

    /// Another coordinator is to be elected; this one has not noticed.
    pub(crate) fn depose(&mut self, number: u32) {
        note!(self.stage.book, "coordinator {number} is deposed");
        self.nemesis.nobody_decides(self.stage);
        self.cluster.coordinators.step_down(self.stage);
    }

    /// A coordinator that was deposed notices it, unless it has already.
    pub(crate) fn notices_successor(&mut self, number: u32) {
        if !self.cluster.coordinators.leads(number) {
            self.end(number);
        }
    }

    /// Another coordinator follows, unless there is one.
    pub(crate) fn elect(&mut self) {
        if self.cluster.coordinators.leader().is_some() {
            return;
        }
        let Cluster { coordinators, store, .. } = &mut *self.cluster;
        let Some(number) = coordinators.elect(self.stage, store) else { return };
        // One that starts with nothing decides nothing yet. `after` says when it begins to.
        if !coordinators.is_gathering() {
            self.nemesis.coordinator_sees_again(self.stage);
        }
        self.after(number);
        self.make_namespaces();
        self.let_nodes_follow();
    }

    fn let_nodes_follow(&mut self) {
        let late_us = self.stage.options.succession.map_or(0, |succession| succession.late_us);
        for node in 0..self.cluster.nodes.count() {
            let life = self.cluster.nodes[node].life;
            let after = self.stage.rng.succession.below(late_us + 1);
            self.stage.after(after, Event::Follow { node: node as u16, life });
        }
    }

    /// No node reaches this coordinator any more.
    pub(crate) fn isolate(&mut self, number: u32) {
        if let Some(process) = self.cluster.coordinators.get_mut(number) {
            process.isolated = true;
        }
        self.lines.part_from(self.stage, self.cluster, number);
    }

    /// A coordinator goes on: with its timers first or with its inputs first.
    pub(crate) fn resume(&mut self, number: u32) {
        if !self.cluster.coordinators.wake(self.stage, number) {
            return;
        }
        if self.cluster.coordinators.leads(number) {
            self.nemesis.coordinator_sees_again(self.stage);
        }
        let timers_first = self.stage.rng.processes.percent(50);
        if timers_first {
            self.tick(number);
        }
        while let Some(input) = self.cluster.coordinators.next_waiting(number) {
            self.feed(number, input);
        }
        // In any case: a tick that came due during the pause was dropped, and nothing else may
        // come that sets the timer anew.
        self.tick(number);
        self.make_namespaces();
    }

    /// Former coordinators end, and one lives that everybody reaches.
    pub(crate) fn heal(&mut self) {
        for number in self.cluster.coordinators.numbers() {
            if self.cluster.coordinators.leads(number) {
                self.resume(number);
            } else {
                self.end(number);
            }
        }
        if let Some(leader) = self.cluster.coordinators.leading_mut() {
            (leader.isolated, leader.ends_after) = (false, None);
        }
        self.elect();
    }
}

fn create_namespace(name: Name) -> CatalogChange {
    CatalogChange::CreateNamespace { name, pool: Name::default_name(), policy: Policy::default() }
}
