//! Decoding and repair: what can be read is copied, what is lost is laid out by a scheme.

use super::build::Builder;
use super::helpers::{Recipe, recipe};
use super::{Question, Scheme, Shape, Unplannable, Wanted, chain, ppr, star, tri};
use crate::graph::Span;

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
