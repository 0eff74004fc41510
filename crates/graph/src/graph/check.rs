//! What a graph must be before anybody runs it.

use thiserror::Error;

use super::{Draft, Edge, Graph, Input, Output, Part, Place, Span, Step};
use crate::limits::{
    MAX_DEADLINE_US, MAX_DEGREE, MAX_EDGES, MAX_PARTS, MAX_SLICE_BYTES, MAX_STEPS, MAX_STRAND_BYTES,
    MAX_WINDOW, MIN_SLICE_BYTES,
};

/// Why a graph is none. Whoever sent it has made a mistake, or means ill.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadGraph {
    /// A number beyond its bounds.
    #[error("{what} = {found} is not within {least}..={most}")]
    Bounds {
        /// Of what.
        what: &'static str,
        /// What it is.
        found: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// The matrix is not outputs by inputs.
    #[error("step {step} has a matrix of {found} coefficients, not {expected}")]
    Matrix {
        /// Of which step.
        step: u32,
        /// Outputs times inputs.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// A row of zeros, or an input that nothing is made of.
    #[error("step {step} has a row or a column of zeros")]
    Zeros {
        /// Which step.
        step: u32,
    },
    /// An input or an output is listed twice, or a chunk is both.
    #[error("step {step} names something twice")]
    Twice {
        /// Which step.
        step: u32,
    },
    /// Two steps of one process write the same bytes of a chunk, or one reads what the other writes.
    #[error("step {step} writes bytes that another step of its process reads or writes")]
    Overlap {
        /// Which step.
        step: u32,
    },
    /// The range is empty or reaches beyond the strand.
    #[error("step {step} has a range that is empty or beyond the strand")]
    Range {
        /// Which step.
        step: u32,
    },
    /// An edge that goes backward, stays, or ends nowhere.
    #[error("edge {edge} does not lead from a step to a later one")]
    Backward {
        /// Which edge.
        edge: u32,
    },
    /// An edge is not just one output of its first step and one input of its second.
    #[error("edge {edge} is not one output and one input")]
    Ends {
        /// Which edge.
        edge: u32,
    },
    /// The two ends of an edge work on different bytes.
    #[error("edge {edge} joins steps of different ranges")]
    Spans {
        /// Which edge.
        edge: u32,
    },
}

impl Draft {
    /// Makes a graph of it, if it is one.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(self) -> Result<Graph, BadGraph> {
        self.check_numbers()?;
        let len = strand_len(&self.strand)?;
        for (index, step) in (0..).zip(&self.steps) {
            check_step(index, step, len)?;
        }
        let ends = self.check_edges()?;
        self.check_overlaps()?;
        Ok(Graph::new(self, ends, len))
    }

    fn check_numbers(&self) -> Result<(), BadGraph> {
        within("steps", self.steps.len() as u64, 1, MAX_STEPS as u64)?;
        within("edges", self.edges.len() as u64, 0, MAX_EDGES as u64)?;
        within("chunks", self.strand.len() as u64, 1, MAX_PARTS as u64)?;
        within("slice", self.slice_len.into(), MIN_SLICE_BYTES.into(), MAX_SLICE_BYTES.into())?;
        within("window", self.window.into(), 1, MAX_WINDOW.into())?;
        within("deadline", self.deadline_us, 1, MAX_DEADLINE_US)
    }

    /// For each edge, which output and which input it is.
    fn check_edges(&self) -> Result<Vec<(u16, u16)>, BadGraph> {
        for (index, edge) in (0..).zip(&self.edges) {
            check_edge(index, *edge, &self.steps)?;
        }
        let mut ends = vec![(None, None); self.edges.len()];
        for (at, step) in (0u32..).zip(&self.steps) {
            for (port, output) in (0u16..).zip(&step.outputs) {
                let Output::Stream(edge) = *output else { continue };
                let end = ends.get_mut(edge as usize).ok_or(BadGraph::Ends { edge })?;
                if self.edges[edge as usize].from != at || end.0.replace(port).is_some() {
                    return Err(BadGraph::Ends { edge });
                }
            }
            for (port, input) in (0u16..).zip(&step.inputs) {
                let Input::Stream(edge) = *input else { continue };
                let end = ends.get_mut(edge as usize).ok_or(BadGraph::Ends { edge })?;
                if self.edges[edge as usize].to != at || end.1.replace(port).is_some() {
                    return Err(BadGraph::Ends { edge });
                }
            }
        }
        let both = |(edge, end): (u32, (Option<u16>, Option<u16>))| match end {
            (Some(output), Some(input)) => Ok((output, input)),
            _ => Err(BadGraph::Ends { edge }),
        };
        (0..).zip(ends).map(both).collect()
    }

    /// What a process writes is written once, and read by none of its steps.
    fn check_overlaps(&self) -> Result<(), BadGraph> {
        let mut written: Vec<Use> = Vec::new();
        let mut read: Vec<Use> = Vec::new();
        for (index, step) in (0..).zip(&self.steps) {
            for output in &step.outputs {
                if let Output::Chunk(role) = output {
                    written.push((step.at, role.0, step.span, index));
                }
            }
            for input in &step.inputs {
                if let Input::Chunk(role) = input {
                    read.push((step.at, role.0, step.span, index));
                }
            }
        }
        written.sort_unstable();
        for pair in written.windows(2) {
            if same_chunk(&pair[0], &pair[1]) && pair[0].2.end() > pair[1].2.start {
                return Err(BadGraph::Overlap { step: pair[1].3 });
            }
        }
        let clashes = |reader: &Use| {
            let from = written.partition_point(|writer| (writer.0, writer.1) < (reader.0, reader.1));
            written[from..].iter().take_while(|writer| same_chunk(writer, reader)).next().is_some()
        };
        match read.iter().find(|reader| clashes(reader)) {
            Some(reader) => Err(BadGraph::Overlap { step: reader.3 }),
            None => Ok(()),
        }
    }
}

/// A chunk that a step reads or writes: place, role, bytes, step.
type Use = (Place, u8, Span, u32);

fn same_chunk(one: &Use, other: &Use) -> bool {
    (one.0, one.1) == (other.0, other.1)
}

fn within(what: &'static str, found: u64, least: u64, most: u64) -> Result<(), BadGraph> {
    if (least..=most).contains(&found) { Ok(()) } else { Err(BadGraph::Bounds { what, found, least, most }) }
}

fn strand_len(strand: &[Part]) -> Result<u32, BadGraph> {
    let mut len = 0u64;
    for part in strand {
        within("chunk", part.len.into(), 1, MAX_STRAND_BYTES.into())?;
        within("range", u64::from(part.offset) + u64::from(part.len), 1, MAX_STRAND_BYTES.into())?;
        len += u64::from(part.len);
    }
    within("strand", len, 1, MAX_STRAND_BYTES.into())?;
    Ok(u32::try_from(len).expect("it is within its bound"))
}

fn check_step(index: u32, step: &Step, len: u32) -> Result<(), BadGraph> {
    let (inputs, outputs) = (step.inputs.len(), step.outputs.len());
    within("inputs", inputs as u64, 1, MAX_DEGREE as u64)?;
    within("outputs", outputs as u64, 1, MAX_DEGREE as u64)?;
    if step.matrix.len() != inputs * outputs {
        let (expected, found) = ((inputs * outputs) as u64, step.matrix.len() as u64);
        return Err(BadGraph::Matrix { step: index, expected, found });
    }
    let has_zero_row = step.matrix.chunks(inputs).any(|row| row.iter().all(|factor| *factor == 0));
    let has_zero_column =
        (0..inputs).any(|input| step.matrix.iter().skip(input).step_by(inputs).all(|factor| *factor == 0));
    if has_zero_row || has_zero_column {
        return Err(BadGraph::Zeros { step: index });
    }
    let end = u64::from(step.span.start) + u64::from(step.span.len);
    if step.span.len == 0 || end > u64::from(len) {
        return Err(BadGraph::Range { step: index });
    }
    check_names(index, step)
}

/// Streams that are named twice are found with the edges.
fn check_names(index: u32, step: &Step) -> Result<(), BadGraph> {
    let mut seen = [false; codec::MAX_ROLES];
    let read = step.inputs.iter().filter_map(|input| match input {
        Input::Chunk(role) => Some(role),
        Input::Stream(_) => None,
    });
    let written = step.outputs.iter().filter_map(|output| match output {
        Output::Chunk(role) => Some(role),
        Output::Stream(_) => None,
    });
    let mut is_new = |role: &types::RoleIndex| !std::mem::replace(&mut seen[usize::from(role.0)], true);
    if read.chain(written).all(&mut is_new) { Ok(()) } else { Err(BadGraph::Twice { step: index }) }
}

fn check_edge(index: u32, edge: Edge, steps: &[Step]) -> Result<(), BadGraph> {
    let ends = (steps.get(edge.from as usize), steps.get(edge.to as usize));
    let (Some(from), Some(to)) = ends else { return Err(BadGraph::Backward { edge: index }) };
    if edge.from >= edge.to {
        return Err(BadGraph::Backward { edge: index });
    }
    if from.span == to.span { Ok(()) } else { Err(BadGraph::Spans { edge: index }) }
}
