//! Chain (ECPipe): sums grow from helper to helper, slice by slice; several lost chunks are made in one pass, a row for each.

use super::arrange::arrange;
use super::build::{Arrival, Builder, Goes, Hop, finish, split};
use super::helpers::Recipe;
use crate::graph::{Place, Span};
use crate::model::Links;

/// Through all helpers to `hub`, or to each place that wants a row. Helpers of one zone follow each other, the hub's zone last.
pub(super) fn lay(builder: &mut Builder, recipe: &Recipe, hub: Place, span: Span, links: &Links) {
    let wanted = &recipe.wanted;
    let (own, mut hops) = split(&recipe.hops, hub);
    let zone = |place: Place| links.end(place).zone;
    let hub_zone = zone(hub);
    hops.sort_by_cached_key(|hop| (zone(hop.place) == hub_zone, zone(hop.place)));
    let is_own_last = !own.roles.is_empty() || hops.is_empty();
    let last = hops.len().saturating_sub(1);
    arrange(
        &mut hops,
        hub,
        links,
        |hop| (hop < last).then_some(hop + 1),
        |one, other| zone(one.place) == zone(other.place),
    );
    if is_own_last {
        hops.push(&own);
    }
    let mut arriving: Vec<Arrival> = Vec::new();
    let Some((last, before)) = hops.split_last() else { return };
    for hop in before {
        let sums = builder.add(hop, span, &arriving, wanted.len(), |_| Goes::Along);
        arriving.clear();
        arriving.extend(sums.into_iter().map(|sum| sum.arrives(wanted.len())));
    }
    finish(builder, last, span, &arriving, wanted);
}

/// Hops one after the other, with what each is sent besides; the sums behind the last one.
pub(super) fn grow(
    builder: &mut Builder,
    hops: &[(Hop, Vec<Arrival>)],
    span: Span,
    rows: usize,
    keeps: impl Fn(usize, usize) -> Goes,
) -> Vec<Arrival> {
    let mut sums: Vec<Arrival> = Vec::new();
    for (number, (hop, sent)) in hops.iter().enumerate() {
        let arriving = [&sent[..], &sums[..]].concat();
        let streams = builder.add(hop, span, &arriving, rows, |row| keeps(number, row));
        sums = streams.into_iter().map(|sum| sum.arrives(rows)).collect();
    }
    sums
}
