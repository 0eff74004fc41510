//! A card and what is loaded into it: kernels by matrix, and memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::nvrtc::Ptx;

use crate::combination::{Combination, Part};
use crate::driver::{Context, Kernel, Memory, Pinned, VECTOR};
use crate::kept::Kept;
use crate::kernels;
use crate::lane::Lane;
use crate::{CudaError, Matrix};

/// Lanes that are kept: as many callers at a time launch without making one.
const MAX_LANES: usize = 8;

/// A card, in use by this process.
pub struct Device {
    context: Context,
    name: String,
    /// The kernels that replace their outputs, and that add to them.
    generic: Mutex<Option<[Kernel; 2]>>,
    compiled: Mutex<Kept<Kernel>>,
    /// Page-locked memory that was handed out: first address and length.
    pinned: Mutex<BTreeMap<usize, usize>>,
    /// Those that nobody has.
    lanes: Mutex<Vec<Lane>>,
}

impl Device {
    /// Card number `ordinal`, as the driver counts them.
    ///
    /// # Errors
    /// `NoDriver`, `NoDevice`.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, CudaError> {
        let context = Context::open(ordinal)?;
        let name = context.name()?;
        Ok(Arc::new(Self {
            context,
            name,
            generic: Mutex::default(),
            compiled: Mutex::default(),
            pinned: Mutex::default(),
            lanes: Mutex::default(),
        }))
    }

    /// Its name, as the maker has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of its memory that are free, and all.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<(usize, usize), CudaError> {
        self.context.memory()
    }

    /// Memory of the card.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn allocate(self: &Arc<Self>, len: usize) -> Result<DeviceBuffer, CudaError> {
        Ok(DeviceBuffer(self.context.allocate(len)?))
    }

    /// Page-locked memory of the host, all zeros. The card copies from and to it by itself, so host operations on chunks in it need
    /// no copies by the processor.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn allocate_pinned(self: &Arc<Self>, len: usize) -> Result<PinnedBuffer, CudaError> {
        let memory = self.context.allocate_pinned(len)?;
        lock(&self.pinned).insert(memory.bytes().as_ptr() as usize, len);
        Ok(PinnedBuffer { memory, device: self.clone() })
    }

    /// `matrix`, ready to run, by the generic kernel: at once.
    ///
    /// # Errors
    /// The driver's.
    pub fn load(self: &Arc<Self>, matrix: &Matrix) -> Result<Combination, CudaError> {
        let [set, add] = self.generic()?;
        let kernel = if matrix.adds() { add } else { set };
        Combination::generic(self, matrix, kernel)
    }

    /// `matrix`, ready to run, by kernels that are compiled for it and kept: faster, and takes a second or more the first time. Matrices
    /// too large for that get the generic kernel.
    ///
    /// # Errors
    /// `NoCompiler`; the compiler's and the driver's.
    pub fn compile(self: &Arc<Self>, matrix: &Matrix) -> Result<Combination, CudaError> {
        let Some(matrices) = kernels::parts(matrix) else { return self.load(matrix) };
        let mut first_output = 0;
        let mut parts = Vec::new();
        for part in matrices {
            let rows = part.rows() as u32;
            parts.push(Part { kernel: self.kernel_of(part)?, first_output });
            first_output += rows;
        }
        Ok(Combination::compiled(self, matrix, parts))
    }

    fn kernel_of(&self, part: Matrix) -> Result<Kernel, CudaError> {
        if let Some(kernel) = lock(&self.compiled).find(&part) {
            return Ok(kernel);
        }
        // Not while the lock is held: others need not wait for the compiler.
        let module = self.context.compile(&kernels::specialised_source(&part))?;
        let kernel = module.kernel("combine")?;
        lock(&self.compiled).keep(part, kernel.clone());
        Ok(kernel)
    }

    /// The best that can be had: compiled if there is a compiler.
    ///
    /// # Errors
    /// The driver's.
    pub fn best(self: &Arc<Self>, matrix: &Matrix) -> Result<Combination, CudaError> {
        match self.compile(matrix) {
            Err(CudaError::NoCompiler | CudaError::Compile { .. }) => self.load(matrix),
            done => done,
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Lends a lane with room for `len` bytes of descriptions. `work` waits for its stream, whatever happens.
    pub(crate) fn with_lane<T>(
        &self,
        len: usize,
        work: impl FnOnce(&mut Lane) -> Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        let kept = {
            let mut lanes = lock(&self.lanes);
            lanes.iter().position(|lane| lane.room() >= len).map(|at| lanes.swap_remove(at))
        };
        let mut lane = kept.map_or_else(|| Lane::new(&self.context, len), Ok)?;
        let done = work(&mut lane);
        let mut lanes = lock(&self.lanes);
        if done.is_ok() && lanes.len() < MAX_LANES {
            lanes.push(lane);
        }
        done
    }

    /// Whether the card can read and write all of `bytes` where they are: they are page-locked, and begin at a whole vector. Else they
    /// would be written in words, each of which crosses the bus alone.
    pub(crate) fn can_reach(&self, bytes: &[u8]) -> bool {
        self.is_pinned(bytes) && bytes.as_ptr().addr().is_multiple_of(VECTOR)
    }

    /// Whether all of `bytes` is page-locked.
    fn is_pinned(&self, bytes: &[u8]) -> bool {
        let start = bytes.as_ptr() as usize;
        let pinned = lock(&self.pinned);
        let before = pinned.range(..=start).next_back();
        before.is_some_and(|(first, len)| start + bytes.len() <= first + len)
    }

    /// Loaded at the first use that succeeds.
    fn generic(&self) -> Result<[Kernel; 2], CudaError> {
        let mut generic = lock(&self.generic);
        if let Some(kernels) = &*generic {
            return Ok(kernels.clone());
        }
        let module = self.context.load(Ptx::from_src(kernels::GENERIC_PTX))?;
        Ok(generic.insert([module.kernel("combine_set")?, module.kernel("combine_add")?]).clone())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Memory of a card.
#[derive(Debug)]
pub struct DeviceBuffer(Memory);

impl DeviceBuffer {
    /// Where it is, in the card's own addresses.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `bytes` to `at`, and waits.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), CudaError> {
        self.0.write(at, bytes)
    }

    /// Copies what is at `at` to `bytes`, and waits.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        self.0.read(at, bytes)
    }

    /// Address of the `len` bytes at `at`, as a chunk of a [`Stripe`](crate::Stripe).
    ///
    /// # Panics
    /// If they are beyond the end.
    #[must_use]
    pub fn address_of(&self, at: usize, len: usize) -> u64 {
        self.0.address_of(at, len)
    }
}

/// Page-locked memory of the host.
#[derive(Debug)]
pub struct PinnedBuffer {
    memory: Pinned,
    device: Arc<Device>,
}

impl PinnedBuffer {
    /// What is in it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// What is in it, to be changed.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        lock(&self.device.pinned).remove(&(self.memory.bytes().as_ptr() as usize));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
