//! Coordinators: what they are given, what they want done, and how one follows another.
//!
//! What a coordinator sends waits until the records before it are written. Where coordinators follow each other, records take
//! their time, and those of a coordinator that is not the elected one any more are refused.

use std::collections::{BTreeSet, VecDeque};

use proto::CoordinatorAction;
use types::HostId;
use wire::message::{FromCoordinator, ToCoordinator};
use wire::record::Record;

use super::super::brief::Brief;
use super::super::clock::Clock;
use super::super::faults::Target;
use super::super::options::Succession;
use super::super::process::{CoordinatorInput, CoordinatorProcess, Input, Life, now_at};
use super::super::queue::Event;
use super::World;

/// Most records that are written at once.
const MAX_WRITE: u64 = 8;

/// A message of a former coordinator that is still under way.
pub(crate) struct Stray {
    node: usize,
    life: u32,
    message: FromCoordinator,
}

impl World {
    /// The coordinator with this number, if it lives.
    pub(crate) fn process(&self, number: u32) -> Option<&CoordinatorProcess> {
        self.coordinators.iter().find(|process| process.number == number)
    }

    pub(crate) fn process_mut(&mut self, number: u32) -> Option<&mut CoordinatorProcess> {
        self.coordinators.iter_mut().find(|process| process.number == number)
    }

    // --- inputs ---

    /// Gives `input` to the elected coordinator, if there is one.
    pub(crate) fn tell_leader(&mut self, input: CoordinatorInput) {
        if let Some(number) = self.leader {
            self.give_coordinator(number, input);
        }
    }

    /// Gives `input` to a coordinator: at once, or when it goes on after a pause.
    pub(crate) fn give_coordinator(&mut self, number: u32, input: CoordinatorInput) {
        match self.process_mut(number) {
            Some(process) if process.paused => process.backlog.push_back(input),
            Some(_) => self.feed_coordinator(number, input),
            None => {}
        }
    }

    fn feed_coordinator(&mut self, number: u32, input: CoordinatorInput) {
        if let CoordinatorInput::Message(from, message) = &input {
            note!(self.stage.book, "coordinator {number} <- {from}: {}", Brief(&**message));
            if let ToCoordinator::Register(_) = **message {
                self.nodes[usize::from(from.node.0)].line.registered = Some(*from);
            }
        }
        let Some(process) = self.coordinators.iter_mut().find(|process| process.number == number) else {
            return;
        };
        let now = now_at(&self.stage.options, &process.clock, self.stage.now());
        match input {
            CoordinatorInput::Message(from, message) => process.coordinator.handle(now, from, *message),
            CoordinatorInput::Exited(node) => process.coordinator.exited(now, node),
            CoordinatorInput::Written(true) => process.awaits_store = false,
            CoordinatorInput::Written(false) => return self.end_coordinator(number),
        }
        self.after_coordinator(number);
    }

    pub(super) fn coordinator_tick(&mut self, number: u32) {
        let at = self.stage.now();
        let Some(process) = self.process_mut(number).filter(|process| process.tick_at == at) else { return };
        process.tick_at = u64::MAX;
        if !process.paused {
            self.tick_coordinator(number);
        }
    }

    fn tick_coordinator(&mut self, number: u32) {
        let alive = self.stage.options.succession.map(|succession| self.store_shows(succession.lease_us));
        let Some(process) = self.coordinators.iter_mut().find(|process| process.number == number) else {
            return;
        };
        let now = now_at(&self.stage.options, &process.clock, self.stage.now());
        if let Some(alive) = alive {
            process.coordinator.store_sees(now, &alive);
        }
        process.coordinator.tick(now);
        self.after_coordinator(number);
    }

    /// The processes whose leases at the store have not run out.
    fn store_shows(&self, lease_us: u64) -> BTreeSet<HostId> {
        let lives =
            |node: &&super::Node| node.state != Life::Down || self.stage.now() < node.ended_at + lease_us;
        self.nodes.iter().filter(lives).map(|node| node.id).collect()
    }

    pub(crate) fn arm_coordinator(&mut self, number: u32) {
        let now = self.stage.now();
        let Some(process) = self.process_mut(number) else { return };
        let deadline = process.coordinator.next_deadline();
        let Some(at) = process.clock.when(deadline, now + 1) else { return };
        if at < process.tick_at {
            process.tick_at = at;
            self.stage.queue.push(at, Event::CoordinatorTick { number });
        }
    }

    // --- actions ---

    /// Does what a coordinator wants, as far as that may be done.
    pub(crate) fn after_coordinator(&mut self, number: u32) {
        while let Some(action) = self.next_action(number) {
            match action {
                CoordinatorAction::Send { to, message } => self.send_down(number, to, message),
                CoordinatorAction::Close { peer, why } => {
                    self.stage.book.fail("impossible", None, format!("{peer}: {why}"))
                }
                CoordinatorAction::Record(record) => self.record(number, record),
                CoordinatorAction::Resign => {
                    note!(self.stage.book, "coordinator {number} resigns");
                    self.stage.book.stats.resignations += 1;
                    return self.end_coordinator(number);
                }
            }
            if self.ends_now(number) {
                return self.end_coordinator(number);
            }
        }
        self.watch_views();
        self.note_going_on(number);
        self.arm_coordinator(number);
    }

    /// A coordinator that started with nothing has heard enough.
    fn note_going_on(&mut self, number: u32) {
        let knows = self.process(number).is_some_and(|process| process.coordinator.gathered().is_none());
        if self.leader == Some(number) && knows && std::mem::take(&mut self.gathering) {
            note!(self.stage.book, "coordinator {number} goes on");
            self.coordinator_sees_again();
        }
    }

    /// The next action that need not wait for a record.
    fn next_action(&mut self, number: u32) -> Option<CoordinatorAction> {
        let process = self.process_mut(number)?;
        process.waiting.extend(std::iter::from_fn(|| process.coordinator.poll_action()));
        if process.awaits_store { None } else { process.waiting.pop_front() }
    }

    /// Whether it was to end after this action; later, if nobody could go on from here.
    fn ends_now(&mut self, number: u32) -> bool {
        let ends_after = self.process(number).and_then(|process| process.ends_after);
        let Some(left) = ends_after.map(|left| left.saturating_sub(1)) else { return false };
        let ends = left == 0 && self.can_be_followed();
        if let Some(process) = self.process_mut(number) {
            process.ends_after = Some(left);
        }
        ends
    }

    fn record(&mut self, number: u32, record: Record) {
        let Some(Succession { write_us, .. }) = self.stage.options.succession else {
            return self.write(&record);
        };
        self.aim(Target::Decision);
        let most = self.stage.rng.succession.range(1, MAX_WRITE) as usize;
        let after = 1 + self.stage.rng.succession.below(write_us);
        let Some(process) = self.process_mut(number) else { return };
        process.awaits_store = true;
        process.writing.push(record);
        while process.writing.len() < most
            && let Some(CoordinatorAction::Record(_)) = process.waiting.front()
        {
            if let Some(CoordinatorAction::Record(next)) = process.waiting.pop_front() {
                process.writing.push(next);
            }
        }
        self.stage.after(after, Event::Write { number });
    }

    pub(super) fn write_arrives(&mut self, number: u32) {
        let Some(process) = self.process_mut(number) else { return };
        let records = std::mem::take(&mut process.writing);
        let elected = self.leader == Some(number);
        if elected {
            records.iter().for_each(|record| self.write(record));
            self.watch_views();
        }
        self.give_coordinator(number, CoordinatorInput::Written(elected));
    }

    pub(crate) fn write(&mut self, record: &Record) {
        note!(self.stage.book, "recorded: {} in version {} of the map", record.key(), record.map_version());
        if let Err(what) = self.store.write(record) {
            self.stage.book.fail("records", None, what);
        }
    }

    // --- one after another ---

    /// The process of a coordinator ends. What it was writing is written, or not; what it has sent may still arrive.
    pub(crate) fn end_coordinator(&mut self, number: u32) {
        let Some(at) = self.coordinators.iter().position(|process| process.number == number) else { return };
        note!(self.stage.book, "coordinator {number} ends");
        let process = self.coordinators.remove(at);
        let written = self.stage.rng.succession.percent(50);
        if self.leader == Some(number) {
            process.writing.iter().filter(|_| written).for_each(|record| self.write(record));
            self.watch_views();
            self.leader = None;
            self.nobody_decides();
            self.election_later();
        }
        self.part_from(number);
    }

    /// Another coordinator is to be elected; this one has not noticed.
    pub(crate) fn depose(&mut self, number: u32) {
        note!(self.stage.book, "coordinator {number} is deposed");
        self.leader = None;
        self.nobody_decides();
        self.election_later();
    }

    /// A coordinator that was deposed notices sooner or later, whatever it does.
    pub(crate) fn notices_later(&mut self, number: u32) {
        let late_us = self.stage.options.succession.map_or(0, |succession| succession.late_us);
        let after = self.stage.rng.succession.below(2 * late_us + 1);
        self.stage.after(after, Event::Deposed { number });
    }

    fn election_later(&mut self) {
        let gap_us = match self.stage.options.succession {
            Some(Succession { by_hand: true, .. }) => return,
            Some(Succession { gap_us, .. }) => gap_us,
            None if self.stage.options.faults.forgets => 2 * self.stage.options.timing.node_lease_us,
            None => return,
        };
        let after = self.stage.rng.succession.below(gap_us + 1);
        self.stage.after(after, Event::Election);
    }

    /// The next coordinator goes on from what is recorded, or starts with nothing. Its clock is another one.
    pub(crate) fn elect(&mut self) {
        if self.leader.is_some() {
            return;
        }
        self.elected += 1;
        self.stage.book.stats.successions += 1;
        let number = self.elected;
        note!(self.stage.book, "coordinator {number} is elected");
        let ppm = self.stage.options.drift_ppm;
        let drift = self.stage.rng.succession.below(2 * ppm as u64 + 1) as i64 - ppm;
        let clock = Clock::new(self.stage.rng.succession.below(1 << 40), drift);
        match self.next_coordinator(number, clock) {
            Ok(process) => self.coordinators.push(process),
            Err(what) => return self.stage.book.fail("records", None, what),
        }
        self.leader = Some(number);
        self.gathering = self.stage.options.succession.is_none();
        if !self.gathering {
            self.coordinator_sees_again();
        }
        self.after_coordinator(number);
        self.let_nodes_follow();
    }

    fn next_coordinator(&self, number: u32, clock: Clock) -> Result<CoordinatorProcess, String> {
        if self.stage.options.succession.is_none() {
            return Ok(CoordinatorProcess::gather(&self.stage.options, number, clock, self.stage.now()));
        }
        let records = self.store.records()?;
        let resumed =
            CoordinatorProcess::resume(&self.stage.options, number, clock, (records, self.stage.now()));
        resumed.map_err(|error| error.to_string())
    }

    fn let_nodes_follow(&mut self) {
        let late_us = self.stage.options.succession.map_or(0, |succession| succession.late_us);
        for node in 0..self.stage.options.nodes {
            let life = self.nodes[node].life;
            let after = self.stage.rng.succession.below(late_us + 1);
            self.stage.after(after, Event::Follow { node: node as u16, life });
        }
    }

    pub(super) fn follow(&mut self, node: usize, life: u32) {
        let state = &self.nodes[node];
        if state.life == life && state.line.connected && Some(state.line.to) != self.leader {
            self.cut_line(node);
        }
    }

    pub(super) fn notices_successor(&mut self, number: u32) {
        if self.leader != Some(number) {
            self.end_coordinator(number);
        }
    }

    /// No node reaches this coordinator any more.
    pub(crate) fn isolate_coordinator(&mut self, number: u32) {
        if let Some(process) = self.process_mut(number) {
            process.isolated = true;
        }
        self.part_from(number);
    }

    fn part_from(&mut self, number: u32) {
        for node in 0..self.stage.options.nodes {
            if self.nodes[node].line.connected && self.nodes[node].line.to == number {
                self.cut_line(node);
            }
        }
    }

    /// A line is cut. Where coordinators follow each other, what was under way to the node may have been read before.
    pub(super) fn let_stray(&mut self, node: usize, number: u32, under_way: VecDeque<FromCoordinator>) {
        let Some(Succession { late_us, .. }) = self.stage.options.succession else { return };
        if self.leader == Some(number) || !self.stage.rng.succession.percent(70) {
            return;
        }
        let mut at = self.stage.now();
        for message in under_way {
            at += self.stage.rng.succession.below(late_us + 1);
            let life = self.nodes[node].life;
            self.stage.queue.push(at, Event::Stray { message: self.strays.len() as u32 });
            self.strays.push(Some(Stray { node, life, message }));
        }
    }

    pub(super) fn stray_arrives(&mut self, message: usize) {
        let Some(Stray { node, life, message }) = self.strays[message].take() else { return };
        if self.nodes[node].life == life {
            note!(self.stage.book, "late, of a former coordinator:");
            self.give(node, Input::Late(message));
        }
    }

    // --- pauses ---

    /// A coordinator stands still.
    pub(crate) fn pause_coordinator(&mut self, number: u32) {
        note!(self.stage.book, "coordinator {number} stands still");
        if let Some(process) = self.process_mut(number) {
            process.paused = true;
        }
    }

    /// A coordinator goes on: with its timers first or with its inputs first.
    pub(crate) fn resume_coordinator(&mut self, number: u32) {
        let Some(process) = self.process_mut(number) else { return };
        if !std::mem::take(&mut process.paused) {
            return;
        }
        note!(self.stage.book, "coordinator {number} goes on");
        if self.leader == Some(number) {
            self.coordinator_sees_again();
        }
        let timers_first = self.stage.rng.processes.percent(50);
        if timers_first {
            self.tick_coordinator(number);
        }
        while let Some(input) = self.process_mut(number).and_then(|process| process.backlog.pop_front()) {
            self.feed_coordinator(number, input);
        }
        self.tick_coordinator(number);
    }

    /// Former coordinators end, and one lives that everybody reaches.
    pub(crate) fn heal_coordinators(&mut self) {
        for number in self.coordinators.iter().map(|process| process.number).collect::<Vec<_>>() {
            if self.leader == Some(number) {
                self.resume_coordinator(number);
            } else {
                self.end_coordinator(number);
            }
        }
        if let Some(leader) = self.leader.and_then(|number| self.process_mut(number)) {
            (leader.isolated, leader.ends_after) = (false, None);
        }
        self.elect();
    }
}
