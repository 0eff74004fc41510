//! Kernels: linear combinations of byte strings, one back end per instruction set, chosen once.
//!
//! Whoever holds a [`Kernel`] may run it: the only source of kernels is [`kernels`], which lists the back ends whose
//! instructions this processor has and which agreed with the scalar back end in a self-test. A compiler that gets an
//! instruction wrong costs speed here, never parity.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod backend;
mod cache;
mod calibrate;
mod instruction_set;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod loops;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod prepared;
mod scalar;
mod selftest;
mod stopwatch;
mod tile;
mod transform;
mod trial;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

use thiserror::Error;

pub use calibrate::{Calibration, calibrations};
pub use instruction_set::Kernel;
pub(crate) use matrix::Matrix;
pub use prepared::Prepared;

use crate::CodeError;
use crate::checks::check_count;
use crate::chunks::Chunks;
use tile::Factors;

impl Kernel {
    /// `dst ^= src`.
    ///
    /// # Errors
    /// `Length` if the lengths differ.
    pub fn xor(self, dst: &mut [u8], src: &[u8]) -> Result<(), CodeError> {
        self.mul_add(dst, 1, src)
    }

    /// `dst = coefficient * src`.
    ///
    /// # Errors
    /// `Length` if the lengths differ.
    pub fn mul(self, dst: &mut [u8], coefficient: u8, src: &[u8]) -> Result<(), CodeError> {
        self.combine(&[coefficient], &[src], &mut [dst])
    }

    /// `dst ^= coefficient * src`.
    ///
    /// # Errors
    /// `Length` if the lengths differ.
    pub fn mul_add(self, dst: &mut [u8], coefficient: u8, src: &[u8]) -> Result<(), CodeError> {
        tile::add_product(self.0, coefficient, Chunks::maybe_empty(&[src], &mut [dst])?);
        Ok(())
    }

    /// `outputs[o] = sum_s coefficients[o * sources.len() + s] * sources[s]`. What the outputs held is overwritten.
    ///
    /// # Errors
    /// `Count` unless there is one coefficient for each pair, `Length` unless all byte strings are of one length.
    pub fn combine(
        self,
        coefficients: &[u8],
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let chunks = checked(coefficients, sources, outputs)?;
        let bytes = chunks.len() * (sources.len() + chunks.output_count());
        cache::run(self, bytes, chunks, &|chunks, past| {
            let mode = if past { tile::STREAM } else { tile::SET };
            tile::for_each(self.0, Factors::Raw(coefficients), chunks, mode);
        });
        Ok(())
    }

    /// `outputs[o] ^= sum_s coefficients[o * sources.len() + s] * sources[s]`: several sources and outputs in one pass.
    ///
    /// # Errors
    /// As [`Kernel::combine`].
    pub fn combine_add(
        self,
        coefficients: &[u8],
        sources: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let chunks = checked(coefficients, sources, outputs)?;
        tile::for_each(self.0, Factors::Raw(coefficients), chunks, tile::ADD);
        Ok(())
    }
}

/// Refuses all but a coefficient for each pair, and chunks of one length.
fn checked<'a, 's, 'o>(
    coefficients: &[u8],
    sources: &'a [&'s [u8]],
    outputs: &'a mut [&'o mut [u8]],
) -> Result<Chunks<'a, 's, 'o>, CodeError> {
    check_count("coefficients", sources.len() * outputs.len(), coefficients.len())?;
    Chunks::maybe_empty(sources, outputs)
}

/// Why a kernel was not selected.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SelectError {
    /// Unknown, or not usable here.
    #[error("no kernel '{name}' on this machine: it has {usable}")]
    Unusable {
        /// The name asked for.
        name: String,
        /// The names that would do.
        usable: String,
    },
    /// Another kernel is in use already.
    #[error(
        "kernel '{name}' asked for after '{current}' was put to use: select one before the first operation"
    )]
    Late {
        /// The name asked for.
        name: String,
        /// The kernel in use.
        current: &'static str,
    },
}

static CHOSEN: OnceLock<Kernel> = OnceLock::new();

/// The kernels that this machine can run and that passed their self-test. The scalar one is always the last. The first call
/// takes about a millisecond.
#[must_use]
pub fn kernels() -> &'static [Kernel] {
    static USABLE: OnceLock<Vec<Kernel>> = OnceLock::new();
    USABLE.get_or_init(|| candidates().into_iter().filter(|kernel| selftest::passes(*kernel)).collect())
}

/// The chosen kernel: the one of [`select`], else the one that [`calibrations`] finds fastest, from the first use on.
#[must_use]
pub fn kernel() -> Kernel {
    *CHOSEN.get_or_init(|| calibrations()[0].kernel)
}

/// Chooses the kernel called `name` for this process. To be called once, at start, by whoever reads the settings.
///
/// # Errors
/// `Unusable` if there is no such kernel here, `Late` if a different one is already in use.
pub fn select(name: &str) -> Result<(), SelectError> {
    let unusable = || SelectError::Unusable {
        name: name.to_owned(),
        usable: kernels().iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", "),
    };
    let wanted = *kernels().iter().find(|kernel| kernel.name() == name).ok_or_else(unusable)?;
    let current = *CHOSEN.get_or_init(|| wanted);
    if current == wanted {
        return Ok(());
    }
    Err(SelectError::Late { name: name.to_owned(), current: current.name() })
}

/// The back ends whose instructions this processor has.
fn candidates() -> Vec<Kernel> {
    #[cfg(target_arch = "x86_64")]
    let vector = [
        x86::avx512::gfni::detect(),
        x86::avx2::gfni::detect(),
        x86::avx512::lookup::detect(),
        x86::avx2::lookup::detect(),
        x86::ssse3::lookup::detect(),
    ];
    #[cfg(target_arch = "aarch64")]
    let vector = [neon::lookup::detect()];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<&'static Backend>; 0] = [];
    vector.into_iter().flatten().chain([&scalar::SCALAR]).map(Kernel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kernel_of_this_machine_fails_its_self_test() {
        assert_eq!(kernels(), candidates());
        assert_eq!(kernels().last().unwrap().name(), "scalar");
    }

    #[test]
    fn every_machine_of_today_has_a_vector_kernel() {
        let expected = if cfg!(target_arch = "x86_64") { "ssse3" } else { "neon" };
        let vectors = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        assert_eq!(kernels().iter().any(|kernel| kernel.name() == expected), vectors);
    }

    #[test]
    fn an_unknown_kernel_is_refused_with_the_usable_names() {
        let error = select("abacus").unwrap_err();
        assert!(error.to_string().contains("scalar"), "{error}");
    }

    #[test]
    fn a_kernel_in_use_can_be_selected_again_but_not_exchanged() {
        let current = kernel();
        assert_eq!(select(current.name()), Ok(()));
        for other in kernels().iter().filter(|other| **other != current) {
            let late = SelectError::Late { name: other.name().to_owned(), current: current.name() };
            assert_eq!(select(other.name()), Err(late));
        }
    }
}
