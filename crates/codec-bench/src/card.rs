//! A card as a side, and its copies as limits.
#![allow(unsafe_code)] // Chunks in a card's memory are numbers.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use codec::{Code, Plan};
use codec_cuda::{
    Batch, Combination, CopyRates, CudaError, Device, DeviceBuffer, HostStripe, Matrix, PinnedBuffer,
    Pipeline, Residence, Span, Split, Stripe,
};

use crate::memory::{Memory, Set};
use crate::ours::{encode_first, plan};
use crate::report::Parts;
use crate::side::{Side, timed};
use crate::{BenchError, Job, Op};

/// What `--kernel` calls it.
pub const NAME: &str = "cuda";
/// Chunks of a set begin at multiples of this on the card.
const ALIGN: usize = 256;
/// Bytes that are copied to measure copies.
const COPY_BYTES: usize = 256 << 20;

/// The card, for all sides of this process: what is made once is not made for each figure.
struct Card {
    device: Arc<Device>,
    pipeline: Mutex<Pipeline>,
    copies: CopyRates,
}

impl Card {
    fn get() -> Result<&'static Self, BenchError> {
        static CARD: OnceLock<Result<Card, CudaError>> = OnceLock::new();
        CARD.get_or_init(Self::open).as_ref().map_err(|error| failed(error.clone()))
    }

    fn open() -> Result<Self, CudaError> {
        let device = Device::open(0)?;
        let pipeline = Mutex::new(Pipeline::fitting(&device)?);
        let copies = device.copy_rates(COPY_BYTES)?;
        Ok(Self { device, pipeline, copies })
    }

    fn pipeline(&self) -> MutexGuard<'_, Pipeline> {
        self.pipeline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A code on a card, with its chunks in one of three places. One call codes all sets of the bench's memory: one in cache, many
/// where they are cold.
pub struct OnCard {
    name: String,
    card: &'static Card,
    job: Job,
    code: Code,
    plan: Option<Plan>,
    combination: Combination,
    residence: Residence,
    /// Bytes of data a second that copies alone would allow.
    allowed: Option<f64>,
    /// The chunks, where they are not those of the bench's memory; copied from there in the first round.
    elsewhere: Option<Elsewhere>,
    split: Split,
    /// Of the last call.
    spans: Vec<Span>,
    is_checked: bool,
}

enum Elsewhere {
    Pinned(PinnedBuffer),
    Device { buffer: DeviceBuffer, batch: Box<Batch> },
}

impl OnCard {
    /// For `job`.
    ///
    /// # Errors
    /// `Unable` where there is no card, or for an operation that cards do not have.
    pub fn new(job: Job, residence: Residence) -> Result<Self, BenchError> {
        let code = job.code()?;
        let plan = plan(&code, &job)?;
        let matrix = match (job.op, &plan) {
            (Op::Encode, _) => Matrix::encode(&code)?,
            (Op::Decode, Some(plan)) => Matrix::plan(plan)?,
            (Op::Delta, _) => Matrix::delta(&code, 0)?,
            _ => return Err(unable(format!("{} is for the processor", job.op.name()))),
        };
        let card = Card::get()?;
        // As the codec does it: losses are many and soon over, a code's own matrix is worth a compiler.
        let combination = if plan.is_some() && residence != Residence::Device {
            card.device.load(&matrix)
        } else {
            card.device.best(&matrix)
        };
        let combination = combination.map_err(failed)?;
        let mut side = Self {
            name: format!("{} {NAME} {} {}", job.scheme, combination.method(), residence.name()),
            card,
            job,
            code,
            plan,
            combination,
            residence,
            allowed: None,
            elsewhere: None,
            split: Split::default(),
            spans: Vec::new(),
            is_checked: false,
        };
        side.allowed = side.allowed_by_card().map_err(failed)?;
        Ok(side)
    }

    /// Chunks that are read and written for the data bytes of the operation, as chunks.
    fn traffic(&self) -> [f64; 3] {
        let (sources, outputs) = self.roles();
        let before = if self.job.op == Op::Delta { outputs.len() } else { 0 };
        let data = if self.job.op == Op::Delta { 1 } else { self.code.k() };
        [data, sources.len() + before, outputs.len()].map(|chunks| chunks as f64)
    }

    /// Sources and outputs of the operation among the chunks of a set.
    fn roles(&self) -> (Vec<usize>, Vec<usize>) {
        let (k, n) = (self.code.k(), self.code.n());
        match (&self.plan, self.job.op) {
            // What is repaired goes beside the lost chunks, which stay to be compared.
            (Some(plan), _) => (plan.sources().to_vec(), (n..n + self.job.losses).collect()),
            (None, Op::Delta) => (vec![0], (k..n).collect()),
            (None, _) => ((0..k).collect(), (k..n).collect()),
        }
    }

    /// Chunks of a set: those of all roles, and room for what is repaired.
    fn chunks_of_set(&self) -> usize {
        self.code.n() + if self.plan.is_some() { self.job.losses } else { 0 }
    }

    /// Bytes from one chunk to the next.
    fn pitch(&self) -> usize {
        self.job.len.next_multiple_of(ALIGN)
    }

    /// So many sets at most, one after the other.
    fn image(&self, memory: &mut Memory, most: usize) -> Vec<u8> {
        let (pitch, count) = (self.pitch(), self.chunks_of_set());
        let mut image = Vec::new();
        let sets = memory.sets().into_iter().take(most);
        for chunk in sets.flat_map(|set| chunks_of(set).into_iter().take(count)) {
            image.extend_from_slice(chunk);
            image.resize(image.len().next_multiple_of(pitch), 0);
        }
        image
    }

    fn load(&self, memory: &mut Memory) -> Result<Option<Elsewhere>, CudaError> {
        if self.residence == Residence::Host {
            return Ok(None);
        }
        let image = self.image(memory, usize::MAX);
        let device = &self.card.device;
        if self.residence == Residence::Pinned {
            let mut buffer = device.allocate_pinned(image.len())?;
            buffer.bytes_mut().copy_from_slice(&image);
            return Ok(Some(Elsewhere::Pinned(buffer)));
        }
        let mut buffer = device.allocate(image.len())?;
        buffer.write(0, &image)?;
        let batch = Box::new(self.combination.batch(&self.stripes(&buffer))?);
        Ok(Some(Elsewhere::Device { buffer, batch }))
    }

    /// All sets in the card's memory.
    fn stripes(&self, buffer: &DeviceBuffer) -> Vec<Stripe> {
        let (sources, outputs) = self.roles();
        let (pitch, of_set) = (self.pitch(), self.chunks_of_set() * self.pitch());
        let at = |set: usize, role: &usize| buffer.address_of(set * of_set + role * pitch, self.job.len);
        let stripe = |set| Stripe {
            sources: sources.iter().map(|role| at(set, role)).collect(),
            outputs: outputs.iter().map(|role| at(set, role)).collect(),
            len: self.job.len as u64,
        };
        (0..buffer.len() / of_set).map(stripe).collect()
    }

    /// Codes all sets once.
    fn run(&mut self, memory: &mut Memory) -> Result<(), CudaError> {
        let (sources, outputs) = self.roles();
        let (pitch, of_set, len) = (self.pitch(), self.chunks_of_set() * self.pitch(), self.job.len);
        if let Some(Elsewhere::Device { batch, .. }) = &mut self.elsewhere {
            // SAFETY: all chunks are in the buffer beside it, apart from each other.
            self.split.compute += unsafe { batch.run() }?;
            return Ok(());
        }
        let mut pipeline = self.card.pipeline();
        let combination = &self.combination;
        self.split += match &mut self.elsewhere {
            Some(Elsewhere::Pinned(buffer)) => {
                let sets = buffer.bytes_mut().chunks_mut(of_set);
                let sets = sets.map(|set| set.chunks_mut(pitch).map(|chunk| &mut chunk[..len]).collect());
                on_host(&mut pipeline, combination, sets, &sources, &outputs)?
            }
            _ => {
                let sets = memory.sets().into_iter().map(chunks_of);
                on_host(&mut pipeline, combination, sets, &sources, &outputs)?
            }
        };
        pipeline.spans().clone_into(&mut self.spans);
        Ok(())
    }

    /// That the first set's outputs are what the processor makes of its sources.
    fn check(&self, memory: &mut Memory) -> Result<(), BenchError> {
        if self.job.op == Op::Delta {
            // Each round has added it once more: what it should be depends on how often.
            return Ok(());
        }
        let (pitch, count) = (self.pitch(), self.chunks_of_set());
        let image = match &self.elsewhere {
            None => self.image(memory, 1),
            Some(Elsewhere::Pinned(buffer)) => buffer.bytes()[..count * pitch].to_vec(),
            Some(Elsewhere::Device { buffer, .. }) => {
                let mut first = vec![0; count * pitch];
                buffer.read(0, &mut first).map_err(failed)?;
                first
            }
        };
        let (sources, outputs) = self.roles();
        let chunks: Vec<&[u8]> = image.chunks(pitch).map(|chunk| &chunk[..self.job.len]).collect();
        let sources: Vec<&[u8]> = sources.iter().map(|role| chunks[*role]).collect();
        let mut expected = vec![vec![0; self.job.len]; outputs.len()];
        let mut borrowed: Vec<&mut [u8]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
        match &self.plan {
            Some(plan) => plan.run(&sources, &mut borrowed)?,
            None => self.code.encode(&sources, &mut borrowed)?,
        }
        let right = outputs.iter().zip(&expected).all(|(role, expected)| chunks[*role] == &expected[..]);
        if right {
            Ok(())
        } else {
            Err(BenchError::Wrong { side: self.name.clone(), job: self.job.to_string() })
        }
    }
}

impl Side for OnCard {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn round(&mut self, memory: &mut Memory, time: Duration) -> Result<f64, BenchError> {
        // What is repaired needs right parities. Chunks that lie elsewhere are this side's alone, and stay right;
        // those of the bench's memory other sides have written to in between.
        if self.plan.is_some() && self.elsewhere.is_none() {
            memory.sets().iter_mut().try_for_each(|set| encode_set(&self.code, set))?;
            encode_first(&self.code, memory)?;
        }
        if self.elsewhere.is_none() {
            self.elsewhere = self.load(memory).map_err(failed)?;
        }
        let bytes = memory.sets().len() * self.job.data_bytes(self.code.k());
        let rate = timed(&mut [()], bytes, time, |()| self.run(memory).map_err(failed))?;
        // Once: of large codes it takes the processor longer than the figures.
        if !self.is_checked {
            self.check(memory)?;
            self.is_checked = true;
        }
        Ok(rate)
    }

    fn allowed_by_copies(&self) -> Option<f64> {
        Some(self.allowed? / 1e9)
    }

    fn trace(&self) -> Vec<Span> {
        self.spans.clone()
    }

    fn parts(&self) -> Option<Parts> {
        let Split { staging, copy_in, compute, copy_out } = self.split;
        let all = staging + copy_in + compute + copy_out;
        let percent = |seconds: f64| if all > 0.0 { 100.0 * seconds / all } else { 0.0 };
        Some(Parts {
            staging_percent: percent(staging),
            copy_in_percent: percent(copy_in),
            compute_percent: percent(compute),
            copy_out_percent: percent(copy_out),
        })
    }
}

impl OnCard {
    /// Bytes of data a second that copies alone would allow, if it were one pass: of the card's memory, or over the bus, both ways at
    /// once in the operation's proportions.
    fn allowed_by_card(&self) -> Result<Option<f64>, CudaError> {
        let [data, read, written] = self.traffic();
        match self.residence {
            Residence::Host => Ok(None),
            Residence::Pinned => {
                let [inwards, outwards] =
                    [read, written].map(|chunks| (COPY_BYTES as f64 * chunks / (read + written)) as usize);
                let seconds = self.card.device.exchange_seconds(inwards, outwards)?;
                Ok(Some(data / read * inwards as f64 / seconds))
            }
            Residence::Device => Ok(Some(2.0 * self.card.copies.device_to_device * data / (read + written))),
        }
    }
}

/// All chunks of a set: of its roles in their order, then room for results.
fn chunks_of(set: Set<'_>) -> Vec<&mut [u8]> {
    set.data.into_iter().chain(set.parity).chain(set.extra).collect()
}

fn encode_set(code: &Code, set: &mut Set<'_>) -> Result<(), BenchError> {
    let data: Vec<&[u8]> = set.data.iter().map(|chunk| &**chunk).collect();
    Ok(code.encode(&data, &mut set.parity)?)
}

/// One call for all of `sets`.
fn on_host<'a>(
    pipeline: &mut Pipeline,
    combination: &Combination,
    sets: impl Iterator<Item = Vec<&'a mut [u8]>>,
    sources: &[usize],
    outputs: &[usize],
) -> Result<Split, CudaError> {
    let mut chosen: Vec<Chosen<'_>> = sets
        .map(|chunks| {
            // Taken out one by one: what is written is lent to nobody for reading.
            let mut chunks: Vec<Option<&mut [u8]>> = chunks.into_iter().map(Some).collect();
            let outputs = outputs.iter().filter_map(|role| chunks[*role].take()).collect();
            let sources =
                sources.iter().filter_map(|role| chunks[*role].take()).map(|chunk| &*chunk).collect();
            Chosen { sources, outputs }
        })
        .collect();
    let stripes =
        chosen.iter_mut().map(|set| HostStripe { sources: &set.sources, outputs: &mut set.outputs });
    pipeline.run(combination, &mut stripes.collect::<Vec<_>>())
}

/// Sources and outputs of a set.
struct Chosen<'a> {
    sources: Vec<&'a [u8]>,
    outputs: Vec<&'a mut [u8]>,
}

/// The card's own copies, as measured when it was first used.
///
/// # Errors
/// `Unable` where there is no card.
pub fn copy_rates() -> Result<CopyRates, BenchError> {
    Ok(Card::get()?.copies)
}

fn failed(error: CudaError) -> BenchError {
    unable(error.to_string())
}

fn unable(reason: String) -> BenchError {
    BenchError::Unable { peer: NAME, reason }
}
