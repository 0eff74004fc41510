//! What several of the commands take: a code, kernels, extents.

use std::str::FromStr;

use clap::Args;
use codec::{Code, Family, Kernel, Scheme};
use codec_bench::Extent;
use codec_cuda::Residence;

use crate::exit::Exit;
use crate::units::Size;

/// A code, in one of two spellings.
#[derive(Args, Clone, Copy, Debug)]
pub struct CodeArgs {
    /// A code by name: 'rs(10+4)', 'lrc(12,2,2)', 'xor(4+1)', 'isal-cauchy(10+4)'
    #[arg(long, value_name = "CODE", conflicts_with_all = ["k", "m"])]
    pub code: Option<Scheme>,
    /// Data chunks
    #[arg(short, requires = "m")]
    pub k: Option<usize>,
    /// Parity chunks
    #[arg(short, requires = "k")]
    pub m: Option<usize>,
}

impl CodeArgs {
    /// What was asked for, if anything.
    pub fn scheme(self) -> Option<Scheme> {
        match (self.code, self.k, self.m) {
            (Some(scheme), ..) => Some(scheme),
            (None, Some(k), Some(m)) => Some(Scheme::rs(k, m)),
            _ => None,
        }
    }
}

/// What runs a code: a kernel of the processor, or a card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Runner {
    /// The processor.
    Kernel(Kernel),
    /// A card.
    Card,
}

/// What is called `name`. Whether there is a card is seen when it is used.
///
/// # Errors
/// One line with what there is.
pub fn runner(name: &str) -> Result<Runner, String> {
    if name == codec_bench::CARD {
        return Ok(Runner::Card);
    }
    kernel(name).map(Runner::Kernel).map_err(|error| format!("{error}, and {}", codec_bench::CARD))
}

/// Where chunks are: `host`, `pinned`, `device`.
///
/// # Errors
/// One line with what there is.
pub fn residence(name: &str) -> Result<Residence, String> {
    let all = Residence::ALL;
    all.into_iter().find(|residence| residence.name() == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|residence| residence.name()).collect();
        format!("chunks are not in '{name}': they are in {}", names.join(", "))
    })
}

/// The kernel of this machine that is called `name`.
///
/// # Errors
/// One line with those that there are.
pub fn kernel(name: &str) -> Result<Kernel, String> {
    let all = codec::kernels();
    all.iter().copied().find(|kernel| kernel.name() == name).ok_or_else(|| {
        let usable: Vec<&str> = all.iter().map(|kernel| kernel.name()).collect();
        format!("no kernel '{name}' on this machine: it has {}", usable.join(", "))
    })
}

/// A size of chunks, or of an object that is cut into chunks: `4KiB`, `1MiB-object`.
///
/// # Errors
/// One line that says how to write one.
pub fn extent(text: &str) -> Result<Extent, String> {
    let (size, make): (&str, fn(usize) -> Extent) = match text.strip_suffix("-object") {
        Some(size) => (size, Extent::Object),
        None => (text, Extent::Chunk),
    };
    let Size(bytes) = size.parse()?;
    if bytes == 0 {
        return Err(format!("'{text}': chunks of no bytes cannot be coded"));
    }
    usize::try_from(bytes).map(make).map_err(|_| format!("'{text}' is more than this machine can address"))
}

/// Whether `family` has a matrix for `scheme`'s numbers: other codes than Reed-Solomon have their own rows.
pub fn has_matrix(scheme: Scheme, family: Family) -> bool {
    matches!(scheme, Scheme::Rs { k, m, .. } if Code::of(Scheme::Rs { family, k, m }).is_ok())
}

/// For clap, which wants errors that are `Error`.
///
/// # Errors
/// As the type's.
pub fn parse<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// What the engine refuses is wrong usage.
pub fn refused(error: codec_bench::BenchError) -> Exit {
    Exit::usage(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_chunks_or_objects() {
        assert_eq!(extent("4KiB"), Ok(Extent::Chunk(4096)));
        assert_eq!(extent("1MiB-object"), Ok(Extent::Object(1 << 20)));
        for (text, part) in [
            ("0", "no bytes"),
            ("0B-object", "no bytes"),
            ("much", "for example"),
            ("-object", "for example"),
        ] {
            assert!(extent(text).unwrap_err().contains(part), "{text}");
        }
    }

    #[test]
    fn runners_are_kernels_and_a_card() {
        assert_eq!(runner("cuda"), Ok(Runner::Card));
        assert!(matches!(runner("scalar"), Ok(Runner::Kernel(_))));
        assert!(runner("abacus").unwrap_err().ends_with("scalar, and cuda"));
        assert_eq!(residence("device"), Ok(Residence::Device));
        assert!(residence("cloud").unwrap_err().contains("host, pinned, device"));
    }

    #[test]
    fn only_reed_solomon_codes_have_families() {
        assert!(has_matrix(Scheme::rs(10, 4), Family::Lch));
        assert!(!has_matrix(Scheme::rs(250, 5), Family::Lch));
        assert!(!has_matrix("lrc(12,2,2)".parse().unwrap(), Family::Lch));
    }
}
