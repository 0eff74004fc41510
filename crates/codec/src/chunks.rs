//! Byte strings of one length.

use crate::CodeError;

/// Sources and outputs that are all of one length: whoever is given them need not look at each again, which for small chunks
/// takes longer than to compute them.
pub(crate) struct Chunks<'a, 's, 'o> {
    sources: &'a [&'s [u8]],
    outputs: &'a mut [&'o mut [u8]],
    len: usize,
}

impl<'a, 's, 'o> Chunks<'a, 's, 'o> {
    /// # Errors
    /// `Length` unless all are of one length, `Empty` if that is 0.
    #[inline]
    pub(crate) fn new(sources: &'a [&'s [u8]], outputs: &'a mut [&'o mut [u8]]) -> Result<Self, CodeError> {
        let chunks = Self::maybe_empty(sources, outputs)?;
        if chunks.len > 0 || (chunks.sources.is_empty() && chunks.outputs.is_empty()) {
            Ok(chunks)
        } else {
            Err(CodeError::Empty)
        }
    }

    /// # Errors
    /// `Length` unless all are of one length.
    #[inline]
    pub(crate) fn maybe_empty(
        sources: &'a [&'s [u8]],
        outputs: &'a mut [&'o mut [u8]],
    ) -> Result<Self, CodeError> {
        let first = sources.first().map(|source| source.len());
        let len = first.or_else(|| outputs.first().map(|output| output.len())).unwrap_or(0);
        // Not by `all` or a sum: compilers make vectors of those, which take longer than the few chunks there are.
        for source in sources {
            if source.len() != len {
                return Err(unequal(len, sources, outputs));
            }
        }
        for output in &*outputs {
            if output.len() != len {
                return Err(unequal(len, sources, outputs));
            }
        }
        Ok(Self { sources, outputs, len })
    }

    /// The same, to be given away.
    pub(crate) fn reborrow(&mut self) -> Chunks<'_, 's, 'o> {
        Chunks { sources: self.sources, outputs: self.outputs, len: self.len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn sources(&self) -> &'a [&'s [u8]] {
        self.sources
    }

    pub(crate) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    pub(crate) fn outputs(&mut self) -> &mut [&'o mut [u8]] {
        self.outputs
    }
}

#[cold]
fn unequal(expected: usize, sources: &[&[u8]], outputs: &[&mut [u8]]) -> CodeError {
    let mut lengths = sources.iter().map(|s| s.len()).chain(outputs.iter().map(|o| o.len()));
    let found = lengths.find(|len| *len != expected).unwrap_or(expected);
    CodeError::Length { expected, found }
}
