//! Who stands where in a chain or a tree: helpers change places while a link that is worse than its ends is used and need not be.

use smallvec::SmallVec;

use super::build::Hop;
use crate::graph::Place;
use crate::model::Links;

/// Bytes by which a link's latency is set against its bandwidth.
const USUAL_BYTES: f64 = 65_536.0;
/// Most changes; and how many links are looked at for all of them, which takes some milliseconds.
const MAX_CHANGES: usize = 16;
const MAX_LOOKS: usize = 1 << 18;

/// Changes the places of `hops` where that makes links cheaper. Hop `i` sends to hop `parent(i)`, or to `hub`; two may change places if
/// `may_change` says so.
pub(super) fn arrange(
    hops: &mut [&Hop],
    hub: Place,
    links: &Links,
    parent: impl Fn(usize) -> Option<usize>,
    may_change: impl Fn(&Hop, &Hop) -> bool,
) {
    if links.pairs.is_empty() {
        return;
    }
    let edge_cost = |hops: &[&Hop], hop: usize| {
        let to = parent(hop).map_or(hub, |parent| hops[parent].place);
        worse_us(links, hops[hop].place, to)
    };
    let cost = |hops: &[&Hop]| (0..hops.len()).map(|hop| edge_cost(hops, hop)).sum::<f64>();
    let mut best = cost(hops);
    // Two ends, each to every other place in two ways, and all links anew.
    let looks = 4 * hops.len() * hops.len();
    for _ in 0..MAX_CHANGES.min(MAX_LOOKS / looks.max(1)) {
        // The worst link that is used, and what else its sender or its receiver could be.
        let worst =
            (0..hops.len()).max_by(|one, other| edge_cost(hops, *one).total_cmp(&edge_cost(hops, *other)));
        let Some(worst) = worst.filter(|worst| edge_cost(hops, *worst) > 0.0) else { return };
        let mut change = None;
        for end in [Some(worst), parent(worst)].into_iter().flatten() {
            for other in (0..hops.len()).filter(|other| *other != end) {
                if !may_change(hops[end], hops[other]) {
                    continue;
                }
                for way in [swap, shift] {
                    let mut changed: SmallVec<[&Hop; 16]> = hops.iter().copied().collect();
                    way(&mut changed, end, other);
                    let cost = cost(&changed);
                    if cost < best {
                        (best, change) = (cost, Some(changed));
                    }
                }
            }
        }
        let Some(changed) = change else { return };
        hops.copy_from_slice(&changed);
    }
}

/// Two change places.
fn swap(hops: &mut [&Hop], one: usize, other: usize) {
    hops.swap(one, other);
}

/// One takes the place of another, and those between them move up.
fn shift(hops: &mut [&Hop], from: usize, to: usize) {
    if from < to {
        hops[from..=to].rotate_left(1);
    } else {
        hops[to..=from].rotate_right(1);
    }
}

/// What a link costs, if it is worse than its ends; what is no worse than they are costs nothing.
pub(super) fn worse_us(links: &Links, from: Place, to: Place) -> f64 {
    links.pair(from, to).map_or(0.0, |pair| pair.latency_us + USUAL_BYTES * 1e6 / pair.bytes_per_s)
}
