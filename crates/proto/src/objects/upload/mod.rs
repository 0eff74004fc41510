//! Values that are written into chunks: from the first byte that comes to the commit.
//!
//! The writer is the host whose client sends the value. An upload asks the owner for an id, codes row by row what comes, puts the
//! cells to all holders of each stripe's group (`stripe`), and commits when every stripe is done; where its owner becomes another one, it
//! begins anew with what is done already (`anew`). It holds two stripes at most: who
//! sends faster than holders take waits. All together hold no more than a bound: beyond it only the oldest goes on, whose end gives
//! back most soonest, and whoever waits for too long fails. Before that those fail whose clients send nothing, for want of memory and for
//! want of places: else a crowd that only sits there would keep out all others.

mod anew;
mod crowd;
mod elsewhere;
mod forecast;
mod groups;
mod room;
mod rows;
mod stripe;
mod sums;
mod ways;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use types::op::{Commit, Failure, ObjectOp, Op, Outcome, Request, Store, Via};
use types::{
    Descriptor, Exception, Geometry, GroupId, GroupView, HostId, Key, KeyHash, MemberId, ObjectId, Once,
    Term, Time,
};
use wire::object::{Placed, Refused};

use super::names::{Client, ObjectStats, OwnerRequest, StreamId, UploadId};
use super::scope::Scope;
use crate::host::driver::NewUpload;
use crate::{EncodeBy, Timing};
use anew::Done;
pub(crate) use groups::groups_for;
use rows::Rows;
use stripe::StripeUpload;
use ways::{By, Trip, Ways};

/// Stripes that one upload holds.
const MAX_STRIPES: usize = 2;
/// No more than one part in this many of the node's memory is held for the uploads of all its workers.
const MEMORY_SHARE: u64 = 8;
/// While others are kept out, one whose client has sent no whole cell for this part of a request's deadline ends: so those have the rest
/// of theirs.
const STILL_SHARE: u64 = 2;
/// A deadline of an open id is renewed when so many parts of it are left.
const RENEWALS: u64 = 3;

/// The uploads of one host.
#[derive(Default)]
pub(crate) struct Uploads {
    all: BTreeMap<UploadId, Upload>,
    started: u64,
    /// Numbers of tries to put a chunk.
    attempts: u64,
    /// When it was last looked what may be lost on its way.
    looked: Time,
    /// Bytes that all hold together, and may.
    held: usize,
    most: usize,
    /// Whether some are not held any more, which others may have waited for.
    released: bool,
    /// Whether there were too many for one more.
    crowded: bool,
    counts: Counts,
    ways: Ways,
    /// Times that one of them has begun anew under another id.
    renamed: u64,
}

/// What has become of stripes that are done.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Stripes that went to another group than the one that they were to go to.
    moved: u64,
    /// Parities that others have made.
    summed: u64,
    /// Those that they were to make, and that were put after all.
    unsummed: u64,
    /// Values that were not written for want of room; those that primaries refuse they count themselves.
    refused: u64,
}

impl Counts {
    fn add(&mut self, stripe: &StripeUpload, has_moved: bool) {
        let (summed, unsummed) = stripe.count_sums();
        self.moved += u64::from(has_moved);
        self.summed += summed;
        self.unsummed += unsummed;
    }
}

struct Upload {
    client: Client,
    key: Key,
    hash: KeyHash,
    owner: MemberId,
    store: Store,
    once: Option<Once>,
    via: Option<Box<Via>>,
    /// See [`types::op::Begin`].
    conversions: u32,
    geometry: Geometry,
    groups: Vec<GroupId>,
    exceptions: Vec<Exception>,
    /// Groups that stripes have left, and those to which they went.
    strayed: BTreeSet<GroupId>,
    /// Who makes its parities; what is known of its way, if that was chosen.
    by: By,
    trip: Option<Trip>,
    id: Option<ObjectId>,
    /// The value as it comes.
    rows: Rows,
    /// Stripes that are not done, oldest first; before them those that only get another name.
    stripes: VecDeque<StripeUpload>,
    done: Done,
    /// Whether its end is being committed.
    committing: bool,
    /// Whether the driver waits until more bytes are taken.
    full: bool,
    /// Whether it does so for want of memory; since when that is known.
    starved: bool,
    starved_since: Option<Time>,
    /// Bytes that it holds, as they are in the sum.
    held: usize,
    /// Since when its client is known to send nothing while others are kept out.
    still_since: Option<Time>,
    /// When its id is to be renewed.
    renew: Time,
    /// Whether nobody wants it any more: it is here only until its id comes, which is given back.
    gone: bool,
}

impl Uploads {
    /// Begins one; its first request.
    pub(super) fn begin(
        &mut self,
        scope: &Scope<'_>,
        client: Client,
        (owner, hash): (MemberId, KeyHash),
        new: NewUpload,
    ) -> Result<(UploadId, OwnerRequest), Failure> {
        self.crowded = self.all.len() >= scope.limits().uploads;
        if self.crowded {
            return Err(Failure::Busy);
        }
        let protection = scope.protection(owner.group).ok_or(Failure::Unavailable)?;
        let k = protection.code().k() as u8;
        let NewUpload { len, chunk_len, layout, .. } = new;
        let geometry = Geometry { len, chunk_len, k, layout };
        if !geometry.is_possible() {
            return Err(Failure::TooLarge);
        }
        if room::never_fits(scope, owner, new.key.namespace(), geometry, new.via.is_some()) {
            self.counts.refused += 1;
            return Err(Failure::OutOfMemory);
        }
        let conversions = scope.conversions_of(new.key.namespace(), owner.group);
        self.started += 1;
        self.most = most_bytes(scope);
        let upload = UploadId(self.started);
        let groups = groups_for(scope, owner, hash, geometry);
        let (by, trip) = self.choose_way(scope, groups.first().copied().unwrap_or(owner.group), geometry);
        let one = Upload {
            client,
            key: new.key,
            hash,
            owner,
            store: new.store,
            once: new.once,
            via: new.via,
            conversions,
            geometry,
            groups,
            exceptions: Vec::new(),
            strayed: BTreeSet::new(),
            by,
            trip,
            id: None,
            rows: Rows::new(geometry, protection),
            stripes: VecDeque::new(),
            done: Done::default(),
            committing: false,
            full: false,
            starved: false,
            starved_since: None,
            held: 0,
            still_since: None,
            renew: Time::NEVER,
            gone: false,
        };
        let request = one.ask_for_id(upload);
        self.all.insert(upload, one);
        Ok((upload, request))
    }

    /// Who makes the parities of a value whose first stripe goes to `group`.
    fn choose_way(&mut self, scope: &Scope<'_>, group: GroupId, geometry: Geometry) -> (By, Option<Trip>) {
        match scope.graphs().encode {
            EncodeBy::Node => (By::Node, None),
            EncodeBy::Tri => (By::Tri, None),
            EncodeBy::Auto => {
                let (now, lease_us) = (scope.now.time, scope.timing().node_lease_us);
                let forecast = |known| forecast::forecast(scope, group, geometry, known);
                let trip = self.ways.begin(now, lease_us, geometry.len, forecast);
                (trip.by, Some(trip))
            }
        }
    }

    /// How many bytes are taken in one piece now; 0 = none before there is room.
    pub(super) fn wanted(&mut self, upload: UploadId) -> usize {
        let is_first = self.all.iter().find(|(_, one)| one.is_coming()).is_some_and(|(id, _)| *id == upload);
        let Some(one) = self.all.get_mut(&upload) else { return 0 };
        let wanted = one.wanted();
        one.starved = wanted > 0 && !is_first && self.held + wanted > self.most;
        if one.starved {
            one.full = true;
            return 0;
        }
        one.starved_since = None;
        wanted
    }

    /// What one holds may have become more, or less.
    fn recount(&mut self, upload: UploadId) {
        let Some(one) = self.all.get_mut(&upload) else { return };
        let (before, held) = (one.held, one.memory_bytes());
        one.held = held;
        // When all of it has come another one is the first.
        self.released |= held < before || !one.is_coming();
        self.held = self.held + one.held - before;
    }

    fn remove(&mut self, upload: UploadId) -> Option<Upload> {
        let one = self.all.remove(&upload)?;
        self.held -= one.held;
        if let Some(trip) = one.trip {
            self.ways.end(trip);
        }
        // Another one is the first by now.
        self.released = true;
        Some(one)
    }

    /// Who has waited until more bytes are taken, and need not any more.
    pub(super) fn wake(&mut self) -> Vec<Client> {
        if !std::mem::take(&mut self.released) {
            return Vec::new();
        }
        let waiting: Vec<UploadId> = self.all.iter().filter(|(_, one)| one.full).map(|(id, _)| *id).collect();
        let mut woken = Vec::new();
        for upload in waiting {
            if self.wanted(upload) > 0
                && let Some(one) = self.all.get_mut(&upload)
            {
                (one.full, one.still_since) = (false, None);
                woken.push(one.client);
            }
        }
        woken
    }

    /// The next bytes of the value, no more than are wanted.
    pub(super) fn feed(&mut self, scope: &mut Scope<'_>, upload: UploadId, bytes: Bytes) {
        let Self { all, attempts, .. } = self;
        let Some(one) = all.get_mut(&upload) else { return };
        one.still_since = None;
        one.feed(scope, bytes, attempts);
        self.recount(upload);
    }

    /// The client is gone, or wants it no more; what the owner is told.
    pub(super) fn abandon(&mut self, upload: UploadId) -> Option<OwnerRequest> {
        let one = self.all.get_mut(&upload)?;
        if one.id.is_none() {
            one.give_up();
            self.recount(upload);
            return None;
        }
        self.remove(upload)?.farewell(upload)
    }

    /// What is to be said of one that is given up, for nothing has come of it for long.
    pub(super) fn what_is_late(&self, upload: UploadId) -> Failure {
        match self.all.get(&upload) {
            // It may be done, and only the answer be missing.
            Some(one) if one.committing => Failure::Unknown,
            Some(one) if one.starved => Failure::OutOfMemory,
            _ => Failure::Busy,
        }
    }

    /// The owner has answered.
    pub(super) fn hear_owner(&mut self, scope: &mut Scope<'_>, upload: UploadId, outcome: Outcome) -> Step {
        let Self { all, attempts, .. } = self;
        let Some(one) = all.get_mut(&upload) else { return Step::default() };
        match outcome {
            Outcome::Begun(id) => {
                if id.owner != one.owner {
                    // Its chunks would lie in another pool: whoever has placed it knows another map than its owner does.
                    return self.end(upload, Outcome::Failed(Failure::Busy));
                }
                one.id = Some(id);
                if one.gone {
                    return Step { ended: None, request: self.abandon(upload) };
                }
                if one.done.is_stale(id) {
                    return self.end(upload, Outcome::Failed(Failure::NotOpen));
                }
                one.renew = scope.now.time + scope.timing().object_deadline_us / RENEWALS;
                one.put_what_there_is(scope, attempts);
                self.go_on(scope, upload)
            }
            Outcome::Noted => Step::default(),
            // Nothing was done, and whoever speaks for the owner now may give another id.
            Outcome::Failed(Failure::NotOpen) => self.begin_anew(upload),
            outcome => {
                if let (Outcome::Stored { .. }, Some(trip)) = (&outcome, one.trip) {
                    self.ways.arrive(scope.now.time, trip, one.geometry.len);
                }
                self.end(upload, outcome)
            }
        }
    }

    /// The owner has answered whether the id is open still. What its commit comes to that one says itself.
    pub(super) fn hear_renewal(&mut self, upload: UploadId, term: Term, outcome: &Outcome) -> Step {
        let is_of_term = |one: &Upload| one.id.is_some_and(|id| id.term == term);
        let is_meant = self.all.get(&upload).is_some_and(|one| !one.committing && is_of_term(one));
        match outcome {
            Outcome::Failed(Failure::NotOpen) if is_meant => self.begin_anew(upload),
            _ => Step::default(),
        }
    }

    /// A holder has a chunk.
    pub(super) fn placed(&mut self, scope: &mut Scope<'_>, from: HostId, placed: &Placed) -> Step {
        let upload = self.find(placed.chunk.object);
        let Some((upload, one)) = upload else { return Step::default() };
        one.stripes.iter_mut().for_each(|stripe| stripe.placed(from, placed));
        self.go_on(scope, upload)
    }

    /// A holder has not taken one.
    pub(super) fn refused(&mut self, scope: &mut Scope<'_>, from: HostId, refused: &Refused) -> Step {
        let Self { all, attempts, .. } = self;
        let of = |(_, one): &(&UploadId, &mut Upload)| one.id == Some(refused.chunk.object);
        let Some((upload, one)) = all.iter_mut().find(of).map(|(id, one)| (*id, one)) else {
            return Step::default();
        };
        let id = refused.chunk.object;
        let name = (id, one.hash, one.geometry);
        let failure = one.decide(scope, name, attempts, |stripe, scope, attempts| {
            stripe.refused(scope, name, from, refused, attempts)
        });
        match failure {
            Some(failure) => self.end(upload, Outcome::Failed(failure)),
            None => self.go_on(scope, upload),
        }
    }

    /// A group has another view.
    pub(super) fn adopt(&mut self, scope: &mut Scope<'_>, view: &GroupView) -> Vec<Step> {
        let Self { all, attempts, .. } = self;
        for one in all.values_mut() {
            let (id, hash, geometry) = (one.id, one.hash, one.geometry);
            for stripe in one.stripes.iter_mut().filter(|stripe| stripe.group() == view.group) {
                stripe.note_view();
                if let Some(id) = id {
                    stripe.adopt(scope, (id, hash, geometry), attempts);
                }
            }
        }
        let outlived: Vec<Step> =
            self.outlived_by(view).into_iter().map(|upload| self.begin_anew(upload)).collect();
        let ids: Vec<UploadId> = self.all.keys().copied().collect();
        let others = ids.into_iter().map(|upload| self.go_on(scope, upload));
        outlived.into_iter().chain(others).collect()
    }

    /// A link to `peer` is up: what was put on the one before is put again.
    pub(super) fn link_up(&mut self, scope: &mut Scope<'_>, peer: HostId) {
        let Self { all, attempts, .. } = self;
        for one in all.values_mut() {
            let Some(id) = one.id else { continue };
            let name = (id, one.hash, one.geometry);
            one.stripes.iter_mut().for_each(|stripe| stripe.link_up(scope, name, peer, attempts));
        }
    }

    fn find(&mut self, object: ObjectId) -> Option<(UploadId, &mut Upload)> {
        let mut all = self.all.iter_mut().map(|(id, one)| (*id, one));
        all.find(|(_, one)| one.id == Some(object))
    }

    /// What is done goes, what has room is said so, and the end is committed.
    pub(super) fn go_on(&mut self, scope: &mut Scope<'_>, upload: UploadId) -> Step {
        let Self { all, attempts, counts, .. } = self;
        let Some(one) = all.get_mut(&upload) else { return Step::default() };
        one.take_done(scope, counts);
        if one.id.is_some() {
            one.begin_renaming(scope.rules());
        }
        one.put_what_there_is(scope, attempts);
        let request = one.commit_if_done(upload);
        self.recount(upload);
        Step { ended: None, request }
    }

    fn end(&mut self, upload: UploadId, outcome: Outcome) -> Step {
        let Some(one) = self.remove(upload) else { return Step::default() };
        let is_refused = !one.committing && outcome == Outcome::Failed(Failure::OutOfMemory);
        self.counts.refused += u64::from(is_refused);
        let request = match outcome {
            Outcome::Failed(_) => one.farewell(upload),
            Outcome::Stored(_) => one.clearing(upload),
            _ => None,
        };
        let outcome = match (one.client, one.once) {
            (Client::Driver(_), Some(once)) if once.again && outcome == Outcome::Failed(Failure::NotOpen) => {
                Outcome::Failed(Failure::Unknown)
            }
            (Client::Driver(_), Some(once)) => once.in_all(outcome),
            // Whoever makes a value longer tries again, and knows in the end what to say.
            _ => outcome,
        };
        let ended = (!one.gone).then_some((one.client, outcome));
        Step { ended, request }
    }

    /// Ids are renewed, and what may be lost on its way is put again.
    pub(super) fn tick(&mut self, scope: &mut Scope<'_>) -> Vec<Step> {
        let now = scope.now.time;
        if now < self.due(&scope.timing()) {
            return Vec::new();
        }
        self.looked = now;
        let Self { all, attempts, .. } = self;
        let (mut steps, mut failed) = (Vec::new(), Vec::new());
        for (upload, one) in all.iter_mut().filter(|(_, one)| !one.committing) {
            let Some(id) = one.id else { continue };
            if one.renew <= now {
                one.renew = now + scope.timing().object_deadline_us / RENEWALS;
                let stream = Some(StreamId::Renewal(*upload, id.term));
                let request = Some(OwnerRequest { stream, ..one.request(*upload, ObjectOp::Renew(id)) });
                steps.push(Step { ended: None, request });
            }
            let name = (id, one.hash, one.geometry);
            let failure = one
                .decide(scope, name, attempts, |stripe, scope, attempts| stripe.retry(scope, name, attempts));
            failed.extend(failure.map(|failure| (*upload, failure)));
        }
        steps.extend(failed.into_iter().map(|(upload, failure)| self.end(upload, Outcome::Failed(failure))));
        steps.extend(self.end_starved(scope));
        steps
    }

    /// Where some are kept out: those end that stand still, and else whoever has waited for memory for as long as any request may.
    fn end_starved(&mut self, scope: &Scope<'_>) -> Vec<Step> {
        let (now, patience) = (scope.now.time, scope.timing().request_deadline_us);
        self.crowded &= self.all.len() >= scope.limits().uploads;
        let is_starved = self.all.values().any(|one| one.starved);
        if !is_starved && !self.crowded {
            return Vec::new();
        }
        let failure = if is_starved { Failure::OutOfMemory } else { Failure::Busy };
        let waits_in_vain =
            |one: &mut Upload| one.starved && now.since(*one.starved_since.get_or_insert(now)) >= patience;
        let in_vain = self.those(waits_in_vain);
        let still = self.those(|one| one.stands_still(now, patience / STILL_SHARE));
        // What those give back others may be content with.
        let over = if still.is_empty() { in_vain } else { still };
        over.into_iter().map(|upload| self.end(upload, Outcome::Failed(failure))).collect()
    }

    fn those(&mut self, are_meant: impl Fn(&mut Upload) -> bool) -> Vec<UploadId> {
        self.all.iter_mut().filter_map(|(id, one)| are_meant(one).then_some(*id)).collect()
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        let waits = self.all.values().any(|one| !one.committing && (one.starved || !one.stripes.is_empty()));
        let retry = if waits || self.crowded { self.looked + timing.retry_us } else { Time::NEVER };
        let under_way = || self.all.values().filter(|one| !one.committing);
        let renewals = under_way().map(|one| one.renew);
        let crowds = under_way().flat_map(|one| &one.stripes).filter_map(|it| it.asks_again_at(timing));
        renewals.chain(crowds).min().unwrap_or(Time::NEVER).min(retry)
    }

    /// Adds what has become of stripes, and how often an upload has begun anew under another id.
    pub(crate) fn count(&self, stats: &mut ObjectStats) {
        let Counts { moved, summed, unsummed, refused } = self.counts;
        stats.refused_values = refused;
        (stats.moved_stripes, stats.renamed_uploads) = (moved, self.renamed);
        (stats.summed_chunks, stats.unsummed_chunks) = (summed, unsummed);
        [stats.summed_uploads, stats.encode_trials, stats.encode_turns] = self.ways.counts();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes that they hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.held
    }

    /// What has to hold.
    pub(crate) fn check_invariants(&self) {
        let held: usize = self.all.values().map(Upload::memory_bytes).sum();
        assert_eq!(self.held, held, "what uploads hold is counted");
    }
}

/// What comes of an event for others.
#[derive(Default)]
pub(super) struct Step {
    /// Whose upload is over, and how it went.
    pub ended: Option<(Client, Outcome)>,
    pub request: Option<OwnerRequest>,
}

impl Upload {
    fn memory_bytes(&self) -> usize {
        let stripes: usize = self.stripes.iter().map(StripeUpload::memory_bytes).sum();
        self.rows.memory_bytes() + stripes + self.done.memory_bytes()
    }

    /// Whether bytes of it are still to come.
    fn is_coming(&self) -> bool {
        !self.gone && !self.rows.is_at_end()
    }

    /// How many bytes are taken in one piece now.
    fn wanted(&mut self) -> usize {
        let coming = self.stripes.iter().filter(|stripe| stripe.old().is_none()).count();
        let wanted = if coming < MAX_STRIPES || self.is_in_newest_stripe() { self.rows.wanted() } else { 0 };
        self.full |= wanted == 0 && !self.rows.is_at_end();
        wanted
    }

    /// Whether a client was to send more for so long, and has not.
    fn stands_still(&mut self, now: Time, patience: u64) -> bool {
        let is_awaited = self.is_coming() && !self.full && matches!(self.client, Client::Driver(_));
        is_awaited && now.since(*self.still_since.get_or_insert(now)) >= patience
    }

    /// Nobody wants it, and its id is on its way.
    fn give_up(&mut self) {
        (self.gone, self.full) = (true, false);
        self.stripes.clear();
        self.done = Done::default();
        self.rows = self.rows.emptied();
    }

    /// Whether the next bytes are of a stripe that has begun.
    fn is_in_newest_stripe(&self) -> bool {
        self.stripes.back().is_some_and(|stripe| Some(stripe.index()) == self.rows.stripe())
    }

    fn feed(&mut self, scope: &mut Scope<'_>, bytes: Bytes, attempts: &mut u64) {
        let Some(dealt) = self.rows.feed(scope.coder(), bytes) else { return };
        if self.stripes.back().is_none_or(|stripe| stripe.index() != dealt.stripe.index) {
            self.begin_stripe(scope, dealt.stripe);
        }
        if let Some(stripe) = self.stripes.back_mut() {
            stripe.add(dealt);
        }
        self.put_what_there_is(scope, attempts);
    }

    fn put_what_there_is(&mut self, scope: &mut Scope<'_>, attempts: &mut u64) {
        let Some(id) = self.id else { return };
        let name = (id, self.hash, self.geometry);
        self.stripes.iter_mut().for_each(|stripe| stripe.go_on(scope, name, attempts));
    }

    /// Every stripe is where it has to be.
    fn commit_if_done(&mut self, upload: UploadId) -> Option<OwnerRequest> {
        let is_done = self.rows.is_at_end() && self.stripes.is_empty() && self.done.is_named();
        let id = self.id.filter(|_| !self.committing && is_done)?;
        self.committing = true;
        let descriptor = self.descriptor(id);
        let store = self.store.clone();
        let mut commit = self.request(upload, ObjectOp::Commit(Box::new(Commit { descriptor, store })));
        commit.request = commit.request.once(self.once);
        Some(commit)
    }

    fn descriptor(&self, id: ObjectId) -> Descriptor {
        let (geometry, checksum) = (self.geometry, self.rows.checksum());
        let (groups, exceptions) = (self.groups.clone(), self.exceptions.clone());
        Descriptor { id, geometry, groups, exceptions, checksum }
    }

    fn request(&self, upload: UploadId, op: ObjectOp) -> OwnerRequest {
        let stream = Some(StreamId::Upload(upload));
        let request = Request { via: self.via.clone(), ..request_of(&self.key, op) };
        OwnerRequest { stream, owner: self.owner, hash: self.hash, request }
    }

    /// The owner is told that nothing will come of it; not of what may have been committed.
    fn farewell(&self, upload: UploadId) -> Option<OwnerRequest> {
        let id = self.id.filter(|_| !self.committing)?;
        Some(self.request(upload, ObjectOp::Abandon(Box::new(self.remains(id)))))
    }

    /// What names every group that may have anything of it, so that all is freed: also those that stripes have left, or are on their way to.
    fn remains(&self, id: ObjectId) -> Descriptor {
        let whole = self.descriptor(id);
        if self.strayed.is_empty() {
            return whole;
        }
        let all: BTreeSet<GroupId> =
            whole.all_groups().into_iter().chain(self.strayed.iter().copied()).collect();
        whole.in_groups(all)
    }

    /// It is stored: the owner is told what lies where it is not to be any more.
    fn clearing(&self, upload: UploadId) -> Option<OwnerRequest> {
        let whole = self.descriptor(self.id?);
        let named = whole.all_groups();
        let mut others = self.strayed.iter().copied().filter(|group| !named.contains(group)).peekable();
        others.peek()?;
        Some(self.request(upload, ObjectOp::Abandon(Box::new(whole.in_groups(others)))))
    }
}

/// Bytes that the uploads of one host may hold together.
fn most_bytes(scope: &Scope<'_>) -> usize {
    let workers = scope.views.map().map_or(1, |map| u64::from(map.shards.max(1)));
    let share = scope.budget().limit() / MEMORY_SHARE / workers;
    scope.limits().upload_bytes.min(usize::try_from(share).unwrap_or(usize::MAX))
}

fn request_of(key: &Key, op: ObjectOp) -> Request {
    Request::on(key.clone(), Op::Object(op))
}

#[cfg(test)]
mod tests {
    use cluster::Protection;
    use types::op::{Expiry, StoreMode};
    use types::{NamespaceId, ObjectLayout, RoleIndex, Term};

    use super::*;
    use crate::host::driver::Token;

    const CLIENT: Client = Client::Driver(Token([0, 0]));

    /// An upload whose bytes have all come, with an id.
    fn upload(committing: bool) -> Upload {
        let owner = MemberId { group: GroupId(0), role: RoleIndex(0) };
        let geometry = Geometry { len: 1000, chunk_len: 65_536, k: 2, layout: ObjectLayout::Spread };
        let (value, mode, expiry) = (Bytes::new(), StoreMode::Set, Expiry::Never);
        let store = Store {
            mode,
            value,
            flags: 0,
            expiry,
            compare: None,
            version: None,
            invalidate: false,
            vivify: None,
        };
        let (term, namespace) = (Term(1), NamespaceId::default());
        Upload {
            client: CLIENT,
            key: Key::new(Bytes::from_static(b"key")).unwrap(),
            hash: KeyHash(1),
            owner,
            store,
            once: None,
            via: None,
            conversions: 0,
            geometry,
            groups: vec![GroupId(0)],
            exceptions: Vec::new(),
            strayed: BTreeSet::new(),
            by: By::Node,
            trip: None,
            id: Some(ObjectId { owner, term, number: 1, salt: 1, namespace }),
            rows: Rows::new(geometry, std::sync::Arc::new(Protection::of("rs(2+1)".parse().unwrap()))),
            stripes: VecDeque::new(),
            done: Done::default(),
            committing,
            full: false,
            starved: false,
            starved_since: None,
            held: 0,
            still_since: None,
            renew: Time::NEVER,
            gone: false,
        }
    }

    fn heard(committing: bool, failure: Failure) -> Option<(Client, Outcome)> {
        let mut uploads = Uploads::default();
        uploads.all.insert(UploadId(1), upload(committing));
        uploads.hear_renewal(UploadId(1), Term(1), &Outcome::Failed(failure)).ended
    }

    /// An upload whose id is closed, and what it asks for then.
    fn closed() -> (Uploads, Option<OwnerRequest>) {
        let mut uploads = Uploads::default();
        uploads.all.insert(UploadId(1), upload(false));
        let not_open = Outcome::Failed(Failure::NotOpen);
        let late = uploads.hear_renewal(UploadId(1), Term(0), &not_open);
        assert!(late.request.is_none(), "of an id before this one");
        let step = uploads.hear_renewal(UploadId(1), Term(1), &not_open);
        assert_eq!(step.ended, None);
        (uploads, step.request)
    }

    /// What comes of an id of `term` then.
    fn begun(uploads: &mut Uploads, term: Term) -> Option<(Client, Outcome)> {
        let (mut around, views) =
            (stripe::tests::surroundings(crate::Rules::all()), crate::host::Views::default());
        let now = crate::Now { time: Time(1), unix: types::UnixSeconds(0) };
        let mut scope = Scope { now, around: &mut around, views: &views };
        let id = ObjectId { term, ..upload(false).id.unwrap() };
        uploads.hear_owner(&mut scope, UploadId(1), Outcome::Begun(id)).ended
    }

    #[test]
    fn what_a_renewal_comes_to_is_not_what_the_commit_comes_to() {
        for failure in [Failure::Busy, Failure::Unknown, Failure::NotOpen] {
            assert_eq!(heard(true, failure), None, "{failure:?}");
        }
    }

    #[test]
    fn of_an_upload_that_stands_still_only_a_commit_leaves_open_what_was_done() {
        let late = |one: Upload| {
            let mut uploads = Uploads::default();
            uploads.all.insert(UploadId(1), one);
            uploads.what_is_late(UploadId(1))
        };
        assert_eq!(late(upload(true)), Failure::Unknown);
        assert_eq!(late(upload(false)), Failure::Busy);
        assert_eq!(late(Upload { starved: true, ..upload(false) }), Failure::OutOfMemory);
    }

    #[test]
    fn an_upload_whose_id_is_closed_begins_anew_and_one_that_could_not_ask_goes_on() {
        assert_eq!(heard(false, Failure::Busy), None);
        let (mut uploads, request) = closed();
        let request = request.map(|it| it.request.op);
        assert!(matches!(request, Some(Op::Object(ObjectOp::Begin(_)))), "{request:?}");
        assert_eq!(begun(&mut uploads, Term(2)), None, "another owner has been told of nothing else");
    }

    #[test]
    fn an_upload_whose_owner_has_closed_its_id_is_over() {
        let (mut uploads, _) = closed();
        let ended = Some((CLIENT, Outcome::Failed(Failure::NotOpen)));
        assert_eq!(begun(&mut uploads, Term(1)), ended, "what was put may be gone");
    }
}
