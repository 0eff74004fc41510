//! Kernels: linear combinations of byte strings, one back end per instruction set, chosen once.
//!
//! Whoever holds a [`Kernel`] may run it: the only source of kernels is [`kernels`], which lists the back ends whose
//! instructions this processor has and which agreed with the scalar back end in a self-test. A compiler that gets an
//! instruction wrong costs speed here, never parity.

mod cache;
mod calibrate;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod selftest;
mod tile;
mod transform;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt;
use std::sync::OnceLock;

use thiserror::Error;

pub use calibrate::{Calibration, calibrations};
pub(crate) use matrix::Matrix;
pub(crate) use transform::{Transform, point};

use tile::{Factors, Tile};

use transform::Job;

use crate::chunks::Chunks;

/// What a back end implements. Lengths were checked by [`Kernel`]; coefficients 0 and 1 of `scale` were taken care of.
trait Backend: Sync {
    /// As users write it.
    fn name(&self) -> &'static str;

    /// `dst ^= src`, of equal lengths.
    fn xor(&self, dst: &mut [u8], src: &[u8]);

    /// `dst = c * src`, of equal lengths.
    fn mul(&self, dst: &mut [u8], c: u8, src: &[u8]);

    /// `dst ^= c * src`, of equal lengths.
    fn mul_add(&self, dst: &mut [u8], c: u8, src: &[u8]);

    /// How the back end wants to have coefficient `c` in memory.
    fn stored(&self, c: u8) -> u64;

    /// A few linear combinations of a few sources.
    fn combine(&self, tile: Tile<'_, '_>);

    /// Whether the back end has transforms. The scalar one has not: a matrix is the simpler truth.
    fn has_transforms(&self) -> bool {
        false
    }

    /// A transform. To be asked for only of a back end that has them.
    fn transform(&self, _: Job<'_, '_>) {
        unreachable!("{} has no transforms", self.name());
    }
}

/// One way to compute in GF(2^8) on this machine.
#[derive(Clone, Copy)]
pub struct Kernel(&'static dyn Backend);

impl Kernel {
    /// As users write it: `scalar`, `ssse3`, `avx2`, `avx2-gfni`, `avx512`, `avx512-gfni`, `neon`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// `dst ^= src`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn xor(self, dst: &mut [u8], src: &[u8]) {
        assert_eq!(dst.len(), src.len(), "byte strings of different lengths");
        self.0.xor(dst, src);
    }

    /// `dst = coefficient * src`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn mul(self, dst: &mut [u8], coefficient: u8, src: &[u8]) {
        assert_eq!(dst.len(), src.len(), "byte strings of different lengths");
        match coefficient {
            0 => dst.fill(0),
            1 => dst.copy_from_slice(src),
            c => self.0.mul(dst, c, src),
        }
    }

    /// `dst ^= coefficient * src`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn mul_add(self, dst: &mut [u8], coefficient: u8, src: &[u8]) {
        assert_eq!(dst.len(), src.len(), "byte strings of different lengths");
        match coefficient {
            0 => {}
            1 => self.0.xor(dst, src),
            c => self.0.mul_add(dst, c, src),
        }
    }

    /// `outputs[o] = sum_s coefficients[o * sources.len() + s] * sources[s]`. What the outputs held is overwritten.
    ///
    /// # Panics
    /// Unless there is one coefficient for each pair and all byte strings are of one length.
    pub fn combine(self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        self.run(coefficients, sources, outputs, false);
    }

    /// `outputs[o] ^= sum_s coefficients[o * sources.len() + s] * sources[s]`: several sources and outputs in one pass.
    ///
    /// # Panics
    /// As [`Kernel::combine`].
    pub fn combine_add(self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        self.run(coefficients, sources, outputs, true);
    }

    fn run(self, coefficients: &[u8], sources: &[&[u8]], outputs: &mut [&mut [u8]], add: bool) {
        assert_eq!(
            coefficients.len(),
            sources.len() * outputs.len(),
            "one coefficient for each source and output"
        );
        let Ok(chunks) = Chunks::maybe_empty(sources, outputs) else {
            panic!("byte strings of different lengths");
        };
        tile::for_each(self.0, Factors::Raw(coefficients), chunks, add);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
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
        x86::Avx512Gfni::detect(),
        x86::Avx2Gfni::detect(),
        x86::Avx512::detect(),
        x86::Avx2::detect(),
        x86::Ssse3::detect(),
    ];
    #[cfg(target_arch = "aarch64")]
    let vector = [neon::Neon::detect()];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let vector: [Option<&'static dyn Backend>; 0] = [];
    let scalar: &'static dyn Backend = &scalar::Scalar;
    vector.into_iter().flatten().chain([scalar]).map(Kernel).collect()
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
