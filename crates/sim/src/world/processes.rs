//! Processes start, end, stand still and go on, and clients call them.

use proto::QuickRead;

use super::World;
use crate::clients::calls::Ask;
use crate::cluster::process::Life;
use crate::stage::queue::Event;

impl World {
    /// The process of `node` begins.
    pub(super) fn start(&mut self, node: usize) {
        let life = self.cluster.nodes[node].life;
        self.cluster.nodes.start(&mut self.stage, node);
        let after = 1 + self.stage.rng.network.below(self.stage.options.network.reconnect_us + 1);
        self.stage.after(after, Event::Join { node: node as u16, life });
        // Each node at another time: heartbeats that always come together would hide what their order can do.
        let beat = self.stage.rng.network.below(self.stage.options.timing.heartbeat_us + 1);
        self.stage.after(beat, Event::Heartbeat { node: node as u16, life });
        self.wires.begin_at(&mut self.stage, node);
    }

    /// The process of `node` ends, if it has not; its memory is gone.
    pub(crate) fn crash(&mut self, node: usize) {
        if self.cluster.nodes[node].state == Life::Down {
            return;
        }
        self.cluster.nodes.end(&mut self.stage, node);
        self.wires.end_at(&mut self.stage, node);
        self.lines.cut(&mut self.stage, &self.cluster, node);
        self.clients.drop_calls_at(&mut self.stage, &self.cluster.nodes, node);
        self.natives.end_at(&mut self.stage, node);
        if let Some(after) = self.stage.options.faults.supervised_us {
            let life = self.cluster.nodes[node].life;
            self.stage.after(after, Event::Exited { node: node as u16, life });
        }
    }

    /// A new process on `node`, unless one runs there; with empty memory.
    pub(crate) fn restart(&mut self, node: usize) {
        if self.cluster.nodes[node].state != Life::Down {
            return;
        }
        self.cluster.nodes[node].begin_life(&self.stage.options);
        note!(self.stage.book, "{} starts", self.cluster.nodes[node].id);
        self.start(node);
    }

    /// The process of `node` goes on, if it stood still: with its timers first or with its inputs first.
    pub(crate) fn resume(&mut self, node: usize) {
        if !self.cluster.nodes.wake(&mut self.stage, node) {
            return;
        }
        // A zombie may look at its clock before it reads what waits, or after: it depends
        // on that what it still believes.
        let timers_first = self.stage.rng.processes.percent(50);
        if timers_first {
            self.tick_all(node);
        }
        while let Some(input) = self.cluster.nodes[node].backlog.pop_front() {
            self.feed(node, input);
            // What it reads may end it: it was given up for dead meanwhile.
            if self.cluster.nodes[node].state == Life::Down {
                return;
            }
        }
        self.tick_all(node);
    }

    // --- clients ---

    /// Clients begin. The cluster has formed.
    pub(crate) fn admit_clients(&mut self) {
        self.reign().make_namespaces();
        // As it is decided: that there are these namespaces may not be recorded yet.
        if let Some(map) = self.cluster.decided().or(self.cluster.map()) {
            self.clients.admit(&mut self.stage, map);
            self.natives.admit(&mut self.stage, map);
        }
    }

    pub(super) fn client_turn(&mut self, client: u16) {
        if let Some(process) = self.stage.options.native_process_of(client) {
            return self.natively().turn(client, process);
        }
        if let Some(ask) = self.clients.turn(&mut self.stage, &self.cluster.nodes, client) {
            let call = self.call(ask);
            self.clients.wait(&mut self.stage, client, call);
        }
    }

    /// Begins a call. It may have ended when this returns.
    pub(crate) fn call(&mut self, ask: Ask) -> u32 {
        let call = self.clients.begin(&mut self.stage, &self.cluster.nodes, &ask);
        let reads = ask.is_plain_read() && self.cluster.nodes.is_up(ask.node);
        // Servers try this short way first. Half of the reads leave it out, so that the long way is looked at where
        // the short one would do.
        if reads && self.stage.rng.clients.percent(50) {
            let key = &self.clients.keys()[ask.key];
            let host = self.cluster.nodes.host_for(ask.node, key.member.group);
            if let Some(outcome) =
                self.cluster.nodes.quick_read(&self.stage, host, QuickRead::plain(&key.bytes))
            {
                self.clients.end(&mut self.stage, self.cluster.map(), call, outcome);
                return call;
            }
        }
        let node = ask.node;
        let submission = self.clients.submission(&self.cluster.nodes, call, ask);
        self.give(node, submission);
        call
    }
}
