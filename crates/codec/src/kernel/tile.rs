//! Tiles: a large linear combination cut into pieces that suit registers and caches.

/// Most outputs of a tile: that many accumulators stay in registers.
pub(super) const MAX_OUTPUTS: usize = 4;
/// Most sources of a tile: that many prepared coefficients per output stay in the first cache level.
pub(super) const MAX_SOURCES: usize = 32;
/// Bytes of each source that stay in cache while all outputs pass over them.
const BLOCK_LEN: usize = 4096;

/// `outputs[o][range] (+)= sum_s coefficient(o, s) * sources[s][range]`, for 1 to [`MAX_OUTPUTS`] outputs and 1 to
/// [`MAX_SOURCES`] sources.
///
/// Every source and output is at least `end` long, and `start <= end`: back ends rely on it.
pub(super) struct Tile<'a, 'b> {
    sources: &'a [&'a [u8]],
    outputs: &'a mut [&'b mut [u8]],
    coefficients: &'a [u8],
    /// From one output's coefficients to the next one's.
    stride: usize,
    start: usize,
    end: usize,
    add: bool,
}

impl Tile<'_, '_> {
    pub(super) fn sources(&self) -> &[&[u8]] {
        self.sources
    }

    pub(super) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The bytes of output `o` that this tile is about, and of all sources.
    pub(super) fn split(&mut self, o: usize) -> (&mut [u8], impl Iterator<Item = &[u8]>) {
        let (start, end) = (self.start, self.end);
        (&mut self.outputs[o][start..end], self.sources.iter().map(move |source| &source[start..end]))
    }

    /// Start of output `o`, valid for reads and writes of `end()` bytes.
    pub(super) fn output_pointer(&mut self, o: usize) -> *mut u8 {
        self.outputs[o].as_mut_ptr()
    }

    pub(super) fn coefficient(&self, o: usize, s: usize) -> u8 {
        self.coefficients[o * self.stride + s]
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Whether the sums are added to what the outputs hold, or replace it.
    pub(super) fn adds(&self) -> bool {
        self.add
    }
}

/// Cuts a combination (see [`Kernel::combine`](super::Kernel::combine)) into tiles; with `add`, it is added to what the
/// outputs hold. Sources are read block by block,
/// so that the second group of outputs finds them in cache.
///
/// # Panics
/// Unless all sources and outputs are of one length.
pub(super) fn for_each(
    coefficients: &[u8],
    sources: &[&[u8]],
    outputs: &mut [&mut [u8]],
    add: bool,
    mut run: impl FnMut(Tile<'_, '_>),
) {
    let Some(len) = outputs.first().map(|output| output.len()) else { return };
    let equal = sources.iter().all(|s| s.len() == len) && outputs.iter().all(|o| o.len() == len);
    assert!(equal, "byte strings of different lengths");
    if sources.is_empty() {
        if !add {
            outputs.iter_mut().for_each(|output| output.fill(0));
        }
        return;
    }
    let stride = sources.len();
    let block = if outputs.len() > MAX_OUTPUTS || stride > MAX_SOURCES { BLOCK_LEN } else { len.max(1) };
    for start in (0..len).step_by(block) {
        let end = len.min(start + block);
        for (outputs, rows) in outputs.chunks_mut(MAX_OUTPUTS).zip(coefficients.chunks(stride * MAX_OUTPUTS))
        {
            for (index, sources) in sources.chunks(MAX_SOURCES).enumerate() {
                let coefficients = &rows[index * MAX_SOURCES..];
                run(Tile { sources, outputs, coefficients, stride, start, end, add: add || index > 0 });
            }
        }
    }
}
