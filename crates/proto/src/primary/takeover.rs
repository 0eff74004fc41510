//! A stand-in begins: it takes the index replica from an in-sync parity (group protocol, section 4, F6).

use cluster::{GroupView, HostId, MemberId, RoleIndex, RoleStatus, Time, UnixSeconds};
use store::{AdoptError, Budget, DataStore, ReplicaBuilder, ReplicaError, StoreConfig};
use wire::message::{FetchIndex, GroupBody, IndexPart};

use super::{Phase, Primary};
use crate::Impossible;
use crate::outbox::Context;
use crate::parity::Parity;

/// An index on its way.
pub(super) struct Taking {
    builder: ReplicaBuilder,
    next_part: u32,
    /// The parity that was asked, and when.
    asked: Option<(RoleIndex, HostId, Time)>,
}

impl Primary {
    /// A stand-in for `member`, which `view` appoints; if its mirror is here, with everything that the mirror has.
    pub(crate) fn stand_in(
        context: &mut Context<'_>,
        member: MemberId,
        host: HostId,
        view: &GroupView,
        mirror: Option<Parity>,
        (config, budget): (&StoreConfig, &Budget),
    ) -> Option<Self> {
        let RoleStatus::Rebuilding { start, wait_us } = view.data_role(member.role)?.status else {
            return None;
        };
        let wait_us = if crate::planted(crate::Bug::ServeBeforeLeaseEnds) { 0 } else { wait_us };
        let serve_from = context.now.time + wait_us;
        let term = view.data_role(member.role)?.term;
        let whole =
            mirror.and_then(|mirror| mirror.into_store(term, start)).and_then(|(area, replica, wall)| {
                DataStore::from_mirror(config.clone(), budget.clone(), area, replica)
                .map(|store| (store, wall))
                .map_err(
                    |error| tracing::error!(%member, %error, "a mirror cannot be used; fetching the index"),
                )
                .ok()
            });
        let (phase, wall) = match whole {
            Some((store, wall)) => (Phase::Serving(Box::new(store)), wall),
            None => (Phase::Taking(Box::new(Taking::new(budget))), UnixSeconds(0)),
        };
        let mut primary =
            Self::assemble(context, member, host, view, (phase, start, serve_from), (config, budget));
        primary.wall.never_below(wall);
        primary.retry_takeover(context);
        primary.sweep(context);
        Some(primary)
    }

    /// Asks for the next part of the index, from another parity if the one asked has gone or is silent.
    pub(super) fn retry_takeover(&mut self, context: &mut Context<'_>) {
        let sender = self.sender();
        let here = self.host.node;
        let Phase::Taking(taking) = &mut self.phase else { return };
        let now = context.now.time;
        let listed = |role, host| self.parities.iter().any(|peer| (peer.role, peer.host) == (role, host));
        if let Some((role, host, at)) = taking.asked
            && listed(role, host)
            && now.since(at) < context.timing.retry_us
        {
            return;
        }
        let before = taking.asked.map(|(role, host, _)| (role, host));
        let Some((role, host)) = next_source(&self.parities, before, here) else { return };
        if before != Some((role, host)) {
            **taking = Taking::new(&self.budget);
        }
        taking.asked = Some((role, host, now));
        let fetch = FetchIndex { term: self.term, part: taking.next_part };
        sender.send(context, host, role, GroupBody::FetchIndex(fetch));
    }

    pub(crate) fn handle_index_part(
        &mut self,
        context: &mut Context<'_>,
        from: HostId,
        role: RoleIndex,
        part: &IndexPart,
    ) {
        let sender = self.sender();
        let term = self.term;
        let Phase::Taking(taking) = &mut self.phase else { return };
        let expected =
            taking.asked.is_some_and(|(r, h, _)| (r, h) == (role, from)) && part.part == taking.next_part;
        if part.term != term || !expected {
            return;
        }
        if let Err(error) = taking.add(part) {
            return self.refuse_index(context, (role, from), &error);
        }
        if part.last {
            return self.begin(context, (role, from));
        }
        taking.asked = Some((role, from, context.now.time));
        let fetch = FetchIndex { term, part: taking.next_part };
        sender.send(context, from, role, GroupBody::FetchIndex(fetch));
    }

    /// The whole index is here, from this parity: serve.
    fn begin(&mut self, context: &mut Context<'_>, source: (RoleIndex, HostId)) {
        let Phase::Taking(taking) = &mut self.phase else { return };
        let builder = std::mem::replace(&mut taking.builder, ReplicaBuilder::new(self.budget.clone()));
        let replica = match builder.finish() {
            Ok(replica) => replica,
            Err(error) => return self.refuse_index(context, source, &error),
        };
        match DataStore::from_replica(self.config.clone(), self.budget.clone(), replica) {
            Ok(store) => {
                tracing::info!(member = %self.member, term = %self.term, absent = store.absent_count(), "stand-in has its index");
                self.phase = Phase::Serving(Box::new(store));
                self.sweep(context);
                self.retry_waiting(context);
            }
            Err(error @ AdoptError::Contradiction) => self.refuse_index(context, source, &error),
            Err(error) => {
                tracing::error!(member = %self.member, %error, "stand-in cannot use the index; trying again");
                **taking = Taking::new(&self.budget);
            }
        }
    }

    /// What this parity says is its index is none: another is asked, if there is one.
    fn refuse_index(
        &mut self,
        context: &mut Context<'_>,
        (role, from): (RoleIndex, HostId),
        error: &dyn std::error::Error,
    ) {
        let Phase::Taking(taking) = &mut self.phase else { return };
        tracing::error!(member = %self.member, %from, %error, "not an index; asking another parity");
        // As if it had been asked long ago, so that the next is asked at once.
        **taking = Taking { asked: Some((role, from, Time(0))), ..Taking::new(&self.budget) };
        context.impossible(from, Impossible::Index);
    }
}

impl Taking {
    fn new(budget: &Budget) -> Self {
        Self { builder: ReplicaBuilder::new(budget.clone()), next_part: 0, asked: None }
    }

    /// Adds the part that comes next. One without bytes says nothing, unless it is the last.
    fn add(&mut self, part: &IndexPart) -> Result<(), ReplicaError> {
        if part.bytes.is_empty() && !part.last {
            return Err(ReplicaError::Incomplete);
        }
        self.next_part += 1;
        self.builder.push(&part.bytes)
    }
}

/// The parity to ask: the one on this node first, and after a failure the next in the list.
fn next_source(
    parities: &[super::parities::ParityPeer],
    before: Option<(RoleIndex, HostId)>,
    here: cluster::NodeId,
) -> Option<(RoleIndex, HostId)> {
    let at = before.and_then(|b| parities.iter().position(|peer| (peer.role, peer.host) == b));
    let peer = match at {
        Some(at) => &parities[(at + 1) % parities.len()],
        None => parities.iter().find(|peer| peer.host.node == here).or(parities.first())?,
    };
    Some((peer.role, peer.host))
}
