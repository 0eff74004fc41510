//! Tri (TriEC): each helper cuts its chunk into parts, each part is combined at another helper, and the results meet at the target.

use super::build::{Arrival, Builder, finish};
use super::helpers::Recipe;
use crate::graph::Span;
use crate::limits::MAX_TRI_PARTS;

/// Parts begin at multiples of so many bytes.
const PART_ALIGNMENT: u32 = 64;
/// No part is shorter, but for the last one.
const MIN_PART_BYTES: u32 = 4 << 10;

/// Every link carries about one chunk in all, over two hops. Parts are combined at the helpers, in turn.
pub(super) fn lay(builder: &mut Builder, recipe: &Recipe, span: Span) {
    let parts = parts(span, recipe.hops.len());
    let most = parts.len() * recipe.hops.len();
    builder.reserve(most + parts.len() * recipe.wanted.len(), most);
    let mut arriving: Vec<Arrival> = Vec::with_capacity(recipe.hops.len());
    for (combiner, part) in recipe.hops.iter().cycle().zip(parts) {
        arriving.clear();
        for hop in recipe.hops.iter().filter(|hop| hop.place != combiner.place) {
            arriving.extend(builder.send(hop, part));
        }
        finish(builder, combiner, part, &arriving, &recipe.wanted);
    }
}

/// As many parts as there are helpers, as long as they are not too short or too many.
fn parts(span: Span, helpers: usize) -> Vec<Span> {
    let most = span.len.div_ceil(MIN_PART_BYTES).max(1);
    let count = u32::try_from(helpers.clamp(1, MAX_TRI_PARTS)).unwrap_or(1).min(most);
    let len = span.len.div_ceil(count).next_multiple_of(PART_ALIGNMENT);
    let starts = (0..span.len.div_ceil(len)).map(|part| part * len);
    starts.map(|start| Span { start: span.start + start, len: len.min(span.len - start) }).collect()
}
