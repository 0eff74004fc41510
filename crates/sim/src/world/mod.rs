//! A cluster and its queue of events. Moves when told to; knows nothing of what is right.
//!
//! Here is only who hears of what. Each event goes down to the parts that it concerns; a part is a struct with private fields in a
//! file of its own, takes what it needs of the others as arguments, and gives back what has to happen elsewhere:
//!
//! - [`Stage`]: what all share: options, virtual time, random numbers, the book;
//! - [`Cluster`]: nodes with their hosts, coordinators, and what these have recorded;
//! - [`Wires`] and [`Lines`]: what is under way between nodes, and between nodes and coordinators;
//! - [`Reign`]: what coordinators do, for which no host is touched;
//! - [`Clients`]: calls, and what may be answered;
//! - [`Natives`]: clients of the native protocol, and their connections;
//! - [`Streams`]: what nodes do for calls of values in chunks;
//! - [`Shadow`]: what members may send, and must hold;
//! - [`Nemesis`]: what goes wrong, said as data;
//! - [`Checks`]: when the inside of members is looked at.

mod chunks;
mod conversions;
mod faults;
mod hosts;
mod landings;
pub(crate) mod natives;
mod onward;
mod probes;
mod processes;
pub(crate) mod reign;
mod scans;
mod streams;

use types::ClusterMap;

use crate::checks::{AtRest, Checks, Onlooker};
use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::natives::Natives;
use crate::nemesis::Nemesis;
use crate::network::lines::Lines;
use crate::network::wires::Wires;
use crate::options::Options;
use crate::shadow::Shadow;
use crate::stage::Stage;
use crate::stage::queue::Event;
use crate::stage::report::Failure;
use crate::stage::trace::Trace;
use reign::Reign;
use streams::Streams;

/// A whole cluster in virtual time.
pub struct World {
    pub(crate) stage: Stage,
    pub(crate) cluster: Cluster,
    pub(crate) wires: Wires,
    pub(crate) lines: Lines,
    pub(crate) clients: Clients,
    pub(crate) natives: Natives,
    pub(crate) streams: Streams,
    pub(crate) shadow: Shadow,
    pub(crate) nemesis: Nemesis,
    pub(crate) checks: Checks,
}

impl World {
    /// A cluster about to start: nothing has happened yet.
    #[must_use]
    pub fn new(options: Options, trace: Trace) -> Self {
        let mut stage = Stage::new(options, trace);
        let options = &stage.options;
        // In this order: wires and lines draw from one stream, and in another order every seed would be another run.
        let mut world = Self {
            wires: Wires::new(options.nodes, options.shards, &options.network, &mut stage.rng.network),
            lines: Lines::new(&mut stage),
            cluster: Cluster::new(&mut stage),
            clients: Clients::default(),
            natives: Natives::default(),
            streams: Streams::default(),
            shadow: Shadow::new(&stage.options),
            nemesis: Nemesis::default(),
            checks: Checks::new(&stage.options),
            stage,
        };
        for node in 0..world.cluster.nodes.count() {
            world.start(node);
        }
        world.cluster.coordinators.arm(&mut world.stage, 0, None);
        world
    }

    /// Virtual time, in microseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.stage.now()
    }

    /// The first rule that was broken.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.stage.book.failure()
    }

    /// The map as it is recorded, once the cluster has formed.
    #[must_use]
    pub fn map(&self) -> Option<&ClusterMap> {
        self.cluster.map()
    }

    /// Does the next thing; false if there is none, or a rule is broken.
    pub fn step(&mut self) -> bool {
        if self.stage.book.has_failed() {
            return false;
        }
        let Some(event) = self.stage.next_event() else { return false };
        self.handle(event);
        if self.checks.are_due(&mut self.stage) {
            self.checks.count(&mut self.stage.book, &self.cluster.nodes);
            self.onlooker().look_somewhere();
        }
        !self.stage.book.has_failed()
    }

    /// Goes on until virtual time `until`, or a broken rule; whether none was broken.
    pub fn run_until(&mut self, until: u64) -> bool {
        while self.stage.queue.next_at().is_some_and(|at| at <= until) {
            if !self.step() {
                break;
            }
        }
        if !self.stage.book.has_failed() {
            self.stage.wait(until);
        }
        !self.stage.book.has_failed()
    }

    /// What coordinators have to do with.
    pub(crate) fn reign(&mut self) -> Reign<'_> {
        Reign {
            stage: &mut self.stage,
            cluster: &mut self.cluster,
            lines: &mut self.lines,
            shadow: &mut self.shadow,
            clients: &mut self.clients,
            nemesis: &mut self.nemesis,
        }
    }

    /// What those see who look into members.
    pub(crate) fn onlooker(&mut self) -> Onlooker<'_> {
        let (cluster, clients) = (&self.cluster, &self.clients);
        Onlooker { stage: &mut self.stage, cluster, clients, shadow: &mut self.shadow }
    }

    /// What is looked at where everything should be at rest.
    pub(crate) fn at_rest(&self) -> AtRest<'_> {
        AtRest { options: &self.stage.options, cluster: &self.cluster, clients: &self.clients }
    }

    fn handle(&mut self, event: Event) {
        if event.life().is_some_and(|of| self.cluster.nodes[of.node].life != of.life) {
            return;
        }
        match event {
            Event::Deliver { wire, epoch } => self.deliver(wire as usize, epoch),
            Event::Connect { pair } => {
                self.wires.connect(&mut self.stage, &self.cluster.nodes, pair as usize);
            }
            Event::Notice { wire, epoch } => self.notice_cut(wire as usize, epoch),
            Event::Join { node, .. } => {
                self.lines.join(&mut self.stage, &mut self.cluster, usize::from(node));
            }
            Event::Heartbeat { node, .. } => {
                self.lines.beat(&mut self.stage, &mut self.cluster.nodes, usize::from(node));
                self.natively().tell_maps(usize::from(node));
            }
            Event::Uplink { node, epoch } => self.reign().uplink(usize::from(node), epoch),
            Event::Downlink { node, epoch } => self.downlink(usize::from(node), epoch),
            Event::Stray { message } => self.stray(message as usize),
            Event::Parted { node, epoch } => self.reign().parted(usize::from(node), epoch),
            Event::Follow { node, .. } => {
                self.lines.follow(&mut self.stage, &self.cluster, usize::from(node));
            }
            Event::CoordinatorTick { number } => self.reign().timer(number),
            Event::Write { number } => self.reign().write_arrives(number),
            Event::Election => self.reign().elect(),
            Event::Deposed { number } => self.reign().notices_successor(number),
            Event::CoordinatorResume { number } => self.reign().resume(number),
            Event::Tick { host } => self.timer(usize::from(host)),
            Event::Flush { host } => self.flush(usize::from(host)),
            Event::Client { client } => self.client_turn(client),
            Event::Stream { call, request } => self.go_on_streaming(call, request),
            Event::Native(event) => self.natively().handle(event),
            Event::Patience { client, call } | Event::Dropped { client, call } => {
                if !self.natively().cancel(call) {
                    self.clients.give_up(&mut self.stage, client, call);
                }
            }
            Event::Fault => self.next_fault(),
            Event::Aimed { fault } => self.fault_hits(fault),
            Event::NextHalf { step } => self.turn_halves(step),
            Event::Mend { fault } => self.mend(fault as usize),
            Event::Crash { node, .. } => self.crash_due(usize::from(node)),
            Event::Exited { node, .. } => self.reign().exited(usize::from(node)),
            Event::Restart { node, .. } => self.restart(usize::from(node)),
            Event::Resume { node, .. } => self.resume(usize::from(node)),
            Event::Scrub => self.reign().scrub(),
            Event::Probe => probes::next(self),
            Event::Catalog => self.reign().change_catalog(),
            Event::Convert => self.reign().convert(),
        }
    }
}
