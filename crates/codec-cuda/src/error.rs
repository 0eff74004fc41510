//! Why a card did not do it. Whoever asks for a result whatever happens, asks [`Codec`](crate::Codec), which goes on without one.

use codec::CodeError;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use cudarc::nvrtc::CompileError;
use thiserror::Error;

/// Why a card did not do it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CudaError {
    /// There is no driver to be loaded.
    #[error("no CUDA driver on this machine (libcuda.so was not found)")]
    NoDriver,
    /// There is a driver, and it does not have this card.
    #[error("no CUDA device {ordinal}: {reason}")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// What the driver says.
        reason: String,
    },
    /// The card, or page-locked memory of the host, is used up. Nothing else is wrong.
    #[error("out of {place} memory: {bytes} bytes more were asked for")]
    OutOfMemory {
        /// `device` or `page-locked`.
        place: &'static str,
        /// How many.
        bytes: usize,
    },
    /// Nothing can be done with the card by this process any more.
    #[error("the CUDA context is lost: {reason}")]
    Lost {
        /// What the driver says.
        reason: String,
    },
    /// There is no compiler to be loaded: only the kernels that are shipped can be used.
    #[error("no CUDA compiler on this machine (libnvrtc.so was not found)")]
    NoCompiler,
    /// A kernel could not be compiled.
    #[error("NVRTC: {log}")]
    Compile {
        /// What the compiler says.
        log: String,
    },
    /// Any other answer of the driver.
    #[error("CUDA driver: {reason}")]
    Driver {
        /// What it says.
        reason: String,
    },
    /// The caller's mistake.
    #[error(transparent)]
    Code(#[from] CodeError),
}

impl CudaError {
    /// Whether the card is of no use any more, whatever is asked of it.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::NoDriver | Self::NoDevice { .. } | Self::Lost { .. })
    }
}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        use CUresult as Is;
        let reason = error.to_string();
        match error.0 {
            Is::CUDA_ERROR_OUT_OF_MEMORY => Self::OutOfMemory { place: "device", bytes: 0 },
            // Errors after which the context answers nothing else.
            Is::CUDA_ERROR_LAUNCH_FAILED
            | Is::CUDA_ERROR_ILLEGAL_ADDRESS
            | Is::CUDA_ERROR_MISALIGNED_ADDRESS
            | Is::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | Is::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | Is::CUDA_ERROR_INVALID_PC
            | Is::CUDA_ERROR_HARDWARE_STACK_ERROR
            | Is::CUDA_ERROR_ASSERT
            | Is::CUDA_ERROR_LAUNCH_TIMEOUT
            | Is::CUDA_ERROR_ECC_UNCORRECTABLE
            | Is::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | Is::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | Is::CUDA_ERROR_DEINITIALIZED
            | Is::CUDA_ERROR_DEVICE_UNAVAILABLE
            | Is::CUDA_ERROR_UNKNOWN => Self::Lost { reason },
            _ => Self::Driver { reason },
        }
    }
}

impl From<CompileError> for CudaError {
    fn from(error: CompileError) -> Self {
        let log = match error {
            CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
            other => other.to_string(),
        };
        Self::Compile { log }
    }
}
