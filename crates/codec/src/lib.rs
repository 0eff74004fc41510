//! Linear codes over GF(2^8): encode, apply deltas, reconstruct, check, and the kernels that do the arithmetic.
//!
//! Three layers, each using only the one below:
//! - [`Code`] is a matrix: `k` data roles (the identity) and `m` parity roles. It answers *which* linear
//!   combination is wanted, as a [`Plan`], and can run it. A [`Scheme`] is a code's name, such as `lrc(12,2,2)`; [`Code::of`] makes the code.
//! - [`Kernel`] computes linear combinations of byte strings with one instruction set. All kernels give
//!   bit-identical results; each is tested against the scalar one before it may be used.
//! - [`gf`] is the field.
//!
//! The crate knows nothing of keys, groups, nodes or time. `docs/coding.md` derives the codes.
//!
//! # Encoding, losing, repairing
//!
//! Every chunk is its own slice; they are of one length, which need not be a multiple of anything. Nothing is copied.
//!
//! ```
//! use codec::Code;
//!
//! let code = Code::rs(3, 2)?;
//! let data: [&[u8]; 3] = [b"some", b"byte", b"s..."];
//! let (mut p, mut q) = ([0; 4], [0; 4]);
//! code.encode(&data, &mut [&mut p, &mut q])?;
//!
//! // Roles 0 and 3 (the first parity) are lost: both are computed in one pass.
//! let (mut zero, mut three) = ([0; 4], [0; 4]);
//! code.reconstruct(&[(1, data[1]), (2, data[2]), (4, &q)], &mut [(0, &mut zero), (3, &mut three)])?;
//! assert_eq!((&zero, three), (b"some", p));
//! # Ok::<(), codec::CodeError>(())
//! ```
//!
//! # Changing a few bytes
//!
//! ```
//! use codec::Code;
//!
//! let code = Code::lrc(4, 2, 2)?;
//! let mut data = [*b"alpha", *b"beta.", *b"gamma", *b"delta"];
//! let mut parity = [[0; 5]; 4];
//! code.encode(&data.each_ref().map(|d| &d[..]), &mut parity.each_mut().map(|p| &mut p[..]))?;
//!
//! // Bytes 1 and 2 of role 2 change. The delta is all that the parities need.
//! let delta = [b'a' ^ b'A', b'm' ^ b'M'];
//! data[2][1..3].copy_from_slice(b"AM");
//! code.update(2, &delta, &mut parity.each_mut().map(|p| &mut p[1..3]))?;
//! assert_eq!(code.verify(&data.each_ref().map(|d| &d[..]), &parity.each_ref().map(|p| &p[..]))?, []);
//! # Ok::<(), codec::CodeError>(())
//! ```
//!
//! # Repair in pieces
//!
//! A [`Plan`] is a list of coefficients, so any number of nodes can share the work: each adds what it has to what it was
//! sent, with [`combine_add`].
//!
//! ```
//! use codec::{Code, combine_add};
//!
//! let code = Code::rs(2, 2)?;
//! let (mut p, mut q) = ([0; 2], [0; 2]);
//! code.encode(&[b"ab", b"xy"], &mut [&mut p, &mut q])?;
//! let plan = code.cheapest_plan(&[0, 1], &[1])?;
//! assert_eq!(plan.sources(), [2, 3]);
//!
//! let mut sum = [0; 2];
//! combine_add(&mut sum, &[plan.coefficient(0, 0)], &[&p])?; // at the node with role 2
//! combine_add(&mut sum, &[plan.coefficient(0, 1)], &[&q])?; // at the node with role 3
//! assert_eq!(&sum, b"xy");
//! # Ok::<(), codec::CodeError>(())
//! ```
//!
//! # What goes wrong
//!
//! All that a caller can get wrong is a [`CodeError`] that says what it was, and nothing is written then. Only what looks up a
//! coefficient by its place ([`Code::coefficient`], [`Code::row`], [`Plan::coefficient`]) panics beyond the end, as an index does. No
//! call starts a thread, but for [`Code::encode_with_threads`] and [`Plan::run_with_threads`].

mod cache;
mod checks;
mod chunks;
mod code;
mod coder;
pub mod conformance;
mod constructions;
mod costs;
mod error;
mod fused;
mod generators;
pub mod gf;
mod helpers;
mod kernel;
mod lch;
mod lrc;
#[cfg(test)]
mod minors;
mod plan;
mod points;
mod solve;
mod threads;
mod verify;

pub use cache::PlanCache;
pub use code::Code;
pub use coder::{Accelerator, Coder, PROCESSOR, Work};
pub use constructions::MAX_ROLES;
pub use error::CodeError;
pub use fused::Fused;
pub use kernel::{Calibration, Kernel, Prepared, SelectError, calibrations, kernel, kernels, select};
pub use plan::Plan;
pub use scheme::{Family, Scheme, UnknownFamily, UnknownScheme};
pub use verify::Mismatch;

/// `dst ^= src` with the chosen kernel.
///
/// # Errors
/// `Length` if the lengths differ.
pub fn xor(dst: &mut [u8], src: &[u8]) -> Result<(), CodeError> {
    kernel().xor(dst, src)
}

/// `dst ^= coefficient * src`, byte by byte in GF(2^8), with the chosen kernel.
///
/// # Errors
/// `Length` if the lengths differ.
pub fn mul_add(dst: &mut [u8], coefficient: u8, src: &[u8]) -> Result<(), CodeError> {
    kernel().mul_add(dst, coefficient, src)
}

/// `dst = coefficient * src`, byte by byte in GF(2^8), with the chosen kernel.
///
/// # Errors
/// `Length` if the lengths differ.
pub fn mul(dst: &mut [u8], coefficient: u8, src: &[u8]) -> Result<(), CodeError> {
    kernel().mul(dst, coefficient, src)
}

/// `dst ^= sum_s coefficients[s] * sources[s]`: what a node of a coding graph does with all that it was sent. `dst` is
/// read and written once for up to 32 sources.
///
/// # Errors
/// `Count` unless there is one coefficient for each source, `Length` unless all byte strings are of one length,
/// `Empty` if that is 0.
pub fn combine_add(dst: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) -> Result<(), CodeError> {
    checks::check_count("coefficients", sources.len(), coefficients.len())?;
    checks::check_lengths(sources, &mut [&mut *dst])?;
    kernel().combine_add(coefficients, sources, &mut [dst])
}
