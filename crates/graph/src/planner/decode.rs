//! Decoding and repair: what can be read is copied, what is lost is laid out by a scheme.

use super::build::{Builder, Hop};
use super::helpers::{best_source, recipe};
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
        copy(&mut builder, question, *wanted, span);
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

/// One chunk as it is, from the best of those that have it: what it could be computed of is not asked.
fn copy(builder: &mut Builder, question: &Question<'_>, wanted: Wanted, span: Span) {
    let Some(source) = best_source(question, wanted) else { return };
    let (place, roles) = (Place::Node(source.node), vec![wanted.role]);
    let hop = Hop { place, roles, columns: vec![vec![1]] };
    for edge in builder.send(&hop, span) {
        builder.keep(wanted.to, span, edge, wanted.role);
    }
}
