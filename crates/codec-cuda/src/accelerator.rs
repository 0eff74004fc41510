//! A card beside threads that may not wait: whatever takes long is done by a thread of its own, and the processor goes on meanwhile.
//!
//! What takes long is compiling a kernel (a second), loading one, and measuring from which size on the card is faster (some tenths).
//! So the first chunks of every code are the processor's; so are those that come while somebody else is at the card, and the next
//! [`REST`] operations after the card has failed. What a call waits for is its own copies and its own launch.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use codec::{Accelerator, Code, Plan, Work};

use crate::calibrate::LEAST_BYTES;
use crate::choice::Ready;
use crate::{Codec, CudaError, HostStripe, Matrix, Place, Residence};

/// Operations that are the processor's after the card has failed: each try may cost as much as thousands of them.
const REST: u32 = 1_000;
/// Codes and shapes that are known; what comes beyond is the processor's. A card keeps as many compiled kernels.
const MAX_NEEDS: usize = 64;
/// What may wait to be made ready.
const QUEUE: usize = 16;
/// Length of the chunks with which a kernel is tried.
const TRIAL_LEN: usize = 4096;

/// See the module.
pub struct CardAccelerator {
    shared: Arc<Shared>,
    wanted: SyncSender<(Need, Matrix)>,
}

struct Shared {
    codec: Codec,
    /// Of what is asked for, whether it is ready.
    needs: Mutex<BTreeMap<Need, bool>>,
    rest: AtomicU32,
    done: AtomicU64,
    bytes: AtomicU64,
    left: AtomicU64,
}

/// What has to be ready before the card may be used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A kernel of its own, for a matrix that comes again and again.
    Kernel(Matrix),
    /// What is known of all matrices of so many columns and rows, which are data of one kernel.
    Shape(usize, usize),
}

impl CardAccelerator {
    /// Card number `ordinal`, where it was measured to be faster than one thread.
    ///
    /// # Errors
    /// `NoDriver`, `NoDevice`, the driver's; `Driver` also if no thread could be started.
    pub fn new(ordinal: usize) -> Result<Self, CudaError> {
        Self::of(Codec::new(ordinal, NonZeroUsize::MIN))
    }

    /// The same without measuring, whatever comes: for tests and comparisons.
    ///
    /// # Errors
    /// As [`CardAccelerator::new`].
    pub fn always(ordinal: usize) -> Result<Self, CudaError> {
        Self::of(Codec::new(ordinal, NonZeroUsize::MIN).always_on_card())
    }

    fn of(codec: Codec) -> Result<Self, CudaError> {
        codec.device().map_err(Clone::clone)?;
        let shared = Arc::new(Shared {
            codec: codec.without_waiting(),
            needs: Mutex::default(),
            rest: AtomicU32::new(0),
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            left: AtomicU64::new(0),
        });
        let (wanted, queue) = sync_channel(QUEUE);
        let there = Arc::clone(&shared);
        thread::Builder::new()
            .name("card".to_owned())
            .spawn(move || there.make_ready(&queue))
            .map_err(|error| CudaError::Driver { reason: format!("no thread for it: {error}") })?;
        Ok(Self { shared, wanted })
    }

    /// Whether nothing is being made ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        lock(&self.shared.needs).values().all(|ready| *ready)
    }

    /// Whether the card has done it.
    fn attempt(
        &self,
        need: impl FnOnce() -> Option<(Need, Matrix, Ready)>,
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> bool {
        let bytes: usize = sources.iter().map(|source| source.len()).sum();
        let is_done = self.shared.is_worth(bytes)
            && need().is_some_and(|(need, matrix, ready)| {
                self.has(need, &matrix)
                    && self.shared.run(&matrix, ready, &mut HostStripe { sources, outputs })
            });
        self.shared.count(is_done, bytes);
        is_done
    }

    /// Whether this is ready; if it never was asked for, it is from now on.
    fn has(&self, need: Need, matrix: &Matrix) -> bool {
        let mut needs = lock(&self.shared.needs);
        if let Some(ready) = needs.get(&need) {
            return *ready;
        }
        if needs.len() < MAX_NEEDS {
            match self.wanted.try_send((need.clone(), matrix.clone())) {
                Ok(()) => _ = needs.insert(need, false),
                // It is asked for again when it is needed again.
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        }
        false
    }
}

impl Accelerator for CardAccelerator {
    fn encode(&self, code: &Code, data: &[&[u8]], parity: &mut [&mut [u8]]) -> bool {
        let need = || {
            let matrix = Matrix::encode(code).ok()?;
            Some((Need::Kernel(matrix.clone()), matrix, Ready::Compiled))
        };
        self.attempt(need, data, parity)
    }

    fn reconstruct(&self, plan: &Plan, sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool {
        self.attempt(|| loaded(Matrix::plan(plan).ok()?), sources, outputs)
    }

    fn combine(&self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]]) -> bool {
        let need = || loaded(Matrix::new(sources.len(), coefficients.to_vec()).ok()?);
        self.attempt(need, sources, outputs)
    }

    fn work(&self) -> Work {
        let Shared { done, bytes, left, codec, .. } = &*self.shared;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Work { done: read(done), bytes: read(bytes), left: read(left), faults: codec.faults() }
    }

    fn name(&self) -> String {
        self.shared.codec.device().map_or_else(ToString::to_string, |device| device.name().to_owned())
    }
}

fn loaded(matrix: Matrix) -> Option<(Need, Matrix, Ready)> {
    Some((Need::Shape(matrix.columns(), matrix.rows()), matrix, Ready::Loaded))
}

impl Shared {
    /// Whether so many bytes may be worth a card, whatever the code.
    fn is_worth(&self, bytes: usize) -> bool {
        bytes >= LEAST_BYTES || self.codec.is_forced()
    }

    /// Whether the card has done it. If it has failed it is left alone for a while.
    fn run(&self, matrix: &Matrix, ready: Ready, stripe: &mut HostStripe<'_, '_, '_>) -> bool {
        let rests = |left: u32| left.checked_sub(1);
        if self.rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rests).is_ok() {
            return false;
        }
        let is_done = self.codec.on_card(matrix, std::slice::from_mut(stripe), ready);
        if !is_done && self.codec.is_failing() {
            self.rest.store(REST, Ordering::Relaxed);
        }
        is_done
    }

    fn count(&self, is_done: bool, bytes: usize) {
        if is_done {
            self.done.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        } else {
            self.left.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the thread beside does, until nobody asks any more.
    fn make_ready(&self, queue: &Receiver<(Need, Matrix)>) {
        // The driver translates the generic kernel when it is loaded: who decodes has no time for that.
        if self.codec.is_forced()
            && let Ok(matrix) = Matrix::new(1, vec![1])
        {
            self.prepare(&matrix, Ready::Loaded);
        }
        while let Ok((need, matrix)) = queue.recv() {
            let ready = if matches!(need, Need::Kernel(_)) { Ready::Compiled } else { Ready::Loaded };
            self.prepare(&matrix, ready);
            lock(&self.needs).insert(need, true);
        }
    }

    fn prepare(&self, matrix: &Matrix, ready: Ready) {
        let (sources, outputs) = (matrix.columns(), matrix.rows());
        if !self.codec.is_forced() {
            let choice = self.codec.choose(matrix, usize::MAX / matrix.columns(), Residence::Host);
            let place = choice.place.name();
            tracing::info!(sources, outputs, place, why = choice.why, "where long chunks are combined");
            if choice.place == Place::Cpu {
                return self.codec.release();
            }
        }
        let chunk = vec![0x5a; TRIAL_LEN];
        let mut sums = vec![vec![0; TRIAL_LEN]; outputs];
        let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
        let stripe = HostStripe { sources: &vec![&chunk[..]; sources], outputs: &mut sums };
        let is_done = self.codec.try_out(matrix, stripe, ready);
        tracing::info!(sources, outputs, is_done, "a kernel for chunks is ready on the card");
    }
}

impl fmt::Debug for CardAccelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardAccelerator").field("codec", &self.shared.codec).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
