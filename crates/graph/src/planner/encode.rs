//! Encoding: the asker has the data chunks, and every holder shall have its chunk.

use types::RoleIndex;

use super::build::{Arrival, Builder, Goes, Hop, unit};
use super::shape::Sketch;
use super::{EncodeQuestion, Scheme, Shape, Unplannable, chain, choice};
use crate::graph::{Input, Place, Span};

/// The graph of `scheme` that encodes.
///
/// # Errors
/// `Question` unless there is one holder for each role; `NoEncoding` for a scheme that only decodes; `TooLarge`.
pub fn plan_encode(question: &EncodeQuestion<'_>, scheme: Scheme) -> Result<Shape, Unplannable> {
    question.check()?;
    match scheme {
        Scheme::Auto => choice::best(Scheme::ENCODING, |scheme| sketch(question, scheme), &question.aim),
        scheme => Ok(sketch(question, scheme)?.shape()),
    }
}

fn sketch(question: &EncodeQuestion<'_>, scheme: Scheme) -> Result<Sketch, Unplannable> {
    let mut builder = Builder::default();
    let span = Span::whole(question.len);
    match scheme {
        Scheme::Star | Scheme::Lrc => star(&mut builder, question, span),
        Scheme::Tri => tri(&mut builder, question, span),
        Scheme::Chain => grown(&mut builder, question, span),
        Scheme::Ppr | Scheme::Auto => return Err(Unplannable::NoEncoding(scheme)),
    }
    Sketch::new(scheme, builder.done(), question.links, question.aim, question.execution)
}

fn role(index: usize) -> RoleIndex {
    RoleIndex(u8::try_from(index).unwrap_or(u8::MAX))
}

/// The asker codes, and sends `k + m` chunks.
fn star(builder: &mut Builder, question: &EncodeQuestion<'_>, span: Span) {
    let (code, k) = (question.code, question.code.k());
    let mut edges = spread(builder, k, span);
    edges.extend((0..code.m()).filter_map(|row| builder.row(code.row(row).iter().copied(), Goes::Along)));
    for ((index, holder), edge) in question.holders.iter().enumerate().zip(edges) {
        builder.keep(Place::Node(*holder), span, edge, role(index));
    }
}

/// The asker sends each data holder its chunk: an edge each.
fn spread(builder: &mut Builder, k: usize, span: Span) -> Vec<u32> {
    builder.step(Place::Asker, span, (0..k).map(|at| Input::Chunk(role(at))).collect());
    (0..k).filter_map(|at| builder.row(unit(at, k), Goes::Along)).collect()
}

/// Each data holder multiplies its chunk by its column, the parity holders add (TriEC encode).
fn tri(builder: &mut Builder, question: &EncodeQuestion<'_>, span: Span) {
    let (code, k) = (question.code, question.code.k());
    let mut products: Vec<Vec<u32>> = vec![Vec::new(); code.m()];
    for (data, edge) in spread(builder, k, span).into_iter().enumerate() {
        let place = Place::Node(question.holders[data]);
        builder.keep(place, span, edge, role(data));
        for row in (0..code.m()).filter(|row| code.coefficient(*row, data) != 0) {
            products[row].extend(builder.row([code.coefficient(row, data)], Goes::Along));
        }
    }
    for (row, edges) in products.into_iter().enumerate() {
        let ones = std::iter::repeat_n(1, edges.len());
        let place = Place::Node(question.holders[k + row]);
        builder.step(place, span, edges.into_iter().map(Input::Stream).collect());
        builder.row(ones, Goes::Chunk(role(k + row)));
    }
}

/// The parities grow along the chain of data holders.
fn grown(builder: &mut Builder, question: &EncodeQuestion<'_>, span: Span) {
    let (code, k, m) = (question.code, question.code.k(), question.code.m());
    // Row 0 is the holder's own chunk, the others are the parities.
    let hops: Vec<(Hop, Vec<Arrival>)> = spread(builder, k, span)
        .into_iter()
        .enumerate()
        .map(|(data, edge)| {
            let parities = (0..m).map(|row| code.coefficient(row, data));
            let column = std::iter::once(1).chain(parities).collect();
            (Hop::empty(Place::Node(question.holders[data])), vec![Arrival { edge, column }])
        })
        .collect();
    let keeps = |data: usize, row: usize| if row == 0 { Goes::Chunk(role(data)) } else { Goes::Along };
    for sum in chain::grow(builder, &hops, span, m + 1, keeps) {
        let row = sum.column.iter().position(|factor| *factor == 1).unwrap_or(0);
        builder.keep(Place::Node(question.holders[k + row - 1]), span, sum.edge, role(k + row - 1));
    }
}
