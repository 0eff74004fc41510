//! The codec on an NVIDIA card: the same matrices as [`codec`], the same bytes.
//!
//! Nothing of CUDA is needed to build, and nothing happens where there is no card: [`Device::open`] says why not. The driver is loaded
//! when it is asked for; so is NVRTC, the compiler, where there is one.
//!
//! From the bottom up:
//! - `kernels/` holds the kernels, in CUDA C++. A [`Matrix`] is run by the generic kernel, which is shipped as PTX and takes the
//!   matrix as data ([`Device::load`]), or by one that NVRTC compiles for it, with its coefficients as constants
//!   ([`Device::compile`]). `docs/cuda.md` says how they multiply, and what that was measured to cost.
//! - [`Combination::run_on_device`] combines chunks in the card's memory: many stripes of different lengths in one launch, no copies.
//! - [`Pipeline`] combines chunks in the host's memory: copies in, kernels and copies out overlap.
//! - [`Codec`] decides between the card and the processor, and goes on with the processor when the card fails.
//! - [`CardAccelerator`] is that for threads that may not wait for a compiler or a measurement: a server's workers.
//!
//! ```
//! use codec_cuda::{Codec, Place};
//!
//! let codec = Codec::new(0, Codec::all_threads());
//! let code = codec::Code::rs(3, 2)?;
//! let data: [&[u8]; 3] = [b"some", b"byte", b"s..."];
//! let (mut p, mut q) = ([0; 4], [0; 4]);
//! let place = codec.encode(&code, &data, &mut [&mut p, &mut q])?;
//! assert_eq!(place, Place::Cpu, "so few bytes are not worth a card, even where there is one");
//! # Ok::<(), codec::CodeError>(())
//! ```

mod accelerator;
mod calibrate;
mod choice;
mod combination;
mod depth;
mod device;
mod driver;
mod error;
mod kept;
mod kernels;
mod lane;
mod matrix;
mod pipeline;
mod place;
mod rates;
mod readout;
mod schedule;

pub use accelerator::CardAccelerator;
pub use choice::Codec;
pub use combination::{Batch, Combination, Stripe};
pub use depth::Depth;
pub use device::{Device, DeviceBuffer, PinnedBuffer};
pub use driver::compile_to_ptx;
pub use error::CudaError;
pub use kernels::{GENERIC_ARCHITECTURE, GENERIC_PTX, generic_source, operations, specialised_source};
pub use matrix::Matrix;
pub use pipeline::{HostStripe, Pipeline, Span, Split, Stage};
pub use place::{Choice, Place, Residence};
pub use rates::CopyRates;
pub use readout::Readout;
