//! Steps and edges, added upstream first.

use types::RoleIndex;

use super::question::Wanted;
use crate::graph::{Edge, Input, Output, Place, Span, Step};

/// A graph in the making. An edge is opened by the step that sends, and closed by the one that receives.
#[derive(Default)]
pub(super) struct Builder {
    steps: Vec<Step>,
    edges: Vec<Edge>,
}

/// A sum on its way: the row of the target that it belongs to, and the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub row: usize,
    pub edge: u32,
}

/// What arrives along an edge, and by what each row multiplies it.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub edge: u32,
    pub column: Vec<u8>,
}

impl Stream {
    /// A sum belongs to its row, of `rows`, as it is.
    pub(super) fn arrives(self, rows: usize) -> Arrival {
        let mut column = vec![0; rows];
        column[self.row] = 1;
        Arrival { edge: self.edge, column }
    }
}

/// Chunks of a process and by what each row multiplies them.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub place: Place,
    pub roles: Vec<RoleIndex>,
    /// For each role, its coefficient in each row.
    pub columns: Vec<Vec<u8>>,
}

impl Hop {
    /// A process that has nothing of its own.
    pub(super) fn empty(place: Place) -> Self {
        Self { place, roles: Vec::new(), columns: Vec::new() }
    }
}

/// Where the row of a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    Along,
    Chunk(RoleIndex),
}

impl Builder {
    pub(super) fn done(self) -> (Vec<Step>, Vec<Edge>) {
        (self.steps, self.edges)
    }

    fn next_step(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }

    fn open(&mut self, from: u32) -> u32 {
        self.edges.push(Edge { from, to: u32::MAX });
        u32::try_from(self.edges.len() - 1).unwrap_or(u32::MAX)
    }

    /// A step of any matrix, given by its rows; the edges of those that go along.
    pub(super) fn step(
        &mut self,
        at: Place,
        span: Span,
        inputs: Vec<Input>,
        rows: &[(Vec<u8>, Goes)],
    ) -> Vec<u32> {
        let step = self.next_step();
        for input in &inputs {
            if let Input::Stream(edge) = input {
                self.edges[*edge as usize].to = step;
            }
        }
        let mut opened = Vec::new();
        let mut outputs = Vec::with_capacity(rows.len());
        for (_, goes) in rows {
            outputs.push(match goes {
                Goes::Chunk(role) => Output::Chunk(*role),
                Goes::Along => {
                    let edge = self.open(step);
                    opened.push(edge);
                    Output::Stream(edge)
                }
            });
        }
        let matrix = rows.iter().flat_map(|(row, _)| row.iter().copied()).collect();
        self.steps.push(Step { at, span, inputs, outputs, matrix });
        opened
    }

    /// Adds what `hop` has to what arrives; `goes` says where the sum of a row goes. Rows of which there is nothing yet are left out.
    pub(super) fn add(
        &mut self,
        hop: &Hop,
        span: Span,
        arriving: &[Arrival],
        rows: usize,
        goes: impl Fn(usize) -> Goes,
    ) -> Vec<Stream> {
        let row_of = |row: usize| {
            let arrived = arriving.iter().map(|arrival| arrival.column[row]);
            hop.columns.iter().map(|column| column[row]).chain(arrived).collect::<Vec<u8>>()
        };
        let mut numbers = Vec::with_capacity(rows);
        let mut sums = Vec::with_capacity(rows);
        for row in 0..rows {
            let coefficients = row_of(row);
            if coefficients.iter().any(|factor| *factor != 0) {
                numbers.push(row);
                sums.push((coefficients, goes(row)));
            }
        }
        let own = hop.roles.iter().map(|role| Input::Chunk(*role));
        let inputs = own.chain(arriving.iter().map(|stream| Input::Stream(stream.edge))).collect();
        let mut edges = self.step(hop.place, span, inputs, &sums).into_iter();
        let along = numbers.iter().zip(&sums).filter(|(_, (_, goes))| *goes == Goes::Along);
        along.filter_map(|(row, _)| edges.next().map(|edge| Stream { row: *row, edge })).collect()
    }

    /// Sends the chunks of `hop` as they are, one edge each.
    pub(super) fn send(&mut self, hop: &Hop, span: Span) -> Vec<u32> {
        let count = hop.roles.len();
        let unit = |at: usize| (0..count).map(|other| u8::from(other == at)).collect::<Vec<u8>>();
        let rows: Vec<_> = (0..count).map(|at| (unit(at), Goes::Along)).collect();
        self.step(hop.place, span, hop.roles.iter().map(|role| Input::Chunk(*role)).collect(), &rows)
    }

    /// What arrives along `edge` becomes the chunk of `role`.
    pub(super) fn keep(&mut self, at: Place, span: Span, edge: u32, role: RoleIndex) {
        self.step(at, span, vec![Input::Stream(edge)], &[(vec![1], Goes::Chunk(role))]);
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
