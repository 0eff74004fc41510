//! Items that a primary gives away, since their namespace moves to another pool (docs/pools.md, "To another pool").
//!
//! As long as the conversion lasts this primary decides about the keys that it has, and no key comes to it any more. It changes nothing
//! of them but that they go: an item is sent to the primary that the new pool has for it, and removed here when that one has committed
//! it. Until then it is read here, and who would write it waits. Whoever asks for a key that is not here (any more) is sent on.
//!
//! Nothing of this is written down. A stand-in finds in its index what has not gone, and sends it again: the same item, for nobody has
//! written it meanwhile. What may still be under way of an earlier try, of this primary or of one before it, must not arrive after that:
//! so each try has a number, which the receiver is told first (`Expect`), and from then on takes items of this role under no other one. A
//! try ends when anything that was sent under its number is left without an answer.
//!
//! A value in chunks is written anew into the other pool before (`objects/rewrite.rs`), and what is sent is the commit of that. Who writes
//! such a value names a primary with its id before the bytes come, and with a conversion that is another one. So nothing leaves for as long
//! as some may not have heard of the conversion, and no key for as long as a value of it is written that began before.
//!
//! | what is asked of a receiver | when |
//! | --- | --- |
//! | `Expect` | before the first item, and after each one of which nobody knows whether it has arrived |
//! | a `Store` by way of `Transfer`, or a `Commit` | for each item: the ones that somebody wants to write first, the others in the order of their hashes |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use smallvec::SmallVec;
use store::{DataStore, Found, Item, Step};
use types::op::{
    Departure, Expect, Expiry, Failure, Key, Op, Outcome, Request, Store, StoreMode, Transfer, Via,
};
use types::{
    Catalog, Deal, KeyHash, MemberId, Namespace, NamespaceId, ScanBound, Seq, Time, UnixSeconds, split_key,
};
use wire::message::ToCoordinator;

use super::core::Core;
use super::objects::{ObjectEffects, OwnedObjects, descriptor_in};
use super::stream::{Draft, Purpose, SendStream};
use crate::host::driver::Place;
use crate::objects::NewRewrite;
use crate::outbox::{Ask, Context, Passage, ReplyTo};
use crate::{Rules, Timing};

/// Items on their way at once.
const GIVEN_AT_ONCE: usize = 64;
/// Of these places so many are left for what somebody waits for.
const GIVEN_TO_WANTED: usize = 16;
/// Values in chunks among them that nobody waits for: each takes long.
const OBJECTS_AT_ONCE: usize = 4;
/// Bytes of them.
const GIVEN_BYTES: usize = 1 << 20;
/// Keys that somebody waits to write, and that have not been sent yet.
const WANTED: usize = 1024;
/// Values in chunks that could not be written anew, and are not tried again yet.
const PUT_OFF: usize = 1024;
/// Values that were begun before are waited for so many times as long as one may stand still.
const WAITED_DEADLINES: u64 = 10;
/// Hashes of the index that are looked at in one go.
const LOOKS: usize = 256;
/// Numbers of questions have the term above the count.
const TERM_SHIFT: u32 = 32;

/// See the module.
#[derive(Default)]
pub(super) struct Departures {
    /// Of which catalog `leaving` is, as the host counts them.
    edition: u64,
    /// The same while no keys leave or have left, so that one look says that there is none of a key which is not here. Else 0, which is no catalog.
    still_at: u64,
    leaving: SmallVec<[Leaving; 1]>,
    /// Namespaces that have all of their keys in this pool, with the numbers of their last conversions.
    settled: Vec<(NamespaceId, u32)>,
    /// Namespaces that have moved, and whose pool is another one now, with the number of the last conversion; ascending.
    away: Vec<(NamespaceId, u32)>,
    /// Those that move here, with the numbers of their conversions.
    coming: SmallVec<[(NamespaceId, u32); 1]>,
    receivers: BTreeMap<MemberId, Receiver>,
    /// By the number of the question.
    given: BTreeMap<u64, Given>,
    /// Their keys.
    keys: BTreeSet<Bytes>,
    given_bytes: usize,
    /// Those that somebody waits to write.
    wanted: VecDeque<Bytes>,
    /// The same, to look them up.
    wanted_keys: BTreeSet<Bytes>,
    /// Values in chunks that could not be written anew, until when.
    put_off: BTreeMap<Bytes, Time>,
    numbers: u64,
    /// Nothing is sent before.
    rests_until: Time,
    looked: Time,
}

/// A namespace that leaves.
struct Leaving {
    namespace: NamespaceId,
    /// Which of its conversions.
    number: u32,
    /// Where to.
    deal: Deal,
    /// Nothing goes but what is waited for.
    paused: bool,
    /// Whether it is under way. Before, all is as if it did not leave: whoever writes values in chunks is to hear of the conversion first.
    is_under_way: bool,
    begins: Time,
    /// Whether all keys of this role were here when it began: else some are where it goes, since it has turned back, or because another
    /// primary has given them away.
    had_all: bool,
    /// Where to look for the next item; none: from the beginning.
    next: Option<ScanBound>,
    /// Whether any was found since the beginning.
    found: bool,
    /// All that is left was looked at, and cannot go: it is looked at again from then on.
    idle_until: Time,
    /// What was decided before this primary knew of it is committed with this record.
    known_at: Seq,
    reported: Option<Time>,
}

/// Who gets items.
#[derive(Default)]
struct Receiver {
    /// The number under which they are sent.
    number: u64,
    /// Whether it was said that they will come.
    expects: bool,
    /// The question that says so.
    asked: Option<u64>,
    /// It is not asked before.
    rests_until: Time,
}

/// An item on its way.
struct Given {
    key: Bytes,
    hash: KeyHash,
    receiver: MemberId,
    version: u64,
    expiry: u32,
    /// By this second something may have been said to have expired when it was sent.
    told: UnixSeconds,
    bytes: usize,
    /// Whether it is a value in chunks.
    is_object: bool,
    /// By which conversion it goes.
    conversion: (NamespaceId, u32),
    /// Under which number.
    expected: u64,
    /// The record that removes it here.
    removal: Option<Seq>,
}

/// What it takes of its primary.
pub(super) struct Site<'a> {
    pub core: &'a Core,
    pub stream: &'a mut SendStream,
    pub store: &'a mut DataStore,
    pub objects: &'a OwnedObjects,
    /// By this second it may have been said that something has expired.
    pub told: UnixSeconds,
}

impl Departures {
    /// Looks which namespaces leave or come by the catalog as it is now.
    pub(super) fn heed(&mut self, context: &Context<'_>, core: &Core, last: Seq) {
        self.edition = context.edition;
        // An answer to an earlier primary of this host must not be taken for one to this.
        self.numbers = self.numbers.max(u64::from(core.term().0) << TERM_SHIFT);
        self.leave(context, core, last);
        self.still_at = if self.has_any() { 0 } else { context.edition };
    }

    fn leave(&mut self, context: &Context<'_>, core: &Core, last: Seq) {
        let catalog: &Catalog = context.catalog;
        let pool = catalog.pool_of_group(core.member().group).map(|pool| pool.id);
        let before = std::mem::take(&mut self.leaving);
        for known in catalog.namespaces.iter().filter(|known| Some(known.pool) == pool) {
            let Some((conversion, to)) = known.conversion.zip(catalog.target_of(known.id)) else { continue };
            let before =
                before.iter().find(|one| (one.namespace, one.number) == (known.id, known.conversions));
            let had_all = self.settled.contains(&(known.id, known.conversions.wrapping_sub(1)));
            self.leaving.push(Leaving {
                namespace: known.id,
                number: known.conversions,
                deal: to.deal(),
                paused: conversion.paused,
                // A primary that finds it under way cannot know what has left.
                is_under_way: before.map_or(!had_all, |before| before.is_under_way),
                had_all: before.map_or(had_all, |before| before.had_all),
                begins: before
                    .map_or(context.now.time + context.timing.node_lease_us, |before| before.begins),
                next: before.and_then(|before| before.next),
                found: false,
                idle_until: Time(0),
                known_at: before.map_or(last, |before| before.known_at),
                reported: None,
            });
        }
        let is_settled = |known: &&Namespace| Some(known.pool) == pool && known.conversion.is_none();
        let settled = catalog.namespaces.iter().filter(is_settled);
        self.settled = settled.map(|known| (known.id, known.conversions)).collect();
        let away = |known: &&Namespace| {
            let is_here = Some(known.pool) == pool || pool.is_some_and(|pool| known.comes_to(pool));
            known.conversions > 0 && !is_here
        };
        let of = |known: &Namespace| {
            // What has not ended yet has begun with a role of another pool.
            let ended = known.conversions.wrapping_sub(u32::from(known.conversion.is_some()));
            (known.id, ended)
        };
        self.away = catalog.namespaces.iter().filter(away).map(of).collect();
        let coming = |known: &&Namespace| pool.is_some_and(|pool| known.comes_to(pool));
        let of = |known: &Namespace| (known.id, known.conversions);
        self.coming = catalog.namespaces.iter().filter(coming).map(of).collect();
        // Of one that has turned back, what was given away may be here and there: it comes back, and nothing of it goes.
        let leaving = &self.leaving;
        let is_of = |given: &Given, one: &Leaving| (one.namespace, one.number) == given.conversion;
        let goes_on = |given: &Given| leaving.iter().any(|one| is_of(given, one));
        let moot: Vec<u64> =
            self.given.iter().filter(|(_, given)| !goes_on(given)).map(|(number, _)| *number).collect();
        moot.into_iter().for_each(|number| self.forget(number));
        if self.leaving.is_empty() {
            self.receivers.clear();
            self.wanted.clear();
            self.wanted_keys.clear();
            self.put_off.clear();
        }
    }

    /// Whether the catalog was looked at that the host counts as `edition`.
    #[inline]
    pub(super) fn have_heeded(&self, edition: u64) -> bool {
        self.edition == edition
    }

    /// Whether there is none of a key in `namespace` that is not here, by the catalog that the host counts as `edition`: nothing has taken it
    /// elsewhere, as far as that says, and it has been looked at.
    #[inline]
    pub(super) fn have_none(&self, edition: u64, namespace: impl FnOnce() -> NamespaceId) -> bool {
        self.still_at == edition || self.have_heeded(edition) && !self.has(namespace)
    }

    /// Whether `namespace` comes here by this conversion.
    pub(super) fn comes_by(&self, namespace: NamespaceId, number: u32) -> bool {
        self.coming.contains(&(namespace, number))
    }

    /// Whether items of other pools come here.
    pub(super) fn has_arrivals(&self) -> bool {
        !self.coming.is_empty()
    }

    /// By which conversion keys of `namespace` went where they are, as long as they come here: for whoever does not ask because of the one
    /// that is under way. None if they do not come.
    pub(super) fn sends_back(&self, namespace: NamespaceId, departure: Option<Departure>) -> Option<u32> {
        let (_, number) = self.coming.iter().find(|(known, _)| *known == namespace)?;
        let is_sent_on = departure.is_some_and(|departure| departure.number == *number);
        (!is_sent_on).then_some(number.wrapping_sub(1))
    }

    /// Whether a flush that is due may be decided: nothing of that namespace is on its way, for it would arrive behind it.
    #[inline]
    pub(super) fn let_flush(&self, store: &DataStore, now: UnixSeconds) -> bool {
        self.given.is_empty() || self.gives_none_of(store.replica().cohorts().due(now))
    }

    fn gives_none_of(&self, due: Option<NamespaceId>) -> bool {
        due.is_none_or(|due| self.given.values().all(|given| split_key(&given.key).0 != due))
    }

    /// Whether whoever asks for a key that is not here may be sent on: nothing of it is on its way, and nothing that ever was can still
    /// arrive and take the place of what is written there.
    pub(super) fn may_send_on(
        &mut self,
        context: &mut Context<'_>,
        core: &Core,
        (key, hash): (&[u8], KeyHash),
    ) -> bool {
        let Some(deal) = self.find(split_key(key).0).map(|leaving| leaving.deal) else { return true };
        !self.keys.contains(key) && self.expect(context, core, deal.member_of(hash))
    }

    /// Whether nothing leaves.
    pub(super) fn is_empty(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Whether keys of `namespace` leave, or have left.
    #[inline]
    pub(super) fn has(&self, namespace: impl FnOnce() -> NamespaceId) -> bool {
        self.number_of(namespace).is_some()
    }

    /// Whether keys of any namespace leave, or have left.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        !self.leaving.is_empty() || !self.away.is_empty()
    }

    /// By which conversion keys of `namespace` leave, or have left; none if they do not.
    #[inline]
    pub(super) fn number_of(&self, namespace: impl FnOnce() -> NamespaceId) -> Option<u32> {
        if self.has_any() { self.number_in(namespace()) } else { None }
    }

    fn number_in(&self, namespace: NamespaceId) -> Option<u32> {
        let leaving = self.find(namespace);
        match leaving {
            Some(one) => one.is_under_way.then_some(one.number),
            None => self.number_of_last(namespace),
        }
    }

    /// By which conversion keys of `namespace` leave, or will very soon, or have left; none if they do not.
    pub(super) fn number_to_be(&self, namespace: NamespaceId) -> Option<u32> {
        let leaving = self.find(namespace).map(|one| one.number);
        leaving.or_else(|| self.number_of_last(namespace))
    }

    /// Whether `namespace` will leave, and nothing of it does so yet.
    pub(super) fn are_to_begin(&self, namespace: NamespaceId) -> bool {
        self.find(namespace).is_some_and(|one| !one.is_under_way)
    }

    /// By which one they have left.
    fn number_of_last(&self, namespace: NamespaceId) -> Option<u32> {
        let at = self.away.binary_search_by_key(&namespace, |(known, _)| *known).ok()?;
        Some(self.away[at].1)
    }

    /// Whether all keys that this role has of a namespace that leaves were here when it began to.
    pub(super) fn had_all(&self, namespace: NamespaceId) -> bool {
        self.find(namespace).is_some_and(|one| one.had_all)
    }

    /// Whether values that were begun before `namespace` began to leave have had all the time that they get: what comes in drops would hold
    /// it up for good.
    pub(super) fn have_waited_long_for(&self, namespace: NamespaceId, context: &Context<'_>) -> bool {
        let longest = WAITED_DEADLINES * context.timing.object_deadline_us;
        self.find(namespace).is_some_and(|one| one.had_all && context.now.time >= one.begins + longest)
    }

    fn find(&self, namespace: NamespaceId) -> Option<&Leaving> {
        self.leaving.iter().find(|one| one.namespace == namespace)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.given_bytes
            + self.given.len() * size_of::<(u64, Given)>()
            + self.wanted.iter().chain(self.put_off.keys()).map(Bytes::len).sum::<usize>()
            + self.receivers.len() * size_of::<(MemberId, Receiver)>()
    }

    /// Somebody waits to write `key`, which is here; whether that is news.
    pub(super) fn want(&mut self, key: Bytes) -> bool {
        let is_known = self.keys.contains(&key) || self.wanted_keys.contains(&key);
        let is_new = !is_known && self.wanted.len() < WANTED;
        if is_new {
            self.wanted_keys.insert(key.clone());
            self.wanted.push_back(key);
        }
        is_new
    }

    /// Whether `receiver` expects what comes under the newest number; it is asked to, if not.
    fn expect(&mut self, context: &mut Context<'_>, core: &Core, receiver: MemberId) -> bool {
        let known = self.receivers.entry(receiver).or_default();
        if known.expects || known.asked.is_some() || context.now.time < known.rests_until {
            return known.expects;
        }
        self.numbers += 1;
        (known.number, known.asked) = (self.numbers, Some(self.numbers));
        let expect = Expect { from: core.member(), term: core.term(), number: self.numbers };
        let reply = ReplyTo::Giver(core.member(), self.numbers);
        let request = Box::new(Request::expect(expect));
        context.out.passages.push_back(Passage::Ask(Ask { reply, place: Place::of(receiver), request }));
        false
    }

    /// It is looked at: not again before the time-out for retries.
    pub(super) fn look(&mut self, now: Time) {
        self.looked = now;
    }

    /// Sends what may go now, and removes nothing.
    pub(super) fn go_on(&mut self, context: &mut Context<'_>, site: &mut Site<'_>) {
        if self.leaving.is_empty() {
            return;
        }
        let (now, committed) = (context.now.time, site.stream.committed());
        for one in self.leaving.iter_mut().filter(|one| !one.is_under_way && one.begins <= now) {
            // What was decided before is to be seen before it is said that nothing is left.
            (one.is_under_way, one.known_at) = (true, site.stream.last());
        }
        self.put_off.retain(|_, until| *until > now);
        self.drop_given(|given| given.removal.is_some_and(|seq| seq <= committed));
        if context.now.time >= self.rests_until {
            self.give_wanted(context, site);
            for at in 0..self.leaving.len() {
                self.give_next(context, site, at);
            }
        }
        self.report(context, site);
    }

    fn drop_given(&mut self, is_over: impl Fn(&Given) -> bool) {
        for (_, given) in self.given.extract_if(.., |_, given| is_over(given)) {
            self.keys.remove(&given.key);
            self.given_bytes -= given.bytes;
        }
    }

    fn has_room(&self, site: &Site<'_>, context: &Context<'_>, most: usize) -> bool {
        self.given.len() < most && self.given_bytes < GIVEN_BYTES && site.stream.has_room(context.limits)
    }

    fn give_wanted(&mut self, context: &mut Context<'_>, site: &mut Site<'_>) {
        for _ in 0..self.wanted.len().min(LOOKS) {
            if !self.has_room(site, context, GIVEN_AT_ONCE) {
                return;
            }
            let Some(key) = self.wanted.pop_front() else { return };
            self.wanted_keys.remove(&key);
            let hash = site.store.hash_of(&key);
            if let Found::Hit(_, item) = site.store.find(hash, &key)
                && !self.give(context, site, item, true)
            {
                self.wanted_keys.insert(key.clone());
                self.wanted.push_back(key);
            }
        }
    }

    /// Sends some of what is found next.
    fn give_next(&mut self, context: &mut Context<'_>, site: &mut Site<'_>, at: usize) {
        let Leaving { namespace, paused, is_under_way, mut next, mut found, idle_until, .. } =
            self.leaving[at];
        let is_empty = site.store.replica().cohorts().use_of(namespace).items == 0;
        let rests = paused
            || !is_under_way
            || context.now.time < idle_until
            || is_about_to_be_flushed(site, namespace);
        let nobody_expects = self.receivers.values().any(|known| known.asked.is_some())
            && self.receivers.values().all(|known| !known.expects);
        if is_empty || rests || nobody_expects {
            return;
        }
        let mut is_through = false;
        for _ in 0..LOOKS {
            let most = GIVEN_AT_ONCE - GIVEN_TO_WANTED;
            if !self.has_room(site, context, most) || !context.pace.allows(context.now.time) {
                break;
            }
            let step = site.store.step(next.unwrap_or(ScanBound::BEGIN).hash());
            let hash = match step {
                Step::Items(hash, items, _) => {
                    let is_its = |item: &&Item<'_>| split_key(item.key).0 == namespace;
                    if items.iter().filter(is_its).any(|item| self.has_to_wait(site, *item)) {
                        break;
                    }
                    for item in items.iter().filter(is_its) {
                        if self.give(context, site, *item, false) {
                            found = true;
                            context.pace.spend(bytes_of(*item));
                        }
                    }
                    hash
                }
                // It is decoded by and by.
                Step::Absent(hash, _) => hash,
                Step::End => {
                    (next, is_through) = (None, true);
                    break;
                }
            };
            next = ScanBound::behind(hash);
            is_through = next.is_none();
            if is_through {
                break;
            }
        }
        let all_expect = self.receivers.values().all(|known| known.asked.is_none());
        if is_through && !found && all_expect {
            self.leaving[at].idle_until = context.now.time + context.timing.heartbeat_us;
        }
        (self.leaving[at].next, self.leaving[at].found) = (next, found && !is_through);
    }

    /// Whether it is a value in chunks for which there is no place now.
    fn has_to_wait(&self, site: &Site<'_>, item: Item<'_>) -> bool {
        let is_known = || self.keys.contains(item.key) || self.put_off.contains_key(item.key);
        let is_open = || site.objects.is_open_for(site.store.hash_of(item.key));
        let objects = || self.given.values().filter(|given| given.is_object).count();
        item.object && !is_known() && objects() >= OBJECTS_AT_ONCE && !is_open()
    }

    /// Sends an item that is committed, for which somebody waits if it is wanted; whether it has gone, or is on its way.
    fn give(&mut self, context: &mut Context<'_>, site: &Site<'_>, item: Item<'_>, is_wanted: bool) -> bool {
        let Site { core, stream, store, objects, .. } = site;
        let (namespace, key) = (split_key(item.key).0, Bytes::copy_from_slice(item.key));
        if self.keys.contains(&key) {
            return true;
        }
        let hash = store.hash_of(&key);
        // What is on its way decides what the item will be.
        let may = |one: &&Leaving| one.is_under_way && !stream.is_about(&key);
        let stays = |one: &&Leaving| one.had_all && objects.is_open_for(hash);
        let leaving = self.find(namespace).filter(may).filter(|one| !stays(one));
        let Some(&Leaving { deal, number, .. }) = leaving else { return false };
        let flush = store.replica().cohorts().scheduled(namespace);
        let is_near = flush.is_some_and(|at| at.0 <= context.now.unix.0.saturating_add(1));
        if is_near || self.put_off.contains_key(&key) || (core.is_rebuilding() && !item.verify()) {
            return false;
        }
        let receiver = deal.member_of(hash);
        if !self.expect(context, core, receiver) {
            return false;
        }
        self.numbers += 1;
        let expected =
            Expect { from: core.member(), term: core.term(), number: self.receivers[&receiver].number };
        let departure = Departure { number, wall: site.told };
        let transfer = Transfer { expected, departure, stale: item.stale, win_sent: item.win_sent };
        let given = Given {
            key: key.clone(),
            hash,
            receiver,
            version: item.version,
            expiry: item.expiry,
            told: site.told,
            bytes: item.len_bytes(),
            is_object: item.object,
            conversion: (namespace, number),
            expected: expected.number,
            removal: None,
        };
        let Ok(key) = Key::received(key) else { return false };
        let (giver, number) = (core.member(), self.numbers);
        if !send(context, (giver, number, is_wanted), (key, given.place()), item, transfer) {
            return false;
        }
        self.keys.insert(given.key.clone());
        self.given_bytes += given.bytes;
        self.given.insert(self.numbers, given);
        true
    }

    /// A receiver has answered.
    pub(super) fn hear(
        &mut self,
        context: &mut Context<'_>,
        site: &mut Site<'_>,
        number: u64,
        outcome: &Outcome,
    ) {
        let asked = self.receivers.values_mut().find(|known| known.asked == Some(number));
        if let Some(known) = asked {
            known.asked = None;
            known.expects = *outcome == Outcome::Noted;
            known.rests_until = context.now.time + context.timing.retry_us;
            return;
        }
        let Some(given) = self.given.get_mut(&number) else { return };
        let has_arrived =
            context.rules.conversions().given_items_have_arrived(matches!(outcome, Outcome::Stored(_)));
        // What has been told expired since has to be so there, too: it is sent again.
        let is_told = given.expiry != 0 && given.told.0 < given.expiry && given.expiry <= site.told.0;
        if has_arrived && !is_told {
            given.removal = remove(context, site, given);
        } else if !has_arrived {
            self.note_failure(context, site, number, outcome);
        }
        if self.given.get(&number).is_some_and(|given| given.removal.is_none()) {
            self.forget(number);
        }
    }

    /// What was sent has not arrived.
    fn note_failure(&mut self, context: &Context<'_>, site: &Site<'_>, number: u64, outcome: &Outcome) {
        let Some(given) = self.given.get(&number) else { return };
        let is_full = *outcome == Outcome::Failed(Failure::OutOfMemory);
        // Nobody was sent it, or nobody knows: what is sent from now on has another number.
        let is_over = is_full || (given.is_object && is_surely_undone(outcome));
        if !is_over {
            forget_number(context.rules, &mut self.receivers, given);
        }
        let (now, timing) = (context.now.time, context.timing);
        let (from, to) = (site.core.member(), given.receiver);
        if given.is_object {
            // It may take long to be tried again, and others need not wait for it.
            if self.put_off.len() < PUT_OFF {
                self.put_off.insert(given.key.clone(), now + timing.heartbeat_us);
            }
            return tracing::debug!(%from, %to, ?outcome, "a value in chunks was not written anew");
        }
        if is_full && now >= self.rests_until {
            tracing::warn!(%from, %to, "no room for an item of a namespace that moves to another pool");
        }
        let pause = if is_full { timing.heartbeat_us } else { timing.retry_us };
        self.rests_until = self.rests_until.max(now + pause);
    }

    /// This primary has no lease: whether it may remove what has arrived it cannot know.
    pub(super) fn hear_too_late(&mut self, rules: Rules, number: u64) {
        let asked = self.receivers.values_mut().find(|known| known.asked == Some(number));
        if let Some(known) = asked {
            (known.asked, known.expects) = (None, false);
        } else if let Some(given) = self.given.get(&number) {
            forget_number(rules, &mut self.receivers, given);
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(given) = self.given.remove(&number) {
            self.keys.remove(&given.key);
            self.given_bytes -= given.bytes;
        }
    }

    /// Says of what nothing is left.
    fn report(&mut self, context: &mut Context<'_>, site: &Site<'_>) {
        let (now, member) = (context.now.time, site.core.member());
        for one in &mut self.leaving {
            let is_awaited = one.had_all && site.objects.has_open_in(one.namespace);
            let is_written = one.is_under_way && !is_awaited;
            let is_over = is_written
                && site.store.replica().cohorts().use_of(one.namespace).items == 0
                && site.stream.committed() >= one.known_at;
            let is_due = one.reported.is_none_or(|at| now.since(at) >= context.timing.heartbeat_us);
            if is_over && is_due {
                one.reported = Some(now);
                let (namespace, number) = (one.namespace, one.number);
                context.coordinator(ToCoordinator::Converted { member, namespace, number });
            }
        }
    }

    /// When it is to go on, if nothing happens.
    pub(super) fn due(&self, timing: &Timing) -> Time {
        if self.leaving.is_empty() {
            return Time::NEVER;
        }
        // What it waits for comes by itself; but for pages, and for those who hear reports.
        (self.looked + timing.retry_us).max(self.rests_until)
    }

    /// What holds after every event.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.keys.len(), self.given.len(), "an item is on its way once");
        let bytes: usize = self.given.values().map(|given| given.bytes).sum();
        assert_eq!(bytes, self.given_bytes, "their bytes are counted");
        let still_at = if self.has_any() { 0 } else { self.edition };
        assert_eq!(still_at, self.still_at, "whether anything leaves is known");
    }
}

/// Nobody knows what becomes of `given`: what is sent from now on has another number, unless it has already.
fn forget_number(rules: Rules, receivers: &mut BTreeMap<MemberId, Receiver>, given: &Given) {
    let is_of_this = |known: &Receiver| known.number == given.expected;
    let known = receivers.get_mut(&given.receiver);
    let known = known.filter(|known| rules.conversions().numbers_are_of_tries(is_of_this(known)));
    known.into_iter().for_each(|known| known.expects = false);
}

impl Given {
    fn place(&self) -> Place {
        Place { hash: self.hash, member: Some(self.receiver), refusal: None }
    }
}

/// Sends an item to where it goes, under this number; false if that cannot be.
fn send(
    context: &mut Context<'_>,
    (giver, number, is_wanted): (MemberId, u64, bool),
    (key, place): (Key, Place),
    item: Item<'_>,
    transfer: Transfer,
) -> bool {
    let via = Box::new(Via::Transfer(transfer));
    if item.object {
        let Some(descriptor) = descriptor_in(item) else { return false };
        let store = Store { value: Bytes::new(), ..store_of(item) };
        let rewrite = NewRewrite { giver, number, is_wanted, key, place, descriptor, store, via };
        context.out.rewrites.push_back(rewrite);
    } else {
        let request = Box::new(Request { via: Some(via), ..Request::on(key, Op::Store(store_of(item))) });
        let ask = Ask { reply: ReplyTo::Giver(giver, number), place, request };
        context.out.passages.push_back(Passage::Ask(ask));
    }
    true
}

/// Whether nothing of a value in chunks that was not written anew can still arrive.
fn is_surely_undone(outcome: &Outcome) -> bool {
    let may_be_done = [Failure::Unknown, Failure::WrongPrimary, Failure::NotOpen];
    matches!(outcome, Outcome::Failed(failure) if !may_be_done.contains(failure))
}

/// Bytes that are sent for it.
fn bytes_of(item: Item<'_>) -> usize {
    let len = descriptor_in(item).map(|descriptor| descriptor.geometry.len);
    len.map_or(item.len_bytes(), |len| usize::try_from(len).unwrap_or(usize::MAX))
}

/// What writes `item` as it is.
fn store_of(item: Item<'_>) -> Store {
    let expiry = if item.expiry == 0 { Expiry::Never } else { Expiry::At(UnixSeconds(item.expiry)) };
    Store {
        mode: StoreMode::Set,
        value: Bytes::copy_from_slice(item.value),
        flags: item.client_flags,
        expiry,
        compare: None,
        version: Some(item.version),
        invalidate: false,
        vivify: None,
    }
}

/// The record that removes what has arrived elsewhere; none if it is not here any more.
fn remove(context: &mut Context<'_>, site: &mut Site<'_>, given: &Given) -> Option<Seq> {
    let Found::Hit(addr, item) = site.store.find(given.hash, &given.key) else { return None };
    if item.version != given.version || site.stream.is_about(&given.key) {
        return None;
    }
    let (cohort, effects) = (item.cohort(), ObjectEffects::of(None, descriptor_in(item)));
    let mut draft = Draft::of(Purpose::Schedule).with_objects(effects);
    draft.remove(given.key.clone(), given.hash.into(), addr, cohort);
    Some(site.stream.append(context, site.store, draft))
}

/// Whether a flush of `namespace` is to come: it concerns what is here, and would not be known where that goes.
fn is_about_to_be_flushed(site: &Site<'_>, namespace: NamespaceId) -> bool {
    site.store.replica().cohorts().scheduled(namespace).is_some()
}

#[cfg(test)]
mod tests {
    use types::{GroupId, RoleIndex};

    use super::*;

    fn sent_under(number: u64) -> Given {
        Given {
            key: Bytes::from_static(b"key"),
            hash: KeyHash(1),
            receiver: MemberId { group: GroupId(3), role: RoleIndex(0) },
            version: 1,
            expiry: 0,
            told: UnixSeconds(0),
            bytes: 100,
            is_object: true,
            conversion: (NamespaceId::DEFAULT, 1),
            expected: number,
            removal: None,
        }
    }

    /// Two items went under the fifth number, and were lost: whether those that go under the sixth by the time the second is heard of
    /// still may.
    fn goes_on(rules: Rules) -> bool {
        let lost = [sent_under(5), sent_under(5)];
        let mut receivers = BTreeMap::from([(
            lost[0].receiver,
            Receiver { number: 5, expects: true, ..Receiver::default() },
        )]);
        forget_number(rules, &mut receivers, &lost[0]);
        let known = receivers.get_mut(&lost[0].receiver).unwrap();
        assert!(!known.expects, "another number is to be named");
        (known.number, known.expects) = (6, true);
        forget_number(rules, &mut receivers, &lost[1]);
        receivers[&lost[1].receiver].expects
    }

    #[test]
    fn what_was_lost_under_one_number_costs_one_number() {
        assert!(goes_on(Rules::all()));
    }

    #[test]
    #[cfg(feature = "planted-bugs")]
    fn a_number_for_each_loss_is_seen() {
        assert!(!goes_on(Rules::without(crate::Bug::NumberForEachLoss)));
    }
}
