//! The parities that a primary waits for: sending records, acknowledgements, leases and stalls (group protocol, section 3).
//!
//! Batching without a timer: while a Frame is unacknowledged on a link, records gather; its Ack sends them on. One
//! Frame carries at most `Limits::frame_records` records or `Limits::frame_bytes` bytes of deltas.

mod peer;

use smallvec::SmallVec;
use types::{HostId, RoleIndex, Seq, Time, UnixSeconds};
use wire::message::{GroupBody, ToCoordinator};

pub(super) use peer::{ParityPeer, Unwelcome};

use super::core::Core;
use super::stream::SendStream;
use super::wall::Wall;
use crate::Timing;
use crate::outbox::{Context, Peer};

/// See the module.
pub(super) struct Parities {
    peers: Vec<ParityPeer>,
    /// Frames sent before this renew no lease.
    lease_from: Time,
}

impl Parities {
    /// The in-sync parities of the view that cover the role; nothing is known of them but that they have record `start`.
    pub(super) fn new(core: &Core, start: Seq, now: Time) -> Self {
        let peers = core.covering_in_sync().map(|id| ParityPeer::new(id, start, now)).collect();
        Self { peers, lease_from: Time(0) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    /// Who they are.
    pub(super) fn ids(&self) -> impl Iterator<Item = Peer> {
        self.peers.iter().map(ParityPeer::id)
    }

    pub(super) fn contain(&self, parity: Peer) -> bool {
        self.find(parity).is_some()
    }

    pub(super) fn find(&self, parity: Peer) -> Option<&ParityPeer> {
        self.peers.iter().find(|peer| peer.id() == parity)
    }

    pub(super) fn find_mut(&mut self, parity: Peer) -> Option<&mut ParityPeer> {
        self.peers.iter_mut().find(|peer| peer.id() == parity)
    }

    /// One more that has to be waited for. Reads wait, too, until it has acknowledged something: it is asked for that at once.
    pub(super) fn add(&mut self, mut peer: ParityPeer) {
        peer.hurry();
        self.peers.push(peer);
    }

    pub(super) fn remove(&mut self, parity: Peer) {
        self.peers.retain(|peer| peer.id() != parity);
    }

    /// A newer view: takes out those that need not be waited for any more.
    pub(super) fn part_with(&mut self, is_required: impl Fn(&ParityPeer) -> bool) -> Vec<ParityPeer> {
        self.peers.extract_if(.., |peer| !is_required(peer)).collect()
    }

    /// The newest record that all have; `last` if there are none.
    pub(super) fn acked_by_all(&self, last: Seq, context: &Context<'_>) -> Seq {
        let is_silent = |peer: &ParityPeer| peer.is_silent(context.now.time, context.timing);
        let required = self.peers.iter().filter(|peer| context.rules.is_waited_for(|| is_silent(peer)));
        // Of all, and not of most: a recovery ends the stream at what all of them have (F2).
        let acked = required.map(ParityPeer::acked).min().unwrap_or(last);
        debug_assert!(acked <= last, "what was never sent is not believed to be acknowledged");
        acked.min(last)
    }

    /// The newest record that all have surely applied.
    pub(super) fn applied_by_all(&self) -> Option<Seq> {
        self.peers.iter().map(ParityPeer::applied).min()
    }

    /// The newest second that all surely know.
    pub(super) fn wall_known_to_all(&self) -> Option<UnixSeconds> {
        self.peers.iter().map(ParityPeer::wall).min()
    }

    /// Until when their acks allow reads; for ever if there is no parity that could serve another primary.
    pub(super) fn leased_until(&self, timing: &Timing) -> Time {
        self.peers.iter().map(|peer| peer.leased_until(timing)).min().unwrap_or(Time::NEVER)
    }

    /// Nothing that was acknowledged so far allows a read any more: only what is sent from now on does.
    pub(super) fn renounce_lease(&mut self, now: Time) {
        self.lease_from = now;
        for peer in &mut self.peers {
            peer.end_lease();
            peer.hurry();
        }
    }

    /// Somebody waits until all have applied what is committed up to `upto`.
    pub(super) fn hurry_to_apply(&mut self, upto: Seq) {
        self.peers.iter_mut().for_each(|peer| peer.hurry_to_apply(upto));
    }

    /// Whether it may be said that an item has expired which has by the role's `wall`. If not, all hear of the second at once.
    #[cold]
    pub(super) fn may_tell_expired(&mut self, wall: &mut Wall, clock: UnixSeconds, expiry: u32) -> bool {
        let may_tell = wall.may_tell(self.wall_known_to_all(), clock, expiry);
        if !may_tell {
            self.peers.iter_mut().for_each(|peer| peer.hurry_wall(UnixSeconds(expiry)));
        }
        may_tell
    }

    /// Says Hello to every parity: a new primary.
    pub(super) fn greet_all(&mut self, context: &mut Context<'_>, core: &Core, committed: Seq) {
        self.peers.iter_mut().for_each(|peer| peer.greet(context, core, committed));
    }

    /// A new connection to `host`: what was in flight on the old one is lost.
    pub(super) fn link_up(&mut self, context: &mut Context<'_>, core: &Core, host: HostId, committed: Seq) {
        let there = self.peers.iter_mut().filter(|peer| peer.id().host == host);
        there.for_each(|peer| peer.greet(context, core, committed));
    }

    /// The connection to `host` is gone: nothing can be sent until the next one.
    pub(super) fn link_down(&mut self, now: Time, host: HostId) {
        let there = self.peers.iter_mut().filter(|peer| peer.id().host == host);
        there.for_each(|peer| peer.lose_link(now));
    }

    /// Acknowledgements of Frames that were sent before this renew no lease.
    pub(super) fn lease_from(&self) -> Time {
        self.lease_from
    }

    /// Sends `body` to those that `wants`.
    pub(super) fn send_to(
        &self,
        context: &mut Context<'_>,
        core: &Core,
        body: &GroupBody,
        wants: impl Fn(Peer) -> bool,
    ) {
        for parity in self.ids().filter(|id| wants(*id)) {
            core.sender().send(context, parity, body.clone());
        }
    }

    /// Sends the Frames that are due.
    pub(super) fn send_frames(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        stream: &SendStream,
        wall: &mut Wall,
    ) {
        let now = context.now;
        for peer in &mut self.peers {
            if peer.wants_frame(stream, context.timing, now.time) {
                peer.send_frame(context, core, stream, wall.send(now.unix));
            }
        }
    }

    /// Hellos that are unanswered are said again; who is silent for too long is complained of.
    pub(super) fn tick(&mut self, context: &mut Context<'_>, core: &Core, committed: Seq) {
        let (now, timing) = (context.now.time, context.timing);
        for peer in self.peers.iter_mut().filter(|peer| peer.wants_greeting(now, timing)) {
            peer.greet(context, core, committed);
        }
        self.complain(context, core);
    }

    /// When `tick` or `send_frames` has something to do, at the latest.
    pub(super) fn due(&self, committed: Seq, timing: &Timing) -> Time {
        self.peers.iter().map(|peer| peer.deadline(committed, timing)).min().unwrap_or(Time::NEVER)
    }

    /// Asks the coordinator to remove parities that have been silent for too long; never removes one itself.
    fn complain(&mut self, context: &mut Context<'_>, core: &Core) {
        let (now, timing) = (context.now.time, context.timing);
        let is_due = self.peers.iter().any(|peer| peer.is_complaint_due(now, timing));
        if !is_due || self.wait_for_company(now, timing) {
            return;
        }
        let mut silent: SmallVec<[(RoleIndex, HostId); 4]> = SmallVec::new();
        // All that are silent, and not only who is due: by how many they are the coordinator judges who is cut off.
        for peer in self.peers.iter_mut().filter(|peer| peer.is_silent(now, timing)) {
            peer.note_complaint(now);
            let Peer { role, host } = peer.id();
            silent.push((role, host));
        }
        let (member, view) = (core.member(), core.view().version);
        let (group, role, term) = (member.group, member.role, core.term());
        context.coordinator(ToCoordinator::Stalled { group, role, term, view, silent });
    }

    /// One parity is silent for long enough to complain, and another is about to be: then it may be this node that is
    /// cut off, and a complaint of one of them alone would cost the group a healthy parity. Puts the first complaint off.
    fn wait_for_company(&mut self, now: Time, timing: &Timing) -> bool {
        let is_suspicious = |peer: &ParityPeer| {
            peer.silence_us(now).unwrap_or(0) >= timing.stall_us / 2 && !peer.is_silent(now, timing)
        };
        let first = self.peers.iter().any(|peer| peer.is_newly_silent(now, timing));
        if !first || !self.peers.iter().any(is_suspicious) {
            return false;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.is_newly_silent(now, timing)) {
            peer.note_complaint(now);
        }
        true
    }

    /// What holds after every event. `has_learned`: whether it is a learner whose lesson has ended.
    pub(super) fn check_invariants(
        &self,
        core: &Core,
        stream: &SendStream,
        has_learned: impl Fn(Peer) -> bool,
    ) {
        for peer in &self.peers {
            assert!(peer.applied() <= stream.committed(), "only what is committed is applied");
            assert!(peer.acked() <= stream.last(), "only what exists is acknowledged");
            let is_in_sync = core.covering_in_sync().any(|in_sync| in_sync == peer.id());
            assert!(is_in_sync || has_learned(peer.id()), "nobody else is waited for");
            let has_it = !is_in_sync || stream.committed() <= peer.acked();
            assert!(core.rules().promise(has_it), "all in sync have what is committed");
        }
        let all_are = core.covering_in_sync().all(|parity| self.contain(parity));
        assert!(core.rules().promise(all_are), "only a view leaves a parity out");
    }
}
