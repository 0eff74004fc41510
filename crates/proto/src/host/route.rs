//! Routes: from a key to the primary that serves it, here or elsewhere, through failures.
//!
//! A request that has not reached a primary waits for one, up to its deadline. One that may have reached a primary
//! which is then lost is sent again only if doing it twice is harmless; else its outcome is unknown, and that is said.

use std::collections::{BTreeMap, VecDeque};

use cluster::{GroupView, HostId, KeyHash, MemberId, RoleStatus, Time};
use wire::message::{Answer, Forward, PeerMessage};
use wire::op::{Failure, Outcome, Request};

use super::{Action, Host, Submitted, Token};
use crate::outbox::ReplyTo;
use crate::primary::{Pending, is_repeatable};
use crate::{Impossible, Now};

/// Requests between their client and their primary.
#[derive(Default)]
pub(super) struct Routes {
    /// Forwarded, by number; numbers grow with time.
    forwarded: BTreeMap<u64, Forwarded>,
    next_id: u64,
    /// Waiting for a map, a primary or a link.
    unrouted: VecDeque<(Option<MemberId>, Pending)>,
}

/// A request at another host.
pub(super) struct Forwarded {
    pub to: HostId,
    member: MemberId,
    pending: Pending,
    sent: Time,
}

impl Routes {
    pub(super) fn is_idle(&self) -> bool {
        self.forwarded.is_empty() && self.unrouted.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.forwarded.len() + self.unrouted.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.forwarded.len() * size_of::<(u64, Forwarded)>()
            + self.unrouted.capacity() * size_of::<(Option<MemberId>, Pending)>()
    }
}

impl Host {
    pub(super) fn submit_routed(
        &mut self,
        now: Now,
        token: Token,
        hash: KeyHash,
        member: Option<MemberId>,
        request: Request,
    ) -> Submitted {
        self.stats.count_request(&request.op);
        let deadline = now.time + self.config.timing.request_deadline_us;
        let pending = Pending { reply: ReplyTo::Local(token), hash, request, deadline };
        let done = match member {
            Some(member) => self.route_once(now, member, pending),
            None => self.wait_for_route(None, pending),
        };
        self.settle(now);
        done.map_or(Submitted::Pending, Submitted::Done)
    }

    /// Routes a request; an answer known at once goes to the outbox.
    pub(super) fn route(&mut self, now: Now, member: MemberId, pending: Pending) {
        let reply = pending.reply;
        if let Some(outcome) = self.route_once(now, member, pending) {
            self.outbox.replies.push_back((reply, outcome));
        }
    }

    fn route_once(&mut self, now: Now, member: MemberId, pending: Pending) -> Option<Outcome> {
        if self.role_is_local(member) {
            return self.with_primary(now, member, |primary, context| primary.submit(context, pending))?;
        }
        if let ReplyTo::Remote { .. } = pending.reply {
            // One hop only: the sender has the map, too, and looks again.
            return Some(Outcome::Failed(Failure::WrongPrimary));
        }
        let role = self
            .map
            .as_ref()
            .and_then(|map| map.group(member.group))
            .and_then(|view| view.data_role(member.role));
        let Some(role) = role.copied() else { return Some(Outcome::Failed(Failure::Unavailable)) };
        if role.status == RoleStatus::Lost {
            return Some(Outcome::Failed(Failure::Lost));
        }
        match role.primary {
            Some(host) if self.links.get(&host.node) == Some(&host) => {
                self.forward(now.time, host, member, pending)
            }
            _ => self.wait_for_route(Some(member), pending),
        }
    }

    fn forward(&mut self, sent: Time, host: HostId, member: MemberId, pending: Pending) -> Option<Outcome> {
        if self.routes.forwarded.len() >= self.config.limits.forwarded_requests {
            return Some(Outcome::Failed(Failure::Busy));
        }
        let id = self.routes.next_id;
        self.routes.next_id += 1;
        self.stats.forwarded += 1;
        let request = pending.request.clone();
        let message = PeerMessage::Forward(Forward { id, group: member.group, role: member.role, request });
        self.routes.forwarded.insert(id, Forwarded { to: host, member, pending, sent });
        self.outbox.messages.push_back((host.node, message));
        None
    }

    fn wait_for_route(&mut self, member: Option<MemberId>, pending: Pending) -> Option<Outcome> {
        if self.routes.unrouted.len() >= self.config.limits.parked_requests {
            return Some(Outcome::Failed(Failure::Busy));
        }
        self.routes.unrouted.push_back((member, pending));
        None
    }

    /// A request of another host's client.
    pub(super) fn handle_forward(&mut self, now: Now, from: HostId, forward: Forward) {
        let reply = ReplyTo::Remote { host: from, id: forward.id };
        let member = MemberId { group: forward.group, role: forward.role };
        let Some(map) = &self.map else {
            return self.answer_remote(from, forward.id, Outcome::Failed(Failure::WrongPrimary));
        };
        let hash = KeyHash::of(map.cluster, forward.request.key_bytes());
        let is_flush = matches!(forward.request.op, wire::op::Op::Flush(_));
        if !is_flush && map.member_of(hash) != member {
            return self.answer_remote(from, forward.id, Outcome::Failed(Failure::WrongPrimary));
        }
        self.stats.received_forwards += 1;
        let deadline = now.time + self.config.timing.request_deadline_us;
        self.route(now, member, Pending { reply, hash, request: forward.request, deadline });
    }

    pub(super) fn answer_remote(&mut self, host: HostId, id: u64, outcome: Outcome) {
        if self.links.get(&host.node) == Some(&host) {
            let message = PeerMessage::Answer(Answer { id, outcome });
            self.actions.push_back(Action::Send { to: host.node, message });
        }
    }

    pub(super) fn handle_answer(&mut self, now: Now, from: HostId, answer: Answer) {
        let known = self.routes.forwarded.get(&answer.id);
        if answer.id >= self.routes.next_id || known.is_some_and(|forwarded| forwarded.to != from) {
            return self.outbox.accusations.push((from, Impossible::Answer { id: answer.id }));
        }
        // It may have come too late.
        let Some(forwarded) = self.routes.forwarded.remove(&answer.id) else { return };
        if answer.outcome == Outcome::Failed(Failure::WrongPrimary) {
            // Nothing was done there. Look again when the view changes, or soon.
            self.fetch_view(now, forwarded.member.group);
            let reply = forwarded.pending.reply;
            if let Some(busy) = self.wait_for_route(Some(forwarded.member), forwarded.pending) {
                self.answer(reply, busy);
            }
        } else {
            let kind = forwarded.pending.request.op.kind();
            self.outbox.latencies.network.record(kind, forwarded.sent, now.time);
            self.answer(forwarded.pending.reply, answer.outcome);
        }
    }

    /// Forwards whose host can no longer be expected to answer: again if harmless, else unknown.
    pub(super) fn abandon_forwards(&mut self, now: Now, lost: impl Fn(&Forwarded) -> bool) {
        let ids: Vec<u64> =
            self.routes.forwarded.iter().filter(|(_, f)| lost(f)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(forwarded) = self.routes.forwarded.remove(&id) else { continue };
            if is_repeatable(&forwarded.pending.request.op) {
                self.route(now, forwarded.member, forwarded.pending);
            } else {
                self.answer(forwarded.pending.reply, Outcome::Failed(Failure::Unknown));
            }
        }
    }

    /// Forwards to primaries that `view` no longer names and that are gone. One that lives and has made way answers itself.
    pub(super) fn abandon_forwards_of(&mut self, now: Now, view: &GroupView) {
        let answering = self.answering();
        self.abandon_forwards(now, |forwarded| {
            forwarded.member.group == view.group
                && view.data_role(forwarded.member.role).and_then(|role| role.primary) != Some(forwarded.to)
                && !answering.contains(&forwarded.to)
        });
    }

    /// Nodes have changed: forwards to those that are gone, and that were left to answer themselves when they made way.
    pub(super) fn abandon_forwards_to_the_lost(&mut self, now: Now) {
        let answering = self.answering();
        let Some(map) = &self.map else { return };
        let deposed: Vec<MemberId> = self
            .routes
            .forwarded
            .values()
            .filter(|forwarded| map.primary_of(forwarded.member) != Some(forwarded.to))
            .map(|forwarded| forwarded.member)
            .collect();
        self.abandon_forwards(now, |forwarded| {
            deposed.contains(&forwarded.member) && !answering.contains(&forwarded.to)
        });
    }

    /// Processes that live, by the map, and are linked.
    fn answering(&self) -> Vec<HostId> {
        let lives = |host: &HostId| {
            let known = self.map.as_ref().and_then(|map| map.node(host.node));
            known.is_some_and(|info| info.host == *host && info.alive)
        };
        self.links.values().copied().filter(lives).collect()
    }

    /// Tries all waiting requests again.
    pub(super) fn reroute(&mut self, now: Now) {
        let Some(map) = &self.map else { return };
        let cluster = map.cluster;
        for (member, mut pending) in std::mem::take(&mut self.routes.unrouted) {
            let member = member.unwrap_or_else(|| {
                pending.hash = KeyHash::of(cluster, pending.request.key_bytes());
                self.map.as_ref().expect("checked above").member_of(pending.hash)
            });
            self.route(now, member, pending);
        }
    }

    /// Requests whose deadline has passed.
    pub(super) fn expire_requests(&mut self, now: Now) {
        let late = |deadline: Time| deadline <= now.time;
        let forwarded = self.routes.forwarded.iter();
        let ids: Vec<u64> = forwarded.filter(|(_, f)| late(f.pending.deadline)).map(|(id, _)| *id).collect();
        for id in ids {
            let Some(Forwarded { pending, .. }) = self.routes.forwarded.remove(&id) else { continue };
            let failure =
                if is_repeatable(&pending.request.op) { Failure::Unavailable } else { Failure::Unknown };
            self.answer(pending.reply, Outcome::Failed(failure));
        }
        for (member, pending) in std::mem::take(&mut self.routes.unrouted) {
            if late(pending.deadline) {
                self.answer(pending.reply, Outcome::Failed(Failure::Unavailable));
            } else {
                self.routes.unrouted.push_back((member, pending));
            }
        }
    }
}
