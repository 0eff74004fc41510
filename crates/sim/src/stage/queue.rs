//! Virtual time, and the one priority queue of the simulator: what happens next, and when.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use client_core::RequestId;

/// Something that happens at a point of virtual time. Small and without content: messages wait in their wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first parcel of a wire arrives, unless the wire was cut since.
    Deliver { wire: u32, epoch: u32 },
    /// A host's timer, unless it was set anew since.
    Tick { host: u16 },
    /// A host closes its batch of inputs.
    Flush { host: u16 },
    /// A node sends its heartbeat, unless it died since.
    Heartbeat { node: u16, life: u32 },
    /// Two hosts try to connect.
    Connect { pair: u32 },
    /// One end of a wire notices that the wire was cut.
    Notice { wire: u32, epoch: u32 },
    /// A node tries to connect to the coordinator.
    Join { node: u16, life: u32 },
    /// The oldest message of a node to the coordinator arrives, unless the line was cut since.
    Uplink { node: u16, epoch: u32 },
    /// The oldest message of the coordinator to a node arrives, unless the line was cut since.
    Downlink { node: u16, epoch: u32 },
    /// The coordinator notices that a node's line was cut.
    Parted { node: u16, epoch: u32 },
    /// A coordinator's timer.
    CoordinatorTick { number: u32 },
    /// Records of a coordinator come to the store.
    Write { number: u32 },
    /// Another coordinator is elected, unless there is one.
    Election,
    /// A node learns that another coordinator than the one it is connected to was elected.
    Follow { node: u16, life: u32 },
    /// A coordinator that was deposed learns it, unless it has already.
    Deposed { number: u32 },
    /// A message of a former coordinator arrives, although its line was cut.
    Stray { message: u32 },
    /// The coordinator's parent saw a node end.
    Exited { node: u16, life: u32 },
    /// A client begins its next operation.
    Client { client: u16 },
    /// A value in chunks goes on being sent, or taken: of a call, or of a request on a native client's connection.
    Stream { call: u32, request: u32 },
    /// Something happens to a native client, or to a connection of one.
    Native(NativeEvent),
    /// A client's patience ends.
    Patience { client: u16, call: u32 },
    /// A client learns that its node is gone.
    Dropped { client: u16, call: u32 },
    /// The next fault.
    Fault,
    /// A fault that was aimed at a record under way hits, unless it has already.
    Aimed { fault: u64 },
    /// A node ends, unless it has already.
    Crash { node: u16, life: u32 },
    /// Another coordinator hears another part of the nodes, unless all faults have ended.
    NextHalf { step: u8 },
    /// A fault ends.
    Mend { fault: u32 },
    /// A node starts again, with empty memory.
    Restart { node: u16, life: u32 },
    /// A node goes on after a pause.
    Resume { node: u16, life: u32 },
    /// A coordinator goes on after a pause.
    CoordinatorResume { number: u32 },
    /// Everything is to be compared with its parities.
    Scrub,
    /// A host measures its links on purpose.
    Probe,
    /// An operator makes, changes or removes a pool or a namespace.
    Catalog,
    /// An operator has a namespace move to another pool.
    Convert,
}

/// What happens to native clients, and to their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NativeEvent {
    /// A connection stands, or nobody listens.
    Dial(u32),
    /// The oldest bytes come to the node.
    Up(u32),
    /// The oldest bytes come to the client.
    Down(u32),
    /// The client learns that its connection is lost.
    Lost(u32),
    /// The node learns that a connection has ended.
    Gone(u32),
    /// The timer of a process of clients, unless another one has begun since.
    Tick { process: u16, life: u32 },
    /// A call must have ended.
    Due(u32),
    /// A process of clients ends, and another one begins.
    Anew(u16),
    /// A process of clients wants to know which keys there are.
    Scan(u16),
    /// A process of clients has more of a value that it gives bit by bit, unless another one has begun since.
    Feed { process: u16, life: u32, id: RequestId },
}

/// A life of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LifeOf {
    pub node: usize,
    pub life: u32,
}

impl Event {
    /// The life of a node that it belongs to: it does not happen if another one has begun.
    pub(crate) fn life(&self) -> Option<LifeOf> {
        match *self {
            Self::Heartbeat { node, life }
            | Self::Join { node, life }
            | Self::Follow { node, life }
            | Self::Exited { node, life }
            | Self::Crash { node, life }
            | Self::Restart { node, life }
            | Self::Resume { node, life } => Some(LifeOf { node: usize::from(node), life }),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: u64,
    sequence: u64,
    event: Event,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        // Turned round, for the heap gives the greatest first. The sequence leaves nothing
        // to the order inside of the heap.
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Virtual time, and events by time; those of one moment in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    now: u64,
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl Queue {
    /// Adds `event` at time `at`.
    pub(crate) fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, event });
    }

    /// Virtual time: that of the newest event.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Nothing happens until `until`.
    pub(crate) fn wait(&mut self, until: u64) {
        self.now = self.now.max(until);
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Goes on to the next event.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let Entry { at, event, .. } = self.heap.pop()?;
        debug_assert!(at >= self.now, "time does not run backwards");
        self.now = at;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut queue = Queue::default();
        for node in 0..100 {
            queue.push(5, Event::Heartbeat { node, life: 0 });
        }
        queue.push(4, Event::Fault);
        assert_eq!((queue.pop(), queue.now()), (Some(Event::Fault), 4));
        for node in 0..100 {
            assert_eq!(queue.pop(), Some(Event::Heartbeat { node, life: 0 }));
        }
    }
}
