//! What goes wrong, and how much of it at once.
//!
//! The simulator may cause any fault, but not more losses than the code can bear unless the seed says so. What *may*
//! be lost is counted pessimistically: a node that stands still or is cut off may be taken for dead, and a parity that
//! a primary cannot reach may be removed, until some time after the fault has ended. Learners restore it, and a role
//! that moves is counted where it is and where it goes.

use types::GroupView;

use super::halves::Halves;
use super::options::{FaultKind, Succession};
use super::process::Life;
use super::queue::Event;
use super::world::World;

/// A fault that goes on, or whose consequences may.
#[derive(Clone, Debug)]
pub(super) struct Active {
    /// Nodes that may be taken for dead.
    pub nodes: Vec<usize>,
    /// Pairs of nodes whose parities may be removed.
    pub pairs: Vec<(usize, usize)>,
    /// How to end it.
    pub undo: Vec<Undo>,
    /// Its consequences may show until then; none while it goes on.
    pub counts_until: Option<u64>,
}

/// A kind of message at which a fault can be aimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Records on their way to a parity.
    Records,
    /// A greeting, or the index of a stand-in.
    Greeting,
    /// A repair session.
    Repair,
    /// The coordinator recovers a role.
    Recovery,
    /// The coordinator has decided something.
    Decision,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Undo {
    Unblock(usize, usize),
    UnblockLine(usize),
    Quicken(usize),
}

/// The faults of a run.
#[derive(Debug, Default)]
pub(crate) struct Nemesis {
    pub(super) active: Vec<Active>,
    pub(super) halves: Option<Halves>,
    over: bool,
    /// A fault waits for so many messages of a kind.
    waits_for: Option<(Target, u32)>,
    /// Counts the faults that were aimed.
    aimed: u64,
    /// Since when the coordinator stands still: what it has not read yet may still have consequences.
    blind_since: Option<u64>,
}

impl World {
    /// Lets faults begin.
    pub(crate) fn unleash(&mut self) {
        self.fault_later();
        self.scrub_later();
    }

    fn fault_later(&mut self) {
        let every = self.stage.options.faults.every_us;
        if every > 0 && !self.nemesis.over {
            let after = 1 + self.stage.rng.faults.below(2 * every);
            self.stage.after(after, Event::Fault);
        }
    }

    /// A fault is due: now, or when records are under way.
    pub(crate) fn next_fault(&mut self) {
        if self.nemesis.over {
            return;
        }
        if self.has_lost_roles() && self.stage.rng.faults.percent(30) {
            self.accept_losses();
        }
        self.nemesis.aimed += 1;
        let fault = self.nemesis.aimed;
        if self.stage.rng.faults.percent(self.stage.options.faults.aimed_percent) {
            let mut targets = [
                Target::Records,
                Target::Records,
                Target::Greeting,
                Target::Repair,
                Target::Repair,
                Target::Recovery,
            ];
            if self.stage.options.succession.is_some() || self.stage.options.faults.forgets {
                targets[..3].copy_from_slice(&[Target::Decision, Target::Decision, Target::Recovery]);
            }
            let target = self.stage.rng.faults.pick(&targets);
            self.nemesis.waits_for = Some((target, self.stage.rng.faults.range(1, 6) as u32));
            self.stage.after(3 * self.stage.options.timing.node_lease_us, Event::Aimed { fault });
        } else {
            self.aimed_fault(fault);
        }
    }

    /// A message of this kind is sent: a fault that waits for it hits before, while or after it is under way.
    pub(crate) fn aim(&mut self, kind: Target) {
        let Some((target, to_go)) = &mut self.nemesis.waits_for else { return };
        if *target == kind {
            *to_go -= 1;
            if *to_go == 0 {
                self.nemesis.waits_for = None;
                let after = self.stage.rng.faults.below(4 * self.stage.options.network.most_us);
                self.stage.after(after, Event::Aimed { fault: self.nemesis.aimed });
            }
        }
    }

    pub(crate) fn aimed_fault(&mut self, fault: u64) {
        if self.nemesis.over || self.nemesis.aimed != fault {
            return;
        }
        self.nemesis.aimed += 1;
        self.nemesis.waits_for = None;
        let kind = FaultKind::ALL[self.stage.rng.faults.weighted(&self.stage.options.faults.mix)];
        self.cause(kind);
        self.fault_later();
    }

    fn any_node(&mut self) -> usize {
        self.stage.rng.faults.index(self.stage.options.nodes)
    }

    fn duration(&mut self) -> u64 {
        1 + self.stage.rng.faults.tailed(self.stage.options.faults.lasting_us)
    }

    fn cause(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Crash => {
                let mut node = self.any_node();
                if self.hosts_parity(node)
                    && self.stage.rng.faults.percent(self.stage.options.faults.spare_parities_percent)
                {
                    node = self.any_node();
                }
                self.crash_if_bearable(&[node]);
            }
            FaultKind::CrashSeveral => {
                let count = 2 + self.stage.rng.faults.index(self.stage.options.m.max(1));
                let mut nodes: Vec<usize> = Vec::new();
                for _ in 0..count {
                    let node = self.any_node();
                    if !nodes.contains(&node) {
                        nodes.push(node);
                    }
                }
                self.crash_if_bearable(&nodes);
            }
            FaultKind::Pause => self.pause_if_bearable(),
            FaultKind::Isolate => {
                let node = self.any_node();
                self.isolate(&[node]);
            }
            FaultKind::IsolateFromPeers => self.isolate_from_peers(),
            FaultKind::IsolateFromCoordinator => self.isolate_from_coordinator(),
            FaultKind::Cut => {
                let (a, b) = (self.any_node(), self.any_node());
                self.cut_for_a_while(a, b);
            }
            FaultKind::Flap => {
                let (a, b) = (self.any_node(), self.any_node());
                if a != b {
                    note!(self.stage.book, "fault: flap node-{a} node-{b}");
                    self.stage.book.stats.faults += 1;
                    for pair in self.wires.pairs_between(a, b) {
                        self.cut(pair);
                    }
                }
            }
            FaultKind::Split => self.split(),
            FaultKind::Slow => self.slow(),
            FaultKind::CoordinatorPause => self.stop_coordinator(),
            FaultKind::Move => self.move_a_role(),
            FaultKind::CoordinatorCrash => self.crash_the_leader(),
            FaultKind::CoordinatorDepose => self.depose_the_leader(),
            FaultKind::CoordinatorIsolate => self.isolate_the_leader(),
            FaultKind::CoordinatorHalves => self.begin_halves(),
        }
    }

    fn crash_if_bearable(&mut self, nodes: &[usize]) {
        let spare = self.stage.rng.faults.percent(self.stage.options.faults.spare_parities_percent);
        let suits =
            |node: &usize| self.nodes[*node].state != Life::Down && !(spare && self.hosts_parity(*node));
        let live: Vec<usize> = nodes.iter().copied().filter(suits).collect();
        if live.is_empty() || !self.can_bear(&live, &[]) {
            return;
        }
        self.stage.book.stats.faults += 1;
        // At one moment, or one after the other: into the recovery from the first.
        let spread =
            self.stage.rng.faults.pick(&[0, 300, 1_000, 4_000, self.stage.options.timing.node_lease_us * 2]);
        let mut last = 0;
        for node in &live {
            let life = self.nodes[*node].life;
            let after = if *node == live[0] { 0 } else { self.stage.rng.faults.below(spread + 1) };
            last = last.max(after);
            self.stage.after(after, Event::Crash { node: *node as u16, life });
            if self.stage.rng.faults.percent(self.stage.options.faults.restart_percent) {
                let back = self.stage.now() + after + self.duration();
                self.stage.queue.push(back, Event::Restart { node: *node as u16, life });
            }
        }
        self.begin_fault(live, Vec::new(), Vec::new(), self.stage.now() + last + 1);
    }

    fn hosts_parity(&self, node: usize) -> bool {
        let hosts = |view: &GroupView| view.in_sync().any(|(_, host)| usize::from(host.node.0) == node);
        self.map().is_some_and(|map| map.groups.iter().any(hosts))
    }

    pub(crate) fn crash_due(&mut self, node: usize, life: u32) {
        // What it hosts may have changed since the crash was planned.
        if !self.nemesis.over && self.nodes[node].life == life && self.can_bear(&[node], &[]) {
            self.crash(node);
        }
    }

    fn pause_if_bearable(&mut self) {
        let node = self.any_node();
        if self.nodes[node].state != Life::Up || !self.can_bear(&[node], &[]) {
            return;
        }
        self.stage.book.stats.faults += 1;
        self.pause(node);
        let until = self.stage.now() + self.duration();
        let life = self.nodes[node].life;
        self.stage.queue.push(until, Event::Resume { node: node as u16, life });
        self.begin_fault(vec![node], Vec::new(), Vec::new(), until);
    }

    /// Cuts `nodes` off from all others, and from the coordinator. They come back to their peers first.
    fn isolate(&mut self, nodes: &[usize]) {
        if !self.can_bear(nodes, &[]) {
            return;
        }
        note!(self.stage.book, "fault: nodes {nodes:?} are cut off from everyone");
        self.stage.book.stats.faults += 1;
        let until = self.stage.now() + self.duration();
        let mut undo = Vec::new();
        for inside in nodes.iter().copied() {
            for outside in (0..self.stage.options.nodes).filter(|node| !nodes.contains(node)) {
                self.block(inside, outside);
                undo.push(Undo::Unblock(inside, outside));
            }
        }
        for node in nodes.iter().copied() {
            self.block_line(node);
        }
        self.begin_fault(nodes.to_vec(), Vec::new(), undo, until);
        // The coordinator hears them again once they have had time to meet their peers: a primary that has not would
        // complain of every parity at once.
        let later =
            until + self.stage.options.network.reconnect_us * 5 + self.stage.options.network.most_us * 20;
        let lines = nodes.iter().map(|node| Undo::UnblockLine(*node)).collect();
        self.begin_fault(nodes.to_vec(), Vec::new(), lines, later);
    }

    fn isolate_from_peers(&mut self) {
        let node = self.any_node();
        let others: Vec<usize> = (0..self.stage.options.nodes).filter(|other| *other != node).collect();
        let pairs: Vec<(usize, usize)> = others.iter().map(|other| (node, *other)).collect();
        if !self.can_bear(&[node], &pairs) {
            return;
        }
        note!(self.stage.book, "fault: node-{node} is cut off from its peers");
        self.stage.book.stats.faults += 1;
        for other in &others {
            self.block(node, *other);
        }
        let until = self.stage.now() + self.duration();
        let undo = others.iter().map(|other| Undo::Unblock(node, *other)).collect();
        self.begin_fault(vec![node], pairs, undo, until);
    }

    fn isolate_from_coordinator(&mut self) {
        let node = self.any_node();
        if !self.can_bear(&[node], &[]) {
            return;
        }
        note!(self.stage.book, "fault: node-{node} is cut off from the coordinator");
        self.stage.book.stats.faults += 1;
        self.block_line(node);
        let until = self.stage.now() + self.duration();
        self.begin_fault(vec![node], Vec::new(), vec![Undo::UnblockLine(node)], until);
    }

    fn cut_for_a_while(&mut self, a: usize, b: usize) {
        if a == b || !self.can_bear(&[], &[(a, b)]) {
            return;
        }
        note!(self.stage.book, "fault: node-{a} and node-{b} cannot reach each other");
        self.stage.book.stats.faults += 1;
        self.block(a, b);
        let until = self.stage.now() + self.duration();
        self.begin_fault(Vec::new(), vec![(a, b)], vec![Undo::Unblock(a, b)], until);
    }

    fn split(&mut self) {
        let mut inside: Vec<usize> =
            (0..self.stage.options.nodes).filter(|_| self.stage.rng.faults.percent(30)).collect();
        inside.truncate(self.stage.options.m);
        if !inside.is_empty() {
            self.isolate(&inside);
        }
    }

    fn slow(&mut self) {
        let (a, b) = (self.any_node(), self.any_node());
        let extra = 1 + self.stage.rng.faults.below(self.stage.options.timing.stall_us * 2);
        let harmless = extra < self.stage.options.timing.stall_us / 4;
        let pairs = if harmless { Vec::new() } else { vec![(a, b)] };
        if a == b || !self.can_bear(&[], &pairs) {
            return;
        }
        note!(self.stage.book, "fault: node-{a} to node-{b} takes {extra} us longer");
        self.stage.book.stats.faults += 1;
        let mut undo = Vec::new();
        for shard in 0..self.stage.options.shards {
            let wire = self.wires.between(a * self.stage.options.shards + shard, b);
            self.wires.get_mut(wire).extra_us = extra;
            undo.push(Undo::Quicken(wire));
        }
        // A connection that is made anew over a slow wire greets more than once.
        if self.stage.rng.faults.percent(50) {
            for pair in self.wires.pairs_between(a, b) {
                self.cut(pair);
            }
        }
        let until = self.stage.now() + self.duration();
        self.begin_fault(Vec::new(), pairs, undo, until);
    }

    fn stop_coordinator(&mut self) {
        let Some(number) = self.leader.filter(|number| self.process(*number).is_some_and(|it| !it.paused))
        else {
            return;
        };
        self.stage.book.stats.faults += 1;
        self.pause_coordinator(number);
        self.nobody_decides();
        let until = self.stage.now() + self.duration();
        self.stage.queue.push(until, Event::CoordinatorResume { number });
    }

    /// From now on nobody sees what happens to nodes; the consequences come later.
    pub(crate) fn nobody_decides(&mut self) {
        self.nemesis.blind_since.get_or_insert(self.stage.now());
    }

    /// The coordinator ends: now, or after a few more actions.
    fn crash_the_leader(&mut self) {
        let Some(number) = self.leader else { return };
        if !self.can_be_followed() {
            return;
        }
        self.stage.book.stats.faults += 1;
        let some = self.stage.rng.succession.below(12) as u32;
        match self.process_mut(number) {
            Some(process) if some > 0 => process.ends_after = Some(some - 1),
            _ => self.end_coordinator(number),
        }
    }

    /// Another coordinator is elected; this one goes on, or stands still and wakes up later.
    fn depose_the_leader(&mut self) {
        let Some(number) = self.leader else { return };
        self.stage.book.stats.faults += 1;
        let asleep = self.stage.rng.succession.percent(50);
        if asleep {
            self.pause_coordinator(number);
            let until = self.stage.now() + self.duration();
            self.stage.queue.push(until, Event::CoordinatorResume { number });
        }
        self.depose(number);
        self.notices_later(number);
    }

    fn isolate_the_leader(&mut self) {
        let Some(number) = self.leader else { return };
        self.stage.book.stats.faults += 1;
        note!(self.stage.book, "fault: no node reaches coordinator {number}");
        self.nobody_decides();
        self.isolate_coordinator(number);
    }

    /// Any role, to any node: the coordinator refuses what cannot be.
    fn move_a_role(&mut self) {
        let group = types::GroupId(self.stage.rng.faults.index(self.stage.options.groups) as u32);
        let role = types::RoleIndex(self.stage.rng.faults.index(self.stage.options.n()) as u8);
        let node = self.any_node();
        let host = self.nodes[node].id;
        let Some(leader) = self.leader.and_then(|number| self.process_mut(number)) else { return };
        let number = leader.number;
        let member = types::MemberId { group, role };
        if !leader.paused && leader.coordinator.appoint_learner(member, host) {
            note!(self.stage.book, "{role} of {group} is to move to {host}");
            self.stage.book.stats.moves += 1;
            self.after_coordinator(number);
        }
    }

    fn begin_fault(&mut self, nodes: Vec<usize>, pairs: Vec<(usize, usize)>, undo: Vec<Undo>, until: u64) {
        self.nemesis.active.push(Active { nodes, pairs, undo, counts_until: None });
        let fault = (self.nemesis.active.len() - 1) as u32;
        self.stage.queue.push(until, Event::Mend { fault });
    }

    /// How long the consequences of a fault may show after its end.
    fn grace_us(&self) -> u64 {
        let once = 3 * self.stage.options.timing.node_lease_us + 2 * self.stage.options.timing.stall_us;
        match self.stage.options.succession {
            Some(Succession { write_us, gap_us, late_us, .. }) => 2 * once + 10 * write_us + gap_us + late_us,
            None if self.stage.options.faults.forgets => 2 * once,
            None => once,
        }
    }

    /// The coordinator reads what has waited: the consequences of all that happened meanwhile begin now.
    pub(crate) fn coordinator_sees_again(&mut self) {
        let until = self.stage.now() + self.grace_us();
        if let Some(since) = self.nemesis.blind_since.take() {
            for active in &mut self.nemesis.active {
                active.counts_until =
                    active.counts_until.map(|end| if end > since { end.max(until) } else { end });
            }
        }
    }

    /// A fault ends; for a while its consequences may still show.
    pub(crate) fn mend(&mut self, fault: usize) {
        let grace = self.grace_us();
        let active = &mut self.nemesis.active[fault];
        if active.counts_until.is_some() {
            return;
        }
        active.counts_until = Some(self.stage.now() + grace);
        for undo in std::mem::take(&mut active.undo) {
            match undo {
                Undo::Unblock(a, b) => self.unblock(a, b),
                Undo::UnblockLine(node) => self.unblock_line(node),
                Undo::Quicken(wire) => self.wires.get_mut(wire).extra_us = 0,
            }
        }
    }

    /// Ends all faults: everybody runs, everybody reaches everybody.
    pub(crate) fn heal(&mut self) {
        note!(self.stage.book, "all faults end");
        self.nemesis.over = true;
        for fault in 0..self.nemesis.active.len() {
            self.mend(fault);
        }
        self.end_halves();
        self.heal_coordinators();
        for node in 0..self.stage.options.nodes {
            self.resume(node);
            if self.nodes[node].state == Life::Down && self.stage.options.faults.restart_percent > 0 {
                self.restart(node);
            } else if self.nodes[node].state == Life::Down {
                // An operator says so: where most nodes are silent, the coordinator gives nobody up.
                let life = self.nodes[node].life;
                self.stage.queue.push(self.stage.now(), Event::Exited { node: node as u16, life });
            }
        }
    }

    pub(crate) fn block(&mut self, a: usize, b: usize) {
        for pair in self.wires.pairs_between(a, b) {
            self.wires.pairs[pair].blocked += 1;
            self.cut(pair);
        }
    }

    pub(crate) fn unblock(&mut self, a: usize, b: usize) {
        for pair in self.wires.pairs_between(a, b) {
            self.wires.pairs[pair].blocked -= 1;
        }
    }

    pub(crate) fn block_line(&mut self, node: usize) {
        self.nodes[node].line.blocked += 1;
        self.cut_line(node);
    }

    pub(crate) fn unblock_line(&mut self, node: usize) {
        self.nodes[node].line.blocked -= 1;
    }

    /// Whether every group survives, should all nodes at risk be lost and all parities behind pairs at risk be removed.
    pub(super) fn can_bear(&self, more_nodes: &[usize], more_pairs: &[(usize, usize)]) -> bool {
        // What the coordinator has decided may be recorded or not when something happens next.
        let decided = self.leader.and_then(|number| self.process(number)?.coordinator.map());
        let (Some(recorded), Some(decided)) = (self.map(), decided.or(self.map())) else { return false };
        let since = self.nemesis.blind_since.unwrap_or(self.stage.now());
        let counted: Vec<&Active> =
            self.nemesis.active.iter().filter(|a| a.counts_until.is_none_or(|until| until > since)).collect();
        let mut nodes: Vec<usize> = counted.iter().flat_map(|a| &a.nodes).copied().collect();
        nodes.extend_from_slice(more_nodes);
        let mut pairs: Vec<(usize, usize)> = counted.iter().flat_map(|a| &a.pairs).copied().collect();
        pairs.extend_from_slice(more_pairs);
        if self.stage.options.faults.forgets
            && ![recorded, decided].iter().all(|map| self.most_are_left(map, &nodes))
        {
            return false;
        }
        let beyond = self.stage.options.faults.beyond as i64;
        let views = if std::ptr::eq(recorded, decided) { &[][..] } else { &decided.groups[..] };
        let views = recorded
            .groups
            .iter()
            .chain(views.iter().filter(|view| recorded.group(view.group) != Some(*view)));
        views.into_iter().all(|view| self.worst_margin(view, &nodes, &pairs) >= -beyond)
    }

    /// Whether another coordinator can go on from what is recorded, and from what may yet be.
    pub(super) fn can_be_followed(&self) -> bool {
        let decided = self.leader.and_then(|number| self.process(number)?.coordinator.map());
        let mut maps = self.map().into_iter().chain(decided);
        !self.stage.options.faults.forgets || maps.all(|map| self.most_are_left(map, &[]))
    }

    /// Whether most processes that the map shows as alive are not hit: with fewer a coordinator that starts with nothing waits
    /// for an operator.
    fn most_are_left(&self, map: &types::ClusterMap, hit: &[usize]) -> bool {
        let alive = map.nodes.iter().filter(|info| info.alive);
        let is_left = |info: &&types::NodeInfo| {
            self.is_alive(info.host) && !hit.contains(&usize::from(info.host.node.0))
        };
        2 * alive.clone().filter(is_left).count() > alive.count()
    }

    fn worst_margin(&self, view: &GroupView, nodes: &[usize], pairs: &[(usize, usize)]) -> i64 {
        let node_of = |host: types::HostId| usize::from(host.node.0);
        let is_hit = |host: types::HostId| !self.is_alive(host) || nodes.contains(&node_of(host));
        // A role that moves may be where it moves to before the fault shows; but two that change places are never both on a node
        // without the whole mirror of one elsewhere.
        let is_exchanged = |learner: &types::Learner| {
            view.exchange(learner.role).is_some() || view.roles_on(learner.host.node) > 1
        };
        let moves_to = |host: types::HostId| {
            let on_host = move |role: &types::RoleIndex| {
                let primary = view.data_role(*role).and_then(|data| data.primary);
                primary == Some(host) || view.parity_host(*role) == Some(host)
            };
            let moving = move |learner: &&types::Learner| on_host(&learner.role) && !is_exchanged(learner);
            view.learners.iter().filter(moving).map(|learner| learner.host)
        };
        let at_risk = |host: types::HostId| is_hit(host) || moves_to(host).any(is_hit);
        let apart = |a: usize, b: usize| pairs.iter().any(|pair| *pair == (a, b) || *pair == (b, a));
        let parities: Vec<usize> =
            view.in_sync().filter(|(_, host)| !at_risk(*host)).map(|(_, host)| node_of(host)).collect();
        let serves =
            |node: usize| view.data.iter().filter_map(|role| role.primary).any(|host| node_of(host) == node);
        // A primary that reaches no parity at all is deposed itself; the last parity is never removed for it.
        let deposable = |host: types::HostId| {
            let unreachable = |parity: types::HostId| apart(node_of(parity), node_of(host));
            view.in_sync().any(|(_, parity)| unreachable(parity))
                && view.in_sync().all(|(_, parity)| unreachable(parity) || at_risk(parity))
        };
        // What is lost already is in no sum, and cannot be lost once more.
        let lost = view.data.iter().filter(|role| !role.status.is_lost()).filter(|role| {
            role.status != types::RoleStatus::Full
                || role.primary.is_none_or(|host| at_risk(host) || deposable(host))
        });
        // Where a role is lost, any node may be the next to serve.
        let may_serve = |node: usize| serves(node) || lost.clone().count() > 0;
        let removable = |parity: usize| {
            (0..self.stage.options.nodes).any(|other| apart(parity, other) && may_serve(other))
        };
        let left = parities.iter().filter(|parity| !removable(**parity)).count();
        // But the last one may have been at risk itself when the others were removed.
        let last_stays = !parities.is_empty() && parities.len() == view.in_sync().count();
        left.max(usize::from(last_stays)) as i64 - lost.count() as i64
    }
}
