//! Requests of keys whose namespaces move to another pool, and items that come from there (docs/pools.md, "To another pool").
//!
//! What leaves itself is seen to by `departures`; `arrivals` knows what may come.

use store::{Found, ItemSpec, ItemState, encoded_len};
use types::op::{Departure, Expect, Failure, ItemView, ObjectOp, Op, Outcome, Store, Transfer, Via};
use types::{Descriptor, GroupId};
use wire::descriptor::descriptor_bytes;

use super::Primary;
use super::objects::descriptor_in;
use super::request::{Attempt, effects_of};
use super::stream::{Draft, Newest, PlacedItem};
use super::waiting::{Pending, Wait};
use crate::objects::names::Errand;
use crate::outbox::{Context, Passage};

/// What is asked about a value in chunks, if it is to be answered before anybody looks at its key.
#[inline(never)]
pub(super) fn attend(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    op: &ObjectOp,
) -> Option<Attempt> {
    if is_of_another_pool(primary, context, pending) {
        return pass_on(primary, context, pending, op);
    }
    let rules = context.rules.conversions();
    let comes_by = |number| primary.departures.comes_by(pending.request.namespace(), number);
    if let (ObjectOp::Begin(_), Some(Via::Departed(departure))) = (op, pending.request.via.as_deref())
        && rules.ids_are_of_this_conversion(comes_by(departure.number))
        && rules.conditions_are_seen_at_last()
    {
        // Its key may be where it was: whether the value can be stored is seen when it is here.
        let whose = (pending.hash, pending.request.namespace());
        return Some(Attempt::Answer(primary.objects.begin(context, &primary.core, whose)));
    }
    if let ObjectOp::Renew(id) = op
        && primary.departures.have_waited_long_for(id.namespace, context)
    {
        return Some(Attempt::failed(Failure::NotOpen));
    }
    if let ObjectOp::Abandon(descriptor) = op {
        clear_up(primary, context, pending, descriptor);
    }
    primary.objects.attend(context, &primary.core, op).map(Attempt::Answer)
}

/// A value that is stored has left something in groups to which it does not belong: that goes.
fn clear_up(primary: &Primary, context: &mut Context<'_>, pending: &Pending, left: &Descriptor) {
    let found = primary.phase.serving().find(pending.hash, pending.request.key_bytes());
    let Found::Hit(_, item) = found else { return };
    let Some(stored) = descriptor_in(item).filter(|stored| stored.id == left.id) else { return };
    let named = stored.all_groups();
    let others: Vec<GroupId> = left.all_groups().into_iter().filter(|group| !named.contains(group)).collect();
    if !others.is_empty() {
        let (owner, term) = (primary.core.member(), primary.core.term());
        context.out.errands.push_back(Errand::free(owner, term, stored.in_groups(others)));
    }
}

/// Whether the key stays where it is for now, though its namespace leaves: a value of it is being written that began before, and would come to
/// nothing if it were gone. Until somebody else writes it whose write cannot be done here.
pub(super) fn stays(primary: &Primary, pending: &Pending) -> bool {
    primary.departures.had_all(pending.request.namespace()) && primary.objects.is_open_for(pending.hash)
}

/// What becomes of a request that was sent on, or whose key may come here; none if it is for the key where it is.
#[cold]
pub(super) fn receive(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
) -> Option<Attempt> {
    let request = &pending.request;
    let departure = request.departure();
    if let Some(departure) = departure {
        // What has expired for the one is not to come back at the other.
        primary.wall.never_below(departure.wall);
    }
    let number = primary.departures.sends_back(request.namespace(), departure)?;
    if let Op::Flush(_) = request.op {
        return Some(Attempt::failed(Failure::Busy));
    }
    let is_here = request.key.is_none()
        || context.rules.conversions().items_are_not_sent_on(request.is_transfer())
        || matches!(&request.op, Op::Object(op) if op.for_owner() == Some(primary.core.member()));
    (!is_here).then(|| {
        let departure = Departure { number, wall: primary.wall.told() };
        context.out.passages.push_back(Passage::Departed(pending.clone(), primary.core.member(), departure));
        Attempt::Logged
    })
}

/// A data role of another pool will give items to this one, by these numbers.
#[cold]
pub(super) fn attempt_expect(primary: &mut Primary, expect: Expect) -> Attempt {
    if !primary.departures.has_arrivals() {
        primary.arrivals.clear();
        return Attempt::failed(Failure::NotOpen);
    }
    let may = primary.arrivals.expect(expect);
    if may { Attempt::Answer(Outcome::Noted) } else { Attempt::failed(Failure::NotOpen) }
}

/// What becomes of a request that brings an item, or may change a key that leaves; none if it is done here.
#[cold]
pub(super) fn attempt_between(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    newest: &Newest,
) -> Option<Attempt> {
    if let Some(Via::Transfer(transfer)) = pending.request.via.as_deref() {
        return Some(attempt_arrival(primary, context, pending, newest, transfer));
    }
    let is_session = matches!(pending.request.op, Op::Session);
    let number = if is_session { None } else { primary.departures.number_of(|| pending.request.namespace()) };
    follow_key(primary, context, pending, newest, number?)
}

/// What becomes of a request that may change a key of a namespace that leaves by conversion `number`; none if it is done here.
fn follow_key(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    newest: &Newest,
    number: u32,
) -> Option<Attempt> {
    // No further value of it begins: else it might never go.
    let begins = matches!(pending.request.op, Op::Object(ObjectOp::Begin(_)));
    // Nor is a write done here that has a name: when its key has left nobody would know of it.
    let is_plain = pending.request.once.is_none();
    let key_stays = stays(primary, pending);
    let may = key_stays && is_plain && !begins && !is_of_another_pool(primary, context, pending);
    if key_stays && !may {
        // Who has begun before and is slow would keep everybody else from writing it.
        primary.objects.close_all_of(pending.hash);
    }
    if newest.occupied.is_none() && !may {
        let departure = Departure { number, wall: primary.wall.told() };
        return Some(departed(primary, context, pending, departure));
    }
    if !context.rules.conversions().leaving_keys_stay(!may) {
        return None;
    }
    if primary.departures.want(pending.key()) {
        primary.give_away(context);
    }
    Some(Attempt::Wait(Wait::Commit))
}

/// Whether it is about a value in chunks that are, or are to be, in another pool than this one.
fn is_of_another_pool(primary: &Primary, context: &Context<'_>, pending: &Pending) -> bool {
    let member = primary.core.member();
    match &pending.request.op {
        Op::Object(ObjectOp::Begin(begin)) => {
            let namespace = pending.request.namespace();
            begin.conversions != context.catalog.conversions_into(namespace, member.group)
        }
        Op::Object(op) => op.object().is_some_and(|object| object.owner != member),
        _ => false,
    }
}

/// What is about such a value is asked of the pool that has it; but it is committed where its key has left. None: it is to be seen whether
/// the key has.
#[cold]
fn pass_on(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    op: &ObjectOp,
) -> Option<Attempt> {
    let namespace = pending.request.namespace();
    let number = primary.departures.number_to_be(namespace);
    match op {
        ObjectOp::Begin(begin) => {
            let own = context.catalog.conversions_into(namespace, primary.core.member().group);
            let is_known = number == Some(begin.conversions);
            if !is_known && begin.conversions < own {
                // Its chunks would lie in a pool that the namespace has left.
                return Some(Attempt::failed(Failure::Busy));
            }
            if is_known && primary.departures.want(pending.key()) {
                primary.give_away(context);
            }
            // Nothing is done to the key, so it may be here still. A conversion that is not known here whoever asks knows.
            Some(send_on(primary, context, pending, begin.conversions))
        }
        ObjectOp::Commit(_) => match number {
            // Its writer knows a newer map than there is here, or an older one; in the end its time is up.
            None => Some(Attempt::Wait(Wait::Commit)),
            Some(_) if primary.departures.has(|| namespace) => None,
            Some(_) => Some(Attempt::Wait(Wait::Commit)),
        },
        ObjectOp::Renew(_) | ObjectOp::Abandon(_) | ObjectOp::Unpin(_) => match number {
            Some(number) => Some(send_on(primary, context, pending, number)),
            None => primary.objects.attend(context, &primary.core, op).map(Attempt::Answer),
        },
    }
}

/// Whoever is asked for what has left by this conversion is to answer.
fn send_on(primary: &Primary, context: &mut Context<'_>, pending: &Pending, number: u32) -> Attempt {
    let departure = Departure { number, wall: primary.wall.told() };
    let passage = Passage::Departed(pending.clone(), primary.core.member(), departure);
    context.out.passages.push_back(passage);
    Attempt::Logged
}

/// The key of a namespace that leaves is not here: whoever asks is sent on, once nothing can bring it back.
#[cold]
pub(super) fn departed(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    departure: Departure,
) -> Attempt {
    let Primary { core, stream, departures, .. } = primary;
    let key = pending.request.key_bytes();
    // Of a key whose end is not committed nobody else knows yet.
    if stream.is_about(key) {
        return Attempt::Wait(Wait::Commit);
    }
    if !context.rules.conversions().departed_are_asked_for(true) {
        return Attempt::Answer(Outcome::Miss);
    }
    if !departures.may_send_on(context, core, (key, pending.hash)) {
        return Attempt::Wait(Wait::Commit);
    }
    context.out.passages.push_back(Passage::Departed(pending.clone(), core.member(), departure));
    Attempt::Logged
}

/// An item comes from a data role of another pool: as it is, in the place of a copy of it that came before. Of a value in chunks the id is
/// asked for first.
#[cold]
pub(super) fn attempt_arrival(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    newest: &Newest,
    transfer: &Transfer,
) -> Attempt {
    let pool = context.catalog.pool_of_group(primary.core.member().group).map(|pool| pool.id);
    let namespace = pending.request.namespace();
    let known =
        context.catalog.namespace(namespace).filter(|known| known.conversions == transfer.departure.number);
    if pool.is_none() || known.and_then(|known| known.conversion).map(|conversion| conversion.to) != pool {
        return refuse_arrival(primary, context, pending);
    }
    if !primary.arrivals.are_expected(context.rules, transfer) {
        return refuse_arrival(primary, context, pending);
    }
    match &pending.request.op {
        Op::Store(store) => keep_arrival(primary, context, pending, newest, (transfer, store, None)),
        Op::Object(ObjectOp::Begin(_)) => {
            Attempt::Answer(primary.objects.begin(context, &primary.core, (pending.hash, namespace)))
        }
        Op::Object(ObjectOp::Commit(commit)) => {
            let descriptor = Some(&commit.descriptor);
            keep_arrival(primary, context, pending, newest, (transfer, &commit.store, descriptor))
        }
        _ => Attempt::failed(Failure::NotOpen),
    }
}

/// What comes is not taken. Of a value in chunks nothing can come any more: its chunks may go. It is not said that its id is closed, for
/// another one would be asked for then.
fn refuse_arrival(primary: &mut Primary, context: &mut Context<'_>, pending: &Pending) -> Attempt {
    if let Op::Object(ObjectOp::Commit(commit)) = &pending.request.op {
        let abandon = ObjectOp::Abandon(Box::new(commit.descriptor.clone()));
        primary.objects.attend(context, &primary.core, &abandon);
    }
    Attempt::failed(Failure::WrongPrimary)
}

fn keep_arrival(
    primary: &mut Primary,
    context: &mut Context<'_>,
    pending: &Pending,
    newest: &Newest,
    (transfer, store, descriptor): (&Transfer, &Store, Option<&Descriptor>),
) -> Attempt {
    let namespace = pending.request.namespace();
    let next_version = primary.stream.next_version(&primary.core);
    let version =
        store.version.filter(|_| context.rules.conversions().items_keep_versions()).unwrap_or(next_version);
    let generation = primary.phase.serving().present_cohort(namespace).generation();
    let object = descriptor.is_some();
    let state = ItemState { stale: transfer.stale, win_sent: transfer.win_sent, generation, object };
    let key = pending.request.key_bytes();
    let described = descriptor.map(descriptor_bytes).unwrap_or_default();
    let mut image = Vec::with_capacity(encoded_len(key.len(), store.value.len() + described.len()));
    ItemSpec {
        key,
        value: [&store.value, &described],
        client_flags: store.flags,
        expiry: store.expiry.to_stored(),
        version,
        state,
    }
    .encode(&mut image);
    let allocation = match primary.allocate(context, image.len()) {
        Ok(allocation) => allocation,
        Err(attempt) => return attempt,
    };
    // What is stored is charged already, where it comes from: it is kept whatever the quota is.
    let (hash, occupied) = (pending.hash.into(), newest.occupied);
    let store = primary.phase.serving_mut();
    let cohort = store.present_cohort(namespace);
    let placed = PlacedItem { key: pending.key(), hash, occupied, cohort, allocation, image };
    let stored = Outcome::Stored(ItemView { version, ..ItemView::default() });
    let draft = Draft::answering(pending, stored).with_objects(effects_of(pending, newest, store));
    primary.stream.append_item(context, store, placed, draft);
    descriptor.into_iter().for_each(|descriptor| primary.objects.note_logged(descriptor.id));
    Attempt::Logged
}
