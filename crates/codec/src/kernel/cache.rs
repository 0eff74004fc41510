//! Whether results are stored past the caches. Then memory is not read before it is overwritten; but whoever reads the results next
//! has to fetch them from there.
//!
//! It is decided for sources that are in the caches and results that are read soon, as those of a store are that sends them on. Then
//! stores past the caches are worth it where all chunks together do not fit into them, whatever their shape. How much fits nobody
//! tells: the third level is shared, and a virtual machine reports what it likes. So some calls try both ways on their own chunks,
//! and the next ones of about that size do what was faster. (For sources from memory both take about the same time, or a fifth
//! less past the caches if nobody reads the results; a wrong choice for sources in a cache can cost half the speed.)

use std::sync::OnceLock;

use super::instruction_set::Kernel;
use super::stopwatch::Way;
use crate::chunks::Chunks;

/// Taken for the second-level cache where the processor does not tell.
const SECOND_LEVEL: usize = 1 << 20;

/// Bytes of a core's second-level cache: what is no larger than this in all, is never stored past it.
pub(super) fn second_level() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| of_processor().unwrap_or(SECOND_LEVEL))
}

/// Combines chunks of `bytes` in all, sources and outputs, by `way`, with the results stored where that is faster for so many.
#[inline]
pub(super) fn run(kernel: Kernel, bytes: usize, chunks: Chunks<'_, '_, '_>, way: Way<'_>) {
    match &kernel.0.trials {
        Some(trials) if bytes > second_level() => trials.run(bytes, chunks, way),
        _ => way(chunks, false),
    }
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
}
