//! One slice of a step: rows of a matrix over slices that have come and pieces of chunks that lie here.

use bytes::{Bytes, BytesMut};

use super::surroundings::{Surroundings, Unreadable, unreadable};
use crate::graph::{Graph, Input, Span, Step};
use crate::message::Why;

/// The slices of all outputs, with their sums where they are known, and the bytes that were multiplied for them.
pub(super) struct Combined {
    pub outputs: Vec<(Bytes, Option<u32>)>,
    pub combined: u64,
}

/// What has come along the edges, by input, with its sum.
type Arrived = Vec<Option<(Bytes, u32)>>;

/// Computes `span` of every output.
///
/// # Errors
/// If a chunk cannot be read.
pub(super) fn combine(
    graph: &Graph,
    step: &Step,
    span: Span,
    mut arrived: Arrived,
    around: &impl Surroundings,
) -> Result<Combined, Why> {
    let chunks = Chunks { graph, around };
    let mut outputs: Vec<Option<(Bytes, Option<u32>)>> = vec![None; step.outputs.len()];
    let mut sums = Vec::new();
    for (output, slot) in outputs.iter_mut().enumerate() {
        match unit(step.row(output)) {
            None => sums.push(output),
            Some(input) => {
                *slot = Some(chunks.as_it_is(step.inputs[input], arrived[input].as_ref(), span)?)
            }
        }
    }
    let mut combined = 0;
    if let [output] = sums[..] {
        let (bytes, products) = chunks.one_sum(step, output, span, &mut arrived)?;
        combined = products;
        outputs[output] = Some((bytes, None));
    } else if !sums.is_empty() {
        let buffers = chunks.many_sums(step, &sums, span, &arrived)?;
        for (output, bytes) in sums.into_iter().zip(buffers) {
            combined += products(step.row(output), span);
            outputs[output] = Some((bytes, None));
        }
    }
    Ok(Combined { outputs: outputs.into_iter().flatten().collect(), combined })
}

/// The input that the row is, if it is one as it is.
fn unit(row: &[u8]) -> Option<usize> {
    let mut used = row.iter().enumerate().filter(|(_, factor)| **factor != 0);
    match (used.next(), used.next()) {
        (Some((input, 1)), None) => Some(input),
        _ => None,
    }
}

fn products(row: &[u8], span: Span) -> u64 {
    row.iter().filter(|factor| **factor != 0).count() as u64 * u64::from(span.len)
}

/// The chunks of a strand at this process.
struct Chunks<'a, S> {
    graph: &'a Graph,
    around: &'a S,
}

impl<S: Surroundings> Chunks<'_, S> {
    /// An input as it is: what has come is passed on, what lies here is copied.
    fn as_it_is(
        &self,
        input: Input,
        arrived: Option<&(Bytes, u32)>,
        span: Span,
    ) -> Result<(Bytes, Option<u32>), Why> {
        if let Some((bytes, sum)) = arrived {
            return Ok((bytes.clone(), Some(*sum)));
        }
        let mut copy = Vec::with_capacity(span.len as usize);
        while copy.len() < span.len as usize {
            let at = span.start + copy.len() as u32;
            let piece = self.piece(input, at)?;
            let len = piece.len().min(span.len as usize - copy.len());
            copy.extend_from_slice(&piece[..len]);
        }
        Ok((Bytes::from(copy), None))
    }

    /// One row. A sum that arrives is added to where it lies, unless an accelerator may do it: those write where nothing is.
    fn one_sum(
        &self,
        step: &Step,
        output: usize,
        span: Span,
        arrived: &mut Arrived,
    ) -> Result<(Bytes, u64), Why> {
        let row = step.row(output);
        let coder = self.around.coder();
        let is_base = |input: &usize| row[*input] == 1 && arrived[*input].is_some();
        let base = (0..row.len()).find(is_base).filter(|_| coder.accelerator().is_none());
        let taken = base.and_then(|input| arrived[input].take());
        let mut sum = match taken {
            Some((bytes, _)) => bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..])),
            None => BytesMut::zeroed(span.len as usize),
        };
        let used: Vec<usize> =
            (0..row.len()).filter(|input| row[*input] != 0 && Some(*input) != base).collect();
        let factors: Vec<u8> = used.iter().map(|input| row[*input]).collect();
        self.in_pieces(step, &used, span, arrived, |at, sources| {
            let to = &mut sum[at..at + sources[0].len()];
            let result = if base.is_some() {
                codec::kernel().combine_add(&factors, sources, &mut [to])
            } else {
                coder.combine(&factors, sources, &mut [to])
            };
            debug_assert!(result.is_ok(), "pieces are of one length");
        })?;
        Ok((sum.freeze(), products(row, span)))
    }

    /// Several rows in one pass over the inputs.
    fn many_sums(
        &self,
        step: &Step,
        rows: &[usize],
        span: Span,
        arrived: &Arrived,
    ) -> Result<Vec<Bytes>, Why> {
        let is_used = |input: &usize| rows.iter().any(|row| step.row(*row)[*input] != 0);
        let used: Vec<usize> = (0..step.inputs.len()).filter(is_used).collect();
        let factors: Vec<u8> =
            rows.iter().flat_map(|row| used.iter().map(|input| step.row(*row)[*input])).collect();
        let mut sums: Vec<Vec<u8>> = rows.iter().map(|_| vec![0; span.len as usize]).collect();
        let coder = self.around.coder();
        self.in_pieces(step, &used, span, arrived, |at, sources| {
            let end = at + sources[0].len();
            let mut to: Vec<&mut [u8]> = sums.iter_mut().map(|sum| &mut sum[at..end]).collect();
            let result = coder.combine(&factors, sources, &mut to);
            debug_assert!(result.is_ok(), "pieces are of one length");
        })?;
        Ok(sums.into_iter().map(Bytes::from).collect())
    }

    /// Calls `work` with the bytes of all `used` inputs, as far as those lie together.
    fn in_pieces(
        &self,
        step: &Step,
        used: &[usize],
        span: Span,
        arrived: &Arrived,
        mut work: impl FnMut(usize, &[&[u8]]),
    ) -> Result<(), Why> {
        let mut at = 0;
        let mut sources: Vec<&[u8]> = Vec::with_capacity(used.len());
        while at < span.len as usize && !used.is_empty() {
            sources.clear();
            let mut len = span.len as usize - at;
            for input in used {
                let source = match &arrived[*input] {
                    Some((bytes, _)) => &bytes[at..],
                    None => self.piece(step.inputs[*input], span.start + at as u32)?,
                };
                len = len.min(source.len());
                sources.push(source);
            }
            sources.iter_mut().for_each(|source| *source = &source[..len]);
            work(at, &sources);
            at += len;
        }
        Ok(())
    }

    /// Bytes of a chunk that lies here, from byte `at` of the strand to where they end or another chunk begins.
    fn piece(&self, input: Input, at: u32) -> Result<&[u8], Why> {
        let Input::Chunk(role) = input else { return Ok(&[]) };
        let mut start = 0;
        for part in &self.graph.strand {
            if at < start + part.len {
                let group = self.graph.group;
                let piece = self.around.piece(group, role, part.chunk, part.offset + at - start);
                let piece = piece.map_err(|error| unreadable(error, self.graph, role, self.around))?;
                let left = (start + part.len - at) as usize;
                let missing = Unreadable::Missing;
                return match piece.len() {
                    0 => Err(unreadable(missing, self.graph, role, self.around)),
                    len => Ok(&piece[..len.min(left)]),
                };
            }
            start += part.len;
        }
        Ok(&[])
    }
}
