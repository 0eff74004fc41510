//! Decoding and repair: what can be read is copied, what is lost is laid out by a scheme.

use super::build::{Arrival, Builder, Goes, Hop};
use super::helpers::{Recipe, recipe};
use super::{Question, Scheme, Shape, Unplannable, Wanted, chain, ppr, star, tri};
use crate::graph::{Place, Span};

/// The graph of `scheme`.
pub(super) fn shape(question: &Question<'_>, scheme: Scheme) -> Result<Shape, Unplannable> {
    let mut builder = Builder::default();
    let span = Span::whole(question.len);
    let can_be_read = |wanted: &Wanted| question.sources.iter().any(|source| source.role == wanted.role);
    let is_star = matches!(scheme, Scheme::Star | Scheme::Lrc);
    let hub = question.wanted.iter().find(|wanted| !can_be_read(wanted)).map(|wanted| wanted.to);
    // A star's hub has some of what is wanted among what it combines.
    let is_copied = |wanted: &Wanted| can_be_read(wanted) && !(is_star && Some(wanted.to) == hub);
    let (copied, computed): (Vec<Wanted>, Vec<Wanted>) = question.wanted.iter().partition(|w| is_copied(w));
    for wanted in &copied {
        let recipe = recipe(question, &[*wanted], scheme)?;
        copy(&mut builder, &recipe, span);
    }
    if let Some(hub) = hub {
        let recipe = recipe(question, &computed, scheme)?;
        match scheme {
            Scheme::Star | Scheme::Lrc => star::lay(&mut builder, &recipe, hub, span),
            Scheme::Ppr => ppr::lay(&mut builder, recipe, hub, span),
            Scheme::Chain | Scheme::Auto => chain::lay(&mut builder, recipe, hub, span, question.links),
            Scheme::Tri => tri::lay(&mut builder, &recipe, span),
        }
    }
    Shape::new(scheme, builder.done(), question.links, &question.aim, question.execution)
}

/// One chunk as it is.
fn copy(builder: &mut Builder, recipe: &Recipe, span: Span) {
    for (hop, wanted) in recipe.hops.iter().zip(&recipe.wanted) {
        for edge in builder.send(hop, span) {
            builder.keep(wanted.to, span, edge, wanted.role);
        }
    }
}

/// The last step of a sum: what belongs to its process becomes a chunk there, the rest is sent on.
pub(super) fn finish(builder: &mut Builder, hop: &Hop, span: Span, arriving: &[Arrival], wanted: &[Wanted]) {
    let goes = |row: usize| match wanted[row] {
        Wanted { role, to } if to == hop.place => Goes::Chunk(role),
        _ => Goes::Along,
    };
    for stream in builder.add(hop, span, arriving, wanted.len(), goes) {
        builder.keep(wanted[stream.row].to, span, stream.edge, wanted[stream.row].role);
    }
}

/// Takes out of `hops` what `hub` has itself.
pub(super) fn split(hops: Vec<Hop>, hub: Place) -> (Hop, Vec<Hop>) {
    let (own, others): (Vec<Hop>, Vec<Hop>) = hops.into_iter().partition(|hop| hop.place == hub);
    (own.into_iter().next().unwrap_or_else(|| Hop::empty(hub)), others)
}
