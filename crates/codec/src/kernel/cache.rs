//! How large the caches are taken to be.

/// Results that are larger than this do not stay in the caches of one core: they are written past them, so that memory is not
/// read first and the sources are not pushed out. Server processors of today have one or two megabytes of second-level cache
/// and a few of shared cache a core.
pub(super) const CACHE_LEN: usize = 4 << 20;
