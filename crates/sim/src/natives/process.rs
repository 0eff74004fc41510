//! A process of native clients: the core that they share, and their requests.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use client_core::{Config, ConnId, Core, RequestId};
use native::Meta;
use types::{NamespaceId, Time};

use super::parts::Parts;
use super::promises::Promises;
use super::rooms::Buffers;
use super::scanning::Scanning;
use crate::stage::Stage;
use crate::stage::clock::Clock;
use crate::stage::queue::{Event, NativeEvent};

/// Ticks in a row without any passing of time that count as a timer that never comes to rest.
const MAX_IDLE_TICKS: u32 = 2_000;

/// See the module.
pub(crate) struct Process {
    /// How often it was started.
    pub life: u32,
    /// Whose keys it is about.
    pub namespace: NamespaceId,
    pub core: Core,
    /// Its connections.
    pub links: BTreeMap<ConnId, u32>,
    /// Who waits for its requests.
    pub callers: BTreeMap<RequestId, Caller>,
    pub promises: Promises,
    /// Where it has values received.
    pub buffers: Buffers,
    /// The scan that it makes, if it makes one.
    pub scanning: Option<Scanning>,
    /// Requests of scans that are over.
    pub scanned: BTreeSet<RequestId>,
    clock: Clock,
    tick_at: u64,
    idle: (u64, u32),
}

/// A call, with what has come for it.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub client: u16,
    pub call: u32,
    pub found: Option<Meta>,
    pub value: Vec<u8>,
    /// What is left to be fed of a value that it gives bit by bit.
    pub unfed: Bytes,
    /// If it reads its value part by part.
    pub parts: Option<Parts>,
}

impl Process {
    pub(crate) fn new(namespace: NamespaceId, clock: Clock, config: Config) -> Self {
        Self {
            life: 0,
            namespace,
            core: Core::new(config),
            links: BTreeMap::new(),
            callers: BTreeMap::new(),
            promises: Promises::default(),
            buffers: Buffers::default(),
            scanning: None,
            scanned: BTreeSet::new(),
            clock,
            tick_at: u64::MAX,
            idle: (0, 0),
        }
    }

    /// Another one in its place: what it leaves.
    pub(super) fn begin_anew(&mut self, config: Config) -> (Vec<Caller>, Vec<u32>) {
        let fresh = Self { life: self.life + 1, ..Self::new(self.namespace, self.clock, config) };
        let former = std::mem::replace(self, fresh);
        (former.callers.into_values().collect(), former.links.into_values().collect())
    }

    /// What it reads on its clock.
    pub(crate) fn now(&self, stage: &Stage) -> Time {
        self.clock.read(stage.now())
    }

    /// When its clock shows so much more than now.
    pub(crate) fn in_us(&self, stage: &Stage, us: u64) -> u64 {
        self.clock.when(self.now(stage) + us, stage.now()).unwrap_or(u64::MAX)
    }

    /// The request for which a call waits.
    pub(crate) fn request_of(&self, call: u32) -> Option<RequestId> {
        self.callers.iter().find(|(_, caller)| caller.call == call).map(|(id, _)| *id)
    }

    /// Sets the timer of process `number`.
    pub(crate) fn arm(&mut self, stage: &mut Stage, number: usize) {
        let now = self.now(stage);
        let Some(at) = self.core.next_deadline(now).and_then(|time| self.clock.when(time, stage.now()))
        else {
            return;
        };
        // One that is in the queue and comes too early does no harm.
        if at < self.tick_at {
            self.tick_at = at;
            let event = NativeEvent::Tick { process: number as u16, life: self.life };
            stage.queue.push(at, Event::Native(event));
        }
    }

    /// Looks at its clock, if the timer was not set anew since.
    pub(crate) fn tick(&mut self, stage: &mut Stage) {
        if self.tick_at != stage.now() {
            return;
        }
        self.tick_at = u64::MAX;
        self.idle =
            if self.idle.0 == stage.now() { (stage.now(), self.idle.1 + 1) } else { (stage.now(), 0) };
        if self.idle.1 > MAX_IDLE_TICKS {
            let what = "a native client wants to be woken again and again at one moment".to_owned();
            stage.book.fail("timer", None, what);
        }
        let now = self.now(stage);
        self.core.tick(now);
    }
}
