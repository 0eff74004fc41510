//! One stripe of an upload on its way to its holders.
//!
//! It is done when every holder that one view names has acknowledged it, those that are filling included. An acknowledgement counts for
//! a holder as long as its `since` is the same; everybody else is put all of it anew, under the newest view (docs/objects.md, W4).

use smallvec::SmallVec;
use types::op::Failure;
use types::{
    ChunkId, Geometry, GroupId, HostId, KeyHash, MemberId, ObjectId, RoleIndex, Stripe, ViewVersion,
};
use types::{Holder, Time, checksum_combine};
use wire::object::{
    Checked, ChunkReport, ObjectMessage, Placed, Put, PutAs, Refusal, Refused, Shares, Trailer,
};

use super::crowd::Crowd;
use super::rows::Dealt;
use super::sums::{Way, message_of};
use super::ways::By;
use crate::objects::scope::Scope;
use crate::{Rules, Timing};

/// Cells that a holder is sent in one go, unless its chunk ends: fewer wake-ups for the same bytes.
const CELLS_AT_ONCE: u32 = 4;
/// A stripe that is whole, and that no holder has taken for so many deadlines of a request, is given up: the second one is for what may have
/// been lost on its way.
const STILL_DEADLINES: u64 = 2;
/// After this part of a deadline it is put into another group if there is one.
const STALL_SHARE: u64 = 2;
/// So often at most.
const MAX_MOVES: usize = 2;

/// What an object's chunks are named and dealt by.
pub(super) type Name = (ObjectId, KeyHash, Geometry);

/// See the module.
pub(super) struct StripeUpload {
    pub(super) stripe: Stripe,
    group: GroupId,
    /// Where it was to go, or was put, before: it never goes back there, for then nothing would tell what is stranded elsewhere.
    left: SmallVec<[GroupId; 3]>,
    /// Who makes its parities.
    pub(super) by: By,
    /// When it was put into another group.
    moved_at: Time,
    /// By role, the cells that have come.
    pub(super) chunks: SmallVec<[Vec<Checked>; 8]>,
    /// Whether they are all.
    pub(super) is_whole: bool,
    /// Or all of it is where it has to be under the name of this object.
    old: Option<ObjectId>,
    /// Checksums of the chunks, as far as their cells have come.
    sums: Trailer,
    pub(super) attempts: Vec<Attempt>,
    /// Some holder has had no room.
    crowd: Option<Crowd>,
    /// Since when it is known that nothing is missing but that holders take it.
    still_since: Option<Time>,
    /// Since when it is known that all products of its cells have been sent.
    pub(super) shared_since: Option<Time>,
    /// See [`Put::charged`].
    charged: bool,
}

/// A stripe that is where it has to be.
pub(super) struct DoneStripe {
    pub index: u32,
    pub group: GroupId,
    /// Under whose name.
    pub object: ObjectId,
    /// Checksums of its chunks.
    pub sums: Trailer,
}

/// One try to put a chunk to one holder.
pub(super) struct Attempt {
    pub(super) role: RoleIndex,
    pub(super) holder: Holder,
    pub(super) number: u64,
    /// The view that it is put under.
    pub(super) view: ViewVersion,
    pub(super) way: Way,
    /// Cells that were sent.
    sent: u32,
    pub(super) acknowledged: bool,
    /// Whether the holder has said that the view is another one, which is not known here yet.
    outdated: bool,
    /// Whether it has no room now.
    crowded: bool,
    /// When something was last sent.
    sent_at: Time,
}

/// What a refusal, or none for long, means for the upload.
pub(super) enum Fate {
    GoesOn,
    /// It is to go to another group.
    Stuck(Stuck),
    Fails(Failure),
}

/// Why a stripe is of no use where it is.
pub(super) struct Stuck {
    /// These do not take it.
    pub avoid: SmallVec<[HostId; 8]>,
    /// What the upload comes to where there is no other group; none = it waits.
    pub failure: Option<Failure>,
}

impl StripeUpload {
    /// One that goes to `group`, though its object's list may say `listed`.
    pub(super) fn new(stripe: Stripe, listed: GroupId, group: GroupId) -> Self {
        Self {
            stripe,
            group,
            left: Some(listed).filter(|listed| *listed != group).into_iter().collect(),
            by: By::Node,
            moved_at: Time(0),
            chunks: SmallVec::new(),
            is_whole: false,
            old: None,
            sums: Trailer::new(),
            attempts: Vec::new(),
            crowd: None,
            still_since: None,
            shared_since: None,
            charged: false,
        }
    }

    /// The same of a value that is charged to its namespace's quota already, if `charged`.
    pub(super) fn charged(self, charged: bool) -> Self {
        Self { charged, ..self }
    }

    /// Whose parities are made so.
    pub(super) fn with_parities_by(self, by: By) -> Self {
        Self { by, ..self }
    }

    /// One that lies in its group already, under another object's name.
    pub(super) fn renamed(stripe: Stripe, done: DoneStripe) -> Self {
        let DoneStripe { group, object, sums, .. } = done;
        Self { old: Some(object), is_whole: true, sums, ..Self::new(stripe, group, group) }
    }

    /// What is known of it when it is done, as one of `object`.
    pub(super) fn into_done(self, object: ObjectId) -> DoneStripe {
        DoneStripe { index: self.stripe.index, group: self.group, object, sums: self.sums }
    }

    /// The object whose name it has, if it has one already: none of its bytes are here.
    pub(super) fn old(&self) -> Option<ObjectId> {
        self.old
    }

    /// It is to be put under another object's name.
    pub(super) fn begin_anew(&mut self) {
        (self.attempts, self.crowd, self.still_since) = (Vec::new(), None, None);
        self.shared_since = None;
    }

    pub(super) fn index(&self) -> u32 {
        self.stripe.index
    }

    pub(super) fn group(&self) -> GroupId {
        self.group
    }

    /// Where it was before, or was to be.
    pub(super) fn left(&self) -> &[GroupId] {
        &self.left
    }

    /// All of it is put into another group.
    pub(super) fn move_to(&mut self, scope: &mut Scope<'_>, name: Name, group: GroupId, attempts: &mut u64) {
        tracing::info!(object = %name.0, stripe = self.stripe.index, from = %self.group, to = %group, "goes to another group");
        self.left.push(std::mem::replace(&mut self.group, group));
        self.moved_at = scope.now.time;
        (self.attempts, self.crowd, self.shared_since) = (Vec::new(), None, None);
        self.adopt(scope, name, attempts);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Cells of a copy are those of other roles.
        let own = |cells: &Vec<Checked>| cells.len().min(self.stripe.rows as usize);
        self.chunks.iter().map(own).sum::<usize>() * self.stripe.cell_len as usize
    }

    /// More cells.
    pub(super) fn add(&mut self, dealt: Dealt) {
        let len = self.stripe.cell_len as usize;
        for (role, cell) in dealt.cells {
            let role = usize::from(role);
            if self.chunks.len() <= role {
                self.chunks.resize_with(role + 1, Vec::new);
                self.sums.resize(role + 1, 0);
            }
            self.sums[role] = checksum_combine(self.sums[role], cell.checksum, len);
            self.chunks[role].push(cell);
        }
        self.is_whole = dealt.is_last;
    }

    /// How many cells of a role may be sent, and whether they are all. The last one has the checksums of all chunks behind it, so it
    /// stays until all have come.
    fn sendable(&self, rules: Rules, role: RoleIndex) -> (u32, bool) {
        let there = self.chunks.get(usize::from(role.0)).map_or(0, |cells| cells.len() as u32);
        let all = self.stripe.cells_of(role.0);
        if self.is_whole || there == all && !rules.objects().last_cells_wait() {
            return (there, there == all);
        }
        (there.min(all.saturating_sub(1)), false)
    }

    /// Others may have to take it from now on.
    pub(super) fn note_view(&mut self) {
        self.still_since = None;
    }

    /// Puts what has not been put, to every holder.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, name: Name, attempts: &mut u64) {
        if self.attempts.is_empty() {
            self.adopt(scope, name, attempts);
        } else {
            self.send(scope, name);
        }
    }

    /// Whom it has to be put to by the newest view.
    pub(super) fn adopt(&mut self, scope: &mut Scope<'_>, name: Name, attempts: &mut u64) {
        let Some(view) = scope.view(self.group) else { return };
        if !view.takes_chunks() {
            let open = ChunkReport::Open { group: self.group };
            return scope.report(open);
        }
        let version = view.version;
        let named: Vec<(RoleIndex, Holder)> = view.all_holders().collect();
        let rules = scope.rules().objects();
        let is_of = |attempt: &Attempt, role, holder| {
            attempt.role == role && rules.is_acknowledging(attempt.holder, holder)
        };
        self.attempts.retain(|attempt| named.iter().any(|(role, holder)| is_of(attempt, *role, *holder)));
        let (stripe, is_first) = (self.stripe, self.attempts.is_empty());
        self.attempts.iter_mut().for_each(|attempt| attempt.adopt(version, stripe, attempts));
        for (role, holder) in named {
            if !self.attempts.iter().any(|known| is_of(known, role, holder)) {
                *attempts += 1;
                let number = *attempts;
                self.attempts.push(Attempt::new(role, holder, number, version));
            }
        }
        if is_first && self.old.is_none() {
            self.choose_sums(scope);
        } else {
            self.put_orphans(scope, attempts);
        }
        self.send(scope, name);
    }

    fn send(&mut self, scope: &mut Scope<'_>, name: Name) {
        match self.old {
            Some(old) => self.send_name(scope, name, old),
            None => self.send_cells(scope, name),
        }
    }

    /// Has holders keep what they have under this name, too.
    fn send_name(&mut self, scope: &mut Scope<'_>, (object, key_hash, geometry): Name, old: ObjectId) {
        let chunk = ChunkId { object, stripe: self.stripe.index };
        let stripe = self.stripe;
        let to_be_told = |attempt: &&mut Attempt| attempt.is_to_be_sent() && !attempt.is_all_sent(stripe);
        for attempt in self.attempts.iter_mut().filter(to_be_told) {
            let member = MemberId { group: self.group, role: attempt.role };
            let (view, number, trailer) = (attempt.view, attempt.number, self.sums.clone());
            let put = PutAs { member, view, chunk, attempt: number, old, key_hash, geometry, trailer };
            scope.send(attempt.holder.host, ObjectMessage::PutAs(put));
            (attempt.sent, attempt.sent_at) = (stripe.cells_of(attempt.role.0), scope.now.time);
        }
    }

    fn send_cells(&mut self, scope: &mut Scope<'_>, (object, key_hash, geometry): Name) {
        let chunk = ChunkId { object, stripe: self.stripe.index };
        for at in 0..self.attempts.len() {
            let (role, sent) = (self.attempts[at].role, self.attempts[at].sent);
            let (there, are_all) = self.sendable(scope.rules(), role);
            let is_enough = are_all || there.saturating_sub(sent) >= CELLS_AT_ONCE;
            if !self.attempts[at].is_to_be_sent() || !is_enough || there <= sent {
                continue;
            }
            let member = MemberId { group: self.group, role };
            let attempt = &mut self.attempts[at];
            let (view, number, to) = (attempt.view, attempt.number, attempt.holder.host);
            (attempt.sent, attempt.sent_at) = (there, scope.now.time);
            let way = attempt.way;
            let shares = self.shares_at(at);
            let lends = self.lend(scope, at, &shares, sent..there);
            let shares = if lends { Shares::new() } else { shares };
            let cells = &self.chunks[usize::from(role.0)];
            for (row, cell) in (sent..there).zip(&cells[sent as usize..]) {
                let is_last = are_all && row + 1 == there;
                let (trailer, cell) =
                    (if is_last { self.sums.clone() } else { Trailer::new() }, cell.clone());
                let (attempt, charged) = (number, self.charged);
                let put =
                    Put { member, view, chunk, attempt, key_hash, geometry, row, cell, trailer, charged };
                scope.send(to, message_of(put, way, &shares));
            }
        }
    }

    /// A holder has it.
    pub(super) fn placed(&mut self, from: HostId, placed: &Placed) {
        let is_it = |attempt: &&mut Attempt| {
            let holder = Holder { host: from, since: placed.since };
            attempt.number == placed.attempt && attempt.holder == holder
        };
        if let Some(attempt) = self.attempts.iter_mut().find(is_it) {
            (attempt.acknowledged, self.still_since) = (true, None);
        }
        if !self.attempts.iter().any(|attempt| attempt.crowded) {
            self.crowd = None;
        }
    }

    /// A holder has not taken it.
    pub(super) fn refused(
        &mut self,
        scope: &mut Scope<'_>,
        name: Name,
        from: HostId,
        refused: &Refused,
        attempts: &mut u64,
    ) -> Fate {
        let of = |attempt: &Attempt| attempt.number == refused.attempt && attempt.holder.host == from;
        let Some(at) = self.attempts.iter().position(of) else { return Fate::GoesOn };
        match refused.why {
            Refusal::NoRoom => {
                self.attempts[at].crowded = true;
                return self.has_no_room();
            }
            Refusal::Crowded => {
                let now = scope.now.time;
                self.attempts[at].crowded = true;
                let crowd = Crowd::after(self.crowd, now);
                self.crowd = Some(crowd);
                if crowd.lasts_us(now) >= scope.timing().request_deadline_us {
                    return self.has_no_room();
                }
            }
            // It may be on its way there from others.
            Refusal::Absent => self.attempts[at].crowded = true,
            Refusal::Different => return Fate::Fails(Failure::Corrupt),
            // Cells that were on their way behind the one that there was no room for.
            Refusal::Gap if self.attempts[at].crowded => {}
            Refusal::Gap => {
                let view = self.attempts[at].view;
                self.attempts[at].restart(view, attempts);
                self.send(scope, name);
            }
            Refusal::View(version) => {
                let known = scope.view(self.group).map(|view| view.version);
                match known {
                    Some(known) if known >= version => {
                        self.attempts[at].restart(known, attempts);
                        self.adopt(scope, name, attempts);
                    }
                    _ => {
                        self.attempts[at].outdated = true;
                        scope.want_view(self.group);
                    }
                }
            }
        }
        Fate::GoesOn
    }

    /// Whoever has not answered for long may have lost it; where the view is not known it is asked for again. If all that was in vain for
    /// long, it fails: who waits for it is to hear so.
    pub(super) fn retry(&mut self, scope: &mut Scope<'_>, name: Name, attempts: &mut u64) -> Fate {
        let (now, patience) = (scope.now.time, scope.timing().request_deadline_us);
        let still_us = if self.is_whole { now.since(*self.still_since.get_or_insert(now)) } else { 0 };
        if still_us >= STILL_DEADLINES * patience {
            return Fate::Fails(Failure::Unavailable);
        }
        if self.attempts.is_empty() {
            self.adopt(scope, name, attempts);
            return Fate::GoesOn;
        }
        let asks_again = self.crowd.is_none_or(|crowd| crowd.again_at(&scope.timing()) <= now);
        for attempt in self.attempts.iter_mut().filter(|attempt| !attempt.acknowledged) {
            let is_late = attempt.is_all_sent(self.stripe) && now.since(attempt.sent_at) >= patience;
            if attempt.outdated {
                scope.want_view(self.group);
            } else if attempt.crowded && asks_again || is_late {
                let view = attempt.view;
                attempt.restart(view, attempts);
            }
        }
        self.put_late_sums(scope, attempts);
        self.send(scope, name);
        if still_us.min(now.since(self.moved_at)) >= patience / STALL_SHARE {
            return self.stuck(None, |attempt| !attempt.acknowledged);
        }
        Fate::GoesOn
    }

    /// When holders that had no room are asked again.
    pub(super) fn asks_again_at(&self, timing: &Timing) -> Option<Time> {
        let is_crowded = self.attempts.iter().any(|attempt| attempt.crowded);
        self.crowd.filter(|_| is_crowded).map(|crowd| crowd.again_at(timing))
    }

    fn has_no_room(&self) -> Fate {
        self.stuck(Some(Failure::OutOfMemory), |attempt| attempt.crowded)
    }

    fn stuck(&self, failure: Option<Failure>, is_avoided: impl Fn(&Attempt) -> bool) -> Fate {
        if self.left.len() >= MAX_MOVES || self.old.is_some() {
            return failure.map_or(Fate::GoesOn, Fate::Fails);
        }
        let avoided = self.attempts.iter().filter(|attempt| is_avoided(attempt));
        Fate::Stuck(Stuck { avoid: avoided.map(|attempt| attempt.holder.host).collect(), failure })
    }

    /// A link is another one: what was on its way on the one before is lost.
    pub(super) fn link_up(&mut self, scope: &mut Scope<'_>, name: Name, peer: HostId, attempts: &mut u64) {
        let to_peer = |attempt: &&mut Attempt| attempt.holder.host == peer && !attempt.acknowledged;
        for attempt in self.attempts.iter_mut().filter(to_peer) {
            let view = attempt.view;
            attempt.restart(view, attempts);
        }
        self.send(scope, name);
    }

    /// Whether every holder that the newest view names has it, and the code can make up for the roles without one.
    pub(super) fn is_done(&self, scope: &Scope<'_>) -> bool {
        if !self.is_whole {
            return false;
        }
        let Some(view) = scope.view(self.group).filter(|view| view.takes_chunks()) else { return false };
        let rules = scope.rules().objects();
        let has = |(role, holder): (RoleIndex, Holder)| {
            let is_it =
                |attempt: &Attempt| attempt.role == role && rules.is_acknowledging(attempt.holder, holder);
            self.attempts.iter().any(|attempt| is_it(attempt) && attempt.acknowledged)
        };
        let roles: Vec<usize> = (0..view.holders.len()).collect();
        let (held, lost): (Vec<usize>, Vec<usize>) = roles
            .into_iter()
            .partition(|role| view.holders_of(RoleIndex(*role as u8)).iter().next().is_some());
        let is_solvable =
            || scope.protection(self.group).is_some_and(|it| it.code().plan(&held, &lost).is_ok());
        let missing = view.all_holders().filter(|known| !has(*known)).count();
        missing <= rules.missing_acknowledgements() && (lost.is_empty() || is_solvable())
    }
}

impl Attempt {
    fn new(role: RoleIndex, holder: Holder, number: u64, view: ViewVersion) -> Self {
        let (way, acknowledged, outdated, crowded) = (Way::Cells, false, false, false);
        Self { role, holder, number, view, way, sent: 0, acknowledged, outdated, crowded, sent_at: Time(0) }
    }

    pub(super) fn is_to_be_sent(&self) -> bool {
        !self.acknowledged && !self.outdated && !self.crowded
    }

    fn is_all_sent(&self, stripe: Stripe) -> bool {
        self.sent == stripe.cells_of(self.role.0)
    }

    /// A newer view leaves its holder as it was. The view that the last cell names is judged by, so the rest goes on under this one; a
    /// holder to which all was sent answers to that. To put it again meanwhile would hold up whatever comes behind it on the link.
    fn adopt(&mut self, view: ViewVersion, stripe: Stripe, attempts: &mut u64) {
        if self.outdated {
            self.restart(view, attempts);
        } else if !self.acknowledged && !self.is_all_sent(stripe) {
            self.view = view;
        }
    }

    /// All of it is put again, under this view, cell by cell.
    pub(super) fn restart(&mut self, view: ViewVersion, attempts: &mut u64) {
        *attempts += 1;
        (self.number, self.view, self.sent) = (*attempts, view, 0);
        (self.outdated, self.crowded) = (false, false);
        self.way = self.way.after_all();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use store::{Budget, Eviction, Quotas, StoreConfig};
    use types::{ClusterId, Incarnation, NamespaceId, NodeId, ObjectLayout, Term, UnixSeconds};

    use super::*;
    use crate::host::{Surroundings, Views};
    use crate::{HostConfig, Limits, Now, Timing};

    fn host(node: u16) -> HostId {
        HostId { node: NodeId(node), incarnation: Incarnation(1) }
    }

    pub(in crate::objects::upload) fn surroundings(rules: Rules) -> Surroundings {
        let store =
            StoreConfig { cluster: ClusterId(1), area_limit_bytes: 1 << 20, eviction: Eviction::None };
        Surroundings::new(HostConfig {
            host: host(0),
            shard: 0,
            secret: crate::Secret::known_to_all(),
            timing: Timing::default(),
            limits: Limits::default(),
            graphs: crate::GraphSettings::default(),
            coder: codec::Coder::default(),
            rules,
            store,
            budget: Budget::new(1 << 20),
            quotas: Quotas::new(1),
        })
    }

    #[test]
    fn a_view_that_leaves_a_holder_as_it_was_has_nothing_put_again_that_is_on_its_way() {
        let holder = Holder { host: host(1), since: ViewVersion(1) };
        let (len, k, layout) = (8 << 16, 2, ObjectLayout::Spread);
        let stripe = Geometry { len, chunk_len: 1 << 20, k, layout }.stripe(0).unwrap();
        assert_eq!(stripe.rows, 4);
        let attempt = |sent, outdated| {
            let attempt = Attempt::new(RoleIndex(1), holder, 7, ViewVersion(1));
            Attempt { sent, outdated, ..attempt }
        };
        let after = |mut attempt: Attempt| {
            attempt.adopt(ViewVersion(2), stripe, &mut 7);
            (attempt.number, attempt.view.0, attempt.sent)
        };
        assert_eq!(after(attempt(3, false)), (7, 2, 3), "the last cell names the new view");
        assert_eq!(after(attempt(4, false)), (7, 1, 4), "its answer is waited for");
        assert_eq!(after(attempt(4, true)), (8, 2, 0), "it was refused");
    }

    /// A stripe whose second chunk has an attempt at node 1, what it goes by, and what that node refuses so.
    fn attempted() -> (StripeUpload, Name, impl Fn(u64, Refusal) -> Refused) {
        let member = MemberId { group: GroupId(0), role: RoleIndex(1) };
        let (term, namespace) = (Term(1), NamespaceId::default());
        let object = ObjectId { owner: member, term, number: 1, salt: 1, namespace };
        let geometry = Geometry { len: 1_000_000, chunk_len: 1 << 20, k: 2, layout: ObjectLayout::Spread };
        let mut stripe = StripeUpload::new(geometry.stripe(0).unwrap(), GroupId(0), GroupId(0));
        let holder = Holder { host: host(1), since: ViewVersion(1) };
        stripe.attempts.push(Attempt::new(RoleIndex(1), holder, 7, ViewVersion(1)));
        let chunk = ChunkId { object, stripe: 0 };
        let refused = move |attempt, why| Refused { member, chunk, attempt, why };
        (stripe, (object, KeyHash(1), geometry), refused)
    }

    #[test]
    fn cells_behind_one_without_room_do_not_make_the_chunk_be_put_again_at_once() {
        let (mut stripe, name, refused) = attempted();
        let (mut around, views, mut attempts) = (surroundings(Rules::all()), Views::default(), 7);
        let mut hear = |at: u64, refusal| {
            let now = Now { time: Time(at), unix: UnixSeconds(0) };
            let mut scope = Scope { now, around: &mut around, views: &views };
            let fate = stripe.refused(&mut scope, name, host(1), &refused(7, refusal), &mut attempts);
            let stuck = match fate {
                Fate::GoesOn => None,
                Fate::Stuck(stuck) => Some((stuck.avoid.to_vec(), stuck.failure)),
                Fate::Fails(failure) => panic!("{failure:?}"),
            };
            (stuck, attempts)
        };
        assert_eq!(hear(1, Refusal::Crowded), (None, 7));
        assert_eq!(hear(2, Refusal::Gap), (None, 7), "it waits for its time");
        let patience = Timing::default().request_deadline_us;
        let stuck = (vec![host(1)], Some(Failure::OutOfMemory));
        assert_eq!(hear(patience + 1, Refusal::Crowded), (Some(stuck), 7));
    }

    #[test]
    fn a_holder_without_room_is_asked_again_long_before_others_are() {
        let (mut stripe, name, refused) = attempted();
        let (mut around, views, mut attempts) = (surroundings(Rules::all()), Views::default(), 7);
        let (timing, mut at) = (Timing::default(), Time(1));
        let now = |time| Now { time, unix: UnixSeconds(0) };
        for attempt in 7..10 {
            assert_eq!(stripe.asks_again_at(&timing), None, "it has not been refused");
            let crowded = refused(attempt, Refusal::Crowded);
            let mut scope = Scope { now: now(at), around: &mut around, views: &views };
            stripe.refused(&mut scope, name, host(1), &crowded, &mut attempts);
            at = stripe.asks_again_at(&timing).unwrap();
            for (time, expected) in [(Time(at.0 - 1), attempt), (at, attempt + 1)] {
                let mut scope = Scope { now: now(time), around: &mut around, views: &views };
                stripe.retry(&mut scope, name, &mut attempts);
                assert_eq!(attempts, expected, "it is put anew at {at:?}, and not before");
            }
        }
        assert!(at.since(Time(1)) < timing.retry_us / 4, "{at:?}");
    }

    /// A map of one group without parities, whose only role node 1 holds since `version`.
    #[cfg(feature = "planted-bugs")]
    fn held_since(version: u64) -> types::ClusterMap {
        use types::{Catalog, ClusterMap, DataRole, GroupView, Holders, RoleStatus};
        let holder = Holder { host: host(1), since: ViewVersion(version) };
        let (primary, term) = (Some(host(1)), Term(1));
        let view = GroupView {
            group: GroupId(0),
            version: ViewVersion(version),
            data: vec![DataRole { primary, term, origin: term, status: RoleStatus::Full }],
            parity: vec![],
            learners: vec![],
            former: vec![],
            holders: vec![Holders { whole: Some(holder), filling: None }],
        };
        ClusterMap {
            cluster: ClusterId(1),
            version,
            catalog: Catalog::first("none".parse().unwrap(), 1),
            shards: 1,
            layout: types::Layout::default(),
            nodes: vec![],
            groups: vec![view],
        }
    }

    /// A holder has acknowledged a stripe; then a view names it anew, after it came back with nothing.
    #[cfg(feature = "planted-bugs")]
    #[test]
    fn without_the_rule_an_acknowledgement_counts_for_a_holder_that_came_back_empty() {
        let is_done = |rules| {
            let (mut around, mut views) = (surroundings(rules), Views::default());
            let geometry = Geometry { len: 1_000, chunk_len: 1 << 20, k: 1, layout: ObjectLayout::Spread };
            let mut stripe = StripeUpload::new(geometry.stripe(0).unwrap(), GroupId(0), GroupId(0));
            stripe.is_whole = true;
            let holder = Holder { host: host(1), since: ViewVersion(1) };
            let attempt = Attempt::new(RoleIndex(0), holder, 7, ViewVersion(1));
            stripe.attempts.push(Attempt { acknowledged: true, ..attempt });
            let mut done = |version| {
                views.begin(held_since(version));
                let now = Now { time: Time(1), unix: UnixSeconds(0) };
                stripe.is_done(&Scope { now, around: &mut around, views: &views })
            };
            (done(1), done(2))
        };
        assert_eq!(is_done(Rules::all()), (true, false));
        assert_eq!(is_done(Rules::without(crate::Bug::AckOutlivesHolder)), (true, true));
    }
}
