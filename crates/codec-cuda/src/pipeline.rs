//! Chunks in the host's memory: copied to the card, combined and copied back in pieces, several pieces at a time, so that copies in,
//! kernels and copies out overlap.
//!
//! A slot is a range of the card's memory, page-locked memory of the same layout, and a stream. A piece is as many ranges of
//! stripes as fit into a slot: short stripes share one, long ones are cut. Chunks are copied by way of the slot's page-locked memory.
//!
//! Chunks that are page-locked themselves need no slot: the card reads and writes them where they are, which is faster than copies of
//! pieces, if they begin at whole vectors. Others would be written in words, each of which crosses the bus alone.
#![allow(unsafe_code)] // What the driver is given must stay: see `Slot`.
#![expect(clippy::disallowed_methods, reason = "tells where the time went; nothing depends on it")]

use std::ops::{AddAssign, Range};
use std::sync::Arc;
use std::time::Instant;

use codec::CodeError;

use crate::combination::{Combination, Lists, Stripe, check_count};
use crate::driver::{Mark, Memory, Pinned, Stream};
use crate::{CudaError, Depth, Device, Matrix};

/// Chunks in a slot begin at multiples of this.
const ALIGN: usize = 256;
/// Shortest range of a chunk that a stripe is cut into, if it must be cut.
const MIN_RANGE: usize = 4096;

/// Chunks of one length in the host's memory, in a matrix' order.
#[derive(Debug)]
pub struct HostStripe<'a, 's, 'o> {
    /// Read.
    pub sources: &'a [&'s [u8]],
    /// Written.
    pub outputs: &'a mut [&'o mut [u8]],
}

impl HostStripe<'_, '_, '_> {
    /// Whether the card can read and write all chunks where they are.
    pub(crate) fn is_within_reach_of(&self, device: &Device) -> bool {
        self.sources.iter().all(|source| device.can_reach(source))
            && self.outputs.iter().all(|output| device.can_reach(output))
    }
}

/// Where the time went, in seconds; parts of different pieces overlap, so the sum may be more than the time that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Split {
    /// The processor's copies from chunks that are not page-locked, and back.
    pub staging: f64,
    /// From the host to the card.
    pub copy_in: f64,
    /// Kernels.
    pub compute: f64,
    /// From the card to the host.
    pub copy_out: f64,
}

/// What a slot does with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The processor copies to page-locked memory.
    StageIn,
    /// From the host to the card.
    CopyIn,
    /// Kernels.
    Compute,
    /// From the card to the host.
    CopyOut,
    /// The processor copies from page-locked memory.
    StageOut,
}

impl Stage {
    /// As users read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StageIn => "stage in",
            Self::CopyIn => "copy in",
            Self::Compute => "compute",
            Self::CopyOut => "copy out",
            Self::StageOut => "stage out",
        }
    }
}

/// When a slot did something; seconds since the run began, by the card's clock or the processor's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Which one.
    pub slot: usize,
    /// What.
    pub stage: Stage,
    /// From when on.
    pub begin: f64,
    /// Until when.
    pub end: f64,
}

impl Split {
    fn of(spans: &[Span]) -> Self {
        let mut split = Self::default();
        for span in spans {
            let sum = match span.stage {
                Stage::StageIn | Stage::StageOut => &mut split.staging,
                Stage::CopyIn => &mut split.copy_in,
                Stage::Compute => &mut split.compute,
                Stage::CopyOut => &mut split.copy_out,
            };
            *sum += span.end - span.begin;
        }
        split
    }
}

impl AddAssign for Split {
    fn add_assign(&mut self, other: Self) {
        self.staging += other.staging;
        self.copy_in += other.copy_in;
        self.compute += other.compute;
        self.copy_out += other.copy_out;
    }
}

/// Slots of a card.
#[derive(Debug)]
pub struct Pipeline {
    device: Arc<Device>,
    slots: Vec<Slot>,
    spans: Vec<Span>,
}

/// When a run began, by both clocks.
struct Start {
    card: Mark,
    processor: Instant,
}

impl Start {
    fn on(stream: &Stream) -> Result<Self, CudaError> {
        let card = stream.mark()?;
        card.wait()?;
        Ok(Self { card, processor: Instant::now() })
    }

    /// What the processor has done since `begun`.
    fn span(&self, slot: usize, stage: Stage, begun: Instant) -> Span {
        let since = |instant: Instant| instant.duration_since(self.processor).as_secs_f64();
        Span { slot, stage, begin: since(begun), end: since(Instant::now()) }
    }
}

/// A range of a stripe's chunks, and where they are in a slot.
#[derive(Clone, Debug)]
struct Part {
    stripe: usize,
    range: Range<usize>,
    /// Where the first source is; the next ones follow at multiples of `ALIGN`.
    sources_at: usize,
    outputs_at: usize,
}

impl Part {
    /// Bytes from one chunk of it to the next.
    fn pitch(&self) -> usize {
        self.range.len().next_multiple_of(ALIGN)
    }

    fn source_at(&self, source: usize) -> usize {
        self.sources_at + source * self.pitch()
    }

    fn output_at(&self, output: usize) -> usize {
        self.outputs_at + output * self.pitch()
    }
}

/// What a slot holds: descriptions, sources, outputs.
#[derive(Debug, Default)]
struct Layout {
    parts: Vec<Part>,
    sources: Range<usize>,
    outputs: Range<usize>,
}

#[derive(Debug)]
struct Slot {
    number: usize,
    stream: Stream,
    memory: Memory,
    staging: Pinned,
    /// The piece that is under way.
    layout: Layout,
    marks: Option<[Mark; 4]>,
}

impl Pipeline {
    /// Takes memory for as much as `depth` says.
    ///
    /// # Errors
    /// `OutOfMemory`; the driver's.
    pub fn new(device: &Arc<Device>, depth: Depth) -> Result<Self, CudaError> {
        let slot = |number| {
            Ok(Slot {
                number,
                stream: device.context().new_stream()?,
                memory: device.context().allocate(depth.slot_bytes)?,
                staging: device.context().allocate_pinned(depth.slot_bytes)?,
                layout: Layout::default(),
                marks: None,
            })
        };
        let slots = (0..depth.slots.max(1)).map(slot).collect::<Result<_, CudaError>>()?;
        Ok(Self { device: device.clone(), slots, spans: Vec::new() })
    }

    /// As deep as is of use, or as there is memory for.
    ///
    /// # Errors
    /// `OutOfMemory` if there is next to none; the driver's.
    pub fn fitting(device: &Arc<Device>) -> Result<Self, CudaError> {
        match Self::new(device, Depth::default()) {
            Err(CudaError::OutOfMemory { .. }) => Self::new(device, Depth::SHALLOW),
            made => made,
        }
    }

    /// How much is under way.
    #[must_use]
    pub fn depth(&self) -> Depth {
        Depth { slots: self.slots.len(), slot_bytes: self.slots[0].memory.len() }
    }

    /// What was done when, in the last run; of one that failed, what was done until then.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Computes the outputs of all stripes. When it fails, outputs hold anything.
    ///
    /// # Errors
    /// `Count` and `Length` for stripes of another shape than the matrix or of unequal chunks; `OutOfMemory` if not even a short
    /// range of all chunks fits into a slot; the driver's.
    pub fn run(
        &mut self,
        combination: &Combination,
        stripes: &mut [HostStripe<'_, '_, '_>],
    ) -> Result<Split, CudaError> {
        check(combination.matrix(), stripes)?;
        self.spans.clear();
        if stripes.iter().all(|stripe| stripe.is_within_reach_of(&self.device)) {
            return self.run_in_place(combination, stripes);
        }
        let ran = self.run_in_pieces(combination, stripes);
        if ran.is_err() {
            // What is still under way refers to chunks that are the caller's again.
            for slot in &mut self.slots {
                slot.layout = Layout::default();
                slot.marks = None;
                let _ = slot.stream.wait();
            }
        }
        ran
    }

    fn run_in_place(
        &mut self,
        combination: &Combination,
        stripes: &mut [HostStripe<'_, '_, '_>],
    ) -> Result<Split, CudaError> {
        let described = stripes.iter_mut().map(|stripe| Stripe {
            sources: stripe.sources.iter().map(|source| source.as_ptr() as u64).collect(),
            outputs: stripe.outputs.iter_mut().map(|output| output.as_mut_ptr() as u64).collect(),
            len: stripe.outputs[0].len() as u64,
        });
        let described: Vec<Stripe> = described.collect();
        // SAFETY: page-locked memory, whose bounds are multiples of 16, and borrowed until the card is done.
        let end = unsafe { combination.run_on_device(&described) }?;
        self.spans.push(Span { slot: 0, stage: Stage::Compute, begin: 0.0, end });
        Ok(Split::of(&self.spans))
    }

    fn run_in_pieces(
        &mut self,
        combination: &Combination,
        stripes: &mut [HostStripe<'_, '_, '_>],
    ) -> Result<Split, CudaError> {
        let slot_bytes = self.slots[0].memory.len();
        let start = Start::on(&self.slots[0].stream)?;
        let mut cutter = Cutter { stripe: 0, at: 0 };
        let mut turn = 0;
        loop {
            let layout = cutter.next_piece(combination.matrix(), stripes, slot_bytes)?;
            if layout.parts.is_empty() {
                break;
            }
            let slot = &mut self.slots[turn];
            self.spans.extend(slot.finish(&start, stripes)?);
            self.spans.push(slot.submit(&start, combination, stripes, layout)?);
            turn = (turn + 1) % self.slots.len();
        }
        for _ in 0..self.slots.len() {
            self.spans.extend(self.slots[turn].finish(&start, stripes)?);
            turn = (turn + 1) % self.slots.len();
        }
        Ok(Split::of(&self.spans))
    }
}

/// That every stripe has the matrix' shape, and chunks of one length.
fn check(matrix: &Matrix, stripes: &[HostStripe<'_, '_, '_>]) -> Result<(), CodeError> {
    for stripe in stripes {
        check_count("sources", matrix.columns(), stripe.sources.len())?;
        check_count("outputs", matrix.rows(), stripe.outputs.len())?;
        let expected = stripe.outputs[0].len();
        let sources = stripe.sources.iter().map(|source| source.len());
        let mut lengths = sources.chain(stripe.outputs.iter().map(|output| output.len()));
        if let Some(found) = lengths.find(|found| *found != expected) {
            return Err(CodeError::Length { expected, found });
        }
    }
    Ok(())
}

/// Where the next piece begins.
struct Cutter {
    stripe: usize,
    at: usize,
}

impl Cutter {
    /// As much as fits into `slot_bytes`; no parts if all is done.
    fn next_piece(
        &mut self,
        matrix: &Matrix,
        stripes: &[HostStripe<'_, '_, '_>],
        slot_bytes: usize,
    ) -> Result<Layout, CudaError> {
        let mut ranges: Vec<(usize, Range<usize>)> = Vec::new();
        let mut room = slot_bytes;
        while let Some(stripe) = stripes.get(self.stripe) {
            let left = stripe.outputs[0].len() - self.at;
            let overhead = Lists::len_for(matrix, 1) + ALIGN;
            let fits = room.saturating_sub(overhead) / matrix.chunks() / ALIGN * ALIGN;
            // A long stripe is not cut for the sake of a little room.
            if fits < left.min(MIN_RANGE) || fits < left && !ranges.is_empty() {
                break;
            }
            let len = left.min(fits);
            if len > 0 {
                ranges.push((self.stripe, self.at..self.at + len));
                room -= overhead + matrix.chunks() * len.next_multiple_of(ALIGN);
            }
            self.at += len;
            if len == left {
                (self.stripe, self.at) = (self.stripe + 1, 0);
            }
        }
        if ranges.is_empty() && self.stripe < stripes.len() {
            let bytes = matrix.chunks() * MIN_RANGE;
            return Err(CudaError::OutOfMemory { place: "slot", bytes });
        }
        Ok(Layout::of(matrix, ranges))
    }
}

impl Layout {
    fn of(matrix: &Matrix, ranges: Vec<(usize, Range<usize>)>) -> Self {
        let start = Lists::len_for(matrix, ranges.len()).next_multiple_of(ALIGN);
        let all: usize = ranges.iter().map(|(_, range)| range.len().next_multiple_of(ALIGN)).sum();
        let (mut sources_at, mut outputs_at) = (start, start + matrix.columns() * all);
        let (sources, outputs) = (start..outputs_at, outputs_at..outputs_at + matrix.rows() * all);
        let part = |(stripe, range): (usize, Range<usize>)| {
            let part = Part { stripe, range, sources_at, outputs_at };
            sources_at += matrix.columns() * part.pitch();
            outputs_at += matrix.rows() * part.pitch();
            part
        };
        Self { parts: ranges.into_iter().map(part).collect(), sources, outputs }
    }
}

impl Slot {
    /// Puts a piece into the stream. Gives the time that copies by the processor took. What the stream refers to is this slot's, and
    /// stays as it is until [`Slot::finish`].
    fn submit(
        &mut self,
        start: &Start,
        combination: &Combination,
        stripes: &[HostStripe<'_, '_, '_>],
        layout: Layout,
    ) -> Result<Span, CudaError> {
        self.layout = layout;
        let begun = Instant::now();
        let lists = self.lists(combination)?;
        self.staging.bytes_mut()[..lists.bytes.len()].copy_from_slice(&lists.bytes);
        let adds = combination.matrix().adds();
        self.stage(stripes, adds);
        let staged = start.span(self.number, Stage::StageIn, begun);
        let begin = self.stream.mark()?;
        let end = if adds { self.layout.outputs.end } else { self.layout.sources.end };
        // SAFETY: both are this slot's, as long as each other, and the staged range is not written before `finish` has waited.
        unsafe { self.stream.copy_in(self.memory.address(), &self.staging.bytes()[..end]) }?;
        let copied = self.stream.mark()?;
        // SAFETY: the lists name ranges of this slot.
        unsafe { combination.launch(&self.stream, &lists, self.memory.address()) }?;
        let computed = self.stream.mark()?;
        let outputs = self.layout.outputs.clone();
        let from = self.memory.address_of(outputs.start, outputs.len());
        // SAFETY: within this slot, whose memory nobody looks at before `finish` has waited.
        unsafe { self.stream.copy_out(&mut self.staging.bytes_mut()[outputs], from) }?;
        self.marks = Some([begin, copied, computed, self.stream.mark()?]);
        Ok(staged)
    }

    fn lists(&self, combination: &Combination) -> Result<Lists, CudaError> {
        let matrix = combination.matrix();
        let address = |at: usize| self.memory.address() + at as u64;
        let stripe = |part: &Part| Stripe {
            sources: (0..matrix.columns()).map(|source| address(part.source_at(source))).collect(),
            outputs: (0..matrix.rows()).map(|output| address(part.output_at(output))).collect(),
            len: part.range.len() as u64,
        };
        let stripes: Vec<Stripe> = self.layout.parts.iter().map(stripe).collect();
        Lists::of(matrix, &stripes)
    }

    /// Copies what the card has to read to page-locked memory.
    fn stage(&mut self, stripes: &[HostStripe<'_, '_, '_>], adds: bool) {
        let staging = self.staging.bytes_mut();
        for part in &self.layout.parts {
            let stripe = &stripes[part.stripe];
            for (source, bytes) in stripe.sources.iter().enumerate() {
                staging[part.source_at(source)..][..part.range.len()]
                    .copy_from_slice(&bytes[part.range.clone()]);
            }
            for (output, bytes) in stripe.outputs.iter().enumerate().filter(|_| adds) {
                staging[part.output_at(output)..][..part.range.len()]
                    .copy_from_slice(&bytes[part.range.clone()]);
            }
        }
    }

    /// Waits for the piece that is under way, and puts its outputs where they belong.
    fn finish(
        &mut self,
        start: &Start,
        stripes: &mut [HostStripe<'_, '_, '_>],
    ) -> Result<Vec<Span>, CudaError> {
        let Some(marks) = self.marks.take() else { return Ok(Vec::new()) };
        marks[3].wait()?;
        let begun = Instant::now();
        for part in &self.layout.parts {
            for (output, bytes) in stripes[part.stripe].outputs.iter_mut().enumerate() {
                let staged = &self.staging.bytes()[part.output_at(output)..][..part.range.len()];
                bytes[part.range.clone()].copy_from_slice(staged);
            }
        }
        let mut spans = vec![start.span(self.number, Stage::StageOut, begun)];
        let stages = [Stage::CopyIn, Stage::Compute, Stage::CopyOut];
        for (stage, pair) in stages.into_iter().zip(marks.windows(2)) {
            let (begin, end) = (start.card.seconds_to(&pair[0])?, start.card.seconds_to(&pair[1])?);
            spans.push(Span { slot: self.number, stage, begin, end });
        }
        Ok(spans)
    }
}
