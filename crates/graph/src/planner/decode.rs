//! Decoding and repair: what can be read is copied, what is lost is laid out by a scheme.

use super::build::{Builder, Column, Hop};
use super::helpers::Recipes;
use super::shape::Sketch;
use super::{Question, Scheme, Unplannable, Wanted, chain, ppr, star, tri};
use crate::graph::{Place, Span};

/// The graph of `scheme`.
pub(super) fn sketch(
    question: &Question<'_>,
    recipes: &Recipes<'_>,
    scheme: Scheme,
) -> Result<Sketch, Unplannable> {
    let mut builder = Builder::default();
    let span = Span::whole(question.len);
    let can_be_read = |wanted: &Wanted| question.sources.iter().any(|source| source.role == wanted.role);
    let is_star = matches!(scheme, Scheme::Star | Scheme::Lrc);
    let hub = question.wanted.iter().find(|wanted| !can_be_read(wanted)).map(|wanted| wanted.to);
    // A star's hub has some of what is wanted among what it combines.
    let is_copied = |wanted: &Wanted| can_be_read(wanted) && !(is_star && Some(wanted.to) == hub);
    let (copied, computed): (Vec<Wanted>, Vec<Wanted>) = question.wanted.iter().partition(|w| is_copied(w));
    for wanted in copied {
        copy(&mut builder, recipes, wanted, span);
    }
    if let Some(hub) = hub {
        let recipe = &*recipes.of(&computed, scheme)?;
        match scheme {
            Scheme::Star | Scheme::Lrc => star::lay(&mut builder, recipe, hub, span),
            Scheme::Ppr => ppr::lay(&mut builder, recipe, hub, span, question.links),
            Scheme::Chain | Scheme::Auto => chain::lay(&mut builder, recipe, hub, span, question.links),
            Scheme::Tri => tri::lay(&mut builder, recipe, span),
        }
    }
    Sketch::new(scheme, builder.done(), question.links, question.aim, question.execution)
}

/// One chunk as it is, from the best of those that have it: what it could be computed of is not asked.
fn copy(builder: &mut Builder, recipes: &Recipes<'_>, wanted: Wanted, span: Span) {
    let Some(source) = recipes.best_source(wanted) else { return };
    let columns = vec![Column::from_elem(1, 1)];
    let hop = Hop { place: Place::Node(source.node), roles: vec![wanted.role], columns };
    for arrival in builder.send(&hop, span) {
        builder.keep(wanted.to, span, arrival.edge, wanted.role);
    }
}
