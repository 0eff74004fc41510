//! Where the bytes of a key lie.

use native::{Answer, MAX_SPANS, Meta, Places, Span, code_of};
use proto::Place;
use types::op::{ItemView, Key, Outcome};
use types::{ClusterMap, Descriptor, GroupId, NodeId, ObjectLayout, RoleIndex, Slot, Stripe};

use super::{State, Wants};
use crate::workers::worker::Worker;

impl State {
    /// Answers what the map is needed for.
    pub(super) fn tell_places(&mut self, worker: &Worker) {
        for (id, outcome) in std::mem::take(&mut self.located) {
            let Some(pending) = self.forget(id) else { continue };
            worker.counters.count_outcome(pending.kind, &outcome);
            let (key, place, from) = match (pending.wants, outcome.clone()) {
                (Wants::Places(key, place, from), _) => (key, place, from),
                (Wants::Value(reading), Outcome::Hit(item)) => {
                    self.tell_chunks(worker, id, reading, item);
                    continue;
                }
                (Wants::Begun(key, place, begin), Outcome::Begun(object)) => {
                    self.tell_begun(worker, id, object, (&key, place, &begin));
                    continue;
                }
                (_, outcome) => {
                    Answer::of(&outcome).put(id, self.output.text());
                    continue;
                }
            };
            let host = worker.host.borrow();
            let answer = match (host.map(), outcome) {
                (Some(map), Outcome::Hit(item)) => Some((map, Some(item))),
                (Some(map), Outcome::Miss) => Some((map, None)),
                (_, outcome) => {
                    Answer::Just(code_of(&outcome)).put(id, self.output.text());
                    None
                }
            };
            if let Some((map, item)) = answer {
                match places_of(map, (&key, place), item.as_ref(), from) {
                    Some(places) => Answer::Places(places).put(id, self.output.text()),
                    // The map has changed in between.
                    None => Answer::Just(native::Code::Unavailable).put(id, self.output.text()),
                }
            }
        }
    }
}

/// Where a value lies, from the stripe on that has the byte `from`.
fn places_of(
    map: &ClusterMap,
    (key, place): (&Key, Place),
    item: Option<&ItemView>,
    from: u64,
) -> Option<Places> {
    let member = place.member?;
    let pool = map.catalog.pool_of(key.namespace())?;
    let primary = map.primary_of(member).map(|host| host.node);
    let found = item.map(|item| {
        let spans = match &item.object {
            // An empty value has a span, too.
            None if from > 0 && from >= item.value_len => Vec::new(),
            None => vec![whole(item.value_len, primary)],
            Some(object) => spans_of(map, &object.descriptor, from),
        };
        (Meta::of(item), spans)
    });
    let slot: Slot = pool.slot_of(place.hash);
    Some(Places { slot, group: member.group, role: member.role, primary, found })
}

fn whole(len: u64, node: Option<NodeId>) -> Span {
    Span { start: 0, len, cell_len: 0, nodes: vec![node] }
}

/// One for each stripe, at most [`MAX_SPANS`].
fn spans_of(map: &ClusterMap, descriptor: &Descriptor, from: u64) -> Vec<Span> {
    let of = |stripe: Stripe| {
        // How many roles its bytes are read from, and how many bytes of one before it is the next one's turn.
        let (roles, cell_len) = match stripe.layout {
            ObjectLayout::Spread => (stripe.k, stripe.cell_len),
            ObjectLayout::Wide => (stripe.k, stripe.chunk_len() as u32),
            ObjectLayout::Copy => (1, 0),
        };
        let group = descriptor.group_of(stripe.index);
        let nodes = (0..roles).map(|role| holder(map, group?, role)).collect();
        Span { start: stripe.start, len: stripe.len, cell_len, nodes }
    };
    let geometry = descriptor.geometry;
    // Beyond the last stripe that there can be, there is none; nor behind the end of the last one.
    let first = u32::try_from(from / geometry.stripe_len()).unwrap_or(u32::MAX);
    let stripes = (first..geometry.stripe_count()).filter_map(|index| geometry.stripe(index));
    stripes.filter(|stripe| stripe.start + stripe.len > from).take(MAX_SPANS).map(of).collect()
}

/// The node that has the chunks of a role.
fn holder(map: &ClusterMap, group: GroupId, role: u8) -> Option<NodeId> {
    Some(map.group(group)?.holders_of(RoleIndex(role)).whole?.host.node)
}
