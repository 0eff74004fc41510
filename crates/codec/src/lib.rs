//! Linear codes over GF(2^8): encode, apply deltas, reconstruct, and the kernels that do the arithmetic.
//!
//! Three layers, each using only the one below:
//! - [`Code`] is a matrix: `k` data roles (the identity) and `m` parity roles. It answers *which* linear
//!   combination is wanted, as a [`Plan`], and can run it.
//! - [`Kernel`] computes linear combinations of byte strings with one instruction set. All kernels give
//!   bit-identical results; each is tested against the scalar one before it may be used.
//! - [`gf`] is the field.
//!
//! The crate knows nothing of keys, groups, nodes or time. A delta needs no operation of its own: parity `j`
//! absorbs a change of data role `i` by `mul_add(parity, code.coefficient(j, i), old ^ new)`.

mod cache;
mod code;
mod constructions;
mod error;
mod family;
mod fused;
pub mod gf;
mod helpers;
mod kernel;
mod lrc;
#[cfg(test)]
mod minors;
mod plan;
mod scheme;
mod solve;
mod threads;
mod verify;

pub use cache::PlanCache;
pub use code::Code;
pub use constructions::MAX_ROLES;
pub use error::CodeError;
pub use family::{Family, UnknownFamily};
pub use fused::Fused;
pub use kernel::{Kernel, SelectError, kernel, kernels, select};
pub use plan::Plan;
pub use scheme::{Scheme, UnknownScheme};
pub use verify::Mismatch;

/// `dst ^= src` with the chosen kernel.
///
/// # Panics
/// If the lengths differ.
pub fn xor(dst: &mut [u8], src: &[u8]) {
    kernel().xor(dst, src);
}

/// `dst ^= coefficient * src`, byte by byte in GF(2^8), with the chosen kernel.
///
/// # Panics
/// If the lengths differ.
pub fn mul_add(dst: &mut [u8], coefficient: u8, src: &[u8]) {
    kernel().mul_add(dst, coefficient, src);
}

/// `dst = coefficient * src`, byte by byte in GF(2^8), with the chosen kernel.
///
/// # Panics
/// If the lengths differ.
pub fn mul(dst: &mut [u8], coefficient: u8, src: &[u8]) {
    kernel().mul(dst, coefficient, src);
}

/// `dst ^= sum_s coefficients[s] * sources[s]`: what a node of a coding graph does with all that it was sent. `dst` is
/// read and written once for up to 32 sources.
///
/// # Errors
/// `Count` unless there is one coefficient for each source, `Length` unless all byte strings are of one length,
/// `Empty` if that is 0.
pub fn combine_add(dst: &mut [u8], coefficients: &[u8], sources: &[&[u8]]) -> Result<(), CodeError> {
    plan::check_count("coefficients", sources.len(), coefficients.len())?;
    plan::check_lengths(sources, &[&mut *dst])?;
    kernel().combine_add(coefficients, sources, &mut [dst]);
    Ok(())
}
