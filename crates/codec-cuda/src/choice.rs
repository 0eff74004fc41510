//! The same codec on a card or on the processor, whichever is the faster place, with the same bytes. A card that fails is said once
//! in the log, and the processor takes over: an operation fails only for what its caller did wrong.
//!
//! A change of few bytes is not among the operations: bringing parities up to date moves more bytes to and from a card than it
//! computes, so [`Code::update`] on the processor is always the faster way for chunks of the host, and [`Combination`] the only one
//! for chunks of the card.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::{fmt, thread};

use codec::{Code, CodeError, Kernel, Plan};

use crate::calibrate::{self, Crossover};
use crate::combination::check_count;
use crate::kept::Kept;
use crate::place::{Choice, Place, Residence};
use crate::{Combination, CudaError, Device, HostStripe, Matrix, Pipeline, Stripe};

/// How a matrix gets onto the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// By kernels of its own: a code's matrix is used again and again.
    Compiled,
    /// By the generic kernel: there are many patterns of losses, and each is soon over, so there is no time for a compiler.
    Loaded,
}

/// A codec that knows of a card, or of none.
pub struct Codec {
    device: Result<Arc<Device>, CudaError>,
    threads: NonZeroUsize,
    /// Whether the card is used without asking whether it is faster.
    forced: bool,
    /// Whether an operation waits for those that others have on the card; else the processor does it.
    waits: bool,
    /// The card is of no use any more.
    lost: AtomicBool,
    /// The last failure has been said; a success after it makes the next one news.
    failing: AtomicBool,
    /// Failures so far.
    faults: AtomicU64,
    pipeline: Mutex<Option<Pipeline>>,
    /// By the generic kernel.
    loaded: Mutex<Kept<Combination>>,
    crossovers: Mutex<BTreeMap<(usize, usize, Residence), Crossover>>,
}

impl Codec {
    /// One that uses card number `ordinal` where there is one, and `threads` of the processor otherwise.
    #[must_use]
    pub fn new(ordinal: usize, threads: NonZeroUsize) -> Self {
        let device = Device::open(ordinal);
        match &device {
            Ok(device) => tracing::info!(card = device.name(), "coding may run on a card"),
            Err(error) => tracing::info!(%error, "coding runs on the processor"),
        }
        Self::with_device(device, threads)
    }

    /// One that uses this card.
    #[must_use]
    pub fn with_device(device: Result<Arc<Device>, CudaError>, threads: NonZeroUsize) -> Self {
        Self {
            device,
            threads,
            forced: false,
            waits: true,
            lost: AtomicBool::new(false),
            failing: AtomicBool::new(false),
            faults: AtomicU64::new(0),
            pipeline: Mutex::default(),
            loaded: Mutex::default(),
            crossovers: Mutex::default(),
        }
    }

    /// The same, but nothing is measured, and all that can be done by the card is: for tests and comparisons.
    #[must_use]
    pub fn always_on_card(self) -> Self {
        Self { forced: true, ..self }
    }

    /// The same, but what comes while the card is busy is done by the processor at once.
    pub(crate) fn without_waiting(self) -> Self {
        Self { waits: false, ..self }
    }

    /// Whether nothing is measured.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced
    }

    /// Whether the card has failed, and has done nothing since.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// How often the card has failed.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// As many threads as there are processors.
    #[must_use]
    pub fn all_threads() -> NonZeroUsize {
        thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
    }

    /// The card, or why there is none.
    ///
    /// # Errors
    /// Why there is none.
    pub fn device(&self) -> Result<&Arc<Device>, &CudaError> {
        self.device.as_ref()
    }

    /// [`Code::encode`], wherever it is faster; says where that was.
    ///
    /// # Errors
    /// As there.
    pub fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<Place, CodeError> {
        self.encode_batch(code, &mut [HostStripe { sources: data, outputs: parity }])
    }

    /// [`Code::encode`] of many stripes, whose lengths may differ, in one go.
    ///
    /// # Errors
    /// As there, for the first stripe that is wrong; those before it are encoded.
    pub fn encode_batch(
        &self,
        code: &Code,
        stripes: &mut [HostStripe<'_, '_, '_>],
    ) -> Result<Place, CodeError> {
        if let Ok(matrix) = Matrix::encode(code)
            && self.on_card(&matrix, stripes, Ready::Compiled)
        {
            return Ok(Place::Card);
        }
        for stripe in stripes {
            code.encode_with_threads(stripe.sources, stripe.outputs, self.threads)?;
        }
        Ok(Place::Cpu)
    }

    /// [`Plan::run`], wherever it is faster; says where that was.
    ///
    /// # Errors
    /// As there.
    pub fn reconstruct(
        &self,
        plan: &Plan,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<Place, CodeError> {
        self.reconstruct_batch(plan, &mut [HostStripe { sources, outputs }])
    }

    /// [`Plan::run`] on many stripes, whose lengths may differ, in one go.
    ///
    /// # Errors
    /// As there, for the first stripe that is wrong; those before it are done.
    pub fn reconstruct_batch(
        &self,
        plan: &Plan,
        stripes: &mut [HostStripe<'_, '_, '_>],
    ) -> Result<Place, CodeError> {
        if let Ok(matrix) = Matrix::plan(plan)
            && self.on_card(&matrix, stripes, Ready::Loaded)
        {
            return Ok(Place::Card);
        }
        for stripe in stripes {
            plan.run_with_threads(stripe.sources, stripe.outputs, self.threads)?;
        }
        Ok(Place::Cpu)
    }

    /// [`Code::encode`] of an object that lies on the card, such as a tensor, straight into parities on the card: `data` and `parity` are
    /// the addresses of their chunks, `len` bytes each.
    ///
    /// # Errors
    /// As [`Codec::combine_on_device`].
    ///
    /// # Safety
    /// As [`Combination::run_on_device`].
    #[expect(unsafe_code, reason = "addresses in a card's memory are the caller's word")]
    pub unsafe fn encode_device(
        &self,
        code: &Code,
        data: &[u64],
        parity: &[u64],
        len: usize,
    ) -> Result<Place, CudaError> {
        let stripe = Stripe { sources: data.to_vec(), outputs: parity.to_vec(), len: len as u64 };
        // SAFETY: the caller's.
        unsafe { self.combine_on_device(&Matrix::encode(code)?, &[stripe]) }
    }

    /// `matrix` on chunks in the card's memory, where they stay: encode, reconstruct or delta. If the card has them and cannot combine
    /// them, for want of memory or of a kernel, the processor does it with copies.
    ///
    /// # Errors
    /// `NoDriver`, `NoDevice` and `Lost`: then there are no chunks either. `Count` for a stripe of another shape; the driver's.
    ///
    /// # Safety
    /// As [`Combination::run_on_device`].
    #[expect(unsafe_code, reason = "addresses in a card's memory are the caller's word")]
    pub unsafe fn combine_on_device(&self, matrix: &Matrix, stripes: &[Stripe]) -> Result<Place, CudaError> {
        let device = self.device.as_ref().map_err(Clone::clone)?;
        // SAFETY: the caller's.
        let ran = device.best(matrix).and_then(|combination| unsafe { combination.run_on_device(stripes) });
        match ran {
            Ok(_) => {
                self.failing.store(false, Ordering::Relaxed);
                Ok(Place::Card)
            }
            // Before anything was launched: nothing has been added to the outputs yet.
            Err(error @ (CudaError::OutOfMemory { .. } | CudaError::Compile { .. })) => {
                self.note_failure(&error);
                // SAFETY: the caller's.
                unsafe { by_processor(device, matrix, stripes) }.map(|()| Place::Cpu)
            }
            Err(error) => {
                if error.is_final() {
                    self.note_failure(&error);
                }
                Err(error)
            }
        }
    }

    /// Where a combination of `matrix`' shape, with chunks of `len` bytes that are at `residence`, would run. The first question about
    /// a shape is answered by a measurement that takes a few tenths of a second, if there is a card.
    #[must_use]
    pub fn choose(&self, matrix: &Matrix, len: usize, residence: Residence) -> Choice {
        let device = match &self.device {
            Ok(_) if self.is_lost() => return Choice::cpu("the card was lost".to_owned()),
            Ok(device) => device,
            Err(error) => return Choice::cpu(error.to_string()),
        };
        if residence == Residence::Device {
            return Choice { place: Place::Card, why: "the chunks are there".to_owned() };
        }
        if len.saturating_mul(matrix.columns()) < calibrate::LEAST_BYTES {
            return Choice::cpu(format!("less than {} bytes of sources", calibrate::LEAST_BYTES));
        }
        let shape = (matrix.columns(), matrix.rows(), residence);
        let known = lock(&self.crossovers).get(&shape).copied();
        let crossover = match known.map_or_else(|| self.measure(device, matrix, residence), Ok) {
            Ok(crossover) => crossover,
            Err(error) => {
                self.note_failure(&error);
                return Choice::cpu(error.to_string());
            }
        };
        crossover.choose(len.saturating_mul(matrix.columns()))
    }

    fn measure(
        &self,
        device: &Arc<Device>,
        matrix: &Matrix,
        residence: Residence,
    ) -> Result<Crossover, CudaError> {
        let mut pipeline = lock(&self.pipeline);
        let crossover = on_pipeline(&mut pipeline, device, |pipeline| {
            calibrate::crossover(device, pipeline, matrix, residence, self.threads)
        })?;
        lock(&self.crossovers).insert((matrix.columns(), matrix.rows(), residence), crossover);
        Ok(crossover)
    }

    /// Whether the card has done it. Chunks that are wrong in number or length are left to the processor, which says so.
    pub(crate) fn on_card(
        &self,
        matrix: &Matrix,
        stripes: &mut [HostStripe<'_, '_, '_>],
        ready: Ready,
    ) -> bool {
        let Ok(device) = &self.device else { return false };
        let lens = stripes.iter().map(|stripe| stripe.outputs.first().map_or(0, |output| output.len()));
        let (len, shortest) = lens.fold((0, usize::MAX), |(sum, least), len| (sum + len, least.min(len)));
        if shortest == 0 {
            return false;
        }
        let is_reached = stripes.iter().all(|stripe| stripe.is_within_reach_of(device));
        let residence = if is_reached { Residence::Pinned } else { Residence::Host };
        if !self.forced && self.choose(matrix, len, residence).place == Place::Cpu || self.is_lost() {
            return false;
        }
        let pipeline = if self.waits { Some(lock(&self.pipeline)) } else { try_lock(&self.pipeline) };
        pipeline.is_some_and(|pipeline| self.run_on(pipeline, device, matrix, stripes, ready))
    }

    /// Waits until the card is free, and has it do `stripe` whatever was measured: whether it can.
    pub(crate) fn try_out(&self, matrix: &Matrix, stripe: HostStripe<'_, '_, '_>, ready: Ready) -> bool {
        let Ok(device) = &self.device else { return false };
        // Not while the card is locked: others need not wait for the compiler.
        if let Err(error) = self.combination(device, matrix, ready) {
            self.note_failure(&error);
            return false;
        }
        self.run_on(lock(&self.pipeline), device, matrix, &mut [stripe], ready)
    }

    /// Gives memory back that the card is not used with.
    pub(crate) fn release(&self) {
        *lock(&self.pipeline) = None;
    }

    fn run_on(
        &self,
        mut pipeline: MutexGuard<'_, Option<Pipeline>>,
        device: &Arc<Device>,
        matrix: &Matrix,
        stripes: &mut [HostStripe<'_, '_, '_>],
        ready: Ready,
    ) -> bool {
        let ran = on_pipeline(&mut pipeline, device, |pipeline| {
            pipeline.run(&self.combination(device, matrix, ready)?, stripes)
        });
        match &ran {
            Ok(_) => self.failing.store(false, Ordering::Relaxed),
            Err(CudaError::Code(_)) => {}
            Err(error) => self.note_failure(error),
        }
        ran.is_ok()
    }

    fn combination(
        &self,
        device: &Arc<Device>,
        matrix: &Matrix,
        ready: Ready,
    ) -> Result<Combination, CudaError> {
        if ready == Ready::Compiled {
            return device.best(matrix);
        }
        if let Some(kept) = lock(&self.loaded).find(matrix) {
            return Ok(kept);
        }
        let made = device.load(matrix)?;
        lock(&self.loaded).keep(matrix.clone(), made.clone());
        Ok(made)
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// One line for each time that the card begins to fail.
    fn note_failure(&self, error: &CudaError) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        if error.is_final() {
            self.lost.store(true, Ordering::Relaxed);
        }
        if !self.failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "the card failed; the processor takes over");
        }
    }
}

/// Copies chunks out, combines them and copies the outputs back.
///
/// # Safety
/// As [`Combination::run_on_device`].
#[expect(unsafe_code, reason = "addresses in a card's memory are the caller's word")]
unsafe fn by_processor(device: &Device, matrix: &Matrix, stripes: &[Stripe]) -> Result<(), CudaError> {
    for stripe in stripes {
        check_count("sources", matrix.columns(), stripe.sources.len())?;
        check_count("outputs", matrix.rows(), stripe.outputs.len())?;
        // SAFETY: the caller's.
        let read = |address: &u64| unsafe { device.context().read(*address, stripe.len as usize) };
        let sources = stripe.sources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let mut outputs = stripe.outputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut borrowed: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let combine = if matrix.adds() { Kernel::combine_add } else { Kernel::combine };
        combine(codec::kernel(), matrix.coefficients(), &sources, &mut borrowed)?;
        for (address, bytes) in stripe.outputs.iter().zip(&outputs) {
            // SAFETY: the caller's.
            unsafe { device.context().write(*address, bytes) }?;
        }
    }
    Ok(())
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec")
            .field("device", &self.device)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// None if it is taken.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// `work` with the pipeline, which is made if there is none yet.
fn on_pipeline<T>(
    pipeline: &mut Option<Pipeline>,
    device: &Arc<Device>,
    work: impl FnOnce(&mut Pipeline) -> Result<T, CudaError>,
) -> Result<T, CudaError> {
    let pipeline = match pipeline {
        Some(pipeline) => pipeline,
        none => none.insert(Pipeline::fitting(device)?),
    };
    work(pipeline)
}
