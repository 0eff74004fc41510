//! Processes end, start, stand still and go on.

use super::told::Story;
use crate::stage::queue::Event;

impl Story {
    /// The process of `node` ends (SIGKILL); nobody tells the coordinator.
    pub fn kill(&mut self, node: usize) {
        self.world.crash(node);
        self.look();
    }

    /// The process of `node` ends, and the coordinator's parent sees it at once.
    pub fn kill_watched(&mut self, node: usize) {
        let life = self.world.cluster.nodes[node].life;
        self.world.crash(node);
        self.world.stage.queue.push(self.world.stage.now(), Event::Exited { node: node as u16, life });
        self.look();
    }

    /// A new process on `node`, with empty memory.
    pub fn start(&mut self, node: usize) {
        self.world.restart(node);
    }

    /// The process of `node` stands still (SIGSTOP).
    pub fn stop(&mut self, node: usize) {
        self.world.cluster.nodes.pause(&mut self.world.stage, node);
    }

    /// The process of `node` goes on (SIGCONT).
    pub fn go_on(&mut self, node: usize) {
        self.world.resume(node);
        self.look();
    }
}
