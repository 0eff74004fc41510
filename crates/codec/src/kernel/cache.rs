//! From what size on results are stored past the caches, so that memory is not read before it is overwritten and the sources are
//! not pushed out.

use std::sync::OnceLock;

use super::{Kernel, Matrix, calibrate};

/// Taken for the second-level cache where the processor does not tell.
const SECOND_LEVEL: usize = 1 << 20;
/// Beyond this nothing is in any cache of one core.
const LARGEST: usize = 8 << 20;
/// Sources and outputs of what is measured.
const SHAPE: (usize, usize) = (4, 2);

/// Bytes of a core's second-level cache: what is no larger than this in all, is never stored past it.
pub(super) fn second_level() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| of_processor().unwrap_or(SECOND_LEVEL))
}

/// Whether results of a combination of `bytes` in all, sources and outputs, had better be stored past the caches.
pub(super) fn streams(kernel: Kernel, bytes: usize) -> bool {
    bytes > second_level() && had_better_stream(kernel, bytes)
}

/// [`streams`] of more than the second level holds. From what size on that is so depends on how fast the third level is: it is
/// measured the first time that it matters, which takes some milliseconds.
#[cold]
pub(super) fn had_better_stream(kernel: Kernel, bytes: usize) -> bool {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    bytes > *LIMIT.get_or_init(|| limit(kernel))
}

/// The largest size, the second level's and its doubles, at twice which storing through the caches is faster.
fn limit(kernel: Kernel) -> usize {
    let (columns, rows) = SHAPE;
    let matrix = Matrix::new(kernel, columns, (0..columns * rows).map(|i| i as u8 + 2).collect());
    let mut size = second_level();
    while size < LARGEST && !calibrate::streams_faster(&matrix, 2 * size / (columns + rows)) {
        size *= 2;
    }
    size
}

#[cfg(target_arch = "x86_64")]
fn of_processor() -> Option<usize> {
    let caches = raw_cpuid::CpuId::new().get_cache_parameters()?;
    let bytes = |cache: raw_cpuid::CacheParameter| {
        cache.associativity() * cache.physical_line_partitions() * cache.coherency_line_size() * cache.sets()
    };
    caches.filter(|cache| cache.level() == 2).map(bytes).find(|bytes| *bytes > 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn of_processor() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_level_is_of_a_size_that_such_caches_have() {
        assert!((128 << 10..=64 << 20).contains(&second_level()), "{}", second_level());
    }

    #[test]
    fn what_the_second_level_holds_is_not_streamed_and_what_no_cache_holds_is() {
        assert!(!had_better_stream(crate::kernel(), second_level()));
        assert!(had_better_stream(crate::kernel(), 2 * LARGEST.max(second_level())));
    }
}
