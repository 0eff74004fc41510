//! A stand-in begins: it takes the index replica from an in-sync parity (group protocol, section 4, F6).

use store::{AdoptError, Budget, DataStore, Replica, ReplicaBuilder, ReplicaError};
use types::{HostId, Time};
use wire::message::{FetchIndex, GroupBody, IndexPart};

use super::core::Core;
use super::parities::Parities;
use crate::outbox::{Context, Peer};
use crate::{Impossible, Timing};

/// An index on its way.
pub(super) struct Taking {
    builder: ReplicaBuilder,
    next_part: u32,
    /// The parity that was asked, and when.
    asked: Option<Asked>,
}

#[derive(Clone, Copy)]
struct Asked {
    parity: Peer,
    at: Time,
}

impl Taking {
    pub(super) fn new(budget: &Budget) -> Self {
        Self { builder: ReplicaBuilder::new(budget.clone()), next_part: 0, asked: None }
    }

    /// Asks for the next part of the index, from another parity if the one asked has gone or is silent.
    pub(super) fn retry(&mut self, context: &mut Context<'_>, core: &Core, parities: &Parities) {
        let now = context.now.time;
        let is_patient =
            |asked: Asked| parities.contain(asked.parity) && now.since(asked.at) < context.timing.retry_us;
        if self.asked.is_some_and(is_patient) {
            return;
        }
        let before = self.asked.map(|asked| asked.parity);
        let Some(parity) = next_source(parities, before, core.host()) else {
            // The next view has one, or says that the role is lost.
            self.asked = None;
            return;
        };
        // Another replica may be cut into other parts.
        if before != Some(parity) {
            *self = Self::new(core.budget());
        }
        self.ask(context, core, parity);
    }

    /// When a parity that was asked has been silent for too long. Who is to be asked first, a view or a connection says.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        self.asked.map_or(Time::NEVER, |asked| asked.at + timing.retry_us)
    }

    fn ask(&mut self, context: &mut Context<'_>, core: &Core, parity: Peer) {
        self.asked = Some(Asked { parity, at: context.now.time });
        let fetch = FetchIndex { term: core.term(), part: self.next_part };
        core.sender().send(context, parity, GroupBody::FetchIndex(fetch));
    }

    /// A part has come. The store with the whole index, if it was the last one.
    pub(super) fn take(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        from: Peer,
        part: &IndexPart,
    ) -> Option<DataStore> {
        let is_asked = self.asked.is_some_and(|asked| asked.parity == from);
        if part.term != core.term() || !is_asked || part.part != self.next_part {
            return None;
        }
        match self.add(core, part) {
            Ok(None) => {
                self.ask(context, core, from);
                None
            }
            Ok(Some(replica)) => self.adopt(context, core, from, replica),
            Err(error) => {
                self.refuse(context, core, from, &error);
                None
            }
        }
    }

    /// Adds the part that comes next; the whole index, if it is the last one. One without bytes says nothing, unless it is that.
    fn add(&mut self, core: &Core, part: &IndexPart) -> Result<Option<Replica>, ReplicaError> {
        if part.bytes.is_empty() && !part.last {
            return Err(ReplicaError::Incomplete);
        }
        self.next_part += 1;
        self.builder.push(&part.bytes)?;
        if !part.last {
            return Ok(None);
        }
        let builder = std::mem::replace(&mut self.builder, ReplicaBuilder::new(core.budget().clone()));
        builder.finish().map(Some)
    }

    /// The whole index is here, from this parity.
    fn adopt(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        source: Peer,
        replica: Replica,
    ) -> Option<DataStore> {
        match DataStore::from_replica(core.config().clone(), core.budget().clone(), replica) {
            Ok(store) => {
                tracing::info!(member = %core.member(), term = %core.term(), absent = store.absent_count(), "stand-in has its index");
                return Some(store);
            }
            Err(error @ AdoptError::Contradiction) => self.refuse(context, core, source, &error),
            Err(error) => {
                tracing::error!(member = %core.member(), %error, "stand-in cannot use the index; trying again");
                *self = Self::new(core.budget());
            }
        }
        None
    }

    /// What this parity says is its index is none: another is asked, if there is one.
    fn refuse(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        parity: Peer,
        error: &dyn std::error::Error,
    ) {
        let from = parity.host;
        tracing::error!(member = %core.member(), %from, %error, "not an index; asking another parity");
        // As if it had been asked long ago, so that the next is asked at once.
        let asked = Some(Asked { parity, at: Time(0) });
        *self = Self { asked, ..Self::new(core.budget()) };
        context.impossible(from, Impossible::Index);
    }
}

/// The parity to ask: the one on this node first, and after a failure the next in the list.
fn next_source(parities: &Parities, before: Option<Peer>, here: HostId) -> Option<Peer> {
    let at = before.and_then(|before| parities.ids().position(|id| id == before));
    match at {
        Some(at) => parities.ids().nth(at + 1).or(parities.ids().next()),
        None => parities.ids().find(|id| id.host.node == here.node).or(parities.ids().next()),
    }
}
