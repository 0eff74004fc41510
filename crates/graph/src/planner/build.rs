//! Steps and edges, added upstream first.

use smallvec::SmallVec;
use types::RoleIndex;

use super::question::Wanted;
use crate::graph::{Edge, Input, Output, Place, Ports, Span, Step};

/// By what each row of a sum multiplies something: mostly there is one row.
pub(super) type Column = SmallVec<[u8; 8]>;

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
    pub column: Column,
}

impl Stream {
    /// A sum belongs to its row, of `rows`, as it is.
    pub(super) fn arrives(self, rows: usize) -> Arrival {
        let mut column = Column::from_elem(0, rows);
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
    pub columns: Vec<Column>,
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

    /// Room for so many more steps and edges.
    pub(super) fn reserve(&mut self, steps: usize, edges: usize) {
        self.steps.reserve(steps);
        self.edges.reserve(edges);
    }

    /// A step that reads `inputs`; its rows are added by [`Builder::row`].
    pub(super) fn step(&mut self, at: Place, span: Span, inputs: Ports<Input>) {
        let step = number(self.steps.len());
        for input in &inputs {
            if let Input::Stream(edge) = input {
                self.edges[*edge as usize].to = step;
            }
        }
        self.steps.push(Step { at, span, inputs, outputs: Ports::new(), matrix: SmallVec::new() });
    }

    /// A row of the last step; its edge if it goes along.
    pub(super) fn row(&mut self, factors: impl IntoIterator<Item = u8>, goes: Goes) -> Option<u32> {
        let (from, edge) = (number(self.steps.len()).wrapping_sub(1), number(self.edges.len()));
        let step = self.steps.last_mut()?;
        step.matrix.extend(factors);
        match goes {
            Goes::Chunk(role) => {
                step.outputs.push(Output::Chunk(role));
                None
            }
            Goes::Along => {
                step.outputs.push(Output::Stream(edge));
                self.edges.push(Edge { from, to: u32::MAX });
                Some(edge)
            }
        }
    }

    /// Adds what `hop` has to what arrives; `goes` says where the sum of a row goes. Rows of which there is nothing yet are left out.
    pub(super) fn add(
        &mut self,
        hop: &Hop,
        span: Span,
        arriving: &[Arrival],
        rows: usize,
        goes: impl Fn(usize) -> Goes,
    ) -> Ports<Stream> {
        let columns = || hop.columns.iter().chain(arriving.iter().map(|arrival| &arrival.column));
        let own = hop.roles.iter().map(|role| Input::Chunk(*role));
        let inputs = own.chain(arriving.iter().map(|arrival| Input::Stream(arrival.edge))).collect();
        self.step(hop.place, span, inputs);
        let mut streams = Ports::new();
        for row in (0..rows).filter(|row| columns().any(|column| column[*row] != 0)) {
            let edge = self.row(columns().map(|column| column[row]), goes(row));
            streams.extend(edge.map(|edge| Stream { row, edge }));
        }
        streams
    }

    /// Sends the chunks of `hop` as they are, one edge each: what arrives.
    pub(super) fn send<'a>(&mut self, hop: &'a Hop, span: Span) -> impl Iterator<Item = Arrival> + use<'a> {
        self.step(hop.place, span, hop.roles.iter().map(|role| Input::Chunk(*role)).collect());
        let first = number(self.edges.len());
        for at in 0..hop.roles.len() {
            self.row(unit(at, hop.roles.len()), Goes::Along);
        }
        (first..).zip(&hop.columns).map(|(edge, column)| Arrival { edge, column: column.clone() })
    }

    /// What arrives along `edge` becomes the chunk of `role`.
    pub(super) fn keep(&mut self, at: Place, span: Span, edge: u32, role: RoleIndex) {
        self.step(at, span, [Input::Stream(edge)].into_iter().collect());
        self.row([1], Goes::Chunk(role));
    }
}

/// Row `at` of an identity.
pub(super) fn unit(at: usize, count: usize) -> impl Iterator<Item = u8> {
    (0..count).map(move |other| u8::from(other == at))
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
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

/// What `hub` has itself of `hops`, and what the others have.
pub(super) fn split(hops: &[Hop], hub: Place) -> (Hop, Vec<&Hop>) {
    let own = hops.iter().find(|hop| hop.place == hub).cloned();
    let others = hops.iter().filter(|hop| hop.place != hub).collect();
    (own.unwrap_or_else(|| Hop::empty(hub)), others)
}
