//! A fault is drawn: whom it hits, for how long, and whether that can be borne. What is to be done is said as data.

use types::{GroupId, GroupView, HostId, MemberId, RoleIndex};

use super::margin::can_bear_another_group;
use super::{Lasting, Nemesis, Risk, Undo, can_be_followed, can_bear};
use crate::cluster::Cluster;
use crate::cluster::process::Life;
use crate::options::FaultKind;
use crate::stage::Stage;
use crate::stage::queue::Event;

/// Something that is done to the cluster.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// A process stands still.
    Pause(usize),
    /// Two nodes cannot reach each other.
    Block(usize, usize),
    /// A node and the coordinator cannot reach each other.
    BlockLine(usize),
    /// The connections between two nodes break.
    Cut(usize, usize),
    /// One direction between two nodes takes longer.
    Slow { from: usize, to: usize, extra_us: u64 },
    /// A coordinator stands still.
    PauseCoordinator(u32),
    /// A coordinator ends.
    EndCoordinator(u32),
    /// A coordinator ends after so many actions more.
    EndCoordinatorAfter { number: u32, actions: u32 },
    /// Another coordinator is to be elected; this one notices later.
    Depose(u32),
    /// No node reaches a coordinator any more.
    IsolateCoordinator(u32),
    /// Nobody sees what happens to nodes.
    NobodyDecides,
    /// A role is to move.
    Move { member: MemberId, host: HostId },
    /// Coordinators hear some nodes, the others, and the former again.
    Halves(Vec<usize>),
}

/// A fault: what is done at once, and what goes on. Empty where nothing can be borne.
#[derive(Debug, Default)]
pub(crate) struct Strike {
    pub deeds: Vec<Deed>,
    pub lasting: Vec<Lasting>,
}

impl Strike {
    fn at_once(deeds: Vec<Deed>) -> Self {
        Self { deeds, lasting: Vec::new() }
    }
}

/// Draws a fault of this kind.
pub(crate) fn plan(stage: &mut Stage, cluster: &Cluster, nemesis: &Nemesis, kind: FaultKind) -> Strike {
    let mut planner = Planner { stage, cluster, nemesis };
    planner.plan(kind).unwrap_or_default()
}

/// What a fault is drawn from.
struct Planner<'a> {
    stage: &'a mut Stage,
    cluster: &'a Cluster,
    nemesis: &'a Nemesis,
}

impl Planner<'_> {
    fn plan(&mut self, kind: FaultKind) -> Option<Strike> {
        match kind {
            FaultKind::Crash => self.crash(),
            FaultKind::CrashSeveral => self.crash_several(),
            FaultKind::Pause => self.pause(),
            FaultKind::Isolate => {
                let node = self.any_node();
                self.isolate(vec![node])
            }
            FaultKind::IsolateFromPeers => self.isolate_from_peers(),
            FaultKind::IsolateFromCoordinator => self.isolate_from_coordinator(),
            FaultKind::Cut => self.cut(),
            FaultKind::Flap => self.flap(),
            FaultKind::Split => self.split(),
            FaultKind::Slow => self.slow(),
            FaultKind::CoordinatorPause => self.stop_coordinator(),
            FaultKind::Move => Some(self.move_a_role()),
            FaultKind::CoordinatorCrash => self.crash_the_leader(),
            FaultKind::CoordinatorDepose => self.depose_the_leader(),
            FaultKind::CoordinatorIsolate => self.isolate_the_leader(),
            FaultKind::CoordinatorHalves => self.halves(),
        }
    }

    // --- draws ---

    fn any_node(&mut self) -> usize {
        self.stage.rng.faults.index(self.stage.options.nodes)
    }

    fn duration(&mut self) -> u64 {
        1 + self.stage.rng.faults.tailed(self.stage.options.faults.lasting_us)
    }

    /// When a fault ends that begins now.
    fn until(&mut self) -> u64 {
        self.stage.now() + self.duration()
    }

    /// Whether this crash spares nodes with a parity.
    fn spares_parities(&mut self) -> bool {
        self.stage.rng.faults.percent(self.stage.options.faults.spare_parities_percent)
    }

    // --- looks ---

    fn can_bear(&self, more: &Risk) -> bool {
        let mut risk = self.nemesis.risk(self.stage.now());
        risk.add(more);
        can_bear(&self.stage.options, self.cluster, &risk)
    }

    fn hosts_parity(&self, node: usize) -> bool {
        let hosts = |view: &GroupView| view.in_sync().any(|(_, host)| usize::from(host.node.0) == node);
        self.cluster.map().is_some_and(|map| map.groups.iter().any(hosts))
    }

    fn others(&self, nodes: &[usize]) -> Vec<usize> {
        (0..self.stage.options.nodes).filter(|node| !nodes.contains(node)).collect()
    }

    // --- nodes ---

    fn crash(&mut self) -> Option<Strike> {
        let mut node = self.any_node();
        // Another node rather than no crash: `crash_nodes` often refuses those with a parity,
        // and crashes would become rare.
        if self.hosts_parity(node) && self.spares_parities() {
            node = self.any_node();
        }
        self.crash_nodes(&[node])
    }

    fn crash_several(&mut self) -> Option<Strike> {
        let count = 2 + self.stage.rng.faults.index(self.stage.options.m.max(1));
        let mut nodes: Vec<usize> = Vec::new();
        for _ in 0..count {
            let node = self.any_node();
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        self.crash_nodes(&nodes)
    }

    /// At one moment, or one after the other: into the recovery from the first.
    fn crash_nodes(&mut self, nodes: &[usize]) -> Option<Strike> {
        let spare = self.spares_parities();
        let suits = |node: &usize| {
            self.cluster.nodes[*node].state != Life::Down && !(spare && self.hosts_parity(*node))
        };
        let live: Vec<usize> = nodes.iter().copied().filter(suits).collect();
        if live.is_empty() || !self.can_bear(&Risk::of_nodes(live.clone())) {
            return None;
        }
        self.stage.book.stats.faults += 1;
        let lease_us = self.stage.options.timing.node_lease_us;
        let spread = self.stage.rng.faults.pick(&[0, 300, 1_000, 4_000, lease_us * 2]);
        let mut last = 0;
        for node in &live {
            let after = if *node == live[0] { 0 } else { self.stage.rng.faults.below(spread + 1) };
            last = last.max(after);
            self.crash_later(*node, after);
        }
        let until = self.stage.now() + last + 1;
        let lasting = Lasting { risk: Risk::of_nodes(live), undo: Vec::new(), until };
        Some(Strike { deeds: Vec::new(), lasting: vec![lasting] })
    }

    /// A node ends, and perhaps starts again.
    fn crash_later(&mut self, node: usize, after: u64) {
        let life = self.cluster.nodes[node].life;
        self.stage.after(after, Event::Crash { node: node as u16, life });
        if self.stage.rng.faults.percent(self.stage.options.faults.restart_percent) {
            let back = after + self.duration();
            self.stage.after(back, Event::Restart { node: node as u16, life });
        }
    }

    fn pause(&mut self) -> Option<Strike> {
        let node = self.any_node();
        let risk = Risk::of_nodes(vec![node]);
        if !self.cluster.nodes.is_up(node) || !self.can_bear(&risk) {
            return None;
        }
        self.stage.book.stats.faults += 1;
        let (until, life) = (self.until(), self.cluster.nodes[node].life);
        self.stage.queue.push(until, Event::Resume { node: node as u16, life });
        let lasting = Lasting { risk, undo: Vec::new(), until };
        Some(Strike { deeds: vec![Deed::Pause(node)], lasting: vec![lasting] })
    }

    // --- connections ---

    /// Cuts `nodes` off from all others, and from the coordinator. They come back to their peers first.
    fn isolate(&mut self, nodes: Vec<usize>) -> Option<Strike> {
        let risk = Risk::of_nodes(nodes.clone());
        if !self.can_bear(&risk) {
            return None;
        }
        note!(self.stage.book, "fault: nodes {nodes:?} are cut off from everyone");
        self.stage.book.stats.faults += 1;
        let until = self.until();
        let (mut deeds, mut undo) = (Vec::new(), Vec::new());
        for inside in nodes.iter().copied() {
            for outside in self.others(&nodes) {
                deeds.push(Deed::Block(inside, outside));
                undo.push(Undo::Unblock(inside, outside));
            }
        }
        deeds.extend(nodes.iter().copied().map(Deed::BlockLine));
        // The coordinator hears them again once they have had time to meet their peers: a primary that has not would
        // complain of every parity at once.
        let network = &self.stage.options.network;
        let later = until + network.reconnect_us * 5 + network.most_us * 20;
        let lines = nodes.into_iter().map(Undo::UnblockLine).collect();
        let lasting =
            vec![Lasting { risk: risk.clone(), undo, until }, Lasting { risk, undo: lines, until: later }];
        Some(Strike { deeds, lasting })
    }

    fn isolate_from_peers(&mut self) -> Option<Strike> {
        let node = self.any_node();
        let others = self.others(&[node]);
        // It may be deposed, or have its parities removed, whichever complaint comes first.
        let pairs = others.iter().map(|other| (node, *other)).collect();
        let risk = Risk { nodes: vec![node], pairs };
        if !self.can_bear(&risk) {
            return None;
        }
        note!(self.stage.book, "fault: node-{node} is cut off from its peers");
        self.stage.book.stats.faults += 1;
        let deeds = others.iter().map(|other| Deed::Block(node, *other)).collect();
        let undo = others.iter().map(|other| Undo::Unblock(node, *other)).collect();
        let lasting = vec![Lasting { risk, undo, until: self.until() }];
        Some(Strike { deeds, lasting })
    }

    fn isolate_from_coordinator(&mut self) -> Option<Strike> {
        let node = self.any_node();
        let risk = Risk::of_nodes(vec![node]);
        if !self.can_bear(&risk) {
            return None;
        }
        note!(self.stage.book, "fault: node-{node} is cut off from the coordinator");
        self.stage.book.stats.faults += 1;
        let lasting = Lasting { risk, undo: vec![Undo::UnblockLine(node)], until: self.until() };
        Some(Strike { deeds: vec![Deed::BlockLine(node)], lasting: vec![lasting] })
    }

    fn cut(&mut self) -> Option<Strike> {
        let (a, b) = (self.any_node(), self.any_node());
        let risk = Risk::of_pairs(vec![(a, b)]);
        if a == b || !self.can_bear(&risk) {
            return None;
        }
        note!(self.stage.book, "fault: node-{a} and node-{b} cannot reach each other");
        self.stage.book.stats.faults += 1;
        let lasting = Lasting { risk, undo: vec![Undo::Unblock(a, b)], until: self.until() };
        Some(Strike { deeds: vec![Deed::Block(a, b)], lasting: vec![lasting] })
    }

    fn flap(&mut self) -> Option<Strike> {
        let (a, b) = (self.any_node(), self.any_node());
        if a == b {
            return None;
        }
        // Costs no margin: the two connect again before anybody has the patience to complain.
        note!(self.stage.book, "fault: flap node-{a} node-{b}");
        self.stage.book.stats.faults += 1;
        Some(Strike::at_once(vec![Deed::Cut(a, b)]))
    }

    fn split(&mut self) -> Option<Strike> {
        let nodes = 0..self.stage.options.nodes;
        let mut inside: Vec<usize> = nodes.filter(|_| self.stage.rng.faults.percent(30)).collect();
        // All of them may be taken for dead, and the code makes up for no more.
        inside.truncate(self.stage.options.m);
        if inside.is_empty() { None } else { self.isolate(inside) }
    }

    fn slow(&mut self) -> Option<Strike> {
        let (from, to) = (self.any_node(), self.any_node());
        let stall_us = self.stage.options.timing.stall_us;
        let extra_us = 1 + self.stage.rng.faults.below(stall_us * 2);
        let is_harmless = extra_us < stall_us / 4;
        let risk = Risk::of_pairs(if is_harmless { Vec::new() } else { vec![(from, to)] });
        if from == to || !self.can_bear(&risk) {
            return None;
        }
        note!(self.stage.book, "fault: node-{from} to node-{to} takes {extra_us} us longer");
        self.stage.book.stats.faults += 1;
        let mut deeds = vec![Deed::Slow { from, to, extra_us }];
        // A connection that is made anew over a slow wire greets more than once.
        if self.stage.rng.faults.percent(50) {
            deeds.push(Deed::Cut(from, to));
        }
        let lasting = vec![Lasting { risk, undo: vec![Undo::Quicken(from, to)], until: self.until() }];
        Some(Strike { deeds, lasting })
    }

    // --- coordinators ---

    fn stop_coordinator(&mut self) -> Option<Strike> {
        let number = self.cluster.coordinators.leading().filter(|leader| !leader.paused)?.number;
        self.stage.book.stats.faults += 1;
        let until = self.until();
        self.stage.queue.push(until, Event::CoordinatorResume { number });
        Some(Strike::at_once(vec![Deed::PauseCoordinator(number), Deed::NobodyDecides]))
    }

    /// The coordinator ends: now, or after a few more actions.
    fn crash_the_leader(&mut self) -> Option<Strike> {
        let number = self.cluster.coordinators.leader()?;
        if !can_be_followed(&self.stage.options, self.cluster) {
            return None;
        }
        self.stage.book.stats.faults += 1;
        let deed = match self.stage.rng.succession.below(12) as u32 {
            0 => Deed::EndCoordinator(number),
            some => Deed::EndCoordinatorAfter { number, actions: some - 1 },
        };
        Some(Strike::at_once(vec![deed]))
    }

    /// Another coordinator is elected; this one goes on, or stands still and wakes up later.
    fn depose_the_leader(&mut self) -> Option<Strike> {
        let number = self.cluster.coordinators.leader()?;
        self.stage.book.stats.faults += 1;
        let mut deeds = Vec::new();
        let is_asleep = self.stage.rng.succession.percent(50);
        if is_asleep {
            deeds.push(Deed::PauseCoordinator(number));
            let until = self.until();
            self.stage.queue.push(until, Event::CoordinatorResume { number });
        }
        deeds.push(Deed::Depose(number));
        Some(Strike::at_once(deeds))
    }

    fn isolate_the_leader(&mut self) -> Option<Strike> {
        let number = self.cluster.coordinators.leader()?;
        self.stage.book.stats.faults += 1;
        note!(self.stage.book, "fault: no node reaches coordinator {number}");
        Some(Strike::at_once(vec![Deed::NobodyDecides, Deed::IsolateCoordinator(number)]))
    }

    /// Any role, to any node: the coordinator refuses what cannot be.
    fn move_a_role(&mut self) -> Strike {
        let group = GroupId(self.stage.rng.faults.index(self.stage.options.groups) as u32);
        let role = RoleIndex(self.stage.rng.faults.index(self.stage.options.n()) as u8);
        let host = self.cluster.nodes[self.any_node()].id;
        Strike::at_once(vec![Deed::Move { member: MemberId { group, role }, host }])
    }

    fn halves(&mut self) -> Option<Strike> {
        let few = self.draw_few();
        let is_none =
            few.is_empty() || self.cluster.coordinators.leader().is_none() || self.nemesis.halves.is_some();
        if is_none || !self.can_bear(&Risk::of_nodes(few.clone())) {
            return None;
        }
        note!(
            self.stage.book,
            "fault: coordinators hear one after another nodes {few:?}, the others, and {few:?} again"
        );
        self.stage.book.stats.faults += 1;
        Some(Strike::at_once(vec![Deed::Halves(few)]))
    }

    /// Fewer than half, so that more are silent than the code can make up for.
    fn draw_few(&mut self) -> Vec<usize> {
        let alive = self.cluster.map().into_iter().flat_map(|map| &map.nodes).filter(|info| info.alive);
        let mut few: Vec<usize> = alive.map(|info| usize::from(info.host.node.0)).collect();
        let silent = self.stage.options.m + 1;
        let most = (few.len().saturating_sub(1) / 2).min(few.len().saturating_sub(silent));
        while few.len() > most {
            let at = self.stage.rng.faults.index(few.len());
            few.swap_remove(at);
        }
        few
    }
}

impl Nemesis {
    /// What was planned before: whether a crash of `node` can still be borne.
    pub(crate) fn can_still_crash(&self, stage: &Stage, cluster: &Cluster, node: usize) -> bool {
        let mut risk = self.risk(stage.now());
        risk.add(&Risk::of_nodes(vec![node]));
        !self.over && can_bear(&stage.options, cluster, &risk)
    }

    /// Whether an operator may make a pool: a group that begins with more members lost than the code bears is lost already.
    pub(crate) fn can_bear_another_pool(&self, stage: &Stage, cluster: &Cluster) -> bool {
        can_bear_another_group(&stage.options, cluster, &self.risk(stage.now()))
    }
}
