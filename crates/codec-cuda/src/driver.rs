//! The driver, as far as the crate uses it: everything that is unsafe about a card.
//!
//! Addresses in a card's memory are plain numbers. What is asked of a [`Stream`] happens later: memory that it refers to must
//! stay until somebody has waited.
#![allow(unsafe_code)]

use std::slice;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent_flags, is_culib_present};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, LaunchConfig, PushKernelArg, result,
};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts, sys as nvrtc};

use crate::CudaError;
use crate::kernels::THREADS;

/// Bytes that a thread loads at a time.
pub(crate) const VECTOR: usize = 16;

/// A card, in use by this process.
#[derive(Debug)]
pub(crate) struct Context(Arc<CudaContext>);

impl Context {
    /// Card number `ordinal`.
    pub(crate) fn open(ordinal: usize) -> Result<Self, CudaError> {
        // SAFETY: loads a library and looks whether that worked.
        if !unsafe { is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        let refused = |error: result::DriverError| CudaError::NoDevice { ordinal, reason: error.to_string() };
        let context = CudaContext::new(ordinal).map_err(refused)?;
        // SAFETY: order between streams is made here, by waiting; no memory of cudarc's is in use.
        unsafe { context.disable_event_tracking() };
        Ok(Self(context))
    }

    pub(crate) fn name(&self) -> Result<String, CudaError> {
        Ok(self.0.name()?)
    }

    /// Major and minor number.
    pub(crate) fn compute_capability(&self) -> Result<(i32, i32), CudaError> {
        Ok(self.0.compute_capability()?)
    }

    /// Bytes of its memory that are free, and all.
    pub(crate) fn memory(&self) -> Result<(usize, usize), CudaError> {
        Ok(self.0.mem_get_info()?)
    }

    pub(crate) fn new_stream(&self) -> Result<Stream, CudaError> {
        Ok(Stream(self.0.new_stream()?))
    }

    pub(crate) fn allocate(&self, len: usize) -> Result<Memory, CudaError> {
        self.0.bind_to_thread()?;
        // SAFETY: freed once, by `Memory`.
        let address = unsafe { result::malloc_sync(whole_vectors(len)) }
            .map_err(|error| for_bytes(error, "device", len))?;
        Ok(Memory { address, len, context: self.0.clone() })
    }

    /// Page-locked memory, which the card copies from and to by itself; zeros.
    pub(crate) fn allocate_pinned(&self, len: usize) -> Result<Pinned, CudaError> {
        self.0.bind_to_thread()?;
        // SAFETY: freed once, by `Pinned`; all of it is written before it can be read.
        let start = unsafe {
            let start = result::malloc_host(whole_vectors(len), 0)
                .map_err(|error| for_bytes(error, "page-locked", len))?;
            start.cast::<u8>().write_bytes(0, len);
            start.cast::<u8>()
        };
        Ok(Pinned { start, len, context: self.0.clone() })
    }

    /// A copy of `len` bytes at `address`.
    ///
    /// # Safety
    /// They are memory of this card that stays meanwhile.
    pub(crate) unsafe fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, CudaError> {
        let mut bytes = vec![0; len];
        let stream = self.new_stream()?;
        // SAFETY: the caller's; waited for.
        let copied = unsafe { stream.copy_out(&mut bytes, address) };
        stream.wait().and(copied)?;
        Ok(bytes)
    }

    /// Copies `bytes` to `address`.
    ///
    /// # Safety
    /// As many bytes there are memory of this card that stays meanwhile.
    pub(crate) unsafe fn write(&self, address: u64, bytes: &[u8]) -> Result<(), CudaError> {
        let stream = self.new_stream()?;
        // SAFETY: the caller's; waited for.
        let copied = unsafe { stream.copy_in(address, bytes) };
        stream.wait().and(copied)
    }

    /// Loads PTX.
    pub(crate) fn load(&self, ptx: Ptx) -> Result<Module, CudaError> {
        Ok(Module(self.0.load_module(ptx)?))
    }

    /// Compiles a kernel for this card.
    pub(crate) fn compile(&self, source: &str) -> Result<Module, CudaError> {
        let (major, minor) = self.compute_capability()?;
        self.load(compile(source, &format!("compute_{major}{minor}"))?)
    }
}

/// Compiles `source`, one of the kernels', to PTX for `architecture`, such as `compute_90`.
///
/// # Errors
/// `NoCompiler`; the compiler's.
pub fn compile_to_ptx(source: &str, architecture: &str) -> Result<String, CudaError> {
    Ok(compile(source, architecture)?.to_src())
}

fn compile(source: &str, architecture: &str) -> Result<Ptx, CudaError> {
    // SAFETY: loads a library and looks whether that worked.
    if !unsafe { nvrtc::is_culib_present() } {
        return Err(CudaError::NoCompiler);
    }
    let options = vec![
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_owned(),
        "-default-device".to_owned(),
    ];
    Ok(compile_ptx_with_opts(source, CompileOptions { options, ..CompileOptions::default() })?)
}

/// Room for `len` bytes: kernels read whole vectors.
fn whole_vectors(len: usize) -> usize {
    len.max(1).next_multiple_of(VECTOR)
}

fn for_bytes(error: result::DriverError, place: &'static str, bytes: usize) -> CudaError {
    match error.into() {
        CudaError::OutOfMemory { .. } => CudaError::OutOfMemory { place, bytes },
        other => other,
    }
}

/// Kernels, ready to run.
#[derive(Debug)]
pub(crate) struct Module(Arc<CudaModule>);

impl Module {
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel, CudaError> {
        Ok(Kernel(self.0.load_function(name)?))
    }
}

/// One of `kernels/`.
#[derive(Clone, Debug)]
pub(crate) struct Kernel(CudaFunction);

/// Arguments of every kernel in `kernels/`, and how many blocks there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    /// Address of the stripes.
    pub(crate) stripes: u64,
    pub(crate) stripe_count: u32,
    /// Tiles of every stripe; 0 if they differ.
    pub(crate) tiles_each: u32,
    /// Address of the addresses of their chunks.
    pub(crate) chunks: u64,
    /// Address of the coefficients' tables; 0 for a kernel that knows its coefficients.
    pub(crate) tables: u64,
    pub(crate) sources: u32,
    /// All outputs of a stripe.
    pub(crate) outputs: u32,
    /// The first one that is computed by a kernel that computes some.
    pub(crate) first_output: u32,
    pub(crate) blocks: u32,
}

/// What is done one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Arc<CudaStream>);

impl Stream {
    /// Copies `from` to the card.
    ///
    /// # Safety
    /// `to` and as many bytes are in a [`Memory`]. Both stay, and `from` is not written, until the stream has been waited for.
    pub(crate) unsafe fn copy_in(&self, to: u64, from: &[u8]) -> Result<(), CudaError> {
        self.0.context().bind_to_thread()?;
        // SAFETY: the caller's.
        Ok(unsafe { result::memcpy_htod_async(to, from, self.0.cu_stream()) }?)
    }

    /// Copies from the card to `to`.
    ///
    /// # Safety
    /// `from` and as many bytes are in a [`Memory`]. Both stay, and nobody looks at `to`, until the stream has been waited for.
    pub(crate) unsafe fn copy_out(&self, to: &mut [u8], from: u64) -> Result<(), CudaError> {
        self.0.context().bind_to_thread()?;
        // SAFETY: the caller's.
        Ok(unsafe { result::memcpy_dtoh_async(to, from, self.0.cu_stream()) }?)
    }

    /// Copies within the card.
    ///
    /// # Safety
    /// Both ranges are in a [`Memory`] that stays until the stream has been waited for.
    pub(crate) unsafe fn copy_within(&self, to: u64, from: u64, len: usize) -> Result<(), CudaError> {
        self.0.context().bind_to_thread()?;
        // SAFETY: the caller's.
        Ok(unsafe { result::memcpy_dtod_async(to, from, len, self.0.cu_stream()) }?)
    }

    /// Runs `kernel`.
    ///
    /// # Safety
    /// The arguments are what the kernel says that they are, and all that they refer to stays until the stream has been waited for.
    pub(crate) unsafe fn launch(&self, kernel: &Kernel, launch: Launch) -> Result<(), CudaError> {
        let config =
            LaunchConfig { grid_dim: (launch.blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
        let mut builder = self.0.launch_builder(&kernel.0);
        builder.arg(&launch.stripes).arg(&launch.stripe_count).arg(&launch.tiles_each);
        builder.arg(&launch.chunks).arg(&launch.tables);
        builder.arg(&launch.sources).arg(&launch.outputs).arg(&launch.first_output);
        // SAFETY: the caller's; the driver reads the arguments before it returns.
        unsafe { builder.launch(config) }?;
        Ok(())
    }

    /// Where the stream is now.
    pub(crate) fn mark(&self) -> Result<Mark, CudaError> {
        Ok(Mark(self.0.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?))
    }

    /// Waits until everything is done.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        Ok(self.0.synchronize()?)
    }
}

/// A place in a stream.
#[derive(Debug)]
pub(crate) struct Mark(CudaEvent);

impl Mark {
    /// Waits until everything before it is done.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        Ok(self.0.synchronize()?)
    }

    /// Whether everything before it is done.
    pub(crate) fn has_passed(&self) -> Result<bool, CudaError> {
        Ok(self.0.try_is_complete()?)
    }

    /// Seconds on the card's own clock from `self` to `end`, both of which have passed.
    pub(crate) fn seconds_to(&self, end: &Self) -> Result<f64, CudaError> {
        Ok(f64::from(self.0.elapsed_ms(&end.0)?) / 1e3)
    }
}

/// Memory of a card; whatever was there before is in it.
#[derive(Debug)]
pub(crate) struct Memory {
    address: u64,
    len: usize,
    context: Arc<CudaContext>,
}

impl Memory {
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to `at`, and waits.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> Result<(), CudaError> {
        let to = self.address_of(at, bytes.len());
        let stream = Stream(self.context.new_stream()?);
        // SAFETY: within this memory, and waited for.
        let copied = unsafe { stream.copy_in(to, bytes) };
        stream.wait().and(copied)
    }

    /// Copies what is at `at` to `bytes`, and waits.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub(crate) fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        let from = self.address_of(at, bytes.len());
        let stream = Stream(self.context.new_stream()?);
        // SAFETY: within this memory, and waited for.
        let copied = unsafe { stream.copy_out(bytes, from) };
        stream.wait().and(copied)
    }

    /// Address of the `len` bytes at `at`.
    ///
    /// # Panics
    /// If they are beyond the end.
    pub(crate) fn address_of(&self, at: usize, len: usize) -> u64 {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes at {at} of {}",
            self.len
        );
        self.address + at as u64
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and the driver waits for whatever still uses it. A lost context has lost its memory, too.
        let freed = self.context.bind_to_thread().and_then(|()| unsafe { result::free_sync(self.address) });
        if let Err(error) = freed {
            tracing::debug!(%error, "device memory was not freed");
        }
    }
}

/// Page-locked memory of the host.
#[derive(Debug)]
pub(crate) struct Pinned {
    start: *mut u8,
    len: usize,
    context: Arc<CudaContext>,
}

// SAFETY: it is memory like a vector's.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: it is all there and was written.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and the driver waits for whatever still uses it.
        let freed =
            self.context.bind_to_thread().and_then(|()| unsafe { result::free_host(self.start.cast()) });
        if let Err(error) = freed {
            tracing::debug!(%error, "page-locked memory was not freed");
        }
    }
}
