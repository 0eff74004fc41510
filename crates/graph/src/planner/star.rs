//! Star: the hub fetches chunks as they are, and combines them.

use super::build::{Builder, Hop, finish};
use super::helpers::Recipe;
use crate::graph::{Place, Span};

/// All edges end at `hub`; chunks that are wanted elsewhere go on from there.
pub(super) fn lay(builder: &mut Builder, recipe: &Recipe, hub: Place, span: Span) {
    let mut own = Hop::empty(hub);
    let mut arriving = Vec::new();
    for hop in &recipe.hops {
        if hop.place == hub {
            own.clone_from(hop);
        } else {
            arriving.extend(builder.send(hop, span));
        }
    }
    finish(builder, &own, span, &arriving, &recipe.wanted);
}
