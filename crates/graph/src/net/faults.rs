//! What goes wrong.

use types::NodeId;

use super::World;
use super::names::{Fault, State, Who};
use super::queue::Event;

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(node) => self.kill(node),
            Fault::Vanish(node) => self.process(Who::Node(node)).state = State::Dead,
            Fault::Stop(node) => self.process(Who::Node(node)).state = State::Stopped,
            Fault::Resume(node) => self.resume(node),
            Fault::Slow(node, factor) => self.wires.slow(node, factor),
            Fault::Lose(node, role) => self.process(Who::Node(node)).chunks.retain(|key, _| key.0 != role),
            Fault::Rot(node, role) => self.process(Who::Node(node)).rotten.push(role),
            Fault::Corrupt(node, role) => {
                let chunks = self.process(Who::Node(node)).chunks.iter_mut();
                for (_, bytes) in chunks.filter(|(key, _)| key.0 == role) {
                    bytes.iter_mut().step_by(512).for_each(|byte| *byte ^= 0x11);
                }
            }
            Fault::View(node, view) => self.process(Who::Node(node)).view = view,
        }
    }

    fn kill(&mut self, node: NodeId) {
        let process = self.process(Who::Node(node));
        process.state = State::Dead;
        process.is_refusing = true;
        let others: Vec<Who> = self.processes.keys().copied().filter(|who| *who != Who::Node(node)).collect();
        for who in others {
            let way = self.wires.way_ns(Who::Node(node), who);
            self.queue.push(self.now_ns + way, Event::Lost { who, node });
        }
    }

    fn resume(&mut self, node: NodeId) {
        let process = self.process(Who::Node(node));
        if process.state == State::Stopped {
            process.state = State::Alive;
            self.queue.push(self.now_ns, Event::Timer(Who::Node(node)));
            self.queue.push(self.now_ns, Event::Wake(Who::Node(node)));
        }
    }
}
