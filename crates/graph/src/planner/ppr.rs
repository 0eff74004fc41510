//! PPR: sums grow along a binomial tree. Helper `i` sends to `i` without its lowest bit; number 0 is the hub.

use super::arrange::arrange;
use super::build::{Arrival, Builder, Goes, finish, split};
use super::helpers::Recipe;
use crate::graph::{Place, Span};
use crate::model::Links;

/// `ceil(log2(helpers + 1))` rounds, of which the hub receives in each.
pub(super) fn lay(builder: &mut Builder, recipe: &Recipe, hub: Place, span: Span, links: &Links) {
    let rows = recipe.wanted.len();
    let (own, mut helpers) = split(&recipe.hops, hub);
    arrange(&mut helpers, hub, links, |index| parent(index + 1).checked_sub(1), |_, _| true);
    let mut arriving: Vec<Vec<Arrival>> = vec![Vec::new(); helpers.len() + 1];
    for (index, hop) in helpers.iter().enumerate().rev() {
        let number = index + 1;
        let here = std::mem::take(&mut arriving[number]);
        let parent = parent(number);
        let sums = builder.add(hop, span, &here, rows, |_| Goes::Along);
        arriving[parent].extend(sums.into_iter().map(|sum| sum.arrives(rows)));
    }
    finish(builder, &own, span, &arriving[0], &recipe.wanted);
}

/// To whom number `number` sends.
fn parent(number: usize) -> usize {
    number & (number - 1)
}
